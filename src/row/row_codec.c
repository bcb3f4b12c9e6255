/*-------------------------------------------------------------------------
 *
 * row_codec.c
 *	  Payloads: the values of a row that are not in its key, in the least bytes that still need no unpacking.
 *
 * Byte layout: README.md.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tupmacs.h"
#include "fmgr.h"
#include "utils/memutils.h"

#include "row/row_internal.h"

/* Head of a payload: number of attributes, times two, plus one if there is a null bitmap; as a varint of 7 bits a byte, low ones first. */
#define HEAD_MAX 2

static inline uint32
align_up(uint32 off, uint32 align)
{
	return (off + align - 1) & ~(align - 1);
}

/* Is this varlena stored outside or packed?  Then it must be flattened first. */
static inline bool
varlena_is_flat(const void *v)
{
	return !VARATT_IS_EXTERNAL(v) && !VARATT_IS_COMPRESSED(v);
}

void
paimon_row_flatten(const PaimonRowDesc *desc, Datum *values, const bool *isnull)
{
	const PaimonRowAttr *attrs = desc->priv->attrs;

	for (int c = 0; c < desc->tupdesc->natts; c++)
	{
		if (attrs[c].len != -1 || isnull[c] || attrs[c].dropped)
			continue;
		if (unlikely(!varlena_is_flat(DatumGetPointer(values[c]))))
			values[c] = PointerGetDatum(PG_DETOAST_DATUM(values[c]));
	}
}

/* Is there a value of this attribute in the payload? */
static inline bool
is_stored(const PaimonRowAttr *a, bool isnull)
{
	return !a->in_key && !a->dropped && !isnull;
}

/*
 * An upper bound of the payload's bytes.  *flat is false if a varlena has to be flattened before; *nulls says whether a bitmap is needed.
 */
static Size
payload_bound(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, bool *flat, bool *nulls)
{
	const PaimonRowAttr *attrs = desc->priv->attrs;
	int			natts = desc->tupdesc->natts;
	Size		size = HEAD_MAX + (natts + 7) / 8;

	*flat = true;
	*nulls = false;
	for (int c = 0; c < natts; c++)
	{
		const PaimonRowAttr *a = &attrs[c];

		if (!is_stored(a, isnull[c]))
		{
			*nulls |= !a->in_key;
			continue;
		}
		if (a->len > 0)
			size += a->len + a->align - 1;
		else
		{
			const void *v = DatumGetPointer(values[c]);

			if (!varlena_is_flat(v))
				*flat = false;
			else
				size += VARSIZE_ANY_EXHDR(v) + VARHDRSZ + a->align - 1;
		}
	}
	return size;
}

/* Writes a varlena at p + off; returns the offset behind it. */
static inline uint32
put_varlena(char *p, uint32 off, const PaimonRowAttr *a, const void *v)
{
	uint32		len = VARSIZE_ANY_EXHDR(v);
	uint32		aligned;

	if (a->packable && len + VARHDRSZ_SHORT <= VARATT_SHORT_MAX)
	{
		SET_VARSIZE_SHORT(p + off, len + VARHDRSZ_SHORT);
		paimon_copy_short(p + off + VARHDRSZ_SHORT, VARDATA_ANY(v), len);
		return off + VARHDRSZ_SHORT + len;
	}
	aligned = align_up(off, a->align);
	memset(p + off, 0, aligned - off);
	SET_VARSIZE(p + aligned, len + VARHDRSZ);
	memcpy(p + aligned + VARHDRSZ, VARDATA_ANY(v), len);
	return aligned + VARHDRSZ + len;
}

/* Writes an attribute of fixed length passed by value. */
static inline void
put_word(char *p, int16 len, Datum value)
{
	switch (len)
	{
		case 1:
			*p = DatumGetChar(value);
			break;
		case 2:
			{
				int16		v = DatumGetInt16(value);

				memcpy(p, &v, sizeof(v));
				break;
			}
		case 4:
			{
				int32		v = DatumGetInt32(value);

				memcpy(p, &v, sizeof(v));
				break;
			}
		default:
			memcpy(p, &value, sizeof(Datum));
			break;
	}
}

/* Reads it back, in the same canonical form as fetch_att gives. */
static inline Datum
get_word(const uint8 *p, int16 len)
{
	switch (len)
	{
		case 1:
			return CharGetDatum(*(const char *) p);
		case 2:
			{
				int16		v;

				memcpy(&v, p, sizeof(v));
				return Int16GetDatum(v);
			}
		case 4:
			{
				int32		v;

				memcpy(&v, p, sizeof(v));
				return Int32GetDatum(v);
			}
		default:
			{
				Datum		v;

				memcpy(&v, p, sizeof(v));
				return v;
			}
	}
}

static uint32
put_head(char *p, int natts, bool nulls)
{
	uint32		head = (uint32) natts << 1 | nulls;

	if (head < 0x80)
	{
		p[0] = head;
		return 1;
	}
	p[0] = 0x80 | (head & 0x7F);
	p[1] = head >> 7;
	return 2;
}

/* Appends to buf; offsets count from where the payload begins. */
void
paimon_row_encode(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, StringInfo buf)
{
	const PaimonRowAttr *attrs = desc->priv->attrs;
	int			natts = desc->tupdesc->natts;
	bool		flat;
	bool		nulls;
	Size		bound = payload_bound(desc, values, isnull, &flat, &nulls);
	char	   *p;
	char	   *bitmap;
	uint32		off;

	if (unlikely(!flat))
	{
		Datum	   *copy = palloc(natts * sizeof(Datum));

		memcpy(copy, values, natts * sizeof(Datum));
		paimon_row_flatten(desc, copy, isnull);
		paimon_row_encode(desc, copy, isnull, buf);
		pfree(copy);
		return;
	}
	if (unlikely(bound >= MaxAllocSize - (Size) buf->len))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("row of %zu bytes is too large for table \"%s\"", bound, paimon_row_table_name(desc)),
				 errdetail("Rows of tables using access method paimon can have up to %zu bytes.", (Size) MaxAllocSize)));
	enlargeStringInfo(buf, bound);
	p = buf->data + buf->len;
	off = put_head(p, natts, nulls);
	bitmap = p + off;
	if (nulls)
	{
		memset(bitmap, 0, (natts + 7) / 8);
		off += (natts + 7) / 8;
	}
	for (int c = 0; c < natts; c++)
	{
		const PaimonRowAttr *a = &attrs[c];

		if (!is_stored(a, isnull[c]))
		{
			if (!a->in_key)
				bitmap[c >> 3] |= 1 << (c & 7);
		}
		else if (a->byval)
		{
			put_word(p + off, a->len, values[c]);
			off += a->len;
		}
		else if (a->len > 0)
		{
			uint32		aligned = align_up(off, a->align);

			memset(p + off, 0, aligned - off);
			memcpy(p + aligned, DatumGetPointer(values[c]), a->len);
			off = aligned + a->len;
		}
		else
			off = put_varlena(p, off, a, DatumGetPointer(values[c]));
	}
	Assert(off <= bound);
	buf->len += off;
	buf->data[buf->len] = '\0';
}

/*
 * Finds a varlena that begins at or, aligned, behind `off`.  Returns its offset and sets *end behind it; false if it is none.
 */
static inline bool
find_varlena(const uint8 *payload, uint32 len, uint32 off, uint32 align, uint32 *begin, uint32 *end)
{
	uint32		size;

	if (off >= len)
		return false;
	if (payload[off] == 0)
		off = align_up(off, align);
	if (off >= len)
		return false;
	if (VARATT_IS_1B(payload + off))
	{
		if (VARATT_IS_1B_E(payload + off))
			return false;
		size = VARSIZE_1B(payload + off);
	}
	else
	{
		off = align_up(off, align);
		if (off + VARHDRSZ > len || off + VARHDRSZ < off || !VARATT_IS_4B_U(payload + off))
			return false;
		size = VARSIZE_4B(payload + off);
		if (size < VARHDRSZ)
			return false;
	}
	if (size > len - off)
		return false;
	*begin = off;
	*end = off + size;
	return true;
}

/* Reads the head; returns its length. */
static uint32
get_head(const PaimonRowDesc *desc, const uint8 *payload, uint32 len, int *natts, bool *nulls)
{
	uint32		head;
	uint32		n = 1;

	head = payload[0];
	if (head & 0x80)
	{
		if (len < 2 || payload[1] == 0 || (payload[1] & 0x80))
			paimon_row_report_damage(desc, "The number of its columns is damaged.");
		head = (head & 0x7F) | (uint32) payload[1] << 7;
		n = 2;
	}
	*natts = head >> 1;
	*nulls = head & 1;
	if (*natts > desc->tupdesc->natts)
		paimon_row_report_damage(desc, "It has more columns than the table.");
	if (*nulls)
	{
		if (len - n < (uint32) (*natts + 7) / 8)
			paimon_row_report_damage(desc, "Its null bitmap is cut off.");
	}
	return n;
}

/* One attribute that is there; moves *off behind it. */
static inline Datum
get_attribute(const PaimonRowDesc *desc, const PaimonRowAttr *a, const uint8 *payload, uint32 len, uint32 *off)
{
	Datum		value;

	if (a->byval)
	{
		if (unlikely(len - *off < (uint32) a->len))
			paimon_row_report_damage(desc, "It ends too early.");
		value = get_word(payload + *off, a->len);
		*off += a->len;
	}
	else if (a->len > 0)
	{
		uint32		aligned = align_up(*off, a->align);

		if (unlikely(aligned > len || len - aligned < (uint32) a->len))
			paimon_row_report_damage(desc, "It ends too early.");
		value = PointerGetDatum((char *) payload + aligned);
		*off = aligned + a->len;
	}
	else
	{
		uint32		begin;

		if (unlikely(!find_varlena(payload, len, *off, a->align, &begin, off)))
			paimon_row_report_damage(desc, "The length of a value is damaged.");
		value = PointerGetDatum((char *) payload + begin);
	}
	return value;
}

/* Decodes the values of the payload; the rest of the first natts attributes is what the row is too old to have. */
static void
decode_payload(const PaimonRowDesc *desc, const uint8 *payload, uint32 len, int natts, Datum *values, bool *isnull)
{
	const PaimonRowAttr *attrs = desc->priv->attrs;
	int			stored;
	bool		nulls;
	uint32		off = get_head(desc, payload, len, &stored, &nulls);
	const uint8 *bitmap = payload + off;
	int			n = Min(stored, natts);

	if (nulls)
		off += (stored + 7) / 8;
	for (int c = 0; c < n; c++)
	{
		const PaimonRowAttr *a = &attrs[c];

		if (a->in_key)
			continue;
		if (nulls && (bitmap[c >> 3] & (1 << (c & 7))) != 0)
		{
			values[c] = (Datum) 0;
			isnull[c] = true;
			continue;
		}
		values[c] = get_attribute(desc, a, payload, len, &off);
		isnull[c] = false;
		if (unlikely(a->dropped))
		{
			values[c] = (Datum) 0;
			isnull[c] = true;
		}
	}
	if (n == stored && off != len)
		paimon_row_report_damage(desc, "It is longer than its values.");
	for (int c = n; c < natts; c++)
	{
		if (!attrs[c].in_key)
			paimon_row_missing(desc, c, &values[c], &isnull[c]);
	}
}

/* An empty payload is that of a removed row, which has nothing but its key. */
void
paimon_row_decode(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len,
				  int natts, Datum *values, bool *isnull)
{
	Assert(((uintptr_t) payload & 7) == 0);
	if (len > 0)
		decode_payload(desc, payload, len, natts, values, isnull);
	else
	{
		memset(values, 0, natts * sizeof(Datum));
		memset(isnull, true, natts * sizeof(bool));
	}
	if (desc->priv->key_decode_end > 0)
		paimon_key_decode_some(desc, key, keylen, natts, values, isnull);
}

/* The value belongs to the descriptor. */
void
paimon_row_missing(const PaimonRowDesc *desc, int c, Datum *value, bool *isnull)
{
	Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);

	if (att->attisdropped)
	{
		*value = (Datum) 0;
		*isnull = true;
		return;
	}
	*value = getmissingattr(desc->tupdesc, c + 1, isnull);
}
