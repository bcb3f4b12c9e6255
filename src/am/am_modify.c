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
#include "merge/merge_records.h"
#include "merge/merge_server.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/logicalworker.h"
#include "storage/predicate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "worker/stall.h"

/* Rows of a batch that share the row context's first block before it is emptied. */
#define ROWS_A_RESET 16

/* Key, bucket and payload of a slot's row.  Memory is in CurrentMemoryContext. */
void
paimon_encode_slot(PaimonTable *table, Relation rel, TupleTableSlot *slot, PaimonEncoded *out)
{
	const PaimonRowDesc *desc = table->desc;
	const Datum *values;

	slot_getallattrs(slot);
	values = slot->tts_values;
	if (unlikely(!paimon_row_is_flat(desc, values, slot->tts_isnull)))
	{
		Datum	   *flat = palloc_array(Datum, desc->tupdesc->natts);

		memcpy(flat, values, desc->tupdesc->natts * sizeof(Datum));
		paimon_row_flatten(desc, flat, slot->tts_isnull);
		values = flat;
	}
	out->values = values;
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

/* ---- what the table's options say of a row before it is written ---- */

/* The kind of an incoming row: what rowkind.field says. */
static uint8
incoming_kind(const PaimonTable *table, Relation rel, const Datum *values, const bool *isnull)
{
	int			c = table->plan->rowkind;
	const char *name;
	text	   *value;
	uint8		kind;

	if (c < 0)
		return PAIMON_KIND_INSERT;
	name = NameStr(TupleDescAttr(table->desc->tupdesc, c)->attname);
	if (isnull[c])
		ereport(ERROR,
				(errcode(ERRCODE_NOT_NULL_VIOLATION),
				 errmsg("row kind cannot be null"),
				 errdetail("Column \"%s\" of table \"%s\" says the kind of each row.", name, RelationGetRelationName(rel)),
				 errtablecol(rel, c + 1)));
	value = DatumGetTextPP(values[c]);
	if (!paimon_merge_parse_kind(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), &kind))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid row kind \"%s\"", text_to_cstring(value)),
				 errdetail("Column \"%s\" of table \"%s\" says the kind of each row.", name, RelationGetRelationName(rel)),
				 errhint("Row kinds are +I, -U, +U and -D."),
				 errtablecol(rel, c + 1)));
	return kind;
}

/* May a record of this kind be written?  False: it has no effect.  Raises an error for what could never be merged. */
static bool
check_record(const PaimonTable *table, Relation rel, uint8 kind, const Datum *values, const bool *isnull, const uint8 *key, uint32 keylen)
{
	PaimonFoldRecord record = {.kind = kind, .values = (const uint64_t *) values, .nulls = isnull};
	PaimonFoldError error;
	PaimonAllocator alloc;

	paimon_merge_allocator(CurrentMemoryContext, &alloc);
	switch (paimon_merge_check_write(table->plan, &record, &alloc, &error))
	{
		case PAIMON_WRITE_TAKE:
			return true;
		case PAIMON_WRITE_DROP:
			return false;
		case PAIMON_WRITE_REFUSE:
			break;
	}
	paimon_merge_report(RelationGetRelationName(rel), table->plan, &error,
						pg_class_aclcheck(RelationGetRelid(rel), GetUserId(), ACL_SELECT) == ACLCHECK_OK ?
						paimon_key_describe(table->desc, key, keylen) : NULL);
}

/* A row that is not written after all: nobody must ask for it by its ctid. */
static void
leave_out(PaimonTable *table, Relation rel, TupleTableSlot *slot)
{
	if (rel->trigdesc != NULL && rel->trigdesc->trig_insert_after_row)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot leave out a row of table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("Its options \"ignore-delete\" and \"ignore-update-before\" say so, but the table has triggers or foreign keys that look at inserted rows.")));
	ItemPointerSet(&slot->tts_tid, MaxBlockNumber, 1);
}

/* Writes an inserted row, in the row context; false if the table's options leave it out. */
bool
paimon_put_incoming(PaimonTable *table, Relation rel, TupleTableSlot *slot, CommandId cid, const PaimonEncoded *row, bool locked)
{
	const uint8 *key = (const uint8 *) row->key.data;
	uint8		kind = PAIMON_KIND_INSERT;

	slot->tts_tableOid = RelationGetRelid(rel);
	if (table->plan != NULL)
	{
		/* ALTER TABLE writes what rows were merged into */
		if (OidIsValid(rel->rd_rel->relrewrite))
			kind = paimon_merge_rewrite_kind(table->plan, slot->tts_isnull);
		else
		{
			kind = incoming_kind(table, rel, row->values, slot->tts_isnull);
			if (!check_record(table, rel, kind, row->values, slot->tts_isnull, key, row->key.len))
			{
				leave_out(table, rel, slot);
				return false;
			}
		}
	}
	if (table->desc->nkeys > 0)
		paimon_predicate_put(rel, key, row->key.len);
	paimon_buffer_put(table, rel, cid, row->bucket, kind, locked, key, row->key.len, (const uint8 *) row->payload.data, row->payload.len,
					  &slot->tts_tid);
	return true;
}

/*
 * What a removal is stored with: the row's order, where there is a sequence.field, since it counts among later records.
 */
static void
removal_payload(PaimonTable *table, Relation rel, ItemPointer tid, const PaimonTarget *target, StringInfo payload)
{
	PaimonBytes key = {(const uint8 *) target->key.data, target->key.len};
	int			natts = table->desc->tupdesc->natts;
	Datum	   *values;
	bool	   *isnull;
	PaimonLookup *lookup;
	PaimonRowRef row;

	initStringInfo(payload);
	if (table->plan == NULL || table->plan->nsequence == 0)
		return;
	values = palloc0_array(Datum, natts);
	isnull = palloc_array(bool, natts);
	memset(isnull, true, natts);
	if (paimon_version_get(table, rel, tid, target->bucket, key, &lookup, &row))
	{
		for (int i = 0; i < table->plan->nsequence; i++)
		{
			int			c = table->plan->sequence[i];

			values[c] = row.values[c];
			isnull[c] = row.isnull[c];
		}
	}
	paimon_row_encode(table->desc, values, isnull, payload);
	if (lookup != NULL)
		paimon_lookup_end(lookup);
}

static void
put_removal(PaimonTable *table, Relation rel, ItemPointer tid, const PaimonTarget *target, CommandId cid)
{
	ItemPointerData ignored;
	StringInfoData payload;

	removal_payload(table, rel, tid, target, &payload);
	paimon_buffer_put(table, rel, cid, target->bucket, PAIMON_KIND_REMOVE, true, (const uint8 *) target->key.data, target->key.len,
					  (const uint8 *) payload.data, payload.len, &ignored);
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
	(void) paimon_put_incoming(table, rel, slot, cid, &row, locked);
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
	if (!table->merges && paimon_kind_is_removal(target->kind))
		return TM_Deleted;
	result = paimon_check_touched(table, rel, target, cid, tmfd);
	if (result != TM_Ok)
		return result;
	result = paimon_lock_key(table, rel, tid, target->bucket, key, snapshot, mode, true, wait ? LockWaitBlock : LockWaitSkip, tmfd, &unchanged);
	if (result != TM_Ok)
		return result;
	if (!unchanged)
	{
		result = paimon_recheck(table, rel, target, snapshot, &lookup, &row);
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

/* What of a key's own records the command at hand has inserted. */
typedef struct TakenOver
{
	PaimonMerger *merger;
	CommandId	cid;
} TakenOver;

static bool
add_taken_over(void *arg, const PaimonBufferRecord *rec)
{
	TakenOver  *taken = arg;

	return rec->cid == taken->cid && paimon_merger_add(taken->merger, rec->kind, rec->payload.data, rec->payload.len, true);
}

/*
 * The row that was there goes from a key onto which the same command has put others: what these come to by themselves replaces it.
 */
static void
remove_below(PaimonTable *table, Relation rel, const PaimonTarget *target, CommandId cid)
{
	const uint8 *key = (const uint8 *) target->key.data;
	TakenOver	taken = {.cid = cid};
	ItemPointerData ignored;
	int			n;

	taken.merger = paimon_merger_begin(RelationGetRelationName(rel), table->desc, table->plan, false);
	paimon_merger_key(taken.merger, key, target->key.len);
	paimon_buffer_each(table, rel, target->bucket, InvalidCommandId, PG_UINT64_MAX, key, target->key.len, add_taken_over, &taken);
	(void) paimon_merger_add(taken.merger, PAIMON_KIND_REMOVE, NULL, 0, false);
	n = paimon_merger_partial(taken.merger, false);
	for (int i = n - 1; i >= 0; i--)
	{
		StringInfoData payload;
		uint8		kind;

		initStringInfo(&payload);
		kind = paimon_merger_encode(taken.merger, i, &payload);
		paimon_buffer_put(table, rel, cid, target->bucket, kind, true, key, target->key.len, (const uint8 *) payload.data, payload.len, &ignored);
	}
	paimon_merger_end(taken.merger);
}

/*
 * May the row be deleted?  False: that has no effect.  `moves`: by an UPDATE that changes its key.  A foreign key's ON DELETE CASCADE counts on an effect: only
 * its statements run with that flag.
 */
static bool
check_removal(const PaimonTable *table, Relation rel, const PaimonTarget *target, bool moves)
{
	if (check_record(table, rel, PAIMON_KIND_REMOVE, NULL, NULL, (const uint8 *) target->key.data, target->key.len))
		return true;
	if (moves)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot change the key of a row of table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("With option \"ignore-delete\" the row cannot go from where it is.")));
	if (InNoForceRLSOperation())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a foreign key cannot delete rows of table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("With option \"ignore-delete\" they would stay, and refer to nothing.")));
	return false;
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
	TM_Result	result;

	(void) GetCurrentTransactionId();
	if (!paimon_target_get(table, rel, tid, &target))
	{
		MemoryContextSwitchTo(old);
		memset(tmfd, 0, sizeof(*tmfd));
		tmfd->ctid = *tid;
		return TM_Deleted;
	}
	if (table->plan != NULL && !check_removal(table, rel, &target, changing_part))
	{
		/* As if the command had deleted it before: the row does not count.  Logical replication takes that for an error. */
		MemoryContextSwitchTo(old);
		memset(tmfd, 0, sizeof(*tmfd));
		tmfd->ctid = *tid;
		tmfd->cmax = cid;
		return IsLogicalWorker() ? TM_Ok : TM_SelfModified;
	}
	result = lock_target(table, rel, tid, &target, cid, snapshot, crosscheck, wait, LockTupleExclusive, tmfd);
	if (result == TM_Ok)
	{
		paimon_predicate_put(rel, (const uint8 *) target.key.data, target.key.len);
		if (!(changing_part && key_taken_over(table, rel, &target, cid)))
			put_removal(table, rel, tid, &target, cid);
		else if (table->merges)
			remove_below(table, rel, &target, cid);
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
	ItemPointerData old_tid = target->tid;
	bool		unchanged;

	if (!key_taken_over(table, rel, target, cid))
		put_removal(table, rel, &old_tid, target, cid);
	else if (table->merges)
		remove_below(table, rel, target, cid);
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
	if (table->plan != NULL)
	{
		(void) check_record(table, rel, PAIMON_KIND_REPLACE, row.values, slot->tts_isnull, (const uint8 *) target.key.data, target.key.len);
		if (moves)
			(void) check_removal(table, rel, &target, true);
	}

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
