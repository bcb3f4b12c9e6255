/*-------------------------------------------------------------------------
 *
 * compact_publish.c
 *	  The end of a compaction: its rows in the manifest, if its inputs are still what they were.
 *
 * Under the publish lock the manifest is read afresh.  Since the choice was made flushes and large commits may have added newer runs in level 0; nobody
 * else can have touched the runs chosen, because their bucket's lock is ours.  That is checked all the same, and so is what the levels come to: a
 * manifest that is wrong must not get worse.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact_internal.h"
#include "stop.h"

/* Does a run hold exactly the files that another one held? */
static bool
same_files(const PaimonSortedRun *a, const PaimonSortedRun *b)
{
	if (a->level != b->level || a->nfiles != b->nfiles)
		return false;
	for (int i = 0; i < a->nfiles; i++)
	{
		if (a->files[i]->file_no != b->files[i]->file_no)
			return false;
	}
	return true;
}

/* Are the chosen runs there, neighbours still, and everything older, or above level 0, as it was? */
static bool
inputs_are_live(const PaimonCompaction *c, const PaimonLevels *levels)
{
	const PaimonBucketRuns *now = paimon_levels_bucket(levels, c->bucket);
	int			first = Min(c->plan.first, c->runs->nlevel0);
	int			older = c->runs->nruns - first; /* the chosen ones and what lies below, or beside them above level 0 */

	if (now == NULL || now->nruns < older)
		return false;
	for (int i = 0; i < older; i++)
	{
		if (!same_files(&now->runs[now->nruns - older + i], &c->runs->runs[first + i]))
			return false;
	}
	for (int i = 0; i < now->nruns - older; i++)
	{
		if (now->runs[i].level != 0)
			return false;
	}
	return true;
}

/* Nobody has seen the outputs: their extents can go at once. */
static void
free_outputs(PaimonCompaction *c)
{
	for (int i = 0; i < c->noutputs; i++)
		(void) paimon_extent_free(c->rel, c->outputs[i].file_no, &c->outputs[i].extents, InvalidFullTransactionId);
}

/* What the bucket will hold: one run a level, without overlaps, newer above older. */
static void
check_levels(const PaimonCompaction *c, PaimonFileRow *files, int nfiles)
{
	const PaimonFileRow *problem;
	const PaimonBucketRuns *bucket;
	PaimonLevels *levels = paimon_levels_build(files, nfiles, &problem);

	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("compaction of table \"%s\", bucket %d would make files overlap", RelationGetRelationName(c->rel), c->bucket),
				 errdetail("File " UINT64_FORMAT " in level %d overlaps another file of its sorted run.", problem->file_no, problem->level)));
	bucket = paimon_levels_bucket(levels, c->bucket);
	for (int i = 1; bucket != NULL && i < bucket->nruns; i++)
	{
		const PaimonSortedRun *newer = &bucket->runs[i - 1];
		const PaimonSortedRun *older = &bucket->runs[i];

		if (older->max_position > newer->max_position)
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg("sorted runs of table \"%s\", bucket %d are not in the order of age", RelationGetRelationName(c->rel), c->bucket),
					 errdetail("Level %d ends at position " UINT64_FORMAT ", level %d at " UINT64_FORMAT ".", newer->level,
							   newer->max_position, older->level, older->max_position)));
	}
}

/* The files of the bucket as they will be; the rows are copies. */
static PaimonFileRow *
resulting_files(const PaimonCompaction *c, const PaimonFileRow *files, int nfiles, int *n)
{
	PaimonFileRow *result = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonFileRow) * ((Size) nfiles + c->noutputs + 1));

	*n = 0;
	for (int i = 0; i < nfiles; i++)
	{
		bool		gone = false;

		if (files[i].bucket != c->bucket)
			continue;
		for (int k = 0; k < c->nmerged && !gone; k++)
			gone = c->merged[k]->file_no == files[i].file_no;
		if (gone)
			continue;
		result[*n] = files[i];
		for (int k = 0; k < c->nlifted; k++)
		{
			if (c->lifted[k]->file_no == files[i].file_no)
				result[*n].level = c->plan.output_level;
		}
		(*n)++;
	}
	for (int i = 0; i < c->noutputs; i++)
		result[(*n)++] = c->outputs[i];
	return result;
}

/* Closes what was merged or moves, adds what came of it; returns by how many records the files grew. */
static int64
write_files(PaimonCompaction *c, int64 snapshot_id, int64 append_count, PaimonCompactResult *result)
{
	FullTransactionId xid = GetTopFullTransactionId();
	int64		delta = 0;

	for (int i = 0; i < c->nmerged; i++)
	{
		CHECK_FOR_INTERRUPTS();
		paimon_catalog_file_close(c->table->storage_id, c->merged[i]->file_no,
								  c->moving ? c->merged[i]->added_snapshot : snapshot_id, xid);
		delta -= c->merged[i]->row_count;
		result->bytes_in += c->merged[i]->bytes;
	}
	for (int i = 0; i < c->nlifted; i++)
	{
		PaimonFileRow row = *c->lifted[i];

		CHECK_FOR_INTERRUPTS();
		paimon_catalog_file_close(c->table->storage_id, row.file_no, snapshot_id, xid);
		row.level = c->plan.output_level;
		row.added_snapshot = snapshot_id;
		row.append_count = append_count;
		row.removed_snapshot = 0;
		row.closing_xid = InvalidFullTransactionId;
		paimon_catalog_file_insert(&row);
	}
	for (int i = 0; i < c->noutputs; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!c->moving)
		{
			c->outputs[i].added_snapshot = snapshot_id;
			c->outputs[i].append_count = append_count;
		}
		paimon_catalog_file_insert(&c->outputs[i]);
		delta += c->outputs[i].row_count;
		result->bytes_out += c->outputs[i].bytes;
		result->rows_out += c->outputs[i].row_count;
	}
	result->files_in += c->nmerged;
	result->files_out += c->noutputs;
	result->files_lifted += c->nlifted;
	return delta;
}

static void
write_manifest(PaimonCompaction *c, Snapshot snapshot, PaimonLogRow *log, PaimonCompactResult *result)
{
	PaimonSnapshotRow last;
	int64		delta;

	(void) paimon_catalog_snapshot_latest(c->table->storage_id, snapshot, &last);
	delta = write_files(c, last.snapshot_id + 1, last.append_count, result);
	last.storage_id = c->table->storage_id;
	last.snapshot_id++;
	last.kind = PAIMON_COMMIT_COMPACT;
	last.commit_time = GetCurrentTimestamp();
	last.total_record_count += delta;
	last.delta_record_count = delta;
	last.schema_natts = RelationGetNumberOfAttributes(c->rel);
	paimon_catalog_snapshot_insert(&last);
	log->storage_id = c->table->storage_id;
	log->version++;
	paimon_catalog_log_put(log);
	CommandCounterIncrement();
	if (c->table->shared != NULL)
		paimon_shared_announce(c->table->shared, log->version);
	result->snapshot_id = last.snapshot_id;
}

bool
paimon_compact_publish(PaimonCompaction *c, PaimonCompactResult *result)
{
	Snapshot	snapshot;
	PaimonLevels *levels;
	PaimonFileRow *files;
	PaimonLogRow log;
	int			nfiles;

	if (!XLogRecPtrIsInvalid(c->lsn))
		XLogFlush(c->lsn);
	PAIMON_STOP_POINT("compact-before-publish");
	paimon_lock_publish(c->table->storage_id);

	snapshot = paimon_catalog_latest_snapshot();
	levels = paimon_levels_load(c->table->storage_id, RelationGetRelationName(c->rel), snapshot, &log);
	if (!inputs_are_live(c, levels))
	{
		UnregisterSnapshot(snapshot);
		free_outputs(c);
		return false;
	}
	files = resulting_files(c, levels->files, levels->nfiles, &nfiles);
	check_levels(c, files, nfiles);
	write_manifest(c, snapshot, &log, result);
	paimon_note_compaction(c->table->shared, c, levels->files, levels->nfiles, files, nfiles);
	UnregisterSnapshot(snapshot);
	PAIMON_STOP_POINT("compact-published-before-commit");
	return true;
}
