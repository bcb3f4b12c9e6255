/*-------------------------------------------------------------------------
 *
 * merge_testing.c
 *	  A function for tests of this folder, in testing builds only (sql/parts/95_testing_merge.sql.in).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "merge/merge_server.h"
#include "options/options.h"

#define MOST_RECORDS 9			/* all ways to cut them into runs are tried */

PG_FUNCTION_INFO_V1(paimon_test_merge);

typedef struct MergeTest
{
	Relation	rel;
	TupleDesc	tupdesc;
	PaimonMergePlan *plan;
	PaimonFold *fold;
	PaimonAllocator alloc;
	PaimonFoldRecord records[MOST_RECORDS];
	int			n;
	char	   *key;
} MergeTest;

/* "name=value" */
static List *
parse_options(ArrayType *array)
{
	Datum	   *elems;
	int			n;
	List	   *items = NIL;

	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT, &elems, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		PaimonOptionItem *item = palloc_object(PaimonOptionItem);
		char	   *equals;

		item->name = TextDatumGetCString(elems[i]);
		equals = strchr(item->name, '=');
		if (equals == NULL)
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("no value in option \"%s\"", item->name)));
		*equals = '\0';
		item->value = equals + 1;
		items = lappend(items, item);
	}
	return items;
}

static bool *
key_columns(Relation rel)
{
	Bitmapset  *attrs = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	bool	   *key = palloc0_array(bool, RelationGetNumberOfAttributes(rel) + 1);

	for (int c = 0; c < RelationGetNumberOfAttributes(rel); c++)
		key[c] = bms_is_member(c + 1 - FirstLowInvalidHeapAttributeNumber, attrs);
	return key;
}

static uint8
parse_kind(const char *kind)
{
	uint8		result;

	if (strcmp(kind, "UPDATE") == 0)
		return PAIMON_KIND_REPLACE;
	if (strcmp(kind, "DELETE") == 0)
		return PAIMON_KIND_REMOVE;
	if (!paimon_merge_parse_kind(kind, strlen(kind), &result))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("no kind of row: \"%s\"", kind)));
	return result;
}

/* A row of the table out of its text, flat. */
static void
add_record(MergeTest *test, const char *kind, char *row)
{
	PaimonFoldRecord *record = &test->records[test->n];
	TupleDesc	tupdesc = test->tupdesc;
	Datum	   *values = palloc_array(Datum, tupdesc->natts);
	bool	   *nulls = palloc_array(bool, tupdesc->natts);
	Datum		composite = OidInputFunctionCall(F_RECORD_IN, row, tupdesc->tdtypeid, -1);
	HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	PaimonFoldError error;

	heap_deform_tuple(&tuple, tupdesc, values, nulls);
	for (int c = 0; c < tupdesc->natts; c++)
	{
		if (!nulls[c] && TupleDescAttr(tupdesc, c)->attlen == -1)
			values[c] = PointerGetDatum(PG_DETOAST_DATUM_COPY(values[c]));
	}
	record->kind = parse_kind(kind);
	record->values = (const uint64_t *) values;
	record->nulls = nulls;
	switch (paimon_merge_check_write(test->plan, record, &test->alloc, &error))
	{
		case PAIMON_WRITE_TAKE:
			test->n++;
			break;
		case PAIMON_WRITE_DROP:
			break;
		case PAIMON_WRITE_REFUSE:
			paimon_merge_report(RelationGetRelationName(test->rel), test->plan, &error, NULL);
	}
}

static PaimonFoldRecord
copy_record(const MergeTest *test, const PaimonFoldRecord *from)
{
	int			natts = test->tupdesc->natts;
	Datum	   *values = palloc0_array(Datum, natts);
	bool	   *nulls = palloc_array(bool, natts);
	PaimonFoldRecord copy = {.kind = from->kind, .values = (const uint64_t *) values, .nulls = nulls};

	for (int c = 0; c < natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(test->tupdesc, c);

		nulls[c] = from->nulls[c] || att->attisdropped;
		if (!nulls[c])
			values[c] = datumCopy((Datum) from->values[c], att->attbyval, att->attlen);
	}
	return copy;
}

/* The row that is seen when the records were cut into runs so; NULL: none. */
static char *
seen(MergeTest *test, uint32 cuts, bool oldest)
{
	MemoryContext key = AllocSetContextCreate(CurrentMemoryContext, "paimon merge test", ALLOCSET_DEFAULT_SIZES);
	PaimonAllocator key_alloc;
	PaimonFoldRecord *parts[MOST_RECORDS];
	int			nrecords[MOST_RECORDS];
	int			nparts = 0;
	int			start = 0;
	PaimonFoldRecord row;
	PaimonFoldError error;
	bool		more = true;

	paimon_merge_allocator(key, &key_alloc);
	for (int i = 0; i < test->n; i++)
	{
		const PaimonFoldRecord *out;

		if (i < test->n - 1 && (cuts & (1u << i)) == 0)
			continue;
		paimon_fold_begin(test->fold, &key_alloc);
		for (int k = i; k >= start && paimon_fold_add(test->fold, &test->records[k]); k--)
			;
		nrecords[nparts] = paimon_fold_partial(test->fold, oldest && start == 0, &out);
		parts[nparts] = palloc_array(PaimonFoldRecord, nrecords[nparts] + 1);
		for (int k = 0; k < nrecords[nparts]; k++)
			parts[nparts][k] = copy_record(test, &out[k]);
		nparts++;
		start = i + 1;
		MemoryContextReset(key);
	}
	paimon_fold_begin(test->fold, &key_alloc);
	for (int i = nparts - 1; i >= 0 && more; i--)
	{
		for (int k = 0; k < nrecords[i] && more; k++)
			more = paimon_fold_add(test->fold, &parts[i][k]);
	}
	switch (paimon_fold_visible(test->fold, &row, &error))
	{
		case PAIMON_FOLD_ROW:
			row = copy_record(test, &row);
			MemoryContextDelete(key);
			return OidOutputFunctionCall(F_RECORD_OUT,
										 HeapTupleGetDatum(heap_form_tuple(test->tupdesc, (Datum *) row.values, (bool *) row.nulls)));
		case PAIMON_FOLD_GONE:
			break;
		case PAIMON_FOLD_FAILED:
			paimon_merge_report(RelationGetRelationName(test->rel), test->plan, &error, test->key);
	}
	MemoryContextDelete(key);
	return NULL;
}

/* test_merge(table, options, kinds, rows): what is seen of the rows, the same however they are grouped. */
Datum
paimon_test_merge(PG_FUNCTION_ARGS)
{
	MergeTest	test = {0};
	List	   *items = parse_options(PG_GETARG_ARRAYTYPE_P(1));
	Datum	   *kinds;
	Datum	   *rows;
	int			nkinds;
	int			nrows;
	char	   *first = NULL;

	test.rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	test.tupdesc = RelationGetDescr(test.rel);
	test.plan = paimon_merge_plan_table(RelationGetRelationName(test.rel), test.tupdesc, key_columns(test.rel), test.rel->rd_rel->relowner, items);
	paimon_merge_allocator(CurrentMemoryContext, &test.alloc);
	test.fold = paimon_fold_create(test.plan, &test.alloc);
	test.key = "(of the test)";
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), TEXTOID, -1, false, TYPALIGN_INT, &kinds, NULL, &nkinds);
	deconstruct_array(PG_GETARG_ARRAYTYPE_P(3), TEXTOID, -1, false, TYPALIGN_INT, &rows, NULL, &nrows);
	if (nkinds != nrows || nrows < 1 || nrows > MOST_RECORDS)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("a kind for each row is needed, and at most %d rows", MOST_RECORDS)));
	for (int i = 0; i < nrows; i++)
		add_record(&test, TextDatumGetCString(kinds[i]), TextDatumGetCString(rows[i]));
	for (uint32 cuts = 0; test.n > 0 && cuts < (1u << (test.n - 1)); cuts++)
	{
		for (int oldest = 0; oldest < 2; oldest++)
		{
			char	   *row = seen(&test, cuts, oldest != 0);

			CHECK_FOR_INTERRUPTS();
			if (cuts == 0 && oldest == 0)
				first = row;
			else if ((row == NULL) != (first == NULL) || (row != NULL && strcmp(row, first) != 0))
				ereport(ERROR,
						(errcode(ERRCODE_INTERNAL_ERROR),
						 errmsg("rows merged otherwise give another result"),
						 errdetail("At once: %s. Runs %x, oldest %d: %s.", first != NULL ? first : "none", cuts, oldest, row != NULL ? row : "none")));
		}
	}
	relation_close(test.rel, AccessShareLock);
	if (first == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(first));
}

#endif							/* PAIMON_TESTING */
