/*-------------------------------------------------------------------------
 *
 * test_group_corrupt.c
 *	  Damaged row groups: every byte, every length, a wrong identity.
 *
 * A damaged group may be refused or, where a column is not touched, read; it
 * must never give a wrong value, crash, or read outside itself.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_group.h"

static UnitArena made;
static UnitArena opened;
static PaimonAllocator made_alloc;
static PaimonAllocator opened_alloc;

static PaimonResult
open_and_check(const UnitGroup *g, const uint8_t *data, uint32_t len)
{
	UnitSource	s;
	PaimonGroupSource src = unit_source(&s, data, len, &opened_alloc);
	PaimonGroup *r;
	PaimonResult result = paimon_group_open(&src, &g->in.id, g->columns, g->in.ncolumns, &opened_alloc, &r);

	return result == PAIMON_OK ? paimon_group_check(r) : result;
}

/* Whatever is given in spite of the damage must be right. */
static void
check_truth(const UnitGroup *g, const uint8_t *data, uint32_t len)
{
	UnitSource	s;
	PaimonGroupSource src = unit_source(&s, data, len, &opened_alloc);
	PaimonGroup *r;
	uint32_t	row = (uint32_t) unit_below(g->in.nrows);
	uint32_t	found;
	bool		flag;
	uint8_t		kind;
	PaimonBytes key;

	if (paimon_group_open(&src, &g->in.id, g->columns, g->in.ncolumns, &opened_alloc, &r) != PAIMON_OK)
		return;
	if (paimon_group_key(r, row, &key) == PAIMON_OK)
		CHECK(unit_group_key_cmp(&key, &g->keys[row]) == 0);
	if (paimon_group_seek(r, g->keys[row].data, g->keys[row].len, &found, &flag) == PAIMON_OK)
		CHECK(flag && unit_group_key_cmp(&g->keys[found], &g->keys[row]) == 0);
	if (paimon_group_kind(r, row, &kind) == PAIMON_OK)
		CHECK_EQ(kind, g->kinds[row]);
	for (uint32_t c = 0; c < g->in.ncolumns; c++)
	{
		const uint64_t *values;
		const bool *nulls;
		uint64_t	v;

		if (paimon_group_value(r, c, row, &v, &flag) == PAIMON_OK)
			CHECK(unit_group_same(g, c, row, v, flag));
		if (paimon_group_values(r, c, &values, &nulls) == PAIMON_OK)
			CHECK(unit_group_same(g, c, row, values[row], nulls != NULL && nulls[row]));
	}
}

static void
check_flips(const UnitGroup *g, uint8_t *data, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
	{
		uint8_t		saved = data[i];

		data[i] ^= (uint8_t) (1 + unit_below(255));
		CHECK_MSG(open_and_check(g, data, len) == PAIMON_CORRUPT, "byte %u of %u", i, len);
		if (i % 4 == 0)
			check_truth(g, data, len);
		data[i] = saved;
		if (i % 64 == 0)
			unit_arena_reset(&opened);
	}
	CHECK_EQ(open_and_check(g, data, len), PAIMON_OK);
	unit_arena_reset(&opened);
}

static void
check_lengths(const UnitGroup *g, const uint8_t *data, uint32_t len)
{
	uint8_t    *longer = malloc((size_t) len + 1);

	for (uint32_t i = 0; i < len; i += i < 300 || i > len - 50 ? 1 : 1 + (uint32_t) unit_below(20))
		CHECK_EQ(open_and_check(g, data, i), PAIMON_CORRUPT);
	memcpy(longer, data, len);
	longer[len] = 0;
	CHECK_EQ(open_and_check(g, longer, len + 1), PAIMON_CORRUPT);
	free(longer);
	unit_arena_reset(&opened);
}

static void
check_identity(UnitGroup *g, const uint8_t *data, uint32_t len)
{
	PaimonGroupId id = g->in.id;

	g->in.id.storage_id++;
	CHECK_EQ(open_and_check(g, data, len), PAIMON_CORRUPT);
	g->in.id = id;
	g->in.id.file_no ^= UINT64_C(1) << 40;
	CHECK_EQ(open_and_check(g, data, len), PAIMON_CORRUPT);
	g->in.id = id;
	g->in.id.group_no++;
	CHECK_EQ(open_and_check(g, data, len), PAIMON_CORRUPT);
	g->in.id = id;
	g->in.id.bucket ^= 1;
	CHECK_EQ(open_and_check(g, data, len), PAIMON_CORRUPT);
	g->in.id = id;
	CHECK_EQ(open_and_check(g, data, len), PAIMON_OK);
	unit_arena_reset(&opened);
}

int
main(int argc, char **argv)
{
	UnitArena	coded;
	PaimonAllocator coded_alloc = unit_arena_init(&coded);

	unit_begin("group_corrupt", argc, argv);
	made_alloc = unit_arena_init(&made);
	opened_alloc = unit_arena_init(&opened);
	for (uint32_t k = 0; k < 25; k++)
	{
		UnitGroup	g;
		uint8_t    *data = NULL;
		uint32_t	len = 0;

		uint32_t	nrows = 1 + (uint32_t) unit_below(k % 5 == 0 ? 700 : 60);

		unit_group_make(&g, &made_alloc, nrows, 1 + (uint32_t) unit_below(4), 40, (int) (k % 3));
		CHECK_EQ(paimon_group_encode(&g.in, &coded_alloc, &data, &len), PAIMON_OK);
		if (len < 12000)
			check_flips(&g, data, len);
		check_lengths(&g, data, len);
		check_identity(&g, data, len);
		unit_arena_reset(&made);
		unit_arena_reset(&coded);
	}
	unit_arena_reset(&opened);
	return unit_end();
}
