/*-------------------------------------------------------------------------
 *
 * test_merge_scenarios.c
 *	  The examples of how the merge engines behave, literally; each result under every way to divide the records into runs, with the oldest run
 *	  merged fully or not.
 *
 *-------------------------------------------------------------------------
 */
#include <stdarg.h>

#include "unit_merge.h"

#define MAX_COLUMNS 8
#define MAX_RECORDS 10

static UnitArena arena;
static PaimonAllocator alloc;
static PaimonMergePlan *plan;
static PaimonMergeColumn columns[MAX_COLUMNS];
static int	ncolumns;
static PaimonFoldRecord records[MAX_RECORDS];
static int	nrecords;

/* ---------- tables ---------- */

/* "k:int v:text …"; the first column is the key.  Options: name, value, …, NULL. */
static void
table(const char *description,...)
{
	PaimonMergeOption options[16];
	int			noptions = 0;
	PaimonPlanError error;
	va_list		args;
	char	   *text;

	unit_arena_reset(&arena);
	text = paimon_core_alloc(&alloc, strlen(description) + 1);
	strcpy(text, description);
	memset(columns, 0, sizeof(columns));
	ncolumns = nrecords = 0;
	for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
	{
		PaimonMergeColumn *col = &columns[ncolumns];
		char	   *type = strchr(word, ':') + 1;

		type[-1] = '\0';
		col->name = word;
		col->key = ncolumns++ == 0;
		col->comparable = true;
		col->ops = &unit_ops;
		col->cls = strcmp(type, "int") == 0 ? PAIMON_MC_INT4 : strcmp(type, "bigint") == 0 ? PAIMON_MC_INT8 :
			strcmp(type, "bool") == 0 ? PAIMON_MC_BOOL : strcmp(type, "numeric") == 0 ? PAIMON_MC_NUMERIC : PAIMON_MC_TEXT;
	}
	va_start(args, description);
	for (const char *name; (name = va_arg(args, const char *)) != NULL;)
	{
		options[noptions].name = name;
		options[noptions++].value = va_arg(args, const char *);
	}
	va_end(args);
	plan = paimon_merge_plan(columns, ncolumns, options, noptions, NULL, NULL, &alloc, &error);
	CHECK_MSG(plan != NULL, "%s: %s", description, error.message);
	if (plan == NULL)
		exit(unit_end());
}

/* ---------- records ---------- */

static bool
parse(const PaimonMergeColumn *col, const char *s, size_t len, uint64_t *word)
{
	char	   *copy;

	if (len == 4 && memcmp(s, "NULL", 4) == 0)
		return false;
	copy = paimon_core_alloc(&alloc, len + 1);
	memcpy(copy, s, len);
	copy[len] = '\0';
	*word = col->cls == PAIMON_MC_TEXT ? unit_text(copy, &alloc) : (uint64_t) strtoll(copy, NULL, 10);
	return true;
}

/* "1|a|NULL" */
static void
parse_row(const char *row, uint64_t *values, bool *nulls)
{
	for (int c = 0; c < ncolumns; c++)
	{
		size_t		len = strcspn(row, "|");

		values[c] = 0;
		nulls[c] = !parse(&columns[c], row, len, &values[c]);
		row += len + (row[len] == '|');
	}
}

static PaimonWriteVerdict
try_add(const char *kind, const char *row, PaimonFoldError *error)
{
	uint64_t   *values = paimon_core_alloc(&alloc, MAX_COLUMNS * sizeof(uint64_t));
	bool	   *nulls = paimon_core_alloc(&alloc, MAX_COLUMNS);
	PaimonFoldRecord *r = &records[nrecords];
	PaimonWriteVerdict verdict;
	uint8_t		k;

	parse_row(row, values, nulls);
	r->values = values;
	r->nulls = nulls;
	if (paimon_merge_parse_kind(kind, strlen(kind), &k))
		r->kind = k;
	else
		r->kind = strcmp(kind, "UPDATE") == 0 ? PAIMON_KIND_REPLACE : PAIMON_KIND_REMOVE;
	verdict = paimon_merge_check_write(plan, r, &alloc, error);
	if (verdict == PAIMON_WRITE_TAKE)
		nrecords++;
	return verdict;
}

static void
add(const char *kind, const char *row)
{
	PaimonFoldError error;

	CHECK_MSG(try_add(kind, row, &error) == PAIMON_WRITE_TAKE, "%s %s", kind, row);
}

static void
refused(const char *kind, const char *row, PaimonFoldCode code, int column)
{
	PaimonFoldError error = {0};

	CHECK_MSG(try_add(kind, row, &error) == PAIMON_WRITE_REFUSE && error.code == code && error.column == column, "%s %s: %d %d", kind, row,
			  error.code, error.column);
}

/* ---------- every grouping ---------- */

typedef struct Part
{
	PaimonFoldRecord records[MAX_RECORDS];
	int			n;
} Part;

static bool
same_row(const PaimonFoldRecord *row, const char *expected)
{
	uint64_t	values[MAX_COLUMNS];
	bool		nulls[MAX_COLUMNS];

	parse_row(expected, values, nulls);
	for (int c = 1; c < ncolumns; c++)
	{
		if (nulls[c] != row->nulls[c])
			return false;
		if (nulls[c])
			continue;
		if (columns[c].cls == PAIMON_MC_TEXT ? unit_compare(&columns[c], values[c], row->values[c]) != 0 : values[c] != row->values[c])
			return false;
	}
	return true;
}

/* Bit i of cuts: a run ends behind record i.  expected NULL: no row; "!": too large a value. */
static void
check_grouping(uint32_t cuts, bool oldest, const char *expected, int line)
{
	Part		parts[MAX_RECORDS];
	int			nparts = 0;
	int			start = 0;
	PaimonFold *fold = paimon_fold_create(plan, &alloc);
	PaimonFoldRecord row;
	PaimonFoldError error;
	PaimonFoldOutcome outcome;
	bool		more = true;

	for (int i = 0; i < nrecords; i++)
	{
		const PaimonFoldRecord *out;

		if (i < nrecords - 1 && (cuts & (1u << i)) == 0)
			continue;
		paimon_fold_begin(fold, &alloc);
		for (int k = i; k >= start && paimon_fold_add(fold, &records[k]); k--)
			;
		parts[nparts].n = paimon_fold_partial(fold, oldest && start == 0, &out);
		for (int k = 0; k < parts[nparts].n; k++)
		{
			uint64_t   *values = paimon_core_alloc(&alloc, sizeof(uint64_t) * MAX_COLUMNS);
			bool	   *nulls = paimon_core_alloc(&alloc, MAX_COLUMNS);

			memcpy(values, out[k].values, sizeof(uint64_t) * ncolumns);
			memcpy(nulls, out[k].nulls, ncolumns);
			parts[nparts].records[k] = (PaimonFoldRecord) {out[k].kind, values, nulls};
		}
		nparts++;
		start = i + 1;
	}
	paimon_fold_begin(fold, &alloc);
	for (int i = nparts - 1; i >= 0 && more; i--)
	{
		for (int k = 0; k < parts[i].n && more; k++)
			more = paimon_fold_add(fold, &parts[i].records[k]);
	}
	outcome = paimon_fold_visible(fold, &row, &error);
	if (expected == NULL)
		CHECK_MSG(outcome == PAIMON_FOLD_GONE, "line %d, cuts %x, oldest %d", line, cuts, oldest);
	else if (strcmp(expected, "!") == 0)
		CHECK_MSG(outcome == PAIMON_FOLD_FAILED && error.code == PAIMON_FOLD_OVERFLOW, "line %d, cuts %x", line, cuts);
	else
		CHECK_MSG(outcome == PAIMON_FOLD_ROW && same_row(&row, expected), "line %d, cuts %x, oldest %d: not %s", line, cuts, oldest, expected);
}

static void
check_seen(const char *expected, bool markers_may_go, int line)
{
	for (uint32_t cuts = 0; cuts < (1u << (nrecords > 0 ? nrecords - 1 : 0)); cuts++)
	{
		check_grouping(cuts, false, expected, line);
		if (markers_may_go)
			check_grouping(cuts, true, expected, line);
	}
}

#define SEEN(row) check_seen(row, true, __LINE__)
#define GONE() check_seen(NULL, true, __LINE__)
#define SEEN_WITH_MARKERS(row) check_seen(row, false, __LINE__)
#define TOO_LARGE() check_seen("!", true, __LINE__)

/* ---------- the examples ---------- */

static void
test_deduplicate(void)
{
	table("sku:int label:text n:int", NULL);
	add("+I", "1|bolt|5");
	add("+I", "1|bolt|NULL");
	SEEN("1|bolt|NULL");
	add("DELETE", "1|NULL|NULL");
	GONE();
	add("+I", "1|nut|1");
	SEEN("1|nut|1");
	add("-U", "1|nut|1");
	GONE();
	add("+U", "1|nut|2");
	SEEN("1|nut|2");

	table("sku:int label:text n:int", "ignore-delete", "true", NULL);
	add("+I", "1|bolt|5");
	CHECK(try_add("DELETE", "1|bolt|5", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
	CHECK(try_add("-D", "1|bolt|5", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
	CHECK(try_add("-U", "1|bolt|5", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
	SEEN("1|bolt|5");

	table("sku:int label:text n:int", "ignore-update-before", "true", NULL);
	add("+I", "1|bolt|5");
	CHECK(try_add("-U", "1|bolt|5", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
	add("-D", "1|bolt|5");
	GONE();
}

static void
test_partial_update(void)
{
	table("id:int name:text qty:int price:int", "merge-engine", "partial-update", NULL);
	add("+I", "7|pen|NULL|NULL");
	add("+I", "7|NULL|3|NULL");
	add("+I", "7|NULL|NULL|150");
	add("+I", "7|ink|NULL|NULL");
	SEEN("7|ink|3|150");
	refused("-D", "7|ink|3|150", PAIMON_FOLD_RETRACT_REFUSED, -1);
	refused("-U", "7|ink|3|150", PAIMON_FOLD_RETRACT_REFUSED, -1);
	add("UPDATE", "7|ink|NULL|NULL");
	SEEN("7|ink|NULL|NULL");
	add("+I", "7|NULL|4|NULL");
	SEEN("7|ink|4|NULL");
	add("DELETE", "7|NULL|NULL|NULL");
	GONE();
	add("+I", "7|NULL|NULL|1");
	SEEN("7|NULL|NULL|1");
}

static void
test_groups(void)
{
	const char *p = "id:int a:text b:text ts1:int c:text ts2:int";

	table(p, "merge-engine", "partial-update", "fields.ts1.sequence-group", "a,b", "fields.ts2.sequence-group", "c", NULL);
	add("+I", "1|a1|b1|10|c1|10");
	SEEN("1|a1|b1|10|c1|10");
	add("+I", "1|a2|NULL|12|zz|NULL");
	SEEN("1|a2|NULL|12|c1|10");
	add("+I", "1|old|old|11|c2|15");
	SEEN("1|a2|NULL|12|c2|15");
	add("+I", "1|a3|b3|12|NULL|NULL");
	SEEN("1|a3|b3|12|c2|15");

	table(p, "merge-engine", "partial-update", "fields.ts1.sequence-group", "a,b", "fields.ts2.sequence-group", "c", NULL);
	add("+I", "1|a1|b1|10|c1|10");
	add("-D", "1|NULL|NULL|13|NULL|NULL");
	SEEN("1|NULL|NULL|13|c1|10");
	add("+I", "1|late|late|12|c2|9");
	SEEN("1|NULL|NULL|13|c1|10");
	add("-U", "1|x|x|5|x|11");
	SEEN("1|NULL|NULL|13|NULL|11");

	/* a retract without a row */
	table(p, "merge-engine", "partial-update", "fields.ts1.sequence-group", "a,b", "fields.ts2.sequence-group", "c", NULL);
	add("-D", "1|x|y|13|z|13");
	GONE();
	add("+I", "1|a1|b1|10|c1|14");
	SEEN("1|a1|b1|10|c1|14");

	/* ordering columns behind those they protect, or before: the order of columns does not matter */
	table("id:int ts:int a:text", "merge-engine", "partial-update", "fields.ts.sequence-group", "a", NULL);
	add("+I", "1|5|x");
	add("+I", "1|4|y");
	SEEN("1|5|x");

	table("id:int v:text d:int n:int", "merge-engine", "partial-update", "fields.d,n.sequence-group", "v", NULL);
	add("+I", "1|x|5|1");
	add("+I", "1|y|5|NULL");
	SEEN("1|x|5|1");
	add("+I", "1|z|5|2");
	SEEN("1|z|5|2");
	add("+I", "1|w|NULL|NULL");
	SEEN("1|z|5|2");
	add("+I", "1|u|6|NULL");
	SEEN("1|u|6|NULL");

	/* an ordering column that is NULL: the function always runs */
	table("k:int v:text ts:int", "merge-engine", "partial-update", "fields.ts.sequence-group", "v", NULL);
	add("+I", "9|hi|NULL");
	SEEN("9|NULL|NULL");
	add("+I", "9|yo|NULL");
	SEEN("9|NULL|NULL");
	add("+I", "9|yo|4");
	SEEN("9|yo|4");
	add("UPDATE", "9|set|NULL");
	SEEN("9|set|NULL");
	add("+I", "9|no|NULL");
	SEEN("9|set|NULL");
}

static void
test_aggregation_in_groups(void)
{
	table("k:int amt:int ver:int", "merge-engine", "partial-update", "fields.ver.sequence-group", "amt",
		  "fields.amt.aggregate-function", "sum", NULL);
	add("+I", "1|10|5");
	add("+I", "1|4|9");
	add("+I", "1|7|6");
	add("+I", "1|100|NULL");
	SEEN("1|21|9");
	add("-D", "1|4|9");
	SEEN("1|17|9");
	add("-U", "1|7|2");
	SEEN("1|10|9");

	table("k:int v:text ver:int", "merge-engine", "partial-update", "fields.ver.sequence-group", "v",
		  "fields.v.aggregate-function", "first_value", NULL);
	add("+I", "1|m|5");
	add("+I", "1|n|9");
	add("+I", "1|k|2");
	SEEN("1|k|9");
	refused("-D", "1|k|9", PAIMON_FOLD_NO_RETRACT, 1);

	table("k:int v:text ver:int", "merge-engine", "partial-update", "fields.ver.sequence-group", "v",
		  "fields.v.aggregate-function", "listagg", NULL);
	add("+I", "1|m|5");
	add("+I", "1|n|9");
	add("+I", "1|k|2");
	add("+I", "1|l|7");
	SEEN("1|l,k,m,n|9");

	table("k:int a:int b:int ver:int u:text", "merge-engine", "partial-update", "fields.ver.sequence-group", "a,b",
		  "fields.default-aggregate-function", "last_non_null_value", NULL);
	add("+I", "1|1|NULL|1|x");
	add("+I", "1|NULL|2|2|NULL");
	add("+I", "1|3|NULL|3|NULL");
	SEEN("1|3|2|3|x");
}

static void
test_remove_on_delete(void)
{
	table("id:int a:text b:text", "merge-engine", "partial-update", "partial-update.remove-record-on-delete", "true", NULL);
	add("-U", "1|a|b");
	GONE();
	add("+I", "1|a|b");
	add("-U", "1|a|b");
	SEEN("1|a|b");
	add("-D", "1|a|b");
	GONE();
	add("+I", "1|NULL|c");
	SEEN("1|NULL|c");
}

static void
group_removal(const char *kind, const char *row, const char *expected)
{
	table("id:int p:text s1:int q:text s2:int", "merge-engine", "partial-update", "fields.s1.sequence-group", "p",
		  "fields.s2.sequence-group", "q", "partial-update.remove-record-on-sequence-group", "s1", NULL);
	add("+I", "1|p|2|q|2");
	add(kind, row);
	if (expected == NULL)
		GONE();
	else
		SEEN(expected);
}

static void
test_remove_on_group(void)
{
	group_removal("-D", "1|p|NULL|NULL|3", "1|p|2|NULL|3");
	group_removal("-D", "1|p|3|NULL|NULL", NULL);
	group_removal("-D", "1|p|1|NULL|NULL", "1|p|2|q|2");
	group_removal("-U", "1|p|3|NULL|NULL", "1|NULL|3|q|2");

	/* the row that comes then begins with nothing, not even an order */
	group_removal("-D", "1|p|3|NULL|NULL", NULL);
	add("+I", "1|new|1|NULL|NULL");
	SEEN("1|new|1|NULL|NULL");
	add("-D", "1|new|1|NULL|NULL");
	GONE();

	/* two deletes of different order before anything is known of the row */
	group_removal("+I", "1|r|7|NULL|NULL", "1|r|7|q|2");
	add("-D", "1|x|5|NULL|NULL");
	add("-D", "1|x|6|NULL|NULL");
	SEEN("1|r|7|q|2");
	add("-D", "1|x|7|NULL|NULL");
	add("+I", "1|s|6|NULL|NULL");
	SEEN("1|s|6|NULL|NULL");
}

static void
test_aggregation(void)
{
	table("k:int total:int last:text", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum", NULL);
	add("+I", "1|5|a");
	add("+I", "1|7|NULL");
	SEEN("1|12|a");
	add("-U", "1|5|a");
	SEEN("1|7|NULL");
	add("-D", "1|7|z");
	SEEN("1|0|NULL");
	add("UPDATE", "1|100|b");
	SEEN("1|100|b");
	add("+I", "1|1|NULL");
	SEEN("1|101|b");
	add("DELETE", "1|NULL|NULL");
	GONE();
	add("-D", "1|4|q");
	SEEN("1|-4|NULL");
	add("+I", "1|10|r");
	SEEN("1|6|r");

	table("k:int total:int last:text", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum",
		  "aggregation.remove-record-on-delete", "true", NULL);
	add("+I", "1|5|a");
	add("-U", "1|2|NULL");
	SEEN("1|3|a");
	add("-D", "1|5|a");
	GONE();
	add("+I", "1|2|NULL");
	SEEN("1|2|NULL");

	table("k:int m:int", "merge-engine", "aggregation", "fields.m.aggregate-function", "max", NULL);
	refused("-D", "1|5", PAIMON_FOLD_NO_RETRACT, 1);
	table("k:int m:int", "merge-engine", "aggregation", "fields.m.aggregate-function", "max", "fields.m.ignore-retract", "true", NULL);
	add("+I", "1|5");
	add("-D", "1|5");
	SEEN("1|5");

	table("k:int f:int l:int", "merge-engine", "aggregation", "fields.f.aggregate-function", "first_value",
		  "fields.l.aggregate-function", "last_value", NULL);
	add("+I", "1|NULL|1");
	add("+I", "1|2|NULL");
	SEEN("1|NULL|NULL");
}

static void
test_overflow(void)
{
	table("k:int total:int", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum", NULL);
	add("+I", "1|2147483647");
	add("+I", "1|1");
	TOO_LARGE();
	add("+I", "1|-5");
	SEEN("1|2147483643");
	add("-U", "1|2147483643");
	add("-U", "1|2147483647");
	add("-U", "1|2");
	TOO_LARGE();
	add("+I", "1|1");
	SEEN("1|-2147483648");

	table("k:int total:bigint", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum", NULL);
	add("+I", "1|9223372036854775807");
	add("+I", "1|9223372036854775807");
	TOO_LARGE();
	add("-D", "1|9223372036854775807");
	SEEN("1|9223372036854775807");

	table("k:int p:int", "merge-engine", "aggregation", "fields.p.aggregate-function", "product", NULL);
	add("+I", "1|65536");
	add("+I", "1|65536");
	TOO_LARGE();
	add("+I", "1|0");
	SEEN("1|0");
	refused("-D", "1|0", PAIMON_FOLD_DIVISION, 1);

	table("k:int p:int", "merge-engine", "aggregation", "fields.p.aggregate-function", "product", NULL);
	add("+I", "1|7");
	add("-U", "1|2");
	SEEN("1|3");
	add("+I", "1|NULL");
	add("-U", "1|NULL");
	SEEN("1|3");

	table("k:int n:numeric", "merge-engine", "aggregation", "fields.n.aggregate-function", "sum", NULL);
	add("+I", "1|600");
	add("+I", "1|600");
	TOO_LARGE();
	add("+I", "1|-300");
	SEEN("1|900");
}

static void
test_first_row(void)
{
	table("k:int v:text", "merge-engine", "first-row", NULL);
	add("+I", "1|a");
	add("+I", "1|b");
	add("+U", "1|c");
	SEEN("1|a");
	refused("-D", "1|a", PAIMON_FOLD_RETRACT_REFUSED, -1);
	refused("-U", "1|a", PAIMON_FOLD_RETRACT_REFUSED, -1);
	refused("UPDATE", "1|a", PAIMON_FOLD_RETRACT_REFUSED, -1);
	refused("DELETE", "1|a", PAIMON_FOLD_RETRACT_REFUSED, -1);
	table("k:int v:text", "merge-engine", "first-row", "ignore-delete", "true", NULL);
	CHECK(try_add("-D", "1|a", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
	CHECK(try_add("DELETE", "1|a", &(PaimonFoldError) {0}) == PAIMON_WRITE_DROP);
}

static void
test_sequence(void)
{
	table("k:int v:text ts:int", "sequence.field", "ts", NULL);
	add("+I", "1|new|20");
	add("+I", "1|late|10");
	SEEN("1|new|20");
	add("+I", "1|same|20");
	SEEN("1|same|20");
	add("+I", "1|nots|NULL");
	SEEN("1|same|20");
	add("-D", "1|x|15");
	SEEN("1|same|20");
	add("-D", "1|x|25");
	GONE();
	add("+I", "1|zombie|22");
	SEEN_WITH_MARKERS(NULL);

	table("k:int v:text ts:int", "sequence.field", "ts", "sequence.field.sort-order", "descending", NULL);
	add("+I", "1|new|20");
	add("+I", "1|smaller|10");
	add("+I", "1|nothing|NULL");
	add("+I", "1|larger|30");
	SEEN("1|smaller|10");

	table("k:int v:text a:int b:int", "sequence.field", "a,b", NULL);
	add("+I", "1|x|5|1");
	add("+I", "1|y|5|NULL");
	SEEN("1|x|5|1");
	add("UPDATE", "1|u|5|1");
	SEEN("1|u|5|1");
	add("UPDATE", "1|w|5|0");
	SEEN("1|u|5|1");
	add("DELETE", "1|NULL|5|1");
	GONE();

	/* an update keeps its place: what is older by the field stays out, what lies between counts */
	table("k:int total:int ts:int", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum", "sequence.field", "ts", NULL);
	add("+I", "1|5|10");
	add("UPDATE", "1|100|20");
	add("+I", "1|1|25");
	SEEN("1|101|25");
	add("+I", "1|7|22");
	SEEN_WITH_MARKERS("1|108|25");

	/* the newest tuple is taken whole */
	table("k:int v:int a:int b:int", "merge-engine", "partial-update", "sequence.field", "a,b", NULL);
	add("+I", "1|1|1|5");
	add("+I", "1|NULL|2|NULL");
	SEEN("1|1|2|NULL");
}

static void
test_listagg(void)
{
	table("k:int l:text", "merge-engine", "aggregation", "fields.l.aggregate-function", "listagg", NULL);
	add("+I", "1| ");
	SEEN("1|NULL");
	add("+I", "1|a");
	add("+I", "1|NULL");
	add("+I", "1|");
	add("+I", "1|b");
	SEEN("1|a,b");
	add("UPDATE", "1| ");
	add("+I", "1|c");
	SEEN("1|c");

	table("k:int l:text", "merge-engine", "aggregation", "fields.l.aggregate-function", "listagg", "fields.l.distinct", "true",
		  "fields.l.list-agg-delimiter", "; ", NULL);
	add("+I", "1|a; a");
	add("+I", "1|b; a; b; c");
	add("+I", "1|;");
	SEEN("1|a; a; b; c; ;");
}

/* A key that is written again and again. */
static void
test_hot_key(void)
{
	PaimonFold *fold;
	PaimonFoldRecord row;
	PaimonFoldError error;

	table("k:int total:bigint last:text", "merge-engine", "aggregation", "fields.total.aggregate-function", "sum", NULL);
	add("+I", "1|3|a");
	add("-U", "1|1|NULL");
	fold = paimon_fold_create(plan, &alloc);
	paimon_fold_begin(fold, &alloc);
	for (int i = 0; i < 200000; i++)
		CHECK(paimon_fold_add(fold, &records[i % 2]));
	CHECK(paimon_fold_visible(fold, &row, &error) == PAIMON_FOLD_ROW && same_row(&row, "1|200000|a"));
}

int
main(int argc, char **argv)
{
	unit_begin("merge_scenarios", argc, argv);
	alloc = unit_arena_init(&arena);
	test_deduplicate();
	test_partial_update();
	test_groups();
	test_aggregation_in_groups();
	test_remove_on_delete();
	test_remove_on_group();
	test_aggregation();
	test_overflow();
	test_first_row();
	test_sequence();
	test_listagg();
	test_hot_key();
	unit_arena_reset(&arena);
	return unit_end();
}
