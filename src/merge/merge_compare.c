/*-------------------------------------------------------------------------
 *
 * merge_compare.c
 *	  Order of values and of rows by some columns.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "merge/merge_internal.h"

static float
word_float4(uint64_t word)
{
	uint32_t	bits = (uint32_t) word;
	float		v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static double
word_float8(uint64_t word)
{
	double		v;

	memcpy(&v, &word, sizeof(v));
	return v;
}

/* NaN is equal to itself and the largest, as in SQL. */
static int
compare_float(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) ? (isnan(b) ? 0 : 1) : -1;
	return a < b ? -1 : (a > b ? 1 : 0);
}

int
paimon_merge_compare(const PaimonMergeColumn *col, uint64_t a, uint64_t b)
{
	int64_t		x = (int64_t) a;
	int64_t		y = (int64_t) b;

	switch (col->cls)
	{
		case PAIMON_MC_BOOL:
			return (int) (a != 0) - (int) (b != 0);
		case PAIMON_MC_INT2:
		case PAIMON_MC_INT4:
		case PAIMON_MC_INT8:
		case PAIMON_MC_TIME:
			return x < y ? -1 : (x > y ? 1 : 0);
		case PAIMON_MC_FLOAT4:
			return compare_float(word_float4(a), word_float4(b));
		case PAIMON_MC_FLOAT8:
			return compare_float(word_float8(a), word_float8(b));
		default:
			return col->ops->compare(col, a, b);
	}
}

static int
compare_cells(const PaimonMergeColumn *col, uint64_t a, bool a_null, uint64_t b, bool b_null, bool descending)
{
	int			c;

	if (a_null || b_null)
		return (int) b_null - (int) a_null;
	c = paimon_merge_compare(col, a, b);
	return descending ? -c : c;
}

int
paimon_merge_compare_records(const PaimonMergePlan *plan, const int *columns, int n, bool descending,
							 const PaimonFoldRecord *a, const PaimonFoldRecord *b)
{
	for (int i = 0; i < n; i++)
	{
		int			k = columns[i];
		int			c = compare_cells(&plan->columns[k], a->values[k], a->nulls[k], b->values[k], b->nulls[k], descending);

		if (c != 0)
			return c;
	}
	return 0;
}

int
paimon_merge_compare_row(const PaimonMergePlan *plan, const int *columns, int n, const PaimonFoldRecord *a, const PaimonAcc *b)
{
	for (int i = 0; i < n; i++)
	{
		int			k = columns[i];
		int			c = compare_cells(&plan->columns[k], a->values[k], a->nulls[k], b[k].word, b[k].isnull, false);

		if (c != 0)
			return c;
	}
	return 0;
}
