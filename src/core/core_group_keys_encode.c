/*-------------------------------------------------------------------------
 *
 * core_group_keys_encode.c
 *	  Writing the key column of a row group.
 *
 * Keys are sorted byte strings.  What all share in front is stored once.  The
 * rest, if it has the same length of at most 8 bytes everywhere, is a packed
 * big-endian number; otherwise it is a byte sequence, whose units are told
 * apart by separators in the head.
 *
 * Separator u (u >= 1): last key of unit u - 1 < separator <= first key of
 * unit u.  The first inequality is strict because units are never cut between
 * equal keys.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

static uint32_t
common_prefix(const PaimonBytes *a, const PaimonBytes *b)
{
	uint32_t	n = a->len < b->len ? a->len : b->len;
	uint32_t	i = 0;

	while (i < n && a->data[i] == b->data[i])
		i++;
	return i;
}

/* Writes suffixes in e->items as units, and the separators. */
static PaimonResult
encode_suffixes(PaimonEncoder *e)
{
	uint32_t   *starts = paimon_core_alloc(e->a, e->nrows * sizeof(uint32_t));
	uint32_t	nstarts = 0;
	PaimonResult r;

	if (starts == NULL)
		return PAIMON_NO_MEMORY;
	r = paimon_seq_write(e, e->items, e->nrows, PAIMON_KEY_UNIT_RAW, true, starts, &nstarts);
	for (uint32_t u = 1; u < nstarts && r == PAIMON_OK; u++)
	{
		const PaimonBytes *first = &e->items[starts[u]];
		uint32_t	len = common_prefix(first - 1, first) + 1;

		/* first > its predecessor, so it is longer than what they share */
		paimon_buf_put_u32(&e->head, len);
		paimon_buf_put(&e->head, first->data, len);
		r = e->head.err;
	}
	return r;
}

/*
 * Encodes the keys, whose data is never NULL.  PAIMON_CORRUPT if they are not
 * sorted, PAIMON_NO_SPACE if they are 1 GB or more together.
 */
PaimonResult
paimon_column_encode_keys(PaimonEncoder *e, const PaimonBytes *keys, PaimonColumnEntry *entry)
{
	uint32_t	n = e->nrows;
	uint32_t	prefix = common_prefix(&keys[0], &keys[n - 1]);
	bool		same_len = true;
	uint64_t	total = keys[0].len;
	PaimonResult r = PAIMON_OK;

	paimon_column_begin(e, PAIMON_COLUMN_KEY, entry);
	for (uint32_t i = 1; i < n; i++)
	{
		same_len &= keys[i].len == keys[0].len;
		total += keys[i].len;
		if (paimon_bytes_cmp(keys[i - 1].data, keys[i - 1].len, keys[i].data, keys[i].len) > 0)
			return PAIMON_CORRUPT;
	}
	if (total > PAIMON_UNIT_RAW_MAX)
		return PAIMON_NO_SPACE; /* the reader puts them together again in one piece */
	paimon_buf_put_u32(&e->head, same_len ? keys[0].len : PAIMON_KEY_LENGTHS_DIFFER);
	paimon_buf_put_u32(&e->head, prefix);
	paimon_buf_put(&e->head, keys[0].data, prefix);
	if (same_len && keys[0].len - prefix <= 8)
	{
		uint32_t	len = keys[0].len - prefix;
		PaimonPackPlan plan;
		size_t		body;

		entry->encoding = PAIMON_ENC_KEY_WORDS;
		e->key_words = paimon_core_alloc(e->a, n * sizeof(uint64_t));
		if (e->key_words == NULL)
			return PAIMON_NO_MEMORY;
		for (uint32_t i = 0; i < n; i++)
			e->key_words[i] = paimon_key_word(keys[i].data + prefix, len, len);
		paimon_pack_plan(&plan, e->key_words, n, e->key_words[0], e->key_words[n - 1] - e->key_words[0]);
		body = e->out.len;
		paimon_pack_write(e, &plan, e->key_words);
		for (uint32_t i = PAIMON_SLICE_ITEMS; i < n && e->out.len > body; i += PAIMON_SLICE_ITEMS)
			paimon_buf_put_u64(&e->head, e->key_words[i]);
	}
	else
	{
		entry->encoding = PAIMON_ENC_KEY_BYTES;
		for (uint32_t i = 0; i < n; i++)
		{
			e->items[i].data = keys[i].data + prefix;
			e->items[i].len = keys[i].len - prefix;
		}
		r = encode_suffixes(e);
	}
	return r == PAIMON_OK ? paimon_column_end(e, entry) : r;
}
