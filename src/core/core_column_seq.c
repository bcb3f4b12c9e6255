/*-------------------------------------------------------------------------
 *
 * core_column_seq.c
 *	  Reading byte sequences: item lengths, and the items' bytes cut into units.
 *
 * A unit is the piece of text that is stored, checksummed, compressed and
 * opened as a whole.  An item never spans units.  Lengths are packed
 * numbers in the column's head, so that an item is found by adding up the
 * lengths from its unit's first item on.
 *
 * Nothing read is trusted: the sum of a unit's item lengths must be its raw
 * length, which in turn is bounded by what zstd can expand its stored bytes
 * to, before any memory is asked for.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"
#include "core/core_varlena.h"

#include <zstd.h>

/* zstd writes at least 4 bytes for each block of at most 128 kB. */
#define ZSTD_EXPANSION_MAX	32768

/* Of a unit's varlenas one in so many may be made by itself, in turn. */
#define SINGLES_SHARE		16

static ZSTD_DCtx *
decompressor(void)
{
	static _Thread_local ZSTD_DCtx *ctx;

	if (ctx == NULL)
		ctx = ZSTD_createDCtx();
	return ctx;
}

/*
 * Parses a sequence's part of a head.  Its units must fill the rest of the
 * column's body exactly.
 */
PaimonResult
paimon_seq_read(PaimonCursor *c, uint32_t nitems, PaimonSeq *out)
{
	const uint8_t *p;
	uint64_t	sum = 0;
	uint32_t	off;
	uint32_t	len;
	PaimonResult r;

	memset(out, 0, sizeof(*out));
	out->column = c->column;
	out->nitems = nitems;
	if ((r = paimon_packed_read(c, nitems, &out->lens)) != PAIMON_OK)
		return r;
	out->off = off = c->body_off + c->body_pos;
	out->len = len = c->body_len - c->body_pos;
	c->body_pos = c->body_len;
	if ((p = paimon_cursor_take(c, 4)) == NULL)
		return PAIMON_CORRUPT;
	out->nunits = paimon_get_u32(p);
	if (out->nunits == 0 || out->nunits > nitems)
		return PAIMON_CORRUPT;
	if ((p = paimon_cursor_take(c, (uint64_t) out->nunits * 16)) == NULL)
		return PAIMON_CORRUPT;
	out->units = paimon_core_alloc(&c->g->a, out->nunits * sizeof(PaimonUnit));
	if (out->units == NULL)
		return PAIMON_NO_MEMORY;
	memset(out->units, 0, out->nunits * sizeof(PaimonUnit));
	for (uint32_t i = 0; i < out->nunits; i++, p += 16)
	{
		PaimonUnit *u = &out->units[i];

		u->first = paimon_get_u32(p);
		u->raw_len = paimon_get_u32(p + 4);
		u->stored_len = paimon_get_u32(p + 8);
		u->crc = paimon_get_u32(p + 12);
		if (i == 0 ? u->first != 0 : u->first <= out->units[i - 1].first)
			return PAIMON_CORRUPT;
		if (u->first >= nitems || u->raw_len > PAIMON_UNIT_RAW_MAX || u->stored_len > u->raw_len ||
			u->stored_len > len - sum || (uint64_t) u->stored_len * ZSTD_EXPANSION_MAX < u->raw_len)
			return PAIMON_CORRUPT;
		u->off = off + (uint32_t) sum;
		sum += u->stored_len;
		if (i > 0)
			out->units[i - 1].count = u->first - out->units[i - 1].first;
	}
	out->units[out->nunits - 1].count = nitems - out->units[out->nunits - 1].first;
	return sum == len ? PAIMON_OK : PAIMON_CORRUPT;
}

/* Fetches all lengths, and the bytes of all units in one piece, unless some have been opened already. */
PaimonResult
paimon_seq_prefetch(PaimonGroupContext *g, PaimonSeq *s)
{
	PaimonResult r = paimon_packed_need_all(g, &s->lens);

	if (r != PAIMON_OK)
		return r;
	for (uint32_t i = 0; i < s->nunits; i++)
		if (s->units[i].raw != NULL)
			return PAIMON_OK;
	if (s->all == NULL && s->len > 0)
	{
		s->all = g->src.fetch(g->src.arg, s->off, s->len);
		if (s->all == NULL)
			return PAIMON_NO_MEMORY;
	}
	return PAIMON_OK;
}

/* Unit that holds an item < s->nitems. */
uint32_t
paimon_seq_find_unit(const PaimonSeq *s, uint32_t item)
{
	uint32_t	lo = 0;
	uint32_t	hi = s->nunits - 1;

	while (lo < hi)
	{
		uint32_t	mid = lo + (hi - lo + 1) / 2;

		if (s->units[mid].first <= item)
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}

/* Sum of the lengths of items first .. first + count - 1, saturating far above any legal length. */
static uint64_t
sum_lengths(const PaimonSeq *s, uint32_t first, uint32_t count)
{
	uint64_t	lens[64];
	uint64_t	sum = 0;
	bool		bad = false;

	if (paimon_packed_sum(&s->lens, first, count, &sum))
		return sum;
	while (count > 0)
	{
		uint32_t	n = count < 64 ? count : 64;

		paimon_packed_unpack(&s->lens, first, n, lens);
		for (uint32_t i = 0; i < n; i++)
		{
			bad |= lens[i] > PAIMON_UNIT_RAW_MAX;
			sum += lens[i];
		}
		first += n;
		count -= n;
	}
	return bad ? UINT64_MAX : sum;
}

/* What is to become of a unit's raw bytes. */
typedef enum UnitUse
{
	UNIT_KEEP,					/* they stay */
	UNIT_ONCE,					/* all items are made of them now */
	UNIT_SOME					/* some are: who comes back finds them */
} UnitUse;

/* Shorter units always stay: dictionaries, for which the room's unit of texts should not have to go. */
#define ROOM_MIN_RAW		2048

/* Where the raw bytes of a compressed unit go: to the room, unless they are to stay (*stay), are few, or are too many for it. */
static uint8_t *
place_for_raw(PaimonGroupContext *g, PaimonUnit *u, UnitUse use, bool *stay)
{
	PaimonUnitRoom *room = g->src.room;

	*stay = room == NULL || use == UNIT_KEEP || (use == UNIT_SOME && u->seen) || u->raw_len < ROOM_MIN_RAW ||
		u->raw_len > room->size;
	if (*stay)
		return paimon_core_alloc(&g->a, u->raw_len);
	room->unit = NULL;
	u->seen = true;
	return room->data;
}

/* Makes a unit's raw bytes available: fetched, checked, decompressed.  Those in the room are valid until another unit is opened. */
static PaimonResult
open_unit(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit, UnitUse use, const uint8_t **out)
{
	static const uint8_t nothing[1];
	PaimonUnit *u = &s->units[unit];
	const uint8_t *stored = nothing;
	ZSTD_DCtx  *ctx;
	uint8_t    *raw;
	bool		stay;
	PaimonResult r;

	*out = u->raw;
	if (u->raw != NULL)
		return PAIMON_OK;
	if (use != UNIT_KEEP && g->src.room != NULL && g->src.room->unit == u)
	{
		*out = g->src.room->data;
		return PAIMON_OK;
	}
	if ((r = paimon_packed_need(g, &s->lens, u->first, u->count)) != PAIMON_OK)
		return r;
	if (sum_lengths(s, u->first, u->count) != u->raw_len)
		return PAIMON_CORRUPT;
	if (u->stored_len > 0)
	{
		if (s->all != NULL)
			stored = s->all + (u->off - s->off);
		else if (u->stored_len < u->raw_len && g->src.peek != NULL)
			stored = g->src.peek(g->src.arg, u->off, u->stored_len);
		else
			stored = g->src.fetch(g->src.arg, u->off, u->stored_len);
		if (stored == NULL)
			return PAIMON_NO_MEMORY;
	}
	if (!paimon_crc_matches(paimon_part_crc(g->id_crc, s->column, unit, stored, u->stored_len), u->crc))
		return PAIMON_CORRUPT;
	if (u->stored_len == u->raw_len)
	{
		*out = u->raw = stored;
		return PAIMON_OK;
	}
	if ((ctx = decompressor()) == NULL || (raw = place_for_raw(g, u, use, &stay)) == NULL)
		return PAIMON_NO_MEMORY;
	if (ZSTD_decompressDCtx(ctx, raw, u->raw_len, stored, u->stored_len) != u->raw_len)
		return PAIMON_CORRUPT;
	*out = raw;
	if (stay)
		u->raw = raw;
	else
		g->src.room->unit = u;
	return PAIMON_OK;
}

/* Makes a unit's raw bytes available for good, in u->raw. */
PaimonResult
paimon_seq_open_unit(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit)
{
	const uint8_t *raw;

	return open_unit(g, s, unit, UNIT_KEEP, &raw);
}

/* Varlenas of items first .. first + count - 1 of a unit, whose bytes begin at src. */
static PaimonResult
make_varlenas(PaimonGroupContext *g, const PaimonSeq *s, const uint8_t *src, uint32_t first, uint32_t count, uint64_t raw_len,
			  uint64_t *out)
{
	uint8_t    *pos = paimon_core_alloc(&g->a, (size_t) raw_len + (size_t) count * PAIMON_VARLENA_ROOM(0));

	if (pos == NULL)
		return PAIMON_NO_MEMORY;
	paimon_packed_unpack(&s->lens, first, count, out);
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	len = (uint32_t) out[i];

		if (len > PAIMON_VARLENA_MAX)
			return PAIMON_CORRUPT;
		out[i] = (uint64_t) (uintptr_t) paimon_varlena_put(&pos, src, len);
		src += len;
	}
	return PAIMON_OK;
}

static PaimonResult
unit_fixed(PaimonGroupContext *g, const PaimonUnit *u, const uint8_t *raw, uint32_t width, uint64_t *out)
{
	size_t		stride = ((size_t) width + 7) & ~(size_t) 7;
	uint8_t    *dst = paimon_core_alloc(&g->a, stride * u->count);

	if (dst == NULL)
		return PAIMON_NO_MEMORY;
	for (uint32_t i = 0; i < u->count; i++)
	{
		memcpy(dst + i * stride, raw + (size_t) i * width, width);
		out[i] = (uint64_t) (uintptr_t) (dst + i * stride);
	}
	return PAIMON_OK;
}

/* Turns all items of an opened unit into words. */
static PaimonResult
unit_words(PaimonGroupContext *g, const PaimonSeq *s, const PaimonUnit *u, const uint8_t *raw, PaimonItemForm form,
		   uint32_t width, uint64_t *out)
{
	if (form == PAIMON_ITEM_VARLENA)
		return make_varlenas(g, s, raw, u->first, u->count, u->raw_len, out);

	/* all items have the same length, or the column is not what its entry says */
	if (s->lens.width != 0 || s->lens.slope != 0 || s->lens.base != width)
		return PAIMON_CORRUPT;
	if (form == PAIMON_ITEM_FIXED)
		return unit_fixed(g, u, raw, width, out);
	for (uint32_t i = 0; i < u->count; i++)
		out[i] = paimon_load_le64(raw + (size_t) i * 8);
	return PAIMON_OK;
}

/*
 * All items as words.  `width` is the length of FIXED and WORD (8) items.
 */
PaimonResult
paimon_seq_words(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width, uint64_t *out)
{
	PaimonResult r = paimon_seq_prefetch(g, s);

	for (uint32_t i = 0; i < s->nunits && r == PAIMON_OK; i++)
	{
		PaimonUnit *u = &s->units[i];
		const uint8_t *raw;

		if (u->words != NULL)
			memcpy(out + u->first, u->words, u->count * sizeof(uint64_t));
		else if ((r = open_unit(g, s, i, UNIT_ONCE, &raw)) == PAIMON_OK)
			r = unit_words(g, s, u, raw, form, width, out + u->first);
	}
	return r;
}

/* Makes all words of a unit. */
static PaimonResult
need_words(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width, uint32_t unit)
{
	PaimonUnit *u = &s->units[unit];
	const uint8_t *raw;
	PaimonResult r;
	uint64_t   *words;

	if (u->words != NULL)
		return PAIMON_OK;
	if ((r = open_unit(g, s, unit, UNIT_ONCE, &raw)) != PAIMON_OK)
		return r;
	words = paimon_core_alloc(&g->a, u->count * sizeof(uint64_t));
	if (words == NULL)
		return PAIMON_NO_MEMORY;
	if ((r = unit_words(g, s, u, raw, form, width, words)) != PAIMON_OK)
		return r;
	u->words = words;
	return PAIMON_OK;
}

/* Some varlenas of a unit, in memory of their own. */
static PaimonResult
some_varlenas(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit, uint32_t item, uint32_t count, uint64_t *out)
{
	PaimonUnit *u = &s->units[unit];
	const uint8_t *raw;
	uint64_t	before;
	PaimonResult r = open_unit(g, s, unit, UNIT_SOME, &raw);

	if (r != PAIMON_OK)
		return r;
	/* the lengths add up to the unit's, as opening it has found */
	before = sum_lengths(s, u->first, item - u->first);
	return make_varlenas(g, s, raw + before, item, count, sum_lengths(s, item, count), out);
}

/*
 * One item as a word.  A few varlenas of a unit are made one by one; who asks for more gets all.
 */
PaimonResult
paimon_seq_word(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width, uint32_t item, uint64_t *out)
{
	uint32_t	unit = paimon_seq_find_unit(s, item);
	PaimonUnit *u = &s->units[unit];
	PaimonResult r;

	if (u->words == NULL && form == PAIMON_ITEM_VARLENA && u->singles < u->count / SINGLES_SHARE)
	{
		u->singles++;
		return some_varlenas(g, s, unit, item, 1, out);
	}
	if ((r = need_words(g, s, form, width, unit)) != PAIMON_OK)
		return r;
	*out = u->words[item - u->first];
	return PAIMON_OK;
}

/* Items first .. first + count - 1 (all < s->nitems) as words, of varlenas only these. */
PaimonResult
paimon_seq_range(PaimonGroupContext *g, PaimonSeq *s, PaimonItemForm form, uint32_t width, uint32_t first, uint32_t count,
				 uint64_t *out)
{
	uint32_t	end = first + count;
	PaimonResult r = PAIMON_OK;

	for (uint32_t unit = paimon_seq_find_unit(s, first); first < end && r == PAIMON_OK; unit++)
	{
		PaimonUnit *u = &s->units[unit];
		uint32_t	n = u->first + u->count - first;

		if (n > end - first)
			n = end - first;
		if (u->words == NULL && form == PAIMON_ITEM_VARLENA)
			r = some_varlenas(g, s, unit, first, n, out);
		else if ((r = need_words(g, s, form, width, unit)) == PAIMON_OK)
			memcpy(out, u->words + (first - u->first), n * sizeof(uint64_t));
		first += n;
		out += n;
	}
	return r;
}

/* Opens a unit and makes its offsets: item i of it is raw[offsets[i] .. offsets[i + 1]). */
PaimonResult
paimon_seq_unit_offsets(PaimonGroupContext *g, PaimonSeq *s, uint32_t unit)
{
	PaimonUnit *u = &s->units[unit];
	PaimonResult r;
	uint32_t   *offsets;

	if (u->offsets != NULL)
		return PAIMON_OK;
	if ((r = paimon_seq_open_unit(g, s, unit)) != PAIMON_OK)
		return r;
	offsets = paimon_core_alloc(&g->a, ((size_t) u->count + 1) * sizeof(uint32_t));
	if (offsets == NULL)
		return PAIMON_NO_MEMORY;
	offsets[0] = 0;
	for (uint32_t i = 0; i < u->count; i++)
		offsets[i + 1] = offsets[i] + (uint32_t) paimon_packed_get(&s->lens, u->first + i);
	u->offsets = offsets;
	return PAIMON_OK;
}
