/*-------------------------------------------------------------------------
 *
 * row_numeric.c
 *	  The inside of Postgres's numeric: digits for keys, and scaled integers for columns.
 *
 * The server does not export the layout, but it is on disk everywhere and cannot change: a 16-bit header, whose two top bits say what it is
 *
 *	  00 positive, 01 negative	sign and display scale (14 bits), then a 16-bit weight
 *	  10						short: sign (1 bit), display scale (6), weight (7, signed)
 *	  11						NaN, infinities: nothing follows
 *
 * then digits to the base 10000, 16 bits each, without leading or trailing zero digits.  The server uses the short form whenever scale and
 * weight fit it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "row/row_internal.h"

#define FORM_MASK			0xC000
#define FORM_NEGATIVE		0x4000
#define FORM_SHORT			0x8000
#define FORM_SPECIAL		0xC000
#define SPECIAL_MASK		0xF000
#define SPECIAL_NAN			0xC000
#define SPECIAL_POS_INF		0xD000
#define SPECIAL_NEG_INF		0xF000
#define SHORT_SIGN			0x2000
#define SHORT_SCALE_SHIFT	7
#define SHORT_SCALE_MAX		0x3F
#define SHORT_WEIGHT_MASK	0x7F
#define SHORT_WEIGHT_MAX	63
#define SHORT_WEIGHT_MIN	(-64)
#define LONG_SCALE_MASK		0x3FFF

/* Scaled integers have at most so many digits after the point: then all arithmetic fits 64 bits. */
#define SCALED_SCALE_MAX	16

static const uint64 power_of_ten[] = {
	UINT64CONST(1), UINT64CONST(10), UINT64CONST(100), UINT64CONST(1000), UINT64CONST(10000), UINT64CONST(100000),
	UINT64CONST(1000000), UINT64CONST(10000000), UINT64CONST(100000000), UINT64CONST(1000000000),
	UINT64CONST(10000000000), UINT64CONST(100000000000), UINT64CONST(1000000000000), UINT64CONST(10000000000000),
	UINT64CONST(100000000000000), UINT64CONST(1000000000000000), UINT64CONST(10000000000000000),
	UINT64CONST(100000000000000000), UINT64CONST(1000000000000000000)
};

/* Header of a numeric, taken apart; digits may be unaligned. */
typedef struct NumericParts
{
	uint16		form;			/* header & FORM_MASK, or header & SPECIAL_MASK of special values */
	bool		negative;
	int			dscale;
	int			weight;
	uint32		ndigits;
	const char *digits;
} NumericParts;

/* False if the bytes are not a numeric.  v is not compressed or external. */
static bool
take_apart(const struct varlena *v, NumericParts *parts)
{
	const char *p = VARDATA_ANY(v);
	uint32		len = VARSIZE_ANY_EXHDR(v);
	uint16		header;

	if (len < sizeof(uint16) || len % sizeof(int16) != 0)
		return false;
	memcpy(&header, p, sizeof(header));
	p += sizeof(header);
	len -= sizeof(header);
	parts->form = header & FORM_MASK;
	parts->ndigits = 0;
	parts->digits = p;
	if (parts->form == FORM_SPECIAL)
	{
		parts->form = header & SPECIAL_MASK;
		return true;
	}
	if (parts->form == FORM_SHORT)
	{
		parts->negative = (header & SHORT_SIGN) != 0;
		parts->dscale = (header >> SHORT_SCALE_SHIFT) & SHORT_SCALE_MAX;
		parts->weight = header & SHORT_WEIGHT_MASK;
		if (parts->weight > SHORT_WEIGHT_MAX)
			parts->weight -= SHORT_WEIGHT_MASK + 1;
	}
	else
	{
		int16		weight;

		if (len < sizeof(weight))
			return false;
		memcpy(&weight, p, sizeof(weight));
		p += sizeof(weight);
		len -= sizeof(weight);
		parts->negative = parts->form == FORM_NEGATIVE;
		parts->dscale = header & LONG_SCALE_MASK;
		parts->weight = weight;
	}
	parts->digits = p;
	parts->ndigits = len / sizeof(int16);
	return true;
}

static inline int16
digit_at(const NumericParts *parts, uint32 i)
{
	int16		d;

	memcpy(&d, parts->digits + i * sizeof(int16), sizeof(d));
	return d;
}

PaimonResult
paimon_numeric_unpack(Datum numeric, int16 *digits, PaimonNumeric *out)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(numeric);
	NumericParts parts;
	PaimonResult result = PAIMON_OK;

	out->weight = 0;
	out->ndigits = 0;
	out->digits = digits;
	if (!take_apart(v, &parts))
		result = PAIMON_CORRUPT;
	else if (parts.form == SPECIAL_NAN)
		out->cls = PAIMON_NUMERIC_NAN;
	else if (parts.form == SPECIAL_POS_INF)
		out->cls = PAIMON_NUMERIC_POS_INF;
	else if (parts.form == SPECIAL_NEG_INF)
		out->cls = PAIMON_NUMERIC_NEG_INF;
	else
	{
		while (parts.ndigits > 0 && digit_at(&parts, parts.ndigits - 1) == 0)
			parts.ndigits--;
		while (parts.ndigits > 0 && digit_at(&parts, 0) == 0)
		{
			parts.digits += sizeof(int16);
			parts.ndigits--;
			parts.weight--;
		}
		if (parts.ndigits > PAIMON_NUMERIC_DIGITS_MAX)
			result = PAIMON_NO_SPACE;
		else if (parts.ndigits == 0)
			out->cls = PAIMON_NUMERIC_ZERO;
		else
		{
			out->cls = parts.negative ? PAIMON_NUMERIC_NEGATIVE : PAIMON_NUMERIC_POSITIVE;
			out->weight = parts.weight;
			out->ndigits = parts.ndigits;
			memcpy(digits, parts.digits, parts.ndigits * sizeof(int16));
		}
	}
	if (v != (struct varlena *) DatumGetPointer(numeric))
		pfree(v);
	return result;
}

/* Builds a numeric as the server would: short form if it fits. */
static Datum
build(bool negative, int dscale, int weight, const int16 *digits, uint32 ndigits)
{
	bool		is_short = dscale <= SHORT_SCALE_MAX && weight <= SHORT_WEIGHT_MAX && weight >= SHORT_WEIGHT_MIN;
	Size		len = VARHDRSZ + sizeof(uint16) + (is_short ? 0 : sizeof(int16)) + ndigits * sizeof(int16);
	struct varlena *v = palloc(len);
	char	   *p = VARDATA(v);
	uint16		header;

	SET_VARSIZE(v, len);
	if (is_short)
		header = FORM_SHORT | (negative ? SHORT_SIGN : 0) | (dscale << SHORT_SCALE_SHIFT) | (weight & SHORT_WEIGHT_MASK);
	else
		header = (negative ? FORM_NEGATIVE : 0) | (dscale & LONG_SCALE_MASK);
	memcpy(p, &header, sizeof(header));
	p += sizeof(header);
	if (!is_short)
	{
		int16		w = weight;

		memcpy(p, &w, sizeof(w));
		p += sizeof(w);
	}
	if (ndigits > 0)
		memcpy(p, digits, ndigits * sizeof(int16));
	return PointerGetDatum(v);
}

static Datum
build_special(uint16 header)
{
	struct varlena *v = palloc(VARHDRSZ + sizeof(header));

	SET_VARSIZE(v, VARHDRSZ + sizeof(header));
	memcpy(VARDATA(v), &header, sizeof(header));
	return PointerGetDatum(v);
}

Datum
paimon_numeric_pack(const PaimonNumeric *v)
{
	int			dscale;

	switch (v->cls)
	{
		case PAIMON_NUMERIC_NAN:
			return build_special(SPECIAL_NAN);
		case PAIMON_NUMERIC_POS_INF:
			return build_special(SPECIAL_POS_INF);
		case PAIMON_NUMERIC_NEG_INF:
			return build_special(SPECIAL_NEG_INF);
		case PAIMON_NUMERIC_ZERO:
			return build(false, 0, 0, NULL, 0);
		default:
			break;
	}
	dscale = ((int) v->ndigits - 1 - v->weight) * 4;
	if (dscale > 0)
	{
		for (int16 last = v->digits[v->ndigits - 1]; last % 10 == 0 && last != 0; last /= 10)
			dscale--;
	}
	return build(v->cls == PAIMON_NUMERIC_NEGATIVE, Max(dscale, 0), v->weight, v->digits, v->ndigits);
}

/* acc / divisor if nothing is left over.  Nearly all fit 64 bits, for which division costs a tenth. */
static inline bool
divide_exactly(unsigned __int128 *acc, uint64 divisor)
{
	uint64		low = (uint64) *acc;

	if (*acc > PG_UINT64_MAX)
	{
		if (*acc % divisor != 0)
			return false;
		*acc /= divisor;
		return true;
	}
	if (low % divisor != 0)
		return false;
	*acc = low / divisor;
	return true;
}

/* The magnitude of an exact scaled integer, or false. */
static bool
scaled_magnitude(const NumericParts *parts, uint64 *magnitude)
{
	unsigned __int128 acc = 0;
	int			exponent;		/* of the last digit, in units of the scale */

	/* Six digits can be needed for 19 decimal ones at any alignment; more cannot fit. */
	if (parts->ndigits > 6)
		return false;
	for (uint32 i = 0; i < parts->ndigits; i++)
	{
		int16		d = digit_at(parts, i);

		if (d < 0 || d > 9999)
			return false;
		acc = acc * 10000 + d;
	}
	exponent = (parts->weight - ((int) parts->ndigits - 1)) * 4 + parts->dscale;
	if (exponent < 0)
	{
		if (exponent < -3 || !divide_exactly(&acc, power_of_ten[-exponent]))
			return false;
	}
	else
	{
		if (exponent > 18 || acc > PG_INT64_MAX)
			return false;
		acc *= power_of_ten[exponent];
	}
	if (acc > PG_INT64_MAX)
		return false;
	*magnitude = (uint64) acc;
	return true;
}

/*
 * True only if paimon_numeric_from_scaled gives back the very same bytes: the form the server would choose, no superfluous digits.
 */
bool
paimon_numeric_to_scaled(Datum numeric, int *scale, int64 *unscaled)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(numeric);
	NumericParts parts;
	uint64		magnitude;

	if (VARATT_IS_EXTERNAL(v) || VARATT_IS_COMPRESSED(v))
		return false;
	if (!take_apart(v, &parts) || parts.form != FORM_SHORT || parts.dscale > SCALED_SCALE_MAX)
		return false;
	*scale = parts.dscale;
	if (parts.ndigits == 0)
	{
		*unscaled = 0;
		return parts.weight == 0 && !parts.negative;
	}
	if (digit_at(&parts, 0) == 0 || digit_at(&parts, parts.ndigits - 1) == 0 || !scaled_magnitude(&parts, &magnitude))
		return false;
	*unscaled = parts.negative ? -(int64) magnitude : (int64) magnitude;
	return true;
}

Datum
paimon_numeric_from_scaled(int64 unscaled, int scale)
{
	bool		negative = unscaled < 0;
	uint64		magnitude = negative ? -(uint64) unscaled : (uint64) unscaled;
	uint64		whole;
	uint64		fraction;
	int16		digits[10];		/* at most 5 before the point and 4 behind */
	int16	   *first = digits + 5;
	int16	   *end = digits + 5;
	int			nfraction;
	int			weight = -1;

	if (scale < 0 || scale > SCALED_SCALE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("scale %d of a stored numeric column is out of range", scale)));
	if (unscaled == 0)
		return build(false, scale, 0, NULL, 0);
	whole = magnitude / power_of_ten[scale];
	fraction = (magnitude % power_of_ten[scale]) * power_of_ten[(4 - scale % 4) % 4];
	nfraction = (scale + 3) / 4;
	for (int i = nfraction - 1; i >= 0; i--)
	{
		digits[5 + i] = fraction % 10000;
		fraction /= 10000;
	}
	end += nfraction;
	for (; whole > 0; whole /= 10000)
	{
		*--first = whole % 10000;
		weight++;
	}
	while (first < end && *first == 0)
	{
		first++;
		weight--;
	}
	while (end > first && end[-1] == 0)
		end--;
	return build(negative, scale, weight, first, end - first);
}
