/*-------------------------------------------------------------------------
 *
 * am_path.c
 *	  What the planner may expect of a primary key's order.
 *
 * An index scan gives rows in the order of their encoded keys.  That is the order of the operator class for most types, but not for enums, nor for text unless
 * its collation sorts by bytes.  Core takes all access methods that can order to do so for all types: here the claim is taken back for keys with such
 * columns, before anything is planned, and what is left of it is given to paths of our own.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "nodes/pathnodes.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/plancat.h"
#include "row/row.h"
#include "utils/lsyscache.h"

static get_relation_info_hook_type prev_get_relation_info = NULL;
static set_rel_pathlist_hook_type prev_set_rel_pathlist = NULL;

static bool
is_ours(const IndexOptInfo *index)
{
	return index->amcostestimate == (void (*) ()) paimon_key_cost_estimate;
}

/* Are the key's bytes sorted as this column's operator class sorts? */
bool
paimon_index_column_ordered(Oid relid, const IndexOptInfo *index, int column)
{
	return paimon_key_type_orders(get_atttype(relid, index->indexkeys[column]), index->indexcollations[column]);
}

static bool
all_ordered(Oid relid, const IndexOptInfo *index)
{
	for (int i = 0; i < index->nkeycolumns; i++)
		if (!paimon_index_column_ordered(relid, index, i))
			return false;
	return true;
}

static void
claim_order(IndexOptInfo *index, bool claim)
{
	index->sortopfamily = claim ? index->opfamily : NULL;
	index->reverse_sort = claim ? palloc0_array(bool, index->nkeycolumns) : NULL;
	index->nulls_first = claim ? palloc0_array(bool, index->nkeycolumns) : NULL;
}

static void
relation_info(PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel)
{
	ListCell   *lc;

	if (prev_get_relation_info)
		prev_get_relation_info(root, relid, inhparent, rel);
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (is_ours(index) && index->sortopfamily != NULL && !all_ordered(relid, index))
			claim_order(index, false);
	}
}

/*
 * Of the path keys of an index that claims order for all its columns, how many are true: those up to the first column that is not sorted and not
 * constant in the query.
 */
static int
count_true_pathkeys(PlannerInfo *root, Oid relid, IndexOptInfo *index, ScanDirection direction)
{
	int			ncolumns = index->nkeycolumns;
	int			n = 0;

	for (int i = 0; i < ncolumns; i++)
	{
		int			with;

		index->nkeycolumns = i + 1;
		with = list_length(build_index_pathkeys(root, index, direction));
		if (with > n && !paimon_index_column_ordered(relid, index, i))
			break;
		n = with;
	}
	index->nkeycolumns = ncolumns;
	return n;
}

/*
 * Core's paths for one index as if all of its columns were sorted, each with as much of the order as is true.
 */
static List *
partly_ordered_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid, IndexOptInfo *index)
{
	List	   *pathlist = rel->pathlist;
	List	   *partial_pathlist = rel->partial_pathlist;
	List	   *indexlist = rel->indexlist;
	List	   *result = NIL;
	int			forward;
	int			backward;
	ListCell   *lc;

	claim_order(index, true);
	forward = count_true_pathkeys(root, relid, index, ForwardScanDirection);
	backward = count_true_pathkeys(root, relid, index, BackwardScanDirection);
	rel->pathlist = rel->partial_pathlist = NIL;
	rel->indexlist = list_make1(index);
	if (forward > 0 || backward > 0)
		create_index_paths(root, rel);
	foreach(lc, rel->pathlist)
	{
		IndexPath  *path = lfirst(lc);
		int			n;

		if (!IsA(path, IndexPath))
			continue;
		n = ScanDirectionIsBackward(path->indexscandir) ? backward : forward;
		path->path.pathkeys = list_truncate(list_copy(path->path.pathkeys), n);
		if (path->path.pathkeys != NIL)
			result = lappend(result, path);
	}
	rel->pathlist = pathlist;
	rel->partial_pathlist = partial_pathlist;
	rel->indexlist = indexlist;
	claim_order(index, false);
	return result;
}

static void
add_paths(RelOptInfo *rel, List *paths)
{
	ListCell   *lc;

	foreach(lc, paths)
		add_path(rel, lfirst(lc));
}

/* Is it the row of a cursor that is wanted?  Only a scan by ctid finds it: until 17 its cost says so, and since 18 core offers nothing else. */
bool
paimon_wants_current_of(const RelOptInfo *rel)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		if (IsA(lfirst_node(RestrictInfo, lc)->clause, CurrentOfExpr))
			return true;
	}
	return false;
}

/*
 * Core knows indexes that are ordered and others.  A key (tenant text, at timestamptz) is ordered by its second column where the first is given: paths for that
 * are added here, and those by conditions that core does not give to our keys (am_derive.c).
 */
static void
set_rel_pathlist(PlannerInfo *root, RelOptInfo *rel, Index rti, RangeTblEntry *rte)
{
	ListCell   *lc;

	if (prev_set_rel_pathlist)
		prev_set_rel_pathlist(root, rel, rti, rte);
	if (rte->rtekind != RTE_RELATION || rte->inh || rel->pathlist == NIL || IS_DUMMY_REL(rel) || paimon_wants_current_of(rel))
		return;
	foreach(lc, rel->indexlist)
	{
		IndexOptInfo *index = lfirst_node(IndexOptInfo, lc);

		if (!is_ours(index))
			continue;
		add_paths(rel, paimon_derived_paths(root, rel, index));
		if (index->sortopfamily == NULL && has_useful_pathkeys(root, rel))
			add_paths(rel, partly_ordered_paths(root, rel, rte->relid, index));
	}
}

void
paimon_path_init(void)
{
	prev_get_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
	prev_set_rel_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = set_rel_pathlist;
}
