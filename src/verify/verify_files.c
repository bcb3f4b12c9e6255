/*-------------------------------------------------------------------------
 *
 * verify_files.c
 *	  Run files against themselves and the manifest; sorted runs against each other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "levels/levels.h"
#include "run/run.h"
#include "run/run_file.h"
#include "verify/verify.h"

static const char *
file_name(const PaimonFileRow *row)
{
	return psprintf("bucket %d, file " UINT64_FORMAT, row->bucket, row->file_no);
}

/* Exact keys of a file that was found sound. */
typedef struct CheckedFile
{
	const PaimonFileRow *row;
	bool		sound;
	PaimonBytes min_key;		/* palloc'd outside of the check */
	PaimonBytes max_key;
} CheckedFile;

typedef struct FileCheck
{
	CheckedFile *file;
	MemoryContext cxt;
} FileCheck;

static PaimonBytes
copy_bytes(const PaimonBytes *bytes, MemoryContext cxt)
{
	uint8	   *data = MemoryContextAlloc(cxt, Max(bytes->len, 1));
	PaimonBytes copy = {.data = data, .len = bytes->len};

	memcpy(data, bytes->data, bytes->len);
	return copy;
}

/* The manifest's bounds must contain what the file's footer says. */
static void
check_bounds(PaimonVerify *v, const PaimonFileRow *row, const PaimonRunFile *file)
{
	const PaimonBytes *min = paimon_run_min_key(file);
	const PaimonBytes *max = paimon_run_max_key(file);
	uint32		max_len = VARSIZE_ANY_EXHDR(row->max_key);

	if (paimon_bytes_cmp((const uint8 *) VARDATA_ANY(row->min_key), VARSIZE_ANY_EXHDR(row->min_key), min->data, min->len) > 0)
		paimon_verify_report(v, "error", file_name(row), "its smallest key is below the bound in the manifest");
	if (max_len > 0 &&
		paimon_bytes_cmp((const uint8 *) VARDATA_ANY(row->max_key), max_len, max->data, max->len) < 0)
		paimon_verify_report(v, "error", file_name(row), "its largest key is above the bound in the manifest");
}

static void
check_file(PaimonVerify *v, void *arg)
{
	FileCheck  *check = arg;
	const PaimonFileRow *row = check->file->row;
	PaimonRunFile *file = paimon_run_open(v->rel, v->table->desc, row);

	paimon_run_check(file);
	if (file->footer.nrows != (uint64) row->row_count || file->footer.bucket != (uint32) row->bucket)
		paimon_verify_report(v, "error", file_name(row), "it has " UINT64_FORMAT " rows of bucket %u, the manifest says " INT64_FORMAT " of bucket %d",
							 file->footer.nrows, file->footer.bucket, row->row_count, row->bucket);
	if (file->footer.ndeletes != (uint64) row->delete_count)
		paimon_verify_report(v, "error", file_name(row), "it has " UINT64_FORMAT " delete markers, the manifest says " INT64_FORMAT,
							 file->footer.ndeletes, row->delete_count);
	check_bounds(v, row, file);
	check->file->min_key = copy_bytes(paimon_run_min_key(file), check->cxt);
	check->file->max_key = copy_bytes(paimon_run_max_key(file), check->cxt);
	paimon_run_close(file);
}

/* Numbers of a row that must fit together. */
static void
check_row(PaimonVerify *v, const PaimonFileRow *row)
{
	uint64		extents = 0;

	for (uint32 i = 0; i < row->extents.nruns; i++)
		extents += row->extents.runs[i].count;
	if (row->bucket < 0 || row->bucket >= v->table->desc->nbuckets)
		paimon_verify_report(v, "error", file_name(row), "the table has %d buckets", v->table->desc->nbuckets);
	if (row->row_count < 1 || row->delete_count < 0 || row->delete_count > row->row_count)
		paimon_verify_report(v, "error", file_name(row), INT64_FORMAT " rows, " INT64_FORMAT " of them delete markers", row->row_count,
							 row->delete_count);
	/* a run of left-over batches only ends where it begins */
	if (row->max_position < row->min_position && row->max_position + 1 != row->min_position)
		paimon_verify_report(v, "error", file_name(row), "it begins at position " UINT64_FORMAT " and ends at " UINT64_FORMAT,
							 row->min_position, row->max_position);
	if ((uint64) row->npages > extents * PAIMON_EXTENT_PAGES || (extents > 0 && (uint64) row->npages <= (extents - 1) * PAIMON_EXTENT_PAGES))
		paimon_verify_report(v, "error", file_name(row), "%d pages in " UINT64_FORMAT " extents", row->npages, extents);
	if (row->bytes != (int64) row->npages * BLCKSZ)
		paimon_verify_report(v, "error", file_name(row), INT64_FORMAT " bytes in %d pages", row->bytes, row->npages);
}

static int
compare_checked(const void *pa, const void *pb)
{
	const CheckedFile *a = *(const CheckedFile *const *) pa;
	const CheckedFile *b = *(const CheckedFile *const *) pb;

	return paimon_bytes_cmp(a->min_key.data, a->min_key.len, b->min_key.data, b->min_key.len);
}

/* The files of a run by their exact keys: none may reach into the next one. */
static void
check_run(PaimonVerify *v, int bucket, const PaimonSortedRun *run, const CheckedFile *files)
{
	const CheckedFile **sorted = palloc_array(const CheckedFile *, run->nfiles);
	int			n = 0;

	for (int i = 0; i < run->nfiles; i++)
	{
		const CheckedFile *f = &files[run->files[i] - files[0].row];

		if (f->sound)
			sorted[n++] = f;
	}
	qsort(sorted, n, sizeof(CheckedFile *), compare_checked);
	for (int i = 1; i < n; i++)
	{
		if (paimon_bytes_cmp(sorted[i - 1]->max_key.data, sorted[i - 1]->max_key.len, sorted[i]->min_key.data, sorted[i]->min_key.len) >= 0)
			paimon_verify_report(v, "error", psprintf("bucket %d, level %d", bucket, run->level),
								 "files " UINT64_FORMAT " and " UINT64_FORMAT " overlap", sorted[i - 1]->row->file_no, sorted[i]->row->file_no);
	}
	pfree(sorted);
}

/* Runs of a bucket, newest first: so are their positions. */
static void
check_bucket(PaimonVerify *v, const PaimonBucketRuns *bucket, const CheckedFile *files)
{
	for (int i = 0; i < bucket->nruns; i++)
	{
		const PaimonSortedRun *run = &bucket->runs[i];

		CHECK_FOR_INTERRUPTS();
		check_run(v, bucket->bucket, run, files);
		if (i > 0 && run->max_position > bucket->runs[i - 1].max_position)
			paimon_verify_report(v, "error", psprintf("bucket %d, level %d", bucket->bucket, run->level),
								 "its run ends at position " UINT64_FORMAT ", a newer one at " UINT64_FORMAT, run->max_position,
								 bucket->runs[i - 1].max_position);
	}
}

static void
check_levels(PaimonVerify *v, CheckedFile *files)
{
	const PaimonFileRow *problem;
	PaimonLevels *levels = paimon_levels_build(v->live, v->nlive, &problem);

	/* the rows were sorted anew: each has to find its file again */
	for (int i = 0; i < v->nlive; i++)
		files[i].row = &v->live[i];
	if (problem != NULL)
		paimon_verify_report(v, "error", psprintf("bucket %d, level %d", problem->bucket, problem->level),
							 "file " UINT64_FORMAT " overlaps another one by the bounds in the manifest", problem->file_no);
	for (int i = 0; i < levels->nbuckets; i++)
		check_bucket(v, &levels->buckets[i], files);
}

/* Live files, and those that are kept for older snapshots. */
void
paimon_verify_files(PaimonVerify *v)
{
	CheckedFile *files = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(CheckedFile) * ((Size) v->nlive + 1),
													MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	FileCheck	check = {.cxt = CurrentMemoryContext};
	const PaimonFileRow *problem;

	/* in the order in which the levels want them, so that files[i] belongs to live[i] all along */
	(void) paimon_levels_build(v->live, v->nlive, &problem);
	for (int i = 0; i < v->nlive; i++)
	{
		CHECK_FOR_INTERRUPTS();
		check_row(v, &v->live[i]);
		files[i].row = &v->live[i];
		check.file = &files[i];
		files[i].sound = paimon_verify_guarded(v, file_name(&v->live[i]), check_file, &check);
	}
	check_levels(v, files);
	for (int i = 0; i < v->nclosed; i++)
	{
		CheckedFile file = {.row = &v->closed[i]};
		bool		live = false;

		CHECK_FOR_INTERRUPTS();
		if (!paimon_verify_retained(v, file.row))
			continue;
		check_row(v, file.row);
		for (int k = 0; k < v->nlive && !live; k++)
			live = v->live[k].file_no == file.row->file_no;	/* it only changed its level */
		check.file = &file;
		if (!live)
			(void) paimon_verify_guarded(v, file_name(file.row), check_file, &check);
	}
}
