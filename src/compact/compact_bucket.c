/*-------------------------------------------------------------------------
 *
 * compact_bucket.c
 *	  A compaction from beginning to end: one bucket, one transaction.
 *
 * In a worker there is neither snapshot nor xid before the manifest's rows are written (H13): the inputs stay because nobody else closes files of the
 * bucket while its lock is held, the outputs because their guards are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact_progress.h"
#include "stop.h"

/* False: nothing was to be done. */
static bool
compact_locked(PaimonCompaction *c, PaimonCompactResult *result)
{
	c->end = paimon_at_end_begin(c->table);
	if (!paimon_compact_pick(c))
		return false;
	paimon_compaction_picked(c->note, c);
	PAIMON_STOP_POINT("compact-picked");
	paimon_compact_rewrite(c);
	if (c->nmerged == 0 && c->nlifted == 0)
		return false;			/* all is where it belongs */
	paimon_compaction_phase(c->note, PAIMON_PHASE_PUBLISHING);
	if (!paimon_compact_publish(c, result))
	{
		result->lost = true;
		paimon_compaction_failed(c->note, PAIMON_COMPACTION_LOST, NULL);
		return true;
	}
	result->published = true;
	paimon_compaction_done(c->note, c, result);
	elog(DEBUG1, "table \"%s\", bucket %d: %d runs compacted to level %d (%s), %d files merged into %d, %d lifted",
		 RelationGetRelationName(c->rel), c->bucket, c->plan.nruns, c->plan.output_level,
		 paimon_compaction_reason_name(c->plan.reason), c->nmerged, c->noutputs, c->nlifted);
	return true;
}

/* The error that is being handled goes into the history.  (That of a process that has to end is not handled: see compact_history.c.) */
static void
note_error(PaimonCompaction *c, MemoryContext cxt)
{
	MemoryContext old = MemoryContextSwitchTo(cxt);
	ErrorData  *edata = CopyErrorData();
	PaimonCompactionOutcome outcome = PAIMON_COMPACTION_FAILED;

	if (c->note->yielding)
		outcome = PAIMON_COMPACTION_YIELDED;
	else if (edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
		outcome = PAIMON_COMPACTION_CANCELLED;
	paimon_compaction_failed(c->note, outcome, edata);
	MemoryContextSwitchTo(old);
}

void
paimon_compact_bucket(Relation rel, PaimonTable *table, PaimonFlushMode mode, int bucket, int flags,
					  const PaimonRelocation *relocation, PaimonCompactResult *result)
{
	PaimonCompaction c = {.rel = rel, .table = table, .mode = mode, .bucket = bucket, .full = (flags & PAIMON_DO_FULL) != 0,
		.relocation = relocation};
	bool		throttled = mode == PAIMON_FLUSH_WORKER && (flags & (PAIMON_DO_REQUESTED | PAIMON_DO_HURRY)) == 0;
	MemoryContext cxt;
	MemoryContext old;

	memset(result, 0, sizeof(*result));
	if (table->storage_id == 0)
		return;
	PAIMON_STOP_POINT("compact-begin");
	if (!paimon_try_lock_compact(table->storage_id, bucket))
	{
		result->busy = true;
		return;
	}
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon compaction", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	c.note = paimon_compaction_begin(&c, (flags & PAIMON_DO_REQUESTED) != 0, throttled);
	PG_TRY();
	{
		if (!compact_locked(&c, result))
			paimon_compaction_forget(c.note);
	}
	PG_CATCH();
	{
		note_error(&c, cxt);
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/*
 * No worker gets at a temporary table: what its session's earlier transactions have closed or let go is freed before the next compaction, and afterwards snapshots
 * expire.  Should this transaction be rolled back, closed rows without extents come back, which is harmless.
 */
static void
reclaim_temporary(Relation rel, PaimonTable *table)
{
	PaimonReclaimResult result;

	paimon_reclaim_table(rel, table, true, &result);
	elog(DEBUG1, "table \"%s\": %u extents freed (%u files, %u orphans), %u pages truncated", RelationGetRelationName(rel),
		 result.extents, result.files, result.orphans, result.pages_truncated);
}

void
paimon_compact_in_backend(Relation rel, PaimonTable *table, int bucket, bool full)
{
	int			nbuckets = table->desc->nbuckets;
	PaimonExpireResult expired;

	/* As for a flush: our snapshot would come to see too much. */
	if (IsolationUsesXactSnapshot() && table->shared != NULL && !paimon_storage_is_own(rel))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot compact table \"%s\" in a transaction with isolation level %s",
						RelationGetRelationName(rel), IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("No worker can do it: the table is locked by this transaction, or workers are off."),
				 errhint("Compact it in a READ COMMITTED transaction.")));
	if (table->istemp)
		reclaim_temporary(rel, table);
	for (int b = bucket < 0 ? 0 : bucket; b < (bucket < 0 ? nbuckets : bucket + 1); b++)
	{
		PaimonCompactResult result;

		/* not full: until its choice is satisfied; each time has fewer runs, or higher ones */
		do
		{
			CHECK_FOR_INTERRUPTS();
			paimon_compact_bucket(rel, table, PAIMON_FLUSH_BACKEND, b, PAIMON_DO_REQUESTED | (full ? PAIMON_DO_FULL : 0), NULL, &result);
			if (result.busy)
				ereport(NOTICE,
						(errmsg("bucket %d of table \"%s\" is being compacted by another session", b, RelationGetRelationName(rel))));
		} while (!full && result.published);
	}
	if (table->istemp)
		paimon_expire_snapshots(rel, table, &expired);
}
