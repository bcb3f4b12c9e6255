/*-------------------------------------------------------------------------
 *
 * am_version.c
 *	  Rows of tables that merge, by ctid.
 *
 * A merged row has the ctid of the newest of its records.  That record alone says which key it is, and of which state of the row somebody speaks: what it
 * and all older records of the key come to.  Older records do not change any more, wherever flush and compaction put them, but which are older is
 * not written anywhere.  So there are two ways to see that state again:
 *
 * - the snapshot that is at work sees this very record as the key's newest one: then it sees the row;
 * - else the record is our own, or the key is locked by us, since only of such rows anybody asks who does not see them (triggers, and what follows a
 *	 lock).  Then all that is committed and is not our own is older, and of our own what has a smaller ordinal.
 *
 * An UPDATE asks for each row once more: lookups are kept for the snapshots used last, until the statement ends.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "am/am.h"
#include "core/core_bloom.h"
#include "merge/merge.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

typedef struct KeptLookup
{
	PaimonLookup *lookup;		/* NULL: free */
	MemoryContext cxt;
	Snapshot	snapshot;		/* registered with the transaction's resource owner */
	const PaimonTable *table;
	Relation	rel;
} KeptLookup;

static KeptLookup kept[4];
static int	next_kept = 0;

/* A merge that is going on may call functions of users, in which statements end. */
static int	looking = 0;

static void
let_go(KeptLookup *k)
{
	PaimonLookup *lookup = k->lookup;

	if (lookup == NULL)
		return;
	k->lookup = NULL;
	paimon_lookup_end(lookup);
	UnregisterSnapshotFromOwner(k->snapshot, TopTransactionResourceOwner);
	MemoryContextDelete(k->cxt);
}

void
paimon_versions_end(void)
{
	if (looking > 0)
		return;
	for (int i = 0; i < lengthof(kept); i++)
		let_go(&kept[i]);
}

/* Two snapshots of one transaction see the same if their bounds, running transactions and commands are the same: see am_lock.c. */
static bool
sees_the_same(const SnapshotData *a, const SnapshotData *b)
{
	return a->xmin == b->xmin && a->xmax == b->xmax && a->xcnt == b->xcnt && a->subxcnt == b->subxcnt && a->curcid == b->curcid;
}

/* A lookup with an MVCC snapshot that is kept until the statement ends, or others are needed. */
static PaimonLookup *
kept_lookup(PaimonTable *table, Relation rel, Snapshot snapshot)
{
	KeptLookup *k;
	ResourceOwner owner = CurrentResourceOwner;
	SnapshotData copy = *snapshot;
	MemoryContext old;

	for (int i = 0; i < lengthof(kept); i++)
	{
		k = &kept[i];
		if (k->lookup != NULL && k->table == table && k->rel == rel && sees_the_same(k->snapshot, snapshot))
			return k->lookup;
	}
	k = &kept[next_kept];
	next_kept = (next_kept + 1) % lengthof(kept);
	let_go(k);
	k->cxt = AllocSetContextCreate(TopTransactionContext, "paimon kept lookup", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(k->cxt);
	CurrentResourceOwner = TopTransactionResourceOwner;
	PG_TRY();
	{
		/* a copy: the server changes the command of the active one */
		copy.copied = false;
		k->snapshot = RegisterSnapshotOnOwner(&copy, TopTransactionResourceOwner);
		k->lookup = paimon_lookup_begin(table, rel, k->snapshot);
	}
	PG_FINALLY();
	{
		CurrentResourceOwner = owner;
		MemoryContextSwitchTo(old);
	}
	PG_END_TRY();
	k->table = table;
	k->rel = rel;
	return k->lookup;
}

static void
forget_at_end(XactEvent event, void *arg)
{
	looking = 0;
	/* before a commit there is still somebody to give things back to; after an abort they are gone */
	if (event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE || event == XACT_EVENT_PARALLEL_PRE_COMMIT)
		paimon_versions_end();
	else
		memset(kept, 0, sizeof(kept));
}

static void
forget_at_subabort(SubXactEvent event, SubTransactionId sub, SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
	{
		looking = 0;
		paimon_versions_end();
	}
}

void
paimon_versions_init(void)
{
	RegisterXactCallback(forget_at_end, NULL);
	RegisterSubXactCallback(forget_at_subabort, NULL);
}

/* ---- rows that were locked ---- */

/*
 * A snapshot may see a record as the newest one of its key, and yet not the row that is there when the key is locked: an older record may have been committed
 * since, below one of our own above all.  Both rows have the same ctid.  Whoever has been given the row as it is then comes back with that ctid and the old
 * snapshot: so it is remembered for the transaction what was given, and of such a ctid the snapshot is not asked any more.
 */
typedef struct GivenKey
{
	uint64		storage_id;
	ItemPointerData tid;
} GivenKey;

typedef struct Given
{
	GivenKey	key;			/* hash key; padding is zeroed */
	uint64		hash;			/* of the payload */
} Given;

static HTAB *given = NULL;		/* in the transaction's memory */
static LocalTransactionId given_lxid;

static Given *
find_given(const PaimonTable *table, const ItemPointerData *tid, HASHACTION action)
{
	GivenKey	key;

	if (given != NULL && given_lxid != paimon_my_lxid())
		given = NULL;			/* it went with its transaction */
	if (given == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(GivenKey), .entrysize = sizeof(Given), .hcxt = TopTransactionContext};

		if (action == HASH_FIND)
			return NULL;
		given = hash_create("paimon rows given after locking", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		given_lxid = paimon_my_lxid();
	}
	memset(&key, 0, sizeof(key));
	key.storage_id = table->storage_id;
	key.tid = *tid;
	return hash_search(given, &key, action, NULL);
}

static uint64
payload_hash(const PaimonTable *table, const PaimonRowRef *row)
{
	StringInfoData payload;

	initStringInfo(&payload);
	paimon_rowref_payload(table, row, &payload);
	return paimon_key_hash((const uint8 *) payload.data, payload.len);
}

void
paimon_version_remember(const PaimonTable *table, const PaimonRowRef *row)
{
	find_given(table, &row->tid, HASH_ENTER)->hash = payload_hash(table, row);
}

static bool
was_given(const PaimonTable *table, const PaimonRowRef *row)
{
	const Given *g = find_given(table, &row->tid, HASH_FIND);

	return g != NULL && g->hash == payload_hash(table, row);
}

/* Do two ctids mean the same record?  One of ours has another one since it was spilled, which a statement that has its first one may do itself. */
static bool
is_record(const PaimonTable *table, Relation rel, ItemPointer a, ItemPointer b)
{
	uint64		end;

	if (ItemPointerEquals(a, b))
		return true;
	end = paimon_tid_own_end(table, rel, a);
	return end > 0 && end == paimon_tid_own_end(table, rel, b);
}

/*
 * The row whose newest record lies at the ctid, as `snapshot` (NULL: the active one) sees it; false if it does not see that record as the key's newest
 * one.  *row is valid until something else is looked up.
 */
bool
paimon_version_seen(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot, PaimonRowRef *row)
{
	PaimonLookup *lookup;
	bool		found;

	if (snapshot == NULL && ActiveSnapshotSet())
		snapshot = GetActiveSnapshot();
	if (snapshot == NULL || snapshot->snapshot_type != SNAPSHOT_MVCC)
		return false;
	lookup = kept_lookup(table, rel, snapshot);
	looking++;
	found = paimon_lookup_get(lookup, bucket, key.data, key.len, row);
	looking--;
	if (!found || !is_record(table, rel, &row->tid, tid))
		return false;
	row->tid = *tid;
	return true;
}

/*
 * The same whatever the snapshot, for a record that is our own or whose key is locked by us.  *lookup is to be ended by the caller when the row is not
 * needed any more, if it is not NULL.
 */
bool
paimon_version_get(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, PaimonLookup **lookup, PaimonRowRef *row)
{
	*lookup = NULL;
	if (find_given(table, tid, HASH_FIND) == NULL && paimon_version_seen(table, rel, tid, bucket, key, NULL, row))
		return true;
	*lookup = paimon_lookup_begin(table, rel, SnapshotSelf);
	return paimon_lookup_get_before(*lookup, bucket, key.data, key.len, paimon_tid_own_end(table, rel, tid), row);
}

/*
 * Fills a slot with the row whose newest record lies at the ctid.  What an INSERT has put there is the incoming row: triggers and foreign keys see that.
 */
bool
paimon_version_fetch(PaimonTable *table, Relation rel, ItemPointer tid, TupleTableSlot *slot)
{
	PaimonRowRef record;
	PaimonRowRef row;
	PaimonLookup *lookup = NULL;
	uint64		own_end;
	bool		put_off;
	bool		locked;
	bool		found;

	if (!paimon_resolve_tid(table, rel, tid, &record))
		return false;
	own_end = paimon_tid_own_end(table, rel, tid);
	/* triggers put off to the end of the transaction: whatever the snapshot sees by now */
	put_off = own_end > 0 && !paimon_executor_changes();
	locked = !put_off && find_given(table, tid, HASH_FIND) != NULL;
	if (!locked && !put_off && paimon_version_seen(table, rel, tid, record.bucket, record.key, NULL, &row))
	{
		paimon_put_row(slot, table, &row, false);
		return true;
	}
	if (!locked && own_end > 0 && (record.kind == PAIMON_KIND_REPLACE ||
						(record.kind != PAIMON_KIND_REMOVE &&
						 !paimon_buffer_changed_after(table, record.bucket, record.key.data, record.key.len, own_end))))
	{
		paimon_put_row(slot, table, &record, false);
		return true;
	}
	lookup = paimon_lookup_begin(table, rel, SnapshotSelf);
	found = paimon_lookup_get_before(lookup, record.bucket, record.key.data, record.key.len, own_end, &row);
	if (found)
	{
		row.tid = *tid;
		paimon_put_row(slot, table, &row, false);
	}
	paimon_lookup_end(lookup);
	return found;
}

/*
 * Is a row that this transaction has inserted still there, though perhaps merged with others, or does the snapshot see the row in the slot?
 */
bool
paimon_version_satisfies(PaimonTable *table, Relation rel, TupleTableSlot *slot, Snapshot snapshot)
{
	PaimonRowRef record;
	PaimonRowRef seen;
	PaimonLookup *lookup;
	PaimonEncoded row;
	StringInfoData payload;
	uint64		own_end;
	bool		same = false;

	if (!paimon_resolve_tid(table, rel, &slot->tts_tid, &record))
		return false;
	lookup = paimon_lookup_begin(table, rel, snapshot);
	if (paimon_lookup_get(lookup, record.bucket, record.key.data, record.key.len, &seen))
	{
		own_end = paimon_tid_own_end(table, rel, &slot->tts_tid);
		same = ItemPointerEquals(&seen.tid, &slot->tts_tid);
		if (!same && own_end > 0)
			same = !paimon_buffer_changed_after(table, record.bucket, record.key.data, record.key.len, own_end);
		else if (!same && snapshot->snapshot_type == SNAPSHOT_MVCC)
		{
			initStringInfo(&payload);
			paimon_rowref_payload(table, &seen, &payload);
			paimon_encode_slot(table, rel, slot, &row);
			same = payload.len == row.payload.len && memcmp(payload.data, row.payload.data, payload.len) == 0;
		}
	}
	paimon_lookup_end(lookup);
	return same;
}

/*
 * The key is locked, and `now` is its row: is that the row that a statement with this snapshot has seen at the ctid?
 */
bool
paimon_version_unchanged(PaimonTable *table, Relation rel, ItemPointer tid, int bucket, PaimonBytes key, Snapshot snapshot, const PaimonRowRef *now)
{
	PaimonRowRef seen;
	StringInfoData before;
	StringInfoData after;

	if (!paimon_version_seen(table, rel, tid, bucket, key, snapshot, &seen))
		return true;			/* it was given after the key had been locked */
	initStringInfo(&before);
	initStringInfo(&after);
	paimon_rowref_payload(table, &seen, &before);
	paimon_rowref_payload(table, now, &after);
	if (before.len == after.len && memcmp(before.data, after.data, before.len) == 0)
		return true;
	return ItemPointerEquals(tid, (ItemPointer) &now->tid) && was_given(table, now);
}
