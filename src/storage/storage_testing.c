/*-------------------------------------------------------------------------
 *
 * storage_testing.c
 *	  Functions for tests of this folder, in testing builds only (sql/parts/93_testing_storage.sql.in).
 *
 * They work on tables of an access method that gives its tables our storage and nothing else, so that no worker and no
 * memtable looks into what tests put there.  Appending finds the tail by itself and takes no lock: one session at a time.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include "access/heapam.h"
#include "access/multixact.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "catalog/storage.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/smgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "storage/storage_internal.h"

PG_FUNCTION_INFO_V1(paimon_test_storage_handler);
PG_FUNCTION_INFO_V1(paimon_test_storage_append);
PG_FUNCTION_INFO_V1(paimon_test_storage_log);
PG_FUNCTION_INFO_V1(paimon_test_storage_trim);
PG_FUNCTION_INFO_V1(paimon_test_storage_orphans);
PG_FUNCTION_INFO_V1(paimon_test_storage_freeze);
PG_FUNCTION_INFO_V1(paimon_test_storage_header);
PG_FUNCTION_INFO_V1(paimon_test_storage_write);
PG_FUNCTION_INFO_V1(paimon_test_storage_check);
PG_FUNCTION_INFO_V1(paimon_test_storage_free);
PG_FUNCTION_INFO_V1(paimon_test_storage_usage);
PG_FUNCTION_INFO_V1(paimon_test_storage_truncate);
PG_FUNCTION_INFO_V1(paimon_test_storage_pages);
PG_FUNCTION_INFO_V1(paimon_test_storage_identity);

/* What files are appended in. */
#define CHUNK 30011

static void
set_new_locator(Relation rel, const PaimonLocator *locator, char persistence, TransactionId *freeze_xid,
				MultiXactId *minmulti)
{
	SMgrRelation srel = RelationCreateStorage(*locator, persistence, true);

	(void) rel;
	*freeze_xid = RecentXmin;
	*minmulti = GetOldestMultiXactId();
	(void) paimon_storage_create(srel, persistence);
	smgrclose(srel);
}

/* An access method whose tables have our main fork; their rows cannot be used. */
Datum
paimon_test_storage_handler(PG_FUNCTION_ARGS)
{
	static TableAmRoutine routine;

	routine = *GetHeapamTableAmRoutine();
	paimon_set_new_locator_callback(&routine, set_new_locator);
	PG_RETURN_POINTER(&routine);
}

static Relation
open_argument(FunctionCallInfo fcinfo, uint64 *storage_id)
{
	Relation rel = relation_open(PG_GETARG_OID(0), AccessShareLock);

	*storage_id = paimon_storage_id(rel);
	return rel;
}

/* Bytes that do not repeat in any period that matters here; those of a negative seed can be compressed to half. */
static void
fill_random(uint64 *seed, char *dest, uint32 len)
{
	char mask = (int64) *seed < 0 ? 0x0F : (char) 0xFF;

	for (uint32 i = 0; i < len; i++)
	{
		*seed = *seed * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
		dest[i] = (char) (*seed >> 40) & mask;
	}
}

/* test_storage_append(rel, bytes, times, seed): position of the last of the batches, flushed. */
Datum
paimon_test_storage_append(PG_FUNCTION_ARGS)
{
	uint64            storage_id;
	Relation          rel = open_argument(fcinfo, &storage_id);
	uint32            len = (uint32) PG_GETARG_INT32(1);
	uint64            seed = (uint64) (int64) PG_GETARG_INT32(3);
	char             *data = palloc(len + 1);
	PaimonLogTail     tail = {0, PG_UINT32_MAX};
	XLogRecPtr        lsn = InvalidXLogRecPtr;
	uint64            position = 0;
	FullTransactionId xid = GetTopFullTransactionId();

	if (storage_id == 0)
		storage_id = paimon_storage_assign_id(rel);
	fill_random(&seed, data, len);
	paimon_log_find_tail(rel, storage_id, &tail);
	for (int i = 0; i < PG_GETARG_INT32(2); i++)
	{
		PaimonBytes    pieces[3] = {{(uint8 *) data, len / 3}, {(uint8 *) data, 0}, {(uint8 *) data + len / 3, len - len / 3}};
		PaimonLogBatch batch = {.header = {.nrecords = (uint32) i}, .pieces = pieces, .npieces = lengthof(pieces)};

		CHECK_FOR_INTERRUPTS();
		paimon_log_pack(rel, &batch);
		position = paimon_log_append(rel, storage_id, &tail, xid, &batch, &lsn);
		if (batch.packed.len > 0)
			pfree((uint8 *) batch.packed.data);
	}
	if (!XLogRecPtrIsInvalid(lsn))
		XLogFlush(lsn);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64((int64) position);
}

/* test_storage_log(rel, from): reads all batches from there (-1: the first) to the tail; their number, bytes and hash, and the tail. */
Datum
paimon_test_storage_log(PG_FUNCTION_ARGS)
{
	uint64        storage_id;
	Relation      rel = open_argument(fcinfo, &storage_id);
	int64         from = PG_GETARG_INT64(1);
	uint64        position = from < 0 ? paimon_log_first(rel, storage_id) : (uint64) from;
	PaimonLogTail tail = {0, PG_UINT32_MAX};
	uint64        hash = 0;
	uint64        bytes = 0;
	int           n = 0;

	paimon_log_find_tail(rel, storage_id, &tail);
	while (position < tail.position)
	{
		PaimonBatchHeader header;
		uint8            *body;

		CHECK_FOR_INTERRUPTS();
		paimon_log_read_batch(rel, storage_id, position, &header, &body);
		hash = hash_combine64(hash, hash_bytes_extended(body, (int) (header.len - sizeof(header)), 0));
		pfree(body);
		position += header.len;
		bytes += header.len;
		n++;
	}
	if (position != tail.position)
		elog(ERROR, "last batch ends at " UINT64_FORMAT ", tail is " UINT64_FORMAT, position, tail.position);
	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(
		cstring_to_text(psprintf("%d batches, " UINT64_FORMAT " bytes, tail " UINT64_FORMAT ", hash %016lx", n, bytes,
								 tail.position, (unsigned long) hash)));
}

/* test_storage_trim(rel, head, keep, horizon): extents freed. */
Datum
paimon_test_storage_trim(PG_FUNCTION_ARGS)
{
	uint64   storage_id;
	Relation rel = open_argument(fcinfo, &storage_id);
	Datum   *elements;
	bool    *nulls;
	int      n;
	uint64  *keep;
	uint32   freed;

	deconstruct_array(PG_GETARG_ARRAYTYPE_P(2), INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements,
					  &nulls, &n);
	keep = palloc(sizeof(uint64) * (n + 1));
	for (int i = 0; i < n; i++)
		keep[i] = (uint64) DatumGetInt64(elements[i]);
	freed = paimon_log_free_before(rel, storage_id, (uint64) PG_GETARG_INT64(1), keep, n,
								   FullTransactionIdFromU64((uint64) PG_GETARG_INT64(3)));
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT32((int32) freed);
}

/* test_storage_orphans(rel): extents freed. */
Datum
paimon_test_storage_orphans(PG_FUNCTION_ARGS)
{
	uint64   storage_id;
	Relation rel = open_argument(fcinfo, &storage_id);
	uint32   freed = paimon_log_free_orphans(rel, storage_id, InvalidFullTransactionId);

	relation_close(rel, AccessShareLock);
	PG_RETURN_INT32((int32) freed);
}

/* test_storage_freeze(rel, from): freezes all batches from there on, alternately as committed and aborted. */
Datum
paimon_test_storage_freeze(PG_FUNCTION_ARGS)
{
	uint64        storage_id;
	Relation      rel = open_argument(fcinfo, &storage_id);
	uint64        position = (uint64) PG_GETARG_INT64(1);
	PaimonLogTail tail = {0, PG_UINT32_MAX};
	int           n = 0;

	paimon_log_find_tail(rel, storage_id, &tail);
	while (position < tail.position)
	{
		PaimonBatchHeader header;

		CHECK_FOR_INTERRUPTS();
		paimon_log_freeze_batch(rel, storage_id, position, n % 2 == 0);
		paimon_log_read_header(rel, storage_id, position, &header);
		position += header.len;
		n++;
	}
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT32(n);
}

/* test_storage_header(rel, position): whether it has an xid, and its flags; checks the way to a ctid and back, too. */
Datum
paimon_test_storage_header(PG_FUNCTION_ARGS)
{
	uint64            storage_id;
	Relation          rel = open_argument(fcinfo, &storage_id);
	uint64            position = (uint64) PG_GETARG_INT64(1);
	uint64            back;
	PaimonBatchHeader header;
	ItemPointerData   tid;

	paimon_log_read_header(rel, storage_id, position, &header);
	paimon_log_position_to_tid(rel, storage_id, position, &tid);
	if (!paimon_log_tid_to_position(rel, storage_id, &tid, &back) || back != position)
		elog(ERROR, "ctid of position " UINT64_FORMAT " does not lead back", position);
	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%s, flags %d", header.xid == 0 ? "frozen" : "live", header.flags)));
}

/* test_storage_write(rel, bytes, seed): writes a file, gives its number. */
Datum
paimon_test_storage_write(PG_FUNCTION_ARGS)
{
	uint64            storage_id;
	Relation          rel = open_argument(fcinfo, &storage_id);
	uint32            len = (uint32) PG_GETARG_INT32(1);
	uint64            seed = (uint64) PG_GETARG_INT32(2);
	uint64            file_no = paimon_storage_new_file_no(rel, 1);
	PaimonFileWriter *w = paimon_file_begin(rel, file_no, GetTopFullTransactionId());
	PaimonExtentList  extents;
	XLogRecPtr        lsn;
	uint32            npages;
	uint32            unit = 0;
	char             *data = palloc(CHUNK);

	while (len > 0)
	{
		uint32 n = Min(len, CHUNK);

		fill_random(&seed, data, n);
		paimon_file_append(w, unit++, data, n);
		len -= n;
	}
	paimon_file_finish(w, &extents, &npages, &lsn);
	if (!XLogRecPtrIsInvalid(lsn))
		XLogFlush(lsn);
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64((int64) file_no);
}

/* The extents of a file as its pages tell their order; the manifest is not ours here. */
typedef struct FoundExtent
{
	uint64 position;
	uint32 extent;
} FoundExtent;

typedef struct FileSearch
{
	Relation     rel;
	uint64       file_no;
	FoundExtent *found;
	int          n;
} FileSearch;

static void
note_file_extent(void *arg, uint32 extent, uint64 owner, FullTransactionId xid)
{
	FileSearch       *s = arg;
	PaimonPageSpecial special;

	(void) xid;
	if (owner != s->file_no)
		return;
	if (!paimon_page_identify(s->rel, paimon_extent_block(extent), &special) || special.owner != owner)
		special.position = PG_UINT32_MAX;
	if ((s->n & (s->n - 1)) == 0)
		s->found = repalloc(s->found, sizeof(FoundExtent) * (s->n * 2 + 1));
	s->found[s->n].position = special.position;
	s->found[s->n++].extent = extent;
}

static int
compare_found(const void *a, const void *b)
{
	const FoundExtent *x = a;
	const FoundExtent *y = b;

	return x->position < y->position ? -1 : x->position > y->position;
}

static void
find_file(Relation rel, uint64 file_no, PaimonExtentList *extents)
{
	FileSearch s = {rel, file_no, palloc(sizeof(FoundExtent)), 0};

	paimon_extent_visit(rel, note_file_extent, &s);
	qsort(s.found, s.n, sizeof(FoundExtent), compare_found);
	memset(extents, 0, sizeof(*extents));
	for (int i = 0; i < s.n; i++)
		paimon_extent_list_add(extents, s.found[i].extent, 1);
}

/* test_storage_check(rel, file, bytes, seed): is the content what test_storage_write wrote? */
Datum
paimon_test_storage_check(PG_FUNCTION_ARGS)
{
	uint64           storage_id;
	Relation         rel = open_argument(fcinfo, &storage_id);
	uint64           file_no = (uint64) PG_GETARG_INT64(1);
	uint32           len = (uint32) PG_GETARG_INT32(2);
	uint64           seed = (uint64) PG_GETARG_INT32(3);
	char            *want = palloc(CHUNK);
	char            *got = palloc(CHUNK);
	uint32           page = 0;
	bool             ok = true;
	PaimonExtentList extents;

	find_file(rel, file_no, &extents);
	paimon_file_prefetch(rel, &extents, 0, 64);
	while (len > 0)
	{
		uint32 n = Min(len, CHUNK);

		fill_random(&seed, want, n);
		paimon_file_read(rel, storage_id, file_no, &extents, page, 0, n, got);
		ok = ok && memcmp(want, got, n) == 0;
		paimon_file_read(rel, storage_id, file_no, &extents, page, n / 2, n / 3, got);
		ok = ok && memcmp(want + n / 2, got, n / 3) == 0;
		page += (n + PAIMON_PAGE_PAYLOAD - 1) / PAIMON_PAGE_PAYLOAD;
		len -= n;
	}
	relation_close(rel, AccessShareLock);
	PG_RETURN_BOOL(ok);
}

/* test_storage_free(rel, file, horizon): extents freed. */
Datum
paimon_test_storage_free(PG_FUNCTION_ARGS)
{
	uint64           storage_id;
	Relation         rel = open_argument(fcinfo, &storage_id);
	uint64           file_no = (uint64) PG_GETARG_INT64(1);
	PaimonExtentList extents;
	uint32           freed;

	find_file(rel, file_no, &extents);
	freed = paimon_extent_free(rel, file_no, &extents, FullTransactionIdFromU64((uint64) PG_GETARG_INT64(2)));
	relation_close(rel, AccessShareLock);
	PG_RETURN_INT32((int32) freed);
}

Datum
paimon_test_storage_usage(PG_FUNCTION_ARGS)
{
	uint64             storage_id;
	Relation           rel = open_argument(fcinfo, &storage_id);
	PaimonStorageUsage usage;

	paimon_storage_usage(rel, &usage);
	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%u used, %u free", usage.used_extents, usage.free_extents)));
}

/* test_storage_truncate(rel): pages given back. */
Datum
paimon_test_storage_truncate(PG_FUNCTION_ARGS)
{
	uint64      storage_id;
	Relation    rel = open_argument(fcinfo, &storage_id);
	BlockNumber pages = paimon_storage_truncate_end(rel);

	relation_close(rel, AccessShareLock);
	PG_RETURN_INT64(pages);
}

/*
 * test_storage_pages(rel): hash of all pages but their LSNs and checksums, to compare servers.  Pages of zeros do not count: one server may have
 * more of them than another.
 */
Datum
paimon_test_storage_pages(PG_FUNCTION_ARGS)
{
	uint64      storage_id;
	Relation    rel = open_argument(fcinfo, &storage_id);
	BlockNumber n = paimon_fork_blocks(rel);
	Size        skip = offsetof(PageHeaderData, pd_flags);
	uint64      hash = storage_id;

	for (BlockNumber block = 0; block < n; block++)
	{
		Buffer buf = ReadBuffer(rel, block);
		Page   page = BufferGetPage(buf);

		CHECK_FOR_INTERRUPTS();
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		if (!PageIsNew(page))
			hash = hash_combine64(hash_combine64(hash, block),
								  hash_bytes_extended((unsigned char *) page + skip, (int) (BLCKSZ - skip), 0));
		UnlockReleaseBuffer(buf);
	}
	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%016lx", (unsigned long) hash)));
}

/* test_storage_identity(rel): what is known of the storage id. */
Datum
paimon_test_storage_identity(PG_FUNCTION_ARGS)
{
	uint64   storage_id;
	Relation rel = open_argument(fcinfo, &storage_id);
	bool     reborn = paimon_storage_is_reborn(rel);

	relation_close(rel, AccessShareLock);
	PG_RETURN_TEXT_P(cstring_to_text(storage_id == 0 ? "none" : reborn ? "reborn" : "original"));
}

#endif /* PAIMON_TESTING */
