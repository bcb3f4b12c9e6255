/*-------------------------------------------------------------------------
 *
 * catalog_storage.c
 *	  paimon.storage: how the rows of each storage are keyed; and the end of a storage in all manifest tables.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog/catalog_internal.h"

static Datum
attnos_to_array(const AttrNumber *attnos, int n)
{
	Datum		elems[INDEX_MAX_KEYS];

	for (int i = 0; i < n; i++)
		elems[i] = Int16GetDatum(attnos[i]);
	return PointerGetDatum(construct_array(elems, n, INT2OID, sizeof(int16), true, TYPALIGN_SHORT));
}

/* Contents of a smallint[] of at most INDEX_MAX_KEYS elements; anything else is damage. */
static int
array_to_attnos(Datum d, AttrNumber *attnos, uint64 storage_id)
{
	ArrayType  *array = DatumGetArrayTypeP(d);
	int			n = ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0];

	if (ARR_NDIM(array) > 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != INT2OID || n < 0 || n > INDEX_MAX_KEYS)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row of \"paimon.storage\" for storage " UINT64_FORMAT " is damaged", storage_id)));
	if (n > 0)
		memcpy(attnos, ARR_DATA_PTR(array), n * sizeof(int16));
	return n;
}

static void
read_row(TupleDesc desc, HeapTuple tuple, PaimonStorageRow *row, TimestampTz *created)
{
	Datum		values[NATTS_STORAGE];
	bool		isnull[NATTS_STORAGE];

	heap_deform_tuple(tuple, desc, values, isnull);
	memset(row, 0, sizeof(*row));
	row->storage_id = paimon_manifest_get_uint64(values[ANUM_STORAGE_ID - 1]);
	row->relid = DatumGetObjectId(values[ANUM_STORAGE_RELID - 1]);
	row->nbuckets = DatumGetInt32(values[ANUM_STORAGE_NBUCKETS - 1]);
	row->encoding = DatumGetInt32(values[ANUM_STORAGE_ENCODING - 1]);
	row->nkeys = array_to_attnos(values[ANUM_STORAGE_KEYS - 1], row->keys, row->storage_id);
	row->nbucketkeys = array_to_attnos(values[ANUM_STORAGE_BUCKET_KEYS - 1], row->bucketkeys, row->storage_id);
	row->copied = DatumGetBool(values[ANUM_STORAGE_COPIED - 1]);
	*created = DatumGetTimestampTz(values[ANUM_STORAGE_CREATED - 1]);
	if (row->nbuckets < 1)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row of \"paimon.storage\" for storage " UINT64_FORMAT " is damaged", row->storage_id)));
}

bool
paimon_catalog_storage_get(uint64 storage_id, Oid reborn_relid, PaimonStorageRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	TimestampTz created;
	TimestampTz best = 0;
	bool		found;

	paimon_manifest_key_uint64(&key, ANUM_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_PKEY, false,
							   AccessShareLock, NULL, 1, &key);
	tuple = paimon_manifest_scan_next(&scan);
	found = tuple != NULL;
	if (found)
		read_row(RelationGetDescr(scan.rel), tuple, row, &created);
	paimon_manifest_scan_end(&scan);
	if (found || !OidIsValid(reborn_relid))
		return found;

	ScanKeyInit(&key, ANUM_STORAGE_RELID, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(reborn_relid));
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_RELID_IDX, false,
							   AccessShareLock, NULL, 1, &key);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		PaimonStorageRow candidate;

		read_row(RelationGetDescr(scan.rel), tuple, &candidate, &created);
		if (!found || created >= best)
		{
			*row = candidate;
			best = created;
			found = true;
		}
	}
	paimon_manifest_scan_end(&scan);
	return found;
}

bool
paimon_catalog_storage_visible(uint64 storage_id, Snapshot snapshot)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	bool		found;

	paimon_manifest_key_uint64(&key, ANUM_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_PKEY, false,
							   AccessShareLock, snapshot, 1, &key);
	found = paimon_manifest_scan_next(&scan) != NULL;
	paimon_manifest_scan_end(&scan);
	return found;
}

void
paimon_catalog_storage_put(const PaimonStorageRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	Datum		values[NATTS_STORAGE];
	bool		isnull[NATTS_STORAGE] = {false};
	bool		replace[NATTS_STORAGE];

	values[ANUM_STORAGE_ID - 1] = paimon_manifest_uint64(row->storage_id);
	values[ANUM_STORAGE_CREATED - 1] = TimestampTzGetDatum(GetCurrentTimestamp());
	values[ANUM_STORAGE_RELID - 1] = ObjectIdGetDatum(row->relid);
	values[ANUM_STORAGE_NBUCKETS - 1] = Int32GetDatum(row->nbuckets);
	values[ANUM_STORAGE_ENCODING - 1] = Int32GetDatum(row->encoding);
	values[ANUM_STORAGE_COPIED - 1] = BoolGetDatum(row->copied);
	values[ANUM_STORAGE_KEYS - 1] = attnos_to_array(row->keys, row->nkeys);
	values[ANUM_STORAGE_BUCKET_KEYS - 1] = attnos_to_array(row->bucketkeys, row->nbucketkeys);

	paimon_manifest_key_uint64(&key, ANUM_STORAGE_ID, row->storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_PKEY, false,
							   RowExclusiveLock, SnapshotSelf, 1, &key);
	tuple = paimon_manifest_scan_next(&scan);
	if (tuple != NULL)
	{
		memset(replace, true, sizeof(replace));
		replace[ANUM_STORAGE_ID - 1] = false;
		replace[ANUM_STORAGE_CREATED - 1] = false;
		paimon_manifest_update(&scan, tuple, values, isnull, replace);
	}
	else
		paimon_manifest_insert(PAIMON_MANIFEST_STORAGE, values, isnull);
	paimon_manifest_scan_end(&scan);
}

void
paimon_catalog_storage_drop(uint64 storage_id)
{
	if (!paimon_manifest_exists())
		return;
	paimon_manifest_delete_storage(PAIMON_MANIFEST_FILE, PAIMON_MANIFEST_FILE_PKEY, storage_id);
	paimon_manifest_delete_storage(PAIMON_MANIFEST_SNAPSHOT, PAIMON_MANIFEST_SNAPSHOT_PKEY, storage_id);
	paimon_manifest_delete_storage(PAIMON_MANIFEST_LOG, PAIMON_MANIFEST_LOG_PKEY, storage_id);
	paimon_manifest_delete_storage(PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_PKEY, storage_id);
}

void
paimon_catalog_relation_drop(Oid relid)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	uint64	   *ids = NULL;
	int			nids = 0;
	int			allocated = 0;

	if (!paimon_manifest_exists())
		return;

	/* Collected first: deleting moves on to a new command while the scan would still be open. */
	ScanKeyInit(&key, ANUM_STORAGE_RELID, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_STORAGE, PAIMON_MANIFEST_STORAGE_RELID_IDX, false,
							   RowExclusiveLock, SnapshotSelf, 1, &key);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		PaimonStorageRow row;
		TimestampTz created;

		CHECK_FOR_INTERRUPTS();
		read_row(RelationGetDescr(scan.rel), tuple, &row, &created);
		if (nids == allocated)
		{
			allocated = allocated == 0 ? 8 : allocated * 2;
			ids = ids == NULL ? palloc(allocated * sizeof(uint64)) : repalloc(ids, allocated * sizeof(uint64));
		}
		ids[nids++] = row.storage_id;
	}
	paimon_manifest_scan_end(&scan);
	for (int i = 0; i < nids; i++)
		paimon_catalog_storage_drop(ids[i]);
	if (ids != NULL)
		pfree(ids);
}
