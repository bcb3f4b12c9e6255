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
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "merge/merge_records.h"
#include "merge/merge_server.h"
#include "options/options.h"

#define MOST_RECORDS 9			/* all ways to cut them into runs are tried */

PG_FUNCTION_INFO_V1(paimon_test_merge);

/* A record as logs have it. */
typedef struct TestRecord
{
	uint8		kind;
	StringInfoData payload;
} TestRecord;

typedef struct MergeTest
{
	Relation	rel;
	TupleDesc	tupdesc;
	PaimonRowDesc *desc;
	PaimonMergePlan *plan;
	PaimonMerger *merger;
	PaimonAllocator alloc;
	TestRecord	records[MOST_RECORDS];
	int			n;
	StringInfoData key;
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

static PaimonRowDesc *
row_desc(Relation rel, const bool *key)
{
	PaimonStorageRow *storage = palloc0_object(PaimonStorageRow);

	storage->storage_id = 1;
	storage->encoding = PAIMON_ENCODING_VERSION;
	storage->nbuckets = 1;
	for (int c = 0; c < RelationGetNumberOfAttributes(rel); c++)
	{
		if (key[c])
			storage->keys[storage->nkeys++] = c + 1;
	}
	return paimon_rowdesc_build(rel, storage);
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

/* A row of the table out of its text. */
static void
add_record(MergeTest *test, const char *kind, char *row)
{
	TestRecord *record = &test->records[test->n];
	TupleDesc	tupdesc = test->tupdesc;
	Datum	   *values = palloc_array(Datum, tupdesc->natts);
	bool	   *nulls = palloc_array(bool, tupdesc->natts);
	Datum		composite = OidInputFunctionCall(F_RECORD_IN, row, tupdesc->tdtypeid, -1);
	HeapTupleHeader header = DatumGetHeapTupleHeader(composite);
	HeapTupleData tuple = {.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	PaimonFoldRecord check;
	PaimonFoldError error;

	heap_deform_tuple(&tuple, tupdesc, values, nulls);
	paimon_row_flatten(test->desc, values, nulls);
	check.kind = record->kind = parse_kind(kind);
	check.values = (const uint64_t *) values;
	check.nulls = nulls;
	switch (paimon_merge_check_write(test->plan, &check, &test->alloc, &error))
	{
		case PAIMON_WRITE_TAKE:
			break;
		case PAIMON_WRITE_DROP:
			return;
		case PAIMON_WRITE_REFUSE:
			paimon_merge_report(RelationGetRelationName(test->rel), test->plan, &error, NULL);
	}
	initStringInfo(&record->payload);
	paimon_row_encode(test->desc, values, nulls, &record->payload);
	resetStringInfo(&test->key);
	paimon_key_encode(test->desc, values, nulls, &test->key);
	test->n++;
}

static bool
give(MergeTest *test, const TestRecord *record)
{
	return paimon_merger_add(test->merger, record->kind, (const uint8 *) record->payload.data, record->payload.len, (record->payload.len & 1) != 0);
}

/* The row that is seen when the records were cut into runs so; NULL: none. */
static char *
seen(MergeTest *test, uint32 cuts, bool oldest)
{
	const uint8 *key = (const uint8 *) test->key.data;
	TestRecord *parts[MOST_RECORDS];
	int			nrecords[MOST_RECORDS];
	int			nparts = 0;
	int			start = 0;
	const Datum *values;
	const bool *nulls;
	bool		more = true;

	for (int i = 0; i < test->n; i++)
	{
		if (i < test->n - 1 && (cuts & (1u << i)) == 0)
			continue;
		paimon_merger_key(test->merger, key, test->key.len);
		for (int k = i; k >= start && give(test, &test->records[k]); k--)
			;
		nrecords[nparts] = paimon_merger_partial(test->merger, oldest && start == 0);
		parts[nparts] = palloc_array(TestRecord, nrecords[nparts] + 1);
		for (int k = 0; k < nrecords[nparts]; k++)
		{
			parts[nparts][k].kind = paimon_merger_record(test->merger, k, &values, &nulls);
			initStringInfo(&parts[nparts][k].payload);
			paimon_row_encode(test->desc, values, nulls, &parts[nparts][k].payload);
		}
		nparts++;
		start = i + 1;
	}
	paimon_merger_key(test->merger, key, test->key.len);
	for (int i = nparts - 1; i >= 0 && more; i--)
	{
		for (int k = 0; k < nrecords[i] && more; k++)
			more = give(test, &parts[i][k]);
	}
	if (!paimon_merger_row(test->merger, &values, &nulls))
		return NULL;
	return OidOutputFunctionCall(F_RECORD_OUT, HeapTupleGetDatum(heap_form_tuple(test->tupdesc, (Datum *) values, (bool *) nulls)));
}

/* test_merge(table, options, kinds, rows): what is seen of the rows, the same however they are grouped.  No options: the table's own. */
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
	test.desc = row_desc(test.rel, key_columns(test.rel));
	if (items == NIL)
		test.plan = paimon_merge_plan_relation(test.rel, test.desc);
	if (test.plan == NULL)
		test.plan = paimon_merge_plan_table(RelationGetRelationName(test.rel), test.tupdesc, key_columns(test.rel), test.rel->rd_rel->relowner, items);
	paimon_merge_allocator(CurrentMemoryContext, &test.alloc);
	test.merger = paimon_merger_begin(RelationGetRelationName(test.rel), test.desc, test.plan, true);
	initStringInfo(&test.key);
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
	paimon_merger_end(test.merger);
	relation_close(test.rel, AccessShareLock);
	if (first == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(first));
}

#endif							/* PAIMON_TESTING */
