/*-------------------------------------------------------------------------
 *
 * ddl_alter.c
 *	  ALTER TABLE of paimon tables, and to and from them.
 *
 * Core checks all stored options at any SET or RESET, and knows none of ours.  So its
 * own SET and RESET commands run as a statement of their own, with our options
 * taken out of the catalog; then ours are written, and the rest runs.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/tablecmds.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ddl/ddl_internal.h"

/* What the commands of one ALTER TABLE come to. */
typedef struct AlterPlan
{
	Oid			relid;
	const char *relname;
	char		relkind;
	bool		was_paimon;
	bool		will_be_paimon;
	bool		am_changes;
	List	   *items;			/* our options as they will be */
	List	   *core_sets;		/* commands: core's SET and RESET */
	List	   *rest;			/* commands: all others */
} AlterPlan;

static bool
is_set(AlterTableCmd *cmd)
{
	return cmd->subtype == AT_SetRelOptions || cmd->subtype == AT_ResetRelOptions;
}

static bool
has_command(AlterTableStmt *stmt, AlterTableType type)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		if (((AlterTableCmd *) lfirst(lc))->subtype == type)
			return true;
	}
	return false;
}

/* Our part of a RESET list is applied to `items`; the rest is returned. */
static List *
apply_reset(const char *relname, List *defs, List **items)
{
	List	   *core = NIL;
	ListCell   *lc;

	foreach(lc, defs)
	{
		DefElem    *def = lfirst(lc);
		const char *name = def->defname;
		PaimonOptionItem *item;

		if (def->defnamespace != NULL ? strcmp(def->defnamespace, "toast") == 0 : paimon_option_is_core(name))
		{
			core = lappend(core, def);
			continue;
		}
		if (def->arg != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_SYNTAX_ERROR),
					 errmsg("RESET of option \"%s\" of paimon table \"%s\" must not include a value", name, relname)));
		if (def->defnamespace != NULL)
			name = psprintf("%s.%s", def->defnamespace, def->defname);
		name = paimon_option_check_name(relname, name, *items);
		if (strcmp(name, PAIMON_MARK_OPTION) == 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("option \"%s\" of paimon table \"%s\" cannot be reset", name, relname)));
		item = paimon_option_item(*items, name);
		if (item != NULL)
			*items = list_delete_ptr(list_copy(*items), item);
	}
	return core;
}

/* SET beside SET ACCESS METHOD to another one.  What no option of ours has for a name is core's to check. */
static void
refuse_options(const char *relname, List *defs)
{
	ListCell   *lc;

	foreach(lc, defs)
	{
		const DefElem *def = lfirst(lc);

		if (def->defnamespace == NULL && !paimon_option_is_core(def->defname) && paimon_option_is_known(def->defname))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("cannot set option \"%s\" of table \"%s\" together with its access method", def->defname, relname),
					 errdetail("Only tables using access method paimon have that option.")));
	}
}

/* Sort the commands; work out the options after them. */
static void
plan_commands(AlterPlan *plan, AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);
		List	   *defs = (List *) cmd->def;
		List	   *items;
		List	   *core;

		if (!is_set(cmd))
		{
			plan->rest = lappend(plan->rest, cmd);
			continue;
		}
		if (cmd->subtype == AT_ResetRelOptions)
			core = apply_reset(plan->relname, defs, &plan->items);
		else if (plan->will_be_paimon)
		{
			paimon_ddl_split_defs(plan->relname, defs, &items, &core);
			paimon_ddl_qualify_functions(plan->relid, items);
			plan->items = paimon_ddl_merge_items(plan->items, items);
		}
		else
		{
			refuse_options(plan->relname, defs);
			core = defs;
		}
		if (core != NIL)
		{
			cmd = copyObject(cmd);
			cmd->def = (Node *) core;
			plan->core_sets = lappend(plan->core_sets, cmd);
		}
	}
}

/*
 * Options that shape stored data change only while there is none; then the
 * storage is made anew.  Returns whether that is to be done.  A table without a key is not
 * laid out by any option: its rows will be when it is given one.
 */
static bool
check_fixed_options(AlterPlan *plan, AlterTableStmt *stmt, List *before)
{
	List	   *after = paimon_ddl_items_of_rest(plan->relid, stmt, plan->items);
	List	   *names;
	bool		reset = false;
	ListCell   *lc;

	if (!plan->was_paimon || !plan->will_be_paimon || plan->relkind == RELKIND_PARTITIONED_TABLE ||
		!OidIsValid(paimon_ddl_primary_key(plan->relid)))
		return false;
	before = paimon_ddl_items_of_rest(plan->relid, stmt, before);
	names = list_concat_copy(before, after);
	foreach(lc, names)
	{
		const char *name = ((PaimonOptionItem *) lfirst(lc))->name;

		if (!paimon_option_fixed_when_filled(name) || paimon_option_same(before, after, name))
			continue;
		if (!reset)
			LockRelationOid(plan->relid, AccessExclusiveLock);
		if (!reset && !paimon_ddl_is_empty(plan->relid))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot change option \"%s\" of paimon table \"%s\" because it holds rows",
							name, plan->relname),
					 errdetail("Rows that are stored already were laid out by its present value."),
					 errhint("Create a table with the new value and copy the rows, or TRUNCATE this one first.")));
		reset = true;
	}
	return reset;
}

/* ---- dropping the primary key ---- */

/* Is the column part of the table's primary key index? */
static bool
column_in_key(Oid relid, const char *column)
{
	Oid			keyid = paimon_ddl_primary_key(relid);
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(keyid));
	AttrNumber	attno = get_attnum(relid, column);
	bool		found = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	for (int i = 0; i < ((Form_pg_index) GETSTRUCT(tuple))->indnatts; i++)
		found |= ((Form_pg_index) GETSTRUCT(tuple))->indkey.values[i] == attno;
	ReleaseSysCache(tuple);
	return found;
}

static bool
drops_key(Oid relid, AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_DropColumn && column_in_key(relid, cmd->name))
			return true;
		if (cmd->subtype == AT_DropConstraint)
		{
			Oid			conid = get_relation_constraint_oid(relid, cmd->name, true);

			if (OidIsValid(conid) && get_constraint_index(conid) == paimon_ddl_primary_key(relid))
				return true;
		}
	}
	return false;
}

/*
 * The key's order is how all rows are stored: it goes only while there are none.  A
 * partitioned table's key goes with those of its partitions.
 */
static void
prepare_drop_key(DdlFrame *frame, Oid relid, AlterTableStmt *stmt)
{
	bool		tree = get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE;
	List	   *all = find_all_inheritors(relid, AccessExclusiveLock, NULL);
	ListCell   *lc;

	foreach(lc, all)
	{
		Oid			member = lfirst_oid(lc);
		char		relkind = get_rel_relkind(member);

		if ((relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW) || !paimon_is_table(member))
			continue;
		if (!tree && member != relid && !drops_key(member, stmt))
			continue;
		if (!paimon_ddl_is_empty(member))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot drop the primary key of paimon table \"%s\" because it holds rows",
							get_rel_name(member)),
					 errhint("Create a table without the key and copy the rows, or TRUNCATE this one first.")));
		paimon_ddl_remember(&frame->may_lose_key, member);
	}
}

/* ---- change of access method ---- */

static void
check_indexes_for_paimon(AlterPlan *plan)
{
	Relation	rel = table_open(plan->relid, NoLock);
	Oid			keyid = paimon_ddl_primary_key(plan->relid);
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		if (lfirst_oid(lc) == keyid && paimon_ddl_relam(keyid) == BTREE_AM_OID)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot change access method of table \"%s\" to paimon because of its index \"%s\"",
						plan->relname, get_rel_name(lfirst_oid(lc))),
				 errdetail("Tables using access method paimon do not support indexes other than the primary key."),
				 errhint("Drop the index first.")));
	}
	table_close(rel, NoLock);
}

static void
check_partition_mix(AlterPlan *plan)
{
	if (get_rel_relispartition(plan->relid))
		paimon_ddl_new_partition(linitial_oid(get_partition_ancestors(plan->relid)), plan->relname,
								 plan->will_be_paimon);
	if (plan->relkind == RELKIND_PARTITIONED_TABLE && has_subclass(plan->relid) &&
		OidIsValid(paimon_ddl_primary_key(plan->relid)))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot change access method of partitioned table \"%s\" because it has a primary key and partitions",
						plan->relname)));
}

/*
 * To paimon: the key is flipped before the rewrite, so that it is built as ours.  To heap:
 * the old rows are read by way of the key as it is, and the hook on the swap of the two
 * storages flips it.
 */
static void
prepare_am_change(DdlFrame *frame, AlterPlan *plan, AlterTableStmt *stmt)
{
	Oid			keyid = paimon_ddl_primary_key(plan->relid);

	LockRelationOid(plan->relid, AccessExclusiveLock);
	check_partition_mix(plan);
	frame->am_table = plan->relid;
	frame->am_to_paimon = plan->will_be_paimon;

	if (plan->relkind == RELKIND_PARTITIONED_TABLE)
	{
		/* Core records this dependency itself where there is an access method, and would stumble over a second one. */
		if (!OidIsValid(paimon_ddl_relam(plan->relid)))
			(void) deleteDependencyRecordsForSpecific(RelationRelationId, plan->relid, DEPENDENCY_NORMAL,
													  AccessMethodRelationId, paimon_table_am_oid());
		CommandCounterIncrement();
		if (!plan->will_be_paimon && OidIsValid(keyid))
			paimon_ddl_flip(keyid, false);
		return;
	}
	if (!plan->will_be_paimon)
		return;

	check_indexes_for_paimon(plan);
	paimon_ddl_refuse_published(plan->relid);
	paimon_ddl_check_reserved(plan->relid);
	if (OidIsValid(keyid) && !drops_key(plan->relid, stmt))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(keyid));
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		paimon_ddl_check_key(plan->relid, index->indkey.values, index->indnkeyatts);
		ReleaseSysCache(tuple);
		LockRelationOid(keyid, AccessExclusiveLock);
		paimon_ddl_flip(keyid, true);
	}
}

/* ---- the statement ---- */

static AlterTableStmt *
with_commands(AlterTableStmt *stmt, List *cmds)
{
	AlterTableStmt *copy = makeNode(AlterTableStmt);

	memcpy(copy, stmt, sizeof(AlterTableStmt));
	copy->cmds = cmds;
	return copyObject(copy);
}

static bool
same_items(List *a, List *b)
{
	ListCell   *la,
			   *lb;

	if (list_length(a) != list_length(b))
		return false;
	forboth(la, a, lb, b)
	{
		PaimonOptionItem *ia = lfirst(la);
		PaimonOptionItem *ib = lfirst(lb);

		if (strcmp(ia->name, ib->name) != 0 || strcmp(ia->value, ib->value) != 0)
			return false;
	}
	return true;
}

/*
 * A key that goes takes the storage's order with it, before another comes in the same
 * command: core, too, drops before it adds.
 */
static void
run_drops(DdlFrame *frame, AlterPlan *plan, AlterTableStmt *stmt)
{
	List	   *drops = NIL;
	List	   *others = NIL;
	ListCell   *lc;

	foreach(lc, plan->rest)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_DropConstraint || cmd->subtype == AT_DropColumn)
			drops = lappend(drops, cmd);
		else
			others = lappend(others, cmd);
	}
	if (others == NIL)
		return;
	paimon_ddl_run(frame, (Node *) with_commands(stmt, drops), PROCESS_UTILITY_SUBCOMMAND);
	CommandCounterIncrement();
	paimon_ddl_finish_lost_keys(frame);
	plan->rest = others;
}

/*
 * A command that changes nothing, for a statement of which core would see none: event triggers are told of statements that have commands.  Nobody has an
 * option of that name, so there is nothing to reset and no lock is asked for but the weakest.
 */
static AlterTableCmd *
empty_command(void)
{
	AlterTableCmd *cmd = makeNode(AlterTableCmd);

	cmd->subtype = AT_ResetRelOptions;
	cmd->def = (Node *) list_make1(makeDefElem(pstrdup("paimon"), NULL, -1));
	return cmd;
}

/* A change of a column's type stumbles over dependencies that core does not know; check_tree() records them anew. */
static void
forget_functions(Oid relid, AlterTableStmt *stmt)
{
	List	   *tree = stmt->relation->inh ? find_all_inheritors(relid, AccessExclusiveLock, NULL) : list_make1_oid(relid);
	ListCell   *lc;

	foreach(lc, tree)
	{
		if (paimon_is_table(lfirst_oid(lc)))
			paimon_ddl_forget_functions(lfirst_oid(lc));
	}
	CommandCounterIncrement();
}

/*
 * What core has done to the columns of the table it has done, under the same lock, to those of tables that inherit from it; but it goes no further down than
 * to tables that had the column already.
 */
static void
check_tree(Oid relid, AlterTableStmt *stmt)
{
	List	   *tree = list_make1_oid(relid);
	ListCell   *lc;

	if (stmt->relation->inh && (has_command(stmt, AT_AddColumn) || has_command(stmt, AT_AlterColumnType)))
		tree = find_all_inheritors(relid, AccessShareLock, NULL);
	foreach(lc, tree)
	{
		if (lfirst_oid(lc) != relid && !paimon_is_table(lfirst_oid(lc)))
			continue;
		paimon_ddl_check_table(lfirst_oid(lc));
		paimon_ddl_check_added(lfirst_oid(lc), stmt);
	}
}

/* Runs a statement that makes the table one of another access method. */
static void
run_leaving(DdlFrame *frame, Oid relid, AlterTableStmt *stmt)
{
	Oid			outer = paimon_becomes_heap;

	PG_TRY();
	{
		paimon_becomes_heap = relid;
		paimon_ddl_run(frame, (Node *) stmt, frame->context);
	}
	PG_FINALLY();
	{
		paimon_becomes_heap = outer;
	}
	PG_END_TRY();
}

static void
run_plan(DdlFrame *frame, AlterPlan *plan, AlterTableStmt *stmt)
{
	List	   *items = paimon_ddl_read_items(plan->relid, NULL);
	List	   *before = items;
	bool		reset = check_fixed_options(plan, stmt, before);
	bool		whole = plan->rest == NIL;

	if (whole && plan->core_sets == NIL)
		plan->core_sets = list_make1(empty_command());
	if (plan->core_sets != NIL)
	{
		if (before != NIL)
			paimon_ddl_write_items(plan->relid, NIL);
		paimon_ddl_run(frame, (Node *) with_commands(stmt, plan->core_sets),
					   whole ? frame->context : PROCESS_UTILITY_SUBCOMMAND);
		CommandCounterIncrement();
		before = NIL;
	}
	/* A table that stops being ours keeps its options while its old rows are read: they say where those are. */
	if (!plan->will_be_paimon)
		plan->items = items;
	if (!same_items(before, plan->items))
		paimon_ddl_write_items(plan->relid, plan->items);
	if (plan->am_changes)
		prepare_am_change(frame, plan, stmt);
	if (reset)
		paimon_ddl_reset_storage(plan->relid);
	if (frame->may_lose_key != NIL)
		run_drops(frame, plan, stmt);
	if (has_command(stmt, AT_AlterColumnType))
		forget_functions(plan->relid, stmt);
	if (!whole && plan->am_changes && !plan->will_be_paimon)
		run_leaving(frame, plan->relid, with_commands(stmt, plan->rest));
	else if (!whole)
		paimon_ddl_run(frame, (Node *) with_commands(stmt, plan->rest), frame->context);
	CommandCounterIncrement();

	if (!plan->will_be_paimon)
	{
		paimon_ddl_remove_items(plan->relid);
		paimon_ddl_forget_functions(plan->relid);
	}
	else
		check_tree(plan->relid, stmt);
	if (plan->am_changes && plan->will_be_paimon)
		paimon_ddl_warn_published(plan->relid, InvalidOid);
}

/* The partition of ATTACH PARTITION must suit its new parent. */
static void
check_attach(AlterTableStmt *stmt, Oid parentid)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);
		PartitionCmd *part = (PartitionCmd *) cmd->def;
		Oid			leafid;

		if (cmd->subtype != AT_AttachPartition)
			continue;
		leafid = RangeVarGetRelid(part->name, NoLock, true);
		if (OidIsValid(leafid) && get_rel_relkind(leafid) == RELKIND_RELATION && paimon_is_table(leafid))
			paimon_ddl_warn_published(leafid, parentid);
		if (!OidIsValid(leafid) || get_rel_relkind(leafid) == RELKIND_FOREIGN_TABLE ||
			paimon_is_table(leafid) == paimon_is_table(parentid) ||
			!paimon_ddl_has_index(parentid))
			continue;
		/* Two of a kind, or a parent that both kinds suit, need no more than core's lock; making the parent ours does. */
		LockRelationOid(parentid, AccessExclusiveLock);
		paimon_ddl_new_partition(parentid, get_rel_name(leafid), paimon_is_table(leafid));
	}
}

static bool
is_primary(Node *node)
{
	return node != NULL && IsA(node, Constraint) && ((Constraint *) node)->contype == CONSTR_PRIMARY;
}

/* Does a command add a primary key, by itself or with a column? */
static bool
adds_key(AlterTableCmd *cmd)
{
	ListCell   *lc;

	if (cmd->subtype == AT_AddConstraint)
		return is_primary(cmd->def);
	if (cmd->subtype != AT_AddColumn)
		return false;
	foreach(lc, ((ColumnDef *) cmd->def)->constraints)
	{
		if (is_primary(lfirst(lc)))
			return true;
	}
	return false;
}

/* Does the statement make core copy a key to a partition that is partitioned itself? */
static bool
copies_key_down(AlterTableStmt *stmt, Oid relid)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);
		Oid			leafid;

		if (cmd->subtype == AT_AttachPartition)
		{
			leafid = RangeVarGetRelid(((PartitionCmd *) cmd->def)->name, NoLock, true);
			if (OidIsValid(leafid) && get_rel_relkind(leafid) == RELKIND_PARTITIONED_TABLE &&
				OidIsValid(paimon_ddl_primary_key(relid)))
				return true;
		}
		if ((adds_key(cmd) || cmd->subtype == AT_AlterColumnType) && paimon_ddl_has_partitioned_child(relid))
			return true;
	}
	return false;
}

/* Their keys wait for the statement's end to be flipped, those of an attached tree too. */
static void
delay_parents(DdlFrame *frame, AlterTableStmt *stmt, Oid relid)
{
	ListCell   *lc;

	if (!copies_key_down(stmt, relid))
		return;
	paimon_ddl_late_parents(frame, relid);
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_AttachPartition)
			paimon_ddl_late_parents(frame, RangeVarGetRelid(((PartitionCmd *) cmd->def)->name, NoLock, false));
	}
}

static void
find_am_change(AlterPlan *plan, AlterTableStmt *stmt)
{
	ListCell   *lc;

	plan->will_be_paimon = plan->was_paimon;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_SetAccessMethod)
			plan->will_be_paimon = paimon_ddl_am_is_paimon(cmd->name);
	}
	/* Before 17 core refuses it for partitioned tables. */
	if (plan->relkind == RELKIND_PARTITIONED_TABLE && !PAIMON_PARTITIONED_HAS_AM)
		plan->will_be_paimon = plan->was_paimon;
	plan->am_changes = plan->will_be_paimon != plan->was_paimon;
}

/* A partitioned table that is given an option of ours becomes ours, if it still can. */
static void
adopt_by_option(AlterPlan *plan, AlterTableStmt *stmt)
{
	ListCell   *lc,
			   *lc2;

	if (plan->was_paimon || plan->relkind != RELKIND_PARTITIONED_TABLE || !paimon_ddl_can_mark(plan->relid))
		return;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype != AT_SetRelOptions)
			continue;
		foreach(lc2, (List *) cmd->def)
		{
			DefElem    *def = lfirst(lc2);

			if (def->defnamespace == NULL && !paimon_option_is_core(def->defname) &&
				paimon_option_is_known(def->defname))
			{
				LockRelationOid(plan->relid, AccessExclusiveLock);
				paimon_ddl_mark_parent(plan->relid, NIL);
				plan->was_paimon = true;
				return;
			}
		}
	}
}

/*
 * A partitioned table without indexes, and all of whose partitions are ours, becomes ours when it gets its key: the partitions' keys could not belong
 * to a btree.  (pg_dump makes keys after partitions, and a table created with default_table_access_method has no mark before.)
 */
static void
adopt_by_key(AlterPlan *plan, AlterTableStmt *stmt)
{
	bool		adds = false;
	bool		leaves = false;
	List	   *tree;
	ListCell   *lc;

	if (plan->was_paimon || plan->relkind != RELKIND_PARTITIONED_TABLE || paimon_ddl_has_index(plan->relid))
		return;
	foreach(lc, stmt->cmds)
		adds |= adds_key(lfirst(lc));
	if (!adds)
		return;

	LockRelationOid(plan->relid, AccessExclusiveLock);
	tree = find_all_inheritors(plan->relid, stmt->relation->inh ? AccessExclusiveLock : AccessShareLock, NULL);
	foreach(lc, tree)
	{
		Oid			relid = lfirst_oid(lc);

		if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		{
			if (!paimon_is_table(relid) && paimon_ddl_has_index(relid))
				return;
			continue;
		}
		if (!paimon_is_table(relid))
			return;
		leaves = true;
	}
	if (!leaves)
		return;
	foreach(lc, tree)
	{
		Oid			relid = lfirst_oid(lc);

		if ((relid == plan->relid || stmt->relation->inh) && get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE && !paimon_is_table(relid))
			paimon_ddl_mark_parent(relid, NIL);
	}
	plan->was_paimon = true;
}

/* Has the statement anything to do with us, as far as can be seen without a lock? */
static bool
concerns_us(AlterTableStmt *stmt)
{
	Oid			relid;

	if ((stmt->objtype != OBJECT_TABLE && stmt->objtype != OBJECT_MATVIEW) ||
		!OidIsValid(paimon_table_am_oid()))
		return false;
	relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	if (has_command(stmt, AT_DetachPartition) || has_command(stmt, AT_DetachPartitionFinalize))
		return false;			/* may commit in between, and changes nothing of ours */
	return OidIsValid(relid) &&
		(paimon_is_table(relid) || get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE ||
		 has_command(stmt, AT_SetAccessMethod));
}

void
paimon_ddl_alter(DdlFrame *frame, AlterTableStmt *stmt)
{
	AlterPlan	plan = {0};
	LOCKMODE	lockmode;

	/* Lock as core will, after checking that the user owns it. */
	if (concerns_us(stmt))
	{
		lockmode = has_command(stmt, AT_SetAccessMethod) ? AccessExclusiveLock : AlterTableGetLockLevel(stmt->cmds);
		plan.relid = AlterTableLookupRelation(stmt, lockmode);
	}
	if (OidIsValid(plan.relid))
	{
		plan.relname = get_rel_name(plan.relid);
		plan.relkind = get_rel_relkind(plan.relid);
		check_attach(stmt, plan.relid);
		plan.was_paimon = paimon_is_table(plan.relid);
		adopt_by_option(&plan, stmt);
		adopt_by_key(&plan, stmt);
		find_am_change(&plan, stmt);
	}
	if (!plan.was_paimon && !plan.will_be_paimon)
	{
		paimon_ddl_run(frame, (Node *) stmt, frame->context);
		return;
	}

	if (plan.was_paimon && plan.will_be_paimon && drops_key(plan.relid, stmt))
		prepare_drop_key(frame, plan.relid, stmt);
	plan.items = paimon_ddl_read_items(plan.relid, NULL);
	if (plan.relkind == RELKIND_PARTITIONED_TABLE && plan.am_changes && plan.will_be_paimon)
	{
		paimon_ddl_mark_parent(plan.relid, plan.items);
		plan.items = paimon_ddl_read_items(plan.relid, NULL);
	}
	if (plan.was_paimon && plan.relkind == RELKIND_PARTITIONED_TABLE)
		delay_parents(frame, stmt, plan.relid);
	plan_commands(&plan, stmt);
	run_plan(frame, &plan, stmt);
}
