/*-------------------------------------------------------------------------
 *
 * run_bloom.c
 *	  Bloom filters of run files: stored in parts of one page, each with a checksum of its own, read one by one.
 *
 * The filter of a large file has megabytes: a backend reads only the parts its lookups hit and keeps them while all parts together stay
 * below BLOOM_CACHE_BYTES; beyond that everything kept is dropped and gathered anew.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "run/run_file.h"

#define BLOOM_CACHE_BYTES (8 * 1024 * 1024)

/* A filter is never larger: beyond 13 million keys it gets less sharp. */
#define BLOOM_MAX_SIZE (16 * 1024 * 1024)

static MemoryContext bloom_cxt = NULL;
static Size bloom_bytes = 0;
static dlist_head bloom_files = DLIST_STATIC_INIT(bloom_files);

/* A file that has parts in memory; lives in bloom_cxt. */
typedef struct BloomOwner
{
	dlist_node	node;
	PaimonRunFile *file;
} BloomOwner;

static uint32
bloom_part_crc(uint64 storage_id, uint64 file_no, uint32 part, const uint8 *bytes)
{
	uint8		id[20];

	paimon_put_u64(id, storage_id);
	paimon_put_u64(id + 8, file_no);
	paimon_put_u32(id + 16, part);
	return paimon_crc32c(paimon_crc32c(0, id, sizeof(id)), bytes, PAIMON_RUN_BLOOM_PART);
}

uint8 *
paimon_run_bloom_build(const uint64 *hashes, uint64 n, PaimonRunFooter *footer, uint32 *len)
{
	int			bits = PAIMON_BLOOM_DEFAULT_BITS;
	uint32		size;
	uint32		nparts;
	uint8	   *filter;
	uint8	   *pages;

	while (bits > 1 && paimon_bloom_size(n, bits) > BLOOM_MAX_SIZE)
		bits--;
	size = paimon_bloom_size(n, bits);
	filter = palloc_extended(size, MCXT_ALLOC_HUGE);
	paimon_bloom_init(filter, size, bits);
	for (uint64 i = 0; i < n; i++)
		paimon_bloom_add(filter, hashes[i]);

	nparts = (size + PAIMON_RUN_BLOOM_PART - 1) / PAIMON_RUN_BLOOM_PART;
	*len = nparts * PAIMON_PAGE_PAYLOAD;
	pages = palloc_extended(*len, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < nparts; i++)
	{
		uint8	   *p = pages + (Size) i * PAIMON_PAGE_PAYLOAD;
		uint32		off = i * PAIMON_RUN_BLOOM_PART;

		memcpy(p, filter + off, Min(size - off, PAIMON_RUN_BLOOM_PART));
		paimon_put_u32(p + PAIMON_RUN_BLOOM_PART, bloom_part_crc(footer->storage_id, footer->file_no, i, p));
	}
	footer->bloom_size = size;
	footer->bloom_part = PAIMON_RUN_BLOOM_PART;
	memcpy(footer->bloom_header, filter, PAIMON_BLOOM_HEADER);
	pfree(filter);
	return pages;
}

const char *
paimon_run_bloom_open(PaimonRunFile *file)
{
	PaimonRunFooter *footer = &file->footer;

	if (paimon_bloom_open(footer->bloom_header, PAIMON_BLOOM_HEADER, footer->bloom_size, &file->bloom) != PAIMON_OK)
		return "bloom filter is malformed";
	file->nbloom_parts = (footer->bloom_size + PAIMON_RUN_BLOOM_PART - 1) / PAIMON_RUN_BLOOM_PART;
	file->bloom_parts = NULL;
	return NULL;
}

/* Drops every part of every file. */
static void
bloom_forget_all(void)
{
	dlist_iter	iter;

	dlist_foreach(iter, &bloom_files)
		dlist_container(BloomOwner, node, iter.cur)->file->bloom_parts = NULL;
	dlist_init(&bloom_files);
	bloom_bytes = 0;
	if (bloom_cxt != NULL)
		MemoryContextReset(bloom_cxt);
}

void
paimon_run_bloom_forget(PaimonRunFile *file)
{
	dlist_mutable_iter iter;

	if (file->bloom_parts == NULL)
		return;
	dlist_foreach_modify(iter, &bloom_files)
	{
		BloomOwner *owner = dlist_container(BloomOwner, node, iter.cur);

		if (owner->file != file)
			continue;
		dlist_delete(iter.cur);
		pfree(owner);
	}
	for (uint32 i = 0; i < file->nbloom_parts; i++)
	{
		if (file->bloom_parts[i] == NULL)
			continue;
		pfree(file->bloom_parts[i]);
		bloom_bytes -= PAIMON_RUN_BLOOM_PART;
	}
	bloom_bytes -= file->nbloom_parts * sizeof(uint8 *);
	pfree(file->bloom_parts);
	file->bloom_parts = NULL;
}

/* Makes the array of a file's parts; the budget has room for it. */
static void
bloom_remember_file(PaimonRunFile *file)
{
	BloomOwner *owner;

	if (bloom_cxt == NULL)
		bloom_cxt = AllocSetContextCreate(TopMemoryContext, "paimon bloom filters", ALLOCSET_DEFAULT_SIZES);
	owner = MemoryContextAlloc(bloom_cxt, sizeof(BloomOwner));
	file->bloom_parts = MemoryContextAllocZero(bloom_cxt, file->nbloom_parts * sizeof(uint8 *));
	owner->file = file;
	dlist_push_tail(&bloom_files, &owner->node);
	bloom_bytes += file->nbloom_parts * sizeof(uint8 *);
}

static const uint8 *
bloom_part(PaimonRunFile *file, uint32 part)
{
	uint8		page[BLCKSZ];
	uint8	   *copy;

	if (file->bloom_parts != NULL && file->bloom_parts[part] != NULL)
		return file->bloom_parts[part];

	paimon_run_file_read(file, file->footer.bloom_page, part * PAIMON_PAGE_PAYLOAD, PAIMON_PAGE_PAYLOAD, page);
	if (paimon_get_u32(page + PAIMON_RUN_BLOOM_PART) !=
		bloom_part_crc(file->key.storage_id, file->key.file_no, part, page))
		paimon_run_corrupt(file, PG_UINT32_MAX, "bloom filter has a wrong checksum");
	if (bloom_bytes + PAIMON_RUN_BLOOM_PART + file->nbloom_parts * sizeof(uint8 *) > BLOOM_CACHE_BYTES)
		bloom_forget_all();
	if (file->bloom_parts == NULL)
		bloom_remember_file(file);
	copy = MemoryContextAlloc(bloom_cxt, PAIMON_RUN_BLOOM_PART);
	memcpy(copy, page, PAIMON_RUN_BLOOM_PART);
	file->bloom_parts[part] = copy;
	bloom_bytes += PAIMON_RUN_BLOOM_PART;
	return copy;
}

bool
paimon_run_bloom_test(PaimonRunFile *file, uint64 hash)
{
	uint32		off = paimon_bloom_block_offset(&file->bloom, hash);
	const uint8 *part = bloom_part(file, off / PAIMON_RUN_BLOOM_PART);

	/* a part holds whole blocks, so a block never crosses its end */
	return paimon_bloom_test_block(&file->bloom, part + off % PAIMON_RUN_BLOOM_PART, hash);
}
