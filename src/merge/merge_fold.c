/*-------------------------------------------------------------------------
 *
 * merge_fold.c
 *	  The fold of one key's records: what is seen of them, and what is stored for them.
 *
 * Records come newest first.  What is seen is the records applied to nothing, oldest first.  What is stored is the same records with neighbours
 * joined wherever one record can stand for two; where none can, both stay, as records of one key in one run.  So what is seen
 * does not depend on what was stored in between.
 *
 *-------------------------------------------------------------------------
 */
#include "merge/merge_internal.h"

#define FIRST_REDUCE	256		/* records of a key at which what can be joined is joined while more come */
#define EXACT_CHAIN		32		/* records that are kept apart for the sake of late rows */

typedef struct Item
{
	PaimonFoldRecord record;	/* valid unless `row` holds something newer */
	PaimonFoldOp op;
	PaimonFoldRow *row;			/* NULL: as it came */
	uint32_t	arrival;		/* larger = newer; to sort by */
} Item;

struct PaimonFold
{
	const PaimonMergePlan *plan;
	const PaimonAllocator *alloc;	/* as long as the fold */
	const PaimonAllocator *key;	/* of the key at hand */

	Item	   *items;			/* newest first */
	uint32_t	n;
	uint32_t	cap;
	uint32_t	reduce_at;

	Item	   *work;			/* oldest first */
	uint32_t	work_cap;

	PaimonFoldRow **rows;		/* in use: [0, nused) */
	uint32_t	nrows;
	uint32_t	rows_cap;
	uint32_t	nused;

	PaimonFoldRecord *out;
	uint32_t	out_cap;
};

/* ---------- memory that is used for key after key ---------- */

static void *
grow(PaimonFold *f, void *old, uint32_t used, uint32_t *cap, uint32_t need, size_t size)
{
	uint32_t	n = *cap < 8 ? 16 : *cap * 2;
	void	   *p;

	if (n < need)
		n = need;
	p = paimon_core_alloc(f->alloc, n * size);
	if (used > 0)
		memcpy(p, old, used * size);
	*cap = n;
	return p;
}

static PaimonFoldRow *
new_row(PaimonFold *f)
{
	int			n = f->plan->ncolumns + 1;
	PaimonFoldRow *row;

	if (f->nused < f->nrows)
		return f->rows[f->nused++];
	if (f->nrows == f->rows_cap)
		f->rows = grow(f, f->rows, f->nrows, &f->rows_cap, 0, sizeof(PaimonFoldRow *));
	row = paimon_core_alloc(f->alloc, sizeof(PaimonFoldRow));
	row->cols = paimon_core_alloc(f->alloc, n * sizeof(PaimonAcc));
	row->values = paimon_core_alloc(f->alloc, n * sizeof(uint64_t));
	row->nulls = paimon_core_alloc(f->alloc, n * sizeof(bool));
	memset(row->values, 0, n * sizeof(uint64_t));
	memset(row->nulls, true, n * sizeof(bool));
	f->rows[f->nrows++] = row;
	f->nused++;
	return row;
}

/* The row is the last one that was taken. */
static void
give_back(PaimonFold *f, PaimonFoldRow *row)
{
	if (f->nused > 0 && f->rows[f->nused - 1] == row)
		f->nused--;
}

PaimonFold *
paimon_fold_create(const PaimonMergePlan *plan, const PaimonAllocator *alloc)
{
	PaimonFold *f = paimon_core_alloc(alloc, sizeof(PaimonFold));

	if (f == NULL)
		return NULL;
	memset(f, 0, sizeof(*f));
	f->plan = plan;
	f->alloc = alloc;
	return f;
}

void
paimon_fold_begin(PaimonFold *f, const PaimonAllocator *alloc)
{
	f->key = alloc;
	f->n = 0;
	f->nused = 0;
	f->reduce_at = FIRST_REDUCE;
}

/* ---------- joining ---------- */

static void
own(PaimonFold *f, Item *item)
{
	if (item->row == NULL)
	{
		item->row = new_row(f);
		paimon_row_from_record(f->plan, item->row, item->op, &item->record);
	}
}

/* The item as a record.  What was joined always fits: that was asked before. */
static bool
settle(PaimonFold *f, Item *item)
{
	int			column;

	if (item->row == NULL)
		return true;
	return paimon_row_settle(f->plan, item->row, false, f->key, &item->record, &column) == PAIMON_FOLD_OK;
}

static inline bool
is_absolute(PaimonFoldOp op)
{
	return op == PAIMON_OP_REPLACE || op == PAIMON_OP_REMOVE;
}

/* Puts b into a, which is its neighbour and older. */
static bool
join(PaimonFold *f, Item *a, Item *b, bool loose, bool *broken)
{
	/* what a table refuses to take back is an error where it is seen, and stays until then */
	if (a->op == PAIMON_OP_REFUSED || b->op == PAIMON_OP_REFUSED)
		return false;
	if (is_absolute(b->op))
	{
		*a = *b;
		return true;
	}
	if (!settle(f, b))
		return false;
	own(f, a);
	if (!paimon_row_join(f->plan, a->row, b->op, &b->record, loose, f->key, broken))
		return false;
	a->op = a->row->op;
	if (b->row != NULL)
		give_back(f, b->row);
	return true;
}

/*
 * Joins items[0 .. n), oldest first, in place; returns how many are left.  An item that has taken one in is tried on the one below only if that is
 * a retract, which more may cover: trying all again each time would cost the square of a long chain.
 */
static uint32_t
join_chain(PaimonFold *f, Item *items, uint32_t n, bool loose, bool *broken)
{
	uint32_t	sp = 0;

	for (uint32_t i = 0; i < n && !*broken; i++)
	{
		Item		current = items[i];
		bool		taken_in = false;

		while (sp > 0 && (!taken_in || items[sp - 1].op == PAIMON_OP_RETRACT || is_absolute(current.op)) &&
			   join(f, &items[sp - 1], &current, loose, broken))
		{
			current = items[--sp];
			taken_in = true;
		}
		items[sp++] = current;
	}
	return sp;
}

/* ---------- order ---------- */

static int
compare_items(const PaimonFold *f, const Item *a, const Item *b)
{
	int			c = paimon_merge_compare_records(f->plan, f->plan->sequence, f->plan->nsequence, f->plan->descending,
												 &a->record, &b->record);

	if (c != 0)
		return c;
	return a->arrival < b->arrival ? -1 : 1;
}

/* Few items, mostly in order: insertion; else by heaps. */
static void
sift(const PaimonFold *f, Item *items, uint32_t at, uint32_t n)
{
	for (;;)
	{
		uint32_t	child = 2 * at + 1;
		Item		swap;

		if (child >= n)
			return;
		if (child + 1 < n && compare_items(f, &items[child], &items[child + 1]) < 0)
			child++;
		if (compare_items(f, &items[at], &items[child]) >= 0)
			return;
		swap = items[at];
		items[at] = items[child];
		items[child] = swap;
		at = child;
	}
}

static void
sort_items(const PaimonFold *f, Item *items, uint32_t n)
{
	if (n <= 32)
	{
		for (uint32_t i = 1; i < n; i++)
		{
			Item		item = items[i];
			uint32_t	k = i;

			for (; k > 0 && compare_items(f, &items[k - 1], &item) > 0; k--)
				items[k] = items[k - 1];
			items[k] = item;
		}
		return;
	}
	for (uint32_t i = n / 2; i > 0; i--)
		sift(f, items, i - 1, n);
	for (uint32_t end = n - 1; end > 0; end--)
	{
		Item		swap = items[0];

		items[0] = items[end];
		items[end] = swap;
		sift(f, items, 0, end);
	}
}

/* The records oldest first, by sequence.field where there is one, in f->work. */
static void
order_items(PaimonFold *f)
{
	if (f->work_cap < f->n)
		f->work = grow(f, NULL, 0, &f->work_cap, f->n, sizeof(Item));
	for (uint32_t i = 0; i < f->n; i++)
	{
		f->work[i] = f->items[f->n - 1 - i];
		f->work[i].arrival = i;
	}
	if (f->plan->nsequence > 0)
		sort_items(f, f->work, f->n);
}

/* Joins what can be joined while more records come, so that a key of a million records does not take the memory of all. */
static void
reduce(PaimonFold *f)
{
	uint32_t	n;
	bool		broken = false;

	order_items(f);
	n = join_chain(f, f->work, f->n, false, &broken);
	for (uint32_t i = 0; i < n && !broken; i++)
		broken = !settle(f, &f->work[i]);
	if (!broken)
	{
		for (uint32_t i = 0; i < n; i++)
		{
			f->items[n - 1 - i] = f->work[i];
			f->items[n - 1 - i].row = NULL;
		}
		f->n = n;
	}
	f->reduce_at = f->n * 2 > FIRST_REDUCE ? f->n * 2 : FIRST_REDUCE;
}

static void
push(PaimonFold *f, PaimonFoldOp op, const PaimonFoldRecord *record)
{
	Item	   *item;

	if (f->n == f->cap)
		f->items = grow(f, f->items, f->n, &f->cap, 0, sizeof(Item));
	item = &f->items[f->n++];
	item->record = *record;
	item->op = op;
	item->row = NULL;
	item->arrival = 0;
}

bool
paimon_fold_add(PaimonFold *f, const PaimonFoldRecord *record)
{
	const PaimonMergePlan *plan = f->plan;
	PaimonFoldOp op = paimon_fold_op(plan, record->kind);

	switch (plan->engine)
	{
		case PAIMON_FOLD_FIRST_ROW:
			f->n = 0;
			push(f, op, record);
			return true;
		case PAIMON_FOLD_DEDUPLICATE:
			if (f->n > 0 &&
				paimon_merge_compare_records(plan, plan->sequence, plan->nsequence, plan->descending, record, &f->items[0].record) <= 0)
				return plan->nsequence > 0;
			f->n = 0;
			push(f, op, record);
			return plan->nsequence > 0;
		default:
			break;
	}
	if (op == PAIMON_OP_NOTHING)
		return true;
	push(f, op, record);
	if (plan->nsequence == 0 && is_absolute(op))
		return false;
	if (f->n >= f->reduce_at)
		reduce(f);
	return true;
}

/* ---------- results ---------- */

/* Applies records, oldest first, to nothing. */
static PaimonFoldCode
apply_all(PaimonFold *f, const Item *items, uint32_t n, PaimonFoldRow *state, int *column)
{
	paimon_row_clear(f->plan, state);
	for (uint32_t i = 0; i < n; i++)
	{
		PaimonFoldCode code = paimon_row_apply(f->plan, state, items[i].op, &items[i].record, f->key, column);

		if (code != PAIMON_FOLD_OK)
			return code;
	}
	return PAIMON_FOLD_OK;
}

PaimonFoldOutcome
paimon_fold_visible(PaimonFold *f, PaimonFoldRecord *row, PaimonFoldError *error)
{
	const PaimonMergePlan *plan = f->plan;
	PaimonFoldRow *state;
	PaimonFoldCode code;

	error->column = -1;
	if (f->n == 0)
		return PAIMON_FOLD_GONE;
	if (plan->engine == PAIMON_FOLD_DEDUPLICATE || plan->engine == PAIMON_FOLD_FIRST_ROW)
	{
		*row = f->items[0].record;
		error->code = PAIMON_FOLD_RETRACT_REFUSED;
		if (f->items[0].op == PAIMON_OP_REFUSED)
			return PAIMON_FOLD_FAILED;
		return f->items[0].op == PAIMON_OP_REMOVE ? PAIMON_FOLD_GONE : PAIMON_FOLD_ROW;
	}
	if (f->n == 1 && !plan->must_fit &&
		(f->items[0].op == PAIMON_OP_REPLACE || (f->items[0].op == PAIMON_OP_ADD && plan->plain_single)))
	{
		*row = f->items[0].record;
		return PAIMON_FOLD_ROW;
	}
	order_items(f);
	state = new_row(f);
	code = apply_all(f, f->work, f->n, state, &error->column);
	if (code == PAIMON_FOLD_OK)
	{
		if (state->op == PAIMON_OP_REMOVE)
			return PAIMON_FOLD_GONE;
		code = paimon_row_settle(plan, state, true, f->key, row, &error->column);
	}
	error->code = code;
	return code == PAIMON_FOLD_OK ? PAIMON_FOLD_ROW : PAIMON_FOLD_FAILED;
}

static void
put_out(PaimonFold *f, uint32_t at, const PaimonFoldRecord *record)
{
	if (at >= f->out_cap)
		f->out = grow(f, f->out, f->out_cap, &f->out_cap, at + 1, sizeof(PaimonFoldRecord));
	f->out[at] = *record;
}

/* Everything as it came. */
static int
give_all(PaimonFold *f, const PaimonFoldRecord **records)
{
	for (uint32_t i = 0; i < f->n; i++)
		put_out(f, i, &f->items[i].record);
	*records = f->out;
	return (int) f->n;
}

/* Records that do nothing where nothing is older. */
static bool
idle_on_nothing(const PaimonFold *f, const Item *item)
{
	return item->op == PAIMON_OP_REMOVE ||
		(item->op == PAIMON_OP_RETRACT && f->plan->engine == PAIMON_FOLD_PARTIAL_UPDATE);
}

/*
 * Nothing is older: a chain that cannot be joined comes to a row all the same, which replaces it.  Not with sequence.field, where late rows
 * still count; not if only retracts are there, which no row can say; and not if it fails.  Returns whether *item holds the row, with op REMOVE if there
 * is none.
 */
static bool
collapse(PaimonFold *f, Item *items, uint32_t n, Item *item)
{
	PaimonFoldRow *state;
	bool		any_row = false;
	int			column;

	if (f->plan->nsequence > 0)
		return false;
	for (uint32_t i = 0; i < n; i++)
		any_row |= items[i].op == PAIMON_OP_ADD || items[i].op == PAIMON_OP_REPLACE;
	if (!any_row)
		return false;
	state = new_row(f);
	if (apply_all(f, items, n, state, &column) != PAIMON_FOLD_OK || state->retracts_only)
		return false;
	item->op = state->op;
	item->row = state;
	if (state->op == PAIMON_OP_REMOVE)
		return true;
	return paimon_row_settle(f->plan, state, false, f->key, &item->record, &column) == PAIMON_FOLD_OK;
}

int
paimon_fold_partial(PaimonFold *f, bool oldest, const PaimonFoldRecord **records)
{
	bool		broken = false;
	uint32_t	first = 0;
	uint32_t	n;
	Item		row;

	if (f->n == 0)
		return 0;
	if (f->n == 1)
		return oldest && idle_on_nothing(f, &f->items[0]) ? 0 : give_all(f, records);
	order_items(f);
	n = join_chain(f, f->work, f->n, false, &broken);
	if (n > EXACT_CHAIN && f->plan->ngroups > 0 && !broken)
		n = join_chain(f, f->work, n, true, &broken);
	for (uint32_t i = 0; i < n && !broken; i++)
		broken = !settle(f, &f->work[i]);
	if (broken)
		return give_all(f, records);
	if (oldest)
	{
		while (first < n && idle_on_nothing(f, &f->work[first]))
			first++;
		if (n - first > 1 && collapse(f, f->work + first, n - first, &row))
		{
			if (row.op == PAIMON_OP_REMOVE)
				return 0;
			put_out(f, 0, &row.record);
			*records = f->out;
			return 1;
		}
	}
	for (uint32_t i = first; i < n; i++)
		put_out(f, n - 1 - i, &f->work[i].record);
	*records = f->out;
	return (int) (n - first);
}
