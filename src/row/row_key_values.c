/*-------------------------------------------------------------------------
 *
 * row_key_values.c
 *	  Key bytes back to values, type by type.
 *
 * For a lossless codec the value is what was encoded, byte for byte; for others one that is equal to it, for messages.  Bytes that no encoder
 * writes are refused; checksums of the layers below make that a matter of last resort.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <sys/socket.h>

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/varbit.h"

#include "row/row_internal.h"

#define MACADDR_LEN		6
#define MACADDR8_LEN	8

#define ARRAY_END		0
#define ARRAY_ELEMENT	1
#define ARRAY_NULL		2

/* A varlena of these bytes, with a short header if that is enough. */
static Datum
make_varlena(const void *data, uint32 len)
{
	struct varlena *v;

	if (len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		v = palloc(len + VARHDRSZ_SHORT);
		SET_VARSIZE_SHORT(v, len + VARHDRSZ_SHORT);
		paimon_copy_short(VARDATA_SHORT(v), data, len);
	}
	else
	{
		v = palloc(len + VARHDRSZ);
		SET_VARSIZE(v, len + VARHDRSZ);
		memcpy(VARDATA(v), data, len);
	}
	return PointerGetDatum(v);
}

static PaimonResult
get_text(PaimonKeyReader *r, Datum *value)
{
	PaimonBytes bytes;
	PaimonResult result = paimon_key_get_text(r, &bytes);

	if (result == PAIMON_OK && value != NULL)
		*value = make_varlena(bytes.data, bytes.len);
	return result;
}

static PaimonResult
get_name(PaimonKeyReader *r, Datum *value)
{
	PaimonBytes bytes;
	PaimonResult result = paimon_key_get_text(r, &bytes);

	if (result == PAIMON_OK && bytes.len >= NAMEDATALEN)
		result = PAIMON_CORRUPT;
	if (result == PAIMON_OK && value != NULL)
	{
		char	   *name = palloc0(NAMEDATALEN);

		memcpy(name, bytes.data, bytes.len);
		*value = PointerGetDatum(name);
	}
	return result;
}

static PaimonResult
get_bytea(PaimonKeyReader *r, Datum *value)
{
	uint8		bytes[PAIMON_KEY_MAX];
	uint32		len;
	PaimonResult result = paimon_key_get_bytes(r, bytes, sizeof(bytes), &len);

	if (result == PAIMON_OK && value != NULL)
		*value = make_varlena(bytes, len);
	return result;
}

static PaimonResult
get_bits(PaimonKeyReader *r, Datum *value)
{
	uint8		bytes[sizeof(int32) + PAIMON_KEY_MAX];
	uint32		len;
	int32		nbits;
	PaimonResult result = paimon_key_get_bytes(r, bytes + sizeof(nbits), PAIMON_KEY_MAX, &len);

	if (result == PAIMON_OK)
		result = paimon_key_get_int32(r, &nbits);
	if (result == PAIMON_OK && (nbits < 0 || len != ((uint32) nbits + BITS_PER_BYTE - 1) / BITS_PER_BYTE))
		result = PAIMON_CORRUPT;
	if (result == PAIMON_OK && value != NULL)
	{
		memcpy(bytes, &nbits, sizeof(nbits));
		*value = make_varlena(bytes, sizeof(nbits) + len);
	}
	return result;
}

static PaimonResult
get_inet(PaimonKeyReader *r, Datum *value)
{
	uint8		bytes[offsetof(inet_struct, ipaddr) + 16];
	const uint8 *p;
	int			size;
	int			bits = 0;
	PaimonResult result = paimon_key_get_fixed(r, 1, &p);

	if (result != PAIMON_OK)
		return result;
	if (p[0] != PGSQL_AF_INET && p[0] != PGSQL_AF_INET6)
		return PAIMON_CORRUPT;
	size = p[0] == PGSQL_AF_INET ? 4 : 16;
	bytes[offsetof(inet_struct, family)] = p[0];
	do
	{
		result = paimon_key_get_fixed(r, 2, &p);
		if (result != PAIMON_OK)
			return result;
		bits += p[1];
		if (p[1] > 8 || bits > size * 8)
			return PAIMON_CORRUPT;
	} while (p[1] == 8);
	bytes[offsetof(inet_struct, bits)] = bits;
	result = paimon_key_get_fixed(r, size, &p);
	if (result == PAIMON_OK && value != NULL)
	{
		memcpy(bytes + offsetof(inet_struct, ipaddr), p, size);
		*value = make_varlena(bytes, offsetof(inet_struct, ipaddr) + size);
	}
	return result;
}

static PaimonResult
get_numeric(PaimonKeyReader *r, Datum *value)
{
	int16		digits[PAIMON_KEY_NUMERIC_MAX_DIGITS];
	PaimonNumeric n;
	PaimonResult result = paimon_key_get_numeric(r, &n, digits, lengthof(digits));

	if (result == PAIMON_OK && value != NULL)
		*value = paimon_numeric_pack(&n);
	return result;
}

static PaimonResult
get_timetz(PaimonKeyReader *r, Datum *value)
{
	int64		instant;
	int32		zone;
	PaimonResult result = paimon_key_get_int64(r, &instant);

	if (result == PAIMON_OK)
		result = paimon_key_get_int32(r, &zone);
	if (result == PAIMON_OK && value != NULL)
	{
		TimeTzADT  *t = palloc0(sizeof(TimeTzADT));

		t->time = instant - zone * USECS_PER_SEC;
		t->zone = zone;
		*value = PointerGetDatum(t);
	}
	return result;
}

static PaimonResult
get_interval(PaimonKeyReader *r, Datum *value)
{
	int64		days;
	int64		rest;
	PaimonResult result = paimon_key_get_int64(r, &days);

	if (result == PAIMON_OK)
		result = paimon_key_get_int64(r, &rest);
	if (result == PAIMON_OK && value != NULL)
	{
		Interval   *v = palloc0(sizeof(Interval));

		/* At the ends of the range what months cannot hold goes into days, and then into hours. */
		v->month = Max(Min(days / 30, PG_INT32_MAX), PG_INT32_MIN);
		days -= (int64) v->month * 30;
		v->day = Max(Min(days, PG_INT32_MAX), PG_INT32_MIN);
		v->time = rest + (days - v->day) * USECS_PER_DAY;
		*value = PointerGetDatum(v);
	}
	return result;
}

static PaimonResult
get_array_shape(PaimonKeyReader *r, uint32 nelems, int *ndim, int *dims, int *lbounds)
{
	const uint8 *p;
	PaimonResult result = paimon_key_get_fixed(r, 1, &p);
	int64		product = 1;

	if (result != PAIMON_OK)
		return result;
	*ndim = *p;
	if (*ndim > MAXDIM)
		return PAIMON_CORRUPT;
	for (int i = 0; i < *ndim; i++)
	{
		result = paimon_key_get_int32(r, &dims[i]);
		if (result != PAIMON_OK)
			return result;
		if (dims[i] <= 0 || dims[i] > PAIMON_KEY_MAX)
			return PAIMON_CORRUPT;
		product *= dims[i];
		if (product > PAIMON_KEY_MAX)
			return PAIMON_CORRUPT;
	}
	for (int i = 0; i < *ndim; i++)
	{
		result = paimon_key_get_int32(r, &lbounds[i]);
		if (result != PAIMON_OK)
			return result;
	}
	return (*ndim == 0 ? 0 : product) == nelems ? PAIMON_OK : PAIMON_CORRUPT;
}

static PaimonResult
get_array(int elemcodec, Oid type, PaimonKeyReader *r, Datum *value)
{
	const PaimonKeyCodecInfo *info = &paimon_key_codecs[elemcodec];
	Oid			elemtype = value == NULL ? InvalidOid : get_base_element_type(type);
	Datum	   *elems = palloc(PAIMON_KEY_MAX * sizeof(Datum));
	bool	   *nulls = palloc(PAIMON_KEY_MAX * sizeof(bool));
	uint32		nelems = 0;
	int			ndim;
	int			dims[MAXDIM];
	int			lbounds[MAXDIM];
	PaimonResult result;

	for (;;)
	{
		const uint8 *mark;

		result = paimon_key_get_fixed(r, 1, &mark);
		if (result != PAIMON_OK || *mark == ARRAY_END)
			break;
		if (*mark > ARRAY_NULL || nelems >= PAIMON_KEY_MAX)
			result = PAIMON_CORRUPT;
		else
		{
			nulls[nelems] = *mark == ARRAY_NULL;
			elems[nelems] = (Datum) 0;
			if (!nulls[nelems])
				result = paimon_key_get_value(elemcodec, elemtype, r, value == NULL ? NULL : &elems[nelems]);
			nelems++;
		}
		if (result != PAIMON_OK)
			break;
	}
	if (result == PAIMON_OK)
		result = get_array_shape(r, nelems, &ndim, dims, lbounds);
	if (result == PAIMON_OK && value != NULL)
		*value = PointerGetDatum(construct_md_array(elems, nulls, ndim, dims, lbounds, elemtype,
													info->typlen, info->typbyval, info->typalign));
	pfree(elems);
	pfree(nulls);
	return result;
}

/* Types of fixed length that are passed by reference and whose key bytes are the value. */
static PaimonResult
get_pointer(PaimonKeyReader *r, uint32 len, Datum *value)
{
	const uint8 *p;
	PaimonResult result = paimon_key_get_fixed(r, len, &p);

	if (result == PAIMON_OK && value != NULL)
		*value = PointerGetDatum((char *) p);
	return result;
}

/* Types that are passed by value. */
static PaimonResult
get_word(int codec, PaimonKeyReader *r, Datum *value)
{
	union
	{
		bool		b;
		int16		i16;
		int32		i32;
		int64		i64;
		uint32		u32;
		uint64		u64;
		float		f4;
		double		f8;
		const uint8 *p;
	}			v;
	PaimonResult result;
	Datum		d = (Datum) 0;

#define GET(reader, member, convert) \
	do { \
		result = reader(r, &v.member); \
		if (result == PAIMON_OK) \
			d = convert(v.member); \
	} while (0)

	switch (codec)
	{
		case KEY_CODEC_BOOL:
			GET(paimon_key_get_bool, b, BoolGetDatum);
			break;
		case KEY_CODEC_INT16:
			GET(paimon_key_get_int16, i16, Int16GetDatum);
			break;
		case KEY_CODEC_INT32:
			GET(paimon_key_get_int32, i32, Int32GetDatum);
			break;
		case KEY_CODEC_INT64:
			GET(paimon_key_get_int64, i64, Int64GetDatum);
			break;
		case KEY_CODEC_UINT32:
			GET(paimon_key_get_uint32, u32, ObjectIdGetDatum);
			break;
		case KEY_CODEC_UINT64:
			GET(paimon_key_get_uint64, u64, UInt64GetDatum);
			break;
		case KEY_CODEC_FLOAT4:
			GET(paimon_key_get_float4, f4, Float4GetDatum);
			break;
		case KEY_CODEC_FLOAT8:
			GET(paimon_key_get_float8, f8, Float8GetDatum);
			break;
		default:
			Assert(codec == KEY_CODEC_CHAR);
			result = paimon_key_get_fixed(r, 1, &v.p);
			if (result == PAIMON_OK)
				d = CharGetDatum((char) v.p[0]);
			break;
	}
#undef GET
	if (result == PAIMON_OK && value != NULL)
		*value = d;
	return result;
}

PaimonResult
paimon_key_get_value(int codec, Oid type, PaimonKeyReader *r, Datum *value)
{
	switch (codec)
	{
		case KEY_CODEC_TEXT:
		case KEY_CODEC_BPCHAR:
			return get_text(r, value);
		case KEY_CODEC_NAME:
			return get_name(r, value);
		case KEY_CODEC_BYTEA:
			return get_bytea(r, value);
		case KEY_CODEC_BIT:
			return get_bits(r, value);
		case KEY_CODEC_INET:
			return get_inet(r, value);
		case KEY_CODEC_NUMERIC:
			return get_numeric(r, value);
		case KEY_CODEC_TIMETZ:
			return get_timetz(r, value);
		case KEY_CODEC_INTERVAL:
			return get_interval(r, value);
		case KEY_CODEC_UUID:
			return get_pointer(r, UUID_LEN, value);
		case KEY_CODEC_MACADDR:
			return get_pointer(r, MACADDR_LEN, value);
		case KEY_CODEC_MACADDR8:
			return get_pointer(r, MACADDR8_LEN, value);
		default:
			if (codec >= KEY_CODEC_ARRAY)
				return get_array(codec - KEY_CODEC_ARRAY, type, r, value);
			return get_word(codec, r, value);
	}
}
