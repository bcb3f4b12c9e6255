/*-------------------------------------------------------------------------
 *
 * test_merge_plan.c
 *	  Options of merging: every error, and what a plan says without one.
 *
 * The tables in doc/merge-engines.md refer to these cases.
 *
 *-------------------------------------------------------------------------
 */
#include "unit_merge.h"

static UnitArena arena;
static PaimonAllocator alloc;

/* One of each type. */
static const PaimonMergeColumn columns[] = {
	{.name = "k", .cls = PAIMON_MC_INT4, .key = true, .comparable = true, .ops = &unit_ops},
	{.name = "i", .cls = PAIMON_MC_INT4, .comparable = true, .ops = &unit_ops},
	{.name = "j", .cls = PAIMON_MC_INT8, .comparable = true, .ops = &unit_ops},
	{.name = "n", .cls = PAIMON_MC_NUMERIC, .comparable = true, .ops = &unit_ops},
	{.name = "b", .cls = PAIMON_MC_BOOL, .comparable = true, .ops = &unit_ops},
	{.name = "t", .cls = PAIMON_MC_TEXT, .comparable = true, .ops = &unit_ops},
	{.name = "c", .cls = PAIMON_MC_CHAR, .comparable = true, .ops = &unit_ops},
	{.name = "d", .cls = PAIMON_MC_TIME, .comparable = true, .ops = &unit_ops},
	{.name = "a", .cls = PAIMON_MC_ARRAY, .comparable = true, .ops = &unit_ops},
	{.name = "r", .cls = PAIMON_MC_ROWS, .ops = &unit_ops},
	{.name = "m", .cls = PAIMON_MC_JSON, .comparable = true, .ops = &unit_ops},
	{.name = "x", .cls = PAIMON_MC_OTHER, .ops = &unit_ops},
	{.name = "gone", .cls = PAIMON_MC_INT4, .dropped = true, .ops = &unit_ops},
	{.name = "odd.name", .cls = PAIMON_MC_INT4, .comparable = true, .ops = &unit_ops},
};

#define NCOLUMNS ((int) (sizeof(columns) / sizeof(columns[0])))

/* "name=value;name=value" */
static PaimonMergePlan *
plan_of(const char *text, PaimonPlanError *error)
{
	PaimonMergeOption options[16];
	int			n = 0;
	char	   *copy = paimon_core_alloc(&alloc, strlen(text) + 1);

	strcpy(copy, text);
	for (char *at = copy; at != NULL && *at != '\0';)
	{
		char	   *end = strchr(at, ';');

		if (end != NULL)
			*end++ = '\0';
		options[n].name = at;
		at = strchr(at, '=');
		*at++ = '\0';
		options[n++].value = at;
		at = end;
	}
	return paimon_merge_plan(columns, NCOLUMNS, options, n, unit_find, NULL, &alloc, error);
}

typedef struct Wrong
{
	const char *options;
	PaimonPlanCode code;
	const char *message;		/* a part of it */
} Wrong;

#define PU "merge-engine=partial-update;"
#define AGG "merge-engine=aggregation;"
#define FIRST "merge-engine=first-row;"

static const Wrong wrong[] = {
	{"merge-engine=upsert", PAIMON_PLAN_BAD_VALUE, "invalid value \"upsert\" for option \"merge-engine\""},

	/* sequence.field */
	{"sequence.field=nope", PAIMON_PLAN_NO_COLUMN, "column \"nope\" named by option \"sequence.field\" does not exist"},
	{"sequence.field=gone", PAIMON_PLAN_NO_COLUMN, "column \"gone\" named by option \"sequence.field\" does not exist"},
	{"sequence.field=i,j,i", PAIMON_PLAN_CONFLICT, "column \"i\" is named twice"},
	{"sequence.field=x", PAIMON_PLAN_BAD_TYPE, "type without order"},
	{FIRST "sequence.field=i", PAIMON_PLAN_CONFLICT, "cannot be used with merge engine first-row"},
	{AGG "sequence.field=i;fields.i.aggregate-function=sum", PAIMON_PLAN_CONFLICT, "named by option \"sequence.field\" and cannot have an aggregate"},
	{"sequence.field.sort-order=descending", PAIMON_PLAN_CONFLICT, "needs option \"sequence.field\""},
	{"sequence.field=i;sequence.field.sort-order=up", PAIMON_PLAN_BAD_VALUE, "invalid value \"up\""},

	/* rowkind.field */
	{"rowkind.field=nope", PAIMON_PLAN_NO_COLUMN, "\"nope\""},
	{"rowkind.field=i", PAIMON_PLAN_BAD_TYPE, "must be of a character type"},

	/* sequence groups */
	{PU "fields.i.sequence-group=nope", PAIMON_PLAN_NO_COLUMN, "column \"nope\" named by option \"fields.i.sequence-group\""},
	{PU "fields.nope.sequence-group=i", PAIMON_PLAN_NO_COLUMN, "column \"nope\" named by option \"fields.nope.sequence-group\""},
	{PU "fields.i.sequence-group=t;fields.j.sequence-group=t", PAIMON_PLAN_CONFLICT, "\"t\" is defined repeatedly by multiple sequence groups"},
	{PU "fields.i.sequence-group=t;fields.j.sequence-group=i", PAIMON_PLAN_CONFLICT, "\"i\" is defined repeatedly"},
	{PU "fields.i.sequence-group=t;fields.i,j.sequence-group=c", PAIMON_PLAN_CONFLICT, "\"i\" is defined repeatedly"},
	{PU "fields.i.sequence-group=i", PAIMON_PLAN_CONFLICT, "\"i\" is defined repeatedly"},
	{PU "fields.i.sequence-group=t,t", PAIMON_PLAN_CONFLICT, "\"t\" is defined repeatedly"},
	{PU "fields.k.sequence-group=t", PAIMON_PLAN_CONFLICT, "\"k\" of a sequence group is part of the primary key"},
	{PU "fields.i.sequence-group=t,k", PAIMON_PLAN_CONFLICT, "\"k\" of a sequence group is part of the primary key"},
	{PU "fields.t.sequence-group=i", PAIMON_PLAN_BAD_TYPE, "column \"t\" cannot order a sequence group"},
	{PU "fields.b.sequence-group=i", PAIMON_PLAN_BAD_TYPE, "column \"b\" cannot order a sequence group"},
	{PU "fields.i,m.sequence-group=t", PAIMON_PLAN_BAD_TYPE, "column \"m\" cannot order a sequence group"},
	{PU "fields.i.sequence-group=t;fields.i.aggregate-function=max", PAIMON_PLAN_CONFLICT, "\"i\" orders a sequence group and cannot have"},
	{AGG "fields.i.sequence-group=t", PAIMON_PLAN_CONFLICT, "needs merge engine partial-update"},
	{"fields.i.sequence-group=t", PAIMON_PLAN_CONFLICT, "needs merge engine partial-update"},

	/* removing */
	{PU "ignore-delete=true;partial-update.remove-record-on-delete=true", PAIMON_PLAN_CONFLICT, "contradict each other"},
	{PU "fields.i.sequence-group=t;partial-update.remove-record-on-delete=true", PAIMON_PLAN_CONFLICT, "cannot be used with sequence groups"},
	{AGG "partial-update.remove-record-on-delete=true", PAIMON_PLAN_CONFLICT, "needs merge engine partial-update"},
	{PU "aggregation.remove-record-on-delete=true", PAIMON_PLAN_CONFLICT, "needs merge engine aggregation"},
	{AGG "aggregation.remove-record-on-delete=true;fields.i.aggregate-function=max;fields.i.ignore-retract=true", PAIMON_PLAN_CONFLICT,
	"\"aggregation.remove-record-on-delete\" and \"fields.i.ignore-retract\" contradict each other"},
	{PU "fields.i.sequence-group=t;partial-update.remove-record-on-sequence-group=j", PAIMON_PLAN_CONFLICT, "must be part of sequence groups"},
	{PU "fields.i.sequence-group=t;partial-update.remove-record-on-sequence-group=t", PAIMON_PLAN_CONFLICT, "must be part of sequence groups"},
	{PU "fields.i.sequence-group=t;partial-update.remove-record-on-sequence-group=s9", PAIMON_PLAN_NO_COLUMN, "\"s9\""},
	{PU "fields.i.sequence-group=t;partial-update.remove-record-on-sequence-group=i;ignore-delete=true", PAIMON_PLAN_CONFLICT, "contradict each other"},
	{AGG "partial-update.remove-record-on-sequence-group=i", PAIMON_PLAN_CONFLICT, "needs merge engine partial-update"},

	/* functions */
	{PU "fields.i.aggregate-function=sum", PAIMON_PLAN_CONFLICT,
	"must use sequence group for aggregation functions, but none was found for column \"i\""},
	{PU "fields.default-aggregate-function=max", PAIMON_PLAN_CONFLICT, "must use sequence group"},
	{AGG "fields.i.aggregate-function=nope", PAIMON_PLAN_NO_FUNCTION, "no such function"},
	{AGG "fields.default-aggregate-function=nope", PAIMON_PLAN_NO_FUNCTION, "no such function"},
	{AGG "fields.zz.aggregate-function=sum", PAIMON_PLAN_NO_COLUMN, "column \"zz\" named by option \"fields.zz.aggregate-function\""},
	{AGG "fields.r.k.aggregate-function=sum", PAIMON_PLAN_NO_COLUMN, "column \"r.k\""},
	{AGG "fields.gone.ignore-retract=true", PAIMON_PLAN_NO_COLUMN, "column \"gone\""},
	{AGG "fields.k.aggregate-function=sum", PAIMON_PLAN_CONFLICT, "part of the primary key"},
	{"fields.i.aggregate-function=sum", PAIMON_PLAN_CONFLICT, "needs merge engine aggregation or partial-update"},
	{FIRST "fields.i.aggregate-function=sum", PAIMON_PLAN_CONFLICT, "needs merge engine aggregation or partial-update"},
	{"fields.default-aggregate-function=sum", PAIMON_PLAN_CONFLICT, "needs merge engine aggregation or partial-update"},
	{AGG "fields.a.aggregate-function=rbm32", PAIMON_PLAN_NOT_BUILT, "rbm32"},
	{AGG "fields.a.aggregate-function=rbm64", PAIMON_PLAN_NOT_BUILT, "rbm64"},
	{AGG "fields.a.aggregate-function=hll_sketch", PAIMON_PLAN_NOT_BUILT, "hll_sketch"},
	{AGG "fields.a.aggregate-function=theta_sketch", PAIMON_PLAN_NOT_BUILT, "theta_sketch"},

	/* types */
	{AGG "fields.t.aggregate-function=sum", PAIMON_PLAN_BAD_TYPE, "column \"t\" must be of a numeric type for aggregate function sum"},
	{AGG "fields.d.aggregate-function=product", PAIMON_PLAN_BAD_TYPE, "a numeric type"},
	{AGG "fields.m.aggregate-function=max", PAIMON_PLAN_BAD_TYPE, "column \"m\" must be of boolean"},
	{AGG "fields.a.aggregate-function=min", PAIMON_PLAN_BAD_TYPE, "column \"a\""},
	{AGG "fields.i.aggregate-function=listagg", PAIMON_PLAN_BAD_TYPE, "must be of text"},
	{AGG "fields.c.aggregate-function=listagg", PAIMON_PLAN_BAD_TYPE, "must be of text"},
	{AGG "fields.i.aggregate-function=bool_and", PAIMON_PLAN_BAD_TYPE, "must be of boolean"},
	{AGG "fields.t.aggregate-function=bool_or", PAIMON_PLAN_BAD_TYPE, "must be of boolean"},
	{AGG "fields.m.aggregate-function=collect", PAIMON_PLAN_BAD_TYPE, "must be of an array"},
	{AGG "fields.a.aggregate-function=merge_map", PAIMON_PLAN_BAD_TYPE, "must be of jsonb for"},
	{AGG "fields.a.aggregate-function=merge_map_with_keytime;fields.a.ts-field=t", PAIMON_PLAN_BAD_TYPE, "must be of jsonb"},
	{AGG "fields.a.aggregate-function=nested_update", PAIMON_PLAN_BAD_TYPE, "an array of a composite type or jsonb"},
	{AGG "fields.t.aggregate-function=nested_partial_update;fields.t.nested-key=k", PAIMON_PLAN_BAD_TYPE, "an array of a composite type or jsonb"},
	{AGG "fields.default-aggregate-function=sum", PAIMON_PLAN_BAD_TYPE, "for aggregate function sum"},

	/* details */
	{AGG "fields.r.aggregate-function=nested_partial_update", PAIMON_PLAN_CONFLICT, "needs option \"fields.r.nested-key\""},
	{AGG "fields.r.aggregate-function=nested_update;fields.r.nested-sequence-field=t", PAIMON_PLAN_CONFLICT, "needs option \"fields.r.nested-key\""},
	{AGG "fields.r.aggregate-function=nested_update;fields.r.nested-key-null-strategy=error", PAIMON_PLAN_CONFLICT, "needs option \"fields.r.nested-key\""},
	{AGG "fields.r.aggregate-function=nested_update;fields.r.nested-key=k;fields.r.nested-key-null-strategy=maybe", PAIMON_PLAN_BAD_VALUE, "\"maybe\""},
	{AGG "fields.r.aggregate-function=nested_update;fields.r.count-limit=0", PAIMON_PLAN_BAD_VALUE, "\"0\""},
	{AGG "fields.r.aggregate-function=nested_update;fields.r.count-limit=many", PAIMON_PLAN_BAD_VALUE, "\"many\""},
	{AGG "fields.m.aggregate-function=merge_map_with_keytime", PAIMON_PLAN_CONFLICT, "needs option \"fields.m.ts-field\""},
	{AGG "fields.i.aggregate-function=sum;fields.i.distinct=true", PAIMON_PLAN_CONFLICT, "needs aggregate function listagg or collect"},
	{AGG "fields.i.list-agg-delimiter=;fields.i.aggregate-function=sum", PAIMON_PLAN_CONFLICT, "needs aggregate function listagg"},
	{AGG "fields.i.nested-key=k", PAIMON_PLAN_CONFLICT, "needs aggregate function nested_update"},
	{AGG "fields.i.count-limit=1", PAIMON_PLAN_CONFLICT, "needs aggregate function nested_update"},
	{AGG "fields.r.aggregate-function=nested_partial_update;fields.r.nested-key=k;fields.r.nested-sequence-field=t", PAIMON_PLAN_CONFLICT,
	"needs aggregate function nested_update"},
	{"fields.i.ts-field=k", PAIMON_PLAN_CONFLICT, "needs aggregate function merge_map_with_keytime"},
};

static void
test_errors(void)
{
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
	{
		PaimonPlanError error;
		PaimonMergePlan *plan = plan_of(wrong[i].options, &error);

		CHECK_MSG(plan == NULL, "%s", wrong[i].options);
		CHECK_MSG(plan == NULL && error.code == wrong[i].code && strstr(error.message, wrong[i].message) != NULL, "%s: %d %s",
				  wrong[i].options, error.code, error.message);
	}
}

static int
column(const char *name)
{
	for (int c = 0; c < NCOLUMNS; c++)
	{
		if (strcmp(columns[c].name, name) == 0)
			return c;
	}
	abort();
}

static PaimonMergePlan *
good(const char *options)
{
	PaimonPlanError error;
	PaimonMergePlan *plan = plan_of(options, &error);

	CHECK_MSG(plan != NULL, "%s: %s", options, error.message);
	if (plan == NULL)
		exit(unit_end());
	return plan;
}

static const char *
function_of(const PaimonMergePlan *plan, const char *name)
{
	const char *f = paimon_merge_function_name(&plan->columns[column(name)]);

	return f != NULL ? f : "";
}

static void
test_plans(void)
{
	PaimonMergePlan *plan = good("");
	bool		wanted[NCOLUMNS] = {false};

	CHECK(plan->engine == PAIMON_FOLD_DEDUPLICATE && plan->newest_decides && plan->rowkind == -1);
	plan = good("sequence.field= i , j ;rowkind.field=c;ignore-update-before=TRUE");
	CHECK(!plan->newest_decides && plan->nsequence == 2 && plan->sequence[1] == column("j") && plan->rowkind == column("c"));
	CHECK(plan->ignore_update_before && !plan->ignore_delete);

	/* functions by default */
	plan = good(AGG "sequence.field=j;fields.i.aggregate-function=sum;fields.t.aggregate-function=first_not_null_value;"
				"fields.odd.name.aggregate-function=user_strict");
	CHECK(strcmp(function_of(plan, "i"), "sum") == 0);
	CHECK(strcmp(function_of(plan, "n"), "last_non_null_value") == 0);
	CHECK(strcmp(function_of(plan, "t"), "first_non_null_value") == 0);
	CHECK(strcmp(function_of(plan, "j"), "") == 0 && strcmp(function_of(plan, "k"), "") == 0);
	CHECK(plan->columns[column("odd.name")].agg != NULL && plan->plain_single);
	plan = good(AGG "fields.default-aggregate-function=last_value;fields.a.aggregate-function=collect;fields.a.distinct=true");
	CHECK(strcmp(function_of(plan, "n"), "last_value") == 0 && strcmp(function_of(plan, "a"), "collect") == 0 && !plan->plain_single);
	plan = good(AGG "fields.n.aggregate-function=sum");
	CHECK(plan->must_fit);

	/* all types, and details */
	good(AGG "fields.i.aggregate-function=product;fields.n.aggregate-function=max;fields.b.aggregate-function=bool_or;"
		 "fields.t.aggregate-function=listagg;fields.t.list-agg-delimiter=|;fields.d.aggregate-function=min;"
		 "fields.a.aggregate-function=collect;fields.r.aggregate-function=nested_update;fields.r.nested-key=k;"
		 "fields.r.nested-sequence-field=t;fields.r.count-limit=3;fields.r.nested-key-null-strategy=IGNORE;"
		 "fields.m.aggregate-function=merge_map_with_keytime;fields.m.ts-field=t");

	/* partial-update: groups, and last_non_null_value without one */
	plan = good(PU "fields.i,d.sequence-group=n,t;fields.j.sequence-group=c;fields.n.aggregate-function=sum;"
				"fields.default-aggregate-function=last_non_null_value;partial-update.remove-record-on-sequence-group=j");
	CHECK(plan->ngroups == 2 && plan->groups[0].nordering == 2 && plan->groups[1].removes && !plan->groups[0].removes);
	CHECK(strcmp(function_of(plan, "n"), "sum") == 0 && strcmp(function_of(plan, "t"), "last_non_null_value") == 0);
	CHECK(plan->columns[column("b")].agg == NULL && plan->columns[column("d")].ordering);

	/* what it takes to merge the columns that are wanted */
	wanted[column("t")] = true;
	paimon_merge_plan_needs(plan, wanted);
	CHECK(wanted[column("i")] && wanted[column("d")] && wanted[column("j")] && !wanted[column("n")] && !wanted[column("c")]);
}

static void
test_kinds(void)
{
	uint8_t		kind;

	CHECK(paimon_merge_parse_kind("+I", 2, &kind) && kind == PAIMON_KIND_INSERT);
	CHECK(paimon_merge_parse_kind("-U", 2, &kind) && kind == PAIMON_KIND_UPDATE_BEFORE);
	CHECK(paimon_merge_parse_kind("+U", 2, &kind) && kind == PAIMON_KIND_UPDATE_AFTER);
	CHECK(paimon_merge_parse_kind("-D", 2, &kind) && kind == PAIMON_KIND_DELETE);
	CHECK(!paimon_merge_parse_kind("", 0, &kind) && !paimon_merge_parse_kind("+i", 2, &kind) && !paimon_merge_parse_kind("+I ", 3, &kind));
}

int
main(int argc, char **argv)
{
	unit_begin("merge_plan", argc, argv);
	alloc = unit_arena_init(&arena);
	test_errors();
	test_plans();
	test_kinds();
	unit_arena_reset(&arena);
	return unit_end();
}
