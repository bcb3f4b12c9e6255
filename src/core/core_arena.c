/*-------------------------------------------------------------------------
 *
 * core_arena.c
 *	  Chunked memory addressed by 32-bit references.
 *
 * The chunks of an arena are chained by the index in their first 4 bytes:
 * first → … → current → spare → … → last.  Chunks in front of current are
 * full, spare ones are reserved and empty.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_arena.h"

#define REFS_PER_CHUNK (PAIMON_CHUNK_SIZE / 8)

_Static_assert((uint64_t) PAIMON_CHUNK_MAX_COUNT * REFS_PER_CHUNK - 1 <= UINT32_MAX, "references must reach every chunk");
_Static_assert(PAIMON_CHUNK_HEADER % 8 == 0 && PAIMON_CHUNK_HEADER >= 8, "reference 0 must be a chunk's header");

static uint8_t *
chunk_ptr(const PaimonArena *arena, uint32_t index)
{
	if (arena->base != NULL)
		return arena->base + (size_t) index * PAIMON_CHUNK_SIZE;
	return arena->table[index];
}

static uint32_t
chunk_next(const PaimonArena *arena, uint32_t index)
{
	uint32_t	next;

	memcpy(&next, chunk_ptr(arena, index), sizeof(next));
	return next;
}

static void
chunk_set_next(const PaimonArena *arena, uint32_t index, uint32_t next)
{
	memcpy(chunk_ptr(arena, index), &next, sizeof(next));
}

/* get_chunk of private memory: the next entry of the table. */
static bool
get_private_chunk(void *arg, uint32_t *index)
{
	PaimonArena *arena = arg;
	uint8_t    *chunk;

	if (arena->table_len >= PAIMON_CHUNK_MAX_COUNT)
		return false;
	if (arena->table_len == arena->table_cap)
	{
		uint32_t	cap = arena->table_cap == 0 ? 16 : arena->table_cap * 2;
		uint8_t   **table = paimon_core_alloc(arena->a, cap * sizeof(*table));

		if (table == NULL)
			return false;
		if (arena->table_len > 0)
			memcpy(table, arena->table, arena->table_len * sizeof(*table));
		arena->table = table;
		arena->table_cap = cap;
	}
	chunk = paimon_core_alloc(arena->a, PAIMON_CHUNK_SIZE);
	if (chunk == NULL)
		return false;
	*index = arena->table_len;
	arena->table[arena->table_len++] = chunk;
	return true;
}

void
paimon_arena_state_init(PaimonArenaState *state)
{
	state->first = state->current = state->last = PAIMON_NO_CHUNK;
	state->used = 0;
	state->nspare = 0;
	__atomic_store_n(&state->nchunks, 0, __ATOMIC_RELAXED);
}

void
paimon_arena_attach(PaimonArena *arena, PaimonArenaState *state, void *base, PaimonGetChunk get_chunk, void *arg)
{
	memset(arena, 0, sizeof(*arena));
	arena->state = state;
	arena->base = base;
	arena->get_chunk = get_chunk;
	arena->arg = arg;
}

void
paimon_arena_init_private(PaimonArena *arena, PaimonArenaState *state, const PaimonAllocator *a)
{
	memset(arena, 0, sizeof(*arena));
	paimon_arena_state_init(state);
	arena->state = state;
	arena->a = a;
}

/* Appends one empty chunk to the chain, as spare. */
static bool
add_chunk(PaimonArena *arena)
{
	PaimonArenaState *s = arena->state;
	uint32_t	index;

	if (arena->base == NULL)
	{
		if (!get_private_chunk(arena, &index))
			return false;
	}
	else if (arena->get_chunk == NULL || !arena->get_chunk(arena->arg, &index))
		return false;
	chunk_set_next(arena, index, PAIMON_NO_CHUNK);

	if (s->last == PAIMON_NO_CHUNK)
	{
		s->first = s->current = index;
		s->used = PAIMON_CHUNK_HEADER;
	}
	else
	{
		chunk_set_next(arena, s->last, index);
		s->nspare++;
	}
	s->last = index;
	__atomic_store_n(&s->nchunks, s->nchunks + 1, __ATOMIC_RELAXED);
	return true;
}

/*
 * Bytes that can be allocated for sure from the chunks there are, in pieces of at most `largest` bytes: a chunk is left for the
 * next one when a piece does not fit, which wastes less than `largest`; the last chunk can be used up.
 */
static uint64_t
guaranteed_bytes(const PaimonArenaState *s, uint32_t largest)
{
	uint32_t	left;
	uint64_t	sure;

	if (s->current == PAIMON_NO_CHUNK)
		return 0;
	left = PAIMON_CHUNK_SIZE - s->used;
	if (s->nspare == 0)
		return left;
	sure = left >= largest ? left - largest + 8 : 0;
	return sure + (uint64_t) (s->nspare - 1) * (PAIMON_CHUNK_USABLE - largest + 8) + PAIMON_CHUNK_USABLE;
}

bool
paimon_arena_reserve(PaimonArena *arena, uint64_t total, uint32_t largest)
{
	if (largest > PAIMON_CHUNK_USABLE)
		return false;
	largest = (largest + 7) & ~UINT32_C(7);
	if (largest < 8)
		largest = 8;
	while (guaranteed_bytes(arena->state, largest) < total)
	{
		if (!add_chunk(arena))
			return false;
	}
	return true;
}

PaimonRef
paimon_arena_alloc(PaimonArena *arena, uint32_t size)
{
	PaimonArenaState *s = arena->state;
	PaimonRef	ref;

	if (size > PAIMON_CHUNK_USABLE)
		return PAIMON_NO_REF;

	/* never nothing, as the reference would be that of the next piece or lie behind the chunk */
	size = size == 0 ? 8 : (size + 7) & ~UINT32_C(7);
	if (s->current == PAIMON_NO_CHUNK || PAIMON_CHUNK_SIZE - s->used < size)
	{
		bool		was_empty = s->current == PAIMON_NO_CHUNK;

		if (s->nspare == 0 && !add_chunk(arena))
			return PAIMON_NO_REF;
		if (!was_empty)
		{
			s->current = chunk_next(arena, s->current);
			s->used = PAIMON_CHUNK_HEADER;
			s->nspare--;
		}
	}
	ref = s->current * REFS_PER_CHUNK + s->used / 8;
	s->used += size;
	return ref;
}

void
paimon_arena_release(PaimonArena *arena, void (*put_chunk) (void *arg, uint32_t index), void *arg)
{
	uint32_t	index = arena->state->first;

	/* the arena forgets its chunks before anybody else may get them */
	paimon_arena_state_init(arena->state);
	while (index != PAIMON_NO_CHUNK)
	{
		uint32_t	next = chunk_next(arena, index);

		put_chunk(arg, index);
		index = next;
	}
}
