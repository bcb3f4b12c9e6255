/*-------------------------------------------------------------------------
 *
 * memtable_drop.c
 *	  Pins of memtables, and who has to go when memory is short.
 *
 * A memtable is freed when its last reference goes; being linked in an entry is one, each pin is one.  References
 * are added under the mutex of the entry that links it, so nobody can pin what has been unlinked.  A memtable can
 * always be dropped: it is a cache of the log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "memtable/memtable_internal.h"

#define IDLE_USECS (10 * USECS_PER_SEC) /* unflushed memtables of a table unused for so long may go */

void
paimon_memtable_unpin(PaimonMemtable *mt)
{
	PaimonArenaState state;
	PaimonArena      arena;

	if (pg_atomic_sub_fetch_u32(&mt->refs, 1) > 0)
		return;
	state = mt->arena;
	paimon_arena_attach(&arena, &state, paimon_pool_base(), NULL, NULL);
	paimon_arena_release(&arena, paimon_pool_put, NULL);
}

int
paimon_memtable_pin_range(PaimonShared *shared, uint64 from, uint64 to, PaimonMemtable **mts)
{
	int n = 0;

	SpinLockAcquire(&shared->mutex);
	for (int i = 0; i < shared->ngen; i++)
	{
		PaimonMemtable *mt = shared->gen[i];

		if (mt->from >= to || pg_atomic_read_u64(&mt->to) <= from)
			continue;
		pg_atomic_fetch_add_u32(&mt->refs, 1);
		mts[n++] = mt;
	}
	SpinLockRelease(&shared->mutex);
	return n;
}

void
paimon_memtable_drop_all(PaimonShared *shared)
{
	PaimonMemtable *gone[PAIMON_MAX_GENERATIONS];
	int             n;

	SpinLockAcquire(&shared->mutex);
	n = shared->ngen;
	memcpy(gone, shared->gen, n * sizeof(gone[0]));
	shared->ngen = 0;
	SpinLockRelease(&shared->mutex);
	for (int i = 0; i < n; i++)
		paimon_memtable_unpin(gone[i]);
}

/* What may be dropped: flushed memtables are better than others, older ones better than younger. */
typedef struct Victim
{
	PaimonShared   *shared;
	PaimonMemtable *mt; /* not pinned: only to be compared */
	bool            flushed;
	uint64          created;
} Victim;

/*
 * The best victim of an entry into *best, if it is better than what is there.  Only names it: it may be gone by the
 * time it is unlinked.
 */
static void
look_for_victim(PaimonShared *s, bool flushed_only, TimestampTz idle_since, Victim *best)
{
	uint64 head = pg_atomic_read_u64(&s->head);
	bool   idle = !flushed_only && (TimestampTz) pg_atomic_read_u64(&s->last_used) < idle_since;

	if (s->ngen == 0)
		return;
	SpinLockAcquire(&s->mutex);
	for (int i = 0; i < s->ngen; i++)
	{
		PaimonMemtable *mt = s->gen[i];
		bool            flushed = pg_atomic_read_u64(&mt->to) <= head;

		if (!flushed && !idle)
			continue;
		if (best->mt == NULL || (flushed && !best->flushed) ||
			(flushed == best->flushed && mt->created < best->created))
		{
			best->shared = s;
			best->mt = mt;
			best->flushed = flushed;
			best->created = mt->created;
		}
	}
	SpinLockRelease(&s->mutex);
}

/* Unlinks the victim if it is still linked. */
static void
unlink_victim(const Victim *v)
{
	PaimonShared *s = v->shared;
	bool          found = false;

	SpinLockAcquire(&s->mutex);
	for (int i = 0; i < s->ngen && !found; i++)
	{
		if (s->gen[i] != v->mt || s->gen[i]->created != v->created)
			continue;
		s->ngen--;
		memmove(&s->gen[i], &s->gen[i + 1], (s->ngen - i) * sizeof(s->gen[0]));
		found = true;
	}
	SpinLockRelease(&s->mutex);
	if (found)
		paimon_memtable_unpin(v->mt);
}

/*
 * Holds no lock on return and takes only spinlocks, one at a time, so it may be called with LWLocks held.
 * `except`: a table whose unflushed memtables stay.  Never throws.
 */
bool
paimon_memtable_make_room(uint32 chunks, bool flushed_only, const PaimonShared *except)
{
	TimestampTz idle_since = GetCurrentTimestamp() - IDLE_USECS;

	if (chunks > paimon_pool_chunks())
		return false;
	while (paimon_pool_free_chunks() < chunks)
	{
		Victim best = {NULL, NULL, false, 0};

		for (int i = 0; i < paimon_max_tables; i++)
		{
			PaimonShared *s = paimon_shared_slot(i);

			look_for_victim(s, flushed_only || s == except, idle_since, &best);
		}
		if (best.mt == NULL)
			return false;
		unlink_victim(&best);
	}
	return true;
}

/* Chunks of an entry's memtables that only a flush can let go; 0 also for one that cannot be flushed here and now. */
static uint32
held_by_unflushed(PaimonShared *s)
{
	uint64 head = pg_atomic_read_u64(&s->head);
	uint32 held = 0;

	if (s->ngen == 0)
		return 0;
	SpinLockAcquire(&s->mutex);
	if (s->in_use && !s->forgotten && !s->blocked && pg_atomic_read_u32(&s->state) == PAIMON_STATE_PRIMARY)
	{
		for (int i = 0; i < s->ngen; i++)
		{
			if (pg_atomic_read_u64(&s->gen[i]->to) > head)
				held += s->gen[i]->arena.nchunks;
		}
	}
	SpinLockRelease(&s->mutex);
	return held;
}

/* See memtable_internal.h. */
void
paimon_memtable_relieve(void)
{
	static uint32      seen_free = PG_UINT32_MAX;
	static TimestampTz seen_at = 0;
	uint32             now_free = paimon_pool_free_chunks();
	uint32             keep = paimon_pool_chunks() / 4;
	TimestampTz        now;
	uint64             total = 0;
	int                n = 0;

	if (now_free >= keep)
		return;
	/* Memory that stays full is looked at again now and then: a table may have become possible to flush. */
	now = GetCurrentTimestamp();
	if (now_free == seen_free && now < seen_at + USECS_PER_SEC)
		return;
	seen_free = now_free;
	seen_at = now;
	if (paimon_memtable_make_room(keep, true, NULL))
		return;
	for (int i = 0; i < paimon_max_tables; i++)
	{
		uint32 held = held_by_unflushed(paimon_shared_slot(i));

		total += held;
		n += held > 0;
	}
	for (int i = 0; i < paimon_max_tables && n > 0; i++)
	{
		PaimonShared *s = paimon_shared_slot(i);
		uint32        held = held_by_unflushed(s);

		if (held > 0 && (uint64) held * n >= total && !s->requested)
			paimon_shared_request_flush(s);
	}
}
