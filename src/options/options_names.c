/*-------------------------------------------------------------------------
 *
 * options_names.c
 *	  Names of options: spellings, families, the nearest known name, and the
 *	  columns that names and values mention.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "lib/stringinfo.h"
#include "utils/varlena.h"

#include "options/options_def.h"

/* Fixed names match in any case, and with '_' for '-' or '.'. */
static bool
same_name(const char *given, const char *known)
{
	for (; *given != '\0' && *known != '\0'; given++, known++)
	{
		if (pg_tolower((unsigned char) *given) == pg_tolower((unsigned char) *known))
			continue;
		if (*given == '_' && (*known == '-' || *known == '.'))
			continue;
		return false;
	}
	return *given == *known;
}

/*
 * A family is prefix, "<c>" or "<c>[,<c>]" or "<x>", suffix.  On a match, the
 * middle of the name (columns, or any word) is returned by pointer and length.
 */
static bool
match_family(const char *given, const char *pattern, const char **middle, int *middlelen)
{
	const char *open = strchr(pattern, '<');
	const char *suffix = strrchr(pattern, '>') + 1;
	int			prefixlen = (int) (open - pattern);
	int			len = (int) strlen(given);
	int			suffixlen;

	if (*suffix == ']')
		suffix++;
	suffixlen = (int) strlen(suffix);
	if (len <= prefixlen + suffixlen ||
		strncmp(given, pattern, prefixlen) != 0 ||
		strcmp(given + len - suffixlen, suffix) != 0)
		return false;
	*middle = given + prefixlen;
	*middlelen = len - prefixlen - suffixlen;
	return true;
}

static bool
is_family(const PaimonOptionDef *def)
{
	return strchr(def->name, '<') != NULL;
}

static const PaimonOptionDef *
find_in(const PaimonOptionDef *defs, const char *name, bool families)
{
	const char *middle;
	int			middlelen;

	for (; defs->name != NULL; defs++)
	{
		if (is_family(defs) != families)
			continue;
		if (families ? match_family(name, defs->name, &middle, &middlelen) : same_name(name, defs->name))
			return defs;
	}
	return NULL;
}

/* The definition of a name in any accepted spelling; NULL if unknown.  Fixed names go before families. */
const PaimonOptionDef *
paimon_option_find(const char *name)
{
	const PaimonOptionDef *def;

	for (const PaimonOptionAlias *a = paimon_option_aliases; a->name != NULL; a++)
	{
		if (same_name(name, a->name))
			return find_in(paimon_option_defs, a->target, false);
	}
	if ((def = find_in(paimon_option_defs, name, false)) != NULL ||
		(def = find_in(paimon_option_foreign_defs, name, false)) != NULL ||
		(def = find_in(paimon_option_defs, name, true)) != NULL)
		return def;
	return find_in(paimon_option_foreign_defs, name, true);
}

bool
paimon_option_is_known(const char *name)
{
	return paimon_option_find(name) != NULL;
}

/* The dashed form of a name; the name itself for families and unknown ones. */
char *
paimon_option_canonical(const char *name)
{
	const PaimonOptionDef *def = paimon_option_find(name);

	return pstrdup(def != NULL && !is_family(def) ? def->name : name);
}

bool
paimon_option_is_core(const char *name)
{
	static const char *const names[] = {
		"fillfactor", "toast_tuple_target", "parallel_workers", "user_catalog_table",
		"vacuum_index_cleanup", "vacuum_truncate", "vacuum_max_eager_freeze_failure_rate",
		"log_autovacuum_min_duration", "oids", NULL
	};

	for (int i = 0; names[i] != NULL; i++)
	{
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return strncmp(name, "autovacuum_", strlen("autovacuum_")) == 0;
}

/* Name without case and with one separator, so that distance counts letters only. */
static char *
plain_name(const char *name)
{
	char	   *plain = pnstrdup(name, NAMEDATALEN * 2);

	for (char *p = plain; *p != '\0'; p++)
		*p = (*p == '-' || *p == '.') ? '_' : (char) pg_tolower((unsigned char) *p);
	return plain;
}

/*
 * The known name nearest to an unknown one by edit distance, options that are
 * built going first; NULL if none is near enough to be meant.
 */
const char *
paimon_option_nearest(const char *name)
{
	char	   *plain = plain_name(name);
	int			len = (int) strlen(plain);
	int			best = Max(1, len / 3) + 1;
	const char *nearest = NULL;

	for (int pass = 0; pass < 2; pass++)
	{
		const PaimonOptionDef *def = pass == 0 ? paimon_option_defs : paimon_option_foreign_defs;

		for (; def->name != NULL; def++)
		{
			char	   *other = plain_name(def->name);
			int			distance = varstr_levenshtein_less_equal(plain, len, other, (int) strlen(other),
																 1, 1, 1, best, true);

			pfree(other);
			if (distance < best && def->scope != PAIMON_OPT_PARENT)
			{
				best = distance;
				nearest = def->name;
			}
		}
	}
	pfree(plain);
	return nearest;
}

/* Columns that the name of a family's member mentions. */
static List *
columns_of_name(const PaimonOptionDef *def, const char *name, const char **middle, int *middlelen)
{
	if (!is_family(def) || strstr(def->name, "<c>") == NULL ||
		!match_family(name, def->name, middle, middlelen))
		return NIL;
	return paimon_parse_columns(pnstrdup(*middle, *middlelen));
}

List *
paimon_option_columns(const PaimonOptionItem *item)
{
	const PaimonOptionDef *def = paimon_option_find(item->name);
	const char *middle;
	int			middlelen;
	List	   *columns;

	if (def == NULL)
		return NIL;
	columns = columns_of_name(def, item->name, &middle, &middlelen);
	if (def->type == PAIMON_OPT_COLUMN || def->type == PAIMON_OPT_COLUMNS)
		columns = list_concat(columns, paimon_parse_columns(item->value));
	return columns;
}

/* The list with one name replaced, joined by commas; NULL if the name is not in it. */
static char *
replace_in_list(List *names, const char *oldname, const char *newname)
{
	StringInfoData buf;
	bool		found = false;
	ListCell   *lc;

	initStringInfo(&buf);
	foreach(lc, names)
	{
		const char *name = lfirst(lc);

		if (strcmp(name, oldname) == 0)
		{
			name = newname;
			found = true;
		}
		appendStringInfo(&buf, "%s%s", buf.len > 0 ? "," : "", name);
	}
	return found ? buf.data : NULL;
}

void
paimon_option_drop_column(PaimonOptionItem *item, const char *name)
{
	const PaimonOptionDef *def = paimon_option_find(item->name);
	StringInfoData buf;
	ListCell   *lc;

	if (def == NULL || def->type != PAIMON_OPT_COLUMNS)
		return;
	initStringInfo(&buf);
	foreach(lc, paimon_parse_columns(item->value))
	{
		if (strcmp(lfirst(lc), name) != 0)
			appendStringInfo(&buf, "%s%s", buf.len > 0 ? "," : "", (char *) lfirst(lc));
	}
	item->value = buf.data;
}

bool
paimon_option_rename_column(PaimonOptionItem *item, const char *oldname, const char *newname)
{
	const PaimonOptionDef *def = paimon_option_find(item->name);
	const char *middle;
	int			middlelen;
	bool		changed = false;
	char	   *text;

	if (def == NULL)
		return false;
	if (def->type == PAIMON_OPT_COLUMN || def->type == PAIMON_OPT_COLUMNS)
	{
		text = replace_in_list(paimon_parse_columns(item->value), oldname, newname);
		if (text != NULL)
		{
			item->value = text;
			changed = true;
		}
	}
	text = replace_in_list(columns_of_name(def, item->name, &middle, &middlelen), oldname, newname);
	if (text != NULL)
	{
		item->name = psprintf("%.*s%s%s", (int) (middle - item->name), item->name, text, middle + middlelen);
		changed = true;
	}
	return changed;
}
