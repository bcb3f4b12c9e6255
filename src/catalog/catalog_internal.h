/*-------------------------------------------------------------------------
 *
 * catalog_internal.h
 *	  What the files of src/catalog share: opening, scanning and changing manifest tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CATALOG_INTERNAL_H
#define PAIMON_CATALOG_INTERNAL_H

#include "catalog/manifest.h"

#include "access/genam.h"
#include "access/htup.h"
#include "access/skey.h"
#include "access/stratnum.h"
#include "utils/fmgroids.h"

typedef enum PaimonManifestTable
{
	PAIMON_MANIFEST_STORAGE = 0,
	PAIMON_MANIFEST_LOG,
	PAIMON_MANIFEST_FILE,
	PAIMON_MANIFEST_SNAPSHOT
} PaimonManifestTable;

#define PAIMON_MANIFEST_TABLES 4

typedef enum PaimonManifestIndex
{
	PAIMON_MANIFEST_STORAGE_PKEY = 0,
	PAIMON_MANIFEST_STORAGE_RELID_IDX,
	PAIMON_MANIFEST_LOG_PKEY,
	PAIMON_MANIFEST_FILE_PKEY,
	PAIMON_MANIFEST_SNAPSHOT_PKEY
} PaimonManifestIndex;

#define PAIMON_MANIFEST_INDEXES 5

/* ---- columns, in the order of sql/parts/10_catalog.sql ---- */

enum
{
	ANUM_STORAGE_ID = 1,
	ANUM_STORAGE_CREATED,
	ANUM_STORAGE_RELID,
	ANUM_STORAGE_NBUCKETS,
	ANUM_STORAGE_ENCODING,
	ANUM_STORAGE_KEYS,
	ANUM_STORAGE_BUCKET_KEYS,
	ANUM_STORAGE_COPIED,
	NATTS_STORAGE = ANUM_STORAGE_COPIED
};

enum
{
	ANUM_LOG_STORAGE_ID = 1,
	ANUM_LOG_HEAD,
	ANUM_LOG_VERSION,
	ANUM_LOG_LEFTOVER,
	ANUM_LOG_CLOSED_HEAD,
	ANUM_LOG_CLOSED_XID,
	NATTS_LOG = ANUM_LOG_CLOSED_XID
};

enum
{
	ANUM_FILE_STORAGE_ID = 1,
	ANUM_FILE_NO,
	ANUM_FILE_MIN_POSITION,
	ANUM_FILE_MAX_POSITION,
	ANUM_FILE_ROW_COUNT,
	ANUM_FILE_DELETE_COUNT,
	ANUM_FILE_BYTES,
	ANUM_FILE_ADDED_SNAPSHOT,
	ANUM_FILE_REMOVED_SNAPSHOT,
	ANUM_FILE_APPEND_COUNT,
	ANUM_FILE_CLOSING_XID,
	ANUM_FILE_CREATION_TIME,
	ANUM_FILE_BUCKET,
	ANUM_FILE_LEVEL,
	ANUM_FILE_ORDINAL,
	ANUM_FILE_NPAGES,
	ANUM_FILE_FOOTER_PAGE,
	ANUM_FILE_FOOTER_LEN,
	ANUM_FILE_SOURCE,
	ANUM_FILE_SCHEMA_NATTS,
	ANUM_FILE_MIN_KEY,
	ANUM_FILE_MAX_KEY,
	ANUM_FILE_EXTENTS,
	NATTS_FILE = ANUM_FILE_EXTENTS
};

enum
{
	ANUM_SNAPSHOT_STORAGE_ID = 1,
	ANUM_SNAPSHOT_ID,
	ANUM_SNAPSHOT_COMMIT_TIME,
	ANUM_SNAPSHOT_POSITION,
	ANUM_SNAPSHOT_TOTAL_RECORD_COUNT,
	ANUM_SNAPSHOT_DELTA_RECORD_COUNT,
	ANUM_SNAPSHOT_APPEND_COUNT,
	ANUM_SNAPSHOT_COMMIT_KIND,
	ANUM_SNAPSHOT_SCHEMA_NATTS,
	NATTS_SNAPSHOT = ANUM_SNAPSHOT_SCHEMA_NATTS
};

/* ---- catalog_relation.c ---- */

/* OIDs from the cache, which is filled if need be; errors if the extension is absent or its objects are not as installed. */
extern Oid	paimon_manifest_table_oid(PaimonManifestTable table);
extern Oid	paimon_manifest_index_oid(PaimonManifestIndex index);
extern bool paimon_manifest_exists(void);

/* ---- catalog_scan.c ---- */

/*
 * An index scan over a manifest table.  Rows are returned as `snapshot` sees them, under every isolation level without leaving predicate
 * locks behind (see README.md).
 */
typedef struct PaimonManifestScan
{
	Relation	rel;			/* NULL during pg_upgrade, when there are no rows */
	Relation	index;			/* ordered scans only */
	SysScanDesc scan;
	Snapshot	filter;			/* rows must satisfy it; NULL: the scan itself looks after visibility */
	Snapshot	registered;		/* to be unregistered, or NULL */
	LOCKMODE	lockmode;
} PaimonManifestScan;

/* snapshot NULL = catalog snapshot.  `keys` are over attribute numbers of the table and are modified. */
extern void paimon_manifest_scan_begin(PaimonManifestScan *scan, PaimonManifestTable table, PaimonManifestIndex index,
									   bool ordered, LOCKMODE lockmode, Snapshot snapshot, int nkeys, ScanKey keys);
extern HeapTuple paimon_manifest_scan_next(PaimonManifestScan *scan);
extern HeapTuple paimon_manifest_scan_prev(PaimonManifestScan *scan);	/* ordered scans, from the end */

/* Closes the table too; a lock stronger than AccessShareLock is kept to the end of the transaction. */
extern void paimon_manifest_scan_end(PaimonManifestScan *scan);

extern void paimon_manifest_key_uint64(ScanKey key, AttrNumber attno, uint64 value);

/* Inserts a row; `rel` is open with RowExclusiveLock. */
extern void paimon_manifest_insert(PaimonManifestTable table, Datum *values, bool *isnull);

/*
 * Replaces some columns of the row last returned by the scan, or deletes it.  The scan was begun with SnapshotSelf and RowExclusiveLock.
 */
extern void paimon_manifest_update(PaimonManifestScan *scan, HeapTuple tuple, Datum *values, bool *isnull, bool *replace);
extern void paimon_manifest_delete(PaimonManifestScan *scan, HeapTuple tuple);

/* Deletes all rows of a storage in one table (by the index, whose first column is the storage id). */
extern void paimon_manifest_delete_storage(PaimonManifestTable table, PaimonManifestIndex index, uint64 storage_id);

/* Values of columns.  Full xids and 64-bit numbers without sign travel in int8's shape. */
static inline Datum
paimon_manifest_uint64(uint64 v)
{
	return Int64GetDatum((int64) v);
}

static inline uint64
paimon_manifest_get_uint64(Datum d)
{
	return (uint64) DatumGetInt64(d);
}

#endif							/* PAIMON_CATALOG_INTERNAL_H */
