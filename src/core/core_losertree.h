/*-------------------------------------------------------------------------
 *
 * core_losertree.h
 *	  K-way merge of sorted sources.
 *
 * The next row of all sources costs about log2(k) comparisons, most of them of
 * two 64-bit prefixes; keys of up to 8 bytes are never dereferenced.  Long
 * stretches of one source need no comparison at all: see
 * paimon_losertree_runner_up.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_LOSERTREE_H
#define PAIMON_CORE_LOSERTREE_H

#include "core/core.h"

typedef struct PaimonMergeSource PaimonMergeSource;

/*
 * Moves the source to its next row in the tree's direction: sets prefix, key and len, or done.  What else the result
 * says but PAIMON_OK is passed on by paimon_losertree_advance; the tree is then useless.  May throw.
 */
typedef PaimonResult (*PaimonMergeAdvance) (PaimonMergeSource *source);

/* The part of a source that the tree looks at; the caller embeds it in a struct of its own. */
struct PaimonMergeSource
{
	uint64_t	prefix;			/* paimon_key_prefix(key, len) */
	const uint8_t *key;			/* may be NULL if len <= 8 */
	uint32_t	len;
	uint32_t	rank;			/* different for each source; lower = newer = first among equal keys */
	bool		done;			/* behind the last row: prefix, key and len mean nothing */
	PaimonMergeAdvance advance;
};

/* A source as it took part in a match: copied, so that a match touches nothing but the tree. */
typedef struct PaimonLoserNode
{
	uint64_t	order;			/* the smaller wins: prefix, or its complement if backward; UINT64_MAX if done */
	uint64_t	source;
} PaimonLoserNode;

typedef struct PaimonLoserTree
{
	PaimonMergeSource **sources;
	PaimonLoserNode *node;		/* [0] the winner, [1 .. n) the loser at each inner node */
	uint32_t	n;
	bool		backward;
} PaimonLoserTree;

/*
 * A tree over sources[0 .. n), each on its first row or done.  `sources` must stay where it is, as must the sources.
 * Backward means descending keys; among equal keys the order is by rank all the same.  Memory (32 bytes a source) comes from
 * the allocator.
 */
extern PaimonResult paimon_losertree_init(PaimonLoserTree *tree, PaimonMergeSource **sources, uint32_t n,
										  bool backward, const PaimonAllocator *a);

/* Plays all matches again, after sources were moved by the caller. */
extern void paimon_losertree_rebuild(PaimonLoserTree *tree);

/* The source with the next row, NULL if all are done. */
static inline PaimonMergeSource *
paimon_losertree_winner(const PaimonLoserTree *tree)
{
	PaimonMergeSource *w;

	if (tree->n == 0)
		return NULL;
	w = tree->sources[tree->node[0].source];
	return w->done ? NULL : w;
}

/* Calls the winner's advance and finds the next winner; there must be a winner. */
extern PaimonResult paimon_losertree_advance(PaimonLoserTree *tree);

/* Finds the next winner after the caller itself moved the winner forward, by any number of rows. */
extern void paimon_losertree_replay(PaimonLoserTree *tree);

/*
 * The source that has the next row of all others; NULL if they are all done.  The winner may run on its own over all its rows
 * with keys before the runner-up's (paimon_merge_key_before); then replay.  Costs up to log2(n) comparisons.
 */
extern PaimonMergeSource *paimon_losertree_runner_up(const PaimonLoserTree *tree);

/* Three-way comparison of two keys given with their prefixes. */
static inline int
paimon_merge_key_cmp(uint64_t aprefix, const uint8_t *akey, uint32_t alen,
					 uint64_t bprefix, const uint8_t *bkey, uint32_t blen)
{
	if (aprefix != bprefix)
		return aprefix < bprefix ? -1 : 1;
	if (alen > 8 && blen > 8)
		return paimon_bytes_cmp(akey + 8, alen - 8, bkey + 8, blen - 8);

	/* equal prefixes, and one key ends within them: it is a prefix of the other, up to zero bytes */
	return alen < blen ? -1 : (alen > blen ? 1 : 0);
}

/* Does the row under `a` have the same key as the one under `b`?  Neither may be done. */
static inline bool
paimon_merge_same_key(const PaimonMergeSource *a, const PaimonMergeSource *b)
{
	return paimon_merge_key_cmp(a->prefix, a->key, a->len, b->prefix, b->key, b->len) == 0;
}

/*
 * Does a key come strictly before the row of `other` in the tree's direction?  True if `other` is NULL.
 */
static inline bool
paimon_merge_key_before(const PaimonLoserTree *tree, uint64_t prefix, const uint8_t *key, uint32_t len,
						const PaimonMergeSource *other)
{
	int			c;

	if (other == NULL)
		return true;
	c = paimon_merge_key_cmp(prefix, key, len, other->prefix, other->key, other->len);
	return tree->backward ? c > 0 : c < 0;
}

#endif							/* PAIMON_CORE_LOSERTREE_H */
