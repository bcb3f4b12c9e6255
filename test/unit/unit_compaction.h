/*-------------------------------------------------------------------------
 *
 * unit_compaction.h
 *	  A model of a bucket: real keys in files in runs, small enough to be compared with the truth at any time.
 *
 * Plans of the compaction choice are carried out as the rewriter does it, file by file, and every claim that core_compaction.h makes about a plan is
 * checked on the way.  A row, delete rows included, has SIM_ROW bytes.  Versions grow with time; bit 0 = delete row.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_UNIT_COMPACTION_H
#define PAIMON_UNIT_COMPACTION_H

#include "core/core_compaction.h"
#include "unit.h"

#define SIM_ROW 100
#define SIM_MAX_RUNS 512
#define SIM_MAX_KEYS 4096

typedef struct SimEntry
{
	uint32_t	key;
	uint32_t	version;
} SimEntry;

typedef struct SimFile
{
	int			level;
	int			n;
	int64_t		deletes;
	uint8_t		lo[4];			/* first and last key, big-endian */
	uint8_t		hi[4];
	SimEntry   *e;
} SimFile;

typedef struct SimRun
{
	uint64_t	id;
	PaimonCompactionRun sum;	/* of its files */
	SimFile   **files;			/* sum.nfiles of them */
} SimRun;

typedef struct SimBucket
{
	SimRun	   *runs[SIM_MAX_RUNS];	/* newest first */
	int			nruns;
	int			nkeys;			/* keys are 0 … nkeys - 1 */
	int64_t		target_file_size;
	uint32_t	truth[SIM_MAX_KEYS];	/* newest version of each key, 0 = never written */
	uint32_t	version;
	uint64_t	position;		/* log */
	uint64_t	next_id;

	int64_t		rows_in;		/* written by commits */
	int64_t		rows_merged;	/* written by compactions */
	int64_t		rows_lifted;	/* changed their level only */
	int64_t		deletes_in;
	int64_t		commits;
	int64_t		largest_commit; /* rows */
	int64_t		plans[PAIMON_COMPACT_LEVEL0 + 1];
} SimBucket;

static UNIT_UNUSED int64_t
sim_live(const SimBucket *b)
{
	int64_t		n = 0;

	for (int i = 0; i < b->nkeys; i++)
		n += b->truth[i] != 0 && (b->truth[i] & 1) == 0;
	return n;
}

static UNIT_UNUSED void
sim_file_free(SimFile *f)
{
	free(f->e);
	free(f);
}

static UNIT_UNUSED SimFile *
sim_file_make(const SimEntry *e, int n, int level)
{
	SimFile    *f = calloc(1, sizeof(*f));

	f->level = level;
	f->n = n;
	f->e = malloc((size_t) n * sizeof(*e));
	memcpy(f->e, e, (size_t) n * sizeof(*e));
	for (int i = 0; i < n; i++)
		f->deletes += e[i].version & 1;
	for (int i = 0; i < 4; i++)
	{
		f->lo[i] = (uint8_t) (e[0].key >> (24 - 8 * i));
		f->hi[i] = (uint8_t) (e[n - 1].key >> (24 - 8 * i));
	}
	return f;
}

/* Adds a file to the end of a run. */
static UNIT_UNUSED void
sim_run_add(SimRun *run, SimFile *f)
{
	run->files = realloc(run->files, (size_t) (run->sum.nfiles + 1) * sizeof(SimFile *));
	run->files[run->sum.nfiles++] = f;
	run->sum.bytes += (int64_t) f->n * SIM_ROW;
	run->sum.rows += f->n;
	run->sum.deletes += f->deletes;
}

static UNIT_UNUSED void
sim_run_free(SimRun *run, bool files_too)
{
	for (int i = 0; files_too && i < run->sum.nfiles; i++)
		sim_file_free(run->files[i]);
	free(run->files);
	free(run);
}

static UNIT_UNUSED void
sim_free(SimBucket *b)
{
	for (int i = 0; i < b->nruns; i++)
		sim_run_free(b->runs[i], true);
	free(b);
}

static UNIT_UNUSED SimBucket *
sim_make(int nkeys, int64_t target_file_size)
{
	SimBucket  *b = calloc(1, sizeof(*b));

	b->nkeys = nkeys;
	b->target_file_size = target_file_size;
	return b;
}

static UNIT_UNUSED int
sim_entry_cmp(const void *pa, const void *pb)
{
	const SimEntry *a = pa;
	const SimEntry *b = pb;

	return (a->key > b->key) - (a->key < b->key);
}

/* A new level-0 run of different keys, in any order; versions are given here.  The same position as before: the same commit. */
static UNIT_UNUSED void
sim_write(SimBucket *b, SimEntry *e, int n, bool same_commit, bool pending)
{
	SimRun	   *run = calloc(1, sizeof(*run));
	int			per_file = (int) (b->target_file_size / SIM_ROW) + 1;

	qsort(e, (size_t) n, sizeof(*e), sim_entry_cmp);
	b->version++;
	for (int i = 0; i < n; i++)
	{
		e[i].version = (b->version << 1) | (e[i].version & 1);
		b->truth[e[i].key] = e[i].version;
		b->deletes_in += e[i].version & 1;
	}
	for (int i = 0; i < n; i += per_file)
		sim_run_add(run, sim_file_make(e + i, n - i < per_file ? n - i : per_file, 0));
	b->rows_in += n;
	if (!same_commit)
	{
		b->position++;
		b->commits++;
	}
	run->id = ++b->next_id;
	run->sum.group = b->position;
	run->sum.pending = pending;
	memmove(&b->runs[1], &b->runs[0], (size_t) b->nruns * sizeof(b->runs[0]));
	b->runs[0] = run;
	b->nruns++;
}

/* Reads everything, newest first, and compares; that versions fall on the way is the age order. */
static UNIT_UNUSED void
sim_verify(const SimBucket *b)
{
	static uint32_t seen[SIM_MAX_KEYS];
	bool		ordered = true;
	bool		right = true;

	memset(seen, 0, sizeof(seen));
	for (int r = 0; r < b->nruns; r++)
		for (int f = 0; f < b->runs[r]->sum.nfiles; f++)
			for (int i = 0; i < b->runs[r]->files[f]->n; i++)
			{
				const SimEntry *e = &b->runs[r]->files[f]->e[i];

				if (seen[e->key] == 0)
					seen[e->key] = e->version;
				else if (seen[e->key] <= e->version)
					ordered = false;
			}
	for (int i = 0; i < b->nkeys; i++)
		if (seen[i] != b->truth[i] && !(seen[i] == 0 && (b->truth[i] & 1)))
			right = false;
	CHECK_MSG(ordered, "a record is in front of a newer one");
	CHECK_MSG(right, "contents are wrong");
}

static UNIT_UNUSED int
sim_choice(const SimBucket *b, const PaimonCompactionOptions *o, const PaimonCompactionNow *now, PaimonCompactionPlan *plan,
		   PaimonCompactionRun *runs)
{
	int			problem;

	for (int i = 0; i < b->nruns; i++)
		runs[i] = b->runs[i]->sum;
	CHECK(paimon_compaction_check(runs, b->nruns, &problem));
	CHECK_EQ(paimon_compaction_pick(runs, b->nruns, o, now, plan), PAIMON_OK);
	return b->nruns;
}

/* What the header promises of a plan (1 and 2), and its flags. */
static UNIT_UNUSED void
sim_check_plan(const PaimonCompactionRun *runs, int nruns, const PaimonCompactionOptions *o, const PaimonCompactionPlan *p)
{
	int			end = p->first + p->nruns;
	int64_t		bytes = 0;

	CHECK(p->nruns >= 1 && end <= nruns);
	for (int i = p->first; i < nruns; i++)
		CHECK(!runs[i].pending);
	CHECK(p->first == 0 || runs[p->first].level > 0 || runs[p->first - 1].group != runs[p->first].group);
	CHECK(end == nruns || runs[end].level > 0 || runs[end - 1].group != runs[end].group);
	CHECK(p->first == 0 || (runs[p->first - 1].level == 0));
	CHECK(p->output_level >= 1 && p->output_level <= p->max_level);
	CHECK(p->output_level >= runs[end - 1].level);
	for (int i = end; i < nruns; i++)
		CHECK(runs[i].level > p->output_level);
	CHECK_EQ(p->full, end == nruns);
	CHECK_EQ(p->drop_deletes, end == nruns && !o->keep_deletes);
	if (p->full)
		CHECK_EQ(p->output_level, p->max_level);
	for (int i = p->first; i < end; i++)
		bytes += runs[i].bytes;
	CHECK_EQ(p->bytes, bytes);
}

/* Merges the files of a REWRITE step into new ones at the end of `out`. */
static UNIT_UNUSED void
sim_rewrite(SimBucket *b, SimRun *out, SimFile **inputs, const PaimonCompactionSections *s, const PaimonCompactionStep *step,
			const PaimonCompactionPlan *p)
{
	static uint32_t newest[SIM_MAX_KEYS];
	static SimEntry buffer[SIM_MAX_KEYS];
	int			n = 0;
	int			nfiles = 0;
	int			per_file = (int) ((step->out_bytes + SIM_ROW - 1) / SIM_ROW);

	for (int i = step->first_section; i < step->first_section + step->nsections; i++)
	{
		const PaimonCompactionSection *sec = &s->sections[i];
		uint32_t	lo = UINT32_MAX;
		uint32_t	hi = 0;

		for (int j = sec->first; j < sec->first + sec->nfiles; j++)
		{
			const SimFile *f = inputs[s->order[j]];

			for (int k = 0; k < f->n; k++)
			{
				if (newest[f->e[k].key] == 0)
					newest[f->e[k].key] = f->e[k].version;
				else
					CHECK(newest[f->e[k].key] > f->e[k].version);
			}
			lo = f->e[0].key < lo ? f->e[0].key : lo;
			hi = f->e[f->n - 1].key > hi ? f->e[f->n - 1].key : hi;
		}
		for (uint32_t key = lo; key <= hi; key++)
		{
			if (newest[key] != 0 && !(p->drop_deletes && (newest[key] & 1)))
				buffer[n++] = (SimEntry) {key, newest[key]};
			newest[key] = 0;
			if (n == per_file)
			{
				sim_run_add(out, sim_file_make(buffer, n, p->output_level));
				b->rows_merged += n;
				nfiles++;
				n = 0;
			}
		}
	}
	if (n > 0)
	{
		sim_run_add(out, sim_file_make(buffer, n, p->output_level));
		b->rows_merged += n;
		nfiles++;
	}
	CHECK(nfiles <= step->out_files);
}

/* Carries a plan out whose first run has this id; newer runs may have come meanwhile.  The rows of `rows_merged` and `rows_lifted` are added. */
static UNIT_UNUSED void
sim_apply(SimBucket *b, const PaimonCompactionPlan *p, uint64_t first_id)
{
	UnitArena	arena;
	PaimonAllocator alloc = unit_arena_init(&arena);
	PaimonCompactionFileOptions fo = {.output_level = p->output_level,.drop_deletes = p->drop_deletes,.force_rewrite = p->force_rewrite,
	.target_file_size = b->target_file_size,.small_file_ratio = 0.7};
	PaimonCompactionSections s;
	PaimonCompactionFile *files = malloc((size_t) (p->nfiles + 1) * sizeof(*files));
	SimFile   **inputs = malloc((size_t) (p->nfiles + 1) * sizeof(*inputs));
	SimRun	   *out = calloc(1, sizeof(*out));
	PaimonCompactionRun only;
	int			first = 0;
	int			n = 0;

	while (b->runs[first]->id != first_id)
		first++;
	only = b->runs[first]->sum;
	for (int r = 0; r < p->nruns; r++)
		for (int i = 0; i < b->runs[first + r]->sum.nfiles; i++, n++)
		{
			SimFile    *f = b->runs[first + r]->files[i];

			inputs[n] = f;
			files[n] = (PaimonCompactionFile) {{f->lo, 4}, {f->hi, 4}, (int64_t) f->n * SIM_ROW, f->n, f->deletes, f->level, r, false};
		}
	CHECK_EQ(n, p->nfiles);
	CHECK_EQ(paimon_compaction_sections(files, n, &fo, &alloc, &s), PAIMON_OK);

	out->id = ++b->next_id;
	out->sum.level = p->output_level;
	for (int i = 0; i < s.nsteps; i++)
	{
		const PaimonCompactionStep *step = &s.steps[i];

		if (step->action == PAIMON_COMPACT_REWRITE)
			sim_rewrite(b, out, inputs, &s, step, p);
		for (int j = step->first; j < step->first + step->nfiles; j++)
		{
			SimFile    *f = inputs[s.order[j]];

			if (step->action == PAIMON_COMPACT_REWRITE)
				sim_file_free(f);
			else
			{
				CHECK((f->level == p->output_level) == (step->action == PAIMON_COMPACT_KEEP));
				b->rows_lifted += step->action == PAIMON_COMPACT_UPGRADE ? f->n : 0;
				f->level = p->output_level;
				sim_run_add(out, f);
			}
		}
	}

	/* never an overlap above level 0 */
	for (int i = 1; i < out->sum.nfiles; i++)
		CHECK(memcmp(out->files[i - 1]->hi, out->files[i]->lo, 4) < 0);
	if (p->drop_deletes)
		CHECK_EQ(out->sum.deletes, 0);

	/* progress, even if it is a single run */
	if (p->nruns == 1)
		CHECK(out->sum.nfiles == 0 || out->sum.level > only.level || out->sum.deletes < only.deletes || p->force_rewrite);

	for (int r = 0; r < p->nruns; r++)
		sim_run_free(b->runs[first + r], false);
	memmove(&b->runs[first], &b->runs[first + p->nruns], (size_t) (b->nruns - first - p->nruns) * sizeof(b->runs[0]));
	b->nruns -= p->nruns;
	if (out->sum.nfiles > 0)
	{
		memmove(&b->runs[first + 1], &b->runs[first], (size_t) (b->nruns - first) * sizeof(b->runs[0]));
		b->runs[first] = out;
		b->nruns++;
	}
	else
		sim_run_free(out, true);
	b->plans[p->reason]++;
	free(files);
	free(inputs);
	unit_arena_reset(&arena);
}

#endif							/* PAIMON_UNIT_COMPACTION_H */
