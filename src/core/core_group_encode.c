/*-------------------------------------------------------------------------
 *
 * core_group_encode.c
 *	  Writing a row group: columns one after another, then the header.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_group_layout.h"

/* Scratch memory of the encoder. */
static PaimonResult
begin_encode(PaimonEncoder *e, const PaimonGroupInput *in, const PaimonAllocator *a)
{
	size_t		n = in->nrows;

	memset(e, 0, sizeof(*e));
	e->a = e->out.a = e->heads.a = e->head.a = e->raw.a = e->wide.a = e->sample.a = a;
	e->nrows = in->nrows;
	e->zstd_level = in->zstd_level;
	e->id_crc = paimon_group_id_crc(&in->id);
	e->words = paimon_core_alloc(a, n * sizeof(uint64_t));
	e->words2 = paimon_core_alloc(a, n * sizeof(uint64_t));
	e->items = paimon_core_alloc(a, n * sizeof(PaimonBytes));
	e->dict = paimon_core_alloc(a, PAIMON_DICT_MAX * sizeof(PaimonBytes));
	e->dict_words = paimon_core_alloc(a, PAIMON_DICT_MAX * sizeof(uint64_t));
	e->table = paimon_core_alloc(a, PAIMON_DICT_MAX * 4 * sizeof(uint16_t));
	if (e->words == NULL || e->words2 == NULL || e->items == NULL || e->dict == NULL || e->dict_words == NULL ||
		e->table == NULL)
		return PAIMON_NO_MEMORY;
	return PAIMON_OK;
}

/* Header, directory (whose offsets become those in the group) and heads, in front of the bodies in e->out. */
static PaimonResult
assemble(PaimonEncoder *e, const PaimonGroupInput *in, PaimonColumnEntry *entries)
{
	uint32_t	head_len = header_size(in->ncolumns);
	size_t		front = head_len + e->heads.len;
	size_t		bodies = e->out.len;
	uint8_t    *h;

	if (front + bodies > PAIMON_GROUP_MAX_BYTES)
		return PAIMON_NO_SPACE;
	if (!paimon_buf_reserve(&e->out, front))
		return e->out.err;
	h = e->out.data;
	memmove(h + front, h, bodies);
	memset(h, 0, head_len);
	memcpy(h + head_len, e->heads.data, e->heads.len);
	e->out.len = front + bodies;
	for (uint32_t i = 0; i < in->ncolumns + PAIMON_COLUMN_FIRST; i++)
	{
		entries[i].head_off += head_len;
		entries[i].body_off += (uint32_t) front;
		put_entry(h + sizeof(GroupHeader) + i * sizeof(GroupEntry), &entries[i]);
	}
	paimon_put_u32(h + offsetof(GroupHeader, magic), GROUP_MAGIC);
	paimon_put_u16(h + offsetof(GroupHeader, version), GROUP_VERSION);
	paimon_put_u16(h + offsetof(GroupHeader, read_min), GROUP_READ_MIN);
	paimon_put_u32(h + offsetof(GroupHeader, total_len), (uint32_t) e->out.len);
	paimon_put_u16(h + offsetof(GroupHeader, nrows), (uint16_t) in->nrows);
	paimon_put_u16(h + offsetof(GroupHeader, ncolumns), (uint16_t) in->ncolumns);
	paimon_put_u32(h + offsetof(GroupHeader, crc), header_crc(e->id_crc, h, head_len));
	return PAIMON_OK;
}

PaimonResult
paimon_group_encode(const PaimonGroupInput *in, const PaimonAllocator *a, uint8_t **out, uint32_t *outlen)
{
	PaimonEncoder e;
	PaimonColumnEntry *entries;
	PaimonResult r;

	if (in->nrows == 0 || in->nrows > PAIMON_GROUP_MAX_ROWS || in->ncolumns > PAIMON_GROUP_MAX_COLUMNS)
		return PAIMON_CORRUPT;
	if ((r = begin_encode(&e, in, a)) != PAIMON_OK)
		return r;
	entries = paimon_core_alloc(a, (in->ncolumns + PAIMON_COLUMN_FIRST) * sizeof(PaimonColumnEntry));
	if (entries == NULL)
		return PAIMON_NO_MEMORY;
	if (!paimon_buf_reserve(&e.out, (size_t) in->nrows * 32))
		return e.out.err;
	for (uint32_t i = 0; i < in->ncolumns + PAIMON_COLUMN_FIRST; i++)
	{
		uint32_t	c = i - PAIMON_COLUMN_FIRST;

		if (i == PAIMON_COLUMN_KEY)
			r = paimon_column_encode_keys(&e, in->keys, &entries[i]);
		else if (i == PAIMON_COLUMN_KIND)
			r = paimon_column_encode_kinds(&e, in->kinds, &entries[i]);
		else if (!desc_valid(&in->columns[c]))
			r = PAIMON_CORRUPT;
		else
			r = paimon_column_encode(&e, i, &in->columns[c], in->values[c], in->nulls ? in->nulls[c] : NULL, &entries[i]);
		if (r != PAIMON_OK)
			return r;
	}
	if ((r = assemble(&e, in, entries)) != PAIMON_OK)
		return r;
	*out = e.out.data;
	*outlen = (uint32_t) e.out.len;
	return PAIMON_OK;
}
