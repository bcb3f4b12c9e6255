/*-------------------------------------------------------------------------
 *
 * worker_stall.c
 *	  Back-pressure: a writer whose table has too many sorted runs waits until a worker has merged some.
 *
 * The number of runs in shared memory is never too small, so it only says when to look closer; the manifest decides.  A writer waits only while it has
 * nothing that the worker, or anybody whom the worker may have to wait for, could need (H14; README.md): then there is no circle.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact.h"
#include "compat.h"
#include "memtable/buffer.h"
#include "stop.h"
#include "worker/stall.h"
#include "worker/worker_internal.h"

#define LOOK_MS			1000	/* how often a waiting writer looks at more than the number of runs */
#define WARN_MS			5000	/* a WARNING after so long, or after half of paimon.stall_timeout */
#define LAUNCHER_MS		5000	/* the launcher may be about to start, again */
#define FAILURES_MAX	3		/* in a row: it keeps failing */

static int	stall_timeout = 60;

/* One wait. */
typedef struct Stall
{
	Relation	rel;
	PaimonTable *table;
	uint32		limit;
	PaimonRunCount count;		/* as last counted */
	uint32		times_blocked;	/* when it began */
	instr_time	start;
	bool		warned;
} Stall;

void
paimon_stall_init(void)
{
	DefineCustomIntVariable("paimon.stall_timeout",
							"Sets how long a statement waits for compaction before it writes to a table with too many sorted runs.",
							"After that it fails. 0 waits without end.",
							&stall_timeout,
							60, 0, 86400,
							PGC_USERSET, GUC_UNIT_S,
							NULL, NULL, NULL);
}

/* ---- who waits ---- */

/*
 * The command has been here for the table already.  Statements that write to several tables in turn may come again: what that could lead to is a wait
 * in the middle of a statement that holds no key lock, which is harmless.
 */
static bool
seen_before(const PaimonTable *table, CommandId cid)
{
	static uint64 storage_id = 0;
	static LocalTransactionId lxid = InvalidLocalTransactionId;
	static CommandId command = InvalidCommandId;

	/* A temporary table grows by commits of this session only. */
	if (storage_id == table->storage_id && lxid == paimon_my_lxid() && (command == cid || table->shared == NULL))
		return true;
	storage_id = table->storage_id;
	lxid = paimon_my_lxid();
	command = cid;
	return false;
}

/* No worker would get at the table, or publish anything: the transaction has created, rewritten or locked it, or has published itself. */
static bool
only_here(const PaimonTable *table, Relation rel)
{
	return table->shared == NULL || paimon_storage_is_own(rel) || paimon_runs_noted(table->shared) ||
		CheckRelationLockedByMe(rel, AccessExclusiveLock, true);
}

static void
compact_here(PaimonTable *table, Relation rel)
{
	PaimonFlushResult result = {0};

	/* Not allowed, or somebody waits for us and not we for him: then the table has a run too many for a while. */
	if (IsInParallelMode() || (IsolationUsesXactSnapshot() && table->shared != NULL && !paimon_storage_is_own(rel)))
		return;
	if (paimon_try_lock_flush(table->storage_id))
		paimon_flush_in_backend(rel, table, &result);
	paimon_compact_in_backend(rel, table, -1, false);
}

/* Counts in the manifest, and tells others. */
static void
count_runs(PaimonTable *table, PaimonRunCount *count)
{
	uint64		state = 0;
	Snapshot	snapshot;

	if (table->shared != NULL)
		(void) paimon_runs(table->shared, &state);
	snapshot = paimon_catalog_latest_snapshot();
	paimon_count_table_runs(table, snapshot, count);
	UnregisterSnapshot(snapshot);
	/* What we have published ourselves may be rolled back. */
	if (table->shared != NULL && !paimon_runs_noted(table->shared))
		paimon_runs_counted(table->shared, state, (uint32) count->fullest);
}

/* ---- what to say ---- */

static const char *
doing(int work)
{
	if (work & (PAIMON_WORK_COMPACT | PAIMON_WORK_COMPACT_NEXT))
		return "compacting";
	return (work & PAIMON_WORK_FLUSH) ? "flushing" : "working on";
}

/* What the workers of this database are at, as the end of a sentence. */
static char *
running(void)
{
	StringInfoData buf;
	PaimonWorkerSlot *slots = palloc(sizeof(paimon_workers->slots));
	int			n = 0;

	paimon_workers_lock();
	memcpy(slots, paimon_workers->slots, sizeof(paimon_workers->slots));
	paimon_workers_unlock();
	initStringInfo(&buf);
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		char	   *name;

		if (slots[i].state != PAIMON_SLOT_RUNNING || slots[i].dbid != MyDatabaseId)
			continue;
		appendStringInfoString(&buf, n++ > 0 ? ", " : "");
		name = OidIsValid(slots[i].relid) ? get_rel_name(slots[i].relid) : NULL;
		if (name != NULL)
			appendStringInfo(&buf, "worker %d is %s table \"%s\"", (int) slots[i].pid, doing(slots[i].work), name);
		else
			appendStringInfo(&buf, "worker %d is idle", (int) slots[i].pid);
	}
	if (n == 0)
		appendStringInfoString(&buf, "no worker runs");
	pfree(slots);
	return buf.data;
}

/*
 * How often in a row compactions of the fullest bucket have failed, or flushes if runs wait for one, whichever is more; the last message, or NULL.
 */
static int64
failures(const Stall *s, char **message)
{
	Oid			relid = RelationGetRelid(s->rel);
	int64		count = 0;
	char		last[PAIMON_MESSAGE];

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_FAILURES; i++)
	{
		const PaimonFailure *f = &paimon_workers->failures[i];

		if (f->dbid != MyDatabaseId || f->relid != relid || f->count <= count)
			continue;
		if (f->compaction ? f->bucket < 0 || f->bucket == s->count.fullest_bucket : s->count.pending)
		{
			count = f->count;
			strlcpy(last, f->message, sizeof(last));
		}
	}
	paimon_workers_unlock();
	*message = count > 0 ? pstrdup(last) : NULL;
	return count;
}

static long
waited_ms(const Stall *s)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, s->start);
	return (long) INSTR_TIME_GET_MILLISEC(now);
}

static void
warn(Stall *s)
{
	char	   *message;

	s->warned = true;
	(void) failures(s, &message);
	ereport(WARNING,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("a write to table \"%s\" has been waiting for compaction for %ld ms", RelationGetRelationName(s->rel), waited_ms(s)),
			 errdetail("A bucket has %d sorted runs, the limit is %u; %s.%s%s", s->count.fullest, s->limit, running(),
					   message != NULL ? " The last failure: " : "", message != NULL ? message : ""),
			 errhint("Write more rows per transaction, spread the table over more buckets, or raise its option \"num-sorted-run.stop-trigger\" (2147483647 never waits).")));
}

static void
fail_without_workers(Stall *s)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("table \"%s\" has too many sorted runs to be written to", RelationGetRelationName(s->rel)),
			 errdetail("A bucket has %d sorted runs, the limit is %u, and there are no background workers to compact it.", s->count.fullest, s->limit),
			 errhint("Set paimon.max_workers to at least 1, run paimon.compact on the table, or raise its option \"num-sorted-run.stop-trigger\" (2147483647: no limit).")));
}

static void
fail_compaction(Stall *s, int64 count, const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("table \"%s\" has too many sorted runs to be written to", RelationGetRelationName(s->rel)),
			 errdetail("A bucket has %d sorted runs, the limit is %u, and background work on the table has failed %lld times in a row, last with: %s",
					   s->count.fullest, s->limit, (long long) count, message),
			 errhint("Remove the cause and run paimon.compact on the table, or raise its option \"num-sorted-run.stop-trigger\" (2147483647: no limit).")));
}

static void
fail_timeout(Stall *s, const char *message)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("table \"%s\" has too many sorted runs to be written to", RelationGetRelationName(s->rel)),
			 errdetail("A bucket has %d sorted runs, the limit is %u, and compaction did not change that within %d s; %s.%s%s",
					   s->count.fullest, s->limit, stall_timeout, running(), message != NULL ? " The last failure: " : "",
					   message != NULL ? message : ""),
			 errhint("Repeat the transaction later, raise paimon.stall_timeout, or raise the table's option \"num-sorted-run.stop-trigger\" (2147483647: no limit).")));
}

static void
warn_blocked(Stall *s)
{
	ereport(WARNING,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("a write to table \"%s\" does not wait for compaction any longer: the background worker could not lock the table",
					RelationGetRelationName(s->rel)),
			 errdetail("A bucket has %d sorted runs, the limit is %u; another session holds or awaits a strong lock on the table.",
					   s->count.fullest, s->limit)));
}

/* ---- waiting ---- */

/* Are there workers that will come? */
static bool
workers_expected(const Stall *s)
{
	bool		result = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT && !result; i++)
		result = paimon_workers->slots[i].dbid == MyDatabaseId && paimon_workers->slots[i].state == PAIMON_SLOT_RUNNING;
	result |= paimon_max_workers > 0 && (paimon_workers->launcher_pid != 0 || waited_ms(s) < LAUNCHER_MS);
	paimon_workers_unlock();
	return result;
}

/* A worker may have to be started. */
static void
wake_workers(void)
{
	paimon_workers_lock();
	if (paimon_worker_slot(MyDatabaseId) == NULL)
		paimon_database_note(MyDatabaseId)->wanted = true;
	paimon_workers_unlock();
	paimon_listener_wake(MyDatabaseId);
	paimon_helpers_wake(MyDatabaseId);
	paimon_launcher_wake();
}

/*
 * Sees to it that there is an urgent job for each bucket that can be compacted, whatever the scheduler knows of the table, that runs without a snapshot id are
 * flushed, and that no compaction of the table is held back till we look again.
 */
static void
ask_workers(const Stall *s)
{
	Oid			relid = RelationGetRelid(s->rel);
	TimestampTz now = GetCurrentTimestamp();
	int			nwanted;
	PaimonCompactWanted *wanted = paimon_compact_wanted(s->rel, s->table, &nwanted);

	for (int i = 0; i < nwanted; i++)
	{
		if (paimon_failure_next_try(MyDatabaseId, relid, true, wanted[i].bucket) <= now)
			(void) paimon_job_post(relid, wanted[i].bucket, wanted[i].bytes, true, NULL);
	}
	if (wanted != NULL)
		pfree(wanted);
	if (s->count.pending)
		paimon_shared_request_flush(s->table->shared);
	paimon_throttle_lift(s->table->storage_id, 2 * LOOK_MS);
	wake_workers();
}

/* Looks at everything that can have changed; raises what there is to raise.  False: go on with the write. */
static bool
must_wait(Stall *s)
{
	char	   *message;
	int64		count;

	/* ALTER TABLE may have raised the limit. */
	AcceptInvalidationMessages();
	s->table = paimon_table_get(s->rel, true);
	s->limit = paimon_runs_limit(&s->table->options);
	count_runs(s->table, &s->count);
	if (s->limit == PG_UINT32_MAX || (uint32) s->count.fullest < s->limit)
		return false;
	if (!workers_expected(s))
		fail_without_workers(s);
	count = failures(s, &message);
	if (count >= FAILURES_MAX)
		fail_compaction(s, count, message);
	if (stall_timeout > 0 && waited_ms(s) >= stall_timeout * 1000L)
		fail_timeout(s, message);
	if (!s->warned && waited_ms(s) >= (stall_timeout > 0 ? Min(WARN_MS, stall_timeout * 500L) : WARN_MS))
		warn(s);
	ask_workers(s);
	return true;
}

/* How long to sleep at most: to the next time that must_wait has something to do. */
static long
sleep_ms(const Stall *s)
{
	long		ms = LOOK_MS;
	long		waited = waited_ms(s);

	if (stall_timeout > 0)
	{
		ms = Min(ms, stall_timeout * 1000L - waited);
		if (!s->warned)
			ms = Min(ms, Min(WARN_MS, stall_timeout * 500L) - waited);
	}
	return Max(ms, 1);
}

static void
wait_for_runs(Stall *s)
{
	PaimonShared *shared = s->table->shared;

	while (must_wait(s))
	{
		long		look_at = waited_ms(s) + sleep_ms(s);

		/* A worker that has published wakes us; one look at the number tells whether that was enough. */
		for (long now = waited_ms(s); now < look_at; now = waited_ms(s))
		{
			(void) paimon_runs_sleep(shared, look_at - now, PAIMON_WAIT_STALL);
			if (paimon_runs(shared, NULL) < s->limit)
				return;
			if (paimon_shared_times_blocked(shared) != s->times_blocked)
			{
				warn_blocked(s);
				return;
			}
		}
	}
}

static void
end_wait(int code, Datum arg)
{
	Stall	   *s = (Stall *) DatumGetPointer(arg);
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, s->start);
	paimon_stats_add(s->table->shared, PAIMON_STAT_STALL_US, INSTR_TIME_GET_MICROSEC(now));
	paimon_runs_wait_end(s->table->shared);
}

static void
stall(Stall *s)
{
	PaimonShared *shared = s->table->shared;

	PAIMON_STOP_POINT("stall-begin");
	s->times_blocked = paimon_shared_times_blocked(shared);
	INSTR_TIME_SET_CURRENT(s->start);
	paimon_stats_add(shared, PAIMON_STAT_STALLS, 1);
	paimon_runs_wait_begin(shared);
	PG_ENSURE_ERROR_CLEANUP(end_wait, PointerGetDatum(s));
	{
		wait_for_runs(s);
	}
	PG_END_ENSURE_ERROR_CLEANUP(end_wait, PointerGetDatum(s));
	end_wait(0, PointerGetDatum(s));
}

PaimonTable *
paimon_stall(PaimonTable *table, Relation rel, CommandId cid)
{
	Stall		s = {.rel = rel,.table = table,.limit = paimon_runs_limit(&table->options)};

	/* In and after pre-commit a flush cannot pass what we have appended. */
	if (IsParallelWorker() || paimon_buffer_is_precommitted() || seen_before(table, cid))
		return table;
	count_runs(table, &s.count);
	if ((uint32) s.count.fullest < s.limit)
		return table;
	if (only_here(table, rel))
		compact_here(table, rel);
	else if (!paimon_keylock_any())
		stall(&s);
	return paimon_table_get(rel, true);
}
