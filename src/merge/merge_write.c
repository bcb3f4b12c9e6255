/*-------------------------------------------------------------------------
 *
 * merge_write.c
 *	  What can be said about a record before it is written: dropped, taken, or refused because it could never be merged.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

bool
paimon_merge_parse_kind(const char *text, size_t len, uint8_t *kind)
{
	static const struct
	{
		char		name[3];
		uint8_t		kind;
	}			kinds[] = {
		{"+I", PAIMON_KIND_INSERT}, {"-U", PAIMON_KIND_UPDATE_BEFORE}, {"+U", PAIMON_KIND_UPDATE_AFTER}, {"-D", PAIMON_KIND_DELETE}
	};

	for (int i = 0; i < 4 && len == 2; i++)
	{
		if (memcmp(text, kinds[i].name, 2) == 0)
		{
			*kind = kinds[i].kind;
			return true;
		}
	}
	return false;
}

/* A column takes part in the record: its group does, if it is in one. */
static bool
takes_part(const PaimonMergePlan *plan, const PaimonMergeColumn *col, const PaimonFoldRecord *record)
{
	return col->group < 0 || paimon_group_active(&plan->groups[col->group], record->nulls);
}

static PaimonFoldCode
check_retract(const PaimonMergeColumn *col, const PaimonCell *cell, const PaimonAllocator *alloc)
{
	PaimonAggContext cx = {.col = col, .alloc = alloc};
	PaimonAcc	one;

	if (col->ignore_retract)
		return PAIMON_FOLD_OK;
	if (col->agg->retract == NULL)
		return PAIMON_FOLD_NO_RETRACT;
	if (cell->isnull || col->agg->id != PAIMON_AGG_PRODUCT)
		return PAIMON_FOLD_OK;

	/* nothing can be divided by zero: neither can the value itself */
	paimon_acc_set(&one, cell);
	return col->agg->retract(&cx, &one, cell) == PAIMON_FOLD_DIVISION ? PAIMON_FOLD_DIVISION : PAIMON_FOLD_OK;
}

/* Lists must be such, and their rows have keys. */
static PaimonFoldCode
check_value(const PaimonMergeColumn *col, const PaimonCell *cell, const PaimonAllocator *alloc)
{
	PaimonAggContext cx = {.col = col, .alloc = alloc};
	PaimonList	list;
	PaimonFoldCode code;

	switch (col->agg->id)
	{
		case PAIMON_AGG_COLLECT:
		case PAIMON_AGG_MERGE_MAP:
		case PAIMON_AGG_MERGE_MAP_KEYTIME:
		case PAIMON_AGG_NESTED_UPDATE:
		case PAIMON_AGG_NESTED_PARTIAL_UPDATE:
			break;
		default:
			return PAIMON_FOLD_OK;
	}
	code = paimon_list_unpack(&cx, cell, &list);
	if (code != PAIMON_FOLD_OK || col->nested_key == NULL || col->null_keys != PAIMON_NULL_KEYS_ERROR)
		return code;
	for (uint32_t i = 0; i < list.n; i++)
	{
		if (col->ops->key_has_null(col, &list.e[i]))
			return PAIMON_FOLD_NULL_KEY;
	}
	return PAIMON_FOLD_OK;
}

PaimonWriteVerdict
paimon_merge_check_write(const PaimonMergePlan *plan, const PaimonFoldRecord *record, const PaimonAllocator *alloc, PaimonFoldError *error)
{
	PaimonFoldOp op = paimon_fold_op(plan, record->kind);
	bool		minus = record->kind == PAIMON_KIND_UPDATE_BEFORE || record->kind == PAIMON_KIND_DELETE;

	if ((minus || record->kind == PAIMON_KIND_REMOVE) && plan->ignore_delete)
		return PAIMON_WRITE_DROP;
	if (record->kind == PAIMON_KIND_UPDATE_BEFORE && plan->ignore_update_before)
		return PAIMON_WRITE_DROP;
	error->column = -1;
	error->code = PAIMON_FOLD_RETRACT_REFUSED;
	if (op == PAIMON_OP_REFUSED)
		return PAIMON_WRITE_REFUSE;
	if (plan->engine == PAIMON_FOLD_FIRST_ROW && (op == PAIMON_OP_REPLACE || op == PAIMON_OP_REMOVE))
		return PAIMON_WRITE_REFUSE;
	if (op == PAIMON_OP_REMOVE || op == PAIMON_OP_NOTHING)
		return PAIMON_WRITE_TAKE;
	for (int i = 0; i < plan->naggs; i++)
	{
		int			c = plan->aggs[i];
		const PaimonMergeColumn *col = &plan->columns[c];
		PaimonCell	cell = paimon_record_cell(record, c);

		error->column = c;
		error->code = PAIMON_FOLD_OK;
		if (op == PAIMON_OP_RETRACT && takes_part(plan, col, record))
			error->code = check_retract(col, &cell, alloc);
		if (error->code == PAIMON_FOLD_OK && !cell.isnull)
			error->code = check_value(col, &cell, alloc);
		if (error->code != PAIMON_FOLD_OK)
			return PAIMON_WRITE_REFUSE;
	}
	error->column = -1;
	return PAIMON_WRITE_TAKE;
}
