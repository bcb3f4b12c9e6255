/*-------------------------------------------------------------------------
 *
 * options_check.c
 *	  Checks of options at DDL, with messages that say what to do.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/reloptions.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"

#include "options/options_def.h"

static void
unknown_option(const char *relname, const char *name)
{
	const char *nearest = paimon_option_nearest(name);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized option \"%s\" for paimon table \"%s\"", name, relname),
			 nearest != NULL ? errhint("Did you mean \"%s\"?", nearest) :
			 errhint("The function paimon.known_options() lists all options.")));
}

static void
refused_option(const char *relname, const PaimonOptionDef *def, const char *name)
{
	if (def->state == PAIMON_OPT_NOT_YET)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("option \"%s\" of paimon table \"%s\" is not supported yet", name, relname),
				 errdetail_internal("%s", def->doc)));
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("option \"%s\" is not supported for paimon table \"%s\"", name, relname),
			 errdetail_internal("%s", def->doc),
			 def->hint != NULL ? errhint("%s", def->hint) : 0));
}

/* Values that Paimon knows and we do not do yet. */
static bool
is_later_value(const PaimonOptionDef *def, const char *value)
{
	int			index;
	int64		number;

	if (def->type == PAIMON_OPT_ENUM)
		return def->later != NULL && paimon_parse_enum(value, def->later, &index);
	return strcmp(def->name, "bucket") == 0 && paimon_parse_int(value, &number) && (number == -1 || number == -2);
}

static void
refused_value(const char *relname, const PaimonOptionDef *def, const char *name, const char *value)
{
	if (is_later_value(def, value))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("value \"%s\" of option \"%s\" of paimon table \"%s\" is not supported yet",
						value, name, relname),
				 errhint("The value must be %s.", paimon_option_allowed(def))));
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value \"%s\" for option \"%s\" of paimon table \"%s\"", value, name, relname),
			 errdetail("The value must be %s.", paimon_option_allowed(def))));
}

/* Without white space around it, where that means nothing: who reads the value later need not think of it. */
static char *
trimmed(const PaimonOptionDef *def, const char *value)
{
	const char *end = value + strlen(value);

	if (def->type == PAIMON_OPT_STRING)
		return pstrdup(value);
	while (isspace((unsigned char) *value))
		value++;
	while (end > value && isspace((unsigned char) end[-1]))
		end--;
	return pnstrdup(value, end - value);
}

PaimonOptionItem *
paimon_option_check(const char *relname, const char *name, const char *value)
{
	const PaimonOptionDef *def = paimon_option_find(name);
	PaimonOptionItem *item;
	int64		number;

	if (def == NULL)
		unknown_option(relname, name);
	item = palloc(sizeof(PaimonOptionItem));
	item->name = paimon_option_canonical(name);
	item->value = trimmed(def, value != NULL ? value : "true");
	if (def->state != PAIMON_OPT_IMPLEMENTED)
		refused_option(relname, def, item->name);

	switch (def->type)
	{
		case PAIMON_OPT_COLUMN:
		case PAIMON_OPT_COLUMNS:
			if (paimon_parse_columns(item->value) == NIL)
				refused_value(relname, def, item->name, item->value);
			break;
		case PAIMON_OPT_STRING:
			if (def->scope == PAIMON_OPT_PARENT && strcmp(item->value, PAIMON_MARK_VALUE) != 0)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						 errmsg("invalid value \"%s\" for option \"%s\" of paimon table \"%s\"",
								item->value, item->name, relname),
						 errdetail("The value must be \"%s\".", PAIMON_MARK_VALUE)));
			break;
		default:
			if (!paimon_option_parse(def, item->value, &number))
				refused_value(relname, def, item->name, item->value);
			break;
	}
	return item;
}

char *
paimon_option_check_name(const char *relname, const char *name, List *stored)
{
	char	   *canonical = paimon_option_canonical(name);

	if (!paimon_option_is_known(name) && paimon_option_item(stored, name) == NULL)
		unknown_option(relname, name);
	return canonical;
}

/* Is a string in a list of strings? */
static bool
has_name(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

static void
check_columns(const PaimonTableShape *shape, const PaimonOptionItem *item)
{
	List	   *columns = paimon_option_columns(item);
	List	   *seen = NIL;
	ListCell   *lc;

	foreach(lc, columns)
	{
		const char *column = lfirst(lc);

		if (!has_name(shape->columns, column))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" named by option \"%s\" of paimon table \"%s\" does not exist",
							column, item->name, shape->relname)));
		if (has_name(seen, column))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("column \"%s\" appears twice in option \"%s\" of paimon table \"%s\"",
							column, item->name, shape->relname)));
		seen = lappend(seen, (void *) column);
	}
}

static void
check_bucket_key(const PaimonTableShape *shape, const PaimonOptionItem *item)
{
	List	   *columns = paimon_parse_columns(item->value);
	ListCell   *lc;

	if (list_length(columns) > PAIMON_MAX_BUCKET_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_COLUMNS),
				 errmsg("option \"%s\" of paimon table \"%s\" names more than %d columns",
						item->name, shape->relname, PAIMON_MAX_BUCKET_KEYS)));
	foreach(lc, columns)
	{
		if (shape->keycols != NIL && !has_name(shape->keycols, lfirst(lc)))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TABLE_DEFINITION),
					 errmsg("column \"%s\" of option \"%s\" of paimon table \"%s\" is not part of its primary key",
							(char *) lfirst(lc), item->name, shape->relname),
					 errdetail("All rows of a key must be in one bucket.")));
	}
}

/* The value of an integer option, set or by default; false if it is neither. */
static bool
number_of(List *items, const char *name, int64 *number)
{
	const PaimonOptionDef *def = paimon_option_find(name);
	PaimonOptionItem *item = paimon_option_item(items, def->name);
	const char *text = item != NULL ? item->value : def->deflt;

	return text != NULL && paimon_option_parse(def, text, number);
}

static void
check_retention(const PaimonTableShape *shape, List *items)
{
	int64		min;
	int64		max;

	if (number_of(items, "snapshot.num-retained.min", &min) && number_of(items, "snapshot.num-retained.max", &max) && max < min)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"snapshot.num-retained.max\" of paimon table \"%s\" is smaller than \"snapshot.num-retained.min\"",
						shape->relname),
				 errdetail("At most " INT64_FORMAT " and at least " INT64_FORMAT " snapshots cannot be kept.", max, min),
				 errhint("Set \"snapshot.num-retained.min\" as well.")));
}

void
paimon_options_check_shape(const PaimonTableShape *shape, List *items)
{
	ListCell   *lc;

	foreach(lc, items)
	{
		const PaimonOptionItem *item = lfirst(lc);
		const PaimonOptionDef *def = paimon_option_find(item->name);

		if (def == NULL)
			continue;			/* stored by another version */
		if (def->scope == PAIMON_OPT_PARENT && !shape->partitioned)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" of paimon table \"%s\" is for partitioned tables only",
							item->name, shape->relname)));
		check_columns(shape, item);
		if (strcmp(def->name, "bucket-key") == 0)
			check_bucket_key(shape, item);
	}
	check_retention(shape, items);
}

bool
paimon_option_fixed_when_filled(const char *name)
{
	const PaimonOptionDef *def = paimon_option_find(name);

	return def != NULL && def->effect == PAIMON_OPT_WHOLE_TABLE;
}

static bool
same_strings(List *a, List *b)
{
	ListCell   *la,
			   *lb;

	if (list_length(a) != list_length(b))
		return false;
	forboth(la, a, lb, b)
	{
		if (strcmp(lfirst(la), lfirst(lb)) != 0)
			return false;
	}
	return true;
}

bool
paimon_option_same(List *a, List *b, const char *name)
{
	const PaimonOptionDef *def = paimon_option_find(name);
	PaimonOptionItem *ia = paimon_option_item(a, name);
	PaimonOptionItem *ib = paimon_option_item(b, name);
	const char *va = ia != NULL ? ia->value : (def != NULL ? def->deflt : NULL);
	const char *vb = ib != NULL ? ib->value : (def != NULL ? def->deflt : NULL);
	int64		na,
				nb;

	if (va == NULL || vb == NULL)
		return va == vb;
	if (def != NULL && (def->type == PAIMON_OPT_COLUMN || def->type == PAIMON_OPT_COLUMNS))
		return same_strings(paimon_parse_columns(va), paimon_parse_columns(vb));
	if (def != NULL && paimon_option_parse(def, va, &na) && paimon_option_parse(def, vb, &nb))
		return na == nb;
	return strcmp(va, vb) == 0;
}

PaimonOptionItem *
paimon_option_item(List *items, const char *name)
{
	ListCell   *lc;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (strcmp(item->name, name) == 0)
			return item;
	}
	return NULL;
}

List *
paimon_options_untransform(Datum reloptions, bool isnull, List **core)
{
	List	   *items = NIL;
	Datum	   *texts;
	int			n;

	if (core != NULL)
		*core = NIL;
	if (isnull || DatumGetPointer(reloptions) == NULL)
		return NIL;
	deconstruct_array(DatumGetArrayTypeP(reloptions), TEXTOID, -1, false, TYPALIGN_INT, &texts, NULL, &n);
	for (int i = 0; i < n; i++)
	{
		PaimonOptionItem *item = palloc(sizeof(PaimonOptionItem));
		char	   *line = TextDatumGetCString(texts[i]);
		char	   *eq = strchr(line, '=');

		item->name = line;
		item->value = eq != NULL ? eq + 1 : pstrdup("true");
		if (eq != NULL)
			*eq = '\0';
		if (!paimon_option_is_core(item->name))
			items = lappend(items, item);
		else if (core != NULL)
			*core = lappend(*core, item);
	}
	return items;
}
