/*-------------------------------------------------------------------------
 *
 * catalog_log.c
 *	  paimon.log: the head of each delta log.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_internal.h"

/* Array of 8-byte elements from numbers without sign. */
static Datum
make_array8(const uint64 *v, int n, Oid elemtype)
{
	Datum	   *elems = palloc(Max(n, 1) * sizeof(Datum));
	ArrayType  *array;

	for (int i = 0; i < n; i++)
		elems[i] = paimon_manifest_uint64(v[i]);
	array = construct_array(elems, n, elemtype, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
	pfree(elems);
	return PointerGetDatum(array);
}

/* Its elements, in place where the array is not toasted; valid as long as the tuple or the current memory context. */
static const uint64 *
read_array8(Datum d, Oid elemtype, int maxlen, int *n, uint64 storage_id)
{
	ArrayType  *array = DatumGetArrayTypeP(d);

	*n = ARR_NDIM(array) == 0 ? 0 : ARR_DIMS(array)[0];
	if (ARR_NDIM(array) > 1 || ARR_HASNULL(array) || ARR_ELEMTYPE(array) != elemtype || *n < 0 || *n > maxlen)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row of \"paimon.log\" for storage " UINT64_FORMAT " is damaged", storage_id)));
	return (const uint64 *) ARR_DATA_PTR(array);
}

static void
read_row(TupleDesc desc, HeapTuple tuple, PaimonLogRow *row)
{
	Datum		values[NATTS_LOG];
	bool		isnull[NATTS_LOG];
	const uint64 *elems;
	const uint64 *xids;
	int			nxids;

	heap_deform_tuple(tuple, desc, values, isnull);
	row->head = paimon_manifest_get_uint64(values[ANUM_LOG_HEAD - 1]);
	row->version = paimon_manifest_get_uint64(values[ANUM_LOG_VERSION - 1]);
	row->writer = HeapTupleHeaderGetXmin(tuple->t_data);

	elems = read_array8(values[ANUM_LOG_LEFTOVER - 1], INT8OID, INT_MAX / 8, &row->nleftover, row->storage_id);
	if (row->nleftover > 0)
	{
		row->leftover = palloc(row->nleftover * sizeof(uint64));
		memcpy(row->leftover, elems, row->nleftover * sizeof(uint64));
	}

	elems = read_array8(values[ANUM_LOG_CLOSED_HEAD - 1], INT8OID, PAIMON_LOG_CLOSED_MAX, &row->nclosed, row->storage_id);
	xids = read_array8(values[ANUM_LOG_CLOSED_XID - 1], XID8OID, PAIMON_LOG_CLOSED_MAX, &nxids, row->storage_id);
	if (nxids != row->nclosed)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("row of \"paimon.log\" for storage " UINT64_FORMAT " is damaged", row->storage_id)));
	for (int i = 0; i < row->nclosed; i++)
	{
		row->closed_head[i] = elems[i];
		row->closed_xid[i] = FullTransactionIdFromU64(xids[i]);
	}
}

bool
paimon_catalog_log_get(uint64 storage_id, Snapshot snapshot, PaimonLogRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	bool		found;

	memset(row, 0, sizeof(*row));
	row->storage_id = storage_id;
	paimon_manifest_key_uint64(&key, ANUM_LOG_STORAGE_ID, storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_LOG, PAIMON_MANIFEST_LOG_PKEY, false,
							   AccessShareLock, snapshot, 1, &key);
	tuple = paimon_manifest_scan_next(&scan);
	found = tuple != NULL;
	if (found)
		read_row(RelationGetDescr(scan.rel), tuple, row);
	paimon_manifest_scan_end(&scan);
	return found;
}

/* The caller holds the publish lock: nobody else can be writing this row. */
void
paimon_catalog_log_put(const PaimonLogRow *row)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;
	Datum		values[NATTS_LOG];
	bool		isnull[NATTS_LOG] = {false};
	uint64		xids[PAIMON_LOG_CLOSED_MAX];

	Assert(row->nclosed >= 0 && row->nclosed <= PAIMON_LOG_CLOSED_MAX);
	for (int i = 0; i < row->nclosed; i++)
		xids[i] = U64FromFullTransactionId(row->closed_xid[i]);
	values[ANUM_LOG_STORAGE_ID - 1] = paimon_manifest_uint64(row->storage_id);
	values[ANUM_LOG_HEAD - 1] = paimon_manifest_uint64(row->head);
	values[ANUM_LOG_VERSION - 1] = paimon_manifest_uint64(row->version);
	values[ANUM_LOG_LEFTOVER - 1] = make_array8(row->leftover, row->nleftover, INT8OID);
	values[ANUM_LOG_CLOSED_HEAD - 1] = make_array8(row->closed_head, row->nclosed, INT8OID);
	values[ANUM_LOG_CLOSED_XID - 1] = make_array8(xids, row->nclosed, XID8OID);

	paimon_manifest_key_uint64(&key, ANUM_LOG_STORAGE_ID, row->storage_id);
	paimon_manifest_scan_begin(&scan, PAIMON_MANIFEST_LOG, PAIMON_MANIFEST_LOG_PKEY, false,
							   RowExclusiveLock, SnapshotSelf, 1, &key);
	tuple = paimon_manifest_scan_next(&scan);
	if (tuple != NULL)
	{
		bool		replace[NATTS_LOG];

		memset(replace, true, sizeof(replace));
		replace[ANUM_LOG_STORAGE_ID - 1] = false;
		paimon_manifest_update(&scan, tuple, values, isnull, replace);
	}
	else
		paimon_manifest_insert(PAIMON_MANIFEST_LOG, values, isnull);
	paimon_manifest_scan_end(&scan);
}
