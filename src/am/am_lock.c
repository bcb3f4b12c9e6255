/*-------------------------------------------------------------------------
 *
 * am_lock.c
 *	  Locking a row before it is changed, and finding out whether it still is what the statement saw (H4, H5).
 *
 *	1. enter the key in the key-lock table, waiting for whoever holds it in a conflicting mode;
 *	2. wait for every other running transaction that has a record of the key in the log;
 *	3. compare the row that the statement saw with the merged row under a fresh snapshot, byte for byte.
 *
 * After 1 and 2 nobody can change the row any more before we end: upserts and updates look at the key locks before they append.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "am/am.h"
#include "core/core_bloom.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "stop.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "worker/stall.h"

/*
 * The context that one row's work is done in, emptied at the start of the next: statements touch millions of rows.
 */
MemoryContext
paimon_enter_row_context(void)
{
	static MemoryContext row_context = NULL;

	if (row_context == NULL)
		row_context = AllocSetContextCreate(TopMemoryContext, "paimon row", 64 * 1024, 64 * 1024, ALLOCSET_DEFAULT_MAXSIZE);
	MemoryContextReset(row_context);
	return MemoryContextSwitchTo(row_context);
}

/*
 * Finds out what lies at tid; false if nothing does.  Memory is in CurrentMemoryContext.
 */
bool
paimon_target_get(PaimonTable *table, Relation rel, ItemPointer tid, PaimonTarget *target)
{
	PaimonRowRef row;

	if (!paimon_resolve_tid(table, rel, tid, &row))
		return false;
	target->tid = *tid;
	target->bucket = row.bucket;
	target->kind = row.kind;
	initStringInfo(&target->key);
	appendBinaryStringInfo(&target->key, (const char *) row.key.data, row.key.len);
	return true;
}

/*
 * Has the running command, or one that it triggered, already changed the row?  As heap answers: TM_SelfModified with the command that did it.
 * A row that the command itself moved or inserted onto the key is not the row that was seen: that is no change of it.
 */
TM_Result
paimon_check_touched(PaimonTable *table, Relation rel, const PaimonTarget *target, CommandId cid, TM_FailureData *tmfd)
{
	CommandId	by;
	uint8		kind;

	if (!paimon_buffer_has_rows(table->storage_id) ||
		!paimon_buffer_touched(table, rel, target->bucket, (const uint8 *) target->key.data, target->key.len, &by, &kind))
		return TM_Ok;
	if (by < cid || (by == cid && kind == PAIMON_KIND_INSERT))
		return TM_Ok;
	tmfd->xmax = GetCurrentTransactionId();
	tmfd->cmax = by;
	return TM_SelfModified;
}

/* Waits for the end of another transaction as the policy says; TM_Ok after a wait. */
static TM_Result
wait_for(Relation rel, ItemPointer tid, TransactionId xid, LockWaitPolicy policy, XLTW_Oper oper)
{
	switch (policy)
	{
		case LockWaitBlock:
			XactLockTableWait(xid, rel, tid, oper);
			return TM_Ok;
		case LockWaitSkip:
			return paimon_xact_has_ended(xid, false) ? TM_Ok : TM_WouldBlock;
		case LockWaitError:
			if (paimon_xact_has_ended(xid, true))
				return TM_Ok;
			ereport(ERROR,
					(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
					 errmsg("could not obtain lock on row in relation \"%s\"", RelationGetRelationName(rel))));
	}
	return TM_WouldBlock;
}

/*
 * Who has to wait for a key stands in its queue, as on heap (LockTuple), so that waiters get it in the order in which they came.  One place in the queue
 * at a time: it is left when the key is locked.  The tag is made of the key's hash; keys that share one share a queue.
 */
static void
queue_place(ItemPointer place, int bucket, uint64 hash)
{
	ItemPointerSet(place, (BlockNumber) hash ^ (BlockNumber) bucket, (OffsetNumber) (hash >> 32));
}

static LOCKMODE
queue_mode(LockTupleMode mode)
{
	switch (mode)
	{
		case LockTupleKeyShare:
			return AccessShareLock;
		case LockTupleShare:
			return RowShareLock;
		case LockTupleNoKeyExclusive:
			return ExclusiveLock;
		default:
			return AccessExclusiveLock;
	}
}

/*
 * The log's row as a snapshot sees it, remembered from row to row, for the last two snapshots.  Within one transaction two snapshots with the same
 * bounds, the same number of running transactions and the same command see the same: a transaction below xmax can only leave the list.
 */
typedef struct SeenLog
{
	uint64		storage_id;
	LocalTransactionId lxid;
	TransactionId xmin;
	TransactionId xmax;
	uint32		xcnt;
	int32		subxcnt;
	CommandId	curcid;
	PaimonLogRow row;
} SeenLog;

static const PaimonLogRow *
log_row(PaimonTable *table, Snapshot snapshot)
{
	static SeenLog seen[2];
	static int	next = 0;
	SeenLog    *s;

	for (int i = 0; i < 2; i++)
	{
		s = &seen[i];
		if (s->storage_id == table->storage_id && s->lxid == paimon_my_lxid() && s->xmin == snapshot->xmin &&
			s->xmax == snapshot->xmax && s->xcnt == snapshot->xcnt && s->subxcnt == snapshot->subxcnt &&
			s->curcid == snapshot->curcid)
			return &s->row;
	}
	s = &seen[next];
	next = 1 - next;
	s->storage_id = 0;
	if (!paimon_catalog_log_get(table->storage_id, snapshot, &s->row))
		memset(&s->row, 0, sizeof(s->row));
	else if (s->row.nleftover > 0)
	{
		uint64	   *copy = MemoryContextAlloc(TopTransactionContext, sizeof(uint64) * s->row.nleftover);

		memcpy(copy, s->row.leftover, sizeof(uint64) * s->row.nleftover);
		s->row.leftover = copy;
	}
	s->storage_id = table->storage_id;
	s->lxid = paimon_my_lxid();
	s->xmin = snapshot->xmin;
	s->xmax = snapshot->xmax;
	s->xcnt = snapshot->xcnt;
	s->subxcnt = snapshot->subxcnt;
	s->curcid = snapshot->curcid;
	return &s->row;
}

/*
 * Steps 1 and 2 for one key.  `snapshot` is the one that the row was seen with.  `writes`: the row is to be changed, not only kept from others.  *unchanged: nothing can have changed the key since that
 * snapshot, step 3 may be skipped.  tid NULL: no row has been seen.  Returns TM_Ok or TM_WouldBlock.
 */
TM_Result
paimon_lock_key(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot,
				LockTupleMode mode, bool writes, LockWaitPolicy policy, TM_FailureData *tmfd, bool *unchanged)
{
	uint64		hash = paimon_key_hash(key.data, key.len);
	XLTW_Oper	oper = tid == NULL ? XLTW_None : writes ? XLTW_Update : XLTW_Lock;
	bool		waited = false;
	bool		queued = false;
	bool		invisible = false;
	const PaimonLogRow *log;
	Snapshot	latest = NULL;
	ItemPointerData place;

	*unchanged = true;
	if (table->shared == NULL)
		return TM_Ok;			/* a temporary table is ours alone */

	paimon_lock_modify(table->storage_id, false);
	for (;;)
	{
		TransactionId blocker;

		CHECK_FOR_INTERRUPTS();
		if (paimon_keylock_try(table->shared, bucket, hash, mode, writes, &blocker) == PAIMON_KEYLOCK_OK)
			break;
		tmfd->xmax = blocker;
		waited = true;

		/* Who only strengthens his lock does not stand behind those who wait for him to end.  Who does not wait needs no place. */
		if (!queued && policy == LockWaitBlock && !paimon_keylock_is_mine(table->shared, bucket, hash))
		{
			queue_place(&place, bucket, hash);
			LockTuple(rel, &place, queue_mode(mode));
			queued = true;
			continue;
		}
		if (wait_for(rel, tid, blocker, policy, oper) != TM_Ok)
			return TM_WouldBlock;
	}
	if (queued)
		UnlockTuple(rel, &place, queue_mode(mode));
	PAIMON_STOP_POINT("key-locked");

	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC)
		snapshot = latest = RegisterSnapshot(GetLatestSnapshot());
	log = log_row(table, snapshot);
	for (;;)
	{
		int			n;
		TransactionId *writers = paimon_key_writers(table->shared, rel, snapshot, log, bucket, key.data, key.len, mode, &n,
													&invisible);

		if (n == 0)
			break;
		for (int i = 0; i < n; i++)
		{
			tmfd->xmax = writers[i];
			if (wait_for(rel, tid, writers[i], policy, oper) != TM_Ok)
			{
				if (latest != NULL)
					UnregisterSnapshot(latest);
				return TM_WouldBlock;
			}
		}
		pfree(writers);
		waited = true;
		CHECK_FOR_INTERRUPTS();
	}

	if (waited || invisible || latest != NULL)
		*unchanged = false;
	else
	{
		/* Changes since the snapshot are in the log's memtables, or came with a newer manifest. */
		*unchanged = paimon_shared_announced(table->shared) <= log->version;
	}
	if (latest != NULL)
		UnregisterSnapshot(latest);
	return TM_Ok;
}

/*
 * Does the snapshot see the key as it is, and is nobody else about to change it?  False when in doubt.
 */
bool
paimon_key_is_settled(PaimonTable *table, Relation rel, int bucket, PaimonBytes key, Snapshot snapshot)
{
	const PaimonLogRow *log;
	bool		invisible = false;
	int			n;

	if (table->shared == NULL)
		return true;			/* a temporary table is ours alone */
	if (TransactionIdIsValid(paimon_keylock_writer(table->shared, bucket, paimon_key_hash(key.data, key.len))))
		return false;
	log = log_row(table, snapshot);
	pfree(paimon_key_writers(table->shared, rel, snapshot, log, bucket, key.data, key.len, LockTupleExclusive, &n, &invisible));
	return n == 0 && !invisible && paimon_shared_announced(table->shared) <= log->version;
}

/*
 * Waits until no other transaction is about to change the key, as a dirty snapshot demands it; locks nothing, so the next one may come at once.
 * Who only keeps the row locked is not waited for, and neither are large commits: whoever means to write waits for those when locking.
 */
void
paimon_wait_for_writers(PaimonTable *table, Relation rel, int bucket, PaimonBytes key)
{
	uint64		hash = paimon_key_hash(key.data, key.len);

	if (table->shared == NULL)
		return;
	for (;;)
	{
		TransactionId writer = paimon_keylock_writer(table->shared, bucket, hash);

		CHECK_FOR_INTERRUPTS();
		if (!TransactionIdIsValid(writer))
		{
			Snapshot	latest = RegisterSnapshot(GetLatestSnapshot());
			bool		invisible = false;
			int			n;
			TransactionId *writers = paimon_key_writers(table->shared, rel, latest, log_row(table, latest), bucket, key.data, key.len,
														LockTupleExclusive, &n, &invisible);

			UnregisterSnapshot(latest);
			if (n == 0)
				return;
			writer = writers[0];
			pfree(writers);
		}
		PAIMON_STOP_POINT("conflict-wait");
		XactLockTableWait(writer, NULL, NULL, XLTW_None);
	}
}

/*
 * Are the bytes of the row that the statement saw those of the row that there is now?  The former are read only here, for few
 * rows get here and their columns are dear; the statement's snapshot keeps them.
 */
static bool
same_payload(PaimonTable *table, Relation rel, const PaimonTarget *target, const PaimonRowRef *now)
{
	ItemPointerData tid = target->tid;
	PaimonRowRef seen;
	StringInfoData before;
	StringInfoData after;

	if (!paimon_resolve_tid(table, rel, &tid, &seen))
		return false;
	initStringInfo(&before);
	initStringInfo(&after);
	paimon_rowref_payload(table, &seen, &before);
	paimon_rowref_payload(table, now, &after);
	return before.len == after.len && memcmp(before.data, after.data, before.len) == 0;
}

/*
 * Step 3: compares the target, as `snapshot` saw it, with the merged row under a fresh snapshot.  TM_Ok: the same bytes.  TM_Updated: *row is what it is now, valid until
 * *lookup is ended by the caller.  TM_Deleted: gone.
 */
TM_Result
paimon_recheck(PaimonTable *table, Relation rel, const PaimonTarget *target, Snapshot snapshot, PaimonLookup **lookup, PaimonRowRef *row)
{
	ItemPointerData tid = target->tid;
	PaimonBytes key = {(const uint8 *) target->key.data, target->key.len};

	*lookup = paimon_lookup_begin_registered(table, rel, GetLatestSnapshot());
	if (!paimon_lookup_get(*lookup, target->bucket, (const uint8 *) target->key.data, target->key.len, row))
		return TM_Deleted;
	if (table->merges)
		return paimon_version_unchanged(table, rel, &tid, target->bucket, key, snapshot, row) ? TM_Ok : TM_Updated;
	if (paimon_kind_is_removal(target->kind))
		return TM_Updated;		/* cannot be: a delete marker is never given as a row */
	return same_payload(table, rel, target, row) ? TM_Ok : TM_Updated;
}

/*
 * Did the running command, or one that it triggered, write the very version that lies at the target?  Only a dirty snapshot leads to such a one: ON
 * CONFLICT has met a row of its own command.
 */
static bool
is_own_work(PaimonTable *table, Relation rel, PaimonTarget *target, CommandId cid)
{
	const uint8 *key = (const uint8 *) target->key.data;
	PaimonBufferRecord rec;
	CommandId	by;
	uint8		kind;

	return paimon_buffer_has_rows(table->storage_id) &&
		paimon_buffer_touched(table, rel, target->bucket, key, target->key.len, &by, &kind) && by >= cid &&
		paimon_buffer_get(table, rel, target->bucket, InvalidCommandId, key, target->key.len, &rec) &&
		ItemPointerEquals(&rec.tid, &target->tid);
}

/* Locks the row at *tid; as core expects, *tid moves to the version that was locked. */
static TM_Result
lock_tuple(PaimonTable *table, Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
		   LockTupleMode mode, LockWaitPolicy policy, uint8 flags, TM_FailureData *tmfd)
{
	PaimonTarget target;
	PaimonBytes key;
	PaimonLookup *lookup;
	PaimonRowRef row;
	TM_Result	result;
	bool		unchanged;

	if (!paimon_target_get(table, rel, tid, &target) || (!table->merges && paimon_kind_is_removal(target.kind)))
		return TM_Deleted;
	key.data = (const uint8 *) target.key.data;
	key.len = target.key.len;

	if (is_own_work(table, rel, &target, cid) && paimon_resolve_tid(table, rel, tid, &row))
	{
		if (!table->merges)
			paimon_put_row(slot, table, &row, false);
		else if (!paimon_version_fetch(table, rel, tid, slot))
			return TM_Deleted;
		return TM_Invisible;
	}
	result = paimon_check_touched(table, rel, &target, cid, tmfd);
	if (result != TM_Ok)
		return result;
	result = paimon_lock_key(table, rel, tid, target.bucket, key, snapshot, mode, false, policy, tmfd, &unchanged);
	if (result != TM_Ok)
		return result;

	if (unchanged && table->merges)
	{
		if (paimon_version_seen(table, rel, tid, target.bucket, key, snapshot, &row))
		{
			paimon_put_row(slot, table, &row, false);
			return TM_Ok;
		}
	}
	else if (unchanged)
	{
		if (!paimon_resolve_tid(table, rel, tid, &row))
			return TM_Deleted;
		paimon_put_row(slot, table, &row, PAIMON_DECODE_SINGLE);
		return TM_Ok;
	}

	result = paimon_recheck(table, rel, &target, snapshot, &lookup, &row);

	/* KEY SHARE minds changes of the key only, and the key is there: as on heap, the version that was seen is the one that is locked. */
	if (result == TM_Updated && mode == LockTupleKeyShare && (table->merges || paimon_resolve_tid(table, rel, tid, &row)))
	{
		if (table->merges)
			(void) paimon_version_seen(table, rel, tid, target.bucket, key, snapshot, &row);
		paimon_put_row(slot, table, &row, false);
		paimon_lookup_end(lookup);
		return TM_Ok;
	}
	if (result == TM_Updated)
		tmfd->ctid = row.tid;
	/* An older record has come below the newest one: ON CONFLICT, which does not follow rows, comes back with the same ctid, and so does who does. */
	if (table->merges && result == TM_Updated && !IsolationUsesXactSnapshot() && ItemPointerEquals(tid, &row.tid))
		paimon_version_remember(table, &row);
	if (result == TM_Ok || (result == TM_Updated && (flags & TUPLE_LOCK_FLAG_FIND_LAST_VERSION)))
	{
		tmfd->traversed = result == TM_Updated;
		*tid = row.tid;
		paimon_put_row(slot, table, &row, PAIMON_DECODE_SINGLE);
		result = TM_Ok;
	}
	paimon_lookup_end(lookup);
	return result;
}

/*
 * Whoever holds key locks does not wait for compaction any more: so who locks rows in order to write them waits here, or he never would.  NOWAIT
 * asks for an answer at once.
 */
static PaimonTable *
wait_before_locks(PaimonTable *table, Relation rel, CommandId cid, LockTupleMode mode, LockWaitPolicy policy)
{
	if (mode < LockTupleNoKeyExclusive || policy == LockWaitError)
		return table;
	return paimon_stall_check(table, rel, cid);
}

TM_Result
paimon_tuple_lock(Relation rel, ItemPointer tid, Snapshot snapshot, TupleTableSlot *slot, CommandId cid,
				  LockTupleMode mode, LockWaitPolicy policy, uint8 flags, TM_FailureData *tmfd)
{
	PaimonTable *table = wait_before_locks(paimon_table_get(rel, true), rel, cid, mode, policy);
	MemoryContext old = paimon_enter_row_context();
	ItemPointerData locked = *tid;	/* the caller's may be the slot's own, which does not survive clearing the slot */
	TM_Result	result;

	memset(tmfd, 0, sizeof(*tmfd));
	tmfd->ctid = locked;
	ExecClearTuple(slot);
	result = lock_tuple(table, rel, &locked, snapshot, slot, cid, mode, policy, flags, tmfd);
	if (result == TM_Ok)
		*tid = locked;
	/* ON CONFLICT asks for the xmin of such a row: is it ours? */
	if (result == TM_Invisible || (result == TM_Ok && IsolationUsesXactSnapshot()))
		paimon_slot_set_fetched(slot);
	MemoryContextSwitchTo(old);
	return result;
}
