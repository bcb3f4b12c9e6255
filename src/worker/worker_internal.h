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

#include "compact/compact.h"
#include "compat.h"
#include "worker/worker.h"

#define PAIMON_WORKERS_LIMIT 64 /* upper bound of paimon.max_workers */
#define PAIMON_REQUESTS 128		/* sessions that wait for a worker at the same time; more have to wait for a place */
#define PAIMON_FAILURES 256		/* tables with a failure that are remembered */
#define PAIMON_DATABASES 512	/* databases that are remembered */
#define PAIMON_JOBS 1024		/* buckets that wait for a compaction; more are found again later */
#define PAIMON_NEWS 512			/* tables of which helpers have something to tell */
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
	bool		helper;			/* beside its database's scheduler: requests, flushes and compactions only */
	bool		large;			/* at a large compaction */
	TimestampTz busy_since;		/* 0 = idle */
	Latch	   *latch;
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
	int64		bytes;			/* COMPACT: at most so many are to be read */
	TimestampTz posted;
	TimestampTz not_before;		/* put back: somebody else is at it */
	int			put_back;		/* so often */
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
	int			bucket;			/* of a compaction; else -1 */
	int64		count;			/* in a row */
	int			sqlerrcode;
	TimestampTz last;
	TimestampTz next_try;
	char		message[PAIMON_MESSAGE];
} PaimonFailure;

/* A bucket that wants to be compacted. */
typedef struct PaimonJob
{
	PaimonRequestState state;	/* never DONE */
	Oid			dbid;
	Oid			relid;
	int			bucket;
	int64		bytes;
	bool		urgent;
	PaimonRelocation relocation;	/* cutoff not 0: the table rests, and these files of the bucket are to be moved */
	TimestampTz posted;
	TimestampTz due;			/* the smallest goes first */
	pid_t		worker;			/* RUNNING */
} PaimonJob;

/* What a helper has done to a table, for the scheduler, which decides what comes next. */
#define PAIMON_NEWS_FLUSHED		0x01
#define PAIMON_NEWS_COMPACTED	0x02
#define PAIMON_NEWS_NOT_COMPACTED 0x04	/* somebody was in the way, or it failed */
#define PAIMON_NEWS_GONE		0x08
#define PAIMON_NEWS_RECLAIM		0x10	/* something waits for the horizon */

typedef struct PaimonNewsItem
{
	Oid			dbid;			/* Invalid = free */
	Oid			relid;
	int			news;
} PaimonNewsItem;

typedef struct PaimonDatabase
{
	Oid			dbid;			/* Invalid = free */
	bool		wanted;			/* the extension was created there */
	TimestampTz visited;		/* last time a worker was there; 0 = never */
	TimestampTz swept;			/* last time all its tables were looked at */
	TimestampTz not_before;		/* the last worker was thrown out, or failed */
	TimestampTz expire_at;		/* then a worker is wanted: snapshots expire by time; 0 = never */
	bool		look;			/* the scheduler has to look at all tables: news were lost */
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
	PaimonJob	jobs[PAIMON_JOBS];
	PaimonNewsItem news[PAIMON_NEWS];
} PaimonWorkers;

extern PaimonWorkers *paimon_workers;
extern int	paimon_max_workers;
extern int	paimon_naptime;
extern int	paimon_large_compaction;	/* kB */

/* ---- worker_registry.c; the lock is taken inside unless said otherwise ---- */

extern void paimon_workers_lock(void);
extern void paimon_workers_unlock(void);
extern void paimon_launcher_wake(void);

/* The note on a database, made if there is none; the longest unvisited one makes room.  Lock held. */
extern PaimonDatabase *paimon_database_note(Oid dbid);

/* Slot of a database's scheduler, starting or running; NULL if there is none.  Lock held. */
extern PaimonWorkerSlot *paimon_worker_slot(Oid dbid);

extern bool paimon_request_waiting(Oid dbid);	/* lock held */

/* bucket: of a compaction, else -1. */
#define PAIMON_ALL_BUCKETS (-2)	/* clear */
extern void paimon_failure_note(Oid dbid, Oid relid, bool compaction, int bucket, const ErrorData *edata);
extern void paimon_failure_clear(Oid dbid, Oid relid, bool compaction, int bucket);
extern void paimon_failure_clear_unwanted(Oid dbid, Oid relid, const PaimonCompactWanted *wanted, int nwanted);
/* When the table, or the bucket, may be tried again; 0 = now. */
extern TimestampTz paimon_failure_next_try(Oid dbid, Oid relid, bool compaction, int bucket);

/* ---- requests (worker_request.c), for the scheduler ---- */

/* may_large: a large compaction, too, if one may run now. */
extern PaimonRequest *paimon_request_take(Oid dbid, bool may_large);
/* Somebody else is at the bucket: later. */
extern void paimon_request_put_back(PaimonRequest *r);
extern void paimon_request_finish(PaimonRequest *r, PaimonWorkOutcome outcome, int64 snapshot_id, const ErrorData *edata);
/* Nobody will serve these. */
extern void paimon_request_refuse_all(Oid dbid);
/* A worker that ends gives back what it was at.  Lock held. */
extern void paimon_request_give_back(pid_t worker);

/* ---- compactions that wait, news (worker_jobs.c); the lock is taken inside unless said otherwise ---- */

/* False if there is no room.  relocation: NULL, or what is to be moved. */
extern bool paimon_job_post(Oid relid, int bucket, int64 bytes, bool urgent, const PaimonRelocation *relocation);
/* The one that is due first, now the caller's to end.  may_large: a large one, too, if it may run now. */
extern bool paimon_job_take(bool may_large, PaimonJob *job);
extern void paimon_job_end(const PaimonJob *job);
extern void paimon_jobs_forget(Oid relid);	/* of a table; Invalid: all that wait in this database */
/* A worker that ends gives back what it was at.  Lock held. */
extern void paimon_job_give_back(pid_t worker);
extern bool paimon_jobs_wait(Oid dbid);
/* A large compaction that nobody has taken, since when; 0: there is none, or it must not run now.  Lock held. */
extern TimestampTz paimon_large_waits_since(Oid dbid);

/* Is it large, and may one more large compaction run on this server now?  Lock held. */
extern bool paimon_is_large(int64 bytes);
extern bool paimon_large_allowed(void);

/* Is another worker of this database compacting the table? */
extern bool paimon_others_compact(Oid relid);
/* Takes a table for a flush: false if another worker is at that. */
extern bool paimon_claim_flush(PaimonWorkerSlot *mine, Oid relid);

extern void paimon_news_tell(Oid relid, int news);
extern bool paimon_news_take(Oid *relid, int *news);

extern int	paimon_helpers(Oid dbid, bool idle);	/* starting or running; idle ones only.  Lock held. */
extern void paimon_helpers_wake(Oid dbid);
/* Should the launcher start a helper there?  flush: a flush is due. */
extern bool paimon_helper_wanted(Oid dbid, bool flush);

/* ---- schedulers and helpers as processes (worker_process.c) ---- */

extern bool paimon_worker_enter(Oid dbid, bool helper);
extern void paimon_worker_connect(Oid dbid);
extern bool paimon_worker_extension_here(void);
extern PaimonWorkerSlot *paimon_my_slot;
extern bool paimon_worker_unfinished;	/* set by a scheduler that gives way with work at hand */

/* ---- what they do alike (worker_work.c) ---- */

/* Each serves what is there now and returns whether it did anything. */
extern bool paimon_worker_serve_requests(void);
extern bool paimon_worker_flush_due(bool *later);
extern bool paimon_worker_run_job(void);

/* ---- entry points of the background processes ---- */

extern PGDLLEXPORT void paimon_launcher_main(Datum arg);
extern PGDLLEXPORT void paimon_worker_main(Datum arg);
extern PGDLLEXPORT void paimon_helper_main(Datum arg);
extern void paimon_launcher_register(void);

/* ---- a visit to a table (worker_table.c) ---- */

#define PAIMON_WORK_CHECK	0x08	/* attach, and ask for a flush if a large commit has no snapshot id */
#define PAIMON_WORK_COMPACT_NEXT 0x40	/* one compaction of the bucket, if it wants it and the table is not write-only */
#define PAIMON_WORK_LOOK	0x1000	/* which buckets want that? */
#define PAIMON_WORK_HURRY	0x2000	/* with COMPACT_NEXT: the throttle does not hold it back */
#define PAIMON_WORK_FAR		0x4000	/* with RECLAIM | SWEEP: what should be moved to the front? */
#define PAIMON_WORK_BUSY	0x8000	/* with FAR: the table does not rest */

typedef struct PaimonVisit
{
	PaimonWorkOutcome outcome;
	bool		gone;			/* the table is not there, or not ours, any more */
	bool		failed;			/* an error was logged and noted */
	bool		cancelled;		/* somebody wanted us out of the way */
	bool		progress;		/* of the flush */
	bool		compacting;		/* what failed, if something did, was a compaction */
	bool		compacted;		/* one was published */
	bool		busy;			/* BLOCKED, because another compaction is at the bucket */
	int			bucket;			/* of the compaction that failed */
	PaimonCompactWanted *wanted;	/* LOOK: in the caller's memory context */
	int			nwanted;
	bool		looked;			/* LOOK: these are all; not for write-only tables, which are compacted on request */
	PaimonCompactWanted *far;	/* FAR: in the caller's memory context */
	int			nfar;
	PaimonRelocation relocation;
	bool		reclaiming;		/* reclaiming was begun: what failed, if something did, was that */
	bool		reclaim_pending;
	uint32		freed;			/* extents */
	bool		end_is_free;	/* but could not be given back */
	TimestampTz expire_at;		/* of a visit that reclaims: when time alone lets files go; PG_INT64_MAX if it does not */
	int64		snapshot_id;
	int64		rows;
	int			nsnapshots;
	ErrorData  *edata;			/* failed: in the caller's memory context */
} PaimonVisit;

/* In transactions of its own; errors are caught.  bucket: for compactions, -1: all.  relocation: with COMPACT_NEXT, or NULL. */
extern void paimon_visit_table(Oid relid, uint64 storage_id, int work, int bucket, const PaimonRelocation *relocation, PaimonVisit *visit);

/* The same, told in our slot and by news to the scheduler; the agenda says afterwards when to come again. */
extern void paimon_worker_visit(Oid relid, uint64 storage_id, int work, int bucket, const PaimonRelocation *relocation, PaimonVisit *visit);
extern bool paimon_worker_may_yield(int64 done, int64 total);

/* The tables of this database; in a transaction of its own, result in the current context. */
extern List *paimon_list_tables(void);

#endif							/* PAIMON_WORKER_INTERNAL_H */
