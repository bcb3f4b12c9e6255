/*-------------------------------------------------------------------------
 *
 * scan_state.c
 *	  What a reader sees: snapshot, manifest, log, in this order.
 *
 * The order is what makes a reader see each row once (H2): the snapshot first; then the manifest and the log's head with that snapshot; then the log's
 * tail.  Rows move from the log into runs only together with the head, in one transaction, which the snapshot sees whole or not at all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "storage/predicate.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "scan/scan_internal.h"

/*
 * Snapshots that are not MVCC mean "as of now", our own commands included (H23).  GetLatestSnapshot is refused in parallel mode, where
 * nothing is written anyway: the active one will do.
 */
static Snapshot
latest_snapshot(void)
{
	if (IsInParallelMode() && ActiveSnapshotSet())
		return GetActiveSnapshot();
	return GetLatestSnapshot();
}

/* Opens the manifest; what is done with it must not outlive the context. */
static void
open_manifest(PaimonScanState *state)
{
	const PaimonManifest *manifest = paimon_manifest_open(state->table, state->rel, state->snapshot, &state->manifest);

	state->levels = paimon_manifest_levels(manifest);
	state->log = *paimon_manifest_log(manifest);
}

void
paimon_scanstate_open(PaimonScanState *state, PaimonTable *table, Relation rel, Snapshot snapshot)
{
	memset(state, 0, sizeof(*state));
	state->table = table;
	state->rel = rel;
	if (snapshot != NULL && snapshot->snapshot_type == SNAPSHOT_MVCC)
	{
		PredicateLockRelation(rel, snapshot);
		state->snapshot = snapshot;
		state->cid = snapshot->curcid;
	}
	else
	{
		/* a statement that adds to a table and reads it with such a snapshot (constraint triggers, VALIDATE) sees all it wrote */
		state->owner = CurrentResourceOwner;
		state->snapshot = RegisterSnapshotOnOwner(latest_snapshot(), state->owner);
		state->cid = InvalidCommandId;
		if (snapshot != NULL && snapshot->snapshot_type == SNAPSHOT_DIRTY)
		{
			/* Who uses it waits for the transactions named here before it takes a row.  We give rows of none; their writers are waited for when locking. */
			snapshot->xmin = InvalidTransactionId;
			snapshot->xmax = InvalidTransactionId;
			snapshot->speculativeToken = 0;
		}
	}
	if (table->storage_id == 0)
		return;

	/*
	 * VACUUM FULL writes the newest rows only.  A snapshot from before sees nothing of the new storage, and the old one is gone: better an error than an
	 * empty table.  Only a snapshot kept over statements can be so old: others are taken when the table is locked already.
	 */
	if (table->copied && IsolationUsesXactSnapshot() && !paimon_catalog_storage_visible(table->storage_id, state->snapshot))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access to table \"%s\" due to a concurrent VACUUM FULL", RelationGetRelationName(rel)),
				 errhint("Retry the transaction.")));
	open_manifest(state);
	if (table->shared != NULL)
	{
		state->view = paimon_memview_open(table->shared, rel, state->snapshot, &state->log, PG_UINT64_MAX);
		/* after our predicate lock: who appends later finds that */
		if (CheckForSerializableConflictOutNeeded(rel, state->snapshot))
			paimon_memview_check_conflicts(state->view, &state->log);
	}
}

void
paimon_scanstate_close(PaimonScanState *state)
{
	if (state->view != NULL)
		paimon_memview_close(state->view);
	state->view = NULL;
	if (state->manifest != NULL)
		paimon_manifest_release(state->manifest);
	state->manifest = NULL;
	state->levels = NULL;
	if (state->owner != NULL)
		UnregisterSnapshotFromOwner(state->snapshot, state->owner);
	state->owner = NULL;
	state->snapshot = NULL;
}
