/*-------------------------------------------------------------------------
 *
 * scan_reader.c
 *	  The merge reader: buckets, sections of overlapping files, and the merge of a section's sources.
 *
 * Nothing newer than a bucket's runs: its files fall into sections whose key ranges do not touch, and a section of one run's files is
 * passed through without a look at keys.  Else all of the bucket is one section, merged in windows (scan_window.c) or, backward or if the sources
 * are many, by a loser tree.  There, too, while one source wins again and again, whole stretches of it pass without comparisons
 * (paimon_source_stretch).
 *
 * The row given last stays valid until the next call: a source moves on only then.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "stop.h"
#include "utils/memutils.h"

#include "scan/scan_internal.h"

#define STEPS_BEFORE_SEARCH 8	/* records of one key that are passed over one by one */
#define WINS_BEFORE_STRETCH 4	/* looking for a stretch costs a few comparisons: only after so many wins in a row */

static void *
reader_alloc(void *arg, size_t size)
{
	return MemoryContextAlloc((MemoryContext) arg, Max(size, 1));
}

/* Section context goes: its sources' references must not stay. */
static void
section_callback(void *arg)
{
	PaimonReader *reader = arg;

	for (int i = 0; i < reader->nsources; i++)
		paimon_source_drop_references(reader->sources[i]);
	reader->nsources = 0;
	reader->in_section = false;
}

static PaimonReader *
reader_make(const PaimonReadSpec *spec)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon reader", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonReader *reader = palloc0_object(PaimonReader);

	reader->cxt = cxt;
	reader->spec = *spec;
	if (spec->lower.data != NULL)
	{
		reader->spec.lower.data = palloc(Max(spec->lower.len, 1));
		memcpy((void *) reader->spec.lower.data, spec->lower.data, spec->lower.len);
	}
	if (spec->upper.data != NULL)
	{
		reader->spec.upper.data = palloc(Max(spec->upper.len, 1));
		memcpy((void *) reader->spec.upper.data, spec->upper.data, spec->upper.len);
	}
	reader->bucket_cxt = AllocSetContextCreate(cxt, "paimon reader bucket", ALLOCSET_SMALL_SIZES);
	reader->section_cxt = AllocSetContextCreate(cxt, "paimon reader section", ALLOCSET_DEFAULT_SIZES);
	if (spec->table->merges)
		reader->folder = paimon_folder_begin(spec->table, spec->rel, spec->stored, !spec->deletes, spec->columns, spec->ncolumns);
	MemoryContextSwitchTo(old);
	return reader;
}

/* Everything is to be read (again). */
static void
reader_reset(PaimonReader *reader)
{
	const PaimonReadSpec *spec = &reader->spec;
	int			nbuckets = spec->table->desc->nbuckets;

	paimon_reader_close_bucket(reader);
	reader->range.lower = spec->lower;
	reader->range.upper = spec->upper;
	reader->range.upper_excluded = false;
	if (spec->bucket >= 0)
	{
		reader->bucket = spec->bucket;
		reader->bucket_end = spec->bucket + 1;
	}
	else
	{
		reader->bucket = 0;
		reader->bucket_end = nbuckets;
	}
	if (spec->table->storage_id == 0)
		reader->bucket_end = reader->bucket;	/* nothing was ever written */
}

PaimonReader *
paimon_reader_begin(const PaimonReadSpec *spec)
{
	PaimonReader *reader = reader_make(spec);
	MemoryContext old = MemoryContextSwitchTo(reader->cxt);

	paimon_scanstate_open(&reader->state, spec->table, spec->rel, spec->snapshot);
	MemoryContextSwitchTo(old);
	reader_reset(reader);
	return reader;
}

PaimonReader *
paimon_reader_begin_inputs(const PaimonReadSpec *spec, const PaimonReadInputs *inputs)
{
	PaimonReader *reader = reader_make(spec);

	Assert(inputs->nruns == 0 || spec->bucket >= 0);
	reader->inputs_copy = *inputs;
	reader->inputs = &reader->inputs_copy;
	reader->state.table = spec->table;
	reader->state.rel = spec->rel;
	reader_reset(reader);
	return reader;
}

PaimonReader *
paimon_reader_begin_shared(const PaimonReadSpec *spec, const PaimonScanState *state)
{
	PaimonReader *reader = reader_make(spec);

	reader->state = *state;
	reader->shares_state = true;
	reader->bucket = reader->bucket_end = 0;
	return reader;
}

void
paimon_reader_rescan(PaimonReader *reader)
{
	reader_reset(reader);
}

void
paimon_reader_end(PaimonReader *reader)
{
	paimon_reader_close_bucket(reader);
	if (reader->inputs == NULL && !reader->shares_state)
		paimon_scanstate_close(&reader->state);
	MemoryContextDelete(reader->cxt);
}

/* ---------- sections ---------- */

/* A file on its way into a section. */
typedef struct SectionItem
{
	PaimonFileRow *file;
	int			run;
	int			index;			/* in the run */
} SectionItem;

static int
bytea_cmp(const bytea *a, const bytea *b)
{
	return paimon_bytes_cmp((const uint8 *) VARDATA_ANY(a), VARSIZE_ANY_EXHDR(a),
							(const uint8 *) VARDATA_ANY(b), VARSIZE_ANY_EXHDR(b));
}

static int
section_item_cmp(const void *pa, const void *pb)
{
	const SectionItem *a = pa;
	const SectionItem *b = pb;
	int			c = bytea_cmp(a->file->min_key, b->file->min_key);

	if (c == 0)
		c = a->run - b->run;
	return c != 0 ? c : a->index - b->index;
}

/* Sorts exactly, by the footers, where the manifest's bounds leave doubt. */
static void
order_files(PaimonReader *reader, PaimonFileRow **files, int nfiles)
{
	PaimonRunFile **open = palloc_array(PaimonRunFile *, nfiles);

	for (int i = 0; i < nfiles; i++)
		open[i] = paimon_run_open(reader->spec.rel, reader->spec.table->desc, files[i]);
	/* insertion sort: they are few, and nearly sorted */
	for (int i = 1; i < nfiles; i++)
	{
		for (int k = i; k > 0; k--)
		{
			const PaimonBytes *a = paimon_run_min_key(open[k - 1]);
			const PaimonBytes *b = paimon_run_min_key(open[k]);
			PaimonRunFile *swap_open = open[k];
			PaimonFileRow *swap = files[k];

			if (paimon_bytes_cmp(a->data, a->len, b->data, b->len) <= 0)
				break;
			open[k] = open[k - 1];
			files[k] = files[k - 1];
			open[k - 1] = swap_open;
			files[k - 1] = swap;
		}
	}
	for (int i = 0; i < nfiles; i++)
		paimon_run_close(open[i]);
	pfree(open);
}

/* One section with everything: the order of runs is kept. */
static void
sections_make_one(PaimonReader *reader, const PaimonSortedRun *runs, int nruns)
{
	PaimonSection *section = palloc0_object(PaimonSection);

	section->parts = palloc0_array(PaimonSectionPart, nruns + 1);
	for (int i = 0; i < nruns; i++)
	{
		PaimonSectionPart *part = &section->parts[section->nparts++];

		part->files = palloc_array(PaimonFileRow *, runs[i].nfiles);
		memcpy(part->files, runs[i].files, runs[i].nfiles * sizeof(PaimonFileRow *));
		part->nfiles = runs[i].nfiles;
		part->max_position = runs[i].max_position;
		if (runs[i].order_unsure)
			order_files(reader, part->files, part->nfiles);
	}
	reader->sections = section;
	reader->nsections = 1;
}

static int
section_item_cmp_run(const void *x, const void *y)
{
	const SectionItem *a = x;
	const SectionItem *b = y;

	return a->run != b->run ? (a->run < b->run ? -1 : 1) : (a->index < b->index ? -1 : (a->index > b->index));
}

/*
 * A section from files sorted by lower bound, which do not touch others; sorts them by run.  What it takes must depend on its own files
 * only: thousands of runs that do not overlap make as many sections.
 */
static void
section_make(PaimonSection *section, SectionItem *items, int nitems)
{
	PaimonFileRow **files = palloc_array(PaimonFileRow *, nitems);
	int			nruns = 1;

	for (int i = 0; i < nitems; i++)
		items[i].index = i;
	qsort(items, nitems, sizeof(SectionItem), section_item_cmp_run);
	for (int i = 1; i < nitems; i++)
		nruns += items[i].run != items[i - 1].run;
	section->parts = palloc0_array(PaimonSectionPart, nruns);
	section->nparts = 0;
	for (int i = 0; i < nitems; i++)
	{
		files[i] = items[i].file;
		if (i == 0 || items[i].run != items[i - 1].run)
			section->parts[section->nparts++].files = &files[i];
		section->parts[section->nparts - 1].nfiles++;
	}
}

/* Divides a bucket's runs into sections, in key order. */
static void
sections_make(PaimonReader *reader, const PaimonSortedRun *runs, int nruns)
{
	SectionItem *items;
	const bytea *end = NULL;	/* upper bound of the section so far */
	int			nitems = 0;
	int			start = 0;
	int			n = 0;

	for (int i = 0; i < nruns; i++)
		nitems += runs[i].nfiles;
	items = palloc_array(SectionItem, nitems + 1);
	for (int i = 0; i < nruns; i++)
		for (int k = 0; k < runs[i].nfiles; k++)
		{
			items[n].file = runs[i].files[k];
			items[n].run = i;
			items[n++].index = k;
		}
	qsort(items, nitems, sizeof(SectionItem), section_item_cmp);

	reader->sections = palloc0_array(PaimonSection, nitems + 1);
	for (int i = 0; i <= nitems; i++)
	{
		/* files of one run never overlap: they may share a section, but do not force others in */
		bool		cut = i == nitems || (i > 0 && VARSIZE_ANY_EXHDR(end) > 0 &&
										  bytea_cmp(items[i].file->min_key, end) > 0);

		if (i > 0 && cut)
		{
			section_make(&reader->sections[reader->nsections++], &items[start], i - start);
			start = i;
			end = NULL;
		}
		if (i == nitems)
			break;
		if (end == NULL || (VARSIZE_ANY_EXHDR(end) > 0 &&
							(VARSIZE_ANY_EXHDR(items[i].file->max_key) == 0 || bytea_cmp(items[i].file->max_key, end) > 0)))
			end = items[i].file->max_key;
	}
	pfree(items);
}

/* ---------- opening and closing ---------- */

static void
close_section(PaimonReader *reader)
{
	for (int i = 0; i < reader->nsources; i++)
		paimon_source_close(reader->sources[i]);
	reader->nsources = 0;
	reader->in_section = false;
	reader->single = reader->current = reader->last_winner = NULL;
	reader->window = NULL;
	reader->wins = 0;
	reader->stretch_end = PAIMON_NO_STRETCH;
	if (reader->folder != NULL)
		paimon_folder_reset(reader->folder);
	MemoryContextReset(reader->section_cxt);
}

void
paimon_reader_close_bucket(PaimonReader *reader)
{
	close_section(reader);
	reader->in_bucket = false;
	reader->sections = NULL;
	reader->nsections = 0;
	MemoryContextReset(reader->bucket_cxt);
}

static inline PaimonMemView *
view_of(const PaimonReader *reader)
{
	return reader->inputs != NULL ? reader->inputs->view : reader->state.view;
}

static inline bool
reader_has_view(const PaimonReader *reader, int bucket)
{
	PaimonMemView *view = view_of(reader);

	return view != NULL && !paimon_memview_empty(view, bucket);
}

static inline bool
reader_has_buffer(const PaimonReader *reader)
{
	return reader->inputs == NULL && paimon_buffer_has_rows(reader->spec.table->storage_id);
}

/* Begins reader->bucket: finds its sections. */
static void
open_bucket(PaimonReader *reader)
{
	MemoryContext old = MemoryContextSwitchTo(reader->bucket_cxt);
	const PaimonSortedRun *runs = NULL;
	int			nruns = 0;
	bool		unsure = false;

	if (reader->inputs != NULL)
	{
		runs = reader->inputs->runs;
		nruns = reader->inputs->nruns;
	}
	else if (reader->state.levels != NULL)
	{
		const PaimonBucketRuns *bucket = paimon_levels_bucket(reader->state.levels, reader->bucket);

		if (bucket != NULL)
		{
			runs = bucket->runs;
			nruns = bucket->nruns;
		}
	}
	for (int i = 0; i < nruns; i++)
		unsure |= runs[i].order_unsure;
	reader->has_buffer = reader_has_buffer(reader);
	reader->has_view = reader_has_view(reader, reader->bucket);
	if (nruns <= 1 || unsure || reader->has_buffer || reader->has_view)
		sections_make_one(reader, runs, nruns);
	else
		sections_make(reader, runs, nruns);
	reader->section = reader->spec.forward ? 0 : reader->nsections - 1;
	reader->in_bucket = true;
	MemoryContextSwitchTo(old);
}

/* Positions a source; keeps it if it has rows. */
static void
add_source(PaimonReader *reader, PaimonSource *source)
{
	/* it is in the array before it opens anything, so that the callback finds it */
	source->m.rank = (uint32) reader->nsources;
	reader->sources[reader->nsources++] = source;
	paimon_source_first(source);
	if (source->m.done)
	{
		paimon_source_close(source);
		reader->nsources--;
	}
}

static bool
part_in_range(const PaimonReader *reader, const PaimonSectionPart *part)
{
	for (int i = 0; i < part->nfiles; i++)
		if (paimon_file_row_overlaps(part->files[i], &reader->range.lower, &reader->range.upper))
			return true;
	return false;
}

/* The log's records at positions [lo, hi). */
static void
add_log(PaimonReader *reader, uint64 lo, uint64 hi)
{
	PaimonMemView *view = view_of(reader);

	for (int i = 0; reader->has_view && i < paimon_memview_nparts(view); i++)
	{
		if (paimon_memview_part_has(view, i, lo, hi))
			add_source(reader, paimon_source_memory(&reader->state, &reader->range, reader->bucket, view, i, lo, hi, reader->spec.forward));
	}
}

/*
 * Makes the sources of a section: buffer, log, runs newest first.  Large commits that no flush has reached yet lie between records of the
 * log: what was appended before them is older.
 */
static void
make_sources(PaimonReader *reader, PaimonSection *section)
{
	const PaimonScanState *state = &reader->state;
	bool		forward = reader->spec.forward;
	uint64		log_end = PG_UINT64_MAX;
	int			nruns = 0;

	if (reader->has_buffer)
		add_source(reader, paimon_source_buffer(state, &reader->range, reader->bucket, forward));
	for (int i = 0; i < section->nparts; i++)
		if (part_in_range(reader, &section->parts[i]))
			nruns++;
	for (int i = 0; i < section->nparts; i++)
	{
		PaimonSectionPart *part = &section->parts[i];
		PaimonSource *source;

		if (!part_in_range(reader, part))
			continue;
		if (log_end > 0)
		{
			bool		within = reader->inputs == NULL && part->max_position >= state->log.head;

			add_log(reader, within ? part->max_position : 0, log_end);
			log_end = within ? part->max_position : 0;
		}
		source = paimon_source_run(state, &reader->range, reader->bucket, part->files, part->nfiles, forward, reader->spec.whole);
		/* if it will be alone nobody compares its keys */
		source->keyed = nruns > 1 || reader->has_view || reader->nsources > 0;
		add_source(reader, source);
	}
	add_log(reader, 0, log_end);
}

/*
 * The buffer, the runs, and what the log has between them: runs cut the log into intervals, and an interval's end cuts a part of the view; one part, the
 * left-over batches, may be in all intervals.
 */
static int
max_sources(const PaimonReader *reader, const PaimonSection *section)
{
	return 1 + section->nparts + 2 * (section->nparts + 1) + (reader->has_view ? paimon_memview_nparts(view_of(reader)) : 0);
}

/* Begins a section; false if it has no rows in range. */
static bool
open_section(PaimonReader *reader, PaimonSection *section)
{
	MemoryContext old;

	close_section(reader);
	reader->section_callback.func = section_callback;
	reader->section_callback.arg = reader;
	MemoryContextRegisterResetCallback(reader->section_cxt, &reader->section_callback);
	old = MemoryContextSwitchTo(reader->section_cxt);
	reader->sources = palloc_array(PaimonSource *, max_sources(reader, section));
	reader->in_section = true;
	make_sources(reader, section);
	if (reader->folder == NULL && reader->nsources == 1 && reader->sources[0]->kind != PAIMON_SOURCE_MEMORY)
	{
		reader->single = reader->sources[0];
		reader->single->keyed = reader->single->keyed && reader->single->kind != PAIMON_SOURCE_RUN;
	}
	else if (reader->folder == NULL && reader->spec.forward && reader->nsources > 0 && reader->nsources <= PAIMON_WINDOW_SOURCES)
		reader->window = paimon_window_begin(reader->sources, reader->nsources, reader->spec.unordered);
	else if (reader->nsources > 0)
	{
		PaimonAllocator alloc = {reader_alloc, reader->section_cxt};

		(void) paimon_losertree_init(&reader->tree, (PaimonMergeSource **) reader->sources, reader->nsources,
									 !reader->spec.forward, &alloc);
	}
	reader->started = false;
	MemoryContextSwitchTo(old);
	return reader->nsources > 0;
}

/* Goes to the next section that has rows; false at the end. */
static bool
next_section(PaimonReader *reader)
{
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		close_section(reader);
		if (!reader->in_bucket)
		{
			if (reader->bucket >= reader->bucket_end)
				return false;
			open_bucket(reader);
		}
		while (reader->section >= 0 && reader->section < reader->nsections)
		{
			PaimonSection *section = &reader->sections[reader->section];

			reader->section += reader->spec.forward ? 1 : -1;
			if (open_section(reader, section))
				return true;
		}
		paimon_reader_close_bucket(reader);
		reader->bucket++;
	}
}

/* ---------- rows ---------- */

/* The next row of a section that is not merged. */
static inline bool
next_single(PaimonReader *reader, PaimonRowRef *row)
{
	PaimonSource *s = reader->single;

	for (;;)
	{
		if (!reader->started)
			reader->started = true;
		else if (s->kind == PAIMON_SOURCE_RUN && s->forward && s->row + 1 < s->row_hi)
			s->row++;
		else
			paimon_source_next(s);
		if (s->m.done)
			return false;
		if (!reader->spec.deletes && paimon_kind_is_removal(paimon_source_row_kind(s)))
			continue;
		paimon_source_ref(s, row, !reader->spec.nokey);
		return true;
	}
}

static inline bool
next_of_window(PaimonReader *reader, PaimonRowRef *row)
{
	PaimonSource *s;

	do
	{
		s = paimon_window_next(reader->window);
		if (s == NULL)
			return false;
		paimon_source_ref(s, row, !reader->spec.nokey);
	} while (!reader->spec.deletes && paimon_kind_is_removal(row->kind));
	return true;
}

/* Moves behind the key given last in all sources. */
static void
leave_key(PaimonReader *reader)
{
	PaimonSource *s = reader->current;
	PaimonMergeSource last;
	PaimonBytes key;
	int			steps = 0;

	if (reader->stretch_end != PAIMON_NO_STRETCH && reader->stretch_alone)
	{
		if (s->forward && s->keys != NULL && s->row + 1 < s->row_hi)
			paimon_source_step(s);
		else
			paimon_source_next(s);
		paimon_losertree_replay(&reader->tree);
		return;
	}
	key = paimon_source_key(s);
	last.key = reader->last_key;
	last.len = Min(key.len, PAIMON_KEY_MAX);
	last.prefix = paimon_key_prefix(key.data, last.len);
	if (last.len > sizeof(last.prefix))
		paimon_copy_key(reader->last_key, key.data, last.len);	/* moving may take the key away; a short one is its prefix */
	do
	{
		/* a few records of a key are passed over faster step by step */
		if (s->kind == PAIMON_SOURCE_RUN && s->forward && s->keys != NULL && s->row + 1 < s->row_hi)
			paimon_source_step(s);
		else if (steps++ < STEPS_BEFORE_SEARCH)
			paimon_source_next(s);
		else
			paimon_source_next_key(s);
		PAIMON_STOP_POINT("reader-leaves-record");
		paimon_losertree_replay(&reader->tree);
		s = (PaimonSource *) paimon_losertree_winner(&reader->tree);
	} while (s != NULL && paimon_merge_same_key(&s->m, &last));
}

/* The source that gives the next row stays ahead for a while? */
static void
find_stretch(PaimonReader *reader, PaimonSource *s)
{
	reader->stretch_end = PAIMON_NO_STRETCH;
	if (s->kind != PAIMON_SOURCE_RUN)
		return;

	/* at a group's first row the footer may tell that all of the group comes first */
	if (reader->wins < WINS_BEFORE_STRETCH && s->row != (s->forward ? s->row_lo : s->row_hi - 1))
		return;
	reader->stretch_end = paimon_source_stretch(s, &reader->tree, paimon_losertree_runner_up(&reader->tree));

	/* the row at hand may have the key of the others' next one, those behind it in the stretch may not */
	reader->stretch_alone = (s->forward ? reader->stretch_end - (int64) s->row : (int64) s->row - reader->stretch_end) > 1;
}

/*
 * The next key's newest record.  In a stretch all rows of `current` come before every other source's row, so no other source has their keys.
 */
static bool
next_merged(PaimonReader *reader, PaimonRowRef *row)
{
	for (;;)
	{
		PaimonSource *s = reader->current;

		if (s != NULL)
		{
			int64		next = s->forward ? (int64) s->row + 1 : (int64) s->row - 1;

			if (reader->stretch_end != PAIMON_NO_STRETCH && (s->forward ? next < reader->stretch_end : next > reader->stretch_end))
			{
				s->row = (uint32) next;
				goto found;
			}
			leave_key(reader);
		}
		s = (PaimonSource *) paimon_losertree_winner(&reader->tree);
		reader->current = s;
		if (s == NULL)
			return false;
		if (s == reader->last_winner)
			reader->wins++;
		else
			reader->wins = 0;
		reader->last_winner = s;
		find_stretch(reader, s);

found:
		CHECK_FOR_INTERRUPTS();
		if (!reader->spec.deletes && paimon_kind_is_removal(paimon_source_row_kind(s)))
			continue;
		paimon_source_ref(s, row, !reader->spec.nokey);
		return true;
	}
}

bool
paimon_reader_gave_all(const PaimonReader *reader)
{
	return reader->folder == NULL || reader->folder->nout <= 1;
}

bool
paimon_reader_next(PaimonReader *reader, PaimonRowRef *row)
{
	for (;;)
	{
		if (reader->in_section)
		{
			bool		found = reader->folder != NULL ? paimon_folder_next(reader, row) : reader->single != NULL ? next_single(reader, row)
				: reader->window != NULL ? next_of_window(reader, row) : next_merged(reader, row);

			if (found)
				return true;
		}
		if (!next_section(reader))
			return false;
	}
}
