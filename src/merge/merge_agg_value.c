/*-------------------------------------------------------------------------
 *
 * merge_agg_value.c
 *	  Aggregate functions that keep one of the values: last_value, last_non_null_value, first_value, first_non_null_value; and a user's own.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

/* ---------- last_value ---------- */

static PaimonFoldCode
last_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

/* What is stored is the later one. */
static PaimonFoldCode
last_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
last_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	paimon_acc_clear(acc);
	return PAIMON_FOLD_OK;
}

static bool
last_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	return true;
}

/* A retract sets NULL, which an added NULL does too. */
static void
last_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_AR)
		paimon_acc_clear(older);
	else
		paimon_acc_set(older, newer);
}

const PaimonAggFunction paimon_agg_last_value = {
	.name = "last_value", .id = PAIMON_AGG_LAST_VALUE, .order_free = true,
	.fold = last_fold, .fold_under = last_fold_under, .retract = last_retract, .can_join = last_can_join, .join = last_join,
};

/* ---------- last_non_null_value ---------- */

static PaimonFoldCode
last_non_null_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	if (!in->isnull)
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
last_non_null_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	if (acc->isnull)
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
last_non_null_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	if (!in->isnull)
		paimon_acc_clear(acc);
	return PAIMON_FOLD_OK;
}

/* "Set to NULL" cannot be said by adding: NULL means "not touched". */
static bool
last_non_null_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	switch (how)
	{
		case PAIMON_JOIN_AR:
			return newer->isnull;
		case PAIMON_JOIN_RA:
			return older->isnull || !newer->isnull;
		default:
			return true;
	}
}

static void
last_non_null_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_RA)
		paimon_acc_set(older, newer);
	else if (how != PAIMON_JOIN_AR && !newer->isnull)
		paimon_acc_set(older, newer);
}

const PaimonAggFunction paimon_agg_last_non_null = {
	.name = "last_non_null_value", .id = PAIMON_AGG_LAST_NON_NULL, .null_is_nothing = true,
	.fold = last_non_null_fold, .fold_under = last_non_null_fold_under, .retract = last_non_null_retract,
	.can_join = last_non_null_can_join, .join = last_non_null_join,
};

/* ---------- first_value, first_non_null_value ---------- */

static PaimonFoldCode
first_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	if (first)
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

/* The older row comes in front. */
static PaimonFoldCode
first_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static bool
first_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	return how == PAIMON_JOIN_AA;
}

static void
first_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
}

const PaimonAggFunction paimon_agg_first_value = {
	.name = "first_value", .id = PAIMON_AGG_FIRST_VALUE,
	.fold = first_fold, .fold_under = first_fold_under, .can_join = first_can_join, .join = first_join,
};

static PaimonFoldCode
first_non_null_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	if (acc->isnull)
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
first_non_null_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	if (!in->isnull)
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static void
first_non_null_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (older->isnull)
		paimon_acc_set(older, newer);
}

const PaimonAggFunction paimon_agg_first_non_null = {
	.name = "first_non_null_value", .id = PAIMON_AGG_FIRST_NON_NULL, .null_is_nothing = true,
	.fold = first_non_null_fold, .fold_under = first_non_null_fold_under, .can_join = first_can_join, .join = first_non_null_join,
};

/* ---------- a user's function ---------- */

/* As SQL's aggregates: a strict function does not see NULL, and its first value is the state. */
static PaimonFoldCode
user_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	PaimonCell	state = {.word = acc->word, .isnull = acc->isnull};
	PaimonCell	result;

	if (cx->col->ops->call_is_strict)
	{
		if (in->isnull)
			return PAIMON_FOLD_OK;
		if (acc->isnull)
		{
			paimon_acc_set(acc, in);
			return PAIMON_FOLD_OK;
		}
	}
	cx->col->ops->call(cx->col, &state, in, &result, cx->alloc);
	paimon_acc_set(acc, &result);
	return PAIMON_FOLD_OK;
}

/* Nothing is known of it but how it goes on from a state. */
static bool
user_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_AA && cx->col->ops->call_is_strict)
		return older->isnull || newer->isnull;
	return false;
}

static void
user_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (older->isnull)
		paimon_acc_set(older, newer);
}

const PaimonAggFunction paimon_agg_user = {
	.name = "user", .id = PAIMON_AGG_USER,
	.fold = user_fold, .can_join = user_can_join, .join = user_join,
};
