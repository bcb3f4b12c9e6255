/*-------------------------------------------------------------------------
 *
 * merge_agg.c
 *	  The table of aggregate functions, and what all of them need.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

static const PaimonAggFunction *const functions[] = {
	&paimon_agg_sum, &paimon_agg_product, &paimon_agg_max, &paimon_agg_min,
	&paimon_agg_last_value, &paimon_agg_last_non_null, &paimon_agg_first_value, &paimon_agg_first_non_null,
	&paimon_agg_listagg, &paimon_agg_bool_and, &paimon_agg_bool_or, &paimon_agg_collect,
	&paimon_agg_merge_map, &paimon_agg_merge_map_keytime, &paimon_agg_nested_update, &paimon_agg_nested_partial_update,
};

const PaimonAggFunction *
paimon_agg_find(const char *name)
{
	if (strcmp(name, "first_not_null_value") == 0)
		return &paimon_agg_first_non_null;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
	{
		if (strcmp(functions[i]->name, name) == 0)
			return functions[i];
	}
	return NULL;
}

const char *
paimon_merge_function_name(const PaimonMergeColumn *col)
{
	if (col->agg == NULL)
		return NULL;
	return col->agg->id == PAIMON_AGG_USER ? col->function : col->agg->name;
}

/* By default the other way round: the older row's value is the state, and what is stored goes into it. */
PaimonFoldCode
paimon_agg_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	const PaimonAggFunction *f = cx->col->agg;
	PaimonCell	stored;
	PaimonAcc	state;
	PaimonFoldCode code;

	if (in->isnull && f->null_is_nothing)
		return PAIMON_FOLD_OK;
	if (f->fold_under != NULL)
		return f->fold_under(cx, acc, in);
	if (f->order_free)
		return f->fold(cx, acc, in, false);
	stored = paimon_acc_cell(cx, acc);
	paimon_acc_set(&state, in);
	code = f->fold(cx, &state, &stored, false);
	if (code == PAIMON_FOLD_OK)
		*acc = state;
	return code;
}

static uint64_t
pack(const PaimonAggContext *cx, const PaimonAcc *acc)
{
	switch (acc->form)
	{
		case PAIMON_ACC_TEXT:
			return paimon_merge_text_pack(acc->u.text, cx->alloc);
		case PAIMON_ACC_LIST:
			return cx->col->ops->pack(cx->col, acc->u.list, cx->alloc);
		default:
			return acc->word;
	}
}

PaimonCell
paimon_acc_cell(const PaimonAggContext *cx, const PaimonAcc *acc)
{
	PaimonCell	cell = {.word = 0, .isnull = acc->isnull};

	if (!acc->isnull)
		cell.word = acc->form == PAIMON_ACC_WIDE ? (uint64_t) (int64_t) acc->u.wide : pack(cx, acc);
	return cell;
}

static bool
wide_fits(const PaimonMergeColumn *col, const PaimonAcc *acc)
{
	if (acc->beyond)
		return false;
	switch (col->cls)
	{
		case PAIMON_MC_INT2:
			return acc->u.wide >= INT16_MIN && acc->u.wide <= INT16_MAX;
		case PAIMON_MC_INT4:
			return acc->u.wide >= INT32_MIN && acc->u.wide <= INT32_MAX;
		default:
			return acc->u.wide >= INT64_MIN && acc->u.wide <= INT64_MAX;
	}
}

PaimonFoldCode
paimon_acc_settle(const PaimonAggContext *cx, PaimonAcc *acc, bool visible)
{
	const PaimonMergeColumn *col = cx->col;

	if (acc->isnull)
		return PAIMON_FOLD_OK;
	if (acc->form == PAIMON_ACC_WIDE)
	{
		if (!wide_fits(col, acc))
			return PAIMON_FOLD_OVERFLOW;
		acc->word = (uint64_t) (int64_t) acc->u.wide;
	}
	else
		acc->word = pack(cx, acc);
	acc->form = PAIMON_ACC_WORD;
	if (visible && col->cls == PAIMON_MC_NUMERIC && col->agg != NULL && col->ops->fits != NULL &&
		(col->agg->id == PAIMON_AGG_SUM || col->agg->id == PAIMON_AGG_PRODUCT) && !col->ops->fits(col, acc->word))
		return PAIMON_FOLD_OVERFLOW;
	return PAIMON_FOLD_OK;
}
