/*-------------------------------------------------------------------------
 *
 * core_bucket.h
 *	  Paimon's bucket function: the binary row of the bucket key and its hash.
 *
 * The bucket of a row is |h % N|, h being a 32-bit Murmur3 hash over the
 * bucket-key columns laid out as Paimon's binary row, so that a row has the
 * same bucket in every engine.  Byte layout: README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_BUCKET_H
#define PAIMON_CORE_BUCKET_H

#include "core/core.h"
#include "core/core_key.h"

/* Largest precision that is stored as a 64-bit unscaled value, and the largest Paimon has. */
#define PAIMON_DECIMAL_COMPACT_PRECISION 18
#define PAIMON_DECIMAL_MAX_PRECISION 38

/* Largest precision of a timestamp that is stored as bare milliseconds. */
#define PAIMON_TIMESTAMP_COMPACT_PRECISION 3

/*
 * A builder of binary rows; one can be used for any number of rows.  Fields are set in the order of the bucket key,
 * each exactly once.  Failures are remembered and reported by finish.
 */
typedef struct PaimonBucketRow
{
	const PaimonAllocator *a;	/* must outlive the builder */
	uint8_t    *data;
	uint32_t	len;			/* bytes of the row so far, variable part included */
	uint32_t	cap;
	uint32_t	nfields;
	uint32_t	next;			/* field that is set next */
	uint32_t	null_bytes;		/* header and null bits */
	PaimonResult error;
} PaimonBucketRow;

extern void paimon_bucket_row_init(PaimonBucketRow *row, const PaimonAllocator *a);
extern void paimon_bucket_begin(PaimonBucketRow *row, uint32_t nfields);

extern void paimon_bucket_set_bool(PaimonBucketRow *row, bool v);
extern void paimon_bucket_set_int16(PaimonBucketRow *row, int16_t v);
extern void paimon_bucket_set_int32(PaimonBucketRow *row, int32_t v);
extern void paimon_bucket_set_int64(PaimonBucketRow *row, int64_t v);

/* Floats are hashed by their bits, but -0 as 0 and every NaN as Java's one NaN, so that equal keys share a bucket. */
extern void paimon_bucket_set_float(PaimonBucketRow *row, float v);
extern void paimon_bucket_set_double(PaimonBucketRow *row, double v);

/* CHAR, STRING, BINARY, BYTES. */
extern void paimon_bucket_set_string(PaimonBucketRow *row, const void *data, size_t len);

/* Days since 1970-01-01. */
extern void paimon_bucket_set_date(PaimonBucketRow *row, int32_t days);

/* Milliseconds of the day. */
extern void paimon_bucket_set_time(PaimonBucketRow *row, int32_t millis);

/* Milliseconds since 1970-01-01 (rounded down) and the rest in nanoseconds, 0 … 999999. */
extern void paimon_bucket_set_timestamp(PaimonBucketRow *row, int64_t millis, int32_t nanos, int precision);

/* Precision up to 18: the unscaled value. */
extern void paimon_bucket_set_decimal_compact(PaimonBucketRow *row, int64_t unscaled);

/* Precision 19 to 38: the unscaled value as big-endian two's complement of minimal length, 1 … 16 bytes. */
extern void paimon_bucket_set_decimal_large(PaimonBucketRow *row, const uint8_t *bytes, size_t len);

/*
 * Either of the two from a number that fits DECIMAL(precision, scale); 0 <= scale <= precision <= 38.  The row fails with
 * PAIMON_CORRUPT if the number does not fit or is NaN or infinite.
 */
extern void paimon_bucket_set_decimal(PaimonBucketRow *row, const PaimonNumeric *v, int precision, int scale);

/* NULL of any type without a reserved variable part, and of the two kinds that have one. */
extern void paimon_bucket_set_null(PaimonBucketRow *row);
extern void paimon_bucket_set_null_decimal(PaimonBucketRow *row, int precision);
extern void paimon_bucket_set_null_timestamp(PaimonBucketRow *row, int precision);

/*
 * The hash of the row.  PAIMON_CORRUPT if not every field was set once or a value was not one; PAIMON_NO_MEMORY if the
 * allocator gave NULL.
 */
extern PaimonResult paimon_bucket_finish(const PaimonBucketRow *row, int32_t *h);

/*
 * The same hash over any bytes, for key types that Paimon does not have (over the encoded key): the last word is filled up
 * with zero bytes, and the true length goes into the finish.
 */
extern int32_t paimon_bucket_hash_bytes(const void *data, size_t len);

/* The bucket for a hash, 0 <= result < nbuckets; nbuckets >= 1. */
static inline int32_t
paimon_bucket_of_hash(int32_t h, int32_t nbuckets)
{
	int32_t		b = h % nbuckets;

	return b < 0 ? -b : b;
}

#endif							/* PAIMON_CORE_BUCKET_H */
