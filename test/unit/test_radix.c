/*-------------------------------------------------------------------------
 *
 * test_radix.c
 *	  Distribution by prefixes against a stable sort, for prefixes that differ in all kinds of bits.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_radix.h"
#include "unit.h"

#define MAX_ITEMS 5000

static PaimonSortItem items[MAX_ITEMS];
static PaimonSortItem spare[MAX_ITEMS];
static PaimonSortItem want[MAX_ITEMS];
static int	ignored;			/* of the lowest bits */

static int
compare(const void *a, const void *b)
{
	const PaimonSortItem *x = a;
	const PaimonSortItem *y = b;

	if (x->prefix >> ignored != y->prefix >> ignored)
		return x->prefix >> ignored < y->prefix >> ignored ? -1 : 1;
	return x->number < y->number ? -1 : (x->number > y->number ? 1 : 0);
}

/* Prefixes differ in the bits of `differ` only; the others are random, but the same in all. */
static void
check_sort(size_t n, uint64_t differ)
{
	uint64_t	base = unit_rand();
	uint64_t	really = 0;
	size_t		groups = 0;

	for (size_t i = 0; i < n; i++)
	{
		items[i].prefix = (base & ~differ) | (unit_rand() & differ);
		items[i].number = i;
		really |= items[i].prefix ^ items[0].prefix;
	}
	memcpy(want, items, n * sizeof(*items));
	ignored = paimon_radix_sort(items, spare, n);
	CHECK(ignored >= 0 && ignored <= 42);

	/* all that differs is sorted if it is not more than 22 bits from the highest one down */
	CHECK(ignored == 0 || really >> ignored >> 21 == 1);
	qsort(want, n, sizeof(*want), compare);
	CHECK(memcmp(items, want, n * sizeof(*items)) == 0);
	for (size_t from = 0; from < n; groups++)
	{
		size_t		end = paimon_radix_group_end(items, n, from, ignored);

		CHECK(end > from && end <= n);
		for (size_t i = from; i < end; i++)
			CHECK(items[i].prefix >> ignored == items[from].prefix >> ignored);
		CHECK(end == n || items[end].prefix >> ignored != items[from].prefix >> ignored);
		from = end;
	}
	CHECK(groups > 0 || n == 0);
}

int
main(int argc, char **argv)
{
	unit_begin("test_radix", argc, argv);
	for (int round = 0; round < 200; round++)
	{
		size_t		n = 1 + unit_below(MAX_ITEMS);

		check_sort(n, 0);
		check_sort(n, ~UINT64_C(0));
		check_sort(n, UINT64_C(1) << unit_below(64));
		check_sort(n, unit_rand() & unit_rand() & unit_rand());
		check_sort(n, unit_rand_skewed() << unit_below(64));
	}
	CHECK_EQ(paimon_radix_group_end(items, 7, 3, 64), 7);
	return unit_end();
}
