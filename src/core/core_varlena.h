/*-------------------------------------------------------------------------
 *
 * core_varlena.h
 *	  The server's variable-length value headers, without the server.
 *
 * A varlena begins with a 1-byte header (total length up to 127) or a 4-byte
 * header in native byte order (total length up to 1 GB - 1).  Which of the
 * two is told by the first byte, and the bits that tell it depend on the
 * machine's byte order.  These layouts are fixed by pg_upgrade; they are
 * an in-memory matter only: files hold payloads without headers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_VARLENA_H
#define PAIMON_CORE_VARLENA_H

#include "core/core.h"

#define PAIMON_VARLENA_SHORT_MAX	126 /* largest payload with a 1-byte header */
#define PAIMON_VARLENA_MAX			0x3FFFFFFBu /* largest payload at all */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define PAIMON_VARLENA_IS_1B(b)			(((b) & 0x80) == 0x80)
#define PAIMON_VARLENA_IS_EXTERNAL(b)	((b) == 0x80)
#define PAIMON_VARLENA_IS_4B_PLAIN(b)	(((b) & 0xC0) == 0x00)
#define PAIMON_VARLENA_SIZE_1B(b)		((uint32_t) (b) & 0x7F)
#define PAIMON_VARLENA_SIZE_4B(w)		((w) & 0x3FFFFFFFu)
#define PAIMON_VARLENA_HEAD_1B(size)	((uint8_t) ((size) | 0x80))
#define PAIMON_VARLENA_HEAD_4B(size)	((uint32_t) (size) & 0x3FFFFFFFu)
#else
#define PAIMON_VARLENA_IS_1B(b)			(((b) & 0x01) == 0x01)
#define PAIMON_VARLENA_IS_EXTERNAL(b)	((b) == 0x01)
#define PAIMON_VARLENA_IS_4B_PLAIN(b)	(((b) & 0x03) == 0x00)
#define PAIMON_VARLENA_SIZE_1B(b)		(((uint32_t) (b) >> 1) & 0x7F)
#define PAIMON_VARLENA_SIZE_4B(w)		(((w) >> 2) & 0x3FFFFFFFu)
#define PAIMON_VARLENA_HEAD_1B(size)	((uint8_t) (((size) << 1) | 0x01))
#define PAIMON_VARLENA_HEAD_4B(size)	((uint32_t) (size) << 2)
#endif

/*
 * The payload of a varlena held in memory.  Returns false if the value is
 * stored out of line or compressed, which the caller should have undone.
 */
static inline bool
paimon_varlena_payload(const void *value, PaimonBytes *out)
{
	const uint8_t *p = value;
	uint32_t	size;

	if (PAIMON_VARLENA_IS_1B(p[0]))
	{
		size = PAIMON_VARLENA_SIZE_1B(p[0]);
		if (PAIMON_VARLENA_IS_EXTERNAL(p[0]) || size < 1)
			return false;
		out->data = p + 1;
		out->len = size - 1;
		return true;
	}
	if (!PAIMON_VARLENA_IS_4B_PLAIN(p[0]))
		return false;
	memcpy(&size, p, sizeof(size));
	size = PAIMON_VARLENA_SIZE_4B(size);
	if (size < 4)
		return false;
	out->data = p + 4;
	out->len = size - 4;
	return true;
}

/* Largest number of bytes that paimon_varlena_put may move on for a payload of `len` bytes. */
#define PAIMON_VARLENA_ROOM(len)	((size_t) (len) + 11)

/*
 * Writes a varlena at or (for alignment) shortly after *pos and moves *pos
 * behind it.  Returns where the varlena begins.  `len` is at most
 * PAIMON_VARLENA_MAX, and PAIMON_VARLENA_ROOM(len) bytes must be free.
 *
 * Long ones begin at a multiple of 8, whatever their type asks for: the server's
 * array functions align the addresses of elements, not their offsets, and find
 * others than are there in an array of float8 that does not begin so.  (Short ones they copy.)
 */
static inline uint8_t *
paimon_varlena_put(uint8_t **pos, const uint8_t *payload, uint32_t len)
{
	uint8_t    *start;

	if (len <= PAIMON_VARLENA_SHORT_MAX)
	{
		start = *pos;
		start[0] = PAIMON_VARLENA_HEAD_1B(len + 1);
		memcpy(start + 1, payload, len);
		*pos = start + 1 + len;
	}
	else
	{
		uint32_t	head = PAIMON_VARLENA_HEAD_4B(len + 4);

		start = (uint8_t *) (((uintptr_t) *pos + 7) & ~(uintptr_t) 7);
		memcpy(start, &head, sizeof(head));
		memcpy(start + 4, payload, len);
		*pos = start + 4 + len;
	}
	return start;
}

#endif							/* PAIMON_CORE_VARLENA_H */
