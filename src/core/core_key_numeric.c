/*-------------------------------------------------------------------------
 *
 * core_key_numeric.c
 *	  Key encoding of decimal numbers.
 *
 * One byte says the class (ascending with the value).  A positive number goes
 * on with its weight (biased, two bytes), its base-10000 digits, each two
 * bytes of which the first is never zero, and one zero byte: as there are no
 * trailing zero digits, a number whose digits run on is the larger one.  A
 * negative number has the same bytes turned over.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_key.h"
#include "core/core_key_internal.h"

#define DIGIT_BASE 10000
#define DIGIT_BIAS 0x0100		/* keeps a digit's first byte from being zero, which ends the number */
#define WEIGHT_BIAS 0x8000
#define FIXED_BYTES 4			/* class, weight, end */

/* Is the class one with digits? */
static bool
has_digits(PaimonNumericClass cls)
{
	return cls == PAIMON_NUMERIC_NEGATIVE || cls == PAIMON_NUMERIC_POSITIVE;
}

static bool
numeric_is_valid(const PaimonNumeric *v)
{
	if (!has_digits(v->cls))
		return v->cls >= PAIMON_NUMERIC_NEG_INF && v->cls <= PAIMON_NUMERIC_NAN;
	if (v->ndigits == 0 || v->weight < INT16_MIN || v->weight > INT16_MAX)
		return false;
	if (v->digits[0] == 0 || v->digits[v->ndigits - 1] == 0)
		return false;
	for (uint32_t i = 0; i < v->ndigits; i++)
		if (v->digits[i] < 0 || v->digits[i] >= DIGIT_BASE)
			return false;
	return true;
}

PaimonResult
paimon_key_put_numeric(PaimonKeyBuf *buf, const PaimonNumeric *v)
{
	uint8_t		flip = v->cls == PAIMON_NUMERIC_NEGATIVE ? 0xff : 0;
	uint32_t	weight;
	size_t		total = 1;
	uint8_t    *p;
	PaimonResult r;

	/* the limit first, as validation walks over all digits */
	if (has_digits(v->cls))
	{
		if (v->ndigits > PAIMON_KEY_NUMERIC_MAX_DIGITS)
			return PAIMON_NO_SPACE;
		total = FIXED_BYTES + 2 * (size_t) v->ndigits;
	}
	if (!numeric_is_valid(v))
		return PAIMON_CORRUPT;
	r = paimon_keybuf_room(buf, total, &p);
	if (r != PAIMON_OK)
		return r;

	*p++ = (uint8_t) v->cls;
	if (has_digits(v->cls))
	{
		weight = (uint32_t) (v->weight + WEIGHT_BIAS);
		*p++ = (uint8_t) (weight >> 8) ^ flip;
		*p++ = (uint8_t) weight ^ flip;
		for (uint32_t i = 0; i < v->ndigits; i++)
		{
			uint32_t	d = (uint32_t) v->digits[i] + DIGIT_BIAS;

			*p++ = (uint8_t) (d >> 8) ^ flip;
			*p++ = (uint8_t) d ^ flip;
		}
		*p = flip;
	}
	buf->len += (uint32_t) total;
	return PAIMON_OK;
}

/* The part behind the class byte of a number with digits; *pp is advanced on success only. */
static PaimonResult
get_digits(const uint8_t **pp, const uint8_t *end, uint8_t flip, PaimonNumeric *v, int16_t *digits, uint32_t cap)
{
	const uint8_t *p = *pp;
	uint32_t	n = 0;
	int32_t		weight;

	if (end - p < 2)
		return PAIMON_CORRUPT;
	weight = (((p[0] ^ flip) << 8) | (p[1] ^ flip)) - WEIGHT_BIAS;
	p += 2;
	for (;;)
	{
		int32_t		d;

		if (p == end)
			return PAIMON_CORRUPT;
		if ((*p ^ flip) == 0)
			break;
		if (end - p < 2)
			return PAIMON_CORRUPT;
		d = (((p[0] ^ flip) << 8) | (p[1] ^ flip)) - DIGIT_BIAS;
		if (d >= DIGIT_BASE)
			return PAIMON_CORRUPT;
		if (n == cap)
			return PAIMON_NO_SPACE;
		digits[n++] = (int16_t) d;
		p += 2;
	}
	if (n == 0 || digits[0] == 0 || digits[n - 1] == 0)
		return PAIMON_CORRUPT;
	v->weight = weight;
	v->ndigits = n;
	*pp = p + 1;
	return PAIMON_OK;
}

PaimonResult
paimon_key_get_numeric(PaimonKeyReader *r, PaimonNumeric *v, int16_t *digits, uint32_t cap)
{
	const uint8_t *p = r->p;
	PaimonResult res = PAIMON_OK;
	uint8_t		cls;

	if (p == r->end)
		return PAIMON_CORRUPT;
	cls = *p++;
	if (cls < PAIMON_NUMERIC_NEG_INF || cls > PAIMON_NUMERIC_NAN)
		return PAIMON_CORRUPT;
	v->cls = (PaimonNumericClass) cls;
	v->weight = 0;
	v->ndigits = 0;
	v->digits = digits;
	if (has_digits(v->cls))
		res = get_digits(&p, r->end, cls == PAIMON_NUMERIC_NEGATIVE ? 0xff : 0, v, digits, cap);
	if (res == PAIMON_OK)
		r->p = p;
	return res;
}
