/*-------------------------------------------------------------------------
 *
 * test_key.c
 *	  Key encoding: order, round trip, bounds, canonical form.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "core/core_key.h"
#include "unit.h"

#define NVALUES 400
#define MAX_STRING 40

/* One value of any type, its key, and how its type is encoded, decoded and compared. */
typedef struct Value
{
	union
	{
		int64_t		i;
		uint64_t	u;
		double		d;
		struct
		{
			uint8_t		bytes[MAX_STRING];
			uint32_t	len;
		}			s;
		struct
		{
			PaimonNumeric n;
			int16_t		digits[12];
		}			num;
	}			v;
	uint8_t		key[256];
	uint32_t	len;
} Value;

typedef struct Type
{
	const char *name;
	void		(*make) (Value *v);
	PaimonResult (*put) (PaimonKeyBuf *buf, const Value *v);
	PaimonResult (*get) (PaimonKeyReader *r, Value *v);
	int			(*cmp) (const Value *a, const Value *b);
} Type;

static int
sign(int64_t x)
{
	return x < 0 ? -1 : (x > 0 ? 1 : 0);
}

static int
cmp_int(const Value *a, const Value *b)
{
	return a->v.i < b->v.i ? -1 : (a->v.i > b->v.i ? 1 : 0);
}

static int
cmp_uint(const Value *a, const Value *b)
{
	return a->v.u < b->v.u ? -1 : (a->v.u > b->v.u ? 1 : 0);
}

/* Postgres's order of floats. */
static int
cmp_float(const Value *a, const Value *b)
{
	if (isnan(a->v.d) || isnan(b->v.d))
		return sign((isnan(a->v.d) ? 1 : 0) - (isnan(b->v.d) ? 1 : 0));
	return a->v.d < b->v.d ? -1 : (a->v.d > b->v.d ? 1 : 0);
}

static int
cmp_string(const Value *a, const Value *b)
{
	return sign(paimon_bytes_cmp(a->v.s.bytes, a->v.s.len, b->v.s.bytes, b->v.s.len));
}

/* |a| against |b| digit by digit, after lining the weights up. */
static int
cmp_magnitude(const PaimonNumeric *a, const PaimonNumeric *b)
{
	if (a->weight != b->weight)
		return a->weight < b->weight ? -1 : 1;
	for (uint32_t i = 0; i < a->ndigits || i < b->ndigits; i++)
	{
		int			x = i < a->ndigits ? a->digits[i] : 0;
		int			y = i < b->ndigits ? b->digits[i] : 0;

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}

static int
cmp_numeric(const Value *a, const Value *b)
{
	const PaimonNumeric *x = &a->v.num.n;
	const PaimonNumeric *y = &b->v.num.n;

	if (x->cls != y->cls)
		return x->cls < y->cls ? -1 : 1;
	if (x->cls == PAIMON_NUMERIC_POSITIVE)
		return cmp_magnitude(x, y);
	if (x->cls == PAIMON_NUMERIC_NEGATIVE)
		return cmp_magnitude(y, x);
	return 0;
}

/* Signed numbers of `bits` bits: extremes, small ones, any. */
static int64_t
random_int(int bits)
{
	int64_t		max = (int64_t) ((UINT64_C(1) << (bits - 1)) - 1);

	switch (unit_below(8))
	{
		case 0:
			return max - (int64_t) unit_below(3);
		case 1:
			return -max - 1 + (int64_t) unit_below(3);
		case 2:
			return (int64_t) unit_below(5) - 2;
		default:
			return (int64_t) unit_rand() >> (64 - bits) >> unit_below((uint64_t) bits);
	}
}

static void
make_bool(Value *v)
{
	v->v.i = (int64_t) unit_below(2);
}

static void
make_int16(Value *v)
{
	v->v.i = random_int(16);
}

static void
make_int32(Value *v)
{
	v->v.i = random_int(32);
}

static void
make_int64(Value *v)
{
	v->v.i = random_int(64);
}

static void
make_uint32(Value *v)
{
	v->v.u = unit_below(4) == 0 ? UINT32_MAX : (uint32_t) unit_rand_skewed();
}

static void
make_uint64(Value *v)
{
	v->v.u = unit_below(4) == 0 ? UINT64_MAX : unit_rand_skewed();
}

static void
make_float8(Value *v)
{
	static const double special[] = {0.0, -0.0, INFINITY, -INFINITY, 1.0, -1.0, 4.9e-324, -4.9e-324, 1.7976931348623157e308};
	uint64_t	bits = unit_rand();

	if (unit_below(4) == 0)
		v->v.d = special[unit_below(sizeof(special) / sizeof(special[0]))];
	else if (unit_below(10) == 0)
		v->v.d = unit_below(2) ? (double) NAN : -(double) NAN;
	else if (unit_below(2) == 0)
		v->v.d = (double) ((int64_t) unit_rand() >> unit_below(63)) / 16;
	else
		memcpy(&v->v.d, &bits, sizeof(bits));
}

static void
make_float4(Value *v)
{
	uint32_t	bits = (uint32_t) unit_rand();
	float		f;

	memcpy(&f, &bits, sizeof(f));
	if (unit_below(2) == 0)
		v->v.d = f;
	else
	{
		make_float8(v);
		if (fabs(v->v.d) < 1e38 || isnan(v->v.d) || isinf(v->v.d))
			v->v.d = (float) v->v.d;
		else
			v->v.d = 0;
	}
}

/* Few different bytes, so that long common prefixes happen. */
static void
make_string(Value *v, const uint8_t *alphabet, uint32_t n)
{
	v->v.s.len = (uint32_t) unit_below(unit_below(3) == 0 ? MAX_STRING : 6);
	for (uint32_t i = 0; i < v->v.s.len; i++)
		v->v.s.bytes[i] = unit_below(4) == 0 ? alphabet[unit_below(n)] : alphabet[0];
}

static void
make_text(Value *v)
{
	static const uint8_t alphabet[] = {'a', 1, 2, 'b', 0x7f, 0x80, 0xff};

	make_string(v, alphabet, sizeof(alphabet));
}

static void
make_bytes(Value *v)
{
	static const uint8_t alphabet[] = {0, 1, 2, 3, 'a', 0xfe, 0xff};

	make_string(v, alphabet, sizeof(alphabet));
}

static void
make_fixed(Value *v)
{
	make_bytes(v);
	for (; v->v.s.len < 16; v->v.s.len++)
		v->v.s.bytes[v->v.s.len] = 0;
	v->v.s.len = 16;
}

static void
make_numeric(Value *v)
{
	PaimonNumeric *n = &v->v.num.n;
	static const int16_t digit[] = {0, 0, 1, 2, 255, 256, 9999, 5000};

	n->digits = v->v.num.digits;
	n->cls = (PaimonNumericClass) (1 + unit_below(6));
	if (unit_below(2) == 0)
		n->cls = unit_below(2) ? PAIMON_NUMERIC_POSITIVE : PAIMON_NUMERIC_NEGATIVE;
	n->weight = 0;
	n->ndigits = 0;
	if (n->cls != PAIMON_NUMERIC_POSITIVE && n->cls != PAIMON_NUMERIC_NEGATIVE)
		return;
	n->weight = (int32_t) random_int(unit_below(4) == 0 ? 16 : 3);
	n->ndigits = 1 + (uint32_t) unit_below(unit_below(3) == 0 ? 12 : 3);
	for (uint32_t i = 0; i < n->ndigits; i++)
		v->v.num.digits[i] = digit[unit_below(sizeof(digit) / sizeof(digit[0]))];
	if (v->v.num.digits[0] == 0)
		v->v.num.digits[0] = 1;
	if (v->v.num.digits[n->ndigits - 1] == 0)
		v->v.num.digits[n->ndigits - 1] = 9999;
}

static PaimonResult
put_bool(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_bool(buf, v->v.i != 0);
}

static PaimonResult
put_int16(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_int16(buf, (int16_t) v->v.i);
}

static PaimonResult
put_int32(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_int32(buf, (int32_t) v->v.i);
}

static PaimonResult
put_int64(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_int64(buf, v->v.i);
}

static PaimonResult
put_uint32(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_uint32(buf, (uint32_t) v->v.u);
}

static PaimonResult
put_uint64(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_uint64(buf, v->v.u);
}

static PaimonResult
put_float4(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_float4(buf, (float) v->v.d);
}

static PaimonResult
put_float8(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_float8(buf, v->v.d);
}

static PaimonResult
put_text(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_text(buf, v->v.s.bytes, v->v.s.len);
}

static PaimonResult
put_bytes(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_bytes(buf, v->v.s.bytes, v->v.s.len);
}

static PaimonResult
put_fixed(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_fixed(buf, v->v.s.bytes, v->v.s.len);
}

static PaimonResult
put_numeric(PaimonKeyBuf *buf, const Value *v)
{
	return paimon_key_put_numeric(buf, &v->v.num.n);
}

static PaimonResult
get_bool(PaimonKeyReader *r, Value *v)
{
	bool		b = false;
	PaimonResult res = paimon_key_get_bool(r, &b);

	v->v.i = b;
	return res;
}

static PaimonResult
get_int16(PaimonKeyReader *r, Value *v)
{
	int16_t		x = 0;
	PaimonResult res = paimon_key_get_int16(r, &x);

	v->v.i = x;
	return res;
}

static PaimonResult
get_int32(PaimonKeyReader *r, Value *v)
{
	int32_t		x = 0;
	PaimonResult res = paimon_key_get_int32(r, &x);

	v->v.i = x;
	return res;
}

static PaimonResult
get_int64(PaimonKeyReader *r, Value *v)
{
	return paimon_key_get_int64(r, &v->v.i);
}

static PaimonResult
get_uint32(PaimonKeyReader *r, Value *v)
{
	uint32_t	x = 0;
	PaimonResult res = paimon_key_get_uint32(r, &x);

	v->v.u = x;
	return res;
}

static PaimonResult
get_uint64(PaimonKeyReader *r, Value *v)
{
	return paimon_key_get_uint64(r, &v->v.u);
}

static PaimonResult
get_float4(PaimonKeyReader *r, Value *v)
{
	float		f = 0;
	PaimonResult res = paimon_key_get_float4(r, &f);

	v->v.d = f;
	return res;
}

static PaimonResult
get_float8(PaimonKeyReader *r, Value *v)
{
	return paimon_key_get_float8(r, &v->v.d);
}

static PaimonResult
get_text(PaimonKeyReader *r, Value *v)
{
	PaimonBytes b = {NULL, 0};
	PaimonResult res = paimon_key_get_text(r, &b);

	if (res == PAIMON_OK && b.len <= MAX_STRING)
	{
		memcpy(v->v.s.bytes, b.data, b.len);
		v->v.s.len = b.len;
	}
	return res;
}

static PaimonResult
get_bytes(PaimonKeyReader *r, Value *v)
{
	return paimon_key_get_bytes(r, v->v.s.bytes, MAX_STRING, &v->v.s.len);
}

static PaimonResult
get_fixed(PaimonKeyReader *r, Value *v)
{
	const uint8_t *p = NULL;
	PaimonResult res = paimon_key_get_fixed(r, 16, &p);

	if (res == PAIMON_OK)
		memcpy(v->v.s.bytes, p, 16);
	v->v.s.len = 16;
	return res;
}

static PaimonResult
get_numeric(PaimonKeyReader *r, Value *v)
{
	return paimon_key_get_numeric(r, &v->v.num.n, v->v.num.digits, 12);
}

static const Type types[] = {
	{"bool", make_bool, put_bool, get_bool, cmp_int},
	{"int16", make_int16, put_int16, get_int16, cmp_int},
	{"int32", make_int32, put_int32, get_int32, cmp_int},
	{"int64", make_int64, put_int64, get_int64, cmp_int},
	{"uint32", make_uint32, put_uint32, get_uint32, cmp_uint},
	{"uint64", make_uint64, put_uint64, get_uint64, cmp_uint},
	{"float4", make_float4, put_float4, get_float4, cmp_float},
	{"float8", make_float8, put_float8, get_float8, cmp_float},
	{"text", make_text, put_text, get_text, cmp_string},
	{"bytes", make_bytes, put_bytes, get_bytes, cmp_string},
	{"fixed", make_fixed, put_fixed, get_fixed, cmp_string},
	{"numeric", make_numeric, put_numeric, get_numeric, cmp_numeric},
};

#define NTYPES (sizeof(types) / sizeof(types[0]))

static void
encode(const Type *t, Value *v)
{
	PaimonKeyBuf buf;

	paimon_keybuf_init(&buf, v->key, sizeof(v->key), NULL);
	CHECK_EQ(t->put(&buf, v), PAIMON_OK);
	v->len = buf.len;
}

/* Order of keys = order of values, for all pairs. */
static void
check_order(const Type *t, Value *values)
{
	for (int i = 0; i < NVALUES; i++)
	{
		t->make(&values[i]);
		encode(t, &values[i]);
	}
	for (int i = 0; i < NVALUES; i++)
		for (int j = 0; j < NVALUES; j++)
		{
			int			want = t->cmp(&values[i], &values[j]);
			int			got = sign(paimon_bytes_cmp(values[i].key, values[i].len, values[j].key, values[j].len));

			CHECK_MSG(want == got, "%s: %d against %d: %d, not %d", t->name, i, j, got, want);

			/* self-delimiting: neither is a proper prefix of the other */
			if (values[i].len < values[j].len)
				CHECK(memcmp(values[i].key, values[j].key, values[i].len) != 0);
		}
}

/* Decoding gives the value back and stops at its end; with any byte missing it fails and stays. */
static void
check_round_trip(const Type *t, const Value *v)
{
	uint8_t		extended[sizeof(v->key) + 3];
	PaimonKeyReader r;
	Value		back;
	Value		again;

	memset(&back, 0, sizeof(back));
	memcpy(extended, v->key, v->len);
	memset(extended + v->len, 0xee, 3);
	paimon_keyreader_init(&r, extended, v->len + 3);
	CHECK_MSG(t->get(&r, &back) == PAIMON_OK, "%s", t->name);
	CHECK(r.p == extended + v->len);
	CHECK_MSG(t->cmp(&back, v) == 0, "%s", t->name);
	again = back;
	if (t->put == put_numeric)
		again.v.num.n.digits = again.v.num.digits;
	encode(t, &again);
	CHECK(again.len == v->len && memcmp(again.key, v->key, v->len) == 0);

	for (uint32_t len = 0; len < v->len; len++)
	{
		uint8_t    *exact = malloc(len + 1);

		/* the end of the allocation is the end of the key, so that ASan sees any overrun */
		memcpy(exact + 1, v->key, len);
		paimon_keyreader_init(&r, exact + 1, len);
		CHECK_MSG(t->get(&r, &back) == PAIMON_CORRUPT, "%s cut to %u", t->name, len);
		CHECK(r.p == exact + 1);
		free(exact);
	}
}

/* Whatever a decoder accepts is exactly what the encoder writes. */
static void
check_canonical(const Type *t, const Value *v)
{
	Value		bad = *v;
	PaimonKeyReader r;
	Value		back;

	memset(&back, 0, sizeof(back));
	for (uint64_t i = 1 + unit_below(3); i > 0; i--)
		bad.key[unit_below(bad.len)] = (uint8_t) unit_rand();
	paimon_keyreader_init(&r, bad.key, bad.len);
	if (t->get(&r, &back) != PAIMON_OK)
	{
		CHECK(r.p == bad.key);
		return;
	}
	if (t->put == put_numeric)
		back.v.num.n.digits = back.v.num.digits;
	encode(t, &back);
	CHECK_MSG(back.len == (uint32_t) (r.p - bad.key) && memcmp(back.key, bad.key, back.len) == 0, "%s", t->name);
}

/* Buffers: one byte too small fails and changes nothing; exact size works. */
static void
check_fixed_buffer(const Type *t, const Value *v)
{
	uint8_t    *exact = malloc(v->len + 1);
	PaimonKeyBuf buf;

	for (uint32_t cap = v->len > 8 ? v->len - 8 : 0; cap < v->len; cap++)
	{
		paimon_keybuf_init(&buf, exact, cap, NULL);
		CHECK_EQ(t->put(&buf, v), PAIMON_NO_SPACE);
		CHECK_EQ(buf.len, 0);
	}
	free(exact);
	exact = malloc(v->len);
	paimon_keybuf_init(&buf, exact, v->len, NULL);
	CHECK_EQ(t->put(&buf, v), PAIMON_OK);
	CHECK(buf.len == v->len && memcmp(exact, v->key, v->len) == 0);
	free(exact);
}

/* Keys of several columns of random types compare column by column. */
static void
check_composite(void)
{
	const Type *t[3];
	static Value a[3];
	static Value b[3];
	UnitArena	arena;
	PaimonAllocator alloc = unit_arena_init(&arena);
	PaimonKeyBuf ka;
	PaimonKeyBuf kb;
	PaimonKeyReader r;
	int			want = 0;

	paimon_keybuf_init(&ka, NULL, 0, &alloc);
	paimon_keybuf_init(&kb, NULL, 0, &alloc);
	for (int c = 0; c < 3; c++)
	{
		t[c] = &types[unit_below(NTYPES)];
		t[c]->make(&a[c]);
		if (unit_below(2))
			t[c]->make(&b[c]);
		else
		{
			b[c] = a[c];
			if (t[c]->put == put_numeric)
				b[c].v.num.n.digits = b[c].v.num.digits;
		}
		CHECK_EQ(t[c]->put(&ka, &a[c]), PAIMON_OK);
		CHECK_EQ(t[c]->put(&kb, &b[c]), PAIMON_OK);
		if (want == 0)
			want = t[c]->cmp(&a[c], &b[c]);
	}
	CHECK_EQ(sign(paimon_bytes_cmp(ka.data, ka.len, kb.data, kb.len)), want);
	paimon_keyreader_init(&r, ka.data, ka.len);
	for (int c = 0; c < 3; c++)
	{
		Value		back;

		memset(&back, 0, sizeof(back));
		CHECK_EQ(t[c]->get(&r, &back), PAIMON_OK);
		CHECK_EQ(t[c]->cmp(&back, &a[c]), 0);
	}
	CHECK(paimon_keyreader_at_end(&r));
	unit_arena_reset(&arena);
}

/* The limit on key length, and growth up to it. */
static void
check_limits(void)
{
	static uint8_t text[PAIMON_KEY_MAX + 10];
	static int16_t digits[PAIMON_KEY_NUMERIC_MAX_DIGITS + 1];
	static int16_t back_digits[PAIMON_KEY_NUMERIC_MAX_DIGITS];
	UnitArena	arena;
	PaimonAllocator alloc = unit_arena_init(&arena);
	PaimonKeyBuf buf;
	PaimonKeyReader r;
	PaimonNumeric n = {PAIMON_NUMERIC_NEGATIVE, -32768, PAIMON_KEY_NUMERIC_MAX_DIGITS, digits};
	PaimonNumeric back;

	memset(text, 'x', sizeof(text));
	paimon_keybuf_init(&buf, NULL, 0, &alloc);
	CHECK_EQ(paimon_key_put_text(&buf, text, PAIMON_KEY_MAX), PAIMON_NO_SPACE);
	CHECK_EQ(paimon_key_put_text(&buf, text, SIZE_MAX), PAIMON_NO_SPACE);
	CHECK_EQ(paimon_key_put_bytes(&buf, text, PAIMON_KEY_MAX), PAIMON_NO_SPACE);
	CHECK_EQ(paimon_key_put_fixed(&buf, text, PAIMON_KEY_MAX + 1), PAIMON_NO_SPACE);
	CHECK_EQ(buf.len, 0);
	CHECK_EQ(paimon_key_put_text(&buf, text, PAIMON_KEY_MAX - 1), PAIMON_OK);
	CHECK_EQ(buf.len, PAIMON_KEY_MAX);
	CHECK_EQ(paimon_key_put_bool(&buf, true), PAIMON_NO_SPACE);
	CHECK_EQ(buf.len, PAIMON_KEY_MAX);

	paimon_keybuf_reset(&buf);
	memset(text, 0, sizeof(text));
	CHECK_EQ(paimon_key_put_bytes(&buf, text, PAIMON_KEY_MAX / 2), PAIMON_NO_SPACE);
	CHECK_EQ(paimon_key_put_bytes(&buf, text, PAIMON_KEY_MAX / 2 - 1), PAIMON_OK);
	CHECK_EQ(paimon_key_put_text(&buf, "a\0b", 3), PAIMON_CORRUPT);

	for (uint32_t i = 0; i <= PAIMON_KEY_NUMERIC_MAX_DIGITS; i++)
		digits[i] = 9999;
	paimon_keybuf_reset(&buf);
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_OK);
	CHECK_EQ(buf.len, PAIMON_KEY_MAX);
	paimon_keyreader_init(&r, buf.data, buf.len);
	CHECK_EQ(paimon_key_get_numeric(&r, &back, back_digits, PAIMON_KEY_NUMERIC_MAX_DIGITS - 1), PAIMON_NO_SPACE);
	CHECK_EQ(paimon_key_get_numeric(&r, &back, back_digits, PAIMON_KEY_NUMERIC_MAX_DIGITS), PAIMON_OK);
	CHECK_EQ(back.weight, -32768);
	n.ndigits++;
	paimon_keybuf_reset(&buf);
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_NO_SPACE);

	/* malformed numbers */
	n.ndigits = 2;
	digits[1] = 0;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	digits[1] = 10000;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	digits[1] = 1;
	digits[0] = 0;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	digits[0] = -1;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	digits[0] = 1;
	n.weight = 32768;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	n.weight = 0;
	n.ndigits = 0;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);
	n.cls = (PaimonNumericClass) 0;
	CHECK_EQ(paimon_key_put_numeric(&buf, &n), PAIMON_CORRUPT);

	/* out of memory leaves the buffer as it was */
	paimon_keybuf_init(&buf, NULL, 0, &alloc);
	CHECK_EQ(paimon_key_put_int32(&buf, 7), PAIMON_OK);
	arena.fail_after = 0;
	CHECK_EQ(paimon_key_put_fixed(&buf, text, 100), PAIMON_NO_MEMORY);
	CHECK_EQ(buf.len, 4);
	unit_arena_reset(&arena);
}

/* Bytes that are on disk and must never change. */
static void
check_golden(void)
{
	static const uint8_t want[] = {
		1,						/* true */
		0x7f, 0xff,				/* int16 -1 */
		0x80, 0, 0, 5,			/* int32 5 */
		0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, /* int64 -2 */
		1, 2, 3, 4,				/* uint32 */
		0xbf, 0x80, 0, 0,		/* float4 1 */
		0x40, 0x07, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,	/* float8 -1.5 */
		'a', 'b', 0,			/* text */
		'a', 1, 1, 1, 2, 2, 0xff, 0,	/* bytes a 00 01 02 ff */
		4, 0x80, 0, 0x01 + 0x04, 0xd2, 0x01 + 0x16, 0x2e, 0, /* numeric 1234.5678 */
		2, 0x7f, 0xff, 0xfe, 0xfe, 0xff, /* numeric -1 */
		3, 6,					/* numeric 0, NaN */
	};
	static const int16_t d1[] = {1234, 5678};
	static const int16_t d2[] = {1};
	PaimonNumeric n1 = {PAIMON_NUMERIC_POSITIVE, 0, 2, d1};
	PaimonNumeric n2 = {PAIMON_NUMERIC_NEGATIVE, 0, 1, d2};
	PaimonNumeric n3 = {PAIMON_NUMERIC_ZERO, 0, 0, NULL};
	PaimonNumeric n4 = {PAIMON_NUMERIC_NAN, 0, 0, NULL};
	uint8_t		data[128];
	PaimonKeyBuf b;

	paimon_keybuf_init(&b, data, sizeof(data), NULL);
	paimon_key_put_bool(&b, true);
	paimon_key_put_int16(&b, -1);
	paimon_key_put_int32(&b, 5);
	paimon_key_put_int64(&b, -2);
	paimon_key_put_uint32(&b, 0x01020304);
	paimon_key_put_float4(&b, 1);
	paimon_key_put_float8(&b, -1.5);
	paimon_key_put_text(&b, "ab", 2);
	paimon_key_put_bytes(&b, "a\0\1\2\xff", 5);
	paimon_key_put_numeric(&b, &n1);
	paimon_key_put_numeric(&b, &n2);
	paimon_key_put_numeric(&b, &n3);
	paimon_key_put_numeric(&b, &n4);
	CHECK_EQ(b.len, sizeof(want));
	for (uint32_t i = 0; i < b.len && i < sizeof(want); i++)
		CHECK_MSG(data[i] == want[i], "byte %u is %02x, not %02x", i, data[i], want[i]);
}

/* The end of a prefix is above everything that begins with it, and nothing else lies between. */
static void
check_prefix_end(void)
{
	uint8_t		data[8];
	uint8_t		other[8];
	PaimonKeyBuf b;

	for (int round = 0; round < 20000; round++)
	{
		uint32_t	len = (uint32_t) unit_below(4);
		uint32_t	olen = (uint32_t) unit_below(8);
		uint8_t		prefix[8];
		bool		begins;
		bool		bounded;

		for (uint32_t i = 0; i < 8; i++)
		{
			prefix[i] = (uint8_t) (0xfe + unit_below(2));
			other[i] = (uint8_t) (0xfe + unit_below(2));
		}
		memcpy(data, prefix, 8);
		paimon_keybuf_init(&b, data, 8, NULL);
		b.len = len;
		begins = olen >= len && memcmp(other, prefix, len) == 0;
		bounded = paimon_key_prefix_end(&b);
		CHECK(bounded || b.len == 0);
		if (paimon_bytes_cmp(other, olen, prefix, len) < 0)
			continue;
		CHECK_EQ(!bounded || paimon_bytes_cmp(other, olen, b.data, b.len) < 0, begins);
	}
}

int
main(int argc, char **argv)
{
	static Value values[NVALUES];

	unit_begin("test_key", argc, argv);
	for (size_t i = 0; i < NTYPES; i++)
	{
		check_order(&types[i], values);
		for (int j = 0; j < NVALUES; j++)
		{
			check_round_trip(&types[i], &values[j]);
			check_fixed_buffer(&types[i], &values[j]);
			for (int k = 0; k < 20; k++)
				check_canonical(&types[i], &values[j]);
		}
	}
	for (int i = 0; i < 20000; i++)
		check_composite();
	check_limits();
	check_golden();
	check_prefix_end();
	return unit_end();
}
