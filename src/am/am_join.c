/*-------------------------------------------------------------------------
 *
 * am_join.c
 *	  Joins that look up many keys: in the order of the keys.
 *
 * A lookup opens the row group that has the key, and in it a piece of each column wanted; the next lookup finds them open if its key is near.  So a nested
 * loop over a paimon table costs a fraction if its outer rows come in the order of the key, even where they must be sorted for it.  Core does not know
 * that an inner index scan can be cheaper for one order than for another; here such paths are added.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "access/sysattr.h"
#include "am/am.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* In cpu_operator_cost, of a lookup next to the one before. */
#define NEXT_LOOKUP_COST		30.0
#define NEXT_COLUMN_COST		5.0
#define NEXT_TEXT_COST			100.0	/* a unit of text has a few hundred rows: mostly another one */
#define TEXT_WIDTH				24
/* Pages that are read, as if at random, when a lookup comes to another row group. */
#define PAGES_OF_GROUP			4.0
#define ROWS_OF_GROUP			4096.0

static set_join_pathlist_hook_type prev_set_join_pathlist = NULL;

/* What one of `lookups` ordered lookups costs. */
static Cost
ordered_lookup_cost(PlannerInfo *root, const IndexPath *path, double lookups)
{
	RelOptInfo *rel = path->path.parent;
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	double		groups = Max(rel->tuples / ROWS_OF_GROUP, 1);
	double		cost = NEXT_LOOKUP_COST;
	Bitmapset  *wanted = NULL;
	int			member = -1;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &wanted);
	while ((member = bms_next_member(wanted, member)) >= 0)
	{
		AttrNumber	attno = member + FirstLowInvalidHeapAttributeNumber;

		if (attno > 0)
			cost += get_attavgwidth(rte->relid, attno) >= TEXT_WIDTH ? NEXT_TEXT_COST : NEXT_COLUMN_COST;
		else if (attno == 0)
			cost += NEXT_TEXT_COST;
	}
	bms_free(wanted);
	return cost * cpu_operator_cost + Min(groups / Max(lookups, 1), 1.0) * PAGES_OF_GROUP * random_page_cost;
}

/* The equivalence class of the clause that gives the first column of the key from the outer side; NULL if there is none, or it is a list of values. */
static EquivalenceClass *
class_of_first_column(PlannerInfo *root, const IndexPath *path, Relids outer)
{
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		RestrictInfo *rinfo = clause->rinfo;

		if (clause->indexcol != 0 || list_length(clause->indexquals) != 1 || !rinfo->can_join || rinfo->mergeopfamilies == NIL ||
			rinfo->left_ec == NULL)
			continue;
		update_mergeclause_eclasses(root, rinfo);
		if (bms_is_subset(rinfo->right_relids, outer))
			return rinfo->right_ec;
		if (bms_is_subset(rinfo->left_relids, outer))
			return rinfo->left_ec;
	}
	return NULL;
}

/* All columns of the key by equality: one row for each outer row. */
static bool
names_one_key(const IndexPath *path)
{
	Bitmapset  *columns = NULL;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		Expr	   *qual = list_length(clause->indexquals) == 1 ? linitial_node(RestrictInfo, clause->indexquals)->clause : NULL;

		if (qual != NULL && IsA(qual, OpExpr) &&
			get_op_opfamily_strategy(((OpExpr *) qual)->opno, path->indexinfo->opfamily[clause->indexcol]) == BTEqualStrategyNumber)
			columns = bms_add_member(columns, clause->indexcol);
	}
	return bms_num_members(columns) == path->indexinfo->nkeycolumns;
}

static void
add_ordered_lookups(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, IndexPath *inner, JoinType jointype, JoinPathExtraData *extra)
{
	Path	   *outer = outerrel->cheapest_total_path;
	EquivalenceClass *ec = class_of_first_column(root, inner, outerrel->relids);
	JoinCostWorkspace workspace;
	IndexPath  *ordered;
	List	   *pathkeys;
	Cost		cost;

	if (ec == NULL || ec->ec_has_volatile || !list_member_oid(ec->ec_opfamilies, inner->indexinfo->opfamily[0]))
		return;
	pathkeys = list_make1(make_canonical_pathkey(root, ec, inner->indexinfo->opfamily[0], BTLessStrategyNumber, false));
	if (!pathkeys_contained_in(pathkeys, outer->pathkeys))
		outer = (Path *) create_sort_path(root, outerrel, outer, pathkeys, -1.0);

	cost = ordered_lookup_cost(root, inner, outer->rows);
	if (cost >= inner->path.total_cost)
		return;
	ordered = makeNode(IndexPath);
	*ordered = *inner;
	ordered->path.total_cost = cost;
	ordered->path.startup_cost = 0;
	initial_cost_nestloop(root, &workspace, jointype, outer, &ordered->path, extra);
	pathkeys = build_join_pathkeys(root, joinrel, jointype, outer->pathkeys);
	add_path(joinrel, (Path *) create_nestloop_path(root, joinrel, jointype, &workspace, extra, outer, &ordered->path,
													extra->restrictlist, pathkeys, NULL));
}

static void
set_join_pathlist(PlannerInfo *root, RelOptInfo *joinrel, RelOptInfo *outerrel, RelOptInfo *innerrel, JoinType jointype,
				  JoinPathExtraData *extra)
{
	ListCell   *lc;

	if (prev_set_join_pathlist)
		prev_set_join_pathlist(root, joinrel, outerrel, innerrel, jointype, extra);
	if (jointype != JOIN_INNER && jointype != JOIN_LEFT && jointype != JOIN_SEMI && jointype != JOIN_ANTI)
		return;
	if (!enable_nestloop || outerrel->cheapest_total_path == NULL || PATH_REQ_OUTER(outerrel->cheapest_total_path) != NULL)
		return;
	foreach(lc, innerrel->cheapest_parameterized_paths)
	{
		IndexPath  *inner = lfirst(lc);

		if (IsA(inner, IndexPath) && inner->indexinfo->amcostestimate == (void (*) ()) paimon_key_cost_estimate &&
			PATH_REQ_OUTER(&inner->path) != NULL && bms_is_subset(PATH_REQ_OUTER(&inner->path), outerrel->relids) && names_one_key(inner))
			add_ordered_lookups(root, joinrel, outerrel, inner, jointype, extra);
	}
}

void
paimon_join_init(void)
{
	prev_set_join_pathlist = set_join_pathlist_hook;
	set_join_pathlist_hook = set_join_pathlist;
}
