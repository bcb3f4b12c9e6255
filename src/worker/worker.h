/*-------------------------------------------------------------------------
 *
 * worker.h
 *	  The launcher, one scheduler a database, and how sessions ask them for work.
 *
 * See README.md here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_WORKER_H
#define PAIMON_WORKER_H

#include "postgres.h"

#include "utils/rel.h"

extern void paimon_worker_init(void);	/* GUCs, launcher, transaction callback */
extern Size paimon_worker_shmem_size(void);
extern void paimon_worker_shmem_init(void);

/* What a worker is asked to do with a table. */
#define PAIMON_WORK_FLUSH	0x01
#define PAIMON_WORK_RECLAIM	0x02
#define PAIMON_WORK_SWEEP	0x04	/* with RECLAIM: orphans, free end */
#define PAIMON_WORK_EXPIRE	0x80	/* snapshots, by the table's options, also if it is write-only; RECLAIM does it for others */
#define PAIMON_WORK_COMPACT	0x10	/* as far as the table's options want it */
#define PAIMON_WORK_FULL	0x20	/* with COMPACT: everything into the highest level */

/* How it went. */
typedef enum PaimonWorkOutcome
{
	PAIMON_WORK_DONE,
	PAIMON_WORK_BLOCKED,		/* the worker could not lock the table (H14); a WARNING was given */
	PAIMON_WORK_NO_WORKER		/* workers are off, or none can be had */
} PaimonWorkOutcome;

/*
 * Has a worker do something with a table and waits for it, interruptibly.  Raises the worker's error as ours.  *snapshot_id is the table's newest
 * snapshot after it (DONE only).  The caller must not hold a lock on the table that conflicts with AccessShareLock, nor one that a flush takes.
 */
extern PaimonWorkOutcome paimon_worker_do(Relation rel, int work, int64 *snapshot_id);

/* The same; COMPACT goes for this bucket only (-1: all). */
extern PaimonWorkOutcome paimon_worker_do_bucket(Relation rel, int work, int bucket, int64 *snapshot_id);

/* The same, where an error must not become ours: it is told as a WARNING. */
extern PaimonWorkOutcome paimon_worker_try(Relation rel, int work);

extern void paimon_worker_wait_init(void);	/* compaction.async */

#endif							/* PAIMON_WORKER_H */
