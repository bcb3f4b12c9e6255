/*-------------------------------------------------------------------------
 *
 * merge_sql.c
 *	  paimon.aggregation_fields(regclass): how each column of a table is merged.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_description.h"
#include "catalog/pg_type.h"
#include "commands/comment.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "merge/merge_server.h"
#include "options/options.h"

PG_FUNCTION_INFO_V1(paimon_aggregation_fields);

#define FIELD_COLS 5

static List *
options_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	List	   *items = NIL;

	if (HeapTupleIsValid(tuple))
	{
		bool		isnull;
		Datum		reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);

		items = paimon_options_untransform(reloptions, isnull, NULL);
		ReleaseSysCache(tuple);
	}
	return items;
}

/* Options that name a column, but for its function, as an array of texts; 0: there are none. */
static Datum
options_of_column(const char *column, List *items)
{
	char	   *function = psprintf("fields.%s.aggregate-function", column);
	ArrayBuildState *state = NULL;
	ListCell   *lc,
			   *lc2;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (strncmp(item->name, "fields.", strlen("fields.")) != 0 || strcmp(item->name, function) == 0)
			continue;
		foreach(lc2, paimon_option_columns(item))
		{
			if (strcmp(lfirst(lc2), column) != 0)
				continue;
			state = accumArrayResult(state, CStringGetTextDatum(psprintf("%s=%s", item->name, item->value)), false, TEXTOID, CurrentMemoryContext);
			break;
		}
	}
	return state != NULL ? makeArrayResult(state, CurrentMemoryContext) : (Datum) 0;
}

static void
put_column(ReturnSetInfo *rsinfo, Relation rel, const PaimonMergePlan *plan, int c, List *items)
{
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), c);
	const PaimonMergeColumn *col = &plan->columns[c];
	const char *type = format_type_with_typemod(att->atttypid, att->atttypmod);
	const char *function = col->agg != NULL ? paimon_merge_function_name(col) : NULL;
	char	   *comment = GetComment(RelationGetRelid(rel), RelationRelationId, c + 1);
	Datum		values[FIELD_COLS] = {0};
	bool		nulls[FIELD_COLS];

	if (plan->engine == PAIMON_FOLD_AGGREGATION && col->sequence)
		function = "last_value";
	values[0] = CStringGetTextDatum(NameStr(att->attname));
	values[1] = CStringGetTextDatum(att->attnotnull ? psprintf("%s NOT NULL", type) : type);
	values[2] = function != NULL ? CStringGetTextDatum(function) : (Datum) 0;
	values[3] = options_of_column(NameStr(att->attname), items);
	values[4] = comment != NULL ? CStringGetTextDatum(comment) : (Datum) 0;
	for (int i = 0; i < FIELD_COLS; i++)
		nulls[i] = values[i] == (Datum) 0;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* What pg_class and pg_attribute show to everybody; so no privilege is asked for. */
Datum
paimon_aggregation_fields(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	char	   *relname = get_rel_name(relid);
	Relation	rel;
	Bitmapset  *keys;
	bool	   *key;
	List	   *items;
	PaimonMergePlan *plan;

	InitMaterializedSRF(fcinfo, 0);
	if (relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table using access method paimon", relname)));
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL || !paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table \"%s\" was dropped or changed concurrently", relname)));
	keys = RelationGetIndexAttrBitmap(rel, INDEX_ATTR_BITMAP_PRIMARY_KEY);
	key = palloc0_array(bool, RelationGetNumberOfAttributes(rel) + 1);
	for (int c = 0; c < RelationGetNumberOfAttributes(rel); c++)
		key[c] = bms_is_member(c + 1 - FirstLowInvalidHeapAttributeNumber, keys);
	items = options_of(relid);
	plan = paimon_merge_plan_table(RelationGetRelationName(rel), RelationGetDescr(rel), key, rel->rd_rel->relowner, items);
	for (int c = 0; c < plan->ncolumns; c++)
	{
		if (!plan->columns[c].dropped)
			put_column((ReturnSetInfo *) fcinfo->resultinfo, rel, plan, c, items);
	}
	relation_close(rel, AccessShareLock);
	return (Datum) 0;
}
