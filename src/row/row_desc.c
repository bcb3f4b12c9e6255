/*-------------------------------------------------------------------------
 *
 * row_desc.c
 *	  The row descriptor: columns of a table, and how a storage keys its rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "row/row_internal.h"

static uint8
align_bytes(char typalign)
{
	switch (typalign)
	{
		case TYPALIGN_CHAR:
			return 1;
		case TYPALIGN_SHORT:
			return ALIGNOF_SHORT;
		case TYPALIGN_INT:
			return ALIGNOF_INT;
		default:
			return ALIGNOF_DOUBLE;
	}
}

/*
 * Is a column stored as a word?  Of a dropped column the catalogs tell the length and the alignment, but after pg_upgrade not whether values were
 * passed by value.  They were if the two are the same: columns of other types of which that is true cannot be dropped (src/ddl).
 */
static bool
stored_as_word(Form_pg_attribute att)
{
	return att->attbyval || (att->attisdropped && paimon_row_looks_like_word(att->attlen, att->attalign));
}

bool
paimon_row_looks_like_word(int16 attlen, char attalign)
{
	return attlen > 0 && attlen <= (int16) sizeof(Datum) && attlen == align_bytes(attalign);
}

/* Physical form of one column. */
static void
describe_column(PaimonRowDesc *desc, const char *relname, int c)
{
	Form_pg_attribute att = TupleDescAttr(desc->tupdesc, c);
	PaimonColumnDesc *column = &desc->columns[c];
	PaimonRowAttr *attr = &desc->priv->attrs[c];

	if (att->attlen < -1 || att->attlen == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of table \"%s\" has type %s, which tables using access method paimon cannot store",
						NameStr(att->attname), relname, format_type_be(att->atttypid)),
				 errdetail("Values of the type are C strings."),
				 errhint("Use type text.")));
	column->width = 0;
	if (stored_as_word(att))
	{
		column->phys = PAIMON_PHYS_INT;
		attr->form = att->attlen == 1 ? ROW_FORM_WORD1 : att->attlen == 2 ? ROW_FORM_WORD2 : att->attlen == 4 ? ROW_FORM_WORD4 : ROW_FORM_WORD8;
	}
	else if (att->attlen > 0)
	{
		column->phys = PAIMON_PHYS_FIXED;
		column->width = att->attlen;
		attr->form = ROW_FORM_FIXED;
	}
	else
	{
		column->phys = PAIMON_PHYS_VAR;
		attr->form = ROW_FORM_VARLENA;
	}
	attr->len = att->attlen;
	attr->dropped = att->attisdropped;
	attr->in_key = false;
	attr->packable = att->attlen == -1 && att->attstorage != TYPSTORAGE_PLAIN;
	attr->align = align_bytes(att->attalign);
	if (att->attlen == -1 && attr->align < 4)
		attr->align = 4;		/* the long header wants it */
	desc->key_index[c] = -1;
}

/* What of all attributes together encoding and decoding rows want to know; when the keys are known. */
static void
describe_payloads(PaimonRowDesc *desc)
{
	struct PaimonRowPrivate *priv = desc->priv;
	int			natts = desc->tupdesc->natts;

	priv->stored = palloc0(Max(ROW_WORDS(natts), 1) * sizeof(uint64));
	priv->dropped = palloc0(Max(ROW_WORDS(natts), 1) * sizeof(uint64));
	priv->varlenas = palloc(Max(natts, 1) * sizeof(int16));
	for (int c = 0; c < natts; c++)
	{
		const PaimonRowAttr *a = &priv->attrs[c];

		if (!a->in_key)
			priv->stored[c / 64] |= UINT64CONST(1) << (c % 64);
		if (a->dropped)
			priv->dropped[c / 64] |= UINT64CONST(1) << (c % 64);
		if (a->len == -1 && !a->dropped)
			priv->varlenas[priv->nvarlenas++] = c;
		priv->max_width = Max(priv->max_width, (uint32) ((a->len > 0 ? a->len : VARHDRSZ) + a->align - 1));
	}
}

/* A column number out of the manifest, checked. */
static Form_pg_attribute
get_column(const PaimonRowDesc *desc, const char *relname, AttrNumber attno)
{
	Form_pg_attribute att = NULL;

	if (attno >= 1 && attno <= desc->tupdesc->natts)
		att = TupleDescAttr(desc->tupdesc, attno - 1);
	if (att == NULL || att->attisdropped)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("storage of table \"%s\" is keyed by column %d, which the table does not have", relname, attno)));
	return att;
}

static void
describe_keys(PaimonRowDesc *desc, const char *relname, const PaimonStorageRow *storage)
{
	struct PaimonRowPrivate *priv = desc->priv;
	int32		offset = 0;

	desc->nkeys = storage->nkeys;
	for (int i = 0; i < storage->nkeys; i++)
	{
		AttrNumber	attno = storage->keys[i];
		Form_pg_attribute att = get_column(desc, relname, attno);
		PaimonKeyColumn *k = &desc->keys[i];
		const char *why;
		uint32		len;

		k->attno = attno;
		k->type = getBaseType(att->atttypid);
		k->collation = att->attcollation;
		k->codec = paimon_key_codec(att->atttypid, att->attcollation, &why);
		if (k->codec == KEY_CODEC_NONE)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("column \"%s\" of table \"%s\" with type %s cannot be in the key of a table using access method paimon",
							NameStr(att->attname), relname, format_type_be(att->atttypid)),
					 errdetail_internal("%s", why)));
		k->lossless = paimon_key_codec_lossless(k->codec);
		k->sql_order = paimon_key_codec_sql_order(k->codec, att->atttypid, att->attcollation);
		desc->key_index[attno - 1] = i;
		desc->in_key[attno - 1] = k->lossless;
		priv->attrs[attno - 1].in_key = k->lossless;
		priv->key_offset[i] = offset;
		if (k->lossless)
			priv->key_decode_end = i + 1;
		len = paimon_key_codec_length(k->codec);
		offset = offset >= 0 && len > 0 ? offset + (int32) len : -1;
	}
	if (desc->nkeys == 0)
		offset = sizeof(uint64);
	desc->fixed_key = offset > 0;
	desc->fixed_key_len = offset > 0 ? offset : 0;
}

PaimonRowDesc *
paimon_rowdesc_build(Relation rel, const PaimonStorageRow *storage)
{
	return paimon_rowdesc_build_as(rel, RelationGetDescr(rel), storage);
}

PaimonRowDesc *
paimon_rowdesc_build_as(Relation rel, TupleDesc tupdesc, const PaimonStorageRow *storage)
{
	static uint64 last_serial = 0;
	PaimonRowDesc *desc = palloc0(sizeof(PaimonRowDesc));
	const char *relname = RelationGetRelationName(rel);
	int			natts;

	/* With its constraints: missing values of added columns are there. */
	desc->tupdesc = CreateTupleDescCopyConstr(tupdesc);
	natts = desc->tupdesc->natts;
	desc->serial = ++last_serial;
	desc->storage_id = storage->storage_id;
	desc->nbuckets = storage->nbuckets;
	desc->in_key = palloc0(Max(natts, 1) * sizeof(bool));
	desc->columns = palloc0(Max(natts, 1) * sizeof(PaimonColumnDesc));
	desc->key_index = palloc0(Max(natts, 1) * sizeof(int16));
	desc->priv = palloc0(sizeof(struct PaimonRowPrivate));
	desc->priv->relid = RelationGetRelid(rel);
	desc->priv->context = CurrentMemoryContext;
	desc->priv->attrs = palloc0(Max(natts, 1) * sizeof(PaimonRowAttr));

	if (storage->encoding != PAIMON_ENCODING_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" has keys of encoding version %d, but this library knows version %d only", relname,
						storage->encoding, PAIMON_ENCODING_VERSION),
				 errhint("Load a library of the version that wrote the table.")));
	for (int c = 0; c < natts; c++)
		describe_column(desc, relname, c);
	describe_keys(desc, relname, storage);
	describe_payloads(desc);
	if (storage->nbuckets > 1)
	{
		desc->nbucketkeys = storage->nbucketkeys;
		for (int i = 0; i < storage->nbucketkeys; i++)
		{
			(void) get_column(desc, relname, storage->bucketkeys[i]);
			desc->bucketkeys[i] = storage->bucketkeys[i];
		}
		paimon_bucket_prepare(desc);
	}
	return desc;
}
