/*-------------------------------------------------------------------------
 *
 * merge_internal.h
 *	  Accumulators and aggregate functions, as the files of the fold share them.  Private to merge/; no server headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_INTERNAL_H
#define PAIMON_MERGE_INTERNAL_H

#include "merge/merge_fold.h"

/* Memory from the arenas is aligned to 8 bytes only. */
typedef __int128 PaimonWide __attribute__((aligned(8)));

typedef enum PaimonAccForm
{
	PAIMON_ACC_WORD = 0,
	PAIMON_ACC_WIDE,			/* sum or product of integers, wider than the column */
	PAIMON_ACC_TEXT,			/* text that grows */
	PAIMON_ACC_LIST				/* elements */
} PaimonAccForm;

typedef struct PaimonGrowingText
{
	uint8_t    *data;
	size_t		len;
	size_t		cap;
} PaimonGrowingText;

/* The value of one column while it is being folded. */
typedef struct PaimonAcc
{
	uint64_t	word;
	bool		isnull;
	uint8_t		form;			/* PaimonAccForm; WORD if isnull */
	bool		beyond;			/* WIDE: too large even for that */
	union
	{
		PaimonWide	wide;
		PaimonGrowingText *text;
		PaimonList *list;
	}			u;
} PaimonAcc;

/* A column at work. */
typedef struct PaimonAggContext
{
	const PaimonMergeColumn *col;
	const PaimonAllocator *alloc;
} PaimonAggContext;

typedef enum PaimonAggId
{
	PAIMON_AGG_SUM,
	PAIMON_AGG_PRODUCT,
	PAIMON_AGG_MAX,
	PAIMON_AGG_MIN,
	PAIMON_AGG_LAST_VALUE,
	PAIMON_AGG_LAST_NON_NULL,
	PAIMON_AGG_FIRST_VALUE,
	PAIMON_AGG_FIRST_NON_NULL,
	PAIMON_AGG_LISTAGG,
	PAIMON_AGG_BOOL_AND,
	PAIMON_AGG_BOOL_OR,
	PAIMON_AGG_COLLECT,
	PAIMON_AGG_MERGE_MAP,
	PAIMON_AGG_MERGE_MAP_KEYTIME,
	PAIMON_AGG_NESTED_UPDATE,
	PAIMON_AGG_NESTED_PARTIAL_UPDATE,
	PAIMON_AGG_USER
} PaimonAggId;

/*
 * Two neighbouring records of one column: older is an add or a retract (first letter), and so is newer (second letter).  The pair AR or RA joined is
 * an add.
 */
typedef enum PaimonJoin
{
	PAIMON_JOIN_AA,
	PAIMON_JOIN_AR,
	PAIMON_JOIN_RA,
	PAIMON_JOIN_RR
} PaimonJoin;

/*
 * An aggregate function.
 *
 * fold: acc = f(acc, in); `first`: no add has met this column yet.  fold_under: acc = f(in, acc), for a row that is older than what is
 * stored; NULL: by swapping.  retract: NULL if there is none.
 *
 * can_join: whether the pair can be one record that does the same to whatever is older, also to nothing; join then does it, in place of older.
 */
struct PaimonAggFunction
{
	const char *name;
	PaimonAggId id;
	uint32_t	classes;		/* bits of PaimonMergeClass; 0 = all */
	const char *types;			/* the same for messages */
	bool		order_free;		/* AA joined does the same wherever the pair stands among the others by order */
	bool		null_is_nothing;	/* adding NULL changes nothing */
	PaimonFoldCode (*fold) (const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in, bool first);
	PaimonFoldCode (*fold_under) (const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in);
	PaimonFoldCode (*retract) (const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in);
	bool		(*can_join) (const PaimonAggContext *cx, PaimonJoin how, const PaimonAcc *older, const PaimonCell *newer);
	void		(*join) (const PaimonAggContext *cx, PaimonJoin how, PaimonAcc *older, const PaimonCell *newer);
};

/* By name or alias; NULL if there is none. */
extern const PaimonAggFunction *paimon_agg_find(const char *name);
extern const PaimonAggFunction paimon_agg_user;
extern const PaimonAggFunction paimon_agg_last_value;
extern const PaimonAggFunction paimon_agg_last_non_null;

/* The functions, by file. */
extern const PaimonAggFunction paimon_agg_sum;
extern const PaimonAggFunction paimon_agg_product;
extern const PaimonAggFunction paimon_agg_max;
extern const PaimonAggFunction paimon_agg_min;
extern const PaimonAggFunction paimon_agg_bool_and;
extern const PaimonAggFunction paimon_agg_bool_or;
extern const PaimonAggFunction paimon_agg_first_value;
extern const PaimonAggFunction paimon_agg_first_non_null;
extern const PaimonAggFunction paimon_agg_listagg;
extern const PaimonAggFunction paimon_agg_collect;
extern const PaimonAggFunction paimon_agg_merge_map;
extern const PaimonAggFunction paimon_agg_merge_map_keytime;
extern const PaimonAggFunction paimon_agg_nested_update;
extern const PaimonAggFunction paimon_agg_nested_partial_update;

/* f(in, acc), by fold_under or by swapping. */
extern PaimonFoldCode paimon_agg_under(const PaimonAggContext *cx, PaimonAcc *acc, const PaimonCell *in);

/* Makes a plain word of an accumulator.  OVERFLOW if it does not fit the column; `visible`: numerics must fit too. */
extern PaimonFoldCode paimon_acc_settle(const PaimonAggContext *cx, PaimonAcc *acc, bool visible);

/* The value as it is now, without giving up what the accumulator has; only for what always fits (not WIDE). */
extern PaimonCell paimon_acc_cell(const PaimonAggContext *cx, const PaimonAcc *acc);

static inline void
paimon_acc_set(PaimonAcc *acc, const PaimonCell *cell)
{
	acc->word = cell->isnull ? 0 : cell->word;
	acc->isnull = cell->isnull;
	acc->form = PAIMON_ACC_WORD;
	acc->beyond = false;
}

static inline void
paimon_acc_clear(PaimonAcc *acc)
{
	acc->word = 0;
	acc->isnull = true;
	acc->form = PAIMON_ACC_WORD;
	acc->beyond = false;
}

/* ---- merge_compare.c ---- */

/* Order of two values of a column; neither is NULL. */
extern int	paimon_merge_compare(const PaimonMergeColumn *col, uint64_t a, uint64_t b);

/* Order of two rows by some columns, a to b; NULL is the smallest, also if descending. */
extern int	paimon_merge_compare_records(const PaimonMergePlan *plan, const int *columns, int n, bool descending,
										 const PaimonFoldRecord *a, const PaimonFoldRecord *b);
extern int	paimon_merge_compare_row(const PaimonMergePlan *plan, const int *columns, int n, const PaimonFoldRecord *a, const PaimonAcc *b);

/* ---- text, merge_agg_text.c ---- */

extern uint64_t paimon_merge_text_pack(const PaimonGrowingText *text, const PaimonAllocator *alloc);

/* ---- lists, merge_list.c ---- */

extern PaimonFoldCode paimon_list_unpack(const PaimonAggContext *cx, const PaimonCell *in, PaimonList *out);
extern void paimon_list_add(const PaimonAggContext *cx, PaimonList *list, const PaimonCell *e);
extern void paimon_list_remove(PaimonList *list, uint32_t at);
/* The place of an element equal to e (by_key: with its key) or -1. */
extern int64_t paimon_list_find(const PaimonAggContext *cx, PaimonList *list, const PaimonCell *e, bool by_key);
/* The accumulator's elements, in a list of its own; a NULL becomes an empty one. */
extern PaimonFoldCode paimon_acc_list(const PaimonAggContext *cx, PaimonAcc *acc, PaimonList **list);

/* ---- rows: merge_apply.c, merge_join.c ---- */

/* What a record does. */
typedef enum PaimonFoldOp
{
	PAIMON_OP_NOTHING = 0,
	PAIMON_OP_ADD,				/* merged by the engine with what is older */
	PAIMON_OP_RETRACT,			/* taken back from it */
	PAIMON_OP_REPLACE,			/* the row is exactly this */
	PAIMON_OP_REMOVE,			/* there is no row */
	PAIMON_OP_REFUSED			/* a retract that the table's options do not allow */
} PaimonFoldOp;

extern PaimonFoldOp paimon_fold_op(const PaimonMergePlan *plan, uint8_t kind);

/* A row at work: a record's columns as accumulators.  As a state, op is REPLACE or REMOVE. */
typedef struct PaimonFoldRow
{
	PaimonFoldOp op;
	uint8_t		kind;
	bool		retracts_only;	/* a state that no add has met */
	PaimonAcc  *cols;
	uint64_t   *values;			/* for the record made of it */
	bool	   *nulls;
} PaimonFoldRow;

extern void paimon_row_from_record(const PaimonMergePlan *plan, PaimonFoldRow *row, PaimonFoldOp op, const PaimonFoldRecord *record);
extern void paimon_row_clear(const PaimonMergePlan *plan, PaimonFoldRow *row);

/* Makes words of the row's accumulators and fills *record, which points into the row. */
extern PaimonFoldCode paimon_row_settle(const PaimonMergePlan *plan, PaimonFoldRow *row, bool visible, const PaimonAllocator *alloc,
										PaimonFoldRecord *record, int *column);

/* state = record applied to state.  On failure the state is useless. */
extern PaimonFoldCode paimon_row_apply(const PaimonMergePlan *plan, PaimonFoldRow *state, PaimonFoldOp op, const PaimonFoldRecord *record,
									   const PaimonAllocator *alloc, int *column);

/*
 * Puts the newer record into the older one, so that the result does what both did.  False, and nothing changed, if no record can say that.
 * loose: rows late by a group's order may come out otherwise (as A.8 allows).  *broken: an accumulator failed; older is useless.
 */
extern bool paimon_row_join(const PaimonMergePlan *plan, PaimonFoldRow *older, PaimonFoldOp op, const PaimonFoldRecord *newer, bool loose,
							const PaimonAllocator *alloc, bool *broken);

static inline PaimonCell
paimon_record_cell(const PaimonFoldRecord *record, int c)
{
	PaimonCell	cell = {.word = record->values[c], .isnull = record->nulls[c]};

	return cell;
}

/* Does the record take part in the group: is any ordering column set? */
static inline bool
paimon_group_active(const PaimonMergeGroup *group, const bool *nulls)
{
	for (int i = 0; i < group->nordering; i++)
	{
		if (!nulls[group->ordering[i]])
			return true;
	}
	return false;
}

static inline bool
paimon_group_active_row(const PaimonMergeGroup *group, const PaimonAcc *cols)
{
	for (int i = 0; i < group->nordering; i++)
	{
		if (!cols[group->ordering[i]].isnull)
			return true;
	}
	return false;
}

#endif							/* PAIMON_MERGE_INTERNAL_H */
