/*-------------------------------------------------------------------------
 *
 * options_sql.c
 *	  paimon.options(regclass) and paimon.known_options().
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "options/options_def.h"

PG_FUNCTION_INFO_V1(paimon_options);
PG_FUNCTION_INFO_V1(paimon_known_options);

/*
 * paimon.options(regclass): options set explicitly, as pg_class shows them to
 * everybody; so no privilege is asked for.
 */
Datum
paimon_options(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HeapTuple	tuple;
	Datum		reloptions;
	bool		isnull;
	List	   *items;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);

	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	items = paimon_options_untransform(reloptions, isnull, NULL);
	ReleaseSysCache(tuple);

	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table using access method paimon", get_rel_name(relid))));

	foreach(lc, items)
	{
		const PaimonOptionItem *item = lfirst(lc);
		Datum		values[2];
		bool		nulls[2] = {false, false};

		if (strcmp(item->name, PAIMON_MARK_OPTION) == 0)
			continue;
		values[0] = CStringGetTextDatum(item->name);
		values[1] = CStringGetTextDatum(item->value);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

static const char *
state_name(PaimonOptionState state)
{
	switch (state)
	{
		case PAIMON_OPT_IMPLEMENTED:
			return "implemented";
		case PAIMON_OPT_NOT_YET:
			return "not yet";
		case PAIMON_OPT_NOT_HERE:
			return "not meaningful here";
	}
	return "unknown";
}

static const char *
scope_name(PaimonOptionScope scope)
{
	switch (scope)
	{
		case PAIMON_OPT_ANY_TABLE:
			return "any table";
		case PAIMON_OPT_KEY_TABLE:
			return "tables with a primary key";
		case PAIMON_OPT_APPEND_TABLE:
			return "tables without a primary key";
		case PAIMON_OPT_PARENT:
			return "partitioned tables";
	}
	return "unknown";
}

static const char *
effect_name(PaimonOptionEffect effect)
{
	switch (effect)
	{
		case PAIMON_OPT_AT_ONCE:
			return "at once";
		case PAIMON_OPT_NEW_FILES:
			return "for new files";
		case PAIMON_OPT_WHOLE_TABLE:
			return "while the table is empty";
	}
	return "unknown";
}

#define KNOWN_OPTIONS_COLS 8

static void
put_known(ReturnSetInfo *rsinfo, const PaimonOptionDef *def)
{
	bool		here = def->state != PAIMON_OPT_NOT_HERE;
	bool		built = def->state == PAIMON_OPT_IMPLEMENTED;
	Datum		values[KNOWN_OPTIONS_COLS] = {0};
	bool		nulls[KNOWN_OPTIONS_COLS] = {0};

	values[0] = CStringGetTextDatum(def->name);
	values[1] = CStringGetTextDatum(paimon_option_type_name(def->type));
	values[2] = here && def->deflt != NULL ? CStringGetTextDatum(def->deflt) : (Datum) 0;
	values[3] = built ? CStringGetTextDatum(paimon_option_allowed(def)) : (Datum) 0;
	values[4] = here ? CStringGetTextDatum(scope_name(def->scope)) : (Datum) 0;
	values[5] = here ? CStringGetTextDatum(effect_name(def->effect)) : (Datum) 0;
	values[6] = CStringGetTextDatum(state_name(def->state));
	values[7] = CStringGetTextDatum(def->doc);
	if (!here)
		nulls[1] = true;
	for (int i = 2; i <= 5; i++)
		nulls[i] = values[i] == (Datum) 0;
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* paimon.known_options(): the options table, for documentation and for the curious. */
Datum
paimon_known_options(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (const PaimonOptionDef *def = paimon_option_defs; def->name != NULL; def++)
		put_known(rsinfo, def);
	for (const PaimonOptionDef *def = paimon_option_foreign_defs; def->name != NULL; def++)
		put_known(rsinfo, def);
	return (Datum) 0;
}
