/*-------------------------------------------------------------------------
 *
 * merge_arrays.c
 *	  Arrays and arrays of rows as lists of the aggregate functions.
 *
 * An element's word is the element's Datum.  What it points to lies in the array it came from, or in the fold's memory.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "common/hashfn.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include "merge/merge_server.h"

static PaimonFoldCode
array_unpack(const PaimonMergeColumn *col, uint64_t value, const PaimonAllocator *alloc, PaimonList *out)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	MemoryContext old = paimon_merge_enter(alloc);
	ArrayType  *array = DatumGetArrayTypeP((Datum) value);
	Datum	   *elems;
	bool	   *nulls;
	int			n;

	memset(out, 0, sizeof(*out));
	if (ARR_NDIM(array) > 1)
	{
		MemoryContextSwitchTo(old);
		return PAIMON_FOLD_BAD_VALUE;
	}
	deconstruct_array(array, t->elemtype, t->elemlen, t->elembyval, t->elemalign, &elems, &nulls, &n);
	out->e = palloc_array(PaimonCell, n + 1);
	out->n = out->cap = n;
	for (int i = 0; i < n; i++)
	{
		out->e[i].word = (uint64_t) elems[i];
		out->e[i].isnull = nulls[i];
	}
	MemoryContextSwitchTo(old);
	return PAIMON_FOLD_OK;
}

static uint64_t
array_pack(const PaimonMergeColumn *col, const PaimonList *list, const PaimonAllocator *alloc)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	MemoryContext old = paimon_merge_enter(alloc);
	ArrayType  *array;

	if (list->n == 0)
		array = construct_empty_array(t->elemtype);
	else
	{
		Datum	   *elems = palloc_array(Datum, list->n);
		bool	   *nulls = palloc_array(bool, list->n);
		int			dims[1] = {(int) list->n};
		int			lbs[1] = {1};

		for (uint32 i = 0; i < list->n; i++)
		{
			elems[i] = (Datum) list->e[i].word;
			nulls[i] = list->e[i].isnull;
		}
		array = construct_md_array(elems, nulls, 1, dims, lbs, t->elemtype, t->elemlen, t->elembyval, t->elemalign);
	}
	MemoryContextSwitchTo(old);
	return (uint64_t) PointerGetDatum(array);
}

/* ---------- fields of rows ---------- */

static Datum
field(const PaimonMergeType *t, const PaimonCell *e, AttrNumber attno, bool *isnull)
{
	HeapTupleHeader header;
	HeapTupleData tuple;

	*isnull = true;
	if (e->isnull)
		return (Datum) 0;
	header = DatumGetHeapTupleHeader((Datum) e->word);
	memset(&tuple, 0, sizeof(tuple));
	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	tuple.t_data = header;
	return heap_getattr(&tuple, attno, t->rowdesc, isnull);
}

static TypeCacheEntry *
field_type(const PaimonMergeType *t, AttrNumber attno, int flags)
{
	return lookup_type_cache(TupleDescAttr(t->rowdesc, attno - 1)->atttypid, flags);
}

static bool
keys_equal(const PaimonMergeType *t, const PaimonCell *a, const PaimonCell *b)
{
	for (int i = 0; i < t->nkeys; i++)
	{
		bool		xnull;
		bool		ynull;
		Datum		x = field(t, a, t->keys[i], &xnull);
		Datum		y = field(t, b, t->keys[i], &ynull);

		if (xnull != ynull)
			return false;
		if (!xnull && !DatumGetBool(FunctionCall2Coll(&field_type(t, t->keys[i], TYPECACHE_EQ_OPR_FINFO)->eq_opr_finfo,
													  TupleDescAttr(t->rowdesc, t->keys[i] - 1)->attcollation, x, y)))
			return false;
	}
	return true;
}

static bool
array_equal(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b, bool by_key)
{
	const PaimonMergeType *t = paimon_merge_type(col);

	if (by_key)
		return keys_equal(t, a, b);
	if (a->isnull || b->isnull)
		return a->isnull && b->isnull;
	if (!OidIsValid(t->elem->eq_opr_finfo.fn_oid))
		return datum_image_eq((Datum) a->word, (Datum) b->word, t->elembyval, t->elemlen);
	return DatumGetBool(FunctionCall2Coll(&t->elem->eq_opr_finfo, t->collation, (Datum) a->word, (Datum) b->word));
}

/* Types that cannot be hashed are found one by one. */
static uint32
hash_value(TypeCacheEntry *type, Oid collation, Datum value)
{
	if (!OidIsValid(type->hash_proc_finfo.fn_oid))
		return 0;
	return DatumGetUInt32(FunctionCall1Coll(&type->hash_proc_finfo, collation, value));
}

static uint32_t
array_hash(const PaimonMergeColumn *col, const PaimonCell *e, bool by_key)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	uint32		hash = 0;

	if (!by_key)
	{
		/* rows of types that cannot be hashed have a hash function that fails */
		if (e->isnull || t->rowdesc != NULL || !OidIsValid(t->elem->eq_opr_finfo.fn_oid))
			return 0;
		return hash_value(t->elem, t->collation, (Datum) e->word);
	}
	for (int i = 0; i < t->nkeys; i++)
	{
		bool		isnull;
		Datum		value = field(t, e, t->keys[i], &isnull);

		if (!isnull)
			hash = hash_combine(hash, hash_value(field_type(t, t->keys[i], TYPECACHE_HASH_PROC_FINFO),
												 TupleDescAttr(t->rowdesc, t->keys[i] - 1)->attcollation, value));
	}
	return hash;
}

static bool
array_key_has_null(const PaimonMergeColumn *col, const PaimonCell *e)
{
	const PaimonMergeType *t = paimon_merge_type(col);

	for (int i = 0; i < t->nkeys; i++)
	{
		bool		isnull;

		(void) field(t, e, t->keys[i], &isnull);
		if (isnull)
			return true;
	}
	return false;
}

static int
array_order(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b)
{
	const PaimonMergeType *t = paimon_merge_type(col);

	for (int i = 0; i < t->norder; i++)
	{
		bool		xnull;
		bool		ynull;
		Datum		x = field(t, a, t->order[i], &xnull);
		Datum		y = field(t, b, t->order[i], &ynull);
		int			c = (int) ynull - (int) xnull;

		if (!xnull && !ynull)
			c = DatumGetInt32(FunctionCall2Coll(&field_type(t, t->order[i], TYPECACHE_CMP_PROC_FINFO)->cmp_proc_finfo,
												TupleDescAttr(t->rowdesc, t->order[i] - 1)->attcollation, x, y));
		if (c != 0)
			return c;
	}
	return 0;
}

/* A row that is NULL has no fields. */
static PaimonCell
array_overlay(const PaimonMergeColumn *col, const PaimonCell *old, const PaimonCell *new, const PaimonAllocator *alloc)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	MemoryContext cxt = paimon_merge_enter(alloc);
	int			natts = t->rowdesc->natts;
	Datum	   *values = palloc_array(Datum, natts);
	bool	   *nulls = palloc_array(bool, natts);
	PaimonCell	result = {.isnull = false};

	for (int i = 0; i < natts; i++)
	{
		values[i] = field(t, new, i + 1, &nulls[i]);
		if (nulls[i])
			values[i] = field(t, old, i + 1, &nulls[i]);
	}
	result.word = (uint64_t) HeapTupleGetDatum(heap_form_tuple(t->rowdesc, values, nulls));
	MemoryContextSwitchTo(cxt);
	return result;
}

const PaimonMergeOps paimon_merge_array_ops = {
	.compare = paimon_merge_type_compare, .unpack = array_unpack, .pack = array_pack, .hash = array_hash, .equal = array_equal,
	.key_has_null = array_key_has_null, .order = array_order, .overlay = array_overlay,
};

/* ---------- names of fields ---------- */

static AttrNumber *
find_fields(const char *relname, const PaimonMergeColumn *col, const char *option, const char *list, bool order, int *n)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	char	  **names = paimon_merge_names(list, n);
	AttrNumber *attnos = palloc_array(AttrNumber, *n);

	for (int i = 0; i < *n; i++)
	{
		TypeCacheEntry *type;

		attnos[i] = InvalidAttrNumber;
		for (int a = 0; a < t->rowdesc->natts; a++)
		{
			if (!TupleDescAttr(t->rowdesc, a)->attisdropped && strcmp(NameStr(TupleDescAttr(t->rowdesc, a)->attname), names[i]) == 0)
				attnos[i] = a + 1;
		}
		if (attnos[i] == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("field \"%s\" named by option \"fields.%s.%s\" of table \"%s\" does not exist", names[i], col->name, option, relname)));
		type = field_type(t, attnos[i], TYPECACHE_EQ_OPR_FINFO | TYPECACHE_CMP_PROC_FINFO);
		if (!OidIsValid(order ? type->cmp_proc_finfo.fn_oid : type->eq_opr_finfo.fn_oid))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("field \"%s\" named by option \"fields.%s.%s\" of table \"%s\" cannot be compared", names[i], col->name, option, relname)));
	}
	return attnos;
}

void
paimon_merge_array_fields(const char *relname, PaimonMergeColumn *col)
{
	PaimonMergeType *t = col->ops_arg;

	if (col->nested_key != NULL)
		t->keys = find_fields(relname, col, "nested-key", col->nested_key, false, &t->nkeys);
	if (col->nested_sequence != NULL)
		t->order = find_fields(relname, col, "nested-sequence-field", col->nested_sequence, true, &t->norder);
}
