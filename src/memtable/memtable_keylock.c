/*-------------------------------------------------------------------------
 *
 * memtable_keylock.c
 *	  Key locks: who has updated, deleted or locked which key, in a bounded table in shared memory.
 *
 * An entry is (storage, bucket, hash of the key, mode, holder's xid or subxid), or "all keys of the bucket".  It
 * ends with its holder: nobody has to remove it, an entry whose holder neither runs nor is prepared is dead and is
 * thrown out by whoever meets it.  Nothing here waits: a conflict is returned, and the caller waits for the
 * holder's xid with no lock held.
 *
 * The table is cut into partitions by hash; each has an LWLock, chains, and a free list.  "All" entries have a
 * partition of their own, the last one.  Lock order: partition of the key, then the partition of "all".  README.md
 * argues why that loses no conflict.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lwlock.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "memtable/memtable_internal.h"

#define PARTITIONS 64  /* of keys; one more for "all" */
#define COUNTERS 1024  /* of entries by storage */
#define MIN_SHARE 1024 /* keys of a transaction before it locks whole buckets */
#define NO_ENTRY PG_UINT32_MAX

typedef struct Entry
{
	uint64        storage_id;
	uint64        key_hash; /* 0 for "all" */
	TransactionId xid;
	uint32        next; /* in the chain or the free list */
	uint16        bucket;
	uint8         mode; /* LockTupleMode */
	uint8         all;
	uint8         writes; /* the key was locked in order to be changed, not only to keep others from it */
} Entry;

typedef struct Partition
{
	LWLock lock;
	uint32 first; /* its entries: [first, first + n) */
	uint32 n;
	uint32 free;        /* free list */
	uint32 first_chain; /* its chains: [first_chain, first_chain + nchains) */
	uint32 nchains;     /* a power of 2 */
} Partition;

typedef struct Table
{
	int              tranche;
	pg_atomic_uint32 left_behind;      /* entries of prepared transactions, which nobody removes at their end */
	pg_atomic_uint32 counts[COUNTERS]; /* entries, by storage */
	pg_atomic_uint32 alls[COUNTERS];   /* "all" entries, likewise */
	Partition        partitions[PARTITIONS + 1];
} Table;

/* What this backend's transaction has entered. */
typedef struct Mine
{
	Oid           relid; /* hint: of the storage */
	uint64        storage_id;
	uint64        key_hash;
	TransactionId xid;
	uint16        bucket;
	bool          all;
} Mine;

/* What is looked for. */
typedef struct Wanted
{
	Oid           relid; /* for our list, if it is to be entered */
	uint64        storage_id;
	uint64        key_hash;
	int           bucket;
	bool          all;
	LockTupleMode mode;
	bool          writes;
	uint32        chain; /* hash within the partition */
	Partition    *partition;
} Wanted;

static int     max_key_locks = 262144;
static Table  *table = NULL;
static Entry  *entries = NULL;
static uint32 *chains = NULL;

static Mine *mine = NULL; /* in TopMemoryContext */
static int   nmine = 0;
static int   mine_cap = 0;

/* GUC */
void
paimon_keylock_init(void)
{
	DefineCustomIntVariable(
		"paimon.max_key_locks", "Sets the number of keys of paimon tables that can be locked at the same time.",
		"UPDATE, DELETE and SELECT FOR UPDATE lock the keys they touch until the end of the transaction; each takes about 40 bytes of shared memory. "
		"A transaction with many keys locks whole buckets instead.",
		&max_key_locks, 262144, 16384, 64 * 1024 * 1024, PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

static uint32
partition_entries(void)
{
	return Max((uint32) max_key_locks / PARTITIONS, 256);
}

static uint32
partition_chains(void)
{
	return pg_nextpower2_32(partition_entries());
}

Size
paimon_keylock_shmem_size(void)
{
	Size per = add_size(mul_size(partition_entries(), sizeof(Entry)), mul_size(partition_chains(), sizeof(uint32)));

	return add_size(MAXALIGN(sizeof(Table)), mul_size(PARTITIONS + 1, per));
}

static void
init_partition(Partition *p, int i)
{
	LWLockInitialize(&p->lock, table->tranche);
	p->n = partition_entries();
	p->first = p->n * i;
	p->nchains = partition_chains();
	p->first_chain = p->nchains * i;
	for (uint32 c = 0; c < p->nchains; c++)
		chains[p->first_chain + c] = NO_ENTRY;
	p->free = p->first;
	for (uint32 e = 0; e < p->n; e++)
		entries[p->first + e].next = e + 1 < p->n ? p->first + e + 1 : NO_ENTRY;
}

/* Called with AddinShmemInitLock held. */
void
paimon_keylock_shmem_init(void)
{
	bool  found;
	char *base = ShmemInitStruct("paimon key locks", paimon_keylock_shmem_size(), &found);

	table = (Table *) base;
	entries = (Entry *) (base + MAXALIGN(sizeof(Table)));
	chains = (uint32 *) (entries + (Size) (PARTITIONS + 1) * partition_entries());
	if (!found)
	{
		table->tranche = LWLockNewTrancheId();
		pg_atomic_init_u32(&table->left_behind, 0);
		for (int i = 0; i < COUNTERS; i++)
		{
			pg_atomic_init_u32(&table->counts[i], 0);
			pg_atomic_init_u32(&table->alls[i], 0);
		}
		for (int i = 0; i <= PARTITIONS; i++)
			init_partition(&table->partitions[i], i);
	}
	LWLockRegisterTranche(table->tranche, "PaimonKeyLock");
}

/* ---- entries; the partition's lock is held ---- */

/*
 * Heap's table: KEY SHARE conflicts with FOR UPDATE alone, SHARE also with NO KEY UPDATE, NO KEY UPDATE also with
 * itself, FOR UPDATE with all.  With the modes numbered from 0 in that order, two conflict if they sum up to 3 or
 * more.
 */
static inline bool
conflicts(LockTupleMode a, LockTupleMode b)
{
	StaticAssertStmt(LockTupleKeyShare == 0 && LockTupleShare == 1 && LockTupleNoKeyExclusive == 2 &&
						 LockTupleExclusive == 3,
					 "modes must be numbered by strength");
	return (int) a + (int) b >= 3;
}

static inline pg_atomic_uint32 *
counter(pg_atomic_uint32 *counters, uint64 storage_id)
{
	return &counters[storage_id % COUNTERS];
}

static void
want(Wanted *w, uint64 storage_id, int bucket, uint64 key_hash, bool all, LockTupleMode mode)
{
	uint64 h = (storage_id ^ ((uint64) bucket << 48)) * UINT64CONST(0x9E3779B97F4A7C15);

	w->relid = InvalidOid;
	w->storage_id = storage_id;
	w->bucket = bucket;
	w->key_hash = all ? 0 : key_hash;
	w->all = all;
	w->mode = mode;
	w->writes = true;
	h = (h ^ w->key_hash) * UINT64CONST(0xD6E8FEB86659FD93);
	h ^= h >> 32;
	w->chain = (uint32) h;
	w->partition = &table->partitions[all ? PARTITIONS : (h >> 32) % PARTITIONS];
}

static inline uint32 *
chain_of(const Wanted *w)
{
	return &chains[w->partition->first_chain + (w->chain & (w->partition->nchains - 1))];
}

static inline bool
same_thing(const Entry *e, const Wanted *w)
{
	return e->key_hash == w->key_hash && e->storage_id == w->storage_id && e->bucket == w->bucket &&
		   (e->all != 0) == w->all;
}

/* Takes the entry at *link out of its chain.  Lock held exclusively. */
static void
remove_entry(Partition *p, uint32 *link)
{
	uint32 i = *link;
	Entry *e = &entries[i];

	*link = e->next;
	pg_atomic_fetch_sub_u32(counter(table->counts, e->storage_id), 1);
	if (e->all)
		pg_atomic_fetch_sub_u32(counter(table->alls, e->storage_id), 1);
	e->next = p->free;
	p->free = i;
}

/* Throws out the partition's dead entries.  Lock held exclusively. */
static void
sweep_partition(Partition *p)
{
	for (uint32 c = 0; c < p->nchains; c++)
	{
		uint32 *link = &chains[p->first_chain + c];

		while (*link != NO_ENTRY)
		{
			if (TransactionIdIsInProgress(entries[*link].xid))
				link = &entries[*link].next;
			else
				remove_entry(p, link);
		}
	}
}

/* A new entry; false if the partition is full even of living ones.  Lock held exclusively. */
static bool
add_entry(const Wanted *w, TransactionId xid)
{
	Partition *p = w->partition;
	uint32    *chain = chain_of(w);
	Entry     *e;
	uint32     i;

	if (p->free == NO_ENTRY)
		sweep_partition(p);
	if (p->free == NO_ENTRY)
		return false;
	i = p->free;
	e = &entries[i];
	p->free = e->next;
	e->storage_id = w->storage_id;
	e->key_hash = w->key_hash;
	e->xid = xid;
	e->bucket = (uint16) w->bucket;
	e->mode = (uint8) w->mode;
	e->all = w->all ? 1 : 0;
	e->writes = w->writes ? 1 : 0;
	e->next = *chain;
	*chain = i;
	pg_atomic_fetch_add_u32(counter(table->counts, w->storage_id), 1);
	if (w->all)
		pg_atomic_fetch_add_u32(counter(table->alls, w->storage_id), 1);
	return true;
}

/*
 * A living entry of another transaction on the same thing that conflicts with the mode; Invalid if none.  *own, if
 * given, gets the strongest entry of ours.  With `clean` (lock held exclusively) dead entries met are removed.
 */
static TransactionId
find_conflict(const Wanted *w, bool clean, Entry **own)
{
	uint32 *link = chain_of(w);

	while (*link != NO_ENTRY)
	{
		Entry *e = &entries[*link];

		if (!same_thing(e, w))
			link = &e->next;
		else if (TransactionIdIsCurrentTransactionId(e->xid))
		{
			if (own != NULL && (*own == NULL || (*own)->mode < e->mode))
				*own = e;
			link = &e->next;
		}
		else if (!clean && !conflicts((LockTupleMode) e->mode, w->mode))
			link = &e->next;
		else if (!TransactionIdIsInProgress(e->xid))
		{
			if (clean)
				remove_entry(w->partition, link);
			else
				link = &e->next;
		}
		else if (conflicts((LockTupleMode) e->mode, w->mode))
			return e->xid;
		else
			link = &e->next;
	}
	return InvalidTransactionId;
}

/* A conflicting "all" entry of another, or Invalid.  Takes the lock of its partition. */
static TransactionId
find_all_conflict(uint64 storage_id, int bucket, LockTupleMode mode, Entry *own_copy, bool *own)
{
	Wanted        w;
	TransactionId xid;
	Entry        *e = NULL;

	*own = false;
	if (pg_atomic_read_u32(counter(table->alls, storage_id)) == 0)
		return InvalidTransactionId;
	want(&w, storage_id, bucket, 0, true, mode);
	LWLockAcquire(&w.partition->lock, LW_SHARED);
	xid = find_conflict(&w, false, &e);
	if (e != NULL)
	{
		*own = true;
		*own_copy = *e;
	}
	LWLockRelease(&w.partition->lock);
	return xid;
}

/* ---- entering ---- */

/* Room in the backend's list, so that noting an entry cannot fail. */
static void
reserve_mine(void)
{
	if (mine == NULL)
	{
		mine_cap = 64;
		mine = MemoryContextAlloc(TopMemoryContext, mine_cap * sizeof(Mine));
	}
	else if (nmine == mine_cap)
	{
		mine = repalloc_huge(mine, (Size) 2 * mine_cap * sizeof(Mine));
		mine_cap *= 2;
	}
}

static void
note_mine(const Wanted *w, TransactionId xid)
{
	Mine *m = &mine[nmine++];

	m->relid = w->relid;
	m->storage_id = w->storage_id;
	m->key_hash = w->key_hash;
	m->xid = xid;
	m->bucket = (uint16) w->bucket;
	m->all = w->all;
}

/* Keys that one transaction may hold before it takes whole buckets. */
static int
my_share(void)
{
	return Max(max_key_locks / Max(MaxBackends, 1), MIN_SHARE);
}

/* Removes an entry of ours, if nobody has thrown it out. */
static void
remove_mine(const Mine *m)
{
	Wanted  w;
	uint32 *link;

	want(&w, m->storage_id, m->bucket, m->key_hash, m->all, LockTupleKeyShare);
	LWLockAcquire(&w.partition->lock, LW_EXCLUSIVE);
	for (link = chain_of(&w); *link != NO_ENTRY; link = &entries[*link].next)
	{
		if (same_thing(&entries[*link], &w) && entries[*link].xid == m->xid)
		{
			remove_entry(w.partition, link);
			break;
		}
	}
	LWLockRelease(&w.partition->lock);
}

/* Forgets entries of subtransactions that were rolled back, before whole buckets are taken for their sake. */
static void
prune_mine(void)
{
	int n = 0;

	for (int i = 0; i < nmine; i++)
	{
		if (TransactionIdIsCurrentTransactionId(mine[i].xid))
			mine[n++] = mine[i];
		else
			remove_mine(&mine[i]);
	}
	nmine = n;
}

typedef enum EnterResult
{
	ENTERED,
	BLOCKED,
	FULL
} EnterResult;

/* The lock of w's partition is held exclusively and nobody conflicts: strengthens our entry or makes one. */
static EnterResult
enter(const Wanted *w, TransactionId xid, Entry *own)
{
	if (own != NULL && w->writes)
		own->writes = 1;
	if (own != NULL && own->mode >= (uint8) w->mode)
		return ENTERED;
	if (own != NULL && own->xid == xid)
	{
		own->mode = (uint8) w->mode;
		return ENTERED;
	}
	if (!add_entry(w, xid))
		return FULL;
	note_mine(w, xid);
	return ENTERED;
}

/* One key, beside the "all" entries of others. */
static EnterResult
enter_key(const Wanted *w, TransactionId xid, bool escalate, TransactionId *blocker)
{
	EnterResult result;
	Entry      *own = NULL;
	Entry       own_all;
	bool        have_all;

	LWLockAcquire(&w->partition->lock, LW_EXCLUSIVE);
	*blocker = find_conflict(w, true, &own);
	if (!TransactionIdIsValid(*blocker))
		*blocker = find_all_conflict(w->storage_id, w->bucket, w->mode, &own_all, &have_all);
	if (TransactionIdIsValid(*blocker))
		result = BLOCKED;
	else if (have_all && own_all.mode >= (uint8) w->mode)
		result = ENTERED; /* the bucket is ours, and nobody is on this key */
	else if (escalate && !(own != NULL && own->mode >= (uint8) w->mode))
		result = FULL;
	else
		result = enter(w, xid, own);
	LWLockRelease(&w->partition->lock);
	return result;
}

/* All keys of a bucket: stops new entries of others; their present ones are looked at key by key. */
static EnterResult
enter_all(const Wanted *key, TransactionId xid, TransactionId *blocker)
{
	Wanted      w;
	EnterResult result;
	Entry      *own = NULL;

	want(&w, key->storage_id, key->bucket, 0, true, key->mode);
	w.relid = key->relid;
	LWLockAcquire(&w.partition->lock, LW_EXCLUSIVE);
	*blocker = find_conflict(&w, true, &own);
	result = TransactionIdIsValid(*blocker) ? BLOCKED : enter(&w, xid, own);
	LWLockRelease(&w.partition->lock);
	return result;
}

static void
report_full(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many key locks on paimon tables"),
			 errdetail("The table of %d key locks is full.", max_key_locks),
			 errhint("Increase paimon.max_key_locks and restart the server, or change fewer rows in a transaction.")));
}

/*
 * See shared.h.  Assigns an xid to the current subtransaction.  No LWLock may be held.  Raises
 * CONFIGURATION_LIMIT_EXCEEDED if not even a lock on the bucket finds room.
 */
PaimonKeyLockOutcome
paimon_keylock_try(PaimonShared *shared, int bucket, uint64 key_hash, LockTupleMode mode, bool writes, TransactionId *blocker)
{
	TransactionId xid = GetCurrentTransactionId();
	EnterResult   result;
	Wanted        w;

	/* Each time the list doubles, at most: it is walked. */
	if (nmine >= my_share() && nmine == mine_cap)
		prune_mine();
	reserve_mine();
	want(&w, paimon_shared_storage_id(shared), bucket, key_hash, false, mode);
	w.relid = shared->relid;
	w.writes = writes;
	result = enter_key(&w, xid, nmine >= my_share(), blocker);
	if (result == FULL)
	{
		result = enter_all(&w, xid, blocker);

		/* Those who were there before are found now: whoever comes later meets our entry. */
		if (result == ENTERED)
			result = enter_key(&w, xid, true, blocker);
	}
	if (result == FULL)
		report_full();
	return result == ENTERED ? PAIMON_KEYLOCK_OK : PAIMON_KEYLOCK_CONFLICT;
}

/* See shared.h.  Takes partition locks in shared mode; may be called under the append lock. */
PaimonKeyLockOutcome
paimon_keylock_check(PaimonShared *shared, int bucket, uint64 key_hash, LockTupleMode mode, TransactionId *blocker)
{
	uint64 storage_id = paimon_shared_storage_id(shared);
	Entry  own_all;
	bool   have_all;
	Wanted w;

	*blocker = InvalidTransactionId;
	if (pg_atomic_read_u32(counter(table->counts, storage_id)) == 0)
		return PAIMON_KEYLOCK_OK;
	want(&w, storage_id, bucket, key_hash, false, mode);
	LWLockAcquire(&w.partition->lock, LW_SHARED);
	*blocker = find_conflict(&w, false, NULL);
	LWLockRelease(&w.partition->lock);
	if (!TransactionIdIsValid(*blocker))
		*blocker = find_all_conflict(storage_id, bucket, mode, &own_all, &have_all);
	return TransactionIdIsValid(*blocker) ? PAIMON_KEYLOCK_CONFLICT : PAIMON_KEYLOCK_OK;
}

/* See shared.h.  Takes partition locks in shared mode. */
bool
paimon_keylock_is_mine(PaimonShared *shared, int bucket, uint64 key_hash)
{
	for (int all = 0; all < 2; all++)
	{
		Entry *own = NULL;
		Wanted w;

		want(&w, paimon_shared_storage_id(shared), bucket, key_hash, all != 0, LockTupleKeyShare);
		LWLockAcquire(&w.partition->lock, LW_SHARED);
		for (uint32 i = *chain_of(&w); i != NO_ENTRY && own == NULL; i = entries[i].next)
		{
			if (same_thing(&entries[i], &w) && TransactionIdIsCurrentTransactionId(entries[i].xid))
				own = &entries[i];
		}
		LWLockRelease(&w.partition->lock);
		if (own != NULL)
			return true;
	}
	return false;
}

/* A living entry of another transaction that wants to change the thing, or Invalid. */
static TransactionId
find_writer(const Wanted *w)
{
	TransactionId xid = InvalidTransactionId;

	LWLockAcquire(&w->partition->lock, LW_SHARED);
	for (uint32 i = *chain_of(w); i != NO_ENTRY && !TransactionIdIsValid(xid); i = entries[i].next)
	{
		const Entry *e = &entries[i];

		if (same_thing(e, w) && e->writes && e->mode >= LockTupleNoKeyExclusive &&
			!TransactionIdIsCurrentTransactionId(e->xid) && TransactionIdIsInProgress(e->xid))
			xid = e->xid;
	}
	LWLockRelease(&w->partition->lock);
	return xid;
}

/* See shared.h. */
TransactionId
paimon_keylock_writer(PaimonShared *shared, int bucket, uint64 key_hash)
{
	uint64        storage_id = paimon_shared_storage_id(shared);
	TransactionId xid;
	Wanted        w;

	if (pg_atomic_read_u32(counter(table->counts, storage_id)) == 0)
		return InvalidTransactionId;
	want(&w, storage_id, bucket, key_hash, false, LockTupleKeyShare);
	xid = find_writer(&w);
	if (TransactionIdIsValid(xid) || pg_atomic_read_u32(counter(table->alls, storage_id)) == 0)
		return xid;
	want(&w, storage_id, bucket, 0, true, LockTupleKeyShare);
	return find_writer(&w);
}

/*
 * Exact under the append lock; may say false when all entries of the storage are dead, or belong to a storage with
 * the same counter.
 */
bool
paimon_keylock_none(PaimonShared *shared)
{
	return pg_atomic_read_u32(counter(table->counts, paimon_shared_storage_id(shared))) == 0;
}

/* ---- prepared transactions ---- */

/* By whoever attaches a storage first; several may do it at once. */
void
paimon_keylock_reenter(Relation rel, uint64 storage_id, int bucket, uint64 key_hash, bool all, LockTupleMode mode,
					   bool writes, TransactionId xid)
{
	Wanted w;
	bool   found = false;
	bool   full = false;

	want(&w, storage_id, bucket, key_hash, all, mode);
	w.writes = writes;
	LWLockAcquire(&w.partition->lock, LW_EXCLUSIVE);
	for (uint32 i = *chain_of(&w); i != NO_ENTRY && !found; i = entries[i].next)
	{
		Entry *e = &entries[i];

		if (!same_thing(e, &w) || e->xid != xid)
			continue;
		e->mode = Max(e->mode, (uint8) mode);
		e->writes = e->writes || writes ? 1 : 0;
		found = true;
	}
	if (!found)
		full = !add_entry(&w, xid);
	LWLockRelease(&w.partition->lock);
	if (!found && !full)
		pg_atomic_fetch_add_u32(&table->left_behind, 1);
	if (full && !all)
		paimon_keylock_reenter(rel, storage_id, bucket, 0, true, mode, writes, xid);
	else if (full)
		report_full();
}

/* See shared.h. */
/* See shared.h. */
bool
paimon_keylock_any(void)
{
	for (int i = 0; i < nmine; i++)
	{
		if (TransactionIdIsCurrentTransactionId(mine[i].xid))
			return true;
	}
	return false;
}

PaimonKeyLock *
paimon_keylock_mine(PaimonShared *shared, int *n)
{
	uint64         storage_id = paimon_shared_storage_id(shared);
	PaimonKeyLock *list = palloc_extended(Max(nmine, 1) * sizeof(PaimonKeyLock), MCXT_ALLOC_HUGE);

	*n = 0;
	for (int i = 0; i < nmine; i++)
	{
		const Mine    *m = &mine[i];
		PaimonKeyLock *lock = &list[*n];
		Wanted         w;

		/* Those of a rolled back subtransaction are not held. */
		if (m->storage_id != storage_id || !TransactionIdIsCurrentTransactionId(m->xid))
			continue;
		want(&w, m->storage_id, m->bucket, m->key_hash, m->all, LockTupleKeyShare);
		LWLockAcquire(&w.partition->lock, LW_SHARED);
		for (uint32 j = *chain_of(&w); j != NO_ENTRY; j = entries[j].next)
		{
			if (!same_thing(&entries[j], &w) || entries[j].xid != m->xid)
				continue;
			lock->bucket = m->bucket;
			lock->key_hash = m->key_hash;
			lock->mode = (LockTupleMode) entries[j].mode;
			lock->all = m->all;
			(*n)++;
			break;
		}
		LWLockRelease(&w.partition->lock);
	}
	return list;
}

/*
 * Storages on which the transaction holds locks, each once, with the relation that had it: palloc'd arrays.
 */
int
paimon_keylock_storages(uint64 **storage_ids, Oid **relids)
{
	int n = 0;
	int cap = 8;

	*storage_ids = palloc(cap * sizeof(uint64));
	*relids = palloc(cap * sizeof(Oid));
	for (int i = 0; i < nmine; i++)
	{
		int j = n;

		/* Locks of a table come in runs: the last one found is the likeliest. */
		while (j > 0 && (*storage_ids)[j - 1] != mine[i].storage_id)
			j--;
		if (j > 0 || !TransactionIdIsCurrentTransactionId(mine[i].xid))
			continue;
		if (n == cap)
		{
			cap *= 2;
			*storage_ids = repalloc(*storage_ids, cap * sizeof(uint64));
			*relids = repalloc(*relids, cap * sizeof(Oid));
		}
		(*storage_ids)[n] = mine[i].storage_id;
		(*relids)[n++] = mine[i].relid;
	}
	return n;
}

/* ---- ends ---- */

/*
 * After the transaction has left the list of running ones (XACT_EVENT_COMMIT, ABORT), or at PREPARE with `keep`.
 * Never fails.
 */
void
paimon_keylock_end(bool keep)
{
	if (nmine == 0)
		return;
	if (keep)
		pg_atomic_fetch_add_u32(&table->left_behind, (uint32) nmine);
	else
	{
		for (int i = 0; i < nmine; i++)
			remove_mine(&mine[i]);
	}
	nmine = 0;
	if (mine_cap > 65536)
	{
		pfree(mine);
		mine = NULL;
		mine_cap = 0;
	}
}

/* See shared.h.  Does nothing while no prepared transaction has left entries. */
void
paimon_keylock_sweep(void)
{
	if (pg_atomic_exchange_u32(&table->left_behind, 0) == 0)
		return;
	for (int i = 0; i <= PARTITIONS; i++)
	{
		Partition *p = &table->partitions[i];
		uint32     left = 0;

		CHECK_FOR_INTERRUPTS();
		LWLockAcquire(&p->lock, LW_EXCLUSIVE);
		sweep_partition(p);
		for (uint32 c = 0; c < p->nchains; c++)
			left += chains[p->first_chain + c] != NO_ENTRY;
		LWLockRelease(&p->lock);

		/* Some may still be prepared: look again next time. */
		if (left > 0)
			pg_atomic_fetch_add_u32(&table->left_behind, left);
	}
}
