/*-------------------------------------------------------------------------
 *
 * core_group.h
 *	  Row groups: the columnar, checksummed unit of a run file.
 *
 * A group holds up to PAIMON_GROUP_MAX_ROWS rows sorted by key: the key
 * column (encoded keys, see core_key.h), the kind column (one byte a row: see
 * PaimonRowKind) and the value columns.  Each column is encoded by itself
 * (constant, dictionary, frame of reference with common divisor and bit packing,
 * plain; nulls as a bitmap; zstd in units of about 8 kB raw where it pays), so
 * that one row of one column can be read without decoding the others, and
 * a single text value by opening one small unit.
 *
 * A "value" is a 64-bit word as the server's Datum: the value itself for
 * PAIMON_PHYS_INT, a pointer for the others.  Pointers given by the decoder
 * stay valid as long as the allocator's memory that the reader was opened with.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_GROUP_H
#define PAIMON_CORE_GROUP_H

#include "core/core.h"

#define PAIMON_GROUP_MAX_ROWS	8192	/* hard limit; row + 1 must fit a ctid's offset */
#define PAIMON_GROUP_MAX_COLUMNS 1664	/* of value columns */

typedef enum PaimonPhys
{
	PAIMON_PHYS_INT = 1,		/* the 64-bit word itself (pass-by-value types) */
	PAIMON_PHYS_FIXED = 2,		/* pointer to `width` bytes (uuid, interval, …) */
	PAIMON_PHYS_VAR = 3,		/* pointer to a varlena; header stripped when stored, rebuilt when read:
								 * 1-byte header up to 126 bytes of payload, else 4-byte header
								 * aligned to 4 */
	PAIMON_PHYS_SCALED = 4		/* a numeric of fixed scale: the word is the unscaled int64 (the caller
								 * converts); `width` is the scale */
} PaimonPhys;

/* Row kinds, with Paimon's byte values in the low bits. */
typedef enum PaimonRowKind
{
	PAIMON_KIND_INSERT = 0,		/* +I: merged by the engine */
	PAIMON_KIND_UPDATE_BEFORE = 1,	/* -U */
	PAIMON_KIND_UPDATE_AFTER = 2,	/* +U from rowkind.field */
	PAIMON_KIND_DELETE = 3,		/* -D from rowkind.field */
	PAIMON_KIND_REPLACE = 4,	/* UPDATE statement: the row is exactly this */
	PAIMON_KIND_REMOVE = 5		/* DELETE statement: the row is gone */
} PaimonRowKind;

typedef struct PaimonColumnDesc
{
	uint8_t		phys;			/* PaimonPhys */
	uint16_t	width;			/* FIXED: bytes; SCALED: scale; else 0 */
} PaimonColumnDesc;

/* Identity of a group; part of what its checksum covers. */
typedef struct PaimonGroupId
{
	uint64_t	storage_id;
	uint64_t	file_no;
	uint32_t	group_no;
	uint32_t	bucket;
} PaimonGroupId;

/*
 * Input of the encoder: rows already in key order.
 *
 * keys[i]: encoded key.  kinds[i]: PaimonRowKind.  values[c][i], nulls[c][i]:
 * column c of row i; nulls[c] may be NULL for "no nulls", and values[c] for
 * "nothing but nulls".
 */
typedef struct PaimonGroupInput
{
	PaimonGroupId id;
	uint32_t	nrows;
	uint32_t	ncolumns;
	const PaimonColumnDesc *columns;
	const PaimonBytes *keys;
	const uint8_t *kinds;
	const uint64_t *const *values;
	const bool *const *nulls;
	int			zstd_level;		/* 0 = no zstd */
} PaimonGroupInput;

/*
 * Encodes a group into memory of the allocator, which also gives scratch memory: about 0.5 MB, more for large values.
 * VAR values are plain varlenas (neither out of line nor compressed); data of keys is never NULL, also when they are empty.
 *
 * PAIMON_CORRUPT: the input breaks a limit or a rule (row and column counts, unsorted keys, unknown kind, varlena not
 * plain): a bug of the caller.  PAIMON_NO_SPACE: the group would exceed 4 GB, or its keys 1 GB; the caller should cut groups
 * by bytes long before that.
 */
extern PaimonResult paimon_group_encode(const PaimonGroupInput *in, const PaimonAllocator *a,
										uint8_t **out, uint32_t *outlen);

/* An open group; all decoding is lazy and column by column. */
typedef struct PaimonGroup PaimonGroup;

/*
 * Room for the raw bytes of a compressed unit of which a few values are wanted.  The caller's, for all groups of a thread; `unit` is the core's: NULL, or
 * whose bytes are there now.
 */
typedef struct PaimonUnitRoom
{
	uint8_t    *data;
	uint32_t	size;
	const void *unit;
} PaimonUnitRoom;

/*
 * Where an open group gets its bytes.  fetch returns bytes [off, off + len) of the group in one piece, valid as long as the
 * allocator's memory; the server copies them from the pages that hold them, so that a point lookup touches only the pages of
 * the units it needs.  fetch may throw (ereport) but never returns NULL.  peek (NULL: fetch does) is the same for bytes that are looked at only
 * until the next call of either: compressed ones, of which nothing need be kept.  room (NULL: none) is for what such bytes are expanded to, the
 * first time that somebody asks for some of it.
 */
typedef struct PaimonGroupSource
{
	uint32_t	len;
	const uint8_t *(*fetch) (void *arg, uint32_t off, uint32_t len);
	void	   *arg;
	const uint8_t *(*peek) (void *arg, uint32_t off, uint32_t len);
	PaimonUnitRoom *room;
} PaimonGroupSource;

/*
 * Opens a group.  src->len must be exactly the encoded length.  `columns` describes the table's columns now: the stored
 * ones must be a prefix of them in number and agree in kind (VAR and SCALED stand for each other); with columns NULL that is
 * not checked.  Rows and columns asked for later must be in range (a row that is not gives PAIMON_CORRUPT).
 * Checks magic, version, directory bounds and the header's checksum, which covers `id`; each column chunk (and
 * each separately compressed unit) has a checksum of its own, checked when it is first touched.
 */
extern PaimonResult paimon_group_open(const PaimonGroupSource *src, const PaimonGroupId *id,
									  const PaimonColumnDesc *columns, uint32_t ncolumns,
									  const PaimonAllocator *a, PaimonGroup **out);

extern uint32_t paimon_group_nrows(const PaimonGroup *g);

/* Number of value columns stored: fewer than the table has now when columns were added later. */
extern uint32_t paimon_group_ncolumns(const PaimonGroup *g);

/* The description of a column as stored (a numeric column may be SCALED in one group and VAR in another). */
extern PaimonColumnDesc paimon_group_column_desc(const PaimonGroup *g, uint32_t column);

/*
 * Per-column statistics: null count always; min and max words for INT and SCALED columns with at least one value, compared as
 * signed 64-bit (has_minmax false otherwise).
 */
typedef struct PaimonColumnStats
{
	uint32_t	null_count;
	bool		has_minmax;
	int64_t		min;
	int64_t		max;
} PaimonColumnStats;

extern void paimon_group_column_stats(const PaimonGroup *g, uint32_t column, PaimonColumnStats *out);

/* Whole columns.  Decoded once; later calls return the same arrays.  *nulls is NULL if there are none. */
extern PaimonResult paimon_group_values(PaimonGroup *g, uint32_t column, const uint64_t **values, const bool **nulls);

/* One value, without decoding the whole column where the encoding allows it. */
extern PaimonResult paimon_group_value(PaimonGroup *g, uint32_t column, uint32_t row, uint64_t *value, bool *isnull);

/*
 * Rows first .. first + count - 1 into values[0 .. count), without decoding the rest where the encoding allows it (units of byte sequences are opened whole).
 * nulls[0 .. count) is filled if the column has nulls in any row (see its statistics), else not touched; nulls have the value 0.
 */
extern PaimonResult paimon_group_range(PaimonGroup *g, uint32_t column, uint32_t first, uint32_t count, uint64_t *values,
									   bool *nulls);

/*
 * Keys.  Whole column: keys[i] points into memory of the allocator, prefixes[i] = paimon_key_prefix(keys[i]).
 * The key length is the same for all rows when *fixed_len > 0.
 */
extern PaimonResult paimon_group_keys(PaimonGroup *g, const PaimonBytes **keys, const uint64_t **prefixes, uint32_t *fixed_len);

/*
 * If the keys are packed numbers of one length of at most 8 bytes: their prefixes, which then are the keys, for a third of the work.  Else *prefixes is
 * NULL.  Both calls give the same memory.
 */
extern PaimonResult paimon_group_prefixes(PaimonGroup *g, const uint64_t **prefixes, uint32_t *fixed_len);

/* One key, into memory of the allocator or of the group's data. */
extern PaimonResult paimon_group_key(PaimonGroup *g, uint32_t row, PaimonBytes *key);

/* The same, but a key that has to be put together goes into room[0 .. size) if it fits. */
extern PaimonResult paimon_group_key_into(PaimonGroup *g, uint32_t row, uint8_t *room, uint32_t size, PaimonBytes *key);

/*
 * First row whose key is >= the given one (nrows if none), without decoding the whole key column; *equal says whether that row has
 * exactly this key.
 */
extern PaimonResult paimon_group_seek(PaimonGroup *g, const uint8_t *key, uint32_t len, uint32_t *row, bool *equal);

/* Kinds: *kinds is NULL when all rows have kind *constant. */
extern PaimonResult paimon_group_kinds(PaimonGroup *g, const uint8_t **kinds, uint8_t *constant);

/* Kind of one row, without decoding them all. */
extern PaimonResult paimon_group_kind(PaimonGroup *g, uint32_t row, uint8_t *kind);

/* Checks every checksum and decodes everything: for verify() and fuzzing. */
extern PaimonResult paimon_group_check(PaimonGroup *g);

#endif							/* PAIMON_CORE_GROUP_H */
