/*-------------------------------------------------------------------------
 *
 * am_path.c
 *	  What the planner may expect of a primary key's order.
 *
 * An index scan gives rows in the order of their encoded keys.  That is the order of the operator class for most types, but not for enums, nor for text unless
 * its collation sorts by bytes.  Core takes all access methods that can order to do so for all types: here the claim is taken back for keys with such
 * columns, before anything is planned.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "nodes/pathnodes.h"
#include "optimizer/plancat.h"
#include "row/row.h"
#include "utils/lsyscache.h"

static get_relation_info_hook_type prev_get_relation_info = NULL;

static bool
is_ours(const IndexOptInfo *index)
{
	return index->amcostestimate == (void (*) ()) paimon_key_cost_estimate;
}

/* How many of the key's columns, from the first on, are sorted as their operator classes sort. */
int
paimon_index_ordered_columns(Oid relid, const IndexOptInfo *index)
{
	int			n;

	for (n = 0; n < index->nkeycolumns; n++)
		if (!paimon_key_type_orders(get_atttype(relid, index->indexkeys[n]), index->indexcollations[n]))
			break;
	return n;
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

		if (is_ours(index) && index->sortopfamily != NULL && paimon_index_ordered_columns(relid, index) < index->nkeycolumns)
		{
			index->sortopfamily = NULL;
			index->reverse_sort = NULL;
			index->nulls_first = NULL;
		}
	}
}

void
paimon_path_init(void)
{
	prev_get_relation_info = get_relation_info_hook;
	get_relation_info_hook = relation_info;
}
