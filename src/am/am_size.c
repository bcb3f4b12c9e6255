/*-------------------------------------------------------------------------
 *
 * am_size.c
 *	  Size estimates for the planner, and ANALYZE's sample.
 *
 * ANALYZE wants random blocks of a table whose rows have no fixed block.  We read the merged rows once, in order, and call the
 * rows [b * n, (b + 1) * n) "block b": each row is equally likely to be in the sample, whatever levels its versions lie in.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/relscan.h"
#include "am/am.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* The real size of the fork: what \d+ shows and what VACUUM reports. */
uint64
paimon_relation_size(Relation rel, ForkNumber fork)
{
	uint64		blocks = 0;

	for (ForkNumber f = MAIN_FORKNUM; f <= INIT_FORKNUM; f++)
	{
		if (fork != InvalidForkNumber && fork != f)
			continue;
		/* the main fork is always there, and asking would close its file and open it again, for each plan */
		if (f == MAIN_FORKNUM || smgrexists(RelationGetSmgr(rel), f))
			blocks += smgrnblocks(RelationGetSmgr(rel), f);
	}
	return blocks * BLCKSZ;
}

/*
 * Rows in files, less the deletes and what they deleted, a guess for the log, and what our transaction has written.  Updated keys count once for
 * each run that has them.
 */
double
paimon_estimate_rows(PaimonTable *table, Relation rel)
{
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	double		rows = 0;

	if (!paimon_manifest_kept_rows(table, snapshot, &rows))
	{
		int			nfiles;
		PaimonFileRow *files = paimon_catalog_files(table->storage_id, snapshot, &nfiles);

		for (int i = 0; i < nfiles; i++)
			rows += (double) files[i].row_count - 2.0 * files[i].delete_count;
	}
	UnregisterSnapshot(snapshot);
	if (table->shared != NULL)
	{
		int32		width = get_rel_data_width(rel, NULL);

		rows += (double) paimon_shared_unflushed(table->shared) / (width + 32);
	}
	return Max(rows, 0) + (double) paimon_buffer_put_rows(table->storage_id);
}

void
paimon_estimate_size(Relation rel, int32 *attr_widths, BlockNumber *pages, double *tuples, double *allvisfrac)
{
	PaimonTable *table = paimon_table_get(rel, false);
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon estimate", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);

	*pages = RelationGetNumberOfBlocks(rel);
	*tuples = table->storage_id == 0 ? 0 : rint(paimon_estimate_rows(table, rel));
	*allvisfrac = 1;			/* of index-only scans: am_cost.c charges the pages that they read */
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	if (attr_widths != NULL)
		(void) get_rel_data_width(rel, attr_widths);
}

/* ---- ANALYZE ---- */

static void
sample_begin(PaimonScanDesc *scan)
{
	Relation	rel = scan->base.rs_rd;
	BlockNumber blocks = Max(RelationGetNumberOfBlocks(rel), 1);
	double		rows = scan->table->storage_id == 0 ? 0 : paimon_estimate_rows(scan->table, rel);

	paimon_scan_open(scan);
	scan->rows_per_block = Max(ceil(rows / blocks), 1);
	scan->position = 0;
}

static bool
analyze_next_block(PaimonScanDesc *scan, BlockNumber block)
{
	double		start;
	PaimonRowRef row;

	if (scan->reader == NULL || (double) block * scan->rows_per_block < scan->position)
		sample_begin(scan);
	start = (double) block * scan->rows_per_block;
	while (scan->position < start && paimon_reader_next(scan->reader, &row))
	{
		CHECK_FOR_INTERRUPTS();
		scan->position++;
	}
	scan->block_end = start + scan->rows_per_block;
	return true;
}

static bool
analyze_next_tuple(PaimonScanDesc *scan, double *liverows, TupleTableSlot *slot)
{
	uint64		place = (uint64) scan->position;
	PaimonRowRef row;

	if (scan->position >= scan->block_end || !paimon_reader_next(scan->reader, &row))
	{
		ExecClearTuple(slot);
		return false;
	}
	scan->position++;
	*liverows += 1;
	paimon_put_row(slot, scan->table, &row, PAIMON_DECODE_WHOLE);
	/* Correlation is judged by ctid: the place in the merged order. */
	ItemPointerSet(&slot->tts_tid, (BlockNumber) (place / 1000), (OffsetNumber) (place % 1000 + 1));
	return true;
}

static bool
scan_analyze_next_block(PAIMON_ANALYZE_BLOCK_ARGS)
{
	BlockNumber block = paimon_analyze_block();

	if (block == InvalidBlockNumber)
		return false;
	return analyze_next_block((PaimonScanDesc *) scan, block);
}

static bool
scan_analyze_next_tuple(TableScanDesc scan, TransactionId oldest_xmin, double *liverows, double *deadrows, TupleTableSlot *slot)
{
	return analyze_next_tuple((PaimonScanDesc *) scan, liverows, slot);
}

void
paimon_size_routine(TableAmRoutine *routine)
{
	routine->relation_size = paimon_relation_size;
	routine->relation_estimate_size = paimon_estimate_size;
	routine->scan_analyze_next_block = scan_analyze_next_block;
	routine->scan_analyze_next_tuple = scan_analyze_next_tuple;
}
