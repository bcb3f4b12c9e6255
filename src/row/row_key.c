/*-------------------------------------------------------------------------
 *
 * row_key.c
 *	  Keys of whole rows: all key columns one after the other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "row/row_internal.h"

/* Name of the table for messages; it may be gone by now. */
const char *
paimon_row_table_name(const PaimonRowDesc *desc)
{
	const char *name = get_rel_name(desc->priv->relid);

	return name != NULL ? name : "???";
}

void
paimon_row_report_damage(const PaimonRowDesc *desc, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("a stored row of table \"%s\" is damaged", paimon_row_table_name(desc)),
			 errdetail_internal("%s", detail)));
	pg_unreachable();
}

void
paimon_key_report_damage(const PaimonRowDesc *desc)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("a stored key of table \"%s\" is damaged", paimon_row_table_name(desc))));
	pg_unreachable();
}

void
paimon_key_report_failure(const PaimonRowDesc *desc, PaimonResult result, AttrNumber attno)
{
	const char *column = NameStr(TupleDescAttr(desc->tupdesc, attno - 1)->attname);

	if (result == PAIMON_NO_SPACE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("key of table \"%s\" is too long", paimon_row_table_name(desc)),
				 errdetail("With column \"%s\" the encoded key exceeds %d bytes.", column, PAIMON_KEY_MAX),
				 errhint("Consider a key on a hash of the value.")));
	if (result == PAIMON_NO_MEMORY)
		ereport(ERROR,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("value of key column \"%s\" of table \"%s\" is not a valid value of its type", column,
					paimon_row_table_name(desc))));
	pg_unreachable();
}

static void
report_null(const PaimonRowDesc *desc, AttrNumber attno)
{
	ereport(ERROR,
			(errcode(ERRCODE_NOT_NULL_VIOLATION),
			 errmsg("null value in column \"%s\" of relation \"%s\" violates not-null constraint",
					NameStr(TupleDescAttr(desc->tupdesc, attno - 1)->attname), paimon_row_table_name(desc)),
			 errdetail("Key columns of paimon tables cannot be null.")));
}

/* Room for the longest key at the end of buf: growing is rare as long as the buffer is used again. */
static inline void
begin_key(StringInfo buf, uint32 room, PaimonKeyBuf *out)
{
	enlargeStringInfo(buf, room);
	paimon_keybuf_init(out, (uint8 *) buf->data + buf->len, room, NULL);
}

static inline uint32
longest_key(const PaimonRowDesc *desc)
{
	return desc->fixed_key ? desc->fixed_key_len : PAIMON_KEY_MAX;
}

static inline void
end_key(StringInfo buf, const PaimonKeyBuf *out)
{
	buf->len += out->len;
	buf->data[buf->len] = '\0';
}

void
paimon_key_encode(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, StringInfo buf)
{
	PaimonKeyBuf out;

	Assert(desc->nkeys > 0);
	begin_key(buf, longest_key(desc), &out);
	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = desc->keys[i].attno;
		PaimonResult r;

		if (unlikely(isnull[attno - 1]))
			report_null(desc, attno);
		r = paimon_key_put_value(desc->keys[i].codec, values[attno - 1], &out);
		if (unlikely(r != PAIMON_OK))
			paimon_key_report_failure(desc, r, attno);
	}
	end_key(buf, &out);
}

/*
 * A key that is too long cannot be stored, so nothing can match it either.
 */
bool
paimon_key_encode_columns(const PaimonRowDesc *desc, int first, int n, const Datum *values, StringInfo buf)
{
	PaimonKeyBuf out;

	begin_key(buf, longest_key(desc), &out);
	for (int i = 0; i < n; i++)
	{
		const PaimonKeyColumn *key = &desc->keys[first + i];
		PaimonResult r = paimon_key_put_value(key->codec, values[i], &out);

		if (r == PAIMON_NO_SPACE)
			return false;
		if (r != PAIMON_OK)
			paimon_key_report_failure(desc, r, key->attno);
	}
	end_key(buf, &out);
	return true;
}

bool
paimon_key_encode_scan(const PaimonRowDesc *desc, const Datum *keyvalues, const bool *isnull, StringInfo buf)
{
	for (int i = 0; isnull != NULL && i < desc->nkeys; i++)
		if (isnull[i])
			return false;
	return paimon_key_encode_columns(desc, 0, desc->nkeys, keyvalues, buf);
}

void
paimon_key_encode_rowno(uint64 rowno, StringInfo buf)
{
	PaimonKeyBuf out;

	begin_key(buf, sizeof(rowno), &out);
	(void) paimon_key_put_uint64(&out, rowno);
	end_key(buf, &out);
}

void
paimon_key_decode_some(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, int limit, Datum *values, bool *isnull)
{
	PaimonKeyReader r;
	int			end = desc->priv->key_decode_end;

	paimon_keyreader_init(&r, key, keylen);
	for (int i = 0; i < end; i++)
	{
		const PaimonKeyColumn *k = &desc->keys[i];
		int			c = k->attno - 1;
		bool		wanted = k->lossless && c < limit;

		if (paimon_key_get_value(k->codec, k->type, &r, wanted ? &values[c] : NULL) != PAIMON_OK)
			paimon_key_report_damage(desc);
		if (wanted)
			isnull[c] = false;
	}
	if (end == desc->nkeys && end > 0 && !paimon_keyreader_at_end(&r))
		paimon_key_report_damage(desc);
}

void
paimon_key_decode(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, Datum *values, bool *isnull)
{
	paimon_key_decode_some(desc, key, keylen, desc->tupdesc->natts, values, isnull);
}

Datum
paimon_key_decode_column(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, int c)
{
	int			index = desc->key_index[c];
	int32		offset;
	int			i = 0;
	PaimonKeyReader r;
	Datum		value = (Datum) 0;

	Assert(desc->in_key[c] && index >= 0);
	offset = desc->priv->key_offset[index];
	paimon_keyreader_init(&r, key, keylen);
	if (offset >= 0)
	{
		if ((uint32) offset > keylen)
			paimon_key_report_damage(desc);
		r.p += offset;
		i = index;
	}
	for (; i <= index; i++)
	{
		const PaimonKeyColumn *k = &desc->keys[i];

		if (paimon_key_get_value(k->codec, k->type, &r, i == index ? &value : NULL) != PAIMON_OK)
			paimon_key_report_damage(desc);
	}
	return value;
}

/* The value of one key column as text. */
static void
describe_value(const PaimonKeyColumn *k, Datum value, StringInfo out)
{
	Oid			output;
	bool		varlena;

	/* An enum's label may be gone with a rolled back ALTER TYPE; its number still says something. */
	if (get_typtype(k->type) == TYPTYPE_ENUM)
	{
		HeapTuple	tuple = SearchSysCache1(ENUMOID, value);

		if (HeapTupleIsValid(tuple))
		{
			appendStringInfoString(out, NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel));
			ReleaseSysCache(tuple);
		}
		else
			appendStringInfo(out, "%u", DatumGetObjectId(value));
		return;
	}
	getTypeOutputInfo(k->type, &output, &varlena);
	appendStringInfoString(out, OidOutputFunctionCall(output, value));
}

/*
 * paimon_key_describe for bytes that need not be a whole key (bounds in the manifest are cut): NULL if they are none.
 */
char *
paimon_key_describe_bound(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen)
{
	StringInfoData out;
	PaimonKeyReader r;

	initStringInfo(&out);
	paimon_keyreader_init(&r, key, keylen);
	if (desc->nkeys == 0)
	{
		uint64		rowno;

		if (paimon_key_get_uint64(&r, &rowno) != PAIMON_OK || !paimon_keyreader_at_end(&r))
			return NULL;
		appendStringInfo(&out, "(row number)=(" UINT64_FORMAT ")", rowno);
		return out.data;
	}
	appendStringInfoChar(&out, '(');
	for (int i = 0; i < desc->nkeys; i++)
		appendStringInfo(&out, "%s%s", i > 0 ? ", " : "",
						 NameStr(TupleDescAttr(desc->tupdesc, desc->keys[i].attno - 1)->attname));
	appendStringInfoString(&out, ")=(");
	for (int i = 0; i < desc->nkeys; i++)
	{
		Datum		value;

		if (paimon_key_get_value(desc->keys[i].codec, desc->keys[i].type, &r, &value) != PAIMON_OK)
			return NULL;
		if (i > 0)
			appendStringInfoString(&out, ", ");
		describe_value(&desc->keys[i], value, &out);
	}
	appendStringInfoChar(&out, ')');
	return paimon_keyreader_at_end(&r) ? out.data : NULL;
}

char *
paimon_key_describe(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen)
{
	char	   *text = paimon_key_describe_bound(desc, key, keylen);

	if (text == NULL)
		paimon_key_report_damage(desc);
	return text;
}
