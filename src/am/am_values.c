/*-------------------------------------------------------------------------
 *
 * am_values.c
 *	  INSERT ... VALUES (...), (...), ... into our tables: the rows of the list.
 *
 * Core prepares each expression of each row for execution, and throws it away after the row: a fifth of the processor time of a statement with a
 * hundred rows.  Most of them are constants and parameters, which are taken as they are here; other expressions are evaluated as core does it.  The
 * plan and its node stay core's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "am/am.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "pgstat.h"
#include "utils/acl.h"
#include "utils/expandeddatum.h"

/* Arguments of a call that is worth looking at: varchar(value, length, explicit) has so many. */
#define CALL_ARGS	3

/* The value of a parameter from outside, as core finds it; false if there is anything to complain about. */
static bool
take_param(const Param *param, ExprContext *econtext, Datum *value, bool *isnull)
{
	ParamListInfo params = econtext->ecxt_param_list_info;
	ParamExternData fetched;
	const ParamExternData *p;

	if (param->paramkind != PARAM_EXTERN || params == NULL || param->paramid <= 0 || param->paramid > params->numParams)
		return false;
	p = params->paramFetch == NULL ? &params->params[param->paramid - 1] : params->paramFetch(params, param->paramid, false, &fetched);
	if (p->ptype != param->paramtype)
		return false;
	*value = p->value;
	*isnull = p->isnull;
	return true;
}

/* The value of a constant or parameter; false if it is neither. */
static bool
take_plain(const Expr *expr, ExprContext *econtext, Datum *value, bool *isnull)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	if (IsA(expr, Param))
		return take_param((const Param *) expr, econtext, value, isnull);
	if (!IsA(expr, Const))
		return false;
	*value = ((const Const *) expr)->constvalue;
	*isnull = ((const Const *) expr)->constisnull;
	return true;
}

/* The result of a strict function of the server itself whose arguments are plain: of now(), nextval() or $1 + 1; false if it is anything else. */
static bool
take_call(Expr *expr, ExprContext *econtext, Datum *value, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, CALL_ARGS);
	FmgrInfo	flinfo;
	Oid			function;
	Oid			collation;
	List	   *args;
	short		nargs = 0;
	ListCell   *lc;

	if (IsA(expr, OpExpr) && !((OpExpr *) expr)->opretset)
	{
		function = ((OpExpr *) expr)->opfuncid;
		collation = ((OpExpr *) expr)->inputcollid;
		args = ((OpExpr *) expr)->args;
	}
	else if (IsA(expr, FuncExpr) && !((FuncExpr *) expr)->funcretset && !((FuncExpr *) expr)->funcvariadic)
	{
		function = ((FuncExpr *) expr)->funcid;
		collation = ((FuncExpr *) expr)->inputcollid;
		args = ((FuncExpr *) expr)->args;
	}
	else
		return false;
	/* core complains if it may not be called */
	if (function >= FirstGenbkiObjectId || list_length(args) > CALL_ARGS || !paimon_can_execute(function, GetUserId()))
		return false;
	*isnull = false;
	foreach(lc, args)
	{
		if (!take_plain(lfirst(lc), econtext, &fcinfo->args[nargs].value, &fcinfo->args[nargs].isnull))
			return false;
		*isnull |= fcinfo->args[nargs++].isnull;
	}
	fmgr_info(function, &flinfo);
	if (!flinfo.fn_strict || flinfo.fn_stats != TRACK_FUNC_ALL)
		return false;
	InvokeFunctionExecuteHook(function);
	*value = (Datum) 0;
	if (*isnull)
		return true;
	fmgr_info_set_expr((Node *) expr, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, nargs, collation, NULL, NULL);
	*value = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return true;
}

static Datum
evaluate(Expr *expr, ExprContext *econtext, bool *isnull)
{
	Datum		value;

	if (take_plain(expr, econtext, &value, isnull) || take_call(expr, econtext, &value, isnull))
		return value;
	return ExecEvalExpr(ExecInitExpr(expr, NULL), econtext, isnull);
}

/* The next row of the list: what core's ValuesScan does when there is no condition and no projection. */
static TupleTableSlot *
next_row(PlanState *ps)
{
	ValuesScanState *node = castNode(ValuesScanState, ps);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->rowcontext;
	int			column = 0;
	MemoryContext old;
	ListCell   *lc;

	CHECK_FOR_INTERRUPTS();
	ExecClearTuple(slot);
	if (node->curr_idx < node->array_len)
		node->curr_idx++;
	if (node->curr_idx >= node->array_len)
		return slot;
	ReScanExprContext(econtext);
	old = MemoryContextSwitchTo(econtext->ecxt_per_tuple_memory);
	foreach(lc, node->exprlists[node->curr_idx])
	{
		Datum		value = evaluate(lfirst(lc), econtext, &slot->tts_isnull[column]);

		if (!IsA(lfirst(lc), Const))
			value = MakeExpandedObjectReadOnly(value, slot->tts_isnull[column], TupleDescAttr(slot->tts_tupleDescriptor, column)->attlen);
		slot->tts_values[column++] = value;
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* The plan of an INSERT into one of our tables has started: its list of rows, if it has one that needs nothing else, is ours to walk. */
void
paimon_values_start(ModifyTableState *mt)
{
	ValuesScanState *node = (ValuesScanState *) outerPlanState(mt);
	Relation	rel = mt->rootResultRelInfo->ri_RelationDesc;

	if (mt->operation != CMD_INSERT || rel->rd_rel->relkind != RELKIND_RELATION || !paimon_is_table(RelationGetRelid(rel)))
		return;
	if (!IsA(node, ValuesScanState) || node->ss.ps.qual != NULL || node->ss.ps.ps_ProjInfo != NULL)
		return;
	/* Rows with subqueries have been prepared when the plan started. */
	for (int i = 0; i < node->array_len; i++)
	{
		if (node->exprstatelists[i] != NIL)
			return;
	}
	ExecSetExecProcNode(&node->ss.ps, next_row);
}
