/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  What has happened to a table since the server's start, how many sorted runs its fullest bucket has, and who waits for them to get fewer.
 *
 * Counters belong to the table, whatever storages it has had; they live in shared memory, in a registry that is larger than the one of tables in use
 * and throws out the longest unused.  The number of runs belongs to the storage.  See README.md here ("Runs and counters").
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_STATS_H
#define PAIMON_STATS_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "memtable/shared.h"
#include "options/options.h"

typedef enum PaimonStat
{
	PAIMON_STAT_ROWS = 0,		/* put into the table by transactions that have committed */
	PAIMON_STAT_BYTES,			/* of them: encoded keys and rows */
	PAIMON_STAT_FLUSHES,		/* that have written files */
	PAIMON_STAT_FLUSH_BYTES,
	PAIMON_STAT_LARGE,			/* large commits */
	PAIMON_STAT_LARGE_BYTES,
	PAIMON_STAT_COMPACTIONS,
	PAIMON_STAT_COMPACT_READ,	/* bytes of files merged, not of those only lifted */
	PAIMON_STAT_COMPACT_BYTES,	/* written */
	PAIMON_STAT_STALLS,
	PAIMON_STAT_STALL_US,
	PAIMON_STAT_GROUPS_HIT,		/* row groups that queries asked for and found open in their process */
	PAIMON_STAT_GROUPS_READ,	/* and those that they had to read */
	PAIMON_STAT_COUNT
} PaimonStat;

typedef struct PaimonStats
{
	TimestampTz since;			/* counting began */
	uint64		values[PAIMON_STAT_COUNT];
} PaimonStats;

/* At once.  Plain atomics, never fails. */
extern void paimon_stats_add(PaimonShared *shared, PaimonStat stat, uint64 n);

/* When the transaction commits (or is prepared); a rollback to a savepoint forgets it.  NULL does nothing. */
extern void paimon_stats_note(PaimonShared *shared, PaimonStat stat, uint64 n);

extern void paimon_stats_get(PaimonShared *shared, PaimonStats *stats);

/* ---- sorted runs of the fullest bucket, those of one commit counted as one ---- */

/* At so many writers wait; PG_UINT32_MAX: they do not.  Compaction leaves as many as its trigger alone. */
static inline uint32
paimon_runs_limit(const PaimonOptions *options)
{
	if (options->write_only || options->stop_trigger == PG_INT32_MAX || options->compaction_trigger == PG_INT32_MAX)
		return PG_UINT32_MAX;
	return (uint32) Max(options->stop_trigger, options->compaction_trigger + 1);
}

#define PAIMON_RUNS_UNKNOWN PG_UINT32_MAX
#define PAIMON_RUNS_ONE_MORE (-1)

/*
 * What is known of it: never less than what is in the manifest, if known at all.  One atomic read; *state, if wanted, is for paimon_runs_counted.
 */
extern uint32 paimon_runs(PaimonShared *shared, uint64 *state);

/*
 * The caller holds the publish lock and has written to the manifest: the fullest bucket will have `runs`, or one more than before, when the transaction
 * commits.  Whoever waits is woken then.  NULL does nothing.
 */
extern void paimon_runs_note(PaimonShared *shared, int runs);

/* The transaction has noted something that is not committed yet: it holds the publish lock. */
extern bool paimon_runs_noted(PaimonShared *shared);

/* Somebody has counted, with a snapshot taken after `state` was read.  Does nothing if something was published since. */
extern void paimon_runs_counted(PaimonShared *shared, uint64 state, uint32 runs);

/* ---- waiting for runs to get fewer ---- */

/* Writers that wait; compactions need not be gentle then. */
extern uint32 paimon_runs_waiting(PaimonShared *shared);

/* Each begin is followed by an end, also on error and exit. */
extern void paimon_runs_wait_begin(PaimonShared *shared);
extern void paimon_runs_wait_end(PaimonShared *shared);

/*
 * Sleeps till something was published, the worker found the table locked, or timeout_ms are over (true).  Interruptible.  The caller has looked at what it
 * waits for since the last call, and calls ConditionVariableCancelSleep when done.
 */
extern bool paimon_runs_sleep(PaimonShared *shared, long timeout_ms, uint32 wait_event);

/* How often a worker could not lock the table (H14). */
extern uint32 paimon_shared_times_blocked(PaimonShared *shared);

/* ---- for memtable/ ---- */

extern Size paimon_stats_shmem_size(void);
extern void paimon_stats_shmem_init(void);
extern void paimon_stats_init(void);	/* sub-transaction callback */
/* The mapping lock is held exclusively.  A storage's counters are those of the table; there may be no place for any. */
extern void paimon_stats_attach(PaimonShared *shared, Oid relid);
extern void paimon_stats_detach(PaimonShared *shared);
extern void paimon_runs_forget(PaimonShared *shared);
/* At the end of the top transaction, before its pins go.  Never fails. */
extern void paimon_stats_at_end(bool commit);

#endif							/* PAIMON_STATS_H */
