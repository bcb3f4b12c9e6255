/*-------------------------------------------------------------------------
 *
 * catalog_testing.c
 *	  Functions for tests of this folder, in testing builds only (sql/parts/92_testing_catalog.sql.in).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include "access/xact.h"
#include "compat.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "catalog/catalog_internal.h"

PG_FUNCTION_INFO_V1(paimon_test_catalog_fill);
PG_FUNCTION_INFO_V1(paimon_test_catalog_show);
PG_FUNCTION_INFO_V1(paimon_test_catalog_read);
PG_FUNCTION_INFO_V1(paimon_test_catalog_any);
PG_FUNCTION_INFO_V1(paimon_test_catalog_publish);
PG_FUNCTION_INFO_V1(paimon_test_catalog_at_commit);
PG_FUNCTION_INFO_V1(paimon_test_catalog_drop);

static uint64 pending_storage = 0;

/* A file with nruns extents: 4000 make the row need a toast table. */
static void
insert_file(uint64 storage_id, uint64 file_no, int nruns)
{
	PaimonFileRow row = {0};

	row.storage_id = storage_id;
	row.file_no = file_no;
	row.min_position = file_no * 100;
	row.max_position = file_no * 100 + 99;
	row.row_count = file_no * 10;
	row.bytes = BLCKSZ;
	row.npages = 1;
	row.bucket = file_no % 2;
	row.level = file_no % 3;
	row.creation_time = GetCurrentTimestamp();
	row.extents.nruns = nruns;
	row.extents.runs = palloc(nruns * sizeof(PaimonExtentRun));
	for (int i = 0; i < nruns; i++)
	{
		row.extents.runs[i].first = (uint32) (file_no * 40503 + (uint32) i * UINT32_C(2654435761));
		row.extents.runs[i].count = 1;
	}
	row.min_key = (bytea *) cstring_to_text("k");
	row.max_key = (bytea *) cstring_to_text("");
	paimon_catalog_file_insert(&row);
}

/* One more publish: closes the oldest live file, adds one, moves the head, makes a snapshot. */
static void
publish(uint64 storage_id)
{
	Snapshot	snapshot = paimon_catalog_latest_snapshot();
	PaimonFileRow *files;
	int			nfiles;
	PaimonLogRow log;
	PaimonSnapshotRow latest;
	uint64		oldest = 0;
	uint64		newest = PAIMON_FIRST_FILE_NO;
	FullTransactionId xid = GetTopFullTransactionId();

	files = paimon_catalog_files(storage_id, snapshot, &nfiles);
	for (int i = 0; i < nfiles; i++)
	{
		if (oldest == 0 || files[i].file_no < oldest)
			oldest = files[i].file_no;
		newest = Max(newest, files[i].file_no);
	}
	(void) paimon_catalog_snapshot_latest(storage_id, snapshot, &latest);
	(void) paimon_catalog_log_get(storage_id, snapshot, &log);
	UnregisterSnapshot(snapshot);

	if (oldest != 0)
		paimon_catalog_file_close(storage_id, oldest, latest.snapshot_id + 1, xid);
	insert_file(storage_id, newest + 1, 3);
	paimon_catalog_file_set_snapshot(storage_id, newest + 1, latest.snapshot_id + 1);
	latest.storage_id = storage_id;
	latest.snapshot_id++;
	latest.commit_time = GetCurrentTimestamp();
	paimon_catalog_snapshot_insert(&latest);
	log.head += 100;
	log.version++;
	if (log.nclosed == PAIMON_LOG_CLOSED_MAX)
		log.nclosed = 0;
	log.closed_head[log.nclosed] = log.head;
	log.closed_xid[log.nclosed++] = xid;
	paimon_catalog_log_put(&log);
	CommandCounterIncrement();
}

/* test_catalog_fill(storage, relid, files, extents): a storage with so many files. */
Datum
paimon_test_catalog_fill(PG_FUNCTION_ARGS)
{
	uint64		storage_id = PG_GETARG_INT64(0);
	PaimonStorageRow storage = {0};

	storage.storage_id = storage_id;
	storage.relid = PG_GETARG_OID(1);
	storage.nbuckets = 2;
	storage.encoding = PAIMON_ENCODING_VERSION;
	storage.nkeys = 2;
	storage.keys[0] = 3;
	storage.keys[1] = 1;
	storage.nbucketkeys = 1;
	storage.bucketkeys[0] = 3;
	paimon_catalog_storage_put(&storage);
	for (int i = 0; i < PG_GETARG_INT32(2); i++)
		insert_file(storage_id, PAIMON_FIRST_FILE_NO + i, PG_GETARG_INT32(3));
	PG_RETURN_VOID();
}

/* test_catalog_show(storage, relid): what is there, seen by the active snapshot. */
Datum
paimon_test_catalog_show(PG_FUNCTION_ARGS)
{
	uint64		storage_id = PG_GETARG_INT64(0);
	StringInfoData out;
	PaimonStorageRow storage;
	PaimonLogRow log;
	PaimonFileRow *files;
	int			n;

	initStringInfo(&out);
	if (paimon_catalog_storage_get(storage_id, PG_GETARG_OID(1), &storage))
		appendStringInfo(&out, "storage " INT64_FORMAT ": keys %d (%d, %d), buckets %d by %d; ", (int64) storage.storage_id,
						 storage.nkeys, storage.keys[0], storage.keys[1], storage.nbuckets, storage.bucketkeys[0]);
	if (paimon_catalog_log_get(storage_id, GetActiveSnapshot(), &log))
		appendStringInfo(&out, "head " UINT64_FORMAT ", version " UINT64_FORMAT ", closed %d; ", log.head, log.version, log.nclosed);
	appendStringInfo(&out, "snapshot " INT64_FORMAT "; files", paimon_catalog_snapshot_latest(storage_id, GetActiveSnapshot(), NULL));
	files = paimon_catalog_files(storage_id, GetActiveSnapshot(), &n);
	for (int i = 0; i < n; i++)
		appendStringInfo(&out, " " UINT64_FORMAT "(%d/%d,%u)", files[i].file_no, files[i].bucket, files[i].level, files[i].extents.nruns);
	files = paimon_catalog_closed_files(storage_id, GetActiveSnapshot(), &n);
	appendStringInfo(&out, "; %d closed", n);
	PG_RETURN_TEXT_P(cstring_to_text(out.data));
}

/* test_catalog_read(storage, times): reads the live files so often; microseconds each. */
Datum
paimon_test_catalog_read(PG_FUNCTION_ARGS)
{
	MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "paimon catalog test", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(work);
	TimestampTz start = GetCurrentTimestamp();
	int			times = PG_GETARG_INT32(1);

	for (int i = 0; i < times; i++)
	{
		int			n;

		(void) paimon_catalog_files(PG_GETARG_INT64(0), GetActiveSnapshot(), &n);
		MemoryContextReset(work);
	}
	MemoryContextSwitchTo(old);
	PG_RETURN_FLOAT8((double) (GetCurrentTimestamp() - start) / times);
}

/* test_catalog_any(storage, file): a file whatever its state. */
Datum
paimon_test_catalog_any(PG_FUNCTION_ARGS)
{
	PaimonFileRow row;

	if (!paimon_catalog_file_any(PG_GETARG_INT64(0), PG_GETARG_INT64(1), &row))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("file " UINT64_FORMAT ", %u extents, %s, removed by " INT64_FORMAT, row.file_no,
											  row.extents.nruns,
											  FullTransactionIdIsValid(row.closing_xid) ? "closed" : "live",
											  row.removed_snapshot)));
}

Datum
paimon_test_catalog_publish(PG_FUNCTION_ARGS)
{
	publish(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

static void
at_commit(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT && pending_storage != 0)
	{
		PushActiveSnapshot(GetTransactionSnapshot());
		publish(pending_storage);
		PopActiveSnapshot();
	}
	pending_storage = 0;
}

/* test_catalog_at_commit(storage): publishes at pre-commit, as a large commit does. */
Datum
paimon_test_catalog_at_commit(PG_FUNCTION_ARGS)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(at_commit, NULL);
	registered = true;
	pending_storage = PG_GETARG_INT64(0);
	PG_RETURN_VOID();
}

/* test_catalog_drop(storage, relid): a storage, or those of a relation. */
Datum
paimon_test_catalog_drop(PG_FUNCTION_ARGS)
{
	if (OidIsValid(PG_GETARG_OID(1)))
		paimon_catalog_relation_drop(PG_GETARG_OID(1));
	else
		paimon_catalog_storage_drop(PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

#endif							/* PAIMON_TESTING */
