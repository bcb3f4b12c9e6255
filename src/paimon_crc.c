/*-------------------------------------------------------------------------
 *
 * paimon_crc.c
 *	  The server's CRC-32C for src/core.
 *
 * core/core.h asks for a finalised checksum that can be continued:
 * crc(crc(0, a), b) == crc(0, ab).  The server's macros start from all ones and
 * end by inverting, so a finalised value is taken up again by inverting it; 0 is then
 * the start by itself.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "port/pg_crc32c.h"

#include "core/core.h"

uint32_t
paimon_crc32c(uint32_t crc, const void *data, size_t len)
{
	pg_crc32c	state = crc ^ 0xFFFFFFFF;

	COMP_CRC32C(state, data, len);
	FIN_CRC32C(state);
	return state;
}
