/*-------------------------------------------------------------------------
 *
 * run_footer.h
 *	  The footer of a run file as bytes and as a struct.  Byte layout: README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_RUN_FOOTER_H
#define PAIMON_RUN_FOOTER_H

#include "postgres.h"

#include "lib/stringinfo.h"

#include "core/core_bloom.h"
#include "core/core_group.h"
#include "storage/storage.h"

#define PAIMON_RUN_MAGIC		0x4E555250	/* "PRUN" */
#define PAIMON_RUN_VERSION		1			/* written */
#define PAIMON_RUN_MIN_READER	1			/* a reader must know at least this version */

/* Filter bytes in one part of a bloom filter: as many whole blocks as fit a page beside the part's checksum. */
#define PAIMON_RUN_BLOOM_PART \
	((PAIMON_PAGE_PAYLOAD - (uint32) sizeof(uint32)) / PAIMON_BLOOM_BLOCK * PAIMON_BLOOM_BLOCK)

/* What counts as a delete marker in the footer and the manifest. */
#define PAIMON_RUN_IS_DELETE(kind) \
	((kind) == PAIMON_KIND_DELETE || (kind) == PAIMON_KIND_REMOVE || (kind) == PAIMON_KIND_UPDATE_BEFORE)

typedef struct PaimonRunGroupEntry
{
	uint32		page;			/* page of the file on which the group begins */
	uint32		len;
	uint32		nrows;
	PaimonBytes first_key;
} PaimonRunGroupEntry;

typedef struct PaimonRunFooter
{
	uint64		storage_id;
	uint64		file_no;
	uint32		bucket;
	uint32		level;			/* when it was written: the manifest's is the one that counts */
	uint32		source;			/* PaimonFileSource, likewise */
	uint32		natts;
	uint32		encoding;		/* of the keys: PAIMON_ENCODING_VERSION */
	uint64		nrows;
	uint64		ndeletes;		/* keys whose oldest record is a delete marker */
	uint32		repeats;		/* rows with the key of the row before */
	uint32		ngroups;		/* at least 1 */
	PaimonRunGroupEntry *groups;
	PaimonBytes max_key;
	uint32		bloom_page;
	uint32		bloom_size;		/* bytes of the filter, header included */
	uint32		bloom_part;		/* filter bytes in each part */
	uint8		bloom_header[PAIMON_BLOOM_HEADER];
} PaimonRunFooter;

/* Appends the footer's bytes to buf. */
extern void paimon_run_footer_encode(const PaimonRunFooter *footer, StringInfo buf);

/*
 * Decodes and checks everything that can be told from the bytes alone: checksum, version, sizes, order of pages and keys.  Keys point into
 * `bytes`; the array of groups is palloc'd.  Returns NULL, or what is wrong (untranslated, for a DETAIL).
 */
extern const char *paimon_run_footer_decode(const uint8 *bytes, uint32 len, PaimonRunFooter *footer);

#endif							/* PAIMON_RUN_FOOTER_H */
