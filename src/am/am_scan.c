/*-------------------------------------------------------------------------
 *
 * am_scan.c
 *	  Sequential scans: the merge reader behind the table access method's scan callbacks.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relscan.h"
#include "access/valid.h"
#include "am/am.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/atomics.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* Units of a parallel scan are handed out by a counter; all workers see the same manifest and so the same units. */
typedef struct ParallelScan
{
	ParallelTableScanDescData base;
	pg_atomic_uint32 next_unit;
} ParallelScan;

const TupleTableSlotOps *
paimon_slot_callbacks(Relation rel)
{
	return &paimon_slot_ops;
}

/* Stores a row in whatever kind of slot the caller has. */
void
paimon_put_row(TupleTableSlot *slot, PaimonTable *table, const PaimonRowRef *row, PaimonDecode decode)
{
	if (slot->tts_ops == &paimon_slot_ops)
		paimon_slot_store(slot, table, row, decode);
	else
		paimon_slot_fill(slot, table, row);
	slot->tts_tableOid = table->relid;
}

TableScanDesc
paimon_scan_begin(Relation rel, Snapshot snapshot, int nkeys, struct ScanKeyData *key, ParallelTableScanDesc pscan, uint32 flags)
{
	PaimonScanDesc *scan = palloc0(sizeof(PaimonScanDesc));

	/* Like heap: the scan must survive the relation's reference of the caller. */
	RelationIncrementReferenceCount(rel);
	scan->base.rs_rd = rel;
	scan->base.rs_snapshot = snapshot;
	scan->base.rs_nkeys = nkeys;
	scan->base.rs_flags = flags;
	scan->base.rs_parallel = pscan;
	if (nkeys > 0)
	{
		scan->base.rs_key = palloc(sizeof(ScanKeyData) * nkeys);
		memcpy(scan->base.rs_key, key, sizeof(ScanKeyData) * nkeys);
	}
	scan->table = paimon_table_get(rel, false);
	scan->cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon scan", ALLOCSET_DEFAULT_SIZES);
	if (flags & (SO_TYPE_SEQSCAN | SO_TYPE_SAMPLESCAN))
	{
		if (snapshot != NULL)
			PredicateLockRelation(rel, snapshot);
		pgstat_count_heap_scan(rel);
	}
	return &scan->base;
}

static void
close_reader(PaimonScanDesc *scan)
{
	if (scan->reader != NULL)
		paimon_reader_end(scan->reader);
	scan->reader = NULL;
	scan->in_unit = false;
	scan->exhausted = false;
	scan->on_row = false;
	scan->scrolls = false;
	MemoryContextReset(scan->cxt);
}

void
paimon_scan_end(TableScanDesc sscan)
{
	PaimonScanDesc *scan = (PaimonScanDesc *) sscan;

	close_reader(scan);
	MemoryContextDelete(scan->cxt);
	if (sscan->rs_flags & SO_TEMP_SNAPSHOT)
		UnregisterSnapshot(sscan->rs_snapshot);
	if (sscan->rs_key != NULL)
		pfree(sscan->rs_key);
	RelationDecrementReferenceCount(sscan->rs_rd);
	pfree(scan);
}

void
paimon_scan_rescan(TableScanDesc sscan, struct ScanKeyData *key, bool set_params, bool allow_strat, bool allow_sync,
				   bool allow_pagemode)
{
	PaimonScanDesc *scan = (PaimonScanDesc *) sscan;

	if (key != NULL && sscan->rs_nkeys > 0)
		memcpy(sscan->rs_key, key, sizeof(ScanKeyData) * sscan->rs_nkeys);
	close_reader(scan);
}

/* Opens the reader over the whole table; closes one that is open. */
void
paimon_scan_open(PaimonScanDesc *scan)
{
	PaimonReadSpec spec = {0};
	MemoryContext old;

	close_reader(scan);
	old = MemoryContextSwitchTo(scan->cxt);
	spec.table = scan->table;
	spec.rel = scan->base.rs_rd;
	spec.snapshot = scan->base.rs_snapshot;
	spec.bucket = -1;
	spec.forward = true;
	spec.unordered = scan->unordered;
	spec.whole = true;
	spec.nokey = true;
	spec.columns = scan->columns;
	spec.ncolumns = scan->ncolumns;
	scan->reader = paimon_reader_begin(&spec);
	MemoryContextSwitchTo(old);
}

/*
 * Does the relation's descriptor read the stored rows as the slot's would?  Not only types count: ALTER TABLE takes the missing values away from
 * the relation before it rewrites the rows that lack them.
 */
static bool
same_layout(TupleDesc slot, TupleDesc rel)
{
	if (slot->natts != rel->natts)
		return false;
	for (int i = 0; i < slot->natts; i++)
	{
		Form_pg_attribute x = TupleDescAttr(slot, i);
		Form_pg_attribute y = TupleDescAttr(rel, i);

		if (x->atthasmissing && !y->atthasmissing)
			return false;
		if (x->attisdropped != y->attisdropped || (!x->attisdropped && x->atttypid != y->atttypid) || x->attlen != y->attlen)
			return false;
	}
	return true;
}

/* First fetch: the slot tells how the caller wants the rows, which differs from the relation while ALTER TABLE rewrites it. */
static void
begin_fetching(PaimonScanDesc *scan, TupleTableSlot *slot)
{
	if (!same_layout(slot->tts_tupleDescriptor, scan->table->desc->tupdesc))
	{
		MemoryContext old = MemoryContextSwitchTo(GetMemoryChunkContext(scan));

		scan->table = paimon_table_get_as(scan->base.rs_rd, slot->tts_tupleDescriptor);
		MemoryContextSwitchTo(old);
	}
	scan->columns = paimon_slot_columns(slot, &scan->ncolumns);
	paimon_scan_open(scan);
}

/* Next row of a parallel scan: of the unit at hand, else of the next one that nobody has taken. */
static bool
next_parallel(PaimonScanDesc *scan, PaimonRowRef *row)
{
	ParallelScan *shared = (ParallelScan *) scan->base.rs_parallel;

	for (;;)
	{
		uint32		unit;

		if (scan->in_unit && paimon_reader_next(scan->reader, row))
			return true;
		unit = pg_atomic_fetch_add_u32(&shared->next_unit, 1);
		if (unit >= paimon_reader_units(scan->reader))
			return false;
		paimon_reader_set_unit(scan->reader, unit);
		scan->in_unit = true;
		CHECK_FOR_INTERRUPTS();
	}
}

static bool
next_row(PaimonScanDesc *scan, bool forward, PaimonRowRef *row)
{
	if (unlikely(scan->scrolls || !forward))
		return paimon_scan_scroll(scan, forward, row);
	if (unlikely(scan->exhausted))
		return false;
	if (scan->base.rs_parallel != NULL ? !next_parallel(scan, row) : !paimon_reader_next(scan->reader, row))
	{
		scan->exhausted = true;
		scan->on_row = false;
		return false;
	}
	scan->last = row->tid;
	scan->on_row = true;
	return true;
}

/* Catalog-style scan keys: hardly anybody passes them for a user table. */
static bool
keys_match(TableScanDesc scan, TupleTableSlot *slot)
{
	for (int i = 0; i < scan->rs_nkeys; i++)
	{
		ScanKey		key = &scan->rs_key[i];
		bool		isnull;
		Datum		value = slot_getattr(slot, key->sk_attno, &isnull);

		if (key->sk_flags & SK_ISNULL || isnull)
			return false;
		if (!DatumGetBool(FunctionCall2Coll(&key->sk_func, key->sk_collation, value, key->sk_argument)))
			return false;
	}
	return true;
}

bool
paimon_scan_getnextslot(TableScanDesc sscan, ScanDirection direction, TupleTableSlot *slot)
{
	PaimonScanDesc *scan = (PaimonScanDesc *) sscan;
	PaimonRowRef row;

	if (unlikely(scan->reader == NULL))
		begin_fetching(scan, slot);
	while (next_row(scan, ScanDirectionIsForward(direction), &row))
	{
		paimon_put_row(slot, scan->table, &row, scan->scrolls ? PAIMON_DECODE_SINGLE : PAIMON_DECODE_WHOLE);
		if (sscan->rs_nkeys > 0 && !keys_match(sscan, slot))
			continue;
		pgstat_count_heap_getnext(sscan->rs_rd);
		return true;
	}
	ExecClearTuple(slot);
	return false;
}

/* ---- parallel scans ---- */

static Size
parallelscan_estimate(Relation rel)
{
	return sizeof(ParallelScan);
}

static Size
parallelscan_initialize(Relation rel, ParallelTableScanDesc pscan)
{
	ParallelScan *shared = (ParallelScan *) pscan;

	paimon_name_parallel_scan(&shared->base, rel);
	pg_atomic_init_u32(&shared->next_unit, 0);
	return sizeof(ParallelScan);
}

static void
parallelscan_reinitialize(Relation rel, ParallelTableScanDesc pscan)
{
	pg_atomic_write_u32(&((ParallelScan *) pscan)->next_unit, 0);
}

void
paimon_scan_routine(TableAmRoutine *routine)
{
	routine->slot_callbacks = paimon_slot_callbacks;
	routine->scan_begin = paimon_scan_begin;
	routine->scan_end = paimon_scan_end;
	routine->scan_rescan = paimon_scan_rescan;
	routine->scan_getnextslot = paimon_scan_getnextslot;
	routine->parallelscan_estimate = parallelscan_estimate;
	routine->parallelscan_initialize = parallelscan_initialize;
	routine->parallelscan_reinitialize = parallelscan_reinitialize;
}
