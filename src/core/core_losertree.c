/*-------------------------------------------------------------------------
 *
 * core_losertree.c
 *	  Tree of losers over k sorted sources.
 *
 * The sources are leaves n … 2n - 1 of a heap-shaped tree, source i at n + i;
 * inner node j has the children 2j and 2j + 1 and keeps the loser of the match
 * between the winners of its two subtrees.  node[0] is the winner of all.
 *
 * Who wins cannot be foretold, so matches are played without branches, except
 * where the order is equal and keys must be looked at.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_losertree.h"

/* Does source a come out before source b?  Their orders are equal. */
static bool
tie_won(const PaimonLoserTree *tree, uint64_t a, uint64_t b)
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

static inline bool
node_wins(const PaimonLoserTree *tree, PaimonLoserNode a, PaimonLoserNode b)
{
	if (__builtin_expect(a.order == b.order, 0))
		return tie_won(tree, a.source, b.source);
	return a.order < b.order;
}

/* A source as it is now. */
static inline PaimonLoserNode
entrant(const PaimonLoserTree *tree, uint64_t source)
{
	const PaimonMergeSource *s = tree->sources[source];
	PaimonLoserNode n;

	n.order = s->done ? UINT64_MAX : (tree->backward ? ~s->prefix : s->prefix);
	n.source = source;
	return n;
}

PaimonResult
paimon_losertree_init(PaimonLoserTree *tree, PaimonMergeSource **sources, uint32_t n, bool backward,
					  const PaimonAllocator *a)
{
	tree->sources = sources;
	tree->n = n;
	tree->backward = backward;
	tree->node = NULL;
	if (n == 0)
		return PAIMON_OK;

	/* the second half is room for the winners while matches are played in rebuild */
	tree->node = paimon_core_alloc(a, 2 * (size_t) n * sizeof(PaimonLoserNode));
	if (tree->node == NULL)
		return PAIMON_NO_MEMORY;
	paimon_losertree_rebuild(tree);
	return PAIMON_OK;
}

void
paimon_losertree_rebuild(PaimonLoserTree *tree)
{
	uint32_t	n = tree->n;
	PaimonLoserNode *winner;	/* by inner node */

	if (n == 0)
		return;
	winner = tree->node + n;
	tree->node[0] = entrant(tree, 0);
	for (uint32_t node = n - 1; node >= 1; node--)
	{
		PaimonLoserNode left = 2 * node >= n ? entrant(tree, 2 * node - n) : winner[2 * node];
		PaimonLoserNode right = 2 * node + 1 >= n ? entrant(tree, 2 * node + 1 - n) : winner[2 * node + 1];
		bool		left_wins = node_wins(tree, left, right);

		winner[node] = left_wins ? left : right;
		tree->node[node] = left_wins ? right : left;
	}
	if (n > 1)
		tree->node[0] = winner[1];
}

void
paimon_losertree_replay(PaimonLoserTree *tree)
{
	PaimonLoserNode w = entrant(tree, tree->node[0].source);

	for (uint32_t node = (tree->n + (uint32_t) w.source) / 2; node >= 1; node /= 2)
	{
		PaimonLoserNode other = tree->node[node];
		uint64_t	change = -(uint64_t) node_wins(tree, other, w);
		uint64_t	order = (other.order ^ w.order) & change;
		uint64_t	source = (other.source ^ w.source) & change;

		tree->node[node].order = other.order ^ order;
		tree->node[node].source = other.source ^ source;
		w.order ^= order;
		w.source ^= source;
	}
	tree->node[0] = w;
}

PaimonResult
paimon_losertree_advance(PaimonLoserTree *tree)
{
	PaimonMergeSource *w = tree->sources[tree->node[0].source];
	PaimonResult r = w->advance(w);

	if (r == PAIMON_OK)
		paimon_losertree_replay(tree);
	return r;
}

/* The second best lost to the winner itself, so it stands on the winner's way up. */
PaimonMergeSource *
paimon_losertree_runner_up(const PaimonLoserTree *tree)
{
	uint32_t	node;
	PaimonLoserNode best;

	if (tree->n < 2)
		return NULL;
	node = (tree->n + (uint32_t) tree->node[0].source) / 2;
	best = tree->node[node];
	while ((node /= 2) >= 1)
	{
		PaimonLoserNode other = tree->node[node];
		uint64_t	change = -(uint64_t) node_wins(tree, other, best);

		best.order ^= (other.order ^ best.order) & change;
		best.source ^= (other.source ^ best.source) & change;
	}
	return tree->sources[best.source]->done ? NULL : tree->sources[best.source];
}
