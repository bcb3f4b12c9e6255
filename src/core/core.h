/*-------------------------------------------------------------------------
 *
 * core.h
 *	  The shim under src/core: plain C types and the few services core needs.
 *
 * Nothing in src/core includes postgres.h, allocates by itself, or reports
 * errors other than by return value, so that every line of it runs under
 * sanitizers and fuzzers outside a server.  Memory comes from the caller:
 * a buffer with its size, or a PaimonAllocator.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_H
#define PAIMON_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Result of everything in core that reads bytes it did not make itself. */
typedef enum PaimonResult
{
	PAIMON_OK = 0,
	PAIMON_CORRUPT,				/* bytes violate the format */
	PAIMON_NO_SPACE,			/* the caller's buffer is too small */
	PAIMON_NO_MEMORY			/* the allocator gave NULL (never in the server: palloc throws) */
} PaimonResult;

/*
 * Where core gets memory.  alloc returns memory aligned to 8 bytes; nothing
 * is freed one by one: the owner resets or deletes the arena behind `arg`
 * (in the server: a MemoryContext).
 */
typedef struct PaimonAllocator
{
	void	   *(*alloc) (void *arg, size_t size);
	void	   *arg;
} PaimonAllocator;

static inline void *
paimon_core_alloc(const PaimonAllocator *a, size_t size)
{
	return a->alloc(a->arg, size);
}

/* A run of bytes owned by somebody else. */
typedef struct PaimonBytes
{
	const uint8_t *data;
	uint32_t	len;
} PaimonBytes;

/*
 * CRC-32C (Castagnoli), finalised, of `len` bytes, continuing from `crc`
 * (0 to start).  Provided by the server glue from Postgres's own code, and by
 * test/unit with a table.
 */
extern uint32_t paimon_crc32c(uint32_t crc, const void *data, size_t len);

/* Three-way comparison of two byte strings: memcmp, then length. */
static inline int
paimon_bytes_cmp(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	if (c != 0)
		return c;
	return alen < blen ? -1 : (alen > blen ? 1 : 0);
}

/* Are they the same?  Most of those asked for are keys of eight bytes. */
static inline bool
paimon_bytes_equal(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	uint64_t	x;
	uint64_t	y;

	if (alen != blen)
		return false;
	if (alen != sizeof(x))
		return memcmp(a, b, alen) == 0;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y;
}

/* Fixed-width little-endian access at any alignment. */
static inline uint16_t
paimon_get_u16(const uint8_t *p)
{
	return (uint16_t) (p[0] | (p[1] << 8));
}

static inline uint32_t
paimon_get_u32(const uint8_t *p)
{
	return (uint32_t) p[0] | ((uint32_t) p[1] << 8) | ((uint32_t) p[2] << 16) | ((uint32_t) p[3] << 24);
}

static inline uint64_t
paimon_get_u64(const uint8_t *p)
{
	return (uint64_t) paimon_get_u32(p) | ((uint64_t) paimon_get_u32(p + 4) << 32);
}

static inline void
paimon_put_u16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t) v;
	p[1] = (uint8_t) (v >> 8);
}

static inline void
paimon_put_u32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t) v;
	p[1] = (uint8_t) (v >> 8);
	p[2] = (uint8_t) (v >> 16);
	p[3] = (uint8_t) (v >> 24);
}

static inline void
paimon_put_u64(uint8_t *p, uint64_t v)
{
	paimon_put_u32(p, (uint32_t) v);
	paimon_put_u32(p + 4, (uint32_t) (v >> 32));
}

/*
 * The first 8 bytes of a key as a big-endian number, missing bytes as 0:
 * a < b by prefix implies a < b by paimon_bytes_cmp; equal prefixes decide nothing.
 */
static inline uint64_t
paimon_key_prefix(const uint8_t *key, uint32_t len)
{
	uint64_t	v = 0;

#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	if (len >= 8)
	{
		memcpy(&v, key, 8);
		return __builtin_bswap64(v);
	}
#endif
	for (uint32_t i = 0; i < (len < 8 ? len : 8); i++)
		v |= (uint64_t) key[i] << (56 - 8 * i);
	return v;
}

/*
 * Copies a key to where there is room for the longest one.  Where the compiler sees the bound it makes a string instruction of memcpy, which takes
 * longer to start than most keys to copy: it must not see it.
 */
static inline void
paimon_copy_key(uint8_t *to, const uint8_t *key, uint32_t len)
{
#ifdef __GNUC__
	__asm__("" : "+r"(to), "+r"(len));
#endif
	memcpy(to, key, len);
}

#endif							/* PAIMON_CORE_H */
