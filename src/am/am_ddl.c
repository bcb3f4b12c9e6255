/*-------------------------------------------------------------------------
 *
 * am_ddl.c
 *	  Storages come and go: creation, TRUNCATE, SET TABLESPACE, VACUUM FULL, DROP.
 *
 * A storage is a file with a random id in its metapage and rows of that id in the manifest.  New storage (CREATE, TRUNCATE, a rewrite) is a
 * new file with a new id; the old id's manifest rows are deleted in the same transaction, so a rollback brings both back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/multixact.h"
#include "access/relation.h"
#include "access/xact.h"
#include "am/am.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/smgr.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static object_access_hook_type prev_object_access_hook = NULL;

/*
 * Takes the manifest rows of the relation's present storage away and gives those of its new storage the same key.  have_old false: the
 * relation is being created.
 */
static void
replace_rows(Relation rel, bool have_old, uint64 old_id, bool reborn, uint64 new_id)
{
	Oid			relid = RelationGetRelid(rel);
	PaimonStorageRow row;

	if (!have_old || !paimon_catalog_storage_get(old_id, reborn ? relid : InvalidOid, &row))
	{
		memset(&row, 0, sizeof(row));
		row.encoding = PAIMON_ENCODING_VERSION;
	}

	/* Options may have changed since: the index of the key, built next, decides. */
	row.nbuckets = 1;
	row.nbucketkeys = 0;
	row.copied = false;
	if (reborn)
		paimon_catalog_relation_drop(relid);
	if (old_id != 0)
		paimon_catalog_storage_drop(old_id);
	row.storage_id = new_id;
	row.relid = OidIsValid(rel->rd_rel->relrewrite) ? rel->rd_rel->relrewrite : relid;
	paimon_catalog_storage_put(&row);
}

/* Did the storage lose its content in a crash?  Then its rows in the manifest are found by relation. */
static bool
is_reborn(Relation rel, uint64 storage_id)
{
	return rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED && (storage_id == 0 || paimon_storage_is_reborn(rel));
}

void
paimon_relation_set_new_locator(Relation rel, const PaimonLocator *locator, char persistence,
								TransactionId *freeze_xid, MultiXactId *minmulti)
{
	bool		have_old = !paimon_locator_equals(*locator, paimon_rel_locator(rel));
	uint64		old_id = have_old ? paimon_storage_id(rel) : 0;
	bool		reborn = have_old && is_reborn(rel, old_id);
	SMgrRelation srel;
	uint64		id;

	/* The oldest xid that could get into it; we use no multixacts. */
	*freeze_xid = RecentXmin;
	*minmulti = GetOldestMultiXactId();

	srel = RelationCreateStorage(*locator, persistence, true);
	id = paimon_storage_create(srel, persistence);
	smgrclose(srel);
	replace_rows(rel, have_old, old_id, reborn, id);
}

/* TRUNCATE of a table made in this transaction, and ON COMMIT DELETE ROWS: in place, since nobody could want the old content back. */
void
paimon_relation_nontransactional_truncate(Relation rel)
{
	uint64		old_id = paimon_storage_id(rel);
	bool		reborn = is_reborn(rel, old_id);
	uint64		id;

	RelationTruncate(rel, 0);
	id = paimon_storage_create(RelationGetSmgr(rel), rel->rd_rel->relpersistence);
	replace_rows(rel, true, old_id, reborn, id);

	/* The key's index is built next, and has to see the storage as it is now: the locator, by which handles are found, is still the same. */
	CacheInvalidateRelcache(rel);
	CommandCounterIncrement();
}

/* SET TABLESPACE: the same storage under another locator. */
void
paimon_relation_copy_data(Relation rel, const PaimonLocator *locator)
{
	SMgrRelation dst;

	/* The copy goes around shared buffers. */
	FlushRelationBuffers(rel);
	dst = RelationCreateStorage(*locator, rel->rd_rel->relpersistence, true);
	RelationCopyStorage(RelationGetSmgr(rel), dst, MAIN_FORKNUM, rel->rd_rel->relpersistence);
	if (smgrexists(RelationGetSmgr(rel), INIT_FORKNUM))
	{
		smgrcreate(dst, INIT_FORKNUM, false);
		if (rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
			log_smgrcreate(locator, INIT_FORKNUM);
		RelationCopyStorage(RelationGetSmgr(rel), dst, INIT_FORKNUM, rel->rd_rel->relpersistence);
	}
	RelationDropStorage(rel);
	smgrclose(dst);
}

/* VACUUM FULL and CLUSTER: the merged rows, once each, into a new storage with the same key. */
void
paimon_relation_copy_for_cluster(Relation old_table, Relation new_table, Relation old_index, bool use_sort,
								 TransactionId oldest_xmin, TransactionId *xid_cutoff, MultiXactId *multi_cutoff,
								 double *num_tuples, double *tups_vacuumed, double *tups_recently_dead)
{
	PaimonTable *from = paimon_table_get(old_table, false);
	PaimonStorageRow row;

	memset(&row, 0, sizeof(row));
	row.storage_id = paimon_storage_id(new_table);
	row.relid = RelationGetRelid(old_table);
	row.encoding = PAIMON_ENCODING_VERSION;
	row.copied = true;
	row.nkeys = from->desc->nkeys;
	for (int i = 0; i < row.nkeys; i++)
		row.keys[i] = from->desc->keys[i].attno;

	/* Rows keep their buckets. */
	row.nbuckets = from->desc->nbuckets;
	row.nbucketkeys = from->desc->nbucketkeys;
	memcpy(row.bucketkeys, from->desc->bucketkeys, sizeof(AttrNumber) * row.nbucketkeys);
	if (row.nbuckets == 1)
	{
		row.nbucketkeys = row.nkeys;
		memcpy(row.bucketkeys, row.keys, sizeof(AttrNumber) * row.nkeys);
	}
	paimon_catalog_storage_put(&row);
	CommandCounterIncrement();
	CacheInvalidateRelcache(new_table);
	AcceptInvalidationMessages();

	if (row.nkeys == 0)
		paimon_storage_follow_row_no(new_table, old_table);
	*num_tuples = paimon_copy_rows(from, old_table, paimon_table_get(new_table, true), new_table);
	*tups_vacuumed = 0;
	*tups_recently_dead = 0;
	*xid_cutoff = RecentXmin;
}

/* DROP: the manifest rows of the storage that the relation has now. */
static void
drop_storage(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	uint64		id = paimon_storage_id(rel);

	if (is_reborn(rel, id))
		paimon_catalog_relation_drop(relid);
	if (id != 0)
		paimon_catalog_storage_drop(id);
	relation_close(rel, NoLock);
}

static void
object_access(ObjectAccessType access, Oid class_id, Oid object_id, int sub_id, void *arg)
{
	if (prev_object_access_hook)
		prev_object_access_hook(access, class_id, object_id, sub_id, arg);

	if (access == OAT_DROP && class_id == RelationRelationId && sub_id == 0 && paimon_is_table(object_id) &&
		RELKIND_HAS_STORAGE(get_rel_relkind(object_id)) &&
		paimon_extension_exists())
		drop_storage(object_id);
}

void
paimon_ddl_hooks_init(void)
{
	prev_object_access_hook = object_access_hook;
	object_access_hook = object_access;
}
