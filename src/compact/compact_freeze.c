/*-------------------------------------------------------------------------
 *
 * compact_freeze.c
 *	  VACUUM's own work: xids in batch headers and in the extent map that are about to grow too old (H18).
 *
 * No flush is needed for it: a batch's fate is written into its header.  Batches from the oldest head on that somebody may still read from are
 * looked at; what lies below is never read again, whatever xids it has.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact.h"
#include "stop.h"

typedef struct Freeze
{
	Relation	rel;
	PaimonTable *table;
	PaimonLogRow log;
	TransactionId limit;
	TransactionId oldest;		/* seen so far and left */
	uint64		nbatches;
} Freeze;

static void
freeze_batch(Freeze *f, uint64 position, const PaimonBatchHeader *header)
{
	TransactionId xid;

	if (header->flags & (PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED))
		return;
	xid = XidFromFullTransactionId(FullTransactionIdFromU64(header->xid));
	if (!TransactionIdIsNormal(xid))
		return;
	if (!TransactionIdPrecedes(xid, f->limit) || TransactionIdIsInProgress(xid))
	{
		if (TransactionIdPrecedes(xid, f->oldest))
			f->oldest = xid;
		return;
	}
	paimon_log_freeze_batch(f->rel, f->table->storage_id, position, TransactionIdDidCommit(xid));
	f->nbatches++;
}

/* The next position at which a batch begins for certain and from which on nothing may be missing; PG_UINT64_MAX if there is none. */
static uint64
next_head(const Freeze *f, uint64 position)
{
	uint64		best = f->log.head > position ? f->log.head : PG_UINT64_MAX;

	for (int i = 0; i < f->log.nclosed; i++)
	{
		if (f->log.closed_head[i] > position)
			best = Min(best, f->log.closed_head[i]);
	}
	return best;
}

/*
 * From the oldest head in the ring (or the log's beginning, if nothing was ever freed) to the tail.  Where the log has been freed, which can only be
 * below some newer head of the ring, it goes on there.
 */
static void
freeze_log(Freeze *f)
{
	uint64		storage_id = f->table->storage_id;
	uint64		tail = paimon_shared_tail(f->table->shared, f->rel);
	uint64		position = 0;
	PaimonBatchHeader header;

	if (tail == 0)
		return;
	if (paimon_log_first(f->rel, storage_id) > 0)
		position = f->log.nclosed > 0 ? f->log.closed_head[0] : f->log.head;
	while (position < tail)
	{
		CHECK_FOR_INTERRUPTS();
		if (paimon_log_holds(f->rel, storage_id, position, sizeof(header)))
		{
			paimon_log_read_header(f->rel, storage_id, position, &header);
			if (paimon_log_holds(f->rel, storage_id, position, header.len))
			{
				freeze_batch(f, position, &header);
				position += header.len;
				continue;
			}
		}
		if (position >= f->log.head)
			paimon_log_read_header(f->rel, storage_id, position, &header);	/* reports it */
		position = next_head(f, position);
	}
	for (int i = 0; i < f->log.nleftover; i++)
	{
		paimon_log_read_header(f->rel, storage_id, f->log.leftover[i], &header);
		freeze_batch(f, f->log.leftover[i], &header);
	}
}

TransactionId
paimon_freeze_table(Relation rel, PaimonTable *table, TransactionId limit, TransactionId oldest, uint64 *nbatches)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon freeze", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	Freeze		f = {.rel = rel, .table = table, .limit = limit, .oldest = oldest};
	FullTransactionId left;

	if (table->shared != NULL)
	{
		Snapshot	snapshot;

		/* Keeps the reclaimer from freeing log that we walk. */
		paimon_lock_flush(table->storage_id);
		snapshot = paimon_catalog_latest_snapshot();
		(void) paimon_catalog_log_get(table->storage_id, snapshot, &f.log);
		UnregisterSnapshot(snapshot);
		paimon_shared_freeze_hints(table->shared, limit);
		freeze_log(&f);
	}
	left = paimon_extent_freeze(rel, paimon_full_xid(limit));
	if (FullTransactionIdFollows(left, FirstNormalFullTransactionId) &&
		TransactionIdPrecedes(XidFromFullTransactionId(left), f.oldest))
		f.oldest = XidFromFullTransactionId(left);
	*nbatches = f.nbatches;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return f.oldest;
}
