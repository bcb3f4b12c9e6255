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
#include "core/core_bloom.h"
#include "executor/executor.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "stop.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "worker/stall.h"

/* Running statements with a rule, newest first; each lives in its executor's memory and goes with it. */
PaimonUpsert *paimon_upserts = NULL;

/* A ctid that no row has: a speculative insertion that has not taken place. */
#define CONFLICT_OFFSET PG_UINT16_MAX

/* Places for hashes of keys at first, and at most (64 MB). */
#define SEEN_FIRST 1024
#define SEEN_LAST (8 * 1024 * 1024)

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

/* From now on, until upsert->cxt goes, the statement's insertions keep its rule. */
void
paimon_upsert_register(PaimonUpsert *upsert)
{
	MemoryContextCallback *callback = MemoryContextAlloc(upsert->cxt, sizeof(MemoryContextCallback));

	upsert->seen_size = SEEN_FIRST;
	upsert->next_put = paimon_buffer_puts();
	callback->func = unregister;
	callback->arg = upsert;
	upsert->next = paimon_upserts;
	paimon_upserts = upsert;
	MemoryContextRegisterResetCallback(upsert->cxt, callback);
}

/* ---- looking for keys ---- */

static void
drop_lookup(PaimonUpsert *upsert)
{
	if (upsert->lookup != NULL)
		paimon_lookup_end(upsert->lookup);
	upsert->lookup = NULL;
}

/*
 * The statement whose executor's memory is cxt ends well.  (If it fails, its snapshots and pins go with the resource owner, and nobody looks at what
 * was found with them.)
 */
void
paimon_upserts_end(MemoryContext cxt)
{
	for (PaimonUpsert *u = paimon_upserts; u != NULL; u = u->next)
	{
		if (u->cxt == cxt)
			drop_lookup(u);
	}
}

static bool
concerns(const PaimonUpsert *upsert, Relation rel)
{
	return upsert->relid == RelationGetRelid(rel) || (upsert->partitioned && rel->rd_rel->relispartition);
}

/* A lookup of everything that is committed now, kept by the statement. */
static PaimonLookup *
renew_lookup(PaimonUpsert *upsert, PaimonTable *table, Relation rel)
{
	MemoryContext old = MemoryContextSwitchTo(upsert->cxt);
	ResourceOwner owner = CurrentResourceOwner;

	drop_lookup(upsert);
	/* The statement's: this may be a trigger's sub-transaction. */
	CurrentResourceOwner = upsert->owner;
	upsert->lookup = paimon_lookup_begin(table, rel, SnapshotSelf);
	upsert->storage_id = table->storage_id;
	CurrentResourceOwner = owner;
	MemoryContextSwitchTo(old);
	return upsert->lookup;
}

/*
 * For a statement with a rule: what finds the key as it is when nobody is changing it, after waiting for whoever does.  It is kept from row to
 * row as long as nothing of the key can be newer than it.  Own writes it sees always.  NULL: no such statement runs.
 */
PaimonLookup *
paimon_conflict_lookup(PaimonTable *table, Relation rel, int bucket, PaimonBytes key)
{
	PaimonUpsert *upsert = paimon_upserts;

	while (upsert != NULL && !concerns(upsert, rel))
		upsert = upsert->next;
	if (upsert == NULL)
		return NULL;
	if (upsert->lookup != NULL && upsert->storage_id == table->storage_id &&
		paimon_key_is_settled(table, rel, bucket, key, paimon_lookup_snapshot(upsert->lookup)))
		return upsert->lookup;
	paimon_wait_for_writers(table, rel, bucket, key);
	return renew_lookup(upsert, table, rel);
}

/*
 * Locks a key that is to be inserted, waiting for whoever changes or keeps it; true if there is no row of it then, and there will be none of
 * others before we end.  Not as strongly as for a removal: there is no row on which others could hold weaker locks.
 */
static bool
take_new_key(PaimonTable *table, Relation rel, const PaimonEncoded *row)
{
	PaimonBytes key = {(const uint8 *) row->key.data, row->key.len};
	PaimonLookup *kept = paimon_conflict_lookup(table, rel, row->bucket, key);
	PaimonLookup *lookup = kept;
	PaimonRowRef there;
	TM_FailureData tmfd;
	bool		unchanged;
	bool		found;

	PAIMON_STOP_POINT("conflict-lock");
	(void) paimon_lock_key(table, rel, NULL, row->bucket, key, kept == NULL ? NULL : paimon_lookup_snapshot(kept),
						   LockTupleNoKeyExclusive, true, LockWaitBlock, &tmfd, &unchanged);
	if (!unchanged || kept == NULL)
		lookup = paimon_lookup_begin(table, rel, SnapshotSelf);
	found = paimon_lookup_get(lookup, row->bucket, key.data, key.len, &there);
	if (lookup != kept)
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
		(void) paimon_put_incoming(table, rel, slot, cid, &row, true);
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

/* ---- no key twice ---- */

static uint64 *
seen_place(uint64 *seen, uint32 size, uint64 hash)
{
	uint32		i = (uint32) (hash ^ (hash >> 32)) & (size - 1);

	while (seen[i] != 0 && seen[i] != hash)
		i = (i + 1) & (size - 1);
	return &seen[i];
}

static void
stop_seeing(PaimonUpsert *upsert)
{
	if (upsert->seen != NULL)
		pfree(upsert->seen);
	upsert->seen = NULL;
	upsert->seen_size = 0;
}

static void
grow_seen(PaimonUpsert *upsert)
{
	uint32		size = upsert->seen_size * 2;
	uint64	   *seen;

	if (size > SEEN_LAST)
	{
		stop_seeing(upsert);
		return;
	}
	seen = MemoryContextAllocExtended(upsert->cxt, sizeof(uint64) * size, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < upsert->seen_size; i++)
	{
		if (upsert->seen[i] != 0)
			*seen_place(seen, size, upsert->seen[i]) = upsert->seen[i];
	}
	pfree(upsert->seen);
	upsert->seen = seen;
	upsert->seen_size = size;
}

/*
 * Is it certain that the running command has not written the key yet?  The write buffer could tell, but slowly.  So a set of hashes is kept, which says
 * so of nearly every new key, until it is too large or somebody else in the transaction (a function, a trigger, another part of the statement) writes, too.
 */
static bool
not_seen(PaimonUpsert *upsert, PaimonTable *table, const PaimonEncoded *row)
{
	uint64		hash;
	uint64	   *place;

	if (upsert->seen_size == 0)
		return false;
	if (paimon_buffer_puts() != upsert->next_put)
	{
		stop_seeing(upsert);
		return false;
	}
	upsert->next_put++;
	hash = paimon_key_hash((const uint8 *) row->key.data, row->key.len) ^
		(table->storage_id + (uint64) row->bucket) * UINT64CONST(0x9E3779B97F4A7C15);
	hash |= 1;					/* 0 is an empty place */
	if (upsert->nseen == 0)
	{
		/* most statements have one row */
		upsert->first_seen = hash;
		upsert->nseen = 1;
		return true;
	}
	if (upsert->seen == NULL)
	{
		upsert->seen = MemoryContextAllocZero(upsert->cxt, sizeof(uint64) * upsert->seen_size);
		*seen_place(upsert->seen, upsert->seen_size, upsert->first_seen) = upsert->first_seen;
	}
	place = seen_place(upsert->seen, upsert->seen_size, hash);
	if (*place != 0)
		return false;
	*place = hash;
	if (++upsert->nseen > upsert->seen_size / 2)
		grow_seen(upsert);
	return true;
}

/* As core says it. */
static void
check_once(PaimonUpsert *upsert, PaimonTable *table, Relation rel, const PaimonEncoded *row, CommandId cid)
{
	CommandId	by;
	uint8		kind;

	if (!not_seen(upsert, table, row) && paimon_buffer_has_rows(table->storage_id) &&
		paimon_buffer_touched(table, rel, row->bucket, (const uint8 *) row->key.data, row->key.len, &by, &kind) &&
		by >= cid && !paimon_kind_is_removal(kind))
		ereport(ERROR,
				(errcode(ERRCODE_CARDINALITY_VIOLATION),
				 errmsg("%s command cannot affect row a second time", "ON CONFLICT DO UPDATE"),
				 errhint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")));
}

/* ---- the key must be new ---- */

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

	for (PaimonUpsert *u = paimon_upserts; u != NULL; u = u->next)
	{
		/* Commands that triggers run have numbers of their own. */
		if (u->cid != cid || u->rule == PAIMON_INSERT_CONFLICT || !concerns(u, rel))
			continue;
		if (u->rule == PAIMON_INSERT_ONCE)
			check_once(u, table, rel, row, cid);
		else if (!locked && !take_new_key(table, rel, row))
			report_duplicate(rel, slot);
		else
			locked = true;
	}
	return locked;
}
