/*-------------------------------------------------------------------------
 *
 * core_skiplist.c
 *	  Skip list with one writer at a time and readers without locks.
 *
 * The rules that make it right (README.md argues them): a node is complete
 * before the first link to it is stored with release; readers load links with
 * acquire; links only ever change from one node to a new one in front of it;
 * nothing is unlinked while a reader may be there.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_skiplist.h"

_Static_assert(PAIMON_SKIP_MAX_NODE <= PAIMON_CHUNK_USABLE, "a node must fit a chunk");
_Static_assert(offsetof(PaimonSkipNode, next) == 32, "node layout");

/* What a search looks for: a key with its prefix, and a pos. */
typedef struct SearchKey
{
	const uint8_t *key;
	uint32_t	len;
	uint64_t	prefix;
	uint64_t	pos;
} SearchKey;

/* The links of a node, or of the head for PAIMON_NO_REF. */
static const PaimonRef *
links_of(const PaimonSkipList *list, const PaimonArena *arena, PaimonRef ref)
{
	if (ref == PAIMON_NO_REF)
		return list->head;
	return ((const PaimonSkipNode *) paimon_arena_ptr(arena, ref))->next;
}

static PaimonRef
load_link(const PaimonRef *link)
{
	return __atomic_load_n(link, __ATOMIC_ACQUIRE);
}

/*
 * A search that stops on this level goes on one level down from the same node.  In a large list each node is a miss of the
 * processor's caches, so the node met first there is asked for while this level's is still on its way.
 */
static inline void
prefetch_below(const PaimonArena *arena, const PaimonRef *links, uint32_t level)
{
	PaimonRef	below;

	if (level == 0)
		return;
	below = __atomic_load_n(&links[level - 1], __ATOMIC_RELAXED);
	if (below != PAIMON_NO_REF)
		__builtin_prefetch(paimon_arena_ptr(arena, below));
}

/* Three-way comparison of a node's key with the one searched. */
static int
compare_key(const PaimonSkipNode *n, const SearchKey *s)
{
	if (n->prefix != s->prefix)
		return n->prefix < s->prefix ? -1 : 1;

	/* both longer than the prefix: it need not be compared again */
	if (n->key_len > 8 && s->len > 8)
		return paimon_bytes_cmp(paimon_skip_key(n) + 8, n->key_len - 8u, s->key + 8, s->len - 8);
	return n->key_len < s->len ? -1 : (n->key_len > s->len ? 1 : 0);
}

/* Does the node come before (key, pos)?  Larger positions come first. */
static bool
node_before(const PaimonSkipNode *n, const SearchKey *s)
{
	int			c = compare_key(n, s);

	return c != 0 ? c < 0 : n->pos > s->pos;
}

/* Does the node have a key not above the one searched? */
static bool
node_not_above(const PaimonSkipNode *n, const SearchKey *s)
{
	return compare_key(n, s) <= 0;
}

/*
 * Last node for which `is_before` holds (it must hold for a prefix of the list), PAIMON_NO_REF for the head.  *after is
 * the node that followed it.  prev[], if not NULL, gets the same for each level below the list's height.
 */
static inline PaimonRef
search(const PaimonSkipList *list, const PaimonArena *arena, const SearchKey *s,
	   bool (*is_before) (const PaimonSkipNode *, const SearchKey *), PaimonRef *prev, PaimonRef *after)
{
	uint32_t	level = __atomic_load_n(&list->height, __ATOMIC_RELAXED) - 1;
	PaimonRef	at = PAIMON_NO_REF;
	PaimonRef	known_not_before = PAIMON_NO_REF;
	const PaimonRef *links = list->head;

	for (;;)
	{
		PaimonRef	next = load_link(&links[level]);
		const PaimonSkipNode *n = next == PAIMON_NO_REF ? NULL : paimon_arena_ptr(arena, next);

		prefetch_below(arena, links, level);

		/* the node that stopped the level above needs no second comparison */
		if (n != NULL && next != known_not_before && is_before(n, s))
		{
			at = next;
			links = n->next;
			continue;
		}
		if (prev != NULL)
			prev[level] = at;
		if (level == 0)
		{
			*after = next;
			return at;
		}
		known_not_before = next;
		level--;
	}
}

void
paimon_skip_init(PaimonSkipList *list)
{
	memset(list, 0, sizeof(*list));
	list->height = 1;
}

uint64_t
paimon_skip_node_size(uint32_t key_len, uint32_t payload_len, bool external)
{
	uint64_t	size = offsetof(PaimonSkipNode, next) + PAIMON_SKIP_MAX_HEIGHT * sizeof(PaimonRef);

	return ((size + key_len + 7) & ~UINT64_C(7)) + (external ? 0 : ((uint64_t) payload_len + 7) & ~UINT64_C(7));
}

/* Height of a new node: h with probability proportional to branching^-h. */
static uint32_t
random_height(uint64_t *rng)
{
	uint64_t	x = *rng != 0 ? *rng : UINT64_C(0x9e3779b97f4a7c15);	/* 0 would stay 0 */
	uint32_t	height = 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*rng = x;

	/* the upper bits of a xorshift state, two for each level */
	x >>= 64 - 2 * PAIMON_SKIP_MAX_HEIGHT;
	for (; height < PAIMON_SKIP_MAX_HEIGHT && x % PAIMON_SKIP_BRANCHING == 0; x /= PAIMON_SKIP_BRANCHING)
		height++;
	return height;
}

/* Allocates and fills a node; its links are not set. */
static PaimonSkipNode *
make_node(PaimonArena *arena, const PaimonSkipEntry *e, uint64_t prefix, uint32_t height, PaimonRef *ref, uint32_t *size)
{
	size_t		payload_off = paimon_skip_payload_offset(height, e->key_len);
	PaimonSkipNode *n;

	*size = (uint32_t) payload_off + (e->external ? 0 : e->payload_len);
	*ref = paimon_arena_alloc(arena, *size);
	if (*ref == PAIMON_NO_REF)
		return NULL;
	n = paimon_arena_ptr(arena, *ref);
	n->pos = e->pos;
	n->prefix = prefix;
	n->batch = e->batch;
	n->payload_len = e->payload_len;
	n->key_len = (uint16_t) e->key_len;
	n->kind = e->kind;
	n->flags = e->external ? PAIMON_SKIP_EXTERNAL : 0;
	n->height = (uint8_t) height;
	memset(n->unused, 0, sizeof(n->unused));
	if (e->key_len > 0)
		memcpy(&n->next[height], e->key, e->key_len);
	if (!e->external && e->payload_len > 0)
		memcpy((uint8_t *) n + payload_off, e->payload, e->payload_len);
	return n;
}

/* As search with node_before, for the levels of a node of some height only, from a place found earlier on. */
static void
search_from(const PaimonSkipList *list, const PaimonArena *arena, const SearchKey *s, const PaimonSkipPlace *place, uint32_t height,
			PaimonRef *prev)
{
	for (uint32_t level = 0; level < height; level++)
	{
		PaimonRef	at = place->before[level];

		for (;;)
		{
			PaimonRef	next = load_link(&links_of(list, arena, at)[level]);

			if (next == PAIMON_NO_REF || !node_before(paimon_arena_ptr(arena, next), s))
				break;
			at = next;
		}
		prev[level] = at;
	}
}

PaimonResult
paimon_skip_insert(PaimonSkipList *list, PaimonArena *arena, uint64_t *rng, const PaimonSkipEntry *e, const PaimonSkipPlace *place)
{
	SearchKey	s = {e->key, e->key_len, paimon_key_prefix(e->key, e->key_len), e->pos};
	PaimonRef	prev[PAIMON_SKIP_MAX_HEIGHT];
	PaimonRef	after;
	PaimonRef	ref;
	PaimonSkipNode *n;
	uint32_t	size;
	uint32_t	height;
	uint32_t	list_height = list->height;

	if (e->key_len > UINT16_MAX || paimon_skip_node_size(e->key_len, e->payload_len, e->external) > PAIMON_SKIP_MAX_NODE)
		return PAIMON_NO_SPACE;
	height = random_height(rng);
	n = make_node(arena, e, s.prefix, height, &ref, &size);
	if (n == NULL)
		return PAIMON_NO_MEMORY;

	if (place != NULL)
		search_from(list, arena, &s, place, height, prev);
	else
		search(list, arena, &s, node_before, prev, &after);
	if (height > list_height)
	{
		for (uint32_t level = list_height; level < height; level++)
			prev[level] = PAIMON_NO_REF;

		/* a reader that sees the new height before the new links finds empty levels and goes down */
		__atomic_store_n(&list->height, height, __ATOMIC_RELAXED);
	}

	/*
	 * All links out of the node first, since a reader that reaches it on one level goes down in it; then bottom up the links to
	 * it.  Only we change links, so plain reads do for what is there now.
	 */
	for (uint32_t level = 0; level < height; level++)
		n->next[level] = links_of(list, arena, prev[level])[level];
	for (uint32_t level = 0; level < height; level++)
		__atomic_store_n((PaimonRef *) &links_of(list, arena, prev[level])[level], ref, __ATOMIC_RELEASE);

	__atomic_store_n(&list->count, list->count + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&list->bytes, list->bytes + ((size + 7) & ~UINT32_C(7)), __ATOMIC_RELAXED);
	return PAIMON_OK;
}

void
paimon_skip_start_place(PaimonSkipPlace *place)
{
	for (int level = 0; level < PAIMON_SKIP_MAX_HEIGHT; level++)
		place->before[level] = PAIMON_NO_REF;
}

void
paimon_skip_move_place(const PaimonSkipList *list, const PaimonArena *arena, const uint8_t *key, uint32_t len, PaimonSkipPlace *place)
{
	SearchKey	s = {key, len, paimon_key_prefix(key, len), 0};
	uint32_t	height = __atomic_load_n(&list->height, __ATOMIC_RELAXED);
	uint32_t	level = 0;
	PaimonRef	at;

	for (; level < height; level++)
	{
		PaimonRef	next = load_link(&links_of(list, arena, place->before[level])[level]);

		if (next == PAIMON_NO_REF || compare_key(paimon_arena_ptr(arena, next), &s) >= 0)
			break;
	}
	if (level == 0)
		return;
	at = place->before[level - 1];
	while (level-- > 0)
	{
		for (;;)
		{
			PaimonRef	next = load_link(&links_of(list, arena, at)[level]);

			if (next == PAIMON_NO_REF || compare_key(paimon_arena_ptr(arena, next), &s) >= 0)
				break;
			at = next;
		}
		place->before[level] = at;
	}
}

/* One of the walks of paimon_skip_find_places: it has asked for the node behind links[level]. */
typedef struct Walk
{
	const PaimonRef *links;
	PaimonRef	at;				/* whose links these are */
	uint32_t	level;
	SearchKey	want;			/* its pos is not looked at: the insert goes on from in front of all records of the key */
	PaimonRef  *before;			/* of its place */
	bool		done;
} Walk;

static inline void
walk_down(Walk *w)
{
	w->before[w->level] = w->at;
	if (w->level == 0)
		w->done = true;
	else
		w->level--;
}

/* Follows links down from w->level to the first that leads somewhere, and asks for that node. */
static void
walk_ask(Walk *w, const PaimonArena *arena)
{
	while (!w->done)
	{
		PaimonRef	next = load_link(&w->links[w->level]);

		if (next != PAIMON_NO_REF)
		{
			__builtin_prefetch(paimon_arena_ptr(arena, next));
			return;
		}
		walk_down(w);
	}
}

/* Looks at the node asked for: on to it or down. */
static void
walk_step(Walk *w, const PaimonArena *arena)
{
	PaimonRef	next = load_link(&w->links[w->level]);
	const PaimonSkipNode *n = paimon_arena_ptr(arena, next);

	if (compare_key(n, &w->want) < 0)
	{
		w->links = n->next;
		w->at = next;
	}
	else
		walk_down(w);
	walk_ask(w, arena);
}

void
paimon_skip_find_places(const PaimonSkipList *list, const PaimonArena *arena, const PaimonSkipPlaceKey *keys, int n,
						PaimonSkipPlace *places)
{
	Walk		walks[PAIMON_SKIP_PLACES_MAX];
	uint32_t	top = __atomic_load_n(&list->height, __ATOMIC_RELAXED) - 1;
	bool		any = true;

	if (n > PAIMON_SKIP_PLACES_MAX)
		n = PAIMON_SKIP_PLACES_MAX;
	for (int i = 0; i < n; i++)
	{
		for (uint32_t level = top + 1; level < PAIMON_SKIP_MAX_HEIGHT; level++)
			places[i].before[level] = PAIMON_NO_REF;
		walks[i] = (Walk) {list->head, PAIMON_NO_REF, top,
			{keys[i].key, keys[i].len, paimon_key_prefix(keys[i].key, keys[i].len), 0}, places[i].before, false};
		walk_ask(&walks[i], arena);
	}
	while (any)
	{
		any = false;
		for (int i = 0; i < n; i++)
		{
			if (!walks[i].done)
			{
				walk_step(&walks[i], arena);
				any |= !walks[i].done;
			}
		}
	}
}

void
paimon_skip_iter_init(PaimonSkipIter *it, const PaimonSkipList *list, const PaimonArena *arena)
{
	it->list = list;
	it->arena = arena;
	it->ref = PAIMON_NO_REF;
}

bool
paimon_skip_first(PaimonSkipIter *it)
{
	it->ref = load_link(&it->list->head[0]);
	return it->ref != PAIMON_NO_REF;
}

bool
paimon_skip_next(PaimonSkipIter *it)
{
	it->ref = load_link(&paimon_skip_node(it)->next[0]);
	return it->ref != PAIMON_NO_REF;
}

/* Every node comes before the end. */
static bool
node_exists(const PaimonSkipNode *n, const SearchKey *s)
{
	(void) n;
	(void) s;
	return true;
}

bool
paimon_skip_last(PaimonSkipIter *it)
{
	PaimonRef	after;

	it->ref = search(it->list, it->arena, NULL, node_exists, NULL, &after);
	return it->ref != PAIMON_NO_REF;
}

bool
paimon_skip_seek(PaimonSkipIter *it, const uint8_t *key, uint32_t len, uint64_t pos)
{
	SearchKey	s = {key, len, paimon_key_prefix(key, len), pos};

	search(it->list, it->arena, &s, node_before, NULL, &it->ref);
	return it->ref != PAIMON_NO_REF;
}

bool
paimon_skip_seek_last(PaimonSkipIter *it, const uint8_t *key, uint32_t len, bool inclusive)
{
	/* no position is above the largest, so with it nothing of the key itself comes before */
	SearchKey	s = {key, len, paimon_key_prefix(key, len), UINT64_MAX};
	PaimonRef	after;

	it->ref = search(it->list, it->arena, &s, inclusive ? node_not_above : node_before, NULL, &after);
	return it->ref != PAIMON_NO_REF;
}

bool
paimon_skip_prev(PaimonSkipIter *it)
{
	const PaimonSkipNode *n = paimon_skip_node(it);
	SearchKey	s = {paimon_skip_key(n), n->key_len, n->prefix, n->pos};
	PaimonRef	next;
	PaimonRef	at = search(it->list, it->arena, &s, node_before, NULL, &next);

	/* records with the same key and pos may stand between; ours stays in the list, so this ends at it */
	while (next != it->ref)
	{
		at = next;
		next = load_link(&links_of(it->list, it->arena, at)[0]);
	}
	it->ref = at;
	return it->ref != PAIMON_NO_REF;
}
