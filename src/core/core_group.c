/*-------------------------------------------------------------------------
 *
 * core_group.c
 *	  Row groups: header and directory, encoding, opening, access by column.
 *
 *-------------------------------------------------------------------------
 */
#include "core/core_column.h"

#define GROUP_MAGIC			0x50475250u /* "PRGP" */
#define GROUP_VERSION		1	/* of the writer */
#define GROUP_READ_MIN		1	/* a reader must know at least this version */

/* On-disk header; always accessed by offsetof, little-endian. */
typedef struct GroupHeader
{
	uint32_t	magic;
	uint16_t	version;
	uint16_t	read_min;
	uint32_t	total_len;
	uint32_t	crc;			/* over identity, header with this field 0, directory */
	uint16_t	nrows;
	uint16_t	ncolumns;
	uint32_t	reserved;		/* 0 */
} GroupHeader;

/* On-disk directory entry. */
typedef struct GroupEntry
{
	uint8_t		phys;			/* 0 for keys and kinds */
	uint8_t		encoding;
	uint16_t	width;
	uint32_t	off;
	uint32_t	units_len;
	uint32_t	head_len;
	uint32_t	head_crc;
	uint32_t	null_count;
	int64_t		min;
	int64_t		max;
} GroupEntry;

_Static_assert(sizeof(GroupHeader) == 24, "layout of the group header");
_Static_assert(offsetof(GroupHeader, version) == 4, "layout of the group header");
_Static_assert(offsetof(GroupHeader, read_min) == 6, "layout of the group header");
_Static_assert(offsetof(GroupHeader, total_len) == 8, "layout of the group header");
_Static_assert(offsetof(GroupHeader, crc) == 12, "layout of the group header");
_Static_assert(offsetof(GroupHeader, nrows) == 16, "layout of the group header");
_Static_assert(offsetof(GroupHeader, ncolumns) == 18, "layout of the group header");
_Static_assert(sizeof(GroupEntry) == 40, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, width) == 2, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, off) == 4, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, units_len) == 8, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, head_len) == 12, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, head_crc) == 16, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, null_count) == 20, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, min) == 24, "layout of a group's directory entry");
_Static_assert(offsetof(GroupEntry, max) == 32, "layout of a group's directory entry");
_Static_assert(PAIMON_GROUP_MAX_ROWS <= UINT16_MAX, "row counts are stored in 16 bits");

static inline uint32_t
header_size(uint32_t ncolumns)
{
	return (uint32_t) (sizeof(GroupHeader) + (ncolumns + PAIMON_COLUMN_FIRST) * sizeof(GroupEntry));
}

static void
put_entry(uint8_t *p, const PaimonColumnEntry *e)
{
	p[offsetof(GroupEntry, phys)] = e->phys;
	p[offsetof(GroupEntry, encoding)] = e->encoding;
	paimon_put_u16(p + offsetof(GroupEntry, width), e->width);
	paimon_put_u32(p + offsetof(GroupEntry, off), e->off);
	paimon_put_u32(p + offsetof(GroupEntry, units_len), e->units_len);
	paimon_put_u32(p + offsetof(GroupEntry, head_len), e->head_len);
	paimon_put_u32(p + offsetof(GroupEntry, head_crc), e->head_crc);
	paimon_put_u32(p + offsetof(GroupEntry, null_count), e->null_count);
	paimon_put_u64(p + offsetof(GroupEntry, min), (uint64_t) e->min);
	paimon_put_u64(p + offsetof(GroupEntry, max), (uint64_t) e->max);
}

static void
get_entry(const uint8_t *p, PaimonColumnEntry *e)
{
	e->phys = p[offsetof(GroupEntry, phys)];
	e->encoding = p[offsetof(GroupEntry, encoding)];
	e->width = paimon_get_u16(p + offsetof(GroupEntry, width));
	e->off = paimon_get_u32(p + offsetof(GroupEntry, off));
	e->units_len = paimon_get_u32(p + offsetof(GroupEntry, units_len));
	e->head_len = paimon_get_u32(p + offsetof(GroupEntry, head_len));
	e->head_crc = paimon_get_u32(p + offsetof(GroupEntry, head_crc));
	e->null_count = paimon_get_u32(p + offsetof(GroupEntry, null_count));
	e->min = (int64_t) paimon_get_u64(p + offsetof(GroupEntry, min));
	e->max = (int64_t) paimon_get_u64(p + offsetof(GroupEntry, max));
}

/* The header's checksum: `head` is header and directory. */
static uint32_t
header_crc(uint32_t id_crc, const uint8_t *head, uint32_t len)
{
	static const uint8_t zero[4];
	uint32_t	at = offsetof(GroupHeader, crc);
	uint32_t	crc = paimon_crc32c(id_crc, head, at);

	crc = paimon_crc32c(crc, zero, sizeof(zero));
	return paimon_crc32c(crc, head + at + 4, len - at - 4);
}

static bool
desc_valid(const PaimonColumnDesc *d)
{
	return d->phys >= PAIMON_PHYS_INT && d->phys <= PAIMON_PHYS_SCALED && (d->phys != PAIMON_PHYS_FIXED || d->width > 0);
}

/* Scratch memory of the encoder. */
static PaimonResult
begin_encode(PaimonEncoder *e, const PaimonGroupInput *in, const PaimonAllocator *a)
{
	size_t		n = in->nrows;

	memset(e, 0, sizeof(*e));
	e->a = e->out.a = e->head.a = e->raw.a = e->wide.a = e->sample.a = a;
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

PaimonResult
paimon_group_encode(const PaimonGroupInput *in, const PaimonAllocator *a, uint8_t **out, uint32_t *outlen)
{
	PaimonEncoder e;
	PaimonColumnEntry entry;
	PaimonResult r;
	uint32_t	head_len;
	uint8_t    *h;

	if (in->nrows == 0 || in->nrows > PAIMON_GROUP_MAX_ROWS || in->ncolumns > PAIMON_GROUP_MAX_COLUMNS)
		return PAIMON_CORRUPT;
	if ((r = begin_encode(&e, in, a)) != PAIMON_OK)
		return r;
	head_len = header_size(in->ncolumns);
	if (!paimon_buf_reserve(&e.out, head_len + (size_t) in->nrows * 32))
		return e.out.err;
	memset(e.out.data, 0, head_len);
	e.out.len = head_len;
	for (uint32_t i = 0; i < in->ncolumns + PAIMON_COLUMN_FIRST; i++)
	{
		uint32_t	c = i - PAIMON_COLUMN_FIRST;

		if (i == PAIMON_COLUMN_KEY)
			r = paimon_column_encode_keys(&e, in->keys, &entry);
		else if (i == PAIMON_COLUMN_KIND)
			r = paimon_column_encode_kinds(&e, in->kinds, &entry);
		else if (!desc_valid(&in->columns[c]))
			r = PAIMON_CORRUPT;
		else
			r = paimon_column_encode(&e, i, &in->columns[c], in->values[c], in->nulls ? in->nulls[c] : NULL, &entry);
		if (r != PAIMON_OK)
			return r;
		put_entry(e.out.data + sizeof(GroupHeader) + i * sizeof(GroupEntry), &entry);
	}
	h = e.out.data;
	paimon_put_u32(h + offsetof(GroupHeader, magic), GROUP_MAGIC);
	paimon_put_u16(h + offsetof(GroupHeader, version), GROUP_VERSION);
	paimon_put_u16(h + offsetof(GroupHeader, read_min), GROUP_READ_MIN);
	paimon_put_u32(h + offsetof(GroupHeader, total_len), (uint32_t) e.out.len);
	paimon_put_u16(h + offsetof(GroupHeader, nrows), (uint16_t) in->nrows);
	paimon_put_u16(h + offsetof(GroupHeader, ncolumns), (uint16_t) in->ncolumns);
	paimon_put_u32(h + offsetof(GroupHeader, crc), header_crc(e.id_crc, h, head_len));
	*out = h;
	*outlen = (uint32_t) e.out.len;
	return PAIMON_OK;
}

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

/* Checks the directory: columns follow one another without gaps and fill the group. */
static PaimonResult
check_directory(const PaimonGroup *g, const PaimonColumnDesc *columns)
{
	uint64_t	off = header_size(g->ncolumns);

	for (uint32_t i = 0; i < g->ncolumns + PAIMON_COLUMN_FIRST; i++)
	{
		PaimonColumnEntry e;
		PaimonColumnDesc d;

		get_entry(g->directory + i * sizeof(GroupEntry), &e);
		if (e.off != off)
			return PAIMON_CORRUPT;
		off += (uint64_t) e.units_len + e.head_len;
		if (off > g->ctx.src.len || e.null_count > g->ctx.nrows)
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
	return off == g->ctx.src.len ? PAIMON_OK : PAIMON_CORRUPT;
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
	if (cur.p != cur.end || c->entry.units_len != 0)
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
	if (row >= g->ctx.nrows || (k = paimon_packed_get(&c->packed, row)) > PAIMON_KIND_REMOVE)
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
	const PaimonBytes *keys;
	const uint64_t *prefixes;
	const uint8_t *kinds;
	uint32_t	fixed_len;
	uint8_t		constant;
	PaimonResult r = paimon_group_keys(g, &keys, &prefixes, &fixed_len);

	if (r == PAIMON_OK)
		r = paimon_group_kinds(g, &kinds, &constant);
	if (r != PAIMON_OK)
		return r;
	for (uint32_t i = 1; i < g->ctx.nrows; i++)
		if (paimon_bytes_cmp(keys[i - 1].data, keys[i - 1].len, keys[i].data, keys[i].len) > 0)
			return PAIMON_CORRUPT;
	for (uint32_t i = 0; i < g->ncolumns && r == PAIMON_OK; i++)
		r = check_column(g, i);
	return r;
}
