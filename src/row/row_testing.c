/*-------------------------------------------------------------------------
 *
 * row_testing.c
 *	  Functions for tests of this folder, in testing builds only (sql/parts/91_testing_row.sql.in).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include <time.h>

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/typcache.h"

#include "row/row_internal.h"

PG_FUNCTION_INFO_V1(paimon_test_key);
PG_FUNCTION_INFO_V1(paimon_test_key_traits);
PG_FUNCTION_INFO_V1(paimon_test_key_value);
PG_FUNCTION_INFO_V1(paimon_test_row);
PG_FUNCTION_INFO_V1(paimon_test_row_damage);
PG_FUNCTION_INFO_V1(paimon_test_bucket);
PG_FUNCTION_INFO_V1(paimon_test_scaled);
PG_FUNCTION_INFO_V1(paimon_test_row_speed);
PG_FUNCTION_INFO_V1(paimon_test_retype);

/* Codec of the first argument's type, or an error with the reason. */
static int
codec_of_argument(FunctionCallInfo fcinfo, Oid *type)
{
	const char *why;
	int			codec;

	*type = get_fn_expr_argtype(fcinfo->flinfo, 0);
	codec = paimon_key_codec(*type, PG_GET_COLLATION(), &why);
	if (codec == KEY_CODEC_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("type %s cannot be in a key", format_type_be(*type)),
				 errdetail_internal("%s", why)));
	return codec;
}

/* test_key(anyelement): the encoding of a value. */
Datum
paimon_test_key(PG_FUNCTION_ARGS)
{
	Oid			type;
	int			codec = codec_of_argument(fcinfo, &type);
	bytea	   *out = palloc(VARHDRSZ + PAIMON_KEY_MAX);
	PaimonKeyBuf buf;
	PaimonResult r;

	paimon_keybuf_init(&buf, (uint8 *) VARDATA(out), PAIMON_KEY_MAX, NULL);
	r = paimon_key_put_value(codec, PG_GETARG_DATUM(0), &buf);
	if (r != PAIMON_OK)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("encoding failed with result %d", r)));
	SET_VARSIZE(out, VARHDRSZ + buf.len);
	PG_RETURN_BYTEA_P(out);
}

/* test_key_traits(anyelement): what is claimed of the type's encoding. */
Datum
paimon_test_key_traits(PG_FUNCTION_ARGS)
{
	Oid			type;
	int			codec = codec_of_argument(fcinfo, &type);

	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s%s%u",
											  paimon_key_codec_lossless(codec) ? "lossless " : "",
											  paimon_key_codec_sql_order(codec, type, PG_GET_COLLATION()) ? "ordered " : "",
											  paimon_key_codec_length(codec))));
}

/* test_key_value(anyelement, bytea): the value of these key bytes; the first argument is there for its type. */
Datum
paimon_test_key_value(PG_FUNCTION_ARGS)
{
	Oid			type;
	int			codec;
	bytea	   *key = PG_GETARG_BYTEA_PP(1);
	PaimonKeyReader r;
	Datum		value;

	codec = codec_of_argument(fcinfo, &type);
	type = getBaseType(type);
	paimon_keyreader_init(&r, (const uint8 *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key));
	if (paimon_key_get_value(codec, type, &r, &value) != PAIMON_OK || !paimon_keyreader_at_end(&r))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("damaged key")));
	/* It may point into the argument. */
	PG_RETURN_DATUM(datumCopy(value, get_typbyval(type), get_typlen(type)));
}

/* A descriptor for a table of any access method, keyed as the caller says. */
static PaimonRowDesc *
build_desc(Oid relid, ArrayType *keys, ArrayType *bucketkeys, int nbuckets)
{
	PaimonStorageRow *storage = palloc0(sizeof(PaimonStorageRow));
	Relation	rel = relation_open(relid, AccessShareLock);
	PaimonRowDesc *desc;

	storage->storage_id = 1;
	storage->encoding = PAIMON_ENCODING_VERSION;
	storage->nbuckets = nbuckets;
	storage->nkeys = ArrayGetNItems(ARR_NDIM(keys), ARR_DIMS(keys));
	memcpy(storage->keys, ARR_DATA_PTR(keys), Min(storage->nkeys, INDEX_MAX_KEYS) * sizeof(int16));
	storage->nbucketkeys = ArrayGetNItems(ARR_NDIM(bucketkeys), ARR_DIMS(bucketkeys));
	memcpy(storage->bucketkeys, ARR_DATA_PTR(bucketkeys), Min(storage->nbucketkeys, INDEX_MAX_KEYS) * sizeof(int16));
	desc = paimon_rowdesc_build(rel, storage);
	relation_close(rel, AccessShareLock);
	return desc;
}

/* Values of a record argument, which must be of the table's row type. */
static void
deform_record(HeapTupleHeader record, const PaimonRowDesc *desc, Datum *values, bool *isnull)
{
	HeapTupleData tuple;

	tuple.t_len = HeapTupleHeaderGetDatumLength(record);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = record;
	heap_deform_tuple(&tuple, desc->tupdesc, values, isnull);
}

static bool
same_value(const PaimonRowDesc *desc, int c, Datum a, Datum b)
{
	Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);

	return datum_image_eq(a, b, att->attbyval, att->attlen);
}

/* Decodes `key` and `payload` and compares with the values; NULL if all is well. */
static char *
compare_decoded(const PaimonRowDesc *desc, StringInfo key, StringInfo payload, const Datum *values, const bool *isnull)
{
	int			natts = desc->tupdesc->natts;
	Datum	   *got = palloc0(natts * sizeof(Datum));
	bool	   *gotnull = palloc0(natts * sizeof(bool));

	for (int upto = 0; upto <= natts; upto++)
	{
		memset(gotnull, 2, natts);
		paimon_row_decode(desc, (uint8 *) key->data, key->len, (uint8 *) payload->data, payload->len, upto, got, gotnull);
		for (int c = 0; c < upto; c++)
		{
			bool		expectnull = isnull[c] || TupleDescAttr(desc->tupdesc, c)->attisdropped;

			if (gotnull[c] != expectnull || (!expectnull && !same_value(desc, c, got[c], values[c])))
				return psprintf("column %d differs when %d are decoded", c + 1, upto);
		}
	}
	for (int c = 0; c < natts; c++)
	{
		if (desc->in_key[c] &&
			!same_value(desc, c, paimon_key_decode_column(desc, (uint8 *) key->data, key->len, c), values[c]))
			return psprintf("column %d differs when decoded alone", c + 1);
	}
	return NULL;
}

/* An empty payload: nothing but the key. */
static char *
check_empty(const PaimonRowDesc *desc, StringInfo key, const Datum *values)
{
	int			natts = desc->tupdesc->natts;
	Datum	   *got = palloc0(natts * sizeof(Datum));
	bool	   *gotnull = palloc0(natts * sizeof(bool));

	paimon_row_decode(desc, (uint8 *) key->data, key->len, NULL, 0, natts, got, gotnull);
	for (int c = 0; c < natts; c++)
	{
		if (gotnull[c] == desc->in_key[c] || (!gotnull[c] && !same_value(desc, c, got[c], values[c])))
			return psprintf("column %d of a removed row is wrong", c + 1);
	}
	return NULL;
}

/*
 * test_row(regclass, keys int2[], record): round trip of a row; returns key and payload lengths and the key's description, or what went wrong.
 */
Datum
paimon_test_row(PG_FUNCTION_ARGS)
{
	ArrayType  *keys = PG_GETARG_ARRAYTYPE_P(1);
	PaimonRowDesc *desc = build_desc(PG_GETARG_OID(0), keys, construct_empty_array(INT2OID), 1);
	int			natts = desc->tupdesc->natts;
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc0(natts * sizeof(bool));
	StringInfoData key;
	StringInfoData payload;
	StringInfoData direct;
	char	   *wrong;

	deform_record(PG_GETARG_HEAPTUPLEHEADER(2), desc, values, isnull);
	initStringInfo(&key);
	initStringInfo(&payload);
	initStringInfo(&direct);
	paimon_row_encode(desc, values, isnull, &direct);
	paimon_row_flatten(desc, values, isnull);
	if (desc->nkeys > 0)
		paimon_key_encode(desc, values, isnull, &key);
	else
		paimon_key_encode_rowno(42, &key);
	paimon_row_encode(desc, values, isnull, &payload);
	if (payload.len != direct.len || memcmp(payload.data, direct.data, payload.len) != 0)
		PG_RETURN_TEXT_P(cstring_to_text("payload of unflattened values differs"));
	if (desc->fixed_key && key.len != desc->fixed_key_len)
		PG_RETURN_TEXT_P(cstring_to_text("key has not its fixed length"));
	wrong = check_empty(desc, &key, values);
	if (wrong == NULL)
		wrong = compare_decoded(desc, &key, &payload, values, isnull);
	if (wrong != NULL)
		PG_RETURN_TEXT_P(cstring_to_text(wrong));
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("key %d, payload %d: %s", key.len, payload.len,
											  paimon_key_describe(desc, (uint8 *) key.data, key.len))));
}

/* Decodes in an error trap; counts DATA_CORRUPTED, passes on everything else. */
static int
try_decode(const PaimonRowDesc *desc, StringInfo key, const uint8 *payload, uint32 len, MemoryContext work)
{
	int			natts = desc->tupdesc->natts;
	MemoryContext old = MemoryContextSwitchTo(work);
	volatile int refused = 0;

	PG_TRY();
	{
		Datum	   *values = palloc0(natts * sizeof(Datum));
		bool	   *isnull = palloc0(natts * sizeof(bool));
		volatile uint8 byte = 0;

		paimon_row_decode(desc, (uint8 *) key->data, key->len, payload, len, natts, values, isnull);

		/* Touch every byte that the decoder vouches for. */
		for (int c = 0; c < natts; c++)
		{
			Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);

			if (isnull[c] || att->attbyval)
				continue;
			for (Size i = 0; i < datumGetSize(values[c], false, att->attlen); i++)
				byte = ((uint8 *) DatumGetPointer(values[c]))[i];
		}
		(void) byte;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(work);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_DATA_CORRUPTED)
			PG_RE_THROW();
		FlushErrorState();
		refused = 1;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(old);
	MemoryContextReset(work);
	return refused;
}

/*
 * test_row_damage(regclass, keys int2[], record): decodes the row's payload cut at every length and with every bit turned over.  Returns how
 * many cuts were not refused (0 is right); survives if nothing reads outside.
 */
Datum
paimon_test_row_damage(PG_FUNCTION_ARGS)
{
	ArrayType  *keys = PG_GETARG_ARRAYTYPE_P(1);
	PaimonRowDesc *desc = build_desc(PG_GETARG_OID(0), keys, construct_empty_array(INT2OID), 1);
	int			natts = desc->tupdesc->natts;
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc0(natts * sizeof(bool));
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "paimon row test", ALLOCSET_DEFAULT_SIZES);
	StringInfoData key;
	StringInfoData payload;
	int			accepted = 0;

	deform_record(PG_GETARG_HEAPTUPLEHEADER(2), desc, values, isnull);
	initStringInfo(&key);
	initStringInfo(&payload);
	paimon_key_encode(desc, values, isnull, &key);
	paimon_row_encode(desc, values, isnull, &payload);

	/* Copies of exact size, so that tools that watch memory see a read behind the end. */
	for (int len = 1; len < payload.len; len++)
	{
		uint8	   *copy = palloc(len);

		memcpy(copy, payload.data, len);
		accepted += 1 - try_decode(desc, &key, copy, len, work);
		pfree(copy);
	}
	for (int bit = 0; bit < payload.len * 8; bit++)
	{
		uint8	   *copy = palloc(payload.len);

		memcpy(copy, payload.data, payload.len);
		copy[bit / 8] ^= 1 << (bit % 8);
		(void) try_decode(desc, &key, copy, payload.len, work);
		pfree(copy);
	}
	PG_RETURN_INT32(accepted);
}

/*
 * test_bucket(regclass, keys int2[], bucketkeys int2[], nbuckets, record): the bucket by the row, checked against the bucket by the key.
 */
Datum
paimon_test_bucket(PG_FUNCTION_ARGS)
{
	PaimonRowDesc *desc = build_desc(PG_GETARG_OID(0), PG_GETARG_ARRAYTYPE_P(1), PG_GETARG_ARRAYTYPE_P(2), PG_GETARG_INT32(3));
	int			natts = desc->tupdesc->natts;
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc0(natts * sizeof(bool));
	Datum		keyvalues[INDEX_MAX_KEYS];
	int			bucket;

	deform_record(PG_GETARG_HEAPTUPLEHEADER(4), desc, values, isnull);
	bucket = paimon_row_bucket(desc, values, isnull);
	if (desc->nkeys > 0)
	{
		int			bykey;

		for (int i = 0; i < desc->nkeys; i++)
			keyvalues[i] = values[desc->keys[i].attno - 1];
		bykey = paimon_scankey_bucket(desc, keyvalues);
		if (bykey != bucket)
			ereport(ERROR,
					(errmsg("bucket by row is %d, by key %d", bucket, bykey)));
	}
	PG_RETURN_INT32(bucket);
}

/* test_scaled(numeric): "unscaled scale" if it is a scaled integer and comes back byte for byte, NULL if it is none. */
Datum
paimon_test_scaled(PG_FUNCTION_ARGS)
{
	Datum		numeric = PG_GETARG_DATUM(0);
	int			scale;
	int64		unscaled;

	if (!paimon_numeric_to_scaled(numeric, &scale, &unscaled))
		PG_RETURN_NULL();
	if (!datum_image_eq(numeric, paimon_numeric_from_scaled(unscaled, scale), false, -1))
		ereport(ERROR,
				(errmsg("scaled numeric " INT64_FORMAT " with scale %d does not come back", unscaled, scale)));
	PG_RETURN_TEXT_P(cstring_to_text(psprintf(INT64_FORMAT " %d", unscaled, scale)));
}

/* test_retype(regclass): may the table's second column take the place of the first one, as key and as bucket key? */
Datum
paimon_test_retype(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);
	Form_pg_attribute a = TupleDescAttr(RelationGetDescr(rel), 0);
	Form_pg_attribute b = TupleDescAttr(RelationGetDescr(rel), 1);
	char	   *result = psprintf("key %d, bucket key %d",
								  paimon_row_retype_is_safe(a->atttypid, a->atttypmod, a->attcollation,
															b->atttypid, b->atttypmod, b->attcollation, true, false),
								  paimon_row_retype_is_safe(a->atttypid, a->atttypmod, a->attcollation,
															b->atttypid, b->atttypmod, b->attcollation, true, true));

	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/*
 * test_row_speed(regclass, keys int2[], record, times): nanoseconds of processor time for the steps that every row takes.  By hand only: no test looks at times.
 */
Datum
paimon_test_row_speed(PG_FUNCTION_ARGS)
{
	ArrayType  *keys = PG_GETARG_ARRAYTYPE_P(1);
	PaimonRowDesc *desc = build_desc(PG_GETARG_OID(0), keys, keys, 16);
	int			natts = desc->tupdesc->natts;
	Datum	   *values = palloc0(natts * sizeof(Datum));
	bool	   *isnull = palloc0(natts * sizeof(bool));
	int			times = PG_GETARG_INT32(3);
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "paimon row test", ALLOCSET_DEFAULT_SIZES);
	StringInfoData key;
	StringInfoData payload;
	clock_t		start;
	double		ns[4];
	MemoryContext old;

	deform_record(PG_GETARG_HEAPTUPLEHEADER(2), desc, values, isnull);
	paimon_row_flatten(desc, values, isnull);
	initStringInfo(&key);
	initStringInfo(&payload);
	for (int step = 0; step < 4; step++)
	{
		old = MemoryContextSwitchTo(work);
		start = clock();
		for (int i = 0; i < times; i++)
		{
			switch (step)
			{
				case 0:
					resetStringInfo(&key);
					paimon_key_encode(desc, values, isnull, &key);
					break;
				case 1:
					resetStringInfo(&payload);
					paimon_row_encode(desc, values, isnull, &payload);
					break;
				case 2:
					(void) paimon_row_bucket(desc, values, isnull);
					break;
				default:
					paimon_row_decode(desc, (uint8 *) key.data, key.len, (uint8 *) payload.data, payload.len, natts, values, isnull);
					break;
			}
			if (i % 1024 == 0)
				MemoryContextReset(work);
		}
		ns[step] = (double) (clock() - start) / CLOCKS_PER_SEC * 1e9 / times;
		MemoryContextSwitchTo(old);
	}
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("key %.0f ns, payload %.0f ns, bucket %.0f ns, decode %.0f ns", ns[0], ns[1], ns[2], ns[3])));
}

#endif							/* PAIMON_TESTING */
