/*-------------------------------------------------------------------------
 *
 * test_column_pack.c
 *	  Packed numbers: every width, divisors, slopes, slices, extremes, truncation.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"
#include "unit.h"

#define MAX_N 3000

static UnitArena arena;
static PaimonAllocator alloc;

/* The body that slices are fetched from: each in a block of exactly its size, for the sanitizer. */
static const uint8_t *
fetch(void *arg, uint32_t off, uint32_t len)
{
	const PaimonBuf *body = arg;
	uint8_t    *exact = paimon_core_alloc(&alloc, len);

	CHECK(off + len <= body->len);
	memcpy(exact, body->data + off, len);
	return exact;
}

/* The sum of some numbers, where it is given at all. */
static void
check_sum(const PaimonPacked *p, const uint64_t *v, uint32_t first, uint32_t count)
{
	uint64_t	wanted = 0;
	uint64_t	sum;

	for (uint32_t i = 0; i < count; i++)
		wanted += v[first + i];
	if (paimon_packed_sum(p, first, count, &sum))
		CHECK_EQ(sum, wanted);
	else
		CHECK(p->slope != 0 || p->mul != 1 || p->width > 32 || p->base > UINT32_MAX);
}

/* A changed byte of any slice must be seen. */
static void
check_damage(PaimonEncoder *e, PaimonGroupContext *g, PaimonPacked *p, uint32_t n)
{
	size_t		at = unit_below(e->out.len);
	PaimonSlices saved = *p->slices;

	e->out.data[at] ^= (uint8_t) (1 + unit_below(255));
	memset(p->slices->slice, 0, sizeof(p->slices->slice));
	p->slices->whole = false;
	CHECK_EQ(paimon_packed_fetch(g, p, 0, n), PAIMON_CORRUPT);
	CHECK_EQ(paimon_packed_fetch_all(g, p), PAIMON_CORRUPT);
	*p->slices = saved;
}

/*
 * Packs v[0..n), reads it back in all ways, and returns the packing's size.
 * The bytes are copied to a block of exactly their size for the sanitizer.
 */
static uint64_t
round_trip(const uint64_t *v, uint32_t n, uint64_t min, uint64_t range, uint32_t *width)
{
	static uint64_t got[MAX_N];
	PaimonPackPlan plan;
	PaimonEncoder e = {.a = &alloc, .id_crc = 99, .column = 3, .out.a = &alloc, .head.a = &alloc};
	PaimonGroupContext g = {.src.fetch = fetch, .src.arg = &e.out, .a = alloc, .id_crc = 99};
	PaimonPacked p;
	PaimonCursor c = {.g = &g, .column = 3};
	uint64_t	size;
	uint8_t    *exact;
	uint32_t	first = (uint32_t) unit_below(n);
	uint32_t	count = (uint32_t) unit_below(n - first + 1);

	paimon_pack_plan(&plan, v, n, min, range);
	paimon_pack_write(&e, &plan, v);
	CHECK_EQ(e.head.err, PAIMON_OK);
	CHECK_EQ(e.out.err, PAIMON_OK);
	size = e.head.len + e.out.len;
	CHECK_EQ(size, paimon_pack_size(&plan));
	exact = malloc(e.head.len);
	memcpy(exact, e.head.data, e.head.len);
	c.body_len = (uint32_t) e.out.len;
	for (size_t len = 0; len < e.head.len; len += 1 + len / 4)
	{
		c.p = exact;
		c.end = exact + len;
		c.body_pos = 0;
		CHECK_EQ(paimon_packed_read(&c, n, &p), PAIMON_CORRUPT);
	}
	c.p = exact;
	c.end = exact + e.head.len;
	c.body_pos = 0;
	if (e.out.len > 0)
	{
		c.body_len--;
		CHECK_EQ(paimon_packed_read(&c, n, &p), PAIMON_CORRUPT);
		c.p = exact;
		c.body_len++;
		c.body_pos = 0;
	}
	CHECK_EQ(paimon_packed_read(&c, n, &p), PAIMON_OK);
	CHECK(paimon_cursor_done(&c));
	CHECK_EQ(p.slices != NULL, e.out.len > 0);

	/* some slices, then single numbers, then all */
	CHECK_EQ(paimon_packed_need(&g, &p, first, count), PAIMON_OK);
	check_sum(&p, v, first, count);
	paimon_packed_unpack(&p, first, count, got);
	CHECK(memcmp(got, v + first, count * sizeof(uint64_t)) == 0);
	for (uint32_t i = 0; i < n; i++)
	{
		CHECK_EQ(paimon_packed_need(&g, &p, i, 1), PAIMON_OK);
		CHECK_MSG(paimon_packed_get(&p, i) == v[i], "row %u of %u, width %u", i, n, p.width);
	}
	paimon_packed_unpack(&p, 0, n, got);
	CHECK(memcmp(got, v, n * sizeof(uint64_t)) == 0);
	CHECK_EQ(paimon_packed_need_all(&g, &p), PAIMON_OK);
	paimon_packed_unpack(&p, 0, n, got);
	for (uint32_t i = 0; i < n; i++)
		CHECK_MSG(got[i] == v[i] && paimon_packed_get(&p, i) == v[i], "row %u of %u, width %u", i, n, p.width);
	paimon_packed_unpack(&p, first, count, got);
	CHECK(memcmp(got, v + first, count * sizeof(uint64_t)) == 0);
	check_sum(&p, v, first, count);
	check_sum(&p, v, 0, n);
	if (p.slices != NULL)
		check_damage(&e, &g, &p, n);
	*width = p.width;
	free(exact);
	unit_arena_reset(&arena);
	return size;
}

static uint64_t
signed_range(const uint64_t *v, uint32_t n, uint64_t *min)
{
	int64_t		lo = INT64_MAX;
	int64_t		hi = INT64_MIN;

	for (uint32_t i = 0; i < n; i++)
	{
		lo = (int64_t) v[i] < lo ? (int64_t) v[i] : lo;
		hi = (int64_t) v[i] > hi ? (int64_t) v[i] : hi;
	}
	*min = (uint64_t) lo;
	return (uint64_t) hi - (uint64_t) lo;
}

/* Every width at every base, with and without a divisor. */
static void
check_widths(void)
{
	static uint64_t v[MAX_N];
	static const uint32_t sizes[] = {1, 2, 3, 8, 9, 64, 65, 500};
	uint32_t	width;
	uint64_t	min;

	for (uint32_t w = 0; w <= 64; w++)
		for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		{
			uint32_t	n = sizes[s];
			uint64_t	base = unit_below(4) ? unit_rand() : 0;
			uint64_t	mul = w < 57 && unit_below(2) ? 1 + unit_below(UINT64_C(1) << (57 - w)) : 1;
			uint64_t	mask = w == 64 ? UINT64_MAX : (UINT64_C(1) << w) - 1;
			uint64_t	range;

			for (uint32_t i = 0; i < n; i++)
				v[i] = base + mul * (i == 0 ? 0 : i == 1 ? mask : unit_rand() & mask);

			/* few numbers may have a large common divisor; a range that wraps as signed numbers is plain */
			range = signed_range(v, n, &min);
			round_trip(v, n, min, range, &width);
			CHECK_MSG(width == 64 || width <= w, "width %u for %u", width, w);

			/* unsigned, as keys are */
			if (n > 1 && base + mul * mask >= base)
			{
				round_trip(v, n, base, mul * mask, &width);
				CHECK_MSG(w > 57 ? width == 64 || n < 10 : width <= w, "width %u for %u", width, w);
				CHECK_MSG(n < 500 || width == (w > 57 ? 64 : w), "width %u for %u", width, w);
			}
		}
}

/* Straight lines with noise need bits for the noise only. */
static void
check_slopes(void)
{
	static uint64_t v[MAX_N];
	uint32_t	width;
	uint64_t	min;
	uint64_t	range;

	for (uint32_t k = 0; k < 300; k++)
	{
		uint32_t	n = 64 + (uint32_t) unit_below(MAX_N - 64);
		uint64_t	base = unit_rand() >> 2;
		uint64_t	step = 1000 + (unit_rand() >> (34 + unit_below(20)));
		uint64_t	noise = 1 + unit_below(200);
		uint64_t	divisor = 1 + unit_below(3) * 499;
		bool		falling = unit_below(2);

		if (step * n >= UINT64_C(1) << 46)
			step = 1000;
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	d = divisor * (i * step + unit_below(noise));

			v[i] = falling ? base - d : base + d;
		}
		range = signed_range(v, n, &min);
		round_trip(v, n, min, range, &width);
		CHECK_MSG(width <= 10, "width %u, step %" PRIu64 ", noise %" PRIu64, width, step, noise);
	}
}

static void
check_extremes(void)
{
	static uint64_t v[MAX_N];
	static const int64_t odd[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1, INT64_MAX - 1};
	uint32_t	width;
	uint64_t	min;

	for (uint32_t k = 0; k < 300; k++)
	{
		uint32_t	n = 1 + (uint32_t) unit_below(100);
		uint32_t	kinds = 1 + (uint32_t) unit_below(7);
		uint64_t	range;

		for (uint32_t i = 0; i < n; i++)
			v[i] = (uint64_t) odd[unit_below(kinds)];
		range = signed_range(v, n, &min);
		round_trip(v, n, min, range, &width);
	}
	for (uint32_t i = 0; i < 200; i++)
		v[i] = (uint64_t) INT64_MIN + i * 7;
	v[200] = (uint64_t) INT64_MAX;
	round_trip(v, 200, v[0], 199 * 7, &width);
	CHECK_EQ(width, 0);
	round_trip(v, 201, v[0], UINT64_MAX, &width);
	CHECK_EQ(width, 64);
}

/* Number i of packed ones, bit by bit. */
static uint64_t
number_by_bits(const PaimonPacked *p, const uint8_t *bits, uint32_t i)
{
	uint64_t	r = 0;

	for (uint32_t b = 0; b < p->width; b++)
	{
		uint64_t	at = (uint64_t) i * p->width + b;

		r |= (uint64_t) (bits[at >> 3] >> (at & 7) & 1) << b;
	}
	return p->base + p->mul * ((i * p->slope >> 16) + r);
}

/* Unpacks some stretches: from anywhere, over the ends of slices, and up to the last number. */
static void
check_stretches(const PaimonPacked *p, const uint8_t *bits)
{
	for (uint32_t k = 0; k < 8; k++)
	{
		uint32_t	first = k == 0 ? 0 : (uint32_t) unit_below(p->n);
		uint32_t	count = k < 3 ? p->n - first : (uint32_t) unit_below(p->n - first + 1);
		uint64_t   *got = malloc((count + 1) * sizeof(uint64_t));
		uint32_t	wrong = 0;

		got[count] = UINT64_C(0x5EED5EED5EED5EED);
		paimon_packed_unpack(p, first, count, got);
		for (uint32_t i = 0; i < count; i++)
			wrong += got[i] != number_by_bits(p, bits, first + i) || got[i] != paimon_packed_get(p, first + i);
		CHECK_MSG(wrong == 0, "%u of %u numbers from %u on, of %u, width %u, slope %" PRIu64 ", mul %" PRIu64, wrong, count, first, p->n, p->width, p->slope, p->mul);
		CHECK(got[count] == UINT64_C(0x5EED5EED5EED5EED));
		free(got);
	}
}

/*
 * Every width with every kind of slope and factor, also those that the writer would not choose: in one piece, in slices of which each has a block of
 * exactly its size, and in slices fetched together.
 */
static void
check_unpack(void)
{
	static const uint32_t sizes[] = {1, 2, 7, 8, 9, 63, PAIMON_SLICE_ITEMS - 1, PAIMON_SLICE_ITEMS, PAIMON_SLICE_ITEMS + 1, 2 * PAIMON_SLICE_ITEMS + 13, MAX_N};

	for (uint32_t w = 0; w <= 64; w += w == 57 ? 7 : 1)
		for (uint32_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (uint32_t kind = 0; kind < 4; kind++)
			{
				uint32_t	size = PAIMON_SLICE_ITEMS / 8 * w;
				PaimonSlices slices = {0};
				PaimonPacked p = {.n = sizes[s], .width = w, .base = unit_below(3) ? unit_rand() : 0, .mul = 1};
				uint8_t    *bits;

				p.nbytes = (uint32_t) (((uint64_t) p.n * w + 7) / 8);
				if (kind & 1)
					p.slope = unit_rand() >> unit_below(64);
				if (kind & 2)
					p.mul = unit_below(2) ? 0 - (1 + unit_below(1000)) : unit_rand();
				bits = malloc(p.nbytes + 1);
				for (uint32_t i = 0; i < p.nbytes; i++)
					bits[i] = (uint8_t) unit_rand();
				p.bits = memcpy(malloc(p.nbytes + (p.nbytes == 0)), bits, p.nbytes);
				check_stretches(&p, bits);
				if (w > 0)
				{
					const uint8_t *whole = p.bits;
					uint32_t	nslices = (p.n + PAIMON_SLICE_ITEMS - 1) / PAIMON_SLICE_ITEMS;

					p.bits = NULL;
					p.slices = &slices;
					for (uint32_t i = 0; i < nslices; i++)
					{
						uint32_t	len = i + 1 < nslices ? size : p.nbytes - i * size;

						slices.slice[i] = memcpy(malloc(len), bits + i * size, len);
					}
					check_stretches(&p, bits);
					for (uint32_t i = 0; i < nslices; i++)
					{
						free((void *) slices.slice[i]);
						slices.slice[i] = whole + i * size;
					}
					slices.whole = true;
					check_stretches(&p, bits);
					p.bits = whole;
				}
				free((void *) p.bits);
				free(bits);
			}
}

/* Headers that cannot be. */
static void
check_malformed(void)
{
	static const uint8_t bad[][2] = {{58, 0}, {63, 0}, {65, 0}, {255, 0}, {3, 16}, {3, 255}, {3, 8}};
	uint8_t		bytes[64] = {0};
	PaimonPacked p;

	for (uint32_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
	{
		PaimonCursor c = {.p = bytes, .end = bytes + sizeof(bytes)};

		bytes[0] = bad[i][0];
		bytes[1] = bad[i][1];
		CHECK_EQ(paimon_packed_read(&c, 1, &p), PAIMON_CORRUPT);
	}
}

int
main(int argc, char **argv)
{
	unit_begin("column_pack", argc, argv);
	alloc = unit_arena_init(&arena);
	check_widths();
	check_slopes();
	check_extremes();
	check_unpack();
	check_malformed();
	unit_arena_reset(&arena);
	return unit_end();
}
