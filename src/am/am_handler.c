/*-------------------------------------------------------------------------
 *
 * am_handler.c
 *	  Handlers of the two access methods.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "am/am.h"
#include "catalog/pg_am_d.h"
#include "compat.h"
#include "fmgr.h"
#include "paimon_am.h"

PG_FUNCTION_INFO_V1(paimon_handler);
PG_FUNCTION_INFO_V1(paimon_key_handler);

/* ---- what we do not have ---- */

static TransactionId
index_delete_tuples(Relation rel, TM_IndexDeleteOp *delstate)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" cannot have this kind of index", RelationGetRelationName(rel)),
			 errdetail("Tables using access method paimon have a primary key only.")));
}

static double
index_build_range_scan(Relation rel, Relation index, struct IndexInfo *info, bool allow_sync, bool anyvisible, bool progress,
					   BlockNumber start, BlockNumber n, IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot create index \"%s\" on table \"%s\"", RelationGetRelationName(index), RelationGetRelationName(rel)),
			 errdetail("Tables using access method paimon have a primary key only."),
			 errhint("Put the columns that you search by first into the primary key.")));
}

/* REINDEX CONCURRENTLY looks for rows that the new index misses: ours stores none, and no other comes this far (src/ddl). */
static void
index_validate_scan(Relation rel, Relation index, struct IndexInfo *info, Snapshot snapshot, struct ValidateIndexState *state)
{
}

static bool
needs_toast_table(Relation rel)
{
	/* Core makes the TOAST table before it rewrites a table, and for the rewritten one only if there is one. */
	if (OidIsValid(paimon_becomes_heap) && RelationGetRelid(rel) == paimon_becomes_heap)
		return GetHeapamTableAmRoutine()->relation_needs_toast_table(rel);
	return false;				/* large values lie in runs and in the log, compressed with the others */
}

static Oid
toast_am(Relation rel)
{
	return HEAP_TABLE_AM_OID;
}

static void
paimon_other_routine(TableAmRoutine *r)
{
	r->index_fetch_begin = paimon_index_fetch_begin;
	r->index_fetch_reset = paimon_index_fetch_reset;
	r->index_fetch_end = paimon_index_fetch_end;
	r->index_fetch_tuple = paimon_index_fetch_tuple;
	r->tuple_fetch_row_version = paimon_tuple_fetch_row_version;
	r->tuple_tid_valid = paimon_tuple_tid_valid;
	r->tuple_get_latest_tid = paimon_tuple_get_latest_tid;
	r->tuple_satisfies_snapshot = paimon_tuple_satisfies_snapshot;
	r->index_delete_tuples = index_delete_tuples;
	r->tuple_insert = paimon_tuple_insert;
	r->tuple_insert_speculative = paimon_tuple_insert_speculative;
	r->tuple_complete_speculative = paimon_tuple_complete_speculative;
	r->multi_insert = paimon_multi_insert;
	r->tuple_delete = paimon_tuple_delete;
	r->tuple_update = paimon_tuple_update;
	r->tuple_lock = paimon_tuple_lock;
	r->finish_bulk_insert = paimon_finish_bulk_insert;
	paimon_set_new_locator_callback(r, paimon_relation_set_new_locator);
	r->relation_nontransactional_truncate = paimon_relation_nontransactional_truncate;
	r->relation_copy_data = paimon_relation_copy_data;
	r->relation_copy_for_cluster = paimon_relation_copy_for_cluster;
	r->relation_vacuum = paimon_relation_vacuum;
	r->index_build_range_scan = index_build_range_scan;
	r->index_validate_scan = index_validate_scan;
	r->relation_needs_toast_table = needs_toast_table;
	r->relation_toast_am = toast_am;
}

Datum
paimon_handler(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine = {.type = T_Invalid};

	paimon_require_preload();
	if (routine.type == T_Invalid)
	{
		paimon_scan_routine(&routine);
		paimon_size_routine(&routine);
		paimon_sample_routine(&routine);
		paimon_other_routine(&routine);
		routine.type = T_TableAmRoutine;
	}
	PG_RETURN_POINTER(&routine);
}

Datum
paimon_key_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *routine = makeNode(IndexAmRoutine);

	paimon_require_preload();
	paimon_index_routine(routine);
	paimon_index_compares_like_btree(routine);
	PG_RETURN_POINTER(routine);
}
