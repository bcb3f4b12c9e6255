/*-------------------------------------------------------------------------
 *
 * am_customscan.c
 *	  PaimonScan: the scan of a whole table by a plan.
 *
 * It takes the place of every sequential scan of a paimon table.  A sequential scan's rows pass through a slot that does not know which columns
 * the plan will want, and to reach one all before it are decoded; here the plan says which they are, and the others are not read at all.  For
 * the rest it does what a sequential scan does, in the same way: ExecScan, parallel plans, both directions, rechecks of changed rows.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/sysattr.h"
#include "am/am.h"
#include "compat.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/spccache.h"

#define LEAST_SHARE_OF_PAGES 0.05	/* of a table's pages that a scan reads though it wants no column: heads, kinds, keys where it merges */

static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;

static Plan *plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans);
static Node *create_scan_state(CustomScan *scan);

static const CustomPathMethods path_methods = {
	.CustomName = "PaimonScan",
	.PlanCustomPath = plan_scan,
};

static const CustomScanMethods scan_methods = {
	.CustomName = "PaimonScan",
	.CreateCustomScanState = create_scan_state,
};

/* ---- planning ---- */

static bool
column_wanted(const Bitmapset *wanted, AttrNumber attno)
{
	return bms_is_member(attno - FirstLowInvalidHeapAttributeNumber, wanted) ||
		bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, wanted);
}

/* The share of the table's bytes in the columns that the query wants, by their average widths. */
double
paimon_share_of_pages(RelOptInfo *rel, Oid relid)
{
	Bitmapset  *wanted = NULL;
	Relation	table = RelationIdGetRelation(relid);
	double		all = 1;
	double		some = 0;
	ListCell   *lc;

	if (table == NULL)
		return 1.0;
	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &wanted);
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause, rel->relid, &wanted);
	for (int i = 0; i < RelationGetNumberOfAttributes(table); i++)
	{
		Form_pg_attribute att = TupleDescAttr(RelationGetDescr(table), i);
		int32		width;

		if (att->attisdropped)
			continue;
		width = get_attavgwidth(relid, att->attnum);
		if (width <= 0)
			width = get_typavgwidth(att->atttypid, att->atttypmod);
		all += width;
		if (column_wanted(wanted, att->attnum))
			some += width;
	}
	RelationClose(table);
	bms_free(wanted);
	return Max(some / all, LEAST_SHARE_OF_PAGES);
}

/* The PaimonScan that does what a sequential scan would: the same but for the pages of columns that nobody wants. */
static Path *
replace_path(const Path *seqscan, Cost saved)
{
	CustomPath *path = makeNode(CustomPath);

	path->path = *seqscan;
	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.total_cost = Max(seqscan->total_cost - saved, seqscan->startup_cost);
	path->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	return &path->path;
}

static bool
replace_paths(List *paths, Cost saved)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, paths)
	{
		Path	   *path = lfirst(lc);

		if (path->pathtype != T_SeqScan || !IsA(path, Path))
			continue;
		lfirst(lc) = replace_path(path, saved);
		found = true;
	}
	return found;
}

static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
	if (rte->rtekind == RTE_RELATION && rte->tablesample == NULL && !rte->inh && RELKIND_HAS_STORAGE(rte->relkind) &&
		rel->pathlist != NIL && !IS_DUMMY_REL(rel) && !paimon_wants_current_of(rel) && paimon_is_table(rte->relid))
	{
		double		page_cost;
		Cost		saved;

		get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
		saved = page_cost * rel->pages * (1.0 - paimon_share_of_pages(rel, rte->relid));
		/* an index path may have thrown out the sequential scan, but would not have thrown out ours */
		if (!replace_paths(rel->pathlist, saved))
			add_path(rel, replace_path(create_seqscan_path(root, rel, rel->lateral_relids, 0), saved));
		(void) replace_paths(rel->partial_pathlist, saved);
	}
}

static Plan *
plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *tlist, List *clauses, List *custom_plans)
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = tlist;
	scan->scan.plan.qual = extract_actual_clauses(clauses, false);
	scan->scan.scanrelid = rel->relid;
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	return &scan->scan.plan;
}

/* ---- execution ---- */

typedef struct PaimonScanNode
{
	CustomScanState base;
	bool		unordered;		/* nobody can tell in which order rows come */
} PaimonScanNode;

/* A scan begins; the order of keys costs time. */
static void
scan_begun(CustomScanState *node, TableScanDesc desc)
{
	((PaimonScanDesc *) desc)->unordered = ((PaimonScanNode *) node)->unordered;
	node->ss.ss_currentScanDesc = desc;
}

static TupleTableSlot *
scan_next(ScanState *node)
{
	EState	   *estate = node->ps.state;

	/* no scan yet: the plan is not parallel, or is run without workers */
	if (unlikely(node->ss_currentScanDesc == NULL))
		scan_begun((CustomScanState *) node, table_beginscan(node->ss_currentRelation, estate->es_snapshot, 0, NULL));
	if (paimon_scan_getnextslot(node->ss_currentScanDesc, estate->es_direction, node->ss_ScanTupleSlot))
		return node->ss_ScanTupleSlot;
	return NULL;
}

/* The clauses are checked by ExecScan. */
static bool
scan_recheck(ScanState *node, TupleTableSlot *slot)
{
	return true;
}

static TupleTableSlot *
exec_scan(CustomScanState *node)
{
	return ExecScan(&node->ss, scan_next, scan_recheck);
}

/* Tells the scan's slot which columns the plan looks at: in its clauses and in its targets, which are all columns where the slot itself is handed on. */
static void
set_columns(CustomScanState *node)
{
	Scan	   *plan = (Scan *) node->ss.ps.plan;
	TupleDesc	desc = RelationGetDescr(node->ss.ss_currentRelation);
	int16	   *columns = palloc_array(int16, desc->natts + 1);
	int			n = 0;
	Bitmapset  *wanted = NULL;

	if (node->ss.ps.ps_ProjInfo == NULL)
		return;
	pull_varattnos((Node *) plan->plan.targetlist, plan->scanrelid, &wanted);
	pull_varattnos((Node *) plan->plan.qual, plan->scanrelid, &wanted);
	for (int i = 0; i < desc->natts; i++)
		if (column_wanted(wanted, i + 1))
			columns[n++] = i;
	paimon_slot_set_columns(node->ss.ss_ScanTupleSlot, columns, n);
}

/*
 * Cursors that scroll must find the way they came.  Statements that change or lock rows should come upon them in the same order as others do, for fewer
 * deadlocks.
 */
static void
begin_scan(CustomScanState *node, EState *estate, int eflags)
{
	const PlannedStmt *stmt = estate->es_plannedstmt;

	((PaimonScanNode *) node)->unordered = (eflags & EXEC_FLAG_BACKWARD) == 0 && stmt->commandType == CMD_SELECT && !stmt->hasModifyingCTE &&
		stmt->rowMarks == NIL;
	paimon_use_scan_slot(node, &paimon_slot_ops);
	set_columns(node);
}

static void
end_scan(CustomScanState *node)
{
	if (node->ss.ss_currentScanDesc != NULL)
		table_endscan(node->ss.ss_currentScanDesc);
}

static void
rescan(CustomScanState *node)
{
	if (node->ss.ss_currentScanDesc != NULL)
		table_rescan(node->ss.ss_currentScanDesc, NULL);
	ExecScanReScan(&node->ss);
}

static Size
estimate_shared(CustomScanState *node, ParallelContext *pcxt)
{
	return table_parallelscan_estimate(node->ss.ss_currentRelation, node->ss.ps.state->es_snapshot);
}

static void
initialize_shared(CustomScanState *node, ParallelContext *pcxt, void *shared)
{
	table_parallelscan_initialize(node->ss.ss_currentRelation, shared, node->ss.ps.state->es_snapshot);
	scan_begun(node, table_beginscan_parallel(node->ss.ss_currentRelation, shared));
}

static void
reinitialize_shared(CustomScanState *node, ParallelContext *pcxt, void *shared)
{
	table_parallelscan_reinitialize(node->ss.ss_currentRelation, shared);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc, void *shared)
{
	scan_begun(node, table_beginscan_parallel(node->ss.ss_currentRelation, shared));
}

static const CustomExecMethods exec_methods = {
	.CustomName = "PaimonScan",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = exec_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
};

static Node *
create_scan_state(CustomScan *scan)
{
	PaimonScanNode *node = (PaimonScanNode *) newNode(sizeof(PaimonScanNode), T_CustomScanState);

	node->base.methods = &exec_methods;
	paimon_init_scan_slot(&node->base, &paimon_slot_ops);
	return (Node *) node;
}

void
paimon_customscan_init(void)
{
	RegisterCustomScanMethods(&scan_methods);
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
}
