/*-------------------------------------------------------------------------
 *
 * am_upsert.c
 *	  Statements with ON CONFLICT or MERGE when they start: which of them are plain upserts, and what the others need.
 *
 * INSERT ... ON CONFLICT (key) DO UPDATE SET every column = EXCLUDED.column writes the same rows as a plain INSERT does here, if nobody can tell the
 * difference.  Then the plan is run without its ON CONFLICT: no lock, no look at the old row.  The conditions are in is_blind().  What is left of it is
 * that no key may come twice in one statement (am_conflict.c).
 *
 * This is decided for each execution, since plans are kept and triggers, privileges and isolation levels are not part of them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"

/* What the partitions of a table are, as far as it matters here; remembered for the last table asked for. */
typedef struct Leaves
{
	Oid			parent;			/* Invalid: nothing known */
	bool		ours;			/* some are paimon tables */
	bool		plain;			/* all are, and none has triggers */
	bool		merges;			/* of some the newest row of a key does not decide alone */
	bool		decides;		/* of some it does, or they are not ours */
} Leaves;

static Leaves leaves;
static bool leaves_changed;		/* since leaves_of began to look */

static void
forget_leaves(Datum arg, Oid relid)
{
	leaves.parent = InvalidOid;
	leaves_changed = true;
}

void
paimon_upsert_init(void)
{
	CacheRegisterRelcacheCallback(forget_leaves, (Datum) 0);
}

/* Does the engine of a table say what becomes of a row, not the statement? */
static bool
table_merges(Oid relid)
{
	Relation	rel = try_relation_open(relid, AccessShareLock);
	bool		merges;

	if (rel == NULL)
		return false;
	merges = paimon_table_get(rel, false)->merges;
	relation_close(rel, AccessShareLock);
	return merges;
}

static void
look_at_leaf(Oid relid, Leaves *result)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		return;					/* dropped meanwhile */
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind != RELKIND_PARTITIONED_TABLE)
	{
		bool		ours = form->relkind == RELKIND_RELATION && paimon_is_table(relid);

		result->ours = result->ours || ours;
		result->plain = result->plain && ours && !form->relhastriggers;
		if (ours && table_merges(relid))
			result->merges = true;
		else
			result->decides = true;
	}
	ReleaseSysCache(tuple);
}

static const Leaves *
leaves_of(Oid parent)
{
	Leaves		result = {.parent = parent, .ours = false, .plain = true};
	List	   *children;
	ListCell   *lc;

	if (leaves.parent == parent)
		return &leaves;
	/* Looking at a partition may wait and fail, and what changes meanwhile makes us look again next time. */
	leaves.parent = InvalidOid;
	leaves_changed = false;
	children = find_all_inheritors(parent, NoLock, NULL);
	foreach(lc, children)
		look_at_leaf(lfirst_oid(lc), &result);
	list_free(children);
	leaves = result;
	if (leaves_changed)
		leaves.parent = InvalidOid;
	return &leaves;
}

/* ---- may it be a plain upsert? ---- */

/* Values of the key's column that are equal are the same bytes, so that it does not matter whose stay. */
static bool
equal_is_same(Relation index, Relation rel, int column)
{
	Oid			type = index->rd_opcintype[column];
	Form_pg_attribute att = TupleDescAttr(RelationGetDescr(rel), index->rd_index->indkey.values[column] - 1);
	Oid			proc;

	if (att->atttypid == INT4OID || att->atttypid == INT8OID || att->atttypid == UUIDOID || att->atttypid == INT2OID)
		return true;
	if (type == BPCHAROID && att->atttypmod < 0)
		return false;			/* trailing blanks do not count */
	proc = get_opfamily_proc(index->rd_opfamily[column], type, type, BTEQUALIMAGE_PROC);
	return OidIsValid(proc) &&
		DatumGetBool(OidFunctionCall1Coll(proc, index->rd_indcollation[column], ObjectIdGetDatum(type)));
}

/* The columns that SET gives EXCLUDED's value: by attribute number; NULL if some column gets anything else. */
static Bitmapset *
columns_from_excluded(const ModifyTable *plan)
{
	Bitmapset  *columns = NULL;
	ListCell   *lc;
	ListCell   *lc2;

	forboth(lc, plan->onConflictSet, lc2, plan->onConflictCols)
	{
		const TargetEntry *tle = lfirst_node(TargetEntry, lc);
		const Var  *var = (const Var *) tle->expr;

		if (!IsA(var, Var) || var->varno != INNER_VAR || var->varattno != lfirst_int(lc2))
			return NULL;
		columns = bms_add_member(columns, lfirst_int(lc2));
	}
	return columns;
}

/* Is the row afterwards what was proposed, whatever it was before?  *same_keys: key columns that are equal are the same bytes. */
static bool
sets_whole_row(const ModifyTable *plan, Relation rel, Relation index, bool *same_keys)
{
	Bitmapset  *columns = columns_from_excluded(plan);
	TupleDesc	desc = RelationGetDescr(rel);

	*same_keys = true;
	if (columns == NULL)
		return false;
	for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); i++)
	{
		if (equal_is_same(index, rel, i))
			columns = bms_add_member(columns, index->rd_index->indkey.values[i]);
		else
			*same_keys = false;
	}
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		/* generated ones follow from the others */
		if (!att->attisdropped && att->attgenerated == '\0' && !bms_is_member(i + 1, columns))
			return false;
	}
	return true;
}

static bool
is_validated(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID, ObjectIdGetDatum(constraint));
	bool		validated;

	if (!HeapTupleIsValid(tuple))
		return false;
	validated = ((Form_pg_constraint) GETSTRUCT(tuple))->convalidated;
	ReleaseSysCache(tuple);
	return validated;
}

/*
 * Would the trigger notice that a row is inserted which should have been updated?  Foreign keys do not mind: a row that refers to others is checked
 * when it is inserted as it would be when updated; of one that others refer to, the key stays.
 */
static bool
notices(const Trigger *trigger, bool same_keys)
{
	bool		on_update = TRIGGER_FOR_UPDATE(trigger->tgtype);
	bool		after_insert = TRIGGER_FOR_INSERT(trigger->tgtype) && TRIGGER_FOR_AFTER(trigger->tgtype) &&
		(TRIGGER_FOR_ROW(trigger->tgtype) || trigger->tgnewtable != NULL);

	if (!on_update && !after_insert)
		return false;
	switch (RI_FKey_trigger_type(trigger->tgfoid))
	{
		case RI_TRIGGER_PK:
			return !same_keys;
		case RI_TRIGGER_FK:
			return !is_validated(trigger->tgconstraint);
		default:
			return true;
	}
}

static bool
returns_old(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if ((IsA(node, Var) && paimon_var_is_old((Var *) node)) || paimon_node_is_old(node))
		return true;
	return expression_tree_walker(node, returns_old, context);
}

/* The part of is_blind() that needs the index by which conflicts are found. */
static bool
index_allows(const ModifyTable *plan, ResultRelInfo *rri, bool merges)
{
	Relation	index = index_open(linitial_oid(plan->arbiterIndexes), RowExclusiveLock);
	TriggerDesc *triggers = rri->ri_TrigDesc;
	bool		same_keys;
	bool		allowed;

	allowed = index->rd_index->indimmediate && index->rd_index->indisprimary &&
		sets_whole_row(plan, rri->ri_RelationDesc, index, &same_keys);
	for (int i = 0; allowed && !merges && triggers != NULL && i < triggers->numtriggers; i++)
		allowed = !notices(&triggers->triggers[i], same_keys);
	index_close(index, NoLock);
	return allowed;
}

/*
 * Does the table's merge engine say what becomes of an inserted row?  Then rows that set all columns are for it, as those of a plain INSERT are: what
 * the statement would make of them, a row that is exactly this, is something else.  So it must not depend on triggers or the isolation level.
 */
static bool
engine_decides(Relation rel)
{
	const Leaves *l;

	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return paimon_table_get(rel, false)->merges;
	l = leaves_of(RelationGetRelid(rel));
	if (l->merges && l->decides)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT is not supported for partitioned table \"%s\"", RelationGetRelationName(rel)),
				 errdetail("Some of its partitions merge the rows of a key, others keep the newest one."),
				 errhint("Give all partitions the same merge engine.")));
	return l->merges;
}

/*
 * May the rows be written as a plain INSERT writes them?  Not if
 *
 * - the row would keep anything of the old one, or need not be written (WHERE, DO NOTHING);
 * - row security or a view's check option looks at the old row, or at inserted and updated ones differently; triggers likewise;
 * - RETURNING asks for the old row;
 * - the transaction must fail if the row has changed since it began (REPEATABLE READ and above).
 */
static bool
is_blind(ModifyTableState *mt)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;
	Relation	rel = mt->rootResultRelInfo->ri_RelationDesc;
	bool		merges;

	if (plan->onConflictAction != ONCONFLICT_UPDATE || plan->onConflictWhere != NULL || list_length(plan->arbiterIndexes) != 1)
		return false;
	merges = engine_decides(rel);
	if (!merges && (plan->withCheckOptionLists != NIL || IsolationUsesXactSnapshot()))
		return false;
	if (!merges && rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE && !leaves_of(RelationGetRelid(rel))->plain)
		return false;
	if (!index_allows(plan, mt->rootResultRelInfo, merges))
		return false;
	if (!merges)
		return !returns_old((Node *) plan->returningLists, NULL);
	if (plan->withCheckOptionLists != NIL || returns_old((Node *) plan->returningLists, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ON CONFLICT DO UPDATE of all columns of table \"%s\" is not supported here", RelationGetRelationName(rel)),
				 errdetail("Its merge engine merges such rows without looking at the old ones, which row security, a view's check option or RETURNING asks for."),
				 errhint("Use INSERT without ON CONFLICT.")));
	return true;
}

/* ---- when a statement starts ---- */

static void
keep_rule(ModifyTableState *mt, PaimonInsertRule rule)
{
	EState	   *estate = mt->ps.state;
	Relation	rel = mt->rootResultRelInfo->ri_RelationDesc;
	PaimonUpsert *upsert = MemoryContextAllocZero(estate->es_query_cxt, sizeof(PaimonUpsert));

	upsert->cid = estate->es_output_cid;
	upsert->relid = RelationGetRelid(rel);
	upsert->partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	upsert->rule = rule;
	upsert->cxt = estate->es_query_cxt;
	upsert->owner = CurrentResourceOwner;
	paimon_upsert_register(upsert);
}

/* The plan may be in use elsewhere, or be kept: this execution gets a copy. */
static void
run_as_plain_insert(ModifyTableState *mt)
{
	ModifyTable *plain = palloc(sizeof(ModifyTable));

	memcpy(plain, mt->ps.plan, sizeof(ModifyTable));
	plain->onConflictAction = ONCONFLICT_NONE;
	mt->ps.plan = (Plan *) plain;
	keep_rule(mt, PAIMON_INSERT_ONCE);
}

static bool
merge_inserts(const ModifyTable *plan)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, plan->mergeActionLists)
	{
		foreach(lc2, (List *) lfirst(lc))
		{
			if (lfirst_node(MergeAction, lc2)->commandType == CMD_INSERT)
				return true;
		}
	}
	return false;
}

/* Has the table, or some partition of it, our storage? */
static bool
is_ours(Relation rel)
{
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		return leaves_of(RelationGetRelid(rel))->ours;
	return rel->rd_rel->relkind == RELKIND_RELATION && paimon_is_table(RelationGetRelid(rel));
}

/* ON CONFLICT as core runs it. */
static void
prepare_conflicts(ModifyTableState *mt)
{
	ResultRelInfo *rri = mt->rootResultRelInfo;

	keep_rule(mt, PAIMON_INSERT_CONFLICT);
	if (!PAIMON_CORE_WANTS_BTREE)
		return;
	if (rri->ri_RelationDesc->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		paimon_route_conflicts(mt);
	else
		paimon_open_unique_indexes(rri);
}

/*
 * DELETE in MERGE of a table where deletes have no effect is DO NOTHING: core takes nothing else for a row that was matched and stays.  The plan may be
 * kept: this execution gets copies.
 */
static void
leave_out_deletes(ResultRelInfo *rri)
{
	Relation	rel = rri->ri_RelationDesc;
	const PaimonMergePlan *merge;
	ListCell   *lc;

	if (rel->rd_rel->relkind != RELKIND_RELATION || !paimon_is_table(RelationGetRelid(rel)))
		return;
	merge = paimon_table_get(rel, false)->plan;
	if (merge == NULL || !merge->ignore_delete)
		return;
	for (int i = 0; i < PAIMON_MERGE_LISTS_WITH_ROW; i++)
	{
		foreach(lc, paimon_merge_list(rri, i))
		{
			MergeActionState *state = lfirst_node(MergeActionState, lc);

			if (state->mas_action->commandType == CMD_DELETE)
			{
				MergeAction *nothing = palloc(sizeof(MergeAction));

				memcpy(nothing, state->mas_action, sizeof(MergeAction));
				nothing->commandType = CMD_NOTHING;
				state->mas_action = nothing;
			}
		}
	}
}

/* A part of a plan that changes a table has been started. */
void
paimon_upsert_start(ModifyTableState *mt, int eflags)
{
	const ModifyTable *plan = (const ModifyTable *) mt->ps.plan;
	ResultRelInfo *rri = mt->rootResultRelInfo;

	for (int i = 0; plan->operation == CMD_MERGE && i < mt->mt_nrels; i++)
		leave_out_deletes(&mt->resultRelInfo[i]);
	if (plan->onConflictAction == ONCONFLICT_NONE && !(plan->operation == CMD_MERGE && merge_inserts(plan)))
		return;
	if (!is_ours(rri->ri_RelationDesc))
		return;
	if (plan->operation == CMD_MERGE)
		keep_rule(mt, PAIMON_INSERT_NEW);
	else if (is_blind(mt))
		run_as_plain_insert(mt);
	else if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		prepare_conflicts(mt);
}
