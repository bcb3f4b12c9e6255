/*-------------------------------------------------------------------------
 *
 * worker_launcher.c
 *	  The launcher: sees to it that a database in which something is to be done has a worker.
 *
 * It is in no database itself and reads pg_database only.  Who runs is in shared memory, so a launcher that was killed and came back starts no second
 * workers.  A database is visited once after the server's start and when the extension was created there; after that only when a session asks,
 * a table of it is due for a flush, or snapshots that keep files are due to expire.  Each turn of its loop takes interrupts, or DROP DATABASE would wait for us (process barriers).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "memtable/shared.h"
#include "worker/worker_internal.h"

#define LIST_MS 60000			/* pg_database is read this often, and when somebody asks from a database that we do not know */
#define START_MS 30000			/* a worker that has not come by then will not */
#define BUSY_LOOK_MS 200		/* how often the launcher looks while workers are busy */
#define RETRY_MS 5000			/* the postmaster has no place for a worker */

typedef struct Database
{
	Oid			dbid;
	char		name[NAMEDATALEN];
} Database;

static MemoryContext list_cxt = NULL;
static List *databases = NIL;	/* of Database, in list_cxt */
static TimestampTz listed = 0;
static int	turn = 0;			/* whose turn it is first */

static BackgroundWorkerHandle *handles[PAIMON_WORKERS_LIMIT];
static TimestampTz registered[PAIMON_WORKERS_LIMIT];

static void
leave(int code, Datum arg)
{
	paimon_shared_set_listener(InvalidOid, NULL);
	paimon_workers_lock();
	if (paimon_workers->launcher_pid == MyProcPid)
	{
		paimon_workers->launcher_pid = 0;
		paimon_workers->launcher_latch = NULL;
	}
	paimon_workers_unlock();
}

static void
enter(void)
{
	paimon_workers_lock();
	paimon_workers->launcher_pid = MyProcPid;
	paimon_workers->launcher_started = GetCurrentTimestamp();
	paimon_workers->launcher_latch = MyLatch;
	paimon_workers_unlock();
	on_shmem_exit(leave, (Datum) 0);
	paimon_shared_set_listener(InvalidOid, MyLatch);
}

/* ---- databases ---- */

static bool is_listed(Oid dbid);

/* Databases that are gone, or closed, want nothing. */
static void
forget_strangers(void)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_DATABASES; i++)
	{
		PaimonDatabase *d = &paimon_workers->databases[i];

		d->wanted = d->wanted && is_listed(d->dbid);
	}
	paimon_workers_unlock();
}

/* Those one can connect to, no templates: those are to be copied without anybody in them. */
static void
list_databases(void)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	MemoryContextReset(list_cxt);
	databases = NIL;
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) GetTransactionSnapshot();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		MemoryContext old;
		Database   *d;

		if (form->datistemplate || !form->datallowconn)
			continue;
		old = MemoryContextSwitchTo(list_cxt);
		d = palloc(sizeof(Database));
		d->dbid = form->oid;
		strlcpy(d->name, NameStr(form->datname), NAMEDATALEN);
		databases = lappend(databases, d);
		MemoryContextSwitchTo(old);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	MemoryContextSwitchTo(TopMemoryContext);
	pgstat_report_activity(STATE_IDLE, NULL);
	listed = GetCurrentTimestamp();
	forget_strangers();
}

static bool
is_listed(Oid dbid)
{
	ListCell   *lc;

	foreach(lc, databases)
	{
		if (((Database *) lfirst(lc))->dbid == dbid)
			return true;
	}
	return false;
}

/* Has somebody called from a database that is not in our list? */
static bool
stranger_calls(void)
{
	bool		result = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_REQUESTS && !result; i++)
	{
		PaimonRequest *r = &paimon_workers->requests[i];

		result = r->state == PAIMON_REQUEST_PENDING && !is_listed(r->dbid);
	}
	for (int i = 0; i < PAIMON_DATABASES && !result; i++)
	{
		PaimonDatabase *d = &paimon_workers->databases[i];

		result = d->wanted && !is_listed(d->dbid);
	}
	paimon_workers_unlock();
	return result;
}

/* ---- workers ---- */

/* Frees slots of workers that were asked for and never came. */
static void
clear_slots(void)
{
	TimestampTz now = GetCurrentTimestamp();

	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];
		bool		stopped = false;
		pid_t		pid;

		if (handles[i] != NULL && GetBackgroundWorkerPid(handles[i], &pid) == BGWH_STOPPED)
		{
			stopped = true;
			/* Who goes at once has perhaps not found his database any more. */
			if (!TimestampDifferenceExceeds(registered[i], now, RETRY_MS))
				listed = 0;
			pfree(handles[i]);
			handles[i] = NULL;
		}
		paimon_workers_lock();
		if (slot->state == PAIMON_SLOT_STARTING && (stopped || TimestampDifferenceExceeds(slot->started, now, START_MS)))
		{
			paimon_database_note(slot->dbid)->not_before = TimestampTzPlusMilliseconds(now, RETRY_MS);
			memset(slot, 0, sizeof(*slot));
		}
		paimon_workers_unlock();
	}
}

/* Reserves a slot; -1 if all that are allowed are taken. */
static int
reserve_slot(Oid dbid, bool helper)
{
	int			used = 0;
	int			result = -1;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		if (paimon_workers->slots[i].state != PAIMON_SLOT_FREE)
			used++;
		else if (result < 0 && handles[i] == NULL)
			result = i;
	}
	if (used >= paimon_max_workers)
		result = -1;
	if (result >= 0)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[result];

		memset(slot, 0, sizeof(*slot));
		slot->state = PAIMON_SLOT_STARTING;
		slot->dbid = dbid;
		slot->helper = helper;
		slot->started = GetCurrentTimestamp();
	}
	paimon_workers_unlock();
	return result;
}

/* The running ones are asked to end: helpers after what they are at, schedulers soon.  For a helper only who is idle in other databases. */
static void
ask_to_give_way(Oid dbid, bool for_helper)
{
	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT; i++)
	{
		PaimonWorkerSlot *slot = &paimon_workers->slots[i];

		if (slot->state != PAIMON_SLOT_RUNNING || (for_helper && (slot->dbid == dbid || slot->busy_since != 0)))
			continue;
		slot->give_way = true;
		if (slot->latch != NULL)
			SetLatch(slot->latch);
	}
	paimon_workers_unlock();
}

/* The postmaster has no place: nobody shall wait for us in vain. */
static void
start_failed(int i, Oid dbid)
{
	bool		helper = paimon_workers->slots[i].helper;

	paimon_workers_lock();
	memset(&paimon_workers->slots[i], 0, sizeof(PaimonWorkerSlot));
	paimon_database_note(dbid)->not_before = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), RETRY_MS);
	paimon_workers_unlock();
	if (helper)
		return;					/* the scheduler does it all */
	paimon_request_refuse_all(dbid);
	ereport(LOG,
			(errmsg("could not start a background worker for paimon tables of database with OID %u", dbid),
			 errhint("Increase max_worker_processes.")));
}

/* False if there was no place: those who have one are asked to give way. */
static bool
start_worker(const Database *d, bool helper)
{
	BackgroundWorker worker;
	int			i = reserve_slot(d->dbid, helper);

	if (i < 0)
	{
		ask_to_give_way(d->dbid, helper);
		return false;
	}
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "paimon_am", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, helper ? "paimon_helper_main" : "paimon_worker_main", BGW_MAXLEN);
	snprintf(worker.bgw_name, BGW_MAXLEN, "paimon %s %s", helper ? "helper" : "worker", d->name);
	strlcpy(worker.bgw_type, "paimon worker", BGW_MAXLEN);
	worker.bgw_main_arg = ObjectIdGetDatum(d->dbid);
	worker.bgw_notify_pid = MyProcPid;
	registered[i] = GetCurrentTimestamp();
	if (!RegisterDynamicBackgroundWorker(&worker, &handles[i]))
		start_failed(i, d->dbid);
	return true;
}

/* Does a table of the database wait for a flush, or for a sweep? */
static bool
has_due(Oid dbid)
{
	int			n;
	PaimonSharedInfo *list = paimon_shared_list(dbid, &n);
	bool		due = false;

	for (int i = 0; i < n && !due; i++)
		due = list[i].due || list[i].sweep;
	pfree(list);
	return due;
}

static bool
wants_worker(Oid dbid)
{
	TimestampTz now = GetCurrentTimestamp();
	PaimonDatabase *d;
	bool		wanted;
	bool		possible;

	paimon_workers_lock();
	d = paimon_database_note(dbid);
	possible = paimon_worker_slot(dbid) == NULL && d->not_before <= now;
	wanted = d->visited == 0 || d->wanted || paimon_request_waiting(dbid) || (d->expire_at != 0 && d->expire_at <= now);
	paimon_workers_unlock();
	return possible && (wanted || has_due(dbid));
}

static void
start_workers(void)
{
	int			n = list_length(databases);
	int			nschedulers = 0;

	if (n == 0 || paimon_max_workers == 0)
		return;
	turn = (turn + 1) % n;
	for (int i = 0; i < n; i++)
	{
		Database   *d = list_nth(databases, (turn + i) % n);

		CHECK_FOR_INTERRUPTS();
		if (!wants_worker(d->dbid))
			continue;
		nschedulers++;
		if (!start_worker(d, false))
			continue;
		paimon_workers_lock();
		paimon_database_note(d->dbid)->wanted = false;
		paimon_workers_unlock();
	}
	if (nschedulers > 0)
		return;					/* they come first, and will say if they need help */
	for (int i = 0; i < n; i++)
	{
		Database   *d = list_nth(databases, (turn + i) % n);

		CHECK_FOR_INTERRUPTS();
		if (paimon_helper_wanted(d->dbid, has_due(d->dbid)))
			(void) start_worker(d, true);
	}
}

/* Then it may need help soon. */
static bool
somebody_is_busy(void)
{
	bool		result = false;

	paimon_workers_lock();
	for (int i = 0; i < PAIMON_WORKERS_LIMIT && !result; i++)
		result = paimon_workers->slots[i].state == PAIMON_SLOT_RUNNING && paimon_workers->slots[i].busy_since != 0;
	paimon_workers_unlock();
	return result;
}

void
paimon_launcher_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	enter();
	pgstat_report_appname("paimon launcher");
	list_cxt = AllocSetContextCreate(TopMemoryContext, "paimon launcher databases", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(TopMemoryContext);

	for (;;)
	{
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (listed == 0 || TimestampDifferenceExceeds(listed, GetCurrentTimestamp(), LIST_MS) || stranger_calls())
			list_databases();
		clear_slots();
		start_workers();
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, somebody_is_busy() ? BUSY_LOOK_MS : Max(paimon_naptime, 1000),
						 PG_WAIT_EXTENSION);
	}
}

/* In _PG_init, in the postmaster.  While pg_upgrade works on a cluster nothing may change in it. */
void
paimon_launcher_register(void)
{
	BackgroundWorker worker;

	if (IsBinaryUpgrade)
		return;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = 1;
	strlcpy(worker.bgw_library_name, "paimon_am", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "paimon_launcher_main", BGW_MAXLEN);
	strlcpy(worker.bgw_name, "paimon launcher", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "paimon launcher", BGW_MAXLEN);
	RegisterBackgroundWorker(&worker);
}
