/*-------------------------------------------------------------------------
 *
 * merge_server.h
 *	  The merge functions in the server: plans of tables, their errors, and the types' own functions behind them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MERGE_SERVER_H
#define PAIMON_MERGE_SERVER_H

#include "postgres.h"
#include "compat.h"
#include "access/tupdesc.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "utils/numeric.h"
#include "utils/rel.h"
#include "utils/typcache.h"

#include "merge/merge_fold.h"

/*
 * The plan of a table's options (list of PaimonOptionItem), in CurrentMemoryContext.  key[c]: column c is part of the primary key.  `owner` is whose
 * functions are called.  Raises every error of configuration, naming `relname`.
 */
extern PaimonMergePlan *paimon_merge_plan_table(const char *relname, TupleDesc tupdesc, const bool *key, Oid owner, List *items);

/*
 * The plan of an open table, from its options in the catalog, in CurrentMemoryContext; NULL if none of them says anything of merging: deduplicate.  Looks
 * into catalogs: to be called before a merge that may hold no snapshot.
 */
struct PaimonRowDesc;
extern PaimonMergePlan *paimon_merge_plan_relation(Relation rel, const struct PaimonRowDesc *desc);

/* May the rows be merged in parallel workers, and while there are any?  Not by users' functions that are not declared so. */
extern bool paimon_merge_parallel_safe(const PaimonMergePlan *plan);

/* Memory for plans and folds: of a memory context. */
extern void paimon_merge_allocator(MemoryContext cxt, PaimonAllocator *alloc);

/* Raises the error of a fold or of a record that was refused.  key: text for the message, or NULL. */
extern void paimon_merge_report(const char *relname, const PaimonMergePlan *plan, const PaimonFoldError *error, const char *key)
			pg_attribute_noreturn();

/* ---- within merge/: a column's type, as PaimonMergeColumn.ops_arg ---- */

typedef struct PaimonMergeType
{
	MemoryContext cxt;
	Oid			type;			/* domains resolved */
	int32		typmod;
	Oid			collation;
	TypeCacheEntry *cache;

	/* numeric(p,s) */
	bool		scaled;
	int			scale;
	Numeric		limit;			/* 10 ^ (p - s) */

	/* arrays */
	Oid			elemtype;
	TypeCacheEntry *elem;
	int16		elemlen;
	bool		elembyval;
	char		elemalign;

	/* rows of arrays and objects of jsonb: fields by number or name */
	TupleDesc	rowdesc;
	int			nkeys;
	AttrNumber *keys;
	char	  **keynames;
	int			norder;
	AttrNumber *order;
	char	  **ordernames;

	/* a user's function */
	FmgrInfo	function;
	Oid			owner;
	bool		parallel_safe;
	FmgrInfo	fit;			/* brings its result to the column's length or precision; fn_oid invalid: there is none */
} PaimonMergeType;

static inline const PaimonMergeType *
paimon_merge_type(const PaimonMergeColumn *col)
{
	return (const PaimonMergeType *) col->ops_arg;
}

static inline MemoryContext
paimon_merge_enter(const PaimonAllocator *alloc)
{
	return MemoryContextSwitchTo((MemoryContext) alloc->arg);
}

/* merge_types.c: what the engines need to know of a type, in CurrentMemoryContext. */
extern void paimon_merge_type_init(PaimonMergeColumn *col, Form_pg_attribute att);
extern int	paimon_merge_type_compare(const PaimonMergeColumn *col, uint64_t a, uint64_t b);

/* merge_arrays.c, merge_json.c */
extern const PaimonMergeOps paimon_merge_array_ops;
extern const PaimonMergeOps paimon_merge_json_ops;
/* The fields that nested-key and the like name; raises an error if one does not exist or cannot be used so. */
extern void paimon_merge_array_fields(const char *relname, PaimonMergeColumn *col);
extern void paimon_merge_json_fields(PaimonMergeColumn *col);
/* Names of a comma-separated list. */
extern char **paimon_merge_names(const char *list, int *n);

/* merge_user.c: the full name of a user's function for a type; NULL: there is none, or the name is that of a built-in one */
extern char *paimon_merge_full_name(Oid type, const char *name);

/* a user's function as aggregate function of a column, or why not */
extern PaimonPlanCode paimon_merge_find_function(void *owner, PaimonMergeColumn *col, const char *name, PaimonPlanError *error);

#endif							/* PAIMON_MERGE_SERVER_H */
