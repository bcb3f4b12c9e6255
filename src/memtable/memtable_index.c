/*-------------------------------------------------------------------------
 *
 * memtable_index.c
 *	  Memtables: their structure, and catching up with the log.
 *
 * A memtable covers the log positions [from, to): the batches there and a skip list a touched bucket, all in chunks
 * of one arena.  The same structure serves in the shared pool (here) and in private memory (memtable_view.c).
 *
 * There is one way to fill the shared ones: whoever needs them catches up.  Under the entry's index lock one slice
 * at a time: find the lowest position not covered, read its batch from the log, check it, reserve memory for all of
 * it, insert, store `to`.  Errors can only happen before the first insert, so a slice that fails or is cancelled
 * leaves nothing half done.
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

#define SLICE_BYTES 65536
#define COMMIT_SLICES 4         /* what a commit does for others at most */
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

static bool
is_external(uint32 keylen, uint32 len, uint32 inline_max)
{
	return len > inline_max || paimon_skip_node_size(keylen, len, false) > PAIMON_SKIP_MAX_NODE;
}

PaimonMemtableCost
paimon_memtable_cost(Relation rel, uint64 position, const PaimonBatchHeader *header, const uint8 *body,
					 uint32 inline_max)
{
	PaimonBatchReader  reader;
	PaimonBatchRecord  rec;
	PaimonMemtableCost cost;
	uint64             nrecords = 0;

	cost.largest = PAIMON_LEAF_BUCKETS * sizeof(PaimonRef);
	cost.total = MAXALIGN(sizeof(PaimonBatchInfo)) + (uint64) header->nbuckets * MAXALIGN(sizeof(PaimonSkipList)) +
				 (uint64) Min(header->nbuckets, PAIMON_LEAVES) * cost.largest;
	paimon_batch_read_begin(&reader, position, header, body);
	while (paimon_batch_read_next(&reader, &rec))
	{
		uint64 size;

		nrecords++;
		if (rec.kind & PAIMON_RECORD_LOCK)
			continue;
		size =
			paimon_skip_node_size(rec.key.len, rec.payload.len, is_external(rec.key.len, rec.payload.len, inline_max));
		cost.total += size;
		cost.largest = Max(cost.largest, (uint32) size);
	}
	if (reader.corrupt)
		paimon_batch_report_corrupt(rel, position, reader.why);
	if (nrecords != header->nrecords)
		paimon_batch_report_corrupt(rel, position, "number of records does not match the header");
	return cost;
}

/* The bucket's list, made if it is not there.  NULL: no memory, which the reservation excludes. */
static PaimonSkipList *
list_for(PaimonMemtable *mt, PaimonArena *arena, int bucket)
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
static PaimonRef
add_batch_info(PaimonMemtable *mt, PaimonArena *arena, uint64 position, const PaimonBatchHeader *header)
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
 * The places of the records of a bucket that come next, up to PAIMON_SKIP_PLACES_MAX.  Returns how many.
 */
static int
find_places(const PaimonSkipList *list, const PaimonArena *arena, PaimonBatchReader ahead, const PaimonBatchRecord *first,
			PaimonSkipPlace *places)
{
	PaimonSkipPlaceKey keys[PAIMON_SKIP_PLACES_MAX];
	PaimonBatchRecord rec = *first;
	int			n = 0;

	do
	{
		if (rec.bucket != first->bucket)
			break;
		if (rec.kind & PAIMON_RECORD_LOCK)
			continue;
		keys[n].key = rec.key.data;
		keys[n].len = rec.key.len;
		n++;
	} while (n < PAIMON_SKIP_PLACES_MAX && paimon_batch_read_next(&ahead, &rec));
	paimon_skip_find_places(list, arena, keys, n, places);
	return n;
}

static bool
insert_records(PaimonMemtable *mt, PaimonArena *arena, PaimonRef info, uint64 position, const PaimonBatchHeader *header,
			   const uint8 *body, uint32 inline_max)
{
	PaimonBatchReader reader;
	PaimonBatchRecord rec;
	PaimonSkipList   *list = NULL;
	int               bucket = -1;
	PaimonSkipPlace places[PAIMON_SKIP_PLACES_MAX];
	int			nplaces = 0;
	int			next_place = 0;

	paimon_batch_read_begin(&reader, position, header, body);
	while (paimon_batch_read_next(&reader, &rec))
	{
		PaimonSkipEntry e;

		if (rec.kind & PAIMON_RECORD_LOCK)
			continue;
		if (rec.bucket != bucket)
		{
			bucket = rec.bucket;
			if ((list = list_for(mt, arena, bucket)) == NULL)
				return false;
			nplaces = next_place = 0;
		}
		if (next_place == nplaces)
		{
			nplaces = find_places(list, arena, reader, &rec, places);
			next_place = 0;
		}
		e.key = rec.key.data;
		e.key_len = rec.key.len;
		e.pos = rec.position;
		e.batch = info;
		e.kind = rec.kind;
		e.external = is_external(rec.key.len, rec.payload.len, inline_max);
		e.payload = rec.payload.data;
		e.payload_len = rec.payload.len;
		if (paimon_skip_insert(list, arena, &mt->rng, &e, &places[next_place++]) != PAIMON_OK)
			return false;
	}
	return !reader.corrupt;
}

/*
 * The bytes were checked by paimon_memtable_cost, and `cost` bytes reserved.  False, with part of the batch
 * inserted, only if one of the two did not hold: the memtable must then be thrown away.
 */
static bool
insert_reserved(PaimonMemtable *mt, PaimonArena *arena, uint64 position, const PaimonBatchHeader *header,
				const uint8 *body, uint32 inline_max)
{
	PaimonRef info;

	Assert(position == pg_atomic_read_u64(&mt->to));
	info = add_batch_info(mt, arena, position, header);
	if (info == PAIMON_NO_REF || !insert_records(mt, arena, info, position, header, body, inline_max))
		return false;
	pg_write_barrier();
	pg_atomic_write_u64(&mt->to, position + header->len);
	return true;
}

bool
paimon_memtable_add(PaimonMemtable *mt, PaimonArena *arena, uint64 position, const PaimonBatchHeader *header,
					const uint8 *body, PaimonMemtableCost cost, uint32 inline_max, bool *broken)
{
	*broken = false;
	if (!paimon_arena_reserve(arena, cost.total, cost.largest))
		return false;
	*broken = !insert_reserved(mt, arena, position, header, body, inline_max);
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
 * Puts one batch into the memtable that ends there, or into a new one.  Throws only before anything is inserted or
 * pinned.  False: no memory. Index lock held.
 */
static bool
index_batch(PaimonShared *shared, Relation rel, uint64 position, const PaimonBatchHeader *header, const uint8 *body)
{
	PaimonMemtableCost cost = paimon_memtable_cost(rel, position, header, body, PAIMON_INLINE_MAX);
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
		ok = insert_reserved(mt, &arena, position, header, body, PAIMON_INLINE_MAX);
		if (!ok)
			paimon_memtable_drop_all(shared);
	}
	if (fresh && ok && link_memtable(shared, mt))
		return true;
	paimon_memtable_unpin(mt);
	return ok && !fresh;
}

/*
 * One slice.  False when the tail is reached or memory is short.  The index lock is held: errors throw and abort
 * releases it; everything is consistent between batches.
 */
static bool
index_slice(PaimonShared *shared, Relation rel, uint64 tail, MemoryContext cxt)
{
	uint64        done = 0;
	MemoryContext old = MemoryContextSwitchTo(cxt);

	while (done < SLICE_BYTES)
	{
		PaimonBatchHeader header;
		uint8            *body;
		uint64            limit;
		uint64            position = next_gap(shared, &limit);
		uint64            end;

		if (position >= tail)
			break;
		if (shared->starved_chunks > 0 && shared->starved_position == position &&
			paimon_pool_free_chunks() < shared->starved_chunks &&
			!paimon_memtable_make_room(shared->starved_chunks, false, shared))
			break;
		shared->starved_chunks = 0;
		MemoryContextReset(cxt);
		end = paimon_batch_load(rel, shared->key.storage_id, position, &header, &body);
		if (end > tail || end > limit)
			paimon_batch_report_corrupt(rel, position, "batch ends where no batch ends");
		if (!index_batch(shared, rel, position, &header, body))
			break;
		done += end - position;
	}
	MemoryContextSwitchTo(old);
	return done >= SLICE_BYTES;
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

uint64
paimon_shared_catch_up(PaimonShared *shared, Relation rel, bool wait)
{
	uint64        tail = paimon_shared_read_tail(shared, rel);
	MemoryContext cxt = scratch_context();
	int           slices = wait ? PG_INT32_MAX : COMMIT_SLICES;
	bool          more = true;
	uint64        limit;
	uint64        reached;

	pg_atomic_write_u64(&shared->last_used, (uint64) GetCurrentTimestamp());
	while ((reached = next_gap(shared, &limit)) < tail && more && slices-- > 0)
	{
		CHECK_FOR_INTERRUPTS();
		PAIMON_STOP_POINT("catch_up_slice");
		if (wait)
			LWLockAcquire(&shared->index_lock, LW_EXCLUSIVE);
		else if (!LWLockConditionalAcquire(&shared->index_lock, LW_EXCLUSIVE))
			return reached;
		more = index_slice(shared, rel, tail, cxt);
		LWLockRelease(&shared->index_lock);
	}
	MemoryContextReset(cxt);
	paimon_memtable_relieve();
	return reached;
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
