/*-------------------------------------------------------------------------
 *
 * core_column_decode.c
 *	  Reading a value column: whole, or one row of it.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

static inline bool
holds_words(const PaimonColumn *c)
{
	return c->entry.phys == PAIMON_PHYS_INT || c->entry.phys == PAIMON_PHYS_SCALED;
}

static inline PaimonItemForm
item_form(const PaimonColumn *c)
{
	if (holds_words(c))
		return PAIMON_ITEM_WORD;
	return c->entry.phys == PAIMON_PHYS_FIXED ? PAIMON_ITEM_FIXED : PAIMON_ITEM_VARLENA;
}

static inline uint32_t
item_width(const PaimonColumn *c)
{
	return holds_words(c) ? 8 : c->entry.width;
}

static inline bool
bitmap_null(const uint8_t *bitmap, uint32_t row)
{
	return (bitmap[row >> 3] >> (row & 7)) & 1;
}

/* Up to 64 bits of the bitmap, from row 64 * word on. */
static uint64_t
bitmap_word(const uint8_t *bitmap, uint32_t nrows, uint32_t word)
{
	uint32_t	nbytes = (nrows + 7) / 8;
	uint32_t	at = word * 8;
	uint64_t	bits = 0;

	if (at + 8 <= nbytes)
		return paimon_load_le64(bitmap + at);
	for (uint32_t i = 0; at + i < nbytes; i++)
		bits |= (uint64_t) bitmap[at + i] << (8 * i);
	return bits;
}

/* Takes the null bitmap from the head and counts items in front of each 64 rows. */
static PaimonResult
load_bitmap(PaimonGroupContext *g, PaimonColumn *c, PaimonCursor *cur)
{
	uint32_t	nwords = (g->nrows + 63) / 64;
	uint32_t	nulls = 0;

	c->bitmap = paimon_cursor_take(cur, (g->nrows + 7) / 8);
	if (c->bitmap == NULL)
		return PAIMON_CORRUPT;
	c->rank = paimon_core_alloc(&g->a, nwords * sizeof(uint16_t));
	if (c->rank == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t w = 0; w < nwords; w++)
	{
		uint64_t	bits = bitmap_word(c->bitmap, g->nrows, w);

		if (w == nwords - 1 && g->nrows % 64 != 0 && bits >> (g->nrows % 64) != 0)
			return PAIMON_CORRUPT;
		c->rank[w] = (uint16_t) (w * 64 - nulls);
		nulls += (uint32_t) __builtin_popcountll(bits);
	}
	return nulls == c->entry.null_count ? PAIMON_OK : PAIMON_CORRUPT;
}

/* Fetches and checks a column's head; the cursor is set to its contents. */
PaimonResult
paimon_column_load_head(PaimonGroupContext *g, PaimonColumn *c, PaimonCursor *out)
{
	const uint8_t *head = (const uint8_t *) "";

	if (c->entry.head_len > 0)
	{
		head = g->src.fetch(g->src.arg, c->entry.head_off, c->entry.head_len);
		if (head == NULL)
			return PAIMON_NO_MEMORY;
	}
	if (!paimon_crc_matches(paimon_part_crc(g->id_crc, c->number, PAIMON_PART_HEAD, head, c->entry.head_len),
							c->entry.head_crc))
		return PAIMON_CORRUPT;
	out->p = head;
	out->end = head + c->entry.head_len;
	out->g = g;
	out->column = c->number;
	out->body_off = c->entry.body_off;
	out->body_len = c->entry.body_len;
	out->body_pos = 0;
	return PAIMON_OK;
}

/* A column that follows the key: the key's packed numbers with another base. */
static PaimonResult
load_from_key(PaimonGroupContext *g, PaimonColumn *c, PaimonCursor *cur)
{
	const uint8_t *p = paimon_cursor_take(cur, 8);
	const PaimonPacked *key;
	PaimonResult r;

	if (p == NULL || !holds_words(c) || c->entry.null_count != 0)
		return PAIMON_CORRUPT;
	if ((r = paimon_group_key_packed(g->group, &key)) != PAIMON_OK)
		return r;
	c->packed = *key;
	c->packed.base += paimon_get_u64(p);
	return PAIMON_OK;
}

static PaimonResult
load_dict(PaimonColumn *c, PaimonCursor *cur)
{
	const uint8_t *p = paimon_cursor_take(cur, 4);
	PaimonResult r;

	if (p == NULL)
		return PAIMON_CORRUPT;
	c->ndict = paimon_get_u32(p);
	if (c->ndict == 0 || c->ndict > c->nitems || c->ndict > PAIMON_DICT_MAX)
		return PAIMON_CORRUPT;
	if ((r = paimon_packed_read(cur, c->nitems, &c->packed)) != PAIMON_OK)
		return r;
	if (holds_words(c))
		return paimon_packed_read(cur, c->ndict, &c->dict_packed);
	return paimon_seq_read(cur, c->ndict, &c->seq);
}

/* Parses the head when the column is first touched. */
static PaimonResult
load(PaimonGroupContext *g, PaimonColumn *c)
{
	PaimonCursor cur;
	PaimonResult r;

	if (c->loaded)
		return PAIMON_OK;
	c->nitems = g->nrows - c->entry.null_count;
	if ((r = paimon_column_load_head(g, c, &cur)) != PAIMON_OK)
		return r;
	if (c->entry.null_count > 0 && c->nitems > 0 && (r = load_bitmap(g, c, &cur)) != PAIMON_OK)
		return r;
	if ((c->nitems == 0) != (c->entry.encoding == PAIMON_ENC_EMPTY))
		return PAIMON_CORRUPT;
	switch (c->entry.encoding)
	{
		case PAIMON_ENC_EMPTY:
			break;
		case PAIMON_ENC_PACKED:
			r = holds_words(c) ? paimon_packed_read(&cur, c->nitems, &c->packed) : PAIMON_CORRUPT;
			break;
		case PAIMON_ENC_FROM_KEY:
			r = load_from_key(g, c, &cur);
			break;
		case PAIMON_ENC_DICT:
			r = load_dict(c, &cur);
			break;
		case PAIMON_ENC_UNITS:
			r = paimon_seq_read(&cur, c->nitems, &c->seq);
			break;
		default:
			return PAIMON_CORRUPT;
	}
	if (r != PAIMON_OK)
		return r;
	if (!paimon_cursor_done(&cur))
		return PAIMON_CORRUPT;
	c->loaded = true;
	return PAIMON_OK;
}

/* Decodes the whole dictionary into c->dict. */
static PaimonResult
decode_dict(PaimonGroupContext *g, PaimonColumn *c)
{
	uint64_t   *dict;
	PaimonResult r = PAIMON_OK;

	if (c->dict != NULL)
		return PAIMON_OK;
	dict = paimon_core_alloc(&g->a, c->ndict * sizeof(uint64_t));
	if (dict == NULL)
		return PAIMON_NO_MEMORY;
	if (holds_words(c))
	{
		r = paimon_packed_need_all(g, &c->dict_packed);
		if (r == PAIMON_OK)
			paimon_packed_unpack(&c->dict_packed, 0, c->ndict, dict);
	}
	else
		r = paimon_seq_words(g, &c->seq, item_form(c), item_width(c), dict);
	if (r == PAIMON_OK)
		c->dict = dict;
	return r;
}

/* Decodes codes and looks them up. */
static PaimonResult
decode_by_dict(PaimonGroupContext *g, PaimonColumn *c, uint64_t *out)
{
	PaimonResult r = decode_dict(g, c);
	uint64_t	all = 0;
	uint64_t	limit = c->ndict;

	if (r != PAIMON_OK || (r = paimon_packed_need_all(g, &c->packed)) != PAIMON_OK)
		return r;
	paimon_packed_unpack(&c->packed, 0, c->nitems, out);
	for (uint32_t i = 0; i < c->nitems; i++)
		all |= out[i] >= limit;
	if (all != 0)
		return PAIMON_CORRUPT;
	for (uint32_t i = 0; i < c->nitems; i++)
		out[i] = c->dict[out[i]];
	return PAIMON_OK;
}

/* What a column without a value decodes to, in every group: nothing need be made. */
static const uint64_t no_values[PAIMON_GROUP_MAX_ROWS];
static const bool no_nulls[PAIMON_GROUP_MAX_ROWS] = {[0 ... PAIMON_GROUP_MAX_ROWS - 1] = true};

/* Moves items, which are at the end of values[], to their rows; null rows get 0. */
static PaimonResult
spread(PaimonGroupContext *g, PaimonColumn *c, uint64_t *values)
{
	bool	   *nulls = paimon_core_alloc(&g->a, g->nrows * sizeof(bool));
	uint32_t	src = c->entry.null_count;

	if (nulls == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t i = 0; i < g->nrows; i++)
	{
		/* src never runs behind i: they meet when no nulls are left */
		nulls[i] = bitmap_null(c->bitmap, i);
		values[i] = nulls[i] ? 0 : values[src++];
	}
	c->nulls = nulls;
	return PAIMON_OK;
}

/* Decodes the whole column into c->values and c->nulls (NULL: no nulls). */
PaimonResult
paimon_column_values(PaimonGroupContext *g, PaimonColumn *c)
{
	uint64_t   *values;
	uint64_t   *items;
	PaimonResult r;

	if (c->values != NULL)
		return PAIMON_OK;
	if ((r = load(g, c)) != PAIMON_OK)
		return r;
	if (c->entry.null_count == g->nrows)
	{
		c->values = no_values;
		c->nulls = no_nulls;
		return PAIMON_OK;
	}
	values = paimon_core_alloc(&g->a, g->nrows * sizeof(uint64_t));
	if (values == NULL)
		return PAIMON_NO_MEMORY;
	items = values + c->entry.null_count;
	if (c->entry.encoding == PAIMON_ENC_DICT)
		r = decode_by_dict(g, c, items);
	else if (c->entry.encoding == PAIMON_ENC_UNITS)
		r = paimon_seq_words(g, &c->seq, item_form(c), item_width(c), items);
	else if (c->entry.encoding != PAIMON_ENC_EMPTY && (r = paimon_packed_need_all(g, &c->packed)) == PAIMON_OK)
		paimon_packed_unpack(&c->packed, 0, c->nitems, items);
	if (r == PAIMON_OK && c->entry.null_count > 0)
		r = spread(g, c, values);
	if (r == PAIMON_OK)
		c->values = values;
	return r;
}

/* Items in front of a row; the column has a bitmap. */
static inline uint32_t
items_before(const PaimonGroupContext *g, const PaimonColumn *c, uint32_t row)
{
	uint64_t	before = bitmap_word(c->bitmap, g->nrows, row / 64) & ((UINT64_C(1) << (row % 64)) - 1);

	return c->rank[row / 64] + row % 64 - (uint32_t) __builtin_popcountll(before);
}

/* Item `code` of the dictionary. */
static PaimonResult
dict_entry(PaimonGroupContext *g, PaimonColumn *c, uint64_t code, uint64_t *value)
{
	uint32_t	entry = (uint32_t) code;
	PaimonResult r;

	if (code >= c->ndict)
		return PAIMON_CORRUPT;
	if (c->dict != NULL)
		*value = c->dict[entry];
	else if (!holds_words(c))
		return paimon_seq_word(g, &c->seq, item_form(c), item_width(c), entry, value);
	else if ((r = paimon_packed_need(g, &c->dict_packed, entry, 1)) != PAIMON_OK)
		return r;
	else
		*value = paimon_packed_get(&c->dict_packed, entry);
	return PAIMON_OK;
}

/* Items first .. first + count - 1 of a loaded column that has so many. */
static PaimonResult
range_items(PaimonGroupContext *g, PaimonColumn *c, uint32_t first, uint32_t count, uint64_t *out)
{
	PaimonResult r;

	if (c->entry.encoding == PAIMON_ENC_UNITS)
		return paimon_seq_range(g, &c->seq, item_form(c), item_width(c), first, count, out);
	if ((r = paimon_packed_need(g, &c->packed, first, count)) != PAIMON_OK)
		return r;
	paimon_packed_unpack(&c->packed, first, count, out);
	if (c->entry.encoding != PAIMON_ENC_DICT)
		return PAIMON_OK;

	/* a dictionary that is not much longer is worth decoding: it will be used again */
	if (c->ndict <= 4 * count && (r = decode_dict(g, c)) != PAIMON_OK)
		return r;
	for (uint32_t i = 0; i < count && r == PAIMON_OK; i++)
		r = dict_entry(g, c, out[i], &out[i]);
	return r;
}

/* Rows first .. first + count - 1 (all < nrows); see paimon_group_range. */
PaimonResult
paimon_column_range(PaimonGroupContext *g, PaimonColumn *c, uint32_t first, uint32_t count, uint64_t *values, bool *nulls)
{
	uint32_t	item = first;
	uint32_t	nitems = count;
	PaimonResult r;

	if (c->values != NULL)
	{
		memcpy(values, c->values + first, count * sizeof(uint64_t));
		if (c->nulls != NULL)
			memcpy(nulls, c->nulls + first, count * sizeof(bool));
		return PAIMON_OK;
	}
	if ((r = load(g, c)) != PAIMON_OK)
		return r;
	if (c->nitems == 0)
	{
		memset(values, 0, count * sizeof(uint64_t));
		memset(nulls, true, count * sizeof(bool));
		return PAIMON_OK;
	}
	if (c->bitmap != NULL)
	{
		item = items_before(g, c, first);
		nitems = (first + count < g->nrows ? items_before(g, c, first + count) : c->nitems) - item;
	}

	/* items at the end first, as in spread */
	if (nitems > 0 && (r = range_items(g, c, item, nitems, values + (count - nitems))) != PAIMON_OK)
		return r;
	if (c->bitmap != NULL)
	{
		uint32_t	src = count - nitems;

		for (uint32_t i = 0; i < count; i++)
		{
			nulls[i] = bitmap_null(c->bitmap, first + i);
			values[i] = nulls[i] ? 0 : values[src++];
		}
	}
	return PAIMON_OK;
}

/* One row (< nrows) of the column; 0 for a null. */
PaimonResult
paimon_column_value(PaimonGroupContext *g, PaimonColumn *c, uint32_t row, uint64_t *value, bool *isnull)
{
	PaimonResult r;
	uint32_t	item = row;

	*value = 0;
	*isnull = false;
	if (c->values != NULL)
	{
		*isnull = c->nulls != NULL && c->nulls[row];
		*value = c->values[row];
		return PAIMON_OK;
	}
	if ((r = load(g, c)) != PAIMON_OK)
		return r;
	if (c->nitems == 0 || (c->bitmap != NULL && bitmap_null(c->bitmap, row)))
	{
		*isnull = true;
		return PAIMON_OK;
	}
	if (c->bitmap != NULL)
		item = items_before(g, c, row);
	if (c->entry.encoding == PAIMON_ENC_UNITS)
		return paimon_seq_word(g, &c->seq, item_form(c), item_width(c), item, value);
	if ((r = paimon_packed_need(g, &c->packed, item, 1)) != PAIMON_OK)
		return r;
	*value = paimon_packed_get(&c->packed, item);
	return c->entry.encoding == PAIMON_ENC_DICT ? dict_entry(g, c, *value, value) : PAIMON_OK;
}
