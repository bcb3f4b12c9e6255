/*-------------------------------------------------------------------------
 *
 * storage_pack.c
 *	  Batches as the WAL has them: compressed where that pays.
 *
 * Pages hold batches as they are, so that a record can be read where it lies.  The WAL is written once and hardly ever read, and who commits waits for it.  Small
 * batches are not worth it: the compressor's start costs as much as some dozen rows, and a small commit's time goes to waiting for the disk anyway.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <zstd.h>

#include "utils/rel.h"

#include "storage/storage_internal.h"

#define PACK_LEVEL	1
#define PACK_MIN	16384

/* A packed batch is one record, wherever on its first page it begins. */
#define PACK_MAX	((PAIMON_XLOG_PAGES - 1) * PAIMON_PAGE_PAYLOAD - sizeof(PaimonBatchHeader))

/* See storage.h. */
void
paimon_log_pack(Relation rel, PaimonLogBatch *batch)
{
	static ZSTD_CCtx *ctx;
	Size		len = 0;
	Size		size;
	char	   *raw;
	uint8	   *packed;

	for (int i = 0; i < batch->npieces; i++)
		len += batch->pieces[i].len;
	if (!RelationNeedsWAL(rel) || len < PACK_MIN || len > PACK_MAX)
		return;
	if (ctx == NULL)
		ctx = ZSTD_createCCtx();
	if (ctx == NULL)
		return;
	raw = palloc(len);
	len = 0;
	for (int i = 0; i < batch->npieces; i++)
	{
		memcpy(raw + len, batch->pieces[i].data, batch->pieces[i].len);
		len += batch->pieces[i].len;
	}
	/* given less room than would pay, the compressor gives up early */
	packed = palloc(len / 4 * 3);
	size = ZSTD_compressCCtx(ctx, packed, len / 4 * 3, raw, len, PACK_LEVEL);
	pfree(raw);
	if (ZSTD_isError(size))
	{
		pfree(packed);
		return;
	}
	batch->packed = (PaimonBytes) {packed, (uint32) size};
}

/*
 * Redo: the batch of a packed record's main data (its header, then what paimon_log_pack made), palloc'd.  PANIC if it is none.
 */
char *
paimon_log_unpack(const char *data, uint32 len, uint32 *raw_len)
{
	static ZSTD_DCtx *ctx;
	PaimonBatchHeader header;
	char	   *raw;

	if (ctx == NULL)
		ctx = ZSTD_createDCtx();
	if (ctx == NULL)
		ereport(PANIC,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("out of memory")));
	if (len <= sizeof(header))
		elog(PANIC, "paimon_am: packed batch of %u bytes in WAL record", len);
	memcpy(&header, data, sizeof(header));
	if (header.len <= sizeof(header) || header.len - sizeof(header) > PACK_MAX)
		elog(PANIC, "paimon_am: packed batch with length %u in WAL record", header.len);
	raw = palloc(header.len);
	memcpy(raw, data, sizeof(header));
	if (ZSTD_decompressDCtx(ctx, raw + sizeof(header), header.len - sizeof(header), data + sizeof(header), len - sizeof(header)) !=
		header.len - sizeof(header))
		elog(PANIC, "paimon_am: packed batch cannot be read from WAL record");
	*raw_len = header.len;
	return raw;
}
