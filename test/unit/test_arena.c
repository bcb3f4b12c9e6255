/*-------------------------------------------------------------------------
 *
 * test_arena.c
 *	  Arena: references, chunk limits, reservation, exhaustion, release.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_arena.h"
#include "unit.h"

#define POOL_CHUNKS 40
#define MAX_PIECES 20000

/* A pool that hands its chunks out in random order. */
typedef struct Pool
{
	uint8_t    *base;
	uint32_t	free_list[POOL_CHUNKS];
	uint32_t	nfree;
} Pool;

static void
pool_init(Pool *pool)
{
	pool->base = aligned_alloc(64, (size_t) POOL_CHUNKS * PAIMON_CHUNK_SIZE);
	unit_fill(pool->base, 4096);
	pool->nfree = POOL_CHUNKS;
	for (uint32_t i = 0; i < POOL_CHUNKS; i++)
		pool->free_list[i] = i;
	for (uint32_t i = POOL_CHUNKS - 1; i > 0; i--)
	{
		uint32_t	j = (uint32_t) unit_below(i + 1);
		uint32_t	t = pool->free_list[i];

		pool->free_list[i] = pool->free_list[j];
		pool->free_list[j] = t;
	}
}

static bool
pool_get(void *arg, uint32_t *index)
{
	Pool	   *pool = arg;

	if (pool->nfree == 0)
		return false;
	*index = pool->free_list[--pool->nfree];
	return true;
}

static void
pool_put(void *arg, uint32_t index)
{
	Pool	   *pool = arg;

	CHECK(index < POOL_CHUNKS);
	for (uint32_t i = 0; i < pool->nfree; i++)
		CHECK(pool->free_list[i] != index);
	pool->free_list[pool->nfree++] = index;
}

typedef struct Piece
{
	PaimonRef	ref;
	uint32_t	size;
	uint8_t		fill;
} Piece;

static Piece pieces[MAX_PIECES];

/* Allocates random pieces until there is no more; all must keep what was written to them. */
static void
check_pieces(PaimonArena *arena, uint32_t count)
{
	uint32_t	n;

	for (n = 0; n < count; n++)
	{
		Piece	   *p = &pieces[n];

		p->size = (uint32_t) unit_below(unit_below(20) == 0 ? PAIMON_CHUNK_USABLE + 1 : 300);
		p->fill = (uint8_t) unit_rand();
		p->ref = paimon_arena_alloc(arena, p->size);
		if (p->ref == PAIMON_NO_REF)
			break;
		CHECK_EQ((uintptr_t) paimon_arena_ptr(arena, p->ref) % 8, 0);
		CHECK(p->ref % (PAIMON_CHUNK_SIZE / 8) * 8 >= PAIMON_CHUNK_HEADER);
		CHECK(p->ref % (PAIMON_CHUNK_SIZE / 8) * 8 + p->size <= PAIMON_CHUNK_SIZE);
		CHECK(n == 0 || p->ref != pieces[n - 1].ref);
		memset(paimon_arena_ptr(arena, p->ref), p->fill, p->size);
	}
	CHECK(n > 100);
	for (uint32_t i = 0; i < n; i++)
	{
		const uint8_t *mem = paimon_arena_ptr(arena, pieces[i].ref);
		bool		same = true;

		for (uint32_t j = 0; j < pieces[i].size; j++)
			same = same && mem[j] == pieces[i].fill;
		CHECK_MSG(same, "piece %u of %u bytes was overwritten", i, pieces[i].size);
	}
}

/* After a reservation exactly what was reserved can be allocated, whatever the pieces, and takes no chunk. */
static void
check_reserve(Pool *pool)
{
	PaimonArenaState state;
	PaimonArena arena;

	paimon_arena_state_init(&state);
	paimon_arena_attach(&arena, &state, pool->base, pool_get, pool);
	for (int round = 0; round < 3000; round++)
	{
		uint32_t	largest = 1 + (uint32_t) unit_below(unit_below(2) ? PAIMON_CHUNK_USABLE : 500);
		uint64_t	total = largest + unit_below(150000);
		uint32_t	nfree;
		uint32_t	nchunks;

		total = (total + 7) & ~UINT64_C(7);
		nchunks = state.nchunks;
		if (!paimon_arena_reserve(&arena, total, largest))
		{
			CHECK_EQ(pool->nfree, 0);
			paimon_arena_release(&arena, pool_put, pool);
			CHECK_EQ(pool->nfree, POOL_CHUNKS);
			CHECK_EQ(state.nchunks, 0);
			continue;
		}
		CHECK(state.nchunks >= nchunks);
		nfree = pool->nfree;
		if (unit_below(3) == 0)
			continue;			/* reserved and not used: the next reservation covers it */
		while (total > 0)
		{
			uint32_t	size = unit_below(2) ? largest : 1 + (uint32_t) unit_below(largest);
			uint32_t	rounded = (size + 7) & ~UINT32_C(7);

			if (rounded > total)
				size = rounded = (uint32_t) total;
			CHECK(paimon_arena_alloc(&arena, size) != PAIMON_NO_REF);
			total -= rounded;
		}
		CHECK_EQ(pool->nfree, nfree);
	}
	CHECK(!paimon_arena_reserve(&arena, 8, PAIMON_CHUNK_USABLE + 1));
	paimon_arena_release(&arena, pool_put, pool);
	CHECK_EQ(pool->nfree, POOL_CHUNKS);
}

int
main(int argc, char **argv)
{
	UnitArena	mem;
	PaimonAllocator alloc = unit_arena_init(&mem);
	PaimonArenaState state;
	PaimonArena arena;
	PaimonArena reader;
	Pool		pool;

	unit_begin("test_arena", argc, argv);
	pool_init(&pool);

	/* shared: fill the pool up, give it back, again */
	for (int round = 0; round < 3; round++)
	{
		paimon_arena_state_init(&state);
		paimon_arena_attach(&arena, &state, pool.base, pool_get, &pool);
		check_pieces(&arena, MAX_PIECES);
		CHECK_EQ(pool.nfree, 0);
		CHECK_EQ(state.nchunks, POOL_CHUNKS);
		CHECK_EQ(paimon_arena_alloc(&arena, PAIMON_CHUNK_USABLE + 1), PAIMON_NO_REF);
		paimon_arena_release(&arena, pool_put, &pool);
		CHECK_EQ(pool.nfree, POOL_CHUNKS);
	}
	check_reserve(&pool);

	/* nothing is something, also at the very end of a chunk */
	paimon_arena_attach(&arena, &state, pool.base, pool_get, &pool);
	CHECK(paimon_arena_alloc(&arena, PAIMON_CHUNK_USABLE) != PAIMON_NO_REF);
	CHECK_EQ(paimon_arena_alloc(&arena, 0) % (PAIMON_CHUNK_SIZE / 8), PAIMON_CHUNK_HEADER / 8);
	CHECK_EQ(state.nchunks, 2);
	paimon_arena_release(&arena, pool_put, &pool);

	/* a reader's handle cannot take chunks */
	paimon_arena_attach(&reader, &state, pool.base, NULL, NULL);
	CHECK_EQ(paimon_arena_alloc(&reader, 8), PAIMON_NO_REF);
	CHECK_EQ(state.first, PAIMON_NO_CHUNK);
	free(pool.base);

	/* private */
	paimon_arena_init_private(&arena, &state, &alloc);
	check_pieces(&arena, MAX_PIECES);
	CHECK(state.nchunks > 50);
	mem.fail_after = 0;
	CHECK(!paimon_arena_reserve(&arena, 1000000, 1000));
	CHECK_EQ(paimon_arena_alloc(&arena, PAIMON_CHUNK_USABLE), PAIMON_NO_REF);
	mem.fail_after = -1;
	CHECK(paimon_arena_alloc(&arena, PAIMON_CHUNK_USABLE) != PAIMON_NO_REF);
	unit_arena_reset(&mem);
	return unit_end();
}
