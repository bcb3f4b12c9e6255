/*-------------------------------------------------------------------------
 *
 * row_bucket.c
 *	  The bucket of a row: Paimon's function where Paimon has the types, else the hash of the encoded key columns.
 *
 * What must hold before anything else: rows with equal keys have equal buckets.  So the form of a column follows from its declaration alone, and
 * values that Paimon's type cannot hold (NaN in a numeric(10,2)) fall back to the encoded bytes, which are equal for equal values too.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "datatype/timestamp.h"
#include "utils/timestamp.h"

#include "row/row_internal.h"

#define EPOCH_SHIFT_DAYS	(POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE)
#define MILLIS_PER_DAY		INT64CONST(86400000)

/* Precision and scale of numeric(p, s), if Paimon has such a type. */
static bool
decimal_typmod(int32 typmod, PaimonBucketColumn *column)
{
	int			scale;

	if (typmod < (int32) VARHDRSZ)
		return false;
	typmod -= VARHDRSZ;
	column->precision = (typmod >> 16) & 0xFFFF;
	scale = typmod & 0x7FF;
	column->scale = (scale ^ 1024) - 1024;
	return column->precision <= PAIMON_DECIMAL_MAX_PRECISION && column->scale >= 0 && column->scale <= column->precision;
}

static PaimonBucketForm
form_of_type(Oid type, int32 typmod, PaimonBucketColumn *column)
{
	switch (type)
	{
		case BOOLOID:
			return BUCKET_FORM_BOOL;
		case INT2OID:
			return BUCKET_FORM_INT16;
		case INT4OID:
			return BUCKET_FORM_INT32;
		case INT8OID:
			return BUCKET_FORM_INT64;
		case FLOAT4OID:
			return BUCKET_FORM_FLOAT;
		case FLOAT8OID:
			return BUCKET_FORM_DOUBLE;
		case TEXTOID:
		case VARCHAROID:
		case BYTEAOID:
			return BUCKET_FORM_STRING;
		case BPCHAROID:
			return BUCKET_FORM_CHAR;
		case DATEOID:
			return BUCKET_FORM_DATE;
		case TIMEOID:
			return BUCKET_FORM_TIME;
		case NUMERICOID:
			return decimal_typmod(typmod, column) ? BUCKET_FORM_DECIMAL : BUCKET_FORM_NONE;
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			column->precision = typmod >= 0 ? typmod : MAX_TIMESTAMP_PRECISION;
			return BUCKET_FORM_TIMESTAMP;
		default:
			return BUCKET_FORM_NONE;
	}
}

bool
paimon_row_retype_is_safe(Oid oldtype, int32 oldtypmod, Oid oldcollation,
						  Oid newtype, int32 newtypmod, Oid newcollation, bool in_key, bool in_bucketkey)
{
	const char *why;
	int			oldcodec = paimon_key_codec(oldtype, oldcollation, &why);
	int			newcodec = paimon_key_codec(newtype, newcollation, &why);
	PaimonBucketColumn oldcolumn = {0};
	PaimonBucketColumn newcolumn = {0};

	if (!in_key && !in_bucketkey)
		return true;
	if (oldcodec != newcodec || newcodec == KEY_CODEC_NONE)
		return false;
	if (!in_bucketkey)
		return true;
	oldtype = getBaseTypeAndTypmod(oldtype, &oldtypmod);
	newtype = getBaseTypeAndTypmod(newtype, &newtypmod);
	oldcolumn.form = form_of_type(oldtype, oldtypmod, &oldcolumn);
	newcolumn.form = form_of_type(newtype, newtypmod, &newcolumn);
	if (oldcolumn.form != newcolumn.form)
		return false;

	/* Precision decides about the layout, scale about the number. */
	if (newcolumn.form == BUCKET_FORM_TIMESTAMP)
		return (oldcolumn.precision <= PAIMON_TIMESTAMP_COMPACT_PRECISION) == (newcolumn.precision <= PAIMON_TIMESTAMP_COMPACT_PRECISION);
	if (newcolumn.form == BUCKET_FORM_DECIMAL)
		return oldcolumn.scale == newcolumn.scale &&
			(oldcolumn.precision <= PAIMON_DECIMAL_COMPACT_PRECISION) == (newcolumn.precision <= PAIMON_DECIMAL_COMPACT_PRECISION);
	return true;
}

static void *
alloc_in_context(void *arg, size_t size)
{
	return MemoryContextAlloc((MemoryContext) arg, size);
}

void
paimon_bucket_prepare(PaimonRowDesc *desc)
{
	struct PaimonRowPrivate *priv = desc->priv;

	priv->binary_row = true;
	for (int i = 0; i < desc->nbucketkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc->tupdesc, desc->bucketkeys[i] - 1);
		PaimonBucketColumn *column = &priv->bucket[i];
		int32		typmod = att->atttypmod;
		Oid			type = getBaseTypeAndTypmod(att->atttypid, &typmod);
		const char *why;

		column->codec = paimon_key_codec(att->atttypid, att->attcollation, &why);
		column->key_index = desc->key_index[desc->bucketkeys[i] - 1];
		column->form = form_of_type(type, typmod, column);
		if (column->form == BUCKET_FORM_NONE)
			priv->binary_row = false;
		if (column->codec == KEY_CODEC_NONE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of type %s cannot be a bucket key", NameStr(att->attname),
							format_type_be(att->atttypid)),
					 errdetail_internal("%s", why)));
	}
	priv->allocator.alloc = alloc_in_context;
	priv->allocator.arg = priv->context;
	if (desc->nbucketkeys > 0)
	{
		paimon_bucket_row_init(&priv->row, &priv->allocator);
		initStringInfo(&priv->scratch);
	}
}

static void
set_string(PaimonBucketRow *row, Datum value, bool trim)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	uint32		len = VARSIZE_ANY_EXHDR(v);

	if (trim)
		len = paimon_bpchar_trimmed(VARDATA_ANY(v), len);
	paimon_bucket_set_string(row, VARDATA_ANY(v), len);
	if (v != (struct varlena *) DatumGetPointer(value))
		pfree(v);
}

/* Infinities are timestamps like any other: the number that stands for them. */
static void
set_timestamp(PaimonBucketRow *row, int64 usecs, int precision)
{
	int64		millis = usecs / 1000;
	int32		rest = usecs % 1000;

	if (rest < 0)
	{
		rest += 1000;
		millis--;
	}
	paimon_bucket_set_timestamp(row, millis + EPOCH_SHIFT_DAYS * MILLIS_PER_DAY, rest * 1000, precision);
}

static void
set_decimal(PaimonBucketRow *row, Datum value, const PaimonBucketColumn *column)
{
	int16		digits[PAIMON_NUMERIC_DIGITS_MAX];
	PaimonNumeric n;

	if (paimon_numeric_unpack(value, digits, &n) != PAIMON_OK)
		n.cls = PAIMON_NUMERIC_NAN; /* does not fit either */
	paimon_bucket_set_decimal(row, &n, column->precision, column->scale);
}

static void
set_null(PaimonBucketRow *row, const PaimonBucketColumn *column)
{
	if (column->form == BUCKET_FORM_DECIMAL)
		paimon_bucket_set_null_decimal(row, column->precision);
	else if (column->form == BUCKET_FORM_TIMESTAMP)
		paimon_bucket_set_null_timestamp(row, column->precision);
	else
		paimon_bucket_set_null(row);
}

static void
set_value(PaimonBucketRow *row, const PaimonBucketColumn *column, Datum value)
{
	switch (column->form)
	{
		case BUCKET_FORM_BOOL:
			paimon_bucket_set_bool(row, DatumGetBool(value));
			break;
		case BUCKET_FORM_INT16:
			paimon_bucket_set_int16(row, DatumGetInt16(value));
			break;
		case BUCKET_FORM_INT32:
			paimon_bucket_set_int32(row, DatumGetInt32(value));
			break;
		case BUCKET_FORM_INT64:
			paimon_bucket_set_int64(row, DatumGetInt64(value));
			break;
		case BUCKET_FORM_FLOAT:
			paimon_bucket_set_float(row, DatumGetFloat4(value));
			break;
		case BUCKET_FORM_DOUBLE:
			paimon_bucket_set_double(row, DatumGetFloat8(value));
			break;
		case BUCKET_FORM_STRING:
			set_string(row, value, false);
			break;
		case BUCKET_FORM_CHAR:
			set_string(row, value, true);
			break;
		case BUCKET_FORM_DATE:
			/* Infinities wrap around, which is as good as any number. */
			paimon_bucket_set_date(row, (int32) ((uint32) DatumGetDateADT(value) + (uint32) EPOCH_SHIFT_DAYS));
			break;
		case BUCKET_FORM_TIME:
			paimon_bucket_set_time(row, DatumGetTimeADT(value) / 1000);
			break;
		case BUCKET_FORM_DECIMAL:
			set_decimal(row, value, column);
			break;
		case BUCKET_FORM_TIMESTAMP:
			set_timestamp(row, DatumGetTimestamp(value), column->precision);
			break;
		case BUCKET_FORM_NONE:
			Assert(false);
			break;
	}
}

/*
 * The hash, from the values at values[position of column i].  A NULL adds nothing to the encoded bytes (only append tables can have one here).
 */
static int32
hash_values(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, bool by_key)
{
	struct PaimonRowPrivate *priv = desc->priv;
	PaimonKeyBuf out;
	int32		h;

	if (priv->binary_row)
	{
		paimon_bucket_begin(&priv->row, desc->nbucketkeys);
		for (int i = 0; i < desc->nbucketkeys; i++)
		{
			int			c = by_key ? priv->bucket[i].key_index : desc->bucketkeys[i] - 1;

			if (isnull != NULL && isnull[c])
				set_null(&priv->row, &priv->bucket[i]);
			else
				set_value(&priv->row, &priv->bucket[i], values[c]);
		}
		if (likely(paimon_bucket_finish(&priv->row, &h) == PAIMON_OK))
			return h;
	}

	resetStringInfo(&priv->scratch);
	enlargeStringInfo(&priv->scratch, PAIMON_KEY_MAX);
	paimon_keybuf_init(&out, (uint8 *) priv->scratch.data, PAIMON_KEY_MAX, NULL);
	for (int i = 0; i < desc->nbucketkeys; i++)
	{
		int			c = by_key ? priv->bucket[i].key_index : desc->bucketkeys[i] - 1;
		PaimonResult r;

		if (isnull != NULL && isnull[c])
			continue;
		r = paimon_key_put_value(priv->bucket[i].codec, values[c], &out);
		if (r != PAIMON_OK)
			paimon_key_report_failure(desc, r, desc->bucketkeys[i]);
	}
	return paimon_bucket_hash_bytes(out.data, out.len);
}

int
paimon_row_bucket(const PaimonRowDesc *desc, const Datum *values, const bool *isnull)
{
	if (desc->nbuckets <= 1 || desc->nbucketkeys == 0)
		return 0;
	return paimon_bucket_of_hash(hash_values(desc, values, isnull, false), desc->nbuckets);
}

/* keyvalues: of all key columns, in key order, none NULL. */
int
paimon_scankey_bucket(const PaimonRowDesc *desc, const Datum *keyvalues)
{
	if (desc->nbuckets <= 1 || desc->nbucketkeys == 0)
		return 0;
	for (int i = 0; i < desc->nbucketkeys; i++)
	{
		if (desc->priv->bucket[i].key_index < 0)
			return -1;
	}
	return paimon_bucket_of_hash(hash_values(desc, keyvalues, NULL, true), desc->nbuckets);
}
