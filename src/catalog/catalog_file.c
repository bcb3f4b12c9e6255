/*-------------------------------------------------------------------------
 *
 * catalog_file.c
 *	  paimon.file: the run files of each storage.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "access/transam.h"
#include "access/xact.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_internal.h"

#define EXTENT_RUN_BYTES 8

/* Copy of a bytea column, with a long header. */
static bytea *
copy_bytea(Datum d)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);
	Size		len = VARSIZE_ANY_EXHDR(v);
	bytea	   *copy = palloc(VARHDRSZ + len);

	SET_VARSIZE(copy, VARHDRSZ + len);
	memcpy(VARDATA(copy), VARDATA_ANY(v), len);
	return copy;
}

static bytea *
extents_to_bytea(const PaimonExtentList *list)
{
	Size		len = (Size) list->nruns * EXTENT_RUN_BYTES;
	bytea	   *out = palloc(VARHDRSZ + len);
	uint8	   *p = (uint8 *) VARDATA(out);

	SET_VARSIZE(out, VARHDRSZ + len);
	for (uint32 i = 0; i < list->nruns; i++)
	{
		paimon_put_u32(p, list->runs[i].first);
		paimon_put_u32(p + 4, list->runs[i].count);
		p += EXTENT_RUN_BYTES;
	}
	return out;
}

static void
read_extents(Datum d, PaimonExtentList *list, const PaimonFileRow *row)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(d);
	Size		len = VARSIZE_ANY_EXHDR(v);
	const uint8 *p = (const uint8 *) VARDATA_ANY(v);

	if (len % EXTENT_RUN_BYTES != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row of \"paimon.file\" for file " UINT64_FORMAT " of storage " UINT64_FORMAT " is damaged",
						row->file_no, row->storage_id)));
	list->nruns = list->allocated = len / EXTENT_RUN_BYTES;
	list->runs = palloc(Max(len, 1));
	for (uint32 i = 0; i < list->nruns; i++)
	{
		list->runs[i].first = paimon_get_u32(p);
		list->runs[i].count = paimon_get_u32(p + 4);
		p += EXTENT_RUN_BYTES;
	}
}

static void
read_row(const Datum *values, PaimonFileRow *row)
{
	row->storage_id = paimon_manifest_get_uint64(values[ANUM_FILE_STORAGE_ID - 1]);
	row->file_no = paimon_manifest_get_uint64(values[ANUM_FILE_NO - 1]);
	row->min_position = paimon_manifest_get_uint64(values[ANUM_FILE_MIN_POSITION - 1]);
	row->max_position = paimon_manifest_get_uint64(values[ANUM_FILE_MAX_POSITION - 1]);
	row->row_count = DatumGetInt64(values[ANUM_FILE_ROW_COUNT - 1]);
	row->delete_count = DatumGetInt64(values[ANUM_FILE_DELETE_COUNT - 1]);
	row->bytes = DatumGetInt64(values[ANUM_FILE_BYTES - 1]);
	row->added_snapshot = DatumGetInt64(values[ANUM_FILE_ADDED_SNAPSHOT - 1]);
	row->removed_snapshot = DatumGetInt64(values[ANUM_FILE_REMOVED_SNAPSHOT - 1]);
	row->append_count = DatumGetInt64(values[ANUM_FILE_APPEND_COUNT - 1]);
	row->closing_xid = FullTransactionIdFromU64(paimon_manifest_get_uint64(values[ANUM_FILE_CLOSING_XID - 1]));
	row->creation_time = DatumGetTimestampTz(values[ANUM_FILE_CREATION_TIME - 1]);
	row->bucket = DatumGetInt32(values[ANUM_FILE_BUCKET - 1]);
	row->level = DatumGetInt32(values[ANUM_FILE_LEVEL - 1]);
	row->ordinal = DatumGetInt32(values[ANUM_FILE_ORDINAL - 1]);
	row->npages = DatumGetInt32(values[ANUM_FILE_NPAGES - 1]);
	row->footer_page = DatumGetInt32(values[ANUM_FILE_FOOTER_PAGE - 1]);
	row->footer_len = DatumGetInt32(values[ANUM_FILE_FOOTER_LEN - 1]);
	row->source = DatumGetInt32(values[ANUM_FILE_SOURCE - 1]);
	row->schema_natts = DatumGetInt32(values[ANUM_FILE_SCHEMA_NATTS - 1]);
	row->min_key = copy_bytea(values[ANUM_FILE_MIN_KEY - 1]);
	row->max_key = copy_bytea(values[ANUM_FILE_MAX_KEY - 1]);
	read_extents(values[ANUM_FILE_EXTENTS - 1], &row->extents, row);
}

/* Bucket, level, newest first. */
static int
compare_files(const void *pa, const void *pb)
{
	const PaimonFileRow *a = *(const PaimonFileRow *const *) pa;
	const PaimonFileRow *b = *(const PaimonFileRow *const *) pb;

	if (a->bucket != b->bucket)
		return a->bucket < b->bucket ? -1 : 1;
	if (a->level != b->level)
		return a->level < b->level ? -1 : 1;
	if (a->max_position != b->max_position)
		return a->max_position > b->max_position ? -1 : 1;
	if (a->ordinal != b->ordinal)
		return a->ordinal > b->ordinal ? -1 : 1;
	if (a->file_no != b->file_no)
		return a->file_no > b->file_no ? -1 : 1;
	return 0;
}

/* The rows in the order of the interface.  They are big: pointers are sorted and each row moved once. */
static PaimonFileRow *
sort_files(PaimonFileRow *rows, int n)
{
	PaimonFileRow **order;
	PaimonFileRow *sorted;

	if (n < 2)
		return rows;
	order = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(PaimonFileRow *));
	sorted = MemoryContextAllocHuge(CurrentMemoryContext, n * sizeof(PaimonFileRow));
	for (int i = 0; i < n; i++)
		order[i] = &rows[i];
	qsort(order, n, sizeof(PaimonFileRow *), compare_files);
	for (int i = 0; i < n; i++)
		sorted[i] = *order[i];
	pfree(order);
	pfree(rows);
	return sorted;
}

/* Rows of a storage, live or closed ones, in the order of the interface. */
static PaimonFileRow *
read_files(uint64 storage_id, Snapshot snapshot, bool closed, int *nfiles)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	int			n = 0;
	int			allocated = 16;
	PaimonFileRow *rows = palloc(allocated * sizeof(PaimonFileRow));

	paimon_manifest_key_uint64(&key, ANUM_FILE_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_FILE, PAIMON_MANIFEST_FILE_PKEY, false,
							   AccessShareLock, snapshot, 1, &key);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		Datum		values[NATTS_FILE];
		bool		isnull[NATTS_FILE];
		uint64		closing;

		CHECK_FOR_INTERRUPTS();
		heap_deform_tuple(tuple, RelationGetDescr(scan.rel), values, isnull);
		closing = paimon_manifest_get_uint64(values[ANUM_FILE_CLOSING_XID - 1]);
		if ((closing != 0) != closed)
			continue;
		if (n == allocated)
		{
			allocated *= 2;
			rows = repalloc_huge(rows, allocated * sizeof(PaimonFileRow));
		}
		read_row(values, &rows[n++]);
	}
	paimon_manifest_scan_end(&scan);
	*nfiles = n;
	return sort_files(rows, n);
}

PaimonFileRow *
paimon_catalog_files(uint64 storage_id, Snapshot snapshot, int *nfiles)
{
	return read_files(storage_id, snapshot, false, nfiles);
}

PaimonFileRow *
paimon_catalog_closed_files(uint64 storage_id, Snapshot snapshot, int *nfiles)
{
	return read_files(storage_id, snapshot, true, nfiles);
}

/*
 * How good a row version is as an answer to "what is this file?": 0 made by an aborted transaction (or one lost in a crash), 1 superseded, 2 newest.
 */
static int
version_rank(HeapTupleHeader header)
{
	TransactionId xmin = HeapTupleHeaderGetXmin(header);
	TransactionId xmax;

	if (!HeapTupleHeaderXminCommitted(header) &&
		(HeapTupleHeaderXminInvalid(header) ||
		 !(TransactionIdIsCurrentTransactionId(xmin) || TransactionIdIsInProgress(xmin) || TransactionIdDidCommit(xmin))))
		return 0;
	if ((header->t_infomask & HEAP_XMAX_INVALID) != 0 || HEAP_XMAX_IS_LOCKED_ONLY(header->t_infomask))
		return 2;
	xmax = HeapTupleHeaderGetUpdateXid(header);
	if (!TransactionIdIsValid(xmax))
		return 2;
	return TransactionIdIsCurrentTransactionId(xmax) || TransactionIdIsInProgress(xmax) || TransactionIdDidCommit(xmax) ? 1 : 2;
}

bool
paimon_catalog_file_any(uint64 storage_id, uint64 file_no, PaimonFileRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData keys[2];
	HeapTuple	tuple;
	int			best = -1;

	paimon_manifest_key_uint64(&keys[0], ANUM_FILE_STORAGE_ID, storage_id);
	paimon_manifest_key_uint64(&keys[1], ANUM_FILE_NO, file_no);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_FILE, PAIMON_MANIFEST_FILE_PKEY, false,
							   AccessShareLock, SnapshotAny, 2, keys);
	while (best < 2 && (tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		int			rank = version_rank(tuple->t_data);
		Datum		values[NATTS_FILE];
		bool		isnull[NATTS_FILE];

		/*
		 * The values that locate a file never change, so any version will do; a version of an aborted transaction may have lost its
		 * toasted part, hence the order of preference.
		 */
		if (rank <= best || (rank == 0 && HeapTupleHasExternal(tuple)))
			continue;
		best = rank;
		heap_deform_tuple(tuple, RelationGetDescr(scan.rel), values, isnull);
		read_row(values, row);
	}
	paimon_manifest_scan_end(&scan);
	return best >= 0;
}

void
paimon_catalog_file_insert(const PaimonFileRow *row)
{
	Datum		values[NATTS_FILE];
	bool		isnull[NATTS_FILE] = {false};
	bytea	   *extents = extents_to_bytea(&row->extents);

	values[ANUM_FILE_STORAGE_ID - 1] = paimon_manifest_uint64(row->storage_id);
	values[ANUM_FILE_NO - 1] = paimon_manifest_uint64(row->file_no);
	values[ANUM_FILE_MIN_POSITION - 1] = paimon_manifest_uint64(row->min_position);
	values[ANUM_FILE_MAX_POSITION - 1] = paimon_manifest_uint64(row->max_position);
	values[ANUM_FILE_ROW_COUNT - 1] = Int64GetDatum(row->row_count);
	values[ANUM_FILE_DELETE_COUNT - 1] = Int64GetDatum(row->delete_count);
	values[ANUM_FILE_BYTES - 1] = Int64GetDatum(row->bytes);
	values[ANUM_FILE_ADDED_SNAPSHOT - 1] = Int64GetDatum(row->added_snapshot);
	values[ANUM_FILE_REMOVED_SNAPSHOT - 1] = Int64GetDatum(row->removed_snapshot);
	values[ANUM_FILE_APPEND_COUNT - 1] = Int64GetDatum(row->append_count);
	values[ANUM_FILE_CLOSING_XID - 1] = paimon_manifest_uint64(U64FromFullTransactionId(row->closing_xid));
	values[ANUM_FILE_CREATION_TIME - 1] = TimestampTzGetDatum(row->creation_time);
	values[ANUM_FILE_BUCKET - 1] = Int32GetDatum(row->bucket);
	values[ANUM_FILE_LEVEL - 1] = Int32GetDatum(row->level);
	values[ANUM_FILE_ORDINAL - 1] = Int32GetDatum(row->ordinal);
	values[ANUM_FILE_NPAGES - 1] = Int32GetDatum(row->npages);
	values[ANUM_FILE_FOOTER_PAGE - 1] = Int32GetDatum(row->footer_page);
	values[ANUM_FILE_FOOTER_LEN - 1] = Int32GetDatum(row->footer_len);
	values[ANUM_FILE_SOURCE - 1] = Int32GetDatum(row->source);
	values[ANUM_FILE_SCHEMA_NATTS - 1] = Int32GetDatum(row->schema_natts);
	Assert(VARSIZE_ANY_EXHDR(row->min_key) <= PAIMON_KEY_BOUND);
	Assert(VARSIZE_ANY_EXHDR(row->max_key) <= PAIMON_KEY_BOUND);
	values[ANUM_FILE_MIN_KEY - 1] = PointerGetDatum(row->min_key);
	values[ANUM_FILE_MAX_KEY - 1] = PointerGetDatum(row->max_key);
	values[ANUM_FILE_EXTENTS - 1] = PointerGetDatum(extents);
	paimon_manifest_insert(PAIMON_MANIFEST_FILE, values, isnull);
	pfree(extents);
}

/* Begins a scan for changing a file's live row (level < 0), or the one with a level.  The caller holds the publish lock. */
static HeapTuple
find_for_update(PaimonManifestScan *scan, uint64 storage_id, uint64 file_no, int32 level)
{
	ScanKeyData keys[2];
	HeapTuple	tuple;

	paimon_manifest_key_uint64(&keys[0], ANUM_FILE_STORAGE_ID, storage_id);
	paimon_manifest_key_uint64(&keys[1], ANUM_FILE_NO, file_no);
	paimon_manifest_scan_begin(scan, PAIMON_MANIFEST_FILE, PAIMON_MANIFEST_FILE_PKEY, false,
							   RowExclusiveLock, SnapshotSelf, 2, keys);
	while ((tuple = paimon_manifest_scan_next(scan)) != NULL)
	{
		Datum		values[NATTS_FILE];
		bool		isnull[NATTS_FILE];

		heap_deform_tuple(tuple, RelationGetDescr(scan->rel), values, isnull);
		if (level < 0 ? paimon_manifest_get_uint64(values[ANUM_FILE_CLOSING_XID - 1]) == 0 :
			DatumGetInt32(values[ANUM_FILE_LEVEL - 1]) == level)
			break;
	}
	return tuple;
}

static void
report_no_row(uint64 storage_id, uint64 file_no)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("\"paimon.file\" has no live row for file " UINT64_FORMAT " of storage " UINT64_FORMAT,
					file_no, storage_id)));
}

void
paimon_catalog_file_close(uint64 storage_id, uint64 file_no, int64 removed_snapshot, FullTransactionId closing_xid)
{
	PaimonManifestScan scan;
	HeapTuple	tuple = find_for_update(&scan, storage_id, file_no, -1);
	Datum		values[NATTS_FILE];
	bool		isnull[NATTS_FILE] = {false};
	bool		replace[NATTS_FILE] = {false};

	if (tuple == NULL)
		report_no_row(storage_id, file_no);
	values[ANUM_FILE_REMOVED_SNAPSHOT - 1] = Int64GetDatum(removed_snapshot);
	values[ANUM_FILE_CLOSING_XID - 1] = paimon_manifest_uint64(U64FromFullTransactionId(closing_xid));
	replace[ANUM_FILE_REMOVED_SNAPSHOT - 1] = true;
	replace[ANUM_FILE_CLOSING_XID - 1] = true;
	paimon_manifest_update(&scan, tuple, values, isnull, replace);
	paimon_manifest_scan_end(&scan);
}

void
paimon_catalog_file_set_snapshot(uint64 storage_id, uint64 file_no, int64 added_snapshot)
{
	PaimonManifestScan scan;
	HeapTuple	tuple = find_for_update(&scan, storage_id, file_no, -1);
	Datum		values[NATTS_FILE];
	bool		isnull[NATTS_FILE] = {false};
	bool		replace[NATTS_FILE] = {false};

	if (tuple == NULL)
		report_no_row(storage_id, file_no);
	values[ANUM_FILE_ADDED_SNAPSHOT - 1] = Int64GetDatum(added_snapshot);
	replace[ANUM_FILE_ADDED_SNAPSHOT - 1] = true;
	paimon_manifest_update(&scan, tuple, values, isnull, replace);
	paimon_manifest_scan_end(&scan);
}

/* No row is as good as a deleted one: a reclaimer may have come first. */
void
paimon_catalog_file_delete(uint64 storage_id, uint64 file_no, int32 level)
{
	PaimonManifestScan scan;
	HeapTuple	tuple = find_for_update(&scan, storage_id, file_no, level);

	if (tuple != NULL)
		paimon_manifest_delete(&scan, tuple);
	paimon_manifest_scan_end(&scan);
}

/* No row: a reclaimer came first, which the caller's lock does not allow; but then nobody needs it either. */
void
paimon_catalog_file_expire(uint64 storage_id, uint64 file_no, int32 level, FullTransactionId expiring_xid)
{
	PaimonManifestScan scan;
	HeapTuple	tuple = find_for_update(&scan, storage_id, file_no, level);
	Datum		values[NATTS_FILE];
	bool		isnull[NATTS_FILE] = {false};
	bool		replace[NATTS_FILE] = {false};

	if (tuple != NULL)
	{
		values[ANUM_FILE_CLOSING_XID - 1] = paimon_manifest_uint64(U64FromFullTransactionId(expiring_xid));
		replace[ANUM_FILE_CLOSING_XID - 1] = true;
		paimon_manifest_update(&scan, tuple, values, isnull, replace);
	}
	paimon_manifest_scan_end(&scan);
}
