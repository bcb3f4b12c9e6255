/*-------------------------------------------------------------------------
 *
 * ddl_merge.c
 *	  Options of merging against columns and functions: validation, what may change on a table that holds rows, users' functions.
 *
 * A user's function is stored by its full name, and the columns it merges depend on it: DROP FUNCTION is refused, also with CASCADE, since dropping the column is.
 * Renaming it, or its schema, is followed into options, as that of columns is.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/tupdesc_details.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ddl/ddl_internal.h"
#include "merge/merge_server.h"

#define FIELDS "fields."
#define FUNCTION_SUFFIX ".aggregate-function"
#define DEFAULT_FUNCTION "fields.default-aggregate-function"

static object_access_hook_type prev_object_access = NULL;

/* ---- names of functions ---- */

static bool
names_function(const char *option)
{
	size_t		len = strlen(option);
	size_t		tail = strlen(FUNCTION_SUFFIX);

	return strcmp(option, DEFAULT_FUNCTION) == 0 ||
		(strncmp(option, FIELDS, strlen(FIELDS)) == 0 && len > tail && strcmp(option + len - tail, FUNCTION_SUFFIX) == 0);
}

/* Is the option fields.<column>.aggregate-function? */
static bool
is_function_of(const char *option, const char *column)
{
	return strcmp(option, psprintf("%s%s%s", FIELDS, column, FUNCTION_SUFFIX)) == 0;
}

/* The plan's column is merged by a user's function. */
static bool
has_user_function(const PaimonMergeColumn *col)
{
	return !col->dropped && col->agg != NULL && col->ops != NULL && col->ops->call != NULL;
}

/* Full names of users' functions for items that are to be stored, as far as the columns are there; others are found when the statement has run. */
void
paimon_ddl_qualify_functions(Oid relid, List *items)
{
	Relation	rel = relation_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(rel);
	ListCell   *lc;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (!names_function(item->name))
			continue;
		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute att = TupleDescAttr(desc, i);
			char	   *full;

			if (att->attisdropped || (strcmp(item->name, DEFAULT_FUNCTION) != 0 && !is_function_of(item->name, NameStr(att->attname))))
				continue;
			full = paimon_merge_full_name(att->atttypid, item->value);
			if (full == NULL)
				continue;
			item->value = full;
			break;
		}
	}
	relation_close(rel, NoLock);
}

/* The same out of a plan; whether something has changed. */
static bool
take_full_names(const PaimonMergePlan *plan, List *items)
{
	bool		changed = false;
	ListCell   *lc;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		for (int c = 0; c < plan->ncolumns && names_function(item->name); c++)
		{
			const PaimonMergeColumn *col = &plan->columns[c];
			bool		own;

			if (!has_user_function(col))
				continue;
			own = paimon_option_item(items, psprintf("%s%s%s", FIELDS, col->name, FUNCTION_SUFFIX)) != NULL;
			if (own ? !is_function_of(item->name, col->name) : strcmp(item->name, DEFAULT_FUNCTION) != 0)
				continue;
			if (strcmp(item->value, col->function) != 0)
			{
				item->value = MemoryContextStrdup(GetMemoryChunkContext(item), col->function);
				changed = true;
			}
			break;
		}
	}
	return changed;
}

/* ---- dependencies ---- */

/*
 * Takes away that columns of a table depend on functions, but where the plan (NULL: none) has it so; known[c] is set where it stays.  Nothing else makes a column
 * depend on a function directly.
 */
static void
remove_dependencies(Oid relid, const PaimonMergePlan *plan, bool *known)
{
	Relation	pg_depend = table_open(DependRelationId, RowExclusiveLock);
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_depend, DependDependerIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);
		int			c = depend->objsubid - 1;

		if (depend->refclassid != ProcedureRelationId || depend->deptype != DEPENDENCY_NORMAL || c < 0)
			continue;
		if (plan != NULL && c < plan->ncolumns && has_user_function(&plan->columns[c]) && !known[c] &&
			paimon_merge_type(&plan->columns[c])->function.fn_oid == depend->refobjid)
			known[c] = true;
		else
			CatalogTupleDelete(pg_depend, &tuple->t_self);
	}
	systable_endscan(scan);
	table_close(pg_depend, RowExclusiveLock);
}

void
paimon_ddl_forget_functions(Oid relid)
{
	remove_dependencies(relid, NULL, NULL);
}

/* Columns depend on the functions that merge them, and on no others. */
static void
record_dependencies(Oid relid, const PaimonMergePlan *plan)
{
	bool	   *known = palloc0_array(bool, plan->ncolumns + 1);

	remove_dependencies(relid, plan, known);
	for (int c = 0; c < plan->ncolumns; c++)
	{
		ObjectAddress column;
		ObjectAddress function;

		if (!has_user_function(&plan->columns[c]) || known[c])
			continue;
		ObjectAddressSubSet(column, RelationRelationId, relid, c + 1);
		ObjectAddressSet(function, ProcedureRelationId, paimon_merge_type(&plan->columns[c])->function.fn_oid);
		recordDependencyOn(&column, &function, DEPENDENCY_NORMAL);
	}
	CommandCounterIncrement();
}

/* ---- validation ---- */

static PaimonMergePlan *
plan_of(Oid relid, List *items)
{
	Relation	rel = relation_open(relid, NoLock);
	bool	   *key = palloc0_array(bool, RelationGetNumberOfAttributes(rel) + 1);
	Oid			keyid = paimon_ddl_primary_key(relid);
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(keyid));
	PaimonMergePlan *plan;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		for (int i = 0; i < index->indnkeyatts; i++)
			key[index->indkey.values[i] - 1] = true;
		ReleaseSysCache(tuple);
	}
	/* types and functions as they are now: entries of the plan are looked at until the statement is through */
	plan = paimon_merge_plan_table(pstrdup(RelationGetRelationName(rel)), CreateTupleDescCopy(RelationGetDescr(rel)), key,
								   rel->rd_rel->relowner, items);
	relation_close(rel, NoLock);
	return plan;
}

/*
 * Checks a table's options of merging against its columns, types, key and functions, and records which functions it needs.  Every error of configuration is
 * raised here.
 */
void
paimon_ddl_check_merge(Oid relid, List *items)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "paimon merge check", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	PaimonMergePlan *plan = plan_of(relid, items);

	if (take_full_names(plan, items))
		paimon_ddl_write_items(relid, items);
	record_dependencies(relid, plan);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/*
 * A default of a column that is new is part of every record that is stored, of one key perhaps many, and of how many depends on what has been compacted.  Is the
 * column merged so that this does not show?
 */
static bool
default_shows(const PaimonMergePlan *plan, const PaimonMergeColumn *col)
{
	static const char *const once[] = {"max", "min", "bool_and", "bool_or", "first_value", "first_non_null_value"};
	const char *name;

	if (col->group >= 0)
		return true;
	if (col->agg == NULL)
		return false;
	name = paimon_merge_function_name(col);
	for (int i = 0; i < lengthof(once); i++)
	{
		if (strcmp(name, once[i]) == 0)
			return false;
	}
	if (strcmp(name, "last_value") != 0 && strcmp(name, "last_non_null_value") != 0)
		return true;
	return plan->rowkind >= 0 && !col->ignore_retract;
}

static void
check_default(Oid relid, const char *column)
{
	AttrNumber	attno = get_attnum(relid, column);
	Relation	rel = relation_open(relid, NoLock);
	TupleConstr *constr = RelationGetDescr(rel)->constr;
	bool		missing = attno > 0 && constr != NULL && constr->missing != NULL && constr->missing[attno - 1].am_present;
	PaimonMergePlan *plan;
	const PaimonMergeColumn *col;

	relation_close(rel, NoLock);
	if (!missing || !OidIsValid(paimon_ddl_primary_key(relid)))
		return;
	plan = plan_of(relid, paimon_ddl_read_items(relid, NULL));
	col = &plan->columns[attno - 1];
	if (!default_shows(plan, col) || paimon_ddl_is_empty(relid))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot add column \"%s\" with a default to paimon table \"%s\"", column, get_rel_name(relid)),
			 col->group >= 0 ?
			 errdetail("It is part of a sequence group, and records that are stored are merged with the default as if it had come with them.") :
			 errdetail("Its aggregate function %s would take the default once for each record that is stored.", paimon_merge_function_name(col)),
			 errhint("Add the column without a default, set the default then, and UPDATE the rows.")));
}

/* After ALTER TABLE: columns that it has added to the table. */
void
paimon_ddl_check_added(Oid relid, AlterTableStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_AddColumn && get_rel_relkind(relid) == RELKIND_RELATION)
			check_default(relid, ((ColumnDef *) cmd->def)->colname);
	}
}

/* ---- what may change on a table that holds rows ---- */

/* Columns that the statement adds or drops: no row that is stored and stays has a value in them. */
static List *
passing_columns(Oid relid, AlterTableStmt *stmt)
{
	List	   *columns = NIL;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst(lc);

		if (cmd->subtype == AT_AddColumn && get_attnum(relid, ((ColumnDef *) cmd->def)->colname) == InvalidAttrNumber)
			columns = lappend(columns, ((ColumnDef *) cmd->def)->colname);
		if (cmd->subtype == AT_DropColumn)
			columns = lappend(columns, cmd->name);
	}
	return columns;
}

static bool
is_among(List *names, const char *name)
{
	ListCell   *lc;

	foreach(lc, names)
	{
		if (strcmp(lfirst(lc), name) == 0)
			return true;
	}
	return false;
}

static bool
all_among(List *names, List *some)
{
	ListCell   *lc;

	foreach(lc, some)
	{
		if (!is_among(names, lfirst(lc)))
			return false;
	}
	return some != NIL;
}

/*
 * What the items say about other columns than those that the statement adds or drops.  Options fields.* only: a row's order, kind and bucket are those of the
 * whole row.
 */
List *
paimon_ddl_items_of_rest(Oid relid, AlterTableStmt *stmt, List *items)
{
	List	   *passing = passing_columns(relid, stmt);
	List	   *result = NIL;
	ListCell   *lc,
			   *lc2;

	if (passing == NIL)
		return items;
	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);
		PaimonOptionItem *copy;

		if (strncmp(item->name, FIELDS, strlen(FIELDS)) != 0)
		{
			result = lappend(result, item);
			continue;
		}
		if (all_among(passing, paimon_option_columns(item)))
			continue;
		copy = palloc_object(PaimonOptionItem);
		*copy = *item;
		foreach(lc2, passing)
			paimon_option_drop_column(copy, lfirst(lc2));
		if (copy->value[0] != '\0' || item->value[0] == '\0')
			result = lappend(result, copy);
	}
	return result;
}

/* ---- users' functions that change ---- */

static HeapTuple
fetch_new(Oid catalog, Oid indexid, AttrNumber attno, Oid oid)
{
	Relation	rel = table_open(catalog, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, attno, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(oid));
	scan = systable_beginscan(rel, indexid, true, SnapshotSelf, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return tuple;
}

/* Our tables whose columns depend on a function, or on any if none is given; *functions: which, in the same order. */
static List *
tables_of_function(Oid function, List **functions)
{
	Relation	pg_depend = table_open(DependRelationId, AccessShareLock);
	List	   *tables = NIL;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	*functions = NIL;
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(ProcedureRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(function));
	scan = systable_beginscan(pg_depend, DependReferenceIndexId, true, NULL, OidIsValid(function) ? 2 : 1, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

		if (depend->classid != RelationRelationId || depend->objsubid <= 0 || !paimon_is_table(depend->objid))
			continue;
		tables = lappend_oid(tables, depend->objid);
		*functions = lappend_oid(*functions, depend->refobjid);
	}
	systable_endscan(scan);
	table_close(pg_depend, AccessShareLock);
	return tables;
}

/* The table's options call a function by another name. */
static void
rename_function(Oid relid, const char *oldname, const char *newname)
{
	List	   *items;
	ListCell   *lc;
	bool		changed = false;

	LockRelationOid(relid, ShareUpdateExclusiveLock);
	items = paimon_ddl_read_items(relid, NULL);
	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (names_function(item->name) && strcmp(item->value, oldname) == 0)
		{
			item->value = pstrdup(newname);
			changed = true;
		}
	}
	if (changed)
		paimon_ddl_write_items(relid, items);
}

static char *
full_name(const char *schema, const char *name)
{
	return quote_qualified_identifier(schema, name);
}

/* ALTER FUNCTION, or CREATE OR REPLACE: the new row is not seen by the system cache yet. */
static void
function_changed(Oid function)
{
	List	   *functions;
	List	   *tables = tables_of_function(function, &functions);
	HeapTuple	newtuple;
	Form_pg_proc proc;
	char	   *oldname;
	char	   *newname;
	ListCell   *lc;

	if (tables == NIL)
		return;
	newtuple = fetch_new(ProcedureRelationId, ProcedureOidIndexId, Anum_pg_proc_oid, function);
	if (!HeapTupleIsValid(newtuple))
		return;
	proc = (Form_pg_proc) GETSTRUCT(newtuple);
	if (proc->provolatile != PROVOLATILE_IMMUTABLE)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("function %s must stay immutable", quote_identifier(NameStr(proc->proname))),
				 errdetail("It is an aggregate function of paimon table \"%s\".", get_rel_name(linitial_oid(tables)))));
	/* Sessions know from when they opened the table whether the function is strict. */
	foreach(lc, tables)
		CacheInvalidateRelcacheByRelid(lfirst_oid(lc));
	oldname = full_name(get_namespace_name(get_func_namespace(function)), get_func_name(function));
	newname = full_name(get_namespace_name(proc->pronamespace), NameStr(proc->proname));
	if (strcmp(oldname, newname) == 0)
		return;
	foreach(lc, tables)
		rename_function(lfirst_oid(lc), oldname, newname);
}

static void
schema_changed(Oid schema)
{
	List	   *functions;
	List	   *tables = tables_of_function(InvalidOid, &functions);
	HeapTuple	newtuple;
	char	   *oldname = get_namespace_name(schema);
	const char *newname;
	ListCell   *lc,
			   *lc2;

	if (tables == NIL || oldname == NULL)
		return;
	newtuple = fetch_new(NamespaceRelationId, NamespaceOidIndexId, Anum_pg_namespace_oid, schema);
	if (!HeapTupleIsValid(newtuple))
		return;
	newname = NameStr(((Form_pg_namespace) GETSTRUCT(newtuple))->nspname);
	if (strcmp(oldname, newname) == 0)
		return;
	forboth(lc, tables, lc2, functions)
	{
		char	   *name = get_func_name(lfirst_oid(lc2));

		if (name != NULL && get_func_namespace(lfirst_oid(lc2)) == schema)
			rename_function(lfirst_oid(lc), full_name(oldname, name), full_name(newname, name));
	}
}

/* ---- fields of nested rows ---- */

/* Does an option of the column name the field? */
static const char *
option_of_field(Oid relid, AttrNumber attno, const char *field)
{
	static const char *const suffixes[] = {"nested-key", "nested-sequence-field"};
	const char *column = get_attname(relid, attno, true);
	List	   *items = paimon_ddl_read_items(relid, NULL);

	for (int i = 0; i < lengthof(suffixes) && column != NULL; i++)
	{
		PaimonOptionItem *item = paimon_option_item(items, psprintf("%s%s.%s", FIELDS, column, suffixes[i]));
		int			n = 0;
		char	  **names = item != NULL ? paimon_merge_names(item->value, &n) : NULL;

		for (int k = 0; k < n; k++)
		{
			if (strcmp(names[k], field) == 0)
				return item->name;
		}
	}
	return NULL;
}

/*
 * A field of a composite type is added, dropped, or has got another name: not one that options name.  Sessions know the type from when they opened the
 * table: they are told to open it anew.
 */
static void
field_changed(Oid typrel, AttrNumber attno, ObjectAccessType access)
{
	bool		dropped = access == OAT_DROP;
	const char *field = access == OAT_POST_CREATE ? "" : get_attname(typrel, attno, true);
	const char *newname = dropped ? NULL : paimon_ddl_new_attname(typrel, attno);
	Oid			array = get_array_type(get_rel_type_id(typrel));
	Relation	pg_depend;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	if (field == NULL || !OidIsValid(array) || (newname != NULL && strcmp(field, newname) == 0))
		return;
	pg_depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&keys[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(TypeRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(array));
	scan = systable_beginscan(pg_depend, DependReferenceIndexId, true, NULL, 2, keys);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);
		const char *option;

		if (depend->classid != RelationRelationId || depend->objsubid <= 0 || !paimon_is_table(depend->objid))
			continue;
		CacheInvalidateRelcacheByRelid(depend->objid);
		option = option_of_field(depend->objid, depend->objsubid, field);
		if (option != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
					 errmsg("cannot %s attribute \"%s\" of type %s", dropped ? "drop" : "rename", field, quote_identifier(get_rel_name(typrel))),
					 errdetail("Option \"%s\" of paimon table \"%s\" names it.", option, get_rel_name(depend->objid))));
	}
	systable_endscan(scan);
	table_close(pg_depend, AccessShareLock);
}

static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class, object, sub, arg);

	if (class == RelationRelationId && sub > 0 && object >= FirstUnpinnedObjectId &&
		(access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP) &&
		IsTransactionState() && get_rel_relkind(object) == RELKIND_COMPOSITE_TYPE && OidIsValid(paimon_table_am_oid()))
		field_changed(object, sub, access);
	if ((access != OAT_POST_ALTER && access != OAT_POST_CREATE) || object < FirstUnpinnedObjectId || !IsTransactionState() ||
		(class != ProcedureRelationId && class != NamespaceRelationId) || !OidIsValid(paimon_table_am_oid()))
		return;
	if (class == ProcedureRelationId)
		function_changed(object);
	else if (access == OAT_POST_ALTER)
		schema_changed(object);
}

void
paimon_ddl_merge_init(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
}
