/*-------------------------------------------------------------------------
 *
 * am_fetch.c
 *	  Rows by ctid: for index scans, triggers, EvalPlanQual and TID scans.
 *
 * A ctid says where a row lies, not whether a snapshot sees it.  SnapshotAny takes what is there; an MVCC snapshot sees it if the merged row of its
 * key, read with that snapshot, lies at the same place.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "merge/merge.h"
#include "pgstat.h"
#include "storage/predicate.h"

struct IndexFetchTableData *
paimon_index_fetch_begin(Relation rel)
{
	PaimonIndexFetch *fetch = palloc0(sizeof(PaimonIndexFetch));

	fetch->base.rel = rel;
	fetch->table = paimon_table_get(rel, false);
	return &fetch->base;
}

void
paimon_index_fetch_reset(struct IndexFetchTableData *data)
{
	((PaimonIndexFetch *) data)->row = NULL;
}

void
paimon_index_fetch_end(struct IndexFetchTableData *data)
{
	pfree(data);
}

bool
paimon_index_fetch_tuple(struct IndexFetchTableData *data, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot,
						 bool *call_again, bool *all_dead)
{
	PaimonIndexFetch *fetch = (PaimonIndexFetch *) data;

	*call_again = false;
	if (all_dead != NULL)
		*all_dead = false;
	if (fetch->row != NULL && ItemPointerEquals((ItemPointer) &fetch->row->tid, tid))
	{
		if (!fetch->key_only)
			paimon_put_row(slot, fetch->table, fetch->row, fetch->decode);
		return true;
	}
	return paimon_tuple_fetch_row_version(data->rel, tid, snapshot, slot);
}

/* Does the snapshot see the row that lies at tid? */
static bool
sees(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot)
{
	PaimonLookup *lookup = paimon_lookup_begin(table, rel, snapshot);
	PaimonRowRef row;
	bool		found = paimon_lookup_get(lookup, bucket, key.data, key.len, &row) && ItemPointerEquals(&row.tid, tid);

	paimon_lookup_end(lookup);
	return found;
}

/* The slot may hold what the ctid points into, and be the only one to do so. */
static bool
fetch_merged(PaimonTable *table, Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	MemoryContext old = paimon_enter_row_context();
	ItemPointerData at = *tid;
	PaimonLookup *lookup;
	PaimonRowRef record;
	PaimonRowRef row;
	bool		found = false;

	if (snapshot == NULL || snapshot->snapshot_type == SNAPSHOT_ANY)
	{
		found = paimon_version_fetch(table, rel, &at, slot);
		if (found)
			paimon_slot_set_fetched(slot);
	}
	else if (paimon_resolve_tid(table, rel, &at, &record))
	{
		lookup = paimon_lookup_begin(table, rel, snapshot);
		found = paimon_lookup_get(lookup, record.bucket, record.key.data, record.key.len, &row) && ItemPointerEquals(&row.tid, &at);
		if (found)
			paimon_put_row(slot, table, &row, false);
		paimon_lookup_end(lookup);
	}
	MemoryContextSwitchTo(old);
	return found;
}

/*
 * A removal is no row, except to triggers for the INSERT that has put it there (rowkind.field): they see what came in.
 */
static bool
is_row(PaimonTable *table, Relation rel, ItemPointer tid, Snapshot snapshot, uint8 kind)
{
	if (!paimon_kind_is_removal(kind))
		return true;
	return kind != PAIMON_KIND_REMOVE && (snapshot == NULL || snapshot->snapshot_type == SNAPSHOT_ANY) && paimon_tid_own_end(table, rel, tid) > 0;
}

bool
paimon_tuple_fetch_row_version(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot)
{
	PaimonTable *table = paimon_table_get(rel, false);
	PaimonRowRef row;

	ExecClearTuple(slot);
	if (table->merges)
	{
		if (!fetch_merged(table, rel, tid, snapshot, slot))
			return false;
		pgstat_count_heap_fetch(rel);
		return true;
	}
	if (!paimon_resolve_tid(table, rel, tid, &row) || !is_row(table, rel, tid, snapshot, row.kind))
		return false;
	paimon_put_row(slot, table, &row, PAIMON_DECODE_SINGLE);
	if (snapshot != NULL && snapshot->snapshot_type != SNAPSHOT_ANY)
	{
		PaimonBytes key;
		bool		seen;

		/* The lookup may reuse the memory behind `row`: the slot has its own reference, the key needs a copy. */
		key.data = memcpy(palloc(row.key.len), row.key.data, row.key.len);
		key.len = row.key.len;
		seen = sees(table, rel, tid, row.bucket, key, snapshot);
		pfree((void *) key.data);
		if (!seen)
		{
			ExecClearTuple(slot);
			return false;
		}
	}
	else
		paimon_slot_set_fetched(slot);
	pgstat_count_heap_fetch(rel);
	return true;
}

bool
paimon_tuple_tid_valid(TableScanDesc scan, ItemPointer tid)
{
	return ItemPointerIsValid(tid);
}

/* Rows are not chained: the newest version of a row is found by its key. */
void
paimon_tuple_get_latest_tid(TableScanDesc scan, ItemPointer tid)
{
	PaimonTable *table = paimon_table_get(scan->rs_rd, false);
	PaimonRowRef row;
	PaimonRowRef newest;
	PaimonLookup *lookup;
	PaimonBytes key;

	if (!paimon_resolve_tid(table, scan->rs_rd, tid, &row))
		return;
	key.data = memcpy(palloc(row.key.len), row.key.data, row.key.len);
	key.len = row.key.len;
	lookup = paimon_lookup_begin(table, scan->rs_rd, scan->rs_snapshot);
	if (paimon_lookup_get(lookup, row.bucket, key.data, key.len, &newest))
		*tid = newest.tid;
	paimon_lookup_end(lookup);
}

/*
 * Does an MVCC snapshot see a row of the key with these bytes?  That is the same row, moved by a flush or a compaction (H5).
 */
static bool
sees_same(PaimonTable *table, Relation rel, const PaimonRowRef *row, Snapshot snapshot)
{
	PaimonLookup *lookup;
	PaimonRowRef seen;
	StringInfoData key;
	StringInfoData bytes;
	StringInfoData seen_bytes;
	ItemPointerData tid = row->tid;
	int			bucket = row->bucket;
	bool		same = false;

	/* The lookup may reuse the memory behind `row`. */
	initStringInfo(&key);
	appendBinaryStringInfo(&key, (const char *) row->key.data, row->key.len);
	initStringInfo(&bytes);
	paimon_rowref_payload(table, row, &bytes);
	lookup = paimon_lookup_begin(table, rel, snapshot);
	if (paimon_lookup_get(lookup, bucket, (const uint8 *) key.data, key.len, &seen))
	{
		same = ItemPointerEquals(&seen.tid, &tid);
		if (!same && snapshot->snapshot_type == SNAPSHOT_MVCC)
		{
			initStringInfo(&seen_bytes);
			paimon_rowref_payload(table, &seen, &seen_bytes);
			same = seen_bytes.len == bytes.len && memcmp(seen_bytes.data, bytes.data, bytes.len) == 0;
		}
	}
	paimon_lookup_end(lookup);
	return same;
}

/* For foreign keys (is the row still there?) and ON CONFLICT above READ COMMITTED (may the transaction see what it conflicts with?). */
bool
paimon_tuple_satisfies_snapshot(Relation rel, TupleTableSlot *slot, Snapshot snapshot)
{
	PaimonTable *table = paimon_table_get(rel, false);
	MemoryContext old = paimon_enter_row_context();
	PaimonRowRef row;
	bool		seen;

	if (table->merges)
	{
		seen = paimon_version_satisfies(table, rel, slot, snapshot);
		MemoryContextSwitchTo(old);
		return seen;
	}
	seen = paimon_resolve_tid(table, rel, &slot->tts_tid, &row) && !paimon_kind_is_removal(row.kind) &&
		sees_same(table, rel, &row, snapshot);
	MemoryContextSwitchTo(old);
	return seen;
}
