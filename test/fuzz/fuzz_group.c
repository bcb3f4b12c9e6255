/*-------------------------------------------------------------------------
 *
 * fuzz_group.c
 *	  Row groups from any bytes: no crash, no read outside, no memory out of
 *	  proportion, and no contradiction between the ways to read a group.
 *
 * Input with a group's magic is a group.  Otherwise: the first byte says how
 * large, the next four seed a well-formed group, the rest changes bytes in it
 * (2 bytes place, 1 byte value each).  The fuzz build does not compare checksums, so
 * that what is behind them is reached.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_group.h"

#define REQUIRE(cond) \
	do { \
		if (!(cond)) \
		{ \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort(); \
		} \
	} while (0)

/* Memory of one input, freed together; asking for more than the group can hold is a failure. */
typedef struct FuzzArena
{
	UnitArena	arena;
	size_t		used;
	size_t		largest;		/* allowed in one piece */
} FuzzArena;

#define ARENA_MAX	((size_t) 256 << 20)

static void *
fuzz_alloc(void *arg, size_t size)
{
	FuzzArena  *a = arg;

	REQUIRE(size <= a->largest);
	if (a->used + size > ARENA_MAX)
		return NULL;
	a->used += size;
	return unit_arena_alloc(&a->arena, size);
}

static void
require_same(PaimonColumnDesc d, uint64_t a, uint64_t b)
{
	const uint8_t *x = (const uint8_t *) (uintptr_t) a;
	const uint8_t *y = (const uint8_t *) (uintptr_t) b;
	PaimonBytes p;
	PaimonBytes q;

	if (d.phys == PAIMON_PHYS_FIXED)
		REQUIRE(memcmp(x, y, d.width) == 0);
	else if (d.phys == PAIMON_PHYS_VAR)
	{
		REQUIRE(paimon_varlena_payload(x, &p) && paimon_varlena_payload(y, &q));
		REQUIRE(p.len == q.len && memcmp(p.data, q.data, p.len) == 0);
	}
	else
		REQUIRE(a == b);
}

/* Single values first (in r), whole columns then (in w): they must agree. */
static void
read_columns(PaimonGroup *r, PaimonGroup *w)
{
	for (uint32_t c = 0; c < paimon_group_ncolumns(r) && c < 20; c++)
	{
		PaimonColumnDesc d = paimon_group_column_desc(r, c);
		const uint64_t *values;
		const bool *nulls;
		bool		whole = paimon_group_values(w, c, &values, &nulls) == PAIMON_OK;
		uint32_t	n = paimon_group_nrows(r);

		for (uint32_t row = 0; row < n; row += 1 + n / 16)
		{
			uint64_t	v;
			bool		isnull;

			if (paimon_group_value(r, c, row, &v, &isnull) != PAIMON_OK || !whole)
				continue;
			REQUIRE(isnull == (nulls != NULL && nulls[row]));
			if (!isnull)
				require_same(d, v, values[row]);
		}
	}
}

/* Ranges agree with whole columns, too: of a reader that may have single values already. */
static void
read_ranges(PaimonGroup *r, PaimonGroup *w)
{
	uint64_t	values[PAIMON_GROUP_MAX_ROWS];
	bool		rnulls[PAIMON_GROUP_MAX_ROWS];
	uint32_t	n = paimon_group_nrows(r);
	uint32_t	step = 1 + n / 3;

	for (uint32_t c = 0; c < paimon_group_ncolumns(r) && c < 20; c++)
	{
		PaimonColumnDesc d = paimon_group_column_desc(r, c);
		PaimonColumnStats stats;
		const uint64_t *whole;
		const bool *nulls;
		bool		ok = paimon_group_values(w, c, &whole, &nulls) == PAIMON_OK;

		paimon_group_column_stats(r, c, &stats);
		for (uint32_t first = 0; first < n; first += step)
		{
			uint32_t	count = n - first < step ? n - first : step;

			if (paimon_group_range(r, c, first, count, values, rnulls) != PAIMON_OK || !ok)
				continue;
			for (uint32_t i = 0; i < count; i++)
			{
				bool		isnull = stats.null_count > 0 && rnulls[i];

				REQUIRE(isnull == (nulls != NULL && nulls[first + i]));
				if (!isnull)
					require_same(d, values[i], whole[first + i]);
			}
		}
	}
}

static void
read_keys(PaimonGroup *r, PaimonGroup *w, bool sound)
{
	const PaimonBytes *keys;
	const uint64_t *prefixes;
	uint32_t	fixed_len;
	uint32_t	n = paimon_group_nrows(r);
	bool		whole = paimon_group_keys(w, &keys, &prefixes, &fixed_len) == PAIMON_OK;

	for (uint32_t row = 0; row < n; row += 1 + n / 16)
	{
		PaimonBytes key = {(const uint8_t *) "k", 1};
		uint8_t		room[12];
		uint32_t	found;
		uint8_t		kind;
		bool		equal;

		(void) paimon_group_kind(r, row, &kind);
		if (paimon_group_key_into(r, row, room, sizeof(room), &key) == PAIMON_OK && whole)
			REQUIRE(unit_group_key_cmp(&key, &keys[row]) == 0);
		if (paimon_group_key(r, row, &key) == PAIMON_OK && whole)
			REQUIRE(unit_group_key_cmp(&key, &keys[row]) == 0);
		if (paimon_group_seek(r, key.data, key.len, &found, &equal) != PAIMON_OK)
			continue;
		REQUIRE(found <= n);
		if (sound)
		{
			REQUIRE(equal && unit_group_key_cmp(&key, &keys[found]) == 0);
			REQUIRE(found == 0 || unit_group_key_cmp(&keys[found - 1], &key) < 0);
		}
	}
}

static void
read_group(const uint8_t *data, uint32_t len)
{
	FuzzArena	a = {.largest = (size_t) len * 32768 + (2 << 20)};
	PaimonAllocator alloc = {fuzz_alloc, &a};
	UnitArena	bytes;
	PaimonAllocator bytes_alloc = unit_arena_init(&bytes);
	UnitSource	s;
	PaimonGroupSource src = unit_source(&s, data, len, &bytes_alloc);
	PaimonGroupId id = {1, 2, 3, 4};
	PaimonGroup *r;
	PaimonGroup *w;

	a.arena.fail_after = -1;
	if (paimon_group_open(&src, &id, NULL, 0, &alloc, &r) == PAIMON_OK &&
		paimon_group_open(&src, &id, NULL, 0, &alloc, &w) == PAIMON_OK)
	{
		bool		sound = paimon_group_check(w) == PAIMON_OK;

		read_keys(r, w, sound);
		read_columns(r, w);
		read_ranges(r, w);
		REQUIRE((paimon_group_check(w) == PAIMON_OK) == sound || a.used > ARENA_MAX / 2);
	}
	unit_arena_reset(&bytes);
	unit_arena_reset(&a.arena);
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	UnitArena	made;
	PaimonAllocator alloc = unit_arena_init(&made);
	UnitGroup	g;
	uint8_t    *group;
	uint32_t	nrows;
	uint32_t	len;

	if (size < 6)
		return 0;
	if (memcmp(data, "PRGP", 4) == 0)
	{
		read_group(data, (uint32_t) size);
		return 0;
	}
	unit_state = paimon_get_u32(data + 1);
	nrows = 1 + data[0] * (data[0] & 1 ? 1u : 5u);
	unit_group_make(&g, &alloc, nrows, 1 + (uint32_t) unit_below(3), 100, data[0] & 2 ? 1 : 0);
	REQUIRE(paimon_group_encode(&g.in, &alloc, &group, &len) == PAIMON_OK);
	for (size_t i = 5; i + 3 <= size && i < 5 + 3 * 40; i += 3)
		group[paimon_get_u16(data + i) % len] = data[i + 2];
	read_group(group, len);
	unit_arena_reset(&made);
	return 0;
}
