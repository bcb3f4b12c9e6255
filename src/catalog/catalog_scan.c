/*-------------------------------------------------------------------------
 *
 * catalog_scan.c
 *	  Scans over the manifest tables and changes of their rows.
 *
 * While pg_upgrade restores definitions (IsBinaryUpgrade), the manifest has no rows and takes none: its tables may not be there yet, and
 * their files, with the rows of all tables, are put in place afterwards, as the tables' own are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "miscadmin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "catalog/catalog_internal.h"

/*
 * In a serializable transaction a scan with an MVCC snapshot would leave predicate locks on rows and index pages of the manifest, and
 * transactions on different tables would conflict over an index page.  Conflicts are looked for where the user's rows are; so such scans
 * fetch every version and test visibility here.
 *
 * A snapshot is registered as long as the scan lives: toasted extents cannot be read or deleted without one, and at pre-commit there may
 * be none.
 */
void
paimon_manifest_scan_begin(PaimonManifestScan *scan, PaimonManifestTable table, PaimonManifestIndex index,
						   bool ordered, LOCKMODE lockmode, Snapshot snapshot, int nkeys, ScanKey keys)
{
	Oid			index_oid;

	memset(scan, 0, sizeof(*scan));
	if (IsBinaryUpgrade)
		return;
	index_oid = paimon_manifest_index_oid(index);
	scan->rel = table_open(paimon_manifest_table_oid(table), lockmode);
	scan->lockmode = lockmode;
	if (snapshot == NULL || !IsMVCCSnapshot(snapshot))
		scan->registered = RegisterSnapshot(GetCatalogSnapshot(RelationGetRelid(scan->rel)));
	else
		scan->registered = RegisterSnapshot(snapshot);
	if (snapshot == NULL || IsMVCCSnapshot(snapshot))
		snapshot = scan->registered;
	if (IsolationIsSerializable() && IsMVCCSnapshot(snapshot))
	{
		scan->filter = snapshot;
		snapshot = SnapshotAny;
	}
	if (ordered)
	{
		scan->index = index_open(index_oid, AccessShareLock);
		scan->scan = systable_beginscan_ordered(scan->rel, scan->index, snapshot, nkeys, keys);
	}
	else
		scan->scan = systable_beginscan(scan->rel, index_oid, true, snapshot, nkeys, keys);
}

static inline bool
passes_filter(PaimonManifestScan *scan)
{
	return scan->filter == NULL || table_tuple_satisfies_snapshot(scan->rel, scan->scan->slot, scan->filter);
}

/* The next row, valid until the next call; NULL at the end. */
HeapTuple
paimon_manifest_scan_next(PaimonManifestScan *scan)
{
	while (scan->scan != NULL)
	{
		HeapTuple	tuple;

		if (scan->index != NULL)
			tuple = systable_getnext_ordered(scan->scan, ForwardScanDirection);
		else
			tuple = systable_getnext(scan->scan);
		if (tuple == NULL || passes_filter(scan))
			return tuple;
	}
	return NULL;
}

/* The same backwards. */
HeapTuple
paimon_manifest_scan_prev(PaimonManifestScan *scan)
{
	HeapTuple	tuple;

	if (scan->scan == NULL)
		return NULL;
	do
	{
		tuple = systable_getnext_ordered(scan->scan, BackwardScanDirection);
	} while (tuple != NULL && !passes_filter(scan));
	return tuple;
}

void
paimon_manifest_scan_end(PaimonManifestScan *scan)
{
	if (scan->scan == NULL)
		return;
	if (scan->index != NULL)
	{
		systable_endscan_ordered(scan->scan);
		index_close(scan->index, AccessShareLock);
	}
	else
		systable_endscan(scan->scan);
	if (scan->registered != NULL)
		UnregisterSnapshot(scan->registered);
	table_close(scan->rel, scan->lockmode == AccessShareLock ? AccessShareLock : NoLock);
}

void
paimon_manifest_key_uint64(ScanKey key, AttrNumber attno, uint64 value)
{
	ScanKeyInit(key, attno, BTEqualStrategyNumber, F_INT8EQ, paimon_manifest_uint64(value));
}

void
paimon_manifest_insert(PaimonManifestTable table, Datum *values, bool *isnull)
{
	Relation	rel;
	HeapTuple	tuple;

	if (IsBinaryUpgrade)
		return;
	rel = table_open(paimon_manifest_table_oid(table), RowExclusiveLock);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, isnull);
	CatalogTupleInsert(rel, tuple);
	heap_freetuple(tuple);
	table_close(rel, NoLock);
}

/*
 * The heap refuses to touch a row version that the running command itself made.  The caller has asked for the change, so it gets a new command.
 */
static void
step_past_own_command(HeapTuple tuple)
{
	HeapTupleHeader header = tuple->t_data;

	if (TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header)) &&
		HeapTupleHeaderGetCmin(header) >= GetCurrentCommandId(false))
		CommandCounterIncrement();
}

void
paimon_manifest_update(PaimonManifestScan *scan, HeapTuple tuple, Datum *values, bool *isnull, bool *replace)
{
	HeapTuple	newtuple = heap_modify_tuple(tuple, RelationGetDescr(scan->rel), values, isnull, replace);

	step_past_own_command(tuple);
	CatalogTupleUpdate(scan->rel, &tuple->t_self, newtuple);
	heap_freetuple(newtuple);
}

/* A row that somebody else has deleted meanwhile is as good; one that changed is a protocol that was not kept. */
void
paimon_manifest_delete(PaimonManifestScan *scan, HeapTuple tuple)
{
	TM_FailureData failure;
	TM_Result	result;

	step_past_own_command(tuple);
	result = heap_delete(scan->rel, &tuple->t_self, GetCurrentCommandId(true), InvalidSnapshot, true, &failure, false);
	if (result == TM_Ok || result == TM_Deleted || result == TM_SelfModified)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not delete a row of \"paimon.%s\" because it was changed concurrently",
					RelationGetRelationName(scan->rel)),
			 errhint("Retry the transaction.")));
}

void
paimon_manifest_delete_storage(PaimonManifestTable table, PaimonManifestIndex index, uint64 storage_id)
{
	PaimonManifestScan scan;
	ScanKeyData key;
	HeapTuple	tuple;

	/* The storage id is the first column of every manifest table. */
	paimon_manifest_key_uint64(&key, 1, storage_id);
	paimon_manifest_scan_begin(&scan, table, index, false, RowExclusiveLock, SnapshotSelf, 1, &key);
	while ((tuple = paimon_manifest_scan_next(&scan)) != NULL)
	{
		CHECK_FOR_INTERRUPTS();
		paimon_manifest_delete(&scan, tuple);
	}
	paimon_manifest_scan_end(&scan);
}
