/*-------------------------------------------------------------------------
 *
 * core_bucket.c
 *	  Binary row of the bucket key and its Murmur3 hash.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_bucket.h"

#define HASH_SEED 42
#define HEADER_BITS 8			/* row kind, in front of the null bits */
#define SLOT_INLINE_MAX 7		/* bytes of a string that fit its slot */
#define SLOT_INLINE_MARK 0x80
#define DECIMAL_LARGE_BYTES 16
#define MAX_FIELDS 1600			/* as a Postgres table has at most */

static uint32_t
rotate_left(uint32_t x, int n)
{
	return (x << n) | (x >> (32 - n));
}

/* One word into a Murmur3 state. */
static uint32_t
mix_word(uint32_t h, uint32_t word)
{
	word *= 0xcc9e2d51u;
	word = rotate_left(word, 15);
	word *= 0x1b873593u;
	h = rotate_left(h ^ word, 13);
	return h * 5 + 0xe6546b64u;
}

static int32_t
mix_finish(uint32_t h, uint32_t len)
{
	h ^= len;
	h ^= h >> 16;
	h *= 0x85ebca6bu;
	h ^= h >> 13;
	h *= 0xc2b2ae35u;
	h ^= h >> 16;
	return (int32_t) h;
}

int32_t
paimon_bucket_hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t	h = HASH_SEED;
	size_t		i = 0;

	for (; len - i >= 4; i += 4)
		h = mix_word(h, paimon_get_u32(p + i));
	if (i < len)
	{
		uint8_t		tail[4] = {0};

		memcpy(tail, p + i, len - i);
		h = mix_word(h, paimon_get_u32(tail));
	}
	return mix_finish(h, (uint32_t) len);
}

/* Remembers the first failure. */
static void
row_fail(PaimonBucketRow *row, PaimonResult r)
{
	if (row->error == PAIMON_OK)
		row->error = r;
}

/* Appends n zero bytes to the row (n a multiple of 8); gives their offset.  False after any failure. */
static bool
row_extend(PaimonBucketRow *row, size_t n, uint32_t *off)
{
	if (row->error != PAIMON_OK)
		return false;
	if (n > (UINT32_C(1) << 30) - row->len)
	{
		row_fail(row, PAIMON_NO_SPACE);
		return false;
	}
	if (row->len + n > row->cap)
	{
		uint32_t	cap = row->cap < 128 ? 128 : row->cap;
		uint8_t    *data;

		while (cap < row->len + n)
			cap *= 2;
		data = paimon_core_alloc(row->a, cap);
		if (data == NULL)
		{
			row_fail(row, PAIMON_NO_MEMORY);
			return false;
		}
		if (row->len > 0)
			memcpy(data, row->data, row->len);
		row->data = data;
		row->cap = cap;
	}
	memset(row->data + row->len, 0, n);
	*off = row->len;
	row->len += (uint32_t) n;
	return true;
}

/* Takes the next field; its slot's offset in *slot.  False after any failure. */
static bool
row_next(PaimonBucketRow *row, uint32_t *slot)
{
	if (row->error == PAIMON_OK && row->next >= row->nfields)
		row_fail(row, PAIMON_CORRUPT);
	if (row->error != PAIMON_OK)
		return false;
	*slot = row->null_bytes + 8 * row->next++;
	return true;
}

/* Sets the next field's slot to a number. */
static void
row_set_slot(PaimonBucketRow *row, uint64_t v)
{
	uint32_t	slot;

	if (row_next(row, &slot))
		paimon_put_u64(row->data + slot, v);
}

/* Points the slot to a variable part at `off`; `low` is a length or whatever the type keeps there. */
static void
set_reference(PaimonBucketRow *row, uint32_t slot, uint32_t off, uint32_t low)
{
	paimon_put_u64(row->data + slot, ((uint64_t) off << 32) | low);
}

/* Null bit of the field that has this slot. */
static void
set_null_bit(PaimonBucketRow *row, uint32_t slot)
{
	uint32_t	bit = (slot - row->null_bytes) / 8 + HEADER_BITS;

	row->data[bit / 8] |= (uint8_t) (1u << (bit % 8));
}

void
paimon_bucket_row_init(PaimonBucketRow *row, const PaimonAllocator *a)
{
	memset(row, 0, sizeof(*row));
	row->a = a;
}

void
paimon_bucket_begin(PaimonBucketRow *row, uint32_t nfields)
{
	uint32_t	off;

	row->error = PAIMON_OK;
	row->len = 0;
	row->next = 0;
	row->nfields = nfields;
	row->null_bytes = (nfields + 63 + HEADER_BITS) / 64 * 8;
	if (nfields > MAX_FIELDS)
		row_fail(row, PAIMON_NO_SPACE);
	else
		row_extend(row, row->null_bytes + 8 * (size_t) nfields, &off);
}

void
paimon_bucket_set_bool(PaimonBucketRow *row, bool v)
{
	row_set_slot(row, v ? 1 : 0);
}

void
paimon_bucket_set_int16(PaimonBucketRow *row, int16_t v)
{
	row_set_slot(row, (uint16_t) v);
}

void
paimon_bucket_set_int32(PaimonBucketRow *row, int32_t v)
{
	row_set_slot(row, (uint32_t) v);
}

void
paimon_bucket_set_int64(PaimonBucketRow *row, int64_t v)
{
	row_set_slot(row, (uint64_t) v);
}

void
paimon_bucket_set_float(PaimonBucketRow *row, float v)
{
	uint32_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		bits = 0x7fc00000u;
	else if (bits == 0x80000000u)
		bits = 0;
	row_set_slot(row, bits);
}

void
paimon_bucket_set_double(PaimonBucketRow *row, double v)
{
	uint64_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & UINT64_C(0x7fffffffffffffff)) > UINT64_C(0x7ff0000000000000))
		bits = UINT64_C(0x7ff8000000000000);
	else if (bits == UINT64_C(0x8000000000000000))
		bits = 0;
	row_set_slot(row, bits);
}

void
paimon_bucket_set_string(PaimonBucketRow *row, const void *data, size_t len)
{
	uint32_t	slot;
	uint32_t	off;

	if (!row_next(row, &slot))
		return;
	if (len <= SLOT_INLINE_MAX)
	{
		if (len > 0)
			memcpy(row->data + slot, data, len);
		row->data[slot + 7] = (uint8_t) (SLOT_INLINE_MARK | len);
	}
	else if (len > UINT32_MAX - 7)
		row_fail(row, PAIMON_NO_SPACE);
	else if (row_extend(row, (len + 7) & ~(size_t) 7, &off))
	{
		memcpy(row->data + off, data, len);
		set_reference(row, slot, off, (uint32_t) len);
	}
}

void
paimon_bucket_set_date(PaimonBucketRow *row, int32_t days)
{
	paimon_bucket_set_int32(row, days);
}

void
paimon_bucket_set_time(PaimonBucketRow *row, int32_t millis)
{
	paimon_bucket_set_int32(row, millis);
}

void
paimon_bucket_set_timestamp(PaimonBucketRow *row, int64_t millis, int32_t nanos, int precision)
{
	uint32_t	slot;
	uint32_t	off;

	if (precision <= PAIMON_TIMESTAMP_COMPACT_PRECISION)
	{
		paimon_bucket_set_int64(row, millis);
		return;
	}
	if (nanos < 0 || nanos > 999999)
		row_fail(row, PAIMON_CORRUPT);
	if (!row_next(row, &slot) || !row_extend(row, 8, &off))
		return;
	paimon_put_u64(row->data + off, (uint64_t) millis);
	set_reference(row, slot, off, (uint32_t) nanos);
}

void
paimon_bucket_set_decimal_compact(PaimonBucketRow *row, int64_t unscaled)
{
	paimon_bucket_set_int64(row, unscaled);
}

void
paimon_bucket_set_decimal_large(PaimonBucketRow *row, const uint8_t *bytes, size_t len)
{
	uint32_t	slot;
	uint32_t	off;

	if (len < 1 || len > DECIMAL_LARGE_BYTES)
		row_fail(row, PAIMON_CORRUPT);
	if (!row_next(row, &slot) || !row_extend(row, DECIMAL_LARGE_BYTES, &off))
		return;
	memcpy(row->data + off, bytes, len);
	set_reference(row, slot, off, (uint32_t) len);
}

/*
 * A 128-bit magnitude in two words, as not every platform has the type.
 */
typedef struct Magnitude
{
	uint64_t	hi;
	uint64_t	lo;
} Magnitude;

/* m = m * factor + add; false on overflow.  factor and add below 2^32. */
static bool
magnitude_step(Magnitude *m, uint32_t factor, uint32_t add)
{
	uint32_t	w[4] = {(uint32_t) m->lo, (uint32_t) (m->lo >> 32), (uint32_t) m->hi, (uint32_t) (m->hi >> 32)};
	uint64_t	carry = add;

	for (int i = 0; i < 4; i++)
	{
		carry += (uint64_t) w[i] * factor;
		w[i] = (uint32_t) carry;
		carry >>= 32;
	}
	m->lo = w[0] | ((uint64_t) w[1] << 32);
	m->hi = w[2] | ((uint64_t) w[3] << 32);
	return carry == 0;
}

/*
 * |v| * 10^scale as an integer; false if it is none (more decimals than scale) or larger than 10^precision - 1.
 *
 * The digit at place i stands for digits[i] * 10^(4 * (weight - i) + scale); decimal by decimal from the front, as many as
 * the precision can hold and no more.
 */
static bool
numeric_unscaled(const PaimonNumeric *v, int precision, int scale, Magnitude *m)
{
	int64_t		places = 4 * ((int64_t) v->weight + 1) + scale;	/* decimals wanted in all, from the first digit on */
	int			significant = 0;

	m->hi = m->lo = 0;

	/* at most three leading zeros in the first digit */
	if (places > precision + 3 || places < 0)
		return v->ndigits == 0;
	for (int64_t i = 0; i < places || i < 4 * (int64_t) v->ndigits; i++)
	{
		static const int16_t divisor[4] = {1000, 100, 10, 1};
		int			decimal = 0;

		if (i < 4 * (int64_t) v->ndigits)
			decimal = v->digits[i / 4] / divisor[i % 4] % 10;
		if (i >= places)
		{
			if (decimal != 0)
				return false;
			continue;
		}
		if (decimal != 0 || significant > 0)
			significant++;
		if (significant > precision || !magnitude_step(m, 10, (uint32_t) decimal))
			return false;
	}
	return true;
}

/* The number as 16 bytes of big-endian two's complement; gives how many leading ones are superfluous. */
static int
magnitude_to_bytes(Magnitude m, bool negative, uint8_t *bytes)
{
	int			skip = 0;
	uint8_t		fill;

	if (negative)
	{
		m.lo = ~m.lo + 1;
		m.hi = ~m.hi + (m.lo == 0 ? 1 : 0);
	}
	for (int i = 0; i < 8; i++)
	{
		bytes[i] = (uint8_t) (m.hi >> (56 - 8 * i));
		bytes[8 + i] = (uint8_t) (m.lo >> (56 - 8 * i));
	}
	fill = (bytes[0] & 0x80) ? 0xff : 0;
	while (skip < 15 && bytes[skip] == fill && ((bytes[skip + 1] ^ fill) & 0x80) == 0)
		skip++;
	return skip;
}

void
paimon_bucket_set_decimal(PaimonBucketRow *row, const PaimonNumeric *v, int precision, int scale)
{
	bool		negative = v->cls == PAIMON_NUMERIC_NEGATIVE;
	Magnitude	m = {0, 0};

	if (precision < 1 || precision > PAIMON_DECIMAL_MAX_PRECISION || scale < 0 || scale > precision)
		row_fail(row, PAIMON_CORRUPT);
	else if (v->cls != PAIMON_NUMERIC_ZERO && !negative && v->cls != PAIMON_NUMERIC_POSITIVE)
		row_fail(row, PAIMON_CORRUPT);
	else if (v->cls != PAIMON_NUMERIC_ZERO && !numeric_unscaled(v, precision, scale, &m))
		row_fail(row, PAIMON_CORRUPT);
	if (row->error != PAIMON_OK)
		return;

	if (precision <= PAIMON_DECIMAL_COMPACT_PRECISION)
	{
		uint64_t	u = negative ? ~m.lo + 1 : m.lo;

		paimon_bucket_set_decimal_compact(row, (int64_t) u);
	}
	else
	{
		uint8_t		bytes[DECIMAL_LARGE_BYTES];
		int			skip = magnitude_to_bytes(m, negative, bytes);

		paimon_bucket_set_decimal_large(row, bytes + skip, sizeof(bytes) - (size_t) skip);
	}
}

void
paimon_bucket_set_null(PaimonBucketRow *row)
{
	uint32_t	slot;

	if (row_next(row, &slot))
		set_null_bit(row, slot);
}

/* NULL of a type with a reserved variable part keeps the reservation and points to it. */
static void
set_null_reserved(PaimonBucketRow *row, uint32_t n)
{
	uint32_t	slot;
	uint32_t	off;

	if (!row_next(row, &slot) || !row_extend(row, n, &off))
		return;
	set_null_bit(row, slot);
	set_reference(row, slot, off, 0);
}

void
paimon_bucket_set_null_decimal(PaimonBucketRow *row, int precision)
{
	if (precision <= PAIMON_DECIMAL_COMPACT_PRECISION)
		paimon_bucket_set_null(row);
	else
		set_null_reserved(row, DECIMAL_LARGE_BYTES);
}

void
paimon_bucket_set_null_timestamp(PaimonBucketRow *row, int precision)
{
	if (precision <= PAIMON_TIMESTAMP_COMPACT_PRECISION)
		paimon_bucket_set_null(row);
	else
		set_null_reserved(row, 8);
}

PaimonResult
paimon_bucket_finish(const PaimonBucketRow *row, int32_t *h)
{
	if (row->error != PAIMON_OK)
		return row->error;
	if (row->next != row->nfields)
		return PAIMON_CORRUPT;
	*h = paimon_bucket_hash_bytes(row->data, row->len);
	return PAIMON_OK;
}
