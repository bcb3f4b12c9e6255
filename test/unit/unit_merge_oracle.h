/*-------------------------------------------------------------------------
 *
 * unit_merge_oracle.h
 *	  What the records of a key come to, the slow and obvious way: all of them are kept, put in order, and gone through one by one.
 *
 * Written from the description of the engines, not from src/merge: it shares no code with it, keeps values in a form of its own, and knows no partial
 * results.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_UNIT_MERGE_ORACLE_H
#define PAIMON_UNIT_MERGE_ORACLE_H

#include "unit_merge.h"

#define ORACLE_COLUMNS 12
#define ORACLE_TEXT 6000
#define ORACLE_LIST 4000

typedef enum OracleForm
{
	ORACLE_NUMBER,
	ORACLE_STRING,
	ORACLE_ELEMENTS
} OracleForm;

typedef struct OracleValue
{
	bool		null;
	__int128	number;
	char	   *text;			/* of ORACLE_TEXT bytes */
	UnitElement *e;				/* of ORACLE_LIST */
	int			n;
} OracleValue;

typedef struct OracleColumn
{
	const char *function;		/* NULL: none */
	OracleForm	form;
	PaimonMergeClass cls;
	bool		ignore_retract;
	bool		distinct;
	bool		keyed;			/* nested-key */
	bool		sequenced;		/* nested-sequence-field */
	bool		ignore_null_keys;
	int			limit;
	int			group;			/* protected by; -1 */
	bool		ordering;
	bool		sequence;
} OracleColumn;

typedef struct OracleGroup
{
	int			n;
	int			ordering[3];
	bool		removes;
} OracleGroup;

typedef struct Oracle
{
	PaimonFoldEngine engine;
	int			ncolumns;		/* column 0 is the key */
	OracleColumn columns[ORACLE_COLUMNS];
	int			nsequence;
	int			sequence[2];
	bool		descending;
	int			ngroups;
	OracleGroup groups[3];
	bool		remove_on_delete;
} Oracle;

typedef struct OracleRecord
{
	uint8_t		kind;
	OracleValue v[ORACLE_COLUMNS];
} OracleRecord;

typedef struct OracleRow
{
	bool		exists;
	bool		error;
	bool		any_add;		/* not made by retracts alone */
	OracleValue v[ORACLE_COLUMNS];
	char		texts[ORACLE_COLUMNS][ORACLE_TEXT];
	UnitElement lists[ORACLE_COLUMNS][ORACLE_LIST];
} OracleRow;

/* ---------- values ---------- */

static void
oracle_copy(OracleRow *row, int c, const OracleValue *from)
{
	OracleValue *to = &row->v[c];

	to->null = from->null;
	to->number = from->number;
	to->text = row->texts[c];
	to->e = row->lists[c];
	to->n = 0;
	if (from->null)
		return;
	if (from->text != NULL && from->text != to->text)
		strcpy(to->text, from->text);
	if (from->e != NULL)
	{
		memmove(to->e, from->e, (size_t) from->n * sizeof(UnitElement));
		to->n = from->n;
	}
}

static void
oracle_set_null(OracleRow *row, int c)
{
	OracleValue nothing = {.null = true};

	oracle_copy(row, c, &nothing);
}

static int
oracle_cmp(const OracleValue *a, const OracleValue *b, OracleForm form)
{
	if (a->null || b->null)
		return a->null && b->null ? 0 : (a->null ? -1 : 1);
	if (form == ORACLE_STRING)
		return strcmp(a->text, b->text);
	return a->number < b->number ? -1 : a->number > b->number;
}

static bool
oracle_blank(const char *s)
{
	return s[strspn(s, " ")] == '\0';
}

/* ---------- functions ---------- */

static void
oracle_listagg(OracleRow *row, int c, const OracleColumn *col, const OracleValue *in)
{
	OracleValue *v = &row->v[c];
	char		input[ORACLE_TEXT];
	char	   *at = input;

	if (in->null || oracle_blank(in->text))
		return;
	if (v->null || oracle_blank(v->text))
	{
		oracle_copy(row, c, in);
		return;
	}
	if (!col->distinct)
	{
		strcat(v->text, ";");
		strcat(v->text, in->text);
		return;
	}
	strcpy(input, in->text);
	while (at != NULL)
	{
		char	   *end = strchr(at, ';');
		char		stored[ORACLE_TEXT + 2];
		char		token[ORACLE_TEXT + 2];

		if (end != NULL)
			*end = '\0';
		/* ;a;b; has ;a; */
		sprintf(stored, ";%.5000s;", v->text);
		sprintf(token, ";%.5000s;", at);
		if (!oracle_blank(at) && strstr(stored, token) == NULL)
		{
			strcat(v->text, ";");
			strcat(v->text, at);
		}
		at = end != NULL ? end + 1 : NULL;
	}
}

static int
oracle_find(const OracleValue *v, const UnitElement *e, bool by_key)
{
	for (int i = 0; i < v->n; i++)
	{
		bool		same = by_key ? (v->e[i].k_null ? e->k_null : !e->k_null && v->e[i].k == e->k) : unit_element_equal(&v->e[i], e);

		if (same)
			return i;
	}
	return -1;
}

static void
oracle_drop(OracleValue *v, int at)
{
	for (int i = at; i + 1 < v->n; i++)
		v->e[i] = v->e[i + 1];
	v->n--;
}

static void
oracle_lists(OracleRow *row, int c, const OracleColumn *col, const OracleValue *in)
{
	const char *f = col->function;
	OracleValue *v = &row->v[c];
	bool		nothing = v->null;

	if (in->null)
		return;
	if (v->null)
	{
		v->null = false;
		v->e = row->lists[c];
		v->n = 0;
	}
	for (int i = 0; i < in->n; i++)
	{
		const UnitElement *e = &in->e[i];
		int			at;

		if (strcmp(f, "collect") == 0)
		{
			if (!col->distinct || oracle_find(v, e, false) < 0)
				v->e[v->n++] = *e;
		}
		else if (strcmp(f, "merge_map") == 0)
		{
			at = oracle_find(v, e, true);
			v->e[at < 0 ? v->n++ : at] = *e;
		}
		else if (strcmp(f, "merge_map_with_keytime") == 0)
		{
			at = oracle_find(v, e, true);
			if (e->v_null)
			{
				if (at >= 0)
					oracle_drop(v, at);
			}
			else if (nothing)
				v->e[v->n++] = *e;
			else if (!e->t_null)
			{
				if (at < 0)
					v->e[v->n++] = *e;
				else if (v->e[at].t_null || e->t > v->e[at].t)
					v->e[at] = *e;
			}
		}
		else
		{
			if (col->keyed && col->ignore_null_keys && e->k_null)
				continue;
			at = col->keyed ? oracle_find(v, e, true) : -1;
			if (at < 0)
			{
				if (v->n < col->limit)
					v->e[v->n++] = *e;
			}
			else if (strcmp(f, "nested_partial_update") == 0)
			{
				if (!e->v_null)
					v->e[at].v = e->v, v->e[at].v_null = false;
				if (!e->w_null)
					v->e[at].w = e->w, v->e[at].w_null = false;
				if (!e->t_null)
					v->e[at].t = e->t, v->e[at].t_null = false;
			}
			else if (!col->sequenced || v->e[at].t_null || (!e->t_null && e->t >= v->e[at].t))
				v->e[at] = *e;
		}
	}
}

/* state = f(state, in); first: the column has not met a value of an add */
static void
oracle_add(OracleRow *row, int c, const OracleColumn *col, const OracleValue *in, bool first)
{
	const char *f = col->function;
	OracleValue *v = &row->v[c];

	if (strcmp(f, "last_value") == 0)
		oracle_copy(row, c, in);
	else if (strcmp(f, "first_value") == 0)
	{
		if (first)
			oracle_copy(row, c, in);
	}
	else if (strcmp(f, "user_not_strict") == 0)
	{
		v->number = unit_user((int64_t) v->number, v->null, (int64_t) in->number, in->null);
		v->null = false;
	}
	else if (in->null)
		return;
	else if (strcmp(f, "listagg") == 0)
		oracle_listagg(row, c, col, in);
	else if (col->form == ORACLE_ELEMENTS && strncmp(f, "last", 4) != 0 && strncmp(f, "first", 5) != 0)
		oracle_lists(row, c, col, in);
	else if (v->null)
		oracle_copy(row, c, in);
	else if (strcmp(f, "last_non_null_value") == 0)
		oracle_copy(row, c, in);
	else if (strcmp(f, "first_non_null_value") == 0)
		return;
	else if (strcmp(f, "sum") == 0)
		v->number += in->number;
	else if (strcmp(f, "product") == 0)
		v->number *= in->number;
	else if (strcmp(f, "user_strict") == 0)
		v->number = unit_user((int64_t) v->number, false, (int64_t) in->number, false);
	else if (strcmp(f, "bool_and") == 0)
		v->number = v->number != 0 && in->number != 0;
	else if (strcmp(f, "bool_or") == 0)
		v->number = v->number != 0 || in->number != 0;
	else if (strcmp(f, "max") == 0)
	{
		if (oracle_cmp(in, v, col->form) > 0)
			oracle_copy(row, c, in);
	}
	else if (strcmp(f, "min") == 0)
	{
		if (oracle_cmp(in, v, col->form) < 0)
			oracle_copy(row, c, in);
	}
	else
		abort();
}

/* state = f(in, state): the row is older than what is there */
static void
oracle_add_late(OracleRow *row, int c, const OracleColumn *col, const OracleValue *in)
{
	static OracleRow turned;
	const char *f = col->function;

	if (strcmp(f, "collect") == 0)
	{
		oracle_add(row, c, col, in, false);
		return;
	}
	if (strcmp(f, "first_value") == 0)
	{
		oracle_copy(row, c, in);
		return;
	}
	if (strcmp(f, "last_value") == 0)
		return;
	if (in->null && strcmp(f, "user_not_strict") != 0)
		return;
	if (strcmp(f, "listagg") == 0 && oracle_blank(in->text))
		return;
	if (strcmp(f, "merge_map_with_keytime") == 0)
	{
		/* as a first row: entries without a value leave nothing */
		oracle_set_null(&turned, c);
		oracle_add(&turned, c, col, in, true);
	}
	else
		oracle_copy(&turned, c, in);
	oracle_add(&turned, c, col, &row->v[c], false);
	oracle_copy(row, c, &turned.v[c]);
}

static void
oracle_retract(OracleRow *row, int c, const OracleColumn *col, const OracleValue *in)
{
	const char *f = col->function;
	OracleValue *v = &row->v[c];

	if (col->ignore_retract)
		return;
	if (strcmp(f, "last_value") == 0)
		oracle_set_null(row, c);
	else if (in->null)
		return;
	else if (strcmp(f, "last_non_null_value") == 0)
		oracle_set_null(row, c);
	else if (strcmp(f, "sum") == 0)
	{
		v->number = (v->null ? 0 : v->number) - in->number;
		v->null = false;
	}
	else if (v->null)
		return;
	else if (strcmp(f, "product") == 0)
		v->number /= in->number;
	else if (strcmp(f, "collect") == 0)
	{
		for (int i = 0; i < in->n; i++)
		{
			int			at = oracle_find(v, &in->e[i], false);

			if (at >= 0)
				oracle_drop(v, at);
		}
	}
	else
	{
		bool		by_key = strcmp(f, "merge_map") == 0 || col->keyed;

		for (int i = 0; i < in->n; i++)
		{
			int			at;

			while ((at = oracle_find(v, &in->e[i], by_key)) >= 0)
				oracle_drop(v, at);
		}
	}
}

/* ---------- engines ---------- */

static void
oracle_begin(const Oracle *o, OracleRow *row)
{
	for (int c = 0; c < o->ncolumns; c++)
		oracle_set_null(row, c);
	row->exists = true;
	row->any_add = false;
}

static void
oracle_take_sequence(const Oracle *o, OracleRow *row, const OracleRecord *r)
{
	for (int i = 0; i < o->nsequence; i++)
	{
		if (o->columns[o->sequence[i]].group < 0)
			oracle_copy(row, o->sequence[i], &r->v[o->sequence[i]]);
	}
}

static bool
oracle_in_group(const OracleGroup *g, const OracleRecord *r)
{
	for (int i = 0; i < g->n; i++)
	{
		if (!r->v[g->ordering[i]].null)
			return true;
	}
	return false;
}

static bool
oracle_late(const OracleGroup *g, const OracleRow *row, const OracleRecord *r)
{
	for (int i = 0; i < g->n; i++)
	{
		int			c = oracle_cmp(&r->v[g->ordering[i]], &row->v[g->ordering[i]], ORACLE_NUMBER);

		if (c != 0)
			return c < 0;
	}
	return false;
}

static void
oracle_group(const Oracle *o, int g, OracleRow *row, const OracleRecord *r, bool retract)
{
	const OracleGroup *group = &o->groups[g];
	bool		late = oracle_late(group, row, r);
	bool		empty = true;

	for (int i = 0; i < group->n; i++)
		empty = empty && row->v[group->ordering[i]].null;
	for (int c = 0; c < o->ncolumns; c++)
	{
		const OracleColumn *col = &o->columns[c];

		if (col->group != g || col->ordering)
			continue;
		if (col->function != NULL)
		{
			if (retract)
				oracle_retract(row, c, col, &r->v[c]);
			else if (late)
				oracle_add_late(row, c, col, &r->v[c]);
			else
				oracle_add(row, c, col, &r->v[c], empty && row->v[c].null);
		}
		else if (late)
			continue;
		else if (!retract)
			oracle_copy(row, c, &r->v[c]);
		else if (!col->ignore_retract)
			oracle_set_null(row, c);
	}
	for (int i = 0; i < group->n && !late; i++)
		oracle_copy(row, group->ordering[i], &r->v[group->ordering[i]]);
}

static void
oracle_partial_update(const Oracle *o, OracleRow *row, const OracleRecord *r, bool retract)
{
	if (retract)
	{
		if (o->remove_on_delete)
		{
			if (r->kind == PAIMON_KIND_DELETE)
				row->exists = false;
			return;
		}
		if (!row->exists)
			return;
		for (int g = 0; g < o->ngroups; g++)
		{
			if (r->kind == PAIMON_KIND_DELETE && o->groups[g].removes && oracle_in_group(&o->groups[g], r) &&
				!oracle_late(&o->groups[g], row, r))
			{
				row->exists = false;
				return;
			}
		}
	}
	if (!row->exists)
		oracle_begin(o, row);
	for (int g = 0; g < o->ngroups; g++)
	{
		if (oracle_in_group(&o->groups[g], r))
			oracle_group(o, g, row, r, retract);
	}
	for (int c = 1; c < o->ncolumns && !retract; c++)
	{
		if (o->columns[c].group < 0 && !o->columns[c].sequence && !r->v[c].null)
			oracle_copy(row, c, &r->v[c]);
	}
	oracle_take_sequence(o, row, r);
}

static void
oracle_aggregation(const Oracle *o, OracleRow *row, const OracleRecord *r, bool retract)
{
	if (retract && o->remove_on_delete && r->kind == PAIMON_KIND_DELETE)
	{
		row->exists = false;
		return;
	}
	if (!row->exists)
		oracle_begin(o, row);
	for (int c = 1; c < o->ncolumns; c++)
	{
		const OracleColumn *col = &o->columns[c];

		if (col->sequence)
			continue;
		if (retract)
			oracle_retract(row, c, col, &r->v[c]);
		else
			oracle_add(row, c, col, &r->v[c], !row->any_add);
	}
	if (!retract)
		row->any_add = true;
	oracle_take_sequence(o, row, r);
}

static void
oracle_step(const Oracle *o, OracleRow *row, const OracleRecord *r)
{
	bool		retract = r->kind == PAIMON_KIND_UPDATE_BEFORE || r->kind == PAIMON_KIND_DELETE;
	bool		whole = r->kind == PAIMON_KIND_REPLACE || (o->engine == PAIMON_FOLD_DEDUPLICATE && !retract);

	if (r->kind == PAIMON_KIND_REMOVE || (o->engine == PAIMON_FOLD_DEDUPLICATE && retract))
		row->exists = false;
	else if (whole || (o->engine == PAIMON_FOLD_FIRST_ROW && !row->exists))
	{
		row->exists = row->any_add = true;
		for (int c = 0; c < o->ncolumns; c++)
			oracle_copy(row, c, &r->v[c]);
	}
	else if (o->engine == PAIMON_FOLD_PARTIAL_UPDATE)
		oracle_partial_update(o, row, r, retract);
	else if (o->engine == PAIMON_FOLD_AGGREGATION)
		oracle_aggregation(o, row, r, retract);
}

static bool
oracle_before(const Oracle *o, const OracleRecord *a, const OracleRecord *b)
{
	for (int i = 0; i < o->nsequence; i++)
	{
		const OracleValue *x = &a->v[o->sequence[i]];
		const OracleValue *y = &b->v[o->sequence[i]];
		int			c = oracle_cmp(x, y, ORACLE_NUMBER);

		if (c != 0)
			return x->null || y->null || !o->descending ? c < 0 : c > 0;
	}
	return false;
}

/* A value that is seen fits its column. */
static bool
oracle_fits(const OracleColumn *col, const OracleValue *v)
{
	__int128	limit;

	if (v->null || col->function == NULL || (strcmp(col->function, "sum") != 0 && strcmp(col->function, "product") != 0))
		return true;
	switch (col->cls)
	{
		case PAIMON_MC_INT2:
			limit = (__int128) 1 << 15;
			break;
		case PAIMON_MC_INT4:
			limit = (__int128) 1 << 31;
			break;
		case PAIMON_MC_INT8:
			limit = (__int128) 1 << 63;
			break;
		case PAIMON_MC_NUMERIC:
			return v->number < UNIT_NUMERIC_LIMIT && v->number > -UNIT_NUMERIC_LIMIT;
		default:
			return true;
	}
	return v->number >= -limit && v->number < limit;
}

/* The records in the order of their arrival. */
static UNIT_UNUSED void
oracle_run(const Oracle *o, const OracleRecord *records, int n, OracleRow *row)
{
	int			order[2000];

	for (int i = 0; i < n; i++)
	{
		int			k = i;

		for (; k > 0 && oracle_before(o, &records[i], &records[order[k - 1]]); k--)
			order[k] = order[k - 1];
		order[k] = i;
	}
	row->exists = row->error = row->any_add = false;
	for (int i = 0; i < n; i++)
		oracle_step(o, row, &records[order[i]]);
	for (int c = 1; c < o->ncolumns && row->exists; c++)
	{
		if (!oracle_fits(&o->columns[c], &row->v[c]))
			row->error = true;
	}
}

#endif							/* PAIMON_UNIT_MERGE_ORACLE_H */
