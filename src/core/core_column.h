/*-------------------------------------------------------------------------
 *
 * core_column.h
 *	  Inside of row groups: what core_column*.c and core_group*.c share.
 *
 * Layers, from below: buffers and cursors; packed numbers (PaimonPacked:
 * row-addressable bit packing, fetched in slices); byte sequences (PaimonSeq:
 * lengths and units, each unit perhaps zstd-compressed); columns (null bitmap,
 * then packed numbers, a dictionary or a sequence); the key column; the group.
 * Byte layouts: README.md, "Row groups".
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_COLUMN_H
#define PAIMON_CORE_COLUMN_H

#include "core/core.h"
#include "core/core_group.h"

#define PAIMON_UNIT_RAW		8192	/* raw bytes of a unit of a value column, about */
#define PAIMON_KEY_UNIT_RAW 8192	/* raw bytes of a unit of the key column, about */
#define PAIMON_UNIT_RAW_MAX 0x3FFFFFFFu /* hard limit, also for single values */
#define PAIMON_DICT_MAX		4096	/* entries of a dictionary */
#define PAIMON_SLICE_ITEMS	512		/* packed numbers that are fetched and checked together; a multiple of 8 */
#define PAIMON_SLICE_MIN	128		/* packed numbers that take fewer bytes lie in the head */

/* No group is longer: offsets are 32 bits, and sums of two of them are done in 64. */
#define PAIMON_GROUP_MAX_BYTES	0xFFFF0000u

/* How a column is encoded; on disk in its directory entry. */
typedef enum PaimonEncoding
{
	PAIMON_ENC_EMPTY = 0,		/* no value that is not null: no bytes at all */
	PAIMON_ENC_PACKED = 1,		/* packed numbers */
	PAIMON_ENC_DICT = 2,		/* packed codes and a dictionary */
	PAIMON_ENC_UNITS = 3,		/* byte sequence in units */
	PAIMON_ENC_KEY_WORDS = 4,	/* keys as packed big-endian numbers */
	PAIMON_ENC_KEY_BYTES = 5,	/* keys as a byte sequence */
	PAIMON_ENC_FROM_KEY = 6		/* numbers that differ from KEY_WORDS by a constant */
} PaimonEncoding;

/* Number of a column in checksums and in the directory. */
#define PAIMON_COLUMN_KEY	0
#define PAIMON_COLUMN_KIND	1
#define PAIMON_COLUMN_FIRST 2

/* "Unit number" in checksums: of a column's head, and (with its offset in the column's body) of a slice. */
#define PAIMON_PART_HEAD	0xFFFFFFFFu
#define PAIMON_PART_SLICE	0x80000000u

/* ---------- growing output buffer ---------- */

typedef struct PaimonBuf
{
	const PaimonAllocator *a;
	uint8_t    *data;
	size_t		len;
	size_t		cap;
	PaimonResult err;			/* sticky */
} PaimonBuf;

extern bool paimon_buf_grow(PaimonBuf *b, size_t need);
extern void paimon_buf_put(PaimonBuf *b, const void *data, size_t len);

/* Makes room for `need` more bytes; false (and b->err set) if there is none. */
static inline bool
paimon_buf_reserve(PaimonBuf *b, size_t need)
{
	if (b->err == PAIMON_OK && b->cap - b->len >= need)
		return true;
	return paimon_buf_grow(b, need);
}

static inline void
paimon_buf_put_u8(PaimonBuf *b, uint8_t v)
{
	if (paimon_buf_reserve(b, 1))
		b->data[b->len++] = v;
}

static inline void
paimon_buf_put_u32(PaimonBuf *b, uint32_t v)
{
	if (paimon_buf_reserve(b, 4))
	{
		paimon_put_u32(b->data + b->len, v);
		b->len += 4;
	}
}

static inline void
paimon_buf_put_u64(PaimonBuf *b, uint64_t v)
{
	if (paimon_buf_reserve(b, 8))
	{
		paimon_put_u64(b->data + b->len, v);
		b->len += 8;
	}
}

/* ---------- what every reader of a group needs ---------- */

typedef struct PaimonGroupContext
{
	PaimonGroupSource src;
	PaimonAllocator a;
	uint32_t	id_crc;			/* checksum of the group's identity */
	uint32_t	nrows;
	struct PaimonGroup *group;
} PaimonGroupContext;

extern uint32_t paimon_group_id_crc(const PaimonGroupId *id);
extern uint32_t paimon_part_crc(uint32_t id_crc, uint32_t column, uint32_t part, const void *data, size_t len);

/*
 * All checksum comparisons go through here: a fuzzer that had to guess
 * checksums would never get behind them.
 */
static inline bool
paimon_crc_matches(uint32_t computed, uint32_t stored)
{
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
	(void) computed;
	(void) stored;
	return true;
#else
	return computed == stored;
#endif
}

/* ---------- reading cursor over a column's head: never moves past its end ---------- */

typedef struct PaimonCursor
{
	const uint8_t *p;
	const uint8_t *end;

	/* the column's body, whose parts are described in the head in the order in which they lie in it */
	PaimonGroupContext *g;
	uint32_t	column;
	uint32_t	body_off;		/* in the group */
	uint32_t	body_len;
	uint32_t	body_pos;		/* described so far */
} PaimonCursor;

/* The next n bytes, or NULL if there are not so many. */
static inline const uint8_t *
paimon_cursor_take(PaimonCursor *c, uint64_t n)
{
	const uint8_t *p = c->p;

	if (n > (uint64_t) (c->end - c->p))
		return NULL;
	c->p += n;
	return p;
}

/* Is everything of head and body accounted for? */
static inline bool
paimon_cursor_done(const PaimonCursor *c)
{
	return c->p == c->end && c->body_pos == c->body_len;
}

/* ---------- packed numbers (core_column_pack.c) ---------- */

struct PaimonEncoder;

/* Bits that lie in the body, in slices of PAIMON_SLICE_ITEMS numbers, each a whole number of bytes. */
typedef struct PaimonSlices
{
	const uint8_t *crcs;		/* in the head, 4 bytes a slice */
	uint32_t	column;
	uint32_t	off;			/* in the group */
	uint32_t	body_off;		/* in the column's body */
	bool		whole;			/* fetched in one piece */
	const uint8_t *slice[PAIMON_GROUP_MAX_ROWS / PAIMON_SLICE_ITEMS];	/* NULL: not fetched and checked yet */
} PaimonSlices;

/*
 * n numbers: v[i] = base + mul * (((i * slope) >> 16) + r[i]) modulo 2^64,
 * r[i] in `width` bits each.  slope 0: frame of reference; width 0 too: a
 * constant; width 64: plain.
 */
typedef struct PaimonPacked
{
	const uint8_t *bits;		/* in the head; NULL if there are slices */
	PaimonSlices *slices;
	uint32_t	nbytes;
	uint32_t	n;
	uint32_t	width;			/* 0..57 or 64 */
	uint64_t	base;
	uint64_t	mul;
	uint64_t	slope;
} PaimonPacked;

/* How the writer will pack; made by paimon_pack_plan. */
typedef struct PaimonPackPlan
{
	PaimonPacked p;				/* bits not set */
	uint64_t	origin;			/* number that q = (v - origin) / divisor starts from */
	uint64_t	odd_inverse;	/* inverse modulo 2^64 of the divisor's odd part */
	uint32_t	shift;			/* trailing zero bits of the divisor */
	bool		descending;		/* q = (origin - v) / divisor */
	uint64_t	rmin;			/* subtracted from the residuals (modulo 2^64) */
} PaimonPackPlan;

extern void paimon_pack_plan(PaimonPackPlan *plan, const uint64_t *v, uint32_t n, uint64_t min, uint64_t range);
extern void paimon_pack_plan_codes(PaimonPackPlan *plan, uint32_t n, uint64_t max);
extern uint64_t paimon_pack_size(const PaimonPackPlan *plan);
extern void paimon_pack_write(struct PaimonEncoder *e, const PaimonPackPlan *plan, const uint64_t *v);
extern PaimonResult paimon_packed_read(PaimonCursor *c, uint32_t n, PaimonPacked *out);
extern PaimonResult paimon_packed_fetch(PaimonGroupContext *g, const PaimonPacked *p, uint32_t first, uint32_t count);
extern PaimonResult paimon_packed_fetch_all(PaimonGroupContext *g, const PaimonPacked *p);
extern void paimon_packed_unpack(const PaimonPacked *p, uint32_t first, uint32_t count, uint64_t *out);
extern bool paimon_packed_sum(const PaimonPacked *p, uint32_t first, uint32_t count, uint64_t *sum);

static inline uint64_t
paimon_load_le64(const uint8_t *p)
{
	uint64_t	v;

	memcpy(&v, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	return v;
}

/* Numbers first .. first + count - 1 can be read after this; nothing to do where the bits are at hand. */
static inline PaimonResult
paimon_packed_need(PaimonGroupContext *g, const PaimonPacked *p, uint32_t first, uint32_t count)
{
	return p->slices == NULL ? PAIMON_OK : paimon_packed_fetch(g, p, first, count);
}

/* All numbers can be read after this. */
static inline PaimonResult
paimon_packed_need_all(PaimonGroupContext *g, const PaimonPacked *p)
{
	return p->slices == NULL ? PAIMON_OK : paimon_packed_fetch_all(g, p);
}

/* Where the bits of slice s are, and how many bytes may be read from there. */
static inline const uint8_t *
paimon_packed_slice(const PaimonPacked *p, uint32_t s, uint32_t *nbytes)
{
	uint32_t	size = PAIMON_SLICE_ITEMS / 8 * p->width;

	*nbytes = p->nbytes - s * size;
	if (p->slices == NULL)
		return p->bits + (size_t) s * size;
	if (!p->slices->whole && *nbytes > size)
		*nbytes = size;
	return p->slices->slice[s];
}

/* Residual i; never reads past the packed bytes. */
static inline uint64_t
paimon_packed_residual(const PaimonPacked *p, uint32_t i)
{
	uint32_t	nbytes;
	const uint8_t *bits;
	uint64_t	bit;
	uint64_t	byte;
	uint64_t	v = 0;

	if (p->width == 0)
		return 0;
	bits = paimon_packed_slice(p, i / PAIMON_SLICE_ITEMS, &nbytes);
	bit = (uint64_t) (i % PAIMON_SLICE_ITEMS) * p->width;
	byte = bit >> 3;
	if (byte + 8 <= nbytes)
		v = paimon_load_le64(bits + byte);
	else
		for (uint32_t k = 0; byte + k < nbytes; k++)
			v |= (uint64_t) bits[byte + k] << (8 * k);
	if (p->width == 64)
		return v;
	return (v >> (bit & 7)) & ((UINT64_C(1) << p->width) - 1);
}

/* Number i < n, fetched before (paimon_packed_need). */
static inline uint64_t
paimon_packed_get(const PaimonPacked *p, uint32_t i)
{
	return p->base + p->mul * (((i * p->slope) >> 16) + paimon_packed_residual(p, i));
}

/* ---------- byte sequences (core_column_seq.c) ---------- */

typedef struct PaimonUnit
{
	uint32_t	first;			/* first item */
	uint32_t	count;			/* items */
	uint32_t	raw_len;
	uint32_t	stored_len;		/* == raw_len: not compressed */
	uint32_t	crc;
	uint32_t	off;			/* in the group */
	const uint8_t *raw;			/* once opened to be kept */
	bool		seen;			/* was expanded into the room before */
	uint32_t	singles;		/* items given one by one */
	uint64_t   *words;			/* items as words, once made (value columns) */
	uint32_t   *offsets;		/* count + 1 offsets in raw, once made (keys) */
} PaimonUnit;

typedef struct PaimonSeq
{
	uint32_t	column;
	uint32_t	nitems;
	uint32_t	nunits;
	uint32_t	off;			/* of the units' bytes in the group */
	uint32_t	len;
	PaimonPacked lens;
	PaimonUnit *units;
	const uint8_t *all;			/* bytes of all units, once fetched in one piece */
} PaimonSeq;

/* How items of a sequence become words. */
typedef enum PaimonItemForm
{
	PAIMON_ITEM_WORD,			/* 8 little-endian bytes: the word itself */
	PAIMON_ITEM_FIXED,			/* pointer to an aligned copy */
	PAIMON_ITEM_VARLENA			/* pointer to a varlena */
} PaimonItemForm;

extern PaimonResult paimon_seq_read(PaimonCursor *c, uint32_t nitems, PaimonSeq *out);
extern PaimonResult paimon_seq_prefetch(PaimonGroupContext *g, PaimonSeq *s);
extern PaimonResult paimon_seq_open_unit(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit);
extern uint32_t paimon_seq_find_unit(const PaimonSeq *s, uint32_t item);
extern PaimonResult paimon_seq_words(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width,
									 uint64_t *out);
extern PaimonResult paimon_seq_word(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width,
									uint32_t item, uint64_t *out);
extern PaimonResult paimon_seq_range(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width,
									 uint32_t first, uint32_t count, uint64_t *out);
extern PaimonResult paimon_seq_unit_offsets(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit);

/* ---------- encoding of columns (core_column_encode.c, core_column_dict.c, core_column_seq_write.c) ---------- */

typedef struct PaimonEncoder
{
	const PaimonAllocator *a;
	uint32_t	nrows;
	int			zstd_level;
	uint32_t	id_crc;
	PaimonBuf	out;			/* bodies of the columns; the group, at last */
	PaimonBuf	heads;			/* their heads */
	PaimonBuf	head;			/* head of the column at hand */
	uint32_t	column;			/* the column at hand */
	size_t		body_start;		/* of it in out */
	PaimonBuf	raw;			/* unit being gathered */
	PaimonBuf	wide;			/* words of a column as bytes */
	PaimonBuf	sample;			/* a sample compressed to see whether it pays */
	uint64_t   *words;			/* scratch, one for each row */
	uint64_t   *words2;
	uint64_t   *key_words;		/* the keys' numbers; NULL if they are not KEY_WORDS */
	PaimonBytes *items;
	PaimonBytes *dict;			/* PAIMON_DICT_MAX */
	uint64_t   *dict_words;		/* PAIMON_DICT_MAX */
	uint16_t   *table;			/* hash table of a dictionary: code + 1 */
} PaimonEncoder;

/* A directory entry in memory. */
typedef struct PaimonColumnEntry
{
	uint8_t		phys;
	uint8_t		encoding;
	uint16_t	width;
	uint32_t	head_off;		/* in the group */
	uint32_t	head_len;
	uint32_t	head_crc;
	uint32_t	body_off;		/* in the group */
	uint32_t	body_len;
	uint32_t	null_count;
	int64_t		min;
	int64_t		max;
} PaimonColumnEntry;

extern PaimonResult paimon_column_encode(PaimonEncoder *e, uint32_t column, const PaimonColumnDesc *desc,
										 const uint64_t *values, const bool *nulls, PaimonColumnEntry *entry);
extern PaimonResult paimon_column_encode_kinds(PaimonEncoder *e, const uint8_t *kinds, PaimonColumnEntry *entry);
extern PaimonResult paimon_column_encode_keys(PaimonEncoder *e, const PaimonBytes *keys, PaimonColumnEntry *entry);
extern void paimon_column_begin(PaimonEncoder *e, uint32_t column, PaimonColumnEntry *entry);
extern PaimonResult paimon_column_end(PaimonEncoder *e, PaimonColumnEntry *entry);

extern uint32_t paimon_dict_words(PaimonEncoder *e, const uint64_t *v, uint32_t n, uint64_t *codes);
extern uint32_t paimon_dict_bytes(PaimonEncoder *e, const PaimonBytes *v, uint32_t n, uint64_t *codes);

extern PaimonResult paimon_seq_write(PaimonEncoder *e, const PaimonBytes *items, uint32_t n, uint32_t unit_raw,
									 bool keep_equal_together, uint32_t *starts, uint32_t *nstarts);
extern PaimonResult paimon_zstd_try(PaimonEncoder *e, const uint8_t *raw, uint32_t len, PaimonBuf *out, bool *paid);
extern PaimonResult paimon_zstd_estimate(PaimonEncoder *e, const uint8_t *raw, uint32_t len, uint32_t *compressed);

/* ---------- reading of columns (core_column_decode.c) ---------- */

typedef struct PaimonColumn
{
	PaimonColumnEntry entry;
	uint32_t	number;			/* PAIMON_COLUMN_… */
	bool		loaded;
	uint32_t	nitems;			/* rows that are not null */
	const uint8_t *bitmap;		/* nulls, 1 bit a row, set = null; NULL if none or all are null */
	uint16_t   *rank;			/* items before each 64 rows */
	PaimonPacked packed;		/* numbers or codes */
	uint32_t	ndict;
	PaimonPacked dict_packed;	/* dictionary of words */
	PaimonSeq	seq;			/* items, or dictionary of byte strings */
	uint64_t   *dict;			/* whole dictionary as words, once decoded */
	const uint64_t *values;		/* whole column, once decoded */
	const bool *nulls;
} PaimonColumn;

extern PaimonResult paimon_column_load_head(PaimonGroupContext *g, PaimonColumn *c, PaimonCursor *out);
extern PaimonResult paimon_column_values(PaimonGroupContext *g, PaimonColumn *c);
extern PaimonResult paimon_column_range(PaimonGroupContext *g, PaimonColumn *c, uint32_t first, uint32_t count,
										uint64_t *values, bool *nulls);
extern PaimonResult paimon_column_value(PaimonGroupContext *g, PaimonColumn *c, uint32_t row, uint64_t *value,
										bool *isnull);

/* ---------- the key column (core_group_keys_encode.c, core_group_keys.c) ---------- */

/* In place of the common length, where lengths differ. */
#define PAIMON_KEY_LENGTHS_DIFFER	0xFFFFFFFFu

/* The first `len` <= 8 bytes as a big-endian number; bytes beyond `have` count as 0. */
static inline uint64_t
paimon_key_word(const uint8_t *p, uint32_t have, uint32_t len)
{
	return len == 0 ? 0 : paimon_key_prefix(p, have < len ? have : len) >> (64 - 8 * len);
}

typedef struct PaimonKeyColumn
{
	bool		loaded;
	uint32_t	fixed_len;		/* 0: lengths differ (or all keys are empty) */
	PaimonBytes prefix;			/* shared by all keys */
	uint32_t	suffix_len;		/* KEY_WORDS */
	PaimonPacked packed;		/* KEY_WORDS */
	uint32_t	nfirsts;		/* KEY_WORDS in slices: first number of each slice but the first, 8 bytes each */
	const uint8_t *firsts;
	PaimonSeq	seq;			/* KEY_BYTES: suffixes */
	PaimonBytes *separators;	/* KEY_BYTES: last suffix of unit - 1 < separators[unit] <= first of unit; [0] unused */
	PaimonBytes *keys;			/* whole column, once decoded */
	uint64_t   *prefixes;
} PaimonKeyColumn;

struct PaimonGroup
{
	PaimonGroupContext ctx;
	uint32_t	ncolumns;
	const uint8_t *directory;
	PaimonColumn **columns;		/* ncolumns + 2, made when first touched */
	PaimonKeyColumn key;
	uint8_t    *kinds;			/* once decoded and not constant */
};

extern PaimonResult paimon_group_key_packed(PaimonGroup *g, const PaimonPacked **out);
extern PaimonResult paimon_group_check_keys(PaimonGroup *g);
extern PaimonResult paimon_group_column(PaimonGroup *g, uint32_t number, PaimonColumn **out);

#endif							/* PAIMON_CORE_COLUMN_H */
