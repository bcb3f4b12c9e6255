/*-------------------------------------------------------------------------
 *
 * core_key.c
 *	  Key encoding of the simple types; numbers in core_key_numeric.c.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_key.h"
#include "core/core_key_internal.h"

#define FLOAT4_SIGN UINT32_C(0x80000000)
#define FLOAT8_SIGN UINT64_C(0x8000000000000000)
#define FLOAT4_INF UINT32_C(0x7f800000)
#define FLOAT8_INF UINT64_C(0x7ff0000000000000)
#define FLOAT4_NAN UINT32_C(0x7fc00000)
#define FLOAT8_NAN UINT64_C(0x7ff8000000000000)

/* Encoding of arbitrary bytes: 0 ends the string, so 0 and 1 in it become two bytes that begin with 1. */
#define BYTES_END 0x00
#define BYTES_ESCAPE 0x01
#define BYTES_ESCAPED_ZERO 0x01
#define BYTES_ESCAPED_ONE 0x02

/*
 * Makes room for n more bytes and gives their address; the caller adds n to buf->len when it has written them.
 */
PaimonResult
paimon_keybuf_room(PaimonKeyBuf *buf, size_t n, uint8_t **out)
{
	uint32_t	need;
	uint32_t	cap;
	uint8_t    *data;

	if (buf->len > PAIMON_KEY_MAX || n > PAIMON_KEY_MAX - buf->len)
		return PAIMON_NO_SPACE;
	need = buf->len + (uint32_t) n;
	if (need > buf->cap)
	{
		if (buf->a == NULL)
			return PAIMON_NO_SPACE;
		for (cap = buf->cap < 64 ? 64 : buf->cap; cap < need; cap *= 2)
			;
		data = paimon_core_alloc(buf->a, cap);
		if (data == NULL)
			return PAIMON_NO_MEMORY;
		if (buf->len > 0)
			memcpy(data, buf->data, buf->len);
		buf->data = data;
		buf->cap = cap;
	}
	*out = buf->data + buf->len;
	return PAIMON_OK;
}

/* Appends the low `width` bytes of v, highest first. */
static PaimonResult
put_big_endian(PaimonKeyBuf *buf, uint64_t v, uint32_t width)
{
	uint8_t    *p;
	PaimonResult r = paimon_keybuf_room(buf, width, &p);

	if (r != PAIMON_OK)
		return r;
	for (uint32_t i = 0; i < width; i++)
		p[i] = (uint8_t) (v >> (8 * (width - 1 - i)));
	buf->len += width;
	return PAIMON_OK;
}

/* Reads a big-endian number of `width` bytes without advancing. */
static PaimonResult
peek_big_endian(const PaimonKeyReader *r, uint32_t width, uint64_t *v)
{
	uint64_t	x = 0;

	if ((size_t) (r->end - r->p) < width)
		return PAIMON_CORRUPT;
	for (uint32_t i = 0; i < width; i++)
		x = (x << 8) | r->p[i];
	*v = x;
	return PAIMON_OK;
}

static PaimonResult
get_big_endian(PaimonKeyReader *r, uint32_t width, uint64_t *v)
{
	PaimonResult res = peek_big_endian(r, width, v);

	if (res == PAIMON_OK)
		r->p += width;
	return res;
}

PaimonResult
paimon_key_put_bool(PaimonKeyBuf *buf, bool v)
{
	return put_big_endian(buf, v ? 1 : 0, 1);
}

/* Signed numbers: the sign bit is turned over, so that negative ones come first. */
PaimonResult
paimon_key_put_int16(PaimonKeyBuf *buf, int16_t v)
{
	return put_big_endian(buf, (uint16_t) v ^ UINT32_C(0x8000), 2);
}

PaimonResult
paimon_key_put_int32(PaimonKeyBuf *buf, int32_t v)
{
	return put_big_endian(buf, (uint32_t) v ^ UINT32_C(0x80000000), 4);
}

PaimonResult
paimon_key_put_int64(PaimonKeyBuf *buf, int64_t v)
{
	return put_big_endian(buf, (uint64_t) v ^ UINT64_C(0x8000000000000000), 8);
}

PaimonResult
paimon_key_put_uint32(PaimonKeyBuf *buf, uint32_t v)
{
	return put_big_endian(buf, v, 4);
}

PaimonResult
paimon_key_put_uint64(PaimonKeyBuf *buf, uint64_t v)
{
	return put_big_endian(buf, v, 8);
}

/*
 * Floats: IEEE bits of numbers of one sign compare as integers.  Positive ones get the sign bit set, negative ones
 * have all bits turned over.  The canonical NaN is positive and above infinity.
 */
PaimonResult
paimon_key_put_float4(PaimonKeyBuf *buf, float v)
{
	uint32_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & ~FLOAT4_SIGN) > FLOAT4_INF)
		bits = FLOAT4_NAN;
	else if (bits == FLOAT4_SIGN)
		bits = 0;
	return put_big_endian(buf, (bits & FLOAT4_SIGN) ? ~bits : (bits | FLOAT4_SIGN), 4);
}

PaimonResult
paimon_key_put_float8(PaimonKeyBuf *buf, double v)
{
	uint64_t	bits;

	memcpy(&bits, &v, sizeof(bits));
	if ((bits & ~FLOAT8_SIGN) > FLOAT8_INF)
		bits = FLOAT8_NAN;
	else if (bits == FLOAT8_SIGN)
		bits = 0;
	return put_big_endian(buf, (bits & FLOAT8_SIGN) ? ~bits : (bits | FLOAT8_SIGN), 8);
}

PaimonResult
paimon_key_put_text(PaimonKeyBuf *buf, const void *data, size_t len)
{
	uint8_t    *p;
	PaimonResult r;

	/* the limit first: no need to search a gigabyte for zeros */
	if (len >= PAIMON_KEY_MAX)
		return PAIMON_NO_SPACE;
	if (len > 0 && memchr(data, 0, len) != NULL)
		return PAIMON_CORRUPT;
	r = paimon_keybuf_room(buf, len + 1, &p);
	if (r != PAIMON_OK)
		return r;
	if (len > 0)
		memcpy(p, data, len);
	p[len] = 0;
	buf->len += (uint32_t) len + 1;
	return PAIMON_OK;
}

PaimonResult
paimon_key_put_bytes(PaimonKeyBuf *buf, const void *data, size_t len)
{
	const uint8_t *src = data;
	size_t		total = len + 1;
	uint8_t    *p;
	PaimonResult r;

	if (len >= PAIMON_KEY_MAX)
		return PAIMON_NO_SPACE;
	for (size_t i = 0; i < len; i++)
		total += src[i] <= BYTES_ESCAPE;
	r = paimon_keybuf_room(buf, total, &p);
	if (r != PAIMON_OK)
		return r;
	for (size_t i = 0; i < len; i++)
	{
		if (src[i] > BYTES_ESCAPE)
			*p++ = src[i];
		else
		{
			*p++ = BYTES_ESCAPE;
			*p++ = src[i] == 0 ? BYTES_ESCAPED_ZERO : BYTES_ESCAPED_ONE;
		}
	}
	*p = BYTES_END;
	buf->len += (uint32_t) total;
	return PAIMON_OK;
}

PaimonResult
paimon_key_put_fixed(PaimonKeyBuf *buf, const void *data, size_t len)
{
	uint8_t    *p;
	PaimonResult r = paimon_keybuf_room(buf, len, &p);

	if (r != PAIMON_OK || len == 0)
		return r;
	memcpy(p, data, len);
	buf->len += (uint32_t) len;
	return PAIMON_OK;
}

bool
paimon_key_prefix_end(PaimonKeyBuf *buf)
{
	while (buf->len > 0 && buf->data[buf->len - 1] == 0xff)
		buf->len--;
	if (buf->len == 0)
		return false;
	buf->data[buf->len - 1]++;
	return true;
}

PaimonResult
paimon_key_get_bool(PaimonKeyReader *r, bool *v)
{
	uint64_t	x;
	PaimonResult res = peek_big_endian(r, 1, &x);

	if (res != PAIMON_OK)
		return res;
	if (x > 1)
		return PAIMON_CORRUPT;
	r->p++;
	*v = x == 1;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_int16(PaimonKeyReader *r, int16_t *v)
{
	uint64_t	x;
	PaimonResult res = get_big_endian(r, 2, &x);

	if (res == PAIMON_OK)
		*v = (int16_t) (uint16_t) (x ^ 0x8000);
	return res;
}

PaimonResult
paimon_key_get_int32(PaimonKeyReader *r, int32_t *v)
{
	uint64_t	x;
	PaimonResult res = get_big_endian(r, 4, &x);

	if (res == PAIMON_OK)
		*v = (int32_t) (uint32_t) (x ^ UINT32_C(0x80000000));
	return res;
}

PaimonResult
paimon_key_get_int64(PaimonKeyReader *r, int64_t *v)
{
	uint64_t	x;
	PaimonResult res = get_big_endian(r, 8, &x);

	if (res == PAIMON_OK)
		*v = (int64_t) (x ^ UINT64_C(0x8000000000000000));
	return res;
}

PaimonResult
paimon_key_get_uint32(PaimonKeyReader *r, uint32_t *v)
{
	uint64_t	x;
	PaimonResult res = get_big_endian(r, 4, &x);

	if (res == PAIMON_OK)
		*v = (uint32_t) x;
	return res;
}

PaimonResult
paimon_key_get_uint64(PaimonKeyReader *r, uint64_t *v)
{
	return get_big_endian(r, 8, v);
}

PaimonResult
paimon_key_get_float4(PaimonKeyReader *r, float *v)
{
	uint64_t	x;
	uint32_t	bits;
	PaimonResult res = peek_big_endian(r, 4, &x);

	if (res != PAIMON_OK)
		return res;
	bits = (uint32_t) x;
	bits = (bits & FLOAT4_SIGN) ? (bits ^ FLOAT4_SIGN) : ~bits;
	if (bits == FLOAT4_SIGN || ((bits & ~FLOAT4_SIGN) > FLOAT4_INF && bits != FLOAT4_NAN))
		return PAIMON_CORRUPT;
	memcpy(v, &bits, sizeof(bits));
	r->p += 4;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_float8(PaimonKeyReader *r, double *v)
{
	uint64_t	bits;
	PaimonResult res = peek_big_endian(r, 8, &bits);

	if (res != PAIMON_OK)
		return res;
	bits = (bits & FLOAT8_SIGN) ? (bits ^ FLOAT8_SIGN) : ~bits;
	if (bits == FLOAT8_SIGN || ((bits & ~FLOAT8_SIGN) > FLOAT8_INF && bits != FLOAT8_NAN))
		return PAIMON_CORRUPT;
	memcpy(v, &bits, sizeof(bits));
	r->p += 8;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_text(PaimonKeyReader *r, PaimonBytes *v)
{
	const uint8_t *end;

	if (r->p == r->end)
		return PAIMON_CORRUPT;
	end = memchr(r->p, 0, (size_t) (r->end - r->p));
	if (end == NULL)
		return PAIMON_CORRUPT;
	v->data = r->p;
	v->len = (uint32_t) (end - r->p);
	r->p = end + 1;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_bytes(PaimonKeyReader *r, uint8_t *out, uint32_t cap, uint32_t *len)
{
	const uint8_t *p = r->p;
	uint32_t	n = 0;

	for (;;)
	{
		uint8_t		c;

		if (p == r->end)
			return PAIMON_CORRUPT;
		c = *p++;
		if (c == BYTES_END)
			break;
		if (c == BYTES_ESCAPE)
		{
			if (p == r->end || (*p != BYTES_ESCAPED_ZERO && *p != BYTES_ESCAPED_ONE))
				return PAIMON_CORRUPT;
			c = *p++ == BYTES_ESCAPED_ZERO ? 0 : 1;
		}
		if (n == cap)
			return PAIMON_NO_SPACE;
		out[n++] = c;
	}
	*len = n;
	r->p = p;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_fixed(PaimonKeyReader *r, uint32_t len, const uint8_t **v)
{
	if ((size_t) (r->end - r->p) < len)
		return PAIMON_CORRUPT;
	*v = r->p;
	r->p += len;
	return PAIMON_OK;
}
