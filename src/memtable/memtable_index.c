/*-------------------------------------------------------------------------
 *
 * memtable_index.c
 *	  Memtables: their structure, and catching up with the log.
 *
 * A memtable covers the log positions [from, to): the batches there and a skip list a touched bucket, all in chunks
 * of one arena.  The same structure serves in the shared pool (here) and in private memory (memtable_view.c).
 *
 * There is one way to fill the shared ones: whoever needs them catches up.  Under the entry's index lock one stretch
 * at a time: find the lowest position not covered, read batches from the log, check them, reserve memory for all of
 * them, insert, store `to`.  Errors can only happen before the first insert, so a stretch that fails or is cancelled
 * leaves nothing half done.
 *
 * Inserting many records at once costs a third of what it costs one by one.  So commits leave their batches to
 * others until there is much of it, unless readers come again and again.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"
#include "stop.h"

#define STRETCH_BYTES (8 * 1024 * 1024)
#define LEFT_BATCHES 4096       /* batches that commits leave to whoever comes, at most */
#define EAGER_COMMITS 64        /* commits that leave nothing, after a reader came upon something that was left */
#define SEAL_MAX_GENERATIONS 12 /* beyond this seals are ignored: places in the array are for those that must be */

/* ---- structure ---- */

PaimonMemtable *
paimon_memtable_make(PaimonArena *arena, PaimonArenaState *state, uint64 from)
{
	PaimonMemtable *mt;
	PaimonRef       ref;

	if (!paimon_arena_reserve(arena, MAXALIGN(sizeof(PaimonMemtable)), sizeof(PaimonMemtable)))
		return NULL;
	ref = paimon_arena_alloc(arena, sizeof(PaimonMemtable));
	mt = paimon_arena_ptr(arena, ref);
	memset(mt, 0, sizeof(*mt));
	pg_atomic_init_u32(&mt->refs, 1);
	pg_atomic_init_u32(&mt->sealed, 0);
	pg_atomic_init_u64(&mt->to, from);
	mt->from = from;
	mt->rng = from * UINT64CONST(0x9E3779B97F4A7C15) | 1;
	mt->arena = *state;
	arena->state = &mt->arena;
	return mt;
}

/* The bucket's list, made if it is not there.  NULL: no memory, which the reservation excludes. */
PaimonSkipList *
paimon_memtable_make_list(PaimonMemtable *mt, PaimonArena *arena, int bucket)
{
	PaimonRef      *leaf;
	PaimonRef       ref = mt->leaf[bucket / PAIMON_LEAF_BUCKETS];
	PaimonSkipList *list;

	if (ref == PAIMON_NO_REF)
	{
		ref = paimon_arena_alloc(arena, PAIMON_LEAF_BUCKETS * sizeof(PaimonRef));
		if (ref == PAIMON_NO_REF)
			return NULL;
		memset(paimon_arena_ptr(arena, ref), 0, PAIMON_LEAF_BUCKETS * sizeof(PaimonRef));
		__atomic_store_n(&mt->leaf[bucket / PAIMON_LEAF_BUCKETS], ref, __ATOMIC_RELEASE);
	}
	leaf = (PaimonRef *) paimon_arena_ptr(arena, ref) + bucket % PAIMON_LEAF_BUCKETS;
	if (*leaf != PAIMON_NO_REF)
		return paimon_arena_ptr(arena, *leaf);
	ref = paimon_arena_alloc(arena, sizeof(PaimonSkipList));
	if (ref == PAIMON_NO_REF)
		return NULL;
	list = paimon_arena_ptr(arena, ref);
	paimon_skip_init(list);
	__atomic_store_n(leaf, ref, __ATOMIC_RELEASE);
	return list;
}

const PaimonSkipList *
paimon_memtable_list(const PaimonMemtable *mt, const PaimonArena *arena, int bucket)
{
	PaimonRef        ref = __atomic_load_n(&mt->leaf[bucket / PAIMON_LEAF_BUCKETS], __ATOMIC_ACQUIRE);
	const PaimonRef *leaf;

	if (ref == PAIMON_NO_REF)
		return NULL;
	leaf = (const PaimonRef *) paimon_arena_ptr(arena, ref) + bucket % PAIMON_LEAF_BUCKETS;
	ref = __atomic_load_n(leaf, __ATOMIC_ACQUIRE);
	return ref == PAIMON_NO_REF ? NULL : paimon_arena_ptr(arena, ref);
}

/* The batch's own entry, linked behind the others.  PAIMON_NO_REF: no memory. */
PaimonRef
paimon_memtable_add_batch(PaimonMemtable *mt, PaimonArena *arena, uint64 position, const PaimonBatchHeader *header)
{
	PaimonRef        ref = paimon_arena_alloc(arena, sizeof(PaimonBatchInfo));
	PaimonBatchInfo *info;
	PaimonRef       *link;

	if (ref == PAIMON_NO_REF)
		return ref;
	info = paimon_arena_ptr(arena, ref);
	info->position = position;
	info->end = position + header->len;
	info->flags = header->flags;
	info->unused = 0;
	info->next = PAIMON_NO_REF;
	info->hint = PAIMON_HINT_UNKNOWN;
	info->xid = XidFromFullTransactionId(FullTransactionIdFromU64(header->xid));
	if (header->flags & (PAIMON_BATCH_COMMITTED | PAIMON_BATCH_ABORTED))
	{
		info->xid = InvalidTransactionId;
		info->hint = (header->flags & PAIMON_BATCH_COMMITTED) ? PAIMON_HINT_COMMITTED : PAIMON_HINT_ABORTED;
	}
	link = mt->last_batch == PAIMON_NO_REF ? &mt->first_batch
										   : &((PaimonBatchInfo *) paimon_arena_ptr(arena, mt->last_batch))->next;
	__atomic_store_n(link, ref, __ATOMIC_RELEASE);
	mt->last_batch = ref;
	mt->nbatches++;
	return ref;
}

/*
 * `cost` bytes are reserved.  False, with part of the stretch inserted, only if that did not hold: the memtable must then be thrown away.
 */
static bool
insert_reserved(PaimonMemtable *mt, PaimonArena *arena, PaimonStretch *stretch)
{
	Assert(paimon_stretch_from(stretch) == pg_atomic_read_u64(&mt->to));
	if (!paimon_stretch_insert(stretch, mt, arena))
		return false;
	pg_write_barrier();
	pg_atomic_write_u64(&mt->to, paimon_stretch_end(stretch));
	return true;
}

bool
paimon_memtable_add(PaimonMemtable *mt, PaimonArena *arena, PaimonStretch *stretch, bool *broken)
{
	const PaimonMemtableCost *cost = paimon_stretch_cost(stretch);

	*broken = false;
	if (!paimon_arena_reserve(arena, cost->total, cost->largest))
		return false;
	*broken = !insert_reserved(mt, arena, stretch);
	return !*broken;
}

void
paimon_memtable_reader(PaimonMemtable *mt, PaimonArena *arena)
{
	paimon_arena_attach(arena, NULL, paimon_pool_base(), NULL, NULL);
}

/* ---- where to go on ---- */

/*
 * The lowest position >= the newest head that no linked memtable covers (it may lie behind the tail that the caller
 * knows), and where the next memtable begins.
 */
static uint64
next_gap(PaimonShared *shared, uint64 *limit)
{
	uint64 position = pg_atomic_read_u64(&shared->head);

	*limit = PG_UINT64_MAX;
	SpinLockAcquire(&shared->mutex);
	for (int i = 0; i < shared->ngen; i++)
	{
		PaimonMemtable *mt = shared->gen[i];
		uint64          to = pg_atomic_read_u64(&mt->to);

		if (to <= position)
			continue;
		if (mt->from > position)
		{
			*limit = mt->from;
			break;
		}
		position = to;
	}
	SpinLockRelease(&shared->mutex);
	return position;
}

static uint64
generation_limit(const PaimonShared *shared)
{
	return Max(Min(shared->write_buffer_size, paimon_memtable_pool_size() / 8), PAIMON_CHUNK_SIZE);
}

/* The memtable that ends at `position` and takes more, pinned; or NULL. */
static PaimonMemtable *
pin_target(PaimonShared *shared, uint64 position)
{
	uint64          limit = generation_limit(shared);
	PaimonMemtable *found = NULL;
	bool            room;

	SpinLockAcquire(&shared->mutex);
	room = shared->ngen < PAIMON_MAX_GENERATIONS ||
		   pg_atomic_read_u64(&shared->gen[0]->to) <= pg_atomic_read_u64(&shared->head);
	for (int i = 0; i < shared->ngen; i++)
	{
		PaimonMemtable *mt = shared->gen[i];

		if (pg_atomic_read_u64(&mt->to) != position)
			continue;
		if (room && (pg_atomic_read_u32(&mt->sealed) != 0 || (uint64) mt->arena.nchunks * PAIMON_CHUNK_SIZE >= limit))
			continue;
		pg_atomic_fetch_add_u32(&mt->refs, 1);
		found = mt;
	}
	SpinLockRelease(&shared->mutex);
	return found;
}

/*
 * Links a new memtable (its reference counts as the link's); the oldest flushed one makes way.  False if there is
 * no place.
 */
static bool
link_memtable(PaimonShared *shared, PaimonMemtable *mt)
{
	PaimonMemtable *gone = NULL;
	uint64          head = pg_atomic_read_u64(&shared->head);
	bool            linked = false;
	int             i;

	SpinLockAcquire(&shared->mutex);
	if (shared->ngen == PAIMON_MAX_GENERATIONS && pg_atomic_read_u64(&shared->gen[0]->to) <= head)
	{
		gone = shared->gen[0];
		shared->ngen--;
		memmove(&shared->gen[0], &shared->gen[1], shared->ngen * sizeof(shared->gen[0]));
	}
	if (shared->in_use && shared->ngen < PAIMON_MAX_GENERATIONS)
	{
		for (i = shared->ngen; i > 0 && shared->gen[i - 1]->from > mt->from; i--)
			shared->gen[i] = shared->gen[i - 1];
		shared->gen[i] = mt;
		shared->ngen++;
		linked = true;
	}
	SpinLockRelease(&shared->mutex);
	if (gone != NULL)
		paimon_memtable_unpin(gone);
	return linked;
}

/* ---- catching up ---- */

/* Reserves, making room where it must; except what the pool cannot give. */
static bool
reserve_shared(PaimonShared *shared, PaimonArena *arena, PaimonMemtableCost cost, uint64 position)
{
	uint64 chunks = cost.total / (PAIMON_CHUNK_USABLE - cost.largest + 8) + 2;

	if (paimon_arena_reserve(arena, cost.total, cost.largest))
		return true;
	if (chunks <= paimon_pool_chunks() && paimon_memtable_make_room((uint32) chunks, false, shared) &&
		paimon_arena_reserve(arena, cost.total, cost.largest))
		return true;
	shared->starved_position = position;
	shared->starved_chunks = (uint32) Min(chunks, PG_UINT32_MAX);
	return false;
}

/*
 * Puts a stretch into the memtable that ends where it begins, or into a new one.  Throws only before anything is inserted or
 * pinned.  False: no memory. Index lock held.
 */
static bool
index_stretch(PaimonShared *shared, PaimonStretch *stretch)
{
	uint64             position = paimon_stretch_from(stretch);
	PaimonMemtableCost cost = *paimon_stretch_cost(stretch);
	PaimonMemtable    *mt = pin_target(shared, position);
	PaimonArenaState   state;
	PaimonArena        arena;
	bool               fresh = mt == NULL;
	bool               ok;

	paimon_arena_state_init(&state);
	paimon_arena_attach(&arena, fresh ? &state : &mt->arena, paimon_pool_base(), paimon_pool_get, NULL);
	if (fresh)
		cost.total += MAXALIGN(sizeof(PaimonMemtable));
	cost.largest = Max(cost.largest, (uint32) sizeof(PaimonMemtable));
	ok = reserve_shared(shared, &arena, cost, position);
	if (fresh && ok && (mt = paimon_memtable_make(&arena, &state, position)) != NULL)
		mt->created = paimon_shared_tick();
	else if (fresh)
	{
		paimon_arena_release(&arena, paimon_pool_put, NULL);
		return false;
	}
	if (ok)
	{
		ok = insert_reserved(mt, &arena, stretch);
		if (!ok)
			paimon_memtable_drop_all(shared);
	}
	if (fresh && ok && link_memtable(shared, mt))
		return true;
	paimon_memtable_unpin(mt);
	return ok && !fresh;
}

/* What is put into a memtable at a time, at most (and one batch at least). */
static uint64
stretch_bytes(const PaimonShared *shared)
{
	return Min(STRETCH_BYTES, generation_limit(shared) / 4);
}

/*
 * One stretch; if there is no memory for it, one batch.  False when the tail is reached or memory is short.  The index lock is held: errors throw and abort
 * releases it; everything is consistent between stretches.
 */
static bool
index_next(PaimonShared *shared, Relation rel, uint64 tail, MemoryContext cxt)
{
	uint64        limit;
	uint64        position = next_gap(shared, &limit);
	MemoryContext old;
	bool          done = false;

	if (position >= tail)
		return false;
	if (shared->starved_chunks > 0 && shared->starved_position == position &&
		paimon_pool_free_chunks() < shared->starved_chunks && !paimon_memtable_make_room(shared->starved_chunks, false, shared))
		return false;
	shared->starved_chunks = 0;
	old = MemoryContextSwitchTo(cxt);
	for (int few = 0; few < 2 && !done; few++)
	{
		MemoryContextReset(cxt);
		done = index_stretch(shared, paimon_stretch_load(rel, shared->key.storage_id, position, Min(tail, limit),
														 few ? 1 : stretch_bytes(shared), PAIMON_INLINE_MAX));
	}
	MemoryContextSwitchTo(old);
	return done;
}

/* Kept for the life of the backend, emptied after each use: a commit of one row should not make a context. */
static MemoryContext
scratch_context(void)
{
	static MemoryContext cxt = NULL;

	if (cxt == NULL)
		cxt = AllocSetContextCreate(TopMemoryContext, "paimon catching up", ALLOCSET_DEFAULT_SIZES);
	return cxt;
}

/* See shared.h. */
void
paimon_shared_catch_up(PaimonShared *shared, Relation rel, bool reader)
{
	uint64        tail = paimon_shared_read_tail(shared, rel);
	MemoryContext cxt = scratch_context();
	bool          more = true;
	uint64        limit;

	pg_atomic_write_u64(&shared->last_used, (uint64) GetCurrentTimestamp());
	if (next_gap(shared, &limit) >= tail)
		return;
	if (reader)
		pg_atomic_write_u32(&shared->eager, EAGER_COMMITS);
	while (more && next_gap(shared, &limit) < tail)
	{
		CHECK_FOR_INTERRUPTS();
		PAIMON_STOP_POINT("catch_up_slice");
		LWLockAcquire(&shared->index_lock, LW_EXCLUSIVE);
		more = index_next(shared, rel, tail, cxt);
		LWLockRelease(&shared->index_lock);
	}
	MemoryContextReset(cxt);
	paimon_memtable_relieve();
}

/* See shared.h. */
void
paimon_shared_appended(PaimonShared *shared, Relation rel, uint32 len)
{
	uint64        tail = paimon_shared_read_tail(shared, rel);
	MemoryContext cxt = scratch_context();
	uint32        eager = pg_atomic_read_u32(&shared->eager);
	uint64        limit;
	uint64        reached = next_gap(shared, &limit);

	pg_atomic_write_u64(&shared->last_used, (uint64) GetCurrentTimestamp());
	if (eager > 0)
		pg_atomic_write_u32(&shared->eager, eager - 1);
	else if (reached >= tail || tail - reached < Min(stretch_bytes(shared), (uint64) len * LEFT_BATCHES))
		return;
	if (!LWLockConditionalAcquire(&shared->index_lock, LW_EXCLUSIVE))
		return;
	(void) index_next(shared, rel, tail, cxt);
	LWLockRelease(&shared->index_lock);
	MemoryContextReset(cxt);
	paimon_memtable_relieve();
}

/* ---- sealing and hints ---- */

void
paimon_shared_seal(PaimonShared *shared)
{
	PaimonMemtable *gone[PAIMON_MAX_GENERATIONS];
	uint64          head = pg_atomic_read_u64(&shared->head);
	int             n = 0;

	SpinLockAcquire(&shared->mutex);
	while (shared->ngen > SEAL_MAX_GENERATIONS && pg_atomic_read_u64(&shared->gen[0]->to) <= head)
	{
		gone[n++] = shared->gen[0];
		shared->ngen--;
		memmove(&shared->gen[0], &shared->gen[1], shared->ngen * sizeof(shared->gen[0]));
	}
	if (shared->ngen > 0 && shared->ngen <= SEAL_MAX_GENERATIONS)
		pg_atomic_write_u32(&shared->gen[shared->ngen - 1]->sealed, 1);
	SpinLockRelease(&shared->mutex);
	while (n > 0)
		paimon_memtable_unpin(gone[--n]);
}

void
paimon_shared_freeze_hints(PaimonShared *shared, TransactionId limit)
{
	PaimonViewPins *pins = paimon_pins_make();

	pins->nmemtables = paimon_memtable_pin_range(shared, 0, PG_UINT64_MAX, pins->memtables);
	for (int i = 0; i < pins->nmemtables; i++)
	{
		PaimonMemtable *mt = pins->memtables[i];
		PaimonRef       ref = __atomic_load_n(&mt->first_batch, __ATOMIC_ACQUIRE);
		PaimonArena     arena;

		paimon_memtable_reader(mt, &arena);
		while (ref != PAIMON_NO_REF)
		{
			PaimonBatchInfo *b = paimon_arena_ptr(&arena, ref);

			CHECK_FOR_INTERRUPTS();
			if (TransactionIdIsNormal(b->xid) && TransactionIdPrecedes(b->xid, limit))
				(void) paimon_batch_committed(b);
			ref = __atomic_load_n(&b->next, __ATOMIC_ACQUIRE);
		}
	}
	paimon_pins_release(pins);
}
