/*-------------------------------------------------------------------------
 *
 * row.h
 *	  Between Postgres's values and the bytes that the LSM tree stores: keys, buckets, row payloads.
 *
 * A *record* is (key bytes, kind, row payload).  The key is order-preserving (core/core_key.h).  The payload holds the values that cannot be
 * had from the key; column c everywhere means attribute number c + 1 of the table, dropped ones included.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_ROW_H
#define PAIMON_ROW_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "executor/tuptable.h"
#include "utils/rel.h"

#include "catalog/manifest.h"
#include "core/core_group.h"

/* How one key column is encoded. */
typedef struct PaimonKeyColumn
{
	AttrNumber	attno;
	Oid			type;			/* base type: domains resolved */
	Oid			collation;
	int			codec;			/* private to row_key.c */
	bool		lossless;		/* the value can be decoded from the key, byte for byte: not stored again */
	bool		sql_order;		/* order of encodings = order of the default btree operator class */
} PaimonKeyColumn;

/*
 * Everything needed to turn rows of a storage into records and back.  Built once per table handle, in its own memory context.
 */
typedef struct PaimonRowDesc
{
	TupleDesc	tupdesc;		/* copy */
	uint64		serial;			/* no other of this process has it: another descriptor may come to lie at the same address */
	uint64		storage_id;
	int			nkeys;			/* 0: append storage, key = 8-byte big-endian row number */
	PaimonKeyColumn keys[INDEX_MAX_KEYS];
	int			nbuckets;
	int			nbucketkeys;	/* 0 when nbuckets = 1 or append */
	AttrNumber	bucketkeys[INDEX_MAX_KEYS];
	bool		fixed_key;		/* all keys have one length: */
	uint32		fixed_key_len;
	/* per attribute */
	bool	   *in_key;			/* column is lossless part of the key: decoded from it */
	PaimonColumnDesc *columns;	/* physical form of each attribute in run files (phys of numerics: VAR; the writer may scale) */
	int16	   *key_index;		/* position in keys[] or -1 */
	struct PaimonRowPrivate *priv;	/* of src/row only */
} PaimonRowDesc;

/* Whether a type may be a key column; *why is set to a reason (translated) if not.  Does not throw. */
extern bool paimon_key_type_supported(Oid type, Oid collation, const char **why);

/* Builds the descriptor in CurrentMemoryContext. */
extern PaimonRowDesc *paimon_rowdesc_build(Relation rel, const PaimonStorageRow *storage);

/* The same for rows that were written when the relation's columns were as `tupdesc` says (a rewrite reads them so). */
extern PaimonRowDesc *paimon_rowdesc_build_as(Relation rel, TupleDesc tupdesc, const PaimonStorageRow *storage);

/*
 * Encodes the key of a row from the slot's values (all attributes deformed) into `buf`, which grows by palloc in its context.
 * NULL in a key column raises NOT_NULL_VIOLATION; a key over PAIMON_KEY_MAX bytes raises PROGRAM_LIMIT_EXCEEDED.
 */
extern void paimon_key_encode(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, StringInfo buf);

/* The same from values of the key columns alone, in key order (index scans).  Returns false if a value is NULL (nothing can match). */
extern bool paimon_key_encode_scan(const PaimonRowDesc *desc, const Datum *keyvalues, const bool *isnull, StringInfo buf);

/*
 * Encodes values[0 .. n) of n key columns from `first` on: from 0 on, what all keys with these values begin with.  False if that is longer than any key.
 */
extern bool paimon_key_encode_columns(const PaimonRowDesc *desc, int first, int n, const Datum *values, StringInfo buf);

/*
 * Are keys sorted by memcmp as the type's default btree operator class sorts the values, under a collation (of text; not looked at for other types)?  Of a key
 * column, and of any type that may be one.
 */
extern bool paimon_key_orders(const PaimonKeyColumn *column, Oid collation);
extern bool paimon_key_type_orders(Oid type, Oid collation);

/* Key of an append table's row. */
extern void paimon_key_encode_rowno(uint64 rowno, StringInfo buf);

/*
 * Decodes the lossless key columns of `key` into values[]/isnull[] by attribute (others untouched).  By-reference values are made in CurrentMemoryContext
 * or point into key.  Damaged keys raise ERRCODE_DATA_CORRUPTED.
 */
extern void paimon_key_decode(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, Datum *values, bool *isnull);

/* One key column only, by attribute index c (in_key[c] must be set). */
extern Datum paimon_key_decode_column(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, int c);

/* Text of a key for messages: "(id)=(5)", as in unique violations; respects nothing of privileges: callers decide. */
extern char *paimon_key_describe(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen);

/* The same for a bound out of the manifest, which may be cut off: NULL if it is not a whole key. */
extern char *paimon_key_describe_bound(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen);

/* Bucket of a row (A.7) from its values, and of a full key (decoded; used by lookups when the bucket key is part of the lossless key
 * columns), or -1 if it cannot be told from the key. */
extern int	paimon_row_bucket(const PaimonRowDesc *desc, const Datum *values, const bool *isnull);
extern int	paimon_scankey_bucket(const PaimonRowDesc *desc, const Datum *keyvalues);

/* Do length and alignment (as in pg_attribute) look like those of a type passed by value?  All types of core that do are. */
extern bool paimon_row_looks_like_word(int16 attlen, char attalign);

/*
 * May a column's type, modifier or collation change from old to new without a rewrite of what is stored?  For columns of the key or the bucket
 * key of a storage that holds rows; any other column may change whenever core sees no need to rewrite.
 */
extern bool paimon_row_retype_is_safe(Oid oldtype, int32 oldtypmod, Oid oldcollation,
									  Oid newtype, int32 newtypmod, Oid newcollation, bool in_key, bool in_bucketkey);

/*
 * Payload: compact form of a row's non-key values (see README.md).  natts is stored, so that columns added later read as their missing
 * value (attmissingval) or NULL.
 */
extern void paimon_row_encode(const PaimonRowDesc *desc, const Datum *values, const bool *isnull, StringInfo buf);

/*
 * Decodes the first `natts` attributes (key columns from `key`).  By-reference values point into payload/key where alignment allows, else
 * into CurrentMemoryContext.  `payload` must be 8-aligned.  An empty payload (of a removed row) gives NULL for all but the key columns.
 */
extern void paimon_row_decode(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, const uint8 *payload, uint32 len,
							  int natts, Datum *values, bool *isnull);

/*
 * A column of rows that are gathered one after the other: values[row], and nulls[row] once a row had none.  The owner gives it room for as many rows as it
 * will have, and begins with n = 0 and has_nulls = false.
 */
typedef struct PaimonRowColumn
{
	uint64	   *values;
	bool	   *nulls;
	uint32		n;				/* rows known: later ones have no value so far */
	bool		has_nulls;
} PaimonRowColumn;

extern void paimon_rowcolumn_skip(PaimonRowColumn *c, uint32 row);

static inline void
paimon_rowcolumn_put(PaimonRowColumn *c, uint32 row, uint64 value)
{
	if (unlikely(c->n != row))
		paimon_rowcolumn_skip(c, row);
	c->values[row] = value;
	if (c->has_nulls)
		c->nulls[row] = false;
	c->n = row + 1;
}

/* Puts the values of a payload (8-aligned) into columns, by attribute: neither those of key columns nor NULLs.  They point into the payload. */
extern void paimon_row_decode_columns(const PaimonRowDesc *desc, const uint8 *payload, uint32 len, PaimonRowColumn *columns, uint32 row);

/* Missing value of an attribute that the stored row is too old to have. */
extern void paimon_row_missing(const PaimonRowDesc *desc, int c, Datum *value, bool *isnull);

/* Is there nothing to flatten? */
extern bool paimon_row_is_flat(const PaimonRowDesc *desc, const Datum *values, const bool *isnull);

/*
 * Copies of values with nothing outside: toasted and compressed varlenas are fetched and expanded ones flattened.  Sets values[] in place; new
 * memory is in CurrentMemoryContext.
 */
extern void paimon_row_flatten(const PaimonRowDesc *desc, Datum *values, const bool *isnull);

/* Scaled numerics: an int64 with `scale` digits after the point, if the numeric is exactly that (same display scale, finite, fits). */
extern bool paimon_numeric_to_scaled(Datum numeric, int *scale, int64 *unscaled);
extern Datum paimon_numeric_from_scaled(int64 unscaled, int scale);

#endif							/* PAIMON_ROW_H */
