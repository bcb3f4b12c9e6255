/*-------------------------------------------------------------------------
 *
 * merge_fold.h
 *	  The four merge engines over values in memory: what a table's options say about merging (a plan), and the fold of one key's records.
 *
 * Plain C without server headers, so that all of it runs under sanitizers and property tests.  A value is a 64-bit word, as the server's Datum: the
 * value itself for types passed by value, a pointer for the others.  What needs the server's functions (numeric, jsonb, arrays, a user's own
 * function) is reached through PaimonMergeOps.  README.md says what the records mean and why any grouping gives the same result.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_FOLD_H
#define PAIMON_MERGE_FOLD_H

#include "core/core.h"
#include "core/core_group.h"

/* ---------- values ---------- */

typedef struct PaimonCell
{
	uint64_t	word;
	bool		isnull;
} PaimonCell;

/* What the engines need to know of a column's type. */
typedef enum PaimonMergeClass
{
	PAIMON_MC_BOOL = 0,
	PAIMON_MC_INT2,
	PAIMON_MC_INT4,
	PAIMON_MC_INT8,
	PAIMON_MC_FLOAT4,
	PAIMON_MC_FLOAT8,
	PAIMON_MC_NUMERIC,
	PAIMON_MC_TEXT,				/* text, varchar without a length: a plain varlena */
	PAIMON_MC_CHAR,				/* char(n), varchar(n) */
	PAIMON_MC_BYTES,			/* bytea */
	PAIMON_MC_TIME,				/* date, time, timestamp, timestamptz: words that compare as signed numbers */
	PAIMON_MC_ARRAY,			/* array of anything but rows */
	PAIMON_MC_ROWS,				/* array of composite */
	PAIMON_MC_JSON,				/* jsonb: an object where a map, an array where rows are meant */
	PAIMON_MC_OTHER
} PaimonMergeClass;

#define PAIMON_MC_BIT(c)	(1u << (c))

/* How a fold can fail. */
typedef enum PaimonFoldCode
{
	PAIMON_FOLD_OK = 0,
	PAIMON_FOLD_OVERFLOW,		/* the value does not fit its column */
	PAIMON_FOLD_DIVISION,		/* division by zero, or a quotient without end */
	PAIMON_FOLD_NO_RETRACT,		/* the column's function cannot take back */
	PAIMON_FOLD_RETRACT_REFUSED,	/* the engine cannot, under these options */
	PAIMON_FOLD_NULL_KEY,		/* a nested row has NULL in its key, and that is to be an error */
	PAIMON_FOLD_BAD_VALUE		/* not an object, not an array of objects … */
} PaimonFoldCode;

typedef enum PaimonArith
{
	PAIMON_ARITH_ADD,
	PAIMON_ARITH_SUB,
	PAIMON_ARITH_MUL,			/* rounded to the column's scale, if it has one */
	PAIMON_ARITH_DIV
} PaimonArith;

/* Elements of an array, rows of a nested table, or entries of a map. */
typedef struct PaimonList
{
	PaimonCell *e;
	uint32_t	n;
	uint32_t	cap;
	uint32_t   *index;			/* open addressing, element + 1; NULL: none */
	uint32_t	nindex;
	bool		index_by_key;
} PaimonList;

typedef struct PaimonMergeColumn PaimonMergeColumn;

/*
 * What a column's type and options need of the server.  Only those that the column's function uses are ever called; errors they raise by themselves (out of
 * memory, a user's function) pass through the fold, whose memory is the caller's arena.
 */
typedef struct PaimonMergeOps
{
	/* As the type's default btree class; not needed for numbers, booleans and times. */
	int			(*compare) (const PaimonMergeColumn *col, uint64_t a, uint64_t b);

	/* numeric */
	PaimonFoldCode (*arith) (const PaimonMergeColumn *col, PaimonArith op, uint64_t a, uint64_t b, uint64_t *result,
							 const PaimonAllocator *alloc);
	bool		(*fits) (const PaimonMergeColumn *col, uint64_t a);

	/* lists; `by_key`: nested key or map key only, else the whole element; NULL elements go by cell */
	PaimonFoldCode (*unpack) (const PaimonMergeColumn *col, uint64_t value, const PaimonAllocator *alloc, PaimonList *out);
	uint64_t	(*pack) (const PaimonMergeColumn *col, const PaimonList *list, const PaimonAllocator *alloc);
	uint32_t	(*hash) (const PaimonMergeColumn *col, const PaimonCell *e, bool by_key);
	bool		(*equal) (const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b, bool by_key);
	bool		(*key_has_null) (const PaimonMergeColumn *col, const PaimonCell *e);
	/* nested-sequence-field, or the time of a map's entry; NULL is the smallest */
	int			(*order) (const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b);
	bool		(*order_is_null) (const PaimonMergeColumn *col, const PaimonCell *e);
	/* a map's entry that has no value */
	bool		(*is_void) (const PaimonMergeColumn *col, const PaimonCell *e);
	/* the old row with the new one's fields that are not NULL */
	PaimonCell	(*overlay) (const PaimonMergeColumn *col, const PaimonCell *old, const PaimonCell *new, const PaimonAllocator *alloc);

	/* a user's function: f(state, value); NULLs only if it is not strict */
	void		(*call) (const PaimonMergeColumn *col, const PaimonCell *state, const PaimonCell *value, PaimonCell *result,
						 const PaimonAllocator *alloc);
	bool		call_is_strict;
} PaimonMergeOps;

/* ---------- plans ---------- */

typedef enum PaimonFoldEngine
{
	PAIMON_FOLD_DEDUPLICATE = 0,	/* as PaimonMergeEngine */
	PAIMON_FOLD_PARTIAL_UPDATE,
	PAIMON_FOLD_AGGREGATION,
	PAIMON_FOLD_FIRST_ROW
} PaimonFoldEngine;

typedef enum PaimonNullKeys
{
	PAIMON_NULL_KEYS_MERGE = 0,
	PAIMON_NULL_KEYS_IGNORE,
	PAIMON_NULL_KEYS_ERROR
} PaimonNullKeys;

typedef struct PaimonAggFunction PaimonAggFunction;

/* A column, as the caller declares it (down to ops_arg) and as the plan completes it. */
struct PaimonMergeColumn
{
	const char *name;
	PaimonMergeClass cls;
	bool		dropped;
	bool		key;
	bool		not_null;
	bool		comparable;		/* has an order */
	const PaimonMergeOps *ops;
	void	   *ops_arg;

	/* by the plan */
	bool		sequence;		/* of sequence.field */
	bool		ordering;		/* of a sequence group */
	int			group;			/* that it orders or that protects it; -1 */
	const PaimonAggFunction *agg;	/* NULL: plain */
	const char *function;		/* its name; a user's function with its schema, as the server finds it */
	bool		ignore_retract;
	bool		distinct;
	const char *delimiter;
	uint32_t	count_limit;
	PaimonNullKeys null_keys;
	const char *nested_key;		/* as written: names, separated by commas; NULL */
	const char *nested_sequence;
	const char *ts_field;
};

typedef struct PaimonMergeGroup
{
	int			nordering;
	int		   *ordering;		/* columns, in the order of comparison */
	int			ncolumns;
	int		   *columns;		/* protected */
	bool		removes;		/* partial-update.remove-record-on-sequence-group */
} PaimonMergeGroup;

typedef struct PaimonMergePlan
{
	PaimonFoldEngine engine;
	int			ncolumns;
	PaimonMergeColumn *columns;
	int			nsequence;		/* sequence.field */
	int		   *sequence;
	bool		descending;
	int			rowkind;		/* column of rowkind.field; -1 */
	bool		ignore_delete;
	bool		ignore_update_before;
	bool		remove_on_delete;
	int			ngroups;
	PaimonMergeGroup *groups;
	int			nactive;		/* columns that are looked at at all */
	int		   *active;
	int			nfree;			/* columns that follow no group and are no key; under aggregation all that are folded */
	int		   *free;
	int			naggs;			/* columns with a function, wanted or not */
	int		   *aggs;
	bool		any_removes;
	bool		has_groups;		/* the table does, wanted or not */

	/* a single added record is its row as it stands */
	bool		plain_single;
	/* ... if it has no columns of groups that it does not take part in */
	bool		keeps_values;
	/* values that are stored may be too large to be seen: numeric sums and products */
	bool		must_fit;
	/* the newest record alone decides: deduplicate without sequence.field */
	bool		newest_decides;
} PaimonMergePlan;

/* An option as stored: dashed name and value. */
typedef struct PaimonMergeOption
{
	const char *name;
	const char *value;
} PaimonMergeOption;

typedef enum PaimonPlanCode
{
	PAIMON_PLAN_OK = 0,
	PAIMON_PLAN_NO_COLUMN,		/* undefined_column */
	PAIMON_PLAN_BAD_TYPE,		/* datatype_mismatch */
	PAIMON_PLAN_CONFLICT,		/* invalid_parameter_value: options that contradict each other or the table */
	PAIMON_PLAN_BAD_VALUE,		/* invalid_parameter_value: this option's value */
	PAIMON_PLAN_NOT_BUILT,		/* feature_not_supported */
	PAIMON_PLAN_NO_FUNCTION,	/* undefined_function */
	PAIMON_PLAN_DENIED,			/* insufficient_privilege */
	PAIMON_PLAN_NO_MEMORY
} PaimonPlanCode;

typedef struct PaimonPlanError
{
	PaimonPlanCode code;
	int			column;			/* whose type does not suit; -1 */
	char		message[400];
	char		hint[300];
} PaimonPlanError;

/*
 * A user's SQL function as aggregate: fills ops with `call` for column c, and `function` with its full name, or says why not.  Called for names that are
 * not in the table of functions.
 */
typedef PaimonPlanCode (*PaimonFindFunction) (void *arg, PaimonMergeColumn *col, const char *name, PaimonPlanError *error);

/*
 * Compiles the options that concern merging; others are passed over.  The columns are copied; names and values of options must outlive the plan.
 * Returns NULL and fills *error if the options contradict each other or the columns: every validation error of SEMANTICS is made here.
 */
extern PaimonMergePlan *paimon_merge_plan(const PaimonMergeColumn *columns, int ncolumns,
										  const PaimonMergeOption *options, int noptions,
										  PaimonFindFunction find, void *find_arg,
										  const PaimonAllocator *alloc, PaimonPlanError *error);

/*
 * Adds to `wanted` the columns without which the wanted ones cannot be merged; and a plan for those alone, which touches no other column of its
 * records.  Only for what is seen: what is stored needs all columns.
 */
extern void paimon_merge_plan_needs(const PaimonMergePlan *plan, bool *wanted);
extern PaimonMergePlan *paimon_merge_plan_project(const PaimonMergePlan *plan, bool *wanted, const PaimonAllocator *alloc);

/* The name of a column's function, for paimon.aggregation_fields; NULL if it has none. */
extern const char *paimon_merge_function_name(const PaimonMergeColumn *col);

/* ---------- records ---------- */

/* A record: arrays by column.  Values of key columns are not looked at. */
typedef struct PaimonFoldRecord
{
	uint8_t		kind;			/* PaimonRowKind */
	const uint64_t *values;
	const bool *nulls;
} PaimonFoldRecord;

typedef struct PaimonFoldError
{
	PaimonFoldCode code;
	int			column;			/* -1: none in particular */
} PaimonFoldError;

/* What the incoming record of a statement is worth, before it is buffered. */
typedef enum PaimonWriteVerdict
{
	PAIMON_WRITE_TAKE = 0,
	PAIMON_WRITE_DROP,			/* ignore-delete, ignore-update-before */
	PAIMON_WRITE_REFUSE			/* error is filled */
} PaimonWriteVerdict;

extern PaimonWriteVerdict paimon_merge_check_write(const PaimonMergePlan *plan, const PaimonFoldRecord *record, const PaimonAllocator *alloc,
												   PaimonFoldError *error);

/* The kind that a text of rowkind.field says; false if none of the four. */
extern bool paimon_merge_parse_kind(const char *text, size_t len, uint8_t *kind);

/* ---------- the fold ---------- */

typedef struct PaimonFold PaimonFold;

/* State for folding key after key; memory that lasts comes from `alloc`.  NULL: no memory. */
extern PaimonFold *paimon_fold_create(const PaimonMergePlan *plan, const PaimonAllocator *alloc);

/* A new key.  What its fold makes is in `alloc`'s memory, which may be reset at the next begin. */
extern void paimon_fold_begin(PaimonFold *fold, const PaimonAllocator *alloc);

/*
 * The next record of the key, newest first.  What it points to must stay until the fold of the key is over.  False: no older record can change
 * anything, none need be added.
 */
extern bool paimon_fold_add(PaimonFold *fold, const PaimonFoldRecord *record);

/* What is seen. */
typedef enum PaimonFoldOutcome
{
	PAIMON_FOLD_ROW,			/* *row is the row */
	PAIMON_FOLD_GONE,
	PAIMON_FOLD_FAILED			/* *error says why */
} PaimonFoldOutcome;

extern PaimonFoldOutcome paimon_fold_visible(PaimonFold *fold, PaimonFoldRecord *row, PaimonFoldError *error);

/*
 * What is stored for the key: *records, newest first; 0 = nothing.  oldest: no older record of the key exists anywhere, markers
 * are of no use.  Never fails: what cannot be folded is kept apart.
 */
extern int	paimon_fold_partial(PaimonFold *fold, bool oldest, const PaimonFoldRecord **records);

#endif							/* PAIMON_MERGE_FOLD_H */
