/*-------------------------------------------------------------------------
 *
 * ddl_access.c
 *	  The object-access hook: what must happen in the middle of core's DDL.
 *
 * A new table gets its options before anything is stored in it; a new index is
 * flipped or refused before it is built; a renamed column is followed into options;
 * a column that options name is not dropped.  Rows of the running command cannot be
 * seen by ordinary means yet, so they are read with SnapshotSelf.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/objectaccess.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "commands/defrem.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "ddl/ddl_internal.h"
#include "row/row.h"

static object_access_hook_type prev_object_access = NULL;

/* Copy of a catalog row that the running command may have written; NULL if there is none. */
static HeapTuple
fetch_self(Oid catalog, Oid indexid, ScanKey keys, int nkeys)
{
	Relation	rel = table_open(catalog, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, indexid, true, SnapshotSelf, nkeys, keys);
	HeapTuple	tuple = systable_getnext(scan);

	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return tuple;
}

static HeapTuple
fetch_class(Oid relid)
{
	ScanKeyData key;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	return fetch_self(RelationRelationId, ClassOidIndexId, &key, 1);
}

static HeapTuple
fetch_index(Oid relid)
{
	ScanKeyData key;

	ScanKeyInit(&key, Anum_pg_index_indexrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	return fetch_self(IndexRelationId, IndexRelidIndexId, &key, 1);
}

static HeapTuple
fetch_attribute(Oid relid, AttrNumber attno)
{
	ScanKeyData keys[2];

	ScanKeyInit(&keys[0], Anum_pg_attribute_attrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	ScanKeyInit(&keys[1], Anum_pg_attribute_attnum, BTEqualStrategyNumber, F_INT2EQ, Int16GetDatum(attno));
	return fetch_self(AttributeRelationId, AttributeRelidNumIndexId, keys, 2);
}

/* The name of a column as the running command has written it; NULL: there is none. */
char *
paimon_ddl_new_attname(Oid relid, AttrNumber attno)
{
	HeapTuple	tuple = fetch_attribute(relid, attno);

	return HeapTupleIsValid(tuple) ? pstrdup(NameStr(((Form_pg_attribute) GETSTRUCT(tuple))->attname)) : NULL;
}

/* Names that stored rows and system functions use for themselves. */
static void
check_reserved_name(Oid relid, const char *column)
{
	static const char *const names[] = {"_SEQUENCE_NUMBER", "_VALUE_KIND", "_LEVEL", "_ROW_ID", NULL};
	bool		reserved = strncmp(column, "_KEY_", strlen("_KEY_")) == 0;

	for (int i = 0; names[i] != NULL && !reserved; i++)
		reserved = strcmp(column, names[i]) == 0;
	if (reserved)
		ereport(ERROR,
				(errcode(ERRCODE_RESERVED_NAME),
				 errmsg("column name \"%s\" is reserved in paimon table \"%s\"", column, get_rel_name(relid)),
				 errhint("Names that begin with _KEY_, and _SEQUENCE_NUMBER, _VALUE_KIND, _LEVEL and _ROW_ID, are reserved.")));
}

void
paimon_ddl_check_reserved(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			check_reserved_name(relid, NameStr(TupleDescAttr(desc, i)->attname));
	}
	relation_close(rel, NoLock);
}

/* ---- creation ---- */

static void
table_created(Oid relid)
{
	DdlFrame   *frame = paimon_ddl_frame;
	HeapTuple	tuple = fetch_class(relid);
	Form_pg_class form;
	bool		asked;
	bool		parent;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	parent = form->relkind == RELKIND_PARTITIONED_TABLE;
	if (!parent && form->relkind != RELKIND_RELATION && form->relkind != RELKIND_MATVIEW)
		return;
	asked = frame != NULL && frame->create_name != NULL && !OidIsValid(frame->created) &&
		strncmp(frame->create_name, NameStr(form->relname), NAMEDATALEN - 1) == 0;
	if (!asked && !(OidIsValid(form->relam) && form->relam == paimon_table_am_oid()))
		return;

	/* Core itself may advance the counter at this place: the relation is complete. */
	CommandCounterIncrement();
	paimon_ddl_check_reserved(relid);
	if (!asked)
		return;
	frame->created = relid;
	if (frame->create_items != NIL)
	{
		/* the user's search_path is in force here; 17 and up make the key's index, where options are checked, under a path of their own */
		paimon_ddl_qualify_functions(relid, frame->create_items);
		paimon_ddl_write_items(relid, frame->create_items);
	}
	if (parent && !OidIsValid(form->relam))
		paimon_ddl_depend_on_am(relid, paimon_table_am_oid());
	heap_freetuple(tuple);
}

/* What a table will be at the end of the statement, a change of access method under way included. */
static bool
will_be_paimon(Oid relid)
{
	for (DdlFrame *f = paimon_ddl_frame; f != NULL; f = f->up)
	{
		if (OidIsValid(f->am_table) && f->am_table == relid)
			return f->am_to_paimon;
	}
	return paimon_is_table(relid);
}

static void
refuse_index(Form_pg_index index)
{
	const char *what;

	if (index->indisexclusion)
		what = "exclusion constraints";
	else if (index->indisunique)
		what = "unique indexes and constraints other than the primary key";
	else
		what = "indexes other than the primary key";
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("cannot create an index on paimon table \"%s\"", get_rel_name(index->indrelid)),
			 errdetail("Tables using access method paimon do not support %s.", what),
			 index->indisunique && !index->indisexclusion ?
			 errhint("Make the columns the table's PRIMARY KEY: rows with an existing key replace it.") :
			 errhint("Searches are fast by the first columns of the primary key: put the columns there.")));
}

static void
refuse_key_am(Form_pg_index index, bool is_partition)
{
	if (is_partition)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" does not use access method paimon, unlike the partitioned table it belongs to",
						get_rel_name(index->indrelid)),
				 errhint("Partitions of a table with a primary key must all use the access method of that table.")));
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("access method paimon_key cannot be used for an index on table \"%s\"",
					get_rel_name(index->indrelid)),
			 errdetail("It serves primary keys of tables using access method paimon only.")));
}

/* Core compares access methods of a partition's key index and its parent's, which follow from their tables. */
static void
check_parent_index(Form_pg_index index, Oid indexid)
{
	Oid			parent = get_rel_relispartition(indexid) ? get_partition_parent(indexid, true) : InvalidOid;

	if (OidIsValid(parent) && !will_be_paimon(IndexGetRelation(parent, false)))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" uses access method paimon, unlike the partitioned table it belongs to",
						get_rel_name(index->indrelid)),
				 errhint("Create the partitioned table with USING paimon.")));
}

/* Is it for the end of the statement to flip this index? */
static bool
is_late(Oid indexid)
{
	if (get_rel_relkind(indexid) != RELKIND_PARTITIONED_INDEX)
		return false;
	for (DdlFrame *f = paimon_ddl_frame; f != NULL; f = f->up)
	{
		if (!f->late_parents)
			continue;
		paimon_ddl_remember(&f->late, indexid);
		return true;
	}
	return false;
}

static void
key_created(Form_pg_index index, Oid indexid, Oid am)
{
	List	   *items;

	if (am != BTREE_AM_OID && am != paimon_key_am_oid())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("primary key of paimon table \"%s\" cannot use access method \"%s\"",
						get_rel_name(index->indrelid), get_am_name(am))));
	paimon_ddl_check_key(index->indrelid, index->indkey.values, index->indnkeyatts);

	CommandCounterIncrement();
	check_parent_index(index, indexid);
	if (!is_late(indexid))
		paimon_ddl_flip(indexid, true);

	items = paimon_ddl_read_items(index->indrelid, NULL);
	paimon_options_check_shape(paimon_ddl_shape(index->indrelid), items);
	if (items != NIL)
		paimon_ddl_check_merge(index->indrelid, items);
}

static void
index_created(Oid indexid, Form_pg_class class)
{
	Oid			key_am = paimon_key_am_oid();
	HeapTuple	tuple;
	Form_pg_index index;

	if (!OidIsValid(key_am))
		return;
	tuple = fetch_index(indexid);
	if (!HeapTupleIsValid(tuple))
		return;
	index = (Form_pg_index) GETSTRUCT(tuple);

	if (!will_be_paimon(index->indrelid))
	{
		if (class->relam == key_am)
			refuse_key_am(index, class->relispartition);
	}
	else if (index->indisprimary)
		key_created(index, indexid, class->relam);
	else if (class->relam == key_am && paimon_ddl_frame != NULL && paimon_ddl_frame->reindex)
		paimon_ddl_depend_on_am(indexid, key_am);	/* REINDEX CONCURRENTLY makes a copy and swaps it in */
	else
		refuse_index(index);
	heap_freetuple(tuple);
}

/*
 * Transient tables of a rewrite are core's own affair; indexes made by core itself
 * (for a partition, after a change of type) are like any other.
 */
static void
relation_created(Oid relid, bool is_internal)
{
	HeapTuple	tuple = fetch_class(relid);
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind == RELKIND_INDEX || form->relkind == RELKIND_PARTITIONED_INDEX)
		index_created(relid, form);
	else if (!is_internal)
		table_created(relid);
	heap_freetuple(tuple);
}

static void
column_created(Oid relid, AttrNumber attno)
{
	HeapTuple	tuple;

	if (!paimon_is_table(relid))
		return;
	tuple = fetch_attribute(relid, attno);
	if (HeapTupleIsValid(tuple))
		check_reserved_name(relid, NameStr(((Form_pg_attribute) GETSTRUCT(tuple))->attname));
}

/* ---- alteration ---- */

/* A name that options could not be read with. */
static void
check_name_for_options(Oid relid, const char *name)
{
	size_t		len = strlen(name);

	if (strpbrk(name, ",=") == NULL && !isspace((unsigned char) name[0]) && !isspace((unsigned char) name[len - 1]))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_NAME),
			 errmsg("column of paimon table \"%s\" that an option names cannot be called \"%s\"", get_rel_name(relid), name),
			 errdetail("Names in options have no comma, no equals sign, and no white space at either end.")));
}

/* The new name is in the row just written, the old one still in the system cache. */
static void
column_altered(Oid relid, AttrNumber attno)
{
	HeapTuple	tuple;
	const char *oldname;
	const char *newname;
	List	   *items;
	ListCell   *lc;
	bool		changed = false;

	if (attno <= 0 || !paimon_is_table(relid))
		return;
	oldname = get_attname(relid, attno, true);
	tuple = fetch_attribute(relid, attno);
	if (oldname == NULL || !HeapTupleIsValid(tuple))
		return;
	newname = NameStr(((Form_pg_attribute) GETSTRUCT(tuple))->attname);
	if (strcmp(oldname, newname) == 0)
		return;

	check_reserved_name(relid, newname);
	items = paimon_ddl_read_items(relid, NULL);
	foreach(lc, items)
		changed |= paimon_option_rename_column(lfirst(lc), oldname, newname);
	if (changed)
	{
		check_name_for_options(relid, newname);
		paimon_ddl_write_items(relid, items);
	}
}

/*
 * A table that becomes a heap table has just got its new storage, and its
 * indexes are about to be built: now the key has to be a btree again.
 */
static void
relation_altered(Oid relid)
{
	Oid			keyid;

	for (DdlFrame *f = paimon_ddl_frame; f != NULL; f = f->up)
	{
		if (!OidIsValid(f->am_table) || f->am_table != relid || f->am_to_paimon)
			continue;
		keyid = paimon_ddl_primary_key(relid);
		if (OidIsValid(keyid) && paimon_ddl_relam(keyid) == paimon_key_am_oid())
			paimon_ddl_flip(keyid, false);
	}
}

/* ---- removal ---- */

/* An option that shapes stored rows can be reset only while there are none: then say how to go on. */
static void
refuse_drop(Oid relid, const char *column, const char *option)
{
	char		relkind = get_rel_relkind(relid);
	bool		stuck = paimon_option_fixed_when_filled(option) && OidIsValid(paimon_ddl_primary_key(relid)) &&
		(relkind == RELKIND_RELATION || relkind == RELKIND_MATVIEW) && !paimon_ddl_is_empty(relid);

	ereport(ERROR,
			(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			 errmsg("cannot drop column \"%s\" of paimon table \"%s\" because option \"%s\" names it",
					column, get_rel_name(relid), option),
			 stuck ? errdetail("Rows that are stored already were laid out by the option's value.") : 0,
			 stuck && strncmp(option, "fields.", strlen("fields.")) == 0 ?
			 errhint("Reset the option, or set it without the column, in the same ALTER TABLE command.") :
			 stuck ? errhint("Create a table without the column and copy the rows, or TRUNCATE this one and reset the option first.") :
			 errhint("Reset the option first: ALTER TABLE ... RESET (%s).", quote_identifier(option))));
}

/*
 * A type passed by reference that is as long as its alignment, as words are: of a dropped column pg_upgrade keeps only these two, so rows written before
 * could not be read any more.  No type of core is like that.
 */
static void
refuse_drop_of_false_word(Oid relid, AttrNumber attno)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(attno));
	Form_pg_attribute att;

	if (!HeapTupleIsValid(tuple))
		return;
	att = (Form_pg_attribute) GETSTRUCT(tuple);
	if (!IsBinaryUpgrade && !att->attbyval && paimon_row_looks_like_word(att->attlen, att->attalign))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot drop column \"%s\" of paimon table \"%s\" because of its type %s", NameStr(att->attname),
						get_rel_name(relid), format_type_be(att->atttypid)),
				 errdetail("Values of the type have %d bytes and are passed by reference; pg_upgrade would not keep that apart from passed by value.",
						   att->attlen),
				 errhint("Change the column's type first: ALTER TABLE ... ALTER COLUMN %s TYPE text.", quote_identifier(NameStr(att->attname)))));
	ReleaseSysCache(tuple);
}

static void
column_dropped(Oid relid, AttrNumber attno)
{
	const char *name;
	ListCell   *lc,
			   *lc2;

	if (!paimon_is_table(relid))
		return;
	name = get_attname(relid, attno, true);
	refuse_drop_of_false_word(relid, attno);
	foreach(lc, paimon_ddl_read_items(relid, NULL))
	{
		PaimonOptionItem *item = lfirst(lc);

		foreach(lc2, paimon_option_columns(item))
		{
			if (name != NULL && strcmp(lfirst(lc2), name) == 0)
				refuse_drop(relid, name, item->name);
		}
	}
}

static void
relation_dropped(Oid relid)
{
	HeapTuple	tuple;

	if (paimon_ddl_frame == NULL || get_rel_relkind(relid) != RELKIND_INDEX ||
		paimon_ddl_relam(relid) != paimon_key_am_oid())
		return;
	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(relid));
	if (!HeapTupleIsValid(tuple))
		return;
	if (((Form_pg_index) GETSTRUCT(tuple))->indisprimary)
		paimon_ddl_remember(&paimon_ddl_frame->lost_key, ((Form_pg_index) GETSTRUCT(tuple))->indrelid);
	ReleaseSysCache(tuple);
}

static void
object_access(ObjectAccessType access, Oid class, Oid object, int sub, void *arg)
{
	if (prev_object_access)
		prev_object_access(access, class, object, sub, arg);

	if (class != RelationRelationId || object < FirstUnpinnedObjectId || !IsTransactionState() ||
		!OidIsValid(paimon_table_am_oid()))
		return;
	switch (access)
	{
		case OAT_POST_CREATE:
			if (sub != 0)
				column_created(object, sub);
			else
				relation_created(object, arg != NULL && ((ObjectAccessPostCreate *) arg)->is_internal);
			break;
		case OAT_POST_ALTER:
			if (sub != 0)
				column_altered(object, sub);
			else if (paimon_ddl_frame != NULL)
				relation_altered(object);
			break;
		case OAT_DROP:
			if (sub > 0)
				column_dropped(object, sub);
			else if (sub == 0)
				relation_dropped(object);
			break;
		default:
			break;
	}
}

void
paimon_ddl_access_init(void)
{
	prev_object_access = object_access_hook;
	object_access_hook = object_access;
	paimon_ddl_merge_init();
}
