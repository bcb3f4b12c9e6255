/*-------------------------------------------------------------------------
 *
 * core_compaction.h
 *	  What to compact: universal compaction as a pure function from run sizes, options and time to a plan and its reason.
 *
 * One bucket at a time.  Two questions, two files: which runs are merged, and into which level (core_compaction.c); which files of those runs are
 * rewritten, and which only change their level (core_compaction_sections.c).  Rules, bounds and why they hold: README.md here, "Compaction choice".
 *
 * Nothing here keeps state, reads a clock or allocates other than through the caller's allocator: same input, same plan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_COMPACTION_H
#define PAIMON_CORE_COMPACTION_H

#include "core/core.h"

/* ---- which runs ---- */

/*
 * A sorted run as the choice sees it.  Arrays of them are in age order, newest first: the runs of level 0, then at most one for each level 1, 2, …
 * Level-0 runs with the same group are one commit's (a large one that spilled several times).  A group is a position in the log (max_position): it never
 * grows from one run of level 0 to the next.
 */
typedef struct PaimonCompactionRun
{
	int32_t		level;
	int32_t		nfiles;
	int64_t		bytes;
	int64_t		rows;			/* records, delete rows included */
	int64_t		deletes;		/* of them delete rows (anything that retracts) */
	uint64_t	group;			/* looked at in level 0 only: the runs of one commit count as one and are never torn apart */
	bool		pending;		/* no snapshot id yet: neither it nor anything newer may be merged */
	int64_t		far_bytes;		/* of files that hold the far end of the storage: looked at with `relocate` only */
} PaimonCompactionRun;

/*
 * Percentages are whole numbers as users give them.  For amounts with an "off" value that is 0 unless stated.  paimon_compaction_options_init sets the
 * defaults of tables.
 */
typedef struct PaimonCompactionOptions
{
	int			num_levels;		/* num-levels, level 0 included; at least 2.  Runs above num_levels - 1 raise it */
	int			trigger;		/* num-sorted-run.compaction-trigger; below 1 counts as 1 */
	int			max_size_amplification; /* compaction.max-size-amplification-percent */
	int			size_ratio;		/* compaction.size-ratio, percent */
	int			offpeak_ratio;	/* compaction.offpeak-ratio, percent, added in the window below */
	int			offpeak_start;	/* compaction.offpeak.start.hour, 0 … 23; -1 = no window */
	int			offpeak_end;	/* compaction.offpeak.end.hour, exclusive; below start: the window wraps midnight */
	int64_t		optimization_interval;	/* compaction.optimization-interval, in the unit of the times below; < 0 = off */
	int64_t		total_size_threshold;	/* compaction.total-size-threshold, bytes */
	int64_t		incremental_size_threshold; /* compaction.incremental-size-threshold, bytes */
	int64_t		full_delta_commits; /* full-compaction.delta-commits */
	bool		force_up_level0;	/* compaction.force-up-level-0 */

	/* beyond Paimon: what its rules leave lying around for good */
	int			max_runs;		/* more single runs than that, though few commits: level 0 is lifted.  0 = off */
	int			delete_percent; /* delete rows of at least that share of all other rows: full.  0 = off */

	bool		keep_deletes;	/* never drop delete rows (somebody still needs them) */
} PaimonCompactionOptions;

extern void paimon_compaction_options_init(PaimonCompactionOptions *options);

/* What is true now and not an option. */
typedef struct PaimonCompactionNow
{
	int64_t		now;			/* time in any unit, the same for all three times */
	int64_t		last_full;		/* when the last full compaction ended; INT64_MIN = never.  After a restart: creation time of the oldest max-level file */
	int			hour;			/* local hour of day 0 … 23; -1 = outside any off-peak window */
	int64_t		commits_since_full; /* for full_delta_commits */
	bool		force_full;		/* paimon.compact(full => true), VACUUM FULL */
	bool		force_rewrite;	/* every file is rewritten, even if alone at the max level already.  Implies force_full */
	bool		force_up_level0;	/* like the option, this time only (gentle lookup compaction, reading by level) */
	bool		relocate;		/* if nothing else is to be done: rewrite what has far_bytes, one run at a time */
} PaimonCompactionNow;

typedef enum PaimonCompactionReason
{
	PAIMON_COMPACT_NOTHING = 0,
	PAIMON_COMPACT_FORCED_FULL,
	PAIMON_COMPACT_DELTA_COMMITS,
	PAIMON_COMPACT_INTERVAL,	/* early full: optimization-interval */
	PAIMON_COMPACT_TOTAL_SIZE,	/* early full: total-size-threshold */
	PAIMON_COMPACT_INCREMENTAL_SIZE,	/* early full: incremental-size-threshold */
	PAIMON_COMPACT_SIZE_AMPLIFICATION,
	PAIMON_COMPACT_SIZE_RATIO,
	PAIMON_COMPACT_RUN_COUNT,
	PAIMON_COMPACT_DELETES,		/* delete_percent */
	PAIMON_COMPACT_WIDE_COMMIT, /* max_runs */
	PAIMON_COMPACT_LEVEL0,		/* forced lift of level 0 */
	PAIMON_COMPACT_RELOCATION	/* files are rewritten because of where they lie (`relocate`) */
} PaimonCompactionReason;

/* For views and logs, e.g. "size ratio". */
extern const char *paimon_compaction_reason_name(PaimonCompactionReason reason);

/* Merge runs[first .. first + nruns) into one run of level output_level. */
typedef struct PaimonCompactionPlan
{
	PaimonCompactionReason reason;	/* NOTHING: the rest is zero */
	int			first;
	int			nruns;			/* 1: lifted to output_level, or rewritten in place.  RELOCATION: newer runs above level 0 may be left out */
	int			output_level;	/* at least 1 */
	int			max_level;		/* Lmax: num_levels - 1, or the highest level that has a run */
	bool		full;			/* all mergeable runs, into max_level: last_full changes when it is done */
	bool		drop_deletes;	/* nothing older remains: the output needs no delete rows */
	bool		force_rewrite;	/* no file is only lifted */
	int64_t		bytes;			/* of the inputs: upper bound of what is read, and written */
	int64_t		rows;
	int			nfiles;
} PaimonCompactionPlan;

/*
 * The choice.  PAIMON_CORRUPT if paimon_compaction_check finds a problem; *plan then says NOTHING.
 *
 * Guarantees (n counts as paimon_compaction_count's `mergeable`):
 *	1. first > every pending run; the plan ends at a commit's border on both sides;
 *	2. output_level >= 1, and runs older than the plan's are above it: after the merge the array is in age order again;
 *	3. carrying it out makes progress: runs get fewer, or move to a higher level, or lose delete rows, or (forced, relocation) are rewritten;
 *	4. when it says NOTHING, n <= trigger, and mergeable single runs <= max(max_runs, trigger, max_level) if max_runs is set.
 */
extern PaimonResult paimon_compaction_pick(const PaimonCompactionRun *runs, int nruns, const PaimonCompactionOptions *options,
										   const PaimonCompactionNow *now, PaimonCompactionPlan *plan);

/* Are these runs in age order, levels above 0 once each and never pending, amounts sane?  Otherwise *problem is the index of a run that is not. */
extern bool paimon_compaction_check(const PaimonCompactionRun *runs, int nruns, int *problem);

typedef struct PaimonCompactionCount
{
	int			runs;			/* single ones: what a reader merges */
	int			counted;		/* the runs of one commit as one: compare with num-sorted-run.stop-trigger */
	int			mergeable;		/* of `counted`, those that may be merged now: compare with the trigger */
	int			first;			/* index of the newest run that may be merged; nruns if there is none */
} PaimonCompactionCount;

extern void paimon_compaction_count(const PaimonCompactionRun *runs, int nruns, PaimonCompactionCount *count);

/*
 * May a merge of runs[first .. first + count) into output_level leave out delete rows?  Only if nothing older remains that they could hide; level 0 never.
 */
extern bool paimon_compaction_may_drop_deletes(const PaimonCompactionRun *runs, int nruns, int first, int count, int output_level);

/*
 * Where the result of merging runs[first .. first + *count) belongs; adds to *count where the rules want more runs in it (level 0 is never an output).
 */
extern int	paimon_compaction_output_level(const PaimonCompactionRun *runs, int nruns, int first, int *count, int max_level);

/* Is the hour within [start, end), end exclusive, wrapping midnight if end < start?  False for -1 in any of them. */
extern bool paimon_compaction_offpeak(int start, int end, int hour);

/* ---- which files ---- */

/* A file of the runs of a plan. */
typedef struct PaimonCompactionFile
{
	PaimonBytes min_key;		/* lower bound, inclusive; need not be a key of the file (shortened); empty = unbounded */
	PaimonBytes max_key;		/* upper bound, inclusive; empty = unbounded */
	int64_t		bytes;
	int64_t		rows;
	int64_t		deletes;
	int32_t		level;
	int32_t		run;			/* index of its run in age order: files with the same run do not overlap */
	bool		move;			/* is rewritten in any case */
} PaimonCompactionFile;

/* Files order[first .. first + nfiles) with connected key ranges: no other file of the plan has a key between theirs. */
typedef struct PaimonCompactionSection
{
	int			first;
	int			nfiles;
	int			nruns;			/* different runs in it: sources of the merge */
	int64_t		bytes;
} PaimonCompactionSection;

typedef enum PaimonCompactionAction
{
	PAIMON_COMPACT_KEEP,		/* stays as it is, in its level: its manifest row is not touched */
	PAIMON_COMPACT_UPGRADE,		/* same bytes, new level: only its manifest row changes */
	PAIMON_COMPACT_REWRITE		/* merged into new files */
} PaimonCompactionAction;

/*
 * A stretch of neighbouring sections with the same action, in key order.  All sections of one REWRITE go through one writer, one after the other; no
 * other file of the plan has a key between those of its first and its last section.
 */
typedef struct PaimonCompactionStep
{
	PaimonCompactionAction action;
	int			first_section;
	int			nsections;
	int			first;			/* order[first .. first + nfiles) */
	int			nfiles;
	int			max_runs;		/* most sources merged at once */
	int64_t		bytes;
	int64_t		rows;
	int			out_files;		/* REWRITE: expected number of output files, if nothing merges away; else 0 */
	int64_t		out_bytes;		/* REWRITE: start a new file once one has this many bytes; else 0 */
} PaimonCompactionStep;

typedef struct PaimonCompactionSections
{
	int		   *order;			/* indexes into the caller's files, in key order; within a section newest run first, then key order */
	int			nfiles;
	PaimonCompactionSection *sections;
	int			nsections;
	PaimonCompactionStep *steps;
	int			nsteps;
	int64_t		rewrite_bytes;	/* of all REWRITE steps */
	int64_t		upgrade_bytes;
} PaimonCompactionSections;

typedef struct PaimonCompactionFileOptions
{
	int32_t		output_level;
	bool		drop_deletes;	/* the plan's: files with delete rows are then rewritten */
	bool		force_rewrite;
	int64_t		target_file_size;	/* target-file-size, bytes; at least 1 */
	double		small_file_ratio;	/* compaction.small-file-ratio, 0 … 1 */
} PaimonCompactionFileOptions;

/*
 * Cuts the files of a plan into sections and steps.  All arrays come from the allocator; `files` is only read.  PAIMON_NO_MEMORY as the allocator wants;
 * PAIMON_CORRUPT for an upper bound below its lower bound or a negative amount.
 *
 * Every file is in exactly one section, every section in exactly one step, both in key order.  A file is not rewritten only if no file of another run
 * overlaps it, so keeping or lifting it never makes an overlap.
 */
extern PaimonResult paimon_compaction_sections(const PaimonCompactionFile *files, int nfiles, const PaimonCompactionFileOptions *options,
											   const PaimonAllocator *a, PaimonCompactionSections *sections);

/*
 * How many files `bytes` are to become: as near to the target as can be, evenly, so that none is small (nor above target / ratio).  *file_bytes is where
 * a writer cuts.
 */
extern int	paimon_compaction_split(int64_t bytes, int64_t target_file_size, double small_file_ratio, int64_t *file_bytes);

/* Adds amounts that are not negative; too much is INT64_MAX. */
static inline void
paimon_compaction_add(int64_t *sum, int64_t v)
{
	*sum = v > INT64_MAX - *sum ? INT64_MAX : *sum + v;
}

#endif							/* PAIMON_CORE_COMPACTION_H */
