/*-------------------------------------------------------------------------
 *
 * compact_reclaim.c
 *	  Gives back extents that nobody needs: of closed files, of the log behind its head, of files that nobody knows (H9, H28).
 *
 * The caller has a transaction with a weak lock on the table and no snapshot.  The flush lock makes us the only one to free anything in
 * this table.  What is freed was closed by a transaction that precedes the horizon, so whoever could read it is gone; on standbys the
 * records carry the closing xid and queries that might still read it are cancelled first.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/procarray.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compact/compact_internal.h"
#include "stop.h"

/* The free end is given back when at least this much is free, and at least 1/TRUNCATE_SHARE of the fork. */
#define TRUNCATE_EXTENTS 8
#define TRUNCATE_SHARE 16

/*
 * The full form of a recent xid.  In a server younger than vacuum_freeze_min_age VACUUM's limit lies before the first xid of all: nothing
 * is older than that, so the first normal xid stands for it.
 */
FullTransactionId
paimon_full_xid(TransactionId xid)
{
	FullTransactionId next = ReadNextFullTransactionId();
	uint32		epoch = EpochFromFullTransactionId(next);

	if (!TransactionIdIsNormal(xid))
		return FullTransactionIdFromEpochAndXid(0, xid);
	if (xid > XidFromFullTransactionId(next))
	{
		if (epoch == 0)
			return FirstNormalFullTransactionId;
		epoch--;
	}
	return FullTransactionIdFromEpochAndXid(epoch, xid);
}

FullTransactionId
paimon_horizon(Relation rel)
{
	return paimon_full_xid(GetOldestNonRemovableTransactionId(rel));
}

/* ---- closed files ---- */

/* What all rows of a closed file say: one that moved up has a row for each level. */
typedef struct ClosedFile
{
	uint64		file_no;		/* hash key */
	bool		kept;			/* it has a live row, or one that a transaction or a retained snapshot may still read */
	FullTransactionId last;		/* the last of its rows was closed by this */
} ClosedFile;

/*
 * Does the table's retention keep a closed row?  earliest: id of the oldest snapshot, 0 if there is none.  A file that was removed where it was added has been
 * replaced by a copy in all of them.
 */
static inline bool
is_retained(const PaimonFileRow *row, int64 earliest)
{
	return earliest > 0 && row->removed_snapshot > Max(earliest, row->added_snapshot);
}

static HTAB *
closed_files(const PaimonFileRow *closed, int nclosed, const PaimonFileRow *live, int nlive, int64 earliest, FullTransactionId horizon)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(ClosedFile), .hcxt = CurrentMemoryContext};
	HTAB	   *files = hash_create("paimon closed files", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);

	for (int i = 0; i < nclosed; i++)
	{
		bool		found;
		ClosedFile *f = hash_search(files, &closed[i].file_no, HASH_ENTER, &found);

		if (!found)
		{
			f->kept = false;
			f->last = InvalidFullTransactionId;
		}
		f->kept |= is_retained(&closed[i], earliest) || !FullTransactionIdPrecedes(closed[i].closing_xid, horizon);
		if (FullTransactionIdPrecedes(f->last, closed[i].closing_xid))
			f->last = closed[i].closing_xid;
	}
	for (int i = 0; i < nlive; i++)
	{
		ClosedFile *f = hash_search(files, &live[i].file_no, HASH_FIND, NULL);

		if (f != NULL)
			f->kept = true;
	}
	return files;
}

/*
 * Extents first, then the rows: a crash in between is harmless, since only extents are freed that still belong to the file.  Live and closed rows were
 * read with one snapshot: a file without a live row then never gets one again.  So was the oldest retained snapshot, which only moves up.
 */
static void
free_closed(Relation rel, PaimonTable *table, const PaimonFileRow *rows, int nrows, HTAB *files, int64 earliest,
			FullTransactionId horizon, PaimonReclaimResult *result)
{
	bool		locked = false;

	for (int i = 0; i < nrows; i++)
	{
		ClosedFile *f = hash_search(files, &rows[i].file_no, HASH_FIND, NULL);

		CHECK_FOR_INTERRUPTS();
		if (is_retained(&rows[i], earliest))
			continue;
		if (!FullTransactionIdPrecedes(rows[i].closing_xid, horizon))
		{
			result->pending = true;
			continue;
		}
		if (!f->kept)
		{
			result->extents += paimon_extent_free(rel, f->file_no, &rows[i].extents, f->last);
			result->files++;
			f->kept = true;		/* once is enough */
		}
		if (!locked)
			paimon_lock_publish(table->storage_id);
		locked = true;
		paimon_catalog_file_delete(table->storage_id, rows[i].file_no, rows[i].level);
	}
	PAIMON_STOP_POINT("reclaim-after-free");
}

/* ---- the log ---- */

/* Frees what lies below the newest head that nobody can be behind; returns the xid that made it free. */
static FullTransactionId
free_log(Relation rel, PaimonTable *table, const PaimonLogRow *log, FullTransactionId horizon, PaimonReclaimResult *result)
{
	int			newest = -1;

	for (int i = 0; i < log->nclosed; i++)
	{
		if (FullTransactionIdPrecedes(log->closed_xid[i], horizon))
			newest = i;
	}
	if (newest + 1 < log->nclosed && paimon_log_first(rel, table->storage_id) < log->head)
		result->pending = true;
	if (newest < 0)
		return InvalidFullTransactionId;
	result->extents += paimon_log_free_before(rel, table->storage_id, log->closed_head[newest], log->leftover, log->nleftover,
											  log->closed_xid[newest]);
	return log->closed_xid[newest];
}

/* ---- orphans ---- */

typedef struct Orphan
{
	uint64		file_no;		/* hash key */
	bool		spared;			/* its transaction runs, its guard is held, or it has a row */
	PaimonExtentList extents;
} Orphan;

static void
note_extent(void *arg, uint32 extent, uint64 owner, FullTransactionId xid)
{
	HTAB	   *orphans = arg;
	Orphan	   *o;
	bool		found;
	PaimonExtentRun *last;

	if (owner < PAIMON_FIRST_FILE_NO)
		return;
	o = hash_search(orphans, &owner, HASH_ENTER, &found);
	if (!found)
	{
		o->spared = false;
		memset(&o->extents, 0, sizeof(o->extents));
	}
	if (o->spared)
		return;

	/* The status first, the row after: the other way round a file whose transaction commits in between would be taken for dead. */
	if (FullTransactionIdIsNormal(xid) && TransactionIdIsInProgress(XidFromFullTransactionId(xid)))
	{
		o->spared = true;
		return;
	}
	last = o->extents.nruns > 0 ? &o->extents.runs[o->extents.nruns - 1] : NULL;
	if (last != NULL && last->first + last->count == extent)
	{
		last->count++;
		return;
	}
	if (o->extents.nruns == o->extents.allocated)
	{
		o->extents.allocated = Max(o->extents.allocated * 2, 4);
		o->extents.runs = o->extents.runs == NULL ? palloc(sizeof(PaimonExtentRun) * o->extents.allocated) :
			repalloc_huge(o->extents.runs, sizeof(PaimonExtentRun) * o->extents.allocated);
	}
	o->extents.runs[o->extents.nruns].first = extent;
	o->extents.runs[o->extents.nruns++].count = 1;
}

static void
spare_rows(HTAB *orphans, const PaimonFileRow *files, int nfiles)
{
	for (int i = 0; i < nfiles; i++)
	{
		Orphan	   *o = hash_search(orphans, &files[i].file_no, HASH_FIND, NULL);

		if (o != NULL)
			o->spared = true;
	}
}

/* Files of aborted transactions, of failed flushes, and those that a crash left between the row's end and the extents'. */
static void
free_orphans(Relation rel, PaimonTable *table, FullTransactionId horizon, PaimonReclaimResult *result)
{
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(Orphan), .hcxt = CurrentMemoryContext};
	HTAB	   *orphans = hash_create("paimon orphans", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	HASH_SEQ_STATUS seq;
	Orphan	   *o;
	PaimonFileRow *files;
	int			nfiles;
	Snapshot	snapshot;
	uint64		file_no = paimon_storage_next_file_no(rel);

	paimon_extent_visit(rel, note_extent, orphans);
	PAIMON_STOP_POINT("reclaim-extents-noted");
	hash_seq_init(&seq, orphans);
	while ((o = hash_seq_search(&seq)) != NULL)
	{
		if (!o->spared && paimon_file_guard_is_held(table->storage_id, o->file_no))
			o->spared = true;
		if (o->spared)
			file_no = Min(file_no, o->file_no);
	}
	snapshot = paimon_catalog_latest_snapshot();
	files = paimon_catalog_files(table->storage_id, snapshot, &nfiles);
	spare_rows(orphans, files, nfiles);
	files = paimon_catalog_closed_files(table->storage_id, snapshot, &nfiles);
	spare_rows(orphans, files, nfiles);
	UnregisterSnapshot(snapshot);

	hash_seq_init(&seq, orphans);
	while ((o = hash_seq_search(&seq)) != NULL)
	{
		if (o->spared)
			continue;
		result->extents += paimon_extent_free(rel, o->file_no, &o->extents, InvalidFullTransactionId);
		result->orphans++;
	}
	hash_destroy(orphans);
	if (table->shared != NULL)
		paimon_shared_set_swept_mark(table->shared, file_no, horizon);
}

static uint64
live_bytes(const PaimonFileRow *live, int nlive)
{
	uint64		bytes = 0;

	for (int i = 0; i < nlive; i++)
		bytes += live[i].bytes;
	return bytes;
}

/* Is the end itself free, to that extent? */
static bool
end_is_free(Relation rel)
{
	PaimonStorageUsage usage;
	uint32		all;

	paimon_storage_usage(rel, &usage);
	all = usage.used_extents + usage.free_extents;
	return all - Min(paimon_storage_used_end(rel), all) >= Max(TRUNCATE_EXTENTS, all / TRUNCATE_SHARE);
}

static bool
worth_truncating(Relation rel)
{
	PaimonStorageUsage usage;

	paimon_storage_usage(rel, &usage);
	return usage.free_extents >= TRUNCATE_EXTENTS &&
		usage.free_extents >= (usage.free_extents + usage.used_extents) / TRUNCATE_SHARE;
}

void
paimon_reclaim_table(Relation rel, PaimonTable *table, bool sweep, PaimonReclaimResult *result)
{
	MemoryContext cxt;
	MemoryContext old;
	Snapshot	snapshot;
	PaimonLogRow log;
	PaimonFileRow *closed;
	PaimonFileRow *live;
	int			nclosed;
	int			nlive;
	int64		earliest;
	FullTransactionId horizon;
	FullTransactionId log_xid = InvalidFullTransactionId;
	bool		has_log = table->shared != NULL;	/* temporary tables write none */

	memset(result, 0, sizeof(*result));
	if (table->storage_id == 0)
		return;
	if (!paimon_try_lock_flush(table->storage_id))
	{
		result->pending = true;
		return;
	}
	if (sweep && table->shared != NULL)
		paimon_shared_swept(table->shared);
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon reclaim", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);

	snapshot = paimon_catalog_latest_snapshot();
	closed = paimon_catalog_closed_files(table->storage_id, snapshot, &nclosed);
	live = paimon_catalog_files(table->storage_id, snapshot, &nlive);
	(void) paimon_catalog_log_get(table->storage_id, snapshot, &log);
	earliest = paimon_catalog_snapshot_earliest(table->storage_id, snapshot);
	UnregisterSnapshot(snapshot);

	if (table->shared != NULL)
		paimon_shared_set_live_bytes(table->shared, live_bytes(live, nlive));

	/* Our own snapshots must not count. */
	InvalidateCatalogSnapshot();
	horizon = paimon_horizon(rel);
	PAIMON_STOP_POINT("reclaim-before-free");
	free_closed(rel, table, closed, nclosed, closed_files(closed, nclosed, live, nlive, earliest, horizon), earliest, horizon, result);
	if (has_log)
		log_xid = free_log(rel, table, &log, horizon, result);
	if (sweep)
	{
		if (has_log)
			result->extents += paimon_log_free_orphans(rel, table->storage_id, log_xid);
		free_orphans(rel, table, horizon, result);
		if (worth_truncating(rel))
		{
			result->pages_truncated = paimon_storage_truncate_end(rel);
			if (has_log && worth_truncating(rel))
				result->pending |= paimon_trim_log(rel, table);
			result->end_is_free = end_is_free(rel);
		}
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
