/*-------------------------------------------------------------------------
 *
 * core_radix.h
 *	  Distributing many items by the prefixes of their keys, which costs less than comparing them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_RADIX_H
#define PAIMON_CORE_RADIX_H

#include "core/core.h"

/* Something with a key, as sorting sees it. */
typedef struct PaimonSortItem
{
	uint64_t	prefix;			/* paimon_key_prefix of the key */
	union
	{
		uint64_t	number;		/* whatever the caller wants */
		void	   *ptr;
	};
} PaimonSortItem;

/* From so many items on, distribution beats comparison. */
#define PAIMON_RADIX_MIN 2048

/*
 * Brings n items into the order of their prefixes as far as the highest bits say in which these differ; items that are equal there stay in the order they
 * were in.  `spare` has room for as many.  Returns how many of the lowest bits were not looked at.
 */
extern int	paimon_radix_sort(PaimonSortItem *items, PaimonSortItem *spare, size_t n);

/*
 * End of the items from the given one on that paimon_radix_sort, which returned `unsorted`, did not tell apart (64: all, also if it was not called).
 */
static inline size_t
paimon_radix_group_end(const PaimonSortItem *items, size_t n, size_t from, int unsorted)
{
	size_t		end = from + 1;

	if (unsorted >= 64)
		return n;
	while (end < n && (items[end].prefix ^ items[from].prefix) >> unsorted == 0)
		end++;
	return end;
}

#endif							/* PAIMON_CORE_RADIX_H */
