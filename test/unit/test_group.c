/*-------------------------------------------------------------------------
 *
 * test_group.c
 *	  Row groups: random round trips, single values, search, limits.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_group.h"

static UnitArena made;			/* the group as put in */
static UnitArena coded;			/* encoder */
static UnitArena opened;		/* reader */
static PaimonAllocator made_alloc;
static PaimonAllocator coded_alloc;
static PaimonAllocator opened_alloc;
static UnitSource source;

static PaimonGroup *
reopen(const UnitGroup *g, const uint8_t *data, uint32_t len)
{
	PaimonGroup *r = NULL;
	PaimonGroupSource src;

	unit_arena_reset(&opened);
	src = unit_source(&source, data, len, &opened_alloc);
	CHECK_EQ(paimon_group_open(&src, &g->in.id, g->columns, g->in.ncolumns, &opened_alloc, &r), PAIMON_OK);
	return r;
}

static void
check_whole(const UnitGroup *g, PaimonGroup *r)
{
	const PaimonBytes *keys;
	const uint64_t *prefixes;
	const uint64_t *alone;
	const uint8_t *kinds;
	uint32_t	fixed_len;
	uint32_t	alone_len;
	uint8_t		constant;
	bool		same_len = true;

	CHECK_EQ(paimon_group_nrows(r), g->in.nrows);
	CHECK_EQ(paimon_group_ncolumns(r), g->in.ncolumns);
	CHECK_EQ(paimon_group_prefixes(r, &alone, &alone_len), PAIMON_OK);
	CHECK_EQ(paimon_group_keys(r, &keys, &prefixes, &fixed_len), PAIMON_OK);
	CHECK(alone == NULL || (alone == prefixes && alone_len == fixed_len && fixed_len >= 1 && fixed_len <= 8));
	CHECK_EQ(paimon_group_kinds(r, &kinds, &constant), PAIMON_OK);
	for (uint32_t i = 0; i < g->in.nrows; i++)
	{
		uint8_t		kind = 99;

		CHECK(unit_group_key_cmp(&keys[i], &g->keys[i]) == 0);
		CHECK(prefixes[i] == paimon_key_prefix(g->keys[i].data, g->keys[i].len));
		CHECK((kinds ? kinds[i] : constant) == g->kinds[i]);
		CHECK(paimon_group_kind(r, i, &kind) == PAIMON_OK && kind == g->kinds[i]);
		same_len &= g->keys[i].len == g->keys[0].len;
	}
	CHECK_EQ(fixed_len, same_len ? g->keys[0].len : 0);
	for (uint32_t c = 0; c < g->in.ncolumns; c++)
	{
		const uint64_t *values;
		const bool *nulls;

		CHECK_EQ(paimon_group_values(r, c, &values, &nulls), PAIMON_OK);
		for (uint32_t i = 0; i < g->in.nrows; i++)
			CHECK_MSG(unit_group_same(g, c, i, values[i], nulls != NULL && nulls[i]), "column %u row %u", c, i);
	}
}

static void
check_stats(const UnitGroup *g, PaimonGroup *r)
{
	for (uint32_t c = 0; c < g->in.ncolumns; c++)
	{
		PaimonColumnDesc d = paimon_group_column_desc(r, c);
		PaimonColumnStats s;
		bool		word = d.phys == PAIMON_PHYS_INT || d.phys == PAIMON_PHYS_SCALED;
		uint32_t	nulls = 0;
		int64_t		min = INT64_MAX;
		int64_t		max = INT64_MIN;

		CHECK(d.phys == g->columns[c].phys && d.width == g->columns[c].width);
		paimon_group_column_stats(r, c, &s);
		for (uint32_t i = 0; i < g->in.nrows; i++)
		{
			int64_t		v = (int64_t) g->values[c][i];

			if (unit_group_is_null(g, c, i))
				nulls++;
			else
			{
				min = v < min ? v : min;
				max = v > max ? v : max;
			}
		}
		CHECK_EQ(s.null_count, nulls);
		CHECK_EQ(s.has_minmax, word && nulls < g->in.nrows);
		if (s.has_minmax)
			CHECK(s.min == min && s.max == max);
	}
}

/* Single values, in random order, on a reader that has decoded nothing as a whole. */
static void
check_single(const UnitGroup *g, PaimonGroup *r)
{
	for (uint32_t k = 0; k < 300; k++)
	{
		uint32_t	i = (uint32_t) unit_below(g->in.nrows);
		PaimonBytes key;

		CHECK_EQ(paimon_group_key(r, i, &key), PAIMON_OK);
		CHECK(unit_group_key_cmp(&key, &g->keys[i]) == 0);
		for (uint32_t c = 0; c < g->in.ncolumns; c++)
		{
			uint64_t	v;
			bool		isnull;

			CHECK_EQ(paimon_group_value(r, c, i, &v, &isnull), PAIMON_OK);
			CHECK_MSG(unit_group_same(g, c, i, v, isnull), "column %u row %u", c, i);
		}
	}
}

/* Any rows of a column as ranges, each into memory of just their size; and keys into room that may be too small. */
static void
check_ranges(const UnitGroup *g, PaimonGroup *r)
{
	for (uint32_t k = 0; k < 40; k++)
	{
		uint32_t	first = (uint32_t) unit_below(g->in.nrows);
		uint32_t	most = unit_below(3) ? 70 : g->in.nrows;
		uint32_t	count = 1 + (uint32_t) unit_below(g->in.nrows - first < most ? g->in.nrows - first : most);
		uint64_t   *values = malloc(count * sizeof(uint64_t));
		uint8_t    *room = malloc(20);
		PaimonBytes key;

		for (uint32_t c = 0; c < g->in.ncolumns; c++)
		{
			PaimonColumnStats s;
			bool	   *nulls = NULL;

			paimon_group_column_stats(r, c, &s);
			if (s.null_count > 0)
				nulls = malloc(count);
			CHECK_EQ(paimon_group_range(r, c, first, count, values, nulls), PAIMON_OK);
			for (uint32_t i = 0; i < count; i++)
				CHECK_MSG(unit_group_same(g, c, first + i, values[i], nulls != NULL && nulls[i]), "column %u row %u + %u", c, first, i);
			CHECK_EQ(paimon_group_range(r, c, first, g->in.nrows - first + 1, values, nulls), PAIMON_CORRUPT);
			free(nulls);
		}
		CHECK_EQ(paimon_group_key_into(r, first, room, 20, &key), PAIMON_OK);
		CHECK(unit_group_key_cmp(&key, &g->keys[first]) == 0);
		free(values);
		free(room);
	}
}

static void
check_seek_one(const UnitGroup *g, PaimonGroup *r, const uint8_t *key, uint32_t len)
{
	uint32_t	want = 0;
	uint32_t	row = 0;
	bool		equal = false;
	bool		want_equal;

	while (want < g->in.nrows && paimon_bytes_cmp(g->keys[want].data, g->keys[want].len, key, len) < 0)
		want++;
	want_equal = want < g->in.nrows && paimon_bytes_cmp(g->keys[want].data, g->keys[want].len, key, len) == 0;
	CHECK_EQ(paimon_group_seek(r, key, len, &row, &equal), PAIMON_OK);
	CHECK_EQ(row, want);
	CHECK_EQ(equal, want_equal);
}

/* Keys that are there, and neighbours: one byte more, less, changed. */
static void
check_seek(const UnitGroup *g, PaimonGroup *r)
{
	uint8_t    *p = calloc(1, 1 << 16);

	check_seek_one(g, r, p, 0);
	memset(p, 0xFF, 64);
	check_seek_one(g, r, p, 64);
	for (uint32_t k = 0; k < 60; k++)
	{
		const PaimonBytes *key = &g->keys[unit_below(g->in.nrows)];

		if (key->len > 60000)
			continue;
		check_seek_one(g, r, key->data, key->len);
		memcpy(p, key->data, key->len);
		p[key->len] = (uint8_t) unit_rand();
		check_seek_one(g, r, p, key->len + 1);
		if (key->len == 0)
			continue;
		check_seek_one(g, r, p, key->len - 1);
		p[unit_below(key->len)] += (uint8_t) (unit_below(3) - 1);
		check_seek_one(g, r, p, key->len);
	}
	free(p);
}

/* Every key, and the shortest string between it and the key before: where units are cut, that is their separator. */
static void
check_seek_all(const UnitGroup *g, PaimonGroup *r)
{
	for (uint32_t i = 1; i < g->in.nrows; i++)
	{
		const PaimonBytes *a = &g->keys[i - 1];
		const PaimonBytes *b = &g->keys[i];
		uint32_t	shared = 0;
		uint32_t	row = 0;
		bool		equal = false;

		if (unit_group_key_cmp(a, b) == 0)
			continue;
		while (shared < a->len && shared < b->len && a->data[shared] == b->data[shared])
			shared++;
		CHECK_EQ(paimon_group_seek(r, b->data, b->len, &row, &equal), PAIMON_OK);
		CHECK_MSG(row == i && equal, "row %u for %u", row, i);
		CHECK_EQ(paimon_group_seek(r, b->data, shared + 1, &row, &equal), PAIMON_OK);
		CHECK_MSG(row == i && equal == (b->len == shared + 1), "row %u for %u", row, i);
	}
}

static void
check_group(const UnitGroup *g)
{
	uint8_t    *data = NULL;
	uint32_t	len = 0;
	PaimonGroup *r;

	unit_arena_reset(&coded);
	CHECK_EQ(paimon_group_encode(&g->in, &coded_alloc, &data, &len), PAIMON_OK);
	r = reopen(g, data, len);
	check_stats(g, r);
	check_ranges(g, r);
	check_single(g, r);
	check_ranges(g, r);
	check_seek(g, r);
	check_seek_all(g, r);
	check_whole(g, r);
	check_single(g, r);
	CHECK_EQ(paimon_group_check(r), PAIMON_OK);
	r = reopen(g, data, len);
	check_single(g, r);
	check_ranges(g, r);
	check_whole(g, r);
	check_ranges(g, r);
	r = reopen(g, data, len);
	check_whole(g, r);
	check_seek(g, r);
	r = reopen(g, data, len);
	CHECK_EQ(paimon_group_check(r), PAIMON_OK);
}

static void
check_random(uint32_t rounds)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 8, 63, 64, 65, 200, 1000, 4096, 8191, 8192};

	for (uint32_t k = 0; k < rounds; k++)
	{
		UnitGroup	g;
		uint32_t	some = sizes[unit_below(sizeof(sizes) / sizeof(sizes[0]))];
		uint32_t	nrows = unit_below(3) ? some : 1 + (uint32_t) unit_below(8192);
		uint32_t	maxlen = nrows < 100 ? 100000 : 600;

		unit_arena_reset(&made);
		unit_group_make(&g, &made_alloc, nrows, (uint32_t) unit_below(6), maxlen, (int) unit_below(4));
		check_group(&g);
	}
}

/* A column without values is the same whether or not its nulls are listed. */
static void
check_absent(void)
{
	UnitGroup	g;
	uint8_t    *listed = NULL;
	uint8_t    *absent = NULL;
	uint32_t	len = 0;
	uint32_t	len2 = 0;

	unit_arena_reset(&made);
	unit_group_make(&g, &made_alloc, 777, 3, 40, 1);
	g.nulls[1] = paimon_core_alloc(&made_alloc, 777 * sizeof(bool));
	memset(g.nulls[1], true, 777 * sizeof(bool));
	check_group(&g);
	unit_arena_reset(&coded);
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &listed, &len), PAIMON_OK);
	g.values[1] = NULL;
	g.nulls[1] = NULL;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &absent, &len2), PAIMON_OK);
	CHECK_EQ(len2, len);
	CHECK(memcmp(listed, absent, len) == 0);
}

/* Values and keys of megabytes among small and empty ones; one row's text opens one unit. */
static void
check_large(void)
{
	UnitGroup	g;
	uint8_t    *data = NULL;
	uint8_t    *big = malloc(5000000);
	uint32_t	len = 0;
	PaimonGroup *r;
	uint64_t	v;
	bool		isnull;

	unit_arena_reset(&made);
	unit_group_make(&g, &made_alloc, 50, 2, 10, 1);
	unit_group_text(big, 5000000, 2);
	unit_fill(big + 2000000, 1000000);
	for (uint32_t c = 0; c < 2; c++)
	{
		g.columns[c].phys = PAIMON_PHYS_VAR;
		g.columns[c].width = 0;
		g.nulls[c] = NULL;
		for (uint32_t i = 0; i < 50; i++)
		{
			uint32_t	n = i == 7 ? 3000000 : i == 30 ? 4900000 : i % 3 ? i * 300 : 0;

			g.values[c][i] = unit_group_varlena(&made_alloc, big + i * 1000, n);
		}
	}
	for (uint32_t i = 0; i < 50; i++)
	{
		uint8_t    *k = paimon_core_alloc(&made_alloc, 300000);

		memset(k, 'k', 300000);
		k[250000] = (uint8_t) i;
		g.keys[i].data = k;
		g.keys[i].len = i == 20 ? 250001 : 300000 - (i & 1);
	}
	check_group(&g);
	unit_arena_reset(&coded);
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_OK);
	r = reopen(&g, data, len);
	CHECK_EQ(paimon_group_value(r, 0, 8, &v, &isnull), PAIMON_OK);
	CHECK(unit_group_same(&g, 0, 8, v, isnull));
	CHECK_MSG(source.fetched < 60000, "%" PRIu64 " bytes fetched", source.fetched);
	free(big);
}

/* Keys that repeat across more than a unit. */
static void
check_duplicate_keys(void)
{
	UnitGroup	g;
	uint8_t    *k = malloc(64 * 100);

	unit_fill(k, 64 * 100);
	for (uint32_t i = 0; i < 64; i++)
	{
		k[i * 100] = (uint8_t) i;
		k[i * 100 + 1] = 0;
	}
	unit_arena_reset(&made);
	unit_group_make(&g, &made_alloc, 3000, 0, 10, 1);
	for (uint32_t i = 0; i < 3000; i++)
	{
		g.keys[i].data = k + (i < 2000 ? i / 300 : i / 50) * 100;
		g.keys[i].len = 100;
	}
	check_group(&g);
	for (uint32_t i = 0; i < 3000; i++)
		g.keys[i].len = 0;
	check_group(&g);
	free(k);
}

static void
check_bad_input(void)
{
	UnitGroup	g;
	uint8_t    *data;
	uint32_t	len;
	PaimonBytes swap;
	uint8_t		external[4] = {0x01, 0, 0, 0};
	uint64_t	v = (uint64_t) (uintptr_t) external;
	const uint64_t *vp = &v;

	unit_arena_reset(&made);
	unit_arena_reset(&coded);
	unit_group_make(&g, &made_alloc, 8192, 1, 10, 1);
	g.in.nrows = 0;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	g.in.nrows = PAIMON_GROUP_MAX_ROWS + 1;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	g.in.nrows = 8192;
	g.in.ncolumns = PAIMON_GROUP_MAX_COLUMNS + 1;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	g.in.ncolumns = 1;
	g.columns[0].phys = 5;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	g.in.ncolumns = 0;
	g.kinds[17] = 6;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	g.kinds[17] = 0;
	g.keys[0].data = (const uint8_t *) "\377\377\377\377\377\377\377\377\377";
	g.keys[0].len = 9;
	swap = g.keys[1];
	CHECK(paimon_bytes_cmp(g.keys[0].data, 9, swap.data, swap.len) > 0);
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
	unit_group_make(&g, &made_alloc, 1, 1, 10, 1);
	g.columns[0].phys = PAIMON_PHYS_VAR;
	g.columns[0].width = 0;
	g.in.nulls = NULL;
	g.in.values = &vp;
	external[0] = 0x01;
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_CORRUPT);
}

/* What the table says now against what is stored. */
static void
check_columns_changed(void)
{
	UnitGroup	g;
	uint8_t    *data = NULL;
	uint32_t	len = 0;
	PaimonGroupSource src;
	PaimonGroup *r;
	PaimonColumnDesc now[4];

	unit_arena_reset(&made);
	unit_arena_reset(&coded);
	unit_group_make(&g, &made_alloc, 20, 3, 10, 1);
	for (uint32_t c = 0; c < 3; c++)
	{
		g.columns[c].phys = c == 0 ? PAIMON_PHYS_INT : PAIMON_PHYS_SCALED;
		g.columns[c].width = c == 0 ? 0 : 2;
		for (uint32_t i = 0; i < 20; i++)
			g.values[c][i] = i;
	}
	CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_OK);
	memcpy(now, g.columns, sizeof(PaimonColumnDesc) * 3);
	now[1].phys = PAIMON_PHYS_VAR;
	now[1].width = 0;
	now[2].width = 5;
	now[3].phys = PAIMON_PHYS_FIXED;
	now[3].width = 16;
	src = unit_source(&source, data, len, &opened_alloc);
	CHECK_EQ(paimon_group_open(&src, &g.in.id, now, 4, &opened_alloc, &r), PAIMON_OK);
	CHECK_EQ(paimon_group_ncolumns(r), 3);
	CHECK_EQ(paimon_group_column_desc(r, 1).phys, PAIMON_PHYS_SCALED);
	CHECK_EQ(paimon_group_column_desc(r, 2).width, 2);
	CHECK_EQ(paimon_group_open(&src, &g.in.id, NULL, 0, &opened_alloc, &r), PAIMON_OK);
	CHECK_EQ(paimon_group_check(r), PAIMON_OK);
	CHECK_EQ(paimon_group_open(&src, &g.in.id, now, 2, &opened_alloc, &r), PAIMON_CORRUPT);
	now[0].phys = PAIMON_PHYS_FIXED;
	now[0].width = 8;
	CHECK_EQ(paimon_group_open(&src, &g.in.id, now, 4, &opened_alloc, &r), PAIMON_CORRUPT);
}

/* Allocations that fail at every point: an error each time, and never half a result. */
static void
check_no_memory(void)
{
	UnitGroup	g;
	uint8_t    *data = NULL;
	uint32_t	len = 0;
	PaimonGroup *r = NULL;
	PaimonResult result = PAIMON_NO_MEMORY;
	UnitArena	bytes;
	PaimonAllocator bytes_alloc = unit_arena_init(&bytes);

	unit_arena_reset(&made);
	unit_group_make(&g, &made_alloc, 500, 8, 200, 1);
	for (int64_t k = 0; result == PAIMON_NO_MEMORY; k++)
	{
		unit_arena_reset(&coded);
		coded.fail_after = k;
		result = paimon_group_encode(&g.in, &coded_alloc, &data, &len);
		coded.fail_after = -1;
		CHECK(result == PAIMON_OK || result == PAIMON_NO_MEMORY);
	}
	result = PAIMON_NO_MEMORY;
	for (int64_t k = 0; result == PAIMON_NO_MEMORY; k++)
	{
		PaimonGroupSource src = unit_source(&source, data, len, &bytes_alloc);

		unit_arena_reset(&opened);
		opened.fail_after = k;
		result = paimon_group_open(&src, &g.in.id, g.columns, g.in.ncolumns, &opened_alloc, &r);
		if (result == PAIMON_OK)
			result = paimon_group_check(r);
		opened.fail_after = -1;
		CHECK(result == PAIMON_OK || result == PAIMON_NO_MEMORY);
		if (r != NULL && result == PAIMON_NO_MEMORY)
			CHECK_EQ(paimon_group_check(r), PAIMON_OK);
		r = NULL;
		unit_arena_reset(&bytes);
	}
}

int
main(int argc, char **argv)
{
	unit_begin("group", argc, argv);
	made_alloc = unit_arena_init(&made);
	coded_alloc = unit_arena_init(&coded);
	opened_alloc = unit_arena_init(&opened);
	check_bad_input();
	check_columns_changed();
	check_duplicate_keys();
	check_absent();
	check_large();
	check_no_memory();
	check_random(60);
	unit_arena_reset(&made);
	unit_arena_reset(&coded);
	unit_arena_reset(&opened);
	return unit_end();
}
