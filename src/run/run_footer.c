/*-------------------------------------------------------------------------
 *
 * run_footer.c
 *	  Encoding and decoding of the footer of run files.
 *
 * Decoding trusts nothing: whatever the bytes are, it reads within them and gives either a footer whose parts fit together or a reason.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/manifest.h"
#include "core/core_key.h"
#include "run/run_footer.h"

/* Offsets of the fixed part; README.md has the same table. */
#define FOOTER_MAGIC		0
#define FOOTER_CRC			4
#define FOOTER_VERSION		8
#define FOOTER_MIN_READER	10
#define FOOTER_BUCKET		12
#define FOOTER_STORAGE_ID	16
#define FOOTER_FILE_NO		24
#define FOOTER_NROWS		32
#define FOOTER_NDELETES		40
#define FOOTER_NGROUPS		48
#define FOOTER_NATTS		52
#define FOOTER_LEVEL		56
#define FOOTER_SOURCE		60
#define FOOTER_ENCODING		64
#define FOOTER_BLOOM_PAGE	68
#define FOOTER_BLOOM_SIZE	72
#define FOOTER_BLOOM_PART	76
#define FOOTER_MAX_KEY_LEN	80
#define FOOTER_REPEATS		84
#define FOOTER_BLOOM_HEADER 88
#define FOOTER_FIXED		(FOOTER_BLOOM_HEADER + PAIMON_BLOOM_HEADER)
#define FOOTER_ENTRY		16

StaticAssertDecl(FOOTER_FIXED == 152, "the fixed part of a footer is a disk format");
StaticAssertDecl(PAIMON_RUN_BLOOM_PART + sizeof(uint32) <= PAIMON_PAGE_PAYLOAD, "a bloom part lies on one page");

void
paimon_run_footer_encode(const PaimonRunFooter *footer, StringInfo buf)
{
	int			start = buf->len;
	uint8	   *p;

	enlargeStringInfo(buf, FOOTER_FIXED + footer->ngroups * FOOTER_ENTRY);
	p = (uint8 *) buf->data + start;
	memset(p, 0, FOOTER_FIXED);
	paimon_put_u32(p + FOOTER_MAGIC, PAIMON_RUN_MAGIC);
	paimon_put_u16(p + FOOTER_VERSION, PAIMON_RUN_VERSION);
	paimon_put_u16(p + FOOTER_MIN_READER, PAIMON_RUN_MIN_READER);
	paimon_put_u32(p + FOOTER_BUCKET, footer->bucket);
	paimon_put_u64(p + FOOTER_STORAGE_ID, footer->storage_id);
	paimon_put_u64(p + FOOTER_FILE_NO, footer->file_no);
	paimon_put_u64(p + FOOTER_NROWS, footer->nrows);
	paimon_put_u64(p + FOOTER_NDELETES, footer->ndeletes);
	paimon_put_u32(p + FOOTER_NGROUPS, footer->ngroups);
	paimon_put_u32(p + FOOTER_NATTS, footer->natts);
	paimon_put_u32(p + FOOTER_LEVEL, footer->level);
	paimon_put_u32(p + FOOTER_SOURCE, footer->source);
	paimon_put_u32(p + FOOTER_ENCODING, footer->encoding);
	paimon_put_u32(p + FOOTER_BLOOM_PAGE, footer->bloom_page);
	paimon_put_u32(p + FOOTER_BLOOM_SIZE, footer->bloom_size);
	paimon_put_u32(p + FOOTER_BLOOM_PART, footer->bloom_part);
	paimon_put_u32(p + FOOTER_MAX_KEY_LEN, footer->max_key.len);
	paimon_put_u32(p + FOOTER_REPEATS, footer->repeats);
	memcpy(p + FOOTER_BLOOM_HEADER, footer->bloom_header, PAIMON_BLOOM_HEADER);
	p += FOOTER_FIXED;
	for (uint32 i = 0; i < footer->ngroups; i++, p += FOOTER_ENTRY)
	{
		paimon_put_u32(p, footer->groups[i].page);
		paimon_put_u32(p + 4, footer->groups[i].len);
		paimon_put_u32(p + 8, footer->groups[i].nrows);
		paimon_put_u32(p + 12, footer->groups[i].first_key.len);
	}
	buf->len = start + FOOTER_FIXED + footer->ngroups * FOOTER_ENTRY;
	for (uint32 i = 0; i < footer->ngroups; i++)
		appendBinaryStringInfo(buf, (const char *) footer->groups[i].first_key.data, footer->groups[i].first_key.len);
	appendBinaryStringInfo(buf, (const char *) footer->max_key.data, footer->max_key.len);

	p = (uint8 *) buf->data + start;
	paimon_put_u32(p + FOOTER_CRC, paimon_crc32c(0, p + FOOTER_VERSION, buf->len - start - FOOTER_VERSION));
}

/* The fixed part; NULL or what is wrong. */
static const char *
footer_decode_fixed(const uint8 *p, uint32 len, PaimonRunFooter *footer)
{
	if (len < FOOTER_FIXED)
		return "footer is too short";
	if (paimon_get_u32(p + FOOTER_MAGIC) != PAIMON_RUN_MAGIC)
		return "footer has no magic number";
	if (paimon_get_u32(p + FOOTER_CRC) != paimon_crc32c(0, p + FOOTER_VERSION, len - FOOTER_VERSION))
		return "footer has a wrong checksum";
	if (paimon_get_u16(p + FOOTER_MIN_READER) > PAIMON_RUN_VERSION)
		return "file was written by a newer version of the extension";
	footer->bucket = paimon_get_u32(p + FOOTER_BUCKET);
	footer->storage_id = paimon_get_u64(p + FOOTER_STORAGE_ID);
	footer->file_no = paimon_get_u64(p + FOOTER_FILE_NO);
	footer->nrows = paimon_get_u64(p + FOOTER_NROWS);
	footer->ndeletes = paimon_get_u64(p + FOOTER_NDELETES);
	footer->ngroups = paimon_get_u32(p + FOOTER_NGROUPS);
	footer->natts = paimon_get_u32(p + FOOTER_NATTS);
	footer->level = paimon_get_u32(p + FOOTER_LEVEL);
	footer->source = paimon_get_u32(p + FOOTER_SOURCE);
	footer->encoding = paimon_get_u32(p + FOOTER_ENCODING);
	footer->bloom_page = paimon_get_u32(p + FOOTER_BLOOM_PAGE);
	footer->bloom_size = paimon_get_u32(p + FOOTER_BLOOM_SIZE);
	footer->bloom_part = paimon_get_u32(p + FOOTER_BLOOM_PART);
	footer->max_key.len = paimon_get_u32(p + FOOTER_MAX_KEY_LEN);
	footer->repeats = paimon_get_u32(p + FOOTER_REPEATS);
	memcpy(footer->bloom_header, p + FOOTER_BLOOM_HEADER, PAIMON_BLOOM_HEADER);
	if (footer->ngroups == 0 || footer->ngroups > (len - FOOTER_FIXED) / FOOTER_ENTRY)
		return "number of row groups does not fit the footer";
	if (footer->natts > PAIMON_GROUP_MAX_COLUMNS || footer->encoding != PAIMON_ENCODING_VERSION)
		return "number of columns or key encoding is unknown";
	if (footer->bloom_part != PAIMON_RUN_BLOOM_PART || footer->bloom_size < PAIMON_BLOOM_HEADER)
		return "bloom filter is malformed";
	return NULL;
}

/* Keys ascend, sizes add up. */
static const char *
footer_check_groups(const PaimonRunFooter *footer)
{
	uint64		nrows = 0;

	for (uint32 i = 0; i < footer->ngroups; i++)
	{
		const PaimonRunGroupEntry *g = &footer->groups[i];

		if (g->nrows == 0 || g->nrows > PAIMON_GROUP_MAX_ROWS || g->len == 0)
			return "a row group has an impossible size";
		nrows += g->nrows;
		if (i == 0)
			continue;
		if (g->page <= g[-1].page)
			return "row groups are not in order";
		/* equal ones occur where keys repeat */
		if (paimon_bytes_cmp(g[-1].first_key.data, g[-1].first_key.len, g->first_key.data, g->first_key.len) > 0)
			return "keys of row groups are not in order";
	}
	if (nrows != footer->nrows || footer->ndeletes > nrows || footer->repeats >= nrows)
		return "row counts do not add up";
	if (paimon_bytes_cmp(footer->groups[footer->ngroups - 1].first_key.data,
						 footer->groups[footer->ngroups - 1].first_key.len,
						 footer->max_key.data, footer->max_key.len) > 0)
		return "largest key is smaller than a row group's first one";
	return NULL;
}

const char *
paimon_run_footer_decode(const uint8 *bytes, uint32 len, PaimonRunFooter *footer)
{
	const char *reason = footer_decode_fixed(bytes, len, footer);
	const uint8 *p = bytes + FOOTER_FIXED;
	const uint8 *keys;
	uint64		left;

	if (reason != NULL)
		return reason;
	keys = p + (Size) footer->ngroups * FOOTER_ENTRY;
	left = len - FOOTER_FIXED - (uint64) footer->ngroups * FOOTER_ENTRY;
	footer->groups = palloc_array(PaimonRunGroupEntry, footer->ngroups);
	for (uint32 i = 0; i < footer->ngroups; i++, p += FOOTER_ENTRY)
	{
		PaimonRunGroupEntry *g = &footer->groups[i];

		g->page = paimon_get_u32(p);
		g->len = paimon_get_u32(p + 4);
		g->nrows = paimon_get_u32(p + 8);
		g->first_key.len = paimon_get_u32(p + 12);
		g->first_key.data = keys;
		if (g->first_key.len > PAIMON_KEY_MAX || g->first_key.len > left)
			return "a key does not fit the footer";
		keys += g->first_key.len;
		left -= g->first_key.len;
	}
	footer->max_key.data = keys;
	if (footer->max_key.len != left || left > PAIMON_KEY_MAX)
		return "the largest key does not fit the footer";
	return footer_check_groups(footer);
}
