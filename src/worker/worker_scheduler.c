/*-------------------------------------------------------------------------
 *
 * worker_scheduler.c
 *	  The worker of one database: looks at its tables when woken and every paimon.naptime, flushes what is due, compacts what wants it, reclaims
 *	  what is free.
 *
 * It runs flagged as an autovacuum worker is (PROC_IS_AUTOVACUUM): DROP DATABASE, CREATE DATABASE ... TEMPLATE and ALTER DATABASE RENAME then
 * throw it out by themselves, and a session that it blocks cancels it after deadlock_timeout.  It reads no user's heap table, since CREATE INDEX
 * CONCURRENTLY does not wait for it, and it calls no user's code: it is the bootstrap superuser.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "catalog/manifest.h"
#include "memtable/shared.h"
#include "worker/worker_internal.h"

#define IDLE_EXIT_MS	60000	/* without anything to do, the worker ends */
#define SWEEP_MS		300000	/* between two looks at all tables of a database */
#define STALL_FIRST_MS	100		/* a flush that got nowhere (a running transaction stops it) is tried again after this, then twice as long ... */
#define STALL_MAX_MS	5000
#define RECLAIM_MAX_MS	30000
#define TRIM_MS		5000		/* a table rests when nothing was flushed, compacted or freed for so long */
#define THROWN_OUT_MS	2000	/* after an exit that was not our wish: DROP DATABASE may be at work */

/* What the worker remembers of a table while it runs. */
typedef struct TableState
{
	Oid			relid;			/* hash key */
	TimestampTz flush_after;	/* not before */
	int			stall_ms;
	bool		reclaim;		/* something waits for the horizon */
	bool		expire;			/* was compacted: snapshots expire though it is write-only */
	TimestampTz reclaim_after;
	int			reclaim_ms;
	TimestampTz expire_at;		/* snapshots that keep files go then; PG_INT64_MAX: not by time */
	bool		trim;			/* much may be free now: the end is given back when the table has come to rest */
	TimestampTz trim_after;
	bool		compact;		/* a bucket may want to be compacted */
	int			compact_bucket; /* look from this one on */
	TimestampTz compact_after;
	int			compact_ms;		/* waited after a try that somebody was in the way of */
} TableState;

static PaimonWorkerSlot *my_slot = NULL;
static HTAB *states = NULL;

/* ---- registration ---- */

/* When snapshots of some table expire that keep files; 0: never. */
static TimestampTz
next_expiry(void)
{
	HASH_SEQ_STATUS seq;
	TableState *s;
	TimestampTz result = PG_INT64_MAX;

	if (states == NULL)
		return 0;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
		result = Min(result, s->expire_at);
	return result == PG_INT64_MAX ? 0 : result;
}

/* Runs when the transaction has been aborted and LWLocks are released. */
static void
leave(int code, Datum arg)
{
	PaimonDatabase *d;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz expire_at = next_expiry();

	paimon_shared_set_listener(MyDatabaseId, NULL);
	paimon_workers_lock();
	paimon_request_give_back(MyProcPid);
	d = paimon_database_note(my_slot->dbid);
	if (code != 0)
		d->not_before = TimestampTzPlusMilliseconds(now, THROWN_OUT_MS);
	d->visited = now;
	d->expire_at = expire_at;
	memset(my_slot, 0, sizeof(*my_slot));
	paimon_workers_unlock();
	paimon_launcher_wake();
}

/* Takes the slot that the launcher reserved; false if it has given us up. */
static bool
enter(Oid dbid)
{
	PaimonWorkerSlot *slot;

	paimon_workers_lock();
	slot = paimon_worker_slot(dbid);
	if (slot != NULL && slot->state == PAIMON_SLOT_STARTING)
	{
		slot->state = PAIMON_SLOT_RUNNING;
		slot->pid = MyProcPid;
		slot->started = GetCurrentTimestamp();
		my_slot = slot;
	}
	paimon_workers_unlock();
	return my_slot != NULL;
}

/* What ALTER DATABASE ... SET may have changed and a worker does not stand. */
static void
settle(void)
{
	static const char *const settings[][2] = {
		{"search_path", "pg_catalog"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"default_transaction_deferrable", "off"},
		{"statement_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"lock_timeout", "10s"},	/* for flush and publish locks; their holders go first */
		{"zero_damaged_pages", "off"},
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
	/* Do not wait for standbys: a broken one would stop all flushes. */
	if (synchronous_commit > SYNCHRONOUS_COMMIT_LOCAL_FLUSH)
		SetConfigOption("synchronous_commit", "local", PGC_SUSET, PGC_S_OVERRIDE);
}

static void
connect_database(Oid dbid)
{
	char		appname[NAMEDATALEN + 32];

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* Before we are in the ProcArray, which copies the flags then. */
	MyProc->statusFlags |= PROC_IS_AUTOVACUUM;
	BackgroundWorkerInitializeConnectionByOid(dbid, InvalidOid, 0);
	settle();

	StartTransactionCommand();
	snprintf(appname, sizeof(appname), "paimon worker %s", get_database_name(dbid));
	CommitTransactionCommand();
	pgstat_report_appname(appname);
	pgstat_report_activity(STATE_IDLE, NULL);
}

static bool
extension_here(void)
{
	bool		result;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	result = paimon_extension_exists();
	CommitTransactionCommand();
	return result;
}

/* ---- work ---- */

static TableState *
state_of(Oid relid)
{
	bool		found;
	TableState *s;

	if (states == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(TableState), .hcxt = TopMemoryContext};

		states = hash_create("paimon worker tables", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	s = hash_search(states, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(s, 0, sizeof(*s));
		s->relid = relid;
		s->expire_at = PG_INT64_MAX;
	}
	return s;
}

static void
account(Oid relid, int work, const PaimonVisit *visit)
{
	paimon_workers_lock();
	my_slot->relid = InvalidOid;
	my_slot->work = 0;
	my_slot->rows += visit->rows;
	my_slot->flushes += visit->nsnapshots > 0;
	if (visit->failed)
	{
		my_slot->errors++;
		my_slot->error_time = GetCurrentTimestamp();
		strlcpy(my_slot->error, visit->edata->message ? visit->edata->message : "", PAIMON_MESSAGE);
	}
	paimon_workers_unlock();
}

/* Visits a table and decides when to come again. */
static void
work_on(Oid relid, uint64 storage_id, int work, int bucket, PaimonVisit *visit)
{
	TableState *s = state_of(relid);
	TimestampTz now;

	paimon_workers_lock();
	my_slot->relid = relid;
	my_slot->work = work;
	paimon_workers_unlock();
	paimon_visit_table(relid, storage_id, work, bucket, visit);
	account(relid, work, visit);
	if (visit->gone)
	{
		hash_search(states, &relid, HASH_REMOVE, NULL);
		paimon_failure_clear(MyDatabaseId, relid, false);
		paimon_failure_clear(MyDatabaseId, relid, true);
		return;
	}
	now = GetCurrentTimestamp();
	if (visit->progress || (work & PAIMON_WORK_CHECK))
		s->compact = true;
	if (visit->progress || visit->compacted)
	{
		s->reclaim = true;
		s->reclaim_after = now;
		s->reclaim_ms = paimon_naptime;
	}
	if (visit->progress || visit->compacted || visit->freed > 0)
		s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_MS);
	if (visit->freed > 0)
		s->trim = true;
	s->expire |= visit->compacted;
	if ((work & PAIMON_WORK_SWEEP) && visit->outcome == PAIMON_WORK_DONE && !visit->failed)
		s->trim = false;
	if (visit->progress)
	{
		s->stall_ms = 0;
		s->flush_after = 0;
	}
	else if (work & PAIMON_WORK_FLUSH)
	{
		s->stall_ms = s->stall_ms == 0 ? STALL_FIRST_MS : Min(s->stall_ms * 2, STALL_MAX_MS);
		s->flush_after = TimestampTzPlusMilliseconds(now, s->stall_ms);
	}
	if ((work & PAIMON_WORK_RECLAIM) && visit->outcome == PAIMON_WORK_DONE && !visit->failed)
	{
		s->expire_at = visit->expire_at;
		if (work & PAIMON_WORK_EXPIRE)
			s->expire = visit->reclaim_pending;
		s->reclaim = visit->reclaim_pending;
		s->reclaim_ms = Min(Max(s->reclaim_ms, 100) * 2, RECLAIM_MAX_MS);
		s->reclaim_after = TimestampTzPlusMilliseconds(now, s->reclaim_ms);
	}
	else if (visit->outcome == PAIMON_WORK_BLOCKED || visit->failed)
		s->reclaim_after = TimestampTzPlusMilliseconds(now, STALL_MAX_MS);
}

static bool
serve_requests(void)
{
	PaimonRequest *r;
	bool		any = false;

	while ((r = paimon_request_take(MyDatabaseId)) != NULL)
	{
		PaimonVisit visit;

		CHECK_FOR_INTERRUPTS();
		any = true;
		work_on(r->relid, 0, r->work, r->bucket, &visit);
		paimon_request_finish(r, visit.outcome, visit.snapshot_id, visit.failed ? visit.edata : NULL);
	}
	return any;
}

/* Flushes what is due, and sweeps where files were left.  *later: something is due that has to wait. */
static bool
flush_due(bool *later)
{
	int			n;
	PaimonSharedInfo *list = paimon_shared_list(MyDatabaseId, &n);
	bool		any = false;

	for (int i = 0; i < n; i++)
	{
		TimestampTz now = GetCurrentTimestamp();
		PaimonVisit visit;

		CHECK_FOR_INTERRUPTS();
		if (list[i].sweep && paimon_failure_next_try(MyDatabaseId, list[i].relid, false) <= now)
			work_on(list[i].relid, list[i].storage_id, PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, -1, &visit);
		if (!list[i].due)
			continue;
		if (state_of(list[i].relid)->flush_after > now || paimon_failure_next_try(MyDatabaseId, list[i].relid, false) > now)
		{
			*later = true;
			continue;
		}
		work_on(list[i].relid, list[i].storage_id, PAIMON_WORK_FLUSH, -1, &visit);
		any |= visit.progress;
		(void) serve_requests();
	}
	pfree(list);
	return any;
}

/* What a table needs now beside flushes and compactions; 0: nothing.  *later: something is due that has to wait. */
static int
cleaning_work(const TableState *s, TimestampTz now, bool *later)
{
	bool		reclaim = s->reclaim || s->expire_at <= now;

	if (reclaim && s->reclaim_after <= now)
		return PAIMON_WORK_RECLAIM | (s->expire ? PAIMON_WORK_EXPIRE : 0);
	if (s->trim && s->trim_after <= now)
		return PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP;
	*later |= reclaim || s->trim;
	return 0;
}

static void
reclaim_some(bool *later)
{
	HASH_SEQ_STATUS seq;
	TableState *s;
	List	   *todo = NIL;
	ListCell   *lc;
	TimestampTz now = GetCurrentTimestamp();

	if (states == NULL)
		return;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
	{
		if (cleaning_work(s, now, later) != 0)
			todo = lappend_oid(todo, s->relid);
	}
	foreach(lc, todo)
	{
		PaimonVisit visit;
		int			work = cleaning_work(state_of(lfirst_oid(lc)), now, later);

		CHECK_FOR_INTERRUPTS();
		if (work == 0 || paimon_failure_next_try(MyDatabaseId, lfirst_oid(lc), false) > now)
			continue;
		work_on(lfirst_oid(lc), 0, work, -1, &visit);
		*later |= visit.reclaim_pending;
	}
}

/* A visit that compacts came back: when to come again. */
static void
after_compaction(Oid relid, const PaimonVisit *visit)
{
	TableState *s = state_of(relid);
	TimestampTz now = GetCurrentTimestamp();

	if (visit->failed || visit->outcome != PAIMON_WORK_DONE)
	{
		s->compact_ms = s->compact_ms == 0 ? STALL_FIRST_MS : Min(s->compact_ms * 2, STALL_MAX_MS);
		s->compact_after = TimestampTzPlusMilliseconds(now, s->compact_ms);
		return;
	}
	s->compact_ms = 0;
	s->compact_after = 0;
	s->compact = visit->compacted;
	s->compact_bucket = Max(visit->next_bucket, 0);
}

/*
 * One bucket of each table that may want it: flushes come in between.  True if something was compacted, so that more may have to be.  *later: something
 * has to wait.
 */
static bool
compact_some(bool *later)
{
	HASH_SEQ_STATUS seq;
	TableState *s;
	List	   *todo = NIL;
	ListCell   *lc;
	TimestampTz now = GetCurrentTimestamp();
	bool		any = false;

	if (states == NULL)
		return false;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
	{
		if (!s->compact)
			continue;
		if (s->compact_after <= now && paimon_failure_next_try(MyDatabaseId, s->relid, true) <= now)
			todo = lappend_oid(todo, s->relid);
		else
			*later = true;
	}
	foreach(lc, todo)
	{
		PaimonVisit visit;
		bool		wait = false;

		CHECK_FOR_INTERRUPTS();
		work_on(lfirst_oid(lc), 0, PAIMON_WORK_COMPACT_NEXT, state_of(lfirst_oid(lc))->compact_bucket, &visit);
		if (visit.gone)
			continue;
		after_compaction(lfirst_oid(lc), &visit);
		any |= visit.compacted;
		(void) serve_requests();
		(void) flush_due(&wait);
		*later |= wait;
	}
	return any;
}

/* Nobody knows what was left when the last worker ended. */
static void
look_at_all_later(void)
{
	ListCell   *lc;
	TimestampTz expire_at;

	paimon_workers_lock();
	expire_at = paimon_database_note(MyDatabaseId)->expire_at;
	paimon_database_note(MyDatabaseId)->expire_at = 0;
	paimon_workers_unlock();
	foreach(lc, paimon_list_tables())
	{
		TableState *s = state_of(lfirst_oid(lc));

		s->compact = true;
		if (expire_at != 0)
			s->expire_at = expire_at;
	}
}

/* All tables of the database, now and then: after a restart nobody else knows what their logs hold. */
static void
sweep(void)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		due;
	ListCell   *lc;

	paimon_workers_lock();
	due = TimestampDifferenceExceeds(paimon_database_note(MyDatabaseId)->swept, now, SWEEP_MS);
	paimon_workers_unlock();
	if (!due)
		return;
	foreach(lc, paimon_list_tables())
	{
		PaimonVisit visit;

		CHECK_FOR_INTERRUPTS();
		work_on(lfirst_oid(lc), 0, PAIMON_WORK_CHECK | PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, -1, &visit);
		(void) serve_requests();
	}
	paimon_workers_lock();
	paimon_database_note(MyDatabaseId)->swept = now;
	paimon_workers_unlock();
}

static bool
told_to_give_way(void)
{
	bool		result;

	paimon_workers_lock();
	result = my_slot->give_way;
	paimon_workers_unlock();
	return result;
}

static void
loop(void)
{
	MemoryContext cxt = AllocSetContextCreate(TopMemoryContext, "paimon worker pass", ALLOCSET_DEFAULT_SIZES);
	TimestampTz active = GetCurrentTimestamp();

	look_at_all_later();
	for (;;)
	{
		bool		any;
		bool		more;
		bool		later = false;
		TimestampTz now;

		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		MemoryContextSwitchTo(cxt);
		any = serve_requests();
		any |= flush_due(&later);
		sweep();
		more = compact_some(&later);
		any |= more;
		reclaim_some(&later);
		MemoryContextSwitchTo(TopMemoryContext);
		MemoryContextReset(cxt);
		pgstat_report_stat(true);

		now = GetCurrentTimestamp();
		if (any || later)
			active = now;
		if (!any && (told_to_give_way() || paimon_max_workers == 0 || !extension_here() ||
					 TimestampDifferenceExceeds(active, now, IDLE_EXIT_MS)))
			return;
		if (!more)
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, paimon_naptime, PG_WAIT_EXTENSION);
	}
}

void
paimon_worker_main(Datum arg)
{
	Oid			dbid = DatumGetObjectId(arg);

	if (!enter(dbid))
		return;
	on_shmem_exit(leave, (Datum) 0);
	connect_database(dbid);
	if (!extension_here())
		return;
	paimon_shared_set_listener(dbid, MyLatch);
	loop();
}
