/*-------------------------------------------------------------------------
 *
 * worker_stats.c
 *	  paimon.stats: what a table has cost since counting began, what its reads cost now, and how long its writers have waited.
 *
 * Counters come from shared memory and are gone with a restart, numbers of runs and bytes from the manifest as the caller's snapshot sees it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_inherits.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact.h"
#include "options/options.h"
#include "paimon_am.h"
#include "worker/stall.h"

PG_FUNCTION_INFO_V1(paimon_stats);

/* Columns of the result, in the order of sql/parts/35_stats.sql. */
enum
{
	STATS_RELATION = 0,
	STATS_WRITE_AMPLIFICATION,
	STATS_REWRITE_FACTOR,
	STATS_READ_AMPLIFICATION,
	STATS_SPACE_AMPLIFICATION,
	STATS_RUNS,
	STATS_STOP_TRIGGER,
	STATS_STALLS,
	STATS_STALL_TIME,
	STATS_WAITING,
	STATS_MEMTABLE_BYTES,
	STATS_UNFLUSHED_BYTES,
	STATS_FILE_BYTES,
	STATS_ROWS_WRITTEN,
	STATS_BYTES_WRITTEN,
	STATS_FLUSHES,
	STATS_FLUSH_BYTES,
	STATS_LARGE_COMMITS,
	STATS_LARGE_BYTES,
	STATS_COMPACTIONS,
	STATS_COMPACTION_BYTES_READ,
	STATS_COMPACTION_BYTES_WRITTEN,
	STATS_GROUPS_HIT,
	STATS_GROUPS_READ,
	STATS_SINCE,
	STATS_COLUMNS
};

typedef struct Row
{
	Datum		values[STATS_COLUMNS];
	bool		nulls[STATS_COLUMNS];
} Row;

static void
put(Row *row, int column, Datum value)
{
	row->values[column] = value;
	row->nulls[column] = false;
}

/* Nothing where there is nothing to divide by. */
static void
put_ratio(Row *row, int column, double value, double by)
{
	if (by > 0)
		put(row, column, Float8GetDatum(value / by));
}

static void
put_interval(Row *row, int column, uint64 us)
{
	Interval   *interval = palloc0(sizeof(Interval));

	interval->time = (TimeOffset) us;
	put(row, column, IntervalPGetDatum(interval));
}

/* What the manifest says: bytes, runs. */
static void
put_manifest(Row *row, PaimonTable *table, double memory_runs)
{
	PaimonRunCount count;
	uint32		limit = paimon_runs_limit(&table->options);

	paimon_count_table_runs(table, GetActiveSnapshot(), &count);
	put(row, STATS_READ_AMPLIFICATION, Float8GetDatum((count.nbuckets > 0 ? (double) count.runs / count.nbuckets : 0) + memory_runs));
	put_ratio(row, STATS_SPACE_AMPLIFICATION, (double) count.bytes, (double) count.bottom_bytes);
	put(row, STATS_RUNS, Int32GetDatum(count.fullest));
	if (limit != PG_UINT32_MAX)
		put(row, STATS_STOP_TRIGGER, Int64GetDatum(limit));
	put(row, STATS_FILE_BYTES, Int64GetDatum(count.bytes));
}

static void
put_counters(Row *row, PaimonShared *shared)
{
	static const struct
	{
		int			column;
		PaimonStat	stat;
	}			plain[] = {
		{STATS_STALLS, PAIMON_STAT_STALLS},
		{STATS_ROWS_WRITTEN, PAIMON_STAT_ROWS},
		{STATS_BYTES_WRITTEN, PAIMON_STAT_BYTES},
		{STATS_FLUSHES, PAIMON_STAT_FLUSHES},
		{STATS_FLUSH_BYTES, PAIMON_STAT_FLUSH_BYTES},
		{STATS_LARGE_COMMITS, PAIMON_STAT_LARGE},
		{STATS_LARGE_BYTES, PAIMON_STAT_LARGE_BYTES},
		{STATS_COMPACTIONS, PAIMON_STAT_COMPACTIONS},
		{STATS_COMPACTION_BYTES_READ, PAIMON_STAT_COMPACT_READ},
		{STATS_COMPACTION_BYTES_WRITTEN, PAIMON_STAT_COMPACT_BYTES},
		{STATS_GROUPS_HIT, PAIMON_STAT_GROUPS_HIT},
		{STATS_GROUPS_READ, PAIMON_STAT_GROUPS_READ},
	};
	PaimonStats stats;
	double		first;
	double		all;

	paimon_stats_get(shared, &stats);
	if (stats.since == 0)
		return;
	for (int i = 0; i < lengthof(plain); i++)
		put(row, plain[i].column, Int64GetDatum((int64) stats.values[plain[i].stat]));
	put_interval(row, STATS_STALL_TIME, stats.values[PAIMON_STAT_STALL_US]);
	put(row, STATS_SINCE, TimestampTzGetDatum(stats.since));
	first = (double) stats.values[PAIMON_STAT_FLUSH_BYTES] + (double) stats.values[PAIMON_STAT_LARGE_BYTES];
	all = first + (double) stats.values[PAIMON_STAT_COMPACT_BYTES];
	put_ratio(row, STATS_WRITE_AMPLIFICATION, all, (double) stats.values[PAIMON_STAT_BYTES]);
	put_ratio(row, STATS_REWRITE_FACTOR, all, first);
}

static void
put_table(ReturnSetInfo *rsinfo, Relation rel)
{
	PaimonTable *table = paimon_table_get(rel, false);
	double		memory_runs = 0;
	Row			row;

	CHECK_FOR_INTERRUPTS();
	memset(row.nulls, true, sizeof(row.nulls));
	put(&row, STATS_RELATION, ObjectIdGetDatum(RelationGetRelid(rel)));
	if (table->shared != NULL)
	{
		PaimonSharedInfo info;

		(void) paimon_shared_info(table->shared, &info);
		memory_runs = info.unflushed > 0 ? 1 : 0;
		put(&row, STATS_MEMTABLE_BYTES, Int64GetDatum((int64) info.memtable_bytes));
		put(&row, STATS_UNFLUSHED_BYTES, Int64GetDatum((int64) info.unflushed));
		put(&row, STATS_WAITING, Int64GetDatum(paimon_runs_waiting(table->shared)));
		put_counters(&row, table->shared);
	}
	if (table->storage_id != 0)
		put_manifest(&row, table, memory_runs);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
}

/* Numbers of rows tell about rows that policies may hide. */
static void
check_may_read(Oid relid, const char *relname)
{
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ALL) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)), relname);
	if (check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of table \"%s\" forbids to show its statistics", relname)));
}

/* Checks everything, privileges before any lock, and opens the table. */
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
				 errmsg("\"%s\" is not a table using access method paimon", relname)));
	check_may_read(relid, relname);
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL || !paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" was dropped or changed concurrently", relname)));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read temporary table \"%s\" of another session", relname)));
	return rel;
}

/* paimon.stats(regclass): one row; of a partitioned table, one for each partition that is ours. */
Datum
paimon_stats(PG_FUNCTION_ARGS)
{
	Relation	rel = open_table(PG_GETARG_OID(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		put_table(rsinfo, rel);
	else
	{
		foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
		{
			Relation	leaf;

			if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_RELATION || !paimon_is_table(lfirst_oid(lc)))
				continue;
			leaf = table_open(lfirst_oid(lc), NoLock);
			put_table(rsinfo, leaf);
			table_close(leaf, NoLock);
		}
	}
	table_close(rel, AccessShareLock);
	return (Datum) 0;
}
