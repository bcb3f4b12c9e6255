/*-------------------------------------------------------------------------
 *
 * am_derive.c
 *	  Conditions on a primary key that core keeps to btrees, or to bitmaps.
 *
 * Of a comparison of rows, (a, b) > (1, 2), which core plans and executes for btrees only, it follows that a >= 1.  Of a choice, (a, b) IN ((1, 2), (3, 4)) or
 * a = 1 OR a = 5, where core would unite bitmaps, it follows that a is one of a list.  That is what the index is asked for; the condition itself is checked row by
 * row, as it is without.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "am/am.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "utils/lsyscache.h"

/* Lists for more than the first column are made while their combinations are no more than this. */
#define MAX_COMBINATIONS 64

/* May an index be asked for what this comes to? */
static bool
can_be_operand(PlannerInfo *root, Node *node)
{
	return bms_is_empty(pull_varnos(root, node)) && !contain_volatile_functions(node) && !contain_subplans(node);
}

/* The column's equality in one arm of a choice; NULL if it has none.  *operand: what the column equals, *column: its side. */
static OpExpr *
arm_equality(PlannerInfo *root, Node *arm, IndexOptInfo *index, int column, Node **side, Node **operand)
{
	List	   *conditions = is_andclause(arm) ? ((BoolExpr *) arm)->args : list_make1(arm);
	ListCell   *lc;

	foreach(lc, conditions)
	{
		OpExpr	   *op = (OpExpr *) lfirst(lc);

		if (!IsA(op, OpExpr) || list_length(op->args) != 2 ||
			(OidIsValid(index->indexcollations[column]) && index->indexcollations[column] != op->inputcollid))
			continue;
		*side = linitial(op->args);
		*operand = lsecond(op->args);
		if (!match_index_to_operand(*side, column, index))
			continue;
		if (get_op_opfamily_strategy(op->opno, index->opfamily[column]) == BTEqualStrategyNumber && can_be_operand(root, *operand))
			return op;
	}
	return NULL;
}

/* column = ANY (what the arms of a choice say of it); NULL if one says nothing, or something of another type. */
static Expr *
list_of_arms(PlannerInfo *root, List *arms, IndexOptInfo *index, int column)
{
	ScalarArrayOpExpr *any = makeNode(ScalarArrayOpExpr);
	ArrayExpr  *array = makeNode(ArrayExpr);
	Node	   *column_side = NULL;
	OpExpr	   *first = NULL;
	ListCell   *lc;

	foreach(lc, arms)
	{
		Node	   *side;
		Node	   *operand;
		OpExpr	   *op = arm_equality(root, lfirst(lc), index, column, &side, &operand);

		if (op == NULL)
			return NULL;
		if (first == NULL)
		{
			first = op;
			column_side = side;
			array->element_typeid = exprType(operand);
			array->array_collid = exprCollation(operand);
		}
		else if (op->opno != first->opno || exprType(operand) != array->element_typeid || exprCollation(operand) != array->array_collid)
			return NULL;
		array->elements = lappend(array->elements, copyObject(operand));
	}
	array->array_typeid = get_array_type(array->element_typeid);
	if (!OidIsValid(array->array_typeid))
		return NULL;
	array->location = -1;
	any->opno = first->opno;
	any->opfuncid = get_opcode(first->opno);
	any->useOr = true;
	any->inputcollid = first->inputcollid;
	any->args = list_make2(copyObject(column_side), array);
	any->location = -1;
	return (Expr *) eval_const_expressions(root, (Node *) any);
}

/* What follows from a choice for columns of the key: the first that all its arms have, and those that come next to it. */
static List *
follow_choice(PlannerInfo *root, IndexOptInfo *index, RestrictInfo *choice)
{
	List	   *arms = ((BoolExpr *) choice->clause)->args;
	double		combinations = 1;
	List	   *result = NIL;

	for (int column = 0; column < index->nkeycolumns; column++)
	{
		Expr	   *any;

		any = list_of_arms(root, arms, index, column);
		if (any == NULL || !IsA(any, ScalarArrayOpExpr))
		{
			if (result != NIL)
				break;
			continue;
		}
		combinations *= list_length(arms);
		if (result != NIL && combinations > MAX_COMBINATIONS)
			break;
		result = lappend(result, make_simple_restrictinfo(root, any));
	}
	return result;
}

/* What follows from a comparison of rows for its first column. */
static List *
follow_row_comparison(PlannerInfo *root, IndexOptInfo *index, const RowCompareExpr *rows)
{
	Node	   *left = linitial(rows->largs);
	Node	   *right = linitial(rows->rargs);
	Oid			collation = linitial_oid(rows->inputcollids);

	for (int column = 0; column < index->nkeycolumns; column++)
	{
		bool		commuted = match_index_to_operand(right, column, index);
		Oid			op = commuted ? get_commutator(linitial_oid(rows->opnos)) : linitial_oid(rows->opnos);
		Node	   *operand = commuted ? left : right;
		int			strategy;
		Oid			lefttype;
		Oid			righttype;

		if ((!commuted && !match_index_to_operand(left, column, index)) || !op_in_opfamily(op, index->opfamily[column]) ||
			(OidIsValid(index->indexcollations[column]) && index->indexcollations[column] != collation) ||
			!can_be_operand(root, operand))
			continue;
		get_op_opfamily_properties(op, index->opfamily[column], false, &strategy, &lefttype, &righttype);
		strategy = strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber ? BTLessEqualStrategyNumber : BTGreaterEqualStrategyNumber;
		op = get_opfamily_member(index->opfamily[column], lefttype, righttype, strategy);
		if (OidIsValid(op))
		{
			OpExpr	   *bound = (OpExpr *) make_opclause(op, BOOLOID, false, copyObject(commuted ? (Expr *) right : (Expr *) left),
														 (Expr *) copyObject(operand), InvalidOid, collation);

			set_opfuncid(bound);
			return list_make1(make_simple_restrictinfo(root, (Expr *) bound));
		}
	}
	return NIL;
}

/* Does the path use a derived condition? */
static bool
uses_any(IndexPath *path, List *derived)
{
	ListCell   *lc;

	foreach(lc, path->indexclauses)
	{
		if (list_member_ptr(derived, lfirst_node(IndexClause, lc)->rinfo))
			return true;
	}
	return false;
}

/*
 * Index paths by such conditions; NIL if there are none.
 */
List *
paimon_derived_paths(PlannerInfo *root, RelOptInfo *rel, IndexOptInfo *index)
{
	List	   *pathlist = rel->pathlist;
	List	   *partial_pathlist = rel->partial_pathlist;
	List	   *indexlist = rel->indexlist;
	List	   *restrictions = index->indrestrictinfo;
	List	   *derived = NIL;
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, restrictions)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (rinfo->security_level > rel->baserestrict_min_security)
			continue;
		if (IsA(rinfo->clause, RowCompareExpr))
			derived = list_concat(derived, follow_row_comparison(root, index, (RowCompareExpr *) rinfo->clause));
		else if (is_orclause(rinfo->clause))
			derived = list_concat(derived, follow_choice(root, index, rinfo));
	}
	if (derived == NIL)
		return NIL;
	rel->pathlist = rel->partial_pathlist = NIL;
	rel->indexlist = list_make1(index);
	index->indrestrictinfo = list_concat_copy(derived, restrictions);
	create_index_paths(root, rel);
	foreach(lc, rel->pathlist)
	{
		if (IsA(lfirst(lc), IndexPath) && uses_any(lfirst(lc), derived))
			result = lappend(result, lfirst(lc));
	}
	index->indrestrictinfo = restrictions;
	rel->pathlist = pathlist;
	rel->partial_pathlist = partial_pathlist;
	rel->indexlist = indexlist;
	return result;
}
