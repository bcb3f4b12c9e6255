/*-------------------------------------------------------------------------
 *
 * ddl_catalog.c
 *	  Reading and writing what the system catalogs hold about paimon tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "catalog/manifest.h"
#include "compat.h"
#include "ddl/ddl_internal.h"
#include "storage/storage.h"

/* Does an access method's name (NULL: the default) mean ours? */
bool
paimon_ddl_am_is_paimon(const char *amname)
{
	return strcmp(amname != NULL ? amname : default_table_access_method, "paimon") == 0 &&
		OidIsValid(paimon_table_am_oid());
}

/* Our items of a relation, and core's in *core (may be NULL). */
List *
paimon_ddl_read_items(Oid relid, List **core)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Datum		reloptions;
	bool		isnull;
	List	   *items;

	if (core != NULL)
		*core = NIL;
	if (!HeapTupleIsValid(tuple))
		return NIL;
	reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	items = paimon_options_untransform(reloptions, isnull, core);
	ReleaseSysCache(tuple);
	return items;
}

static Datum
transform_items(List *core, List *items)
{
	ArrayBuildState *state = NULL;
	List	   *all = list_concat_copy(core, items);
	ListCell   *lc;

	foreach(lc, all)
	{
		PaimonOptionItem *item = lfirst(lc);

		state = accumArrayResult(state, CStringGetTextDatum(psprintf("%s=%s", item->name, item->value)),
								 false, TEXTOID, CurrentMemoryContext);
	}
	return state != NULL ? makeArrayResult(state, CurrentMemoryContext) : (Datum) 0;
}

/*
 * Replace our items of a relation; core's own options stay.  The caller holds a
 * lock that keeps others from changing them (ShareUpdateExclusive or more).
 */
void
paimon_ddl_write_items(Oid relid, List *items)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple;
	HeapTuple	newtuple;
	Datum		values[Natts_pg_class] = {0};
	bool		nulls[Natts_pg_class] = {0};
	bool		replace[Natts_pg_class] = {0};
	List	   *core;
	Datum		reloptions;
	bool		isnull;

	/* VACUUM updates rows of pg_class in place: the tuple lock keeps its update from being lost. */
	tuple = SearchSysCacheLocked1(RELOID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	(void) paimon_options_untransform(reloptions, isnull, &core);

	replace[Anum_pg_class_reloptions - 1] = true;
	values[Anum_pg_class_reloptions - 1] = transform_items(core, items);
	nulls[Anum_pg_class_reloptions - 1] = values[Anum_pg_class_reloptions - 1] == (Datum) 0;
	newtuple = heap_modify_tuple(tuple, RelationGetDescr(pg_class), values, nulls, replace);
	CatalogTupleUpdate(pg_class, &tuple->t_self, newtuple);
	UnlockTuple(pg_class, &tuple->t_self, InplaceUpdateTupleLock);
	heap_freetuple(newtuple);
	ReleaseSysCache(tuple);
	table_close(pg_class, RowExclusiveLock);
	CommandCounterIncrement();
}

/* Take all our items away, if there are any. */
void
paimon_ddl_remove_items(Oid relid)
{
	if (paimon_ddl_read_items(relid, NULL) != NIL)
		paimon_ddl_write_items(relid, NIL);
}

static void
check_twice(const char *relname, List *items)
{
	List	   *seen = NIL;
	ListCell   *lc;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (paimon_option_item(seen, item->name) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("option \"%s\" of paimon table \"%s\" is specified more than once",
							item->name, relname)));
		seen = lappend(seen, item);
	}
}

/*
 * Split a WITH or SET list into checked items of ours and the rest, which is
 * core's business.  "fields.x" without quotes comes as namespace and name.
 */
void
paimon_ddl_split_defs(const char *relname, List *defs, List **items, List **core)
{
	ListCell   *lc;

	*items = NIL;
	*core = NIL;
	foreach(lc, defs)
	{
		DefElem    *def = lfirst(lc);
		const char *name = def->defname;

		if (def->defnamespace != NULL ? strcmp(def->defnamespace, "toast") == 0 : paimon_option_is_core(name))
		{
			*core = lappend(*core, def);
			continue;
		}
		if (def->defnamespace != NULL)
			name = psprintf("%s.%s", def->defnamespace, def->defname);
		if (strchr(name, '=') != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("invalid option name \"%s\" for paimon table \"%s\"", name, relname),
					 errdetail("Names of options contain no \"=\".")));
		*items = lappend(*items, paimon_option_check(relname, name, def->arg != NULL ? defGetString(def) : NULL));
	}
	check_twice(relname, *items);
}

/* Items of `base` with those of `over` replaced or appended, in that order. */
List *
paimon_ddl_merge_items(List *base, List *over)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, base)
	{
		PaimonOptionItem *item = lfirst(lc);
		PaimonOptionItem *other = paimon_option_item(over, item->name);

		result = lappend(result, other != NULL ? other : item);
	}
	foreach(lc, over)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (paimon_option_item(result, item->name) == NULL)
			result = lappend(result, item);
	}
	return result;
}

/* Access method of a relation; InvalidOid if it has none or does not exist. */
Oid
paimon_ddl_relam(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			am = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		am = ((Form_pg_class) GETSTRUCT(tuple))->relam;
		ReleaseSysCache(tuple);
	}
	return am;
}

/* Append to one of a frame's lists, which must outlive whatever context core is in. */
void
paimon_ddl_remember(List **oids, Oid oid)
{
	MemoryContext old = MemoryContextSwitchTo(TopTransactionContext);

	*oids = list_append_unique_oid(*oids, oid);
	MemoryContextSwitchTo(old);
}

/* OID of the index of a table's primary key, also while that is not valid yet. */
Oid
paimon_ddl_primary_key(Oid relid)
{
	Relation	pg_index = table_open(IndexRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(pg_index, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		if (index->indisprimary && index->indislive)
			found = index->indexrelid;
	}
	systable_endscan(scan);
	table_close(pg_index, AccessShareLock);
	return found;
}

/* Names of the columns of a relation and of its key. */
PaimonTableShape *
paimon_ddl_shape(Oid relid)
{
	PaimonTableShape *shape = palloc0(sizeof(PaimonTableShape));
	Relation	rel = relation_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(rel);
	Oid			keyid = paimon_ddl_primary_key(relid);
	HeapTuple	tuple;

	shape->relname = pstrdup(RelationGetRelationName(rel));
	shape->partitioned = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			shape->columns = lappend(shape->columns, pstrdup(NameStr(TupleDescAttr(desc, i)->attname)));
	}
	relation_close(rel, NoLock);

	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(keyid));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		for (int i = 0; i < index->indnkeyatts; i++)
			shape->keycols = lappend(shape->keycols, get_attname(relid, index->indkey.values[i], false));
		ReleaseSysCache(tuple);
	}
	return shape;
}

/* Types of the columns that are hashed must have an encoding even where they are not part of a key. */
static void
check_bucket_key_types(Oid relid, const PaimonOptionItem *item)
{
	ListCell   *lc;

	foreach(lc, paimon_option_columns(item))
	{
		AttrNumber	attno = get_attnum(relid, lfirst(lc));

		paimon_ddl_check_key(relid, &attno, 1);
	}
}

/* Rows grow old by a column that must say when they are from. */
static void
check_record_time(Oid relid, List *items)
{
	const PaimonOptionItem *field = paimon_option_item(items, "record-level.time-field");
	AttrNumber	attno;
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (field == NULL && paimon_option_item(items, "record-level.expire-time") != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("option \"record-level.expire-time\" of paimon table \"%s\" needs option \"record-level.time-field\"", get_rel_name(relid)),
				 errhint("Name the column that holds a row's time.")));
	if (field == NULL)
		return;
	attno = get_attnum(relid, linitial(paimon_option_columns(field)));
	get_atttypetypmodcoll(relid, attno, &type, &typmod, &collation);
	switch (getBaseType(type))
	{
		case INT4OID:
		case INT8OID:
		case TIMESTAMPOID:
		case TIMESTAMPTZOID:
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("column \"%s\" of option \"%s\" of paimon table \"%s\" cannot hold a row's time",
							get_attname(relid, attno, false), field->name, get_rel_name(relid)),
					 errdetail("It is of type %s; integer, bigint, timestamp and timestamp with time zone can.", format_type_with_typemod(type, typmod))));
	}
}

/* Check all options of a table against its present shape. */
void
paimon_ddl_check_table(Oid relid)
{
	List	   *items = paimon_ddl_read_items(relid, NULL);
	PaimonOptionItem *bucket_key = paimon_option_item(items, "bucket-key");

	if (items == NIL)
		return;
	paimon_options_check_shape(paimon_ddl_shape(relid), items);
	if (bucket_key != NULL)
		check_bucket_key_types(relid, bucket_key);
	check_record_time(relid, items);
	paimon_ddl_check_merge(relid, items);
}

/* Does a table hold no row that anybody could see from now on?  The caller holds AccessExclusiveLock. */
bool
paimon_ddl_is_empty(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *slot = table_slot_create(rel, NULL);
	TableScanDesc scan = table_beginscan(rel, snapshot, 0, NULL);
	bool		empty = !table_scan_getnextslot(scan, ForwardScanDirection, slot);

	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
	return empty;
}

/* New storage takes over the old one's key; a table that has lost it becomes an append table. */
static void
forget_key(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	PaimonStorageRow row;

	if (paimon_catalog_storage_get(paimon_storage_id(rel), InvalidOid, &row) && row.nkeys > 0)
	{
		row.nkeys = 0;
		row.nbucketkeys = 0;
		paimon_catalog_storage_put(&row);
		CacheInvalidateRelcache(rel);
	}
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/*
 * Give an empty table new storage, since the old one is laid out by what has
 * just changed (key, buckets).  As after TRUNCATE, older snapshots see it empty.
 */
void
paimon_ddl_reset_storage(Oid relid)
{
	Relation	rel = table_open(relid, AccessExclusiveLock);
	ReindexParams params = {0};

	CheckTableNotInUse(rel, "ALTER TABLE");
	paimon_set_new_relfilenumber(rel, rel->rd_rel->relpersistence);
	table_close(rel, NoLock);
	CommandCounterIncrement();
	if (!OidIsValid(paimon_ddl_primary_key(relid)))
		forget_key(relid);
	paimon_reindex_relation(relid, REINDEX_REL_PROCESS_TOAST, &params);
	CommandCounterIncrement();
}
