/*-------------------------------------------------------------------------
 *
 * options.h
 *	  Options of paimon tables: what the rest of the extension reads at run
 *	  time, and what DDL uses to check and store them.
 *
 * All options live in pg_class.reloptions of the table, in the dashed form of
 * their names.  They are declared once, in options_table.c.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_OPTIONS_H
#define PAIMON_OPTIONS_H

#include "postgres.h"

#include "access/attnum.h"
#include "nodes/pg_list.h"
#include "utils/relcache.h"

typedef enum PaimonMergeEngine
{
	PAIMON_ENGINE_DEDUPLICATE = 0,
	PAIMON_ENGINE_PARTIAL_UPDATE,
	PAIMON_ENGINE_AGGREGATION,
	PAIMON_ENGINE_FIRST_ROW
} PaimonMergeEngine;

typedef enum PaimonCompression
{
	PAIMON_COMPRESSION_NONE = 0,
	PAIMON_COMPRESSION_ZSTD
} PaimonCompression;

typedef enum PaimonBucketFunction
{
	PAIMON_BUCKET_FUNCTION_DEFAULT = 0,
	PAIMON_BUCKET_FUNCTION_MOD,
	PAIMON_BUCKET_FUNCTION_HIVE
} PaimonBucketFunction;

#define PAIMON_MAX_BUCKETS		32767
#define PAIMON_MAX_BUCKET_KEYS	32	/* = INDEX_MAX_KEYS of a stock server */

/* Values of every option of one table, defaults filled in. */
typedef struct PaimonOptions
{
	int32		bucket;			/* number of buckets, 1 .. PAIMON_MAX_BUCKETS */
	PaimonBucketFunction bucket_function;

	/*
	 * Columns that are hashed, in the order of `bucket-key`.  None means: the
	 * option is not set, so the whole primary key (in key order) is hashed,
	 * and a table without a key has nothing to hash.
	 */
	int			nbucketkey;
	AttrNumber	bucketkey[PAIMON_MAX_BUCKET_KEYS];

	PaimonMergeEngine merge_engine;

	int64		write_buffer_size;	/* bytes; 64 MB */
	int64		write_buffer_spill_size;	/* bytes; 256 MB */
	int64		target_file_size;	/* bytes; 128 MB */
	int64		target_file_row_num;	/* rows; PG_INT64_MAX = no limit */
	PaimonCompression compression;	/* zstd */
	int			zstd_level;		/* 1 .. 22; 1 */
	int64		snapshot_interval_ms;	/* -1 = off */
} PaimonOptions;

/* ---- run time ---- */

/* Fill *out with the defaults. */
extern void paimon_options_defaults(PaimonOptions *out);

/*
 * Options of an open paimon table (not of its index), from a cache.  Never
 * raises an error for what it finds in the catalog: a stored option it does
 * not understand counts as not set.  The result is valid until the next call
 * that may process invalidations (opening a relation, taking a lock, running
 * SQL): copy the struct to keep it.
 */
extern const PaimonOptions *paimon_options_get(Relation rel);

/* ---- DDL (see ddl/README.md) ---- */

/*
 * What a table looks like to the checks across options.  `keycols` is a list
 * of String: the primary key's columns; NIL with key_known = true means there
 * is no key; with key_known = false a key may still come (it is checked then).
 */
typedef struct PaimonTableShape
{
	const char *relname;
	List	   *columns;		/* list of String */
	List	   *keycols;
	bool		key_known;
} PaimonTableShape;

/* One option as stored: dashed name and value text. */
typedef struct PaimonOptionItem
{
	char	   *name;
	char	   *value;
} PaimonOptionItem;

/*
 * Is this the name of one of core's own storage parameters (fillfactor,
 * autovacuum_…, toast_tuple_target, parallel_workers, user_catalog_table,
 * vacuum_…)?  Everything else on a paimon table is ours.
 */
extern bool paimon_option_is_core(const char *name);

/*
 * The dashed, canonical form of a name (aliases and underscore forms mapped);
 * a palloc'd copy of the name itself when it is not known.
 */
extern char *paimon_option_canonical(const char *name);

/*
 * Check one option by itself: known, implemented, value in range.  Returns
 * the item to store.  Errors name relation, option, value and what is allowed.
 * `value` NULL means a bare name, that is "true".
 */
extern PaimonOptionItem *paimon_option_check(const char *relname, const char *name,
											 const char *value);

/*
 * Check a RESET name: known names only (any state); returns its canonical form.
 */
extern char *paimon_option_check_name(const char *relname, const char *name);

/*
 * Check a whole list of PaimonOptionItem against the table: columns named by
 * options exist, bucket-key within the key, engine against key, and so on.
 */
extern void paimon_options_check_shape(const PaimonTableShape *shape, List *items);

/*
 * May this option be changed (set to something else, or reset) while the
 * table holds rows?
 */
extern bool paimon_option_fixed_when_filled(const char *name);

/* The effective value, for comparing old and new: default if not in items. */
extern const char *paimon_option_effective(List *items, const char *name);

/*
 * Columns an option item names (list of palloc'd char *), for refusing DROP
 * COLUMN and following RENAME COLUMN.
 */
extern List *paimon_option_columns(const PaimonOptionItem *item);
extern void paimon_option_rename_column(PaimonOptionItem *item, const char *oldname,
										const char *newname);

#endif							/* PAIMON_OPTIONS_H */
