/*-------------------------------------------------------------------------
 *
 * verify_manifest.c
 *	  Snapshots against each other and against the files, and the log's row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/memutils.h"

#include "verify/verify.h"

/* Rows of files by the snapshot that adds (or takes away) them. */
typedef struct Change
{
	int64		snapshot_id;
	int64		rows;
} Change;

static int
compare_changes(const void *pa, const void *pb)
{
	const Change *a = pa;
	const Change *b = pb;

	return a->snapshot_id < b->snapshot_id ? -1 : a->snapshot_id > b->snapshot_id;
}

static void
add_changes(const PaimonFileRow *rows, int nrows, Change *changes, int *n)
{
	for (int i = 0; i < nrows; i++)
	{
		if (rows[i].added_snapshot <= 0)
			continue;			/* a large commit that waits for its number */
		changes[*n].snapshot_id = rows[i].added_snapshot;
		changes[(*n)++].rows = rows[i].row_count;
		if (rows[i].removed_snapshot > 0)
		{
			changes[*n].snapshot_id = rows[i].removed_snapshot;
			changes[(*n)++].rows = -rows[i].row_count;
		}
	}
}

/* Each snapshot that is kept has as many records as its files. */
static void
check_totals(PaimonVerify *v)
{
	Change	   *changes = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Change) * (2 * ((Size) v->nlive + v->nclosed) + 1));
	int			n = 0;
	int			next = 0;
	int64		rows = 0;

	add_changes(v->live, v->nlive, changes, &n);
	add_changes(v->closed, v->nclosed, changes, &n);
	qsort(changes, n, sizeof(Change), compare_changes);
	for (int i = 0; i < v->nsnapshots; i++)
	{
		const PaimonSnapshotRow *s = &v->snapshots[i];

		while (next < n && changes[next].snapshot_id <= s->snapshot_id)
			rows += changes[next++].rows;
		if (rows != s->total_record_count)
			paimon_verify_report(v, "error", psprintf("snapshot " INT64_FORMAT, s->snapshot_id),
								 INT64_FORMAT " records, its files have " INT64_FORMAT, s->total_record_count, rows);
	}
	if (next < n && v->nsnapshots > 0)
		paimon_verify_report(v, "error", "manifest", "files refer to snapshot " INT64_FORMAT ", the newest one is " INT64_FORMAT,
							 changes[n - 1].snapshot_id, v->snapshots[v->nsnapshots - 1].snapshot_id);
	pfree(changes);
}

static void
check_successor(PaimonVerify *v, const PaimonSnapshotRow *a, const PaimonSnapshotRow *b)
{
	const char *name = psprintf("snapshot " INT64_FORMAT, b->snapshot_id);

	if (b->snapshot_id != a->snapshot_id + 1)
		paimon_verify_report(v, "error", name, "the one before is " INT64_FORMAT, a->snapshot_id);
	if (b->position < a->position)
		paimon_verify_report(v, "error", name, "it ends at position " UINT64_FORMAT ", the one before at " UINT64_FORMAT, b->position, a->position);
	if (b->total_record_count != a->total_record_count + b->delta_record_count)
		paimon_verify_report(v, "error", name, INT64_FORMAT " records after " INT64_FORMAT ", with " INT64_FORMAT " more", b->total_record_count,
							 a->total_record_count, b->delta_record_count);
	if (b->append_count != a->append_count + (b->kind == PAIMON_COMMIT_APPEND ? 1 : 0))
		paimon_verify_report(v, "error", name, "snapshot " INT64_FORMAT " of new rows after " INT64_FORMAT, b->append_count, a->append_count);
}

static void
check_log_row(PaimonVerify *v)
{
	if (v->nsnapshots > 0 && v->snapshots[v->nsnapshots - 1].position > v->log.head)
		paimon_verify_report(v, "error", "log", "it begins at position " UINT64_FORMAT ", the newest snapshot ends at " UINT64_FORMAT, v->log.head,
							 v->snapshots[v->nsnapshots - 1].position);
	for (int i = 0; i < v->log.nclosed; i++)
	{
		if (v->log.closed_head[i] > v->log.head || (i > 0 && v->log.closed_head[i] < v->log.closed_head[i - 1]))
			paimon_verify_report(v, "error", "log", "its former beginnings are not in order");
	}
	for (int i = 0; i < v->log.nleftover; i++)
	{
		if (v->log.leftover[i] >= v->log.head || (i > 0 && v->log.leftover[i] <= v->log.leftover[i - 1]))
			paimon_verify_report(v, "error", "log", "its list of left-over batches is not in order");
	}
}

void
paimon_verify_manifest(PaimonVerify *v)
{
	for (int i = 1; i < v->nsnapshots; i++)
		check_successor(v, &v->snapshots[i - 1], &v->snapshots[i]);
	check_totals(v);
	check_log_row(v);
}
