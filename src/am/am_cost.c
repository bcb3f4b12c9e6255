/*-------------------------------------------------------------------------
 *
 * am_cost.c
 *	  What the planner is told about lookups and ranges by key.
 *
 * Core charges the pages of the table by itself.  What it cannot know is that a row is put together from its columns: a lookup alone pays for each of
 * them what a sequential scan shares with the rows around, and opens a unit of text for a single value.  So lookups are cheap as long as they are few or
 * need the key only.  Ranges read neighbouring rows, of the columns that the query wants: core's charge for pages is put right by them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "am/am.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

/* In cpu_operator_cost, measured against the row of a sequential scan (4 of them) that has some columns read. */
#define LOOKUP_KEY_COST		50.0	/* filter, group, search */
#define LOOKUP_COLUMN_COST	50.0	/* one value of packed numbers or of a dictionary */
#define LOOKUP_TEXT_COST	350.0	/* one value out of a unit of text */
#define LOOKUP_TEXT_WIDTH	24		/* narrower ones are taken to be in a dictionary */
#define RANGE_ROW_COST		6.0		/* of a row in a range, beside what core charges */
#define MERGE_ROW_COST		2.0		/* and for each level of the merge over buckets */

/* What an index path's conditions come to. */
typedef struct KeyConditions
{
	double		combinations;	/* of values for the columns given by equality, from the first on */
	int			nprefix;		/* such columns */
	List	   *bounds;			/* conditions that say where the scan reads (RestrictInfos); the others are checked row by row */
	int			nothers;
	bool		never;			/* IS NULL */
} KeyConditions;

/* Operator of a condition, and how many values it names; Invalid for others. */
static Oid
condition_operator(PlannerInfo *root, Expr *qual, double *n)
{
	*n = 1;
	if (IsA(qual, OpExpr))
		return ((OpExpr *) qual)->opno;
	if (IsA(qual, ScalarArrayOpExpr))
	{
		*n = Max(paimon_estimate_array_length(root, lsecond(((ScalarArrayOpExpr *) qual)->args)), 1);
		return ((ScalarArrayOpExpr *) qual)->opno;
	}
	return InvalidOid;
}

/* The same division of the conditions as am_index_keys.c will make. */
static void
divide_conditions(PlannerInfo *root, IndexPath *path, Oid relid, KeyConditions *c)
{
	IndexOptInfo *index = path->indexinfo;
	ListCell   *lc;
	int			equal = -1;		/* last column given by equality */

	memset(c, 0, sizeof(*c));
	c->combinations = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *clause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		foreach(lc2, clause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);
			int			column = clause->indexcol;
			double		n;
			Oid			op = condition_operator(root, rinfo->clause, &n);
			bool		equality = OidIsValid(op) && get_op_opfamily_strategy(op, index->opfamily[column]) == BTEqualStrategyNumber;

			if (equality && column == equal + 1)
			{
				equal = column;
				c->combinations *= n;
				c->bounds = lappend(c->bounds, rinfo);
			}
			else if (OidIsValid(op) && !equality && IsA(rinfo->clause, OpExpr) && column == equal + 1 &&
					 paimon_index_column_ordered(relid, index, column))
				c->bounds = lappend(c->bounds, rinfo);
			else if (!IsA(rinfo->clause, NullTest))
				c->nothers++;
			else if (((NullTest *) rinfo->clause)->nulltesttype == IS_NULL)
				c->never = true;
		}
	}
	c->nprefix = equal + 1;
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
lookup_cost(PlannerInfo *root, IndexOptInfo *index, Relation table)
{
	RelOptInfo *rel = index->rel;
	TupleDesc	desc = RelationGetDescr(table);
	double		cost = LOOKUP_KEY_COST;

	for (int i = 0; i < desc->natts && i < rel->max_attr; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || key_column(index, att->attnum) || !column_needed(root, rel, att->attnum))
			continue;
		if (att->attlen == -1 && get_attavgwidth(RelationGetRelid(table), att->attnum) >= LOOKUP_TEXT_WIDTH)
			cost += LOOKUP_TEXT_COST;
		else
			cost += LOOKUP_COLUMN_COST;
	}
	return cost * cpu_operator_cost;
}

/* How many buckets have to be looked into for one combination of values. */
static double
buckets_asked(IndexOptInfo *index, Relation table, int nprefix)
{
	const PaimonRowDesc *desc = paimon_table_get(table, false)->desc;

	for (int i = 0; i < desc->nbucketkeys; i++)
	{
		bool		given = false;

		for (int c = 0; c < nprefix; c++)
			given |= index->indexkeys[c] == desc->bucketkeys[i];
		if (!given)
			return desc->nbuckets;
	}
	return 1;
}

static void
range_cost(IndexPath *path, double loop_count, const KeyConditions *c, double buckets, double rows, double share, Cost *total)
{
	RelOptInfo *rel = path->indexinfo->rel;
	double		page_cost;
	double		pages = ceil(rows / Max(rel->tuples, 1) * rel->pages);

	get_tablespace_page_costs(rel->reltablespace, NULL, &page_cost);
	*total = cpu_operator_cost * (c->combinations * buckets * LOOKUP_KEY_COST +
								  rows * (RANGE_ROW_COST + MERGE_ROW_COST * log2(buckets) + c->nothers));
	if (path->path.pathtype == T_IndexOnlyScan)
		*total += page_cost * pages * share;	/* core takes all pages to be visible, and charges none */
	else if (loop_count <= 1 && pages > 1)
		*total -= page_cost * (pages - 1) * (1.0 - share);	/* core charges all columns' */
}

/* amcostestimate of paimon_key. */
void
paimon_key_cost_estimate(PlannerInfo *root, IndexPath *path, double loop_count, Cost *startup, Cost *total,
						 Selectivity *selectivity, double *correlation, double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	RelOptInfo *rel = index->rel;
	RangeTblEntry *rte = planner_rt_fetch(rel->relid, root);
	Relation	table = RelationIdGetRelation(rte->relid);
	KeyConditions c;

	if (table == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", rte->relid)));
	divide_conditions(root, path, rte->relid, &c);
	if (c.never)
		*selectivity = *total = *startup = *correlation = *pages = 0;
	else if (c.nprefix == index->nkeycolumns)
	{
		*selectivity = Min(c.combinations / Max(rel->tuples, 1), 1.0);
		*total = c.combinations * lookup_cost(root, index, table);
		*startup = 0;
		/*
		 * Core takes the pages that a correlated index reads to be the same share of the table as the rows; of a table with few rows in many
		 * versions that would be all pages, and plans made then, and kept, would read all versions for each row.
		 */
		*correlation = 0;
		*pages = Max(c.combinations, 1);
	}
	else
	{
		double		buckets = buckets_asked(index, table, c.nprefix);
		double		rows;

		*selectivity = clauselist_selectivity(root, c.bounds, rel->relid, JOIN_INNER, NULL);
		rows = clamp_row_est(*selectivity * rel->tuples);
		range_cost(path, loop_count, &c, buckets, rows, paimon_share_of_pages(rel, rte->relid), total);
		*startup = cpu_operator_cost * LOOKUP_KEY_COST * buckets;
		*correlation = 1;
		*pages = ceil(*selectivity * rel->pages);
	}
	RelationClose(table);
}
