/*-------------------------------------------------------------------------
 *
 * merge_apply.c
 *	  What a record does to a row that is known: the rules of the engines, in the order in which records arrive.
 *
 * This is the meaning of everything else in the folder: merge_join.c may put records together only where applying the result is the same.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

PaimonFoldOp
paimon_fold_op(const PaimonMergePlan *plan, uint8_t kind)
{
	switch (kind)
	{
		case PAIMON_KIND_REPLACE:
			return PAIMON_OP_REPLACE;
		case PAIMON_KIND_REMOVE:
			return PAIMON_OP_REMOVE;
		case PAIMON_KIND_UPDATE_BEFORE:
		case PAIMON_KIND_DELETE:
			break;
		default:
			return PAIMON_OP_ADD;
	}
	if (plan->engine == PAIMON_FOLD_DEDUPLICATE)
		return PAIMON_OP_REMOVE;
	if (plan->engine == PAIMON_FOLD_FIRST_ROW)
		return PAIMON_OP_REFUSED;
	if (plan->remove_on_delete)
	{
		if (kind == PAIMON_KIND_DELETE)
			return PAIMON_OP_REMOVE;
		return plan->engine == PAIMON_FOLD_PARTIAL_UPDATE ? PAIMON_OP_NOTHING : PAIMON_OP_RETRACT;
	}
	if (plan->engine == PAIMON_FOLD_PARTIAL_UPDATE && !plan->has_groups)
		return PAIMON_OP_REFUSED;
	return PAIMON_OP_RETRACT;
}

void
paimon_row_clear(const PaimonMergePlan *plan, PaimonFoldRow *row)
{
	row->op = PAIMON_OP_REMOVE;
	row->kind = PAIMON_KIND_REMOVE;
	row->retracts_only = false;
	for (int i = 0; i < plan->nactive; i++)
		paimon_acc_clear(&row->cols[plan->active[i]]);
}

void
paimon_row_from_record(const PaimonMergePlan *plan, PaimonFoldRow *row, PaimonFoldOp op, const PaimonFoldRecord *record)
{
	row->op = op;
	row->kind = record->kind;
	row->retracts_only = false;
	for (int i = 0; i < plan->nactive; i++)
	{
		int			c = plan->active[i];
		PaimonAcc  *acc = &row->cols[c];

		acc->isnull = record->nulls[c];
		acc->word = acc->isnull ? 0 : record->values[c];
		acc->form = PAIMON_ACC_WORD;
		acc->beyond = false;
	}
}

PaimonFoldCode
paimon_row_settle(const PaimonMergePlan *plan, PaimonFoldRow *row, bool visible, const PaimonAllocator *alloc,
				  PaimonFoldRecord *record, int *column)
{
	for (int i = 0; i < plan->nactive; i++)
	{
		int			c = plan->active[i];
		PaimonAcc  *acc = &row->cols[c];

		if (acc->form != PAIMON_ACC_WORD || (visible && plan->columns[c].agg != NULL))
		{
			PaimonAggContext cx = {.col = &plan->columns[c], .alloc = alloc};
			PaimonFoldCode code = paimon_acc_settle(&cx, acc, visible);

			if (code != PAIMON_FOLD_OK)
			{
				*column = c;
				return code;
			}
		}
		row->values[c] = acc->word;
		row->nulls[c] = acc->isnull;
	}
	record->kind = row->kind;
	record->values = row->values;
	record->nulls = row->nulls;
	return PAIMON_FOLD_OK;
}

/* ---------- columns ---------- */

typedef struct Apply
{
	const PaimonMergePlan *plan;
	PaimonFoldRow *state;
	const PaimonFoldRecord *record;
	PaimonAggContext cx;
	int			column;
} Apply;

/* Takes a column as it is in the record. */
static inline void
take(Apply *a, int c)
{
	PaimonCell	cell = paimon_record_cell(a->record, c);

	paimon_acc_set(&a->state->cols[c], &cell);
}

static PaimonFoldCode
fold_column(Apply *a, int c, bool first, bool under)
{
	PaimonCell	in = paimon_record_cell(a->record, c);
	PaimonAcc  *acc = &a->state->cols[c];

	a->column = c;
	a->cx.col = &a->plan->columns[c];
	if (under)
		return paimon_agg_under(&a->cx, acc, &in);
	return a->cx.col->agg->fold(&a->cx, acc, &in, first);
}

static PaimonFoldCode
retract_column(Apply *a, int c)
{
	PaimonCell	in = paimon_record_cell(a->record, c);

	a->column = c;
	a->cx.col = &a->plan->columns[c];
	if (a->cx.col->ignore_retract)
		return PAIMON_FOLD_OK;
	if (a->cx.col->agg->retract == NULL)
		return PAIMON_FOLD_NO_RETRACT;
	return a->cx.col->agg->retract(&a->cx, &a->state->cols[c], &in);
}

/* The order that the row has from now on, taken whole. */
static void
take_sequence(Apply *a)
{
	for (int i = 0; i < a->plan->nsequence; i++)
	{
		if (!a->plan->columns[a->plan->sequence[i]].ordering && a->plan->columns[a->plan->sequence[i]].group < 0)
			take(a, a->plan->sequence[i]);
	}
}

/* A row begins. */
static void
begin_row(Apply *a)
{
	paimon_row_clear(a->plan, a->state);
	a->state->op = PAIMON_OP_REPLACE;
	a->state->kind = PAIMON_KIND_REPLACE;
	for (int i = 0; i < a->plan->nactive; i++)
	{
		if (a->plan->columns[a->plan->active[i]].key)
			take(a, a->plan->active[i]);
	}
}

/* ---------- sequence groups ---------- */

static PaimonFoldCode
group_add(Apply *a, const PaimonMergeGroup *group)
{
	bool		was_active = paimon_group_active_row(group, a->state->cols);
	bool		late = paimon_merge_compare_row(a->plan, group->ordering, group->nordering, a->record, a->state->cols) < 0;

	for (int i = 0; i < group->ncolumns; i++)
	{
		int			c = group->columns[i];
		PaimonFoldCode code;

		if (a->plan->columns[c].agg == NULL)
		{
			if (!late)
				take(a, c);
			continue;
		}
		code = fold_column(a, c, !was_active && a->state->cols[c].isnull, late);
		if (code != PAIMON_FOLD_OK)
			return code;
	}
	if (!late)
	{
		for (int i = 0; i < group->nordering; i++)
			take(a, group->ordering[i]);
	}
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
group_retract(Apply *a, const PaimonMergeGroup *group)
{
	bool		late = paimon_merge_compare_row(a->plan, group->ordering, group->nordering, a->record, a->state->cols) < 0;

	for (int i = 0; i < group->ncolumns; i++)
	{
		int			c = group->columns[i];
		PaimonFoldCode code;

		if (a->plan->columns[c].agg == NULL)
		{
			if (!late && !a->plan->columns[c].ignore_retract)
				paimon_acc_clear(&a->state->cols[c]);
			continue;
		}
		code = retract_column(a, c);
		if (code != PAIMON_FOLD_OK)
			return code;
	}
	if (!late)
	{
		for (int i = 0; i < group->nordering; i++)
			take(a, group->ordering[i]);
	}
	return PAIMON_FOLD_OK;
}

/* A delete that is not older than what a removing group holds. */
static bool
removes(const Apply *a)
{
	if (!a->plan->any_removes || a->record->kind != PAIMON_KIND_DELETE)
		return false;
	for (int g = 0; g < a->plan->ngroups; g++)
	{
		const PaimonMergeGroup *group = &a->plan->groups[g];

		if (group->removes && paimon_group_active(group, a->record->nulls) &&
			paimon_merge_compare_row(a->plan, group->ordering, group->nordering, a->record, a->state->cols) >= 0)
			return true;
	}
	return false;
}

/* ---------- engines ---------- */

static PaimonFoldCode
partial_update_add(Apply *a)
{
	if (a->state->op == PAIMON_OP_REMOVE)
		begin_row(a);
	for (int g = 0; g < a->plan->ngroups; g++)
	{
		if (paimon_group_active(&a->plan->groups[g], a->record->nulls))
		{
			PaimonFoldCode code = group_add(a, &a->plan->groups[g]);

			if (code != PAIMON_FOLD_OK)
				return code;
		}
	}
	for (int i = 0; i < a->plan->nfree; i++)
	{
		if (!a->record->nulls[a->plan->free[i]])
			take(a, a->plan->free[i]);
	}
	take_sequence(a);
	return PAIMON_FOLD_OK;
}

/* Without a row there is nothing to take back from. */
static PaimonFoldCode
partial_update_retract(Apply *a)
{
	if (a->state->op == PAIMON_OP_REMOVE)
		return PAIMON_FOLD_OK;
	if (removes(a))
	{
		/* as a marker it has a place in the order */
		paimon_row_clear(a->plan, a->state);
		for (int i = 0; i < a->plan->nsequence; i++)
			take(a, a->plan->sequence[i]);
		return PAIMON_FOLD_OK;
	}
	for (int g = 0; g < a->plan->ngroups; g++)
	{
		if (paimon_group_active(&a->plan->groups[g], a->record->nulls))
		{
			PaimonFoldCode code = group_retract(a, &a->plan->groups[g]);

			if (code != PAIMON_FOLD_OK)
				return code;
		}
	}
	take_sequence(a);
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
aggregation_add(Apply *a)
{
	bool		first = a->state->op == PAIMON_OP_REMOVE || a->state->retracts_only;

	if (a->state->op == PAIMON_OP_REMOVE)
		begin_row(a);
	for (int i = 0; i < a->plan->nfree; i++)
	{
		PaimonFoldCode code = fold_column(a, a->plan->free[i], first, false);

		if (code != PAIMON_FOLD_OK)
			return code;
	}
	a->state->retracts_only = false;
	take_sequence(a);
	return PAIMON_FOLD_OK;
}

/* What is taken back from nothing is a row too. */
static PaimonFoldCode
aggregation_retract(Apply *a)
{
	if (a->state->op == PAIMON_OP_REMOVE)
	{
		begin_row(a);
		a->state->retracts_only = true;
	}
	for (int i = 0; i < a->plan->nfree; i++)
	{
		PaimonFoldCode code = retract_column(a, a->plan->free[i]);

		if (code != PAIMON_FOLD_OK)
			return code;
	}
	take_sequence(a);
	return PAIMON_FOLD_OK;
}

PaimonFoldCode
paimon_row_apply(const PaimonMergePlan *plan, PaimonFoldRow *state, PaimonFoldOp op, const PaimonFoldRecord *record,
				 const PaimonAllocator *alloc, int *column)
{
	bool		partial = plan->engine == PAIMON_FOLD_PARTIAL_UPDATE;
	Apply		a = {.plan = plan, .state = state, .record = record, .cx = {.alloc = alloc}, .column = -1};
	PaimonFoldCode code = PAIMON_FOLD_OK;

	switch (op)
	{
		case PAIMON_OP_NOTHING:
			break;
		case PAIMON_OP_REPLACE:
			paimon_row_from_record(plan, state, op, record);
			state->kind = PAIMON_KIND_REPLACE;
			break;
		case PAIMON_OP_REMOVE:
			paimon_row_clear(plan, state);
			break;
		case PAIMON_OP_ADD:
			code = partial ? partial_update_add(&a) : aggregation_add(&a);
			break;
		case PAIMON_OP_RETRACT:
			code = partial ? partial_update_retract(&a) : aggregation_retract(&a);
			break;
		case PAIMON_OP_REFUSED:
			code = PAIMON_FOLD_RETRACT_REFUSED;
			break;
	}
	if (code != PAIMON_FOLD_OK)
		*column = a.column;
	return code;
}
