/*-------------------------------------------------------------------------
 *
 * am_cost.c
 *	  What the planner is told about lookups by key.
 *
 * Core charges the pages of the table by itself.  What it cannot know is that a row is put together from its columns: a lookup alone pays for each of
 * them what a sequential scan shares with the rows around, and opens a unit of text for a single value.  So lookups are cheap as long as they are few or
 * need the key only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "am/am.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

/* In cpu_operator_cost, measured against the row of a sequential scan (4 of them) that has some columns read. */
#define LOOKUP_KEY_COST		50.0	/* filter, group, search */
#define LOOKUP_COLUMN_COST	50.0	/* one value of packed numbers or of a dictionary */
#define LOOKUP_TEXT_COST	350.0	/* one value out of a unit of text */
#define LOOKUP_TEXT_WIDTH	24		/* narrower ones are taken to be in a dictionary */

/*
 * How many keys the clauses name: 0 if they do not give every key column by equality (or by a list of values).
 */
static double
points_of_clauses(PlannerInfo *root, IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;
	Bitmapset  *columns = NULL;
	double		points = 1;
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		foreach(lc2, clause->indexquals)
		{
			Expr	   *qual = lfirst_node(RestrictInfo, lc2)->clause;
			Oid			op = InvalidOid;
			double		n = 1;

			if (IsA(qual, OpExpr))
				op = ((OpExpr *) qual)->opno;
			else if (IsA(qual, ScalarArrayOpExpr))
			{
				op = ((ScalarArrayOpExpr *) qual)->opno;
				n = paimon_estimate_array_length(root, lsecond(((ScalarArrayOpExpr *) qual)->args));
			}
			if (!OidIsValid(op) || bms_is_member(clause->indexcol, columns) ||
				get_op_opfamily_strategy(op, index->opfamily[clause->indexcol]) != BTEqualStrategyNumber)
				continue;
			columns = bms_add_member(columns, clause->indexcol);
			points *= Max(n, 1);
		}
	}
	return bms_num_members(columns) == index->nkeycolumns ? points : 0;
}

/* Does the query need the column?  An UPDATE reads the whole row that it changes. */
static bool
column_needed(PlannerInfo *root, RelOptInfo *rel, AttrNumber attno)
{
	if (root->parse->commandType == CMD_UPDATE && bms_is_member(rel->relid, root->all_result_relids))
		return true;
	return !bms_is_empty(rel->attr_needed[attno - rel->min_attr]) || !bms_is_empty(rel->attr_needed[0 - rel->min_attr]);
}

static bool
key_column(const IndexOptInfo *index, AttrNumber attno)
{
	for (int i = 0; i < index->nkeycolumns; i++)
		if (index->indexkeys[i] == attno)
			return true;
	return false;
}

/* Of one lookup, the pages apart. */
static Cost
lookup_cost(PlannerInfo *root, IndexOptInfo *index)
{
	RelOptInfo *rel = index->rel;
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Relation	table = RelationIdGetRelation(rte->relid);
	TupleDesc	desc;
	double		cost = LOOKUP_KEY_COST;

	if (table == NULL)
		return cost * cpu_operator_cost;
	desc = RelationGetDescr(table);
	for (int i = 0; i < desc->natts && i < rel->max_attr; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || key_column(index, att->attnum) || !column_needed(root, rel, att->attnum))
			continue;
		if (att->attlen == -1 && get_attavgwidth(rte->relid, att->attnum) >= LOOKUP_TEXT_WIDTH)
			cost += LOOKUP_TEXT_COST;
		else
			cost += LOOKUP_COLUMN_COST;
	}
	RelationClose(table);
	return cost * cpu_operator_cost;
}

/* amcostestimate of paimon_key. */
void
paimon_key_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
						 Selectivity *selectivity, double *correlation, double *pages)
{
	RelOptInfo *rel = path->indexinfo->rel;
	double		points = points_of_clauses(root, path);

	*startup = 0;
	if (points > 0)
	{
		*selectivity = Min(points / Max(rel->tuples, 1), 1.0);
		*total = points * lookup_cost(root, path->indexinfo);
		/*
		 * Core takes the pages that a correlated index reads to be the same share of the table as the rows; of a table with few rows in many
		 * versions that would be all pages, and plans made then, and kept, would read all versions for each row.
		 */
		*correlation = 0;
		*pages = Max(points, 1);
		return;
	}
	/* The whole table is read, row by row: dearer than a sequential scan in any case. */
	*selectivity = 1.0;
	*correlation = 1;
	*total = 2 * (seq_page_cost * rel->pages + cpu_tuple_cost * rel->tuples);
	*pages = rel->pages;
}
