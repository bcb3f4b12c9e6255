/*-------------------------------------------------------------------------
 *
 * merge_list.c
 *	  Lists of elements that aggregate functions work on: found by value or key, taken out of arrays and maps and put back.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

#define SEARCH_UNTIL 8			/* elements up to which looking at all of them is as good */

PaimonFoldCode
paimon_list_unpack(const PaimonAggContext *cx, const PaimonCell *in, PaimonList *out)
{
	memset(out, 0, sizeof(*out));
	if (in->isnull)
		return PAIMON_FOLD_OK;
	return cx->col->ops->unpack(cx->col, in->word, cx->alloc, out);
}

static void
index_insert(const PaimonAggContext *cx, PaimonList *list, uint32_t at)
{
	uint32_t	mask = list->nindex - 1;
	uint32_t	slot = cx->col->ops->hash(cx->col, &list->e[at], list->index_by_key) & mask;

	while (list->index[slot] != 0)
		slot = (slot + 1) & mask;
	list->index[slot] = at + 1;
}

static void
index_build(const PaimonAggContext *cx, PaimonList *list, bool by_key)
{
	uint32_t	n = 32;

	while (n < list->n * 4)
		n *= 2;
	if (list->index == NULL || list->nindex < n)
		list->index = paimon_core_alloc(cx->alloc, n * sizeof(uint32_t));
	else
		n = list->nindex;
	memset(list->index, 0, n * sizeof(uint32_t));
	list->nindex = n;
	list->index_by_key = by_key;
	for (uint32_t i = 0; i < list->n; i++)
		index_insert(cx, list, i);
}

/* Elements that are equal are indexed in their order, so the first one is found. */
int64_t
paimon_list_find(const PaimonAggContext *cx, PaimonList *list, const PaimonCell *e, bool by_key)
{
	const PaimonMergeOps *ops = cx->col->ops;
	uint32_t	mask;

	if (list->n <= SEARCH_UNTIL)
	{
		for (uint32_t i = 0; i < list->n; i++)
		{
			if (ops->equal(cx->col, &list->e[i], e, by_key))
				return i;
		}
		return -1;
	}
	if (list->nindex == 0 || list->index_by_key != by_key)
		index_build(cx, list, by_key);
	mask = list->nindex - 1;
	for (uint32_t slot = ops->hash(cx->col, e, by_key) & mask; list->index[slot] != 0; slot = (slot + 1) & mask)
	{
		if (ops->equal(cx->col, &list->e[list->index[slot] - 1], e, by_key))
			return (int64_t) list->index[slot] - 1;
	}
	return -1;
}

void
paimon_list_add(const PaimonAggContext *cx, PaimonList *list, const PaimonCell *e)
{
	if (list->n == list->cap)
	{
		uint32_t	cap = list->cap < 8 ? 16 : list->cap * 2;
		PaimonCell *cells = paimon_core_alloc(cx->alloc, cap * sizeof(PaimonCell));

		if (list->n > 0)
			memcpy(cells, list->e, list->n * sizeof(PaimonCell));
		list->e = cells;
		list->cap = cap;
	}
	list->e[list->n++] = *e;
	if (list->nindex > 0)
	{
		if (list->nindex < list->n * 2)
			list->nindex = 0;
		else
			index_insert(cx, list, list->n - 1);
	}
}

void
paimon_list_remove(PaimonList *list, uint32_t at)
{
	memmove(&list->e[at], &list->e[at + 1], (list->n - at - 1) * sizeof(PaimonCell));
	list->n--;
	list->nindex = 0;
}

PaimonFoldCode
paimon_acc_list(const PaimonAggContext *cx, PaimonAcc *acc, PaimonList **list)
{
	PaimonCell	cell = {.word = acc->word, .isnull = acc->isnull};
	PaimonFoldCode code;

	if (!acc->isnull && acc->form == PAIMON_ACC_LIST)
	{
		*list = acc->u.list;
		return PAIMON_FOLD_OK;
	}
	*list = paimon_core_alloc(cx->alloc, sizeof(PaimonList));
	code = paimon_list_unpack(cx, &cell, *list);
	if (code != PAIMON_FOLD_OK)
		return code;
	acc->u.list = *list;
	acc->isnull = false;
	acc->form = PAIMON_ACC_LIST;
	return PAIMON_FOLD_OK;
}
