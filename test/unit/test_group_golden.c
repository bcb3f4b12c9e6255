/*-------------------------------------------------------------------------
 *
 * test_group_golden.c
 *	  The row group format does not change by accident.
 *
 * golden/group_*.bin are groups written by the first version of the format.
 * What is not compressed must be written byte for byte the same (zstd's output
 * may change with its version); all must be read the same, for ever.
 * A deliberate change of format adds files and keeps these readable.
 * "test_group_golden write" writes them.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_group.h"

#define NROWS		400
#define NCOLUMNS	14

static uint64_t state;

/* A generator of its own: the files must not change with unit_rand. */
static uint32_t
next(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t) (state >> 33) % below;
}

static uint64_t
var(const PaimonAllocator *a, const char *s, uint32_t len)
{
	uint8_t    *p = paimon_core_alloc(a, PAIMON_VARLENA_ROOM(len));

	return (uint64_t) (uintptr_t) paimon_varlena_put(&p, (const uint8_t *) s, len);
}

static uint64_t
bytes(const PaimonAllocator *a, uint32_t width, uint32_t distinct)
{
	uint8_t    *p = paimon_core_alloc(a, width);
	uint32_t	v = next(distinct);

	for (uint32_t i = 0; i < width; i++)
		p[i] = (uint8_t) (v * 31 + i * 7);
	return (uint64_t) (uintptr_t) p;
}

static void
make_row(UnitGroup *g, const PaimonAllocator *a, uint32_t i, uint64_t id)
{
	static const char *const cities[] = {"Utrecht", "Lagos", "Quito", "Osaka", ""};
	static const uint64_t codes[] = {UINT64_C(0x123456789ABCDEF), 77, UINT64_C(0xFFFFFFFF00000000)};
	char		text[300];
	int			n = 0;

	while (n < (int) (i % 200))
	{
		const char *city = cities[next(4)];

		n += snprintf(text + n, sizeof(text) - (size_t) n, "%s-%u ", city, next(1000));
	}
	g->values[0][i] = id;		/* follows the key where the key is a number */
	g->values[1][i] = 1000000 * (uint64_t) next(5000) - 77000000;	/* divisor */
	g->values[2][i] = 5 + (uint64_t) i * 999 + next(5);	/* slope */
	g->values[3][i] = UINT64_C(1000000) - (uint64_t) i * 250 - next(9);	/* falling slope */
	g->values[4][i] = codes[next(3)];	/* dictionary of words */
	g->values[5][i] = i % 2 ? (uint64_t) INT64_MIN + next(1u << 30) : (uint64_t) INT64_MAX - next(1u << 30); /* plain */
	g->values[6][i] = (uint64_t) next(1000000) << 40;	/* wide, of interest to zstd only */
	g->values[6][i] += next(3);
	g->values[7][i] = 42;		/* constant */
	g->values[8][i] = var(a, cities[0], next(8));	/* dictionary of texts */
	g->values[9][i] = var(a, text, (uint32_t) n);	/* texts in units */
	g->values[10][i] = bytes(a, 16, 100000);	/* plain fixed */
	g->values[11][i] = bytes(a, 12, 3);	/* dictionary of fixed */
	g->values[12][i] = (uint64_t) next(100000) - 50000;	/* scaled */
	g->values[13][i] = next(1000);	/* all null */
	g->nulls[12][i] = next(4) == 0;
	g->nulls[13][i] = true;
	g->nulls[9][i] = i % 11 == 0;
}

static void
make(UnitGroup *g, const PaimonAllocator *a, bool text_keys, int level)
{
	static const uint8_t phys[NCOLUMNS] = {1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 2, 2, 4, 1};
	uint64_t	id = 0x8000000000000400;

	state = text_keys ? 11 : 12;
	unit_group_make(g, a, NROWS, NCOLUMNS, 1, level);	/* for its arrays only */
	g->in.id = (PaimonGroupId) {UINT64_C(0x1122334455667788), 42, 7, 3};
	for (uint32_t c = 0; c < NCOLUMNS; c++)
	{
		g->columns[c].phys = phys[c];
		g->columns[c].width = c == 10 ? 16 : c == 11 ? 12 : c == 12 ? 2 : 0;
		g->nulls[c] = c == 9 || c >= 12 ? paimon_core_alloc(a, NROWS) : NULL;
	}
	for (uint32_t i = 0; i < NROWS; i++)
	{
		uint8_t    *k = paimon_core_alloc(a, 64);

		id += 1 + next(40);
		g->keys[i].data = k;
		g->keys[i].len = 8;
		for (uint32_t j = 0; j < 8; j++)
			k[j] = (uint8_t) (id >> (56 - 8 * j));
		if (text_keys)
			g->keys[i].len = (uint32_t) snprintf((char *) k, 64, "customer/%06u/%.*s", (unsigned) (id & 0xFFFFF),
												 (int) next(30), "abcdefghijklmnopqrstuvwxyzabcdef");
		g->kinds[i] = (uint8_t) (text_keys ? next(6) : PAIMON_KIND_REPLACE);
		make_row(g, a, i, id - 1000);
	}
}

static void
golden_path(char *path, size_t size, bool text_keys, int level)
{
	const char *slash = strrchr(__FILE__, '/');

	snprintf(path, size, "%.*sgolden/group_v1_%s_%s.bin", slash ? (int) (slash - __FILE__ + 1) : 0, __FILE__,
			 text_keys ? "text" : "number", level ? "zstd" : "plain");
}

static void
check_values(const UnitGroup *g, PaimonGroup *r)
{
	const PaimonBytes *keys;
	const uint64_t *prefixes;
	uint32_t	fixed_len;

	CHECK_EQ(paimon_group_keys(r, &keys, &prefixes, &fixed_len), PAIMON_OK);
	for (uint32_t i = 0; i < NROWS; i++)
	{
		uint8_t		kind = 99;

		CHECK(unit_group_key_cmp(&keys[i], &g->keys[i]) == 0);
		CHECK(paimon_group_kind(r, i, &kind) == PAIMON_OK && kind == g->kinds[i]);
	}
	for (uint32_t c = 0; c < NCOLUMNS; c++)
	{
		const uint64_t *values;
		const bool *nulls;

		CHECK_EQ(paimon_group_values(r, c, &values, &nulls), PAIMON_OK);
		for (uint32_t i = 0; i < NROWS; i++)
			CHECK_MSG(unit_group_same(g, c, i, values[i], nulls != NULL && nulls[i]), "column %u row %u", c, i);
	}
}

static void
golden(bool text_keys, int level, bool write)
{
	UnitArena	arena;
	PaimonAllocator alloc = unit_arena_init(&arena);
	static uint8_t stored[1 << 20];
	char		path[1000];
	UnitGroup	g;
	uint8_t    *data = NULL;
	uint32_t	len = 0;
	uint32_t	stored_len = 0;
	UnitSource	s;
	PaimonGroupSource src;
	PaimonGroup *r;
	FILE	   *f;

	golden_path(path, sizeof(path), text_keys, level);
	make(&g, &alloc, text_keys, level);
	CHECK_EQ(paimon_group_encode(&g.in, &alloc, &data, &len), PAIMON_OK);
	f = fopen(path, write ? "wb" : "rb");
	CHECK_MSG(f != NULL, "%s", path);
	if (f == NULL)
		return;
	if (write)
		CHECK_EQ(fwrite(data, 1, len, f), len);
	else
		stored_len = (uint32_t) fread(stored, 1, sizeof(stored), f);
	fclose(f);
	if (!write)
	{
		CHECK_MSG(level != 0 || (stored_len == len && memcmp(stored, data, len) == 0), "%s: other bytes are written",
				  path);
		src = unit_source(&s, stored, stored_len, &alloc);
		CHECK_EQ(paimon_group_open(&src, &g.in.id, g.columns, NCOLUMNS, &alloc, &r), PAIMON_OK);
		CHECK_EQ(paimon_group_check(r), PAIMON_OK);
		check_values(&g, r);
	}
	unit_arena_reset(&arena);
}

int
main(int argc, char **argv)
{
	bool		write = argc > 1 && strcmp(argv[1], "write") == 0;

	unit_begin("group_golden", argc, argv);
	for (int k = 0; k < 4; k++)
		golden(k & 1, k >> 1, write);
	return unit_end();
}
