/*-------------------------------------------------------------------------
 *
 * compact_pick.c
 *	  Which runs of a bucket are to be merged: the manifest and the table's options, as the core's choice wants them.
 *
 * Nothing is remembered between two choices.  When a bucket was last compacted fully is told by its files: those of the highest level were put
 * there by a full compaction, or are as good as that.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgtime.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact_internal.h"

#define URGENT_BEFORE_STOP 2	/* so many runs before writers have to wait, a bucket goes first */

static void
fill_options(const PaimonOptions *from, PaimonCompactionOptions *to)
{
	paimon_compaction_options_init(to);
	to->num_levels = from->num_levels;
	to->trigger = from->compaction_trigger;
	to->max_size_amplification = from->max_size_amplification;
	to->size_ratio = from->size_ratio;
	to->offpeak_ratio = from->offpeak_ratio;
	to->offpeak_start = from->offpeak_start;
	to->offpeak_end = from->offpeak_end;
	to->optimization_interval = from->optimization_interval_ms < 0 ? -1 : from->optimization_interval_ms * 1000;
	to->total_size_threshold = from->total_size_threshold;
	to->incremental_size_threshold = from->incremental_size_threshold;
	to->full_delta_commits = from->full_delta_commits;
	to->force_up_level0 = from->force_up_level0;
}

/* Hour of the day where the server is (a worker has the server's time zone). */
static int
local_hour(TimestampTz now)
{
	pg_time_t	t = timestamptz_to_time_t(now);
	struct pg_tm *tm = pg_localtime(&t, session_timezone);

	return tm != NULL ? tm->tm_hour : -1;
}

/* See compact_internal.h. */
PaimonCompactionRun *
paimon_compact_run_sizes(const PaimonBucketRuns *bucket)
{
	PaimonCompactionRun *runs = palloc0_array(PaimonCompactionRun, bucket->nruns + 1);

	for (int i = 0; i < bucket->nruns; i++)
	{
		const PaimonSortedRun *run = &bucket->runs[i];

		runs[i].level = run->level;
		runs[i].nfiles = run->nfiles;
		runs[i].bytes = run->bytes;
		runs[i].rows = run->rows;
		runs[i].deletes = run->deletes;
		runs[i].group = run->max_position;
		runs[i].pending = run->added_snapshot == 0;
	}
	return runs;
}

/* When, and with which snapshot, the bucket was last compacted fully. */
static void
fill_last_full(PaimonCompaction *c, Snapshot snapshot, int max_level, PaimonCompactionNow *now)
{
	const PaimonSortedRun *last = &c->runs->runs[c->runs->nruns - 1];
	TimestampTz oldest = PG_INT64_MAX;
	int64		appends = 0;

	now->last_full = PG_INT64_MIN;
	if (last->level >= max_level)
	{
		for (int i = 0; i < last->nfiles; i++)
		{
			oldest = Min(oldest, last->files[i]->creation_time);
			appends = Max(appends, last->files[i]->append_count);
		}
		now->last_full = oldest;
	}
	if (c->table->options.full_delta_commits > 0)
	{
		PaimonSnapshotRow newest;

		(void) paimon_catalog_snapshot_latest(c->table->storage_id, snapshot, &newest);
		now->commits_since_full = newest.append_count - appends;
	}
}

/* A full compaction that is asked for has work in a bucket that looks finished if rows have grown old there. */
static void
fill_old(const PaimonCompaction *c, PaimonCompactionRun *run)
{
	PaimonAgeLimit limit;

	if (run->deletes > 0 || !paimon_age_limit(c->table, &limit))
		return;
	for (int i = 0; i < c->runs->runs[0].nfiles && run->deletes == 0; i++)
	{
		if (paimon_file_has_old(&limit, c->rel, c->table, c->runs->runs[0].files[i]))
			run->deletes = 1;
	}
}

/* Tells the core what is to be moved. */
static void
fill_relocation(const PaimonCompaction *c, PaimonCompactionRun *runs, PaimonCompactionNow *now)
{
	now->relocate = true;
	for (int i = 0; i < c->runs->nruns; i++)
	{
		const PaimonSortedRun *run = &c->runs->runs[i];

		for (int k = 0; k < run->nfiles; k++)
		{
			if (paimon_file_is_far(run->files[k], c->relocation))
				runs[i].far_bytes += Max(run->files[k]->bytes, 1);
		}
	}
}

/* Asks the core, with c->levels there. */
static bool
choose(PaimonCompaction *c, Snapshot snapshot)
{
	PaimonCompactionOptions options;
	PaimonCompactionNow now = {0};
	PaimonCompactionRun *runs;
	TimestampTz time = GetCurrentTimestamp();

	c->runs = paimon_levels_bucket(c->levels, c->bucket);
	if (c->runs == NULL)
		return false;
	fill_options(&c->table->options, &options);
	runs = paimon_compact_run_sizes(c->runs);
	now.now = time;
	now.hour = local_hour(time);
	now.force_full = c->full;
	now.force_rewrite = c->full && c->table->options.force_rewrite_all;
	fill_last_full(c, snapshot, options.num_levels - 1, &now);
	if (c->full && c->runs->nruns == 1)
		fill_old(c, &runs[0]);
	if (c->relocation != NULL && c->relocation->cutoff > 0)
		fill_relocation(c, runs, &now);
	if (paimon_compaction_pick(runs, c->runs->nruns, &options, &now, &c->plan) != PAIMON_OK)
	{
		int			problem = 0;

		(void) paimon_compaction_check(runs, c->runs->nruns, &problem);
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("sorted runs of table \"%s\", bucket %d are not in order", RelationGetRelationName(c->rel), c->bucket),
				 errdetail("Run %d of %d, level %d, file " UINT64_FORMAT ".", problem + 1, c->runs->nruns, c->runs->runs[problem].level,
						   c->runs->runs[problem].files[0]->file_no)));
	}
	pfree(runs);
	return c->plan.reason != PAIMON_COMPACT_NOTHING && c->plan.nruns > 0;
}

bool
paimon_compact_pick(PaimonCompaction *c)
{
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	PaimonLogRow log;
	bool		result;

	c->levels = paimon_levels_load(c->table->storage_id, RelationGetRelationName(c->rel), snapshot, &log);
	result = choose(c, snapshot);
	UnregisterSnapshot(snapshot);
	return result;
}

static void
fill_wanted(const PaimonCompaction *c, PaimonCompactWanted *w)
{
	w->bucket = c->bucket;
	PaimonCompactionRun *runs = paimon_compact_run_sizes(c->runs);
	PaimonCompactionCount count;

	paimon_compaction_count(runs, c->runs->nruns, &count);
	pfree(runs);
	w->urgent = count.counted >= Max(c->table->options.stop_trigger, c->table->options.compaction_trigger) - URGENT_BEFORE_STOP;
	w->bytes = 0;
	for (int i = 0; i < c->plan.nruns; i++)
		w->bytes += c->runs->runs[c->plan.first + i].bytes;
}

PaimonCompactWanted *
paimon_compact_wanted(Relation rel, PaimonTable *table, int *n)
{
	PaimonCompaction c = {.rel = rel, .table = table};
	PaimonCompactWanted *result;
	MemoryContext cxt;
	MemoryContext old;
	Snapshot	snapshot;
	PaimonLogRow log;

	*n = 0;
	if (table->storage_id == 0)
		return NULL;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon compaction choice", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	snapshot = paimon_catalog_latest_snapshot();
	c.levels = paimon_levels_load(table->storage_id, RelationGetRelationName(rel), snapshot, &log);
	result = MemoryContextAlloc(old, sizeof(PaimonCompactWanted) * Max(c.levels->nbuckets, 1));
	for (int i = 0; i < c.levels->nbuckets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		c.bucket = c.levels->buckets[i].bucket;
		if (choose(&c, snapshot))
			fill_wanted(&c, &result[(*n)++]);
	}
	UnregisterSnapshot(snapshot);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
	return result;
}
