/*-------------------------------------------------------------------------
 *
 * test_bucket.c
 *	  Bucket numbers: Paimon's own test vectors, decimals, failures.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "core/core_bucket.h"
#include "unit.h"

static UnitArena arena;
static PaimonAllocator alloc;
static PaimonBucketRow row;

/* Finishes the row; its hash, buckets and (if given) bytes must be these. */
static void
expect(const char *what, const char *hex, int32_t hash, int32_t n4, int32_t n16)
{
	int32_t		h = 0;
	char		got[512] = "";

	CHECK_MSG(paimon_bucket_finish(&row, &h) == PAIMON_OK, "%s", what);
	CHECK_MSG(h == hash, "%s: %d, not %d", what, h, hash);
	CHECK_MSG(paimon_bucket_of_hash(h, 4) == n4 && paimon_bucket_of_hash(h, 16) == n16, "%s: %d, %d", what,
			  paimon_bucket_of_hash(h, 4), paimon_bucket_of_hash(h, 16));
	CHECK_EQ(paimon_bucket_of_hash(h, 1), 0);
	if (hex == NULL)
		return;
	for (uint32_t i = 0; i < row.len; i++)
		snprintf(got + 2 * i, 3, "%02x", row.data[i]);
	CHECK_MSG(strcmp(got, hex) == 0, "%s: bytes %s", what, got);
}

static void
expect_string(const char *s, const char *hex, int32_t hash, int32_t n4, int32_t n16)
{
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_string(&row, s, strlen(s));
	expect(s, hex, hash, n4, n16);
}

static void
expect_int(int32_t v, int32_t hash, int32_t n4, int32_t n16)
{
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int32(&row, v);
	expect("int", NULL, hash, n4, n16);
}

#define Z "0000000000000000"

static void
check_integers(void)
{
	int32_t		h;

	expect_int(5, 260196596, 0, 4);
	paimon_bucket_finish(&row, &h);
	CHECK_EQ(paimon_bucket_of_hash(h, 100), 96);

	paimon_bucket_begin(&row, 2);
	paimon_bucket_set_int32(&row, 5);
	paimon_bucket_set_int32(&row, 6);
	expect("int 5, 6", Z "05000000000000000600000000000000", 131015827, 3, 3);
	paimon_bucket_finish(&row, &h);
	CHECK_EQ(paimon_bucket_of_hash(h, 100), 27);

	paimon_bucket_begin(&row, 3);
	for (int i = 5; i <= 7; i++)
		paimon_bucket_set_int32(&row, i);
	expect("int 5, 6, 7", NULL, 1805332940, 0, 12);
	paimon_bucket_finish(&row, &h);
	CHECK_EQ(paimon_bucket_of_hash(h, 100), 40);

	expect_int(0, -300363099, 3, 11);
	expect_int(1, 1465514398, 2, 14);
	expect_int(2, 1340390384, 0, 0);
	expect_int(3, -771300025, 1, 9);
	expect_int(-1, 1133687267, 3, 3);

	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int64(&row, 1);
	expect("bigint 1", Z "0100000000000000", 1465514398, 2, 14);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_bool(&row, true);
	expect("true", Z "0100000000000000", 1465514398, 2, 14);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int16(&row, 1);
	expect("smallint 1", Z "0100000000000000", 1465514398, 2, 14);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int16(&row, -1);
	CHECK_EQ(paimon_get_u64(row.data + 8), 0xffff);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_null(&row);
	expect("null", "0001000000000000" Z, -1748325344, 0, 0);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int64(&row, INT64_C(10000000000));
	expect("bigint", Z "00e40b5402000000", 1891290426, 2, 10);
}

static void
check_other_types(void)
{
	static const uint8_t d12345[] = {0x30, 0x39};

	expect_string("", Z "0000000000000080", 302122119, 3, 7);
	expect_string("a", Z "6100000000000081", 943281246, 2, 14);
	expect_string("paimon", Z "7061696d6f6e0086", 1504888072, 0, 8);
	expect_string("1234567", Z "3132333435363787", 199144172, 0, 12);
	expect_string("12345678", Z "08000000100000003132333435363738", -391021801, 1, 9);
	expect_string("hello paimon", Z "0c0000001000000068656c6c6f207061696d6f6e00000000", 168916036, 0, 4);

	paimon_bucket_begin(&row, 2);
	paimon_bucket_set_int32(&row, 1);
	paimon_bucket_set_string(&row, "x", 1);
	expect("1, x", Z "01000000000000007800000000000081", -796389773, 1, 13);

	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_double(&row, 1.5);
	expect("1.5", Z "000000000000f83f", 1860889473, 1, 1);

	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal_compact(&row, 12345);
	expect("decimal(10,2)", Z "3930000000000000", 767607022, 2, 14);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal_large(&row, d12345, sizeof(d12345));
	expect("decimal(38,2)", Z "02000000100000003039000000000000" Z, -118192725, 1, 5);

	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_timestamp(&row, INT64_C(1700000000123), 0, 3);
	expect("timestamp(3)", Z "7b68e5cf8b010000", -1285420957, 1, 13);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_timestamp(&row, INT64_C(1700000000123), 456000, 6);
	expect("timestamp(6)", Z "40f50600100000007b68e5cf8b010000", 1196670069, 1, 5);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_date(&row, 19723);
	expect("date", Z "0b4d000000000000", -1439008885, 1, 5);
}

/* Equal numbers have equal bits. */
static void
check_floats(void)
{
	paimon_bucket_begin(&row, 4);
	paimon_bucket_set_float(&row, -0.0f);
	paimon_bucket_set_float(&row, -NAN);
	paimon_bucket_set_double(&row, -0.0);
	paimon_bucket_set_double(&row, -(double) NAN);
	CHECK_EQ(paimon_get_u64(row.data + 8), 0);
	CHECK_EQ(paimon_get_u64(row.data + 16), 0x7fc00000);
	CHECK_EQ(paimon_get_u64(row.data + 24), 0);
	CHECK(paimon_get_u64(row.data + 32) == UINT64_C(0x7ff8000000000000));
}

/*
 * Digits of |n| * 10^scale in base 10000 with its weight, from a 128-bit number: the reverse of what is tested.
 */
static PaimonNumeric
number_of(__int128 n, int scale, int16_t *digits)
{
	unsigned __int128 u = n < 0 ? -(unsigned __int128) n : (unsigned __int128) n;
	char		text[64];
	char		decimals[128];
	int			len = 0;
	int			first;
	PaimonNumeric v = {PAIMON_NUMERIC_ZERO, 0, 0, digits};

	if (n == 0)
		return v;
	for (; u > 0; u /= 10)
		text[len++] = (char) ('0' + (int) (u % 10));

	/* decimals in front of the point, filled up in front to a multiple of four, then those behind it */
	memset(decimals, '0', sizeof(decimals));
	first = ((len > scale ? len - scale : 0) + 3) / 4 * 4;
	for (int i = 0; i < len; i++)
		decimals[first + scale - 1 - i] = text[i];
	v.cls = n < 0 ? PAIMON_NUMERIC_NEGATIVE : PAIMON_NUMERIC_POSITIVE;
	v.weight = first / 4 - 1;
	for (int i = 0; i < (first + scale + 3) / 4; i++)
		digits[v.ndigits++] = (int16_t) ((decimals[4 * i] - '0') * 1000 + (decimals[4 * i + 1] - '0') * 100
										 + (decimals[4 * i + 2] - '0') * 10 + (decimals[4 * i + 3] - '0'));
	while (digits[v.ndigits - 1] == 0)
		v.ndigits--;
	while (v.digits[0] == 0)
	{
		v.digits++;
		v.ndigits--;
		v.weight--;
	}
	return v;
}

static void
check_one_decimal(__int128 n, int precision, int scale)
{
	int16_t		digits[32];
	PaimonNumeric v = number_of(n, scale, digits);
	unsigned __int128 limit = 1;
	bool		fits;
	int32_t		h;
	PaimonResult r;

	for (int i = 0; i < precision; i++)
		limit *= 10;
	fits = (n < 0 ? -(unsigned __int128) n : (unsigned __int128) n) < limit;
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, precision, scale);
	r = paimon_bucket_finish(&row, &h);
	CHECK_MSG(r == (fits ? PAIMON_OK : PAIMON_CORRUPT), "precision %d scale %d", precision, scale);
	if (!fits)
		return;
	if (precision <= PAIMON_DECIMAL_COMPACT_PRECISION)
	{
		CHECK_EQ(paimon_get_u64(row.data + 8), (int64_t) n);
		CHECK_EQ(row.len, 16);
	}
	else
	{
		uint32_t	len = (uint32_t) paimon_get_u64(row.data + 8);
		__int128	back = (int8_t) row.data[16];

		CHECK_EQ(row.len, 32);
		CHECK(len >= 1 && len <= 16);
		for (uint32_t i = 1; i < len; i++)
			back = (__int128) ((unsigned __int128) back << 8 | row.data[16 + i]);
		CHECK(back == n);

		/* minimal: the first byte is not just the sign of the next */
		if (len > 1)
			CHECK(!(row.data[16] == 0 && row.data[17] < 0x80) && !(row.data[16] == 0xff && row.data[17] >= 0x80));
		for (uint32_t i = len; i < 16; i++)
			CHECK_EQ(row.data[16 + i], 0);
	}
}

static void
check_decimals(void)
{
	int16_t		digits[4] = {1, 5000};
	PaimonNumeric v = {PAIMON_NUMERIC_POSITIVE, 0, 2, digits};
	int32_t		h;

	for (int i = 0; i < 30000; i++)
	{
		int			precision = 1 + (int) unit_below(38);
		int			scale = (int) unit_below((uint64_t) precision + 1);
		__int128	n = (__int128) (((unsigned __int128) unit_rand() << 64 | unit_rand()) >> unit_below(127));

		n %= (__int128) UINT64_C(10000000000000000000) * UINT64_C(10000000000000000000);
		check_one_decimal(n, precision, scale);
		check_one_decimal(-n, precision, scale);
		check_one_decimal((__int128) unit_below(300) - 150, precision, scale);
	}

	/* 123.45 goes through to the vector */
	digits[0] = 123;
	digits[1] = 4500;
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, 38, 2);
	expect("decimal(38,2) from digits", NULL, -118192725, 1, 5);

	/* more decimals than the scale, infinities */
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, 10, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	v.weight = -30000;
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, 10, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	v.weight = 30000;
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, 10, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	v.cls = PAIMON_NUMERIC_NAN;
	v.ndigits = 0;
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal(&row, &v, 10, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
}

static void
check_nulls_and_failures(void)
{
	int32_t		h;
	UnitArena	poor;
	PaimonAllocator poor_alloc = unit_arena_init(&poor);
	PaimonBucketRow r2;
	static const uint8_t long_string[200];	/* beyond the builder's first allocation */

	/* reserved parts stay, slots point to them */
	paimon_bucket_begin(&row, 3);
	paimon_bucket_set_null_decimal(&row, 38);
	paimon_bucket_set_null_timestamp(&row, 6);
	paimon_bucket_set_null_timestamp(&row, 3);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_OK);
	CHECK_EQ(row.len, 8 + 24 + 16 + 8);
	CHECK_EQ(row.data[1], 7);
	CHECK(paimon_get_u64(row.data + 8) == UINT64_C(32) << 32);
	CHECK(paimon_get_u64(row.data + 16) == UINT64_C(48) << 32);
	CHECK_EQ(paimon_get_u64(row.data + 24), 0);

	/* header grows with 57 fields; null bit of the last one */
	paimon_bucket_begin(&row, 57);
	for (int i = 0; i < 57; i++)
		paimon_bucket_set_null(&row);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_OK);
	CHECK_EQ(row.len, 16 + 57 * 8);
	CHECK_EQ(row.data[8], 1);

	paimon_bucket_begin(&row, 2);
	paimon_bucket_set_int32(&row, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	paimon_bucket_set_int32(&row, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_OK);
	paimon_bucket_set_int32(&row, 1);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_timestamp(&row, 0, 1000000, 9);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);
	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_decimal_large(&row, (const uint8_t *) "", 0);
	CHECK_EQ(paimon_bucket_finish(&row, &h), PAIMON_CORRUPT);

	/* a builder is as good as new after any failure */
	expect_int(5, 260196596, 0, 4);

	poor.fail_after = 1;
	paimon_bucket_row_init(&r2, &poor_alloc);
	paimon_bucket_begin(&r2, 1);
	paimon_bucket_set_string(&r2, long_string, sizeof(long_string));
	CHECK_EQ(paimon_bucket_finish(&r2, &h), PAIMON_NO_MEMORY);
	unit_arena_reset(&poor);
}

/* Any bytes: the tail counts, and so do zeros at the end. */
static void
check_bytes(void)
{
	uint8_t		buf[32];

	paimon_bucket_begin(&row, 1);
	paimon_bucket_set_int32(&row, 5);
	CHECK_EQ(paimon_bucket_hash_bytes(row.data, row.len), 260196596);
	memset(buf, 0, sizeof(buf));
	for (size_t i = 0; i < sizeof(buf); i++)
		for (size_t j = 0; j < i; j++)
			CHECK(paimon_bucket_hash_bytes(buf, i) != paimon_bucket_hash_bytes(buf, j));
	for (int i = 0; i < 1000; i++)
	{
		size_t		len = 1 + unit_below(sizeof(buf));
		size_t		at = unit_below(len);
		int32_t		h;

		unit_fill(buf, sizeof(buf));
		h = paimon_bucket_hash_bytes(buf, len);
		buf[at] ^= (uint8_t) (1u << unit_below(8));
		CHECK(h != paimon_bucket_hash_bytes(buf, len));
	}

	/* for ever */
	CHECK_EQ(paimon_bucket_hash_bytes("", 0), 142593372);
	CHECK_EQ(paimon_bucket_hash_bytes("paimon", 6), -2132525962);
	CHECK_EQ(paimon_bucket_of_hash(INT32_MIN, INT32_MAX), 1);
	CHECK_EQ(paimon_bucket_of_hash(INT32_MIN, 3), 2);
}

int
main(int argc, char **argv)
{
	unit_begin("test_bucket", argc, argv);
	alloc = unit_arena_init(&arena);
	paimon_bucket_row_init(&row, &alloc);
	check_integers();
	check_other_types();
	check_floats();
	check_decimals();
	check_nulls_and_failures();
	check_bytes();
	unit_arena_reset(&arena);
	return unit_end();
}
