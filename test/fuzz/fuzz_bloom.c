/*-------------------------------------------------------------------------
 *
 * fuzz_bloom.c
 *	  Bloom filters of any bytes: no overrun, the pieces agree with the whole.
 *
 * The input's first 8 bytes are a hash, the next one says whether the header
 * is repaired so that the fuzzer gets beyond it, the rest is the filter.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/core_bloom.h"

int			LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t	hash;
	uint32_t	len;
	uint8_t    *buf;
	PaimonBloom bloom;
	PaimonResult opened;
	bool		maybe = false;

	if (size < 9 || size > 1 << 20)
		return 0;
	hash = paimon_get_u64(data);
	len = (uint32_t) size - 9;
	buf = malloc(len > 0 ? len : 1);
	if (buf == NULL)
		return 0;
	memcpy(buf, data + 9, len);
	if ((data[8] & 1) && len >= PAIMON_BLOOM_HEADER + PAIMON_BLOOM_BLOCK)
	{
		/* a right header for whole blocks, with the number of probes and of blocks as the input has them if bits say so */
		uint8_t		header[PAIMON_BLOOM_HEADER];

		paimon_bloom_init(header, sizeof(header), 10);
		paimon_put_u32(header + 8, (len - PAIMON_BLOOM_HEADER) / PAIMON_BLOOM_BLOCK);
		if (data[8] & 2)
			header[5] = buf[5];
		if (data[8] & 4)
			memcpy(header + 8, buf + 8, 4);
		memcpy(buf, header, sizeof(header));
		len -= (data[8] & 8) ? 0 : len % PAIMON_BLOOM_BLOCK;
	}

	opened = paimon_bloom_open(buf, len, len, &bloom);
	if (paimon_bloom_may_contain(buf, len, hash, &maybe) != opened)
		abort();
	if (opened == PAIMON_OK)
	{
		uint32_t	off = paimon_bloom_block_offset(&bloom, hash);

		if (off < PAIMON_BLOOM_HEADER || off > len - PAIMON_BLOOM_BLOCK)
			abort();
		if (paimon_bloom_test_block(&bloom, buf + off, hash) != maybe)
			abort();

		/* what was added is there, whatever the filter was before */
		paimon_bloom_add(buf, hash);
		if (paimon_bloom_may_contain(buf, len, hash, &maybe) != PAIMON_OK || !maybe)
			abort();
	}
	free(buf);
	return 0;
}
