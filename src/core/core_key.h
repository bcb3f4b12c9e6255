/*-------------------------------------------------------------------------
 *
 * core_key.h
 *	  Key encoding: column values as bytes whose memcmp order is the order of
 *	  the values.
 *
 * Every primitive is self-delimiting: no encoding of a type is a proper prefix
 * of another one of the same type, so that encodings put one after the other
 * compare column by column.  Each value has exactly one encoding; decoders
 * refuse any other bytes.  Byte layouts: README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_KEY_H
#define PAIMON_CORE_KEY_H

#include "core/core.h"

/* Longest encoded key, in bytes; encoders give PAIMON_NO_SPACE beyond it. */
#define PAIMON_KEY_MAX 2700

/*
 * Where encoders append.  `data` holds `len` bytes of `cap`.  With an allocator the
 * buffer grows into its memory (the old bytes are left to it); without one
 * (a == NULL) it is the caller's fixed buffer.  After a failed put `len` is what it was before.
 */
typedef struct PaimonKeyBuf
{
	uint8_t    *data;
	uint32_t	len;
	uint32_t	cap;
	const PaimonAllocator *a;
} PaimonKeyBuf;

/* `data` may be NULL with cap 0 if there is an allocator. */
static inline void
paimon_keybuf_init(PaimonKeyBuf *buf, uint8_t *data, uint32_t cap, const PaimonAllocator *a)
{
	buf->data = data;
	buf->len = 0;
	buf->cap = cap;
	buf->a = a;
}

/* Empties the buffer and keeps its memory. */
static inline void
paimon_keybuf_reset(PaimonKeyBuf *buf)
{
	buf->len = 0;
}

/* Classes of a decimal number in ascending order; NaN is the largest, as in Postgres. */
typedef enum PaimonNumericClass
{
	PAIMON_NUMERIC_NEG_INF = 1,
	PAIMON_NUMERIC_NEGATIVE = 2,
	PAIMON_NUMERIC_ZERO = 3,
	PAIMON_NUMERIC_POSITIVE = 4,
	PAIMON_NUMERIC_POS_INF = 5,
	PAIMON_NUMERIC_NAN = 6
} PaimonNumericClass;

/*
 * A decimal number: for NEGATIVE and POSITIVE the sum over i of digits[i] * 10000 ^ (weight - i), with
 * digits of 0 … 9999, ndigits >= 1, digits[0] != 0 and digits[ndigits - 1] != 0; for the other
 * classes ndigits = 0 and weight = 0.  weight fits 16 bits.  Trailing decimal zeros ("display scale") are no part of it.
 */
typedef struct PaimonNumeric
{
	PaimonNumericClass cls;
	int32_t		weight;
	uint32_t	ndigits;
	const int16_t *digits;
} PaimonNumeric;

/* No encoded numeric has more digits than this: bound of the array for paimon_key_get_numeric. */
#define PAIMON_KEY_NUMERIC_MAX_DIGITS ((PAIMON_KEY_MAX - 4) / 2)

/*
 * Encoders: append one value.  PAIMON_NO_SPACE: a fixed buffer is full or the key would be longer than
 * PAIMON_KEY_MAX.  PAIMON_NO_MEMORY: the allocator gave NULL.  PAIMON_CORRUPT: the value is not one (text with a zero
 * byte, malformed numeric).
 */
extern PaimonResult paimon_key_put_bool(PaimonKeyBuf *buf, bool v);
extern PaimonResult paimon_key_put_int16(PaimonKeyBuf *buf, int16_t v);
extern PaimonResult paimon_key_put_int32(PaimonKeyBuf *buf, int32_t v);
extern PaimonResult paimon_key_put_int64(PaimonKeyBuf *buf, int64_t v);
extern PaimonResult paimon_key_put_uint32(PaimonKeyBuf *buf, uint32_t v);
extern PaimonResult paimon_key_put_uint64(PaimonKeyBuf *buf, uint64_t v);

/* -0 is encoded as 0 and every NaN as one NaN, which is the largest value. */
extern PaimonResult paimon_key_put_float4(PaimonKeyBuf *buf, float v);
extern PaimonResult paimon_key_put_float8(PaimonKeyBuf *buf, double v);

/* Bytes none of which is zero, in byte order (text under collation C). */
extern PaimonResult paimon_key_put_text(PaimonKeyBuf *buf, const void *data, size_t len);

/* Any bytes, in byte order, a prefix before the longer string (bytea). */
extern PaimonResult paimon_key_put_bytes(PaimonKeyBuf *buf, const void *data, size_t len);

/* Bytes of a length that the type fixes (uuid, macaddr): stored as they are. */
extern PaimonResult paimon_key_put_fixed(PaimonKeyBuf *buf, const void *data, size_t len);

extern PaimonResult paimon_key_put_numeric(PaimonKeyBuf *buf, const PaimonNumeric *v);

/*
 * Makes of the key prefix in `buf` the smallest byte string above all strings that begin with it (for the upper end of a range
 * scan).  False, with the buffer emptied, if there is none: then nothing bounds the range.
 */
extern bool paimon_key_prefix_end(PaimonKeyBuf *buf);

/* A cursor over an encoded key. */
typedef struct PaimonKeyReader
{
	const uint8_t *p;
	const uint8_t *end;
} PaimonKeyReader;

static inline void
paimon_keyreader_init(PaimonKeyReader *r, const uint8_t *key, uint32_t len)
{
	r->p = key;
	r->end = key + len;
}

static inline bool
paimon_keyreader_at_end(const PaimonKeyReader *r)
{
	return r->p == r->end;
}

/*
 * Decoders: read one value and advance; on failure the cursor stays.  PAIMON_CORRUPT: the bytes end too early or
 * are not what the encoder writes.
 */
extern PaimonResult paimon_key_get_bool(PaimonKeyReader *r, bool *v);
extern PaimonResult paimon_key_get_int16(PaimonKeyReader *r, int16_t *v);
extern PaimonResult paimon_key_get_int32(PaimonKeyReader *r, int32_t *v);
extern PaimonResult paimon_key_get_int64(PaimonKeyReader *r, int64_t *v);
extern PaimonResult paimon_key_get_uint32(PaimonKeyReader *r, uint32_t *v);
extern PaimonResult paimon_key_get_uint64(PaimonKeyReader *r, uint64_t *v);
extern PaimonResult paimon_key_get_float4(PaimonKeyReader *r, float *v);
extern PaimonResult paimon_key_get_float8(PaimonKeyReader *r, double *v);

/* The text's bytes, pointing into the key. */
extern PaimonResult paimon_key_get_text(PaimonKeyReader *r, PaimonBytes *v);

/*
 * Copies into out[0 .. cap); *len is the value's length.  PAIMON_NO_SPACE if cap is too small; the rest of the key's length
 * always suffices.
 */
extern PaimonResult paimon_key_get_bytes(PaimonKeyReader *r, uint8_t *out, uint32_t cap, uint32_t *len);

/* Points into the key. */
extern PaimonResult paimon_key_get_fixed(PaimonKeyReader *r, uint32_t len, const uint8_t **v);

/*
 * Digits go to digits[0 .. cap), to which v->digits points afterwards.  PAIMON_NO_SPACE if cap is too small;
 * PAIMON_KEY_NUMERIC_MAX_DIGITS suffices for any key up to PAIMON_KEY_MAX bytes.
 */
extern PaimonResult paimon_key_get_numeric(PaimonKeyReader *r, PaimonNumeric *v, int16_t *digits, uint32_t cap);

#endif							/* PAIMON_CORE_KEY_H */
