/*-------------------------------------------------------------------------
 *
 * core_group_layout.h
 *	  Header and directory of a row group, byte by byte.
 *
 * For core_group.c and core_group_encode.c only.  The whole layout is in
 * README.md, "Row groups".
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_GROUP_LAYOUT_H
#define PAIMON_CORE_GROUP_LAYOUT_H

#include "core/core_column.h"

#define GROUP_MAGIC			0x50475250u /* "PRGP" */
#define GROUP_VERSION		1	/* of the writer */
#define GROUP_READ_MIN		1	/* a reader must know at least this version */

/* On-disk header; always accessed by offsetof, little-endian. */
typedef struct GroupHeader
{
	uint32_t	magic;
	uint16_t	version;
	uint16_t	read_min;
	uint32_t	total_len;
	uint32_t	crc;			/* over identity, header with this field 0, directory */
	uint16_t	nrows;
	uint16_t	ncolumns;
	uint32_t	reserved;		/* 0 */
} GroupHeader;

/* On-disk directory entry. */
typedef struct GroupEntry
{
	uint8_t		phys;			/* 0 for keys and kinds */
	uint8_t		encoding;
	uint16_t	width;
	uint32_t	head_off;
	uint32_t	head_len;
	uint32_t	head_crc;
	uint32_t	body_off;
	uint32_t	body_len;
	uint32_t	null_count;
	uint32_t	reserved;		/* 0 */
	int64_t		min;
	int64_t		max;
} GroupEntry;

_Static_assert(sizeof(GroupHeader) == 24, "layout of the group header");
_Static_assert(offsetof(GroupHeader, version) == 4, "layout of the group header");
_Static_assert(offsetof(GroupHeader, read_min) == 6, "layout of the group header");
_Static_assert(offsetof(GroupHeader, total_len) == 8, "layout of the group header");
_Static_assert(offsetof(GroupHeader, crc) == 12, "layout of the group header");
_Static_assert(offsetof(GroupHeader, nrows) == 16, "layout of the group header");
_Static_assert(offsetof(GroupHeader, ncolumns) == 18, "layout of the group header");
_Static_assert(sizeof(GroupEntry) == 48, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, width) == 2, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, head_off) == 4, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, head_len) == 8, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, head_crc) == 12, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, body_off) == 16, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, body_len) == 20, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, null_count) == 24, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, min) == 32, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, max) == 40, "layout of a group's directory entry");
_Static_assert(PAIMON_GROUP_MAX_ROWS <= UINT16_MAX, "row counts are stored in 16 bits");

/* Bytes of header and directory. */
static inline uint32_t
header_size(uint32_t ncolumns)
{
	return (uint32_t) (sizeof(GroupHeader) + (ncolumns + PAIMON_COLUMN_FIRST) * sizeof(GroupEntry));
}

/* Writes a directory entry. */
static inline void
put_entry(uint8_t *p, const PaimonColumnEntry *e)
{
	p[offsetof(GroupEntry, phys)] = e->phys;
	p[offsetof(GroupEntry, encoding)] = e->encoding;
	paimon_put_u16(p + offsetof(GroupEntry, width), e->width);
	paimon_put_u32(p + offsetof(GroupEntry, head_off), e->head_off);
	paimon_put_u32(p + offsetof(GroupEntry, head_len), e->head_len);
	paimon_put_u32(p + offsetof(GroupEntry, head_crc), e->head_crc);
	paimon_put_u32(p + offsetof(GroupEntry, body_off), e->body_off);
	paimon_put_u32(p + offsetof(GroupEntry, body_len), e->body_len);
	paimon_put_u32(p + offsetof(GroupEntry, null_count), e->null_count);
	paimon_put_u32(p + offsetof(GroupEntry, reserved), 0);
	paimon_put_u64(p + offsetof(GroupEntry, min), (uint64_t) e->min);
	paimon_put_u64(p + offsetof(GroupEntry, max), (uint64_t) e->max);
}

/* Reads a directory entry. */
static inline void
get_entry(const uint8_t *p, PaimonColumnEntry *e)
{
	e->phys = p[offsetof(GroupEntry, phys)];
	e->encoding = p[offsetof(GroupEntry, encoding)];
	e->width = paimon_get_u16(p + offsetof(GroupEntry, width));
	e->head_off = paimon_get_u32(p + offsetof(GroupEntry, head_off));
	e->head_len = paimon_get_u32(p + offsetof(GroupEntry, head_len));
	e->head_crc = paimon_get_u32(p + offsetof(GroupEntry, head_crc));
	e->body_off = paimon_get_u32(p + offsetof(GroupEntry, body_off));
	e->body_len = paimon_get_u32(p + offsetof(GroupEntry, body_len));
	e->null_count = paimon_get_u32(p + offsetof(GroupEntry, null_count));
	e->min = (int64_t) paimon_get_u64(p + offsetof(GroupEntry, min));
	e->max = (int64_t) paimon_get_u64(p + offsetof(GroupEntry, max));
}

/* The header's checksum: `head` is header and directory. */
static inline uint32_t
header_crc(uint32_t id_crc, const uint8_t *head, uint32_t len)
{
	static const uint8_t zero[4];
	uint32_t	at = offsetof(GroupHeader, crc);
	uint32_t	crc = paimon_crc32c(id_crc, head, at);

	crc = paimon_crc32c(crc, zero, sizeof(zero));
	return paimon_crc32c(crc, head + at + 4, len - at - 4);
}

/* Is it a description of a value column at all? */
static inline bool
desc_valid(const PaimonColumnDesc *d)
{
	return d->phys >= PAIMON_PHYS_INT && d->phys <= PAIMON_PHYS_SCALED &&
		(d->phys != PAIMON_PHYS_FIXED || d->width > 0);
}

#endif							/* PAIMON_CORE_GROUP_LAYOUT_H */
