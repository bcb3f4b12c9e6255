/*-------------------------------------------------------------------------
 *
 * merge_plan.c
 *	  From a table's options to a plan: which columns are merged how, and every error that options can have against each other and the columns.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "merge/merge_internal.h"

#define PREFIX "fields."

typedef struct Planner
{
	PaimonMergePlan *plan;
	const PaimonMergeOption *options;
	int			noptions;
	PaimonFindFunction find;
	void	   *find_arg;
	const PaimonAllocator *alloc;
	PaimonPlanError *error;
	const char *default_function;
	bool		remove_by_group;
} Planner;

/* ---------- errors ---------- */

static bool fail(Planner *p, PaimonPlanCode code, const char *hint, const char *format,...) __attribute__((format(printf, 4, 5)));

/* Always false, to be returned. */
static bool
fail(Planner *p, PaimonPlanCode code, const char *hint, const char *format,...)
{
	va_list		args;

	p->error->code = code;
	va_start(args, format);
	vsnprintf(p->error->message, sizeof(p->error->message), format, args);
	va_end(args);
	snprintf(p->error->hint, sizeof(p->error->hint), "%s", hint != NULL ? hint : "");
	return false;
}

/* ---------- texts ---------- */

static const char *
option_value(const Planner *p, const char *name)
{
	for (int i = 0; i < p->noptions; i++)
	{
		if (strcmp(p->options[i].name, name) == 0)
			return p->options[i].value;
	}
	return NULL;
}

static bool
same_word(const char *a, const char *b)
{
	for (; *a != '\0' && *b != '\0'; a++, b++)
	{
		char		x = *a >= 'A' && *a <= 'Z' ? *a + 32 : *a;

		if (x != *b)
			return false;
	}
	return *a == *b;
}

static bool
is_true(const char *value)
{
	return value != NULL && (same_word(value, "true") || same_word(value, "on") || same_word(value, "yes") || strcmp(value, "1") == 0);
}

/* The next name of a list, without blanks around it; NULL at the end. */
static const char *
next_name(const char **at, size_t *len)
{
	const char *s = *at;
	const char *end;

	if (s == NULL)
		return NULL;
	end = strchr(s, ',');
	*at = end != NULL ? end + 1 : NULL;
	if (end == NULL)
		end = s + strlen(s);
	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	while (end > s && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*len = (size_t) (end - s);
	return s;
}

static int
count_names(const char *list)
{
	int			n = 0;
	size_t		len;

	while (next_name(&list, &len) != NULL)
		n++;
	return n;
}

static int
find_column(const PaimonMergePlan *plan, const char *name, size_t len)
{
	for (int c = 0; c < plan->ncolumns; c++)
	{
		const char *n = plan->columns[c].name;

		if (!plan->columns[c].dropped && strlen(n) == len && memcmp(n, name, len) == 0)
			return c;
	}
	return -1;
}

/* The column names of an option as numbers. */
static bool
resolve_columns(Planner *p, const char *option, const char *list, int **columns, int *n)
{
	const char *at = list;
	const char *name;
	size_t		len;

	*columns = paimon_core_alloc(p->alloc, (size_t) count_names(list) * sizeof(int));
	*n = 0;
	while ((name = next_name(&at, &len)) != NULL)
	{
		int			c = find_column(p->plan, name, len);

		if (c < 0)
			return fail(p, PAIMON_PLAN_NO_COLUMN, NULL, "column \"%.*s\" named by option \"%s\" does not exist", (int) len, name, option);
		(*columns)[(*n)++] = c;
	}
	return true;
}

/*
 * Is `name` fields.<middle>.<suffix>?  Columns' names may have dots themselves.
 */
static bool
field_option(const char *name, const char *suffix, const char **middle, size_t *len)
{
	size_t		total = strlen(name);
	size_t		tail = strlen(suffix);

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || total < strlen(PREFIX) + tail + 2)
		return false;
	if (name[total - tail - 1] != '.' || strcmp(name + total - tail, suffix) != 0)
		return false;
	*middle = name + strlen(PREFIX);
	*len = total - tail - 1 - strlen(PREFIX);
	return true;
}

/* ---------- engine, order, kinds ---------- */

static const char *const engine_names[] = {"deduplicate", "partial-update", "aggregation", "first-row"};

/* The next error is about the column's type, which the server names. */
static void
blame(Planner *p, const PaimonMergeColumn *col)
{
	p->error->column = (int) (col - p->plan->columns);
}

static bool
plan_engine(Planner *p)
{
	const char *name = option_value(p, "merge-engine");

	p->plan->engine = PAIMON_FOLD_DEDUPLICATE;
	if (name == NULL)
		return true;
	for (int i = 0; i < 4; i++)
	{
		if (same_word(name, engine_names[i]))
		{
			p->plan->engine = (PaimonFoldEngine) i;
			return true;
		}
	}
	return fail(p, PAIMON_PLAN_BAD_VALUE, "Merge engines are deduplicate, partial-update, aggregation and first-row.",
				"invalid value \"%s\" for option \"merge-engine\"", name);
}

static bool
plan_sequence(Planner *p)
{
	PaimonMergePlan *plan = p->plan;
	const char *list = option_value(p, "sequence.field");
	const char *order = option_value(p, "sequence.field.sort-order");

	if (order != NULL)
	{
		if (list == NULL)
			return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"sequence.field.sort-order\" needs option \"sequence.field\"");
		plan->descending = same_word(order, "descending");
		if (!plan->descending && !same_word(order, "ascending"))
			return fail(p, PAIMON_PLAN_BAD_VALUE, "Allowed are ascending and descending.",
						"invalid value \"%s\" for option \"sequence.field.sort-order\"", order);
	}
	if (list == NULL)
		return true;
	if (plan->engine == PAIMON_FOLD_FIRST_ROW)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"sequence.field\" cannot be used with merge engine first-row");
	if (!resolve_columns(p, "sequence.field", list, &plan->sequence, &plan->nsequence))
		return false;
	for (int i = 0; i < plan->nsequence; i++)
	{
		PaimonMergeColumn *col = &plan->columns[plan->sequence[i]];

		if (col->sequence)
			return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" is named twice by option \"sequence.field\"", col->name);
		if (!col->comparable)
		{
			blame(p, col);
			return fail(p, PAIMON_PLAN_BAD_TYPE, NULL, "column \"%s\" named by option \"sequence.field\" is of a type without order",
						col->name);
		}
		col->sequence = true;
	}
	return true;
}

static bool
plan_kinds(Planner *p)
{
	PaimonMergePlan *plan = p->plan;
	const char *name = option_value(p, "rowkind.field");

	plan->rowkind = -1;
	if (name != NULL)
	{
		plan->rowkind = find_column(plan, name, strlen(name));
		if (plan->rowkind < 0)
			return fail(p, PAIMON_PLAN_NO_COLUMN, NULL, "column \"%s\" named by option \"rowkind.field\" does not exist", name);
		blame(p, &plan->columns[plan->rowkind]);
		if (plan->columns[plan->rowkind].cls != PAIMON_MC_TEXT && plan->columns[plan->rowkind].cls != PAIMON_MC_CHAR)
			return fail(p, PAIMON_PLAN_BAD_TYPE, NULL, "column \"%s\" named by option \"rowkind.field\" must be of a character type", name);
	}
	p->error->column = -1;
	plan->ignore_delete = is_true(option_value(p, "ignore-delete"));
	plan->ignore_update_before = is_true(option_value(p, "ignore-update-before"));
	return true;
}

/* ---------- sequence groups ---------- */

static bool
join_group(Planner *p, int c, int group, bool ordering)
{
	PaimonMergeColumn *col = &p->plan->columns[c];

	if (col->key)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" of a sequence group is part of the primary key", col->name);
	if (col->group >= 0)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" is defined repeatedly by multiple sequence groups", col->name);
	col->group = group;
	col->ordering = ordering;
	if (!ordering)
		return true;
	switch (col->cls)
	{
		case PAIMON_MC_NUMERIC:
		case PAIMON_MC_INT2:
		case PAIMON_MC_INT4:
		case PAIMON_MC_INT8:
		case PAIMON_MC_FLOAT4:
		case PAIMON_MC_FLOAT8:
		case PAIMON_MC_TIME:
			return true;
		default:
			blame(p, col);
			return fail(p, PAIMON_PLAN_BAD_TYPE, "Sequence groups are ordered by columns of numeric, date, time and timestamp types.",
						"column \"%s\" cannot order a sequence group", col->name);
	}
}

static bool
plan_group(Planner *p, const PaimonMergeOption *option, const char *middle, size_t len)
{
	PaimonMergePlan *plan = p->plan;
	PaimonMergeGroup *group = &plan->groups[plan->ngroups];
	char	   *ordering = paimon_core_alloc(p->alloc, len + 1);

	if (plan->engine != PAIMON_FOLD_PARTIAL_UPDATE)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"%s\" needs merge engine partial-update", option->name);
	memcpy(ordering, middle, len);
	ordering[len] = '\0';
	memset(group, 0, sizeof(*group));
	if (!resolve_columns(p, option->name, ordering, &group->ordering, &group->nordering) ||
		!resolve_columns(p, option->name, option->value, &group->columns, &group->ncolumns))
		return false;
	for (int i = 0; i < group->nordering; i++)
	{
		if (!join_group(p, group->ordering[i], plan->ngroups, true))
			return false;
	}
	for (int i = 0; i < group->ncolumns; i++)
	{
		if (!join_group(p, group->columns[i], plan->ngroups, false))
			return false;
	}
	plan->ngroups++;
	return true;
}

static bool
plan_groups(Planner *p)
{
	const char *middle;
	size_t		len;

	p->plan->groups = paimon_core_alloc(p->alloc, (size_t) (p->noptions + 1) * sizeof(PaimonMergeGroup));
	for (int i = 0; i < p->noptions; i++)
	{
		if (field_option(p->options[i].name, "sequence-group", &middle, &len) && !plan_group(p, &p->options[i], middle, len))
			return false;
	}
	return true;
}

/* ---------- removing ---------- */

static bool
plan_group_removal(Planner *p)
{
	static const char option[] = "partial-update.remove-record-on-sequence-group";
	const char *list = option_value(p, option);
	int		   *columns;
	int			n;

	if (list == NULL)
		return true;
	if (p->plan->engine != PAIMON_FOLD_PARTIAL_UPDATE)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"%s\" needs merge engine partial-update", option);
	if (p->plan->ignore_delete)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "options \"ignore-delete\" and \"%s\" contradict each other", option);
	if (!resolve_columns(p, option, list, &columns, &n))
		return false;
	for (int i = 0; i < n; i++)
	{
		const PaimonMergeColumn *col = &p->plan->columns[columns[i]];

		if (!col->ordering)
			return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" named by option \"%s\" must be part of sequence groups as an ordering column",
						col->name, option);
		p->plan->groups[col->group].removes = true;
	}
	p->plan->any_removes = n > 0;
	return true;
}

static bool
plan_removal(Planner *p)
{
	PaimonMergePlan *plan = p->plan;
	bool		partial = is_true(option_value(p, "partial-update.remove-record-on-delete"));
	bool		aggregation = is_true(option_value(p, "aggregation.remove-record-on-delete"));

	if (partial && plan->engine != PAIMON_FOLD_PARTIAL_UPDATE)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"partial-update.remove-record-on-delete\" needs merge engine partial-update");
	if (aggregation && plan->engine != PAIMON_FOLD_AGGREGATION)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"aggregation.remove-record-on-delete\" needs merge engine aggregation");
	if (partial && plan->ignore_delete)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "options \"ignore-delete\" and \"partial-update.remove-record-on-delete\" contradict each other");
	if (partial && plan->ngroups > 0)
		return fail(p, PAIMON_PLAN_CONFLICT, "Use \"partial-update.remove-record-on-sequence-group\".",
					"option \"partial-update.remove-record-on-delete\" cannot be used with sequence groups");
	plan->remove_on_delete = partial || aggregation;
	return plan_group_removal(p);
}

/* ---------- aggregate functions ---------- */

/* The option fields.<column>.<suffix> of a column. */
static const char *
column_option(const Planner *p, const PaimonMergeColumn *col, const char *suffix)
{
	for (int i = 0; i < p->noptions; i++)
	{
		const char *middle;
		size_t		len;

		if (field_option(p->options[i].name, suffix, &middle, &len) &&
			len == strlen(col->name) && memcmp(middle, col->name, len) == 0)
			return p->options[i].value;
	}
	return NULL;
}

/* Looks a function up and says whether the column's type suits it. */
static bool
use_function(Planner *p, PaimonMergeColumn *col, const char *name)
{
	static const char *const later[] = {"rbm32", "rbm64", "hll_sketch", "theta_sketch"};
	const PaimonAggFunction *f = paimon_agg_find(name);

	for (int i = 0; i < 4; i++)
	{
		if (strcmp(name, later[i]) == 0)
			return fail(p, PAIMON_PLAN_NOT_BUILT, NULL, "aggregate function %s of column \"%s\" is not supported", name, col->name);
	}
	col->function = name;
	if (f == NULL && p->find != NULL)
	{
		PaimonPlanCode code = p->find(p->find_arg, col, name, p->error);

		if (code != PAIMON_PLAN_OK)
		{
			p->error->code = code;
			return false;
		}
		f = &paimon_agg_user;
	}
	if (f == NULL)
		return fail(p, PAIMON_PLAN_NO_FUNCTION,
					strcmp(name, "count") == 0 ? "To count, sum a column that holds 1." : NULL,
					"aggregate function \"%s\" of column \"%s\" does not exist", name, col->name);
	if (f->classes != 0 && (f->classes & PAIMON_MC_BIT(col->cls)) == 0)
	{
		blame(p, col);
		return fail(p, PAIMON_PLAN_BAD_TYPE, NULL, "column \"%s\" must be of %s for aggregate function %s", col->name, f->types, name);
	}
	col->agg = f;
	return true;
}

static bool
plan_function(Planner *p, PaimonMergeColumn *col)
{
	PaimonMergePlan *plan = p->plan;
	const char *name = column_option(p, col, "aggregate-function");
	bool		own = name != NULL;

	if (own && col->key)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" is part of the primary key and cannot have an aggregate function", col->name);
	if (own && col->sequence)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" is named by option \"sequence.field\" and cannot have an aggregate function",
					col->name);
	if (own && col->ordering)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "column \"%s\" orders a sequence group and cannot have an aggregate function", col->name);
	if (own && plan->engine != PAIMON_FOLD_PARTIAL_UPDATE && plan->engine != PAIMON_FOLD_AGGREGATION)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"fields.%s.aggregate-function\" needs merge engine aggregation or partial-update",
					col->name);
	if (col->key || col->sequence || col->ordering || col->dropped)
		return true;
	if (!own)
		name = p->default_function;
	if (name == NULL && plan->engine == PAIMON_FOLD_AGGREGATION)
		name = "last_non_null_value";
	if (name == NULL)
		return true;
	if (!use_function(p, col, name))
		return false;
	if (plan->engine == PAIMON_FOLD_PARTIAL_UPDATE && col->group < 0)
	{
		if (col->agg->id != PAIMON_AGG_LAST_NON_NULL)
			return fail(p, PAIMON_PLAN_CONFLICT, "Name the column in a sequence group.",
						"must use sequence group for aggregation functions, but none was found for column \"%s\"", col->name);
		col->agg = NULL;		/* which is what columns without a group do anyway */
	}
	return true;
}

/* An option that only some functions have. */
static bool
only_for(Planner *p, const PaimonMergeColumn *col, const char *suffix, const char *functions, bool suits)
{
	if (suits || column_option(p, col, suffix) == NULL)
		return true;
	return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"fields.%s.%s\" needs aggregate function %s", col->name, suffix, functions);
}

static bool
plan_nested(Planner *p, PaimonMergeColumn *col)
{
	const char *limit = column_option(p, col, "count-limit");
	const char *nulls = column_option(p, col, "nested-key-null-strategy");
	char	   *end;
	long long	n;

	col->nested_key = column_option(p, col, "nested-key");
	col->nested_sequence = column_option(p, col, "nested-sequence-field");
	if (col->agg->id == PAIMON_AGG_NESTED_PARTIAL_UPDATE && col->nested_key == NULL)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "aggregate function nested_partial_update of column \"%s\" needs option \"fields.%s.nested-key\"",
					col->name, col->name);
	if (col->nested_key == NULL && (col->nested_sequence != NULL || nulls != NULL))
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"fields.%s.%s\" needs option \"fields.%s.nested-key\"", col->name,
					nulls != NULL ? "nested-key-null-strategy" : "nested-sequence-field", col->name);
	if (nulls != NULL)
	{
		if (same_word(nulls, "ignore"))
			col->null_keys = PAIMON_NULL_KEYS_IGNORE;
		else if (same_word(nulls, "error"))
			col->null_keys = PAIMON_NULL_KEYS_ERROR;
		else if (!same_word(nulls, "merge"))
			return fail(p, PAIMON_PLAN_BAD_VALUE, "Allowed are merge, ignore and error.",
						"invalid value \"%s\" for option \"fields.%s.nested-key-null-strategy\"", nulls, col->name);
	}
	if (limit == NULL)
		return true;
	n = strtoll(limit, &end, 10);
	if (end == limit || *end != '\0' || n < 1 || n > INT32_MAX)
		return fail(p, PAIMON_PLAN_BAD_VALUE, "Allowed are numbers from 1 to 2147483647.",
					"invalid value \"%s\" for option \"fields.%s.count-limit\"", limit, col->name);
	col->count_limit = (uint32_t) n;
	return true;
}

static bool
plan_details(Planner *p, PaimonMergeColumn *col)
{
	int			id = col->agg != NULL ? (int) col->agg->id : -1;
	bool		nested = id == PAIMON_AGG_NESTED_UPDATE || id == PAIMON_AGG_NESTED_PARTIAL_UPDATE;
	const char *delimiter = column_option(p, col, "list-agg-delimiter");

	col->delimiter = delimiter != NULL ? delimiter : ",";
	col->count_limit = INT32_MAX;
	col->distinct = is_true(column_option(p, col, "distinct"));
	col->ts_field = column_option(p, col, "ts-field");
	col->ignore_retract = is_true(column_option(p, col, "ignore-retract"));
	if (!only_for(p, col, "list-agg-delimiter", "listagg", id == PAIMON_AGG_LISTAGG) ||
		!only_for(p, col, "distinct", "listagg or collect", id == PAIMON_AGG_LISTAGG || id == PAIMON_AGG_COLLECT) ||
		!only_for(p, col, "ts-field", "merge_map_with_keytime", id == PAIMON_AGG_MERGE_MAP_KEYTIME) ||
		!only_for(p, col, "nested-key", "nested_update or nested_partial_update", nested) ||
		!only_for(p, col, "nested-key-null-strategy", "nested_update or nested_partial_update", nested) ||
		!only_for(p, col, "nested-sequence-field", "nested_update", id == PAIMON_AGG_NESTED_UPDATE) ||
		!only_for(p, col, "count-limit", "nested_update", nested))
		return false;
	if (col->ignore_retract && p->plan->remove_on_delete && p->plan->engine == PAIMON_FOLD_AGGREGATION)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "options \"aggregation.remove-record-on-delete\" and \"fields.%s.ignore-retract\" contradict each other",
					col->name);
	if (id == PAIMON_AGG_MERGE_MAP_KEYTIME && col->ts_field == NULL)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "aggregate function merge_map_with_keytime of column \"%s\" needs option \"fields.%s.ts-field\"",
					col->name, col->name);
	return !nested || plan_nested(p, col);
}

/* Options of columns that do not exist. */
static bool
check_field_names(Planner *p)
{
	static const char *const suffixes[] = {
		"aggregate-function", "ignore-retract", "list-agg-delimiter", "distinct", "nested-key", "nested-key-null-strategy",
		"nested-sequence-field", "count-limit", "ts-field"
	};

	for (int i = 0; i < p->noptions; i++)
	{
		for (size_t k = 0; k < sizeof(suffixes) / sizeof(suffixes[0]); k++)
		{
			const char *middle;
			size_t		len;

			if (field_option(p->options[i].name, suffixes[k], &middle, &len) && find_column(p->plan, middle, len) < 0)
				return fail(p, PAIMON_PLAN_NO_COLUMN, NULL, "column \"%.*s\" named by option \"%s\" does not exist",
							(int) len, middle, p->options[i].name);
		}
	}
	return true;
}

static bool
plan_functions(Planner *p)
{
	PaimonMergePlan *plan = p->plan;

	p->default_function = option_value(p, "fields.default-aggregate-function");
	if (p->default_function != NULL && plan->engine != PAIMON_FOLD_PARTIAL_UPDATE && plan->engine != PAIMON_FOLD_AGGREGATION)
		return fail(p, PAIMON_PLAN_CONFLICT, NULL, "option \"fields.default-aggregate-function\" needs merge engine aggregation or partial-update");
	if (!check_field_names(p))
		return false;
	for (int c = 0; c < plan->ncolumns; c++)
	{
		if (!plan->columns[c].dropped && (!plan_function(p, &plan->columns[c]) || !plan_details(p, &plan->columns[c])))
			return false;
	}
	return true;
}

/* ---------- what the fold wants to know at once ---------- */

/* Does adding the first value to nothing give that value? */
static bool
keeps_first(const PaimonMergeColumn *col)
{
	switch (col->agg->id)
	{
		case PAIMON_AGG_LISTAGG:
		case PAIMON_AGG_MERGE_MAP_KEYTIME:
			return false;
		case PAIMON_AGG_COLLECT:
			return !col->distinct;
		case PAIMON_AGG_NESTED_UPDATE:
		case PAIMON_AGG_NESTED_PARTIAL_UPDATE:
			return col->nested_key == NULL && col->count_limit == INT32_MAX;
		case PAIMON_AGG_USER:
			return col->ops->call_is_strict;
		default:
			return true;
	}
}

static void
finish_plan(PaimonMergePlan *plan, const bool *wanted, const PaimonAllocator *alloc)
{
	plan->free = paimon_core_alloc(alloc, (size_t) (plan->ncolumns + 1) * sizeof(int));
	plan->active = paimon_core_alloc(alloc, (size_t) (plan->ncolumns + 1) * sizeof(int));
	plan->aggs = paimon_core_alloc(alloc, (size_t) (plan->ncolumns + 1) * sizeof(int));
	plan->nfree = plan->nactive = plan->naggs = 0;
	plan->keeps_values = true;
	plan->must_fit = false;
	for (int c = 0; c < plan->ncolumns; c++)
	{
		const PaimonMergeColumn *col = &plan->columns[c];

		if (col->agg != NULL && !col->dropped)
			plan->aggs[plan->naggs++] = c;
		if (col->dropped || (wanted != NULL && !wanted[c]))
			continue;
		plan->active[plan->nactive++] = c;
		if (col->agg != NULL)
		{
			plan->keeps_values &= keeps_first(col);
			plan->must_fit |= col->cls == PAIMON_MC_NUMERIC && col->ops->fits != NULL &&
				(col->agg->id == PAIMON_AGG_SUM || col->agg->id == PAIMON_AGG_PRODUCT);
		}
		if (!col->key && !col->sequence && col->group < 0)
			plan->free[plan->nfree++] = c;
	}
	plan->plain_single = plan->keeps_values && plan->ngroups == 0;
	plan->has_groups = plan->ngroups > 0;
	plan->newest_decides = plan->engine == PAIMON_FOLD_DEDUPLICATE && plan->nsequence == 0;
}

PaimonMergePlan *
paimon_merge_plan(const PaimonMergeColumn *columns, int ncolumns, const PaimonMergeOption *options, int noptions,
				  PaimonFindFunction find, void *find_arg, const PaimonAllocator *alloc, PaimonPlanError *error)
{
	Planner		p = {.options = options, .noptions = noptions, .find = find, .find_arg = find_arg, .alloc = alloc, .error = error};

	memset(error, 0, sizeof(*error));
	error->column = -1;
	p.plan = paimon_core_alloc(alloc, sizeof(PaimonMergePlan));
	memset(p.plan, 0, sizeof(PaimonMergePlan));
	p.plan->ncolumns = ncolumns;
	p.plan->columns = paimon_core_alloc(alloc, (size_t) (ncolumns + 1) * sizeof(PaimonMergeColumn));
	for (int c = 0; c < ncolumns; c++)
	{
		PaimonMergeColumn *col = &p.plan->columns[c];

		*col = columns[c];
		col->sequence = col->ordering = false;
		col->group = -1;
		col->agg = NULL;
	}
	if (!plan_engine(&p) || !plan_sequence(&p) || !plan_kinds(&p) || !plan_groups(&p) || !plan_removal(&p) || !plan_functions(&p))
		return NULL;
	finish_plan(p.plan, NULL, alloc);
	return p.plan;
}

void
paimon_merge_plan_needs(const PaimonMergePlan *plan, bool *wanted)
{
	for (int i = 0; i < plan->nsequence; i++)
		wanted[plan->sequence[i]] = true;
	for (int g = 0; g < plan->ngroups; g++)
	{
		const PaimonMergeGroup *group = &plan->groups[g];
		bool		any = group->removes;

		for (int i = 0; i < group->ncolumns; i++)
			any |= wanted[group->columns[i]];
		for (int i = 0; i < group->nordering; i++)
			any |= wanted[group->ordering[i]];
		for (int i = 0; i < group->nordering && any; i++)
			wanted[group->ordering[i]] = true;
	}
}

PaimonMergePlan *
paimon_merge_plan_project(const PaimonMergePlan *plan, bool *wanted, const PaimonAllocator *alloc)
{
	PaimonMergePlan *projected = paimon_core_alloc(alloc, sizeof(PaimonMergePlan));

	paimon_merge_plan_needs(plan, wanted);
	*projected = *plan;
	projected->groups = paimon_core_alloc(alloc, (size_t) (plan->ngroups + 1) * sizeof(PaimonMergeGroup));
	projected->ngroups = 0;
	for (int g = 0; g < plan->ngroups; g++)
	{
		PaimonMergeGroup *group = &projected->groups[projected->ngroups];

		*group = plan->groups[g];
		if (!wanted[group->ordering[0]])
			continue;
		projected->ngroups++;
		group->columns = paimon_core_alloc(alloc, (size_t) (group->ncolumns + 1) * sizeof(int));
		group->ncolumns = 0;
		for (int i = 0; i < plan->groups[g].ncolumns; i++)
		{
			if (wanted[plan->groups[g].columns[i]])
				group->columns[group->ncolumns++] = plan->groups[g].columns[i];
		}
	}
	finish_plan(projected, wanted, alloc);
	/* a retract is still one of a table with groups, even if none of them is wanted */
	projected->has_groups = plan->has_groups;
	return projected;
}
