/*-------------------------------------------------------------------------
 *
 * manifest.h
 *	  The manifest: heap tables in schema paimon, and the only code that touches them.
 *
 * All reads take the snapshot to read with; all writes happen in the current transaction and are followed by
 * CommandCounterIncrement by the caller where the same transaction must see them.  Rows are keyed by storage id, never by relation.
 * Nothing here checks privileges: callers do.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_MANIFEST_H
#define PAIMON_MANIFEST_H

#include "postgres.h"

#include "access/transam.h"
#include "datatype/timestamp.h"
#include "utils/snapshot.h"

#include "storage/storage.h"

/* ---- paimon.storage: one row per storage: how its rows are keyed ---- */

#define PAIMON_ENCODING_VERSION 1

typedef struct PaimonStorageRow
{
	uint64		storage_id;
	Oid			relid;			/* relation that had it when the row was written: a hint */
	int			nkeys;			/* 0: append storage, keyed by a hidden row number */
	AttrNumber	keys[INDEX_MAX_KEYS];	/* in key order */
	int			nbucketkeys;	/* 0 with a key: not decided yet, the options tell */
	AttrNumber	bucketkeys[INDEX_MAX_KEYS];
	int			nbuckets;
	int			encoding;		/* PAIMON_ENCODING_VERSION */
	bool		copied;			/* made by VACUUM FULL: holds rows that are older than itself */
} PaimonStorageRow;

/* By storage id; if there is none and reborn_relid is valid, the newest row with that relation.  Reads with the catalog snapshot. */
extern bool paimon_catalog_storage_get(uint64 storage_id, Oid reborn_relid, PaimonStorageRow *row);
/* Does the snapshot see the storage's row?  If not, the storage came into being after it. */
extern bool paimon_catalog_storage_visible(uint64 storage_id, Snapshot snapshot);
extern void paimon_catalog_storage_put(const PaimonStorageRow *row);	/* insert or update */

/* Deletes all rows of a storage in all manifest tables.  Does nothing if those are gone already (DROP EXTENSION … CASCADE). */
extern void paimon_catalog_storage_drop(uint64 storage_id);

/* Deletes all rows of storages recorded for a relation (only for reborn unlogged ones). */
extern void paimon_catalog_relation_drop(Oid relid);

/* ---- paimon.log: one row per storage: the logical head of its delta log (H2) ---- */

#define PAIMON_LOG_CLOSED_MAX 16

typedef struct PaimonLogRow
{
	uint64		storage_id;
	uint64		head;			/* positions below are in runs, or dead */
	int			nleftover;		/* prepared batches below head, still of unknown fate */
	uint64	   *leftover;		/* their positions, ascending; palloc'd */
	int			nclosed;		/* the last flushes: log below closed_head[i] may be freed once closing xid precedes the horizon */
	uint64		closed_head[PAIMON_LOG_CLOSED_MAX];
	FullTransactionId closed_xid[PAIMON_LOG_CLOSED_MAX];
	uint64		version;		/* counts publishes: manifest version */
	TransactionId writer;		/* as read: who wrote the row, Frozen if that is long ago, Invalid if there is no row */
} PaimonLogRow;

/* No row (nothing flushed yet): returns false and a zero head. */
extern bool paimon_catalog_log_get(uint64 storage_id, Snapshot snapshot, PaimonLogRow *row);
extern void paimon_catalog_log_put(const PaimonLogRow *row);	/* insert or update */

/* ---- paimon.file: the run files ---- */

typedef struct PaimonFileRow
{
	uint64		storage_id;
	uint64		file_no;
	int32		bucket;
	int32		level;
	uint64		min_position;	/* positions of the log that its rows stand for; a large commit's: both = its number */
	uint64		max_position;
	int32		ordinal;		/* order among files with the same number (one commit's spilled runs): higher is newer */
	int64		row_count;
	int64		delete_count;
	int64		bytes;			/* pages * BLCKSZ */
	int32		npages;
	int32		footer_page;	/* page of the file where the footer begins */
	int32		footer_len;
	PaimonExtentList extents;
	bytea	   *min_key;		/* at most PAIMON_KEY_BOUND bytes: a lower bound, inclusive */
	bytea	   *max_key;		/* an upper bound, inclusive; an empty bytea = unbounded */
	int64		added_snapshot; /* 0 while a large commit's file awaits its snapshot */
	int64		removed_snapshot;	/* 0 = live */
	int64		append_count;	/* of the snapshot that put it into its level; level 0: 0 */
	FullTransactionId closing_xid;	/* Invalid = live */
	TimestampTz creation_time;
	int32		source;			/* PaimonFileSource */
	int32		schema_natts;	/* attributes of the table when it was written */
} PaimonFileRow;

#define PAIMON_KEY_BOUND 64

typedef enum PaimonFileSource
{
	PAIMON_SOURCE_FLUSH = 0,	/* Paimon: APPEND */
	PAIMON_SOURCE_BULK = 1,
	PAIMON_SOURCE_COMPACT = 2
} PaimonFileSource;

/*
 * Live files of a storage as `snapshot` sees them, palloc'd array, order: bucket, level, then newest first (max_position descending,
 * ordinal descending, file_no descending).
 */
extern PaimonFileRow *paimon_catalog_files(uint64 storage_id, Snapshot snapshot, int *nfiles);

/* One file by number, whatever its state and level, with SnapshotAny: for resolving a ctid.  False if there is no row. */
extern bool paimon_catalog_file_any(uint64 storage_id, uint64 file_no, PaimonFileRow *row);

/*
 * A file that moves to another level without being rewritten gets a second row: the first is closed, and the new one, with the same number and extents, has
 * the new level.  So a file has one live row at most, and its extents may be freed when no row of it is left that anybody needs.
 */
extern void paimon_catalog_file_insert(const PaimonFileRow *row);

/* Both change the file's live row. */
extern void paimon_catalog_file_close(uint64 storage_id, uint64 file_no, int64 removed_snapshot, FullTransactionId closing_xid);
extern void paimon_catalog_file_set_snapshot(uint64 storage_id, uint64 file_no, int64 added_snapshot);
extern void paimon_catalog_file_delete(uint64 storage_id, uint64 file_no, int32 level);

/* A closed row that no retained snapshot needs any more: from now on `expiring_xid` is what its pages wait for. */
extern void paimon_catalog_file_expire(uint64 storage_id, uint64 file_no, int32 level, FullTransactionId expiring_xid);

/* Closed files (closing_xid valid), for the reclaimer, read with `snapshot`. */
extern PaimonFileRow *paimon_catalog_closed_files(uint64 storage_id, Snapshot snapshot, int *nfiles);

/* ---- paimon.snapshot ---- */

typedef enum PaimonCommitKind
{
	PAIMON_COMMIT_APPEND = 0,
	PAIMON_COMMIT_COMPACT = 1,
	PAIMON_COMMIT_OVERWRITE = 2,
	PAIMON_COMMIT_ANALYZE = 3
} PaimonCommitKind;

typedef struct PaimonSnapshotRow
{
	uint64		storage_id;
	int64		snapshot_id;
	int32		kind;			/* PaimonCommitKind */
	TimestampTz commit_time;
	uint64		position;		/* log positions below it are in this snapshot */
	int64		total_record_count; /* rows of files */
	int64		delta_record_count;
	int64		append_count;	/* APPEND snapshots until then, this one included */
	int32		schema_natts;
} PaimonSnapshotRow;

/* Latest snapshot id of a storage, 0 if none. */
extern int64 paimon_catalog_snapshot_latest(uint64 storage_id, Snapshot snapshot, PaimonSnapshotRow *row);
extern void paimon_catalog_snapshot_insert(const PaimonSnapshotRow *row);

/* Id of the oldest snapshot that is kept, 0 if there is none. */
extern int64 paimon_catalog_snapshot_earliest(uint64 storage_id, Snapshot snapshot);

/* Deletes the snapshots with an id below `until`.  The caller holds the publish lock. */
extern void paimon_catalog_snapshot_expire(uint64 storage_id, int64 until);

/* All snapshots of a storage, oldest first; palloc'd. */
extern PaimonSnapshotRow *paimon_catalog_snapshots(uint64 storage_id, Snapshot snapshot, int *nsnapshots);

/*
 * Publishing sees the newest committed manifest: a snapshot taken after the publish lock was got, registered; the caller unregisters it.
 */
extern Snapshot paimon_catalog_latest_snapshot(void);

/* OID of schema paimon / of an object in it; raise an error naming the extension when it is absent. */
extern Oid	paimon_catalog_namespace(void);
extern Oid	paimon_catalog_relid(const char *name);
extern bool paimon_extension_exists(void);

#endif							/* PAIMON_MANIFEST_H */
