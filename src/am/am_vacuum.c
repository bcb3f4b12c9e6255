/*-------------------------------------------------------------------------
 *
 * am_vacuum.c
 *	  VACUUM: asks a worker to flush, to expire snapshots and to reclaim, then freezes by itself and reports (H7, H18).
 *
 * VACUUM's transaction runs flagged so that others' snapshots and horizons ignore it.  With that flag it must not read manifest rows: its
 * snapshot protects nothing.  So it waits for the worker with the flag on (its old snapshot would hold back what the worker is to reclaim)
 * and without any look at the manifest; then it takes the flag off, and from there on is a transaction like any other.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/transam.h"
#include "am/am.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "compact/compact.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "worker/worker.h"

/* Snapshots taken from now on count, and so would an xid. */
static void
leave_vacuum_state(void)
{
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags &= ~PROC_IN_VACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
	InvalidateCatalogSnapshot();
}

/* False if there is no worker.  Autovacuum does not ask: workers flush and reclaim by themselves when it is time. */
static bool
ask_worker(Relation rel, int elevel)
{
	int64		snapshot_id;

	if (paimon_is_autovacuum_worker() || RelationUsesLocalBuffers(rel))
		return true;
	switch (paimon_worker_do(rel, PAIMON_WORK_FLUSH | PAIMON_WORK_EXPIRE | PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP, &snapshot_id))
	{
		case PAIMON_WORK_DONE:
			ereport(elevel,
					(errmsg("table \"%s\": flushed, newest snapshot " INT64_FORMAT, RelationGetRelationName(rel), snapshot_id)));
			break;
		case PAIMON_WORK_BLOCKED:
			break;
		case PAIMON_WORK_NO_WORKER:
			ereport(NOTICE,
					(errmsg("table \"%s\" was not flushed, only frozen", RelationGetRelationName(rel)),
					 errdetail("There is no background worker of paimon_am to flush it."),
					 errhint("Set paimon.max_workers to at least 1 and max_worker_processes high enough.")));
			return false;
	}
	return true;
}

/* Without workers, and for temporary tables, nobody else does it.  Our own snapshot is as old as this VACUUM, so what was in use when it began stays. */
static void
reclaim(Relation rel, PaimonTable *table, int elevel)
{
	PaimonReclaimResult result;
	PaimonExpireResult expired;

	paimon_reclaim_table(rel, table, true, &result);
	/* what this lets go waits for our transaction's end, so for the next VACUUM */
	paimon_expire_snapshots(rel, table, &expired);
	ereport(elevel,
			(errmsg("table \"%s\": %u extents freed, %u pages truncated, " INT64_FORMAT " snapshots expired", RelationGetRelationName(rel), result.extents,
					result.pages_truncated, expired.snapshots)));
}

void
paimon_relation_vacuum(Relation rel, struct VacuumParams *params, BufferAccessStrategy strategy)
{
	int			elevel = (params->options & VACOPT_VERBOSE) ? INFO : DEBUG2;
	TransactionId oldest_xmin;
	TransactionId freeze_limit;
	MultiXactId oldest_multi;
	TransactionId frozen;
	PaimonTable *table;
	bool		no_worker = false;
	uint64		nbatches = 0;
	double		rows = 0;
	TimestampTz start = GetCurrentTimestamp();

	pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
	if (paimon_storage_id(rel) != 0)
		no_worker = !ask_worker(rel, elevel);
	leave_vacuum_state();

	paimon_vacuum_limits(rel, params, &oldest_xmin, &freeze_limit, &oldest_multi);
	frozen = oldest_xmin;
	table = paimon_table_get(rel, false);
	if (table->storage_id != 0)
	{
		if (no_worker || table->istemp)
			reclaim(rel, table, elevel);
		frozen = paimon_freeze_table(rel, table, freeze_limit, oldest_xmin, &nbatches);
		rows = rint(paimon_estimate_rows(table, rel));
		if (params->options & VACOPT_VERBOSE)
			paimon_health_report(rel, table, elevel);
	}
	/* There are no multixacts in our tables, so nothing is older than the oldest that may still be in use. */
	paimon_update_relstats(rel, RelationGetNumberOfBlocks(rel), rows, frozen, oldest_multi);
	paimon_report_vacuum(rel, rows, start);
	ereport(elevel,
			(errmsg("table \"%s\": %.0f rows estimated in %u pages, " UINT64_FORMAT " batches of the log frozen, relfrozenxid %u",
					RelationGetRelationName(rel), rows, RelationGetNumberOfBlocks(rel), nbatches, frozen)));
	pgstat_progress_end_command();
}
