/*-------------------------------------------------------------------------
 *
 * core_compaction.c
 *	  Which runs of a bucket are merged next, into which level, and why.
 *
 * A chain of rules, each of which either says how many of the newest mergeable runs it wants, or nothing; the first that wants some wins.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_compaction.h"

#include <limits.h>

/* Everything a rule looks at. */
typedef struct Choice
{
	const PaimonCompactionRun *runs;
	int			nruns;
	const PaimonCompactionOptions *options;
	const PaimonCompactionNow *now;
	int			trigger;
	int			first;			/* newest mergeable run */
	int			mergeable;		/* commits' runs as one */
	int			max_level;
} Choice;

void
paimon_compaction_options_init(PaimonCompactionOptions *options)
{
	memset(options, 0, sizeof(*options));
	options->num_levels = 3;
	options->trigger = 5;
	options->max_size_amplification = 50;
	options->size_ratio = 1;
	options->offpeak_start = -1;
	options->offpeak_end = -1;
	options->optimization_interval = -1;
	options->max_runs = 10;
	options->delete_percent = 30;
}

const char *
paimon_compaction_reason_name(PaimonCompactionReason reason)
{
	switch (reason)
	{
		case PAIMON_COMPACT_NOTHING:
			return "nothing to do";
		case PAIMON_COMPACT_FORCED_FULL:
			return "forced full";
		case PAIMON_COMPACT_DELTA_COMMITS:
			return "full after commits";
		case PAIMON_COMPACT_INTERVAL:
			return "optimization interval";
		case PAIMON_COMPACT_TOTAL_SIZE:
			return "small total size";
		case PAIMON_COMPACT_INCREMENTAL_SIZE:
			return "large incremental size";
		case PAIMON_COMPACT_SIZE_AMPLIFICATION:
			return "size amplification";
		case PAIMON_COMPACT_SIZE_RATIO:
			return "size ratio";
		case PAIMON_COMPACT_RUN_COUNT:
			return "number of runs";
		case PAIMON_COMPACT_DELETES:
			return "delete rows";
		case PAIMON_COMPACT_WIDE_COMMIT:
			return "commit of many runs";
		case PAIMON_COMPACT_LEVEL0:
			return "level 0 lifted";
		case PAIMON_COMPACT_RELOCATION:
			return "relocation";
	}
	return "unknown";
}

/* The index behind the runs that count as one with runs[i]. */
static int
unit_end(const PaimonCompactionRun *runs, int nruns, int i)
{
	int			end = i + 1;

	if (runs[i].level == 0)
		while (end < nruns && runs[end].level == 0 && runs[end].group == runs[i].group)
			end++;
	return end;
}

/* In floating point, so that no sum or product can overflow; exact below 2^53. */
static double
sum_bytes(const PaimonCompactionRun *runs, int from, int to)
{
	double		sum = 0;

	for (int i = from; i < to; i++)
		sum += (double) runs[i].bytes;
	return sum;
}

bool
paimon_compaction_check(const PaimonCompactionRun *runs, int nruns, int *problem)
{
	for (int i = 0; i < nruns; i++)
	{
		const PaimonCompactionRun *run = &runs[i];

		*problem = i;
		if (run->level < 0 || run->nfiles < 0 || run->bytes < 0 || run->deletes < 0 || run->rows < run->deletes)
			return false;
		if (run->level > 0 && (run->pending || (i > 0 && runs[i - 1].level >= run->level)))
			return false;
		if (run->level == 0 && i > 0 && (runs[i - 1].level > 0 || runs[i - 1].group < run->group))
			return false;
	}
	*problem = -1;
	return true;
}

void
paimon_compaction_count(const PaimonCompactionRun *runs, int nruns, PaimonCompactionCount *count)
{
	int			end;

	memset(count, 0, sizeof(*count));
	count->runs = nruns;
	for (int i = 0; i < nruns; i = end)
	{
		bool		pending = false;

		end = unit_end(runs, nruns, i);
		for (int j = i; j < end; j++)
			pending |= runs[j].pending;
		count->counted++;
		count->mergeable++;
		if (pending)
		{
			/* its whole commit, and all that is newer */
			count->first = end;
			count->mergeable = 0;
		}
	}
}

bool
paimon_compaction_may_drop_deletes(const PaimonCompactionRun *runs, int nruns, int first, int count, int output_level)
{
	return output_level > 0 && count > 0 && first + count == nruns && output_level >= runs[nruns - 1].level;
}

int
paimon_compaction_output_level(const PaimonCompactionRun *runs, int nruns, int first, int *count, int max_level)
{
	int			end = first + *count;
	int			level;

	if (end == nruns)
		return max_level;
	level = runs[end].level - 1;
	if (level <= 0)
	{
		/* level 0 is for what writers write: go on to the newest run above it */
		while (end < nruns && runs[end].level == 0)
			end++;
		if (end < nruns)
			level = runs[end++].level;
		*count = end - first;
	}
	return end == nruns ? max_level : level;
}

bool
paimon_compaction_offpeak(int start, int end, int hour)
{
	if (start < 0 || end < 0 || hour < 0)
		return false;
	if (start <= end)
		return hour >= start && hour < end;
	return hour >= start || hour < end;
}

/* Size of the mergeable runs' newest part that stops in front of the oldest unit; the index of that unit in *last. */
static double
size_before_last(const Choice *c, int *last)
{
	int			end;

	*last = c->first;
	for (int i = c->first; i < c->nruns; i = end)
	{
		end = unit_end(c->runs, c->nruns, i);
		*last = i;
	}
	return sum_bytes(c->runs, c->first, *last);
}

/*
 * The rule of the size ratio: takes on older units as long as they are not larger than what is there already (by more than the ratio).  `units` of
 * the `count` runs to begin with.  Once two are together, level 0 and level 1 come along whatever their size: the output could not stay below them.
 * True if at least two units are together.
 */
static bool
extend_by_ratio(const Choice *c, int units, int *count)
{
	const PaimonCompactionOptions *o = c->options;
	double		percent = 100.0 + o->size_ratio;
	double		candidate = sum_bytes(c->runs, c->first, c->first + *count);
	int			end;

	if (paimon_compaction_offpeak(o->offpeak_start, o->offpeak_end, c->now->hour))
		percent += o->offpeak_ratio;
	for (int i = c->first + *count; i < c->nruns; i = end)
	{
		double		next;

		end = unit_end(c->runs, c->nruns, i);
		next = sum_bytes(c->runs, i, end);
		if (candidate * percent < next * 100.0 && (units < 2 || c->runs[i].level > 1))
			break;
		candidate += next;
		units++;
		*count = end - c->first;
	}
	return units > 1;
}

/* The first `units` units, as a number of runs. */
static int
first_units(const Choice *c, int units)
{
	int			i = c->first;

	while (units-- > 0 && i < c->nruns)
		i = unit_end(c->runs, c->nruns, i);
	return i - c->first;
}

/* Mergeable runs of level 0. */
static int
level0_runs(const Choice *c)
{
	int			i = c->first;

	while (i < c->nruns && c->runs[i].level == 0)
		i++;
	return i - c->first;
}

/* Would a full compaction change anything? */
static bool
full_has_work(const Choice *c)
{
	const PaimonCompactionRun *last = &c->runs[c->nruns - 1];

	return c->nruns - c->first > 1 || last->level < c->max_level || c->now->force_rewrite ||
		(last->deletes > 0 && !c->options->keep_deletes);
}

static bool
interval_passed(const Choice *c)
{
	int64_t		interval = c->options->optimization_interval;
	int64_t		last = c->now->last_full;

	if (interval < 0)
		return false;
	if (last == INT64_MIN)
		return true;
	return c->now->now >= last && (uint64_t) c->now->now - (uint64_t) last >= (uint64_t) interval;
}

/* Full compactions that are asked for, by somebody or by an option. */
static PaimonCompactionReason
pick_full(const Choice *c)
{
	const PaimonCompactionOptions *o = c->options;
	double		total;
	double		outside;

	if (!full_has_work(c))
		return PAIMON_COMPACT_NOTHING;
	if (c->now->force_full || c->now->force_rewrite)
		return PAIMON_COMPACT_FORCED_FULL;
	if (o->full_delta_commits > 0 && c->now->commits_since_full >= o->full_delta_commits)
		return PAIMON_COMPACT_DELTA_COMMITS;
	if (c->nruns - c->first < 2)
		return PAIMON_COMPACT_NOTHING;
	if (interval_passed(c))
		return PAIMON_COMPACT_INTERVAL;
	total = sum_bytes(c->runs, c->first, c->nruns);
	if (o->total_size_threshold > 0 && total < (double) o->total_size_threshold)
		return PAIMON_COMPACT_TOTAL_SIZE;
	outside = total;
	if (c->runs[c->nruns - 1].level == c->max_level)
		outside -= (double) c->runs[c->nruns - 1].bytes;
	if (o->incremental_size_threshold > 0 && outside > (double) o->incremental_size_threshold)
		return PAIMON_COMPACT_INCREMENTAL_SIZE;
	return PAIMON_COMPACT_NOTHING;
}

/* The three rules of universal compaction. */
static PaimonCompactionReason
pick_universal(const Choice *c, int *count)
{
	int			last;
	double		newer;

	if (c->mergeable < c->trigger)
		return PAIMON_COMPACT_NOTHING;
	newer = size_before_last(c, &last);
	if (newer * 100.0 > sum_bytes(c->runs, last, c->nruns) * c->options->max_size_amplification)
	{
		*count = c->nruns - c->first;
		return PAIMON_COMPACT_SIZE_AMPLIFICATION;
	}
	*count = first_units(c, 1);
	if (extend_by_ratio(c, 1, count))
		return PAIMON_COMPACT_SIZE_RATIO;
	if (c->mergeable > c->trigger)
	{
		int			units = c->mergeable - c->trigger + 1;

		*count = first_units(c, units);
		extend_by_ratio(c, units, count);
		return PAIMON_COMPACT_RUN_COUNT;
	}
	return PAIMON_COMPACT_NOTHING;
}

/* Delete rows so many that space and reads suffer, though runs are few. */
static bool
deletes_are_many(const Choice *c)
{
	double		rows = 0;
	double		deletes = 0;

	if (c->options->delete_percent <= 0 || c->options->keep_deletes)
		return false;
	for (int i = c->first; i < c->nruns; i++)
	{
		rows += (double) c->runs[i].rows;
		deletes += (double) c->runs[i].deletes;
	}
	return deletes > 0 && deletes * 100.0 >= (rows - deletes) * c->options->delete_percent;
}

/* The chain: the reason, and how many runs from c->first on. */
static PaimonCompactionReason
pick_runs(const Choice *c, int *count)
{
	PaimonCompactionReason reason;
	int			level0 = level0_runs(c);
	int			single_max = c->options->max_runs > c->trigger ? c->options->max_runs : c->trigger;

	*count = c->nruns - c->first;
	reason = pick_full(c);
	if (reason != PAIMON_COMPACT_NOTHING)
		return reason;
	reason = pick_universal(c, count);
	if (reason != PAIMON_COMPACT_NOTHING)
		return reason;
	if (deletes_are_many(c))
	{
		*count = c->nruns - c->first;
		return PAIMON_COMPACT_DELETES;
	}
	if (level0 == 0)
		return PAIMON_COMPACT_NOTHING;
	if (c->options->max_runs > 0 && c->nruns - c->first > single_max)
		reason = PAIMON_COMPACT_WIDE_COMMIT;
	else if (c->options->force_up_level0 || c->now->force_up_level0)
		reason = PAIMON_COMPACT_LEVEL0;
	if (reason != PAIMON_COMPACT_NOTHING)
	{
		/* as if triggered, so that level 1 never outgrows what is above it */
		*count = level0;
		extend_by_ratio(c, 2, count);
	}
	return reason;
}

/*
 * Files that lie at the far end of the storage: those of level 0 by lifting it, else those of one run, which stays in its level.  Returns the reason; *first
 * and *count are the runs.
 */
static PaimonCompactionReason
pick_relocation(const Choice *c, int *first, int *count)
{
	int			level0 = level0_runs(c);

	*first = c->first;
	for (int i = c->first; i < c->first + level0; i++)
	{
		if (c->runs[i].far_bytes > 0)
		{
			*count = level0;
			extend_by_ratio(c, 2, count);
			return PAIMON_COMPACT_RELOCATION;
		}
	}
	for (int i = c->first + level0; i < c->nruns; i++)
	{
		if (c->runs[i].far_bytes > 0)
		{
			*first = i;
			*count = 1;
			return PAIMON_COMPACT_RELOCATION;
		}
	}
	return PAIMON_COMPACT_NOTHING;
}

PaimonResult
paimon_compaction_pick(const PaimonCompactionRun *runs, int nruns, const PaimonCompactionOptions *options,
					   const PaimonCompactionNow *now, PaimonCompactionPlan *plan)
{
	Choice		c = {.runs = runs,.nruns = nruns,.options = options,.now = now};
	PaimonCompactionCount counts;
	int			problem;
	int			count = 0;
	int			first;
	bool		in_place;

	memset(plan, 0, sizeof(*plan));
	if (!paimon_compaction_check(runs, nruns, &problem))
		return PAIMON_CORRUPT;
	paimon_compaction_count(runs, nruns, &counts);
	if (counts.mergeable == 0)
		return PAIMON_OK;
	c.trigger = options->trigger > 1 ? options->trigger : 1;
	c.first = counts.first;
	c.mergeable = counts.mergeable;
	c.max_level = options->num_levels > 2 ? options->num_levels - 1 : 1;
	if (runs[nruns - 1].level > c.max_level)
		c.max_level = runs[nruns - 1].level;

	plan->reason = pick_runs(&c, &count);
	first = c.first;
	if (plan->reason == PAIMON_COMPACT_NOTHING && now->relocate)
		plan->reason = pick_relocation(&c, &first, &count);
	if (plan->reason == PAIMON_COMPACT_NOTHING)
		return PAIMON_OK;
	plan->first = first;
	plan->max_level = c.max_level;
	in_place = plan->reason == PAIMON_COMPACT_RELOCATION && runs[first].level > 0;
	if (in_place)
		plan->output_level = runs[first].level;
	else
		plan->output_level = paimon_compaction_output_level(runs, nruns, first, &count, c.max_level);
	plan->nruns = count;
	plan->full = first == c.first && first + count == nruns && plan->output_level == c.max_level;
	plan->drop_deletes = !options->keep_deletes && !in_place &&
		paimon_compaction_may_drop_deletes(runs, nruns, first, count, plan->output_level);
	plan->force_rewrite = now->force_rewrite;
	for (int i = first; i < first + count; i++)
	{
		paimon_compaction_add(&plan->bytes, runs[i].bytes);
		paimon_compaction_add(&plan->rows, runs[i].rows);
		plan->nfiles += runs[i].nfiles;
	}
	return PAIMON_OK;
}
