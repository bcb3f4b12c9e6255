/*-------------------------------------------------------------------------
 *
 * options_value.c
 *	  Values of options: from the text that Paimon users write to numbers.
 *
 * Nothing here raises an error, so the run-time cache may use it on whatever
 * the catalog holds; messages are made in options_check.c.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>
#include <math.h>

#include "common/int.h"
#include "lib/stringinfo.h"

#include "options/options_def.h"

typedef struct Unit
{
	const char *name;
	int64		factor;
} Unit;

static const Unit size_units[] = {
	{"", 1}, {"b", 1}, {"bytes", 1},
	{"k", 1024}, {"kb", 1024}, {"kibibytes", 1024},
	{"m", 1024 * 1024}, {"mb", 1024 * 1024}, {"mebibytes", 1024 * 1024},
	{"g", INT64CONST(1) << 30}, {"gb", INT64CONST(1) << 30}, {"gibibytes", INT64CONST(1) << 30},
	{"t", INT64CONST(1) << 40}, {"tb", INT64CONST(1) << 40}, {"tebibytes", INT64CONST(1) << 40},
	{NULL, 0}
};

/* Milliseconds.  Finer units have no use here. */
static const Unit duration_units[] = {
	{"", 1}, {"ms", 1}, {"milli", 1}, {"millis", 1}, {"millisecond", 1}, {"milliseconds", 1},
	{"s", 1000}, {"sec", 1000}, {"secs", 1000}, {"second", 1000}, {"seconds", 1000},
	{"m", 60000}, {"min", 60000}, {"minute", 60000}, {"minutes", 60000},
	{"h", 3600000}, {"hour", 3600000}, {"hours", 3600000},
	{"d", 86400000}, {"day", 86400000}, {"days", 86400000},
	{NULL, 0}
};

/* Length of `text` without blanks at its ends; *start is moved past those before. */
static int
trim(const char **start)
{
	int			len;

	while (isspace((unsigned char) **start))
		(*start)++;
	len = (int) strlen(*start);
	while (len > 0 && isspace((unsigned char) (*start)[len - 1]))
		len--;
	return len;
}

/* Does the trimmed text equal a word, in any case? */
static bool
is_word(const char *text, int len, const char *word)
{
	return (int) strlen(word) == len && pg_strncasecmp(text, word, len) == 0;
}

/* Digits at the start of a trimmed text; returns how many characters they take, 0 if none or too large. */
static int
scan_digits(const char *text, int len, int64 *value)
{
	int			n = 0;

	*value = 0;
	while (n < len && isdigit((unsigned char) text[n]))
	{
		if (pg_mul_s64_overflow(*value, 10, value) ||
			pg_add_s64_overflow(*value, text[n] - '0', value))
			return 0;
		n++;
	}
	return n;
}

static bool
parse_with_unit(const char *text, const Unit *units, int64 *value)
{
	int			len = trim(&text);
	int			n = scan_digits(text, len, value);

	if (n == 0)
		return false;
	while (n < len && isspace((unsigned char) text[n]))
		n++;
	for (; units->name != NULL; units++)
	{
		if (is_word(text + n, len - n, units->name))
			return !pg_mul_s64_overflow(*value, units->factor, value);
	}
	return false;
}

bool
paimon_parse_bool(const char *text, bool *value)
{
	int			len = trim(&text);

	*value = is_word(text, len, "true");
	return *value || is_word(text, len, "false");
}

bool
paimon_parse_int(const char *text, int64 *value)
{
	int			len = trim(&text);
	bool		negative = len > 0 && text[0] == '-';

	if (negative || (len > 0 && text[0] == '+'))
	{
		text++;
		len--;
	}
	if (len == 0 || scan_digits(text, len, value) != len)
		return false;
	if (negative)
		*value = -*value;
	return true;
}

bool
paimon_parse_size(const char *text, int64 *bytes)
{
	return parse_with_unit(text, size_units, bytes);
}

bool
paimon_parse_duration(const char *text, int64 *ms)
{
	return parse_with_unit(text, duration_units, ms);
}

bool
paimon_parse_enum(const char *text, const char *const *values, int *index)
{
	int			len = trim(&text);

	for (int i = 0; values != NULL && values[i] != NULL; i++)
	{
		if (is_word(text, len, values[i]))
		{
			*index = i;
			return true;
		}
	}
	return false;
}

/* Names between commas, blanks around them removed; an empty name makes the list NIL. */
List *
paimon_parse_columns(const char *text)
{
	List	   *names = NIL;

	for (;;)
	{
		const char *end = strchr(text, ',');
		char	   *part = end ? pnstrdup(text, end - text) : pstrdup(text);
		const char *start = part;
		int			len = trim(&start);

		if (len == 0)
			return NIL;
		names = lappend(names, pnstrdup(start, len));
		if (end == NULL)
			return names;
		text = end + 1;
	}
}

bool
paimon_parse_float(const char *text, int64 *millionths)
{
	char	   *end;
	double		value;

	errno = 0;
	value = strtod(text, &end);
	while (isspace((unsigned char) *end))
		end++;
	if (end == text || *end != '\0' || errno != 0 || !isfinite(value) || fabs(value) > 1e9)
		return false;
	*millionths = (int64) rint(value * PAIMON_OPT_FLOAT_SCALE);
	return true;
}

bool
paimon_option_parse(const PaimonOptionDef *def, const char *text, int64 *value)
{
	bool		flag;
	int			index;

	switch (def->type)
	{
		case PAIMON_OPT_BOOL:
			if (!paimon_parse_bool(text, &flag))
				return false;
			*value = flag;
			return true;
		case PAIMON_OPT_ENUM:
			if (!paimon_parse_enum(text, def->values, &index))
				return false;
			*value = index;
			return true;
		case PAIMON_OPT_INT:
			return paimon_parse_int(text, value) && *value >= def->min && *value <= def->max;
		case PAIMON_OPT_SIZE:
			return paimon_parse_size(text, value) && *value >= def->min && *value <= def->max;
		case PAIMON_OPT_DURATION:
			return paimon_parse_duration(text, value) && *value >= def->min && *value <= def->max;
		case PAIMON_OPT_FLOAT:
			return paimon_parse_float(text, value) && *value >= def->min && *value <= def->max;
		case PAIMON_OPT_STRING:
		case PAIMON_OPT_COLUMN:
		case PAIMON_OPT_COLUMNS:
			break;
	}
	return false;
}

const char *
paimon_option_type_name(PaimonOptionType type)
{
	switch (type)
	{
		case PAIMON_OPT_BOOL:
			return "bool";
		case PAIMON_OPT_INT:
			return "int";
		case PAIMON_OPT_FLOAT:
			return "float";
		case PAIMON_OPT_SIZE:
			return "size";
		case PAIMON_OPT_DURATION:
			return "duration";
		case PAIMON_OPT_ENUM:
			return "enum";
		case PAIMON_OPT_STRING:
			return "string";
		case PAIMON_OPT_COLUMN:
			return "column";
		case PAIMON_OPT_COLUMNS:
			return "columns";
	}
	return "unknown";
}

/* A size or duration in the largest unit that divides it. */
static char *
format_with_unit(int64 value, bool size)
{
	static const Unit sizes[] = {{"tb", INT64CONST(1) << 40}, {"gb", INT64CONST(1) << 30}, {"mb", 1 << 20}, {"kb", 1024}, {"b", 1}};
	static const Unit times[] = {{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}};
	const Unit *u = size ? sizes : times;

	while (value % u->factor != 0)
		u++;
	return psprintf(INT64_FORMAT " %s", value / u->factor, u->name);
}

/* What values are allowed, as a phrase for messages and documentation. */
const char *
paimon_option_allowed(const PaimonOptionDef *def)
{
	StringInfoData buf;

	switch (def->type)
	{
		case PAIMON_OPT_BOOL:
			return "true or false";
		case PAIMON_OPT_INT:
			return psprintf("an integer from " INT64_FORMAT " to " INT64_FORMAT, def->min, def->max);
		case PAIMON_OPT_SIZE:
			return psprintf("a size from %s to %s", format_with_unit(def->min, true), format_with_unit(def->max, true));
		case PAIMON_OPT_DURATION:
			return psprintf("a duration from %s to %s", format_with_unit(def->min, false),
							format_with_unit(def->max, false));
		case PAIMON_OPT_ENUM:
			initStringInfo(&buf);
			appendStringInfoString(&buf, def->values[1] != NULL ? "one of " : "");
			for (int i = 0; def->values[i] != NULL; i++)
				appendStringInfo(&buf, "%s%s", i > 0 ? ", " : "", def->values[i]);
			return buf.data;
		case PAIMON_OPT_FLOAT:
			return psprintf("a number from %g to %g", (double) def->min / PAIMON_OPT_FLOAT_SCALE, (double) def->max / PAIMON_OPT_FLOAT_SCALE);
		case PAIMON_OPT_STRING:
			return "a string";
		case PAIMON_OPT_COLUMN:
			return "the name of a column";
		case PAIMON_OPT_COLUMNS:
			return "names of columns, separated by commas";
	}
	return "nothing";
}
