/*-------------------------------------------------------------------------
 *
 * core_bloom.h
 *	  Bloom filter over encoded keys, one cache line a question.
 *
 * All bits of a key lie in one block of 64 bytes, so that a probe touches one
 * cache line, and a reader of pages needs to fetch only the header and one
 * block.  Hash and layout are on disk and never change: README.md.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_BLOOM_H
#define PAIMON_CORE_BLOOM_H

#include "core/core.h"

#define PAIMON_BLOOM_BLOCK 64
#define PAIMON_BLOOM_HEADER PAIMON_BLOOM_BLOCK
#define PAIMON_BLOOM_MAX_PROBES 7
#define PAIMON_BLOOM_DEFAULT_BITS 10	/* a key: about 1 % false positives */
#define PAIMON_BLOOM_MAX_BITS 64
#define PAIMON_BLOOM_MAX_SIZE (UINT32_C(1) << 30)

/* 64-bit hash of an encoded key; part of the disk format. */
extern uint64_t paimon_key_hash(const void *key, size_t len);

/*
 * Bytes of a filter for nkeys keys with bits_per_key (1 … PAIMON_BLOOM_MAX_BITS) bits each.  Never above
 * PAIMON_BLOOM_MAX_SIZE: with more keys the filter gets less sharp.
 */
extern uint32_t paimon_bloom_size(uint64_t nkeys, int bits_per_key);

/* Starts an empty filter in buf[0 .. size), size being what paimon_bloom_size says for the same arguments. */
extern void paimon_bloom_init(uint8_t *buf, uint32_t size, int bits_per_key);

/* Adds the hash of a key to a filter made by paimon_bloom_init. */
extern void paimon_bloom_add(uint8_t *buf, uint64_t hash);

/* A filter's header, checked. */
typedef struct PaimonBloom
{
	uint32_t	nblocks;
	uint32_t	probes;
} PaimonBloom;

/*
 * Reads a header: the first PAIMON_BLOOM_HEADER bytes of a filter that is `size` bytes long (header_len of them are given).
 * PAIMON_CORRUPT if it does not fit the size.  The bits themselves have no checksum here: the file has one.
 */
extern PaimonResult paimon_bloom_open(const uint8_t *header, uint32_t header_len, uint32_t size, PaimonBloom *out);

/* Offset in the filter of the block that decides about a hash; offset + PAIMON_BLOOM_BLOCK <= size. */
extern uint32_t paimon_bloom_block_offset(const PaimonBloom *bloom, uint64_t hash);

/* May the key be there, judging by its block's PAIMON_BLOOM_BLOCK bytes? */
extern bool paimon_bloom_test_block(const PaimonBloom *bloom, const uint8_t *block, uint64_t hash);

/* All three for a filter in one piece: *maybe is false only if the key was never added. */
extern PaimonResult paimon_bloom_may_contain(const uint8_t *buf, uint32_t size, uint64_t hash, bool *maybe);

#endif							/* PAIMON_CORE_BLOOM_H */
