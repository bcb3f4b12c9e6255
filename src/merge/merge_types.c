/*-------------------------------------------------------------------------
 *
 * merge_types.c
 *	  Types of columns as the merge engines see them; order of values and arithmetic of numerics.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "merge/merge_server.h"

int
paimon_merge_type_compare(const PaimonMergeColumn *col, uint64_t a, uint64_t b)
{
	const PaimonMergeType *t = paimon_merge_type(col);

	return DatumGetInt32(FunctionCall2Coll(&t->cache->cmp_proc_finfo, t->collation, (Datum) a, (Datum) b));
}

/* ---------- numeric ---------- */

static Numeric
round_to_scale(const PaimonMergeType *t, Numeric n)
{
	if (!t->scaled)
		return n;
	return DatumGetNumeric(DirectFunctionCall2(numeric_round, NumericGetDatum(n), Int32GetDatum(t->scale)));
}

static bool
numerics_equal(Numeric a, Numeric b)
{
	return DatumGetBool(DirectFunctionCall2(numeric_eq, NumericGetDatum(a), NumericGetDatum(b)));
}

/* A quotient that has no end is an error, as is division by zero. */
static PaimonFoldCode
divide(Numeric a, Numeric b, Numeric *result)
{
	bool		failed = false;
	Numeric		back;

	*result = numeric_div_opt_error(a, b, &failed);
	if (failed)
		return PAIMON_FOLD_DIVISION;
	back = numeric_mul_opt_error(*result, b, &failed);
	return failed || !numerics_equal(back, a) ? PAIMON_FOLD_DIVISION : PAIMON_FOLD_OK;
}

static PaimonFoldCode
numeric_arith(const PaimonMergeColumn *col, PaimonArith op, uint64_t a, uint64_t b, uint64_t *result, const PaimonAllocator *alloc)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	MemoryContext old = paimon_merge_enter(alloc);
	Numeric		x = DatumGetNumeric((Datum) a);
	Numeric		y = DatumGetNumeric((Datum) b);
	Numeric		v = NULL;
	bool		failed = false;
	PaimonFoldCode code = PAIMON_FOLD_OK;

	switch (op)
	{
		case PAIMON_ARITH_ADD:
			v = numeric_add_opt_error(x, y, &failed);
			break;
		case PAIMON_ARITH_SUB:
			v = numeric_sub_opt_error(x, y, &failed);
			break;
		case PAIMON_ARITH_MUL:
			v = numeric_mul_opt_error(x, y, &failed);
			break;
		case PAIMON_ARITH_DIV:
			code = divide(x, y, &v);
			break;
	}
	if (failed)
		code = PAIMON_FOLD_OVERFLOW;
	if (code == PAIMON_FOLD_OK)
	{
		if (op == PAIMON_ARITH_MUL || op == PAIMON_ARITH_DIV)
			v = round_to_scale(t, v);
		*result = (uint64_t) NumericGetDatum(v);
	}
	MemoryContextSwitchTo(old);
	return code;
}

/* NaN fits everywhere, infinity only where nothing is said. */
static bool
numeric_value_fits(const PaimonMergeColumn *col, uint64_t a)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	Numeric		n = DatumGetNumeric((Datum) a);
	Datum		size;
	bool		fits;

	if (numeric_is_nan(n))
		return true;
	size = DirectFunctionCall1(numeric_abs, NumericGetDatum(n));
	fits = DatumGetBool(DirectFunctionCall2(numeric_lt, size, NumericGetDatum(t->limit)));
	pfree(DatumGetPointer(size));
	return fits;
}

static const PaimonMergeOps numeric_ops = {
	.compare = paimon_merge_type_compare, .arith = numeric_arith,
};

static const PaimonMergeOps scaled_numeric_ops = {
	.compare = paimon_merge_type_compare, .arith = numeric_arith, .fits = numeric_value_fits,
};

static const PaimonMergeOps other_ops = {
	.compare = paimon_merge_type_compare,
};

/* Precision and scale out of a type modifier; the scale has 11 bits, with a sign. */
static void
init_numeric(PaimonMergeColumn *col, PaimonMergeType *t)
{
	int			precision;
	char		text[16];

	col->ops = &numeric_ops;
	if (t->typmod < (int32) VARHDRSZ)
		return;
	precision = ((t->typmod - VARHDRSZ) >> 16) & 0xffff;
	t->scale = (((t->typmod - VARHDRSZ) & 0x7ff) ^ 1024) - 1024;
	t->scaled = true;
	snprintf(text, sizeof(text), "1e%d", precision - t->scale);
	t->limit = DatumGetNumeric(DirectFunctionCall3(numeric_in, CStringGetDatum(text), ObjectIdGetDatum(InvalidOid), Int32GetDatum(-1)));
	col->ops = &scaled_numeric_ops;
}

/* ---------- classes ---------- */

static PaimonMergeClass
class_of(PaimonMergeColumn *col, PaimonMergeType *t)
{
	switch (t->type)
	{
		case BOOLOID:
			return PAIMON_MC_BOOL;
		case INT2OID:
			return PAIMON_MC_INT2;
		case INT4OID:
			return PAIMON_MC_INT4;
		case INT8OID:
			return PAIMON_MC_INT8;
		case FLOAT4OID:
			return PAIMON_MC_FLOAT4;
		case FLOAT8OID:
			return PAIMON_MC_FLOAT8;
		case NUMERICOID:
			init_numeric(col, t);
			return PAIMON_MC_NUMERIC;
		case TEXTOID:
			return PAIMON_MC_TEXT;
		case VARCHAROID:
			return t->typmod < 0 ? PAIMON_MC_TEXT : PAIMON_MC_CHAR;
		case BPCHAROID:
			return PAIMON_MC_CHAR;
		case BYTEAOID:
			return PAIMON_MC_BYTES;
		case DATEOID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			return PAIMON_MC_TIME;
		case JSONBOID:
			col->ops = &paimon_merge_json_ops;
			return PAIMON_MC_JSON;
		default:
			break;
	}
	t->elemtype = get_element_type(t->type);
	if (!OidIsValid(t->elemtype))
		return PAIMON_MC_OTHER;
	col->ops = &paimon_merge_array_ops;
	t->elem = lookup_type_cache(t->elemtype, TYPECACHE_EQ_OPR_FINFO | TYPECACHE_HASH_PROC_FINFO);
	get_typlenbyvalalign(t->elemtype, &t->elemlen, &t->elembyval, &t->elemalign);
	if (get_typtype(getBaseType(t->elemtype)) != TYPTYPE_COMPOSITE)
		return PAIMON_MC_ARRAY;
	t->rowdesc = lookup_rowtype_tupdesc_copy(getBaseType(t->elemtype), -1);
	return PAIMON_MC_ROWS;
}

void
paimon_merge_type_init(PaimonMergeColumn *col, Form_pg_attribute att)
{
	PaimonMergeType *t = palloc0_object(PaimonMergeType);

	t->cxt = CurrentMemoryContext;
	t->typmod = att->atttypmod;
	t->type = getBaseTypeAndTypmod(att->atttypid, &t->typmod);
	t->collation = att->attcollation;
	t->cache = lookup_type_cache(t->type, TYPECACHE_CMP_PROC_FINFO);
	col->ops = &other_ops;
	col->ops_arg = t;
	col->name = pstrdup(NameStr(att->attname));
	col->not_null = att->attnotnull;
	col->comparable = OidIsValid(t->cache->cmp_proc_finfo.fn_oid);
	col->cls = class_of(col, t);
}
