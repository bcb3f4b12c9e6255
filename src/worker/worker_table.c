/*-------------------------------------------------------------------------
 *
 * worker_table.c
 *	  A worker's visit to one table: flush, compact, expire, reclaim, look.
 *
 * Each step is a transaction of its own.  The table is locked conditionally (H14): whoever holds or awaits a strong lock goes first, and those who wait for
 * us are told.  Errors end the visit, not the worker.  A session that we block cancels us after deadlock_timeout: that is no failure.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact.h"
#include "options/options.h"
#include "stop.h"
#include "worker/worker_internal.h"

static void
begin(const char *what, Oid relid)
{
	char		activity[128];

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	snprintf(activity, sizeof(activity), "%s table %u", what, relid);
	pgstat_report_activity(STATE_RUNNING, activity);
}

/* Opens and locks the table; NULL if that is not possible now, or never (gone). */
static Relation
open_conditionally(Oid relid, PaimonVisit *visit)
{
	Relation	rel;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
	{
		visit->outcome = PAIMON_WORK_BLOCKED;
		paimon_shared_note_blocked(MyDatabaseId, relid);
		return NULL;
	}
	rel = try_relation_open(relid, NoLock);
	if (rel != NULL && (!RELKIND_HAS_STORAGE(rel->rd_rel->relkind) || rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP ||
						rel->rd_rel->relam != paimon_table_am_oid()))
	{
		relation_close(rel, NoLock);
		rel = NULL;
	}
	if (rel == NULL)
		visit->gone = true;
	return rel;
}

/* In pg_stat_activity: what, and the table's name. */
static void
report(const char *what, Relation rel)
{
	char		activity[NAMEDATALEN + 64];

	snprintf(activity, sizeof(activity), "%s table \"%s\"", what, RelationGetRelationName(rel));
	pgstat_report_activity(STATE_RUNNING, activity);
}

static bool
flush_once(Oid relid, PaimonVisit *visit)
{
	Relation	rel;
	bool		again = false;

	begin("flushing", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);
		PaimonFlushResult result = {0};

		report("flushing", rel);
		if (table->shared != NULL)
			paimon_shared_set_blocked(table->shared, false);
		again = paimon_flush_step(rel, table, PAIMON_FLUSH_WORKER, &result);
		visit->snapshot_id = result.snapshot_id;
		visit->rows += result.rows;
		visit->nsnapshots += result.nsnapshots;
		visit->progress |= result.progress;
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
	PAIMON_STOP_POINT("flush-committed");
	return again;
}

/* Compacts a bucket once.  flags: PAIMON_DO_xxx.  Returns the number of buckets, 0 if the table could not be had. */
static int
compact_once(Oid relid, int bucket, int flags, const PaimonRelocation *relocation, PaimonVisit *visit)
{
	Relation	rel;
	int			nbuckets = 0;

	visit->compacted = false;
	visit->bucket = bucket;
	begin("compacting", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);
		PaimonCompactResult result = {0};

		report("compacting", rel);
		if ((flags & PAIMON_DO_REQUESTED) || !table->options.write_only)
			paimon_compact_bucket(rel, table, PAIMON_FLUSH_WORKER, bucket, flags, relocation, &result);
		if (result.busy || result.lost)
			visit->outcome = PAIMON_WORK_BLOCKED;
		visit->busy = result.busy;
		if (result.published)
		{
			visit->compacted = true;
			visit->snapshot_id = result.snapshot_id;
		}
		nbuckets = table->desc->nbuckets;
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
	PAIMON_STOP_POINT("compact-committed");
	return nbuckets;
}

/* On request: a bucket, or all (-1); once if fully, else until their runs are as the options want them. */
static void
compact_buckets(Oid relid, int bucket, bool full, PaimonVisit *visit)
{
	bool		any = false;
	int			nbuckets = bucket + 1;

	for (int b = Max(bucket, 0); b < Max(nbuckets, 1); b++)
	{
		do
		{
			int			n;

			CHECK_FOR_INTERRUPTS();
			n = compact_once(relid, b, PAIMON_DO_REQUESTED | (full ? PAIMON_DO_FULL : 0), NULL, visit);
			any |= visit->compacted;
			if (bucket < 0)
				nbuckets = n;
		} while (!full && visit->compacted && visit->outcome == PAIMON_WORK_DONE && !visit->gone);
		if (visit->outcome != PAIMON_WORK_DONE || visit->gone)
			break;
	}
	visit->compacted = any;
}

/* Which buckets want to be compacted? */
static void
look(Oid relid, MemoryContext cxt, PaimonVisit *visit)
{
	Relation	rel;

	begin("looking at", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);

		if (!table->options.write_only)
		{
			MemoryContext old = MemoryContextSwitchTo(cxt);

			visit->wanted = paimon_compact_wanted(rel, table, &visit->nwanted);
			visit->looked = true;
			MemoryContextSwitchTo(old);
		}
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
}

/* `asked`: by name, so write-only tables are no exception.  Its transaction must end before reclaiming: what it lets go waits for its xid. */
static void
expire(Oid relid, bool asked, PaimonVisit *visit)
{
	Relation	rel;

	visit->expire_at = PG_INT64_MAX;
	begin("expiring snapshots of", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);
		PaimonExpireResult result;

		if (asked || !table->options.write_only)
		{
			report("expiring snapshots of", rel);
			paimon_expire_snapshots(rel, table, &result);
			visit->expire_at = result.next;
			visit->reclaim_pending = result.busy;
			if (result.snapshots > 0)
				elog(DEBUG1, "table \"%s\": " INT64_FORMAT " snapshots expired, " INT64_FORMAT " files let go", RelationGetRelationName(rel),
					 result.snapshots, result.files);
		}
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
	PAIMON_STOP_POINT("expire-committed");
}

static void
reclaim(Oid relid, bool sweep, PaimonVisit *visit)
{
	Relation	rel;

	begin("reclaiming space of", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);
		PaimonReclaimResult result;

		report("reclaiming space of", rel);
		paimon_reclaim_table(rel, table, sweep, &result);
		visit->reclaim_pending |= result.pending;
		visit->freed = result.extents;
		visit->end_is_free = result.end_is_free;
		if (result.extents > 0 || result.pages_truncated > 0)
			elog(DEBUG1, "table \"%s\": %u extents freed (%u files, %u orphans), %u pages truncated", RelationGetRelationName(rel),
				 result.extents, result.files, result.orphans, result.pages_truncated);
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
}

/* What holds the fork's end?  Not for write-only tables, which are compacted on request. */
static void
look_at_far_end(Oid relid, bool busy, MemoryContext cxt, PaimonVisit *visit)
{
	Relation	rel;

	begin("looking at", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);

		if (!table->options.write_only)
		{
			MemoryContext old = MemoryContextSwitchTo(cxt);

			visit->far = paimon_relocation_wanted(rel, table, busy, &visit->relocation, &visit->nfar);
			MemoryContextSwitchTo(old);
		}
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
}

/* Brings the table's shared state up (tail, prepared transactions' locks), and asks for a flush if a large commit waits for its id. */
static void
check(Oid relid, PaimonVisit *visit)
{
	Relation	rel;

	begin("looking at", relid);
	rel = open_conditionally(relid, visit);
	if (rel != NULL)
	{
		PaimonTable *table = paimon_table_get(rel, false);

		if (table->shared != NULL)
		{
			Snapshot	snapshot = paimon_catalog_latest_snapshot();
			int			nfiles;
			PaimonFileRow *files = paimon_catalog_files(table->storage_id, snapshot, &nfiles);

			UnregisterSnapshot(snapshot);
			for (int i = 0; i < nfiles; i++)
			{
				if (files[i].added_snapshot == 0)
				{
					paimon_shared_request_flush(table->shared);
					break;
				}
			}
		}
		paimon_table_release(table);
		relation_close(rel, NoLock);
	}
	CommitTransactionCommand();
}

static void
do_visit(Oid relid, int work, int bucket, const PaimonRelocation *relocation, MemoryContext cxt, PaimonVisit *visit)
{
	if (work & PAIMON_WORK_CHECK)
		check(relid, visit);
	if ((work & PAIMON_WORK_FLUSH) && visit->outcome == PAIMON_WORK_DONE && !visit->gone)
	{
		while (flush_once(relid, visit))
			CHECK_FOR_INTERRUPTS();
	}
	if ((work & (PAIMON_WORK_COMPACT | PAIMON_WORK_COMPACT_NEXT)) && visit->outcome == PAIMON_WORK_DONE && !visit->gone)
	{
		visit->compacting = true;
		if (work & PAIMON_WORK_COMPACT)
			compact_buckets(relid, bucket, (work & PAIMON_WORK_FULL) != 0, visit);
		else
			(void) compact_once(relid, bucket, (work & PAIMON_WORK_HURRY) ? PAIMON_DO_HURRY : 0, relocation, visit);
		visit->compacting = false;
	}
	if (work & PAIMON_WORK_LOOK)
	{
		visit->compacting = true;
		look(relid, cxt, visit);
		visit->compacting = false;
	}
	if ((work & (PAIMON_WORK_EXPIRE | PAIMON_WORK_RECLAIM)) && visit->outcome == PAIMON_WORK_DONE && !visit->gone)
		expire(relid, (work & PAIMON_WORK_EXPIRE) != 0, visit);
	if ((work & PAIMON_WORK_RECLAIM) && visit->outcome == PAIMON_WORK_DONE && !visit->gone)
	{
		visit->reclaiming = true;
		reclaim(relid, (work & PAIMON_WORK_SWEEP) != 0, visit);
	}
	if ((work & PAIMON_WORK_FAR) && visit->outcome == PAIMON_WORK_DONE && !visit->gone && !visit->reclaim_pending)
	{
		look_at_far_end(relid, (work & PAIMON_WORK_BUSY) != 0, cxt, visit);
		if (visit->nfar > 0)
			PAIMON_STOP_POINT("relocation-decided");
	}
}

/* After an error: as autovacuum does it. */
static void
recover(MemoryContext cxt, PaimonVisit *visit)
{
	HOLD_INTERRUPTS();
	MemoryContextSwitchTo(cxt);
	visit->edata = CopyErrorData();
	if (visit->edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
		visit->cancelled = true;
	else if (visit->edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
		visit->outcome = PAIMON_WORK_BLOCKED;
	else
	{
		visit->failed = true;
		EmitErrorReport();
	}
	AbortOutOfAnyTransaction();
	FlushErrorState();
	/* Guards of files, should one be left. */
	LockReleaseSession(USER_LOCKMETHOD);
	QueryCancelPending = false;
	RESUME_INTERRUPTS();
}

static void
context_callback(void *arg)
{
	errcontext("background work on table with OID %u", *(Oid *) arg);
}

void
paimon_visit_table(Oid relid, uint64 storage_id, int work, int bucket, const PaimonRelocation *relocation, PaimonVisit *visit)
{
	MemoryContext cxt = CurrentMemoryContext;
	ErrorContextCallback callback = {error_context_stack, context_callback, &relid};

	memset(visit, 0, sizeof(*visit));
	visit->outcome = PAIMON_WORK_DONE;
	visit->expire_at = PG_INT64_MAX;
	visit->bucket = -1;
	error_context_stack = &callback;
	PG_TRY();
	{
		do_visit(relid, work, bucket, relocation, cxt, visit);
	}
	PG_CATCH();
	{
		error_context_stack = callback.previous;
		recover(cxt, visit);
	}
	PG_END_TRY();
	error_context_stack = callback.previous;
	MemoryContextSwitchTo(cxt);
	pgstat_report_activity(STATE_IDLE, NULL);

	if (visit->cancelled)
	{
		visit->outcome = PAIMON_WORK_BLOCKED;
		ereport(LOG,
				(errmsg("background work on table with OID %u was cancelled, it will be tried again", relid)));
	}
	if ((work & PAIMON_WORK_FLUSH) && !visit->gone && !visit->compacting && (visit->failed || visit->outcome != PAIMON_WORK_DONE))
		paimon_shared_request_again(MyDatabaseId, relid);
	/* What was taken out of the log's chain and not freed is an orphan now; a sweep that was asked for has not been done. */
	if (visit->failed && visit->reclaiming && !visit->gone)
		paimon_shared_request_sweep(MyDatabaseId, relid);
	if (visit->failed)
		paimon_failure_note(MyDatabaseId, relid, visit->compacting, visit->compacting ? visit->bucket : -1, visit->edata);
	else if (visit->outcome == PAIMON_WORK_DONE)
	{
		if ((work & (PAIMON_WORK_FLUSH | PAIMON_WORK_CHECK)) || ((work & PAIMON_WORK_RECLAIM) && !(work & PAIMON_WORK_COMPACT_NEXT)))
			paimon_failure_clear(MyDatabaseId, relid, false, -1);
		if (work & (PAIMON_WORK_COMPACT | PAIMON_WORK_COMPACT_NEXT | PAIMON_WORK_LOOK))
			paimon_failure_clear(MyDatabaseId, relid, true,
								 (work & PAIMON_WORK_COMPACT) && bucket < 0 ? PAIMON_ALL_BUCKETS : bucket);
		if (visit->looked)
			paimon_failure_clear_unwanted(MyDatabaseId, relid, visit->wanted, visit->nwanted);
	}
	if (visit->gone && storage_id != 0)
		paimon_shared_forget(MyDatabaseId, storage_id);
}

List *
paimon_list_tables(void)
{
	MemoryContext cxt = CurrentMemoryContext;
	List	   *result = NIL;
	Relation	pg_class;
	TableScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	Oid			am;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	am = paimon_table_am_oid();
	if (OidIsValid(am))
	{
		pg_class = table_open(RelationRelationId, AccessShareLock);
		ScanKeyInit(&key, Anum_pg_class_relam, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(am));
		scan = table_beginscan_catalog(pg_class, 1, &key);
		while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		{
			Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
			MemoryContext old;

			CHECK_FOR_INTERRUPTS();
			if (!RELKIND_HAS_STORAGE(form->relkind) || form->relpersistence == RELPERSISTENCE_TEMP)
				continue;
			old = MemoryContextSwitchTo(cxt);
			result = lappend_oid(result, form->oid);
			MemoryContextSwitchTo(old);
		}
		table_endscan(scan);
		table_close(pg_class, AccessShareLock);
	}
	CommitTransactionCommand();
	MemoryContextSwitchTo(cxt);
	return result;
}
