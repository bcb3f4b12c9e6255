/*-------------------------------------------------------------------------
 *
 * bench_group.c
 *	  What a row group costs: bytes and nanoseconds a row for the row of the
 *	  workloads (id, ts, customer, region, status, amount, qty, note).
 *
 * Build and run:
 *	  cc -O2 -std=gnu11 -Isrc -Itest/unit test/bench/bench_group.c src/core/core_column*.c src/core/core_group*.c
 *	     -lzstd -o bench_group && ./bench_group [rows a group] [zstd level]
 *
 * The numbers are for comparing two builds on one machine; nothing is checked.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_group.h"

/* The server's checksum uses the processor's instruction; a table would dominate the decoding times. */
#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) uint32_t
paimon_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t	c = (uint32_t) ~crc;
	uint64_t	w;

	for (; len >= 8; len -= 8, p += 8)
	{
		memcpy(&w, p, 8);
		c = _mm_crc32_u64(c, w);
	}
	for (; len > 0; len--)
		c = _mm_crc32_u8((uint32_t) c, *p++);
	return ~(uint32_t) c;
}
#else
#include "unit_crc32c.c"
#endif

#define NCOLUMNS	8
#define TABLE_ROWS	5000000
#define FILE_ROWS	125000		/* rows of the flush that the group is part of */

static const char *const names[NCOLUMNS] = {"id", "ts", "customer", "region", "status", "amount", "qty", "note"};

static double
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static uint64_t
text(const PaimonAllocator *a, const char *s)
{
	uint32_t	len = (uint32_t) strlen(s);
	uint8_t    *p = paimon_core_alloc(a, PAIMON_VARLENA_ROOM(len));

	return (uint64_t) (uintptr_t) paimon_varlena_put(&p, (const uint8_t *) s, len);
}

static uint64_t
note(const PaimonAllocator *a)
{
	static const char *const phrases[] = {"delivered to customer", "please call back on", "returned with invoice",
		"waiting for payment", "sent by express mail", "refund was promised"};
	char		s[64];

	snprintf(s, sizeof(s), "%s %016" PRIx64 "%04x", phrases[unit_below(6)], unit_rand(), (unsigned) unit_below(65536));
	return text(a, s);
}

static int
cmp_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

static void
make(UnitGroup *g, const PaimonAllocator *a, uint32_t n, int level)
{
	static const uint8_t phys[NCOLUMNS] = {1, 1, 1, 3, 3, 4, 1, 3};
	uint64_t   *ids = paimon_core_alloc(a, n * 8);
	char		s[64];

	unit_group_make(g, a, n, NCOLUMNS, 10, level);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = unit_below((uint64_t) n * TABLE_ROWS / FILE_ROWS);
	qsort(ids, n, 8, cmp_u64);
	for (uint32_t c = 0; c < NCOLUMNS; c++)
	{
		g->columns[c].phys = phys[c];
		g->columns[c].width = phys[c] == PAIMON_PHYS_SCALED ? 2 : 0;
		g->nulls[c] = NULL;
	}
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	key = ids[i] + 1234567;
		uint8_t    *k = paimon_core_alloc(a, 8);

		g->kinds[i] = PAIMON_KIND_INSERT;
		for (uint32_t j = 0; j < 8; j++)
			k[j] = (uint8_t) ((key ^ (UINT64_C(1) << 63)) >> (56 - 8 * j));
		g->keys[i].data = k;
		g->keys[i].len = 8;
		g->values[0][i] = key;
		g->values[1][i] = UINT64_C(757382400000000) + unit_below(365 * 86400) * 1000000;
		g->values[2][i] = 1 + unit_below(100000);
		snprintf(s, sizeof(s), "region-%02u", (unsigned) unit_below(20));
		g->values[3][i] = text(a, s);
		snprintf(s, sizeof(s), "status%u", (unsigned) unit_below(6));
		g->values[4][i] = text(a, s);
		g->values[5][i] = unit_below(1000000);
		g->values[6][i] = 1 + unit_below(100);
		g->values[7][i] = note(a);
	}
}

/* Encoding time and size of the columns [from, to). */
static double
encode(const UnitGroup *g, uint32_t from, uint32_t to, UnitArena *arena, uint8_t **data, uint32_t *len)
{
	PaimonAllocator alloc = unit_arena_init(arena);
	PaimonGroupInput in = g->in;
	double		best = 1e18;

	in.ncolumns = to - from;
	in.columns += from;
	in.values += from;
	in.nulls += from;
	for (int k = 0; k < 15; k++)
	{
		double		t = now_ns();

		unit_arena_reset(arena);
		if (paimon_group_encode(&in, &alloc, data, len) != PAIMON_OK)
			abort();
		t = now_ns() - t;
		best = t < best ? t : best;
	}
	return best;
}

static const uint8_t *
direct_fetch(void *arg, uint32_t off, uint32_t len)
{
	(void) len;
	return (const uint8_t *) arg + off;
}

/* Decoding time of column c (UINT32_MAX: keys). */
static double
decode(const UnitGroup *g, uint8_t *data, uint32_t len, uint32_t c, bool single)
{
	UnitArena	arena;
	PaimonAllocator alloc = unit_arena_init(&arena);
	PaimonGroupSource src = {len, direct_fetch, data, NULL};
	double		best = 1e18;

	for (int k = 0; k < 25; k++)
	{
		PaimonGroup *r;
		const uint64_t *values;
		const bool *nulls;
		const PaimonBytes *keys;
		uint64_t	v;
		bool		isnull;
		uint32_t	row = (uint32_t) unit_below(g->in.nrows);
		double		t;
		PaimonResult res;

		if (paimon_group_open(&src, &g->in.id, g->columns, NCOLUMNS, &alloc, &r) != PAIMON_OK)
			abort();
		t = now_ns();
		if (c == UINT32_MAX)
			res = single ? paimon_group_seek(r, g->keys[row].data, 8, &row, &isnull) :
				paimon_group_keys(r, &keys, &values, &row);
		else
			res = single ? paimon_group_value(r, c, row, &v, &isnull) : paimon_group_values(r, c, &values, &nulls);
		t = now_ns() - t;
		if (res != PAIMON_OK)
			abort();
		best = t < best ? t : best;
		unit_arena_reset(&arena);
	}
	return best;
}

int
main(int argc, char **argv)
{
	uint32_t	n = argc > 1 ? (uint32_t) atoi(argv[1]) : 4096;
	int			level = argc > 2 ? atoi(argv[2]) : 1;
	UnitArena	made;
	UnitArena	coded;
	PaimonAllocator alloc = unit_arena_init(&made);
	UnitGroup	g;
	uint8_t    *data;
	uint32_t	len;
	uint32_t	keys_len;
	double		keys_ns;
	double		ns;

	unit_state = 1;
	if (n == 0 || n > PAIMON_GROUP_MAX_ROWS)
		return 1;
	make(&g, &alloc, n, level);
	printf("%u rows a group, zstd level %d\n", n, level);
	printf("%-10s %12s %12s %12s %12s\n", "column", "bytes/row", "encode ns", "decode ns", "one row ns");
	keys_ns = encode(&g, 0, 0, &coded, &data, &keys_len);
	unit_arena_reset(&coded);
	ns = encode(&g, 0, NCOLUMNS, &coded, &data, &len);
	printf("%-10s %12.2f %12.1f %12.2f %12.0f\n", "key", (double) keys_len / n, keys_ns / n,
		   decode(&g, data, len, UINT32_MAX, false) / n, decode(&g, data, len, UINT32_MAX, true));
	for (uint32_t c = 0; c < NCOLUMNS; c++)
	{
		UnitArena	other;
		uint8_t    *one;
		uint32_t	one_len;
		double		one_ns = encode(&g, c, c + 1, &other, &one, &one_len);

		printf("%-10s %12.2f %12.1f %12.2f %12.0f\n", names[c], (double) (one_len - keys_len) / n,
			   (one_ns - keys_ns) / n, decode(&g, data, len, c, false) / n, decode(&g, data, len, c, true));
		unit_arena_reset(&other);
	}
	printf("%-10s %12.2f %12.1f\n", "row", (double) len / n, ns / n);
	unit_arena_reset(&coded);
	unit_arena_reset(&made);
	return 0;
}
