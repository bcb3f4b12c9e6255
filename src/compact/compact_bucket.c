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

#include "compact/compact_internal.h"
#include "stop.h"

static void
compact_locked(PaimonCompaction *c, PaimonCompactResult *result)
{
	c->end = paimon_at_end_begin(c->table);
	if (!paimon_compact_pick(c))
		return;
	paimon_compact_rewrite(c);
	if (c->nmerged == 0 && c->nlifted == 0)
		return;					/* all is where it belongs */
	if (!paimon_compact_publish(c, result))
	{
		result->lost = true;
		ereport(LOG,
				(errmsg("compaction of table \"%s\", bucket %d was given up", RelationGetRelationName(c->rel), c->bucket),
				 errdetail("Its files were replaced meanwhile.")));
		return;
	}
	result->published = true;
	elog(DEBUG1, "table \"%s\", bucket %d: %d runs compacted to level %d (%s), %d files merged into %d, %d lifted",
		 RelationGetRelationName(c->rel), c->bucket, c->plan.nruns, c->plan.output_level,
		 paimon_compaction_reason_name(c->plan.reason), c->nmerged, c->noutputs, c->nlifted);
}

void
paimon_compact_bucket(Relation rel, PaimonTable *table, PaimonFlushMode mode, int bucket, bool full, PaimonCompactResult *result)
{
	PaimonCompaction c = {.rel = rel, .table = table, .mode = mode, .bucket = bucket, .full = full};
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
	compact_locked(&c, result);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

void
paimon_compact_in_backend(Relation rel, PaimonTable *table, int bucket, bool full)
{
	int			nbuckets = table->desc->nbuckets;

	/* As for a flush: our snapshot would come to see too much. */
	if (IsolationUsesXactSnapshot() && table->shared != NULL && !paimon_storage_is_own(rel))
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot compact table \"%s\" in a transaction with isolation level %s",
						RelationGetRelationName(rel), IsolationIsSerializable() ? "SERIALIZABLE" : "REPEATABLE READ"),
				 errdetail("No worker can do it: the table is locked by this transaction, or workers are off."),
				 errhint("Compact it in a READ COMMITTED transaction.")));
	for (int b = bucket < 0 ? 0 : bucket; b < (bucket < 0 ? nbuckets : bucket + 1); b++)
	{
		PaimonCompactResult result;

		/* not full: until its choice is satisfied; each time has fewer runs, or higher ones */
		do
		{
			CHECK_FOR_INTERRUPTS();
			paimon_compact_bucket(rel, table, PAIMON_FLUSH_BACKEND, b, full, &result);
			if (result.busy)
				ereport(NOTICE,
						(errmsg("bucket %d of table \"%s\" is being compacted by another session", b, RelationGetRelationName(rel))));
		} while (!full && result.published);
	}
}
