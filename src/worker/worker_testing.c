/*-------------------------------------------------------------------------
 *
 * worker_testing.c
 *	  Asks a worker for what it does by itself only now and then; in testing builds.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include "access/relation.h"
#include "fmgr.h"
#include "storage/lmgr.h"

#include "compact/compact.h"
#include "compat.h"
#include "worker/worker.h"

PG_FUNCTION_INFO_V1(paimon_test_sweep);
PG_FUNCTION_INFO_V1(paimon_test_throttle_lift);

/* paimon.test_sweep(table): flush, expire, reclaim, orphans, free end.  We hold no lock meanwhile, or the free end would stay. */
Datum
paimon_test_sweep(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	Relation	rel = relation_open(relid, AccessShareLock);
	int64		snapshot_id;
	PaimonWorkOutcome outcome;

	UnlockRelationOid(relid, AccessShareLock);
	outcome = paimon_worker_do(rel, PAIMON_WORK_FLUSH | PAIMON_WORK_EXPIRE | PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, &snapshot_id);
	relation_close(rel, NoLock);
	PG_RETURN_BOOL(outcome == PAIMON_WORK_DONE);
}

/* paimon.test_throttle_lift(table, ms): as somebody who waits for the table's compaction. */
Datum
paimon_test_throttle_lift(PG_FUNCTION_ARGS)
{
	Relation	rel = relation_open(PG_GETARG_OID(0), AccessShareLock);

	paimon_throttle_lift(paimon_table_get(rel, false)->storage_id, PG_GETARG_INT32(1));
	relation_close(rel, AccessShareLock);
	PG_RETURN_VOID();
}

#endif							/* PAIMON_TESTING */
