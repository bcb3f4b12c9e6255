/*-------------------------------------------------------------------------
 *
 * snapshot_functions.c
 *	  paimon.files, paimon.buckets, paimon.levels, paimon.snapshots: the manifest of one table, or of all partitions of one, for its readers.
 *
 * They show what the transaction's snapshot sees.  Bounds of keys are values of the table: so they ask for SELECT on all columns, and
 * refuse tables on which row security is active for the caller.  Both are checked before any lock is taken; as in a query, only for the table
 * that was named, not for its partitions.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "catalog/manifest.h"
#include "levels/levels.h"
#include "memtable/table.h"
#include "options/options.h"
#include "paimon_am.h"
#include "row/row.h"
#include "snapshot/snapshot.h"

PG_FUNCTION_INFO_V1(paimon_files);
PG_FUNCTION_INFO_V1(paimon_buckets);
PG_FUNCTION_INFO_V1(paimon_levels);
PG_FUNCTION_INFO_V1(paimon_snapshots);

/* Columns of the results, in the order of sql/parts/30_views.sql. */
enum
{
	FILES_PARTITION = 0,
	FILES_BUCKET,
	FILES_FILE_PATH,
	FILES_FILE_FORMAT,
	FILES_SCHEMA_ID,
	FILES_LEVEL,
	FILES_RECORD_COUNT,
	FILES_FILE_SIZE,
	FILES_MIN_KEY,
	FILES_MAX_KEY,
	FILES_NULL_VALUE_COUNTS,
	FILES_MIN_VALUE_STATS,
	FILES_MAX_VALUE_STATS,
	FILES_MIN_SEQUENCE_NUMBER,
	FILES_MAX_SEQUENCE_NUMBER,
	FILES_CREATION_TIME,
	FILES_DELETE_ROW_COUNT,
	FILES_FILE_SOURCE,
	FILES_FIRST_ROW_ID,
	FILES_WRITE_COLS,
	FILES_RELATION,
	FILES_COLUMNS
};

enum
{
	BUCKETS_PARTITION = 0,
	BUCKETS_BUCKET,
	BUCKETS_RECORD_COUNT,
	BUCKETS_FILE_SIZE,
	BUCKETS_FILE_COUNT,
	BUCKETS_LAST_UPDATE_TIME,
	BUCKETS_RELATION,
	BUCKETS_COLUMNS
};

enum
{
	LEVELS_BUCKET = 0,
	LEVELS_LEVEL,
	LEVELS_RUNS,
	LEVELS_FILES,
	LEVELS_RECORD_COUNT,
	LEVELS_DELETE_COUNT,
	LEVELS_FILE_SIZE,
	LEVELS_MIN_KEY,
	LEVELS_MAX_KEY,
	LEVELS_RELATION,
	LEVELS_COLUMNS
};

enum
{
	SNAPSHOTS_ID = 0,
	SNAPSHOTS_COMMIT_KIND,
	SNAPSHOTS_COMMIT_TIME,
	SNAPSHOTS_TOTAL_RECORD_COUNT,
	SNAPSHOTS_DELTA_RECORD_COUNT,
	SNAPSHOTS_CHANGELOG_RECORD_COUNT,
	SNAPSHOTS_WATERMARK,
	SNAPSHOTS_RELATION,
	SNAPSHOTS_COLUMNS
};

/* May the caller know the table's values? */
static void
check_may_read(Oid relid, const char *relname)
{
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ALL) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)), relname);
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of table \"%s\" forbids to show its files", relname),
				 errdetail("Bounds of keys and numbers of rows tell about rows that policies may hide.")));
}

/* Checks everything and opens the table. */
static Relation
open_table(Oid relid)
{
	char	   *relname = get_rel_name(relid);
	Relation	rel;

	paimon_require_preload();
	if (relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table using access method paimon", relname),
				 get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ? errhint("Name a partition that is one.") : 0));
	check_may_read(relid, relname);

	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s\" does not exist", relname),
				 errdetail("It was dropped concurrently.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read temporary table \"%s\" of another session", relname)));
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("access method of table \"%s\" was changed concurrently", relname)));
	return rel;
}

/* One table of those that a call shows. */
typedef struct Shown
{
	ReturnSetInfo *rsinfo;
	Relation	rel;
	PaimonTable *table;
	Datum		partition;		/* its bound as text */
	bool		nopartition;
} Shown;

/* The table's partition bound as text, or NULL. */
static Datum
partition_text(Oid relid, bool *isnull)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Datum		bound;
	Datum		text = (Datum) 0;

	*isnull = true;
	if (!HeapTupleIsValid(tuple))
		return text;
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, isnull);
	if (!*isnull)
		text = DirectFunctionCall2(pg_get_expr, bound, ObjectIdGetDatum(relid));
	ReleaseSysCache(tuple);
	return text;
}

static void
show_one(ReturnSetInfo *rsinfo, Relation rel, void (*put) (const Shown *))
{
	Shown		shown;

	CHECK_FOR_INTERRUPTS();
	shown.rsinfo = rsinfo;
	shown.rel = rel;
	shown.table = paimon_table_get(rel, false);
	if (shown.table->storage_id == 0)
		return;
	shown.partition = partition_text(RelationGetRelid(rel), &shown.nopartition);
	put(&shown);
}

/* Puts the rows of a table, or of every partition that is ours. */
static Datum
show(FunctionCallInfo fcinfo, void (*put) (const Shown *))
{
	Relation	rel = open_table(PG_GETARG_OID(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		show_one(rsinfo, rel, put);
	else
	{
		ListCell   *lc;

		foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
		{
			Relation	leaf;

			if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_RELATION || !paimon_is_table(lfirst_oid(lc)))
				continue;
			leaf = table_open(lfirst_oid(lc), NoLock);
			show_one(rsinfo, leaf, put);
			table_close(leaf, AccessShareLock);
		}
	}
	table_close(rel, AccessShareLock);
	return (Datum) 0;
}

/* A bound of keys for people: the values, or the bytes if it is cut off. */
static Datum
bound_text(const PaimonRowDesc *desc, bytea *bound, bool *isnull)
{
	uint32		len = VARSIZE_ANY_EXHDR(bound);
	char	   *text;

	*isnull = len == 0;
	if (*isnull)
		return (Datum) 0;
	text = paimon_key_describe_bound(desc, (const uint8 *) VARDATA_ANY(bound), len);
	if (text == NULL)
	{
		text = palloc(2 * len + 3);
		text[0] = '\\';
		text[1] = 'x';
		text[2 + hex_encode(VARDATA_ANY(bound), len, text + 2)] = '\0';
	}
	return CStringGetTextDatum(text);
}

static void
put_file(const Shown *shown, const PaimonFileRow *file)
{
	const PaimonRowDesc *desc = shown->table->desc;
	PaimonValueStats stats;
	Datum		values[FILES_COLUMNS] = {0};
	bool		nulls[FILES_COLUMNS];

	paimon_value_stats(shown->rel, shown->table, file, &stats);
	memset(nulls, false, sizeof(nulls));
	values[FILES_PARTITION] = shown->partition;
	nulls[FILES_PARTITION] = shown->nopartition;
	values[FILES_BUCKET] = Int32GetDatum(file->bucket);
	values[FILES_FILE_PATH] = CStringGetTextDatum(psprintf("data-" UINT64_FORMAT, file->file_no));
	values[FILES_FILE_FORMAT] = CStringGetTextDatum("paimon");
	nulls[FILES_SCHEMA_ID] = true;
	values[FILES_LEVEL] = Int32GetDatum(file->level);
	values[FILES_RECORD_COUNT] = Int64GetDatum(file->row_count);
	values[FILES_FILE_SIZE] = Int64GetDatum(file->bytes);
	values[FILES_MIN_KEY] = bound_text(desc, file->min_key, &nulls[FILES_MIN_KEY]);
	values[FILES_MAX_KEY] = bound_text(desc, file->max_key, &nulls[FILES_MAX_KEY]);
	values[FILES_NULL_VALUE_COUNTS] = stats.null_counts;
	values[FILES_MIN_VALUE_STATS] = stats.min;
	values[FILES_MAX_VALUE_STATS] = stats.max;
	values[FILES_MIN_SEQUENCE_NUMBER] = Int64GetDatum((int64) file->min_position);
	values[FILES_MAX_SEQUENCE_NUMBER] = Int64GetDatum((int64) file->max_position);
	values[FILES_CREATION_TIME] = TimestampTzGetDatum(file->creation_time);
	values[FILES_DELETE_ROW_COUNT] = Int64GetDatum(file->delete_count);
	values[FILES_FILE_SOURCE] = CStringGetTextDatum(file->source == PAIMON_SOURCE_COMPACT ? "COMPACT" : "APPEND");
	nulls[FILES_FIRST_ROW_ID] = true;
	nulls[FILES_WRITE_COLS] = true;
	values[FILES_RELATION] = ObjectIdGetDatum(RelationGetRelid(shown->rel));
	tuplestore_putvalues(shown->rsinfo->setResult, shown->rsinfo->setDesc, values, nulls);
}

static void
put_files(const Shown *shown)
{
	int			nfiles;
	PaimonFileRow *files = paimon_catalog_files(shown->table->storage_id, GetActiveSnapshot(), &nfiles);
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon file", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);

	for (int i = 0; i < nfiles; i++)
	{
		CHECK_FOR_INTERRUPTS();
		put_file(shown, &files[i]);
		MemoryContextReset(cxt);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/* paimon.files(regclass): live run files; rows in memtables are in none. */
Datum
paimon_files(PG_FUNCTION_ARGS)
{
	return show(fcinfo, put_files);
}

/* Adds up files[i .. ) of one bucket; returns the first of the next. */
static int
put_bucket(const Shown *shown, const PaimonFileRow *files, int nfiles, int i)
{
	Datum		values[BUCKETS_COLUMNS] = {0};
	bool		nulls[BUCKETS_COLUMNS];
	int			first = i;
	int64		rows = 0;
	int64		bytes = 0;
	TimestampTz latest = files[i].creation_time;

	for (; i < nfiles && files[i].bucket == files[first].bucket; i++)
	{
		rows += files[i].row_count;
		bytes += files[i].bytes;
		latest = Max(latest, files[i].creation_time);
	}
	memset(nulls, false, sizeof(nulls));
	values[BUCKETS_PARTITION] = shown->partition;
	nulls[BUCKETS_PARTITION] = shown->nopartition;
	values[BUCKETS_BUCKET] = Int32GetDatum(files[first].bucket);
	values[BUCKETS_RECORD_COUNT] = Int64GetDatum(rows);
	values[BUCKETS_FILE_SIZE] = Int64GetDatum(bytes);
	values[BUCKETS_FILE_COUNT] = Int64GetDatum(i - first);
	values[BUCKETS_LAST_UPDATE_TIME] = TimestampTzGetDatum(latest);
	values[BUCKETS_RELATION] = ObjectIdGetDatum(RelationGetRelid(shown->rel));
	tuplestore_putvalues(shown->rsinfo->setResult, shown->rsinfo->setDesc, values, nulls);
	return i;
}

static void
put_buckets(const Shown *shown)
{
	int			nfiles;
	PaimonFileRow *files = paimon_catalog_files(shown->table->storage_id, GetActiveSnapshot(), &nfiles);

	for (int i = 0; i < nfiles;)
		i = put_bucket(shown, files, nfiles, i);
}

/* paimon.buckets(regclass): buckets that have files. */
Datum
paimon_buckets(PG_FUNCTION_ARGS)
{
	return show(fcinfo, put_buckets);
}

static int
bound_cmp(const bytea *a, const bytea *b)
{
	return paimon_bytes_cmp((const uint8 *) VARDATA_ANY(a), VARSIZE_ANY_EXHDR(a),
							(const uint8 *) VARDATA_ANY(b), VARSIZE_ANY_EXHDR(b));
}

/* Adds up runs[i .. ) of one level; returns the first of the next. */
static int
put_level(const Shown *shown, const PaimonBucketRuns *bucket, int i)
{
	const PaimonRowDesc *desc = shown->table->desc;
	Datum		values[LEVELS_COLUMNS] = {0};
	bool		nulls[LEVELS_COLUMNS];
	int			first = i;
	int			files = 0;
	int64		rows = 0;
	int64		deletes = 0;
	int64		bytes = 0;
	bytea	   *min_key = bucket->runs[i].files[0]->min_key;
	bytea	   *max_key = bucket->runs[i].files[0]->max_key;

	for (; i < bucket->nruns && bucket->runs[i].level == bucket->runs[first].level; i++)
	{
		const PaimonSortedRun *run = &bucket->runs[i];

		files += run->nfiles;
		rows += run->rows;
		deletes += run->deletes;
		bytes += run->bytes;
		for (int k = 0; k < run->nfiles; k++)
		{
			if (bound_cmp(run->files[k]->min_key, min_key) < 0)
				min_key = run->files[k]->min_key;
			/* empty: no bound */
			if (VARSIZE_ANY_EXHDR(max_key) > 0 &&
				(VARSIZE_ANY_EXHDR(run->files[k]->max_key) == 0 || bound_cmp(run->files[k]->max_key, max_key) > 0))
				max_key = run->files[k]->max_key;
		}
	}
	memset(nulls, false, sizeof(nulls));
	values[LEVELS_BUCKET] = Int32GetDatum(bucket->bucket);
	values[LEVELS_LEVEL] = Int32GetDatum(bucket->runs[first].level);
	values[LEVELS_RUNS] = Int32GetDatum(i - first);
	values[LEVELS_FILES] = Int32GetDatum(files);
	values[LEVELS_RECORD_COUNT] = Int64GetDatum(rows);
	values[LEVELS_DELETE_COUNT] = Int64GetDatum(deletes);
	values[LEVELS_FILE_SIZE] = Int64GetDatum(bytes);
	values[LEVELS_MIN_KEY] = bound_text(desc, min_key, &nulls[LEVELS_MIN_KEY]);
	values[LEVELS_MAX_KEY] = bound_text(desc, max_key, &nulls[LEVELS_MAX_KEY]);
	values[LEVELS_RELATION] = ObjectIdGetDatum(RelationGetRelid(shown->rel));
	tuplestore_putvalues(shown->rsinfo->setResult, shown->rsinfo->setDesc, values, nulls);
	return i;
}

static void
put_levels(const Shown *shown)
{
	PaimonLogRow log;
	PaimonLevels *levels = paimon_levels_load(shown->table->storage_id, RelationGetRelationName(shown->rel), GetActiveSnapshot(), &log);

	for (int b = 0; b < levels->nbuckets; b++)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < levels->buckets[b].nruns;)
			i = put_level(shown, &levels->buckets[b], i);
	}
}

/* paimon.levels(regclass): the sorted runs of each bucket by level; rows in memtables are in none. */
Datum
paimon_levels(PG_FUNCTION_ARGS)
{
	return show(fcinfo, put_levels);
}

static const char *
commit_kind_name(int32 kind)
{
	switch ((PaimonCommitKind) kind)
	{
		case PAIMON_COMMIT_APPEND:
			return "APPEND";
		case PAIMON_COMMIT_COMPACT:
			return "COMPACT";
		case PAIMON_COMMIT_OVERWRITE:
			return "OVERWRITE";
		case PAIMON_COMMIT_ANALYZE:
			return "ANALYZE";
	}
	return "UNKNOWN";
}

static void
put_snapshots(const Shown *shown)
{
	int			n;
	PaimonSnapshotRow *rows = paimon_catalog_snapshots(shown->table->storage_id, GetActiveSnapshot(), &n);

	for (int i = 0; i < n; i++)
	{
		Datum		values[SNAPSHOTS_COLUMNS] = {0};
		bool		nulls[SNAPSHOTS_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		memset(nulls, false, sizeof(nulls));
		values[SNAPSHOTS_ID] = Int64GetDatum(rows[i].snapshot_id);
		values[SNAPSHOTS_COMMIT_KIND] = CStringGetTextDatum(commit_kind_name(rows[i].kind));
		values[SNAPSHOTS_COMMIT_TIME] = TimestampTzGetDatum(rows[i].commit_time);
		values[SNAPSHOTS_TOTAL_RECORD_COUNT] = Int64GetDatum(rows[i].total_record_count);
		values[SNAPSHOTS_DELTA_RECORD_COUNT] = Int64GetDatum(rows[i].delta_record_count);
		nulls[SNAPSHOTS_CHANGELOG_RECORD_COUNT] = true;
		nulls[SNAPSHOTS_WATERMARK] = true;
		values[SNAPSHOTS_RELATION] = ObjectIdGetDatum(RelationGetRelid(shown->rel));
		tuplestore_putvalues(shown->rsinfo->setResult, shown->rsinfo->setDesc, values, nulls);
	}
}

/* paimon.snapshots(regclass), oldest first; those of partitions one after the other. */
Datum
paimon_snapshots(PG_FUNCTION_ARGS)
{
	return show(fcinfo, put_snapshots);
}
