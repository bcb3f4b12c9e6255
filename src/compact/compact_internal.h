/*-------------------------------------------------------------------------
 *
 * compact_internal.h
 *	  What the files of src/compact share.  Private to it.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_COMPACT_INTERNAL_H
#define PAIMON_COMPACT_INTERNAL_H

#include "postgres.h"

#include "compact/compact.h"
#include "core/core_compaction.h"
#include "levels/levels.h"
#include "scan/scan.h"

/* ---- what is done when the transaction ends (compact_end.c) ---- */

typedef struct PaimonAtEnd
{
	PaimonShared *shared;
	uint64		storage_id;
	uint64		head;			/* the shared head moves there at commit; 0: it does not */
	int			nguards;
	uint64	   *guards;			/* file numbers */
} PaimonAtEnd;

/* Begins an entry, which lives until the end of the transaction. */
extern PaimonAtEnd *paimon_at_end_begin(PaimonTable *table);

/* From now on the guards of these files are let go when the transaction ends, whichever way. */
extern void paimon_at_end_guards(PaimonAtEnd *e, const PaimonFileRow *files, int nfiles);

extern void paimon_at_end_init(void);

/* ---- one compaction of one bucket ---- */

typedef struct PaimonCompaction
{
	Relation	rel;
	PaimonTable *table;
	PaimonFlushMode mode;
	int			bucket;
	bool		full;			/* asked for by name */
	const PaimonRelocation *relocation; /* what is to be moved if nothing else is to be done, or NULL */
	struct PaimonCompactionNote *note;	/* compact_progress.h */

	/* picked */
	PaimonLevels *levels;		/* of the table, as they were then */
	const PaimonBucketRuns *runs;
	PaimonCompactionPlan plan;	/* indexes into runs->runs */

	/* done: every file of the plan's runs is in one of these or stays as it is */
	PaimonFileRow **lifted;		/* get a new level */
	int			nlifted;
	PaimonFileRow **merged;		/* are replaced ... */
	int			nmerged;
	PaimonFileRow *outputs;		/* ... by these */
	int			noutputs;
	bool		moving;			/* outputs are copies of what is merged, and stand for it in all snapshots */
	int64		rows_written;
	XLogRecPtr	lsn;			/* to be flushed before publishing */
	PaimonAtEnd *end;
} PaimonCompaction;

/* Reads the manifest and asks the core what to do with c->bucket; false if nothing.  Leaves no snapshot behind. */
extern bool paimon_compact_pick(PaimonCompaction *c);

/* Is the file to be moved? */
/* Is every file to be moved rewritten by itself?  It then stays in its level. */
static inline bool
paimon_compaction_moves(const PaimonCompaction *c)
{
	return c->plan.reason == PAIMON_COMPACT_RELOCATION && c->plan.nruns == 1 && c->plan.output_level == c->runs->runs[c->plan.first].level;
}

extern bool paimon_file_is_far(const PaimonFileRow *file, const PaimonRelocation *where);

/* So many extents a fork may have at rest, if that many of them are used. */
extern uint32 paimon_tolerated_end(uint32 used);

/* A bucket's runs as the core wants them, palloc'd. */
extern PaimonCompactionRun *paimon_compact_run_sizes(const PaimonBucketRuns *bucket);

/* ---- record-level.expire-time (compact_age.c) ---- */

typedef struct PaimonAgeLimit
{
	int			column;			/* by attribute, which holds a row's time */
	Oid			type;
	int64		before;			/* in the server's microseconds: rows before this are old */
} PaimonAgeLimit;

/* The limit as it is now; false if rows of the table do not grow old. */
extern bool paimon_age_limit(const PaimonTable *table, PaimonAgeLimit *limit);
/* Is a row out of a compaction's merge, the only record of its key, old? */
extern bool paimon_row_is_old(const PaimonAgeLimit *limit, const PaimonTable *table, const PaimonRowRef *row);
/* May the file hold such a row?  Reads the column. */
extern bool paimon_file_has_old(const PaimonAgeLimit *limit, Relation rel, const PaimonTable *table, const PaimonFileRow *row);

/* Merges what has to be merged into new files. */
extern void paimon_compact_rewrite(PaimonCompaction *c);

/*
 * Writes the manifest rows, under the publish lock, which stays till the end of the transaction.  False if the inputs are not what they were when
 * they were picked: nothing is written then, and the outputs' extents are free again.
 */
extern bool paimon_compact_publish(PaimonCompaction *c, PaimonCompactResult *result);

/* ---- what publishers say about it, when they commit (compact_count.c) ---- */

extern void paimon_note_flush(PaimonShared *shared, const PaimonFileRow *files, int nfiles, const PaimonFileRow *added, int nadded);
/* Changes the order of `files` and `result`, and forgets some of the former. */
extern void paimon_note_compaction(PaimonShared *shared, const PaimonCompaction *c, PaimonFileRow *files, int nfiles,
								   PaimonFileRow *result, int nresult);

/*
 * Moves the log's end to the front if it keeps the fork long (compact_trim.c): writes a batch without records and asks for a flush; the rest comes with later
 * reclaims.  Under the flush lock.  False if there was nothing to do.
 */
extern bool paimon_trim_log(Relation rel, PaimonTable *table);

#endif							/* PAIMON_COMPACT_INTERNAL_H */
