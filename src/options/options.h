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

	/* compaction; 0 = off unless stated */
	bool		write_only;		/* only on request */
	bool		compaction_async;	/* false: commits wait for it; true */
	bool		force_up_level0;
	bool		force_rewrite_all;	/* a full compaction rewrites every file */
	int32		num_levels;		/* level 0 included; 3 */
	int32		compaction_trigger; /* runs; 5 */
	int32		stop_trigger;	/* runs; 10; PG_INT32_MAX = writers never wait */
	int32		max_size_amplification; /* percent; 50 */
	int32		size_ratio;		/* percent; 1 */
	int32		offpeak_start;	/* hour; -1 = no window */
	int32		offpeak_end;
	int32		offpeak_ratio;	/* percent */
	int64		small_file_ratio;	/* in millionths; 700000 */
	int64		optimization_interval_ms;	/* -1 = off */
	int64		total_size_threshold;	/* bytes */
	int64		incremental_size_threshold; /* bytes */
	int64		full_delta_commits;
	int64		record_expire_time_ms;	/* -1 = off */
	AttrNumber	record_time_field;	/* 0 = none */

	/* retention of snapshots */
	bool		retention_given;	/* the table's owner has set one of these */
	int64		num_retained_min;	/* 10 */
	int64		num_retained_max;	/* PG_INT64_MAX = no limit */
	int64		time_retained_ms;	/* 1 h */
	int64		expire_limit;	/* 50 */
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

/* ---- which relations are ours (options_ident.c) ---- */

/* OIDs of our access methods; InvalidOid where the extension does not exist. */
extern Oid	paimon_table_am_oid(void);
extern Oid	paimon_key_am_oid(void);

/*
 * Is this a paimon table or materialized view, or a partitioned table whose
 * partitions are?  False if it does not exist.
 */
extern bool paimon_is_table(Oid relid);

/* The table that the running ALTER TABLE makes one of heap: it needs what a heap table needs.  Else InvalidOid. */
extern Oid	paimon_becomes_heap;

/* ---- DDL (see ddl/README.md) ---- */

/* Option that marks a partitioned table as ours, and its value. */
#define PAIMON_MARK_OPTION	"table-am"
#define PAIMON_MARK_VALUE	"paimon"

/* What a table looks like to the checks across options; lists are of char *. */
typedef struct PaimonTableShape
{
	const char *relname;
	bool		partitioned;
	List	   *columns;
	List	   *keycols;		/* NIL: no primary key (yet) */
} PaimonTableShape;

/* One option as stored: dashed name and value text. */
typedef struct PaimonOptionItem
{
	char	   *name;
	char	   *value;
} PaimonOptionItem;

/*
 * Is this the name of one of core's own storage parameters?  Everything else
 * on a paimon table is ours.
 */
extern bool paimon_option_is_core(const char *name);

/* Is this the name of an option in our table, in whatever state and spelling? */
extern bool paimon_option_is_known(const char *name);

/*
 * Check one option by itself: known, implemented, value in range.  Returns the
 * item to store.  `value` NULL means a bare name, that is "true".  Errors name
 * relation, option and value and say what is allowed.
 */
extern PaimonOptionItem *paimon_option_check(const char *relname, const char *name, const char *value);

/* The stored form of a name to be reset.  Unknown names are errors unless `stored` (list of items) has one. */
extern char *paimon_option_check_name(const char *relname, const char *name, List *stored);

/*
 * Check all options of a table against it: columns they name exist, the bucket
 * key is part of the primary key, options fit this kind of table.
 */
extern void paimon_options_check_shape(const PaimonTableShape *shape, List *items);

/* May the option not change any more once the table holds rows? */
extern bool paimon_option_fixed_when_filled(const char *name);

/* Do two lists of items give an option the same meaning (defaults, spelling of values)? */
extern bool paimon_option_same(List *a, List *b, const char *name);

/* Columns that an option names (list of char *); empty for most. */
extern List *paimon_option_columns(const PaimonOptionItem *item);

/* Take a column out of an option's list of columns, which may become empty. */
extern void paimon_option_drop_column(PaimonOptionItem *item, const char *name);

/* Follow the renaming of a column; returns whether the item changed. */
extern bool paimon_option_rename_column(PaimonOptionItem *item, const char *oldname, const char *newname);

/* Find an item by its stored name; NULL if there is none. */
extern PaimonOptionItem *paimon_option_item(List *items, const char *name);

/* Split a pg_class.reloptions datum into items; core's own options are left out, or put into *core if wanted. */
extern List *paimon_options_untransform(Datum reloptions, bool isnull, List **core);

#endif							/* PAIMON_OPTIONS_H */
