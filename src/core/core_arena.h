/*-------------------------------------------------------------------------
 *
 * core_arena.h
 *	  Memory for skip lists, shared or private, addressed by 32-bit references.
 *
 * An arena is a chain of 64 kB chunks filled front to back; nothing is freed
 * but the whole.  A reference is the distance from the pool's start in units
 * of 8 bytes, so it means the same in every process and reaches 32 GB; 0 is
 * "none".  In private memory chunks lie anywhere and a table finds them.
 *
 * One writer at a time may allocate.  Readers translate references that they
 * got from memory published by the writer; they need no lock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_ARENA_H
#define PAIMON_CORE_ARENA_H

#include "core/core.h"

#define PAIMON_CHUNK_SIZE 65536
#define PAIMON_CHUNK_HEADER 16	/* link to the arena's next chunk, then unused */
#define PAIMON_CHUNK_USABLE (PAIMON_CHUNK_SIZE - PAIMON_CHUNK_HEADER)
#define PAIMON_CHUNK_MAX_COUNT (UINT32_C(1) << 19)	/* of a pool: 32 GB */
#define PAIMON_NO_CHUNK UINT32_MAX

typedef uint32_t PaimonRef;

#define PAIMON_NO_REF ((PaimonRef) 0)

/*
 * The arena itself; may live in shared memory (no pointers).  Only the writer reads and
 * changes it, except that `nchunks` may be read by anybody for statistics.
 */
typedef struct PaimonArenaState
{
	uint32_t	first;			/* chunk index, PAIMON_NO_CHUNK if empty */
	uint32_t	current;		/* chunk that is filled now */
	uint32_t	last;			/* end of the chain: current and the spare chunks behind it */
	uint32_t	used;			/* bytes of the current chunk in use, header included */
	uint32_t	nspare;			/* chunks behind current */
	uint32_t	nchunks;		/* all */
} PaimonArenaState;

/*
 * Gives a chunk: its index in the pool in *index.  False if there is none.  The memory need not be zero.
 * Must not throw.
 */
typedef bool (*PaimonGetChunk) (void *arg, uint32_t *index);

/* A process's handle on an arena. */
typedef struct PaimonArena
{
	PaimonArenaState *state;
	uint8_t    *base;			/* the pool, aligned to 8; NULL for private memory */
	uint8_t   **table;			/* private: address by chunk index */
	uint32_t	table_cap;
	uint32_t	table_len;
	const PaimonAllocator *a;	/* private */
	PaimonGetChunk get_chunk;	/* shared; NULL in a handle that only reads */
	void	   *arg;
} PaimonArena;

/* Makes an arena empty. */
extern void paimon_arena_state_init(PaimonArenaState *state);

/*
 * Handle on an arena whose chunks come from a pool at `base`.  Readers, who never allocate, may pass NULL for state
 * and get_chunk.
 */
extern void paimon_arena_attach(PaimonArena *arena, PaimonArenaState *state, void *base,
								PaimonGetChunk get_chunk, void *arg);

/*
 * Empty arena in private memory (*state is initialised, too); chunks come from the allocator and go with it.  To be used by
 * one thread.
 */
extern void paimon_arena_init_private(PaimonArena *arena, PaimonArenaState *state, const PaimonAllocator *a);

/*
 * Makes sure that allocations of `total` bytes altogether, none larger than `largest` (<= PAIMON_CHUNK_USABLE), will
 * succeed; each counts in `total` as rounded up to a multiple of 8, and at least 8.  False if the pool is empty; what was got so far stays with the arena for later.
 */
extern bool paimon_arena_reserve(PaimonArena *arena, uint64_t total, uint32_t largest);

/*
 * Memory aligned to 8, at most PAIMON_CHUNK_USABLE bytes, never crossing a chunk's end.  PAIMON_NO_REF if there is no chunk
 * (impossible after a matching reserve) or the size is too large.
 */
extern PaimonRef paimon_arena_alloc(PaimonArena *arena, uint32_t size);

/*
 * Empties a shared arena and gives each chunk to put_chunk.  Nobody may use any of its memory any more.
 */
extern void paimon_arena_release(PaimonArena *arena, void (*put_chunk) (void *arg, uint32_t index), void *arg);

/* Address of a reference. */
static inline void *
paimon_arena_ptr(const PaimonArena *arena, PaimonRef ref)
{
	if (arena->base != NULL)
		return arena->base + (size_t) ref * 8;
	return arena->table[ref / (PAIMON_CHUNK_SIZE / 8)] + (size_t) (ref % (PAIMON_CHUNK_SIZE / 8)) * 8;
}

#endif							/* PAIMON_CORE_ARENA_H */
