/*-------------------------------------------------------------------------
 *
 * worker_scheduler.c
 *	  The worker of one database: looks at its tables when woken and every paimon.naptime, flushes what is due, compacts what wants it, reclaims
 *	  what is free.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "memtable/shared.h"
#include "worker/agenda.h"

#define IDLE_EXIT_MS	60000	/* without anything to do, the worker ends */
#define SWEEP_MS		300000	/* between two looks at all tables of a database */
#define TURN_MS 2000			/* with more databases than workers, each has that long at least */
#define JOBS_MS 1000			/* compactions go on for so long before all else is looked at; flushes and requests come in between anyway */

/* Posts jobs for what holds the fork's end. */
static bool
move_far(PaimonTableState *s, const PaimonVisit *visit)
{
	TimestampTz now = GetCurrentTimestamp();
	bool		any = false;

	if (!paimon_agenda_may_move(s, visit, now))
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
	ListCell   *lc;
	TimestampTz now = GetCurrentTimestamp();

	foreach(lc, paimon_agenda_tables())
	{
		PaimonVisit visit;
		int			work = paimon_agenda_cleaning(paimon_agenda_of(lfirst_oid(lc)), now, later);

		CHECK_FOR_INTERRUPTS();
		if (work == 0 || paimon_failure_next_try(MyDatabaseId, lfirst_oid(lc), false, -1) > now)
			continue;
		paimon_worker_visit(lfirst_oid(lc), 0, work, -1, NULL, &visit);
		*later |= visit.reclaim_pending;
		if ((work & PAIMON_WORK_FAR) && !visit.gone)
			*later |= move_far(paimon_agenda_of(lfirst_oid(lc)), &visit);
	}
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
		PaimonTableState *s = paimon_agenda_of(lfirst_oid(lc));

		s->compact = true;
		if (expire_at != 0)
			s->expire_at = expire_at;
	}
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
		if (news & PAIMON_NEWS_GONE)
			paimon_agenda_forget(relid);
		else
			paimon_agenda_news(relid, news);
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
	PaimonTableState *s;

	paimon_worker_visit(relid, 0, PAIMON_WORK_LOOK, -1, NULL, &visit);
	if (visit.gone)
		return;
	s = paimon_agenda_of(relid);
	s->compact = false;
	if (visit.failed || visit.outcome != PAIMON_WORK_DONE)
		paimon_agenda_compacted(relid, false);
	for (int i = 0; i < visit.nwanted; i++)
	{
		TimestampTz now = GetCurrentTimestamp();
		const PaimonCompactWanted *w = &visit.wanted[i];

		/* what failed, or finds no place, is looked at again */
		if (paimon_failure_next_try(MyDatabaseId, relid, true, w->bucket) <= now &&
			paimon_job_post(relid, w->bucket, w->bytes, w->urgent, NULL))
			continue;
		s->compact = true;
		s->compact_after = TimestampTzPlusMilliseconds(now, PAIMON_STALL_FIRST_MS * 10);
	}
	*later |= s->compact;
}

/* Posts jobs for all tables that changed since they were looked at last.  *later: something has to wait. */
static void
post_jobs(bool *later)
{
	ListCell   *lc;
	TimestampTz now = GetCurrentTimestamp();
	bool		any = false;

	foreach(lc, paimon_agenda_tables())
	{
		Oid			relid = lfirst_oid(lc);
		const PaimonTableState *s = paimon_agenda_of(relid);

		CHECK_FOR_INTERRUPTS();
		if (!s->compact)
			continue;
		if (s->compact_after > now || paimon_failure_next_try(MyDatabaseId, relid, true, -1) > now)
		{
			*later = true;
			continue;
		}
		any = true;
		look_at(relid, later);
		(void) paimon_worker_serve_requests();
	}
	if (any)
	{
		paimon_helpers_wake(MyDatabaseId);
		paimon_launcher_wake();
	}
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
		int			far = PAIMON_WORK_FAR | (paimon_agenda_of(lfirst_oid(lc))->trim_after > now ? PAIMON_WORK_BUSY : 0);

		CHECK_FOR_INTERRUPTS();
		paimon_worker_visit(lfirst_oid(lc), 0, PAIMON_WORK_CHECK | PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP | far, -1, NULL, &visit);
		if (!visit.gone)
			(void) move_far(paimon_agenda_of(lfirst_oid(lc)), &visit);
		(void) paimon_worker_serve_requests();
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
			paimon_worker_unfinished = any || later;
			return;
		}
		if (!any && (paimon_max_workers == 0 || !paimon_worker_extension_here() || TimestampDifferenceExceeds(active, now, IDLE_EXIT_MS)))
			return;
		if (!more)
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, paimon_agenda_nap(), PG_WAIT_EXTENSION);
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
