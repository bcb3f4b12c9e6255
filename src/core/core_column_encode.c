/*-------------------------------------------------------------------------
 *
 * core_column_encode.c
 *	  Choosing and writing the encoding of a value column or of the kinds.
 *
 * Only values that are not null are stored ("items"); the null bitmap turns
 * a row into its item.  Choices are made from sizes that are known or cheap
 * to know, and zstd is only tried where packing left something to gain.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"
#include "core/core_varlena.h"

/* A frame of reference this narrow is dense: no dictionary is tried. */
#define DENSE_WIDTH		8

/* Wider than this, zstd may find more than packing did (floats, hashes that repeat). */
#define LOOSE_WIDTH		40

#define PREFETCH_DISTANCE 16

/* Starts a column: what follows goes to e->head and (slices and units: the body) to the end of e->out. */
void
paimon_column_begin(PaimonEncoder *e, uint32_t column, PaimonColumnEntry *entry)
{
	memset(entry, 0, sizeof(*entry));
	e->head.len = 0;
	e->column = column;
	e->body_start = e->out.len;
}

/* Ends a column: its head joins the others.  Offsets in the entry are relative to the first head and the first body. */
PaimonResult
paimon_column_end(PaimonEncoder *e, PaimonColumnEntry *entry)
{
	if (e->head.err != PAIMON_OK || e->out.err != PAIMON_OK)
		return e->head.err != PAIMON_OK ? e->head.err : e->out.err;
	entry->head_off = (uint32_t) e->heads.len;
	entry->head_len = (uint32_t) e->head.len;
	entry->head_crc = paimon_part_crc(e->id_crc, e->column, PAIMON_PART_HEAD, e->head.data, e->head.len);
	entry->body_off = (uint32_t) e->body_start;
	entry->body_len = (uint32_t) (e->out.len - e->body_start);
	paimon_buf_put(&e->heads, e->head.data, e->head.len);
	return e->heads.err;
}

/* Writes words as a sequence of 8-byte items if zstd makes that smaller than `size`; *done says so. */
static PaimonResult
try_word_units(PaimonEncoder *e, const uint64_t *v, uint32_t n, uint64_t size, bool *done)
{
	uint32_t	sample = n < 1024 ? n : 1024;
	uint32_t	first = (n - sample) / 2;
	uint32_t	compressed;
	uint8_t    *bytes;
	PaimonResult r;

	*done = false;
	if (e->zstd_level == 0 || n < 64)
		return PAIMON_OK;
	e->wide.len = 0;
	if (!paimon_buf_reserve(&e->wide, (size_t) n * 8))
		return e->wide.err;
	bytes = e->wide.data;
	for (uint32_t i = 0; i < n; i++)
		paimon_put_u64(bytes + (size_t) i * 8, v[i]);
	r = paimon_zstd_estimate(e, bytes + (size_t) first * 8, sample * 8, &compressed);
	if (r != PAIMON_OK || (uint64_t) compressed * n / sample > size - size / 8)
		return r;
	for (uint32_t i = 0; i < n; i++)
	{
		e->items[i].data = bytes + (size_t) i * 8;
		e->items[i].len = 8;
	}
	*done = true;
	return paimon_seq_write(e, e->items, n, PAIMON_UNIT_RAW, false, NULL, NULL);
}

/* Writes codes and a dictionary of words if that is clearly smaller than `size`. */
static bool
try_word_dict(PaimonEncoder *e, const uint64_t *v, uint32_t n, uint64_t size)
{
	PaimonPackPlan codes;
	PaimonPackPlan dict;
	int64_t		min;
	int64_t		max;
	uint32_t	ndict = paimon_dict_words(e, v, n, e->words2);

	if (ndict == 0)
		return false;
	min = max = (int64_t) e->dict_words[0];
	for (uint32_t i = 1; i < ndict; i++)
	{
		int64_t		w = (int64_t) e->dict_words[i];

		min = w < min ? w : min;
		max = w > max ? w : max;
	}
	paimon_pack_plan_codes(&codes, n, ndict - 1);
	paimon_pack_plan(&dict, e->dict_words, ndict, (uint64_t) min, (uint64_t) max - (uint64_t) min);
	if (4 + paimon_pack_size(&codes) + paimon_pack_size(&dict) >= size - size / 8)
		return false;
	paimon_buf_put_u32(&e->head, ndict);
	paimon_pack_write(e, &codes, e->words2);
	paimon_pack_write(e, &dict, e->dict_words);
	return true;
}

/* Is each word its row's key number plus *delta? */
static bool
follows_key(const PaimonEncoder *e, const uint64_t *v, uint32_t n, uint64_t *delta)
{
	if (e->key_words == NULL || n != e->nrows)
		return false;
	*delta = v[0] - e->key_words[0];
	for (uint32_t i = 1; i < n; i++)
		if (v[i] - e->key_words[i] != *delta)
			return false;
	return true;
}

/* Encodes n >= 1 words. */
static PaimonResult
encode_words(PaimonEncoder *e, const uint64_t *v, uint32_t n, PaimonColumnEntry *entry)
{
	PaimonPackPlan plan;
	int64_t		min = (int64_t) v[0];
	int64_t		max = (int64_t) v[0];
	uint64_t	size;
	uint64_t	delta;
	bool		done;

	for (uint32_t i = 1; i < n; i++)
	{
		int64_t		w = (int64_t) v[i];

		min = w < min ? w : min;
		max = w > max ? w : max;
	}
	entry->min = min;
	entry->max = max;
	if (min != max && follows_key(e, v, n, &delta))
	{
		entry->encoding = PAIMON_ENC_FROM_KEY;
		paimon_buf_put_u64(&e->head, delta);
		return e->head.err;
	}
	paimon_pack_plan(&plan, v, n, (uint64_t) min, (uint64_t) max - (uint64_t) min);
	size = paimon_pack_size(&plan);
	if (plan.p.width > DENSE_WIDTH && n >= 16 && try_word_dict(e, v, n, size))
	{
		entry->encoding = PAIMON_ENC_DICT;
		return e->head.err;
	}
	if (plan.p.width > LOOSE_WIDTH)
	{
		PaimonResult r = try_word_units(e, v, n, size, &done);

		if (r != PAIMON_OK || done)
		{
			entry->encoding = PAIMON_ENC_UNITS;
			return r;
		}
	}
	entry->encoding = PAIMON_ENC_PACKED;
	paimon_pack_write(e, &plan, v);
	return e->head.err;
}

/* Encodes n >= 1 byte strings in e->items. */
static PaimonResult
encode_bytes(PaimonEncoder *e, uint32_t n, PaimonColumnEntry *entry)
{
	uint64_t	total = 0;
	uint64_t	dict_total = 0;
	uint32_t	ndict;
	PaimonPackPlan codes;

	for (uint32_t i = 0; i < n; i++)
		total += e->items[i].len;
	ndict = n >= 4 ? paimon_dict_bytes(e, e->items, n, e->words) : 0;
	if (ndict > 0)
	{
		for (uint32_t i = 0; i < ndict; i++)
			dict_total += e->dict[i].len + 1;
		paimon_pack_plan_codes(&codes, n, ndict - 1);

		/* codes do not shrink any more, text does: count them double */
		if (dict_total + 2 * paimon_pack_size(&codes) < total - total / 4)
		{
			entry->encoding = PAIMON_ENC_DICT;
			paimon_buf_put_u32(&e->head, ndict);
			paimon_pack_write(e, &codes, e->words);
			return paimon_seq_write(e, e->dict, ndict, PAIMON_UNIT_RAW, false, NULL, NULL);
		}
	}
	entry->encoding = PAIMON_ENC_UNITS;
	return paimon_seq_write(e, e->items, n, PAIMON_UNIT_RAW, false, NULL, NULL);
}

/* Writes the null bitmap (if there are both nulls and values); returns the number of nulls. */
static uint32_t
encode_nulls(PaimonEncoder *e, const bool *nulls)
{
	const uint8_t *bytes = (const uint8_t *) nulls;
	uint32_t	nbytes = (e->nrows + 7) / 8;
	uint32_t	count = 0;
	uint32_t	i = 0;
	uint8_t    *bitmap;

	if (nulls == NULL)
		return 0;

	/* eight rows at a time: their sum comes to lie in the top byte */
	for (; i + 8 <= e->nrows; i += 8)
		count += (uint32_t) ((paimon_get_u64(bytes + i) * UINT64_C(0x0101010101010101)) >> 56);
	for (; i < e->nrows; i++)
		count += nulls[i];
	if (count == 0 || count == e->nrows || !paimon_buf_reserve(&e->head, nbytes))
		return count;
	bitmap = e->head.data + e->head.len;
	bitmap[nbytes - 1] = 0;

	/* the bit of byte b comes to lie in bit 56 + b, and no two products in the same place */
	for (i = 0; i + 8 <= e->nrows; i += 8)
		bitmap[i >> 3] = (uint8_t) ((paimon_get_u64(bytes + i) * UINT64_C(0x0102040810204080)) >> 56);
	for (; i < e->nrows; i++)
		bitmap[i >> 3] |= (uint8_t) (nulls[i] << (i & 7));
	e->head.len += nbytes;
	return count;
}

/* Gathers the values that are not null: into e->items. */
static PaimonResult
gather_bytes(PaimonEncoder *e, const PaimonColumnDesc *desc, const uint64_t *values, const bool *nulls)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < e->nrows; i++)
	{
		const void *p;

		/* values of rows that came in another order lie anywhere */
		if (i + PREFETCH_DISTANCE < e->nrows)
			__builtin_prefetch((const void *) (uintptr_t) values[i + PREFETCH_DISTANCE]);
		if (nulls != NULL && nulls[i])
			continue;
		p = (const void *) (uintptr_t) values[i];
		if (desc->phys == PAIMON_PHYS_FIXED)
		{
			e->items[n].data = p;
			e->items[n].len = desc->width;
		}
		else if (!paimon_varlena_payload(p, &e->items[n]))
			return PAIMON_CORRUPT;
		n++;
	}
	return PAIMON_OK;
}

/*
 * Encodes a value column to e->out and describes it in *entry.
 */
PaimonResult
paimon_column_encode(PaimonEncoder *e, uint32_t column, const PaimonColumnDesc *desc, const uint64_t *values,
					 const bool *nulls, PaimonColumnEntry *entry)
{
	PaimonResult r = PAIMON_OK;
	uint32_t	n;

	paimon_column_begin(e, column, entry);
	entry->phys = desc->phys;
	entry->width = desc->width;
	entry->null_count = values == NULL ? e->nrows : encode_nulls(e, nulls);
	n = e->nrows - entry->null_count;
	if (n == 0)
		return paimon_column_end(e, entry);
	if (entry->null_count == 0)
		nulls = NULL;
	if (desc->phys == PAIMON_PHYS_INT || desc->phys == PAIMON_PHYS_SCALED)
	{
		const uint64_t *v = values;

		if (nulls != NULL)
		{
			uint32_t	k = 0;

			for (uint32_t i = 0; i < e->nrows && k < n; i++)
			{
				e->words[k] = values[i];
				k += !nulls[i];
			}
			v = e->words;
		}
		r = encode_words(e, v, n, entry);
	}
	else if ((r = gather_bytes(e, desc, values, nulls)) == PAIMON_OK)
		r = encode_bytes(e, n, entry);
	return r == PAIMON_OK ? paimon_column_end(e, entry) : r;
}

/* Encodes the row kinds. */
PaimonResult
paimon_column_encode_kinds(PaimonEncoder *e, const uint8_t *kinds, PaimonColumnEntry *entry)
{
	PaimonPackPlan plan;
	uint64_t	min = kinds[0];
	uint64_t	max = kinds[0];

	paimon_column_begin(e, PAIMON_COLUMN_KIND, entry);
	entry->encoding = PAIMON_ENC_PACKED;
	for (uint32_t i = 0; i < e->nrows; i++)
	{
		if (kinds[i] > PAIMON_KIND_REMOVE)
			return PAIMON_CORRUPT;
		e->words[i] = kinds[i];
		min = kinds[i] < min ? kinds[i] : min;
		max = kinds[i] > max ? kinds[i] : max;
	}
	paimon_pack_plan(&plan, e->words, e->nrows, min, max - min);
	paimon_pack_write(e, &plan, e->words);
	return paimon_column_end(e, entry);
}
