/*-------------------------------------------------------------------------
 *
 * row_key_types.c
 *	  Which types can be in a key, and their values as key bytes.
 *
 * What must hold for each codec: two values have the same bytes exactly if the default btree operator class calls them equal; where sql_order
 * is set, memcmp orders the bytes as that class orders the values; no encoding is a proper prefix of another one of its codec.  README.md
 * argues it type by type.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/cash.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/pg_lsn.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"
#include "utils/xid8.h"

#include "compat.h"
#include "row/row_internal.h"

#define MACADDR_LEN		6
#define MACADDR8_LEN	8

/* Before each element of an array, and after the last. */
#define ARRAY_END		0
#define ARRAY_ELEMENT	1
#define ARRAY_NULL		2

const PaimonKeyCodecInfo paimon_key_codecs[KEY_CODEC_LAST + 1] = {
	/* codec				typlen, byval, align, key length, lossless, SQL order */
	[KEY_CODEC_NONE] = {0, false, TYPALIGN_CHAR, 0, false, false},
	[KEY_CODEC_BOOL] = {1, true, TYPALIGN_CHAR, 1, true, true},
	[KEY_CODEC_CHAR] = {1, true, TYPALIGN_CHAR, 1, true, true},
	[KEY_CODEC_INT16] = {2, true, TYPALIGN_SHORT, 2, true, true},
	[KEY_CODEC_INT32] = {4, true, TYPALIGN_INT, 4, true, true},
	[KEY_CODEC_INT64] = {8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, 8, true, true},
	[KEY_CODEC_UINT32] = {4, true, TYPALIGN_INT, 4, true, true},
	[KEY_CODEC_UINT64] = {8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, 8, true, true},
	[KEY_CODEC_FLOAT4] = {4, true, TYPALIGN_INT, 4, false, true},
	[KEY_CODEC_FLOAT8] = {8, FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, 8, false, true},
	[KEY_CODEC_NUMERIC] = {-1, false, TYPALIGN_INT, 0, false, true},
	[KEY_CODEC_TEXT] = {-1, false, TYPALIGN_INT, 0, true, false},
	[KEY_CODEC_BPCHAR] = {-1, false, TYPALIGN_INT, 0, false, false},
	[KEY_CODEC_NAME] = {NAMEDATALEN, false, TYPALIGN_CHAR, 0, true, false},
	[KEY_CODEC_BYTEA] = {-1, false, TYPALIGN_INT, 0, true, true},
	[KEY_CODEC_UUID] = {UUID_LEN, false, TYPALIGN_CHAR, UUID_LEN, true, true},
	[KEY_CODEC_TIMETZ] = {12, false, TYPALIGN_DOUBLE, 12, true, true},
	[KEY_CODEC_INTERVAL] = {16, false, TYPALIGN_DOUBLE, 16, false, true},
	[KEY_CODEC_INET] = {-1, false, TYPALIGN_INT, 0, true, true},
	[KEY_CODEC_MACADDR] = {MACADDR_LEN, false, TYPALIGN_INT, MACADDR_LEN, true, true},
	[KEY_CODEC_MACADDR8] = {MACADDR8_LEN, false, TYPALIGN_INT, MACADDR8_LEN, true, true},
	[KEY_CODEC_BIT] = {-1, false, TYPALIGN_INT, 0, true, true},
};

/* ---- which codec ---- */

static int
scalar_codec(Oid type)
{
	switch (type)
	{
		case BOOLOID:
			return KEY_CODEC_BOOL;
		case CHAROID:
			return KEY_CODEC_CHAR;
		case INT2OID:
			return KEY_CODEC_INT16;
		case INT4OID:
		case DATEOID:
			return KEY_CODEC_INT32;
		case INT8OID:
		case TIMEOID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
		case CASHOID:
			return KEY_CODEC_INT64;
		case OIDOID:
		case REGCLASSOID:
		case REGTYPEOID:
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGROLEOID:
		case REGNAMESPACEOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case REGCOLLATIONOID:
			return KEY_CODEC_UINT32;
		case LSNOID:
		case XID8OID:
			return KEY_CODEC_UINT64;
		case FLOAT4OID:
			return KEY_CODEC_FLOAT4;
		case FLOAT8OID:
			return KEY_CODEC_FLOAT8;
		case NUMERICOID:
			return KEY_CODEC_NUMERIC;
		case TEXTOID:
		case VARCHAROID:
			return KEY_CODEC_TEXT;
		case BPCHAROID:
			return KEY_CODEC_BPCHAR;
		case NAMEOID:
			return KEY_CODEC_NAME;
		case BYTEAOID:
			return KEY_CODEC_BYTEA;
		case UUIDOID:
			return KEY_CODEC_UUID;
		case TIMETZOID:
			return KEY_CODEC_TIMETZ;
		case INTERVALOID:
			return KEY_CODEC_INTERVAL;
		case INETOID:
		case CIDROID:
			return KEY_CODEC_INET;
		case MACADDROID:
			return KEY_CODEC_MACADDR;
		case MACADDR8OID:
			return KEY_CODEC_MACADDR8;
		case BITOID:
		case VARBITOID:
			return KEY_CODEC_BIT;
		default:
			return KEY_CODEC_NONE;
	}
}

static bool
codec_is_text(int codec)
{
	return codec == KEY_CODEC_TEXT || codec == KEY_CODEC_BPCHAR || codec == KEY_CODEC_NAME;
}

int
paimon_key_codec(Oid type, Oid collation, const char **why)
{
	Oid			base = getBaseType(type);
	Oid			elem = get_base_element_type(base);
	int			codec;

	*why = NULL;
	if (OidIsValid(elem) && get_typlen(base) == -1)
	{
		codec = paimon_key_codec(elem, collation, why);
		if (codec >= KEY_CODEC_ARRAY)
			codec = KEY_CODEC_NONE; /* cannot be: an array's element is no array; a domain over one could */
		if (codec == KEY_CODEC_NONE)
		{
			*why = _("There is no key encoding for arrays of this element type.");
			return KEY_CODEC_NONE;
		}
		return KEY_CODEC_ARRAY + codec;
	}

	codec = scalar_codec(base);
	if (codec == KEY_CODEC_NONE && get_typtype(base) == TYPTYPE_ENUM)
		codec = KEY_CODEC_UINT32;
	if (codec == KEY_CODEC_NONE)
	{
		char		typtype = get_typtype(base);

		if (typtype == TYPTYPE_RANGE || typtype == TYPTYPE_MULTIRANGE)
			*why = _("There is no key encoding for range types yet.");
		else if (typtype == TYPTYPE_COMPOSITE)
			*why = _("There is no key encoding for composite types yet.");
		else
			*why = _("There is no encoding of the type whose bytes are equal exactly if the values are.");
		return KEY_CODEC_NONE;
	}
	if (codec_is_text(codec) && OidIsValid(collation) && !get_collation_isdeterministic(collation))
	{
		*why = _("Its collation is nondeterministic.");
		return KEY_CODEC_NONE;
	}
	return codec;
}

bool
paimon_key_type_supported(Oid type, Oid collation, const char **why)
{
	return paimon_key_codec(type, collation, why) != KEY_CODEC_NONE;
}

bool
paimon_key_codec_lossless(int codec)
{
	return codec < KEY_CODEC_ARRAY && paimon_key_codecs[codec].lossless;
}

/* `type` and `collation` are the column's. */
bool
paimon_key_codec_sql_order(int codec, Oid type, Oid collation)
{
	int			scalar = codec >= KEY_CODEC_ARRAY ? codec - KEY_CODEC_ARRAY : codec;

	if (codec_is_text(scalar))
		return OidIsValid(collation) && paimon_collation_is_c(collation);
	if (scalar == KEY_CODEC_UINT32)
	{
		/* Enums sort by their declaration, not by OID. */
		Oid			base = getBaseType(type);

		if (codec >= KEY_CODEC_ARRAY)
			base = getBaseType(get_base_element_type(base));
		return get_typtype(base) != TYPTYPE_ENUM;
	}
	return paimon_key_codecs[scalar].sql_order;
}

bool
paimon_key_orders(const PaimonKeyColumn *column, Oid collation)
{
	return paimon_key_codec_sql_order(column->codec, column->type, collation);
}

bool
paimon_key_type_orders(Oid type, Oid collation)
{
	const char *why;
	int			codec = paimon_key_codec(type, collation, &why);

	return codec != KEY_CODEC_NONE && paimon_key_codec_sql_order(codec, type, collation);
}

/* Bytes of every encoding, 0 if it varies. */
uint32
paimon_key_codec_length(int codec)
{
	return codec >= KEY_CODEC_ARRAY ? 0 : paimon_key_codecs[codec].key_len;
}

/* ---- values to bytes ---- */

static PaimonResult
put_numeric(Datum value, PaimonKeyBuf *out)
{
	int16		digits[PAIMON_NUMERIC_DIGITS_MAX];
	PaimonNumeric n;
	PaimonResult r = paimon_numeric_unpack(value, digits, &n);

	return r == PAIMON_OK ? paimon_key_put_numeric(out, &n) : r;
}

/*
 * The network first, bit by bit a prefix before what it is a prefix of: for each 8 bits of it the bits (padded with zeros) and how many there are; the
 * first byte that is not full ends it.  Then the whole address.
 */
static PaimonResult
put_inet(const struct varlena *v, PaimonKeyBuf *out)
{
	const inet_struct *in = (const inet_struct *) VARDATA_ANY(v);
	uint8		bytes[1 + 2 * 17 + 16];
	uint32		n = 0;
	int			size = in->family == PGSQL_AF_INET ? 4 : 16;
	int			left = in->bits;

	if ((in->family != PGSQL_AF_INET && in->family != PGSQL_AF_INET6) || left > size * 8 ||
		VARSIZE_ANY_EXHDR(v) < offsetof(inet_struct, ipaddr) + size)
		return PAIMON_CORRUPT;
	bytes[n++] = in->family;
	for (int i = 0;; i++)
	{
		int			here = Min(left, 8);

		bytes[n++] = here == 0 ? 0 : (in->ipaddr[i] & (0xFF << (8 - here)));
		bytes[n++] = here;
		left -= here;
		if (here < 8)
			break;
	}
	memcpy(bytes + n, in->ipaddr, size);
	return paimon_key_put_fixed(out, bytes, n + size);
}

/*
 * 128-bit number of microseconds that interval's comparison uses, as days and rest: the calendar parts count 30 days a month and 24 hours a day.
 */
static PaimonResult
put_interval(const Interval *v, PaimonKeyBuf *out)
{
	int64		days = v->time / USECS_PER_DAY;
	int64		rest = v->time % USECS_PER_DAY;
	uint32		len = out->len;
	PaimonResult r;

	if (rest < 0)
	{
		rest += USECS_PER_DAY;
		days--;
	}
	days += (int64) v->month * 30 + v->day;
	r = paimon_key_put_int64(out, days);
	if (r == PAIMON_OK)
		r = paimon_key_put_int64(out, rest);
	if (r != PAIMON_OK)
		out->len = len;
	return r;
}

/* By the instant, then by the zone. */
static PaimonResult
put_timetz(const TimeTzADT *v, PaimonKeyBuf *out)
{
	uint32		len = out->len;
	PaimonResult r = paimon_key_put_int64(out, v->time + v->zone * USECS_PER_SEC);

	if (r == PAIMON_OK)
		r = paimon_key_put_int32(out, v->zone);
	if (r != PAIMON_OK)
		out->len = len;
	return r;
}

static PaimonResult
put_bits(const struct varlena *v, PaimonKeyBuf *out)
{
	int32		nbits;
	PaimonResult r;
	uint32		len = out->len;

	if (VARSIZE_ANY_EXHDR(v) < sizeof(nbits))
		return PAIMON_CORRUPT;
	memcpy(&nbits, VARDATA_ANY(v), sizeof(nbits));
	r = paimon_key_put_bytes(out, VARDATA_ANY(v) + sizeof(nbits), VARSIZE_ANY_EXHDR(v) - sizeof(nbits));
	if (r == PAIMON_OK)
		r = paimon_key_put_int32(out, nbits);
	if (r != PAIMON_OK)
		out->len = len;
	return r;
}

/* Elements, each behind a mark that puts the end before everything and NULL behind everything; then the shape. */
static PaimonResult
put_array(int elemcodec, Datum value, PaimonKeyBuf *out)
{
	const PaimonKeyCodecInfo *info = &paimon_key_codecs[elemcodec];
	ArrayType  *array = DatumGetArrayTypeP(value);
	uint32		len = out->len;
	uint8		mark;
	PaimonResult r = PAIMON_OK;
	Datum	   *elems;
	bool	   *nulls;
	int			nelems;

	deconstruct_array(array, ARR_ELEMTYPE(array), info->typlen, info->typbyval, info->typalign, &elems, &nulls, &nelems);
	for (int i = 0; i < nelems && r == PAIMON_OK; i++)
	{
		mark = nulls[i] ? ARRAY_NULL : ARRAY_ELEMENT;
		r = paimon_key_put_fixed(out, &mark, 1);
		if (r == PAIMON_OK && !nulls[i])
			r = paimon_key_put_value(elemcodec, elems[i], out);
	}
	mark = ARRAY_END;
	if (r == PAIMON_OK)
		r = paimon_key_put_fixed(out, &mark, 1);
	mark = ARR_NDIM(array);
	if (r == PAIMON_OK)
		r = paimon_key_put_fixed(out, &mark, 1);
	for (int i = 0; i < ARR_NDIM(array) && r == PAIMON_OK; i++)
		r = paimon_key_put_int32(out, ARR_DIMS(array)[i]);
	for (int i = 0; i < ARR_NDIM(array) && r == PAIMON_OK; i++)
		r = paimon_key_put_int32(out, ARR_LBOUND(array)[i]);
	if (r != PAIMON_OK)
		out->len = len;
	pfree(elems);
	pfree(nulls);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
	return r;
}

static PaimonResult
put_varlena(int codec, Datum value, PaimonKeyBuf *out)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	const char *data = VARDATA_ANY(v);
	uint32		len = VARSIZE_ANY_EXHDR(v);
	PaimonResult r;

	switch (codec)
	{
		case KEY_CODEC_TEXT:
			r = paimon_key_put_text(out, data, len);
			break;
		case KEY_CODEC_BPCHAR:
			r = paimon_key_put_text(out, data, paimon_bpchar_trimmed(data, len));
			break;
		case KEY_CODEC_BYTEA:
			r = paimon_key_put_bytes(out, data, len);
			break;
		case KEY_CODEC_INET:
			r = put_inet(v, out);
			break;
		default:
			Assert(codec == KEY_CODEC_BIT);
			r = put_bits(v, out);
			break;
	}
	if (v != (struct varlena *) DatumGetPointer(value))
		pfree(v);
	return r;
}

PaimonResult
paimon_key_put_value(int codec, Datum value, PaimonKeyBuf *out)
{
	char		c;

	switch (codec)
	{
		case KEY_CODEC_BOOL:
			return paimon_key_put_bool(out, DatumGetBool(value));
		case KEY_CODEC_CHAR:
			c = DatumGetChar(value);
			return paimon_key_put_fixed(out, &c, 1);
		case KEY_CODEC_INT16:
			return paimon_key_put_int16(out, DatumGetInt16(value));
		case KEY_CODEC_INT32:
			return paimon_key_put_int32(out, DatumGetInt32(value));
		case KEY_CODEC_INT64:
			return paimon_key_put_int64(out, DatumGetInt64(value));
		case KEY_CODEC_UINT32:
			return paimon_key_put_uint32(out, DatumGetObjectId(value));
		case KEY_CODEC_UINT64:
			return paimon_key_put_uint64(out, (uint64) DatumGetInt64(value));
		case KEY_CODEC_FLOAT4:
			return paimon_key_put_float4(out, DatumGetFloat4(value));
		case KEY_CODEC_FLOAT8:
			return paimon_key_put_float8(out, DatumGetFloat8(value));
		case KEY_CODEC_NUMERIC:
			return put_numeric(value, out);
		case KEY_CODEC_NAME:
			return paimon_key_put_text(out, NameStr(*DatumGetName(value)), strnlen(NameStr(*DatumGetName(value)), NAMEDATALEN));
		case KEY_CODEC_UUID:
			return paimon_key_put_fixed(out, DatumGetPointer(value), UUID_LEN);
		case KEY_CODEC_TIMETZ:
			return put_timetz(DatumGetTimeTzADTP(value), out);
		case KEY_CODEC_INTERVAL:
			return put_interval(DatumGetIntervalP(value), out);
		case KEY_CODEC_MACADDR:
			return paimon_key_put_fixed(out, DatumGetPointer(value), MACADDR_LEN);
		case KEY_CODEC_MACADDR8:
			return paimon_key_put_fixed(out, DatumGetPointer(value), MACADDR8_LEN);
		default:
			if (codec >= KEY_CODEC_ARRAY)
				return put_array(codec - KEY_CODEC_ARRAY, value, out);
			return put_varlena(codec, value, out);
	}
}
