/*-------------------------------------------------------------------------
 *
 * am_modify.c
 *	  INSERT, UPDATE and DELETE: rows become records in the write buffer.
 *
 * An INSERT is an upsert and takes no lock (am_conflict.c has the kinds that do).  UPDATE and DELETE lock the key first and change only what they
 * saw (am_lock.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/multixact.h"
#include "access/xact.h"
#include "am/am.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "worker/stall.h"

/* Rows of a batch that share the row context's first block before it is emptied. */
#define ROWS_A_RESET 16

/* Key, bucket and payload of a slot's row.  Memory is in CurrentMemoryContext. */
void
paimon_encode_slot(PaimonTable *table, Relation rel, TupleTableSlot *slot, PaimonEncoded *out)
{
	const PaimonRowDesc *desc = table->desc;
	int			natts = desc->tupdesc->natts;
	Datum	   *values = palloc(sizeof(Datum) * natts);

	slot_getallattrs(slot);
	memcpy(values, slot->tts_values, sizeof(Datum) * natts);
	paimon_row_flatten(desc, values, slot->tts_isnull);
	initStringInfo(&out->key);
	if (desc->nkeys > 0)
	{
		paimon_key_encode(desc, values, slot->tts_isnull, &out->key);
		out->bucket = desc->nbuckets == 1 ? 0 : paimon_row_bucket(desc, values, slot->tts_isnull);
	}
	else
		out->bucket = 0;
	initStringInfo(&out->payload);
	paimon_row_encode(desc, values, slot->tts_isnull, &out->payload);
}

/* Row numbers of append tables are taken in ranges, so that the metapage is touched seldom. */
static uint64
next_row_no(PaimonTable *table, Relation rel)
{
	static uint64 storage_id = 0;
	static uint64 next = 0;
	static uint64 end = 0;
	static uint32 step = 1;

	if (storage_id != table->storage_id || next == end)
	{
		step = storage_id == table->storage_id ? Min(step * 4, 65536) : 16;
		storage_id = 0;
		next = paimon_storage_new_row_no(rel, step);
		end = next + step;
		storage_id = table->storage_id;
	}
	return next++;
}

/* In the row context. */
static void
put_insert(PaimonTable *table, Relation rel, TupleTableSlot *slot, CommandId cid)
{
	PaimonEncoded row;
	bool		locked = false;

	paimon_encode_slot(table, rel, slot, &row);
	if (table->desc->nkeys == 0)
		paimon_key_encode_rowno(next_row_no(table, rel), &row.key);
	else if (paimon_upserts_run())
		locked = paimon_upsert_check(table, rel, slot, &row, cid);
	slot->tts_tableOid = RelationGetRelid(rel);
	if (table->desc->nkeys > 0)
		paimon_predicate_put(rel, (const uint8 *) row.key.data, row.key.len);
	paimon_buffer_put(table, rel, cid, row.bucket, PAIMON_KIND_INSERT, locked,
					  (uint8 *) row.key.data, row.key.len, (uint8 *) row.payload.data, row.payload.len, &slot->tts_tid);
}

void
paimon_tuple_insert(Relation rel, TupleTableSlot *slot, CommandId cid, int options, struct BulkInsertStateData *bistate)
{
	PaimonTable *table = paimon_stall_check(paimon_table_get(rel, true), rel, cid);
	MemoryContext old;

	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);
	old = paimon_enter_row_context();
	put_insert(table, rel, slot, cid);
	MemoryContextSwitchTo(old);
	pgstat_count_heap_insert(rel, 1);
}

void
paimon_multi_insert(Relation rel, TupleTableSlot **slots, int nslots, CommandId cid, int options,
					struct BulkInsertStateData *bistate)
{
	PaimonTable *table = paimon_stall_check(paimon_table_get(rel, true), rel, cid);
	MemoryContext old = CurrentMemoryContext;

	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);
	for (int i = 0; i < nslots; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (i % ROWS_A_RESET == 0)
			(void) paimon_enter_row_context();
		put_insert(table, rel, slots[i], cid);
	}
	MemoryContextSwitchTo(old);
	pgstat_count_heap_insert(rel, nslots);
}

/*
 * Has the same command already put another row onto the key that a row is moving away from?  That row stays: UPDATE t SET id = id + 1.
 */
static bool
key_taken_over(PaimonTable *table, Relation rel, const PaimonTarget *target, CommandId cid)
{
	CommandId	by;
	uint8		kind;

	return paimon_buffer_touched(table, rel, target->bucket, (const uint8 *) target->key.data, target->key.len, &by, &kind) &&
		by == cid && kind == PAIMON_KIND_INSERT;
}

/*
 * Locks the target's key and makes sure that it is still what was seen.  `crosscheck`: RI in serializable transactions; the row must
 * be visible to that snapshot too.
 */
static TM_Result
lock_target(PaimonTable *table, Relation rel, ItemPointer tid, PaimonTarget *target, CommandId cid, Snapshot snapshot,
			Snapshot crosscheck, bool wait, LockTupleMode mode, TM_FailureData *tmfd)
{
	PaimonBytes key = {(const uint8 *) target->key.data, target->key.len};
	PaimonLookup *lookup;
	PaimonRowRef row;
	TM_Result	result;
	bool		unchanged;

	memset(tmfd, 0, sizeof(*tmfd));
	tmfd->ctid = *tid;
	if (paimon_kind_is_removal(target->kind))
		return TM_Deleted;
	result = paimon_check_touched(table, rel, target, cid, tmfd);
	if (result != TM_Ok)
		return result;
	result = paimon_lock_key(table, rel, tid, target->bucket, key, snapshot, mode, true, wait ? LockWaitBlock : LockWaitSkip, tmfd, &unchanged);
	if (result != TM_Ok)
		return result;
	if (!unchanged)
	{
		result = paimon_recheck(table, rel, target, &lookup, &row);
		if (result == TM_Updated)
			tmfd->ctid = row.tid;
		paimon_lookup_end(lookup);
	}
	if (result == TM_Ok && crosscheck != InvalidSnapshot)
	{
		lookup = paimon_lookup_begin(table, rel, crosscheck);
		if (!paimon_lookup_get(lookup, target->bucket, key.data, key.len, &row))
			result = TM_Updated;
		paimon_lookup_end(lookup);
	}
	return result;
}

/*
 * `changing_part`: the first half of an UPDATE that moves the row into another partition.
 */
TM_Result
paimon_tuple_delete(Relation rel, ItemPointer tid, CommandId cid, Snapshot snapshot, Snapshot crosscheck, bool wait,
					TM_FailureData *tmfd, bool changing_part)
{
	PaimonTable *table = paimon_stall_check(paimon_table_get(rel, true), rel, cid);
	MemoryContext old = paimon_enter_row_context();
	PaimonTarget target;
	ItemPointerData new_tid;
	TM_Result	result;

	(void) GetCurrentTransactionId();
	if (!paimon_target_get(table, rel, tid, &target))
	{
		MemoryContextSwitchTo(old);
		memset(tmfd, 0, sizeof(*tmfd));
		tmfd->ctid = *tid;
		return TM_Deleted;
	}
	result = lock_target(table, rel, tid, &target, cid, snapshot, crosscheck, wait, LockTupleExclusive, tmfd);
	if (result == TM_Ok)
	{
		paimon_predicate_put(rel, (const uint8 *) target.key.data, target.key.len);
		if (!(changing_part && key_taken_over(table, rel, &target, cid)))
			paimon_buffer_put(table, rel, cid, target.bucket, PAIMON_KIND_REMOVE, true,
							  (uint8 *) target.key.data, target.key.len, NULL, 0, &new_tid);
		pgstat_count_heap_delete(rel);
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * An UPDATE that changes the key: the row goes from the old key and is inserted under the new one.  A row that the same command has just moved
 * onto the old key stays there.
 */
static void
put_moved(PaimonTable *table, Relation rel, const PaimonTarget *target, const PaimonEncoded *row, CommandId cid, Snapshot snapshot,
		  ItemPointer tid)
{
	PaimonBytes key = {(const uint8 *) row->key.data, row->key.len};
	TM_FailureData tmfd;
	ItemPointerData ignored;
	bool		unchanged;

	if (!key_taken_over(table, rel, target, cid))
		paimon_buffer_put(table, rel, cid, target->bucket, PAIMON_KIND_REMOVE, true,
						  (uint8 *) target->key.data, target->key.len, NULL, 0, &ignored);
	/* An upsert of the new key, but for the lock: if there is a row, whoever refers to it may go on. */
	(void) paimon_lock_key(table, rel, tid, row->bucket, key, snapshot, LockTupleNoKeyExclusive, true, LockWaitBlock, &tmfd, &unchanged);
	paimon_predicate_put(rel, key.data, key.len);
	paimon_buffer_put(table, rel, cid, row->bucket, PAIMON_KIND_INSERT, true, key.data, key.len,
					  (uint8 *) row->payload.data, row->payload.len, tid);
}

TM_Result
paimon_tuple_update(Relation rel, ItemPointer otid, TupleTableSlot *slot, CommandId cid, Snapshot snapshot,
					Snapshot crosscheck, bool wait, TM_FailureData *tmfd, LockTupleMode *lockmode,
					PaimonUpdateIndexes *update_indexes)
{
	PaimonTable *table = paimon_stall_check(paimon_table_get(rel, true), rel, cid);
	MemoryContext old = paimon_enter_row_context();
	PaimonTarget target;
	PaimonEncoded row;
	TM_Result	result;
	bool		moves;

	*update_indexes = PAIMON_UPDATE_INDEXES_NONE;
	*lockmode = LockTupleExclusive;
	(void) GetCurrentTransactionId();
	if (!paimon_target_get(table, rel, otid, &target))
	{
		MemoryContextSwitchTo(old);
		memset(tmfd, 0, sizeof(*tmfd));
		tmfd->ctid = *otid;
		return TM_Deleted;
	}
	paimon_encode_slot(table, rel, slot, &row);
	if (table->desc->nkeys == 0)
	{
		/* the row keeps its number */
		appendBinaryStringInfo(&row.key, target.key.data, target.key.len);
		row.bucket = target.bucket;
	}
	moves = row.key.len != target.key.len || memcmp(row.key.data, target.key.data, row.key.len) != 0 ||
		row.bucket != target.bucket;
	if (!moves)
		*lockmode = LockTupleNoKeyExclusive;

	result = lock_target(table, rel, otid, &target, cid, snapshot, crosscheck, wait, *lockmode, tmfd);
	if (result == TM_Ok)
	{
		slot->tts_tableOid = RelationGetRelid(rel);
		paimon_predicate_put(rel, (const uint8 *) target.key.data, target.key.len);
		if (moves)
			put_moved(table, rel, &target, &row, cid, snapshot, &slot->tts_tid);
		else
			paimon_buffer_put(table, rel, cid, row.bucket, PAIMON_KIND_REPLACE, true,
							  (uint8 *) row.key.data, row.key.len, (uint8 *) row.payload.data, row.payload.len, &slot->tts_tid);
		paimon_count_update(rel);
	}
	MemoryContextSwitchTo(old);
	return result;
}

/*
 * End of a bulk load.  A rewrite of a table (ALTER TABLE) fills a transient relation whose storage the table then takes over: what is still
 * in the write buffer must find its way to the table by then.
 */
void
paimon_finish_bulk_insert(Relation rel, int options)
{
	if (OidIsValid(rel->rd_rel->relrewrite))
		paimon_buffer_adopt(paimon_table_get(rel, true)->storage_id, rel->rd_rel->relrewrite);
}
