/*-------------------------------------------------------------------------
 *
 * memtable_pool.c
 *	  The pool of 64 kB chunks in shared memory that memtables are made of.
 *
 * A fixed array, aligned to cache lines, and a free list threaded through an array of its own (never through the
 * chunks: whoever releases an arena still reads their links).  One spinlock; taking or giving a chunk is a handful
 * of instructions.  Who gets room when the pool is empty is decided in memtable_drop.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/shmem.h"
#include "utils/guc.h"

#include "memtable/memtable_internal.h"

typedef struct Pool
{
	slock_t          mutex;
	uint32           nchunks;
	uint32           first_free; /* PAIMON_NO_CHUNK: none */
	pg_atomic_uint32 nfree;      /* written under mutex, read by anybody */
	uint32           next[FLEXIBLE_ARRAY_MEMBER];
} Pool;

static int    memtable_memory = 256; /* MB */
static Pool  *pool = NULL;
static uint8 *pool_chunks = NULL;

/* GUC */
void
paimon_pool_init(void)
{
	DefineCustomIntVariable(
		"paimon.memtable_memory", "Sets the shared memory for memtables of all paimon tables.",
		"Rows of the delta log that are not yet in files are kept sorted here. When it is full, tables work on, "
		"but readers must sort the rest of the log for themselves.",
		&memtable_memory, 256, 1, (int) (PAIMON_CHUNK_MAX_COUNT / 16), PGC_POSTMASTER, GUC_UNIT_MB, NULL, NULL, NULL);
}

static uint32
configured_chunks(void)
{
	return (uint32) memtable_memory * (1024 * 1024 / PAIMON_CHUNK_SIZE);
}

static Size
control_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(Pool, next), mul_size(configured_chunks(), sizeof(uint32))));
}

Size
paimon_pool_shmem_size(void)
{
	Size size = add_size(control_size(), mul_size(configured_chunks(), PAIMON_CHUNK_SIZE));

	return add_size(size, PG_CACHE_LINE_SIZE);
}

/* Called with AddinShmemInitLock held. */
void
paimon_pool_shmem_init(void)
{
	bool found;

	pool = ShmemInitStruct("paimon memtable pool", paimon_pool_shmem_size(), &found);
	pool_chunks = (uint8 *) CACHELINEALIGN((char *) pool + control_size());
	if (found)
		return;
	SpinLockInit(&pool->mutex);
	pool->nchunks = configured_chunks();
	pool->first_free = 0;
	pg_atomic_init_u32(&pool->nfree, pool->nchunks);
	for (uint32 i = 0; i < pool->nchunks; i++)
		pool->next[i] = i + 1 < pool->nchunks ? i + 1 : PAIMON_NO_CHUNK;
}

uint8 *
paimon_pool_base(void)
{
	return pool_chunks;
}

/* Takes a chunk; false if none is free.  Never throws. */
bool
paimon_pool_get(void *arg, uint32 *index)
{
	uint32 got;

	SpinLockAcquire(&pool->mutex);
	got = pool->first_free;
	if (got != PAIMON_NO_CHUNK)
	{
		pool->first_free = pool->next[got];
		pg_atomic_write_u32(&pool->nfree, pg_atomic_read_u32(&pool->nfree) - 1);
	}
	SpinLockRelease(&pool->mutex);
	*index = got;
	return got != PAIMON_NO_CHUNK;
}

/* Gives a chunk back.  Never throws. */
void
paimon_pool_put(void *arg, uint32 index)
{
	Assert(index < pool->nchunks);
	SpinLockAcquire(&pool->mutex);
	pool->next[index] = pool->first_free;
	pool->first_free = index;
	pg_atomic_write_u32(&pool->nfree, pg_atomic_read_u32(&pool->nfree) + 1);
	SpinLockRelease(&pool->mutex);
}

uint32
paimon_pool_free_chunks(void)
{
	return pg_atomic_read_u32(&pool->nfree);
}

uint32
paimon_pool_chunks(void)
{
	return pool->nchunks;
}

/* Bytes of the pool in use, and its size. */
Size
paimon_memtable_pool_used(void)
{
	return (Size) (pool->nchunks - paimon_pool_free_chunks()) * PAIMON_CHUNK_SIZE;
}

Size
paimon_memtable_pool_size(void)
{
	return (Size) pool->nchunks * PAIMON_CHUNK_SIZE;
}
