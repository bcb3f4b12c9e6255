/*-------------------------------------------------------------------------
 *
 * paimon_am.c
 *	  Entry of the library: brings every module up, in shared_preload_libraries.
 *
 * A module with something to set up at load (GUCs, hooks, the resource manager,
 * workers) or with shared memory has a line in `modules`.  Loaded any other way
 * (LOAD, the first call of one of our functions), the library does nothing at all: half
 * of what it needs can only be had while the postmaster starts, and tables written
 * without the rest would be damaged.  paimon_require_preload keeps people out then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/acl.h"
#include "utils/guc.h"

#include "am/am.h"
#include "compact/compact.h"
#include "compat.h"
#include "ddl/ddl.h"
#include "memtable/buffer.h"
#include "memtable/shared.h"
#include "memtable/table.h"
#include "paimon_am.h"
#include "stop.h"
#include "storage/storage.h"
#include "worker/stall.h"
#include "worker/worker.h"

PG_MODULE_MAGIC;

/*
 * Every member may be NULL.
 *
 * init runs in _PG_init: define GUCs, install hooks (saving the previous one), register
 * the resource manager and background workers.  It must not touch shared memory.
 * shmem_size returns bytes and may call RequestNamedLWLockTranche; GUCs have their
 * values.  shmem_init runs with AddinShmemInitLock held, in the postmaster, and again
 * after a crash restart: it uses ShmemInitStruct/ShmemInitHash and initialises when
 * not found.
 */
typedef struct PaimonModule
{
	const char *name;
	void		(*init) (void);
	Size		(*shmem_size) (void);
	void		(*shmem_init) (void);
} PaimonModule;

/* In the order of their setup; a module may lean on those above it. */
static const PaimonModule modules[] = {
#ifdef PAIMON_TESTING
	{"stop", NULL, paimon_stop_shmem_size, paimon_stop_shmem_init},
#endif
	{"storage", paimon_rmgr_register, NULL, NULL},
	{"memtables", paimon_shared_init, paimon_shared_shmem_size, paimon_shared_shmem_init},
	{"tables", paimon_table_init, NULL, NULL},
	{"write buffer", paimon_buffer_init, NULL, NULL},
	{"flush", paimon_compact_init, paimon_history_shmem_size, paimon_history_shmem_init},
	{"ddl", paimon_ddl_init, NULL, NULL},
	{"storages of dropped tables", paimon_ddl_hooks_init, NULL, NULL},
	{"executor", paimon_executor_init, NULL, NULL},
	{"upserts", paimon_upsert_init, NULL, NULL},
	{"index paths", paimon_path_init, NULL, NULL},
	{"custom scan", paimon_customscan_init, NULL, NULL},
	{"joins", paimon_join_init, NULL, NULL},
	{"workers", paimon_worker_init, paimon_worker_shmem_size, paimon_worker_shmem_init},
	{"stalls", paimon_stall_init, NULL, NULL},
	{NULL, NULL, NULL, NULL}
};

static bool preloaded = false;
static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

extern PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(paimon_check_preload);

static void
request_shmem(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	for (const PaimonModule *m = modules; m->name != NULL; m++)
	{
		if (m->shmem_size != NULL)
			RequestAddinShmemSpace(m->shmem_size());
	}
}

static void
startup_shmem(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	for (const PaimonModule *m = modules; m->name != NULL; m++)
	{
		if (m->shmem_init != NULL)
			m->shmem_init();
	}
	LWLockRelease(AddinShmemInitLock);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	preloaded = true;

	for (const PaimonModule *m = modules; m->name != NULL; m++)
	{
		if (m->init != NULL)
			m->init();
	}
	MarkGUCPrefixReserved("paimon");

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_shmem;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = startup_shmem;
}

bool
paimon_is_preloaded(void)
{
	return preloaded;
}

/*
 * The setting's value goes into the message for those only who may see it: it can
 * be reached by any user through the access method's handler.
 */
void
paimon_require_preload(void)
{
	const char *current = "";
	bool		visible;

	if (preloaded)
		return;

	visible = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_SETTINGS);
	if (visible)
		current = GetConfigOption("shared_preload_libraries", true, false);
	if (current == NULL || current[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("paimon_am must be loaded via shared_preload_libraries"),
				 visible ? errdetail("shared_preload_libraries is currently empty.") : 0,
				 errhint("Put shared_preload_libraries = 'paimon_am' into postgresql.conf%s and restart the server.",
						 visible ? "" : ", after what it lists already,")));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("paimon_am must be loaded via shared_preload_libraries"),
			 errdetail("shared_preload_libraries is currently '%s'.", current),
			 errhint("Put shared_preload_libraries = '%s,paimon_am' into postgresql.conf and restart the server.",
					 current)));
}

/* paimon.check_preload(): the install script calls it first. */
Datum
paimon_check_preload(PG_FUNCTION_ARGS)
{
	paimon_require_preload();
	PAIMON_STOP_POINT("check_preload");
	PG_RETURN_VOID();
}
