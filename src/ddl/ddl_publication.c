/*-------------------------------------------------------------------------
 *
 * ddl_publication.c
 *	  Publications and paimon tables.
 *
 * Logical decoding does not know our WAL records: a subscriber would copy the table and then never hear of it again.  Where a statement names a table,
 * it is refused.  FOR ALL TABLES and FOR TABLES IN SCHEMA name none and cannot be refused for the sake of one: they, and whatever makes a paimon table
 * one that they include, give a warning.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_publication.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "ddl/ddl_internal.h"

/* A paimon table among a table and, where the publication includes them, those below it; InvalidOid if there is none. */
static Oid
find_ours(Oid relid, bool descend)
{
	List	   *tree = descend ? find_all_inheritors(relid, NoLock, NULL) : list_make1_oid(relid);
	ListCell   *lc;

	foreach(lc, tree)
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION && paimon_is_table(lfirst_oid(lc)))
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

static void
refuse_tables(List *objects)
{
	ListCell   *lc;

	foreach(lc, objects)
	{
		PublicationObjSpec *object = lfirst(lc);
		Oid			relid;
		Oid			ours;

		if (object->pubtable == NULL)
			continue;
		relid = RangeVarGetRelid(object->pubtable->relation, NoLock, true);
		if (!OidIsValid(relid))
			continue;
		ours = find_ours(relid, object->pubtable->relation->inh || get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE);
		if (OidIsValid(ours))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot add table \"%s\" to a publication", get_rel_name(relid)),
					 ours == relid ? errdetail("Changes of tables using access method paimon are not decoded.") :
					 errdetail("Changes of table \"%s\", which belongs to it and uses access method paimon, are not decoded.",
							   get_rel_name(ours))));
	}
}

/* Does the statement include all tables of a schema?  nspid 0: any. */
static bool
names_schema(List *objects, Oid nspid)
{
	ListCell   *lc;

	foreach(lc, objects)
	{
		PublicationObjSpec *object = lfirst(lc);
		Oid			named = InvalidOid;

		if (object->pubobjtype == PUBLICATIONOBJ_TABLES_IN_SCHEMA)
			named = get_namespace_oid(object->name, true);
		else if (object->pubobjtype == PUBLICATIONOBJ_TABLES_IN_CUR_SCHEMA)
			named = linitial_oid(fetch_search_path(false));
		else
			continue;
		if (!OidIsValid(nspid) || named == nspid)
			return true;
	}
	return false;
}

/* Warns if there are paimon tables whose changes the statement's publication cannot have. */
static void
warn_of_tables(const char *pubname, bool all, List *objects)
{
	Relation	pg_class;
	SysScanDesc scan;
	ScanKeyData key;
	HeapTuple	tuple;
	char	   *found = NULL;
	int			n = 0;

	if (!OidIsValid(paimon_table_am_oid()) || (!all && !names_schema(objects, InvalidOid)))
		return;
	pg_class = table_open(RelationRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_class_relam, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(paimon_table_am_oid()));
	scan = systable_beginscan(pg_class, InvalidOid, false, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		if (class->relkind != RELKIND_RELATION || class->relpersistence != RELPERSISTENCE_PERMANENT ||
			(!all && !names_schema(objects, class->relnamespace)))
			continue;
		if (n++ == 0 || strcmp(NameStr(class->relname), found) < 0)
			found = pstrdup(NameStr(class->relname));
	}
	systable_endscan(scan);
	table_close(pg_class, AccessShareLock);
	if (n > 0)
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("publication \"%s\" does not publish changes of tables using access method paimon", pubname),
				 n == 1 ? errdetail("Such a table is \"%s\".", found) :
				 errdetail("Such tables are \"%s\" and %d more.", found, n - 1)));
}

void
paimon_ddl_create_publication(DdlFrame *frame, CreatePublicationStmt *stmt)
{
	refuse_tables(stmt->pubobjects);
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
	warn_of_tables(stmt->pubname, stmt->for_all_tables, stmt->pubobjects);
}

void
paimon_ddl_alter_publication(DdlFrame *frame, AlterPublicationStmt *stmt)
{
	bool		adds = stmt->action != AP_DropObjects;

	if (adds)
		refuse_tables(stmt->pubobjects);
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
	if (adds)
		warn_of_tables(stmt->pubname, false, stmt->pubobjects);
}

/* Publications that include a table by itself, or all tables of its schema, added to a list. */
static List *
add_publications(List *list, Oid relid)
{
	list = list_concat_unique_oid(list, GetRelationPublications(relid));
	return list_concat_unique_oid(list, GetSchemaPublications(get_rel_namespace(relid)));
}

/*
 * A table has become ours, or (with the parent) a partition: warns if a publication includes it.
 */
void
paimon_ddl_warn_published(Oid relid, Oid parentid)
{
	List	   *publications = NIL;
	ListCell   *lc;

	if (get_rel_relkind(relid) != RELKIND_RELATION || get_rel_persistence(relid) != RELPERSISTENCE_PERMANENT)
		return;
	if (!OidIsValid(parentid))
	{
		publications = list_concat(GetAllTablesPublications(), add_publications(NIL, relid));
		if (get_rel_relispartition(relid))
			parentid = linitial_oid(get_partition_ancestors(relid));
	}
	if (OidIsValid(parentid))
	{
		publications = add_publications(publications, parentid);
		if (get_rel_relispartition(parentid))
		{
			foreach(lc, get_partition_ancestors(parentid))
				publications = add_publications(publications, lfirst_oid(lc));
		}
	}
	if (publications != NIL)
		ereport(WARNING,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("publication \"%s\" does not publish changes of table \"%s\"",
						get_publication_name(linitial_oid(publications), false), get_rel_name(relid)),
				 errdetail("Changes of tables using access method paimon are not decoded.")));
}

/* A table that a publication names cannot become ours. */
void
paimon_ddl_refuse_published(Oid relid)
{
	List	   *publications = GetRelationPublications(relid);

	if (publications != NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot change access method of table \"%s\" to paimon because of publication \"%s\"",
						get_rel_name(relid), get_publication_name(linitial_oid(publications), false)),
				 errdetail("Changes of tables using access method paimon are not decoded."),
				 errhint("Drop the table from the publication first.")));
}
