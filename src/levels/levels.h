/*-------------------------------------------------------------------------
 *
 * levels.h
 *	  Levels: the run files of a storage as sorted runs, by bucket, newest first.
 *
 * Built from manifest rows as some snapshot sees them.  In each bucket: the runs of level 0, newest first, then one run for each level 1, 2, … that has
 * files.  That is the order in which sources are merged: of two records of a key the one in the earlier run is newer.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_LEVELS_H
#define PAIMON_LEVELS_H

#include "postgres.h"

#include "utils/snapshot.h"

#include "catalog/manifest.h"

/*
 * A sorted run: files whose keys do not overlap, in key order.  Level 0: the files with one (max_position, ordinal), which one writer wrote; else all
 * files of the level.
 */
typedef struct PaimonSortedRun
{
	int32		level;
	uint64		min_position;
	uint64		max_position;
	int32		ordinal;
	int64		added_snapshot; /* smallest of its files; 0 if one of them awaits a snapshot */
	int64		rows;
	int64		deletes;
	int64		bytes;
	int			nfiles;
	PaimonFileRow **files;

	/* the manifest's (shortened) bounds do not tell the order of all files: go by the exact first keys in their footers */
	bool		order_unsure;
} PaimonSortedRun;

typedef struct PaimonBucketRuns
{
	int32		bucket;
	int			nruns;
	int			nlevel0;		/* of them in level 0 */
	PaimonSortedRun *runs;
} PaimonBucketRuns;

typedef struct PaimonLevels
{
	int			nfiles;
	PaimonFileRow *files;		/* as given to paimon_levels_build, whose order may have changed */
	int			nbuckets;		/* buckets that have files, ascending */
	PaimonBucketRuns *buckets;
} PaimonLevels;

/*
 * Sorts files into runs.  The result refers to `files` and lives in CurrentMemoryContext.  Does not throw for what it finds: *problem is set to NULL, or to
 * a file that overlaps its neighbour in a run (only damage does that).
 */
extern PaimonLevels *paimon_levels_build(PaimonFileRow *files, int nfiles, const PaimonFileRow **problem);

/*
 * Reads the manifest of a storage with `snapshot`, in the order H2 wants: files, then the log's row (*log is filled; its arrays are palloc'd).  `relname` is
 * for errors: ERRCODE_DATA_CORRUPTED if files overlap.  This is where a cache of decoded Levels (H17) goes.
 */
extern PaimonLevels *paimon_levels_load(uint64 storage_id, const char *relname, Snapshot snapshot, PaimonLogRow *log);

/* The runs of a bucket, or NULL if it has no files. */
extern const PaimonBucketRuns *paimon_levels_bucket(const PaimonLevels *levels, int bucket);

/*
 * Where to begin to look for a key in a run: files before the result cannot hold it, nor can those from the first one on whose lower bound is
 * above the key; of those between (rarely more than one) paimon_file_row_overlaps tells which can.
 */
extern int	paimon_sorted_run_find(const PaimonSortedRun *run, const uint8 *key, uint32 len);

/* Can the file hold keys in [lower, upper]?  By the manifest's bounds.  data NULL = unbounded. */
extern bool paimon_file_row_overlaps(const PaimonFileRow *file, const PaimonBytes *lower, const PaimonBytes *upper);

#endif							/* PAIMON_LEVELS_H */
