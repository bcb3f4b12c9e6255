/*-------------------------------------------------------------------------
 *
 * test_compaction_sim.c
 *	  The compaction choice over random histories of a bucket, and what it costs.
 *
 * Histories: random options and loads; the choice is carried out on real keys (unit_compaction.h), at once or while more is written.  Checked: picks
 * come to an end, runs stay within the triggers, levels in age order and without overlap, contents right, and the bounds below.
 * SIM_ROUNDS in the environment: how many (default 250).
 *
 * Figures: steady overwriting of a full bucket, printed and held against the bounds.
 *
 * Bounds, with Lmax = num-levels - 1, T = trigger, k = T - Lmax > 0, S = the largest run there can be (all keys), f = rows of a commit, q = 100 /
 * (100 + size-ratio).  They hold for the three universal rules, and once nothing more is to be done:
 *
 *	write	A merge takes in at least k new commits: n >= T runs, of which at most Lmax are above level 0, and all of level 0 are taken.  Its oldest
 *			run has at most S rows; every other row in it rises by at least one level, which it can do Lmax times.  So
 *			rows written by merges <= Lmax * rows in + S * commits / k;  amplification <= 1 + Lmax + S / (k f).
 *	levels	size(level i) < q * size(next older level): a merge stops only in front of a run that is larger than everything merged.
 *	space	n = T: rows <= oldest * (1 + amplification percent / 100).
 *			n < T: rows <= oldest * the same, as the other levels came from merges at n >= T, and (which holds for forced lifts, too) <=
 *			oldest * (1 + q + … + q^(Lmax - 1)); and level 0, which has at most T - 1 commits.
 *			Without deletes the oldest run has no more rows than are live.
 *	deletes	delete rows < delete_percent % of all others.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "unit_compaction.h"

typedef enum Load
{
	LOAD_UNIFORM,
	LOAD_ZIPF,
	LOAD_SEQUENTIAL,
	LOAD_KINDS
} Load;

static const char *const load_name[] = {"uniform", "zipf", "sequential"};

/* What a history is like. */
typedef struct History
{
	PaimonCompactionOptions o;
	PaimonCompactionNow now;
	SimBucket  *b;
	Load		load;
	uint32_t	next_key;		/* of a sequential load */
	int			max_rows;		/* of a commit */
	int			stop_trigger;
	int			delete_share;	/* percent of rows that delete */
	bool		any_deletes;
	bool		plain;			/* only the three universal rules, no deletes */
	bool		changing;		/* options change on the way */
	int			lag;			/* at most so many commits while a compaction runs */
} History;

static int64_t total_commits;
static int64_t total_plans[PAIMON_COMPACT_LEVEL0 + 1];

static uint32_t
random_key(History *h)
{
	uint32_t	n = (uint32_t) h->b->nkeys;

	switch (h->load)
	{
		case LOAD_ZIPF:
			{
				/* each doubling of the rank is as likely as any other: exponent 1 */
				uint32_t	top = n >> unit_below(12);

				return (uint32_t) unit_below(top > 0 ? top : 1) * 2654435761u % n;
			}
		case LOAD_SEQUENTIAL:
			return h->next_key++ % n;
		default:
			return (uint32_t) unit_below(n);
	}
}

/* A run of about `rows` different keys. */
static void
write_run(History *h, int rows, bool same_commit, bool pending)
{
	static SimEntry e[SIM_MAX_KEYS];
	static bool used[SIM_MAX_KEYS];
	int			n = 0;
	bool		all = h->delete_share > 0 && unit_below(60) == 0;

	if (all)
		rows = h->b->nkeys;
	for (int i = 0; i < rows; i++)
	{
		uint32_t	key = all ? (uint32_t) i : random_key(h);
		bool		del = all || (h->delete_share > 0 && (int) unit_below(100) < h->delete_share);

		if (used[key])
			continue;
		used[key] = true;
		h->any_deletes |= del;
		e[n++] = (SimEntry) {key, del};
	}
	for (int i = 0; i < n; i++)
		used[e[i].key] = false;
	sim_write(h->b, e, n, same_commit, pending);
}

/* A commit: small, or of several runs, which may have to wait for their snapshot. */
static void
commit(History *h)
{
	int64_t		before = h->b->rows_in;
	int			n = unit_below(6) == 0 ? 1 + (int) unit_below(12) : 1;
	bool		pending = n > 1 && unit_below(3) == 0;

	for (int i = 0; i < n; i++)
		write_run(h, 1 + (int) unit_below((uint64_t) h->max_rows), i > 0, pending);
	if (h->b->rows_in - before > h->b->largest_commit)
		h->b->largest_commit = h->b->rows_in - before;
	h->now.commits_since_full++;
	h->now.now++;
	h->now.hour = (int) (h->now.now % 24);
}

/* The oldest commit that waits for its snapshot gets it; false if none waits. */
static bool
give_snapshot(SimBucket *b)
{
	uint64_t	group = 0;

	for (int i = b->nruns - 1; i >= 0; i--)
	{
		if (b->runs[i]->sum.pending && (group == 0 || b->runs[i]->sum.group == group))
		{
			group = b->runs[i]->sum.group;
			b->runs[i]->sum.pending = false;
		}
	}
	return group != 0;
}

static void
random_options(History *h)
{
	PaimonCompactionOptions *o = &h->o;

	paimon_compaction_options_init(o);
	o->num_levels = unit_below(2) == 0 ? 3 : 2 + (int) unit_below(6);
	o->trigger = unit_below(2) == 0 ? 5 : 1 + (int) unit_below(12);
	o->max_size_amplification = unit_below(2) == 0 ? 200 : (int) unit_below(400);
	o->size_ratio = unit_below(2) == 0 ? 1 : (int) unit_below(60);
	o->max_runs = unit_below(3) == 0 ? 0 : (int) unit_below(20);
	o->delete_percent = unit_below(3) == 0 ? 0 : 1 + (int) unit_below(100);
	o->keep_deletes = unit_below(10) == 0;
	if (unit_below(6) == 0)
	{
		o->offpeak_start = (int) unit_below(24);
		o->offpeak_end = (int) unit_below(24);
		o->offpeak_ratio = (int) unit_below(200);
	}
	if (unit_below(6) == 0)
		o->optimization_interval = (int64_t) unit_below(30);
	if (unit_below(6) == 0)
		o->total_size_threshold = (int64_t) unit_below((uint64_t) h->b->nkeys * SIM_ROW);
	if (unit_below(6) == 0)
		o->incremental_size_threshold = (int64_t) unit_below((uint64_t) h->b->nkeys * SIM_ROW);
	if (unit_below(6) == 0)
		o->full_delta_commits = 1 + (int64_t) unit_below(20);
	o->force_up_level0 = unit_below(6) == 0;
}

/* The size rules and what decided between two runs, told from the plan alone. */
static void
check_reason(const History *h, const PaimonCompactionRun *runs, int nruns, const PaimonCompactionPlan *p)
{
	const PaimonCompactionOptions *o = &h->o;
	PaimonCompactionCount c;
	int			level0 = 0;
	double		newer = 0;
	double		oldest = (double) runs[p->first + p->nruns - 1].bytes;

	paimon_compaction_count(runs, nruns, &c);
	for (int i = p->first; i < p->first + p->nruns; i++)
	{
		level0 += runs[i].level == 0 && (i == p->first || runs[i].group != runs[i - 1].group);
		newer += (double) runs[i].bytes;
	}
	newer -= oldest;
	if (p->reason != PAIMON_COMPACT_SIZE_AMPLIFICATION && p->reason != PAIMON_COMPACT_SIZE_RATIO && p->reason != PAIMON_COMPACT_RUN_COUNT)
		return;
	CHECK(c.mergeable >= o->trigger);
	CHECK(p->reason != PAIMON_COMPACT_RUN_COUNT || c.mergeable > o->trigger);
	if (!h->changing)
		CHECK_MSG(level0 >= o->trigger - (o->num_levels - 1), "%d new commits", level0);
	if (p->reason == PAIMON_COMPACT_SIZE_RATIO && runs[p->first + p->nruns - 1].level > 1)
		CHECK(newer * (100.0 + o->size_ratio + o->offpeak_ratio) >= oldest * 100.0);
	if (p->first + p->nruns < nruns && runs[p->first + p->nruns].level > 1)
		CHECK((newer + oldest) * (100.0 + o->size_ratio) < (double) runs[p->first + p->nruns].bytes * 100.0);
}

/* One pick, carried out after up to h->lag commits more.  False: nothing to do. */
static bool
compact_once(History *h, bool at_once)
{
	PaimonCompactionRun runs[SIM_MAX_RUNS];
	PaimonCompactionPlan p;
	int			nruns = sim_choice(h->b, &h->o, &h->now, &p, runs);
	uint64_t	id;

	if (p.reason == PAIMON_COMPACT_NOTHING)
		return false;
	sim_check_plan(runs, nruns, &h->o, &p);
	check_reason(h, runs, nruns, &p);
	id = h->b->runs[p.first]->id;
	if (!at_once && unit_below(20) == 0)
		return true;			/* it lost a race: nothing happened */
	for (int i = at_once ? 0 : (int) unit_below((uint64_t) h->lag + 1); i > 0; i--)
		commit(h);
	sim_apply(h->b, &p, id);
	if (p.full)
	{
		h->now.last_full = h->now.now;
		h->now.commits_since_full = 0;
	}
	h->now.force_full = h->now.force_rewrite = h->now.force_up_level0 = false;
	return true;
}

/* Levels above 0: each smaller than the next older one. */
static void
check_levels(const History *h)
{
	const SimBucket *b = h->b;

	for (int i = 0; i + 1 < b->nruns; i++)
		if (b->runs[i]->sum.level > 0)
			CHECK_MSG((double) b->runs[i]->sum.bytes * (100.0 + h->o.size_ratio) < (double) b->runs[i + 1]->sum.bytes * 100.0,
					  "level %d has %" PRId64 ", level %d %" PRId64, b->runs[i]->sum.level, b->runs[i]->sum.bytes,
					  b->runs[i + 1]->sum.level, b->runs[i + 1]->sum.bytes);
}

/* Most rows that a bucket without deletes rests with: n runs, commits of up to `commit` rows. */
static double
space_bound(const History *h, int n, double live, double commit)
{
	const PaimonCompactionOptions *o = &h->o;
	int			trigger = o->trigger > 1 ? o->trigger : 1;
	double		amplified = 1 + o->max_size_amplification / 100.0;
	double		series = 0;

	if (n >= trigger)
		return fmax(live, commit) * amplified;	/* the oldest may be a commit of several runs that overlap */
	for (int i = 1; i < o->num_levels; i++)
		series = 1 + series * 100.0 / (100.0 + o->size_ratio);
	if (h->plain && amplified < series)
		series = amplified;
	return live * series + (trigger - 1) * commit;
}

/* Nothing more is to be done: is the bucket in the shape that is promised? */
static void
check_rest(const History *h)
{
	const SimBucket *b = h->b;
	const PaimonCompactionOptions *o = &h->o;
	PaimonCompactionRun runs[SIM_MAX_RUNS];
	PaimonCompactionCount c;
	int			trigger = o->trigger > 1 ? o->trigger : 1;
	int			single_max = o->max_runs > trigger ? o->max_runs : trigger;
	double		rows = 0;
	double		deletes = 0;
	double		live = (double) sim_live(b);

	for (int i = 0; i < b->nruns; i++)
		runs[i] = b->runs[i]->sum;
	paimon_compaction_count(runs, b->nruns, &c);
	CHECK_MSG(c.mergeable <= trigger, "%d runs, trigger %d", c.mergeable, trigger);
	if (o->max_runs > 0 && !h->changing)
		CHECK(c.runs - c.first <= (single_max > o->num_levels - 1 ? single_max : o->num_levels - 1));
	for (int i = c.first; i < b->nruns; i++)
	{
		rows += (double) runs[i].rows;
		deletes += (double) runs[i].deletes;
	}
	if (o->delete_percent > 0 && !o->keep_deletes && rows > 0)
		CHECK(deletes == 0 || deletes * 100 < (rows - deletes) * o->delete_percent);
	if (o->force_up_level0 && c.first < b->nruns)
		CHECK(runs[c.first].level > 0);
	if (h->changing)
		return;
	check_levels(h);

	if (!h->any_deletes)
	{
		double		bound = space_bound(h, c.mergeable, live, (double) b->largest_commit);

		CHECK_MSG(rows <= bound + 0.5, "%.0f rows, %.0f live, bound %.0f", rows, live, bound);
	}
}

/* Until nothing is to be done; the number of picks is bounded by what there is to merge or to lift. */
static void
settle(History *h)
{
	int			limit = h->b->nruns + h->o.num_levels + 8;
	int			picks = 0;

	while (picks <= limit && compact_once(h, true))
		picks++;
	CHECK_MSG(picks <= limit, "livelock: %d picks", picks);
	check_rest(h);
	sim_verify(h->b);
}

/* Writers stop at the stop trigger until compaction has gone on; it always can, once commits have their snapshots. */
static void
back_pressure(History *h)
{
	PaimonCompactionRun runs[SIM_MAX_RUNS];
	PaimonCompactionCount c;

	for (;;)
	{
		for (int i = 0; i < h->b->nruns; i++)
			runs[i] = h->b->runs[i]->sum;
		paimon_compaction_count(runs, h->b->nruns, &c);
		if (c.counted <= h->stop_trigger)
			return;
		if (c.first > 0)
			give_snapshot(h->b);
		else
		{
			bool		went_on = compact_once(h, true);

			CHECK_MSG(went_on, "writers wait at %d runs for nothing", c.counted);
			if (!went_on)
				return;
		}
	}
}

/* The bound on what merges write. */
static void
check_write_bound(const History *h)
{
	const SimBucket *b = h->b;
	int			lmax = h->o.num_levels - 1;
	int			k = h->o.trigger - lmax;
	double		merges = 0;

	for (int i = 0; i <= PAIMON_COMPACT_LEVEL0; i++)
		merges += (double) b->plans[i];
	if (!h->plain || k < 1)
		return;
	CHECK(merges * k <= (double) b->commits);
	CHECK_MSG((double) b->rows_merged <= (double) lmax * (double) b->rows_in + (double) b->nkeys * (double) b->commits / k,
			  "%" PRId64 " rows in, %" PRId64 " merged", b->rows_in, b->rows_merged);
}

static void
one_history(void)
{
	History		h = {0};
	int			steps = 10 + (int) unit_below(120);

	h.b = sim_make(4 + (int) unit_below(1 + unit_below(600)), SIM_ROW * (1 + (int64_t) unit_below(1 + unit_below(500))));
	h.now.last_full = INT64_MIN;
	h.load = (Load) unit_below(LOAD_KINDS);
	h.max_rows = 1 + (int) unit_below(1 + unit_below((uint64_t) h.b->nkeys));
	h.delete_share = unit_below(2) == 0 ? (int) unit_below(100) : 0;
	h.plain = unit_below(3) == 0;
	h.changing = unit_below(5) == 0;
	h.lag = (int) unit_below(6);
	random_options(&h);
	if (h.plain)
	{
		PaimonCompactionOptions o = h.o;

		paimon_compaction_options_init(&h.o);
		h.o.num_levels = o.num_levels;
		h.o.trigger = o.trigger;
		h.o.max_size_amplification = o.max_size_amplification;
		h.o.size_ratio = o.size_ratio;
		h.o.max_runs = 0;
		h.delete_share = 0;
		h.changing = false;
	}
	h.stop_trigger = (h.o.trigger > 1 ? h.o.trigger : 1) + 1 + (int) unit_below(8);

	for (int i = 0; i < steps; i++)
	{
		commit(&h);
		if (unit_below(3) > 0)
			give_snapshot(h.b);
		if (!h.plain && unit_below(40) == 0)
		{
			h.now.force_full = true;
			h.now.force_rewrite = unit_below(3) == 0;
		}
		if (!h.plain && unit_below(40) == 0)
			h.now.force_up_level0 = true;
		if (h.changing && unit_below(15) == 0)
		{
			random_options(&h);
			h.stop_trigger = h.o.trigger + 1 + (int) unit_below(8);
		}
		if (unit_below(4) > 0)
			compact_once(&h, false);
		back_pressure(&h);
		if (unit_below(10) == 0)
			settle(&h);
	}
	while (give_snapshot(h.b))
		;
	settle(&h);
	check_write_bound(&h);

	/* a forced full compaction leaves what is live, in one run */
	h.now.force_full = true;
	h.o.keep_deletes = false;
	compact_once(&h, true);
	h.now.force_full = false;
	CHECK(h.b->nruns <= 1);
	CHECK_EQ(h.b->nruns == 0 ? 0 : h.b->runs[0]->sum.rows, sim_live(h.b));
	sim_verify(h.b);

	total_commits += h.b->commits;
	for (int i = 0; i <= PAIMON_COMPACT_LEVEL0; i++)
		total_plans[i] += h.b->plans[i];
	sim_free(h.b);
}

/* Overwrites a full bucket of S rows with commits of S/n rows, six times over. */
static void
figures(int levels, int trigger, int amplification, int n, Load load)
{
	History		h = {.load = load,.stop_trigger = 1000,.plain = true};
	int			keys = 2000;
	int			rows = keys / n;
	int			lmax = levels - 1;
	int			most_runs = 0;
	int64_t		in;
	double		sum = 0;
	double		most = 0;
	double		write;
	double		space;

	h.b = sim_make(keys, 200 * SIM_ROW);
	h.now.last_full = INT64_MIN;
	h.now.hour = -1;
	paimon_compaction_options_init(&h.o);
	h.o.num_levels = levels;
	h.o.trigger = trigger;
	h.o.max_size_amplification = amplification;

	/* the load */
	h.load = LOAD_SEQUENTIAL;
	write_run(&h, keys, false, false);
	h.now.force_full = true;
	compact_once(&h, true);
	h.load = load;
	h.b->rows_in = h.b->rows_merged = h.b->commits = 0;
	h.b->largest_commit = rows;
	memset(h.b->plans, 0, sizeof(h.b->plans));

	for (int i = 0; i < 6 * n; i++)
	{
		int64_t		total = 0;

		write_run(&h, rows, false, false);
		if (h.b->nruns > most_runs)
			most_runs = h.b->nruns;
		while (compact_once(&h, true))
			;
		for (int j = 0; j < h.b->nruns; j++)
			total += h.b->runs[j]->sum.rows;
		sum += (double) total;
		most = (double) total > most ? (double) total : most;
	}
	check_rest(&h);
	sim_verify(h.b);
	in = h.b->rows_in;
	write = 1 + (double) h.b->rows_merged / (double) in;
	space = fmax(space_bound(&h, trigger - 1, 1, 1.0 / n), space_bound(&h, trigger, 1, 0));
	printf("  %6d %7d %5d %5d  %-10s %6.2f %6.1f   %5.2f %5.2f %5.2f   %4d\n", levels, trigger, amplification, n, load_name[load], write,
		   1 + lmax + (double) keys * (double) h.b->commits / (double) in / (trigger - lmax), sum / (6.0 * n) / keys, most / keys, space,
		   most_runs);
	CHECK(most_runs <= trigger + 1);
	CHECK(most / keys <= space);
	check_write_bound(&h);
	total_commits += h.b->commits;
	sim_free(h.b);
}

static void
all_figures(void)
{
	static const int shapes[][3] = {{3, 5, 200}, {3, 5, 50}, {3, 5, 25}, {3, 8, 50}, {4, 5, 200}, {4, 5, 50}, {5, 5, 200}};
	static const int sizes[] = {10, 40, 200};

	printf("figures: S rows overwritten by commits of S/n rows; write: rows written per row in, flush included; space: rows per live row\n");
	printf("  levels trigger  amp%%     n  keys        write  bound   space  most bound   runs\n");
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (Load load = LOAD_UNIFORM; load <= LOAD_ZIPF; load++)
				if (load == LOAD_UNIFORM || s < 2)
					figures(shapes[s][0], shapes[s][1], shapes[s][2], sizes[i], load);
	figures(3, 5, 200, 40, LOAD_SEQUENTIAL);
}

int
main(int argc, char **argv)
{
	const char *env = getenv("SIM_ROUNDS");
	int64_t		rounds = env != NULL && *env != '\0' ? strtoll(env, NULL, 10) : 250;

	unit_begin("compaction_sim", argc, argv);
	for (int64_t i = 0; i < rounds; i++)
	{
		uint64_t	failed = unit_failed;

		one_history();
		if (unit_failed > failed && failed == 0)
			printf("first failure in history %" PRId64 "\n", i);
	}
	printf("%" PRId64 " histories, %" PRId64 " commits; compactions:", rounds, total_commits);
	for (int i = 1; i <= PAIMON_COMPACT_LEVEL0; i++)
	{
		printf("%s %s %" PRId64, i > 1 ? "," : "", paimon_compaction_reason_name((PaimonCompactionReason) i), total_plans[i]);
		if (rounds >= 250)
			CHECK(total_plans[i] > 0);
	}
	printf("\n");
	all_figures();
	return unit_end();
}
