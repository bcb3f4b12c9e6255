/*-------------------------------------------------------------------------
 *
 * compact_rewrite.c
 *	  The merge of a compaction: runs of one bucket become the run of one level.
 *
 * The core divides the files into sections of touching key ranges and says for each stretch of them what becomes of it: files that overlap no other
 * run's are kept or lifted as they are, the others are streamed through the merge reader into new files.  Each stretch that is rewritten has a
 * writer of its own: no output reaches across a file that is kept.
 *
 * Memory: the open groups of the runs that overlap in one section, and one group of output.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact_progress.h"
#include "merge/merge.h"
#include "run/run.h"
#include "run/run_group.h"
#include "scan/scan.h"
#include "stop.h"

#define ROWS_A_POINT 1024		/* between two looks at what else there is to do */

static void *
rewrite_alloc(void *arg, size_t size)
{
	return MemoryContextAllocExtended((MemoryContext) arg, Max(size, 1), MCXT_ALLOC_HUGE);
}

static PaimonBytes
bound_bytes(const bytea *b)
{
	PaimonBytes bytes = {.data = (const uint8 *) VARDATA_ANY(b), .len = VARSIZE_ANY_EXHDR(b)};

	return bytes;
}

/* The files of the chosen runs, newest run first; rows[i] is the manifest's of files[i]. */
static PaimonCompactionFile *
list_files(const PaimonCompaction *c, PaimonFileRow ***rows, int *nfiles)
{
	const PaimonSortedRun *runs = &c->runs->runs[c->plan.first];
	PaimonCompactionFile *files;
	PaimonAgeLimit limit;
	bool		ages = c->plan.drop_deletes && paimon_age_limit(c->table, &limit);
	int			n = 0;

	for (int i = 0; i < c->plan.nruns; i++)
		n += runs[i].nfiles;
	files = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonCompactionFile) * Max(n, 1));
	*rows = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonFileRow *) * Max(n, 1));
	n = 0;
	for (int i = 0; i < c->plan.nruns; i++)
	{
		for (int k = 0; k < runs[i].nfiles; k++)
		{
			PaimonFileRow *row = runs[i].files[k];

			files[n].min_key = bound_bytes(row->min_key);
			files[n].max_key = bound_bytes(row->max_key);
			files[n].bytes = row->bytes;
			files[n].rows = row->row_count;
			files[n].deletes = row->delete_count;
			if (ages && row->delete_count == 0 && paimon_file_has_old(&limit, c->rel, c->table, row))
				files[n].deletes = 1;
			files[n].level = row->level;
			files[n].run = i;
			files[n].move = c->plan.reason == PAIMON_COMPACT_RELOCATION && paimon_file_is_far(row, c->relocation);
			(*rows)[n++] = row;
		}
	}
	*nfiles = n;
	return files;
}

/*
 * The chosen runs with the files of one stretch only, newest first, each in its own order.  `taken` says which run a file of c->levels belongs to in
 * this stretch: it has a place for each of the plan's files, in the order of list_files.
 */
static PaimonSortedRun *
stretch_runs(const PaimonCompaction *c, const bool *taken, int *nruns)
{
	const PaimonSortedRun *runs = &c->runs->runs[c->plan.first];
	PaimonSortedRun *result = palloc_array(PaimonSortedRun, c->plan.nruns);
	int			n = 0;

	*nruns = 0;
	for (int i = 0; i < c->plan.nruns; i++)
	{
		PaimonSortedRun *run = &result[*nruns];

		*run = runs[i];
		run->nfiles = 0;
		run->files = palloc_array(PaimonFileRow *, runs[i].nfiles);
		for (int k = 0; k < runs[i].nfiles; k++)
		{
			if (taken[n++])
				run->files[run->nfiles++] = runs[i].files[k];
		}
		if (run->nfiles > 0)
			(*nruns)++;
	}
	return result;
}

/* What the outputs stand for: everything from the oldest to the newest input. */
static void
output_params(const PaimonCompaction *c, int64 file_bytes, PaimonRunParams *params)
{
	const PaimonOptions *options = &c->table->options;
	const PaimonSortedRun *runs = &c->runs->runs[c->plan.first];

	memset(params, 0, sizeof(*params));
	params->rel = c->rel;
	params->desc = c->table->desc;
	params->bucket = c->bucket;
	params->level = c->plan.output_level;
	params->source = PAIMON_SOURCE_COMPACT;
	params->xid = c->mode == PAIMON_FLUSH_WORKER ? InvalidFullTransactionId : GetTopFullTransactionId();
	params->target_file_size = file_bytes > 0 ? file_bytes : options->target_file_size;
	params->target_file_rows = options->target_file_row_num;
	params->zstd_level = options->compression == PAIMON_COMPRESSION_ZSTD ? options->zstd_level : 0;
	params->min_position = runs[0].min_position;
	params->max_position = runs[0].max_position;
	params->ordinal = runs[0].ordinal;
	params->retracts_stay = paimon_table_retracts_stay(c->table);
	params->deletes_stay = paimon_table_deletes_stay(c->table);
	for (int i = 1; i < c->plan.nruns; i++)
	{
		params->min_position = Min(params->min_position, runs[i].min_position);
		params->max_position = Max(params->max_position, runs[i].max_position);
	}
}

static void
take_outputs(PaimonCompaction *c, PaimonRunWriter *writer)
{
	PaimonFileRow *files;
	int			nfiles;
	XLogRecPtr	lsn;

	paimon_run_finish(writer, &files, &nfiles, &lsn);
	if (c->mode == PAIMON_FLUSH_WORKER)
		paimon_at_end_guards(c->end, files, nfiles);
	if (nfiles == 0)
		return;
	c->lsn = Max(c->lsn, lsn);
	c->outputs = c->outputs == NULL ? palloc(sizeof(PaimonFileRow) * nfiles) :
		repalloc_huge(c->outputs, sizeof(PaimonFileRow) * ((Size) c->noutputs + nfiles));
	memcpy(&c->outputs[c->noutputs], files, sizeof(PaimonFileRow) * nfiles);
	c->noutputs += nfiles;
}

/* A row's values go from its group to the writer without a detour over a payload. */
static void
add_row(const PaimonCompaction *c, PaimonRunWriter *writer, const PaimonRowRef *row, Datum *values, bool *nulls)
{
	PaimonRunGroup *g = row->group;
	const PaimonRowDesc *desc = c->table->desc;

	if (row->values != NULL)
	{
		(void) paimon_run_add_values(writer, row->key.data, row->key.len, row->kind, row->values, row->isnull);
		return;
	}
	for (int i = 0; i < desc->tupdesc->natts; i++)
	{
		if (desc->in_key[i])
			continue;
		if (unlikely(g->values[i] == NULL))
			paimon_run_group_load(g, i);
		nulls[i] = g->nulls[i] != NULL && g->nulls[i][row->row];
		values[i] = g->values[i][row->row];
	}
	(void) paimon_run_add_values(writer, row->key.data, row->key.len, row->kind, values, nulls);
}

/* Merges one stretch. */
static void
rewrite_stretch(PaimonCompaction *c, const PaimonCompactionStep *step, const bool *taken)
{
	PaimonReadSpec spec = {0};
	PaimonReadInputs inputs = {0};
	PaimonRunParams params;
	PaimonRunWriter *writer;
	PaimonReader *reader;
	PaimonRowRef row;
	PaimonRunGroup *group = NULL;
	int			natts = c->table->desc->tupdesc->natts;
	Datum	   *values = palloc0_array(Datum, natts + 1);
	bool	   *nulls = palloc0_array(bool, natts + 1);
	PaimonAgeLimit limit;
	bool		ages = c->plan.drop_deletes && paimon_age_limit(c->table, &limit);

	inputs.runs = stretch_runs(c, taken, &inputs.nruns);
	spec.table = c->table;
	spec.rel = c->rel;
	spec.bucket = c->bucket;
	spec.forward = true;
	spec.whole = true;
	spec.deletes = !c->plan.drop_deletes;
	spec.stored = c->table->merges;
	output_params(c, step->out_bytes, &params);
	writer = paimon_run_begin(&params);
	reader = paimon_reader_begin_inputs(&spec, &inputs);
	while (paimon_reader_next(reader, &row))
	{
		if (row.group != group)
		{
			/* what opening files and groups has looked up must not hold a snapshot of ours while we merge */
			CHECK_FOR_INTERRUPTS();
			InvalidateCatalogSnapshot();
			group = row.group;
		}
		if (++c->rows_written % ROWS_A_POINT == 0)
		{
			paimon_throttle_point(c->note, c->rows_written);
			PAIMON_STOP_POINT("compact-merging");
		}
		if (ages && paimon_reader_gave_all(reader) && paimon_row_is_old(&limit, c->table, &row))
			continue;
		add_row(c, writer, &row, values, nulls);
	}
	paimon_reader_end(reader);
	take_outputs(c, writer);
}

/*
 * A relocation that stays in its level: each file that is to be moved becomes one or more new files by itself, which take its place in everything: age,
 * positions, and all snapshots.
 */
static void
move_files(PaimonCompaction *c, const PaimonCompactionFile *files, PaimonFileRow **rows, bool *taken, int nfiles)
{
	memset(taken, false, nfiles);
	for (int i = 0; i < nfiles; i++)
	{
		PaimonCompactionStep step = {.out_bytes = rows[i]->bytes * 2};
		int			first = c->noutputs;

		CHECK_FOR_INTERRUPTS();
		if (!files[i].move)
			continue;
		taken[i] = true;
		c->merged[c->nmerged++] = rows[i];
		rewrite_stretch(c, &step, taken);
		taken[i] = false;
		for (int k = first; k < c->noutputs; k++)
		{
			c->outputs[k].min_position = rows[i]->min_position;
			c->outputs[k].max_position = rows[i]->max_position;
			c->outputs[k].ordinal = rows[i]->ordinal;
			c->outputs[k].source = rows[i]->source;
			c->outputs[k].creation_time = rows[i]->creation_time;
			c->outputs[k].added_snapshot = rows[i]->added_snapshot;
			c->outputs[k].append_count = rows[i]->append_count;
		}
	}
}

void
paimon_compact_rewrite(PaimonCompaction *c)
{
	PaimonCompactionFileOptions options = {0};
	PaimonCompactionSections sections;
	PaimonAllocator alloc = {rewrite_alloc, CurrentMemoryContext};
	PaimonFileRow **rows;
	PaimonCompactionFile *files;
	bool	   *taken;
	int			nfiles;

	files = list_files(c, &rows, &nfiles);
	c->lifted = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonFileRow *) * Max(nfiles, 1));
	c->merged = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonFileRow *) * Max(nfiles, 1));
	taken = palloc_extended(Max(nfiles, 1), MCXT_ALLOC_HUGE);
	InvalidateCatalogSnapshot();
	c->moving = paimon_compaction_moves(c);
	if (c->moving)
	{
		/* its records are those of older snapshots, too */
		Assert(!c->plan.drop_deletes);
		move_files(c, files, rows, taken, nfiles);
		PAIMON_STOP_POINT("compact-merged");
		return;
	}
	options.output_level = c->plan.output_level;
	options.drop_deletes = c->plan.drop_deletes;
	options.force_rewrite = c->plan.force_rewrite;
	options.target_file_size = c->table->options.target_file_size;
	options.small_file_ratio = (double) c->table->options.small_file_ratio / 1000000;
	switch (paimon_compaction_sections(files, nfiles, &options, &alloc, &sections))
	{
		case PAIMON_OK:
			break;
		case PAIMON_NO_MEMORY:
			ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("bounds of files of table \"%s\", bucket %d are damaged", RelationGetRelationName(c->rel), c->bucket)));
	}
	for (int i = 0; i < sections.nsteps; i++)
	{
		const PaimonCompactionStep *step = &sections.steps[i];
		CHECK_FOR_INTERRUPTS();
		memset(taken, false, nfiles);
		for (int k = 0; k < step->nfiles; k++)
		{
			int			file = sections.order[step->first + k];

			taken[file] = true;
			if (step->action == PAIMON_COMPACT_UPGRADE)
				c->lifted[c->nlifted++] = rows[file];
			else if (step->action == PAIMON_COMPACT_REWRITE)
				c->merged[c->nmerged++] = rows[file];
		}
		if (step->action == PAIMON_COMPACT_REWRITE)
			rewrite_stretch(c, step, taken);
	}
	PAIMON_STOP_POINT("compact-merged");
}
