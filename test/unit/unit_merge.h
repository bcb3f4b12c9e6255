/*-------------------------------------------------------------------------
 *
 * unit_merge.h
 *	  Values for tests of the merge engines: small lists for arrays, maps and nested rows, whole numbers for numerics, and a user's function.
 *
 * The word of a list is a pointer to a UnitList, that of one of its elements a pointer to a UnitElement.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_UNIT_MERGE_H
#define PAIMON_UNIT_MERGE_H

#include "core/core_varlena.h"
#include "merge/merge_fold.h"
#include "unit.h"

#define UNIT_NUMERIC_LIMIT 1000 /* numerics that are seen are smaller */

/* An array's element has k only, a map's entry key k, value v and time t, a nested row key k, order t and fields v and w. */
typedef struct UnitElement
{
	int			k, v, w, t;
	bool		k_null, v_null, w_null, t_null;
} UnitElement;

typedef struct UnitList
{
	uint32_t	n;
	UnitElement *e;
} UnitList;

static bool
unit_element_equal(const UnitElement *a, const UnitElement *b)
{
	return a->k_null == b->k_null && a->v_null == b->v_null && a->w_null == b->w_null && a->t_null == b->t_null &&
		(a->k_null || a->k == b->k) && (a->v_null || a->v == b->v) && (a->w_null || a->w == b->w) && (a->t_null || a->t == b->t);
}

static const UnitElement *
unit_element(const PaimonCell *e)
{
	return (const UnitElement *) (uintptr_t) e->word;
}

static PaimonFoldCode
unit_unpack(const PaimonMergeColumn *col, uint64_t value, const PaimonAllocator *alloc, PaimonList *out)
{
	const UnitList *list = (const UnitList *) (uintptr_t) value;

	memset(out, 0, sizeof(*out));
	out->e = paimon_core_alloc(alloc, (list->n + 1) * sizeof(PaimonCell));
	out->n = out->cap = list->n;
	for (uint32_t i = 0; i < list->n; i++)
	{
		out->e[i].word = (uint64_t) (uintptr_t) &list->e[i];
		out->e[i].isnull = false;
	}
	return PAIMON_FOLD_OK;
}

static uint64_t
unit_pack(const PaimonMergeColumn *col, const PaimonList *list, const PaimonAllocator *alloc)
{
	UnitList   *out = paimon_core_alloc(alloc, sizeof(UnitList));

	out->n = list->n;
	out->e = paimon_core_alloc(alloc, (list->n + 1) * sizeof(UnitElement));
	for (uint32_t i = 0; i < list->n; i++)
		out->e[i] = *unit_element(&list->e[i]);
	return (uint64_t) (uintptr_t) out;
}

/* Few different values, so that they collide. */
static uint32_t
unit_hash(const PaimonMergeColumn *col, const PaimonCell *e, bool by_key)
{
	const UnitElement *x = unit_element(e);

	return (uint32_t) (x->k_null ? 99 : x->k % 7);
}

static bool
unit_equal(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b, bool by_key)
{
	const UnitElement *x = unit_element(a);
	const UnitElement *y = unit_element(b);

	if (by_key)
		return x->k_null == y->k_null && (x->k_null || x->k == y->k);
	return unit_element_equal(x, y);
}

static bool
unit_key_has_null(const PaimonMergeColumn *col, const PaimonCell *e)
{
	return unit_element(e)->k_null;
}

static int
unit_order(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b)
{
	const UnitElement *x = unit_element(a);
	const UnitElement *y = unit_element(b);

	if (x->t_null || y->t_null)
		return (int) y->t_null - (int) x->t_null;
	return x->t < y->t ? -1 : x->t > y->t;
}

static bool
unit_order_is_null(const PaimonMergeColumn *col, const PaimonCell *e)
{
	return unit_element(e)->t_null;
}

static bool
unit_is_void(const PaimonMergeColumn *col, const PaimonCell *e)
{
	return unit_element(e)->v_null;
}

static PaimonCell
unit_overlay(const PaimonMergeColumn *col, const PaimonCell *old, const PaimonCell *new, const PaimonAllocator *alloc)
{
	UnitElement *e = paimon_core_alloc(alloc, sizeof(UnitElement));
	const UnitElement *n = unit_element(new);
	PaimonCell	cell = {.word = (uint64_t) (uintptr_t) e, .isnull = false};

	*e = *unit_element(old);
	if (!n->v_null)
		e->v = n->v, e->v_null = false;
	if (!n->w_null)
		e->w = n->w, e->w_null = false;
	if (!n->t_null)
		e->t = n->t, e->t_null = false;
	return cell;
}

static PaimonFoldCode
unit_arith(const PaimonMergeColumn *col, PaimonArith op, uint64_t a, uint64_t b, uint64_t *result, const PaimonAllocator *alloc)
{
	int64_t		x = (int64_t) a;
	int64_t		y = (int64_t) b;
	int64_t		v = 0;

	switch (op)
	{
		case PAIMON_ARITH_ADD:
			v = x + y;
			break;
		case PAIMON_ARITH_SUB:
			v = x - y;
			break;
		case PAIMON_ARITH_MUL:
			v = x * y;
			break;
		case PAIMON_ARITH_DIV:
			if (y == 0 || x % y != 0)
				return PAIMON_FOLD_DIVISION;
			v = x / y;
			break;
	}
	*result = (uint64_t) v;
	return PAIMON_FOLD_OK;
}

static bool
unit_fits(const PaimonMergeColumn *col, uint64_t a)
{
	return (int64_t) a < UNIT_NUMERIC_LIMIT && (int64_t) a > -UNIT_NUMERIC_LIMIT;
}

/* Words of numerics are numbers, of the others plain varlenas. */
static int
unit_compare(const PaimonMergeColumn *col, uint64_t a, uint64_t b)
{
	PaimonBytes x, y;

	if (col->cls == PAIMON_MC_NUMERIC)
		return (int64_t) a < (int64_t) b ? -1 : (int64_t) a > (int64_t) b;
	if (!paimon_varlena_payload((const void *) (uintptr_t) a, &x) || !paimon_varlena_payload((const void *) (uintptr_t) b, &y))
		abort();
	return paimon_bytes_cmp(x.data, x.len, y.data, y.len);
}

/* Depends on the order and the grouping of its calls. */
static int64_t
unit_user(int64_t state, bool state_null, int64_t value, bool value_null)
{
	return ((state_null ? 7 : state) * 3 + (value_null ? 11 : value)) % 1000;
}

static void
unit_call(const PaimonMergeColumn *col, const PaimonCell *state, const PaimonCell *value, PaimonCell *result, const PaimonAllocator *alloc)
{
	result->word = (uint64_t) unit_user((int64_t) state->word, state->isnull, (int64_t) value->word, value->isnull);
	result->isnull = false;
}

static const PaimonMergeOps unit_ops UNIT_UNUSED = {
	.compare = unit_compare, .arith = unit_arith, .fits = unit_fits,
	.unpack = unit_unpack, .pack = unit_pack, .hash = unit_hash, .equal = unit_equal, .key_has_null = unit_key_has_null,
	.order = unit_order, .order_is_null = unit_order_is_null, .is_void = unit_is_void, .overlay = unit_overlay,
	.call = unit_call, .call_is_strict = true,
};

static const PaimonMergeOps unit_ops_not_strict UNIT_UNUSED = {
	.compare = unit_compare, .call = unit_call, .call_is_strict = false,
};

/* The only functions of users there are. */
static UNIT_UNUSED PaimonPlanCode
unit_find(void *arg, PaimonMergeColumn *col, const char *name, PaimonPlanError *error)
{
	if (strcmp(name, "user_strict") == 0)
		col->ops = &unit_ops;
	else if (strcmp(name, "user_not_strict") == 0)
		col->ops = &unit_ops_not_strict;
	else
	{
		snprintf(error->message, sizeof(error->message), "no such function: %s", name);
		return PAIMON_PLAN_NO_FUNCTION;
	}
	return PAIMON_PLAN_OK;
}

static UNIT_UNUSED uint64_t
unit_text(const char *s, const PaimonAllocator *alloc)
{
	size_t		len = strlen(s);
	uint8_t    *p = paimon_core_alloc(alloc, PAIMON_VARLENA_ROOM(len));

	return (uint64_t) (uintptr_t) paimon_varlena_put(&p, (const uint8_t *) s, (uint32_t) len);
}

#endif							/* PAIMON_UNIT_MERGE_H */
