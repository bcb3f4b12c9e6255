/*-------------------------------------------------------------------------
 *
 * core_radix.c
 *	  Two stable passes over the highest bits in which prefixes differ, the lower half of them first.
 *
 * Two passes of 11 bits tell apart what a few thousand to some millions of keys need, if they are spread; the counters stay in the processor's first
 * cache.  The rest is for comparisons.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_radix.h"

#define RADIX_BITS	11

static size_t
digit(const PaimonSortItem *item, int shift)
{
	return (item->prefix >> shift) & ((1 << RADIX_BITS) - 1);
}

static void
pass(const PaimonSortItem *from, PaimonSortItem *to, size_t n, int shift)
{
	size_t		start[1 << RADIX_BITS] = {0};
	size_t		sum = 0;

	for (size_t i = 0; i < n; i++)
		start[digit(&from[i], shift)]++;
	for (int d = 0; d < 1 << RADIX_BITS; d++)
	{
		size_t		count = start[d];

		start[d] = sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++)
		to[start[digit(&from[i], shift)]++] = from[i];
}

int
paimon_radix_sort(PaimonSortItem *items, PaimonSortItem *spare, size_t n)
{
	uint64_t	differ = 0;
	int			unsorted;

	for (size_t i = 1; i < n; i++)
		differ |= items[i].prefix ^ items[0].prefix;
	if (differ == 0)
		return 0;
	unsorted = 64 - __builtin_clzll(differ) - 2 * RADIX_BITS;
	if (unsorted < 0)
		unsorted = 0;
	pass(items, spare, n, unsorted);
	pass(spare, items, n, unsorted + RADIX_BITS);
	return unsorted;
}
