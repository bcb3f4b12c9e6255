/*-------------------------------------------------------------------------
 *
 * test_skiplist.c
 *	  Skip list against a sorted array; limits; exhaustion.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_skiplist.h"
#include "unit.h"

#define POOL_CHUNKS 64
#define MAX_RECORDS 3000
#define MAX_KEY 24

/* The model: all records in the list's order. */
typedef struct Record
{
	uint8_t		key[MAX_KEY];
	uint32_t	key_len;
	uint64_t	pos;
	uint32_t	batch;
	uint8_t		kind;
	bool		external;
	uint8_t		payload[64];
	uint32_t	payload_len;
} Record;

static Record model[MAX_RECORDS];
static uint32_t nmodel;

typedef struct Pool
{
	uint8_t    *base;
	uint32_t	next;
	uint32_t	limit;
} Pool;

static bool
pool_get(void *arg, uint32_t *index)
{
	Pool	   *pool = arg;

	if (pool->next >= pool->limit)
		return false;
	*index = pool->limit - 1 - pool->next++;
	return true;
}

static int
cmp_key(const Record *r, const uint8_t *key, uint32_t len)
{
	return paimon_bytes_cmp(r->key, r->key_len, key, len);
}

/* Index in the model of the first record at or behind (key, pos). */
static uint32_t
model_seek(const uint8_t *key, uint32_t len, uint64_t pos)
{
	uint32_t	i = 0;

	while (i < nmodel)
	{
		int			c = cmp_key(&model[i], key, len);

		if (c > 0 || (c == 0 && model[i].pos <= pos))
			break;
		i++;
	}
	return i;
}

static void
make_key(uint8_t *key, uint32_t *len)
{
	/* shared prefixes, zero bytes, lengths around that of the prefix */
	*len = (uint32_t) unit_below(unit_below(2) ? 4 : MAX_KEY);
	for (uint32_t i = 0; i < *len; i++)
		key[i] = unit_below(3) ? 0 : (uint8_t) unit_below(3);
}

static void
make_record(Record *r, uint64_t pos)
{
	make_key(r->key, &r->key_len);
	r->pos = pos;
	r->batch = (uint32_t) unit_rand();
	r->kind = (uint8_t) unit_below(6);
	r->external = unit_below(8) == 0;
	r->payload_len = (uint32_t) unit_below(sizeof(r->payload));
	unit_fill(r->payload, r->payload_len);
}

static PaimonResult
insert(PaimonSkipList *list, PaimonArena *arena, uint64_t *rng, const Record *r, const PaimonSkipPlace *place)
{
	PaimonSkipEntry e = {r->key, r->key_len, r->pos, r->batch, r->kind, r->external,
	r->external ? NULL : r->payload, r->payload_len};

	return paimon_skip_insert(list, arena, rng, &e, place);
}

static void
model_insert(const Record *r)
{
	uint32_t	at = model_seek(r->key, r->key_len, r->pos);

	memmove(&model[at + 1], &model[at], (nmodel - at) * sizeof(Record));
	model[at] = *r;
	nmodel++;
}

/* Is the iterator on record i of the model (behind the last: on none)? */
static void
check_at(const PaimonSkipIter *it, uint32_t i)
{
	const PaimonSkipNode *n;
	const Record *r = &model[i];

	CHECK_EQ(paimon_skip_valid(it), i < nmodel);
	if (!paimon_skip_valid(it) || i >= nmodel)
		return;
	n = paimon_skip_node(it);
	CHECK_EQ(n->key_len, r->key_len);
	CHECK(memcmp(paimon_skip_key(n), r->key, r->key_len) == 0);
	CHECK(n->pos == r->pos && n->batch == r->batch && n->kind == r->kind && n->payload_len == r->payload_len);
	CHECK(n->prefix == paimon_key_prefix(r->key, r->key_len));
	if (r->external)
		CHECK(paimon_skip_payload(n) == NULL);
	else
	{
		CHECK_EQ((uintptr_t) paimon_skip_payload(n) % 8, 0);
		CHECK(memcmp(paimon_skip_payload(n), r->payload, r->payload_len) == 0);
	}
}

static void
check_all(const PaimonSkipList *list, const PaimonArena *arena)
{
	PaimonSkipIter it;
	uint32_t	i = 0;

	paimon_skip_iter_init(&it, list, arena);
	CHECK(!paimon_skip_valid(&it));
	for (paimon_skip_first(&it); paimon_skip_valid(&it); paimon_skip_next(&it))
		check_at(&it, i++);
	CHECK_EQ(i, nmodel);
	for (paimon_skip_last(&it); paimon_skip_valid(&it); paimon_skip_prev(&it))
		check_at(&it, --i);
	CHECK_EQ(i, 0);

	for (int round = 0; round < 2000; round++)
	{
		uint8_t		key[MAX_KEY];
		uint32_t	len;
		uint64_t	pos = unit_below(3) ? unit_below(MAX_RECORDS) : (unit_below(2) ? UINT64_MAX : 0);
		uint32_t	at;

		make_key(key, &len);
		at = model_seek(key, len, pos);
		CHECK_EQ(paimon_skip_seek(&it, key, len, pos), at < nmodel);
		check_at(&it, at);

		/* below the key: the one in front of its newest record; up to it: in front of the key with a zero byte appended */
		at = 0;
		while (at < nmodel && cmp_key(&model[at], key, len) < 0)
			at++;
		CHECK_EQ(paimon_skip_seek_last(&it, key, len, false), at > 0);
		check_at(&it, at > 0 ? at - 1 : nmodel);
		while (at < nmodel && cmp_key(&model[at], key, len) == 0)
			at++;
		CHECK_EQ(paimon_skip_seek_last(&it, key, len, true), at > 0);
		check_at(&it, at > 0 ? at - 1 : nmodel);
	}
	CHECK_EQ(list->count, nmodel);
}

/* A record for position i: now and then an old or even the same position, or the same key. */
static void
next_record(Record *r, uint32_t i)
{
	make_record(r, unit_below(4) ? i : unit_below(i + 1));
	if (nmodel > 0 && unit_below(5) == 0)
	{
		const Record *old = &model[unit_below(nmodel)];

		r->key_len = old->key_len;
		memcpy(r->key, old->key, old->key_len);
		if (unit_below(3) == 0)
			r->pos = old->pos;
	}
}

/* Some inserts look for themselves, others are given places that were found before several other inserts. */
static void
check_list(PaimonArena *arena, uint32_t count)
{
	PaimonSkipList list;
	uint64_t	rng = unit_rand() | 1;

	nmodel = 0;
	paimon_skip_init(&list);
	check_all(&list, arena);
	while (nmodel < count)
	{
		Record		records[PAIMON_SKIP_PLACES_MAX + 1];
		PaimonSkipPlaceKey keys[PAIMON_SKIP_PLACES_MAX + 1];
		PaimonSkipPlace places[PAIMON_SKIP_PLACES_MAX];
		int			n = 1 + (int) unit_below(PAIMON_SKIP_PLACES_MAX + 1);

		for (int i = 0; i < n; i++)
		{
			next_record(&records[i], nmodel + i);
			keys[i] = (PaimonSkipPlaceKey) {records[i].key, records[i].key_len};
		}
		paimon_skip_find_places(&list, arena, keys, n, places);
		for (int i = 0; i < n && nmodel < count; i++)
		{
			bool		placed = i < PAIMON_SKIP_PLACES_MAX && unit_below(5) != 0;

			CHECK_EQ(insert(&list, arena, &rng, &records[i], placed ? &places[i] : NULL), PAIMON_OK);
			model_insert(&records[i]);
			if (nmodel % 1000 == 100)
				check_all(&list, arena);
		}
	}
	check_all(&list, arena);
	CHECK(count < 1000 || list.height >= 3);
	CHECK(list.height >= 1 && list.height <= PAIMON_SKIP_MAX_HEIGHT);
	CHECK(list.bytes >= (uint64_t) count * offsetof(PaimonSkipNode, next));
}

static int
by_key(const void *a, const void *b)
{
	const Record *x = a;
	const Record *y = b;
	int			c = paimon_bytes_cmp(x->key, x->key_len, y->key, y->key_len);

	return c != 0 ? c : (x->pos > y->pos) - (x->pos < y->pos);
}

/* Stretches in the order of keys, with a place that moves on, between single inserts; sometimes it moves on and nothing is inserted. */
static void
check_sorted(PaimonArena *arena, uint32_t count)
{
	PaimonSkipList list;
	uint64_t	rng = unit_rand() | 1;
	static Record records[1000];

	nmodel = 0;
	paimon_skip_init(&list);
	while (nmodel < count)
	{
		int			n = 1 + (int) unit_below(unit_below(2) == 0 ? 10 : 999);
		PaimonSkipPlace place;

		for (int i = 0; i < n; i++)
			next_record(&records[i], nmodel + i);
		qsort(records, n, sizeof(Record), by_key);
		paimon_skip_start_place(&place);
		for (int i = 0; i < n && nmodel < count; i++)
		{
			if (unit_below(20) == 0)
				continue;
			paimon_skip_move_place(&list, arena, records[i].key, records[i].key_len, &place);
			if (unit_below(20) == 0)
				continue;
			CHECK_EQ(insert(&list, arena, &rng, &records[i], &place), PAIMON_OK);
			model_insert(&records[i]);
		}
		check_all(&list, arena);
		next_record(&records[0], nmodel);
		if (nmodel < count)
		{
			CHECK_EQ(insert(&list, arena, &rng, &records[0], NULL), PAIMON_OK);
			model_insert(&records[0]);
		}
	}
	check_all(&list, arena);
}

/* Largest nodes, too large ones, no memory. */
static void
check_limits(Pool *pool)
{
	static uint8_t big[UINT16_MAX + 1];
	PaimonArenaState state;
	PaimonArena arena;
	PaimonSkipList list;
	PaimonSkipIter it;
	PaimonSkipEntry e = {(const uint8_t *) "k", 1, 1, 0, 0, false, big, 0};
	uint64_t	rng = 1;
	uint32_t	fits = 0;
	uint32_t	before;

	pool->next = 0;
	pool->limit = 3;
	unit_fill(big, sizeof(big));
	paimon_arena_state_init(&state);
	paimon_arena_attach(&arena, &state, pool->base, pool_get, pool);
	paimon_skip_init(&list);

	while (paimon_skip_node_size(1, e.payload_len + 1, false) <= PAIMON_SKIP_MAX_NODE)
		e.payload_len++;
	e.payload_len++;
	CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_NO_SPACE);
	e.payload_len--;

	/* reserving what node_size says is enough for any height */
	while (paimon_arena_reserve(&arena, paimon_skip_node_size(1, e.payload_len, false),
								(uint32_t) paimon_skip_node_size(1, e.payload_len, false)))
	{
		CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_OK);
		e.pos++;
		fits++;
	}
	CHECK_EQ(fits, 3);
	before = list.count;
	CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_NO_MEMORY);
	CHECK_EQ(list.count, before);
	e.external = true;
	e.payload = NULL;
	e.payload_len = UINT32_MAX;
	CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_OK);
	e.key = big;
	e.key_len = UINT16_MAX + 1;
	CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_NO_SPACE);

	paimon_skip_iter_init(&it, &list, &arena);
	CHECK(paimon_skip_first(&it));
	CHECK(paimon_skip_node(&it)->payload_len == UINT32_MAX && paimon_skip_node(&it)->flags == PAIMON_SKIP_EXTERNAL);
	for (int i = 0; i < 3; i++)
	{
		CHECK(paimon_skip_next(&it));
		CHECK(memcmp(paimon_skip_payload(paimon_skip_node(&it)), big, paimon_skip_node(&it)->payload_len) == 0);
	}
	CHECK(!paimon_skip_next(&it));
}

/* About a quarter of the nodes of a level reach the next. */
static void
check_heights(const PaimonAllocator *alloc)
{
	PaimonArenaState state;
	PaimonArena arena;
	PaimonSkipList list;
	PaimonSkipIter it;
	uint64_t	rng = 0;		/* even this seed */
	uint32_t	at_least[PAIMON_SKIP_MAX_HEIGHT + 1] = {0};

	paimon_arena_init_private(&arena, &state, alloc);
	paimon_skip_init(&list);
	for (uint32_t i = 0; i < 100000; i++)
	{
		uint8_t		key[4];
		PaimonSkipEntry e = {key, 4, i, 0, 0, false, NULL, 0};

		paimon_put_u32(key, (uint32_t) unit_rand());
		CHECK_EQ(paimon_skip_insert(&list, &arena, &rng, &e, NULL), PAIMON_OK);
	}
	paimon_skip_iter_init(&it, &list, &arena);
	for (paimon_skip_first(&it); paimon_skip_valid(&it); paimon_skip_next(&it))
		for (int h = 1; h <= paimon_skip_node(&it)->height; h++)
			at_least[h]++;
	CHECK_EQ(at_least[1], 100000);
	for (int h = 1; h < 5; h++)
		CHECK_MSG(at_least[h + 1] * 3 < at_least[h] && at_least[h + 1] * 6 > at_least[h], "height %d: %u of %u", h + 1,
				  at_least[h + 1], at_least[h]);
}

int
main(int argc, char **argv)
{
	UnitArena	mem;
	PaimonAllocator alloc = unit_arena_init(&mem);
	PaimonArenaState state;
	PaimonArena arena;
	Pool		pool = {NULL, 0, POOL_CHUNKS};

	unit_begin("test_skiplist", argc, argv);
	pool.base = aligned_alloc(64, (size_t) POOL_CHUNKS * PAIMON_CHUNK_SIZE);
	memset(pool.base, 0xaa, (size_t) POOL_CHUNKS * PAIMON_CHUNK_SIZE);

	paimon_arena_init_private(&arena, &state, &alloc);
	check_list(&arena, MAX_RECORDS);
	check_list(&arena, 10 + (uint32_t) unit_below(100));	/* a second list in the same arena */
	check_sorted(&arena, MAX_RECORDS);

	paimon_arena_state_init(&state);
	paimon_arena_attach(&arena, &state, pool.base, pool_get, &pool);
	check_list(&arena, MAX_RECORDS);
	check_limits(&pool);
	check_heights(&alloc);

	free(pool.base);
	unit_arena_reset(&mem);
	return unit_end();
}
