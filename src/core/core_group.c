/*-------------------------------------------------------------------------
 *
 * core_group.c
 *	  Reading a row group: opening, access by column, kinds, checking.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_group_layout.h"

/* May a column described as `want` by the table be stored as `have`? */
static bool
desc_compatible(const PaimonColumnDesc *want, uint8_t phys, uint16_t width)
{
	bool		want_numeric = want->phys == PAIMON_PHYS_VAR || want->phys == PAIMON_PHYS_SCALED;
	bool		have_numeric = phys == PAIMON_PHYS_VAR || phys == PAIMON_PHYS_SCALED;

	if (want_numeric || have_numeric)
		return want_numeric && have_numeric;
	return want->phys == phys && (phys != PAIMON_PHYS_FIXED || want->width == width);
}

/* Checks the directory: heads follow one another without gaps behind it, then bodies, which fill the group. */
static PaimonResult
check_directory(const PaimonGroup *g, const PaimonColumnDesc *columns)
{
	uint64_t	head = header_size(g->ncolumns);
	uint64_t	body = 0;
	PaimonColumnEntry first;

	for (uint32_t i = 0; i < g->ncolumns + PAIMON_COLUMN_FIRST; i++)
	{
		PaimonColumnEntry e;
		PaimonColumnDesc d;

		get_entry(g->directory + i * sizeof(GroupEntry), &e);
		if (i == 0)
			body = e.body_off;
		if (e.head_off != head || e.body_off != body)
			return PAIMON_CORRUPT;
		head += e.head_len;
		body += e.body_len;
		if (head > g->ctx.src.len || body > g->ctx.src.len || e.null_count > g->ctx.nrows)
			return PAIMON_CORRUPT;
		d.phys = e.phys;
		d.width = e.width;
		if (i == PAIMON_COLUMN_KEY)
		{
			if (e.encoding != PAIMON_ENC_KEY_WORDS && e.encoding != PAIMON_ENC_KEY_BYTES)
				return PAIMON_CORRUPT;
		}
		else if (i == PAIMON_COLUMN_KIND)
		{
			if (e.encoding != PAIMON_ENC_PACKED)
				return PAIMON_CORRUPT;
		}
		else if (!desc_valid(&d) || (e.encoding > PAIMON_ENC_UNITS && e.encoding != PAIMON_ENC_FROM_KEY) ||
				 (columns != NULL && !desc_compatible(&columns[i - PAIMON_COLUMN_FIRST], d.phys, d.width)))
			return PAIMON_CORRUPT;
	}
	get_entry(g->directory, &first);
	return first.body_off == head && body == g->ctx.src.len ? PAIMON_OK : PAIMON_CORRUPT;
}

PaimonResult
paimon_group_open(const PaimonGroupSource *src, const PaimonGroupId *id, const PaimonColumnDesc *columns,
				  uint32_t ncolumns, const PaimonAllocator *a, PaimonGroup **out)
{
	PaimonGroup *g;
	const uint8_t *h;
	uint32_t	guess = header_size(ncolumns > PAIMON_GROUP_MAX_COLUMNS ? PAIMON_GROUP_MAX_COLUMNS : ncolumns);
	uint32_t	head_len;
	PaimonResult r;

	if (src->len < header_size(0))
		return PAIMON_CORRUPT;
	if (guess > src->len)
		guess = src->len;
	h = src->fetch(src->arg, 0, guess);
	if (h == NULL || (g = paimon_core_alloc(a, sizeof(PaimonGroup))) == NULL)
		return PAIMON_NO_MEMORY;
	memset(g, 0, sizeof(*g));
	g->ctx.src = *src;
	if (src->room != NULL)
		src->room->unit = NULL; /* it may have been one of a group that is gone, where one of ours will be */
	g->ctx.a = *a;
	g->ctx.group = g;
	g->ctx.id_crc = paimon_group_id_crc(id);
	g->ctx.nrows = paimon_get_u16(h + offsetof(GroupHeader, nrows));
	g->ncolumns = paimon_get_u16(h + offsetof(GroupHeader, ncolumns));
	if (paimon_get_u32(h + offsetof(GroupHeader, magic)) != GROUP_MAGIC ||
		paimon_get_u16(h + offsetof(GroupHeader, read_min)) > GROUP_VERSION ||
		paimon_get_u32(h + offsetof(GroupHeader, total_len)) != src->len ||
		g->ctx.nrows == 0 || g->ctx.nrows > PAIMON_GROUP_MAX_ROWS || g->ncolumns > PAIMON_GROUP_MAX_COLUMNS ||
		(columns != NULL && g->ncolumns > ncolumns))
		return PAIMON_CORRUPT;
	head_len = header_size(g->ncolumns);
	if (head_len > src->len)
		return PAIMON_CORRUPT;
	if (head_len > guess && (h = src->fetch(src->arg, 0, head_len)) == NULL)
		return PAIMON_NO_MEMORY;
	if (!paimon_crc_matches(header_crc(g->ctx.id_crc, h, head_len), paimon_get_u32(h + offsetof(GroupHeader, crc))))
		return PAIMON_CORRUPT;
	g->directory = h + sizeof(GroupHeader);
	if ((r = check_directory(g, columns)) != PAIMON_OK)
		return r;
	g->columns = paimon_core_alloc(a, (g->ncolumns + PAIMON_COLUMN_FIRST) * sizeof(PaimonColumn *));
	if (g->columns == NULL)
		return PAIMON_NO_MEMORY;
	memset(g->columns, 0, (g->ncolumns + PAIMON_COLUMN_FIRST) * sizeof(PaimonColumn *));
	*out = g;
	return PAIMON_OK;
}

uint32_t
paimon_group_nrows(const PaimonGroup *g)
{
	return g->ctx.nrows;
}

uint32_t
paimon_group_ncolumns(const PaimonGroup *g)
{
	return g->ncolumns;
}

static void
value_entry(const PaimonGroup *g, uint32_t column, PaimonColumnEntry *e)
{
	get_entry(g->directory + (column + PAIMON_COLUMN_FIRST) * sizeof(GroupEntry), e);
}

/* `column` must be below paimon_group_ncolumns. */
PaimonColumnDesc
paimon_group_column_desc(const PaimonGroup *g, uint32_t column)
{
	PaimonColumnEntry e;
	PaimonColumnDesc d;

	value_entry(g, column, &e);
	d.phys = e.phys;
	d.width = e.width;
	return d;
}

/* `column` must be below paimon_group_ncolumns. */
void
paimon_group_column_stats(const PaimonGroup *g, uint32_t column, PaimonColumnStats *out)
{
	PaimonColumnEntry e;

	value_entry(g, column, &e);
	out->null_count = e.null_count;
	out->has_minmax = (e.phys == PAIMON_PHYS_INT || e.phys == PAIMON_PHYS_SCALED) && e.null_count < g->ctx.nrows;
	out->min = e.min;
	out->max = e.max;
}

/* The state of a column (PAIMON_COLUMN_…), made when first asked for. */
PaimonResult
paimon_group_column(PaimonGroup *g, uint32_t number, PaimonColumn **out)
{
	PaimonColumn *c = g->columns[number];

	if (c == NULL)
	{
		c = paimon_core_alloc(&g->ctx.a, sizeof(PaimonColumn));
		if (c == NULL)
			return PAIMON_NO_MEMORY;
		memset(c, 0, sizeof(*c));
		c->number = number;
		get_entry(g->directory + number * sizeof(GroupEntry), &c->entry);
		g->columns[number] = c;
	}
	*out = c;
	return PAIMON_OK;
}

PaimonResult
paimon_group_values(PaimonGroup *g, uint32_t column, const uint64_t **values, const bool **nulls)
{
	PaimonColumn *c;
	PaimonResult r = paimon_group_column(g, column + PAIMON_COLUMN_FIRST, &c);

	if (r != PAIMON_OK || (r = paimon_column_values(&g->ctx, c)) != PAIMON_OK)
		return r;
	*values = c->values;
	*nulls = c->nulls;
	return PAIMON_OK;
}

PaimonResult
paimon_group_value(PaimonGroup *g, uint32_t column, uint32_t row, uint64_t *value, bool *isnull)
{
	PaimonColumn *c;
	PaimonResult r = paimon_group_column(g, column + PAIMON_COLUMN_FIRST, &c);

	if (r != PAIMON_OK)
		return r;
	if (row >= g->ctx.nrows)
		return PAIMON_CORRUPT;	/* a row number that came from damaged bytes elsewhere */
	return paimon_column_value(&g->ctx, c, row, value, isnull);
}

PaimonResult
paimon_group_range(PaimonGroup *g, uint32_t column, uint32_t first, uint32_t count, uint64_t *values, bool *nulls)
{
	PaimonColumn *c;
	PaimonResult r = paimon_group_column(g, column + PAIMON_COLUMN_FIRST, &c);

	if (r != PAIMON_OK)
		return r;
	if (count == 0 || first >= g->ctx.nrows || count > g->ctx.nrows - first)
		return count == 0 ? PAIMON_OK : PAIMON_CORRUPT;
	return paimon_column_range(&g->ctx, c, first, count, values, nulls);
}

/* Parses the head of the kind column when it is first touched. */
static PaimonResult
load_kinds(PaimonGroup *g, PaimonColumn **out)
{
	PaimonColumn *c;
	PaimonCursor cur;
	PaimonResult r = paimon_group_column(g, PAIMON_COLUMN_KIND, &c);

	if (r != PAIMON_OK)
		return r;
	*out = c;
	if (c->loaded)
		return PAIMON_OK;
	if ((r = paimon_column_load_head(&g->ctx, c, &cur)) != PAIMON_OK ||
		(r = paimon_packed_read(&cur, g->ctx.nrows, &c->packed)) != PAIMON_OK)
		return r;
	if (!paimon_cursor_done(&cur))
		return PAIMON_CORRUPT;
	c->loaded = true;
	return PAIMON_OK;
}

PaimonResult
paimon_group_kind(PaimonGroup *g, uint32_t row, uint8_t *kind)
{
	PaimonColumn *c = NULL;
	PaimonResult r = load_kinds(g, &c);
	uint64_t	k;

	if (r != PAIMON_OK)
		return r;
	if (row >= g->ctx.nrows)
		return PAIMON_CORRUPT;
	if ((r = paimon_packed_need(&g->ctx, &c->packed, row, 1)) != PAIMON_OK)
		return r;
	if ((k = paimon_packed_get(&c->packed, row)) > PAIMON_KIND_REMOVE)
		return PAIMON_CORRUPT;
	*kind = (uint8_t) k;
	return PAIMON_OK;
}

PaimonResult
paimon_group_kinds(PaimonGroup *g, const uint8_t **kinds, uint8_t *constant)
{
	PaimonColumn *c = NULL;
	PaimonResult r = load_kinds(g, &c);
	uint64_t   *words;
	uint64_t	bad = 0;

	if (r == PAIMON_OK)
		r = paimon_group_kind(g, 0, constant);
	if (r != PAIMON_OK)
		return r;
	*kinds = g->kinds;
	if (g->kinds != NULL || (c->packed.width == 0 && c->packed.slope == 0))
		return PAIMON_OK;
	if ((r = paimon_packed_need_all(&g->ctx, &c->packed)) != PAIMON_OK)
		return r;
	words = paimon_core_alloc(&g->ctx.a, g->ctx.nrows * (sizeof(uint64_t) + 1));
	if (words == NULL)
		return PAIMON_NO_MEMORY;
	paimon_packed_unpack(&c->packed, 0, g->ctx.nrows, words);
	g->kinds = (uint8_t *) (words + g->ctx.nrows);
	for (uint32_t i = 0; i < g->ctx.nrows; i++)
	{
		bad |= words[i] > PAIMON_KIND_REMOVE;
		g->kinds[i] = (uint8_t) words[i];
	}
	if (bad)
	{
		g->kinds = NULL;
		return PAIMON_CORRUPT;
	}
	*kinds = g->kinds;
	return PAIMON_OK;
}

/* Checks one value column: decodes it and recomputes its statistics. */
static PaimonResult
check_column(PaimonGroup *g, uint32_t column)
{
	const uint64_t *values;
	const bool *nulls;
	PaimonColumnStats stats;
	int64_t		min = INT64_MAX;
	int64_t		max = INT64_MIN;
	PaimonResult r = paimon_group_values(g, column, &values, &nulls);

	if (r != PAIMON_OK)
		return r;
	paimon_group_column_stats(g, column, &stats);
	if (!stats.has_minmax)
		return PAIMON_OK;
	for (uint32_t i = 0; i < g->ctx.nrows; i++)
	{
		int64_t		v = (int64_t) values[i];

		if (nulls != NULL && nulls[i])
			continue;
		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	return min == stats.min && max == stats.max ? PAIMON_OK : PAIMON_CORRUPT;
}

PaimonResult
paimon_group_check(PaimonGroup *g)
{
	const uint8_t *kinds;
	uint8_t		constant;
	PaimonResult r = paimon_group_check_keys(g);

	if (r == PAIMON_OK)
		r = paimon_group_kinds(g, &kinds, &constant);
	for (uint32_t i = 0; i < g->ncolumns && r == PAIMON_OK; i++)
		r = check_column(g, i);
	return r;
}
