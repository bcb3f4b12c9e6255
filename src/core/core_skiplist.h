/*-------------------------------------------------------------------------
 *
 * core_skiplist.h
 *	  Skip list for memtables: one writer at a time, readers without locks.
 *
 * Order: key ascending, then `pos` descending, so that the newest record of a
 * key comes first.  Records are only ever added.  A reader sees every record
 * whose insert ended before its seek began, and possibly some of those that
 * are added meanwhile; whoever needs an exact set filters by `pos`.  Why that
 * is right: README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_SKIPLIST_H
#define PAIMON_CORE_SKIPLIST_H

#include "core/core.h"
#include "core/core_arena.h"

#define PAIMON_SKIP_MAX_HEIGHT 12
#define PAIMON_SKIP_BRANCHING 4

/* Largest node, all included; a record that would be larger is inserted as `external`. */
#define PAIMON_SKIP_MAX_NODE 61440

#define PAIMON_SKIP_EXTERNAL 0x01	/* flag: the payload is not here */

/*
 * The list; may live in shared memory next to its arena's state.  Several lists may share one arena.  No pointers inside.
 */
typedef struct PaimonSkipList
{
	PaimonRef	head[PAIMON_SKIP_MAX_HEIGHT];	/* first node of each level; read with acquire */
	uint32_t	height;			/* levels in use, 1 … PAIMON_SKIP_MAX_HEIGHT */
	uint32_t	count;			/* records; for statistics, may lag */
	uint64_t	bytes;			/* of all nodes; likewise */
} PaimonSkipList;

/*
 * A node as it lies in the arena; constant once linked, except next[].  next[height] is followed by the key, then
 * (aligned to 8) the payload.
 */
typedef struct PaimonSkipNode
{
	uint64_t	pos;			/* log position or ordinal */
	uint64_t	prefix;			/* paimon_key_prefix of the key */
	uint32_t	batch;			/* the caller's tag */
	uint32_t	payload_len;	/* of an external payload as the caller gave it */
	uint16_t	key_len;
	uint8_t		kind;			/* PaimonRowKind or whatever the caller says */
	uint8_t		flags;			/* PAIMON_SKIP_… */
	uint8_t		height;
	uint8_t		unused[3];
	PaimonRef	next[];			/* read with acquire */
} PaimonSkipNode;

/* A record to insert. */
typedef struct PaimonSkipEntry
{
	const uint8_t *key;
	uint32_t	key_len;		/* at most 65535 */
	uint64_t	pos;
	uint32_t	batch;
	uint8_t		kind;
	bool		external;		/* payload is not copied and may be NULL */
	const void *payload;
	uint32_t	payload_len;
} PaimonSkipEntry;

/* Makes the list empty.  Takes no memory of an arena. */
extern void paimon_skip_init(PaimonSkipList *list);

/*
 * Bytes that the node of a record takes at most: for paimon_arena_reserve, and to decide on `external` (the result must not be
 * above PAIMON_SKIP_MAX_NODE).
 */
extern uint64_t paimon_skip_node_size(uint32_t key_len, uint32_t payload_len, bool external);

/*
 * Finds the places of n keys (at most PAIMON_SKIP_PLACES_MAX) for inserts that follow, by walking to all of them at once: in a large list a search is
 * mostly waiting for memory, and so the waits overlap.  A place is good as long as its list only grows, whatever is inserted meanwhile.
 */
#define PAIMON_SKIP_PLACES_MAX 16

typedef struct PaimonSkipPlaceKey
{
	const uint8_t *key;
	uint32_t	len;
} PaimonSkipPlaceKey;

typedef struct PaimonSkipPlace
{
	PaimonRef	before[PAIMON_SKIP_MAX_HEIGHT];	/* by level: a node with a smaller key, or PAIMON_NO_REF for the head */
} PaimonSkipPlace;

/* A place in front of everything. */
extern void paimon_skip_start_place(PaimonSkipPlace *place);

/*
 * Moves a place on to a key that is not below its own: up as far as links lead to smaller keys, and down again.  So many inserts in the order of keys find their places in few
 * steps each, the fewer the more there are, and neighbours in the list become neighbours in memory.
 */
extern void paimon_skip_move_place(const PaimonSkipList *list, const PaimonArena *arena, const uint8_t *key, uint32_t len, PaimonSkipPlace *place);

extern void paimon_skip_find_places(const PaimonSkipList *list, const PaimonArena *arena, const PaimonSkipPlaceKey *keys, int n,
									PaimonSkipPlace *places);

/*
 * Adds a record, at its key's place if that is known (else NULL).  *rng is the caller's generator state, seeded with any number.  Of two records with the
 * same key and pos the one added later comes first.  PAIMON_NO_SPACE: node too large.  PAIMON_NO_MEMORY: no chunk; the list is as before.  The caller
 * makes sure that no two inserts run at once (the arena is part of that).
 */
extern PaimonResult paimon_skip_insert(PaimonSkipList *list, PaimonArena *arena, uint64_t *rng,
									   const PaimonSkipEntry *e, const PaimonSkipPlace *place);

/*
 * A position in a list.  Stays usable while others insert; must be given up when the arena may be released.
 */
typedef struct PaimonSkipIter
{
	const PaimonSkipList *list;
	const PaimonArena *arena;
	PaimonRef	ref;			/* PAIMON_NO_REF: not on a record */
} PaimonSkipIter;

/* An iterator that is on no record yet. */
extern void paimon_skip_iter_init(PaimonSkipIter *it, const PaimonSkipList *list, const PaimonArena *arena);

/* Positioning: each returns whether there is such a record; if not, the iterator is on none. */
extern bool paimon_skip_first(PaimonSkipIter *it);
extern bool paimon_skip_last(PaimonSkipIter *it);

/* First record at or behind (key, pos): with pos = UINT64_MAX the newest record of the first key >= `key`. */
extern bool paimon_skip_seek(PaimonSkipIter *it, const uint8_t *key, uint32_t len, uint64_t pos);

/* Last record with a key below `key`, or (inclusive) not above it. */
extern bool paimon_skip_seek_last(PaimonSkipIter *it, const uint8_t *key, uint32_t len, bool inclusive);

/* The neighbours; the iterator must be on a record.  prev costs a search. */
extern bool paimon_skip_next(PaimonSkipIter *it);
extern bool paimon_skip_prev(PaimonSkipIter *it);

static inline bool
paimon_skip_valid(const PaimonSkipIter *it)
{
	return it->ref != PAIMON_NO_REF;
}

/* The record under the iterator, which must be on one. */
static inline const PaimonSkipNode *
paimon_skip_node(const PaimonSkipIter *it)
{
	return (const PaimonSkipNode *) paimon_arena_ptr(it->arena, it->ref);
}

static inline const uint8_t *
paimon_skip_key(const PaimonSkipNode *n)
{
	return (const uint8_t *) &n->next[n->height];
}

/* Offset of the payload in a node, a multiple of 8. */
static inline size_t
paimon_skip_payload_offset(uint32_t height, uint32_t key_len)
{
	return (offsetof(PaimonSkipNode, next) + height * sizeof(PaimonRef) + key_len + 7) & ~(size_t) 7;
}

/* The payload, aligned to 8; NULL if external. */
static inline const void *
paimon_skip_payload(const PaimonSkipNode *n)
{
	if (n->flags & PAIMON_SKIP_EXTERNAL)
		return NULL;
	return (const uint8_t *) n + paimon_skip_payload_offset(n->height, n->key_len);
}

#endif							/* PAIMON_CORE_SKIPLIST_H */
