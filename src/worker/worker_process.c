/*-------------------------------------------------------------------------
 *
 * worker_process.c
 *	  Schedulers and helpers as processes: the slot they take, the database they connect to, what they leave behind.
 *
 * They run flagged as an autovacuum worker is (PROC_IS_AUTOVACUUM): DROP DATABASE, CREATE DATABASE ... TEMPLATE and ALTER DATABASE RENAME then
 * throw them out by themselves, and a session that one blocks cancels it after deadlock_timeout.  They read no user's heap table, since CREATE INDEX
 * CONCURRENTLY does not wait for them, and call no user's code: they are the bootstrap superuser.
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
#include "utils/timestamp.h"

#include "catalog/manifest.h"
#include "memtable/shared.h"
#include "run/run.h"
#include "worker/agenda.h"

#define THROWN_OUT_MS	2000	/* after an exit that was not our wish: DROP DATABASE may be at work */

PaimonWorkerSlot *paimon_my_slot = NULL;
bool		paimon_worker_unfinished = false;

/* Runs when the transaction has been aborted and LWLocks are released. */
static void
leave(int code, Datum arg)
{
	PaimonDatabase *d;
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz expire_at;
	bool		known = paimon_agenda_expiry(&expire_at);

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
		if (known)
			d->expire_at = expire_at;
		d->wanted |= paimon_worker_unfinished || code != 0;
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
	paimon_compaction_yield_hook = paimon_worker_may_yield;
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
