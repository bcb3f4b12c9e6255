/*-------------------------------------------------------------------------
 *
 * test_skiplist_mt.c
 *	  Skip list with writers that take turns and readers without locks.
 *
 * Each node's payload is a function of its key and position, so that a reader
 * that sees a node before it is complete notices.  Writers publish, after each
 * insert, how many records there are; a reader takes that number first, then
 * walks, and must find every record up to it, each exactly once and in order.
 * Run under ThreadSanitizer, which sees the races that this misses.
 *
 *-------------------------------------------------------------------------
 */
#include <pthread.h>

#include "core/core_skiplist.h"
#include "unit.h"

#define POOL_CHUNKS 256
#define NRECORDS 20000
#define NKEYS 3000
#define NWRITERS 2
#define NREADERS 3

typedef struct Shared
{
	uint8_t    *pool;
	uint32_t	next_chunk;		/* under the lock */
	PaimonArenaState state;
	PaimonSkipList list;
	pthread_mutex_t lock;		/* the writers' turn */
	uint64_t	next_pos;		/* under the lock */
	uint64_t	published;		/* positions below are in the list; stored with release */
} Shared;

static Shared shared;

typedef struct Thread
{
	pthread_t	id;
	uint64_t	seed;
	uint64_t	errors;
	uint64_t	rounds;
} Thread;

static bool
get_chunk(void *arg, uint32_t *index)
{
	(void) arg;
	if (shared.next_chunk >= POOL_CHUNKS)
		return false;
	*index = shared.next_chunk++;
	return true;
}

/* The record at a position: its key, and a word to recognise it by. */
static uint32_t
key_at(uint64_t pos)
{
	uint64_t	state = pos + unit_seed;

	return (uint32_t) (unit_rand_r(&state) % NKEYS);
}

static void
encode_key(uint32_t key, uint8_t *out)
{
	/* 12 bytes, equal in the first 8: comparisons go beyond the prefix */
	memset(out, 7, 8);
	out[8] = (uint8_t) (key >> 24);
	out[9] = (uint8_t) (key >> 16);
	out[10] = (uint8_t) (key >> 8);
	out[11] = (uint8_t) key;
}

static uint32_t
decode_key(const uint8_t *key)
{
	return (uint32_t) key[8] << 24 | (uint32_t) key[9] << 16 | (uint32_t) key[10] << 8 | key[11];
}

static uint64_t
word_of(uint32_t key, uint64_t pos)
{
	return (pos + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ key;
}

static void *
writer(void *arg)
{
	Thread	   *self = arg;
	PaimonArena arena;
	uint64_t	rng = self->seed | 1;
	bool		more = true;

	paimon_arena_attach(&arena, &shared.state, shared.pool, get_chunk, NULL);
	while (more)
	{
		uint8_t		keys[8][12];
		PaimonSkipPlaceKey place_keys[8];
		PaimonSkipPlace places[8];
		int			n;

		pthread_mutex_lock(&shared.lock);
		for (n = 0; n < 8 && (more = shared.next_pos + n < NRECORDS); n++)
		{
			encode_key(key_at(shared.next_pos + n), keys[n]);
			place_keys[n] = (PaimonSkipPlaceKey) {keys[n], sizeof(keys[n])};
		}
		paimon_skip_find_places(&shared.list, &arena, place_keys, n, places);
		for (int i = 0; i < n; i++)
		{
			uint64_t	pos = shared.next_pos++;
			uint64_t	payload[3];
			PaimonSkipEntry e = {keys[i], sizeof(keys[i]), pos, (uint32_t) pos, 0, false, payload, sizeof(payload)};

			payload[0] = payload[1] = payload[2] = word_of(key_at(pos), pos);
			if (paimon_skip_insert(&shared.list, &arena, &rng, &e, &places[i]) != PAIMON_OK)
				self->errors++;
			__atomic_store_n(&shared.published, pos + 1, __ATOMIC_RELEASE);
			self->rounds++;
		}
		pthread_mutex_unlock(&shared.lock);
	}
	return NULL;
}

/* A node must be complete and be the record its position says. */
static void
check_node(Thread *self, const PaimonSkipNode *n)
{
	uint32_t	key = decode_key(paimon_skip_key(n));
	uint64_t	payload[3];

	if (n->key_len != 12 || n->payload_len != sizeof(payload) || n->pos >= NRECORDS || key != key_at(n->pos))
	{
		self->errors++;
		return;
	}
	memcpy(payload, paimon_skip_payload(n), sizeof(payload));
	for (int i = 0; i < 3; i++)
		if (payload[i] != word_of(key, n->pos))
			self->errors++;
}

/* All of it, in one of the two directions. */
static void
walk(Thread *self, PaimonSkipIter *it, bool backward, uint8_t *seen)
{
	uint64_t	floor = __atomic_load_n(&shared.published, __ATOMIC_ACQUIRE);
	bool		any = false;
	uint32_t	last_key = 0;
	uint64_t	last_pos = 0;

	memset(seen, 0, NRECORDS);
	for (bool ok = backward ? paimon_skip_last(it) : paimon_skip_first(it); ok;
		 ok = backward ? paimon_skip_prev(it) : paimon_skip_next(it))
	{
		const PaimonSkipNode *n = paimon_skip_node(it);
		uint32_t	key = decode_key(paimon_skip_key(n));
		bool		in_order = key != last_key ? key > last_key : n->pos < last_pos;

		check_node(self, n);
		if (any && in_order == backward)
			self->errors++;
		if (n->pos < NRECORDS && seen[n->pos]++)
			self->errors++;
		any = true;
		last_key = key;
		last_pos = n->pos;
	}
	for (uint64_t pos = 0; pos < floor; pos++)
		if (!seen[pos])
			self->errors++;
}

/* The newest record of a published position's key is at least that new. */
static void
look_up(Thread *self, PaimonSkipIter *it, uint64_t *rng)
{
	uint64_t	floor = __atomic_load_n(&shared.published, __ATOMIC_ACQUIRE);
	uint64_t	pos;
	uint8_t		key[12];

	if (floor == 0)
		return;
	pos = unit_rand_r(rng) % floor;
	encode_key(key_at(pos), key);
	if (!paimon_skip_seek(it, key, sizeof(key), UINT64_MAX))
		self->errors++;
	else if (paimon_skip_node(it)->pos < pos || decode_key(paimon_skip_key(paimon_skip_node(it))) != key_at(pos))
		self->errors++;
	if (!paimon_skip_seek(it, key, sizeof(key), pos) || paimon_skip_node(it)->pos != pos)
		self->errors++;
	else
		check_node(self, paimon_skip_node(it));
	if (!paimon_skip_seek_last(it, key, sizeof(key), true) || paimon_skip_node(it)->pos > pos)
		self->errors++;
}

static void *
reader(void *arg)
{
	Thread	   *self = arg;
	PaimonArena arena;
	PaimonSkipIter it;
	uint64_t	rng = self->seed;
	uint8_t    *seen = malloc(NRECORDS);
	bool		last_round = false;

	paimon_arena_attach(&arena, NULL, shared.pool, NULL, NULL);
	paimon_skip_iter_init(&it, &shared.list, &arena);
	while (!last_round)
	{
		last_round = __atomic_load_n(&shared.published, __ATOMIC_ACQUIRE) == NRECORDS;
		if (self->rounds % 16 == 0)
			walk(self, &it, false, seen);
		if (self->rounds % 64 == 8)
			walk(self, &it, true, seen);
		for (int i = 0; i < 50; i++)
			look_up(self, &it, &rng);
		self->rounds++;
	}
	walk(self, &it, false, seen);
	walk(self, &it, true, seen);
	free(seen);
	return NULL;
}

int
main(int argc, char **argv)
{
	Thread		threads[NWRITERS + NREADERS];

	unit_begin("test_skiplist_mt", argc, argv);
	shared.pool = aligned_alloc(64, (size_t) POOL_CHUNKS * PAIMON_CHUNK_SIZE);
	paimon_arena_state_init(&shared.state);
	paimon_skip_init(&shared.list);
	pthread_mutex_init(&shared.lock, NULL);
	memset(threads, 0, sizeof(threads));
	for (int i = 0; i < NWRITERS + NREADERS; i++)
		threads[i].seed = unit_rand();
	for (int i = NWRITERS + NREADERS - 1; i >= 0; i--)
		CHECK_EQ(pthread_create(&threads[i].id, NULL, i < NWRITERS ? writer : reader, &threads[i]), 0);
	for (int i = 0; i < NWRITERS + NREADERS; i++)
	{
		CHECK_EQ(pthread_join(threads[i].id, NULL), 0);
		CHECK_MSG(threads[i].errors == 0, "thread %d: %" PRIu64 " errors", i, threads[i].errors);
		if (i >= NWRITERS)
			CHECK(threads[i].rounds > 0);
	}
	CHECK_EQ(shared.list.count, NRECORDS);
	free(shared.pool);
	return unit_end();
}
