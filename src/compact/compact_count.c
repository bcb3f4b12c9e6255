/*-------------------------------------------------------------------------
 *
 * compact_count.c
 *	  How many sorted runs the buckets of a table have: for writers, who wait when there are too many, and for its statistics.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact_internal.h"
#include "memtable/stats.h"

static void
count_bucket(const PaimonBucketRuns *bucket, PaimonRunCount *count)
{
	PaimonCompactionRun *runs = paimon_compact_run_sizes(bucket);
	const PaimonSortedRun *last = &bucket->runs[bucket->nruns - 1];
	PaimonCompactionCount c;

	paimon_compaction_count(runs, bucket->nruns, &c);
	if (c.counted > count->fullest)
	{
		count->fullest = c.counted;
		count->fullest_bucket = bucket->bucket;
	}
	count->nbuckets++;
	count->runs += c.runs;
	for (int i = 0; i < bucket->nruns; i++)
	{
		count->bytes += bucket->runs[i].bytes;
		count->pending |= bucket->runs[i].added_snapshot == 0;
	}
	if (last->level > 0)
		count->bottom_bytes += last->bytes;
	pfree(runs);
}

void
paimon_count_runs(PaimonFileRow *files, int nfiles, PaimonRunCount *count)
{
	const PaimonFileRow *problem;
	PaimonLevels *levels = paimon_levels_build(files, nfiles, &problem);

	memset(count, 0, sizeof(*count));
	for (int i = 0; i < levels->nbuckets; i++)
		count_bucket(&levels->buckets[i], count);
}

void
paimon_count_table_runs(PaimonTable *table, Snapshot snapshot, PaimonRunCount *count)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon count of runs", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonFileRow *files;
	int			nfiles;

	files = paimon_catalog_files(table->storage_id, snapshot, &nfiles);
	paimon_count_runs(files, nfiles, count);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/*
 * A flush is about to publish `added` beside `files`, of which it may have given snapshot ids to some.  Called under the publish lock.
 */
void
paimon_note_flush(PaimonShared *shared, const PaimonFileRow *files, int nfiles, const PaimonFileRow *added, int nadded)
{
	PaimonFileRow *all;
	PaimonRunCount count;
	uint64		bytes = 0;

	if (shared == NULL)
		return;
	all = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonFileRow) * ((Size) nfiles + nadded + 1));
	if (nfiles > 0)
		memcpy(all, files, sizeof(PaimonFileRow) * nfiles);
	for (int i = 0; i < nadded; i++)
	{
		all[nfiles + i] = added[i];
		bytes += added[i].bytes;
	}
	paimon_count_runs(all, nfiles + nadded, &count);
	pfree(all);
	paimon_runs_note(shared, count.fullest);
	if (nadded > 0)
		paimon_stats_note(shared, PAIMON_STAT_FLUSHES, 1);
	paimon_stats_note(shared, PAIMON_STAT_FLUSH_BYTES, bytes);
}

/* The same for a compaction: `files` are all those of the table as it found them, `result` what becomes of its bucket's. */
void
paimon_note_compaction(PaimonShared *shared, const PaimonCompaction *c, PaimonFileRow *files, int nfiles, PaimonFileRow *result, int nresult)
{
	PaimonRunCount count;
	PaimonRunCount bucket;
	uint64		read = 0;
	uint64		written = 0;
	int			others = 0;

	if (shared == NULL)
		return;
	paimon_count_runs(result, nresult, &bucket);
	for (int i = 0; i < nfiles; i++)
	{
		if (files[i].bucket != c->bucket)
			files[others++] = files[i];
	}
	paimon_count_runs(files, others, &count);
	paimon_runs_note(shared, Max(count.fullest, bucket.fullest));
	for (int i = 0; i < c->nmerged; i++)
		read += c->merged[i]->bytes;
	for (int i = 0; i < c->noutputs; i++)
		written += c->outputs[i].bytes;
	paimon_stats_note(shared, PAIMON_STAT_COMPACTIONS, 1);
	paimon_stats_note(shared, PAIMON_STAT_COMPACT_READ, read);
	paimon_stats_note(shared, PAIMON_STAT_COMPACT_BYTES, written);
}
