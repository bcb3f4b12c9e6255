/*-------------------------------------------------------------------------
 *
 * core_losertree.c
 *	  Tree of losers over k sorted sources.
 *
 * The sources are leaves n … 2n - 1 of a heap-shaped tree, source i at n + i;
 * inner node j has the children 2j and 2j + 1 and keeps the loser of the match
 * between the winners of its two subtrees.  loser[0] is the winner of all.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_losertree.h"

/* Does source a come out before source b? */
static inline bool
source_wins(const PaimonLoserTree *tree, uint32_t a, uint32_t b)
{
	const PaimonMergeSource *x = tree->sources[a];
	const PaimonMergeSource *y = tree->sources[b];
	int			c;

	if (x->done || y->done)
		return x->done == y->done ? x->rank < y->rank : y->done;
	c = paimon_merge_key_cmp(x->prefix, x->key, x->len, y->prefix, y->key, y->len);
	if (c == 0)
		return x->rank < y->rank;
	return tree->backward ? c > 0 : c < 0;
}

PaimonResult
paimon_losertree_init(PaimonLoserTree *tree, PaimonMergeSource **sources, uint32_t n, bool backward,
					  const PaimonAllocator *a)
{
	tree->sources = sources;
	tree->n = n;
	tree->backward = backward;
	tree->loser = NULL;
	if (n == 0)
		return PAIMON_OK;

	/* the second half is room for the winners while matches are played in rebuild */
	tree->loser = paimon_core_alloc(a, 2 * (size_t) n * sizeof(uint32_t));
	if (tree->loser == NULL)
		return PAIMON_NO_MEMORY;
	paimon_losertree_rebuild(tree);
	return PAIMON_OK;
}

void
paimon_losertree_rebuild(PaimonLoserTree *tree)
{
	uint32_t	n = tree->n;
	uint32_t   *winner;			/* by inner node */

	if (n == 0)
		return;
	winner = tree->loser + n;
	tree->loser[0] = 0;
	for (uint32_t node = n - 1; node >= 1; node--)
	{
		uint32_t	left = 2 * node >= n ? 2 * node - n : winner[2 * node];
		uint32_t	right = 2 * node + 1 >= n ? 2 * node + 1 - n : winner[2 * node + 1];
		bool		left_wins = source_wins(tree, left, right);

		winner[node] = left_wins ? left : right;
		tree->loser[node] = left_wins ? right : left;
	}
	if (n > 1)
		tree->loser[0] = winner[1];
}

void
paimon_losertree_replay(PaimonLoserTree *tree)
{
	uint32_t	w = tree->loser[0];

	for (uint32_t node = (tree->n + w) / 2; node >= 1; node /= 2)
	{
		uint32_t	other = tree->loser[node];

		if (source_wins(tree, other, w))
		{
			tree->loser[node] = w;
			w = other;
		}
	}
	tree->loser[0] = w;
}

PaimonResult
paimon_losertree_advance(PaimonLoserTree *tree)
{
	PaimonMergeSource *w = tree->sources[tree->loser[0]];
	PaimonResult r = w->advance(w);

	if (r == PAIMON_OK)
		paimon_losertree_replay(tree);
	return r;
}

/* The second best lost to the winner itself, so it stands on the winner's way up. */
PaimonMergeSource *
paimon_losertree_runner_up(const PaimonLoserTree *tree)
{
	uint32_t	best = UINT32_MAX;

	if (tree->n < 2)
		return NULL;
	for (uint32_t node = (tree->n + tree->loser[0]) / 2; node >= 1; node /= 2)
	{
		if (best == UINT32_MAX || source_wins(tree, tree->loser[node], best))
			best = tree->loser[node];
	}
	return tree->sources[best]->done ? NULL : tree->sources[best];
}
