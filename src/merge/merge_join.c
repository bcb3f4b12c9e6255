/*-------------------------------------------------------------------------
 *
 * merge_join.c
 *	  Two neighbouring records of a key as one that does what both did, whatever is older.
 *
 * Each pair is looked at twice: first whether every column can be joined, without changing anything, then the columns are joined in the
 * older row.  Where no single record says the same the answer is no, and both records stay.  README.md argues case by case.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

typedef struct Join
{
	const PaimonMergePlan *plan;
	PaimonFoldRow *older;
	PaimonFoldOp op;			/* of the newer one */
	const PaimonFoldRecord *newer;
	bool		loose;
	PaimonAggContext cx;
} Join;

static inline void
take(Join *j, int c)
{
	PaimonCell	cell = paimon_record_cell(j->newer, c);

	paimon_acc_set(&j->older->cols[c], &cell);
}

static void
take_all(Join *j)
{
	paimon_row_from_record(j->plan, j->older, j->op, j->newer);
}

static void
take_sequence(Join *j)
{
	for (int i = 0; i < j->plan->nsequence; i++)
	{
		if (j->plan->columns[j->plan->sequence[i]].group < 0)
			take(j, j->plan->sequence[i]);
	}
}

static bool
can_join_column(Join *j, PaimonJoin how, int c, const PaimonAcc *older, const PaimonCell *newer)
{
	j->cx.col = &j->plan->columns[c];
	return j->cx.col->agg->can_join(&j->cx, how, older, newer);
}

static void
join_column(Join *j, PaimonJoin how, int c)
{
	PaimonCell	in = paimon_record_cell(j->newer, c);

	j->cx.col = &j->plan->columns[c];
	j->cx.col->agg->join(&j->cx, how, &j->older->cols[c], &in);
}

/* Taking this value back changes nothing. */
static bool
retracts_nothing(const PaimonMergeColumn *col, bool isnull)
{
	if (col->ignore_retract)
		return true;
	return isnull && col->agg->retract != NULL && col->agg->id != PAIMON_AGG_LAST_VALUE;
}

/* ---------- aggregation ---------- */

static PaimonJoin
pair_of(const Join *j)
{
	if (j->older->op == PAIMON_OP_ADD)
		return j->op == PAIMON_OP_ADD ? PAIMON_JOIN_AA : PAIMON_JOIN_AR;
	return j->op == PAIMON_OP_ADD ? PAIMON_JOIN_RA : PAIMON_JOIN_RR;
}

static bool
aggregation_can_join(Join *j, PaimonJoin how)
{
	for (int i = 0; i < j->plan->nfree; i++)
	{
		int			c = j->plan->free[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];
		PaimonCell	in = paimon_record_cell(j->newer, c);

		if (how != PAIMON_JOIN_AA)
		{
			if (col->ignore_retract)
				continue;
			if (col->agg->retract == NULL)
				return false;
		}
		if (!can_join_column(j, how, c, &j->older->cols[c], &in))
			return false;
	}
	return true;
}

static bool
aggregation_join(Join *j)
{
	PaimonJoin	how = pair_of(j);

	if (!aggregation_can_join(j, how))
		return false;
	for (int i = 0; i < j->plan->nfree; i++)
	{
		int			c = j->plan->free[i];

		if (how == PAIMON_JOIN_AA || !j->plan->columns[c].ignore_retract)
			join_column(j, how, c);
		else if (how == PAIMON_JOIN_RA)
			take(j, c);
	}
	take_sequence(j);
	if (how != PAIMON_JOIN_RR)
	{
		j->older->op = PAIMON_OP_ADD;
		j->older->kind = PAIMON_KIND_INSERT;
	}
	else
		j->older->kind = j->newer->kind;
	return true;
}

/* ---------- partial-update: one group ---------- */

typedef struct GroupPair
{
	const PaimonMergeGroup *group;
	bool		older_active;
	bool		newer_active;
	bool		late;			/* both are, and the newer one comes before the older one */
} GroupPair;

static GroupPair
group_pair(Join *j, const PaimonMergeGroup *group)
{
	GroupPair	p = {.group = group};

	p.older_active = paimon_group_active_row(group, j->older->cols);
	p.newer_active = paimon_group_active(group, j->newer->nulls);
	if (p.older_active && p.newer_active)
		p.late = paimon_merge_compare_row(j->plan, group->ordering, group->nordering, j->newer, j->older->cols) < 0;
	return p;
}

static void
take_group(Join *j, const PaimonMergeGroup *group)
{
	for (int i = 0; i < group->nordering; i++)
		take(j, group->ordering[i]);
	for (int i = 0; i < group->ncolumns; i++)
		take(j, group->columns[i]);
}

static void
take_ordering(Join *j, const GroupPair *p)
{
	if (!p->late)
	{
		for (int i = 0; i < p->group->nordering; i++)
			take(j, p->group->ordering[i]);
	}
}

/* Both add: a row between the two, or before or behind both, must find the same. */
static bool
group_can_add(Join *j, const GroupPair *p)
{
	if (!p->older_active || !p->newer_active)
		return true;
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonAggFunction *f = j->plan->columns[c].agg;
		PaimonCell	in = paimon_record_cell(j->newer, c);

		if (f == NULL)
			continue;
		if (!f->order_free && !j->loose && f->id != PAIMON_AGG_LAST_NON_NULL)
			return false;
		if (!p->late || f->order_free)
		{
			if (!can_join_column(j, PAIMON_JOIN_AA, c, &j->older->cols[c], &in))
				return false;
		}
		else
		{
			PaimonAcc	newer;
			PaimonCell	older;

			j->cx.col = &j->plan->columns[c];
			older = paimon_acc_cell(&j->cx, &j->older->cols[c]);
			paimon_acc_set(&newer, &in);
			if (!can_join_column(j, PAIMON_JOIN_AA, c, &newer, &older))
				return false;
		}
	}
	return true;
}

static void
group_add(Join *j, const GroupPair *p)
{
	if (!p->newer_active)
		return;
	if (!p->older_active)
	{
		take_group(j, p->group);
		return;
	}
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonAggFunction *f = j->plan->columns[c].agg;

		if (f == NULL)
		{
			if (!p->late)
				take(j, c);
		}
		else if (!p->late)
			join_column(j, PAIMON_JOIN_AA, c);
		else if (f->id == PAIMON_AGG_LAST_VALUE)
			continue;
		else if (f->order_free)
			join_column(j, PAIMON_JOIN_AA, c);
		else
		{
			PaimonCell	in = paimon_record_cell(j->newer, c);
			PaimonAcc	newer;
			PaimonCell	older;

			j->cx.col = &j->plan->columns[c];
			older = paimon_acc_cell(&j->cx, &j->older->cols[c]);
			paimon_acc_set(&newer, &in);
			f->join(&j->cx, PAIMON_JOIN_AA, &newer, &older);
			j->older->cols[c] = newer;
		}
	}
	take_ordering(j, p);
}

/*
 * An add and a retract behind it.  The retract empties plain columns, which an added NULL does too; it takes back from aggregated ones whether
 * or not it is late, which only a sum says by adding.
 */
static bool
group_can_take_back(Join *j, const GroupPair *p)
{
	if (!p->newer_active)
		return true;
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];
		PaimonCell	in = paimon_record_cell(j->newer, c);
		PaimonAcc	nothing;

		if (col->agg == NULL)
		{
			/* kept by the retract, but emptied by a NULL */
			if (col->ignore_retract && !p->older_active)
				return false;
			if (col->ignore_retract && !p->late)
				return false;
			continue;
		}
		if (retracts_nothing(col, in.isnull))
		{
			if (!p->older_active && !col->agg->null_is_nothing)
				return false;
			/* the values stay where their row stands in the order, and that moves on */
			if (p->older_active && !p->late && !col->agg->order_free)
				return false;
			if (col->agg->id == PAIMON_AGG_LAST_VALUE && !p->late)
				return false;
			continue;
		}
		if (col->agg->id != PAIMON_AGG_SUM)
			return false;
		paimon_acc_clear(&nothing);
		if (!can_join_column(j, PAIMON_JOIN_AR, c, p->older_active ? &j->older->cols[c] : &nothing, &in))
			return false;
	}
	return true;
}

static void
group_take_back(Join *j, const GroupPair *p)
{
	if (!p->newer_active)
		return;
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];

		if (!p->older_active)
			paimon_acc_clear(&j->older->cols[c]);
		if (col->agg == NULL)
		{
			if (!p->late && !col->ignore_retract)
				paimon_acc_clear(&j->older->cols[c]);
		}
		else if (!retracts_nothing(col, j->newer->nulls[c]))
			join_column(j, PAIMON_JOIN_AR, c);
	}
	take_ordering(j, p);
}

/*
 * A retract and an add behind it.  On a key without a row the retract does nothing, on another one it does: only if the add covers all
 * of that is there one record for both.
 */
static bool
group_is_covered(Join *j, const GroupPair *p)
{
	if (!p->older_active)
		return true;
	if (!p->newer_active || p->late)
		return false;
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];

		if (col->agg == NULL)
			continue;
		/* a group that a retract has given an order is not empty any more, which first_value asks */
		if (!retracts_nothing(col, j->older->cols[c].isnull) || col->agg->id == PAIMON_AGG_FIRST_VALUE)
			return false;
	}
	return true;
}

static bool
group_can_retract(Join *j, const GroupPair *p)
{
	if (!p->older_active || !p->newer_active)
		return true;
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];
		PaimonCell	in = paimon_record_cell(j->newer, c);

		if (col->agg == NULL || col->ignore_retract)
			continue;
		if (col->agg->retract == NULL || !can_join_column(j, PAIMON_JOIN_RR, c, &j->older->cols[c], &in))
			return false;
	}
	return true;
}

static void
group_retract(Join *j, const GroupPair *p)
{
	if (!p->newer_active)
		return;
	if (!p->older_active)
	{
		take_group(j, p->group);
		return;
	}
	for (int i = 0; i < p->group->ncolumns; i++)
	{
		int			c = p->group->columns[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];

		if (col->agg != NULL && !col->ignore_retract)
			join_column(j, PAIMON_JOIN_RR, c);
	}
	take_ordering(j, p);
}

/* ---------- partial-update ---------- */

/* May a delete remove the row by this group, for all that is known? */
static bool
may_remove(const Join *j, const GroupPair *p, bool older)
{
	if (!p->group->removes)
		return false;
	if (older)
		return j->older->kind == PAIMON_KIND_DELETE && p->older_active;
	if (j->newer->kind != PAIMON_KIND_DELETE || !p->newer_active)
		return false;
	return !(j->older->op == PAIMON_OP_ADD && p->older_active && p->late);
}

static bool
partial_update_can_join(Join *j, PaimonJoin how)
{
	for (int g = 0; g < j->plan->ngroups; g++)
	{
		GroupPair	p = group_pair(j, &j->plan->groups[g]);
		bool		ok = false;

		if (j->older->op == PAIMON_OP_RETRACT && may_remove(j, &p, true))
			return false;
		if (j->op == PAIMON_OP_RETRACT && may_remove(j, &p, false))
			return false;
		switch (how)
		{
			case PAIMON_JOIN_AA:
				ok = group_can_add(j, &p);
				break;
			case PAIMON_JOIN_AR:
				ok = group_can_take_back(j, &p);
				break;
			case PAIMON_JOIN_RA:
				ok = group_is_covered(j, &p);
				break;
			case PAIMON_JOIN_RR:
				ok = group_can_retract(j, &p);
				break;
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool
partial_update_join(Join *j)
{
	PaimonJoin	how = pair_of(j);

	if (!partial_update_can_join(j, how))
		return false;
	if (how == PAIMON_JOIN_RA)
	{
		take_all(j);
		return true;
	}
	for (int g = 0; g < j->plan->ngroups; g++)
	{
		GroupPair	p = group_pair(j, &j->plan->groups[g]);

		if (how == PAIMON_JOIN_AA)
			group_add(j, &p);
		else if (how == PAIMON_JOIN_AR)
			group_take_back(j, &p);
		else
			group_retract(j, &p);
	}
	if (how == PAIMON_JOIN_AA)
	{
		for (int i = 0; i < j->plan->nfree; i++)
		{
			if (!j->newer->nulls[j->plan->free[i]])
				take(j, j->plan->free[i]);
		}
	}
	take_sequence(j);
	if (how == PAIMON_JOIN_RR)
		j->older->kind = j->plan->any_removes ? PAIMON_KIND_UPDATE_BEFORE : j->newer->kind;
	else
		j->older->kind = PAIMON_KIND_INSERT;
	return true;
}

/* ---------- a row that is known ---------- */

/* Would every column take the newer record's value without failing? */
static bool
known_can_take(Join *j)
{
	for (int i = 0; i < j->plan->nactive; i++)
	{
		int			c = j->plan->active[i];
		const PaimonMergeColumn *col = &j->plan->columns[c];
		PaimonCell	in = paimon_record_cell(j->newer, c);
		PaimonAcc	nothing;
		const PaimonAcc *older = &j->older->cols[c];

		if (col->agg == NULL)
			continue;
		if (j->op == PAIMON_OP_RETRACT && !col->ignore_retract && col->agg->retract == NULL)
			return false;
		if (col->agg->id == PAIMON_AGG_USER)
			return false;
		if (in.isnull || (j->op == PAIMON_OP_RETRACT && col->ignore_retract))
			continue;
		paimon_acc_clear(&nothing);
		if (j->older->op == PAIMON_OP_REMOVE)
			older = &nothing;
		if (col->agg->id == PAIMON_AGG_SUM)
		{
			if (!can_join_column(j, j->op == PAIMON_OP_ADD ? PAIMON_JOIN_AA : PAIMON_JOIN_AR, c, older, &in))
				return false;
		}
		else if (col->agg->id == PAIMON_AGG_PRODUCT &&
				 (j->op == PAIMON_OP_RETRACT || !can_join_column(j, PAIMON_JOIN_AA, c, older, &in)))
			return false;
	}
	return true;
}

/* Columns must be words again, to be compared and joined; lists and texts can stay as they are. */
static bool
narrow(Join *j)
{
	for (int i = 0; i < j->plan->nactive; i++)
	{
		int			c = j->plan->active[i];

		if (j->older->cols[c].form == PAIMON_ACC_WIDE)
		{
			j->cx.col = &j->plan->columns[c];
			if (paimon_acc_settle(&j->cx, &j->older->cols[c], false) != PAIMON_FOLD_OK)
				return false;
		}
	}
	return true;
}

static bool
known_join(Join *j, bool *broken)
{
	int			column;

	if (j->older->op == PAIMON_OP_REMOVE && j->op == PAIMON_OP_RETRACT)
		return j->plan->engine == PAIMON_FOLD_PARTIAL_UPDATE;
	if (!known_can_take(j))
		return false;
	if (paimon_row_apply(j->plan, j->older, j->op, j->newer, j->cx.alloc, &column) != PAIMON_FOLD_OK || !narrow(j))
		*broken = true;
	return true;
}

bool
paimon_row_join(const PaimonMergePlan *plan, PaimonFoldRow *older, PaimonFoldOp op, const PaimonFoldRecord *newer, bool loose,
				const PaimonAllocator *alloc, bool *broken)
{
	Join		j = {.plan = plan, .older = older, .op = op, .newer = newer, .loose = loose, .cx = {.alloc = alloc}};

	if (op == PAIMON_OP_REPLACE || op == PAIMON_OP_REMOVE)
	{
		take_all(&j);
		return true;
	}
	if (older->op == PAIMON_OP_REPLACE || older->op == PAIMON_OP_REMOVE)
	{
		/* rows that come late must still find where the known row stands in the order */
		if (plan->nsequence > 0 &&
			paimon_merge_compare_row(plan, plan->sequence, plan->nsequence, newer, older->cols) != 0)
			return false;
		return known_join(&j, broken);
	}
	if (plan->engine == PAIMON_FOLD_PARTIAL_UPDATE)
		return partial_update_join(&j);
	return aggregation_join(&j);
}
