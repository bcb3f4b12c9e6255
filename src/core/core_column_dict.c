/*-------------------------------------------------------------------------
 *
 * core_column_dict.c
 *	  Finding dictionaries: few distinct values among many.
 *
 * A small sample decides whether a full pass is worth its time.  Codes are
 * given in order of first appearance.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

#define SAMPLE_RUNS		32
#define SAMPLE_RUN		4
#define SAMPLE_SIZE		(SAMPLE_RUNS * SAMPLE_RUN)

/* So many repetitions in a sample promise a dictionary. */
#define SAMPLE_REPEATS	6

#define TABLE_MAX		(PAIMON_DICT_MAX * 4)

static inline uint64_t
hash_word(uint64_t v)
{
	v *= UINT64_C(0x9E3779B97F4A7C15);
	return v ^ (v >> 32);
}

static inline uint64_t
hash_bytes(const PaimonBytes *v)
{
	const uint8_t *p = v->data;
	uint32_t	n = v->len;
	uint64_t	h = n;
	uint64_t	w = 0;

	for (; n >= 8; n -= 8, p += 8)
	{
		memcpy(&w, p, 8);
		h = hash_word(h ^ w);
	}
	if (n >= 4)
	{
		uint32_t	a;
		uint32_t	b;

		memcpy(&a, p, 4);
		memcpy(&b, p + n - 4, 4);
		w = (uint64_t) a << 32 | b;
	}
	else
		w = n == 0 ? 0 : (uint64_t) p[0] << 16 | (uint64_t) p[n / 2] << 8 | p[n - 1];
	return hash_word(h ^ w);
}

/* Row of sample s: short runs, so that both clustered and scattered repetitions are seen. */
static inline uint32_t
sample_row(uint32_t s, uint32_t n)
{
	return (s / SAMPLE_RUN) * (n / SAMPLE_RUNS) + s % SAMPLE_RUN;
}

/* Do hashes of a sample repeat often enough? */
static bool
sample_repeats(const uint64_t *hashes)
{
	uint64_t	seen[SAMPLE_SIZE * 2] = {0};
	uint32_t	repeats = 0;

	for (uint32_t s = 0; s < SAMPLE_SIZE; s++)
	{
		uint64_t	h = hashes[s] | 1;
		uint32_t	slot = (uint32_t) (h >> 20) % (SAMPLE_SIZE * 2);

		while (seen[slot] != 0 && seen[slot] != h)
			slot = (slot + 1) % (SAMPLE_SIZE * 2);
		if (seen[slot] == h)
			repeats++;
		seen[slot] = h;
	}
	return repeats >= SAMPLE_REPEATS;
}

/* Clears the hash table; returns its size, a power of two at least 4 times `limit`. */
static uint32_t
begin_table(PaimonEncoder *e, uint32_t limit)
{
	uint32_t	size = 64;

	while (size < limit * 4 && size < TABLE_MAX)
		size *= 2;
	memset(e->table, 0, size * sizeof(uint16_t));
	return size;
}

static inline uint32_t
dict_limit(uint32_t n)
{
	return n / 2 < PAIMON_DICT_MAX ? n / 2 : PAIMON_DICT_MAX;
}

/*
 * Builds a dictionary of words into e->dict_words and codes[0..n).  Returns
 * its size, or 0 if there are too many distinct values for one.
 */
uint32_t
paimon_dict_words(PaimonEncoder *e, const uint64_t *v, uint32_t n, uint64_t *codes)
{
	uint32_t	limit = dict_limit(n);
	uint32_t	ndict = 0;
	uint32_t	mask;

	if (n >= SAMPLE_SIZE * 2)
	{
		uint64_t	hashes[SAMPLE_SIZE];

		for (uint32_t s = 0; s < SAMPLE_SIZE; s++)
			hashes[s] = hash_word(v[sample_row(s, n)]);
		if (!sample_repeats(hashes))
			return 0;
	}
	mask = begin_table(e, limit) - 1;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	slot = (uint32_t) hash_word(v[i]) & mask;

		while (e->table[slot] != 0 && e->dict_words[e->table[slot] - 1] != v[i])
			slot = (slot + 1) & mask;
		if (e->table[slot] == 0)
		{
			if (ndict == limit)
				return 0;
			e->dict_words[ndict++] = v[i];
			e->table[slot] = (uint16_t) ndict;
		}
		codes[i] = e->table[slot] - 1u;
	}
	return ndict;
}

/* The same for byte strings, into e->dict. */
uint32_t
paimon_dict_bytes(PaimonEncoder *e, const PaimonBytes *v, uint32_t n, uint64_t *codes)
{
	uint32_t	limit = dict_limit(n);
	uint32_t	ndict = 0;
	uint32_t	mask;

	if (n >= SAMPLE_SIZE * 2)
	{
		uint64_t	hashes[SAMPLE_SIZE];

		for (uint32_t s = 0; s < SAMPLE_SIZE; s++)
			hashes[s] = hash_bytes(&v[sample_row(s, n)]);
		if (!sample_repeats(hashes))
			return 0;
	}
	mask = begin_table(e, limit) - 1;
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	slot = (uint32_t) hash_bytes(&v[i]) & mask;

		for (; e->table[slot] != 0; slot = (slot + 1) & mask)
		{
			const PaimonBytes *d = &e->dict[e->table[slot] - 1];

			if (d->len == v[i].len && memcmp(d->data, v[i].data, d->len) == 0)
				break;
		}
		if (e->table[slot] == 0)
		{
			if (ndict == limit)
				return 0;
			e->dict[ndict++] = v[i];
			e->table[slot] = (uint16_t) ndict;
		}
		codes[i] = e->table[slot] - 1u;
	}
	return ndict;
}
