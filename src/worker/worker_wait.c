/*-------------------------------------------------------------------------
 *
 * worker_wait.c
 *	  compaction.async = false: a commit that finds a trigger passed waits until a worker has compacted the table.
 *
 * Nobody can begin a transaction inside a finishing commit (H20), so a worker does it.  The commit waits before it takes any lock of its own; what it holds
 * already (the table for writing, keys) no compaction asks for.  Where no worker could get at the table, or there is none, it does not wait, and an error of
 * the compaction is a WARNING here: the rows are none the worse for it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"

#include "compact/compact.h"
#include "compat.h"
#include "memtable/buffer.h"
#include "worker/worker.h"

static void
wait_for_compaction(PaimonTable *table, Relation rel)
{
	int			nwanted;
	PaimonCompactWanted *wanted;

	if (table->options.write_only || paimon_storage_is_own(rel) || CheckRelationLockedByMe(rel, AccessExclusiveLock, true))
		return;
	wanted = paimon_compact_wanted(rel, table, &nwanted);
	if (wanted != NULL)
		pfree(wanted);
	if (nwanted > 0)
		(void) paimon_worker_try(rel, PAIMON_WORK_COMPACT);
}

void
paimon_worker_wait_init(void)
{
	paimon_precommit_wait_hook = wait_for_compaction;
}
