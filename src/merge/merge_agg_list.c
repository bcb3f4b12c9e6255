/*-------------------------------------------------------------------------
 *
 * merge_agg_list.c
 *	  Aggregate functions over arrays, maps and nested rows: collect, merge_map, merge_map_with_keytime, nested_update, nested_partial_update.
 *
 * All are upserts of elements into a list that keeps the order in which elements (or keys) came first.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

#define MAPS PAIMON_MC_BIT(PAIMON_MC_JSON)
#define ROWS (PAIMON_MC_BIT(PAIMON_MC_ROWS) | PAIMON_MC_BIT(PAIMON_MC_JSON))

/* Elements of an added or retracted value; NULL has none. */
static bool
is_nothing(const PaimonAggContext *cx, const PaimonCell *cell)
{
	PaimonList	list;

	return cell->isnull || (paimon_list_unpack(cx, cell, &list) == PAIMON_FOLD_OK && list.n == 0);
}

static bool
acc_is_nothing(const PaimonAggContext *cx, const PaimonAcc *acc)
{
	PaimonCell	cell = {.word = acc->word, .isnull = acc->isnull};

	if (!acc->isnull && acc->form == PAIMON_ACC_LIST)
		return acc->u.list->n == 0;
	return is_nothing(cx, &cell);
}

/* Appends all of `in`, as for retracts that are joined. */
static void
append_all(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	PaimonList *list;
	PaimonList	more;

	if (in->isnull || paimon_acc_list(cx, acc, &list) != PAIMON_FOLD_OK || paimon_list_unpack(cx, in, &more) != PAIMON_FOLD_OK)
		return;
	for (uint32_t i = 0; i < more.n; i++)
		paimon_list_add(cx, list, &more.e[i]);
}

/* Both values can be read as lists. */
static bool
both_unpack(const PaimonAggContext *cx, const PaimonAcc *older, const PaimonCell *newer)
{
	PaimonCell	cell = {.word = older->word, .isnull = older->isnull};
	PaimonList	list;

	if (older->form != PAIMON_ACC_LIST && paimon_list_unpack(cx, &cell, &list) != PAIMON_FOLD_OK)
		return false;
	return paimon_list_unpack(cx, newer, &list) == PAIMON_FOLD_OK;
}

/* ---------- collect ---------- */

static PaimonFoldCode
collect_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	PaimonList *list;
	PaimonList	more;
	PaimonFoldCode code;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &more)) != PAIMON_FOLD_OK || (code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < more.n; i++)
	{
		if (!cx->col->distinct || paimon_list_find(cx, list, &more.e[i], false) < 0)
			paimon_list_add(cx, list, &more.e[i]);
	}
	return PAIMON_FOLD_OK;
}

/* The order of rows does not matter to it. */
static PaimonFoldCode
collect_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	return collect_fold(cx, acc, in, false);
}

/* Takes away the first stored element that is equal, one for each retracted one. */
static PaimonFoldCode
collect_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	PaimonList *list;
	PaimonList	less;
	PaimonList	kinds;
	uint32_t   *counts;
	uint32_t	n = 0;
	PaimonFoldCode code;

	if (in->isnull || acc->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &less)) != PAIMON_FOLD_OK || (code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	memset(&kinds, 0, sizeof(kinds));
	counts = paimon_core_alloc(cx->alloc, (less.n + 1) * sizeof(uint32_t));
	for (uint32_t i = 0; i < less.n; i++)
	{
		int64_t		at = paimon_list_find(cx, &kinds, &less.e[i], false);

		if (at < 0)
		{
			counts[kinds.n] = 1;
			paimon_list_add(cx, &kinds, &less.e[i]);
		}
		else
			counts[at]++;
	}
	for (uint32_t i = 0; i < list->n; i++)
	{
		int64_t		at = paimon_list_find(cx, &kinds, &list->e[i], false);

		if (at >= 0 && counts[at] > 0)
			counts[at]--;
		else
			list->e[n++] = list->e[i];
	}
	list->n = n;
	list->nindex = 0;
	return PAIMON_FOLD_OK;
}

static bool
collect_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	switch (how)
	{
		case PAIMON_JOIN_AR:
			return is_nothing(cx, newer);
		case PAIMON_JOIN_RA:
			return acc_is_nothing(cx, older);
		default:
			return both_unpack(cx, older, newer);
	}
}

static void
collect_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_AA)
		(void) collect_fold(cx, older, newer, false);
	else if (how == PAIMON_JOIN_RA)
		paimon_acc_set(older, newer);
	else if (how == PAIMON_JOIN_RR)
		append_all(cx, older, newer);
}

const PaimonAggFunction paimon_agg_collect = {
	.name = "collect", .id = PAIMON_AGG_COLLECT,
	.classes = PAIMON_MC_BIT(PAIMON_MC_ARRAY) | PAIMON_MC_BIT(PAIMON_MC_ROWS), .types = "an array",
	.order_free = true, .null_is_nothing = true,
	.fold = collect_fold, .fold_under = collect_fold_under, .retract = collect_retract,
	.can_join = collect_can_join, .join = collect_join,
};

/* ---------- maps ---------- */

static PaimonFoldCode
map_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	PaimonList *list;
	PaimonList	more;
	PaimonFoldCode code;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &more)) != PAIMON_FOLD_OK || (code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < more.n; i++)
	{
		int64_t		at = paimon_list_find(cx, list, &more.e[i], true);

		if (at < 0)
			paimon_list_add(cx, list, &more.e[i]);
		else
			list->e[at] = more.e[i];
	}
	return PAIMON_FOLD_OK;
}

/* Removes what has a key (or a value) that `in` has. */
static PaimonFoldCode
remove_found(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool by_key)
{
	PaimonList *list;
	PaimonList	less;
	uint32_t	n = 0;
	PaimonFoldCode code;

	if (in->isnull || acc->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &less)) != PAIMON_FOLD_OK || (code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < list->n; i++)
	{
		if (paimon_list_find(cx, &less, &list->e[i], by_key) < 0)
			list->e[n++] = list->e[i];
	}
	list->n = n;
	list->nindex = 0;
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
map_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	return remove_found(cx, acc, in, true);
}

/* Does `newer` add every key that `older` takes away? */
static bool
map_covers(const PaimonAggContext *cx, const PaimonAcc *older, const PaimonCell *newer)
{
	PaimonAcc	copy = *older;
	PaimonList *less;
	PaimonList	more;

	if (newer->isnull || paimon_acc_list(cx, &copy, &less) != PAIMON_FOLD_OK || paimon_list_unpack(cx, newer, &more) != PAIMON_FOLD_OK)
		return false;
	for (uint32_t i = 0; i < less->n; i++)
	{
		if (paimon_list_find(cx, &more, &less->e[i], true) < 0)
			return false;
	}
	return true;
}

static bool
map_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	switch (how)
	{
		case PAIMON_JOIN_AR:
			return is_nothing(cx, newer);
		case PAIMON_JOIN_RA:
			return acc_is_nothing(cx, older) || map_covers(cx, older, newer);
		default:
			return both_unpack(cx, older, newer);
	}
}

static void
map_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_RA)
		paimon_acc_set(older, newer);
	else if (how != PAIMON_JOIN_AR)
		(void) map_fold(cx, older, newer, false);
}

const PaimonAggFunction paimon_agg_merge_map = {
	.name = "merge_map", .id = PAIMON_AGG_MERGE_MAP, .classes = MAPS, .types = "jsonb",
	.null_is_nothing = true,
	.fold = map_fold, .retract = map_retract, .can_join = map_can_join, .join = map_join,
};

/* ---------- merge_map_with_keytime ---------- */

/* Nothing stored yet: everything is taken but entries without a value. */
static PaimonFoldCode
keytime_first(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonList *more)
{
	PaimonList *list;
	PaimonFoldCode code = paimon_acc_list(cx, acc, &list);

	if (code != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < more->n; i++)
	{
		if (!cx->col->ops->is_void(cx->col, &more->e[i]))
			paimon_list_add(cx, list, &more->e[i]);
	}
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
keytime_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	const PaimonMergeOps *ops = cx->col->ops;
	PaimonList *list;
	PaimonList	more;
	PaimonFoldCode code;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &more)) != PAIMON_FOLD_OK)
		return code;
	if (acc->isnull)
		return keytime_first(cx, acc, &more);
	if ((code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < more.n; i++)
	{
		int64_t		at = paimon_list_find(cx, list, &more.e[i], true);

		if (ops->is_void(cx->col, &more.e[i]))
		{
			if (at >= 0)
				paimon_list_remove(list, (uint32_t) at);
		}
		else if (ops->order_is_null(cx->col, &more.e[i]))
			continue;
		else if (at < 0)
			paimon_list_add(cx, list, &more.e[i]);
		else if (ops->order(cx->col, &more.e[i], &list->e[at]) > 0)
			list->e[at] = more.e[i];
	}
	return PAIMON_FOLD_OK;
}

/* A late row is the first one, on which what is stored goes: its entries without a value leave nothing behind. */
static PaimonFoldCode
keytime_fold_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	PaimonCell	stored;
	PaimonAcc	late;
	PaimonFoldCode code;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	stored = paimon_acc_cell(cx, acc);
	paimon_acc_clear(&late);
	code = keytime_fold(cx, &late, in, true);
	if (code == PAIMON_FOLD_OK)
		code = keytime_fold(cx, &late, &stored, false);
	*acc = late;
	return code;
}

/* Entries that remove, and entries without a time, do something that no entry says. */
static bool
keytime_is_simple(const PaimonAggContext *cx, const PaimonList *list)
{
	const PaimonMergeOps *ops = cx->col->ops;

	for (uint32_t i = 0; i < list->n; i++)
	{
		if (ops->is_void(cx->col, &list->e[i]) || ops->order_is_null(cx->col, &list->e[i]))
			return false;
	}
	return true;
}

static bool
keytime_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	PaimonAcc	copy = *older;
	PaimonList *list;
	PaimonList	more;

	if (how != PAIMON_JOIN_AA)
		return false;
	if (older->isnull || newer->isnull)
		return true;
	return paimon_acc_list(cx, &copy, &list) == PAIMON_FOLD_OK && paimon_list_unpack(cx, newer, &more) == PAIMON_FOLD_OK &&
		keytime_is_simple(cx, list) && keytime_is_simple(cx, &more);
}

static void
keytime_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (older->isnull)
		paimon_acc_set(older, newer);
	else
		(void) keytime_fold(cx, older, newer, false);
}

const PaimonAggFunction paimon_agg_merge_map_keytime = {
	.name = "merge_map_with_keytime", .id = PAIMON_AGG_MERGE_MAP_KEYTIME, .classes = PAIMON_MC_BIT(PAIMON_MC_JSON), .types = "jsonb",
	.null_is_nothing = true,
	.fold = keytime_fold, .fold_under = keytime_fold_under, .can_join = keytime_can_join, .join = keytime_join,
};

/* ---------- nested rows ---------- */

/* A row of the incoming value goes in; `limit`: no more rows than that. */
static PaimonFoldCode
nested_put(const PaimonAggContext *cx, PaimonList *list, const PaimonCell *row, uint32_t limit)
{
	const PaimonMergeColumn *col = cx->col;
	int64_t		at = -1;

	if (col->nested_key != NULL)
	{
		if (col->null_keys != PAIMON_NULL_KEYS_MERGE && col->ops->key_has_null(col, row))
			return col->null_keys == PAIMON_NULL_KEYS_ERROR ? PAIMON_FOLD_NULL_KEY : PAIMON_FOLD_OK;
		at = paimon_list_find(cx, list, row, true);
	}
	if (at < 0)
	{
		if (list->n < limit)
			paimon_list_add(cx, list, row);
	}
	else if (col->agg->id == PAIMON_AGG_NESTED_PARTIAL_UPDATE)
		list->e[at] = col->ops->overlay(col, &list->e[at], row, cx->alloc);
	else if (col->nested_sequence == NULL || col->ops->order(col, row, &list->e[at]) >= 0)
		list->e[at] = *row;
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
nested_merge(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, uint32_t limit)
{
	PaimonList *list;
	PaimonList	more;
	PaimonFoldCode code;

	if (in->isnull)
		return PAIMON_FOLD_OK;
	if ((code = paimon_list_unpack(cx, in, &more)) != PAIMON_FOLD_OK || (code = paimon_acc_list(cx, acc, &list)) != PAIMON_FOLD_OK)
		return code;
	for (uint32_t i = 0; i < more.n && code == PAIMON_FOLD_OK; i++)
		code = nested_put(cx, list, &more.e[i], limit);
	return code;
}

static PaimonFoldCode
nested_fold(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first)
{
	return nested_merge(cx, acc, in, cx->col->count_limit);
}

static PaimonFoldCode
nested_retract(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in)
{
	return remove_found(cx, acc, in, cx->col->nested_key != NULL);
}

static bool
has_null_key(const PaimonAggContext *cx, const PaimonList *list)
{
	for (uint32_t i = 0; i < list->n; i++)
	{
		if (cx->col->ops->key_has_null(cx->col, &list->e[i]))
			return true;
	}
	return false;
}

static bool
nested_can_join(const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer)
{
	switch (how)
	{
		case PAIMON_JOIN_AR:
			return is_nothing(cx, newer);
		case PAIMON_JOIN_RA:
			return acc_is_nothing(cx, older);
		case PAIMON_JOIN_RR:
			return both_unpack(cx, older, newer);
		case PAIMON_JOIN_AA:
			break;
	}
	if (cx->col->null_keys == PAIMON_NULL_KEYS_ERROR && cx->col->nested_key != NULL)
	{
		PaimonAcc	copy = *older;
		PaimonList *list;
		PaimonList	more;

		/* the error is raised where the rows are seen */
		return paimon_acc_list(cx, &copy, &list) == PAIMON_FOLD_OK && paimon_list_unpack(cx, newer, &more) == PAIMON_FOLD_OK &&
			!has_null_key(cx, list) && !has_null_key(cx, &more);
	}
	return both_unpack(cx, older, newer);
}

/*
 * Without the limit: which rows are too many is told only on what is older.  A value as it came may have a key several times, and its later row must
 * not come behind the newer value's.
 */
static void
nested_join(const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer)
{
	if (how == PAIMON_JOIN_AA)
	{
		if (cx->col->nested_key != NULL && !older->isnull && older->form == PAIMON_ACC_WORD)
		{
			PaimonCell	cell = {.word = older->word, .isnull = false};

			paimon_acc_clear(older);
			(void) nested_merge(cx, older, &cell, UINT32_MAX);
		}
		(void) nested_merge(cx, older, newer, UINT32_MAX);
	}
	else if (how == PAIMON_JOIN_RA)
		paimon_acc_set(older, newer);
	else if (how == PAIMON_JOIN_RR)
		append_all(cx, older, newer);
}

const PaimonAggFunction paimon_agg_nested_update = {
	.name = "nested_update", .id = PAIMON_AGG_NESTED_UPDATE, .classes = ROWS, .types = "an array of a composite type or jsonb",
	.null_is_nothing = true,
	.fold = nested_fold, .retract = nested_retract, .can_join = nested_can_join, .join = nested_join,
};

const PaimonAggFunction paimon_agg_nested_partial_update = {
	.name = "nested_partial_update", .id = PAIMON_AGG_NESTED_PARTIAL_UPDATE, .classes = ROWS,
	.types = "an array of a composite type or jsonb",
	.null_is_nothing = true,
	.fold = nested_fold, .can_join = nested_can_join, .join = nested_join,
};
