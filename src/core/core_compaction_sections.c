/*-------------------------------------------------------------------------
 *
 * core_compaction_sections.c
 *	  Which files of a compaction are rewritten, and which only change their level.
 *
 * Files are put in the order of their bounds and cut where no range reaches across: these are the sections.  Bounds may be shortened keys; then
 * ranges reach a little farther than the keys do, and sections come out a little larger, never smaller.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_compaction.h"

#include <limits.h>
#include <stdlib.h>

static int
key_cmp(const PaimonBytes *a, const PaimonBytes *b)
{
	if (a->len == 0 || b->len == 0)
		return (a->len > 0) - (b->len > 0);
	return paimon_bytes_cmp(a->data, a->len, b->data, b->len);
}

/* Upper bounds: empty is above all. */
static int
upper_cmp(const PaimonBytes *a, const PaimonBytes *b)
{
	if (a->len == 0 || b->len == 0)
		return (a->len == 0) - (b->len == 0);
	return key_cmp(a, b);
}

/* Lower bound; equal ones in the order in which the caller gave them (all pointers are into one array). */
static int
by_key(const void *pa, const void *pb)
{
	const PaimonCompactionFile *a = *(const PaimonCompactionFile *const *) pa;
	const PaimonCompactionFile *b = *(const PaimonCompactionFile *const *) pb;
	int			c = key_cmp(&a->min_key, &b->min_key);

	return c != 0 ? c : (a > b) - (a < b);
}

/* Newest run first, then as by_key. */
static int
by_run(const void *pa, const void *pb)
{
	const PaimonCompactionFile *a = *(const PaimonCompactionFile *const *) pa;
	const PaimonCompactionFile *b = *(const PaimonCompactionFile *const *) pb;

	if (a->run != b->run)
		return a->run < b->run ? -1 : 1;
	return by_key(pa, pb);
}

int
paimon_compaction_split(int64_t bytes, int64_t target_file_size, double small_file_ratio, int64_t *file_bytes)
{
	int64_t		n;

	if (target_file_size < 1)
		target_file_size = 1;
	if (bytes <= target_file_size)
	{
		*file_bytes = target_file_size;
		return bytes > 0 ? 1 : 0;
	}
	n = bytes / target_file_size + (bytes % target_file_size != 0);

	/* rather a little above the target than files that would count as small, and be rewritten next time */
	if ((double) bytes / (double) n < (double) target_file_size * small_file_ratio)
		n--;
	*file_bytes = bytes / n + (bytes % n != 0);
	n = bytes / *file_bytes + (bytes % *file_bytes != 0);
	return n > INT_MAX ? INT_MAX : (int) n;
}

static bool
file_is_sane(const PaimonCompactionFile *f)
{
	if (f->bytes < 0 || f->deletes < 0 || f->rows < f->deletes)
		return false;
	return f->max_key.len == 0 || key_cmp(&f->min_key, &f->max_key) <= 0;
}

/* Finds the section that begins at sorted[first]; sorts its files by run. */
static void
make_section(const PaimonCompactionFile **sorted, int nfiles, int first, PaimonCompactionSection *s)
{
	const PaimonBytes *upper = &sorted[first]->max_key;
	int			end = first + 1;

	while (end < nfiles && (upper->len == 0 || key_cmp(&sorted[end]->min_key, upper) <= 0))
	{
		if (upper_cmp(&sorted[end]->max_key, upper) > 0)
			upper = &sorted[end]->max_key;
		end++;
	}
	if (end - first > 1)
		qsort(sorted + first, end - first, sizeof(*sorted), by_run);

	s->first = first;
	s->nfiles = end - first;
	s->nruns = 0;
	s->bytes = 0;
	for (int i = first; i < end; i++)
	{
		if (i == first || sorted[i]->run != sorted[i - 1]->run)
			s->nruns++;
		paimon_compaction_add(&s->bytes, sorted[i]->bytes);
	}
}

/* What is to become of a section, its neighbours left aside. */
typedef enum SectionKind
{
	SECTION_MERGE,				/* rewritten in any case */
	SECTION_SMALL,				/* rewritten together with a neighbour that is, or is small, too */
	SECTION_LARGE				/* not rewritten */
} SectionKind;

static SectionKind
section_kind(const PaimonCompactionFile **sorted, const PaimonCompactionSection *s, const PaimonCompactionFileOptions *o)
{
	SectionKind kind = SECTION_LARGE;

	if (s->nruns > 1 || o->force_rewrite)
		return SECTION_MERGE;
	for (int i = s->first; i < s->first + s->nfiles; i++)
	{
		if (sorted[i]->move || (o->drop_deletes && sorted[i]->deletes > 0))
			return SECTION_MERGE;
		if ((double) sorted[i]->bytes < (double) o->target_file_size * o->small_file_ratio)
			kind = SECTION_SMALL;
	}
	return kind;
}

/* Sections [from, to) get one action; joined with the last step if that has the same one (of rewrites there are never two in a row). */
static void
add_step(const PaimonCompactionFile **sorted, PaimonCompactionSections *out, int from, int to, PaimonCompactionAction action,
		 const PaimonCompactionFileOptions *o)
{
	PaimonCompactionStep *step;

	if (out->nsteps > 0 && out->steps[out->nsteps - 1].action == action)
		step = &out->steps[out->nsteps - 1];
	else
	{
		step = &out->steps[out->nsteps++];
		memset(step, 0, sizeof(*step));
		step->action = action;
		step->first_section = from;
		step->first = out->sections[from].first;
	}
	for (int i = from; i < to; i++)
	{
		const PaimonCompactionSection *s = &out->sections[i];

		step->nsections++;
		step->nfiles += s->nfiles;
		if (s->nruns > step->max_runs)
			step->max_runs = s->nruns;
		paimon_compaction_add(&step->bytes, s->bytes);
		for (int j = s->first; j < s->first + s->nfiles; j++)
			paimon_compaction_add(&step->rows, sorted[j]->rows);
		if (action == PAIMON_COMPACT_REWRITE)
			paimon_compaction_add(&out->rewrite_bytes, s->bytes);
		else if (action == PAIMON_COMPACT_UPGRADE)
			paimon_compaction_add(&out->upgrade_bytes, s->bytes);
	}
	if (action == PAIMON_COMPACT_REWRITE)
		step->out_files = paimon_compaction_split(step->bytes, o->target_file_size, o->small_file_ratio, &step->out_bytes);
}

/* KEEP or UPGRADE, for a section of one run, thus of one level. */
static PaimonCompactionAction
relabel(const PaimonCompactionFile **sorted, const PaimonCompactionSection *s, const PaimonCompactionFileOptions *o)
{
	return sorted[s->first]->level == o->output_level ? PAIMON_COMPACT_KEEP : PAIMON_COMPACT_UPGRADE;
}

/* Ends the stretch [from, to) of sections that are to be rewritten; a single small one gains nothing by it. */
static void
end_stretch(const PaimonCompactionFile **sorted, PaimonCompactionSections *out, int from, int to, const PaimonCompactionFileOptions *o)
{
	if (to == from)
		return;
	if (to - from == 1 && section_kind(sorted, &out->sections[from], o) == SECTION_SMALL)
		add_step(sorted, out, from, to, relabel(sorted, &out->sections[from], o), o);
	else
		add_step(sorted, out, from, to, PAIMON_COMPACT_REWRITE, o);
}

static void
make_steps(const PaimonCompactionFile **sorted, PaimonCompactionSections *out, const PaimonCompactionFileOptions *o)
{
	int			from = 0;		/* sections waiting to be rewritten: [from, i) */

	for (int i = 0; i < out->nsections; i++)
	{
		if (section_kind(sorted, &out->sections[i], o) != SECTION_LARGE)
			continue;
		end_stretch(sorted, out, from, i, o);
		add_step(sorted, out, i, i + 1, relabel(sorted, &out->sections[i], o), o);
		from = i + 1;
	}
	end_stretch(sorted, out, from, out->nsections, o);
}

PaimonResult
paimon_compaction_sections(const PaimonCompactionFile *files, int nfiles, const PaimonCompactionFileOptions *options,
						   const PaimonAllocator *a, PaimonCompactionSections *sections)
{
	const PaimonCompactionFile **sorted;

	memset(sections, 0, sizeof(*sections));
	if (nfiles <= 0)
		return PAIMON_OK;
	for (int i = 0; i < nfiles; i++)
		if (!file_is_sane(&files[i]))
			return PAIMON_CORRUPT;

	sorted = paimon_core_alloc(a, nfiles * sizeof(*sorted));
	if (sorted == NULL)
		return PAIMON_NO_MEMORY;
	sections->order = paimon_core_alloc(a, nfiles * sizeof(*sections->order));
	if (sections->order == NULL)
		return PAIMON_NO_MEMORY;
	sections->sections = paimon_core_alloc(a, nfiles * sizeof(*sections->sections));
	if (sections->sections == NULL)
		return PAIMON_NO_MEMORY;
	sections->steps = paimon_core_alloc(a, nfiles * sizeof(*sections->steps));
	if (sections->steps == NULL)
		return PAIMON_NO_MEMORY;

	for (int i = 0; i < nfiles; i++)
		sorted[i] = &files[i];
	qsort(sorted, nfiles, sizeof(*sorted), by_key);
	sections->nfiles = nfiles;
	for (int i = 0; i < nfiles;)
	{
		PaimonCompactionSection *s = &sections->sections[sections->nsections++];

		make_section(sorted, nfiles, i, s);
		i += s->nfiles;
	}
	make_steps(sorted, sections, options);
	for (int i = 0; i < nfiles; i++)
		sections->order[i] = (int) (sorted[i] - files);
	return PAIMON_OK;
}
