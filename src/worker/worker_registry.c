/*-------------------------------------------------------------------------
 *
 * worker_registry.c
 *	  The shared registry of workers, failures and databases; settings.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "worker/worker_internal.h"

PG_FUNCTION_INFO_V1(paimon_worker_created);

#define RETRY_FIRST_MS 1000
#define RETRY_MAX_MS 60000

PaimonWorkers *paimon_workers = NULL;
int			paimon_max_workers = 2;
int			paimon_naptime = 1000;
int			paimon_large_compaction = 256 * 1024;

static bool created_here = false;	/* this transaction has created the extension */

void
paimon_workers_lock(void)
{
	LWLockAcquire(&paimon_workers->lock, LW_EXCLUSIVE);
}

void
paimon_workers_unlock(void)
{
	LWLockRelease(&paimon_workers->lock);
}

/* Latches are those of PGPROCs: setting one whose owner has just gone is harmless. */
void
paimon_launcher_wake(void)
{
	Latch	   *latch = paimon_workers->launcher_latch;

	if (latch != NULL)
		SetLatch(latch);
}

PaimonDatabase *
paimon_database_note(Oid dbid)
{
	PaimonDatabase *best = NULL;

	for (int i = 0; i < PAIMON_DATABASES; i++)
	{
		PaimonDatabase *d = &paimon_workers->databases[i];

		if (d->dbid == dbid)
			return d;
		if (best == NULL || (OidIsValid(best->dbid) && (!OidIsValid(d->dbid) || d->visited < best->visited)))
			best = d;
	}
	memset(best, 0, sizeof(*best));
	best->dbid = dbid;
	return best;
}

PaimonWorkerSlot *
paimon_worker_slot(Oid dbid)
{
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		if (paimon_workers->slots[i].state != PAIMON_SLOT_FREE && paimon_workers->slots[i].dbid == dbid && !paimon_workers->slots[i].helper)
			return &paimon_workers->slots[i];
	}
	return NULL;
}

bool
paimon_request_waiting(Oid dbid)
{
	for (int i = 0; i < PAIMON_REQUESTS; i++)
	{
		if (paimon_workers->requests[i].state == PAIMON_REQUEST_PENDING && paimon_workers->requests[i].dbid == dbid)
			return true;
	}
	return false;
}

/* ---- failures ---- */

static PaimonFailure *
find_failure(Oid dbid, Oid relid, bool compaction, int bucket, bool make)
{
	PaimonFailure *best = NULL;

	for (int i = 0; i < PAIMON_FAILURES; i++)
	{
		PaimonFailure *f = &paimon_workers->failures[i];

		if (f->dbid == dbid && f->relid == relid && f->compaction == compaction && f->bucket == bucket)
			return f;
		if (best == NULL || (OidIsValid(best->dbid) && (!OidIsValid(f->dbid) || f->last < best->last)))
			best = f;
	}
	if (!make)
		return NULL;
	memset(best, 0, sizeof(*best));
	best->dbid = dbid;
	best->relid = relid;
	best->compaction = compaction;
	best->bucket = bucket;
	return best;
}

/* Counts a failure; the next try comes after a time that doubles. */
void
paimon_failure_note(Oid dbid, Oid relid, bool compaction, int bucket, const ErrorData *edata)
{
	TimestampTz now = GetCurrentTimestamp();
	PaimonFailure *f;

	paimon_workers_lock();
	f = find_failure(dbid, relid, compaction, bucket, true);
	f->count++;
	f->sqlerrcode = edata->sqlerrcode;
	f->last = now;
	f->next_try = TimestampTzPlusMilliseconds(now, Min((int64) RETRY_FIRST_MS << Min(f->count - 1, 10), RETRY_MAX_MS));
	strlcpy(f->message, edata->message ? edata->message : "", PAIMON_MESSAGE);
	paimon_workers_unlock();
}

void
paimon_failure_clear(Oid dbid, Oid relid, bool compaction, int bucket)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_FAILURES; i++)
	{
		PaimonFailure *f = &paimon_workers->failures[i];

		if (f->dbid == dbid && f->relid == relid && f->compaction == compaction && (bucket == PAIMON_ALL_BUCKETS || f->bucket == bucket))
			memset(f, 0, sizeof(*f));
	}
	paimon_workers_unlock();
}

/* Forgets failed compactions of buckets that no longer want one: nobody will try again, so nobody would clear them. */
void
paimon_failure_clear_unwanted(Oid dbid, Oid relid, const PaimonCompactWanted *wanted, int nwanted)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_FAILURES; i++)
	{
		PaimonFailure *f = &paimon_workers->failures[i];
		bool		found = false;

		if (f->dbid != dbid || f->relid != relid || !f->compaction || f->bucket < 0)
			continue;
		for (int w = 0; w < nwanted && !found; w++)
			found = wanted[w].bucket == f->bucket;
		if (!found)
			memset(f, 0, sizeof(*f));
	}
	paimon_workers_unlock();
}

TimestampTz
paimon_failure_next_try(Oid dbid, Oid relid, bool compaction, int bucket)
{
	PaimonFailure *f;
	TimestampTz next = 0;

	paimon_workers_lock();
	f = find_failure(dbid, relid, compaction, bucket, false);
	if (f != NULL)
		next = f->next_try;
	paimon_workers_unlock();
	return next;
}

/* ---- the extension is created ---- */

/* Must not fail. */
static void
xact_callback(XactEvent event, void *arg)
{
	if (!created_here || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE))
		return;
	created_here = false;
	if (event == XACT_EVENT_ABORT)
		return;
	paimon_workers_lock();
	paimon_database_note(MyDatabaseId)->wanted = true;
	paimon_workers_unlock();
	paimon_launcher_wake();
}

/* The install script's last words: a worker may come once this transaction has committed. */
Datum
paimon_worker_created(PG_FUNCTION_ARGS)
{
	if (paimon_workers != NULL)
		created_here = true;
	PG_RETURN_VOID();
}

/* ---- set-up ---- */

Size
paimon_worker_shmem_size(void)
{
	return MAXALIGN(sizeof(PaimonWorkers));
}

/* Called with AddinShmemInitLock held. */
void
paimon_worker_shmem_init(void)
{
	bool		found;

	paimon_workers = ShmemInitStruct("paimon workers", sizeof(PaimonWorkers), &found);
	if (!found)
	{
		memset(paimon_workers, 0, sizeof(PaimonWorkers));
		paimon_workers->tranche = LWLockNewTrancheId();
		LWLockInitialize(&paimon_workers->lock, paimon_workers->tranche);
		for (int i = 0; i < PAIMON_REQUESTS; i++)
			ConditionVariableInit(&paimon_workers->requests[i].cv);
	}
	LWLockRegisterTranche(paimon_workers->tranche, "PaimonWorkers");
}

void
paimon_worker_init(void)
{
	DefineCustomIntVariable("paimon.max_workers",
							"Sets the number of background workers that flush and compact paimon tables.",
							"Each database that has something to do gets one, and more if it has more to do than one can and nobody else needs them; "
							"with more databases than workers they take turns. "
							"0 turns them off: then paimon.flush works in the calling session.",
							&paimon_max_workers,
							2, 0, PAIMON_WORKERS_LIMIT,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("paimon.naptime",
							"Sets the time between two looks of a background worker at its tables.",
							"Tables that have much to flush wake it before that.",
							&paimon_naptime,
							1000, 10, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("paimon.large_compaction_size",
							"Sets the size above which a compaction is a large one.",
							"Of the workers that paimon.max_workers allows, one is always free of large compactions.",
							&paimon_large_compaction,
							256 * 1024, 64, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_KB,
							NULL, NULL, NULL);
	RegisterXactCallback(xact_callback, NULL);
	paimon_worker_wait_init();
	paimon_launcher_register();
}
