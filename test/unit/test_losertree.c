/*-------------------------------------------------------------------------
 *
 * test_losertree.c
 *	  Loser tree against sorting everything, in both directions, with
 *	  galloping, restarts and failing sources.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_losertree.h"
#include "unit.h"

#define MAX_SOURCES 40
#define MAX_ROWS 60
#define MAX_KEY 12

typedef struct Row
{
	uint8_t		key[MAX_KEY];
	uint32_t	len;
	uint32_t	rank;
} Row;

/* The embedded part first, as callers do it. */
typedef struct Source
{
	PaimonMergeSource base;
	Row			rows[MAX_ROWS];
	uint32_t	nrows;
	uint32_t	at;
	uint32_t	fail_at;		/* advance fails when it gets there */
	bool		by_value;		/* keys of up to 8 bytes are not to be touched: key is NULL */
} Source;

static Source sources[MAX_SOURCES];
static bool backward;
static uint64_t comparisons_saved;

static int
cmp_rows(const void *a, const void *b)
{
	const Row  *x = a;
	const Row  *y = b;
	int			c = paimon_bytes_cmp(x->key, x->len, y->key, y->len);

	if (c != 0)
		return backward ? -c : c;
	return x->rank < y->rank ? -1 : (x->rank > y->rank ? 1 : 0);
}

static void
expose(Source *s)
{
	const Row  *r = &s->rows[s->at];

	s->base.done = s->at >= s->nrows;
	if (s->base.done)
	{
		/* nobody may look at these now */
		s->base.key = NULL;
		s->base.len = 1000;
		s->base.prefix = unit_rand();
		return;
	}
	s->base.key = s->by_value ? NULL : r->key;
	s->base.len = r->len;
	s->base.prefix = paimon_key_prefix(r->key, r->len);
}

static PaimonResult
advance(PaimonMergeSource *source)
{
	Source	   *s = (Source *) source;

	s->at++;
	if (s->at == s->fail_at)
		return PAIMON_CORRUPT;
	expose(s);
	return PAIMON_OK;
}

/* Keys of one merge: short fixed ones, long ones with long common prefixes, or few different ones of any length. */
static void
make_key(Row *r, int style)
{
	memset(r->key, 0, sizeof(r->key));
	switch (style)
	{
		case 0:
			r->len = 4;
			r->key[3] = (uint8_t) unit_below(200);
			break;
		case 1:
			r->len = 12;
			r->key[8] = (uint8_t) unit_below(4);
			r->key[11] = (uint8_t) unit_below(40);
			break;
		default:
			r->len = (uint32_t) unit_below(MAX_KEY + 1);
			for (uint32_t i = 0; i < r->len; i++)
				r->key[i] = unit_below(6) ? 0 : (uint8_t) unit_below(2);
	}
}

/* Fills n sources with sorted rows; ranks in random order.  All rows, sorted, in all[]. */
static uint32_t
make_sources(uint32_t n, Row *all, PaimonMergeSource **pointers)
{
	uint32_t	total = 0;
	int			style = (int) unit_below(3);
	uint32_t	ranks[MAX_SOURCES];

	for (uint32_t i = 0; i < n; i++)
		ranks[i] = i;
	for (uint32_t i = n; i > 1; i--)
	{
		uint32_t	j = (uint32_t) unit_below(i);
		uint32_t	t = ranks[i - 1];

		ranks[i - 1] = ranks[j];
		ranks[j] = t;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		Source	   *s = &sources[i];

		memset(s, 0, sizeof(*s));
		s->base.rank = ranks[i];
		s->base.advance = advance;
		s->fail_at = UINT32_MAX;
		s->by_value = style == 0;
		s->nrows = (uint32_t) unit_below(unit_below(4) ? MAX_ROWS + 1 : 3);
		for (uint32_t r = 0; r < s->nrows; r++)
		{
			make_key(&s->rows[r], style);
			s->rows[r].rank = ranks[i];
			all[total++] = s->rows[r];
		}
		qsort(s->rows, s->nrows, sizeof(Row), cmp_rows);
		expose(s);
		pointers[i] = &s->base;
	}
	qsort(all, total, sizeof(Row), cmp_rows);
	return total;
}

static bool
is_row(const PaimonMergeSource *source, const Row *want)
{
	const Source *s = (const Source *) source;

	return s->base.rank == want->rank && s->rows[s->at].len == want->len
		&& memcmp(s->rows[s->at].key, want->key, want->len) == 0;
}

/* The runner-up must be the best of the others, found by looking at each. */
static void
check_runner_up(const PaimonLoserTree *tree, uint32_t n)
{
	const PaimonMergeSource *winner = paimon_losertree_winner(tree);
	const PaimonMergeSource *runner = paimon_losertree_runner_up(tree);
	const Source *best = NULL;

	for (uint32_t i = 0; i < n; i++)
	{
		const Source *s = &sources[i];

		if (&s->base == winner || s->base.done)
			continue;
		if (best == NULL || cmp_rows(&s->rows[s->at], &best->rows[best->at]) < 0)
			best = s;
	}
	CHECK(runner == (best == NULL ? NULL : &best->base));
	if (runner != NULL)
	{
		const Source *w = (const Source *) winner;

		CHECK_EQ(paimon_merge_same_key(winner, runner),
				 paimon_bytes_cmp(w->rows[w->at].key, w->base.len, best->rows[best->at].key, best->base.len) == 0);
	}
}

/* Runs the winner up to the runner-up's key by itself; counts the rows. */
static uint32_t
gallop(PaimonLoserTree *tree, const Row *want, uint32_t left)
{
	Source	   *w = (Source *) paimon_losertree_winner(tree);
	PaimonMergeSource *runner = paimon_losertree_runner_up(tree);
	uint32_t	n = 0;

	while (!w->base.done && paimon_merge_key_before(tree, w->base.prefix, w->base.key, w->base.len, runner))
	{
		if (!CHECK(n < left) || !CHECK(is_row(&w->base, &want[n])))
			break;
		n++;
		CHECK_EQ(w->base.advance(&w->base), PAIMON_OK);
	}
	paimon_losertree_replay(tree);
	comparisons_saved += n;
	return n;
}

static void
check_merge(uint32_t n, const PaimonAllocator *alloc)
{
	static Row	all[MAX_SOURCES * MAX_ROWS];
	PaimonMergeSource *pointers[MAX_SOURCES];
	PaimonLoserTree tree;
	uint32_t	total;
	uint32_t	i = 0;

	backward = unit_below(2) == 1;
	total = make_sources(n, all, pointers);
	CHECK_EQ(paimon_losertree_init(&tree, pointers, n, backward, alloc), PAIMON_OK);
	while (i < total)
	{
		PaimonMergeSource *w = paimon_losertree_winner(&tree);

		if (!CHECK(w != NULL) || !CHECK(is_row(w, &all[i])))
			return;
		check_runner_up(&tree, n);
		if (unit_below(200) == 0)
			paimon_losertree_rebuild(&tree);
		if (unit_below(3) == 0)
			i += gallop(&tree, &all[i], total - i);
		else
		{
			CHECK_EQ(paimon_losertree_advance(&tree), PAIMON_OK);
			i++;
		}
	}
	CHECK(paimon_losertree_winner(&tree) == NULL);
	CHECK(paimon_losertree_runner_up(&tree) == NULL);

	/* once more after a restart of all sources */
	for (uint32_t s = 0; s < n; s++)
	{
		sources[s].at = 0;
		expose(&sources[s]);
	}
	paimon_losertree_rebuild(&tree);
	CHECK(total == 0 || is_row(paimon_losertree_winner(&tree), &all[0]));
}

/* What advance says comes out; no memory is reported. */
static void
check_failures(const PaimonAllocator *alloc, UnitArena *mem)
{
	static Row	all[MAX_SOURCES * MAX_ROWS];
	PaimonMergeSource *pointers[MAX_SOURCES];
	PaimonLoserTree tree;
	PaimonResult r = PAIMON_OK;

	backward = false;
	make_sources(3, all, pointers);
	sources[1].nrows = MAX_ROWS;
	memset(sources[1].rows, 0, sizeof(sources[1].rows));
	sources[1].fail_at = 1;
	sources[1].at = 0;
	expose(&sources[1]);
	CHECK_EQ(paimon_losertree_init(&tree, pointers, 3, false, alloc), PAIMON_OK);
	while (r == PAIMON_OK && paimon_losertree_winner(&tree) != NULL)
		r = paimon_losertree_advance(&tree);
	CHECK_EQ(r, PAIMON_CORRUPT);
	mem->fail_after = 0;
	CHECK_EQ(paimon_losertree_init(&tree, pointers, 3, false, alloc), PAIMON_NO_MEMORY);
	mem->fail_after = -1;
}

/* paimon_merge_key_cmp is the order of the bytes. */
static void
check_key_cmp(void)
{
	for (int i = 0; i < 100000; i++)
	{
		Row			a;
		Row			b;
		int			want;
		int			got;

		make_key(&a, 2);
		make_key(&b, 2);
		want = paimon_bytes_cmp(a.key, a.len, b.key, b.len);
		got = paimon_merge_key_cmp(paimon_key_prefix(a.key, a.len), a.key, a.len,
								   paimon_key_prefix(b.key, b.len), b.key, b.len);
		CHECK((want < 0) == (got < 0) && (want > 0) == (got > 0));
	}
}

int
main(int argc, char **argv)
{
	UnitArena	mem;
	PaimonAllocator alloc = unit_arena_init(&mem);

	unit_begin("test_losertree", argc, argv);
	for (uint32_t n = 0; n <= MAX_SOURCES; n++)
		for (int round = 0; round < 30; round++)
			check_merge(n, &alloc);
	CHECK(comparisons_saved > 1000);
	check_failures(&alloc, &mem);
	check_key_cmp();
	unit_arena_reset(&mem);
	return unit_end();
}
