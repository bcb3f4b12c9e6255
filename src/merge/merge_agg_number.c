/*-------------------------------------------------------------------------
 *
 * merge_agg_number.c
 *	  Aggregate functions sum, product, max, min, bool_and, bool_or.
 *
 * Sums and products of integers are accumulated in 128 bits, so that an overflow on the way to a value that fits is none.  Two
 * records are joined only if the result fits the column; else both are kept.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "merge/merge_internal.h"

#define NUMBERS (PAIMON_MC_BIT(PAIMON_MC_INT2) | PAIMON_MC_BIT(PAIMON_MC_INT4) | PAIMON_MC_BIT(PAIMON_MC_INT8) | \
				 PAIMON_MC_BIT(PAIMON_MC_FLOAT4) | PAIMON_MC_BIT(PAIMON_MC_FLOAT8) | PAIMON_MC_BIT(PAIMON_MC_NUMERIC))
#define ORDERED (NUMBERS | PAIMON_MC_BIT(PAIMON_MC_BOOL) | PAIMON_MC_BIT(PAIMON_MC_TEXT) | PAIMON_MC_BIT(PAIMON_MC_CHAR) | \
				 PAIMON_MC_BIT(PAIMON_MC_BYTES) | PAIMON_MC_BIT(PAIMON_MC_TIME))

static bool
is_integer(const PaimonMergeColumn *col)
{
	return col->cls == PAIMON_MC_INT2 || col->cls == PAIMON_MC_INT4 || col->cls == PAIMON_MC_INT8;
}

static bool
fits_integer(const PaimonMergeColumn *col, PaimonWide v)
{
	switch (col->cls)
	{
		case PAIMON_MC_INT2:
			return v >= INT16_MIN && v <= INT16_MAX;
		case PAIMON_MC_INT4:
			return v >= INT32_MIN && v <= INT32_MAX;
		default:
			return v >= INT64_MIN && v <= INT64_MAX;
	}
}

static double
get_float(const PaimonMergeColumn *col, uint64_t word)
{
	if (col->cls == PAIMON_MC_FLOAT4)
	{
		uint32_t	bits = (uint32_t) word;
		float		v;

		memcpy(&v, &bits, sizeof(v));
		return v;
	}
	else
	{
		double		v;

		memcpy(&v, &word, sizeof(v));
		return v;
	}
}

/* Rounds to the column; OVERFLOW if finite numbers gave an infinite one. */
static PaimonFoldCode
put_float(const PaimonMergeColumn *col, double v, bool finite, uint64_t *word)
{
	if (col->cls == PAIMON_MC_FLOAT4)
	{
		float		f = (float) v;
		int32_t		bits;

		if (finite && isinf(f))
			return PAIMON_FOLD_OVERFLOW;
		memcpy(&bits, &f, sizeof(bits));
		*word = (uint64_t) (int64_t) bits;
		return PAIMON_FOLD_OK;
	}
	if (finite && isinf(v))
		return PAIMON_FOLD_OVERFLOW;
	memcpy(word, &v, sizeof(v));
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
float_arith(const PaimonMergeColumn *col, PaimonArith op, uint64_t a, uint64_t b, uint64_t *word)
{
	double		x = get_float(col, a);
	double		y = get_float(col, b);
	double		v = 0;

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
			if (y == 0)
				return PAIMON_FOLD_DIVISION;
			v = x / y;
			break;
	}
	return put_float(col, v, isfinite(x) && isfinite(y), word);
}

/* Floats and numerics. */
static PaimonFoldCode
word_arith(const PaimonAggContext *cx, PaimonArith op, uint64_t a, uint64_t b, uint64_t *word)
{
	if (cx->col->cls == PAIMON_MC_NUMERIC)
		return cx->col->ops->arith(cx->col, op, a, b, word, cx->alloc);
	return float_arith(cx->col, op, a, b, word);
}

/* The negated value of a retract that meets nothing. */
static PaimonFoldCode
word_negate(const PaimonAggContext *cx, uint64_t a, uint64_t *word)
{
	uint64_t	zero;
	PaimonFoldCode code;

	if (cx->col->cls != PAIMON_MC_NUMERIC)
		return put_float(cx->col, 0 - get_float(cx->col, a), true, word);
	code = word_arith(cx, PAIMON_ARITH_SUB, a, a, &zero);
	return code != PAIMON_FOLD_OK ? code : word_arith(cx, PAIMON_ARITH_SUB, zero, a, word);
}

static void
make_wide(PaimonAcc *acc)
{
	if (acc->form == PAIMON_ACC_WORD)
	{
		acc->u.wide = acc->isnull ? 0 : (int64_t) acc->word;
		acc->form = PAIMON_ACC_WIDE;
		acc->beyond = false;
	}
}

/* ---------- sum ---------- */

static PaimonFoldCode
sum_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	if (in->isnull)
		return PAIMON_FOLD_OK;
	if (acc->isnull)
	{
		paimon_acc_set(acc, in);
		return PAIMON_FOLD_OK;
	}
	if (!is_integer(cx->col))
		return word_arith(cx, PAIMON_ARITH_ADD, acc->word, in->word, &acc->word);
	make_wide(acc);
	acc->u.wide += (int64_t) in->word;
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
sum_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	if (in->isnull)
		return PAIMON_FOLD_OK;
	if (!is_integer(cx->col))
	{
		if (!acc->isnull)
			return word_arith(cx, PAIMON_ARITH_SUB, acc->word, in->word, &acc->word);
		acc->isnull = false;
		return word_negate(cx, in->word, &acc->word);
	}
	make_wide(acc);
	acc->isnull = false;
	acc->u.wide -= (int64_t) in->word;
	return PAIMON_FOLD_OK;
}

/* What the joined pair holds; false if it does not fit. */
static bool
sum_pair(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer, PaimonCell *out)
{
	bool		minus_older = how == PAIMON_JOIN_RA;
	bool		minus_newer = how == PAIMON_JOIN_AR;

	out->isnull = older->isnull && newer->isnull;
	out->word = 0;
	if (out->isnull)
		return true;
	if (is_integer(cx->col))
	{
		PaimonWide	a = older->isnull ? 0 : (int64_t) older->word;
		PaimonWide	b = newer->isnull ? 0 : (int64_t) newer->word;
		PaimonWide	v = (minus_older ? -a : a) + (minus_newer ? -b : b);

		out->word = (uint64_t) (int64_t) v;
		return fits_integer(cx->col, v);
	}
	if (older->isnull)
	{
		out->word = newer->word;
		return !minus_newer || word_negate(cx, newer->word, &out->word) == PAIMON_FOLD_OK;
	}
	if (newer->isnull)
	{
		out->word = older->word;
		return !minus_older || word_negate(cx, older->word, &out->word) == PAIMON_FOLD_OK;
	}
	if (minus_older)
		return word_arith(cx, PAIMON_ARITH_SUB, newer->word, older->word, &out->word) == PAIMON_FOLD_OK;
	return word_arith(cx, minus_newer ? PAIMON_ARITH_SUB : PAIMON_ARITH_ADD, older->word, newer->word, &out->word) == PAIMON_FOLD_OK;
}

static bool
sum_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	PaimonCell	out;

	return sum_pair(cx, how, older, newer, &out);
}

static void
sum_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	PaimonCell	out;

	(void) sum_pair(cx, how, older, newer, &out);
	paimon_acc_set(older, &out);
}

const PaimonAggFunction paimon_agg_sum = {
	.name = "sum", .id = PAIMON_AGG_SUM, .classes = NUMBERS, .types = "a numeric type",
	.order_free = true, .null_is_nothing = true,
	.fold = sum_fold, .retract = sum_retract, .can_join = sum_can_join, .join = sum_join,
};

/* ---------- product ---------- */

static PaimonFoldCode
product_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	PaimonWide	v;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	if (acc->isnull)
	{
		paimon_acc_set(acc, in);
		return PAIMON_FOLD_OK;
	}
	if (!is_integer(cx->col))
		return word_arith(cx, PAIMON_ARITH_MUL, acc->word, in->word, &acc->word);
	make_wide(acc);
	if (in->word == 0)
	{
		acc->u.wide = 0;
		acc->beyond = false;
	}
	else if (!acc->beyond)
	{
		acc->beyond = __builtin_mul_overflow(acc->u.wide, (PaimonWide) (int64_t) in->word, &v);
		if (!acc->beyond)
			acc->u.wide = v;
	}
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
product_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	if (in->isnull || acc->isnull)
		return PAIMON_FOLD_OK;
	if (!is_integer(cx->col))
		return word_arith(cx, PAIMON_ARITH_DIV, acc->word, in->word, &acc->word);
	if (in->word == 0)
		return PAIMON_FOLD_DIVISION;
	make_wide(acc);
	if (!acc->beyond)
		acc->u.wide /= (int64_t) in->word;
	return PAIMON_FOLD_OK;
}

/* AA and RR: the product of both. */
static bool
product_pair(const PaimonAggContext *cx, const PaimonAcc *older, const PaimonCell *newer, PaimonCell *out)
{
	PaimonWide	v;

	if (older->isnull || newer->isnull)
	{
		out->isnull = older->isnull && newer->isnull;
		out->word = older->isnull ? newer->word : older->word;
		return true;
	}
	out->isnull = false;
	if (!is_integer(cx->col))
		return word_arith(cx, PAIMON_ARITH_MUL, older->word, newer->word, &out->word) == PAIMON_FOLD_OK;
	v = (PaimonWide) (int64_t) older->word * (int64_t) newer->word;
	out->word = (uint64_t) (int64_t) v;
	return fits_integer(cx->col, v);
}

static bool
product_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	PaimonCell	out;

	switch (how)
	{
		case PAIMON_JOIN_AR:
			return newer->isnull;
		case PAIMON_JOIN_RA:
			return older->isnull;
		case PAIMON_JOIN_RR:
			/* a rounded divisor is another one */
			if (cx->col->cls == PAIMON_MC_NUMERIC && !older->isnull && !newer->isnull)
				return false;
			break;
		case PAIMON_JOIN_AA:
			break;
	}
	return product_pair(cx, older, newer, &out);
}

static void
product_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	PaimonCell	out;

	(void) product_pair(cx, older, newer, &out);
	paimon_acc_set(older, &out);
}

const PaimonAggFunction paimon_agg_product = {
	.name = "product", .id = PAIMON_AGG_PRODUCT, .classes = NUMBERS, .types = "a numeric type",
	.order_free = true, .null_is_nothing = true,
	.fold = product_fold, .retract = product_retract, .can_join = product_can_join, .join = product_join,
};

/* ---------- max, min, bool_and, bool_or ---------- */

static bool
takes_over(const PaimonAggContext *cx, const PaimonAcc *acc, const PaimonCell *in)
{
	if (in->isnull)
		return false;
	if (acc->isnull)
		return true;
	switch (cx->col->agg->id)
	{
		case PAIMON_AGG_MAX:
			return paimon_merge_compare(cx->col, in->word, acc->word) > 0;
		case PAIMON_AGG_MIN:
			return paimon_merge_compare(cx->col, in->word, acc->word) < 0;
		case PAIMON_AGG_BOOL_AND:
			return in->word == 0;
		default:
			return in->word != 0;
	}
}

static PaimonFoldCode
extreme_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	if (takes_over(cx, acc, in))
		paimon_acc_set(acc, in);
	return PAIMON_FOLD_OK;
}

static bool
extreme_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	return how == PAIMON_JOIN_AA;
}

static void
extreme_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	(void) extreme_fold(cx, older, newer, false);
}

#define EXTREME(word, ID, CLASSES, TYPES) \
	const PaimonAggFunction paimon_agg_##word = { \
		.name = #word, .id = PAIMON_AGG_##ID, .classes = CLASSES, .types = TYPES, \
		.order_free = true, .null_is_nothing = true, \
		.fold = extreme_fold, .can_join = extreme_can_join, .join = extreme_join, \
	}

EXTREME(max, MAX, ORDERED, "boolean, a numeric type, text, bytea, date, time or timestamp");
EXTREME(min, MIN, ORDERED, "boolean, a numeric type, text, bytea, date, time or timestamp");
EXTREME(bool_and, BOOL_AND, PAIMON_MC_BIT(PAIMON_MC_BOOL), "boolean");
EXTREME(bool_or, BOOL_OR, PAIMON_MC_BIT(PAIMON_MC_BOOL), "boolean");
