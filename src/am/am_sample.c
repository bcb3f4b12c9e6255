/*-------------------------------------------------------------------------
 *
 * am_sample.c
 *	  TABLESAMPLE: what a sampling method takes for blocks and tuples.
 *
 * A row's place is its number in the merged order, in chunks of ROWS_PER_CHUNK: chunk and place in it are what a method is asked with about a tuple
 * (BERNOULLI hashes them).  So a REPEATABLE sample by tuple does not depend on what has been flushed or compacted.
 *
 * The blocks of a method that chooses blocks (SYSTEM) are the units of the reader, each about a row group: those not chosen are not read.  A table
 * with few units would give everything or nothing too often: there each chunk is a block, and the others are passed over.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/tsmapi.h"
#include "am/am.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "utils/float.h"

#define ROWS_PER_CHUNK 100
#define ENOUGH_UNITS 64

static void
begin(PaimonScanDesc *scan)
{
	paimon_scan_open(scan);
	scan->position = 0;
	scan->sample_blocks = paimon_reader_units(scan->reader);
	scan->sample_units = scan->sample_blocks >= ENOUGH_UNITS;
	if (!scan->sample_units)
	{
		double		rows = scan->table->storage_id == 0 ? 0 : paimon_estimate_rows(scan->table, scan->base.rs_rd);

		/* The last block is whatever there is more than was estimated. */
		scan->sample_blocks = (BlockNumber) Max(ceil(rows / ROWS_PER_CHUNK), 1);
	}
}

/* The row at a place not before the present one; false at the end. */
static bool
row_at(PaimonScanDesc *scan, double place, PaimonRowRef *row)
{
	while (!scan->exhausted && scan->position <= place)
	{
		CHECK_FOR_INTERRUPTS();
		if (!paimon_reader_next(scan->reader, row))
			scan->exhausted = true;
		else if (scan->position++ == place)
			return true;
	}
	return false;
}

/* Goes to a block of a method that chooses them. */
static void
go_to_block(PaimonScanDesc *scan, BlockNumber block)
{
	double		start = (double) block * ROWS_PER_CHUNK;
	PaimonRowRef row;

	if (scan->sample_units)
	{
		paimon_reader_set_unit(scan->reader, block);
		scan->exhausted = false;
		scan->position = 0;
		scan->sample_chunk = 0;
		scan->block_end = get_float8_infinity();
		return;
	}
	if (start < scan->position)
	{
		paimon_scan_open(scan);
		scan->position = 0;
	}
	if (start > scan->position)
		(void) row_at(scan, start - 1, &row);
	scan->sample_chunk = block;
	scan->block_end = block + 1 < scan->sample_blocks ? start + ROWS_PER_CHUNK : get_float8_infinity();
}

static bool
scan_sample_next_block(TableScanDesc sscan, struct SampleScanState *state)
{
	PaimonScanDesc *scan = (PaimonScanDesc *) sscan;
	TsmRoutine *tsm = state->tsmroutine;
	bool		first = scan->reader == NULL;

	if (first)
		begin(scan);
	if (tsm->NextSampleBlock != NULL)
	{
		BlockNumber block = tsm->NextSampleBlock(state, scan->sample_blocks);

		if (!BlockNumberIsValid(block))
			return false;
		go_to_block(scan, block);
	}
	else
	{
		if (!first)
			return false;		/* all of the table was one block */
		scan->sample_chunk = 0;
		scan->block_end = get_float8_infinity();
	}
	scan->chunk_start = scan->position;
	return true;
}

static bool
scan_sample_next_tuple(TableScanDesc sscan, struct SampleScanState *state, TupleTableSlot *slot)
{
	PaimonScanDesc *scan = (PaimonScanDesc *) sscan;
	TsmRoutine *tsm = state->tsmroutine;
	PaimonRowRef row;

	while (!scan->exhausted && scan->chunk_start < scan->block_end)
	{
		OffsetNumber offset = tsm->NextSampleTuple(state, scan->sample_chunk, ROWS_PER_CHUNK);

		CHECK_FOR_INTERRUPTS();
		if (offset == InvalidOffsetNumber)
		{
			scan->chunk_start += ROWS_PER_CHUNK;
			scan->sample_chunk++;
			if (scan->chunk_start > scan->position)
				(void) row_at(scan, scan->chunk_start - 1, &row);
		}
		else if (row_at(scan, scan->chunk_start + offset - 1, &row))
		{
			paimon_put_row(slot, scan->table, &row, PAIMON_DECODE_SINGLE);
			pgstat_count_heap_getnext(sscan->rs_rd);
			return true;
		}
		else
		{
			/* The method remembers where it is until it has heard of the chunk's end. */
			while (offset != InvalidOffsetNumber)
				offset = tsm->NextSampleTuple(state, scan->sample_chunk, ROWS_PER_CHUNK);
		}
	}
	ExecClearTuple(slot);
	return false;
}

void
paimon_sample_routine(TableAmRoutine *routine)
{
	routine->scan_sample_next_block = scan_sample_next_block;
	routine->scan_sample_next_tuple = scan_sample_next_tuple;
}
