/*-------------------------------------------------------------------------
 *
 * compact_trim.c
 *	  The log's end is moved down when it is all that keeps a fork long.
 *
 * The extent that holds the tail never leaves the chain (storage/README.md), and in a table that is written to it is left behind soon.  In one at rest it may
 * lie behind a lot of free space for good: then the rest of it is filled by a batch without records, so that the next one, which is the first
 * free one, takes over.  A flush moves the head past the batch, and the old extent is freed behind the horizon like any other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"

#include "compact/compact_internal.h"

/* Bytes of the log in an extent. */
#define EXTENT_BYTES ((uint64) PAIMON_EXTENT_PAGES * PAIMON_PAGE_PAYLOAD)

/* No batch is shorter. */
#define MIN_BATCH 64

/* What was filled last in this process: not again before something was written. */
static uint64 last_storage = 0;
static uint64 last_position = 0;

/* Does the tail's extent lie behind more free space than is left in a fork at rest, or than all that is used would need? */
static bool
is_far_out(Relation rel, PaimonTable *table)
{
	PaimonStorageUsage usage;
	PaimonExtentList list;
	const PaimonExtentRun *last;

	paimon_log_extents(rel, table->storage_id, &list);
	if (list.nruns == 0)
		return false;
	last = &list.runs[list.nruns - 1];
	paimon_storage_usage(rel, &usage);
	return last->first + last->count > Min(2 * usage.used_extents, paimon_tolerated_end(usage.used_extents));
}

/* A batch up to the end of the tail's extent, at least. */
static void
fill_extent(Relation rel, PaimonTable *table)
{
	uint8	   *zeros = palloc0(EXTENT_BYTES + MIN_BATCH);
	FullTransactionId xid = GetTopFullTransactionId();
	PaimonBytes piece = {.data = zeros};
	PaimonLogBatch batch = {.pieces = &piece, .npieces = 1};
	uint64		tail = paimon_shared_tail(table->shared, rel);
	uint64		rest = EXTENT_BYTES - tail % EXTENT_BYTES;

	piece.len = Max(rest, MIN_BATCH) - sizeof(batch.header);
	paimon_log_pack(rel, &batch);
	paimon_append_lock(table->shared);
	last_position = paimon_shared_append(table->shared, rel, xid, &batch) + batch.header.len;
	paimon_append_unlock(table->shared);
	last_storage = table->storage_id;
	pfree(zeros);
}

/* See compact_internal.h. */
bool
paimon_trim_log(Relation rel, PaimonTable *table)
{
	if (RecoveryInProgress() || !is_far_out(rel, table))
		return false;
	if (last_storage == table->storage_id && last_position == paimon_shared_tail(table->shared, rel))
		return false;
	fill_extent(rel, table);
	paimon_shared_request_flush(table->shared);
	return true;
}
