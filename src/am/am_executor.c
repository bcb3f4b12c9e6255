/*-------------------------------------------------------------------------
 *
 * am_executor.c
 *	  When a plan starts: what it cannot do on our tables as it is.
 *
 * Parallel workers do not see what this transaction has not yet written (it is in our private buffer): then the plan is run by the leader alone
 * (H22).  ON CONFLICT and MERGE need some preparation (am_upsert.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "am/am.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"

static ExecutorStart_hook_type prev_executor_start = NULL;
static ExecutorEnd_hook_type prev_executor_end = NULL;

/* Does the plan read a table with unwritten rows of this transaction? */
static bool
reads_unwritten(PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION && RELKIND_HAS_STORAGE(rte->relkind) && paimon_is_table(rte->relid))
		{
			Relation	rel = relation_open(rte->relid, NoLock);
			bool		unwritten = paimon_buffer_has_rows(paimon_storage_id(rel));

			relation_close(rel, NoLock);
			if (unwritten)
				return true;
		}
	}
	return false;
}

static void
executor_start(QueryDesc *desc, int eflags)
{
	PlannedStmt *stmt = desc->plannedstmt;

	if (stmt->parallelModeNeeded && reads_unwritten(stmt))
	{
		PlannedStmt *serial = makeNode(PlannedStmt);

		*serial = *stmt;
		serial->parallelModeNeeded = false;
		desc->plannedstmt = serial;
	}
	if (prev_executor_start)
		prev_executor_start(desc, eflags);
	else
		standard_ExecutorStart(desc, eflags);
	if (stmt->commandType != CMD_SELECT || stmt->hasModifyingCTE)
		paimon_upsert_start(desc, eflags);
}

static void
executor_end(QueryDesc *desc)
{
	paimon_versions_end();
	if (paimon_upserts_run())
		paimon_upserts_end(desc->estate->es_query_cxt);
	if (prev_executor_end)
		prev_executor_end(desc);
	else
		standard_ExecutorEnd(desc);
}

void
paimon_executor_init(void)
{
	paimon_versions_init();
	prev_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
