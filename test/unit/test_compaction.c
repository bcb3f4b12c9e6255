/*-------------------------------------------------------------------------
 *
 * test_compaction.c
 *	  The compaction choice by example: each rule where it just applies and where it just does not; sections of files, also against a slow
 *	  but obvious way to find them.
 *
 * Runs are written as text, newest first, "level:bytes" each; a row is a byte.  In front: ! pending, + of the same commit as the run before;
 * behind: dN delete rows.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_compaction.h"
#include "unit.h"

#define MAX_RUNS 64

static PaimonCompactionRun runs[MAX_RUNS];
static int	nruns;
static PaimonCompactionOptions opt;
static PaimonCompactionNow now;

static void
parse(const char *text)
{
	nruns = 0;
	while (*text != '\0')
	{
		PaimonCompactionRun *r = &runs[nruns];
		char	   *end;

		memset(r, 0, sizeof(*r));
		r->group = 1000 - nruns;
		for (; *text == '!' || *text == '+' || *text == ' '; text++)
		{
			if (*text == '!')
				r->pending = true;
			if (*text == '+')
				r->group = runs[nruns - 1].group;
		}
		r->level = (int32_t) strtol(text, &end, 10);
		r->bytes = strtoll(end + 1, &end, 10);
		r->rows = r->bytes;
		r->nfiles = 1;
		if (*end == 'd')
			r->deletes = strtoll(end + 1, &end, 10);
		if (*end == 'f')
			r->far_bytes = strtoll(end + 1, &end, 10);
		text = end;
		nruns++;
	}
}

/* Options of the pinned examples: amplification 25 %, ratio 1, trigger 3, 6 levels; nothing else. */
static void
reset(void)
{
	paimon_compaction_options_init(&opt);
	opt.num_levels = 6;
	opt.trigger = 3;
	opt.max_size_amplification = 25;
	opt.max_runs = 0;
	opt.delete_percent = 0;
	memset(&now, 0, sizeof(now));
	now.last_full = INT64_MIN;
	now.hour = -1;
}

static PaimonCompactionPlan
pick(const char *text)
{
	PaimonCompactionPlan plan;

	parse(text);
	CHECK_EQ(paimon_compaction_pick(runs, nruns, &opt, &now, &plan), PAIMON_OK);
	return plan;
}

static void
expect_at(int line, const char *text, PaimonCompactionReason reason, int first, int count, int level)
{
	PaimonCompactionPlan p = pick(text);

	CHECK_MSG(p.reason == reason && p.first == first && p.nruns == count && p.output_level == level,
			  "line %d: {%s}: %s, runs %d + %d to level %d; not %s, %d + %d, %d", line, text, paimon_compaction_reason_name(p.reason),
			  p.first, p.nruns, p.output_level, paimon_compaction_reason_name(reason), first, count, level);
}

#define EXPECT(text, reason, first, count, level) expect_at(__LINE__, text, PAIMON_COMPACT_##reason, first, count, level)
#define EXPECT_NOTHING(text) expect_at(__LINE__, text, PAIMON_COMPACT_NOTHING, 0, 0, 0)

static int
output_level(int count, int *chosen)
{
	*chosen = count;
	return paimon_compaction_output_level(runs, nruns, 0, chosen, 5);
}

/* The examples of SEMANTICS B 1.5. */
static void
test_pinned(void)
{
	int			n;

	reset();
	EXPECT("0:1 0:2 0:3 0:3", SIZE_AMPLIFICATION, 0, 4, 5);
	EXPECT("0:1 1:1 2:1 3:50", SIZE_RATIO, 0, 3, 2);
	EXPECT("0:1 1:2 2:3 3:50", RUN_COUNT, 0, 3, 2);

	parse("0:1 0:1 1:1 3:1 4:1");
	CHECK_EQ(output_level(1, &n), 1);
	CHECK_EQ(n, 3);
	CHECK_EQ(output_level(2, &n), 1);
	CHECK_EQ(n, 3);
	CHECK_EQ(output_level(3, &n), 2);
	CHECK_EQ(n, 3);
	CHECK_EQ(output_level(4, &n), 3);
	CHECK_EQ(n, 4);
	CHECK_EQ(output_level(5, &n), 5);
	CHECK_EQ(n, 5);

	/* what adding runs for the output's sake uses up goes to the top */
	parse("0:1 0:1 0:1");
	CHECK_EQ(output_level(1, &n), 5);
	CHECK_EQ(n, 3);
	parse("0:1 0:1 1:1");
	CHECK_EQ(output_level(1, &n), 5);
	CHECK_EQ(n, 3);

	/* defaults: equal files of level 0, the first compaction is at the 5th and full */
	paimon_compaction_options_init(&opt);
	EXPECT_NOTHING("0:9 0:9 0:9 0:9");
	EXPECT("0:9 0:9 0:9 0:9 0:9", SIZE_AMPLIFICATION, 0, 5, 2);
	CHECK_EQ(opt.num_levels, 3);
	CHECK_EQ(opt.max_size_amplification, 50);
	CHECK_EQ(opt.size_ratio, 1);
}

static void
test_universal(void)
{
	reset();
	EXPECT_NOTHING("");
	EXPECT_NOTHING("0:5");
	EXPECT_NOTHING("5:5");
	EXPECT_NOTHING("0:9 0:1");

	/* amplification: 26 of 100 is too much, 25 is not, then the count is at the trigger only */
	EXPECT("0:13 0:13 5:100", SIZE_AMPLIFICATION, 0, 3, 5);
	EXPECT_NOTHING("0:12 1:13 5:100");

	/* ratio: up to 1 % larger counts as not larger */
	opt.max_size_amplification = 1000;
	EXPECT("0:100 2:101 5:1000", SIZE_RATIO, 0, 2, 4);
	EXPECT_NOTHING("0:100 2:102 5:1000");
	opt.size_ratio = 2;
	EXPECT("0:100 2:102 5:1000", SIZE_RATIO, 0, 2, 4);
	opt.size_ratio = 1;

	/* two together: level 0 and 1 come along, level 2 only if it is not larger */
	EXPECT("0:1 0:1 0:50 1:500 2:600", SIZE_RATIO, 0, 4, 1);
	EXPECT("0:1 0:1 0:50 1:500 2:551 5:9999", SIZE_RATIO, 0, 5, 4);
	EXPECT_NOTHING("0:1 1:50 5:500");

	/* count: 5 runs, trigger 3: the first 3 at least, to under the 4th */
	EXPECT("0:1 1:2 2:4 4:80 5:200", RUN_COUNT, 0, 3, 3);
	EXPECT("0:1 1:2 2:4 3:7 5:200", RUN_COUNT, 0, 4, 4);

	/* trigger 1: one run rests */
	opt.trigger = 1;
	EXPECT_NOTHING("0:1");
	EXPECT("0:1 5:900", RUN_COUNT, 0, 2, 5);
	opt.trigger = -3;
	EXPECT("0:1 5:900", RUN_COUNT, 0, 2, 5);

	/* levels above num-levels, of a time with more of them */
	opt.num_levels = 2;
	opt.trigger = 2;
	EXPECT("0:1 0:1 4:5000", SIZE_RATIO, 0, 2, 3);
	EXPECT("0:1 0:1 4:1", SIZE_RATIO, 0, 3, 4);
	opt.max_size_amplification = 100;
	EXPECT("0:1 0:1 4:1", SIZE_AMPLIFICATION, 0, 3, 4);

	/* sizes that do not fit sums of 64 bits */
	EXPECT("0:9223372036854775807 0:9223372036854775807 4:1", SIZE_AMPLIFICATION, 0, 3, 4);
	CHECK_EQ(pick("0:9223372036854775807 0:9223372036854775807 4:1").bytes, INT64_MAX);
}

static void
test_offpeak(void)
{
	reset();
	CHECK(!paimon_compaction_offpeak(-1, -1, 3));
	CHECK(!paimon_compaction_offpeak(0, 6, -1));
	CHECK(!paimon_compaction_offpeak(2, 6, 1));
	CHECK(paimon_compaction_offpeak(2, 6, 2));
	CHECK(paimon_compaction_offpeak(2, 6, 5));
	CHECK(!paimon_compaction_offpeak(2, 6, 6));
	CHECK(paimon_compaction_offpeak(22, 4, 23));
	CHECK(paimon_compaction_offpeak(22, 4, 0));
	CHECK(!paimon_compaction_offpeak(22, 4, 4));
	CHECK(!paimon_compaction_offpeak(22, 4, 21));
	CHECK(!paimon_compaction_offpeak(5, 5, 5));

	opt.max_size_amplification = 1000;
	opt.offpeak_start = 22;
	opt.offpeak_end = 4;
	opt.offpeak_ratio = 10;
	now.hour = 12;
	EXPECT_NOTHING("0:100 2:111 5:1000");
	now.hour = 3;
	EXPECT("0:100 2:111 5:1000", SIZE_RATIO, 0, 2, 4);
	EXPECT_NOTHING("0:100 2:112 5:1000");
}

static void
test_full(void)
{
	PaimonCompactionPlan p;

	/* forced: unless all is in one run at the top already */
	reset();
	now.force_full = true;
	EXPECT("0:1 5:900", FORCED_FULL, 0, 2, 5);
	EXPECT("0:1", FORCED_FULL, 0, 1, 5);
	EXPECT("4:1", FORCED_FULL, 0, 1, 5);
	EXPECT_NOTHING("5:900");
	EXPECT_NOTHING("");
	EXPECT("5:900d1", FORCED_FULL, 0, 1, 5);
	opt.keep_deletes = true;
	EXPECT_NOTHING("5:900d1");
	now.force_full = false;
	now.force_rewrite = true;
	EXPECT("5:900", FORCED_FULL, 0, 1, 5);
	p = pick("0:7 5:900");
	CHECK(p.full && p.force_rewrite && !p.drop_deletes);
	CHECK_EQ(p.bytes, 907);
	CHECK_EQ(p.rows, 907);
	CHECK_EQ(p.nfiles, 2);

	/* every so many commits */
	reset();
	opt.full_delta_commits = 3;
	now.commits_since_full = 2;
	EXPECT_NOTHING("0:1 5:900");
	now.commits_since_full = 3;
	EXPECT("0:1 5:900", DELTA_COMMITS, 0, 2, 5);
	EXPECT("0:1", DELTA_COMMITS, 0, 1, 5);
	EXPECT_NOTHING("5:900");

	/* interval: never before, long ago, just now, clock set back; a single run rests */
	reset();
	opt.optimization_interval = 60;
	now.now = 1000;
	EXPECT("0:1 5:900", INTERVAL, 0, 2, 5);
	EXPECT_NOTHING("0:1");
	now.last_full = 940;
	EXPECT("0:1 5:900", INTERVAL, 0, 2, 5);
	now.last_full = 941;
	EXPECT_NOTHING("0:1 5:900");
	now.last_full = 2000;
	EXPECT_NOTHING("0:1 5:900");
	now.last_full = INT64_MIN + 1;
	now.now = INT64_MAX;
	EXPECT("0:1 5:900", INTERVAL, 0, 2, 5);

	/* thresholds: total below; outside of the top level above */
	reset();
	opt.total_size_threshold = 902;
	EXPECT("0:1 5:900", TOTAL_SIZE, 0, 2, 5);
	EXPECT_NOTHING("0:2 5:900");
	EXPECT_NOTHING("0:1");
	reset();
	opt.incremental_size_threshold = 10;
	EXPECT_NOTHING("0:10 5:900");
	EXPECT("0:11 5:900", INCREMENTAL_SIZE, 0, 2, 5);
	EXPECT("0:5 4:6", INCREMENTAL_SIZE, 0, 2, 5);
	EXPECT_NOTHING("4:600");
}

/* Runs of one commit count as one and stay together. */
static void
test_groups(void)
{
	PaimonCompactionCount c;

	reset();
	parse("0:1 0:2 +0:2 +0:2 0:1 1:9 2:90");
	paimon_compaction_count(runs, nruns, &c);
	CHECK_EQ(c.runs, 7);
	CHECK_EQ(c.counted, 5);
	CHECK_EQ(c.mergeable, 5);
	CHECK_EQ(c.first, 0);

	EXPECT_NOTHING("0:5 +0:5 +0:5 5:10");
	EXPECT("0:5 +0:5 0:1 5:10", SIZE_AMPLIFICATION, 0, 4, 5);

	/* a commit is taken whole: its two runs are larger than the one before, one of them would not be */
	opt.max_size_amplification = 10000;
	EXPECT_NOTHING("0:5 0:5 +0:5 5:999");
	EXPECT("0:5 0:5 0:1 5:999", SIZE_RATIO, 0, 3, 4);
	EXPECT("0:1 +0:1 0:50 +0:50 0:300 +0:300 5:9999", RUN_COUNT, 0, 6, 4);

	/* "last run" of the amplification is a whole commit, too */
	opt.max_size_amplification = 100;
	EXPECT("0:3 0:2 0:2 +0:2", SIZE_AMPLIFICATION, 0, 4, 5);
	EXPECT_NOTHING("0:1 0:2 0:2 +0:2");

	/* a commit of many runs: above max_runs and the trigger */
	reset();
	EXPECT_NOTHING("0:5 +0:5 +0:5 +0:5 5:500");
	opt.max_runs = 4;
	EXPECT("0:5 +0:5 +0:5 +0:5 5:500", WIDE_COMMIT, 0, 4, 4);
	EXPECT_NOTHING("0:5 +0:5 +0:5 5:500");
	opt.max_runs = 1;
	EXPECT_NOTHING("0:5 +0:5 5:500");
	EXPECT("0:5 +0:5 +0:5 5:15", WIDE_COMMIT, 0, 4, 5);
	EXPECT("0:5 +0:5 +0:5 +0:5", WIDE_COMMIT, 0, 4, 5);
}

/* Runs without a snapshot id and what is newer are left alone. */
static void
test_pending(void)
{
	PaimonCompactionCount c;

	reset();
	parse("!0:1 0:1 !0:5 +!0:5 0:1 1:9 2:90");
	paimon_compaction_count(runs, nruns, &c);
	CHECK_EQ(c.counted, 6);
	CHECK_EQ(c.mergeable, 3);
	CHECK_EQ(c.first, 4);

	EXPECT("!0:1 0:1 0:2 0:3 0:3", SIZE_AMPLIFICATION, 1, 4, 5);
	EXPECT_NOTHING("!0:1 0:1 0:1");
	EXPECT_NOTHING("!0:1 !0:1 !0:1 !0:1");
	EXPECT("0:1 0:1 !0:1 0:1 1:1 2:1 3:50", SIZE_RATIO, 3, 3, 2);

	/* half of a commit pending: all of it */
	EXPECT_NOTHING("!0:1 +0:1 +0:1 +0:1 5:1");
	EXPECT_NOTHING("0:1 +0:1 +!0:1 0:1 5:1");
	now.force_full = true;
	EXPECT("!0:1 +0:1 0:1 0:1 5:100", FORCED_FULL, 2, 3, 5);
	EXPECT_NOTHING("!0:1 0:1 !0:1");
	CHECK(pick("!0:1 +0:1 0:1 0:1 5:100").full);
	CHECK(pick("!0:1 +0:1 0:1 0:1 5:100").drop_deletes);
}

static void
test_level0(void)
{
	reset();
	opt.force_up_level0 = true;
	EXPECT("0:1 1:50 5:500", LEVEL0, 0, 2, 4);
	EXPECT("0:1 2:50", LEVEL0, 0, 1, 1);
	EXPECT("0:1", LEVEL0, 0, 1, 5);
	EXPECT("0:1 1:50", LEVEL0, 0, 2, 5);
	EXPECT("0:100 5:100", LEVEL0, 0, 2, 5);
	EXPECT_NOTHING("1:5 5:500");
	EXPECT_NOTHING("!0:1 1:5 5:500");
	opt.force_up_level0 = false;
	EXPECT_NOTHING("0:1 2:50");
	now.force_up_level0 = true;
	EXPECT("0:1 2:50", LEVEL0, 0, 1, 1);
}

/* Files far out: only if asked for, and only if nothing else is to be done; level 0 is lifted, others stay in their level. */
static void
test_relocation(void)
{
	PaimonCompactionPlan p;

	reset();
	EXPECT_NOTHING("0:1f1 5:500f100");
	now.relocate = true;
	EXPECT_NOTHING("0:1 1:20 5:500");
	EXPECT("0:1 1:20 5:500f100", RELOCATION, 2, 1, 5);
	EXPECT("0:1f1 5:500f100", RELOCATION, 0, 1, 4);
	EXPECT("0:1f1", RELOCATION, 0, 1, 5);
	EXPECT("0:1f1 1:20 5:500", RELOCATION, 0, 2, 4);
	EXPECT("1:20f1 5:500f1", RELOCATION, 0, 1, 1);
	EXPECT("!0:1f1 5:500f1", RELOCATION, 1, 1, 5);
	EXPECT_NOTHING("!0:1f1 5:500");

	/* what the options want comes first */
	EXPECT("0:1 1:1 2:1 3:50f50", SIZE_RATIO, 0, 3, 2);

	/* delete rows stay: older snapshots get the new file, too */
	p = pick("5:500d10");
	CHECK_EQ(p.reason, PAIMON_COMPACT_NOTHING);
	parse("5:500d10");
	runs[0].far_bytes = 1;
	CHECK_EQ(paimon_compaction_pick(runs, nruns, &opt, &now, &p), PAIMON_OK);
	CHECK_EQ(p.reason, PAIMON_COMPACT_RELOCATION);
	CHECK(!p.drop_deletes);
}

static void
test_deletes(void)
{
	PaimonCompactionPlan p;

	reset();
	opt.delete_percent = 30;
	EXPECT_NOTHING("0:29d29 5:100");
	EXPECT("0:30d30 5:100", DELETES, 0, 2, 5);
	EXPECT("0:30d30", DELETES, 0, 1, 5);
	EXPECT_NOTHING("0:30");
	opt.keep_deletes = true;
	EXPECT_NOTHING("0:30d30 5:100");
	CHECK(!pick("0:1 0:2 0:3 0:3").drop_deletes);

	reset();
	p = pick("0:1 0:2 0:3 0:3");
	CHECK(p.drop_deletes && p.full);
	p = pick("0:1 1:1 2:1 3:50");
	CHECK(!p.drop_deletes && !p.full);
	CHECK_EQ(p.max_level, 5);

	parse("0:1 0:1 1:1 3:1");
	CHECK(paimon_compaction_may_drop_deletes(runs, nruns, 0, 4, 3));
	CHECK(paimon_compaction_may_drop_deletes(runs, nruns, 1, 3, 5));
	CHECK(!paimon_compaction_may_drop_deletes(runs, nruns, 0, 3, 2));
	CHECK(!paimon_compaction_may_drop_deletes(runs, nruns, 0, 3, 3));
	CHECK(!paimon_compaction_may_drop_deletes(runs, nruns, 0, 4, 2));
	parse("0:1 0:1");
	CHECK(!paimon_compaction_may_drop_deletes(runs, nruns, 0, 2, 0));
	CHECK(paimon_compaction_may_drop_deletes(runs, nruns, 0, 2, 1));
}

static void
expect_refused(const char *text, int at)
{
	PaimonCompactionPlan plan;
	int			problem;

	parse(text);
	CHECK(!paimon_compaction_check(runs, nruns, &problem));
	CHECK_EQ(problem, at);
	CHECK_EQ(paimon_compaction_pick(runs, nruns, &opt, &now, &plan), PAIMON_CORRUPT);
	CHECK_EQ(plan.reason, PAIMON_COMPACT_NOTHING);
}

static void
test_check(void)
{
	int			problem;

	reset();
	expect_refused("0:1 2:1 1:1", 2);
	expect_refused("0:1 1:1 1:1", 2);
	expect_refused("1:1 0:1", 1);
	expect_refused("0:1 0:-1", 1);
	expect_refused("-1:1", 0);
	expect_refused("0:1d2", 0);
	expect_refused("0:1 !1:1", 1);
	parse("0:1 0:1 0:1");
	CHECK(paimon_compaction_check(runs, nruns, &problem));
	runs[2].group = runs[0].group;
	CHECK(!paimon_compaction_check(runs, nruns, &problem));

	for (int i = 0; i <= PAIMON_COMPACT_RELOCATION; i++)
		for (int j = 0; j <= i; j++)
			CHECK((strcmp(paimon_compaction_reason_name(i), paimon_compaction_reason_name(j)) == 0) == (i == j));
	CHECK(strcmp(paimon_compaction_reason_name(PAIMON_COMPACT_RELOCATION), "unknown") != 0);
}

/* ---- files ---- */

#define MAX_FILES 200

static PaimonCompactionFile files[MAX_FILES];
static int	nfiles;
static uint8_t keys[MAX_FILES][2][2];
static PaimonCompactionFileOptions fopt;
static UnitArena arena;
static PaimonAllocator alloc;

/* A file with keys of one byte from lo to hi; 0 = unbounded. */
static void
add_file(int run, int level, int lo, int hi, int64_t bytes, int64_t deletes)
{
	PaimonCompactionFile *f = &files[nfiles];

	memset(f, 0, sizeof(*f));
	keys[nfiles][0][0] = (uint8_t) lo;
	keys[nfiles][1][0] = (uint8_t) hi;
	if (lo != 0)
		f->min_key = (PaimonBytes) {keys[nfiles][0], 1};
	if (hi != 0)
		f->max_key = (PaimonBytes) {keys[nfiles][1], 1};
	f->bytes = bytes;
	f->rows = bytes;
	f->deletes = deletes;
	f->level = level;
	f->run = run;
	nfiles++;
}

/* Steps as text: "U:01 K:2 R:3,45": action, files in order; sections apart by commas. */
static const char *
steps_text(void)
{
	static char text[1000];
	PaimonCompactionSections s;
	char	   *p = text;

	CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_OK);
	for (int i = 0; i < s.nsteps; i++)
	{
		const PaimonCompactionStep *step = &s.steps[i];

		p += sprintf(p, "%s%c:", i > 0 ? " " : "", "KUR"[step->action]);
		for (int j = 0; j < step->nsections; j++)
		{
			const PaimonCompactionSection *sec = &s.sections[step->first_section + j];

			if (j > 0)
				*p++ = ',';
			for (int k = 0; k < sec->nfiles; k++)
				p += sprintf(p, "%d", s.order[sec->first + k]);
		}
	}
	*p = '\0';
	nfiles = 0;
	unit_arena_reset(&arena);
	return text;
}

static void
expect_steps(int line, const char *want)
{
	const char *got = steps_text();

	CHECK_MSG(strcmp(got, want) == 0, "line %d: \"%s\", not \"%s\"", line, got, want);
}

#define EXPECT_STEPS(want) expect_steps(__LINE__, want)

static void
test_sections(void)
{
	fopt = (PaimonCompactionFileOptions) {.output_level = 2,.target_file_size = 100,.small_file_ratio = 0.7};
	EXPECT_STEPS("");

	/* apart: lifted, kept */
	add_file(0, 0, 'a', 'c', 70, 0);
	add_file(1, 2, 'd', 'f', 70, 0);
	add_file(1, 2, 'g', 'h', 70, 0);
	EXPECT_STEPS("U:0 K:1,2");

	/* bounds are inclusive: c and c meet, and only these are merged */
	add_file(0, 0, 'a', 'c', 70, 0);
	add_file(1, 2, 'c', 'f', 70, 0);
	add_file(1, 2, 'g', 'h', 70, 0);
	EXPECT_STEPS("R:01 K:2");

	/* a range that spans two files joins them; the newest run comes first */
	add_file(1, 2, 'a', 'c', 70, 0);
	add_file(1, 2, 'e', 'f', 70, 0);
	add_file(0, 0, 'b', 'e', 70, 0);
	add_file(1, 2, 'g', 'h', 70, 0);
	EXPECT_STEPS("R:201 K:3");

	/* small ones: alone, neighbours, beside a merge, apart by a large one */
	add_file(0, 0, 'a', 'c', 69, 0);
	EXPECT_STEPS("U:0");
	add_file(0, 2, 'a', 'c', 69, 0);
	EXPECT_STEPS("K:0");
	add_file(0, 0, 'a', 'b', 69, 0);
	add_file(0, 0, 'c', 'd', 69, 0);
	add_file(0, 0, 'e', 'f', 70, 0);
	add_file(0, 0, 'g', 'h', 69, 0);
	EXPECT_STEPS("R:0,1 U:2,3");
	add_file(0, 0, 'a', 'b', 69, 0);
	add_file(0, 0, 'c', 'd', 500, 0);
	add_file(1, 2, 'd', 'd', 500, 0);
	add_file(0, 0, 'g', 'h', 69, 0);
	EXPECT_STEPS("R:0,12,3");

	/* delete rows: only if they can go */
	add_file(0, 0, 'a', 'b', 70, 1);
	add_file(0, 0, 'c', 'd', 70, 0);
	EXPECT_STEPS("U:0,1");
	fopt.drop_deletes = true;
	add_file(0, 0, 'a', 'b', 70, 1);
	add_file(0, 0, 'c', 'd', 70, 0);
	EXPECT_STEPS("R:0 U:1");
	add_file(0, 2, 'a', 'b', 9, 9);
	EXPECT_STEPS("R:0");
	fopt.drop_deletes = false;

	/* what is to be moved is rewritten, wherever it is */
	add_file(1, 2, 'a', 'c', 70, 0);
	add_file(1, 2, 'd', 'f', 70, 0);
	files[1].move = true;
	add_file(0, 0, 'g', 'h', 70, 0);
	EXPECT_STEPS("K:0 R:1 U:2");

	/* all, if that is wanted */
	fopt.force_rewrite = true;
	add_file(0, 2, 'a', 'b', 70, 0);
	add_file(0, 2, 'c', 'd', 700, 0);
	EXPECT_STEPS("R:0,1");
	fopt.force_rewrite = false;

	/* unbounded; shortened bounds of one run that touch: together, but no merge */
	add_file(0, 0, 'x', 0, 70, 0);
	add_file(0, 0, 0, 'a', 70, 0);
	EXPECT_STEPS("U:1,0");
	add_file(0, 0, 'a', 0, 70, 0);
	add_file(1, 2, 'x', 'y', 70, 0);
	EXPECT_STEPS("R:01");
	add_file(0, 0, 'a', 0, 70, 0);
	add_file(1, 2, 'b', 'c', 70, 0);
	add_file(1, 2, 'x', 'y', 70, 0);
	EXPECT_STEPS("R:012");
	add_file(0, 0, 'b', 0, 70, 0);
	add_file(1, 2, 'a', 'c', 70, 0);
	add_file(1, 2, 'x', 'y', 70, 0);
	EXPECT_STEPS("R:012");
	add_file(0, 0, 'a', 'b', 70, 0);
	add_file(0, 0, 'b', 'c', 70, 0);
	EXPECT_STEPS("U:01");

	/* nonsense */
	{
		PaimonCompactionSections s;

		add_file(0, 0, 'b', 'a', 70, 0);
		CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_CORRUPT);
		nfiles = 0;
		add_file(0, 0, 'a', 'b', -1, 0);
		CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_CORRUPT);
		nfiles = 0;
		add_file(0, 0, 'a', 'b', 1, 2);
		CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_CORRUPT);
		nfiles = 0;
	}
}

static void
test_split(void)
{
	int64_t		each;

	CHECK_EQ(paimon_compaction_split(0, 100, 0.7, &each), 0);
	CHECK_EQ(paimon_compaction_split(1, 100, 0.7, &each), 1);
	CHECK_EQ(each, 100);
	CHECK_EQ(paimon_compaction_split(100, 100, 0.7, &each), 1);
	CHECK_EQ(each, 100);
	CHECK_EQ(paimon_compaction_split(139, 100, 0.7, &each), 1);
	CHECK_EQ(each, 139);
	CHECK_EQ(paimon_compaction_split(140, 100, 0.7, &each), 2);
	CHECK_EQ(each, 70);
	CHECK_EQ(paimon_compaction_split(201, 100, 0.7, &each), 2);
	CHECK_EQ(each, 101);
	CHECK_EQ(paimon_compaction_split(1001, 100, 0.7, &each), 11);
	CHECK_EQ(each, 91);
	CHECK_EQ(paimon_compaction_split(5, 0, 0.7, &each), 5);
	paimon_compaction_split(INT64_MAX, 1, 0.7, &each);
	for (int i = 0; i < 2000; i++)
	{
		int64_t		bytes = (int64_t) (unit_rand_skewed() >> 14); /* exact in floating point */
		int64_t		target = 1 + (int64_t) unit_below(1 + (uint64_t) bytes * 2 / (1 + unit_below(200)));
		double		ratio = (double) unit_below(101) / 100;
		int			n = paimon_compaction_split(bytes, target, ratio, &each);

		if (bytes == 0 || bytes / target > 1000000)
			continue;
		CHECK((double) n * (double) each >= (double) bytes && (double) (n - 1) * (double) each < (double) bytes);
		CHECK(n == 1 || (double) each >= (double) target * (ratio < 0.5 ? ratio : 0.5));
		CHECK((double) each <= (double) target * (ratio > 0.5 ? 2.01 : 1) + 1);
	}
}

/* Random files against the definition. */
static void
test_sections_random(void)
{
	for (int round = 0; round < 3000; round++)
	{
		PaimonCompactionSections s;
		int			section_of[MAX_FILES];
		int			step_of[MAX_FILES];
		int			at = 0;
		int			nrun = 1 + (int) unit_below(5);
		int64_t		rewritten = 0;

		/* files of a run in key order without overlap, runs of different levels */
		nfiles = 0;
		for (int run = 0; run < nrun; run++)
		{
			int			key = 1 + (int) unit_below(100);

			while (key < 250 && nfiles < 100)
			{
				int			hi = key + (int) unit_below(1 + unit_below(20));

				add_file(run, run == nrun - 1 ? 2 : (run > 0), key, hi < 250 ? hi : 250, (int64_t) unit_below(150), 0);
				if (unit_below(5) == 0)
					files[nfiles - 1].deletes = (int64_t) unit_below((uint64_t) files[nfiles - 1].bytes);
				key = hi + 1 + (int) unit_below(1 + unit_below(30));
			}
		}
		for (int i = nfiles - 1; i > 0; i--)
		{
			/* in any order; the keys' bytes stay where they are */
			int			j = (int) unit_below((uint64_t) i + 1);
			PaimonCompactionFile f = files[i];

			files[i] = files[j];
			files[j] = f;
		}
		fopt.drop_deletes = unit_below(2) == 0;
		fopt.force_rewrite = unit_below(10) == 0;
		CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_OK);

		/* every file in one section, every section in one step, all in order */
		for (int i = 0; i < nfiles; i++)
			section_of[i] = -1;
		for (int i = 0, sec = 0; i < s.nsteps; i++)
		{
			CHECK_EQ(s.steps[i].first, at);
			CHECK_EQ(s.steps[i].first_section, sec);
			for (; sec < s.steps[i].first_section + s.steps[i].nsections; sec++)
			{
				CHECK_EQ(s.sections[sec].first, at);
				for (int k = 0; k < s.sections[sec].nfiles; k++, at++)
				{
					CHECK_EQ(section_of[s.order[at]], -1);
					section_of[s.order[at]] = sec;
					step_of[s.order[at]] = i;
					if (k > 0)
						CHECK(files[s.order[at - 1]].run <= files[s.order[at]].run);
				}
			}
			CHECK_EQ(at, s.steps[i].first + s.steps[i].nfiles);
			rewritten += s.steps[i].action == PAIMON_COMPACT_REWRITE ? s.steps[i].bytes : 0;
		}
		CHECK_EQ(at, nfiles);
		CHECK_EQ(rewritten, s.rewrite_bytes);

		for (int i = 0; i < nfiles; i++)
		{
			const PaimonCompactionStep *step = &s.steps[step_of[i]];

			/* sections ascend without touching; overlapping files share one, and are merged */
			for (int j = 0; j < nfiles; j++)
			{
				bool		before = files[i].max_key.data[0] < files[j].min_key.data[0];

				if (section_of[i] < section_of[j])
					CHECK(before);
				else if (i != j && !before && files[j].max_key.data[0] >= files[i].min_key.data[0])
				{
					CHECK_EQ(section_of[i], section_of[j]);
					CHECK_EQ(step->action, PAIMON_COMPACT_REWRITE);
				}
			}
			if (step->action != PAIMON_COMPACT_REWRITE)
			{
				CHECK_EQ(step->action == PAIMON_COMPACT_KEEP, files[i].level == 2);
				CHECK(!fopt.force_rewrite && !(fopt.drop_deletes && files[i].deletes > 0));
			}
		}
		unit_arena_reset(&arena);
	}
	nfiles = 0;
}

static void
test_no_memory(void)
{
	PaimonCompactionSections s;

	add_file(0, 0, 'a', 'b', 70, 0);
	for (int i = 0; i < 4; i++)
	{
		arena.fail_after = i;
		CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_NO_MEMORY);
	}
	arena.fail_after = -1;
	CHECK_EQ(paimon_compaction_sections(files, nfiles, &fopt, &alloc, &s), PAIMON_OK);
	unit_arena_reset(&arena);
}

int
main(int argc, char **argv)
{
	unit_begin("compaction", argc, argv);
	alloc = unit_arena_init(&arena);
	test_pinned();
	test_universal();
	test_offpeak();
	test_full();
	test_groups();
	test_pending();
	test_level0();
	test_relocation();
	test_deletes();
	test_check();
	test_sections();
	test_split();
	test_sections_random();
	test_no_memory();
	return unit_end();
}
