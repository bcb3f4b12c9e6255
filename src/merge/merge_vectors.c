/*-------------------------------------------------------------------------
 *
 * merge_vectors.c
 *	  The fold of a key's records column by column, from the column vectors of run files.
 *
 * Most keys are added to and nothing else, and most columns keep one of their values or are sums of whole numbers.  Then a column's result can be told
 * from its values alone, in one pass over the records as they lie: nothing is copied, and no function is called by pointer.  The results are those of
 * merge_apply.c and merge_join.c, which agree for such records; whatever else there is goes there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "merge/merge_internal.h"
#include "merge/merge_vectors.h"

typedef enum VectorFold
{
	VECTOR_OLDEST,				/* the oldest record's, NULL or not */
	VECTOR_NEWEST,
	VECTOR_FIRST_NON_NULL,		/* of the oldest record that has one */
	VECTOR_LAST_NON_NULL,
	VECTOR_SUM,
	VECTOR_MAX,
	VECTOR_MIN,
	VECTOR_AND,
	VECTOR_OR
} VectorFold;

typedef struct VectorColumn
{
	int			column;
	VectorFold	how;
	int64		least;			/* that a sum may be, and the largest */
	int64		most;
	bool		words;			/* compares as signed numbers */
	const PaimonMergeColumn *col;
} VectorColumn;

struct PaimonVectorPlan
{
	int			n;
	VectorColumn columns[FLEXIBLE_ARRAY_MEMBER];
};

/* ---------- plan ---------- */

/* Sums of whole numbers are exact in whatever order. */
static bool
plan_sum(VectorColumn *v)
{
	switch (v->col->cls)
	{
		case PAIMON_MC_INT2:
			v->least = PG_INT16_MIN;
			v->most = PG_INT16_MAX;
			return true;
		case PAIMON_MC_INT4:
			v->least = PG_INT32_MIN;
			v->most = PG_INT32_MAX;
			return true;
		case PAIMON_MC_INT8:
			v->least = PG_INT64_MIN;
			v->most = PG_INT64_MAX;
			return true;
		default:
			return false;
	}
}

static bool
plan_column(const PaimonMergePlan *plan, VectorColumn *v)
{
	const PaimonMergeColumn *col = v->col;

	if (col->key)
	{
		v->how = VECTOR_OLDEST;
		return true;
	}
	if (col->agg == NULL)
	{
		v->how = VECTOR_LAST_NON_NULL;
		return plan->engine == PAIMON_FOLD_PARTIAL_UPDATE;
	}
	switch (col->agg->id)
	{
		case PAIMON_AGG_LAST_VALUE:
			v->how = VECTOR_NEWEST;
			return true;
		case PAIMON_AGG_LAST_NON_NULL:
			v->how = VECTOR_LAST_NON_NULL;
			return true;
		case PAIMON_AGG_FIRST_VALUE:
			v->how = VECTOR_OLDEST;
			return true;
		case PAIMON_AGG_FIRST_NON_NULL:
			v->how = VECTOR_FIRST_NON_NULL;
			return true;
		case PAIMON_AGG_SUM:
			v->how = VECTOR_SUM;
			return plan_sum(v);
		case PAIMON_AGG_MAX:
			v->how = VECTOR_MAX;
			return true;
		case PAIMON_AGG_MIN:
			v->how = VECTOR_MIN;
			return true;
		case PAIMON_AGG_BOOL_AND:
			v->how = VECTOR_AND;
			return true;
		case PAIMON_AGG_BOOL_OR:
			v->how = VECTOR_OR;
			return true;
		default:
			return false;
	}
}

PaimonVectorPlan *
paimon_vectors_plan(const PaimonMergePlan *plan)
{
	PaimonVectorPlan *vp;

	if ((plan->engine != PAIMON_FOLD_PARTIAL_UPDATE && plan->engine != PAIMON_FOLD_AGGREGATION) ||
		plan->nsequence > 0 || plan->ngroups > 0)
		return NULL;
	vp = palloc0(offsetof(PaimonVectorPlan, columns) + sizeof(VectorColumn) * plan->nactive);
	vp->n = plan->nactive;
	for (int i = 0; i < vp->n; i++)
	{
		VectorColumn *v = &vp->columns[i];

		v->column = plan->active[i];
		v->col = &plan->columns[v->column];
		v->words = v->col->cls == PAIMON_MC_INT2 || v->col->cls == PAIMON_MC_INT4 || v->col->cls == PAIMON_MC_INT8 ||
			v->col->cls == PAIMON_MC_TIME;
		if (!plan_column(plan, v))
		{
			pfree(vp);
			return NULL;
		}
	}
	return vp;
}

/* ---------- fold ---------- */

/* The record's value of a column; false: it is NULL. */
static inline bool
get(const PaimonRecordRef *r, int c, Datum *value)
{
	PaimonRunGroup *g = r->group;
	const bool *nulls;

	if (g == NULL)
	{
		*value = r->values[c];
		return !r->nulls[c];
	}
	if (unlikely(g->values[c] == NULL))
		paimon_run_group_load(g, c);
	nulls = g->nulls[c];
	*value = g->values[c][r->row];
	return nulls == NULL || !nulls[r->row];
}

/* False: it does not fit. */
static inline bool
sum(const VectorColumn *v, const PaimonRecordRef *refs, int n, Datum *value, bool *isnull)
{
	PaimonWide	total = 0;
	Datum		one;

	*isnull = true;
	for (int i = 0; i < n; i++)
	{
		if (get(&refs[i], v->column, &one))
		{
			total += (int64) one;
			*isnull = false;
		}
	}
	*value = (Datum) (int64) total;
	return total >= v->least && total <= v->most;
}

static inline bool
takes_over(const VectorColumn *v, Datum new, Datum old)
{
	switch (v->how)
	{
		case VECTOR_MAX:
			return v->words ? (int64) new > (int64) old : paimon_merge_compare(v->col, new, old) > 0;
		case VECTOR_MIN:
			return v->words ? (int64) new < (int64) old : paimon_merge_compare(v->col, new, old) < 0;
		case VECTOR_AND:
			return new == 0;
		default:
			return new != 0;
	}
}

/* Of equal ones the oldest. */
static inline void
extreme(const VectorColumn *v, const PaimonRecordRef *refs, int n, Datum *value, bool *isnull)
{
	Datum		one;

	*isnull = true;
	for (int i = n - 1; i >= 0; i--)
	{
		if (get(&refs[i], v->column, &one) && (*isnull || takes_over(v, one, *value)))
		{
			*value = one;
			*isnull = false;
		}
	}
}

bool
paimon_vectors_fold(const PaimonVectorPlan *plan, const PaimonRecordRef *refs, int n, Datum *values, bool *nulls)
{
	for (int k = 0; k < plan->n; k++)
	{
		const VectorColumn *v = &plan->columns[k];
		int			c = v->column;
		Datum		value = 0;
		bool		isnull = true;

		switch (v->how)
		{
			case VECTOR_OLDEST:
				isnull = !get(&refs[n - 1], c, &value);
				break;
			case VECTOR_NEWEST:
				isnull = !get(&refs[0], c, &value);
				break;
			case VECTOR_FIRST_NON_NULL:
				for (int i = n - 1; i >= 0 && isnull; i--)
					isnull = !get(&refs[i], c, &value);
				break;
			case VECTOR_LAST_NON_NULL:
				for (int i = 0; i < n && isnull; i++)
					isnull = !get(&refs[i], c, &value);
				break;
			case VECTOR_SUM:
				if (!sum(v, refs, n, &value, &isnull))
					return false;
				break;
			default:
				extreme(v, refs, n, &value, &isnull);
				break;
		}
		values[c] = isnull ? (Datum) 0 : value;
		nulls[c] = isnull;
	}
	return true;
}
