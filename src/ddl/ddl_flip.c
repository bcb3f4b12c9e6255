/*-------------------------------------------------------------------------
 *
 * ddl_flip.c
 *	  The flip: a primary key's btree index becomes a paimon_key index, and back.
 *
 * Only pg_class.relam changes; the operator classes stay those of btree, which is what
 * makes the planner, foreign keys and partitioning take the index for what it stands
 * for.  README.md has the reasons and what must hold.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_opclass.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "nodes/pg_list.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "ddl/ddl_internal.h"
#include "row/row.h"

/* Refuse key columns whose type has no encoding. */
void
paimon_ddl_check_key(Oid relid, const int16 *attnos, int nkeys)
{
	for (int i = 0; i < nkeys; i++)
	{
		Oid			type;
		int32		typmod;
		Oid			collation;
		const char *why = NULL;

		get_atttypetypmodcoll(relid, attnos[i], &type, &typmod, &collation);
		if (paimon_key_type_supported(type, collation, &why))
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("column \"%s\" of type %s cannot be a key column of paimon table \"%s\"",
						get_attname(relid, attnos[i], false), format_type_with_typemod(type, typmod),
						get_rel_name(relid)),
				 why != NULL ? errdetail_internal("%s", why) : 0));
	}
}

/*
 * With btree operator classes nothing else would tie the relation to the
 * extension: DROP EXTENSION would leave it behind, unreadable.
 */
void
paimon_ddl_depend_on_am(Oid relid, Oid amid)
{
	ObjectAddress self;
	ObjectAddress am;

	ObjectAddressSet(self, RelationRelationId, relid);
	ObjectAddressSet(am, AccessMethodRelationId, amid);
	recordDependencyOn(&self, &am, DEPENDENCY_NORMAL);
}

static void
set_relam(Oid indexid, Oid amid)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheLocked1(RELOID, ObjectIdGetDatum(indexid));
	HeapTuple	copy;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", indexid);
	copy = heap_copytuple(tuple);
	((Form_pg_class) GETSTRUCT(copy))->relam = amid;
	CatalogTupleUpdate(pg_class, &tuple->t_self, copy);
	UnlockTuple(pg_class, &tuple->t_self, InplaceUpdateTupleLock);
	heap_freetuple(copy);
	ReleaseSysCache(tuple);
	table_close(pg_class, RowExclusiveLock);
}

/*
 * The btree class of a key column.  It comes from the column's own type, not
 * from what the present class takes: citext, for one, is coercible to text, whose
 * class would silently make its keys case-sensitive.
 */
static Oid
btree_class(Oid relid, AttrNumber attno)
{
	Oid			type = get_atttype(relid, attno);
	Oid			opclass = GetDefaultOpClass(type, BTREE_AM_OID);

	if (!OidIsValid(opclass))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("column \"%s\" of type %s cannot be a key column of paimon table \"%s\"",
						get_attname(relid, attno, false), format_type_be(type), get_rel_name(relid)),
				 errdetail("The type has no default operator class for access method btree.")));
	return opclass;
}

static Oid
class_method(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Oid			method = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		method = ((Form_pg_opclass) GETSTRUCT(tuple))->opcmethod;
		ReleaseSysCache(tuple);
	}
	return method;
}

static void
depend_on_class(Oid indexid, Oid opclass)
{
	ObjectAddress self;
	ObjectAddress class;

	ObjectAddressSet(self, RelationRelationId, indexid);
	ObjectAddressSet(class, OperatorClassRelationId, opclass);
	recordDependencyOn(&self, &class, DEPENDENCY_NORMAL);
}

/*
 * Indexes that core clones from a paimon_key index (of a partitioned table) get
 * the only operator class that paimon_key has, which is made for this and knows
 * nothing: put btree's in its place.
 */
static void
set_btree_classes(Oid indexid)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(indexid));
	Form_pg_index index;
	oidvector  *classes;
	bool		isnull;
	List	   *replaced = NIL;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", indexid);
	index = (Form_pg_index) GETSTRUCT(tuple);
	/* The vector has a fixed place and size in the tuple, so it is changed where it lies in our copy. */
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull));
	for (int i = 0; i < index->indnkeyatts; i++)
	{
		Oid			want;

		if (class_method(classes->values[i]) == BTREE_AM_OID)
			continue;
		want = btree_class(index->indrelid, index->indkey.values[i]);
		/* All columns of a clone have one class, whose dependency is there once or more, but goes at once. */
		if (!list_member_oid(replaced, classes->values[i]))
			(void) deleteDependencyRecordsForSpecific(RelationRelationId, indexid, DEPENDENCY_NORMAL,
													  OperatorClassRelationId, classes->values[i]);
		replaced = list_append_unique_oid(replaced, classes->values[i]);
		depend_on_class(indexid, want);
		classes->values[i] = want;
	}
	if (replaced != NIL)
		CatalogTupleUpdate(pg_index, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_index, RowExclusiveLock);
}

/* What a relcache entry derives from the operator classes. */
static void
patch_classes(Relation index)
{
	int			nkeys = IndexRelationGetNumberOfKeyAttributes(index);
	int			nsupport = index->rd_indam->amsupport;
	bool		isnull;
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(RelationGetRelid(index)));
	oidvector  *classes;
	int			size = IndexRelationGetNumberOfAttributes(index) * Max(nsupport, 1);

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", RelationGetRelid(index));
	classes = (oidvector *) DatumGetPointer(SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indclass, &isnull));
	index->rd_support = MemoryContextAllocZero(index->rd_indexcxt, size * sizeof(RegProcedure));
	index->rd_supportinfo = MemoryContextAllocZero(index->rd_indexcxt, size * sizeof(FmgrInfo));
	for (int i = 0; i < nkeys; i++)
	{
		Oid			family = get_opclass_family(classes->values[i]);
		Oid			input = get_opclass_input_type(classes->values[i]);

		index->rd_opfamily[i] = family;
		index->rd_opcintype[i] = input;
		for (int proc = 1; proc <= nsupport; proc++)
			index->rd_support[i * nsupport + proc - 1] = get_opfamily_proc(family, input, input, proc);
	}
	ReleaseSysCache(tuple);
}

/*
 * An index entry in use is not built anew by an invalidation: its access method
 * and operator classes stay as they were when it was made.  Put in the new ones; the
 * frame's end sends an invalidation that removes the entry once it is free.
 */
static void
patch_relcache(Oid indexid, Oid amid)
{
	Relation	index = relation_open(indexid, AccessExclusiveLock);	/* nobody has it who could make us wait */
	MemoryContext old;

	if (index->rd_indam != NULL && index->rd_indexcxt != NULL)
	{
		HeapTuple	tuple = SearchSysCache1(AMOID, ObjectIdGetDatum(amid));
		IndexAmRoutine *routine;

		if (!HeapTupleIsValid(tuple))
			elog(ERROR, "cache lookup failed for access method %u", amid);
		index->rd_amhandler = ((Form_pg_am) GETSTRUCT(tuple))->amhandler;
		ReleaseSysCache(tuple);
		routine = GetIndexAmRoutine(index->rd_amhandler);
		memcpy(index->rd_indam, routine, sizeof(IndexAmRoutine));

		old = MemoryContextSwitchTo(index->rd_indexcxt);
		patch_classes(index);
		MemoryContextSwitchTo(old);
	}
	relation_close(index, NoLock);

	paimon_ddl_remember(&paimon_ddl_frame->flipped, indexid);
}

/*
 * Flip an index.  Its row may belong to the running command (then the command
 * counter has been advanced by the caller); nobody else can use it: it is new, or its
 * table is locked exclusively.
 */
void
paimon_ddl_flip(Oid indexid, bool to_paimon)
{
	Oid			key_am = paimon_key_am_oid();
	Oid			amid = to_paimon ? key_am : BTREE_AM_OID;

	if (!OidIsValid(key_am))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"%s\" does not exist", "paimon_key")));

	(void) deleteDependencyRecordsForSpecific(RelationRelationId, indexid, DEPENDENCY_NORMAL,
											  AccessMethodRelationId, key_am);
	if (to_paimon)
		paimon_ddl_depend_on_am(indexid, key_am);
	set_btree_classes(indexid);
	set_relam(indexid, amid);
	CommandCounterIncrement();
	patch_relcache(indexid, amid);
}
