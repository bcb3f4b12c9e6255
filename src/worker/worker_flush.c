/*-------------------------------------------------------------------------
 *
 * worker_flush.c
 *	  paimon.flush and paimon.compact: done by a worker and waited for, or, where a worker cannot, in the calling transaction (H20).
 *	  Of a partitioned table: every partition that is ours, one after the other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compact/compact.h"
#include "compat.h"
#include "paimon_am.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(paimon_flush);
PG_FUNCTION_INFO_V1(paimon_compact);

/* Ownership is checked before any lock, and again after it. */
static void
check_owner(Oid relid)
{
	if (!paimon_owns_relation(relid))
		aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(get_rel_relkind(relid)), get_rel_name(relid));
}

/* `verb`: what is to be done, for messages. */
static Relation
open_table(Oid relid, const char *verb)
{
	char		relkind = get_rel_relkind(relid);
	char	   *relname = get_rel_name(relid);
	Relation	rel;

	if (relkind == '\0' || relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	check_owner(relid);
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("relation \"%s\" does not use access method paimon", relname),
				 relkind == RELKIND_PARTITIONED_TABLE ? errhint("Name a partition that does.") : 0));
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL || !paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" was dropped or changed concurrently", relname)));
	check_owner(relid);
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot %s temporary table \"%s\" of another session", verb, RelationGetRelationName(rel))));
	return rel;
}

/* A worker would never get at these. */
static bool
only_here(Relation rel)
{
	return RelationUsesLocalBuffers(rel) || paimon_storage_is_own(rel) ||
		CheckRelationLockedByMe(rel, AccessExclusiveLock, true);
}

/* The id of the newest snapshot that the flush made or found. */
static int64
latest_snapshot(PaimonTable *table)
{
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	int64		id = paimon_catalog_snapshot_latest(table->storage_id, snapshot, NULL);

	UnregisterSnapshot(snapshot);
	return id;
}

/* Returns the id of the newest snapshot, 0 if there is none. */
static int64
flush_one(Relation rel)
{
	PaimonTable *table = paimon_table_get(rel, false);
	PaimonWorkOutcome outcome = PAIMON_WORK_NO_WORKER;
	int64		snapshot_id = 0;

	if (table->storage_id == 0)
		return 0;
	if (!only_here(rel))
		outcome = paimon_worker_do(rel, PAIMON_WORK_FLUSH, &snapshot_id);
	if (outcome == PAIMON_WORK_NO_WORKER)
	{
		PaimonFlushResult result = {0};

		paimon_flush_in_backend(rel, table, &result);
		snapshot_id = result.snapshot_id;
	}
	else if (outcome == PAIMON_WORK_BLOCKED)
		snapshot_id = latest_snapshot(table);
	return snapshot_id;
}

/* A partitioned table whose partitions are ours? */
static bool
is_root(Oid relid)
{
	return get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE && paimon_is_table(relid);
}

/* Partitions that are ours, locked.  Nothing is done to any unless the caller owns all of them. */
static List *
open_partitions(Oid rootid, const char *verb)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	check_owner(rootid);
	LockRelationOid(rootid, AccessShareLock);
	foreach(lc, find_all_inheritors(rootid, AccessShareLock, NULL))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION && paimon_is_table(lfirst_oid(lc)))
			leaves = lappend(leaves, open_table(lfirst_oid(lc), verb));
	}
	return leaves;
}

static void
flush_partitions(Oid rootid)
{
	ListCell   *lc;

	foreach(lc, open_partitions(rootid, "flush"))
	{
		CHECK_FOR_INTERRUPTS();
		(void) flush_one(lfirst(lc));
		relation_close(lfirst(lc), NoLock);
	}
}

/* NULL for a table that has no snapshot, and for a partitioned table: each of its partitions has snapshots of its own. */
Datum
paimon_flush(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel;
	int64		snapshot_id;

	paimon_require_preload();
	PreventCommandDuringRecovery("paimon.flush()");
	PreventCommandIfReadOnly("paimon.flush()");
	PreventCommandIfParallelMode("paimon.flush()");

	if (is_root(relid))
	{
		flush_partitions(relid);
		PG_RETURN_NULL();
	}
	rel = open_table(relid, "flush");
	snapshot_id = flush_one(rel);
	relation_close(rel, NoLock);
	if (snapshot_id == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(snapshot_id);
}

static void
check_bucket(Relation rel, const PaimonTable *table, int bucket)
{
	if (bucket >= table->desc->nbuckets)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("table \"%s\" has no bucket %d", RelationGetRelationName(rel), bucket),
				 errdetail("Its buckets are 0 to %d.", table->desc->nbuckets - 1)));
}

/* Flushes first what is not in files yet.  bucket -1: all.  Returns the id of the newest snapshot, 0 if there is none. */
static int64
compact_one(Relation rel, int bucket, bool full)
{
	PaimonTable *table = paimon_table_get(rel, false);
	PaimonWorkOutcome outcome = PAIMON_WORK_NO_WORKER;
	int64		snapshot_id;

	if (table->storage_id == 0)
		return 0;
	if (!only_here(rel))
		outcome = paimon_worker_do_bucket(rel, PAIMON_WORK_FLUSH | PAIMON_WORK_COMPACT | (full ? PAIMON_WORK_FULL : 0), bucket,
										  &snapshot_id);
	if (outcome == PAIMON_WORK_NO_WORKER)
	{
		PaimonFlushResult result = {0};

		/* The lock stays until our transaction ends: whoever has it may be at a long compaction. */
		if (paimon_try_lock_flush(table->storage_id))
			paimon_flush_in_backend(rel, table, &result);
		else
			ereport(NOTICE,
					(errmsg("table \"%s\" was not flushed before it is compacted, because another session is flushing it",
							RelationGetRelationName(rel))));
		paimon_compact_in_backend(rel, table, bucket, full);
	}
	return latest_snapshot(table);
}

static void
compact_partitions(Oid rootid, int bucket, bool full)
{
	List	   *leaves = open_partitions(rootid, "compact");
	ListCell   *lc;

	foreach(lc, leaves)
	{
		if (bucket != -1)
			check_bucket(lfirst(lc), paimon_table_get(lfirst(lc), false), bucket);
	}
	foreach(lc, leaves)
	{
		CHECK_FOR_INTERRUPTS();
		(void) compact_one(lfirst(lc), bucket, full);
		relation_close(lfirst(lc), NoLock);
	}
}

/* paimon.compact(table, full, bucket).  Returns as paimon.flush does. */
Datum
paimon_compact(PG_FUNCTION_ARGS)
{
	Oid			relid;
	Relation	rel;
	int64		snapshot_id;
	bool		full;
	int			bucket = -1;

	paimon_require_preload();
	PreventCommandDuringRecovery("paimon.compact()");
	PreventCommandIfReadOnly("paimon.compact()");
	PreventCommandIfParallelMode("paimon.compact()");
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	relid = PG_GETARG_OID(0);
	full = PG_ARGISNULL(1) || PG_GETARG_BOOL(1);
	if (!PG_ARGISNULL(2))
	{
		bucket = PG_GETARG_INT32(2);
		if (bucket < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bucket number must not be negative")));
	}

	if (is_root(relid))
	{
		compact_partitions(relid, bucket, full);
		PG_RETURN_NULL();
	}
	rel = open_table(relid, "compact");
	if (bucket != -1)
		check_bucket(rel, paimon_table_get(rel, false), bucket);
	snapshot_id = compact_one(rel, bucket, full);
	relation_close(rel, NoLock);
	if (snapshot_id == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(snapshot_id);
}
