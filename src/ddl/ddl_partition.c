/*-------------------------------------------------------------------------
 *
 * ddl_partition.c
 *	  Partitioned tables: which of them are ours, and which partitions fit.
 *
 * Core matches a partition's key index with its parent's by access method, so
 * both must be ours or neither.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_index.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ddl/ddl_internal.h"

static List *
index_list(Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);	/* a parent may not be locked when its partition is altered */
	List	   *list;

	if (rel == NULL)
		return NIL;
	list = RelationGetIndexList(rel);
	RelationClose(rel);
	return list;
}

/* Without an index (and only so) partitions of a partitioned table may be of any kind. */
bool
paimon_ddl_has_index(Oid relid)
{
	return index_list(relid) != NIL;
}

/*
 * Make a partitioned table ours: mark it, with `items` as its other options, and
 * flip its key.  It has no partitions or no key, and the caller holds AccessExclusiveLock.
 */
void
paimon_ddl_mark_parent(Oid relid, List *items)
{
	PaimonOptionItem mark = {PAIMON_MARK_OPTION, PAIMON_MARK_VALUE};
	Oid			keyid = paimon_ddl_primary_key(relid);

	paimon_ddl_check_reserved(relid);
	paimon_ddl_write_items(relid, paimon_ddl_merge_items(list_make1(&mark), items));
	if (!OidIsValid(paimon_ddl_relam(relid)))
		paimon_ddl_depend_on_am(relid, paimon_table_am_oid());
	if (OidIsValid(keyid) && paimon_ddl_relam(keyid) == BTREE_AM_OID)
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(keyid));
		Form_pg_index index = (Form_pg_index) GETSTRUCT(tuple);

		paimon_ddl_check_key(relid, index->indkey.values, index->indnkeyatts);
		ReleaseSysCache(tuple);
		LockRelationOid(keyid, AccessExclusiveLock);
		paimon_ddl_flip(keyid, true);
	}
}

/* May a partitioned table become ours now?  Only before it has a partition, and with no other index than its key. */
bool
paimon_ddl_can_mark(Oid relid)
{
	List	   *indexes = index_list(relid);
	Oid			keyid = paimon_ddl_primary_key(relid);
	Oid			am = paimon_ddl_relam(relid);

	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE || has_subclass(relid) ||
		(OidIsValid(am) && am != paimon_table_am_oid()))
		return false;
	return indexes == NIL || (list_length(indexes) == 1 && linitial_oid(indexes) == keyid);
}

/*
 * A table is about to become a partition of another, on which the caller holds
 * AccessExclusiveLock.  The first partition decides about a partitioned table whose own
 * definition does not: so the default access method works for partitioned tables too.
 */
void
paimon_ddl_new_partition(Oid parentid, const char *leafname, bool leaf_is_paimon)
{
	bool		parent_is_paimon = paimon_is_table(parentid);

	if (parent_is_paimon == leaf_is_paimon ||
		get_rel_relkind(parentid) != RELKIND_PARTITIONED_TABLE ||
		!paimon_owns_relation(parentid) ||
		!paimon_ddl_has_index(parentid))
		return;
	if (leaf_is_paimon && paimon_ddl_can_mark(parentid))
	{
		paimon_ddl_mark_parent(parentid, NIL);
		return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 leaf_is_paimon ?
			 errmsg("table \"%s\" using access method paimon cannot be a partition of \"%s\"",
					leafname, get_rel_name(parentid)) :
			 errmsg("table \"%s\" not using access method paimon cannot be a partition of \"%s\"",
					leafname, get_rel_name(parentid)),
			 errdetail("The partitioned table has indexes that do not suit the partition's access method."),
			 leaf_is_paimon ?
			 errhint("Create the partitioned table with USING paimon.") :
			 errhint("All its partitions must use access method paimon.")));
}

bool
paimon_ddl_has_partitioned_child(Oid relid)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		if (lfirst_oid(lc) != relid && get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_TABLE)
			return true;
	}
	return false;
}

/*
 * Until 17 core makes no unique index on a partitioned table that is not a btree.  It
 * copies a parent's key to a partition that is partitioned itself, so for such a
 * statement the keys of partitioned tables (which have no storage) are btrees, and new ones stay so,
 * until it is through.  Indexes of partitions with storage are flipped as ever.
 * The whole tree is locked exclusively: nobody sees it meanwhile.
 */
void
paimon_ddl_late_parents(DdlFrame *frame, Oid relid)
{
	ListCell   *lc;

	frame->late_parents = true;
	foreach(lc, find_all_inheritors(relid, AccessExclusiveLock, NULL))
	{
		Oid			keyid = InvalidOid;

		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_TABLE)
			keyid = paimon_ddl_primary_key(lfirst_oid(lc));
		if (!OidIsValid(keyid) || paimon_ddl_relam(keyid) != paimon_key_am_oid())
			continue;
		LockRelationOid(keyid, AccessExclusiveLock);
		paimon_ddl_flip(keyid, false);
		paimon_ddl_remember(&frame->late, keyid);
	}
}

/* The end of that. */
void
paimon_ddl_flip_late(DdlFrame *frame)
{
	ListCell   *lc;

	foreach(lc, frame->late)
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_PARTITIONED_INDEX)
			paimon_ddl_flip(lfirst_oid(lc), true);
	}
}
