/*-------------------------------------------------------------------------
 *
 * core_bloom.c
 *	  Blocked bloom filter, and the key hash it lives on.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_bloom.h"

#define BLOOM_MAGIC UINT32_C(0x4d4c4250)	/* "PBLM" */
#define BLOOM_VERSION 1

/* Offsets in the header; the rest of it is zero. */
#define OFF_MAGIC 0
#define OFF_VERSION 4
#define OFF_PROBES 5
#define OFF_ZERO 6
#define OFF_NBLOCKS 8
#define HEADER_USED 12

#define BITS_PER_BLOCK (PAIMON_BLOOM_BLOCK * 8)
#define BITS_PER_PROBE 9		/* of the mixed hash: an index into the block's 512 bits */

_Static_assert(1 << BITS_PER_PROBE == BITS_PER_BLOCK, "a probe must reach every bit of a block");
_Static_assert(PAIMON_BLOOM_MAX_PROBES * BITS_PER_PROBE <= 64, "probes must not run out of hash");

/* Odd numbers with about as many ones as zeros. */
#define HASH_M1 UINT64_C(0xa24baed4963ee407)
#define HASH_M2 UINT64_C(0x9fb21c651e98df25)
#define PROBE_M UINT64_C(0xd6e8feb86659fd93)

static uint64_t
rotate_left(uint64_t x, int n)
{
	return (x << n) | (x >> (64 - n));
}

/* A bijection of 64-bit words in which every bit of the input reaches every bit of the output. */
static uint64_t
mix(uint64_t x)
{
	x ^= x >> 32;
	x *= HASH_M1;
	x ^= x >> 29;
	x *= HASH_M2;
	return x ^ (x >> 32);
}

uint64_t
paimon_key_hash(const void *key, size_t len)
{
	const uint8_t *p = key;
	uint64_t	h = ((uint64_t) len + 1) * HASH_M2;
	size_t		left = len;

	for (; left >= 8; left -= 8, p += 8)
		h = rotate_left(h ^ (paimon_get_u64(p) * HASH_M1), 29) * HASH_M2;
	if (left > 0)
	{
		uint8_t		tail[8] = {0};

		memcpy(tail, p, left);
		h = rotate_left(h ^ (paimon_get_u64(tail) * HASH_M1), 29) * HASH_M2;
	}
	return mix(h);
}

uint32_t
paimon_bloom_size(uint64_t nkeys, int bits_per_key)
{
	uint64_t	max_blocks = (PAIMON_BLOOM_MAX_SIZE - PAIMON_BLOOM_HEADER) / PAIMON_BLOOM_BLOCK;
	uint64_t	bits;
	uint64_t	nblocks;

	if (bits_per_key < 1)
		bits_per_key = 1;
	if (bits_per_key > PAIMON_BLOOM_MAX_BITS)
		bits_per_key = PAIMON_BLOOM_MAX_BITS;
	bits = (uint64_t) bits_per_key;

	/* no overflow: more keys than bits fit a filter of the largest size anyway */
	if (nkeys >= max_blocks * BITS_PER_BLOCK)
		nblocks = max_blocks;
	else
		nblocks = (nkeys * bits + BITS_PER_BLOCK - 1) / BITS_PER_BLOCK;
	if (nblocks < 1)
		nblocks = 1;
	if (nblocks > max_blocks)
		nblocks = max_blocks;
	return (uint32_t) (PAIMON_BLOOM_HEADER + nblocks * PAIMON_BLOOM_BLOCK);
}

void
paimon_bloom_init(uint8_t *buf, uint32_t size, int bits_per_key)
{
	int			probes;

	/*
	 * ln 2 bits per key would be best for one big filter; blocks are filled unevenly, which makes a little less better.
	 */
	probes = bits_per_key * 6 / 10;
	if (probes < 1)
		probes = 1;
	if (probes > PAIMON_BLOOM_MAX_PROBES)
		probes = PAIMON_BLOOM_MAX_PROBES;
	memset(buf, 0, size);
	paimon_put_u32(buf + OFF_MAGIC, BLOOM_MAGIC);
	buf[OFF_VERSION] = BLOOM_VERSION;
	buf[OFF_PROBES] = (uint8_t) probes;
	paimon_put_u32(buf + OFF_NBLOCKS, (size - PAIMON_BLOOM_HEADER) / PAIMON_BLOOM_BLOCK);
}

/* Block by the hash's upper half; all bits then by a product of the whole. */
static uint32_t
block_of(uint64_t hash, uint32_t nblocks)
{
	return (uint32_t) (((hash >> 32) * nblocks) >> 32);
}

static uint64_t
probe_bits(uint64_t hash)
{
	uint64_t	x = hash * PROBE_M;

	return x ^ (x >> 32);
}

void
paimon_bloom_add(uint8_t *buf, uint64_t hash)
{
	uint8_t    *block;
	uint64_t	bits = probe_bits(hash);

	block = buf + PAIMON_BLOOM_HEADER + (size_t) block_of(hash, paimon_get_u32(buf + OFF_NBLOCKS)) * PAIMON_BLOOM_BLOCK;
	for (int i = 0; i < buf[OFF_PROBES]; i++, bits >>= BITS_PER_PROBE)
		block[(bits & (BITS_PER_BLOCK - 1)) / 8] |= (uint8_t) (1u << (bits % 8));
}

PaimonResult
paimon_bloom_open(const uint8_t *header, uint32_t header_len, uint32_t size, PaimonBloom *out)
{
	uint32_t	nblocks;

	if (header_len < PAIMON_BLOOM_HEADER || size < PAIMON_BLOOM_HEADER + PAIMON_BLOOM_BLOCK || size > PAIMON_BLOOM_MAX_SIZE)
		return PAIMON_CORRUPT;
	if (paimon_get_u32(header + OFF_MAGIC) != BLOOM_MAGIC || header[OFF_VERSION] != BLOOM_VERSION)
		return PAIMON_CORRUPT;
	if (header[OFF_PROBES] < 1 || header[OFF_PROBES] > PAIMON_BLOOM_MAX_PROBES || paimon_get_u16(header + OFF_ZERO) != 0)
		return PAIMON_CORRUPT;
	for (int i = HEADER_USED; i < PAIMON_BLOOM_HEADER; i++)
		if (header[i] != 0)
			return PAIMON_CORRUPT;
	nblocks = paimon_get_u32(header + OFF_NBLOCKS);
	if ((uint64_t) nblocks * PAIMON_BLOOM_BLOCK + PAIMON_BLOOM_HEADER != size)
		return PAIMON_CORRUPT;
	out->nblocks = nblocks;
	out->probes = header[OFF_PROBES];
	return PAIMON_OK;
}

uint32_t
paimon_bloom_block_offset(const PaimonBloom *bloom, uint64_t hash)
{
	return PAIMON_BLOOM_HEADER + block_of(hash, bloom->nblocks) * PAIMON_BLOOM_BLOCK;
}

bool
paimon_bloom_test_block(const PaimonBloom *bloom, const uint8_t *block, uint64_t hash)
{
	uint64_t	bits = probe_bits(hash);

	for (uint32_t i = 0; i < bloom->probes; i++, bits >>= BITS_PER_PROBE)
	{
		if ((block[(bits & (BITS_PER_BLOCK - 1)) / 8] & (1u << (bits % 8))) == 0)
			return false;
	}
	return true;
}

PaimonResult
paimon_bloom_may_contain(const uint8_t *buf, uint32_t size, uint64_t hash, bool *maybe)
{
	PaimonBloom bloom;
	PaimonResult r = paimon_bloom_open(buf, size, size, &bloom);

	if (r == PAIMON_OK)
		*maybe = paimon_bloom_test_block(&bloom, buf + paimon_bloom_block_offset(&bloom, hash), hash);
	return r;
}
