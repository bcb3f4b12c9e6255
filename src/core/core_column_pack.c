/*-------------------------------------------------------------------------
 *
 * core_column_pack.c
 *	  Packed numbers: frame of reference, common divisor, slope, bit packing.
 *
 * All arithmetic is unsigned and wraps, so signed 64-bit values of any range
 * are safe: what the writer subtracts the reader adds, modulo 2^64.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

#define PACK_FLAG_BASE	1
#define PACK_FLAG_MUL	2
#define PACK_FLAG_SLOPE 4
#define PACK_FLAG_SLICED 8		/* the bits are in the body; the head has their checksums */

/* A slope is only tried for quotients below this: i * slope then stays below 2^63. */
#define SLOPE_RANGE_MAX (UINT64_C(1) << 47)

#define SLOPE_SAMPLES	32

/* Bits needed for numbers 0..max; 58 to 63 become 64, since the reader takes a number from one 8-byte load. */
static uint32_t
bits_for(uint64_t max)
{
	uint32_t	w = max == 0 ? 0 : 64 - (uint32_t) __builtin_clzll(max);

	return w > 57 ? 64 : w;
}

/* Inverse of an odd number modulo 2^64 (each step doubles the right bits; 3 are right at first). */
static uint64_t
odd_inverse(uint64_t odd)
{
	uint64_t	x = odd;

	for (int i = 0; i < 5; i++)
		x *= 2 - odd * x;
	return x;
}

static uint64_t
gcd64(uint64_t a, uint64_t b)
{
	while (b != 0)
	{
		uint64_t	t = a % b;

		a = b;
		b = t;
	}
	return a;
}

/*
 * Greatest common divisor of v[i] - min.  Divisibility by the candidate is
 * tested by multiplication with its inverse: d's odd quotient is small
 * exactly if the odd part divides d.
 */
static uint64_t
common_divisor(const uint64_t *v, uint32_t n, uint64_t min)
{
	uint64_t	g = 0;
	uint64_t	inverse = 0;
	uint64_t	limit = 0;
	uint32_t	shift = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	d = v[i] - min;

		if (g != 0)
		{
			uint64_t	low = d & ((UINT64_C(1) << shift) - 1);

			if (low == 0 && (d >> shift) * inverse <= limit)
				continue;
		}
		g = gcd64(d, g);
		if (g == 1)
			break;
		if (g != 0)
		{
			shift = (uint32_t) __builtin_ctzll(g);
			inverse = odd_inverse(g >> shift);
			limit = UINT64_MAX / (g >> shift);
		}
	}
	return g == 0 ? 1 : g;
}

static inline uint64_t
quotient(const PaimonPackPlan *plan, uint64_t v)
{
	uint64_t	d = plan->descending ? plan->origin - v : v - plan->origin;

	return (d >> plan->shift) * plan->odd_inverse;
}

/* Range of the residuals around a slope, over every step-th number. */
static uint64_t
slope_range(const PaimonPackPlan *plan, const uint64_t *v, uint32_t n, uint32_t step, uint64_t slope, int64_t *rmin)
{
	int64_t		lo = INT64_MAX;
	int64_t		hi = INT64_MIN;

	for (uint32_t i = 0; i < n; i += step)
	{
		int64_t		r = (int64_t) quotient(plan, v[i]) - (int64_t) ((i * slope) >> 16);

		if (r < lo)
			lo = r;
		if (r > hi)
			hi = r;
	}
	*rmin = lo;
	return (uint64_t) hi - (uint64_t) lo;
}

/* Replaces the frame of reference by a slope where that clearly pays. */
static void
try_slope(PaimonPackPlan *plan, const uint64_t *v, uint32_t n, uint64_t min, uint64_t range, uint64_t qrange)
{
	PaimonPackPlan line = *plan;
	uint64_t	slope;
	uint64_t	rrange;
	int64_t		rmin;
	uint32_t	width;

	if (n < 16 || qrange >= SLOPE_RANGE_MAX || plan->p.width < 3)
		return;
	if (v[n - 1] - min < v[0] - min)
	{
		line.descending = true;
		line.origin = min + range;
		line.p.mul = 0 - plan->p.mul;
	}
	slope = quotient(&line, v[n - 1]) - quotient(&line, v[0]);
	if (slope >= SLOPE_RANGE_MAX)
		return;
	slope = (slope << 16) / (n - 1);
	if (n > 4 * SLOPE_SAMPLES && slope_range(&line, v, n, n / SLOPE_SAMPLES, slope, &rmin) > qrange / 4)
		return;
	rrange = slope_range(&line, v, n, 1, slope, &rmin);
	width = bits_for(rrange);
	if (width + 2 > plan->p.width || (uint64_t) (plan->p.width - width) * n < 8 * 16)
		return;
	line.p.slope = slope;
	line.p.width = width;
	line.rmin = (uint64_t) rmin;
	line.p.base = line.origin + line.p.mul * line.rmin;
	*plan = line;
}

/*
 * Decides how to pack v[0..n), whose smallest member (in the caller's order,
 * signed or unsigned) is `min` and whose largest is min + range.
 */
void
paimon_pack_plan(PaimonPackPlan *plan, const uint64_t *v, uint32_t n, uint64_t min, uint64_t range)
{
	uint64_t	divisor;
	uint64_t	qrange;

	memset(plan, 0, sizeof(*plan));
	plan->p.n = n;
	plan->p.base = min;
	plan->p.mul = 1;
	plan->origin = min;
	plan->odd_inverse = 1;
	if (range == 0)
		return;
	divisor = common_divisor(v, n, min);
	plan->shift = (uint32_t) __builtin_ctzll(divisor);
	plan->odd_inverse = odd_inverse(divisor >> plan->shift);
	plan->p.mul = divisor;
	qrange = range / divisor;
	plan->p.width = bits_for(qrange);
	if (plan->p.width == 64)
	{
		plan->p.base = plan->origin = 0;
		plan->p.mul = plan->odd_inverse = 1;
		plan->shift = 0;
		return;
	}
	try_slope(plan, v, n, min, range, qrange);
}

/* Plan for codes 0..max, which need no look at the numbers. */
void
paimon_pack_plan_codes(PaimonPackPlan *plan, uint32_t n, uint64_t max)
{
	memset(plan, 0, sizeof(*plan));
	plan->p.n = n;
	plan->p.mul = 1;
	plan->odd_inverse = 1;
	plan->p.width = bits_for(max);
}

static inline uint32_t
nslices(uint32_t n)
{
	return (n + PAIMON_SLICE_ITEMS - 1) / PAIMON_SLICE_ITEMS;
}

static inline uint32_t
packed_bytes(const PaimonPacked *p)
{
	return (uint32_t) (((uint64_t) p->n * p->width + 7) / 8);
}

/* Bytes that paimon_pack_write will write, in head and body. */
uint64_t
paimon_pack_size(const PaimonPackPlan *plan)
{
	const PaimonPacked *p = &plan->p;
	uint32_t	nbytes = packed_bytes(p);

	return 2 + (p->base != 0 ? 8 : 0) + (p->mul != 1 ? 8 : 0) + (p->slope != 0 ? 8 : 0) + (uint64_t) nbytes +
		(nbytes >= PAIMON_SLICE_MIN ? 4 * nslices(p->n) : 0);
}

/* The residuals' bits, to the end of a buffer. */
static void
write_bits(const PaimonPackPlan *plan, const uint64_t *v, PaimonBuf *out)
{
	const PaimonPacked *p = &plan->p;
	size_t		nbytes = packed_bytes(p);
	uint64_t	acc = 0;
	uint32_t	used = 0;
	uint8_t    *dst;

	if (p->width == 0 || !paimon_buf_reserve(out, nbytes + 8))
		return;
	dst = out->data + out->len;
	out->len += nbytes;
	for (uint32_t i = 0; i < p->n; i++)
	{
		uint64_t	r = quotient(plan, v[i]) - ((i * p->slope) >> 16) - plan->rmin;

		acc |= r << used;
		used += p->width;
		if (used >= 64)
		{
			paimon_put_u64(dst, acc);
			dst += 8;
			used -= 64;
			acc = used == 0 ? 0 : r >> (p->width - used);
		}
	}
	if (used > 0)
		paimon_put_u64(dst, acc);	/* the 8 bytes reserved beyond the end take the rest */
}

/* Packs to the column at hand: to its head, long bits to its body.  Errors show in the buffers. */
void
paimon_pack_write(PaimonEncoder *e, const PaimonPackPlan *plan, const uint64_t *v)
{
	const PaimonPacked *p = &plan->p;
	uint32_t	nbytes = packed_bytes(p);
	uint32_t	size = PAIMON_SLICE_ITEMS / 8 * p->width;
	bool		sliced = nbytes >= PAIMON_SLICE_MIN;
	PaimonBuf  *head = &e->head;
	size_t		start = e->out.len;

	paimon_buf_put_u8(head, (uint8_t) p->width);
	paimon_buf_put_u8(head, (uint8_t) ((p->base != 0 ? PACK_FLAG_BASE : 0) | (p->mul != 1 ? PACK_FLAG_MUL : 0) |
									   (p->slope != 0 ? PACK_FLAG_SLOPE : 0) | (sliced ? PACK_FLAG_SLICED : 0)));
	if (p->base != 0)
		paimon_buf_put_u64(head, p->base);
	if (p->mul != 1)
		paimon_buf_put_u64(head, p->mul);
	if (p->slope != 0)
		paimon_buf_put_u64(head, p->slope);
	if (!sliced)
	{
		write_bits(plan, v, head);
		return;
	}
	write_bits(plan, v, &e->out);
	if (e->out.err != PAIMON_OK)
		return;
	for (uint32_t at = 0; at < nbytes; at += size)
		paimon_buf_put_u32(head, paimon_part_crc(e->id_crc, e->column,
												 PAIMON_PART_SLICE | (uint32_t) (start - e->body_start + at),
												 e->out.data + start + at, nbytes - at < size ? nbytes - at : size));
}

/* The part of packed numbers that says where their slices are. */
static PaimonResult
read_slices(PaimonCursor *c, PaimonPacked *out)
{
	PaimonSlices *s;

	if (out->n > PAIMON_GROUP_MAX_ROWS || out->nbytes == 0 || out->nbytes > c->body_len - c->body_pos)
		return PAIMON_CORRUPT;
	s = paimon_core_alloc(&c->g->a, sizeof(PaimonSlices));
	if (s == NULL)
		return PAIMON_NO_MEMORY;
	memset(s, 0, sizeof(*s));
	s->crcs = paimon_cursor_take(c, (uint64_t) nslices(out->n) * 4);
	s->column = c->column;
	s->off = c->body_off + c->body_pos;
	s->body_off = c->body_pos;
	c->body_pos += out->nbytes;
	out->slices = s;
	return s->crcs == NULL ? PAIMON_CORRUPT : PAIMON_OK;
}

/* Parses packed numbers; PAIMON_CORRUPT if they are not well-formed. */
PaimonResult
paimon_packed_read(PaimonCursor *c, uint32_t n, PaimonPacked *out)
{
	const uint8_t *p = paimon_cursor_take(c, 2);
	uint32_t	flags;

	memset(out, 0, sizeof(*out));
	if (p == NULL)
		return PAIMON_CORRUPT;
	out->n = n;
	out->width = p[0];
	flags = p[1];
	out->mul = 1;
	if ((out->width > 57 && out->width != 64) || flags > (PACK_FLAG_BASE | PACK_FLAG_MUL | PACK_FLAG_SLOPE | PACK_FLAG_SLICED))
		return PAIMON_CORRUPT;
	if (flags & PACK_FLAG_BASE)
	{
		if ((p = paimon_cursor_take(c, 8)) == NULL)
			return PAIMON_CORRUPT;
		out->base = paimon_get_u64(p);
	}
	if (flags & PACK_FLAG_MUL)
	{
		if ((p = paimon_cursor_take(c, 8)) == NULL)
			return PAIMON_CORRUPT;
		out->mul = paimon_get_u64(p);
	}
	if (flags & PACK_FLAG_SLOPE)
	{
		if ((p = paimon_cursor_take(c, 8)) == NULL)
			return PAIMON_CORRUPT;
		out->slope = paimon_get_u64(p);
	}
	out->nbytes = packed_bytes(out);
	if (flags & PACK_FLAG_SLICED)
		return read_slices(c, out);
	out->bits = paimon_cursor_take(c, out->nbytes);
	return out->bits == NULL ? PAIMON_CORRUPT : PAIMON_OK;
}

static PaimonResult
check_slice(PaimonGroupContext *g, const PaimonPacked *p, uint32_t s, const uint8_t *bytes)
{
	const PaimonSlices *slices = p->slices;
	uint32_t	size = PAIMON_SLICE_ITEMS / 8 * p->width;
	uint32_t	at = s * size;
	uint32_t	len = p->nbytes - at < size ? p->nbytes - at : size;

	return paimon_crc_matches(paimon_part_crc(g->id_crc, slices->column, PAIMON_PART_SLICE | (slices->body_off + at),
											  bytes, len), paimon_get_u32(slices->crcs + 4 * s)) ? PAIMON_OK : PAIMON_CORRUPT;
}

/* Fetches and checks the slices that hold numbers first .. first + count - 1; p->slices must not be NULL. */
PaimonResult
paimon_packed_fetch(PaimonGroupContext *g, const PaimonPacked *p, uint32_t first, uint32_t count)
{
	PaimonSlices *slices = p->slices;
	uint32_t	size = PAIMON_SLICE_ITEMS / 8 * p->width;

	for (uint32_t s = first / PAIMON_SLICE_ITEMS; s * PAIMON_SLICE_ITEMS < first + count; s++)
	{
		uint32_t	at = s * size;
		uint32_t	len = p->nbytes - at < size ? p->nbytes - at : size;
		const uint8_t *bytes;

		if (slices->slice[s] != NULL)
			continue;
		bytes = g->src.fetch(g->src.arg, slices->off + at, len);
		if (bytes == NULL)
			return PAIMON_NO_MEMORY;
		if (check_slice(g, p, s, bytes) != PAIMON_OK)
			return PAIMON_CORRUPT;
		slices->slice[s] = bytes;
	}
	return PAIMON_OK;
}

/* The same for all numbers, in one piece. */
PaimonResult
paimon_packed_fetch_all(PaimonGroupContext *g, const PaimonPacked *p)
{
	PaimonSlices *slices = p->slices;
	uint32_t	size = PAIMON_SLICE_ITEMS / 8 * p->width;
	const uint8_t *bytes;

	if (slices->whole)
		return PAIMON_OK;
	bytes = g->src.fetch(g->src.arg, slices->off, p->nbytes);
	if (bytes == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t s = 0; s < nslices(p->n); s++)
		if (check_slice(g, p, s, bytes + s * size) != PAIMON_OK)
			return PAIMON_CORRUPT;
	for (uint32_t s = 0; s < nslices(p->n); s++)
		slices->slice[s] = bytes + s * size;
	slices->whole = true;
	return PAIMON_OK;
}

/*
 * The loop of all narrow widths: one unaligned load, shift and mask a number.
 * Inlined with constants where the compiler can do better with them.
 */
static inline __attribute__((always_inline)) void
unpack_run(const uint8_t *bits, uint64_t bit, uint32_t count, uint32_t width, uint64_t base, uint64_t mul,
		   uint64_t *out)
{
	uint64_t	mask = (UINT64_C(1) << width) - 1;

	for (uint32_t i = 0; i < count; i++, bit += width)
		out[i] = base + mul * ((paimon_load_le64(bits + (bit >> 3)) >> (bit & 7)) & mask);
}

/* Unpacks numbers first .. first + count - 1 of the slice whose bits these are, as base + mul * residual, as far as that goes fast.  Returns how many. */
static uint32_t
unpack_slice(const PaimonPacked *p, const uint8_t *bits, uint32_t nbytes, uint32_t first, uint32_t count, uint64_t base, uint64_t mul,
			 uint64_t *out)
{
	/* numbers whose 8-byte load ends inside: (first + i) * width / 8 + 8 <= nbytes */
	uint64_t	last = nbytes < 8 ? 0 : (((uint64_t) nbytes - 8) * 8 + 7) / p->width;
	uint64_t	fast = nbytes < 8 || last < first ? 0 : last - first + 1;
	uint64_t	bit = (uint64_t) first * p->width;
	uint32_t	n = fast < count ? (uint32_t) fast : count;

	if (mul == 1)
		unpack_run(bits, bit, n, p->width, base, 1, out);
	else
		unpack_run(bits, bit, n, p->width, base, mul, out);
	return n;
}

/* The same for all of them, from slice to slice; p->width > 0. */
static void
unpack_residuals(const PaimonPacked *p, uint32_t first, uint32_t count, uint64_t base, uint64_t mul, uint64_t *out)
{
	uint32_t	end = first + count;

	while (first < end)
	{
		uint32_t	s = first / PAIMON_SLICE_ITEMS;
		uint32_t	stop = (s + 1) * PAIMON_SLICE_ITEMS;
		uint32_t	nbytes;
		const uint8_t *bits;

		/* bits in one piece need no cuts */
		if (stop > end || p->slices == NULL || p->slices->whole)
			stop = end;
		if (p->width < 64)
		{
			bits = paimon_packed_slice(p, s, &nbytes);
			count = unpack_slice(p, bits, nbytes, first % PAIMON_SLICE_ITEMS, stop - first, base, mul, out);
			first += count;
			out += count;
		}
		for (; first < stop; first++)
			*out++ = base + mul * paimon_packed_residual(p, first);
	}
}

/* Unpacks numbers first .. first + count - 1 (all < p->n, and fetched) into out. */
void
paimon_packed_unpack(const PaimonPacked *p, uint32_t first, uint32_t count, uint64_t *out)
{
	if (p->width == 0 && p->slope == 0)
	{
		for (uint32_t i = 0; i < count; i++)
			out[i] = p->base;
	}
	else if (p->width == 0)
	{
		for (uint32_t i = 0; i < count; i++)
			out[i] = p->base + p->mul * (((first + i) * p->slope) >> 16);
	}
	else if (p->slope == 0)
		unpack_residuals(p, first, count, p->base, p->mul, out);
	else
	{
		unpack_residuals(p, first, count, 0, 1, out);
		for (uint32_t i = 0; i < count; i++)
			out[i] = p->base + p->mul * ((((first + i) * p->slope) >> 16) + out[i]);
	}
}

/*
 * The sum of numbers first .. first + count - 1 (all < p->n, and fetched), if they are so narrow that it cannot overflow and can be had without
 * unpacking them; else false.
 */
bool
paimon_packed_sum(const PaimonPacked *p, uint32_t first, uint32_t count, uint64_t *sum)
{
	uint32_t	end = first + count;
	uint64_t	mask;
	uint64_t	residuals = 0;

	if (p->slope != 0 || p->mul != 1 || p->width > 32 || p->base > UINT32_MAX)
		return false;
	mask = (UINT64_C(1) << p->width) - 1;
	*sum = p->base * count;
	while (p->width > 0 && first < end)
	{
		uint32_t	stop = (first / PAIMON_SLICE_ITEMS + 1) * PAIMON_SLICE_ITEMS;
		uint32_t	nbytes;
		const uint8_t *bits = paimon_packed_slice(p, first / PAIMON_SLICE_ITEMS, &nbytes);
		uint64_t	bit = (uint64_t) (first % PAIMON_SLICE_ITEMS) * p->width;

		if (stop > end)
			stop = end;
		/* the last ones, whose 8-byte loads would end outside, one by one */
		for (; first < stop && (bit >> 3) + 8 <= nbytes; first++, bit += p->width)
			residuals += (paimon_load_le64(bits + (bit >> 3)) >> (bit & 7)) & mask;
		for (; first < stop; first++)
			residuals += paimon_packed_residual(p, first);
	}
	*sum += residuals;
	return true;
}
