/*-------------------------------------------------------------------------
 *
 * unit_group.h
 *	  Random row groups, and their comparison with what a reader gives back.
 *	  Used by the unit tests and by the fuzz target; randomness is unit_rand's.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_UNIT_GROUP_H
#define PAIMON_UNIT_GROUP_H

#include "core/core_group.h"
#include "core/core_varlena.h"
#include "unit.h"

typedef struct UnitGroup
{
	PaimonGroupInput in;
	PaimonColumnDesc *columns;
	PaimonBytes *keys;
	uint8_t    *kinds;
	uint64_t  **values;
	bool	  **nulls;
} UnitGroup;

/* Bytes of an encoded group behind PaimonGroupSource: each fetch is a copy, so that sanitizers see its end. */
typedef struct UnitSource
{
	const uint8_t *data;
	uint32_t	len;
	PaimonAllocator alloc;
	uint64_t	fetched;		/* bytes */
} UnitSource;

/* What peek gave last: freed at the next call, so that sanitizers see who still looks at it. */
static UNIT_UNUSED uint8_t *unit_peeked;

static UNIT_UNUSED const uint8_t *
unit_source_fetch(void *arg, uint32_t off, uint32_t len)
{
	UnitSource *s = arg;
	uint8_t    *copy;

	if (off > s->len || len > s->len - off)
	{
		fprintf(stderr, "fetch of %u bytes at %u of %u\n", len, off, s->len);
		abort();
	}
	free(unit_peeked);
	unit_peeked = NULL;
	copy = paimon_core_alloc(&s->alloc, len);
	memcpy(copy, s->data + off, len);
	s->fetched += len;
	return copy;
}

static UNIT_UNUSED const uint8_t *
unit_source_peek(void *arg, uint32_t off, uint32_t len)
{
	UnitSource *s = arg;

	if (off > s->len || len > s->len - off)
	{
		fprintf(stderr, "peek at %u bytes at %u of %u\n", len, off, s->len);
		abort();
	}
	free(unit_peeked);
	unit_peeked = malloc(len > 0 ? len : 1);
	memcpy(unit_peeked, s->data + off, len);
	s->fetched += len;
	return unit_peeked;
}

static UNIT_UNUSED PaimonGroupSource
unit_source(UnitSource *s, const uint8_t *data, uint32_t len, const PaimonAllocator *alloc)
{
	static uint8_t room_bytes[32768];
	static const uint32_t room_sizes[] = {0, 300, 8400, sizeof(room_bytes)};
	static PaimonUnitRoom room = {room_bytes, 0, NULL};
	PaimonGroupSource src = {len, unit_source_fetch, s, unit_source_peek, &room};

	/* of all sizes, also none; what was in it means nothing to a new source, whatever it says */
	room.size = room_sizes[len % 4];
	if (room.size == 0)
		src.room = NULL;
	memset(room_bytes, 0x5A, sizeof(room_bytes));
	s->data = data;
	s->len = len;
	s->alloc = *alloc;
	s->fetched = 0;
	return src;
}

/* ---------- values ---------- */

#define UNIT_WORD_PATTERNS 12

static UNIT_UNUSED uint64_t
unit_group_word(uint32_t pattern, uint64_t a, uint64_t b, uint32_t row)
{
	double		d;
	uint64_t	w;

	switch (pattern)
	{
		case 0:
			return a;
		case 1:
			return a + unit_below((b & 0xFFFF) + 1);
		case 2:
			return a + row * (b & 0xFFFFFF);
		case 3:
			return a - row * (b & 0xFFFFFFFFFF) + unit_below(100);
		case 4:
			return (uint64_t) ((int64_t) (unit_below(1000000) - 500000) * 1000000);
		case 5:
			return unit_rand();
		case 6:
			return unit_below(2) ? (uint64_t) INT64_MIN : (uint64_t) INT64_MAX;
		case 7:
			return a * (1 + unit_below((b & 31) + 1));
		case 8:
			d = (double) unit_below(100000) / 100.0;
			memcpy(&w, &d, 8);
			return w;
		case 9:
			return unit_rand_skewed();
		case 10:
			return (uint64_t) INT64_MAX - unit_below(100) * 7;
		default:
			return unit_below(3) == 0 ? (uint64_t) -1 : unit_rand() >> (b & 63);
	}
}

/* A varlena with either header, placed so that a 4-byte header is aligned. */
static UNIT_UNUSED uint64_t
unit_group_varlena(const PaimonAllocator *a, const uint8_t *payload, uint32_t len)
{
	uint8_t    *p = paimon_core_alloc(a, PAIMON_VARLENA_ROOM(len));
	uint8_t    *pos = p;

	if (len <= PAIMON_VARLENA_SHORT_MAX && unit_below(2))
	{
		uint32_t	head = PAIMON_VARLENA_HEAD_4B(len + 4);

		memcpy(p, &head, 4);
		memcpy(p + 4, payload, len);
		return (uint64_t) (uintptr_t) p;
	}
	return (uint64_t) (uintptr_t) paimon_varlena_put(&pos, payload, len);
}

/* Fills len bytes: random, letters, or words that repeat. */
static UNIT_UNUSED void
unit_group_text(uint8_t *p, uint32_t len, uint32_t style)
{
	static const char *words[] = {"bucket ", "level ", "run ", "merge ", "key ", "snapshot ", "compaction ", "x"};

	if (style == 0)
		unit_fill(p, len);
	else if (style == 1)
		for (uint32_t i = 0; i < len; i++)
			p[i] = (uint8_t) ('a' + unit_below(16));
	else
		for (uint32_t i = 0; i < len;)
			for (const char *w = words[unit_below(8)]; *w && i < len; w++)
				p[i++] = (uint8_t) *w;
}

static UNIT_UNUSED uint64_t
unit_group_var(const PaimonAllocator *a, uint32_t pattern, uint32_t maxlen, uint64_t b)
{
	uint32_t	len = (uint32_t) unit_below((uint64_t) maxlen + 1);
	uint8_t    *p;
	uint64_t	saved = 0;
	uint64_t	v;

	if (pattern == 3)			/* few distinct: the text depends on a small number only */
	{
		uint64_t	small = unit_below((b & 63) + 1) + b;

		saved = unit_state;
		unit_state = small;
		len = (uint32_t) unit_below((uint64_t) maxlen + 1);
	}
	p = paimon_core_alloc(a, (size_t) len + 1);
	unit_group_text(p, len, pattern % 3);
	v = unit_group_varlena(a, p, len);
	if (pattern == 3)
		unit_state = saved + 1;
	return v;
}

static UNIT_UNUSED void
unit_group_nulls(UnitGroup *g, const PaimonAllocator *a, uint32_t c)
{
	uint32_t	pattern = (uint32_t) unit_below(7);
	uint32_t	n = g->in.nrows;
	bool	   *nulls;

	g->nulls[c] = NULL;
	if (pattern <= 1)
		return;
	nulls = g->nulls[c] = paimon_core_alloc(a, n);
	for (uint32_t i = 0; i < n; i++)
	{
		switch (pattern)
		{
			case 2:
				nulls[i] = false;
				break;
			case 3:
				nulls[i] = true;
				break;
			case 4:
				nulls[i] = unit_below(50) == 0;
				break;
			case 5:
				nulls[i] = unit_below(2) == 0;
				break;
			default:
				nulls[i] = i % 97 >= 20;
				break;
		}
	}
}

/* Column c of a random kind and pattern; single values up to maxlen bytes. */
static UNIT_UNUSED void
unit_group_column(UnitGroup *g, const PaimonAllocator *a, uint32_t c, uint32_t maxlen)
{
	PaimonColumnDesc *d = &g->columns[c];
	uint32_t	pattern = (uint32_t) unit_below(UNIT_WORD_PATTERNS);
	uint64_t	x = unit_rand();
	uint64_t	y = unit_rand();
	uint32_t	n = g->in.nrows;

	d->phys = (uint8_t) (1 + unit_below(4));
	d->width = 0;
	if (d->phys == PAIMON_PHYS_FIXED)
		d->width = (uint16_t) (1 + unit_below(unit_below(4) == 0 ? 100 : 16));
	if (d->phys == PAIMON_PHYS_SCALED)
		d->width = (uint16_t) unit_below(20);
	g->values[c] = paimon_core_alloc(a, n * sizeof(uint64_t));
	if (unit_below(4) != 0 && maxlen > 300)
		maxlen = (uint32_t) unit_below(300);
	for (uint32_t i = 0; i < n; i++)
	{
		if (d->phys == PAIMON_PHYS_INT || d->phys == PAIMON_PHYS_SCALED)
			g->values[c][i] = unit_group_word(pattern, x, y, i);
		else if (d->phys == PAIMON_PHYS_VAR)
			g->values[c][i] = unit_group_var(a, pattern % 4, maxlen, y);
		else
		{
			uint8_t    *p = paimon_core_alloc(a, d->width);

			if (pattern < 4)
				unit_fill(p, d->width);
			else
				memset(p, pattern < 8 ? (int) unit_below(5) : 'x', d->width);
			g->values[c][i] = (uint64_t) (uintptr_t) p;
		}
	}
	unit_group_nulls(g, a, c);
}

/* ---------- keys ---------- */

static UNIT_UNUSED int
unit_group_key_cmp(const void *x, const void *y)
{
	const PaimonBytes *a = x;
	const PaimonBytes *b = y;

	return paimon_bytes_cmp(a->data, a->len, b->data, b->len);
}

#define UNIT_KEY_PATTERNS 8

/* A key of the given pattern; `base` is the group's. */
static UNIT_UNUSED void
unit_group_key(const PaimonAllocator *a, uint32_t pattern, uint64_t base, PaimonBytes *out)
{
	static const uint32_t fixed[] = {8, 12, 16, 4, 1};
	uint32_t	len = pattern < 5 ? fixed[pattern] : (uint32_t) unit_below(pattern == 5 ? 40 : 12);
	uint32_t	shared = pattern == 6 ? 20 : 0;
	uint8_t    *p = paimon_core_alloc(a, shared + len + 1);
	uint64_t	v = base + unit_below(base % 3 == 0 ? 1000 : 1000000);

	for (uint32_t i = 0; i < shared; i++)
		p[i] = (uint8_t) ('A' + i);
	if (pattern <= 1)
		for (uint32_t i = 0; i < 8; i++)
			p[i] = (uint8_t) (v >> (56 - 8 * i));
	if (pattern == 1)
		paimon_put_u32(p + 8, (uint32_t) unit_below(3));
	if (pattern == 2 || pattern == 3 || pattern == 4)
		unit_fill(p, len);
	if (pattern >= 5)
		for (uint32_t i = 0; i < len; i++)
			p[shared + i] = (uint8_t) (pattern == 7 ? unit_below(3) * 127 : 'a' + unit_below(8));
	out->data = p;
	out->len = shared + len;
}

/* Makes a random group; everything in memory of the allocator. */
static UNIT_UNUSED void
unit_group_make(UnitGroup *g, const PaimonAllocator *a, uint32_t nrows, uint32_t ncolumns, uint32_t maxlen, int level)
{
	uint32_t	pattern = (uint32_t) unit_below(UNIT_KEY_PATTERNS);
	uint64_t	base = unit_rand() >> unit_below(60);
	uint32_t	kinds = (uint32_t) unit_below(3);

	memset(g, 0, sizeof(*g));
	g->in.id.storage_id = unit_rand();
	g->in.id.file_no = unit_rand();
	g->in.id.group_no = (uint32_t) unit_rand();
	g->in.id.bucket = (uint32_t) unit_below(16);
	g->in.nrows = nrows;
	g->in.ncolumns = ncolumns;
	g->in.zstd_level = level;
	g->columns = paimon_core_alloc(a, (ncolumns + 1) * sizeof(PaimonColumnDesc));
	g->values = paimon_core_alloc(a, (ncolumns + 1) * sizeof(uint64_t *));
	g->nulls = paimon_core_alloc(a, (ncolumns + 1) * sizeof(bool *));
	g->keys = paimon_core_alloc(a, nrows * sizeof(PaimonBytes));
	g->kinds = paimon_core_alloc(a, nrows);
	for (uint32_t i = 0; i < nrows; i++)
	{
		unit_group_key(a, pattern, base, &g->keys[i]);
		g->kinds[i] = (uint8_t) (kinds == 0 ? PAIMON_KIND_INSERT : kinds == 1 ? PAIMON_KIND_REMOVE : unit_below(6));
	}
	qsort(g->keys, nrows, sizeof(PaimonBytes), unit_group_key_cmp);
	for (uint32_t c = 0; c < ncolumns; c++)
		unit_group_column(g, a, c, maxlen);
	if (ncolumns > 0 && g->columns[0].phys == PAIMON_PHYS_INT && unit_below(2))
		for (uint32_t i = 0; i < nrows; i++)	/* column that follows the key */
			g->values[0][i] = paimon_key_prefix(g->keys[i].data, g->keys[i].len) - base;
	g->in.columns = g->columns;
	g->in.keys = g->keys;
	g->in.kinds = g->kinds;
	g->in.values = (const uint64_t *const *) g->values;
	g->in.nulls = (const bool *const *) g->nulls;
}

/* ---------- comparison ---------- */

static UNIT_UNUSED bool
unit_group_is_null(const UnitGroup *g, uint32_t c, uint32_t row)
{
	return g->nulls[c] != NULL && g->nulls[c][row];
}

/* Is `got` what was put in at column c, row? */
static UNIT_UNUSED bool
unit_group_same(const UnitGroup *g, uint32_t c, uint32_t row, uint64_t got, bool isnull)
{
	uint64_t	want = g->values[c][row];
	const uint8_t *p = (const uint8_t *) (uintptr_t) got;
	PaimonBytes a;
	PaimonBytes b;

	if (unit_group_is_null(g, c, row))
		return isnull && got == 0;
	if (isnull)
		return false;
	switch (g->columns[c].phys)
	{
		case PAIMON_PHYS_FIXED:
			return (uintptr_t) p % 8 == 0 && memcmp(p, (const void *) (uintptr_t) want, g->columns[c].width) == 0;
		case PAIMON_PHYS_VAR:
			if (!paimon_varlena_payload((const void *) (uintptr_t) want, &a) || !paimon_varlena_payload(p, &b))
				return false;
			if (PAIMON_VARLENA_IS_1B(p[0]) != (b.len <= PAIMON_VARLENA_SHORT_MAX))
				return false;
			if (!PAIMON_VARLENA_IS_1B(p[0]) && (uintptr_t) p % 4 != 0)
				return false;
			return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
		default:
			return got == want;
	}
}

#endif							/* PAIMON_UNIT_GROUP_H */
