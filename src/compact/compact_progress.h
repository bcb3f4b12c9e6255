/*-------------------------------------------------------------------------
 *
 * compact_progress.h
 *	  What is known of compactions while they run and afterwards; how fast they may go.
 *
 * compact_history.c keeps those that run (paimon.compaction_progress) and a ring of those that have ended (paimon.compaction_history) in shared
 * memory; compact_throttle.c holds one back.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_COMPACT_PROGRESS_H
#define PAIMON_COMPACT_PROGRESS_H

#include "postgres.h"

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/lwlock.h"

#include "compact/compact_internal.h"

#define PAIMON_COMPACTIONS_RUNNING 128	/* that are shown at the same time; more go unseen and unthrottled by each other */
#define PAIMON_HISTORY_MESSAGE 256

typedef enum PaimonCompactionPhase
{
	PAIMON_PHASE_CHOOSING,
	PAIMON_PHASE_MERGING,
	PAIMON_PHASE_PUBLISHING,
	PAIMON_PHASE_COMMITTING
} PaimonCompactionPhase;

typedef enum PaimonCompactionOutcome
{
	PAIMON_COMPACTION_RUNNING,
	PAIMON_COMPACTION_DONE,
	PAIMON_COMPACTION_LOST,		/* its inputs were gone when it came to publish */
	PAIMON_COMPACTION_YIELDED,	/* made room for other work */
	PAIMON_COMPACTION_CANCELLED,
	PAIMON_COMPACTION_TERMINATED,	/* its process had to end */
	PAIMON_COMPACTION_ROLLED_BACK,	/* with the transaction in which it was done */
	PAIMON_COMPACTION_FAILED
} PaimonCompactionOutcome;

typedef struct PaimonCompactionRecord
{
	int64		id;				/* in the order of their ends; 0 while running */
	int			pid;
	Oid			dbid;
	Oid			relid;
	uint64		storage_id;
	int32		bucket;
	bool		requested;		/* by name */
	TimestampTz started;
	TimestampTz ended;
	PaimonCompactionPhase phase;
	PaimonCompactionOutcome outcome;
	PaimonCompactionReason reason;
	int32		output_level;
	int32		runs_in;
	int32		files_in;		/* of the runs; of them: */
	int32		files_merged;
	int32		files_lifted;
	int32		files_out;
	uint64		levels_in;		/* bit n: level n */
	int64		rows_in;		/* of what is merged */
	int64		rows_out;
	int64		bytes_in;
	int64		bytes_out;
	int64		wal_bytes;
	int64		delay_us;		/* slept for the sake of others */
	int			sqlerrcode;
	char		message[PAIMON_HISTORY_MESSAGE];
} PaimonCompactionRecord;

/* One that runs.  The record changes under the lock only, by its owner. */
typedef struct PaimonCompactionEntry
{
	bool		used;
	bool		throttled;
	PaimonCompactionRecord record;
	pg_atomic_uint64 pages_in;	/* read */
	pg_atomic_uint64 pages_out; /* written */
	pg_atomic_uint64 rows_out;
	pg_atomic_uint64 delay_us;
	pg_atomic_uint64 lifted_until;	/* TimestampTz: not held back before */
} PaimonCompactionEntry;

typedef struct PaimonCompactions
{
	LWLock		lock;
	int			tranche;
	pg_atomic_uint32 nthrottled;	/* that share the cost limit */
	PaimonCompactionEntry entries[PAIMON_COMPACTIONS_RUNNING];
	int64		last_id;
	int32		size;			/* of the ring */
	PaimonCompactionRecord ring[FLEXIBLE_ARRAY_MEMBER]; /* record `id` is at id % size */
} PaimonCompactions;

extern PaimonCompactions *paimon_compactions;

/* The owner's side; lives until the end of the transaction in which it was begun. */
typedef struct PaimonCompactionNote
{
	PaimonCompactionRecord record;
	PaimonCompactionEntry *entry;	/* NULL: no place */
	SubTransactionId subid;
	bool		yielding;
	uint64		wal_start;

	/* throttle */
	bool		throttled;
	int64		pages_seen;
	int64		dirtied_seen;
	double		balance;
} PaimonCompactionNote;

/* ---- compact_history.c ---- */

extern PaimonCompactionNote *paimon_compaction_begin(const PaimonCompaction *c, bool requested, bool throttled);
/* Nothing was to be done: forgotten. */
extern void paimon_compaction_forget(PaimonCompactionNote *note);
extern void paimon_compaction_picked(PaimonCompactionNote *note, const PaimonCompaction *c);
extern void paimon_compaction_phase(PaimonCompactionNote *note, PaimonCompactionPhase phase);
/* The work is done and will be so when the transaction commits; writes the log line. */
extern void paimon_compaction_done(PaimonCompactionNote *note, const PaimonCompaction *c, const PaimonCompactResult *result);
extern void paimon_compaction_failed(PaimonCompactionNote *note, PaimonCompactionOutcome outcome, const ErrorData *edata);
extern void paimon_history_init(void);

/* ---- compact_throttle.c ---- */

/*
 * Called by the merge every now and then, `rows` written so far: takes interrupts, shows progress, sleeps if the cost of what was read and written since the
 * last time is above the limit, and raises an error if the compaction has to make room (see paimon_compaction_yield_hook).
 */
extern void paimon_throttle_point(PaimonCompactionNote *note, int64 rows);
extern void paimon_throttle_begin(PaimonCompactionNote *note, bool throttled);
extern void paimon_throttle_end(PaimonCompactionNote *note);
extern void paimon_throttle_init(void);

#endif							/* PAIMON_COMPACT_PROGRESS_H */
