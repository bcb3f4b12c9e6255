/*-------------------------------------------------------------------------
 *
 * worker_request.c
 *	  Asking a worker for something and waiting for it.
 *
 * A request is a place in shared memory.  Its owner waits on a condition variable; if it cannot wait any longer (cancel, error, exit) the request is freed, or
 * marked abandoned while a worker is at it.  Nobody may wait here who holds a lock that the worker needs: see the callers.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "memtable/table.h"
#include "worker/worker_internal.h"

/* How often a waiting session looks whether there is anybody to serve it. */
#define LOOK_MS 1000

/* A request whose bucket another worker compacts is tried again after this. */
#define PUT_BACK_MS 50

static PaimonRequest *
post(Oid relid, int work, int bucket, int64 bytes)
{
	PaimonRequest *r = NULL;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_REQUESTS && r == NULL; i++)
	{
		if (paimon_workers->requests[i].state == PAIMON_REQUEST_FREE)
			r = &paimon_workers->requests[i];
	}
	if (r != NULL)
	{
		r->state = PAIMON_REQUEST_PENDING;
		r->abandoned = false;
		r->dbid = MyDatabaseId;
		r->relid = relid;
		r->work = work;
		r->bucket = bucket;
		r->bytes = bytes;
		r->posted = GetCurrentTimestamp();
		r->not_before = 0;
		r->put_back = 0;
		r->worker = 0;
		r->snapshot_id = 0;
		r->sqlerrcode = 0;
		r->message[0] = '\0';
	}
	paimon_workers_unlock();
	return r;
}

static void
withdraw(int code, Datum arg)
{
	PaimonRequest *r = (PaimonRequest *) DatumGetPointer(arg);

	ConditionVariableCancelSleep();
	paimon_workers_lock();
	if (r->state == PAIMON_REQUEST_RUNNING)
		r->abandoned = true;
	else
		r->state = PAIMON_REQUEST_FREE;
	paimon_workers_unlock();
}

/* Is there, or will there be, somebody who serves our database? */
static bool
somebody_serves(void)
{
	PaimonWorkerSlot *slot;
	bool		result;

	paimon_workers_lock();
	slot = paimon_worker_slot(MyDatabaseId);
	result = (slot != NULL && slot->state == PAIMON_SLOT_RUNNING) ||
		(paimon_max_workers > 0 && paimon_workers->launcher_pid != 0);
	paimon_workers_unlock();
	return result;
}

static void
wake_worker(void)
{
	paimon_listener_wake(MyDatabaseId);
	paimon_helpers_wake(MyDatabaseId);
	paimon_launcher_wake();
}

/* Until it is done, or nobody is there who could do it (then it is taken back: false). */
static bool
wait_for(PaimonRequest *r)
{
	PaimonRequestState state;

	for (;;)
	{
		paimon_workers_lock();
		state = r->state;
		paimon_workers_unlock();
		if (state == PAIMON_REQUEST_DONE)
			break;
		if (state == PAIMON_REQUEST_PENDING && !somebody_serves())
			break;
		if (ConditionVariableTimedSleep(&r->cv, LOOK_MS, PG_WAIT_EXTENSION))
			wake_worker();
	}
	ConditionVariableCancelSleep();
	return state == PAIMON_REQUEST_DONE;
}

static PaimonRequest *
post_or_wait(Oid relid, int work, int bucket, int64 bytes)
{
	PaimonRequest *r;

	while ((r = post(relid, work, bucket, bytes)) == NULL)
	{
		CHECK_FOR_INTERRUPTS();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, LOOK_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
	}
	return r;
}

static void
warn_blocked(Relation rel, int work)
{
	if (work & PAIMON_WORK_COMPACT)
		ereport(WARNING,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("table \"%s\" was not compacted: the background worker could not lock it, or was cancelled for another session",
						RelationGetRelationName(rel)),
				 errhint("Repeat the command when no other session holds or awaits a strong lock on the table.")));
	else
		ereport(WARNING,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("table \"%s\" was not flushed: the background worker could not lock it", RelationGetRelationName(rel)),
				 errhint("It will be flushed later. To do it now, repeat the command when no other session holds or awaits a strong lock on the table.")));
}

/* What a compaction of a bucket, or of all (-1), reads at most. */
static int64
size_of(Relation rel, int bucket)
{
	PaimonTable *table = paimon_table_get(rel, false);
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	int64		bytes = table->shared != NULL ? (int64) paimon_shared_unflushed(table->shared) : 0;
	int			nfiles;
	PaimonFileRow *files = paimon_catalog_files(table->storage_id, snapshot, &nfiles);

	UnregisterSnapshot(snapshot);
	for (int i = 0; i < nfiles; i++)
	{
		if (bucket < 0 || files[i].bucket == bucket)
			bytes += files[i].bytes;
	}
	return bytes;
}

/* Has it done and waits.  *result is the request as it was when it ended (DONE and BLOCKED). */
static PaimonWorkOutcome
request(Relation rel, int work, int bucket, PaimonRequest *result)
{
	PaimonRequest *volatile r;	/* stays what it is when an error jumps out of the wait */
	int64		bytes = 0;
	bool		done;

	if (!somebody_serves())
		return PAIMON_WORK_NO_WORKER;
	if (work & PAIMON_WORK_COMPACT)
		bytes = size_of(rel, bucket);
	r = post_or_wait(RelationGetRelid(rel), work, bucket, bytes);
	PG_ENSURE_ERROR_CLEANUP(withdraw, PointerGetDatum(r));
	{
		wake_worker();
		done = wait_for(r);
	}
	PG_END_ENSURE_ERROR_CLEANUP(withdraw, PointerGetDatum(r));
	*result = *r;
	withdraw(0, PointerGetDatum(r));
	if (!done)
		return PAIMON_WORK_NO_WORKER;
	return result->outcome;
}

PaimonWorkOutcome
paimon_worker_do(Relation rel, int work, int64 *snapshot_id)
{
	return paimon_worker_do_bucket(rel, work, -1, snapshot_id);
}

PaimonWorkOutcome
paimon_worker_do_bucket(Relation rel, int work, int bucket, int64 *snapshot_id)
{
	PaimonRequest result;
	PaimonWorkOutcome outcome = request(rel, work, bucket, &result);

	*snapshot_id = 0;
	if (outcome == PAIMON_WORK_NO_WORKER)
		return outcome;
	if (result.sqlerrcode != 0)
		ereport(ERROR,
				(errcode(result.sqlerrcode),
				 errmsg("background work on table \"%s\" failed: %s", RelationGetRelationName(rel), result.message)));
	if (outcome == PAIMON_WORK_BLOCKED)
		warn_blocked(rel, work);
	*snapshot_id = result.snapshot_id;
	return outcome;
}

PaimonWorkOutcome
paimon_worker_try(Relation rel, int work)
{
	PaimonRequest result;
	PaimonWorkOutcome outcome = request(rel, work, -1, &result);

	if (outcome == PAIMON_WORK_NO_WORKER)
		return outcome;
	if (result.sqlerrcode != 0)
		ereport(WARNING,
				(errcode(result.sqlerrcode),
				 errmsg("background work on table \"%s\" failed: %s", RelationGetRelationName(rel), result.message)));
	else if (outcome == PAIMON_WORK_BLOCKED)
		warn_blocked(rel, work);
	return outcome;
}

/* ---- the other side ---- */

/* The next request for a database, now the caller's to finish; NULL if there is none for it. */
PaimonRequest *
paimon_request_take(Oid dbid, bool may_large)
{
	PaimonRequest *r = NULL;

	TimestampTz now = GetCurrentTimestamp();

	paimon_workers_lock();
	may_large = may_large && paimon_large_allowed();
	for (int i = 0; i < PAIMON_REQUESTS && r == NULL; i++)
	{
		PaimonRequest *c = &paimon_workers->requests[i];

		if (c->state == PAIMON_REQUEST_PENDING && c->dbid == dbid && c->not_before <= now && (may_large || !paimon_is_large(c->bytes)))
			r = c;
	}
	if (r != NULL)
	{
		r->state = PAIMON_REQUEST_RUNNING;
		r->worker = MyProcPid;
		paimon_my_slot->large = paimon_is_large(r->bytes);
	}
	paimon_workers_unlock();
	return r;
}

/* Lock held. */
static void
finish(PaimonRequest *r, PaimonWorkOutcome outcome)
{
	r->outcome = outcome;
	r->state = r->abandoned ? PAIMON_REQUEST_FREE : PAIMON_REQUEST_DONE;
}

void
paimon_request_finish(PaimonRequest *r, PaimonWorkOutcome outcome, int64 snapshot_id, const ErrorData *edata)
{
	paimon_workers_lock();
	paimon_my_slot->large = false;
	r->snapshot_id = snapshot_id;
	if (edata != NULL)
	{
		r->sqlerrcode = edata->sqlerrcode;
		strlcpy(r->message, edata->message ? edata->message : "unknown error", PAIMON_MESSAGE);
	}
	finish(r, outcome);
	paimon_workers_unlock();
	ConditionVariableBroadcast(&r->cv);
}

void
paimon_request_put_back(PaimonRequest *r)
{
	paimon_workers_lock();
	paimon_my_slot->large = false;
	r->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), PUT_BACK_MS);
	r->put_back++;
	r->state = r->abandoned ? PAIMON_REQUEST_FREE : PAIMON_REQUEST_PENDING;
	paimon_workers_unlock();
}

void
paimon_request_refuse_all(Oid dbid)
{
	for (int i = 0; i < PAIMON_REQUESTS; i++)
	{
		PaimonRequest *r = &paimon_workers->requests[i];
		bool		refused = false;

		paimon_workers_lock();
		if (r->state == PAIMON_REQUEST_PENDING && r->dbid == dbid)
		{
			finish(r, PAIMON_WORK_NO_WORKER);
			refused = true;
		}
		paimon_workers_unlock();
		if (refused)
			ConditionVariableBroadcast(&r->cv);
	}
}

void
paimon_request_give_back(pid_t worker)
{
	for (int i = 0; i < PAIMON_REQUESTS; i++)
	{
		PaimonRequest *r = &paimon_workers->requests[i];

		if (r->state == PAIMON_REQUEST_RUNNING && r->worker == worker)
			r->state = r->abandoned ? PAIMON_REQUEST_FREE : PAIMON_REQUEST_PENDING;
	}
}
