/*-------------------------------------------------------------------------
 *
 * am_executor.c
 *	  When a plan starts: what it cannot do on our tables as it is.
 *
 * Parallel workers do not see what this transaction has not yet written (it is in our private buffer), nor may they call
 * users' functions that are not declared parallel safe: then the plan is run by the leader alone (H22).  ON CONFLICT and MERGE need some preparation
 * (am_upsert.c); lists of rows are read in our own way (am_values.c).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xact.h"
#include "am/am.h"
#include "executor/executor.h"
#include "merge/merge_server.h"
#include "nodes/plannodes.h"
#include "utils/memutils.h"

static ExecutorStart_hook_type prev_executor_start = NULL;
static ExecutorEnd_hook_type prev_executor_end = NULL;

/*
 * Statements under way that change or lock rows, by the subtransactions they began in.  While there is none, rows are asked for by their ctids by
 * triggers alone that were put off to the end of the transaction.  After an error nobody ends statements: they go with their transactions.
 */
static SubTransactionId *changing = NULL;
static int	nchanging = 0;
static int	max_changing = 0;

bool
paimon_executor_changes(void)
{
	return nchanging > 0;
}

static bool
may_change(const QueryDesc *desc)
{
	const PlannedStmt *stmt = desc->plannedstmt;

	return stmt->commandType != CMD_SELECT || stmt->hasModifyingCTE || stmt->rowMarks != NIL;
}

static void
note_changing(const QueryDesc *desc)
{
	if (!may_change(desc))
		return;
	if (nchanging == max_changing)
	{
		max_changing = max_changing * 2 + 8;
		changing = changing == NULL ? MemoryContextAlloc(TopMemoryContext, sizeof(SubTransactionId) * max_changing) :
			repalloc(changing, sizeof(SubTransactionId) * max_changing);
	}
	changing[nchanging++] = GetCurrentSubTransactionId();
}

static void
forget_changing(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		nchanging = 0;
}

static void
forget_changing_sub(SubXactEvent event, SubTransactionId sub, SubTransactionId parent, void *arg)
{
	while (event == SUBXACT_EVENT_ABORT_SUB && nchanging > 0 && changing[nchanging - 1] >= sub)
		nchanging--;
}

/* Does the plan read a table with unwritten rows of this transaction, or one that a user's function merges that is not parallel safe? */
static bool
must_be_serial(PlannedStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_RELATION && RELKIND_HAS_STORAGE(rte->relkind) && paimon_is_table(rte->relid))
		{
			Relation	rel = relation_open(rte->relid, NoLock);
			bool		serial = paimon_buffer_has_rows(paimon_storage_id(rel)) || !paimon_merge_parallel_safe(paimon_table_get(rel, false)->plan);

			relation_close(rel, NoLock);
			if (serial)
				return true;
		}
	}
	return false;
}

/*
 * Rows of a plain INSERT need no index entries: the only index is the key's, which has nothing of its own.  So it need not be opened for each statement and
 * asked for each row; core opens indexes when it finds none open.
 */
static void
leave_out_index(ModifyTableState *mt)
{
	ResultRelInfo *rri = mt->rootResultRelInfo;
	Relation	rel = rri->ri_RelationDesc;

	if (mt->operation == CMD_INSERT && ((ModifyTable *) mt->ps.plan)->onConflictAction == ONCONFLICT_NONE && rel->rd_rel->relkind == RELKIND_RELATION &&
		rri->ri_IndexRelationDescs == NULL && paimon_is_table(RelationGetRelid(rel)))
	{
		rri->ri_NumIndices = 0;
		rri->ri_IndexRelationDescs = palloc0_array(Relation, 1);
	}
}

/* The parts of the plan that change tables. */
static void
start_changes(QueryDesc *desc, int eflags)
{
	MemoryContext old = MemoryContextSwitchTo(desc->estate->es_query_cxt);
	List	   *parts = desc->estate->es_auxmodifytables;
	ListCell   *lc;

	if (IsA(desc->planstate, ModifyTableState))
		parts = lcons(desc->planstate, list_copy(parts));
	foreach(lc, parts)
	{
		ModifyTableState *mt = lfirst_node(ModifyTableState, lc);

		paimon_upsert_start(mt, eflags);
		leave_out_index(mt);
		paimon_values_start(mt);
	}
	MemoryContextSwitchTo(old);
}

static void
executor_start(QueryDesc *desc, int eflags)
{
	PlannedStmt *stmt = desc->plannedstmt;

	note_changing(desc);
	if (stmt->parallelModeNeeded && must_be_serial(stmt))
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
		start_changes(desc, eflags);
}

static void
executor_end(QueryDesc *desc)
{
	paimon_versions_end();
	if (may_change(desc) && nchanging > 0)
		nchanging--;
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
	RegisterXactCallback(forget_changing, NULL);
	RegisterSubXactCallback(forget_changing_sub, NULL);
	prev_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	prev_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}
