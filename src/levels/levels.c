/*-------------------------------------------------------------------------
 *
 * levels.c
 *	  Files of a manifest → sorted runs by bucket, newest first.
 *
 * Bounds in the manifest are at most PAIMON_KEY_BOUND bytes: the lower one is a prefix of the smallest key, the upper one a string above the
 * largest (empty: none).  So bounds may touch or cross where keys do not, but only if they were shortened.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "levels/levels.h"

static inline const uint8 *
bound_data(const bytea *b)
{
	return (const uint8 *) VARDATA_ANY(b);
}

static inline uint32
bound_len(const bytea *b)
{
	return VARSIZE_ANY_EXHDR(b);
}

static int
bound_cmp(const bytea *a, const bytea *b)
{
	return paimon_bytes_cmp(bound_data(a), bound_len(a), bound_data(b), bound_len(b));
}

#define CMP(a, b) ((a) < (b) ? -1 : ((a) > (b) ? 1 : 0))

/* Bucket; level; in level 0 newest first; within a run key order. */
static int
file_cmp(const void *pa, const void *pb)
{
	const PaimonFileRow *a = pa;
	const PaimonFileRow *b = pb;
	int			c;

	if (a->bucket != b->bucket)
		return CMP(a->bucket, b->bucket);
	if (a->level != b->level)
		return CMP(a->level, b->level);
	if (a->level == 0)
	{
		if (a->max_position != b->max_position)
			return CMP(b->max_position, a->max_position);
		if (a->ordinal != b->ordinal)
			return CMP(b->ordinal, a->ordinal);
	}
	c = bound_cmp(a->min_key, b->min_key);
	return c != 0 ? c : CMP(a->file_no, b->file_no);
}

static bool
same_run(const PaimonFileRow *a, const PaimonFileRow *b)
{
	if (a->bucket != b->bucket || a->level != b->level)
		return false;
	return a->level > 0 || (a->max_position == b->max_position && a->ordinal == b->ordinal);
}

/* Adds a file to the end of a run; false if it surely overlaps the one before. */
static bool
run_add(PaimonSortedRun *run, PaimonFileRow *file)
{
	bool		ok = true;

	if (run->nfiles == 0)
	{
		run->level = file->level;
		run->min_position = file->min_position;
		run->max_position = file->max_position;
		run->ordinal = file->ordinal;
		run->added_snapshot = file->added_snapshot;
	}
	else
	{
		const PaimonFileRow *prev = run->files[run->nfiles - 1];

		if (bound_cmp(prev->min_key, file->min_key) == 0)
		{
			/* equal prefixes of the full length decide nothing; shorter ones are whole keys */
			run->order_unsure = true;
			ok = bound_len(file->min_key) >= PAIMON_KEY_BOUND;
		}
		else if (bound_len(prev->max_key) > 0 && bound_len(prev->max_key) < PAIMON_KEY_BOUND &&
				 bound_cmp(prev->max_key, file->min_key) > 0)
		{
			/*
			 * Upper bounds that were shortened are PAIMON_KEY_BOUND bytes long unless incrementing carried over 0xFF bytes at their end:
			 * then they may cross a lower bound of full length that shares the bytes before.
			 */
			ok = bound_len(file->min_key) >= PAIMON_KEY_BOUND;
		}
		run->min_position = Min(run->min_position, file->min_position);
		run->max_position = Max(run->max_position, file->max_position);
		run->added_snapshot = Min(run->added_snapshot, file->added_snapshot);
	}
	run->rows += file->row_count;
	run->deletes += file->delete_count;
	run->bytes += file->bytes;
	run->files[run->nfiles++] = file;
	return ok;
}

PaimonLevels *
paimon_levels_build(PaimonFileRow *files, int nfiles, const PaimonFileRow **problem)
{
	PaimonLevels *levels = palloc0_object(PaimonLevels);
	PaimonFileRow **pointers = palloc_array(PaimonFileRow *, nfiles + 1);
	PaimonSortedRun *runs = palloc0_array(PaimonSortedRun, nfiles + 1);
	int			nruns = 0;

	*problem = NULL;
	if (nfiles > 1)
		qsort(files, nfiles, sizeof(PaimonFileRow), file_cmp);
	levels->nfiles = nfiles;
	levels->files = files;
	levels->buckets = palloc0_array(PaimonBucketRuns, nfiles + 1);
	for (int i = 0; i < nfiles; i++)
	{
		PaimonBucketRuns *bucket;

		pointers[i] = &files[i];
		if (i == 0 || files[i].bucket != files[i - 1].bucket)
		{
			bucket = &levels->buckets[levels->nbuckets++];
			bucket->bucket = files[i].bucket;
			bucket->runs = &runs[nruns];
		}
		bucket = &levels->buckets[levels->nbuckets - 1];
		if (i == 0 || !same_run(&files[i - 1], &files[i]))
		{
			runs[nruns].files = &pointers[i];
			nruns++;
			bucket->nruns++;
			if (files[i].level == 0)
				bucket->nlevel0++;
		}
		if (!run_add(&runs[nruns - 1], &files[i]) && *problem == NULL)
			*problem = &files[i];
	}
	return levels;
}

PaimonLevels *
paimon_levels_load(uint64 storage_id, const char *relname, Snapshot snapshot, PaimonLogRow *log)
{
	const PaimonFileRow *problem;
	PaimonFileRow *files;
	PaimonLevels *levels;
	int			nfiles;

	files = paimon_catalog_files(storage_id, snapshot, &nfiles);
	if (!paimon_catalog_log_get(storage_id, snapshot, log))
	{
		memset(log, 0, sizeof(*log));
		log->storage_id = storage_id;
	}
	levels = paimon_levels_build(files, nfiles, &problem);
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("table \"%s\", bucket %d, file %llu overlaps another file of its sorted run",
						relname, problem->bucket, (unsigned long long) problem->file_no),
				 errdetail("Level %d, position %llu, ordinal %d.",
						   problem->level, (unsigned long long) problem->max_position, problem->ordinal)));
	return levels;
}

const PaimonBucketRuns *
paimon_levels_bucket(const PaimonLevels *levels, int bucket)
{
	int			lo = 0;
	int			hi = levels->nbuckets;

	while (lo < hi)
	{
		int			mid = lo + (hi - lo) / 2;

		if (levels->buckets[mid].bucket < bucket)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < levels->nbuckets && levels->buckets[lo].bucket == bucket)
		return &levels->buckets[lo];
	return NULL;
}

/* Is the file's upper bound >= key? */
static bool
file_reaches(const PaimonFileRow *file, const uint8 *key, uint32 len)
{
	return bound_len(file->max_key) == 0 ||
		paimon_bytes_cmp(bound_data(file->max_key), bound_len(file->max_key), key, len) >= 0;
}

int
paimon_sorted_run_find(const PaimonSortedRun *run, const uint8 *key, uint32 len)
{
	int			lo = 0;
	int			hi = run->nfiles;

	if (run->order_unsure)
		return 0;

	/*
	 * Upper bounds need not ascend where they were shortened, so go by lower bounds: the last file whose lower bound is <= key, and from there back over
	 * neighbours that reach the key as well.
	 */
	while (lo < hi)
	{
		int			mid = lo + (hi - lo) / 2;
		const bytea *min = run->files[mid]->min_key;

		if (paimon_bytes_cmp(bound_data(min), bound_len(min), key, len) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo > 0 && file_reaches(run->files[lo - 1], key, len))
		lo--;
	return lo;
}

bool
paimon_file_row_overlaps(const PaimonFileRow *file, const PaimonBytes *lower, const PaimonBytes *upper)
{
	if (lower->data != NULL && !file_reaches(file, lower->data, lower->len))
		return false;
	return upper->data == NULL ||
		paimon_bytes_cmp(bound_data(file->min_key), bound_len(file->min_key), upper->data, upper->len) <= 0;
}
