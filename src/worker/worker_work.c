/*-------------------------------------------------------------------------
 *
 * worker_work.c
 *	  What schedulers and helpers do alike: requests, flushes that are due, compactions that wait.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "memtable/shared.h"
#include "worker/agenda.h"

#define MOVE_ROUNDS		16		/* runs of a bucket whose files are moved, one after the other */
#define ALONE_MS 10000			/* a large compaction for which no helper comes is done by the scheduler after this */
#define YIELD_LOOK_MS 100
#define MAX_YIELDS 2
#define PUT_BACK_ANYWAY 2

/* What this process is at, for paimon_worker_may_yield. */
static PaimonRequest *my_request = NULL;
static bool alone = false;		/* a large compaction that nobody else could take */
static TimestampTz last_asked = 0;
static bool yielded = false;

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

void
paimon_worker_visit(Oid relid, uint64 storage_id, int work, int bucket, const PaimonRelocation *relocation, PaimonVisit *visit)
{
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
		paimon_agenda_forget(relid);
	else
		paimon_agenda_visited(relid, work, visit);
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
		paimon_worker_visit(r->relid, 0, r->work, r->bucket, NULL, &visit);
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
	return TimestampDifferenceExceeds(paimon_agenda_of(relid)->reclaimed, GetCurrentTimestamp(), PAIMON_RECLAIM_FIRST_MS) ? PAIMON_WORK_RECLAIM : 0;
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
		if (!paimon_my_slot->helper)
			paimon_agenda_written(list[i].relid, list[i].tail);
		if (list[i].sweep && !paimon_my_slot->helper && paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) <= now)
			paimon_worker_visit(list[i].relid, list[i].storage_id, PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, -1, NULL, &visit);
		if (!list[i].due)
			continue;
		if (paimon_agenda_of(list[i].relid)->flush_after > now || paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) > now ||
			!paimon_claim_flush(paimon_my_slot, list[i].relid))
		{
			*later = true;
			continue;
		}
		if (!paimon_my_slot->helper && i + 1 < n)
			paimon_helpers_wake(MyDatabaseId);
		paimon_worker_visit(list[i].relid, list[i].storage_id, PAIMON_WORK_FLUSH | reclaim_too(list[i].relid), -1, NULL, &visit);
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
		result = list[i].due && paimon_agenda_of(list[i].relid)->flush_after <= now &&
			paimon_failure_next_try(MyDatabaseId, list[i].relid, false, -1) <= now;
	pfree(list);
	return result;
}

/*
 * Asked by a merge of ours every now and then.  A compaction is given up if who asked for it waits no more, and if workers are turned off.  A large one of a
 * scheduler that has nobody to leave it to makes room for requests and flushes that are due, as long as it has not done half its work, and not more than
 * MAX_YIELDS times on end: a merge that is given up has to begin anew.
 */
bool
paimon_worker_may_yield(int64 done, int64 total)
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
	if (result && paimon_agenda_of(paimon_my_slot->relid)->yields >= MAX_YIELDS)
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
		paimon_worker_visit(job.relid, 0, PAIMON_WORK_COMPACT_NEXT | (job.urgent ? PAIMON_WORK_HURRY : 0) | reclaim_too(job.relid), job.bucket,
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
		paimon_agenda_compacted(job.relid, compacted);
	if (yielded)
		paimon_agenda_of(job.relid)->yields++;
	return true;
}
