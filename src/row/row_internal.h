/*-------------------------------------------------------------------------
 *
 * row_internal.h
 *	  What the files of src/row share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_ROW_INTERNAL_H
#define PAIMON_ROW_INTERNAL_H

#include "row/row.h"

#include "access/htup_details.h"
#include "lib/stringinfo.h"

#include "core/core_bucket.h"
#include "core/core_key.h"

/*
 * How a type is encoded in keys.  Never renumber: nothing of it is on disk, but test output shows it.  An array has the codec of its
 * elements too: KEY_CODEC_ARRAY + element codec.
 */
typedef enum PaimonKeyCodec
{
	KEY_CODEC_NONE = 0,
	KEY_CODEC_BOOL,
	KEY_CODEC_CHAR,
	KEY_CODEC_INT16,
	KEY_CODEC_INT32,			/* int4, date */
	KEY_CODEC_INT64,			/* int8, time, timestamp, timestamptz, money */
	KEY_CODEC_UINT32,			/* oid, enum */
	KEY_CODEC_UINT64,			/* pg_lsn, xid8 */
	KEY_CODEC_FLOAT4,
	KEY_CODEC_FLOAT8,
	KEY_CODEC_NUMERIC,
	KEY_CODEC_TEXT,				/* text, varchar */
	KEY_CODEC_BPCHAR,
	KEY_CODEC_NAME,
	KEY_CODEC_BYTEA,
	KEY_CODEC_UUID,
	KEY_CODEC_TIMETZ,
	KEY_CODEC_INTERVAL,
	KEY_CODEC_INET,				/* inet, cidr */
	KEY_CODEC_MACADDR,
	KEY_CODEC_MACADDR8,
	KEY_CODEC_BIT,				/* bit, varbit */
	KEY_CODEC_LAST = KEY_CODEC_BIT,
	KEY_CODEC_ARRAY = 256
} PaimonKeyCodec;

typedef struct PaimonKeyCodecInfo
{
	int16		typlen;			/* of the values */
	bool		typbyval;
	char		typalign;
	uint8		key_len;		/* length of every encoding, 0 = varies */
	bool		lossless;
	bool		sql_order;		/* for types without collation; the others: if it is C */
} PaimonKeyCodecInfo;

extern const PaimonKeyCodecInfo paimon_key_codecs[KEY_CODEC_LAST + 1];

/* Codec of a base type; KEY_CODEC_NONE and a reason if there is none. */
extern int	paimon_key_codec(Oid type, Oid collation, const char **why);
extern bool paimon_key_codec_lossless(int codec);
extern bool paimon_key_codec_sql_order(int codec, Oid type, Oid collation);
extern uint32 paimon_key_codec_length(int codec);

/* One value; result as of the core's encoders. */
extern PaimonResult paimon_key_put_value(int codec, Datum value, PaimonKeyBuf *out);

/*
 * One value back.  Where the codec is not lossless, a value that is equal by the type's btree operator class.  value NULL: only move on.
 * `elemtype` is the type of array elements.
 */
extern PaimonResult paimon_key_get_value(int codec, Oid type, PaimonKeyReader *r, Datum *value);

/* How a column goes into Paimon's binary row. */
typedef enum PaimonBucketForm
{
	BUCKET_FORM_NONE = 0,		/* Paimon has no such type */
	BUCKET_FORM_BOOL,
	BUCKET_FORM_INT16,
	BUCKET_FORM_INT32,
	BUCKET_FORM_INT64,
	BUCKET_FORM_FLOAT,
	BUCKET_FORM_DOUBLE,
	BUCKET_FORM_STRING,			/* text, varchar, bytea */
	BUCKET_FORM_CHAR,			/* bpchar: without trailing blanks */
	BUCKET_FORM_DATE,
	BUCKET_FORM_TIME,
	BUCKET_FORM_DECIMAL,
	BUCKET_FORM_TIMESTAMP
} PaimonBucketForm;

typedef struct PaimonBucketColumn
{
	int			codec;			/* for the hash of encoded bytes */
	PaimonBucketForm form;
	int			precision;
	int			scale;
	int			key_index;		/* position in the key, or -1 */
} PaimonBucketColumn;

/* How an attribute lies in a payload. */
typedef enum PaimonRowForm
{
	ROW_FORM_WORD1,				/* by value, so many bytes */
	ROW_FORM_WORD2,
	ROW_FORM_WORD4,
	ROW_FORM_WORD8,
	ROW_FORM_FIXED,
	ROW_FORM_VARLENA
} PaimonRowForm;

typedef struct PaimonRowAttr
{
	int16		len;			/* attlen */
	uint8		form;			/* PaimonRowForm */
	bool		dropped;
	bool		in_key;
	bool		packable;		/* varlena that may have a short header */
	uint8		align;			/* 1, 2, 4 or 8 */
} PaimonRowAttr;

struct PaimonRowPrivate
{
	Oid			relid;			/* for messages */
	MemoryContext context;		/* the descriptor's */
	PaimonRowAttr *attrs;
	uint64	   *stored;			/* bits: attributes that payloads have a place for, those not in the key */
	uint64	   *dropped;		/* bits of the dropped ones among them */
	int16	   *varlenas;		/* attributes of varying length, without dropped ones */
	int			nvarlenas;
	uint32		max_width;		/* bytes that an attribute takes at most, padding included but not a varlena's data */
	int			key_decode_end; /* key columns from here on need no decoding */
	int32		key_offset[INDEX_MAX_KEYS]; /* where a key column begins in every key, -1 = varies */
	bool		binary_row;		/* buckets by Paimon's binary row, else by encoded bytes */
	PaimonBucketColumn bucket[INDEX_MAX_KEYS];
	PaimonAllocator allocator;	/* of the context */
	PaimonBucketRow row;
	StringInfoData scratch;
};

/* Fills the bucket part of the private data. */
extern void paimon_bucket_prepare(PaimonRowDesc *desc);

/* For messages. */
extern const char *paimon_row_table_name(const PaimonRowDesc *desc);

/* Raise DATA_CORRUPTED, naming the table. */
extern void paimon_row_report_damage(const PaimonRowDesc *desc, const char *detail) pg_attribute_noreturn();
extern void paimon_key_report_damage(const PaimonRowDesc *desc) pg_attribute_noreturn();

/* Raises the error that belongs to a failed encoding. */
extern void paimon_key_report_failure(const PaimonRowDesc *desc, PaimonResult result, AttrNumber attno) pg_attribute_noreturn();

/* Key columns of attributes below `limit` only. */
extern void paimon_key_decode_some(const PaimonRowDesc *desc, const uint8 *key, uint32 keylen, int limit,
								   Datum *values, bool *isnull);

/* ---- row_numeric.c ---- */

/* A numeric's parts; digits are copied to `digits`, of at least PAIMON_KEY_MAX / 2 elements.  PAIMON_NO_SPACE if there are more. */
#define PAIMON_NUMERIC_DIGITS_MAX (PAIMON_KEY_MAX / 2)
extern PaimonResult paimon_numeric_unpack(Datum numeric, int16 *digits, PaimonNumeric *out);

/* A numeric with just as many digits after the point as it needs. */
extern Datum paimon_numeric_pack(const PaimonNumeric *v);

/* Text of blank-padded characters without the padding. */
static inline uint32
paimon_bpchar_trimmed(const char *s, uint32 len)
{
	while (len > 0 && s[len - 1] == ' ')
		len--;
	return len;
}

/* Words of bits, one an attribute. */
#define ROW_WORDS(natts) (((natts) + 63) / 64)
#define ROW_MAX_WORDS ROW_WORDS(MaxTupleAttributeNumber)

static inline bool
paimon_row_bit(const uint64 *words, int c)
{
	return (words[c / 64] >> (c % 64)) & 1;
}

/*
 * memcpy for short values.  Told that a length is small, compilers expand memcpy to string instructions, whose start costs more than such a
 * value takes here.
 */
static inline void
paimon_copy_short(char *dst, const char *src, uint32 len)
{
	if (len >= 16)
	{
		uint32		i = 0;

		for (; i + 16 < len; i += 16)
			memcpy(dst + i, src + i, 16);
		memcpy(dst + len - 16, src + len - 16, 16);
	}
	else if (len >= 8)
	{
		memcpy(dst, src, 8);
		memcpy(dst + len - 8, src + len - 8, 8);
	}
	else if (len >= 4)
	{
		memcpy(dst, src, 4);
		memcpy(dst + len - 4, src + len - 4, 4);
	}
	else
	{
		for (uint32 i = 0; i < len; i++)
			dst[i] = src[i];
	}
}

#endif							/* PAIMON_ROW_INTERNAL_H */
