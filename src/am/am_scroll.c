/*-------------------------------------------------------------------------
 *
 * am_scroll.c
 *	  Sequential scans that change direction: FETCH BACKWARD on a cursor.
 *
 * A scan begins with one reader over all buckets.  At the first step backward it becomes a scan bucket by bucket, each with a reader that begins
 * behind the last row given; buckets are visited in the same order as before, so the rows come in exactly the reverse order.  The snapshot
 * is the same, hence also the rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "miscadmin.h"
#include "utils/memutils.h"

static void
open_bucket(PaimonScanDesc *scan, int bucket, bool forward, PaimonBytes from)
{
	PaimonReadSpec spec = {0};
	MemoryContext old;

	if (scan->reader != NULL)
		paimon_reader_end(scan->reader);
	scan->reader = NULL;
	MemoryContextReset(scan->cxt);
	old = MemoryContextSwitchTo(scan->cxt);
	spec.table = scan->table;
	spec.rel = scan->base.rs_rd;
	spec.snapshot = scan->base.rs_snapshot;
	spec.bucket = bucket;
	spec.forward = forward;
	spec.columns = scan->columns;
	spec.ncolumns = scan->ncolumns;
	if (from.data != NULL)
	{
		uint8	   *key = memcpy(palloc(Max(from.len, 1)), from.data, from.len);

		if (forward)
			spec.lower.data = key, spec.lower.len = from.len;
		else
			spec.upper.data = key, spec.upper.len = from.len;
	}
	scan->reader = paimon_reader_begin(&spec);
	scan->bucket = bucket;
	scan->forward = forward;
	MemoryContextSwitchTo(old);
}

/*
 * Turns the scan around: its next row is the neighbour of the last row given, in the new direction.  Before the first or behind the last row it
 * begins at that end.
 */
static void
turn(PaimonScanDesc *scan, bool forward, PaimonRowRef *row, bool *have)
{
	int			last_bucket = scan->table->desc->nbuckets - 1;
	PaimonBytes none = {0};
	PaimonBytes key;
	PaimonRowRef at;

	*have = false;
	scan->scrolls = true;
	if (!scan->on_row)
	{
		open_bucket(scan, forward ? 0 : last_bucket, forward, none);
		return;
	}
	if (!paimon_resolve_tid(scan->table, scan->base.rs_rd, &scan->last, &at))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("could not find the row of table \"%s\" that a cursor stands on", RelationGetRelationName(scan->base.rs_rd))));
	key.data = memcpy(palloc(Max(at.key.len, 1)), at.key.data, at.key.len);
	key.len = at.key.len;
	open_bucket(scan, at.bucket, forward, key);
	/* the row itself comes first, unless something else has its place */
	*have = paimon_reader_next(scan->reader, row);
	if (*have && row->key.len == key.len && memcmp(row->key.data, key.data, key.len) == 0)
		*have = false;
	pfree((void *) key.data);
}

/* Next row in the given direction; false at that end, from where the scan may turn round again. */
bool
paimon_scan_scroll(PaimonScanDesc *scan, bool forward, PaimonRowRef *row)
{
	int			nbuckets = scan->table->desc->nbuckets;
	PaimonBytes none = {0};
	bool		have = false;

	if (scan->table->storage_id == 0)
		return false;
	if (!scan->scrolls || scan->forward != forward)
		turn(scan, forward, row, &have);
	else if (scan->exhausted)
		return false;
	scan->exhausted = false;
	while (!have && !(have = paimon_reader_next(scan->reader, row)))
	{
		int			next = scan->bucket + (forward ? 1 : -1);

		CHECK_FOR_INTERRUPTS();
		if (next < 0 || next >= nbuckets)
			break;
		open_bucket(scan, next, forward, none);
	}
	scan->exhausted = !have;
	scan->on_row = have;
	if (have)
		scan->last = row->tid;
	return have;
}
