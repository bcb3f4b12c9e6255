/*-------------------------------------------------------------------------
 *
 * worker_jobs.c
 *	  Compactions that wait for a worker, who may take which, and what helpers tell their scheduler.
 *
 * The scheduler of a database posts a job for each bucket that wants to be compacted; it and its helpers take them.  The order is that of a time by which
 * each is due: when it was posted, less a head start for buckets near the stop trigger.  So these go first, but whatever waits long enough comes before
 * anything new, be it ever so urgent: nobody starves.
 *
 * Two classes: of the workers that paimon.max_workers allows, one is never at a large compaction.  With one worker there is no such choice: see
 * worker_work.c and worker_scheduler.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "memtable/shared.h"
#include "worker/worker_internal.h"

#define URGENT_MS 10000			/* head start of buckets near the stop trigger */
#define BUSY_MS 100				/* a scheduler that is at something for so long, while more is to be done, gets a helper */

/* ---- classes ---- */

bool
paimon_is_large(int64 bytes)
{
	return bytes > (int64) paimon_large_compaction * 1024;
}

bool
paimon_large_allowed(void)
{
	int			n = 0;

	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
		n += paimon_workers->slots[i].state == PAIMON_SLOT_RUNNING && paimon_workers->slots[i].large;
	return paimon_max_workers < 2 ? n == 0 : n < paimon_max_workers - 1;
}

/* ---- jobs ---- */

bool
paimon_job_post(Oid relid, int bucket, int64 bytes, bool urgent, const PaimonRelocation *relocation)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz due = urgent ? now - URGENT_MS * INT64CONST(1000) : now;
	PaimonJob  *place = NULL;
	bool		there = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_JOBS && !there; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_FREE)
			place = place == NULL ? j : place;
		else if (j->dbid == MyDatabaseId && j->relid == relid && j->bucket == bucket)
		{
			there = true;
			j->due = Min(j->due, due);
			j->urgent |= urgent;
			if (j->state == PAIMON_REQUEST_PENDING)
				j->bytes = bytes;
			/* what the options want comes first, and changes what lies where */
			if (j->state == PAIMON_REQUEST_PENDING && relocation == NULL)
				memset(&j->relocation, 0, sizeof(j->relocation));
		}
	}
	if (!there && place != NULL)
	{
		memset(place, 0, sizeof(*place));
		place->state = PAIMON_REQUEST_PENDING;
		place->dbid = MyDatabaseId;
		place->relid = relid;
		place->bucket = bucket;
		place->bytes = bytes;
		place->urgent = urgent;
		if (relocation != NULL)
			place->relocation = *relocation;
		place->posted = now;
		place->due = due;
	}
	paimon_workers_unlock();
	return there || place != NULL;
}

bool
paimon_job_take(bool may_large, PaimonJob *job)
{
	PaimonJob  *best = NULL;

	paimon_workers_lock();
	may_large = may_large && paimon_large_allowed();
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_PENDING && j->dbid == MyDatabaseId && (may_large || !paimon_is_large(j->bytes)) &&
			(best == NULL || j->due < best->due))
			best = j;
	}
	if (best != NULL)
	{
		best->state = PAIMON_REQUEST_RUNNING;
		best->worker = MyProcPid;
		paimon_my_slot->large = paimon_is_large(best->bytes);
		*job = *best;
	}
	paimon_workers_unlock();
	return best != NULL;
}

void
paimon_job_end(const PaimonJob *job)
{
	paimon_workers_lock();
	paimon_my_slot->large = false;
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_RUNNING && j->worker == MyProcPid && j->relid == job->relid && j->bucket == job->bucket)
			j->state = PAIMON_REQUEST_FREE;
	}
	paimon_workers_unlock();
}

void
paimon_jobs_forget(Oid relid)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_PENDING && j->dbid == MyDatabaseId && (!OidIsValid(relid) || j->relid == relid))
			j->state = PAIMON_REQUEST_FREE;
	}
	paimon_workers_unlock();
}

void
paimon_job_give_back(pid_t worker)
{
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_RUNNING && j->worker == worker)
			j->state = PAIMON_REQUEST_PENDING;
	}
}

bool
paimon_jobs_wait(Oid dbid)
{
	bool		result = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_JOBS && !result; i++)
		result = paimon_workers->jobs[i].state == PAIMON_REQUEST_PENDING && paimon_workers->jobs[i].dbid == dbid;
	paimon_workers_unlock();
	return result;
}

TimestampTz
paimon_large_waits_since(Oid dbid)
{
	TimestampTz since = PG_INT64_MAX;

	if (!paimon_large_allowed())
		return 0;
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_PENDING && j->dbid == dbid && paimon_is_large(j->bytes))
			since = Min(since, j->posted);
	}
	for (int i = 0; i < PAIMON_REQUESTS; i++)
	{
		PaimonRequest *r = &paimon_workers->requests[i];

		if (r->state == PAIMON_REQUEST_PENDING && r->dbid == dbid && paimon_is_large(r->bytes))
			since = Min(since, r->posted);
	}
	return since == PG_INT64_MAX ? 0 : since;
}

/* ---- who is at what ---- */

bool
paimon_others_compact(Oid relid)
{
	bool		result = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT && !result; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		result = slot->state == PAIMON_SLOT_RUNNING && slot->dbid == MyDatabaseId && slot->pid != MyProcPid && slot->relid == relid &&
			(slot->work & (PAIMON_WORK_COMPACT | PAIMON_WORK_COMPACT_NEXT)) != 0;
	}
	paimon_workers_unlock();
	return result;
}

bool
paimon_claim_flush(PaimonWorkerSlot *mine, Oid relid)
{
	bool		free = true;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT && free; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		free = slot == mine || slot->state != PAIMON_SLOT_RUNNING || slot->dbid != MyDatabaseId || slot->relid != relid ||
			(slot->work & PAIMON_WORK_FLUSH) == 0;
	}
	if (free)
	{
		mine->relid = relid;
		mine->work = PAIMON_WORK_FLUSH;
	}
	paimon_workers_unlock();
	return free;
}

/* ---- news ---- */

/* If there is no room, the scheduler looks at all tables. */
void
paimon_news_tell(Oid relid, int news)
{
	PaimonNewsItem *place = NULL;

	if (news == 0)
		return;
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_NEWS; i++)
	{
		PaimonNewsItem *item = &paimon_workers->news[i];

		if (item->dbid == MyDatabaseId && item->relid == relid)
		{
			place = item;
			break;
		}
		if (place == NULL && !OidIsValid(item->dbid))
			place = item;
	}
	if (place != NULL)
	{
		place->dbid = MyDatabaseId;
		place->relid = relid;
		place->news |= news;
	}
	else
		paimon_database_note(MyDatabaseId)->look = true;
	paimon_workers_unlock();
	paimon_listener_wake(MyDatabaseId);
}

bool
paimon_news_take(Oid *relid, int *news)
{
	bool		found = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_NEWS && !found; i++)
	{
		PaimonNewsItem *item = &paimon_workers->news[i];

		if (item->dbid != MyDatabaseId)
			continue;
		found = true;
		*relid = item->relid;
		*news = item->news;
		memset(item, 0, sizeof(*item));
	}
	paimon_workers_unlock();
	return found;
}

/* ---- helpers ---- */

int
paimon_helpers(Oid dbid, bool idle)
{
	int			n = 0;

	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		n += slot->state != PAIMON_SLOT_FREE && slot->helper && slot->dbid == dbid && (!idle || slot->busy_since == 0);
	}
	return n;
}

void
paimon_helpers_wake(Oid dbid)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		if (slot->state == PAIMON_SLOT_RUNNING && slot->helper && slot->dbid == dbid && slot->latch != NULL)
			SetLatch(slot->latch);
	}
	paimon_workers_unlock();
}

/* Could a worker begin with something now if there were one more?  The scheduler itself takes what is small.  Lock held. */
static bool
more_to_do(Oid dbid, bool flush, bool scheduler_busy)
{
	bool		large = paimon_large_allowed();

	if (flush && scheduler_busy)
		return true;
	for (int i = 0; i < PAIMON_JOBS; i++)
	{
		PaimonJob  *j = &paimon_workers->jobs[i];

		if (j->state == PAIMON_REQUEST_PENDING && j->dbid == dbid && (paimon_is_large(j->bytes) ? large : scheduler_busy))
			return true;
	}
	for (int i = 0; i < PAIMON_REQUESTS; i++)
	{
		PaimonRequest *r = &paimon_workers->requests[i];

		if (r->state == PAIMON_REQUEST_PENDING && r->dbid == dbid && r->not_before == 0 &&
			(paimon_is_large(r->bytes) ? large : scheduler_busy))
			return true;
	}
	return false;
}

bool
paimon_helper_wanted(Oid dbid, bool flush)
{
	TimestampTz now = GetCurrentTimestamp();
	PaimonWorkerSlot *scheduler;
	bool		result = false;

	if (paimon_max_workers < 2)
		return false;
	paimon_workers_lock();
	scheduler = paimon_worker_slot(dbid);
	if (scheduler != NULL && scheduler->state == PAIMON_SLOT_RUNNING && paimon_database_note(dbid)->not_before <= now &&
		paimon_helpers(dbid, true) == 0)
		result = more_to_do(dbid, flush, scheduler->busy_since != 0 && TimestampDifferenceExceeds(scheduler->busy_since, now, BUSY_MS));
	paimon_workers_unlock();
	return result;
}
