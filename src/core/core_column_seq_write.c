/*-------------------------------------------------------------------------
 *
 * core_column_seq_write.c
 *	  Writing byte sequences: where units are cut and which are compressed.
 *
 * The compression context is kept for the life of the thread: creating one
 * costs as much as compressing several units.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

#include <zstd.h>

/* Units shorter than this are not worth a zstd frame. */
#define ZSTD_MIN_RAW		64

/* Values longer than this are compressed only if a sample of this size shows that it pays. */
#define ZSTD_SAMPLE			65536

/* Does storing `stored` instead of `raw` bytes pay for the decompression? */
static inline bool
pays(size_t stored, size_t raw)
{
	return stored + raw / 16 < raw;
}

static ZSTD_CCtx *
compressor(int level)
{
	static _Thread_local ZSTD_CCtx *ctx;
	static _Thread_local int ctx_level;

	if (ctx == NULL)
	{
		ctx = ZSTD_createCCtx();
		ctx_level = 0;
	}
	if (ctx != NULL && ctx_level != level)
	{
		/* in small units of short texts, a match of 4 or 5 bytes costs more than the literals it saves */
		if (ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_compressionLevel, level)) ||
			ZSTD_isError(ZSTD_CCtx_setParameter(ctx, ZSTD_c_minMatch, level > 0 && level <= 2 ? 6 : 0)))
			return NULL;
		ctx_level = level;
	}
	return ctx;
}

/*
 * Appends raw[0..len) compressed to out if that pays; otherwise leaves out as
 * it is and sets *paid to false.
 */
PaimonResult
paimon_zstd_try(PaimonEncoder *e, const uint8_t *raw, uint32_t len, PaimonBuf *out, bool *paid)
{
	ZSTD_CCtx  *ctx;
	size_t		bound;
	size_t		size;

	*paid = false;
	if (e->zstd_level == 0 || len < ZSTD_MIN_RAW)
		return PAIMON_OK;
	if ((ctx = compressor(e->zstd_level)) == NULL)
		return PAIMON_NO_MEMORY;

	/* anything longer than this does not pay, so zstd need not be given more room */
	bound = len - len / 16;
	if (!paimon_buf_reserve(out, bound))
		return out->err;
	size = ZSTD_compress2(ctx, out->data + out->len, bound, raw, len);
	if (!ZSTD_isError(size) && pays(size, len))
	{
		out->len += size;
		*paid = true;
	}
	return PAIMON_OK;
}

/* What raw[0..len) would be compressed to (len if it does not pay). */
PaimonResult
paimon_zstd_estimate(PaimonEncoder *e, const uint8_t *raw, uint32_t len, uint32_t *compressed)
{
	bool		paid;
	PaimonResult r;

	e->sample.len = 0;
	r = paimon_zstd_try(e, raw, len, &e->sample, &paid);
	*compressed = paid ? (uint32_t) e->sample.len : len;
	return r;
}

/* State of one paimon_seq_write. */
typedef struct SeqWriter
{
	PaimonEncoder *e;
	const PaimonBytes *items;
	uint32_t	nunits;
	uint32_t	failures;		/* units in a row that zstd did not shorten */
} SeqWriter;

/* Writes items first .. end - 1, `len` bytes together, as one unit. */
static PaimonResult
write_unit(SeqWriter *w, uint32_t first, uint32_t end, uint32_t len)
{
	PaimonEncoder *e = w->e;
	const uint8_t *raw;
	size_t		start = e->out.len;
	bool		attempt = w->failures < 2 || (w->nunits & 7) == 0;
	bool		paid = false;
	PaimonResult r;

	if (end - first == 1)
		raw = w->items[first].data;
	else
	{
		e->raw.len = 0;
		if (!paimon_buf_reserve(&e->raw, len))
			return e->raw.err;
		for (uint32_t i = first; i < end; i++)
			paimon_buf_put(&e->raw, w->items[i].data, w->items[i].len);
		raw = e->raw.data;
	}
	if (len > 4 * ZSTD_SAMPLE && e->zstd_level != 0)
	{
		uint32_t	size;

		r = paimon_zstd_estimate(e, raw + len / 2, ZSTD_SAMPLE, &size);
		if (r != PAIMON_OK)
			return r;
		attempt = size < ZSTD_SAMPLE;
	}
	if (attempt)
	{
		r = paimon_zstd_try(e, raw, len, &e->out, &paid);
		if (r != PAIMON_OK)
			return r;
		w->failures = paid ? 0 : w->failures + 1;
	}
	if (!paid)
		paimon_buf_put(&e->out, raw, len);
	if (e->out.err != PAIMON_OK)
		return e->out.err;
	paimon_buf_put_u32(&e->head, first);
	paimon_buf_put_u32(&e->head, len);
	paimon_buf_put_u32(&e->head, (uint32_t) (e->out.len - start));
	paimon_buf_put_u32(&e->head, paimon_part_crc(e->id_crc, e->column, w->nunits, e->out.data + start,
												 e->out.len - start));
	w->nunits++;
	return e->head.err;
}

static inline bool
same_item(const PaimonBytes *a, const PaimonBytes *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

/*
 * Writes n >= 1 items: lengths and unit directory to e->head, units to e->out.
 *
 * Units have about unit_raw bytes; an item longer than that has one of its
 * own.  keep_equal_together: never cut between equal neighbours.  If `starts`
 * is not NULL it gets the first item of each unit (room for n).
 */
PaimonResult
paimon_seq_write(PaimonEncoder *e, const PaimonBytes *items, uint32_t n, uint32_t unit_raw, bool keep_equal_together,
				 uint32_t *starts, uint32_t *nstarts)
{
	SeqWriter	w = {.e = e, .items = items};
	PaimonPackPlan plan;
	uint64_t   *lens = e->words2;
	uint64_t	total = 0;
	uint64_t	min = UINT64_MAX;
	uint64_t	max = 0;
	uint64_t	target;
	uint64_t	raw = 0;
	uint32_t	first = 0;
	size_t		count_at;

	for (uint32_t i = 0; i < n; i++)
	{
		lens[i] = items[i].len;
		total += lens[i];
		min = lens[i] < min ? lens[i] : min;
		max = lens[i] > max ? lens[i] : max;
	}
	if (max > PAIMON_UNIT_RAW_MAX)
		return PAIMON_NO_SPACE;
	paimon_pack_plan(&plan, lens, n, min, max - min);
	paimon_pack_write(e, &plan, lens);
	count_at = e->head.len;
	paimon_buf_put_u32(&e->head, 0);

	/* units of equal size, so that the last one is not a crumb */
	target = total < unit_raw ? total : total / ((total + unit_raw / 2) / unit_raw);
	for (uint32_t i = 0; i < n; i++)
	{
		bool		equal = keep_equal_together && i > first && same_item(&items[i], &items[i - 1]);

		bool		full = items[i].len > 0 && (raw >= target || raw + items[i].len > (uint64_t) unit_raw * 2);

		if (i > first && !equal && (full || items[i - 1].len > unit_raw))
		{
			PaimonResult r = write_unit(&w, first, i, (uint32_t) raw);

			if (r != PAIMON_OK)
				return r;
			if (starts != NULL)
				starts[w.nunits - 1] = first;
			first = i;
			raw = 0;
		}
		raw += items[i].len;
		if (raw > PAIMON_UNIT_RAW_MAX)
			return PAIMON_NO_SPACE; /* only equal giant keys get here */
	}
	if (starts != NULL)
	{
		starts[w.nunits] = first;
		*nstarts = w.nunits + 1;
	}
	if (e->head.err == PAIMON_OK)
	{
		PaimonResult r = write_unit(&w, first, n, (uint32_t) raw);

		if (r != PAIMON_OK)
			return r;
		paimon_put_u32(e->head.data + count_at, w.nunits);
	}
	return e->head.err;
}
