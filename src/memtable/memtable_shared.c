/*-------------------------------------------------------------------------
 *
 * memtable_shared.c
 *	  Entries of storages in shared memory: finding, pinning, forgetting them; tail, head, bulk slot.
 *
 * A fixed array of entries and a hash from (locator, storage id) to its index, both under the mapping lock.  An
 * entry with pins stays; one without may be thrown out for another table, since all it knows can be found again.
 * Lock order, and why all this is right: README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/twophase.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "memtable/memtable_internal.h"
#include "memtable/stats.h"
#include "merge/merge.h"
#include "stop.h"

#define DEFAULT_WRITE_BUFFER (UINT64CONST(64) * 1024 * 1024)
#define DEFAULT_SPILL (UINT64CONST(256) * 1024 * 1024)

typedef struct SharedHashEntry
{
	PaimonSharedKey key;
	int             index;
} SharedHashEntry;

typedef struct SharedControl
{
	LWLock           mapping_lock;
	int              tranche_mapping;
	int              tranche_append;
	int              tranche_index;
	pg_atomic_uint64 tick;
	PaimonShared     entries[FLEXIBLE_ARRAY_MEMBER];
} SharedControl;

/* Pins of this backend. */
typedef struct MyPin
{
	PaimonShared *shared;
	int           count;
} MyPin;

int paimon_max_tables = 1024;

static SharedControl *control = NULL;
static HTAB          *mapping = NULL;

static MyPin *my_pins = NULL;
static int    my_npins = 0;
static int    my_pins_cap = 0;

void
paimon_shared_init(void)
{
	DefineCustomIntVariable(
		"paimon.max_tables", "Sets the number of paimon tables that can be in use at the same time.",
		"Each takes about 2 kB of shared memory. A table is in use while a transaction is that has looked at it; partitions count one by one.",
		&paimon_max_tables, 1024, 16, 65536, PGC_POSTMASTER, 0, NULL, NULL, NULL);
	paimon_pool_init();
	paimon_keylock_init();
	paimon_memview_init();
	paimon_stats_init();
}

static Size
control_size(void)
{
	return add_size(offsetof(SharedControl, entries), mul_size(paimon_max_tables, sizeof(PaimonShared)));
}

Size
paimon_shared_shmem_size(void)
{
	Size size = control_size();

	size = add_size(size, hash_estimate_size(paimon_max_tables, sizeof(SharedHashEntry)));
	size = add_size(size, paimon_listener_shmem_size());
	size = add_size(size, paimon_stats_shmem_size());
	size = add_size(size, paimon_pool_shmem_size());
	return add_size(size, paimon_keylock_shmem_size());
}

static void
init_entries(void)
{
	memset(control, 0, control_size());
	control->tranche_mapping = LWLockNewTrancheId();
	control->tranche_append = LWLockNewTrancheId();
	control->tranche_index = LWLockNewTrancheId();
	LWLockInitialize(&control->mapping_lock, control->tranche_mapping);
	pg_atomic_init_u64(&control->tick, 1);
	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];

		SpinLockInit(&s->mutex);
		LWLockInitialize(&s->append_lock, control->tranche_append);
		LWLockInitialize(&s->index_lock, control->tranche_index);
		ConditionVariableInit(&s->bulk_cv);
		ConditionVariableInit(&s->runs_cv);
		pg_atomic_init_u32(&s->pins, 0);
		pg_atomic_init_u32(&s->state, PAIMON_STATE_NEW);
		pg_atomic_init_u64(&s->tail_position, 0);
		pg_atomic_init_u64(&s->head, 0);
		pg_atomic_init_u64(&s->announced, 0);
		pg_atomic_init_u64(&s->last_used, 0);
		pg_atomic_init_u32(&s->eager, 0);
		pg_atomic_init_u64(&s->runs, PAIMON_RUNS_UNKNOWN);
		pg_atomic_init_u32(&s->runs_waiting, 0);
		pg_atomic_init_u32(&s->times_blocked, 0);
	}
}

/* Called with AddinShmemInitLock held. */
void
paimon_shared_shmem_init(void)
{
	HASHCTL info;
	bool    found;

	control = ShmemInitStruct("paimon tables", control_size(), &found);
	if (!found)
		init_entries();
	LWLockRegisterTranche(control->tranche_mapping, "PaimonTableMapping");
	LWLockRegisterTranche(control->tranche_append, "PaimonAppend");
	LWLockRegisterTranche(control->tranche_index, "PaimonIndex");

	memset(&info, 0, sizeof(info));
	info.keysize = sizeof(PaimonSharedKey);
	info.entrysize = sizeof(SharedHashEntry);
	mapping =
		ShmemInitHash("paimon table mapping", paimon_max_tables, paimon_max_tables, &info, HASH_ELEM | HASH_BLOBS);
	paimon_listener_shmem_init();
	paimon_stats_shmem_init();
	paimon_pool_shmem_init();
	paimon_keylock_shmem_init();
}

PaimonShared *
paimon_shared_slot(int i)
{
	return &control->entries[i];
}

/* A number that grows: ages of memtables. */
uint64
paimon_shared_tick(void)
{
	return pg_atomic_fetch_add_u64(&control->tick, 1);
}

/* ---- pins ---- */

/* Empties a slot.  Mapping lock held exclusively, no pins. */
static void
free_slot(PaimonShared *shared)
{
	(void) hash_search(mapping, &shared->key, HASH_REMOVE, NULL);
	paimon_stats_detach(shared);
	SpinLockAcquire(&shared->mutex);
	shared->in_use = false;
	SpinLockRelease(&shared->mutex);
	paimon_memtable_drop_all(shared);
}

static void
unpin_times(PaimonShared *shared, uint32 times)
{
	uint32 left = pg_atomic_sub_fetch_u32(&shared->pins, times);

	if (left > 0 || !shared->forgotten)
		return;

	/* Last pin of a storage that is gone; whoever attaches meanwhile takes the mapping lock first. */
	LWLockAcquire(&control->mapping_lock, LW_EXCLUSIVE);
	if (shared->in_use && shared->forgotten && pg_atomic_read_u32(&shared->pins) == 0)
		free_slot(shared);
	LWLockRelease(&control->mapping_lock);
}

/* At exit of the backend, after its transaction has been aborted. */
static void
drop_my_pins(int code, Datum arg)
{
	while (my_npins > 0)
	{
		MyPin pin = my_pins[--my_npins];

		unpin_times(pin.shared, pin.count);
	}
}

/* Room for one more pin in the backend's list, so that noting it cannot fail. */
static void
reserve_my_pin(void)
{
	if (my_pins == NULL)
	{
		on_shmem_exit(drop_my_pins, (Datum) 0);
		my_pins_cap = 16;
		my_pins = MemoryContextAlloc(TopMemoryContext, my_pins_cap * sizeof(MyPin));
	}
	else if (my_npins == my_pins_cap)
	{
		my_pins = repalloc(my_pins, 2 * my_pins_cap * sizeof(MyPin));
		my_pins_cap *= 2;
	}
}

/* Pins an entry.  Mapping lock held. */
static void
pin_entry(PaimonShared *shared)
{
	pg_atomic_fetch_add_u32(&shared->pins, 1);
	for (int i = 0; i < my_npins; i++)
	{
		if (my_pins[i].shared == shared)
		{
			my_pins[i].count++;
			return;
		}
	}
	my_pins[my_npins].shared = shared;
	my_pins[my_npins].count = 1;
	my_npins++;
}

/* Gives back one pin of this backend. */
void
paimon_shared_unpin(PaimonShared *shared)
{
	for (int i = my_npins - 1; i >= 0; i--)
	{
		if (my_pins[i].shared != shared)
			continue;
		if (--my_pins[i].count == 0)
			my_pins[i] = my_pins[--my_npins];
		unpin_times(shared, 1);
		return;
	}
	Assert(false);
}

/* ---- finding and making entries ---- */

/*
 * A free slot, or one thrown out: unpinned, least recently used, rather without unflushed log.  Mapping lock held
 * exclusively.
 */
static PaimonShared *
take_slot(void)
{
	PaimonShared *best = NULL;
	bool          best_clean = false;

	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];
		bool          clean;

		if (!s->in_use)
			return s;
		if (pg_atomic_read_u32(&s->pins) > 0 || TransactionIdIsValid(s->bulk_xid))
			continue;
		clean = s->forgotten || paimon_shared_unflushed(s) == 0;
		if (best == NULL || (clean && !best_clean) ||
			(clean == best_clean && pg_atomic_read_u64(&s->last_used) < pg_atomic_read_u64(&best->last_used)))
		{
			best = s;
			best_clean = clean;
		}
	}
	if (best != NULL)
		free_slot(best);
	return best;
}

static void
init_slot(PaimonShared *s, const PaimonSharedKey *key, Oid relid, int nbuckets)
{
	SpinLockAcquire(&s->mutex);
	s->in_use = true;
	s->forgotten = false;
	s->requested = false;
	s->size_noticed = false;
	s->blocked = false;
	s->key = *key;
	s->relid = relid;
	s->nbuckets = nbuckets;
	s->tail.position = 0;
	s->tail.extent = PG_UINT32_MAX;
	pg_atomic_write_u32(&s->state, PAIMON_STATE_NEW);
	pg_atomic_write_u64(&s->tail_position, 0);
	pg_atomic_write_u64(&s->head, 0);
	pg_atomic_write_u64(&s->announced, 0);
	memset(s->versions, 0, sizeof(s->versions));
	s->bulk_xid = InvalidTransactionId;
	s->bulk_number = 0;
	s->starved_chunks = 0;
	s->starved_position = 0;
	s->sweep = false;
	s->was_swept = false;
	s->write_buffer_size = DEFAULT_WRITE_BUFFER;
	s->spill_size = DEFAULT_SPILL;
	s->flush_after_ms = 0;
	s->live_bytes = 0;
	s->runs_limit = PG_UINT32_MAX;
	s->oldest = 0;
	s->cut_time = 0;
	s->ntouched = 0;
	memset(s->touched, 0, sizeof(s->touched));
	SpinLockRelease(&s->mutex);
	paimon_runs_forget(s);
	paimon_stats_attach(s, relid);
}

/* The entry of a key, made if it is new; pinned. */
static PaimonShared *
find_entry(Relation rel, const PaimonSharedKey *key, int nbuckets)
{
	SharedHashEntry *e;
	PaimonShared    *shared = NULL;
	bool             found;

	reserve_my_pin();
	LWLockAcquire(&control->mapping_lock, LW_SHARED);
	e = hash_search(mapping, key, HASH_FIND, NULL);
	if (e != NULL && !control->entries[e->index].forgotten)
	{
		shared = &control->entries[e->index];
		pin_entry(shared);
	}
	LWLockRelease(&control->mapping_lock);
	if (shared != NULL)
		return shared;

	LWLockAcquire(&control->mapping_lock, LW_EXCLUSIVE);
	e = hash_search(mapping, key, HASH_FIND, NULL);
	if (e != NULL)
	{
		/* Forgotten by somebody who was wrong about it (a rolled back move of the table): it is as good as before. */
		shared = &control->entries[e->index];
		shared->forgotten = false;
	}
	else if ((shared = take_slot()) != NULL)
	{
		e = hash_search(mapping, key, HASH_ENTER_NULL, &found);
		if (e == NULL)
			shared = NULL;
		else
		{
			e->index = (int) (shared - control->entries);
			init_slot(shared, key, RelationGetRelid(rel), nbuckets);
		}
	}
	if (shared != NULL)
		pin_entry(shared);
	LWLockRelease(&control->mapping_lock);

	if (shared == NULL)
		ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
						errmsg("too many paimon tables in use, cannot open table \"%s\"", RelationGetRelationName(rel)),
						errdetail("Running transactions use %d tables.", paimon_max_tables),
						errhint("Increase paimon.max_tables and restart the server.")));
	return shared;
}

/* The storage of a rewrite's transient table has become the table's own. */
static void
change_relation(PaimonShared *shared, Relation rel)
{
	LWLockAcquire(&control->mapping_lock, LW_EXCLUSIVE);
	shared->relid = RelationGetRelid(rel);
	paimon_stats_attach(shared, shared->relid);
	LWLockRelease(&control->mapping_lock);
}

PaimonShared *
paimon_shared_attach(Relation rel, uint64 storage_id, int nbuckets)
{
	PaimonSharedKey key;
	PaimonShared *volatile shared;

	memset(&key, 0, sizeof(key));
	key.locator = paimon_rel_locator(rel);
	key.storage_id = storage_id;
	shared = find_entry(rel, &key, nbuckets);
	PG_TRY();
	{
		paimon_shared_ready(shared, rel);
	}
	PG_CATCH();
	{
		paimon_shared_unpin(shared);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (shared->relid != RelationGetRelid(rel))
		change_relation(shared, rel);
	return shared;
}

uint64
paimon_shared_storage_id(const PaimonShared *shared)
{
	return shared->key.storage_id;
}

void
paimon_shared_forget(Oid dbid, uint64 storage_id)
{
	LWLockAcquire(&control->mapping_lock, LW_EXCLUSIVE);
	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];

		if (!s->in_use || s->key.storage_id != storage_id || paimon_locator_db(s->key.locator) != dbid)
			continue;
		s->forgotten = true;
		if (pg_atomic_read_u32(&s->pins) == 0)
			free_slot(s);
		else
			paimon_memtable_drop_all(s);
	}
	LWLockRelease(&control->mapping_lock);
}

/* ---- the first to come ---- */

/* Enters again what prepared transactions hold, by the log's batches from the manifest's head to `tail`. */
static void
enter_batch_locks(Relation rel, uint64 storage_id, uint64 position, const PaimonBatchHeader *header)
{
	TransactionId     xid = XidFromFullTransactionId(FullTransactionIdFromU64(header->xid));
	PaimonBatchHeader full;
	PaimonBatchReader reader;
	PaimonBatchRecord rec;
	uint8            *body;

	if (!(header->flags & (PAIMON_BATCH_PREPARED | PAIMON_BATCH_LOCKS)) ||
		(header->flags & (PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED)))
		return;
	if (TransactionIdIsCurrentTransactionId(xid) || !TransactionIdIsInProgress(xid))
		return;
	(void) paimon_batch_load(rel, storage_id, position, &full, &body);
	paimon_batch_read_begin(&reader, position, &full, body);
	while (paimon_batch_read_next(&reader, &rec))
	{
		CHECK_FOR_INTERRUPTS();
		if (rec.kind & PAIMON_RECORD_LOCK)
			paimon_keylock_reenter(rel, storage_id, rec.bucket, paimon_get_u64(rec.key.data), (rec.kind & 1) != 0,
								   (LockTupleMode) ((rec.kind >> 1) & 3), false, xid);
		else
			paimon_keylock_reenter(rel, storage_id, rec.bucket, paimon_key_hash(rec.key.data, rec.key.len), false,
								   paimon_kind_is_removal(rec.kind) ? LockTupleExclusive : LockTupleNoKeyExclusive, true, xid);
	}
	if (reader.corrupt)
		paimon_batch_report_corrupt(rel, position, reader.why);
	pfree(body);
}

static void
enter_prepared_locks(Relation rel, uint64 storage_id, const PaimonLogRow *log, uint64 tail)
{
	PaimonBatchHeader header;
	uint64            position = log->head;

	if (max_prepared_xacts == 0)
		return;
	for (int i = 0; i < log->nleftover; i++)
	{
		(void) paimon_batch_peek(rel, storage_id, log->leftover[i], tail, &header);
		enter_batch_locks(rel, storage_id, log->leftover[i], &header);
	}
	while (position < tail)
	{
		uint64 end = paimon_batch_peek(rel, storage_id, position, tail, &header);

		CHECK_FOR_INTERRUPTS();
		enter_batch_locks(rel, storage_id, position, &header);
		position = end;
	}
}

/*
 * Several may be here at once for the same storage: entering locks is idempotent, nobody appends before the state
 * says PRIMARY, so that all find the same tail; the first takes the state on.  No lock is held while the log is
 * walked and the manifest read.
 */
void
paimon_shared_ready(PaimonShared *shared, Relation rel)
{
	bool          recovery = RecoveryInProgress();
	uint32        want = recovery ? PAIMON_STATE_STANDBY : PAIMON_STATE_PRIMARY;
	PaimonLogTail tail = {0, PG_UINT32_MAX};
	PaimonLogRow  log;
	Snapshot      snapshot;

	if (pg_atomic_read_u32(&shared->state) >= want)
	{
		pg_read_barrier();
		return;
	}
	memset(&log, 0, sizeof(log));
	snapshot = paimon_catalog_latest_snapshot();
	(void) paimon_catalog_log_get(shared->key.storage_id, snapshot, &log);
	UnregisterSnapshot(snapshot);
	paimon_log_find_tail(rel, shared->key.storage_id, &tail);
	if (!recovery)
		enter_prepared_locks(rel, shared->key.storage_id, &log, tail.position);
	PAIMON_STOP_POINT("shared_ready");

	/* before anybody takes the state's word for it that later versions are announced */
	paimon_shared_learn_version(shared, log.version);
	LWLockAcquire(&shared->append_lock, LW_EXCLUSIVE);
	if (pg_atomic_read_u32(&shared->state) < want)
	{
		shared->tail = tail;
		pg_atomic_write_u64(&shared->tail_position, tail.position);
		if (log.head < tail.position)
			shared->oldest = GetCurrentTimestamp();
		pg_write_barrier();
		pg_atomic_write_u32(&shared->state, want);
	}
	LWLockRelease(&shared->append_lock);
	paimon_shared_advance_head(shared, log.head);
}

/* ---- append lock and tail ---- */

static bool wake_pending = false; /* a flush was requested under the append lock: wake the scheduler after it */

void
paimon_append_lock(PaimonShared *shared)
{
	LWLockAcquire(&shared->append_lock, LW_EXCLUSIVE);
	wake_pending = false;
}

void
paimon_append_unlock(PaimonShared *shared)
{
	LWLockRelease(&shared->append_lock);
	if (wake_pending)
	{
		wake_pending = false;
		paimon_listener_wake(paimon_locator_db(shared->key.locator));
	}
}

/* Marks the buckets of a batch as touched; pieces[0] is the directory when the builder made the batch. */
static void
note_buckets(PaimonShared *shared, const PaimonLogBatch *batch)
{
	if (batch->npieces == 0 || batch->pieces[0].len != (uint32) batch->header.nbuckets * PAIMON_DIRECTORY_ENTRY)
		return;
	for (uint32 i = 0; i < batch->header.nbuckets; i++)
	{
		uint32 bit = paimon_get_u32(batch->pieces[0].data + i * PAIMON_DIRECTORY_ENTRY) % PAIMON_TOUCHED_BITS;

		if (shared->touched[bit / 8] & (1 << (bit % 8)))
			continue;
		shared->touched[bit / 8] |= (uint8) (1 << (bit % 8));
		shared->ntouched++;
	}
}

/* Bytes at which a flush is wanted. */
static uint64
flush_threshold(const PaimonShared *shared)
{
	uint64 bytes = shared->write_buffer_size * (uint64) Max(shared->ntouched, 1);

	return Max(Min(bytes, shared->spill_size), 1);
}

/*
 * The caller holds the append lock.  Raises what paimon_log_append raises (no space, I/O); then nothing was
 * appended.  Needs no memory of the pool: indexing comes later and may fail (H15).
 */
uint64
paimon_shared_append(PaimonShared *shared, Relation rel, FullTransactionId xid, PaimonLogBatch *batch)
{
	XLogRecPtr lsn;
	uint64     position;

	Assert(LWLockHeldByMeInMode(&shared->append_lock, LW_EXCLUSIVE));
	if (pg_atomic_read_u32(&shared->state) != PAIMON_STATE_PRIMARY)
		elog(ERROR, "append to delta log of \"%s\" without paimon_shared_ready", RelationGetRelationName(rel));
	position = paimon_log_append(rel, shared->key.storage_id, &shared->tail, xid, batch, &lsn);

	/* Readers who see the new tail must find the bytes: they are in shared buffers by now. */
	pg_write_barrier();
	pg_atomic_write_u64(&shared->tail_position, shared->tail.position);
	note_buckets(shared, batch);
	if (shared->oldest == 0)
		shared->oldest = GetCurrentTimestamp();
	if (!shared->requested && !shared->size_noticed && paimon_shared_unflushed(shared) >= flush_threshold(shared))
	{
		shared->size_noticed = true;
		wake_pending = true;
	}
	return position;
}

/* On a standby: goes on from the last known tail, and notes how far it got. */
static uint64
walk_tail(PaimonShared *shared, Relation rel)
{
	PaimonLogTail tail;

	LWLockAcquire(&shared->append_lock, LW_SHARED);
	tail = shared->tail;
	LWLockRelease(&shared->append_lock);
	paimon_log_find_tail(rel, shared->key.storage_id, &tail);

	LWLockAcquire(&shared->append_lock, LW_EXCLUSIVE);
	if (tail.position > shared->tail.position && pg_atomic_read_u32(&shared->state) == PAIMON_STATE_STANDBY)
	{
		shared->tail = tail;
		if (shared->oldest == 0)
			shared->oldest = GetCurrentTimestamp();
		pg_write_barrier();
		pg_atomic_write_u64(&shared->tail_position, tail.position);
	}
	LWLockRelease(&shared->append_lock);
	return tail.position;
}

/*
 * Waits for appenders in progress: an entry made in the key-lock table before is seen by all whose batch lies at or
 * behind the result.
 */
uint64
paimon_shared_tail(PaimonShared *shared, Relation rel)
{
	uint64 position;

	if (RecoveryInProgress())
		return walk_tail(shared, rel);
	paimon_shared_ready(shared, rel);
	LWLockAcquire(&shared->append_lock, LW_SHARED);
	position = shared->tail.position;
	LWLockRelease(&shared->append_lock);
	return position;
}

uint64
paimon_shared_read_tail(PaimonShared *shared, Relation rel)
{
	uint64 position;

	if (RecoveryInProgress())
		return walk_tail(shared, rel);
	paimon_shared_ready(shared, rel);
	position = pg_atomic_read_u64(&shared->tail_position);
	pg_read_barrier();
	return position;
}

uint64
paimon_shared_unflushed(PaimonShared *shared)
{
	uint64 head = pg_atomic_read_u64(&shared->head);
	uint64 tail = pg_atomic_read_u64(&shared->tail_position);

	return tail > head ? tail - head : 0;
}

/* ---- head ---- */

/* Raises a number that only grows. */
static void
raise_to(pg_atomic_uint64 *number, uint64 value)
{
	uint64 old = pg_atomic_read_u64(number);

	while (old < value && !pg_atomic_compare_exchange_u64(number, &old, value))
		;
}

/* A committed head somebody read in the manifest. */
void
paimon_shared_advance_head(PaimonShared *shared, uint64 head)
{
	raise_to(&shared->head, head);
}

/*
 * After the commit of whoever published a new head; before log below it may be freed.  Takes the append lock for a
 * moment, so do not hold it.
 */
void
paimon_shared_set_head(PaimonShared *shared, uint64 head)
{
	uint32 keep = paimon_pool_chunks() / 4;

	paimon_shared_advance_head(shared, head);
	LWLockAcquire(&shared->append_lock, LW_EXCLUSIVE);
	if (paimon_shared_unflushed(shared) == 0)
		shared->oldest = 0;
	else if (shared->cut_time > shared->oldest)
		shared->oldest = shared->cut_time;
	shared->ntouched = 0;
	memset(shared->touched, 0, sizeof(shared->touched));
	LWLockRelease(&shared->append_lock);
	if (paimon_pool_free_chunks() < keep)
		(void) paimon_memtable_make_room(keep, true, NULL);
}

void
paimon_shared_configure(PaimonShared *shared, uint64 write_buffer_size, uint64 spill_size, int64 flush_after_ms, uint32 runs_limit)
{
	SpinLockAcquire(&shared->mutex);
	shared->write_buffer_size = write_buffer_size;
	shared->spill_size = spill_size;
	shared->flush_after_ms = flush_after_ms;
	shared->runs_limit = runs_limit;
	SpinLockRelease(&shared->mutex);
}

/* ---- bulk slot ---- */

/*
 * Under the publish lock (so the slot is free, or its holder is over and about to clear it: the caller waits with
 * paimon_bulk_wait before it takes the append lock) and the append lock.
 */
uint64
paimon_bulk_enter(PaimonShared *shared, TransactionId xid)
{
	uint64 number;

	Assert(LWLockHeldByMeInMode(&shared->append_lock, LW_EXCLUSIVE));
	if (pg_atomic_read_u32(&shared->state) != PAIMON_STATE_PRIMARY)
		elog(ERROR, "large commit without paimon_shared_ready");
	number = shared->tail.position;
	SpinLockAcquire(&shared->mutex);
	shared->bulk_xid = xid;
	shared->bulk_number = number;
	SpinLockRelease(&shared->mutex);
	return number;
}

void
paimon_bulk_clear(PaimonShared *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->bulk_xid = InvalidTransactionId;
	SpinLockRelease(&shared->mutex);
	ConditionVariableBroadcast(&shared->bulk_cv);
}

bool
paimon_bulk_pending(PaimonShared *shared, TransactionId *xid, uint64 *number)
{
	TransactionId holder;
	uint64        n;

	SpinLockAcquire(&shared->mutex);
	holder = shared->bulk_xid;
	n = shared->bulk_number;
	SpinLockRelease(&shared->mutex);
	if (xid != NULL)
		*xid = holder;
	if (number != NULL)
		*number = n;
	return TransactionIdIsValid(holder);
}

void
paimon_bulk_wait(PaimonShared *shared)
{
	TransactionId xid;

	ConditionVariablePrepareToSleep(&shared->bulk_cv);
	while (paimon_bulk_pending(shared, &xid, NULL) && !TransactionIdIsCurrentTransactionId(xid))
	{
		if (ConditionVariableTimedSleep(&shared->bulk_cv, 1000, PG_WAIT_EXTENSION))
		{
			/* As a lock wait, it takes part in deadlock detection. */
			ConditionVariableCancelSleep();
			XactLockTableWait(xid, NULL, NULL, XLTW_None);
			ConditionVariablePrepareToSleep(&shared->bulk_cv);
		}
	}
	ConditionVariableCancelSleep();
}

/* ---- what the scheduler sees ---- */

void
paimon_shared_request_flush(PaimonShared *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->requested = true;
	SpinLockRelease(&shared->mutex);
	paimon_listener_wake(paimon_locator_db(shared->key.locator));
}

void
paimon_shared_set_blocked(PaimonShared *shared, bool blocked)
{
	SpinLockAcquire(&shared->mutex);
	shared->blocked = blocked;
	SpinLockRelease(&shared->mutex);
	if (blocked)
	{
		pg_atomic_fetch_add_u32(&shared->times_blocked, 1);
		ConditionVariableBroadcast(&shared->runs_cv);
	}
}

void
paimon_shared_note_blocked(Oid dbid, Oid relid)
{
	LWLockAcquire(&control->mapping_lock, LW_SHARED);
	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];

		if (s->in_use && s->relid == relid && paimon_locator_db(s->key.locator) == dbid)
			paimon_shared_set_blocked(s, true);
	}
	LWLockRelease(&control->mapping_lock);
}

static void
request(Oid dbid, Oid relid, bool flush, bool sweep)
{
	LWLockAcquire(&control->mapping_lock, LW_SHARED);
	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];

		if (!s->in_use || s->relid != relid || paimon_locator_db(s->key.locator) != dbid)
			continue;
		SpinLockAcquire(&s->mutex);
		s->requested |= flush;
		s->sweep |= sweep;
		SpinLockRelease(&s->mutex);
	}
	LWLockRelease(&control->mapping_lock);
}

/* See shared.h. */
void
paimon_shared_request_again(Oid dbid, Oid relid)
{
	request(dbid, relid, true, false);
}

/* See shared.h. */
void
paimon_shared_request_sweep(Oid dbid, Oid relid)
{
	request(dbid, relid, false, true);
}

/* See shared.h. */
void
paimon_shared_swept(PaimonShared *shared)
{
	SpinLockAcquire(&shared->mutex);
	shared->sweep = false;
	SpinLockRelease(&shared->mutex);
}

/* See shared.h. */
void
paimon_shared_set_swept_mark(PaimonShared *shared, uint64 file_no, FullTransactionId xid)
{
	SpinLockAcquire(&shared->mutex);
	shared->was_swept = true;
	shared->swept_file_no = file_no;
	shared->swept_xid = xid;
	SpinLockRelease(&shared->mutex);
}

/* See shared.h. */
bool
paimon_shared_swept_mark(PaimonShared *shared, uint64 *file_no, FullTransactionId *xid)
{
	bool result;

	SpinLockAcquire(&shared->mutex);
	result = shared->was_swept;
	*file_no = shared->swept_file_no;
	*xid = shared->swept_xid;
	SpinLockRelease(&shared->mutex);
	return result;
}

/* False if the entry is not (or no longer) in use. */
bool
paimon_shared_info(PaimonShared *shared, PaimonSharedInfo *info)
{
	bool   in_use;
	uint32 runs = paimon_runs(shared, NULL);
	bool   full;
	int64  after_ms;
	uint64 threshold;
	uint64 live_bytes;

	memset(info, 0, sizeof(*info));
	SpinLockAcquire(&shared->mutex);
	in_use = shared->in_use && !shared->forgotten;
	info->relid = shared->relid;
	info->storage_id = shared->key.storage_id;
	info->requested = shared->requested;
	info->oldest = shared->oldest;
	info->blocked = shared->blocked;
	info->sweep = shared->sweep;
	info->nmemtables = shared->ngen;
	after_ms = shared->flush_after_ms;
	live_bytes = shared->live_bytes;
	full = runs != PAIMON_RUNS_UNKNOWN && runs >= shared->runs_limit;
	threshold = flush_threshold(shared);
	for (int i = 0; i < shared->ngen; i++)
		info->memtable_bytes += (uint64) shared->gen[i]->arena.nchunks * PAIMON_CHUNK_SIZE;
	SpinLockRelease(&shared->mutex);

	info->unflushed = paimon_shared_unflushed(shared);
	info->tail = pg_atomic_read_u64(&shared->tail_position);
	if (info->unflushed == 0)
		info->oldest = 0;
	/* A flush for size adds a run: not where there are too many. Writers wait then, so what is in memory does not grow. */
	info->due = info->requested || ((info->unflushed >= threshold || paimon_log_outweighs(info, live_bytes)) && !full);
	if (!info->due && after_ms > 0 && info->oldest != 0)
		info->due = TimestampDifferenceExceeds(info->oldest, GetCurrentTimestamp(), (int) Min(after_ms, PG_INT32_MAX));
	return in_use;
}

PaimonSharedInfo *
paimon_shared_list(Oid dbid, int *n)
{
	PaimonSharedInfo *list = palloc(sizeof(PaimonSharedInfo) * paimon_max_tables);

	*n = 0;
	LWLockAcquire(&control->mapping_lock, LW_SHARED);
	for (int i = 0; i < paimon_max_tables; i++)
	{
		PaimonShared *s = &control->entries[i];

		if (!s->in_use || paimon_locator_db(s->key.locator) != dbid)
			continue;
		if (paimon_shared_info(s, &list[*n]) && (list[*n].unflushed > 0 || list[*n].requested || list[*n].sweep))
			(*n)++;
	}
	LWLockRelease(&control->mapping_lock);
	return list;
}
