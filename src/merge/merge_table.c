/*-------------------------------------------------------------------------
 *
 * merge_table.c
 *	  Plans of tables, and their errors as the server's.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "merge/merge_server.h"
#include "options/options.h"
#include "row/row.h"

static void *
table_alloc(void *arg, size_t size)
{
	return MemoryContextAllocHuge((MemoryContext) arg, Max(size, 1));
}

void
paimon_merge_allocator(MemoryContext cxt, PaimonAllocator *alloc)
{
	alloc->alloc = table_alloc;
	alloc->arg = cxt;
}

char **
paimon_merge_names(const char *list, int *n)
{
	char	  **names = NULL;
	const char *at = list;

	*n = 0;
	for (;;)
	{
		const char *end = strchr(at, ',');
		int			len;

		if (end == NULL)
			end = at + strlen(at);
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		len = (int) (end - at);
		while (len > 0 && (at[len - 1] == ' ' || at[len - 1] == '\t'))
			len--;
		names = names == NULL ? palloc_array(char *, 1) : repalloc_array(names, char *, *n + 1);
		names[(*n)++] = pnstrdup(at, len);
		if (*end == '\0')
			return names;
		at = end + 1;
	}
}

static int
plan_errcode(PaimonPlanCode code)
{
	switch (code)
	{
		case PAIMON_PLAN_NO_COLUMN:
			return ERRCODE_UNDEFINED_COLUMN;
		case PAIMON_PLAN_BAD_TYPE:
			return ERRCODE_DATATYPE_MISMATCH;
		case PAIMON_PLAN_NO_FUNCTION:
			return ERRCODE_UNDEFINED_FUNCTION;
		case PAIMON_PLAN_NOT_BUILT:
			return ERRCODE_FEATURE_NOT_SUPPORTED;
		case PAIMON_PLAN_DENIED:
			return ERRCODE_INSUFFICIENT_PRIVILEGE;
		case PAIMON_PLAN_NO_MEMORY:
			return ERRCODE_OUT_OF_MEMORY;
		default:
			return ERRCODE_INVALID_PARAMETER_VALUE;
	}
}

PaimonMergePlan *
paimon_merge_plan_table(const char *relname, TupleDesc tupdesc, const bool *key, Oid owner, List *items)
{
	PaimonMergeColumn *columns = palloc0_array(PaimonMergeColumn, tupdesc->natts + 1);
	PaimonMergeOption *options = palloc_array(PaimonMergeOption, list_length(items) + 1);
	PaimonAllocator alloc;
	PaimonPlanError error;
	PaimonMergePlan *plan;
	ListCell   *lc;
	int			n = 0;

	paimon_merge_allocator(CurrentMemoryContext, &alloc);
	for (int c = 0; c < tupdesc->natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, c);

		columns[c].name = "";
		columns[c].cls = PAIMON_MC_OTHER;
		columns[c].dropped = att->attisdropped;
		columns[c].key = key[c];
		if (!att->attisdropped)
			paimon_merge_type_init(&columns[c], att);
	}
	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		options[n].name = pstrdup(item->name);
		options[n++].value = pstrdup(item->value);
	}
	plan = paimon_merge_plan(columns, tupdesc->natts, options, n, paimon_merge_find_function, &owner, &alloc, &error);
	if (plan == NULL)
		ereport(ERROR,
				(errcode(plan_errcode(error.code)),
				 errmsg("options of table \"%s\" cannot be used: %s", relname, error.message),
				 error.column >= 0 ?
				 errdetail("Column \"%s\" is of type %s.", columns[error.column].name,
						   format_type_with_typemod(TupleDescAttr(tupdesc, error.column)->atttypid,
													TupleDescAttr(tupdesc, error.column)->atttypmod)) : 0,
				 error.hint[0] != '\0' ? errhint("%s", error.hint) : 0));
	for (int c = 0; c < plan->ncolumns; c++)
	{
		if (plan->columns[c].cls == PAIMON_MC_ROWS)
			paimon_merge_array_fields(relname, &plan->columns[c]);
		else if (plan->columns[c].cls == PAIMON_MC_JSON)
			paimon_merge_json_fields(&plan->columns[c]);
	}
	return plan;
}

/* Does an option say how rows are merged, or what becomes of them before? */
static bool
concerns_merging(const char *name)
{
	static const char *const names[] = {
		"merge-engine", "sequence.field", "sequence.field.sort-order", "rowkind.field", "ignore-delete", "ignore-update-before",
		"partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group",
		"aggregation.remove-record-on-delete"
	};

	if (strncmp(name, "fields.", 7) == 0)
		return true;
	for (int i = 0; i < lengthof(names); i++)
	{
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

PaimonMergePlan *
paimon_merge_plan_relation(Relation rel, const PaimonRowDesc *desc)
{
	bool	   *key = palloc0_array(bool, desc->tupdesc->natts + 1);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(rel)));
	Datum		reloptions;
	bool		isnull;
	List	   *items;
	ListCell   *lc;
	bool		any = false;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" does not exist any more", RelationGetRelationName(rel))));
	reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	items = paimon_options_untransform(reloptions, isnull, NULL);
	ReleaseSysCache(tuple);
	foreach(lc, items)
		any = any || concerns_merging(((PaimonOptionItem *) lfirst(lc))->name);
	if (!any)
		return NULL;
	for (int i = 0; i < desc->nkeys; i++)
		key[desc->keys[i].attno - 1] = true;
	return paimon_merge_plan_table(RelationGetRelationName(rel), desc->tupdesc, key, rel->rd_rel->relowner, items);
}

/* ---------- errors of values ---------- */

static void
report_refused(const char *relname, const PaimonMergePlan *plan, const char *key)
{
	if (plan->engine == PAIMON_FOLD_FIRST_ROW)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("rows of table \"%s\" cannot be changed or deleted", relname),
				 errdetail("Its merge engine first-row keeps the first row of each key."),
				 errhint("With option \"ignore-delete\" deletes have no effect.")));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("table \"%s\" cannot take back rows", relname),
			 key != NULL ? errdetail("The row has key %s.", key) : 0,
			 errhint("Merge engine partial-update takes back rows with option \"ignore-delete\", \"partial-update.remove-record-on-delete\" or sequence groups.")));
}

void
paimon_merge_report(const char *relname, const PaimonMergePlan *plan, const PaimonFoldError *error, const char *key)
{
	const PaimonMergeColumn *col = error->column >= 0 ? &plan->columns[error->column] : NULL;
	const char *name = col != NULL ? col->name : "?";
	const char *function = col != NULL && col->agg != NULL ? paimon_merge_function_name(col) : "?";

	switch (error->code)
	{
		case PAIMON_FOLD_RETRACT_REFUSED:
			report_refused(relname, plan, key);
			break;
		case PAIMON_FOLD_OVERFLOW:
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("value of column \"%s\" of table \"%s\" out of range", name, relname),
					 key != NULL ? errdetail("Aggregate function %s gives it for key %s.", function, key) :
					 errdetail("Aggregate function %s gives it.", function)));
			break;
		case PAIMON_FOLD_DIVISION:
			ereport(ERROR,
					(errcode(ERRCODE_DIVISION_BY_ZERO),
					 errmsg("value of column \"%s\" of table \"%s\" cannot be taken back", name, relname),
					 errdetail("Aggregate function %s would divide by zero, or the quotient has no end.", function),
					 key != NULL ? errcontext("row with key %s", key) : 0));
			break;
		case PAIMON_FOLD_NO_RETRACT:
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("aggregate function %s of column \"%s\" of table \"%s\" cannot take back values", function, name, relname),
					 key != NULL ? errdetail("The row has key %s.", key) : 0,
					 errhint("With option \"fields.%s.ignore-retract\" the column ignores rows that are taken back.", name)));
			break;
		case PAIMON_FOLD_NULL_KEY:
			ereport(ERROR,
					(errcode(ERRCODE_NOT_NULL_VIOLATION),
					 errmsg("null value in the nested key of column \"%s\" of table \"%s\"", name, relname),
					 key != NULL ? errdetail("The row has key %s.", key) : 0,
					 errhint("See option \"fields.%s.nested-key-null-strategy\".", name)));
			break;
		case PAIMON_FOLD_BAD_VALUE:
		case PAIMON_FOLD_OK:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("value of column \"%s\" of table \"%s\" does not suit aggregate function %s", name, relname, function),
					 key != NULL ? errdetail("The row has key %s.", key) : 0,
					 errhint("Arrays must have one dimension, maps be objects, nested rows be arrays of objects, and times be strings.")));
			break;
	}
	pg_unreachable();
}
