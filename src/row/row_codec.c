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
#include "port/pg_bitutils.h"
#include "port/pg_bswap.h"
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

bool
paimon_row_is_flat(const PaimonRowDesc *desc, const Datum *values, const bool *isnull)
{
	const struct PaimonRowPrivate *priv = desc->priv;

	for (int i = 0; i < priv->nvarlenas; i++)
	{
		int			c = priv->varlenas[i];

		if (!isnull[c] && unlikely(!varlena_is_flat(DatumGetPointer(values[c]))))
			return false;
	}
	return true;
}

void
paimon_row_flatten(const PaimonRowDesc *desc, Datum *values, const bool *isnull)
{
	const struct PaimonRowPrivate *priv = desc->priv;

	for (int i = 0; i < priv->nvarlenas; i++)
	{
		int			c = priv->varlenas[i];

		if (!isnull[c] && unlikely(!varlena_is_flat(DatumGetPointer(values[c]))))
			values[c] = PointerGetDatum(PG_DETOAST_DATUM(values[c]));
	}
}

/* The bits of isnull[0 .. n), n <= 64. */
static inline uint64
pack_nulls(const bool *isnull, int n)
{
	uint64		word = 0;
	int			i = 0;

	for (; i + 8 <= n; i += 8)
	{
		uint64		bytes;

		memcpy(&bytes, isnull + i, 8);
#ifdef WORDS_BIGENDIAN
		bytes = pg_bswap64(bytes);
#endif
		/* the bit of byte b comes to lie in bit 56 + b, and no two products in the same place */
		word |= (bytes * UINT64CONST(0x0102040810204080)) >> 56 << i;
	}
	for (; i < n; i++)
		word |= (uint64) isnull[i] << i;
	return word;
}

/* Which attributes have a value in the payload, and which are marked as having none; returns whether there are any of the latter. */
static bool
survey(const PaimonRowDesc *desc, const bool *isnull, uint64 *present, uint64 *absent)
{
	const struct PaimonRowPrivate *priv = desc->priv;
	int			natts = desc->tupdesc->natts;
	uint64		any = 0;

	for (int w = 0; w < ROW_WORDS(natts); w++)
	{
		uint64		none = pack_nulls(isnull + w * 64, Min(natts - w * 64, 64)) | priv->dropped[w];

		absent[w] = none & priv->stored[w];
		present[w] = priv->stored[w] & ~none;
		any |= absent[w];
	}
	return any != 0;
}

/* An upper bound of the payload's bytes.  *flat is false if a varlena has to be flattened before. */
static Size
payload_bound(const PaimonRowDesc *desc, const Datum *values, const uint64 *present, bool *flat)
{
	const struct PaimonRowPrivate *priv = desc->priv;
	int			natts = desc->tupdesc->natts;
	Size		size = HEAD_MAX + (natts + 7) / 8;

	for (int w = 0; w < ROW_WORDS(natts); w++)
		size += (Size) pg_popcount64(present[w]) * priv->max_width;
	*flat = true;
	for (int i = 0; i < priv->nvarlenas; i++)
	{
		int			c = priv->varlenas[i];

		if (!paimon_row_bit(present, c))
			continue;
		if (unlikely(!varlena_is_flat(DatumGetPointer(values[c]))))
		{
			*flat = false;
			break;
		}
		size += VARSIZE_ANY_EXHDR(DatumGetPointer(values[c]));
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

/* Writes an attribute that is there at p + off; returns the offset behind it. */
static inline uint32
put_attribute(char *p, uint32 off, const PaimonRowAttr *a, Datum value)
{
	switch ((PaimonRowForm) a->form)
	{
		case ROW_FORM_WORD1:
			p[off] = DatumGetChar(value);
			return off + 1;
		case ROW_FORM_WORD2:
			{
				int16		v = DatumGetInt16(value);

				memcpy(p + off, &v, sizeof(v));
				return off + sizeof(v);
			}
		case ROW_FORM_WORD4:
			{
				int32		v = DatumGetInt32(value);

				memcpy(p + off, &v, sizeof(v));
				return off + sizeof(v);
			}
		case ROW_FORM_WORD8:
			memcpy(p + off, &value, sizeof(value));
			return off + sizeof(value);
		case ROW_FORM_FIXED:
			{
				uint32		aligned = align_up(off, a->align);

				memset(p + off, 0, aligned - off);
				memcpy(p + aligned, DatumGetPointer(value), a->len);
				return aligned + a->len;
			}
		case ROW_FORM_VARLENA:
			return put_varlena(p, off, a, DatumGetPointer(value));
	}
	pg_unreachable();
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
	uint64		present[ROW_MAX_WORDS];
	uint64		absent[ROW_MAX_WORDS];
	bool		nulls = survey(desc, isnull, present, absent);
	bool		flat;
	Size		bound = payload_bound(desc, values, present, &flat);
	char	   *p;
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
	if (nulls)
	{
		for (int i = 0; i < (natts + 7) / 8; i++)
			p[off++] = (char) (absent[i / 8] >> (i % 8 * 8));
	}
	for (int w = 0; w < ROW_WORDS(natts); w++)
	{
		for (uint64 rest = present[w]; rest != 0; rest &= rest - 1)
		{
			int			c = w * 64 + pg_rightmost_one_pos64(rest);

			off = put_attribute(p, off, &attrs[c], values[c]);
		}
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

/* One attribute that is there; moves *off behind it.  Words come in the same canonical form as fetch_att gives. */
static pg_attribute_always_inline Datum
get_attribute(const PaimonRowDesc *desc, const PaimonRowAttr *a, const uint8 *payload, uint32 len, uint32 *off)
{
	uint32		begin = *off;

	if (a->form == ROW_FORM_VARLENA)
	{
		if (unlikely(!find_varlena(payload, len, *off, a->align, &begin, off)))
			paimon_row_report_damage(desc, "The length of a value is damaged.");
		return PointerGetDatum((char *) payload + begin);
	}
	if (a->form == ROW_FORM_FIXED)
		begin = align_up(begin, a->align);
	if (unlikely(begin > len || len - begin < (uint32) a->len))
		paimon_row_report_damage(desc, "It ends too early.");
	*off = begin + a->len;
	switch ((PaimonRowForm) a->form)
	{
		case ROW_FORM_WORD1:
			return CharGetDatum(*(const char *) (payload + begin));
		case ROW_FORM_WORD2:
			{
				int16		v;

				memcpy(&v, payload + begin, sizeof(v));
				return Int16GetDatum(v);
			}
		case ROW_FORM_WORD4:
			{
				int32		v;

				memcpy(&v, payload + begin, sizeof(v));
				return Int32GetDatum(v);
			}
		case ROW_FORM_WORD8:
			{
				Datum		v;

				memcpy(&v, payload + begin, sizeof(v));
				return v;
			}
		default:
			return PointerGetDatum((char *) payload + begin);
	}
}

/* Word w of a bitmap of n bits; what is behind its end is 0. */
static inline uint64
bitmap_word(const uint8 *bitmap, int n, int w)
{
	int			nbytes = Min((n + 7) / 8 - w * 8, 8);
	uint64		word = 0;

#ifndef WORDS_BIGENDIAN
	if (nbytes == 8)
		memcpy(&word, bitmap + w * 8, 8);
	else
#endif
		for (int i = 0; i < nbytes; i++)
			word |= (uint64) bitmap[w * 8 + i] << (i * 8);
	return word;
}

/*
 * Decodes the values of the payload that are below natts: into values[] and isnull[], where everything is NULL so far, or as row `row` of `columns`, where what is
 * not put is NULL.  What the row is too old to have is its missing value.
 */
static pg_attribute_always_inline void
decode_payload(const PaimonRowDesc *desc, const uint8 *payload, uint32 len, int natts, Datum *values, bool *isnull,
			   PaimonRowColumn *columns, uint32 row)
{
	const struct PaimonRowPrivate *priv = desc->priv;
	const PaimonRowAttr *attrs = priv->attrs;
	int			stored;
	bool		nulls;
	uint32		off = get_head(desc, payload, len, &stored, &nulls);
	const uint8 *bitmap = payload + off;
	int			n = Min(stored, natts);

	if (nulls)
		off += (stored + 7) / 8;
	for (int w = 0; w < ROW_WORDS(n); w++)
	{
		uint64		rest = priv->stored[w];

		if (nulls)
			rest &= ~bitmap_word(bitmap, stored, w);
		if (n < w * 64 + 64)
			rest &= (UINT64CONST(1) << (n - w * 64)) - 1;
		for (; rest != 0; rest &= rest - 1)
		{
			int			c = w * 64 + pg_rightmost_one_pos64(rest);
			Datum		value = get_attribute(desc, &attrs[c], payload, len, &off);

			if (unlikely(attrs[c].dropped))
				continue;
			if (columns != NULL)
				paimon_rowcolumn_put(&columns[c], row, (uint64) value);
			else
			{
				values[c] = value;
				isnull[c] = false;
			}
		}
	}
	if (n == stored && off != len)
		paimon_row_report_damage(desc, "It is longer than its values.");
	for (int c = n; c < natts; c++)
	{
		Datum		value;
		bool		null;

		if (attrs[c].in_key)
			continue;
		paimon_row_missing(desc, c, &value, &null);
		if (columns == NULL)
		{
			values[c] = value;
			isnull[c] = null;
		}
		else if (!null)
			paimon_rowcolumn_put(&columns[c], row, (uint64) value);
	}
}

/* An empty payload is that of a removed row, which has nothing but its key. */
void
paimon_row_decode(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len,
				  int natts, Datum *values, bool *isnull)
{
	Assert(((uintptr_t) payload & 7) == 0);
	memset(values, 0, natts * sizeof(Datum));
	memset(isnull, true, natts * sizeof(bool));
	if (len > 0)
		decode_payload(desc, payload, len, natts, values, isnull, NULL, 0);
	if (desc->priv->key_decode_end > 0)
		paimon_key_decode_some(desc, key, keylen, natts, values, isnull);
}

void
paimon_row_decode_columns(const PaimonRowDesc *desc, const uint8 *payload, uint32 len, PaimonRowColumn *columns, uint32 row)
{
	Assert(((uintptr_t) payload & 7) == 0);
	if (len > 0)
		decode_payload(desc, payload, len, desc->tupdesc->natts, NULL, NULL, columns, row);
}

/* Rows [c->n, row) have no value. */
void
paimon_rowcolumn_skip(PaimonRowColumn *c, uint32 row)
{
	if (!c->has_nulls)
		memset(c->nulls, false, c->n * sizeof(bool));
	memset(c->nulls + c->n, true, (row - c->n) * sizeof(bool));
	c->has_nulls = true;
	c->n = row;
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
