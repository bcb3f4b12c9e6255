/*-------------------------------------------------------------------------
 *
 * am_rekey.c
 *	  Writing all rows of a table anew: sorted by a new primary key, or into another storage by the same one.
 *
 * ADD PRIMARY KEY on a filled table, and the end of a rewrite that could not know the key, read every row once, sort by (bucket, key) with
 * Postgres's own external sort, and write one run a bucket into a new storage.  The old storage, with everything the transaction had written to
 * it, stays as it was for the case of a rollback.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "am/am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "merge/merge_records.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

#define BYTEA_LT_OPERATOR 1957	/* bytea < bytea */

/* Runs of a storage being filled bucket by bucket. */
typedef struct Filler
{
	PaimonTable *table;
	Relation	rel;
	PaimonRunWriter *writer;
	int			bucket;
	PaimonFileRow *files;
	int			nfiles;
	XLogRecPtr	lsn;
	double		rows;
	MemoryContext scratch;		/* of one row */
} Filler;

static void
filler_close_run(Filler *f)
{
	PaimonFileRow *files;
	int			n;
	XLogRecPtr	lsn;

	if (f->writer == NULL)
		return;
	paimon_run_finish(f->writer, &files, &n, &lsn);
	f->writer = NULL;
	f->lsn = Max(f->lsn, lsn);
	f->files = f->files == NULL ? palloc(sizeof(PaimonFileRow) * Max(n, 1)) :
		repalloc(f->files, sizeof(PaimonFileRow) * (f->nfiles + Max(n, 1)));
	memcpy(f->files + f->nfiles, files, sizeof(PaimonFileRow) * n);
	f->nfiles += n;
}

/* The kind to write a row with; its payload may lie anywhere, as a short bytea does in a sorted tuple. */
static uint8
row_kind(Filler *f, PaimonBytes key, PaimonBytes payload)
{
	const PaimonTable *table = f->table;
	int			natts = table->desc->tupdesc->natts;
	MemoryContext old;
	Datum	   *values;
	bool	   *isnull;
	uint8		kind;

	if (!table->merges)
		return PAIMON_KIND_INSERT;
	if (f->scratch == NULL)
		f->scratch = AllocSetContextCreate(CurrentMemoryContext, "paimon re-key row", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(f->scratch);
	values = palloc_array(Datum, natts + 1);
	isnull = palloc_array(bool, natts + 1);
	if (((uintptr_t) payload.data & 7) != 0)
		payload.data = memcpy(palloc(payload.len + 1), payload.data, payload.len);
	paimon_row_decode(table->desc, key.data, key.len, payload.data, payload.len, natts, values, isnull);
	kind = paimon_merge_rewrite_kind(table->plan, isnull);
	MemoryContextSwitchTo(old);
	MemoryContextReset(f->scratch);
	return kind;
}

/* Rows must come in (bucket, key) order. */
static void
filler_add(Filler *f, int bucket, PaimonBytes key, PaimonBytes payload)
{
	if (f->writer == NULL || bucket != f->bucket)
	{
		const PaimonOptions *o = &f->table->options;
		PaimonRunParams p = {0};

		filler_close_run(f);
		p.rel = f->rel;
		p.desc = f->table->desc;
		p.bucket = bucket;
		p.source = PAIMON_SOURCE_BULK;
		p.xid = GetTopFullTransactionId();
		p.target_file_size = o->target_file_size;
		p.target_file_rows = o->target_file_row_num;
		p.zstd_level = o->compression == PAIMON_COMPRESSION_NONE ? 0 : o->zstd_level;
		f->writer = paimon_run_begin(&p);
		f->bucket = bucket;
	}
	paimon_run_add(f->writer, key.data, key.len, row_kind(f, key, payload), payload.data, payload.len);
	f->rows++;
}

static void
filler_finish(Filler *f)
{
	filler_close_run(f);
	if (f->scratch != NULL)
		MemoryContextDelete(f->scratch);
	if (f->nfiles == 0)
		return;
	if (!XLogRecPtrIsInvalid(f->lsn))
		XLogFlush(f->lsn);
	paimon_bulk_register(f->table, f->rel, f->files, f->nfiles);
}

static PaimonReader *
read_all(PaimonTable *table, Relation rel)
{
	PaimonReadSpec spec = {0};

	spec.table = table;
	spec.rel = rel;
	spec.snapshot = SnapshotSelf;	/* newest, own writes included */
	spec.bucket = -1;
	spec.forward = true;
	spec.whole = true;
	return paimon_reader_begin(&spec);
}

/*
 * Copies the merged rows of one storage into another, empty one that is keyed the same.  Returns how many.
 */
double
paimon_copy_rows(PaimonTable *from, Relation from_rel, PaimonTable *to, Relation to_rel)
{
	PaimonReader *reader = read_all(from, from_rel);
	Filler		filler = {.table = to, .rel = to_rel};
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(from_rel), &paimon_slot_ops);
	StringInfoData payload;
	PaimonRowRef row;

	initStringInfo(&payload);
	while (paimon_reader_next(reader, &row))
	{
		PaimonBytes bytes;

		CHECK_FOR_INTERRUPTS();
		resetStringInfo(&payload);
		if (row.values != NULL || row.group != NULL)
			paimon_rowref_payload(from, &row, &payload);
		else
		{
			/* The log's bytes may lack columns that were added later with a default, which core forgets after the copy. */
			paimon_slot_store(slot, from, &row, true);
			slot_getallattrs(slot);
			paimon_row_encode(to->desc, slot->tts_values, slot->tts_isnull, &payload);
			ExecClearTuple(slot);
		}
		bytes.data = (const uint8 *) payload.data;
		bytes.len = payload.len;
		filler_add(&filler, row.bucket, row.key, bytes);
	}
	ExecDropSingleTupleTableSlot(slot);
	paimon_reader_end(reader);
	filler_finish(&filler);
	return filler.rows;
}

static TupleDesc
sort_desc(void)
{
	TupleDesc	desc = CreateTemplateTupleDesc(3);

	TupleDescInitEntry(desc, 1, "bucket", INT4OID, -1, 0);
	TupleDescInitEntry(desc, 2, "key", BYTEAOID, -1, 0);
	TupleDescInitEntry(desc, 3, "payload", BYTEAOID, -1, 0);
	return desc;
}

static Datum
bytea_datum(const void *data, int len)
{
	bytea	   *b = palloc(VARHDRSZ + len);

	SET_VARSIZE(b, VARHDRSZ + len);
	memcpy(VARDATA(b), data, len);
	return PointerGetDatum(b);
}

/* Puts every row of the old storage into the sort, encoded for the new key. */
static void
feed(PaimonTable *from, Relation heap, const PaimonRowDesc *to, Tuplesortstate *sort, TupleTableSlot *slot)
{
	PaimonReader *reader = read_all(from, heap);
	TupleTableSlot *row_slot = MakeSingleTupleTableSlot(RelationGetDescr(heap), &paimon_slot_ops);
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon re-key row", ALLOCSET_DEFAULT_SIZES);
	PaimonRowRef row;

	while (paimon_reader_next(reader, &row))
	{
		MemoryContext old;
		StringInfoData key;
		StringInfoData payload;

		CHECK_FOR_INTERRUPTS();
		paimon_slot_store(row_slot, from, &row, PAIMON_DECODE_WHOLE);
		slot_getallattrs(row_slot);
		MemoryContextReset(cxt);
		old = MemoryContextSwitchTo(cxt);
		initStringInfo(&key);
		initStringInfo(&payload);
		paimon_key_encode(to, row_slot->tts_values, row_slot->tts_isnull, &key);
		paimon_row_encode(to, row_slot->tts_values, row_slot->tts_isnull, &payload);
		ExecClearTuple(slot);
		slot->tts_values[0] = Int32GetDatum(to->nbuckets == 1 ? 0 :
											paimon_row_bucket(to, row_slot->tts_values, row_slot->tts_isnull));
		slot->tts_values[1] = bytea_datum(key.data, key.len);
		slot->tts_values[2] = bytea_datum(payload.data, payload.len);
		memset(slot->tts_isnull, 0, 3);
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(sort, slot);
		ExecClearTuple(slot);
		MemoryContextSwitchTo(old);
	}
	ExecDropSingleTupleTableSlot(row_slot);
	paimon_reader_end(reader);
	MemoryContextDelete(cxt);
}

static PaimonBytes
bytea_bytes(Datum d)
{
	PaimonBytes b;

	b.data = (const uint8 *) VARDATA_ANY(DatumGetPointer(d));
	b.len = VARSIZE_ANY_EXHDR(DatumGetPointer(d));
	return b;
}

static void
refuse_duplicate(Relation heap, Relation index, const PaimonRowDesc *desc, PaimonBytes key)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"", RelationGetRelationName(index)),
			 errdetail("Key %s is duplicated.", paimon_key_describe(desc, key.data, key.len)),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/* Writes the sorted rows; equal neighbours are duplicates of the new key. */
static void
drain(Tuplesortstate *sort, TupleTableSlot *slot, Filler *filler, Relation index)
{
	StringInfoData last;
	int			last_bucket = -1;

	initStringInfo(&last);
	while (tuplesort_gettupleslot(sort, true, false, slot, NULL))
	{
		int			bucket;
		PaimonBytes key;
		PaimonBytes payload;

		CHECK_FOR_INTERRUPTS();
		slot_getallattrs(slot);
		bucket = DatumGetInt32(slot->tts_values[0]);
		key = bytea_bytes(slot->tts_values[1]);
		payload = bytea_bytes(slot->tts_values[2]);
		if (bucket == last_bucket && key.len == (uint32) last.len && memcmp(key.data, last.data, key.len) == 0)
			refuse_duplicate(filler->rel, index, filler->table->desc, key);
		last_bucket = bucket;
		resetStringInfo(&last);
		appendBinaryStringInfo(&last, (const char *) key.data, key.len);
		filler_add(filler, bucket, key, payload);
	}
}

/*
 * Gives the table a new storage keyed and laid out as `row` says, with all rows in it that a statement of this transaction would see now.  The caller holds
 * a lock on the table that keeps everybody else from writing.  Returns the number of rows.
 */
double
paimon_rekey(Relation heap, Relation index, const PaimonStorageRow *row)
{
	PaimonTable *from = paimon_table_get(heap, true);
	PaimonStorageRow to_row = *row;
	AttrNumber	sort_atts[2] = {1, 2};
	Oid			sort_ops[2] = {Int4LessOperator, BYTEA_LT_OPERATOR};
	Oid			collations[2] = {InvalidOid, InvalidOid};
	bool		nulls_first[2] = {false, false};
	TupleDesc	desc = sort_desc();
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	TupleTableSlot *out = MakeSingleTupleTableSlot(desc, &TTSOpsMinimalTuple);
	Tuplesortstate *sort = tuplesort_begin_heap(desc, 2, sort_atts, sort_ops, collations, nulls_first,
												maintenance_work_mem, NULL, TUPLESORT_NONE);
	Filler		filler = {0};

	feed(from, heap, paimon_rowdesc_build(heap, &to_row), sort, slot);
	tuplesort_performsort(sort);

	paimon_set_new_relfilenumber(heap, heap->rd_rel->relpersistence);
	CommandCounterIncrement();
	to_row.storage_id = paimon_storage_id(heap);
	to_row.relid = RelationGetRelid(heap);
	paimon_catalog_storage_put(&to_row);
	CacheInvalidateRelcache(heap);
	CommandCounterIncrement();

	filler.table = paimon_table_get(heap, true);
	filler.rel = heap;
	drain(sort, out, &filler, index);
	filler_finish(&filler);

	tuplesort_end(sort);
	ExecDropSingleTupleTableSlot(slot);
	ExecDropSingleTupleTableSlot(out);
	return filler.rows;
}
