/*-------------------------------------------------------------------------
 *
 * merge_user.c
 *	  A user's SQL function f(state, value) as aggregate function of a column.
 *
 * Whoever reads the table, or compacts it, calls the function; so it runs with the rights of the table's owner, and restricted as functions of
 * indexes are: a superuser's background worker must not run another's code as itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "compat.h"
#include "miscadmin.h"
#include "parser/parse_coerce.h"
#include "parser/parse_func.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "merge/merge_internal.h"
#include "merge/merge_server.h"

static void
name_call(void *arg)
{
	const PaimonMergeColumn *col = arg;

	errcontext("aggregate function %s of column \"%s\"", col->function, col->name);
}

/* What the function gives is assigned to the column, as in SQL: varchar(3) refuses what is longer, numeric(4,1) rounds. */
static Datum
fit_column(PaimonMergeType *t, Datum value)
{
	LOCAL_FCINFO(fcinfo, 3);

	InitFunctionCallInfoData(*fcinfo, &t->fit, t->fit.fn_nargs, t->collation, NULL, NULL);
	fcinfo->args[0].value = value;
	fcinfo->args[1].value = Int32GetDatum(t->typmod);
	fcinfo->args[2].value = BoolGetDatum(false);
	fcinfo->args[0].isnull = fcinfo->args[1].isnull = fcinfo->args[2].isnull = false;
	return FunctionCallInvoke(fcinfo);
}

static void
user_call(const PaimonMergeColumn *col, const PaimonCell *state, const PaimonCell *value, PaimonCell *result, const PaimonAllocator *alloc)
{
	PaimonMergeType *t = col->ops_arg;
	MemoryContext old = paimon_merge_enter(alloc);
	LOCAL_FCINFO(fcinfo, 2);
	ErrorContextCallback callback;
	Oid			user;
	int			context;
	int			settings;
	Datum		datum;
	bool		pushed = !ActiveSnapshotSet();

	/* workers merge without a snapshot, but SQL and PL functions want one, whatever they do with it */
	if (pushed)
		PushActiveSnapshot(GetTransactionSnapshot());
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(t->owner, context | SECURITY_RESTRICTED_OPERATION);
	settings = NewGUCNestLevel();
	InitFunctionCallInfoData(*fcinfo, &t->function, 2, t->collation, NULL, NULL);
	fcinfo->args[0].value = (Datum) state->word;
	fcinfo->args[0].isnull = state->isnull;
	fcinfo->args[1].value = (Datum) value->word;
	fcinfo->args[1].isnull = value->isnull;
	callback.callback = name_call;
	callback.arg = unconstify(PaimonMergeColumn *, col);
	callback.previous = error_context_stack;
	error_context_stack = &callback;
	datum = FunctionCallInvoke(fcinfo);
	if (!fcinfo->isnull && OidIsValid(t->fit.fn_oid))
		datum = fit_column(t, datum);
	error_context_stack = callback.previous;
	result->isnull = fcinfo->isnull;
	result->word = 0;
	if (!result->isnull)
		result->word = (uint64_t) (t->cache->typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM(datum)) : datum);
	AtEOXact_GUC(false, settings);
	SetUserIdAndSecContext(user, context);
	if (pushed)
	{
		PopActiveSnapshot();
		InvalidateCatalogSnapshot();
	}
	MemoryContextSwitchTo(old);
}

static const PaimonMergeOps strict_ops = {.compare = paimon_merge_type_compare, .call = user_call, .call_is_strict = true};
static const PaimonMergeOps lenient_ops = {.compare = paimon_merge_type_compare, .call = user_call, .call_is_strict = false};

static PaimonPlanCode
refuse(PaimonPlanError *error, PaimonPlanCode code, const char *format, const char *name, const PaimonMergeColumn *col, const char *type)
{
	snprintf(error->message, sizeof(error->message), format, name, col->name, type);
	return code;
}

/* The oid of f(type, type); invalid: there is none, or that is no name. */
static Oid
find_function(const char *name, Oid type)
{
	Oid			types[2] = {type, type};
	List	   *parts;

	if (!SplitIdentifierString(pstrdup(name), '.', &parts) || parts == NIL)
		return InvalidOid;
	return LookupFuncName(paimon_qualified_name_list(name), 2, types, true);
}

char *
paimon_merge_full_name(Oid type, const char *name)
{
	Oid			oid;

	if (paimon_agg_find(name) != NULL)
		return NULL;
	oid = find_function(name, getBaseType(type));
	if (!OidIsValid(oid))
		return NULL;
	return quote_qualified_identifier(get_namespace_name(get_func_namespace(oid)), get_func_name(oid));
}

/* Looks for what fits values into the column; false: that cannot be done. */
static bool
find_fit(PaimonMergeType *t)
{
	Oid			fit;

	if (t->typmod < 0)
		return true;
	switch (find_typmod_coercion_function(t->type, &fit))
	{
		case COERCION_PATH_FUNC:
			fmgr_info_cxt(fit, &t->fit, t->cxt);
			return true;
		case COERCION_PATH_NONE:
			return true;
		default:
			return false;
	}
}

PaimonPlanCode
paimon_merge_find_function(void *owner, PaimonMergeColumn *col, const char *name, PaimonPlanError *error)
{
	PaimonMergeType *t = col->ops_arg;
	const char *type = format_type_be(t->type);
	Oid			oid;
	HeapTuple	tuple;
	Form_pg_proc proc;
	PaimonPlanCode code = PAIMON_PLAN_OK;

	if (strcmp(name, "count") == 0)
		snprintf(error->hint, sizeof(error->hint), "To count, sum a column that holds 1.");
	else
		snprintf(error->hint, sizeof(error->hint), "Aggregate functions are sum, product, max, min, last_value, last_non_null_value, first_value, first_non_null_value, "
				 "listagg, bool_and, bool_or, collect, merge_map, merge_map_with_keytime, nested_update and nested_partial_update.");
	oid = find_function(name, t->type);
	if (!OidIsValid(oid))
		return refuse(error, PAIMON_PLAN_NO_FUNCTION,
					  "aggregate function \"%s\" of column \"%s\" does not exist, nor does a function of that name with two arguments of type %s",
					  name, col, type);
	error->hint[0] = '\0';
	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	if (!HeapTupleIsValid(tuple))
		return refuse(error, PAIMON_PLAN_NO_FUNCTION, "function \"%s\" for column \"%s\" of type %s was dropped", name, col, type);
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	if (proc->prokind != PROKIND_FUNCTION || proc->proretset || proc->prorettype != t->type)
		code = refuse(error, PAIMON_PLAN_BAD_TYPE, "function \"%s\" for column \"%s\" must be a plain function that returns %s", name, col, type);
	else if (proc->provolatile != PROVOLATILE_IMMUTABLE)
		code = refuse(error, PAIMON_PLAN_CONFLICT, "function \"%s\" for column \"%s\" of type %s must be immutable", name, col, type);
	else if (!paimon_can_execute(oid, *(Oid *) owner))
		code = refuse(error, PAIMON_PLAN_DENIED, "the table's owner may not execute function \"%s\" for column \"%s\" of type %s", name, col, type);
	else
	{
		fmgr_info_cxt(oid, &t->function, t->cxt);
		t->owner = *(Oid *) owner;
		t->parallel_safe = proc->proparallel == PROPARALLEL_SAFE;
		if (!find_fit(t))
			code = refuse(error, PAIMON_PLAN_BAD_TYPE, "function \"%s\" for column \"%s\" needs a type whose elements have no length or precision, not %s", name, col,
						  format_type_with_typemod(t->type, t->typmod));
		col->ops = proc->proisstrict ? &strict_ops : &lenient_ops;
		col->function = quote_qualified_identifier(get_namespace_name(proc->pronamespace), NameStr(proc->proname));
	}
	ReleaseSysCache(tuple);
	return code;
}

bool
paimon_merge_parallel_safe(const PaimonMergePlan *plan)
{
	for (int i = 0; plan != NULL && i < plan->naggs; i++)
	{
		const PaimonMergeColumn *col = &plan->columns[plan->aggs[i]];

		if (col->agg->id == PAIMON_AGG_USER && !paimon_merge_type(col)->parallel_safe)
			return false;
	}
	return true;
}
