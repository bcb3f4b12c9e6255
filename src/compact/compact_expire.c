/*-------------------------------------------------------------------------
 *
 * compact_expire.c
 *	  Expiry of snapshots: rows of paimon.snapshot go, and with them what keeps files that are no longer live.
 *
 * A file removed in snapshot r is needed by the snapshots below r that are kept: by none if r is not above the oldest one.  Publishing a compaction leaves
 * its inputs closed but needed; whoever expires the last snapshot that needs one writes its own xid into the row, in the same transaction: so an
 * older server snapshot, which still sees the expired snapshot, keeps the pages too, and the reclaimer asks one question only (H9).
 *
 * The publish lock makes us the only one to write the manifest.  Flushes and compactions in flight depend on live files, on the newest snapshot's row
 * and on nothing else: both always stay.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact.h"
#include "core/core_expire.h"
#include "stop.h"

/*
 * Without any word of the table's owner on retention, files that only older snapshots need may take this much beside the live ones: a stream of upserts
 * would keep an hour of its own log otherwise.
 */
#define DEFAULT_RETAINED_SHARE 4
#define DEFAULT_RETAINED_BYTES (INT64CONST(16) * 1024 * 1024)

typedef struct Expiry
{
	Relation	rel;
	PaimonTable *table;
	PaimonSnapshotRow *snapshots;
	int			nsnapshots;
	PaimonFileRow *closed;
	int			nclosed;
	int64		live_bytes;
	PaimonRetainedFile *retained;	/* closed files, each once, by the snapshot that removed them */
	int			nretained;
	int64		until;			/* snapshots below expire */
	int64		next;			/* when more do; PG_INT64_MAX: not by time */
} Expiry;

static int
compare_retained(const void *pa, const void *pb)
{
	const PaimonRetainedFile *a = pa;
	const PaimonRetainedFile *b = pb;

	return a->removed < b->removed ? -1 : a->removed > b->removed;
}

/* A file that has moved up has a closed row for each level it left: it takes space until the last of them, and beside none if it is live. */
static void
collect_retained(Expiry *e, const PaimonFileRow *live, int nlive)
{
	typedef struct Entry
	{
		uint64		file_no;
		int			index;		/* in e->retained; -1: live */
	} Entry;
	HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(Entry), .hcxt = CurrentMemoryContext};
	HTAB	   *files = hash_create("paimon retained files", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	bool		found;

	for (int i = 0; i < nlive; i++)
	{
		Entry	   *entry = hash_search(files, &live[i].file_no, HASH_ENTER, &found);

		entry->index = -1;
		e->live_bytes += live[i].bytes;
	}
	e->retained = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(PaimonRetainedFile) * ((Size) e->nclosed + 1));
	for (int i = 0; i < e->nclosed; i++)
	{
		Entry	   *entry;

		if (e->closed[i].removed_snapshot <= e->closed[i].added_snapshot)
			continue;			/* was moved: no snapshot has it */
		entry = hash_search(files, &e->closed[i].file_no, HASH_ENTER, &found);
		if (!found)
		{
			entry->index = e->nretained++;
			e->retained[entry->index].removed = e->closed[i].removed_snapshot;
			e->retained[entry->index].bytes = e->closed[i].bytes;
		}
		else if (entry->index >= 0)
			e->retained[entry->index].removed = Max(e->retained[entry->index].removed, e->closed[i].removed_snapshot);
	}
	hash_destroy(files);
	qsort(e->retained, e->nretained, sizeof(PaimonRetainedFile), compare_retained);
}

/* Reads the manifest and decides; false if nothing is to be done. */
static bool
decide(Expiry *e)
{
	const PaimonOptions *options = &e->table->options;
	PaimonRetention retention;
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	PaimonFileRow *live;
	int64	   *times;
	int64		earliest;
	int			nlive;

	e->live_bytes = 0;
	e->nretained = 0;
	e->next = PG_INT64_MAX;
	e->snapshots = paimon_catalog_snapshots(e->table->storage_id, snapshot, &e->nsnapshots);
	e->closed = paimon_catalog_closed_files(e->table->storage_id, snapshot, &e->nclosed);
	live = paimon_catalog_files(e->table->storage_id, snapshot, &nlive);
	UnregisterSnapshot(snapshot);
	if (e->nsnapshots == 0)
		return false;
	earliest = e->snapshots[0].snapshot_id;
	if (e->snapshots[e->nsnapshots - 1].snapshot_id - earliest + 1 != e->nsnapshots)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("snapshots of table \"%s\" are not numbered without gaps", RelationGetRelationName(e->rel)),
				 errdetail("There are %d from " INT64_FORMAT " to " INT64_FORMAT ".", e->nsnapshots, earliest,
						   e->snapshots[e->nsnapshots - 1].snapshot_id)));
	times = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(int64) * (Size) e->nsnapshots);
	for (int i = 0; i < e->nsnapshots; i++)
		times[i] = e->snapshots[i].commit_time;
	retention.min = options->num_retained_min;
	retention.max = options->num_retained_max;
	retention.time = options->time_retained_ms * 1000;
	retention.limit = options->expire_limit;
	e->until = paimon_expire_until(earliest, times, e->nsnapshots, &retention, GetCurrentTimestamp(), &e->next);
	collect_retained(e, live, nlive);
	if (!options->retention_given)
		e->until = paimon_expire_for_space(e->until, e->snapshots[e->nsnapshots - 1].snapshot_id, e->retained, e->nretained,
										   Max(DEFAULT_RETAINED_BYTES, e->live_bytes / DEFAULT_RETAINED_SHARE));
	return e->until > earliest;
}

/* Only files that somebody needed until now: others have waited for their own xid already. */
static void
release_files(Expiry *e, PaimonExpireResult *result)
{
	int64		earliest = e->snapshots[0].snapshot_id;
	FullTransactionId xid = GetTopFullTransactionId();

	for (int i = 0; i < e->nclosed; i++)
	{
		const PaimonFileRow *row = &e->closed[i];

		CHECK_FOR_INTERRUPTS();
		if (row->removed_snapshot <= Max(earliest, row->added_snapshot) || row->removed_snapshot > e->until)
			continue;
		paimon_catalog_file_expire(e->table->storage_id, row->file_no, row->level, xid);
		result->files++;
	}
}

void
paimon_expire_snapshots(Relation rel, PaimonTable *table, PaimonExpireResult *result)
{
	MemoryContext cxt;
	MemoryContext old;
	Expiry		e = {.rel = rel, .table = table};

	memset(result, 0, sizeof(*result));
	result->next = PG_INT64_MAX;
	if (table->storage_id == 0)
		return;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon expiry", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	if (decide(&e))
	{
		PAIMON_STOP_POINT("expire-decided");
		if (!paimon_try_lock_publish(table->storage_id))
			result->busy = true;
		else if (decide(&e))
		{
			release_files(&e, result);
			paimon_catalog_snapshot_expire(table->storage_id, e.until);
			CommandCounterIncrement();
			result->snapshots = e.until - e.snapshots[0].snapshot_id;
			PAIMON_STOP_POINT("expire-before-commit");
		}
	}

	/* What goes with time, if nothing else happens in the table: of interest only if it takes space. */
	if (paimon_retained_bytes(e.retained, e.nretained, e.until) > 0)
		result->next = e.next;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
