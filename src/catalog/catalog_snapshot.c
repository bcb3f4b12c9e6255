/*-------------------------------------------------------------------------
 *
 * catalog_snapshot.c
 *	  paimon.snapshot: the snapshots of each storage; and the server's snapshot that publishers read with.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_internal.h"

static void
read_row(TupleDesc desc, HeapTuple tuple, PaimonSnapshotRow *row)
{
	Datum		values[NATTS_SNAPSHOT];
	bool		isnull[NATTS_SNAPSHOT];

	heap_deform_tuple(tuple, desc, values, isnull);
	row->storage_id = paimon_manifest_get_uint64(values[ANUM_SNAPSHOT_STORAGE_ID - 1]);
	row->snapshot_id = DatumGetInt64(values[ANUM_SNAPSHOT_ID - 1]);
	row->commit_time = DatumGetTimestampTz(values[ANUM_SNAPSHOT_COMMIT_TIME - 1]);
	row->position = paimon_manifest_get_uint64(values[ANUM_SNAPSHOT_POSITION - 1]);
	row->total_record_count = DatumGetInt64(values[ANUM_SNAPSHOT_TOTAL_RECORD_COUNT - 1]);
	row->delta_record_count = DatumGetInt64(values[ANUM_SNAPSHOT_DELTA_RECORD_COUNT - 1]);
	row->append_count = DatumGetInt64(values[ANUM_SNAPSHOT_APPEND_COUNT - 1]);
	row->kind = DatumGetInt32(values[ANUM_SNAPSHOT_COMMIT_KIND - 1]);
	row->schema_natts = DatumGetInt32(values[ANUM_SNAPSHOT_SCHEMA_NATTS - 1]);
}

/* `row` may be NULL; it is set to zeros if there is no snapshot. */
int64
paimon_catalog_snapshot_latest(uint64 storage_id, Snapshot snapshot, PaimonSnapshotRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	PaimonSnapshotRow latest = {0};

	paimon_manifest_key_uint64(&key, ANUM_SNAPSHOT_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_SNAPSHOT, PAIMON_MANIFEST_SNAPSHOT_PKEY, true,
							   AccessShareLock, snapshot, 1, &key);
	tuple = paimon_manifest_scan_prev(&scan);
	if (tuple != NULL)
		read_row(RelationGetDescr(scan.rel), tuple, &latest);
	paimon_manifest_scan_end(&scan);
	if (row != NULL)
		*row = latest;
	return latest.snapshot_id;
}

int64
paimon_catalog_snapshot_earliest(uint64 storage_id, Snapshot snapshot)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	PaimonSnapshotRow row = {0};

	paimon_manifest_key_uint64(&key, ANUM_SNAPSHOT_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_SNAPSHOT, PAIMON_MANIFEST_SNAPSHOT_PKEY, true,
							   AccessShareLock, snapshot, 1, &key);
	tuple = paimon_manifest_scan_next(&scan);
	if (tuple != NULL)
		read_row(RelationGetDescr(scan.rel), tuple, &row);
	paimon_manifest_scan_end(&scan);
	return row.snapshot_id;
}

void
paimon_catalog_snapshot_expire(uint64 storage_id, int64 until)
{
	PaimonManifestScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;

	paimon_manifest_key_uint64(&keys[0], ANUM_SNAPSHOT_STORAGE_ID, storage_id);
	ScanKeyInit(&keys[1], ANUM_SNAPSHOT_ID, BTLessStrategyNumber, F_INT8LT, Int64GetDatum(until));
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_SNAPSHOT, PAIMON_MANIFEST_SNAPSHOT_PKEY, false,
							   RowExclusiveLock, SnapshotSelf, 2, keys);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		paimon_manifest_delete(&scan, tuple);
	}
	paimon_manifest_scan_end(&scan);
}

/* All snapshots of a storage, oldest first; palloc'd. */
PaimonSnapshotRow *
paimon_catalog_snapshots(uint64 storage_id, Snapshot snapshot, int *nsnapshots)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	int			n = 0;
	int			allocated = 64;
	PaimonSnapshotRow *rows = palloc(allocated * sizeof(PaimonSnapshotRow));

	paimon_manifest_key_uint64(&key, ANUM_SNAPSHOT_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_SNAPSHOT, PAIMON_MANIFEST_SNAPSHOT_PKEY, true,
							   AccessShareLock, snapshot, 1, &key);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		if (n == allocated)
		{
			allocated *= 2;
			rows = repalloc_huge(rows, allocated * sizeof(PaimonSnapshotRow));
		}
		read_row(RelationGetDescr(scan.rel), tuple, &rows[n++]);
	}
	paimon_manifest_scan_end(&scan);
	*nsnapshots = n;
	return rows;
}

void
paimon_catalog_snapshot_insert(const PaimonSnapshotRow *row)
{
	Datum		values[NATTS_SNAPSHOT];
	bool		isnull[NATTS_SNAPSHOT] = {false};

	values[ANUM_SNAPSHOT_STORAGE_ID - 1] = paimon_manifest_uint64(row->storage_id);
	values[ANUM_SNAPSHOT_ID - 1] = Int64GetDatum(row->snapshot_id);
	values[ANUM_SNAPSHOT_COMMIT_TIME - 1] = TimestampTzGetDatum(row->commit_time);
	values[ANUM_SNAPSHOT_POSITION - 1] = paimon_manifest_uint64(row->position);
	values[ANUM_SNAPSHOT_TOTAL_RECORD_COUNT - 1] = Int64GetDatum(row->total_record_count);
	values[ANUM_SNAPSHOT_DELTA_RECORD_COUNT - 1] = Int64GetDatum(row->delta_record_count);
	values[ANUM_SNAPSHOT_APPEND_COUNT - 1] = Int64GetDatum(row->append_count);
	values[ANUM_SNAPSHOT_COMMIT_KIND - 1] = Int32GetDatum(row->kind);
	values[ANUM_SNAPSHOT_SCHEMA_NATTS - 1] = Int32GetDatum(row->schema_natts);
	paimon_manifest_insert(PAIMON_MANIFEST_SNAPSHOT, values, isnull);
}

/*
 * To be called after the publish lock was got.  Whatever the isolation level, the snapshot is a new one.
 *
 * While a parallel plan runs (CREATE TABLE AS writes above one, and workers may be the first to use a table) the server refuses
 * GetLatestSnapshot; a catalog snapshot is as new, and a new one is taken for relations without syscache, as the manifest's are.
 */
Snapshot
paimon_catalog_latest_snapshot(void)
{
	if (IsInParallelMode())
		return RegisterSnapshot(GetCatalogSnapshot(paimon_manifest_table_oid(PAIMON_MANIFEST_FILE)));
	return RegisterSnapshot(GetLatestSnapshot());
}
