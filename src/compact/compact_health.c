/*-------------------------------------------------------------------------
 *
 * compact_health.c
 *	  VACUUM VERBOSE: how a table is, in a few lines: its levels, its snapshots, what waits to be given back and for whom.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compact/compact.h"
#include "levels/levels.h"

/* Files and bytes of something. */
typedef struct Amount
{
	int			runs;
	int			files;
	int64		bytes;
} Amount;

static void
report_levels(Relation rel, const PaimonLevels *levels, int elevel)
{
	StringInfoData buf;
	Amount	   *amounts;
	int			top = 0;
	int			most_runs = 0;

	for (int i = 0; i < levels->nfiles; i++)
		top = Max(top, levels->files[i].level);
	amounts = palloc0_array(Amount, top + 1);
	for (int b = 0; b < levels->nbuckets; b++)
	{
		const PaimonBucketRuns *bucket = &levels->buckets[b];

		most_runs = Max(most_runs, bucket->nruns);
		for (int i = 0; i < bucket->nruns; i++)
		{
			Amount	   *a = &amounts[bucket->runs[i].level];

			a->runs++;
			a->files += bucket->runs[i].nfiles;
			a->bytes += bucket->runs[i].bytes;
		}
	}
	initStringInfo(&buf);
	for (int i = 0; i <= top; i++)
		appendStringInfo(&buf, "%slevel %d: %d runs, %d files, " INT64_FORMAT " kB", i > 0 ? "; " : "", i, amounts[i].runs, amounts[i].files,
						 amounts[i].bytes / 1024);
	ereport(elevel,
			(errmsg("table \"%s\": %d buckets with files, at most %d runs each", RelationGetRelationName(rel), levels->nbuckets, most_runs),
			 errdetail_internal("%s.", buf.data)));
}

static void
report_snapshots(Relation rel, const PaimonSnapshotRow *snapshots, int n, int elevel)
{
	if (n == 0)
		ereport(elevel,
				(errmsg("table \"%s\": no snapshots", RelationGetRelationName(rel))));
	else
		ereport(elevel,
				(errmsg("table \"%s\": %d snapshots, " INT64_FORMAT " to " INT64_FORMAT, RelationGetRelationName(rel), n,
						snapshots[0].snapshot_id, snapshots[n - 1].snapshot_id),
				 errdetail_internal("The oldest one is from %s.", timestamptz_to_str(snapshots[0].commit_time))));
}

/* The session in this database that holds the horizon back most; 0 if none does. */
static int
horizon_holder(TransactionId *xmin)
{
	int			pid = 0;

	*xmin = InvalidTransactionId;
	LWLockAcquire(ProcArrayLock, LW_SHARED);
	for (uint32 i = 0; i < ProcGlobal->allProcCount; i++)
	{
		PGPROC	   *proc = &ProcGlobal->allProcs[i];
		TransactionId oldest = proc->xmin;

		if (proc == MyProc || proc->pid == 0 || proc->databaseId != MyDatabaseId)
			continue;
		if (TransactionIdIsNormal(proc->xid) && (!TransactionIdIsValid(oldest) || TransactionIdPrecedes(proc->xid, oldest)))
			oldest = proc->xid;
		if (!TransactionIdIsNormal(oldest) || (TransactionIdIsValid(*xmin) && !TransactionIdPrecedes(oldest, *xmin)))
			continue;
		*xmin = oldest;
		pid = proc->pid;
	}
	LWLockRelease(ProcArrayLock);
	return pid;
}

/* Who keeps files that no snapshot of the table needs? */
static void
describe_holder(StringInfo buf)
{
	TransactionId xmin;
	TransactionId slot_xmin;
	TransactionId slot_catalog_xmin;
	int			pid = horizon_holder(&xmin);

	ProcArrayGetReplicationSlotXmin(&slot_xmin, &slot_catalog_xmin);
	if (TransactionIdIsNormal(slot_xmin) && (pid == 0 || TransactionIdPrecedes(slot_xmin, xmin)))
		appendStringInfo(buf, " for a replication slot (xmin %u)", slot_xmin);
	else if (pid != 0)
		appendStringInfo(buf, " for transactions from %u on, the oldest one in process %d", xmin, pid);
	else
		appendStringInfoString(buf, " for the next round of a worker, a standby or a prepared transaction");
}

static void
report_closed(Relation rel, const PaimonFileRow *closed, int nclosed, int64 earliest, int elevel)
{
	Amount		retained = {0};
	Amount		waiting = {0};
	StringInfoData buf;

	for (int i = 0; i < nclosed; i++)
	{
		Amount	   *a = earliest > 0 && closed[i].removed_snapshot > earliest ? &retained : &waiting;

		a->files++;
		a->bytes += closed[i].bytes;
	}
	initStringInfo(&buf);
	if (retained.files > 0)
		appendStringInfo(&buf, "%d files, " INT64_FORMAT " kB, are kept for older snapshots", retained.files, retained.bytes / 1024);
	if (waiting.files > 0)
	{
		appendStringInfo(&buf, "%s%d files, " INT64_FORMAT " kB, wait", buf.len > 0 ? "; " : "", waiting.files, waiting.bytes / 1024);
		describe_holder(&buf);
	}
	if (buf.len > 0)
		ereport(elevel,
				(errmsg("table \"%s\": files that are no longer live take space", RelationGetRelationName(rel)),
				 errdetail_internal("%s.", buf.data)));
}

void
paimon_health_report(Relation rel, PaimonTable *table, int elevel)
{
	MemoryContext cxt;
	MemoryContext old;
	Snapshot	snapshot;
	PaimonLevels *levels;
	PaimonLogRow log;
	PaimonSnapshotRow *snapshots;
	PaimonFileRow *closed;
	PaimonStorageUsage usage;
	int			nsnapshots;
	int			nclosed;

	if (table->storage_id == 0)
		return;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon health report", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	snapshot = paimon_catalog_latest_snapshot();
	levels = paimon_levels_load(table->storage_id, RelationGetRelationName(rel), snapshot, &log);
	snapshots = paimon_catalog_snapshots(table->storage_id, snapshot, &nsnapshots);
	closed = paimon_catalog_closed_files(table->storage_id, snapshot, &nclosed);
	UnregisterSnapshot(snapshot);
	report_levels(rel, levels, elevel);
	report_snapshots(rel, snapshots, nsnapshots, elevel);
	report_closed(rel, closed, nclosed, nsnapshots > 0 ? snapshots[0].snapshot_id : 0, elevel);
	paimon_storage_usage(rel, &usage);
	ereport(elevel,
			(errmsg("table \"%s\": %u extents of %d kB in use, %u free", RelationGetRelationName(rel), usage.used_extents,
					PAIMON_EXTENT_PAGES * BLCKSZ / 1024, usage.free_extents)));
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}
