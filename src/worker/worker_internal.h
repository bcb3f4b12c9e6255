/*-------------------------------------------------------------------------
 *
 * worker_internal.h
 *	  What launcher, schedulers and waiting sessions share: the registry of workers, requests, failures of tables, notes on databases.
 *
 * One small struct in shared memory under one LWLock, which is held for moments only and over nothing that can throw or wait.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_WORKER_INTERNAL_H
#define PAIMON_WORKER_INTERNAL_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "storage/condition_variable.h"
#include "storage/latch.h"
#include "storage/lwlock.h"

#include "compat.h"
#include "worker/worker.h"

#define PAIMON_WORKERS_LIMIT 64 /* upper bound of paimon.max_workers */
#define PAIMON_REQUESTS 128		/* sessions that wait for a worker at the same time; more have to wait for a place */
#define PAIMON_FAILURES 256		/* tables with a failure that are remembered */
#define PAIMON_DATABASES 512	/* databases that are remembered */
#define PAIMON_MESSAGE 256		/* bytes of an error message kept */

typedef enum PaimonSlotState
{
	PAIMON_SLOT_FREE = 0,
	PAIMON_SLOT_STARTING,		/* the launcher asked the postmaster for it */
	PAIMON_SLOT_RUNNING
} PaimonSlotState;

typedef struct PaimonWorkerSlot
{
	PaimonSlotState state;
	Oid			dbid;
	pid_t		pid;
	TimestampTz started;
	Oid			relid;			/* at work on it; Invalid = idle */
	int			work;
	bool		give_way;		/* other databases wait: exit when nothing is to be done at once */
	int64		flushes;		/* that made a snapshot */
	int64		rows;			/* flushed */
	int64		errors;
	TimestampTz error_time;
	char		error[PAIMON_MESSAGE];
} PaimonWorkerSlot;

typedef enum PaimonRequestState
{
	PAIMON_REQUEST_FREE = 0,
	PAIMON_REQUEST_PENDING,
	PAIMON_REQUEST_RUNNING,
	PAIMON_REQUEST_DONE
} PaimonRequestState;

typedef struct PaimonRequest
{
	PaimonRequestState state;
	bool		abandoned;		/* nobody waits any more: whoever finishes it frees it */
	Oid			dbid;
	Oid			relid;
	int			work;
	int			bucket;			/* COMPACT: which one, or -1 */
	pid_t		worker;			/* RUNNING */
	PaimonWorkOutcome outcome;	/* DONE: */
	int64		snapshot_id;
	int			sqlerrcode;		/* not 0: it failed */
	char		message[PAIMON_MESSAGE];
	ConditionVariable cv;
} PaimonRequest;

/* A table that could not be worked on, kept until it can.  What stops a compaction need not stop flushes: they are counted apart. */
typedef struct PaimonFailure
{
	Oid			dbid;			/* Invalid = free */
	Oid			relid;
	bool		compaction;
	int64		count;			/* in a row */
	int			sqlerrcode;
	TimestampTz last;
	TimestampTz next_try;
	char		message[PAIMON_MESSAGE];
} PaimonFailure;

typedef struct PaimonDatabase
{
	Oid			dbid;			/* Invalid = free */
	bool		wanted;			/* the extension was created there */
	TimestampTz visited;		/* last time a worker was there; 0 = never */
	TimestampTz swept;			/* last time all its tables were looked at */
	TimestampTz not_before;		/* the last worker was thrown out, or failed */
	TimestampTz expire_at;		/* then a worker is wanted: snapshots expire by time; 0 = never */
} PaimonDatabase;

typedef struct PaimonWorkers
{
	LWLock		lock;
	int			tranche;
	pid_t		launcher_pid;	/* 0 = none */
	TimestampTz launcher_started;
	Latch	   *launcher_latch;
	PaimonWorkerSlot slots[PAIMON_WORKERS_LIMIT];
	PaimonRequest requests[PAIMON_REQUESTS];
	PaimonFailure failures[PAIMON_FAILURES];
	PaimonDatabase databases[PAIMON_DATABASES];
} PaimonWorkers;

extern PaimonWorkers *paimon_workers;
extern int	paimon_max_workers;
extern int	paimon_naptime;

/* ---- worker_registry.c; the lock is taken inside unless said otherwise ---- */

extern void paimon_workers_lock(void);
extern void paimon_workers_unlock(void);
extern void paimon_launcher_wake(void);

/* The note on a database, made if there is none; the longest unvisited one makes room.  Lock held. */
extern PaimonDatabase *paimon_database_note(Oid dbid);

/* Slot of a database's worker, starting or running; NULL if there is none.  Lock held. */
extern PaimonWorkerSlot *paimon_worker_slot(Oid dbid);

extern bool paimon_request_waiting(Oid dbid);	/* lock held */

extern void paimon_failure_note(Oid dbid, Oid relid, bool compaction, const ErrorData *edata);
extern void paimon_failure_clear(Oid dbid, Oid relid, bool compaction);
/* When the table may be tried again; 0 = now. */
extern TimestampTz paimon_failure_next_try(Oid dbid, Oid relid, bool compaction);

/* ---- requests (worker_request.c), for the scheduler ---- */

extern PaimonRequest *paimon_request_take(Oid dbid);
extern void paimon_request_finish(PaimonRequest *r, PaimonWorkOutcome outcome, int64 snapshot_id, const ErrorData *edata);
/* Nobody will serve these. */
extern void paimon_request_refuse_all(Oid dbid);
/* A worker that ends gives back what it was at.  Lock held. */
extern void paimon_request_give_back(pid_t worker);

/* ---- entry points of the background processes ---- */

extern PGDLLEXPORT void paimon_launcher_main(Datum arg);
extern PGDLLEXPORT void paimon_worker_main(Datum arg);
extern void paimon_launcher_register(void);

/* ---- a visit to a table (worker_table.c) ---- */

#define PAIMON_WORK_CHECK	0x08	/* attach, and ask for a flush if a large commit has no snapshot id */
#define PAIMON_WORK_COMPACT_NEXT 0x40	/* one compaction of one bucket, if one wants it and the table is not write-only */

typedef struct PaimonVisit
{
	PaimonWorkOutcome outcome;
	bool		gone;			/* the table is not there, or not ours, any more */
	bool		failed;			/* an error was logged and noted */
	bool		cancelled;		/* somebody wanted us out of the way */
	bool		progress;		/* of the flush */
	bool		compacting;		/* what failed, if something did, was a compaction */
	bool		compacted;		/* one was published */
	int			next_bucket;	/* COMPACT_NEXT: where to go on, -1 if nothing wants to be compacted */
	bool		reclaim_pending;
	uint32		freed;			/* extents */
	TimestampTz expire_at;		/* of a visit that reclaims: when time alone lets files go; PG_INT64_MAX if it does not */
	int64		snapshot_id;
	int64		rows;
	int			nsnapshots;
	ErrorData  *edata;			/* failed: in the caller's memory context */
} PaimonVisit;

/* In transactions of its own; errors are caught.  bucket: for compactions, see above; COMPACT_NEXT looks from there on. */
extern void paimon_visit_table(Oid relid, uint64 storage_id, int work, int bucket, PaimonVisit *visit);

/* The tables of this database; in a transaction of its own, result in the current context. */
extern List *paimon_list_tables(void);

#endif							/* PAIMON_WORKER_INTERNAL_H */
