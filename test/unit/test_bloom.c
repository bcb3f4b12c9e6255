/*-------------------------------------------------------------------------
 *
 * test_bloom.c
 *	  Bloom filter: never a false no, few false yeses, damaged headers; the
 *	  key hash: golden values and spread.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_bloom.h"
#include "unit.h"

#define NKEYS 50000

static uint64_t
hash_of(uint64_t i)
{
	uint8_t		key[8];

	/* as an encoded bigint: consecutive numbers differ in few bits */
	for (int b = 0; b < 8; b++)
		key[b] = (uint8_t) ((i ^ UINT64_C(0x8000000000000000)) >> (56 - 8 * b));
	return paimon_key_hash(key, sizeof(key));
}

static bool
maybe(const uint8_t *buf, uint32_t size, uint64_t hash)
{
	bool		m = false;

	CHECK_EQ(paimon_bloom_may_contain(buf, size, hash, &m), PAIMON_OK);
	return m;
}

/* False positives in percent, after checking that there are no false negatives. */
static double
check_filter(uint64_t nkeys, int bits)
{
	uint32_t	size = paimon_bloom_size(nkeys, bits);
	uint8_t    *buf = malloc(size);
	uint64_t	base = unit_rand();
	uint64_t	stride = 1 + unit_below(1000);
	uint64_t	yes = 0;

	CHECK_EQ(size % PAIMON_BLOOM_BLOCK, 0);
	CHECK(size >= PAIMON_BLOOM_HEADER + PAIMON_BLOOM_BLOCK);
	CHECK((uint64_t) size * 8 < nkeys * (uint64_t) bits + 3 * PAIMON_BLOOM_BLOCK * 8);
	paimon_bloom_init(buf, size, bits);
	CHECK(!maybe(buf, size, hash_of(base)));
	for (uint64_t i = 0; i < nkeys; i++)
		paimon_bloom_add(buf, hash_of(base + i * stride));
	for (uint64_t i = 0; i < nkeys; i++)
		CHECK(maybe(buf, size, hash_of(base + i * stride)));
	for (uint64_t i = 0; i < NKEYS; i++)
		yes += maybe(buf, size, hash_of(base + (nkeys + i) * stride));
	free(buf);
	return 100.0 * (double) yes / NKEYS;
}

static void
check_rates(void)
{
	static const struct
	{
		int			bits;
		double		limit;
	}			rates[] = {{1, 80}, {4, 22}, {8, 3.5}, {10, 1.6}, {16, 0.35}, {64, 0.01}};

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++)
	{
		double		percent = check_filter(NKEYS, rates[i].bits);

		CHECK_MSG(percent < rates[i].limit, "%d bits: %.3f %%", rates[i].bits, percent);
		printf("%d bits a key: %.3f %% false positives\n", rates[i].bits, percent);
	}
	for (uint64_t n = 0; n < 200; n++)
		check_filter(n, PAIMON_BLOOM_DEFAULT_BITS);
}

/* The pieces that a reader of pages uses agree with the whole. */
static void
check_pieces(void)
{
	uint32_t	size = paimon_bloom_size(1000, 10);
	uint8_t    *buf = malloc(size);
	PaimonBloom bloom;

	paimon_bloom_init(buf, size, 10);
	for (uint64_t i = 0; i < 1000; i++)
		paimon_bloom_add(buf, hash_of(i));
	CHECK_EQ(paimon_bloom_open(buf, PAIMON_BLOOM_HEADER, size, &bloom), PAIMON_OK);
	for (uint64_t i = 0; i < 3000; i++)
	{
		uint8_t		block[PAIMON_BLOOM_BLOCK];
		uint32_t	off = paimon_bloom_block_offset(&bloom, hash_of(i));

		CHECK(off >= PAIMON_BLOOM_HEADER && off + PAIMON_BLOOM_BLOCK <= size && off % PAIMON_BLOOM_BLOCK == 0);
		memcpy(block, buf + off, sizeof(block));
		CHECK_EQ(paimon_bloom_test_block(&bloom, block, hash_of(i)), maybe(buf, size, hash_of(i)));
	}
	free(buf);
}

/* Any damage to the header is found; any other length, too. */
static void
check_damage(void)
{
	uint32_t	size = paimon_bloom_size(100, 10);
	uint8_t    *buf = malloc(size);
	PaimonBloom bloom;
	bool		m;

	paimon_bloom_init(buf, size, 10);
	for (uint32_t len = 0; len < size; len++)
	{
		uint8_t    *cut = malloc(len + 1);

		memcpy(cut + 1, buf, len);
		CHECK_EQ(paimon_bloom_may_contain(cut + 1, len, unit_rand(), &m), PAIMON_CORRUPT);
		free(cut);
	}
	CHECK_EQ(paimon_bloom_open(buf, PAIMON_BLOOM_HEADER - 1, size, &bloom), PAIMON_CORRUPT);
	CHECK_EQ(paimon_bloom_open(buf, PAIMON_BLOOM_HEADER, size + PAIMON_BLOOM_BLOCK, &bloom), PAIMON_CORRUPT);
	for (int i = 0; i < PAIMON_BLOOM_HEADER; i++)
		for (int bit = 0; bit < 8; bit++)
		{
			PaimonResult r;

			buf[i] ^= (uint8_t) (1u << bit);
			r = paimon_bloom_may_contain(buf, size, unit_rand(), &m);

			/* another number of probes is a valid header: only a checksum can tell */
			CHECK_MSG(r == PAIMON_CORRUPT || (i == 5 && buf[5] >= 1 && buf[5] <= PAIMON_BLOOM_MAX_PROBES), "bit %d of byte %d", bit, i);
			buf[i] ^= (uint8_t) (1u << bit);
		}
	CHECK_EQ(paimon_bloom_may_contain(buf, size, 0, &m), PAIMON_OK);
	free(buf);

	CHECK(paimon_bloom_size(UINT64_MAX, 64) <= PAIMON_BLOOM_MAX_SIZE);
	CHECK(paimon_bloom_size(UINT64_MAX / 64, 1000000) <= PAIMON_BLOOM_MAX_SIZE);
	CHECK(paimon_bloom_size(UINT64_C(1) << 33, 1) <= PAIMON_BLOOM_MAX_SIZE);
	CHECK_EQ(paimon_bloom_size(0, -5), PAIMON_BLOOM_HEADER + PAIMON_BLOOM_BLOCK);
}

static void
check_golden(void)
{
	static const struct
	{
		const char *key;
		size_t		len;
		uint64_t	hash;
	}			golden[] = {
		{"", 0, UINT64_C(0xc9dad6109070a237)},
		{"a", 1, UINT64_C(0x26736b6342f77da2)},
		{"paimon", 6, UINT64_C(0x92ea2e0e147d8191)},
		{"12345678", 8, UINT64_C(0xf2a8833a6577d3d3)},
		{"123456789", 9, UINT64_C(0xb6820a7f1cbf950e)},
		{"a key that is longer than two words", 35, UINT64_C(0xe277418828eb1ecc)},
	};
	static const uint32_t golden_crc = 0x90db0713;
	uint32_t	size = paimon_bloom_size(1000, 10);
	uint8_t    *buf = malloc(size);

	for (size_t i = 0; i < sizeof(golden) / sizeof(golden[0]); i++)
		CHECK_MSG(paimon_key_hash(golden[i].key, golden[i].len) == golden[i].hash, "hash %zu: 0x%016" PRIx64, i,
				  paimon_key_hash(golden[i].key, golden[i].len));
	CHECK_EQ(size, 1344);
	paimon_bloom_init(buf, size, 10);
	for (uint64_t i = 0; i < 1000; i++)
		paimon_bloom_add(buf, hash_of(i));
	CHECK_MSG(paimon_crc32c(0, buf, size) == golden_crc, "filter: 0x%08x", paimon_crc32c(0, buf, size));
	free(buf);
}

/* Every input bit turns each output bit over about every second time. */
static void
check_avalanche(size_t len)
{
	static uint32_t flips[40 * 8][64];
	const int	rounds = 4000;
	uint8_t		key[40];

	memset(flips, 0, sizeof(flips));
	for (int r = 0; r < rounds; r++)
	{
		uint64_t	h;

		unit_fill(key, len);
		h = paimon_key_hash(key, len);
		for (size_t bit = 0; bit < len * 8; bit++)
		{
			uint64_t	diff;

			key[bit / 8] ^= (uint8_t) (1u << (bit % 8));
			diff = h ^ paimon_key_hash(key, len);
			key[bit / 8] ^= (uint8_t) (1u << (bit % 8));
			for (int o = 0; o < 64; o++)
				flips[bit][o] += (diff >> o) & 1;
		}
	}

	/* 4000 fair coins stay within 40 % … 60 % beyond any doubt: 12 standard deviations */
	for (size_t bit = 0; bit < len * 8; bit++)
		for (int o = 0; o < 64; o++)
			CHECK_MSG(flips[bit][o] > 1600 && flips[bit][o] < 2400, "length %zu: bit %zu turns output %d over %u times of %d",
					  len, bit, o, flips[bit][o], rounds);
}

/* Zeros of different lengths, and buckets filled evenly by consecutive keys. */
static void
check_spread(void)
{
	static const uint8_t zeros[64];
	static uint32_t filled[1024];
	uint32_t	worst = 0;

	for (size_t i = 0; i <= sizeof(zeros); i++)
		for (size_t j = 0; j < i; j++)
			CHECK(paimon_key_hash(zeros, i) != paimon_key_hash(zeros, j));
	for (uint64_t i = 0; i < 1024 * 100; i++)
	{
		uint32_t	b = (uint32_t) (((hash_of(i) >> 32) * 1024) >> 32);

		if (++filled[b] > worst)
			worst = filled[b];
	}
	CHECK_MSG(worst < 160, "%u in one of 1024 places for 100 each", worst);
}

int
main(int argc, char **argv)
{
	unit_begin("test_bloom", argc, argv);
	check_golden();
	check_rates();
	check_pieces();
	check_damage();
	check_avalanche(3);
	check_avalanche(7);
	check_avalanche(8);
	check_avalanche(19);
	check_avalanche(40);
	check_spread();
	return unit_end();
}
