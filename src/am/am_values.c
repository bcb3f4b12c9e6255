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

/* A constant or parameter? */
static bool
is_plain(const Expr *expr)
{
	while (IsA(expr, RelabelType))
		expr = ((const RelabelType *) expr)->arg;
	return IsA(expr, Const) || IsA(expr, Param);
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

/* What an operator or a function call calls, and with what. */
typedef struct Call
{
	Oid			function;
	Oid			collation;
	List	   *args;
} Call;

/* Is the expression the call of a function of the server itself with plain arguments? */
static bool
find_call(const Expr *expr, Call *call)
{
	ListCell   *lc;

	if (IsA(expr, OpExpr) && !((const OpExpr *) expr)->opretset)
		*call = (Call) {((const OpExpr *) expr)->opfuncid, ((const OpExpr *) expr)->inputcollid, ((const OpExpr *) expr)->args};
	else if (IsA(expr, FuncExpr) && !((const FuncExpr *) expr)->funcretset && !((const FuncExpr *) expr)->funcvariadic)
		*call = (Call) {((const FuncExpr *) expr)->funcid, ((const FuncExpr *) expr)->inputcollid, ((const FuncExpr *) expr)->args};
	else
		return false;
	if (call->function >= FirstGenbkiObjectId || list_length(call->args) > CALL_ARGS)
		return false;
	foreach(lc, call->args)
	{
		if (!is_plain(lfirst(lc)))
			return false;
	}
	return true;
}

/* Is there nothing in the expression that core would have to prepare, or would complain about as it does? */
static bool
needs_no_state(const Expr *expr)
{
	Call		call;

	return is_plain(expr) || (find_call(expr, &call) && paimon_can_execute(call.function, GetUserId()));
}

/* The result of a strict function of the server itself whose arguments are plain: of now(), nextval() or $1 + 1; false if it is anything else. */
static bool
take_call(Expr *expr, ExprContext *econtext, Datum *value, bool *isnull)
{
	LOCAL_FCINFO(fcinfo, CALL_ARGS);
	FmgrInfo	flinfo;
	Call		call;
	short		nargs = 0;
	ListCell   *lc;

	if (!find_call(expr, &call))
		return false;
	*isnull = false;
	foreach(lc, call.args)
	{
		if (!take_plain(lfirst(lc), econtext, &fcinfo->args[nargs].value, &fcinfo->args[nargs].isnull))
			return false;
		*isnull |= fcinfo->args[nargs++].isnull;
	}
	fmgr_info(call.function, &flinfo);
	if (!flinfo.fn_strict || flinfo.fn_stats != TRACK_FUNC_ALL)
		return false;
	InvokeFunctionExecuteHook(call.function);
	*value = (Datum) 0;
	if (*isnull)
		return true;
	fmgr_info_set_expr((Node *) expr, &flinfo);
	InitFunctionCallInfoData(*fcinfo, &flinfo, nargs, call.collation, NULL, NULL);
	*value = FunctionCallInvoke(fcinfo);
	*isnull = fcinfo->isnull;
	return true;
}

static Datum
evaluate(Expr *expr, ExprState *state, ExprContext *econtext, bool *isnull)
{
	Datum		value;

	if (state == NULL && (take_plain(expr, econtext, &value, isnull) || take_call(expr, econtext, &value, isnull)))
		return value;
	return ExecEvalExpr(state != NULL ? state : ExecInitExpr(expr, NULL), econtext, isnull);
}

/*
 * The states of a row's expressions, where they need one; NULL if none does.  As in core, all are made before the first is evaluated: what may not be
 * called is found first.
 */
static ExprState **
prepare_row(List *exprs)
{
	ExprState **states = NULL;
	ListCell   *lc;

	foreach(lc, exprs)
	{
		if (needs_no_state(lfirst(lc)))
			continue;
		if (states == NULL)
			states = palloc0_array(ExprState *, list_length(exprs));
		states[foreach_current_index(lc)] = ExecInitExpr(lfirst(lc), NULL);
	}
	return states;
}

/* The next row of the list: what core's ValuesScan does when there is no condition. */
static TupleTableSlot *
next_row(PlanState *ps)
{
	ValuesScanState *node = castNode(ValuesScanState, ps);
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ExprContext *econtext = node->rowcontext;
	ExprState **states;
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
	states = prepare_row(node->exprlists[node->curr_idx]);
	foreach(lc, node->exprlists[node->curr_idx])
	{
		Datum		value = evaluate(lfirst(lc), states != NULL ? states[column] : NULL, econtext, &slot->tts_isnull[column]);

		if (!IsA(lfirst(lc), Const))
			value = MakeExpandedObjectReadOnly(value, slot->tts_isnull[column], TupleDescAttr(slot->tts_tupleDescriptor, column)->attlen);
		slot->tts_values[column++] = value;
	}
	MemoryContextSwitchTo(old);
	return ExecStoreVirtualTuple(slot);
}

/* As next_row, where the statement leaves columns to their defaults. */
static TupleTableSlot *
next_projected_row(PlanState *ps)
{
	TupleTableSlot *row;

	ResetExprContext(ps->ps_ExprContext);
	row = next_row(ps);
	if (TupIsNull(row))
		return ExecClearTuple(ps->ps_ProjInfo->pi_state.resultslot);
	ps->ps_ExprContext->ecxt_scantuple = row;
	return ExecProject(ps->ps_ProjInfo);
}

/* The plan of an INSERT into one of our tables has started: its list of rows, if it has one that needs nothing else, is ours to walk. */
void
paimon_values_start(ModifyTableState *mt)
{
	ValuesScanState *node = (ValuesScanState *) outerPlanState(mt);
	Relation	rel = mt->rootResultRelInfo->ri_RelationDesc;

	if (mt->operation != CMD_INSERT || rel->rd_rel->relkind != RELKIND_RELATION || !paimon_is_table(RelationGetRelid(rel)))
		return;
	if (!IsA(node, ValuesScanState) || node->ss.ps.qual != NULL)
		return;
	/* Rows with subqueries have been prepared when the plan started. */
	for (int i = 0; i < node->array_len; i++)
	{
		if (node->exprstatelists[i] != NIL)
			return;
	}
	ExecSetExecProcNode(&node->ss.ps, node->ss.ps.ps_ProjInfo != NULL ? next_projected_row : next_row);
}
