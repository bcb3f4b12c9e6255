/*-------------------------------------------------------------------------
 *
 * compact.h
 *	  Flush, compaction, reclaim and freeze: what turns a table's delta log into run files, merges these, and gives back what nobody needs.
 *
 * See README.md here.  All but compaction runs for one table at a time under the table's flush lock, which is taken before the publish lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_COMPACT_H
#define PAIMON_COMPACT_H

#include "postgres.h"

#include "memtable/table.h"

extern void paimon_compact_init(void);	/* transaction callback, writer-side flush */

/*
 * Who flushes decides how the files are owned until they are registered: a worker has no xid and no snapshot while it merges and holds the files' guards
 * (H13); a backend does it as part of its transaction, whose xid owns the files.
 */
typedef enum PaimonFlushMode
{
	PAIMON_FLUSH_WORKER,
	PAIMON_FLUSH_BACKEND
} PaimonFlushMode;

typedef struct PaimonFlushResult
{
	int64		snapshot_id;	/* newest snapshot of the table, as of the last step; 0 if it has none */
	int64		rows;			/* written into run files, all steps */
	int			nsnapshots;		/* made */
	bool		progress;		/* the last step published something */
} PaimonFlushResult;

/*
 * One step of a flush: log up to the next unnumbered large commit into runs and a snapshot, then the ids of the large commits that follow directly.  In
 * the current transaction, which a worker commits after each step and a backend whenever it likes (CommandCounterIncrement is done here).  True if
 * another step is worth while.  *result is added to; begin with zeros.  The relation is locked AccessShare at least.
 */
extern bool paimon_flush_step(Relation rel, PaimonTable *table, PaimonFlushMode mode, PaimonFlushResult *result);

/* All steps in the current transaction.  Refuses (by error) where the transaction's snapshot would come to see too much. */
extern void paimon_flush_in_backend(Relation rel, PaimonTable *table, PaimonFlushResult *result);

/* ---- compaction ---- */

typedef struct PaimonCompactResult
{
	bool		busy;			/* another one is at work on the bucket: nothing was done */
	bool		lost;			/* its inputs were gone when it came to publish */
	bool		published;
	int64		snapshot_id;	/* published: of the COMPACT snapshot */
	int			files_in;		/* merged ... */
	int			files_out;		/* ... into */
	int			files_lifted;	/* have only changed their level */
	int64		rows_out;
	int64		bytes_in;
	int64		bytes_out;
} PaimonCompactResult;

/* A bucket that wants to be compacted, see paimon_compact_wanted. */
typedef struct PaimonCompactWanted
{
	int32		bucket;
	bool		urgent;			/* its runs are near the stop trigger */
	int64		bytes;			/* of the runs that would be merged */
} PaimonCompactWanted;

/* What is to be moved towards the front of the fork: files with extents behind `cutoff`, if they are not younger than the decision. */
typedef struct PaimonRelocation
{
	uint32		cutoff;			/* 0: nothing */
	uint64		before;			/* file numbers */
	uint32		end;			/* of the fork's used part when it was decided, */
	uint32		gain;			/* of which so many extents may be given back */
} PaimonRelocation;

/* All buckets that want to be compacted by the table's options, palloc'd; *n: how many.  Reads the manifest. */
extern PaimonCompactWanted *paimon_compact_wanted(Relation rel, PaimonTable *table, int *n);

/*
 * All buckets with files that hold the end of a fork that is much longer than what it holds, if moving them is worth it.  `busy`: the table is being written
 * to, so much more free space is left as it is.  Reads the manifest and the map.
 */
extern PaimonCompactWanted *paimon_relocation_wanted(Relation rel, PaimonTable *table, bool busy, PaimonRelocation *where, int *n);

/* What is said of a compaction: */
#define PAIMON_DO_FULL		0x01	/* into the highest level, whatever the options want */
#define PAIMON_DO_REQUESTED	0x02	/* a user asked for it: not held back */
#define PAIMON_DO_HURRY		0x04	/* not held back */

/*
 * Compacts a bucket once, if its runs and the options want it, or fully.  In the current transaction, which a worker commits right after; the
 * bucket's lock stays until then, as does the publish lock if anything was published.  The relation is locked AccessShare at least.  `relocation` (or NULL): if the
 * options want nothing, files of one run are moved.
 */
extern void paimon_compact_bucket(Relation rel, PaimonTable *table, PaimonFlushMode mode, int bucket, int flags,
								  const PaimonRelocation *relocation, PaimonCompactResult *result);

/*
 * A bucket (-1: all) in the current transaction.  Refuses (by error) where the transaction's snapshot would come to see too much; a bucket at which
 * somebody else is gets a NOTICE.
 */
extern void paimon_compact_in_backend(Relation rel, PaimonTable *table, int bucket, bool full);

/*
 * Compactions of the storage that run now are not held back by the throttle for the next `ms` milliseconds: writers wait for them.  Whoever waits calls it
 * again before that time is over.  Never fails; no LWLock may be held.
 */
extern void paimon_throttle_lift(uint64 storage_id, int ms);

/*
 * Asked by every merge now and then, with the bytes read and those to be read: true makes it give up with ERRCODE_LOCK_NOT_AVAILABLE.  src/worker sets it.
 */
extern bool (*paimon_compaction_yield_hook) (int64 done, int64 total);

/* Shared memory of throttle, progress and history. */
extern Size paimon_history_shmem_size(void);
extern void paimon_history_shmem_init(void);

/* ---- expiry of snapshots ---- */

typedef struct PaimonExpireResult
{
	int64		snapshots;		/* expired */
	int64		files;			/* rows of files that none needs any more */
	bool		busy;			/* a publisher was in the way: nothing was done */
	TimestampTz next;			/* when time alone lets files go; PG_INT64_MAX: it does not */
} PaimonExpireResult;

/*
 * Expires what the table's options want, in the current transaction, which is committed right after: the publish lock stays until then.  Does not wait for
 * it.  The relation is locked AccessShare at least.
 */
extern void paimon_expire_snapshots(Relation rel, PaimonTable *table, PaimonExpireResult *result);

/* ---- reclaim (H9) ---- */

typedef struct PaimonReclaimResult
{
	uint32		files;			/* closed files whose extents were freed */
	uint32		orphans;		/* files that nobody knows */
	uint32		extents;		/* freed, of files and log */
	BlockNumber pages_truncated;
	bool		end_is_free;	/* the free end should be given back, but somebody was using the table */
	bool		pending;		/* something is closed that a transaction's snapshot may still need */
} PaimonReclaimResult;

/*
 * Frees what precedes the horizon; with `sweep` also looks for orphans and gives the free end back.  Needs a transaction of its own in which no other
 * lock on the table than AccessShare is held, no snapshot, and which is committed right after.  Does nothing if a flush is running.  For a temporary table
 * any transaction of its session will do: nobody else reads it, and all snapshots here are younger than what earlier transactions have closed.
 */
extern void paimon_reclaim_table(Relation rel, PaimonTable *table, bool sweep, PaimonReclaimResult *result);

/* ---- VACUUM VERBOSE ---- */

/* How the table is, as messages of this level.  Reads the manifest: not with PROC_IN_VACUUM set. */
extern void paimon_health_report(Relation rel, PaimonTable *table, int elevel);

/* ---- how many runs there are ---- */

typedef struct PaimonRunCount
{
	int			fullest;		/* runs of the fullest bucket, those of one commit as one: compare with num-sorted-run.stop-trigger */
	int32		fullest_bucket;
	bool		pending;		/* some await their snapshot id: a flush gives it, and they cannot be merged before */
	int			nbuckets;		/* that have files */
	int64		runs;			/* single ones, of all buckets */
	int64		bytes;
	int64		bottom_bytes;	/* of the oldest run of each bucket, if it is above level 0 */
} PaimonRunCount;

/* The order of `files` changes. */
extern void paimon_count_runs(PaimonFileRow *files, int nfiles, PaimonRunCount *count);
extern void paimon_count_table_runs(PaimonTable *table, Snapshot snapshot, PaimonRunCount *count);

/* ---- freeze (H18) ---- */

/*
 * Replaces xids before `limit` in the log and the extent map; returns the oldest xid left in either, or `oldest`, the oldest one that may still be
 * running, if that is older.  *nbatches counts the batches changed.  Reads the manifest: not with PROC_IN_VACUUM set.
 */
extern TransactionId paimon_freeze_table(Relation rel, PaimonTable *table, TransactionId limit, TransactionId oldest, uint64 *nbatches);

/* The full xid of a 32-bit one that is not in the future and not more than 2^31 in the past. */
extern FullTransactionId paimon_full_xid(TransactionId xid);

/* The oldest full xid that some snapshot in this database may take for running. */
extern FullTransactionId paimon_horizon(Relation rel);

#endif							/* PAIMON_COMPACT_H */
