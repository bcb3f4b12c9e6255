/*-------------------------------------------------------------------------
 *
 * am_executor.c
 *	  Before a plan starts: what it cannot do on our tables.
 *
 * Parallel workers do not see what this transaction has not yet written (it is in our private buffer): then the plan is run by the leader alone
 * (H22).  INSERT ... ON CONFLICT is refused before core meets an index that it does not know how to use.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "am/am.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

static ExecutorStart_hook_type prev_executor_start = NULL;

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
refuse_on_conflict(PlannedStmt *stmt, Plan *plan)
{
	ModifyTable *modify = (ModifyTable *) plan;
	RangeTblEntry *rte;

	if (plan == NULL || !IsA(plan, ModifyTable) || modify->onConflictAction == ONCONFLICT_NONE)
		return;
	rte = rt_fetch(modify->nominalRelation, stmt->rtable);
	if (paimon_is_table(rte->relid))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("INSERT ... ON CONFLICT is not supported for table \"%s\"", get_rel_name(rte->relid)),
				 errdetail("The table uses access method paimon, where a plain INSERT replaces the row with the same key."),
				 errhint("Leave out the ON CONFLICT clause.")));
}

static void
executor_start(QueryDesc *desc, int eflags)
{
	PlannedStmt *stmt = desc->plannedstmt;
	ListCell   *lc;

	if (stmt->commandType == CMD_INSERT || stmt->hasModifyingCTE)
	{
		refuse_on_conflict(stmt, stmt->planTree);
		foreach(lc, stmt->subplans)
			refuse_on_conflict(stmt, lfirst(lc));
	}
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
}

void
paimon_executor_init(void)
{
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
