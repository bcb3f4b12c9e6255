/*-------------------------------------------------------------------------
 *
 * unit_crc32c.c
 *	  paimon_crc32c for programs outside the server: one table, one byte at
 *	  a time.  Castagnoli's polynomial, bit-reversed.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core.h"

#define CRC32C_POLYNOMIAL 0x82f63b78u

static uint32_t crc_table[256];

/* Runs before main, so that threads never see a half-made table. */
__attribute__((constructor))
static void
make_crc_table(void)
{
	for (uint32_t i = 0; i < 256; i++)
	{
		uint32_t	c = i;

		for (int bit = 0; bit < 8; bit++)
			c = (c & 1) ? (c >> 1) ^ CRC32C_POLYNOMIAL : c >> 1;
		crc_table[i] = c;
	}
}

uint32_t
paimon_crc32c(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (size_t i = 0; i < len; i++)
		crc = crc_table[(crc ^ p[i]) & 0xff] ^ (crc >> 8);
	return ~crc;
}
