/*-------------------------------------------------------------------------
 *
 * am_conflict.c
 *	  Insertions that must look whether their key is there already: ON CONFLICT and MERGE.
 *
 * INSERT ... ON CONFLICT, as core runs it, looks for the key with a dirty snapshot (am_index.c waits there until nobody is changing it), and if there is
 * no row calls for a speculative insertion.  Ours is not speculative: it locks the key, so that nobody else can write it before this transaction ends,
 * looks again, and writes or says that there is a conflict after all.  Core then begins anew, and finds the row.  So no token of ours is ever waited for.
 *
 * A MERGE that inserts has found no row either, and fails if there is one now, as on heap.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "am/am.h"
#include "executor/executor.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "stop.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "worker/stall.h"

/* Running statements with a rule, newest first; each lives in its executor's memory and goes with it. */
PaimonUpsert *paimon_upserts = NULL;

/* A ctid that no row has: a speculative insertion that has not taken place. */
#define CONFLICT_OFFSET PG_UINT16_MAX

bool
paimon_is_conflict(ItemPointer tid)
{
	return ItemPointerGetOffsetNumberNoCheck(tid) == CONFLICT_OFFSET &&
		ItemPointerGetBlockNumberNoCheck(tid) == PAIMON_BUFFER_FIRST_BLOCK;
}

static void
unregister(void *arg)
{
	for (PaimonUpsert **link = &paimon_upserts; *link != NULL; link = &(*link)->next)
	{
		if (*link == arg)
		{
			*link = (*link)->next;
			return;
		}
	}
}

/* From now on, until cxt goes, the statement's insertions keep its rule.  `upsert` must live in cxt. */
void
paimon_upsert_register(PaimonUpsert *upsert, MemoryContext cxt)
{
	MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

	callback->func = unregister;
	callback->arg = upsert;
	upsert->next = paimon_upserts;
	paimon_upserts = upsert;
	MemoryContextRegisterResetCallback(cxt, callback);
}

/*
 * Locks a key that is to be inserted, waiting for whoever changes or keeps it; true if there is no row of it then, and there will be none of
 * others before we end.  Not as strongly as for a removal: there is no row on which others could hold weaker locks.
 */
static bool
take_new_key(PaimonTable *table, Relation rel, const PaimonEncoded *row)
{
	PaimonBytes key = {(const uint8 *) row->key.data, row->key.len};
	PaimonLookup *lookup;
	PaimonRowRef there;
	TM_FailureData tmfd;
	bool		unchanged;
	bool		found;

	PAIMON_STOP_POINT("conflict-lock");
	(void) paimon_lock_key(table, rel, NULL, row->bucket, key, NULL, LockTupleNoKeyExclusive, true, LockWaitBlock, &tmfd, &unchanged);
	lookup = paimon_lookup_begin(table, rel, SnapshotSelf);
	found = paimon_lookup_get(lookup, row->bucket, key.data, key.len, &there);
	paimon_lookup_end(lookup);
	return !found;
}

/* See the head of this file.  After a conflict the slot has a ctid that aminsert knows as such. */
void
paimon_tuple_insert_speculative(Relation rel, TupleTableSlot *slot, CommandId cid, int options,
								struct BulkInsertStateData *bistate, uint32 token)
{
	PaimonTable *table = paimon_stall_check(paimon_table_get(rel, true), rel, cid);
	MemoryContext old;
	PaimonEncoded row;

	CheckForSerializableConflictIn(rel, NULL, InvalidBlockNumber);
	old = paimon_enter_row_context();
	paimon_encode_slot(table, rel, slot, &row);
	slot->tts_tableOid = RelationGetRelid(rel);
	if (take_new_key(table, rel, &row))
	{
		paimon_buffer_put(table, rel, cid, row.bucket, PAIMON_KIND_INSERT, true,
						  (uint8 *) row.key.data, row.key.len, (uint8 *) row.payload.data, row.payload.len, &slot->tts_tid);
		pgstat_count_heap_insert(rel, 1);
	}
	else
		ItemPointerSet(&slot->tts_tid, PAIMON_BUFFER_FIRST_BLOCK, CONFLICT_OFFSET);
	MemoryContextSwitchTo(old);
}

void
paimon_tuple_complete_speculative(Relation rel, TupleTableSlot *slot, uint32 token, bool succeeded)
{
	/* Written or not, that was final. */
}

/* As core says it. */
static void
check_once(PaimonTable *table, Relation rel, const PaimonEncoded *row, CommandId cid)
{
	CommandId	by;
	uint8		kind;

	if (paimon_buffer_has_rows(table->storage_id) &&
		paimon_buffer_touched(table, rel, row->bucket, (const uint8 *) row->key.data, row->key.len, &by, &kind) &&
		by >= cid && !paimon_kind_is_removal(kind))
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("%s command cannot affect row a second time", "ON CONFLICT DO UPDATE"),
				 errhint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")));
}

static void
report_duplicate(Relation rel, TupleTableSlot *slot)
{
	List	   *indexes = RelationGetIndexList(rel);
	Relation	index = index_open(OidIsValid(rel->rd_pkindex) ? rel->rd_pkindex : linitial_oid(indexes), AccessShareLock);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *key;

	for (int i = 0; i < index->rd_index->indnatts; i++)
		values[i] = slot_getattr(slot, index->rd_index->indkey.values[i], &isnull[i]);
	key = BuildIndexValueDescription(index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"", RelationGetRelationName(index)),
			 key ? errdetail("Key %s already exists.", key) : 0,
			 errtableconstraint(rel, RelationGetRelationName(index))));
}

/*
 * Called before an insertion into a table with a key while statements with a rule run.  Returns whether the key has been locked.
 */
bool
paimon_upsert_check(PaimonTable *table, Relation rel, TupleTableSlot *slot, const PaimonEncoded *row, CommandId cid)
{
	bool		locked = false;

	for (const PaimonUpsert *u = paimon_upserts; u != NULL; u = u->next)
	{
		/* Commands that triggers run have numbers of their own. */
		if (u->cid != cid || (u->relid != RelationGetRelid(rel) && !(u->partitioned && rel->rd_rel->relispartition)))
			continue;
		if (u->rule == PAIMON_INSERT_ONCE)
			check_once(table, rel, row, cid);
		else if (!locked && !take_new_key(table, rel, row))
			report_duplicate(rel, slot);
		else
			locked = true;
	}
	return locked;
}
