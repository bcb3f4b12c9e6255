/*-------------------------------------------------------------------------
 *
 * core_group_keys.c
 *	  Reading the key column of a row group: whole decoding, binary search.
 *
 * Keys that are packed numbers are searched where they lie, in one slice.  Among
 * keys that are a byte sequence, separators in the head tell the unit, so that a
 * search opens one unit.  See core_group_keys_encode.c for what a separator is.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

/* Largest number of `len` <= 8 bytes. */
static inline uint64_t
word_max(uint32_t len)
{
	return len == 0 ? 0 : UINT64_MAX >> (64 - 8 * len);
}

static inline void
put_word(uint8_t *dst, uint64_t word, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		dst[i] = (uint8_t) (word >> (8 * (len - 1 - i)));
}

static PaimonResult
load_separators(PaimonGroup *g, PaimonKeyColumn *k, PaimonCursor *cur)
{
	k->separators = paimon_core_alloc(&g->ctx.a, k->seq.nunits * sizeof(PaimonBytes));
	if (k->separators == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t u = 1; u < k->seq.nunits; u++)
	{
		const uint8_t *p = paimon_cursor_take(cur, 4);

		if (p == NULL)
			return PAIMON_CORRUPT;
		k->separators[u].len = paimon_get_u32(p);
		k->separators[u].data = paimon_cursor_take(cur, k->separators[u].len);
		if (k->separators[u].data == NULL)
			return PAIMON_CORRUPT;
	}
	return PAIMON_OK;
}

/* Parses the head of the key column when it is first touched. */
static PaimonResult
load_keys(PaimonGroup *g)
{
	PaimonKeyColumn *k = &g->key;
	PaimonColumn *c;
	PaimonCursor cur;
	PaimonResult r;
	const uint8_t *p;
	uint32_t	len;

	if (k->loaded)
		return PAIMON_OK;
	if ((r = paimon_group_column(g, PAIMON_COLUMN_KEY, &c)) != PAIMON_OK ||
		(r = paimon_column_load_head(&g->ctx, c, &cur)) != PAIMON_OK)
		return r;
	if ((p = paimon_cursor_take(&cur, 8)) == NULL)
		return PAIMON_CORRUPT;
	len = paimon_get_u32(p);
	k->prefix.len = paimon_get_u32(p + 4);
	k->prefix.data = paimon_cursor_take(&cur, k->prefix.len);
	if (k->prefix.data == NULL ||
		(len != PAIMON_KEY_LENGTHS_DIFFER && (len > PAIMON_UNIT_RAW_MAX || len < k->prefix.len)))
		return PAIMON_CORRUPT;
	k->fixed_len = len == PAIMON_KEY_LENGTHS_DIFFER ? 0 : len;
	k->suffix_len = len - k->prefix.len;
	if (c->entry.encoding == PAIMON_ENC_KEY_WORDS)
	{
		if (len == PAIMON_KEY_LENGTHS_DIFFER || k->suffix_len > 8)
			return PAIMON_CORRUPT;
		r = paimon_packed_read(&cur, g->ctx.nrows, &k->packed);
		if (r == PAIMON_OK && k->packed.slices != NULL)
		{
			k->nfirsts = (g->ctx.nrows - 1) / PAIMON_SLICE_ITEMS;
			if ((k->firsts = paimon_cursor_take(&cur, 8 * k->nfirsts)) == NULL)
				r = PAIMON_CORRUPT;
		}
	}
	else
	{
		r = paimon_seq_read(&cur, g->ctx.nrows, &k->seq);
		if (r == PAIMON_OK && len != PAIMON_KEY_LENGTHS_DIFFER &&
			(k->seq.lens.width != 0 || k->seq.lens.slope != 0 || k->seq.lens.base != k->suffix_len))
			r = PAIMON_CORRUPT;
		if (r == PAIMON_OK)
			r = load_separators(g, k, &cur);
	}
	if (r == PAIMON_OK && !paimon_cursor_done(&cur))
		r = PAIMON_CORRUPT;
	k->loaded = r == PAIMON_OK;
	return r;
}

static inline bool
keys_are_words(const PaimonGroup *g)
{
	return g->key.separators == NULL;
}

/* The packed numbers of the keys, for columns that follow them. */
PaimonResult
paimon_group_key_packed(PaimonGroup *g, const PaimonPacked **out)
{
	PaimonResult r = load_keys(g);

	if (r != PAIMON_OK)
		return r;
	*out = &g->key.packed;
	return keys_are_words(g) ? PAIMON_OK : PAIMON_CORRUPT;
}

/* Writes 8 bytes, big-endian. */
static inline void
put_be64(uint8_t *dst, uint64_t v)
{
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_BIG_ENDIAN__
	v = __builtin_bswap64(v);
#endif
	memcpy(dst, &v, 8);
}

/* Words of all packed keys, into *words, which the caller must put together with the prefix. */
static PaimonResult
decode_words(PaimonGroup *g, uint64_t **words)
{
	PaimonKeyColumn *k = &g->key;
	uint32_t	n = g->ctx.nrows;
	uint64_t	all = 0;
	PaimonResult r;

	if ((uint64_t) n * k->fixed_len > PAIMON_UNIT_RAW_MAX)
		return PAIMON_CORRUPT;
	if ((r = paimon_packed_need_all(&g->ctx, &k->packed)) != PAIMON_OK)
		return r;
	*words = paimon_core_alloc(&g->ctx.a, n * sizeof(uint64_t));
	if (*words == NULL)
		return PAIMON_NO_MEMORY;
	paimon_packed_unpack(&k->packed, 0, n, *words);
	for (uint32_t i = 0; i < n; i++)
		all |= (*words)[i];
	return all > word_max(k->suffix_len) ? PAIMON_CORRUPT : PAIMON_OK;
}

/* Keys that are no longer than a word: it is the prefix. */
static inline bool
keys_are_prefixes(const PaimonGroup *g)
{
	return keys_are_words(g) && g->key.fixed_len > 0 && g->key.fixed_len <= 8;
}

static PaimonResult
decode_prefixes(PaimonGroup *g)
{
	PaimonKeyColumn *k = &g->key;
	uint64_t   *words;
	uint64_t	front = paimon_key_prefix(k->prefix.data, k->prefix.len);
	uint32_t	shift = 64 - 8 * k->fixed_len;
	PaimonResult r;

	if (k->prefixes != NULL)
		return PAIMON_OK;
	if ((r = decode_words(g, &words)) != PAIMON_OK)
		return r;
	for (uint32_t i = 0; i < g->ctx.nrows; i++)
		words[i] = front | words[i] << shift;
	k->prefixes = words;
	return PAIMON_OK;
}

/* Whole decoding of packed keys. */
static PaimonResult
decode_packed(PaimonGroup *g, PaimonBytes *keys)
{
	PaimonKeyColumn *k = &g->key;
	uint32_t	n = g->ctx.nrows;
	uint32_t	len = k->fixed_len;
	uint64_t   *words;
	uint8_t    *data;
	PaimonResult r = keys_are_prefixes(g) ? decode_prefixes(g) : decode_words(g, &words);

	if (r != PAIMON_OK)
		return r;
	data = paimon_core_alloc(&g->ctx.a, (size_t) n * len + 8);
	if (data == NULL)
		return PAIMON_NO_MEMORY;
	if (keys_are_prefixes(g))
	{
		/* the 8 bytes written may go beyond the key: the next one overwrites them */
		for (uint32_t i = 0; i < n; i++, data += len)
		{
			put_be64(data, k->prefixes[i]);
			keys[i].data = data;
			keys[i].len = len;
		}
		return PAIMON_OK;
	}
	for (uint32_t i = 0; i < n; i++, data += len)
	{
		memcpy(data, k->prefix.data, k->prefix.len);
		put_word(data + k->prefix.len, words[i], k->suffix_len);
		keys[i].data = data;
		keys[i].len = len;
		words[i] = paimon_key_prefix(data, len);
	}
	k->prefixes = words;
	return PAIMON_OK;
}

/* Keys of one opened unit, with the prefix put in front where there is one. */
static PaimonResult
unit_keys(PaimonGroup *g, const PaimonUnit *u, PaimonBytes *keys)
{
	PaimonBytes prefix = g->key.prefix;
	uint8_t    *data;

	if (prefix.len == 0)
	{
		for (uint32_t i = 0; i < u->count; i++)
		{
			keys[i].data = u->raw + u->offsets[i];
			keys[i].len = u->offsets[i + 1] - u->offsets[i];
		}
		return PAIMON_OK;
	}
	if ((uint64_t) u->count * prefix.len + u->raw_len > PAIMON_UNIT_RAW_MAX)
		return PAIMON_CORRUPT;
	data = paimon_core_alloc(&g->ctx.a, (size_t) u->count * prefix.len + u->raw_len);
	if (data == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t i = 0; i < u->count; i++)
	{
		uint32_t	len = u->offsets[i + 1] - u->offsets[i];

		memcpy(data, prefix.data, prefix.len);
		memcpy(data + prefix.len, u->raw + u->offsets[i], len);
		keys[i].data = data;
		keys[i].len = prefix.len + len;
		data += prefix.len + len;
	}
	return PAIMON_OK;
}

static PaimonResult
decode_bytes(PaimonGroup *g, PaimonBytes *keys)
{
	PaimonSeq  *s = &g->key.seq;
	uint64_t   *prefixes = paimon_core_alloc(&g->ctx.a, g->ctx.nrows * sizeof(uint64_t));
	PaimonResult r = prefixes == NULL ? PAIMON_NO_MEMORY : paimon_seq_prefetch(&g->ctx, s);

	for (uint32_t u = 0; u < s->nunits && r == PAIMON_OK; u++)
	{
		r = paimon_seq_unit_offsets(&g->ctx, s, u);
		if (r == PAIMON_OK)
			r = unit_keys(g, &s->units[u], keys + s->units[u].first);
	}
	for (uint32_t i = 0; i < g->ctx.nrows && r == PAIMON_OK; i++)
		prefixes[i] = paimon_key_prefix(keys[i].data, keys[i].len);
	g->key.prefixes = prefixes;
	return r;
}

PaimonResult
paimon_group_keys(PaimonGroup *g, const PaimonBytes **keys, const uint64_t **prefixes, uint32_t *fixed_len)
{
	PaimonKeyColumn *k = &g->key;
	PaimonResult r = load_keys(g);

	if (r == PAIMON_OK && k->keys == NULL)
	{
		PaimonBytes *all = paimon_core_alloc(&g->ctx.a, g->ctx.nrows * sizeof(PaimonBytes));

		if (all == NULL)
			return PAIMON_NO_MEMORY;
		r = keys_are_words(g) ? decode_packed(g, all) : decode_bytes(g, all);
		if (r == PAIMON_OK)
			k->keys = all;
	}
	if (r != PAIMON_OK)
		return r;
	*keys = k->keys;
	*prefixes = k->prefixes;
	*fixed_len = k->fixed_len;
	return PAIMON_OK;
}

PaimonResult
paimon_group_prefixes(PaimonGroup *g, const uint64_t **prefixes, uint32_t *fixed_len)
{
	PaimonResult r = load_keys(g);

	*prefixes = NULL;
	if (r != PAIMON_OK || !keys_are_prefixes(g))
		return r;
	r = decode_prefixes(g);
	*prefixes = g->key.prefixes;
	*fixed_len = g->key.fixed_len;
	return r;
}

PaimonResult
paimon_group_key(PaimonGroup *g, uint32_t row, PaimonBytes *key)
{
	return paimon_group_key_into(g, row, NULL, 0, key);
}

PaimonResult
paimon_group_key_into(PaimonGroup *g, uint32_t row, uint8_t *room, uint32_t size, PaimonBytes *key)
{
	PaimonKeyColumn *k = &g->key;
	PaimonResult r = load_keys(g);
	const uint8_t *suffix = NULL;
	uint64_t	word = 0;
	uint32_t	len;
	uint8_t    *data;

	if (r != PAIMON_OK)
		return r;
	if (row >= g->ctx.nrows)
		return PAIMON_CORRUPT;
	if (k->keys != NULL)
	{
		*key = k->keys[row];
		return PAIMON_OK;
	}
	len = k->fixed_len;
	if (!keys_are_words(g))
	{
		uint32_t	unit = paimon_seq_find_unit(&k->seq, row);
		PaimonUnit *u = &k->seq.units[unit];

		if ((r = paimon_seq_unit_offsets(&g->ctx, &k->seq, unit)) != PAIMON_OK)
			return r;
		suffix = u->raw + u->offsets[row - u->first];
		len = k->prefix.len + u->offsets[row - u->first + 1] - u->offsets[row - u->first];
		if (k->prefix.len == 0)
		{
			key->data = suffix;
			key->len = len;
			return PAIMON_OK;
		}
	}
	else if ((r = paimon_packed_need(&g->ctx, &k->packed, row, 1)) != PAIMON_OK)
		return r;
	else if ((word = paimon_packed_get(&k->packed, row)) > word_max(k->suffix_len))
		return PAIMON_CORRUPT;
	data = room != NULL && len <= size ? room : paimon_core_alloc(&g->ctx.a, (size_t) len + 1);
	if (data == NULL)
		return PAIMON_NO_MEMORY;
	memcpy(data, k->prefix.data, k->prefix.len);
	if (suffix != NULL)
		memcpy(data + k->prefix.len, suffix, len - k->prefix.len);
	else
		put_word(data + k->prefix.len, word, k->suffix_len);
	key->data = data;
	key->len = len;
	return PAIMON_OK;
}

/* First number of slice s >= 1. */
static inline uint64_t
slice_first(const PaimonKeyColumn *k, uint32_t s)
{
	return paimon_get_u64(k->firsts + 8 * (s - 1));
}

/*
 * Search among packed keys for the suffix `rest`.  Where the numbers are in slices, their first ones tell the one slice to fetch: the last that
 * begins in front of the answer.
 */
static PaimonResult
seek_words(PaimonGroup *g, const uint8_t *rest, uint32_t len, uint32_t *row, bool *equal)
{
	const PaimonKeyColumn *k = &g->key;
	uint64_t	target = paimon_key_word(rest, len, k->suffix_len);
	bool		longer = len > k->suffix_len;	/* then a key equal in its bytes is smaller */
	uint32_t	slice = 0;
	uint32_t	lo = 0;
	uint32_t	hi = g->ctx.nrows;
	uint32_t	end;
	PaimonResult r;

	for (uint32_t s = 1; s <= k->nfirsts && (slice_first(k, s) < target || (longer && slice_first(k, s) == target)); s++)
		slice = s;
	if (k->nfirsts > 0)
	{
		lo = slice * PAIMON_SLICE_ITEMS;
		if (slice < k->nfirsts)
			hi = lo + PAIMON_SLICE_ITEMS;
	}
	if ((r = paimon_packed_need(&g->ctx, &k->packed, lo, hi - lo)) != PAIMON_OK)
		return r;
	end = hi;
	while (lo < hi)
	{
		uint32_t	mid = lo + (hi - lo) / 2;
		uint64_t	word = paimon_packed_get(&k->packed, mid);

		if (word < target || (longer && word == target))
			lo = mid + 1;
		else
			hi = mid;
	}
	*row = lo;
	if (len == k->suffix_len && lo < g->ctx.nrows)
		*equal = (lo < end ? paimon_packed_get(&k->packed, lo) : slice_first(k, slice + 1)) == target;
	return PAIMON_OK;
}

/* Search among suffixes in units. */
static PaimonResult
seek_bytes(PaimonGroup *g, const uint8_t *rest, uint32_t len, uint32_t *row, bool *equal)
{
	PaimonKeyColumn *k = &g->key;
	PaimonUnit *u;
	uint32_t	lo = 0;
	uint32_t	hi = k->seq.nunits - 1;
	PaimonResult r;

	/* last unit whose separator is not greater: the answer is in it, or is the first row behind it */
	while (lo < hi)
	{
		uint32_t	mid = lo + (hi - lo + 1) / 2;

		if (paimon_bytes_cmp(k->separators[mid].data, k->separators[mid].len, rest, len) <= 0)
			lo = mid;
		else
			hi = mid - 1;
	}
	if ((r = paimon_seq_unit_offsets(&g->ctx, &k->seq, lo)) != PAIMON_OK)
		return r;
	u = &k->seq.units[lo];
	lo = 0;
	hi = u->count;
	while (lo < hi)
	{
		uint32_t	mid = lo + (hi - lo) / 2;

		if (paimon_bytes_cmp(u->raw + u->offsets[mid], u->offsets[mid + 1] - u->offsets[mid], rest, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	*row = u->first + lo;
	*equal = lo < u->count &&
		paimon_bytes_cmp(u->raw + u->offsets[lo], u->offsets[lo + 1] - u->offsets[lo], rest, len) == 0;
	return PAIMON_OK;
}

PaimonResult
paimon_group_seek(PaimonGroup *g, const uint8_t *key, uint32_t len, uint32_t *row, bool *equal)
{
	PaimonKeyColumn *k = &g->key;
	PaimonResult r = load_keys(g);
	uint32_t	shared;
	int			cmp;

	if (r != PAIMON_OK)
		return r;
	*equal = false;
	shared = len < k->prefix.len ? len : k->prefix.len;
	cmp = memcmp(key, k->prefix.data, shared);
	if (cmp != 0 || len < k->prefix.len)
	{
		*row = cmp > 0 ? g->ctx.nrows : 0;
		return PAIMON_OK;
	}
	if (!keys_are_words(g))
		return seek_bytes(g, key + shared, len - shared, row, equal);
	return seek_words(g, key + shared, len - shared, row, equal);
}

/* Decodes all keys; they must be sorted and the separators must separate them. */
PaimonResult
paimon_group_check_keys(PaimonGroup *g)
{
	PaimonKeyColumn *k = &g->key;
	const PaimonBytes *keys;
	const uint64_t *prefixes;
	uint32_t	fixed_len;
	PaimonResult r = paimon_group_keys(g, &keys, &prefixes, &fixed_len);

	if (r != PAIMON_OK)
		return r;
	for (uint32_t i = 1; i < g->ctx.nrows; i++)
		if (paimon_bytes_cmp(keys[i - 1].data, keys[i - 1].len, keys[i].data, keys[i].len) > 0)
			return PAIMON_CORRUPT;
	for (uint32_t s = 1; s <= k->nfirsts; s++)
	{
		const PaimonBytes *first = &keys[s * PAIMON_SLICE_ITEMS];

		if (slice_first(k, s) != paimon_key_word(first->data + k->prefix.len, k->suffix_len, k->suffix_len))
			return PAIMON_CORRUPT;
	}
	for (uint32_t u = 1; !keys_are_words(g) && u < k->seq.nunits; u++)
	{
		const PaimonBytes *first = &keys[k->seq.units[u].first];
		const PaimonBytes *sep = &k->separators[u];
		uint32_t	skip = k->prefix.len;

		if (paimon_bytes_cmp(first[-1].data + skip, first[-1].len - skip, sep->data, sep->len) >= 0 ||
			paimon_bytes_cmp(sep->data, sep->len, first->data + skip, first->len - skip) > 0)
			return PAIMON_CORRUPT;
	}
	return PAIMON_OK;
}
