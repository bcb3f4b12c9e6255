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
#include "run/run.h"
#include "worker/worker_internal.h"

#define IDLE_EXIT_MS	60000	/* without anything to do, the worker ends */
#define SWEEP_MS		300000	/* between two looks at all tables of a database */
#define STALL_FIRST_MS	100		/* a flush that got nowhere (a running transaction stops it) is tried again after this, then twice as long ... */
#define STALL_MAX_MS	5000
#define RECLAIM_FIRST_MS 100	/* what waits for the horizon is looked at again after this, then twice as long ... */
#define RECLAIM_MAX_MS	30000
#define TRIM_NAPS		5		/* a table rests when nothing was flushed, compacted or freed for so many naptimes */
#define TRIM_BUSY_MS	60000	/* one that does not rest is looked at all the same after this */
#define MOVE_FIRST_MS	60000	/* after files were moved and the fork has not become shorter: the next time after this, then twice as long ... */
#define MOVE_MAX_MS		3600000
#define MOVE_ROUNDS		16		/* runs of a bucket whose files are moved, one after the other */
#define TURN_MS 2000			/* with more databases than workers, each has that long at least */
#define JOBS_MS 1000			/* compactions go on for so long before all else is looked at; flushes and requests come in between anyway */
#define ALONE_MS 10000			/* a large compaction for which no helper comes is done by the scheduler after this */
#define YIELD_LOOK_MS 100
#define MAX_YIELDS 2
#define PUT_BACK_ANYWAY 2
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
	TimestampTz reclaimed;		/* last time */
	TimestampTz expire_at;		/* snapshots that keep files go then; PG_INT64_MAX: not by time */
	bool		trim;			/* much may be free now: the end is given back when the table has come to rest */
	TimestampTz trim_after;
	TimestampTz trim_busy;		/* then in any case */
	uint32		moved_end;		/* files were moved when this was the end of what is used, to give back ... */
	uint32		moved_gain;		/* ... so many extents; 0: they were not, or something was written since */
	TimestampTz move_after;
	int			move_ms;
	bool		compact;		/* a bucket may want to be compacted */
	TimestampTz compact_after;
	int			compact_ms;		/* waited after a try that somebody was in the way of */
	int			yields;			/* how often its large compaction was given up for other work since one was finished */
} TableState;

PaimonWorkerSlot *paimon_my_slot = NULL;
static HTAB *states = NULL;

/* What this process is at, for may_yield. */
static PaimonRequest *my_request = NULL;
static bool alone = false;		/* a large compaction that nobody else could take */
static TimestampTz last_asked = 0;
static bool yielded = false;

static bool may_yield(int64 done, int64 total);
static bool may_take_large(void);
static void look_at_all_later(void);

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

static bool unfinished = false; /* we give way with work at hand */

/* Runs when the transaction has been aborted and LWLocks are released. */
static void
leave(int code, Datum arg)
{
	PaimonDatabase *d;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz expire_at = next_expiry();

	if (!paimon_my_slot->helper)
		paimon_shared_set_listener(MyDatabaseId, NULL);
	paimon_workers_lock();
	paimon_request_give_back(MyProcPid);
	paimon_job_give_back(MyProcPid);
	d = paimon_database_note(paimon_my_slot->dbid);
	if (code != 0)
		d->not_before = TimestampTzPlusMilliseconds(now, THROWN_OUT_MS);
	if (!paimon_my_slot->helper)
	{
		d->visited = now;
		if (states != NULL)
			d->expire_at = expire_at;
		d->wanted |= unfinished || code != 0;
	}
	memset(paimon_my_slot, 0, sizeof(*paimon_my_slot));
	paimon_workers_unlock();
	if (MyDatabaseId != InvalidOid)
		paimon_listener_wake(MyDatabaseId);
	paimon_launcher_wake();
}

/* Takes a slot that the launcher reserved; false if it has given us up. */
bool
paimon_worker_enter(Oid dbid, bool helper)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT && paimon_my_slot == NULL; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		if (slot->state != PAIMON_SLOT_STARTING || slot->dbid != dbid || slot->helper != helper)
			continue;
		slot->state = PAIMON_SLOT_RUNNING;
		slot->pid = MyProcPid;
		slot->latch = MyLatch;
		slot->started = GetCurrentTimestamp();
		paimon_my_slot = slot;
	}
	paimon_workers_unlock();
	if (paimon_my_slot == NULL)
		return false;
	on_shmem_exit(leave, (Datum) 0);
	paimon_compaction_yield_hook = may_yield;
	return true;
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

void
paimon_worker_connect(Oid dbid)
{
	char		appname[NAMEDATALEN + 32];

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	/* Before we are in the ProcArray, which copies the flags then. */
	MyProc->statusFlags |= PROC_IS_AUTOVACUUM;
	BackgroundWorkerInitializeConnectionByOid(dbid, InvalidOid, 0);
	settle();
	paimon_run_reads_count(false);	/* only users' reads count */

	StartTransactionCommand();
	snprintf(appname, sizeof(appname), "paimon %s %s", paimon_my_slot->helper ? "helper" : "worker", get_database_name(dbid));
	CommitTransactionCommand();
	pgstat_report_appname(appname);
	pgstat_report_activity(STATE_IDLE, NULL);
}

bool
paimon_worker_extension_here(void)
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
table_gone(Oid relid)
{
	hash_search(states, &relid, HASH_REMOVE, NULL);
	paimon_jobs_forget(relid);
	paimon_failure_clear(MyDatabaseId, relid, false, PAIMON_ALL_BUCKETS);
	paimon_failure_clear(MyDatabaseId, relid, true, PAIMON_ALL_BUCKETS);
}

/* What the scheduler has to know of a helper's visit. */
static int
news_of(int work, const PaimonVisit *visit)
{
	int			news = 0;

	if (visit->gone)
		return PAIMON_NEWS_GONE;
	if (visit->progress)
		news |= PAIMON_NEWS_FLUSHED;
	if (visit->compacted)
		news |= PAIMON_NEWS_COMPACTED;
	if (visit->reclaim_pending)
		news |= PAIMON_NEWS_RECLAIM;
	if ((work & PAIMON_WORK_COMPACT_NEXT) && (visit->failed || visit->outcome != PAIMON_WORK_DONE))
		news |= PAIMON_NEWS_NOT_COMPACTED;
	return news;
}

static void
account(Oid relid, int work, const PaimonVisit *visit)
{
	paimon_workers_lock();
	paimon_my_slot->relid = InvalidOid;
	paimon_my_slot->work = 0;
	paimon_my_slot->busy_since = 0;
	paimon_my_slot->rows += visit->rows;
	paimon_my_slot->flushes += visit->nsnapshots > 0;
	if (visit->failed)
	{
		paimon_my_slot->errors++;
		paimon_my_slot->error_time = GetCurrentTimestamp();
		strlcpy(paimon_my_slot->error, visit->edata->message ? visit->edata->message : "", PAIMON_MESSAGE);
	}
	paimon_workers_unlock();
}

/* After a visit that changed something, or freed something: when to reclaim, and to look at the fork's end. */
static void
plan_cleaning(TableState *s, int work, const PaimonVisit *visit, TimestampTz now)
{
	if (visit->progress || visit->compacted)
	{
		s->reclaim = true;
		s->reclaim_after = now;
		s->reclaim_ms = RECLAIM_FIRST_MS / 2;
	}
	if (visit->progress || visit->compacted || visit->freed > 0)
		s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_NAPS * paimon_naptime);
	if (visit->freed > 0 && !s->trim)
	{
		s->trim = true;
		s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
	}
	if ((work & PAIMON_WORK_FAR) && visit->outcome == PAIMON_WORK_DONE && !visit->failed)
	{
		/* once more, if somebody was in the way */
		s->trim = visit->end_is_free || visit->reclaim_pending;
		s->trim_after = TimestampTzPlusMilliseconds(now, Max(STALL_MAX_MS, s->reclaim_ms));
		s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
	}
}

/* Visits a table and decides when to come again. */
static void
work_on(Oid relid, uint64 storage_id, int work, int bucket, const PaimonRelocation *relocation, PaimonVisit *visit)
{
	TableState *s = state_of(relid);
	TimestampTz now;

	paimon_workers_lock();
	paimon_my_slot->relid = relid;
	paimon_my_slot->work = work;
	paimon_my_slot->busy_since = GetCurrentTimestamp();
	paimon_workers_unlock();
	yielded = false;
	paimon_visit_table(relid, storage_id, work, bucket, relocation, visit);
	account(relid, work, visit);
	if (paimon_my_slot->helper)
		paimon_news_tell(relid, news_of(work, visit));
	if (visit->gone)
	{
		table_gone(relid);
		return;
	}
	now = GetCurrentTimestamp();
	if (visit->progress || (work & PAIMON_WORK_CHECK))
		s->compact = true;
	plan_cleaning(s, work, visit, now);
	if (visit->progress)
		s->moved_gain = 0;
	s->expire |= visit->compacted;
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
		s->reclaimed = now;
		s->reclaim_ms = Min(Max(s->reclaim_ms, RECLAIM_FIRST_MS / 2) * 2, RECLAIM_MAX_MS);
		s->reclaim_after = TimestampTzPlusMilliseconds(now, s->reclaim_ms);
	}
	else if (visit->outcome == PAIMON_WORK_BLOCKED || visit->failed)
		s->reclaim_after = TimestampTzPlusMilliseconds(now, STALL_MAX_MS);
}

bool
paimon_worker_serve_requests(void)
{
	bool		any = false;

	while ((my_request = paimon_request_take(MyDatabaseId, may_take_large())) != NULL)
	{
		PaimonRequest *r = my_request;
		PaimonVisit visit;

		CHECK_FOR_INTERRUPTS();
		if ((r->work & PAIMON_WORK_FLUSH) && !paimon_claim_flush(paimon_my_slot, r->relid))
		{
			my_request = NULL;
			paimon_request_put_back(r);
			continue;
		}
		any = true;
		work_on(r->relid, 0, r->work, r->bucket, NULL, &visit);
		my_request = NULL;
		/* another worker's compaction is waited for; one in a session's transaction may last for long */
		if (visit.busy && (paimon_others_compact(r->relid) || r->put_back < PUT_BACK_ANYWAY))
			paimon_request_put_back(r);
		else
			paimon_request_finish(r, visit.outcome, visit.snapshot_id, visit.failed ? visit.edata : NULL);
	}
	return any;
}

/*
 * Whoever flushes or compacts a table frees at once what former flushes and compactions have left: while a worker is at a merge nobody else might do it, and
 * what is written meanwhile would make the fork longer.
 */
static int
reclaim_too(Oid relid)
{
	return TimestampDifferenceExceeds(state_of(relid)->reclaimed, GetCurrentTimestamp(), RECLAIM_FIRST_MS) ? PAIMON_WORK_RECLAIM : 0;
}

/* Flushes what is due, and sweeps where files were left.  *later: something is due that has to wait. */
bool
paimon_worker_flush_due(bool *later)
{
	int			n;
	PaimonSharedInfo *list = paimon_shared_list(MyDatabaseId, &n);
	bool		any = false;

	for (int i = 0; i < n; i++)
	{
		TimestampTz now = GetCurrentTimestamp();
		PaimonVisit visit;

		CHECK_FOR_INTERRUPTS();
		if (list[i].sweep && !paimon_my_slot->helper && paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) <= now)
			work_on(list[i].relid, list[i].storage_id, PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, -1, NULL, &visit);
		if (!list[i].due)
			continue;
		if (state_of(list[i].relid)->flush_after > now || paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) > now ||
			!paimon_claim_flush(paimon_my_slot, list[i].relid))
		{
			*later = true;
			continue;
		}
		if (!paimon_my_slot->helper && i + 1 < n)
			paimon_helpers_wake(MyDatabaseId);
		work_on(list[i].relid, list[i].storage_id, PAIMON_WORK_FLUSH | reclaim_too(list[i].relid), -1, NULL, &visit);
		any |= visit.progress;
		(void) paimon_worker_serve_requests();
	}
	pfree(list);
	return any;
}

/* Is there one that would get somewhere? */
static bool
flush_is_due(TimestampTz now)
{
	int			n;
	PaimonSharedInfo *list = paimon_shared_list(MyDatabaseId, &n);
	bool		result = false;

	for (int i = 0; i < n && !result; i++)
		result = list[i].due && state_of(list[i].relid)->flush_after <= now &&
			paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) <= now;
	pfree(list);
	return result;
}

/* What a table needs now beside flushes and compactions; 0: nothing.  *later: something is due that has to wait. */
static int
cleaning_work(const TableState *s, TimestampTz now, bool *later)
{
	bool		reclaim = s->reclaim || s->expire_at <= now;

	if (reclaim && s->reclaim_after <= now)
		return PAIMON_WORK_RECLAIM | (s->expire ? PAIMON_WORK_EXPIRE : 0);
	if (s->trim && (s->trim_after <= now || s->trim_busy <= now))
		return PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP | PAIMON_WORK_FAR | (s->trim_after <= now ? 0 : PAIMON_WORK_BUSY);
	*later |= reclaim || s->trim;
	return 0;
}

/*
 * Posts jobs for what holds the fork's end.  Moving that has not made the fork shorter, though nothing was written meanwhile, is not tried again for a while.
 */
static bool
move_far(TableState *s, const PaimonVisit *visit)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		any = false;

	if (s->moved_gain > 0 && visit->relocation.end > s->moved_end - s->moved_gain / 2)
	{
		s->move_ms = Min(Max(s->move_ms * 2, MOVE_FIRST_MS), MOVE_MAX_MS);
		s->move_after = TimestampTzPlusMilliseconds(now, s->move_ms);
	}
	else if (s->moved_gain > 0)
		s->move_ms = 0;
	s->moved_gain = 0;
	if (visit->nfar == 0 || now < s->move_after)
		return false;
	for (int i = 0; i < visit->nfar; i++)
	{
		const PaimonCompactWanted *w = &visit->far[i];

		if (paimon_failure_next_try(MyDatabaseId, s->relid, true, w->bucket) <= now)
			any |= paimon_job_post(s->relid, w->bucket, w->bytes, false, &visit->relocation);
	}
	s->moved_end = visit->relocation.end;
	s->moved_gain = any ? visit->relocation.gain : 0;
	paimon_helpers_wake(MyDatabaseId);
	return any;
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
		if (work == 0 || paimon_failure_next_try(MyDatabaseId, lfirst_oid(lc), false, -1) > now)
			continue;
		work_on(lfirst_oid(lc), 0, work, -1, NULL, &visit);
		*later |= visit.reclaim_pending;
		if ((work & PAIMON_WORK_FAR) && !visit.gone)
			*later |= move_far(state_of(lfirst_oid(lc)), &visit);
	}
}

/* ---- compactions ---- */

/* One came back, ours or a helper's: when to look at the table again. */
static void
after_compaction(Oid relid, bool compacted)
{
	TableState *s = state_of(relid);

	s->compact = true;
	if (compacted)
	{
		s->compact_ms = 0;
		s->compact_after = 0;
		s->yields = 0;
		return;
	}
	s->compact_ms = s->compact_ms == 0 ? STALL_FIRST_MS : Min(s->compact_ms * 2, STALL_MAX_MS);
	s->compact_after = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), s->compact_ms);
}

/* What helpers have done. */
static void
take_news(void)
{
	Oid			relid;
	int			news;
	bool		look;

	while (paimon_news_take(&relid, &news))
	{
		TableState *s = state_of(relid);
		TimestampTz now = GetCurrentTimestamp();

		if (news & PAIMON_NEWS_GONE)
		{
			table_gone(relid);
			continue;
		}
		if (news & (PAIMON_NEWS_COMPACTED | PAIMON_NEWS_NOT_COMPACTED))
			after_compaction(relid, (news & PAIMON_NEWS_COMPACTED) != 0);
		if (news & PAIMON_NEWS_FLUSHED)
		{
			s->compact = true;
			s->moved_gain = 0;
		}
		s->reclaim |= (news & PAIMON_NEWS_RECLAIM) != 0;
		s->expire |= (news & PAIMON_NEWS_COMPACTED) != 0;
		if (news & (PAIMON_NEWS_FLUSHED | PAIMON_NEWS_COMPACTED))
		{
			s->reclaim = true;
			s->reclaim_after = now;
			s->reclaim_ms = RECLAIM_FIRST_MS / 2;
			s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_NAPS * paimon_naptime);
			if (!s->trim)
				s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
			s->trim = true;
		}
	}
	paimon_workers_lock();
	look = paimon_database_note(MyDatabaseId)->look;
	paimon_database_note(MyDatabaseId)->look = false;
	paimon_workers_unlock();
	if (look)
		look_at_all_later();
}

/* Looks at a table and posts a job for each bucket that wants to be compacted. */
static void
look_at(Oid relid, bool *later)
{
	PaimonVisit visit;
	TableState *s;

	work_on(relid, 0, PAIMON_WORK_LOOK, -1, NULL, &visit);
	if (visit.gone)
		return;
	s = state_of(relid);
	s->compact = false;
	if (visit.failed || visit.outcome != PAIMON_WORK_DONE)
		after_compaction(relid, false);
	for (int i = 0; i < visit.nwanted; i++)
	{
		TimestampTz now = GetCurrentTimestamp();
		const PaimonCompactWanted *w = &visit.wanted[i];

		/* what failed, or finds no place, is looked at again */
		if (paimon_failure_next_try(MyDatabaseId, relid, true, w->bucket) <= now &&
			paimon_job_post(relid, w->bucket, w->bytes, w->urgent, NULL))
			continue;
		s->compact = true;
		s->compact_after = TimestampTzPlusMilliseconds(now, STALL_FIRST_MS * 10);
	}
	*later |= s->compact;
}

/* Posts jobs for all tables that changed since they were looked at last.  *later: something has to wait. */
static void
post_jobs(bool *later)
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
		if (!s->compact)
			continue;
		if (s->compact_after <= now && paimon_failure_next_try(MyDatabaseId, s->relid, true, -1) <= now)
			todo = lappend_oid(todo, s->relid);
		else
			*later = true;
	}
	foreach(lc, todo)
	{
		CHECK_FOR_INTERRUPTS();
		look_at(lfirst_oid(lc), later);
		(void) paimon_worker_serve_requests();
	}
	if (todo != NIL)
	{
		paimon_helpers_wake(MyDatabaseId);
		paimon_launcher_wake();
	}
}

/*
 * Helpers do, and the scheduler where no helper can be had: one worker is all there may be, or none came.  It stays free for what is small and has to be
 * done soon.
 */
static bool
may_take_large(void)
{
	TimestampTz since;
	bool		helpers;

	if (paimon_my_slot->helper || paimon_max_workers < 2)
		return true;
	paimon_workers_lock();
	helpers = paimon_helpers(MyDatabaseId, false) > 0;
	since = paimon_large_waits_since(MyDatabaseId);
	paimon_workers_unlock();
	return !helpers && since != 0 && TimestampDifferenceExceeds(since, GetCurrentTimestamp(), ALONE_MS);
}

/*
 * Asked by a merge of ours every now and then.  A compaction is given up if who asked for it waits no more, and if workers are turned off.  A large one of a
 * scheduler that has nobody to leave it to makes room for requests and flushes that are due, as long as it has not done half its work, and not more than
 * MAX_YIELDS times on end: a merge that is given up has to begin anew.
 */
static bool
may_yield(int64 done, int64 total)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		result = false;

	if (!TimestampDifferenceExceeds(last_asked, now, YIELD_LOOK_MS))
		return false;
	last_asked = now;
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (paimon_max_workers == 0)
		return true;
	paimon_workers_lock();
	if (my_request != NULL)
		result = my_request->abandoned;
	else if (alone && done < total / 2)
		result = paimon_request_waiting(MyDatabaseId);
	paimon_workers_unlock();
	if (!result && alone && my_request == NULL && done < total / 2)
		result = flush_is_due(now);
	if (!alone || my_request != NULL)
		return result;
	if (result && state_of(paimon_my_slot->relid)->yields >= MAX_YIELDS)
		result = false;
	yielded |= result;
	return result;
}

/* Takes one compaction that waits, if there is one for us. */
bool
paimon_worker_run_job(void)
{
	PaimonJob	job;
	PaimonVisit visit;
	bool		compacted = false;

	if (!paimon_job_take(may_take_large(), &job))
		return false;
	alone = paimon_my_slot->large && !paimon_my_slot->helper;
	for (int round = 0; round < (job.relocation.cutoff > 0 ? MOVE_ROUNDS : 1); round++)
	{
		work_on(job.relid, 0, PAIMON_WORK_COMPACT_NEXT | (job.urgent ? PAIMON_WORK_HURRY : 0) | reclaim_too(job.relid), job.bucket,
				&job.relocation, &visit);
		compacted |= visit.compacted;
		if (!visit.compacted || visit.gone || visit.failed || visit.outcome != PAIMON_WORK_DONE)
			break;
		(void) paimon_worker_serve_requests();
	}
	alone = false;
	paimon_job_end(&job);
	if (visit.gone || paimon_my_slot->helper)
		return true;
	/* neither: it does not want it any more */
	if (compacted || visit.failed || visit.outcome != PAIMON_WORK_DONE)
		after_compaction(job.relid, compacted);
	if (yielded)
		state_of(job.relid)->yields++;
	return true;
}

/* Compacts what wants it for a while: flushes come in between.  True if there is more to do at once. */
static bool
compact_some(bool *later)
{
	TimestampTz start = GetCurrentTimestamp();

	post_jobs(later);
	while (paimon_worker_run_job())
	{
		bool		wait = false;

		CHECK_FOR_INTERRUPTS();
		(void) paimon_worker_serve_requests();
		(void) paimon_worker_flush_due(&wait);
		take_news();
		post_jobs(&wait);
		*later |= wait;
		if (TimestampDifferenceExceeds(start, GetCurrentTimestamp(), JOBS_MS))
			return true;
	}
	*later |= paimon_jobs_wait(MyDatabaseId);
	return false;
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
		int			far = PAIMON_WORK_FAR | (state_of(lfirst_oid(lc))->trim_after > now ? PAIMON_WORK_BUSY : 0);

		CHECK_FOR_INTERRUPTS();
		work_on(lfirst_oid(lc), 0, PAIMON_WORK_CHECK | PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP | far, -1, NULL, &visit);
		if (!visit.gone)
			(void) move_far(state_of(lfirst_oid(lc)), &visit);
		(void) paimon_worker_serve_requests();
	}
	paimon_workers_lock();
	paimon_database_note(MyDatabaseId)->swept = now;
	paimon_workers_unlock();
}

/* How long the scheduler may sleep: what waits for the horizon is looked at more often than all else. */
static long
nap(void)
{
	HASH_SEQ_STATUS seq;
	TableState *s;
	long		result = paimon_naptime;

	if (states == NULL)
		return result;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
	{
		if (s->reclaim)
			result = Min(result, Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), s->reclaim_after), RECLAIM_FIRST_MS / 2));
	}
	return result;
}

static bool
told_to_give_way(void)
{
	bool		result;

	paimon_workers_lock();
	result = paimon_my_slot->give_way;
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
		take_news();
		any = paimon_worker_serve_requests();
		any |= paimon_worker_flush_due(&later);
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
		if (told_to_give_way() && (!any || TimestampDifferenceExceeds(paimon_my_slot->started, now, TURN_MS)))
		{
			unfinished = any || later;
			return;
		}
		if (!any && (paimon_max_workers == 0 || !paimon_worker_extension_here() || TimestampDifferenceExceeds(active, now, IDLE_EXIT_MS)))
			return;
		if (!more)
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, nap(), PG_WAIT_EXTENSION);
	}
}

void
paimon_worker_main(Datum arg)
{
	Oid			dbid = DatumGetObjectId(arg);

	if (!paimon_worker_enter(dbid, false))
		return;
	paimon_worker_connect(dbid);
	if (!paimon_worker_extension_here())
		return;
	paimon_jobs_forget(InvalidOid); /* of the last one; we look for ourselves */
	paimon_shared_set_listener(dbid, MyLatch);
	loop();
}
