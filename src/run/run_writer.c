/*-------------------------------------------------------------------------
 *
 * run_writer.c
 *	  Writing run files: rows in key order → row groups → files.
 *
 * Rows are gathered until they make a row group, column by column; the group is encoded and appended; a file is closed with its filter and
 * footer when it has reached its target size.  Memory: one group's rows and what encoding them takes, and 8 bytes a row for
 * the filter (FILE_MAX_ROWS bounds that).
 *
 * Nothing here is visible to anybody before the caller puts the files into the manifest.  If it never does (error, crash), the extents belong to a
 * dead transaction or to a file number whose guard is gone, and the sweep takes them.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "core/core_key.h"
#include "run/run.h"
#include "run/run_file.h"
#include "run/run_footer.h"

#define GROUP_TARGET_ROWS	4096
#define GROUP_TARGET_BYTES	(2 * 1024 * 1024)	/* keys and payloads of a group, unless a single row is larger */
#define GROUP_COLUMN_BYTES	(8 * 1024 * 1024)	/* of column arrays: fewer rows a group for very wide tables */
#define GROUP_MIN_ROWS		256
#define ARENA_BLOCK			(256 * 1024)
#define FILE_MAX_ROWS		(8 * 1024 * 1024)

struct PaimonRunWriter
{
	PaimonRunParams p;
	uint64		storage_id;
	MemoryContext cxt;
	MemoryContext group_cxt;	/* the rows gathered and their encoding; reset for each group */
	MemoryContext file_cxt;		/* the file being written; reset for each file */
	MemoryContextCallback guard_cb; /* releases the guards below if we are thrown out */

	/* columns */
	int			natts;
	int			nstored;
	int16	   *stored;			/* columns neither in the key nor dropped */
	bool	   *is_numeric;
	PaimonRowColumn *gathered;	/* by column, max_rows each; the stored ones */
	PaimonColumnDesc *columns;

	/* rows of the group */
	uint32		max_rows;
	uint32		nrows;
	Size		bytes;
	PaimonBytes *keys;
	uint8	   *kinds;
	char	   *arena;
	Size		arena_left;

	/* the file, if file != NULL */
	PaimonFileWriter *file;
	uint64		file_no;
	PaimonRunGroupEntry *groups;
	uint32		ngroups;
	uint32		groups_allocated;
	uint64		pages;
	int64		file_rows;
	int64		file_deletes;
	int64		file_repeats;

	/* kept from file to file */
	uint64	   *hashes;
	uint64		nhashes;
	uint64		hashes_allocated;
	uint8		last_key[PAIMON_KEY_MAX];	/* of the last group written or row added */
	uint32		last_key_len;
	uint64		last_prefix;
	bool		has_last_key;
	uint8		last_kind;

	/* results */
	uint64		total_rows;
	PaimonFileRow *files;
	int			nfiles;
	int			files_allocated;
	XLogRecPtr	lsn;
};

static void *
writer_alloc(void *arg, size_t size)
{
	return MemoryContextAllocExtended((MemoryContext) arg, size > 0 ? size : 1, MCXT_ALLOC_HUGE);
}

/* The writer goes, by finish or by an error: after an error nobody knows our files, and their guards must not outlive us. */
static void
writer_release_guards(void *arg)
{
	PaimonRunWriter *w = arg;

	if (FullTransactionIdIsValid(w->p.xid))
		return;
	for (int i = 0; i < w->nfiles; i++)
		paimon_file_guard_release(w->storage_id, w->files[i].file_no);
	if (w->file_no != 0)
		paimon_file_guard_release(w->storage_id, w->file_no);
	w->nfiles = 0;
	w->file_no = 0;
}

static void
writer_init_columns(PaimonRunWriter *w)
{
	TupleDesc	tupdesc = w->p.desc->tupdesc;
	int			natts = tupdesc->natts;
	Size		row_bytes = (Size) natts * (sizeof(uint64) + sizeof(bool));

	w->natts = natts;
	w->max_rows = GROUP_TARGET_ROWS;
	if (natts > 0 && w->max_rows > GROUP_COLUMN_BYTES / row_bytes)
		w->max_rows = Max(GROUP_COLUMN_BYTES / row_bytes, GROUP_MIN_ROWS);
	w->keys = palloc_array(PaimonBytes, w->max_rows);
	w->kinds = palloc_array(uint8, w->max_rows);
	w->is_numeric = palloc0_array(bool, natts + 1);
	w->stored = palloc0_array(int16, natts + 1);
	w->gathered = palloc0_array(PaimonRowColumn, natts + 1);
	w->columns = palloc0_array(PaimonColumnDesc, natts + 1);
	for (int c = 0; c < natts; c++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, c);

		if (att->attisdropped || w->p.desc->in_key[c])
			continue;
		w->stored[w->nstored++] = c;
		w->is_numeric[c] = getBaseType(att->atttypid) == NUMERICOID;
		w->gathered[c].values = palloc_array(uint64, w->max_rows);
		w->gathered[c].nulls = palloc_array(bool, w->max_rows);
	}
}

PaimonRunWriter *
paimon_run_begin(const PaimonRunParams *params)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon run writer", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonRunWriter *w = palloc0_object(PaimonRunWriter);

	w->p = *params;
	w->storage_id = params->desc->storage_id;
	w->cxt = cxt;
	w->group_cxt = AllocSetContextCreate(cxt, "paimon run group", ALLOCSET_DEFAULT_SIZES);
	w->file_cxt = AllocSetContextCreate(cxt, "paimon run file", ALLOCSET_DEFAULT_SIZES);
	if (w->p.target_file_size <= 0)
		w->p.target_file_size = PG_INT64_MAX;
	if (w->p.target_file_rows <= 0 || w->p.target_file_rows > FILE_MAX_ROWS)
		w->p.target_file_rows = FILE_MAX_ROWS;
	writer_init_columns(w);
	w->guard_cb.func = writer_release_guards;
	w->guard_cb.arg = w;
	MemoryContextRegisterResetCallback(cxt, &w->guard_cb);
	MemoryContextSwitchTo(old);
	return w;
}

/* ---------- files ---------- */

static void
writer_open_file(PaimonRunWriter *w)
{
	uint64		file_no = paimon_storage_new_file_no(w->p.rel, 1);
	MemoryContext old;

	if (!FullTransactionIdIsValid(w->p.xid))
		paimon_file_guard_acquire(w->storage_id, file_no);
	w->file_no = file_no;
	old = MemoryContextSwitchTo(w->file_cxt);
	w->file = paimon_file_begin(w->p.rel, file_no, w->p.xid);
	MemoryContextSwitchTo(old);
	w->ngroups = w->groups_allocated = 0;
	w->groups = NULL;
	w->pages = 0;
	w->file_rows = 0;
}

/* A bytea with a lower (or upper) bound of at most PAIMON_KEY_BOUND bytes. */
static bytea *
writer_bound(const uint8 *key, uint32 len, bool upper)
{
	uint8		cut[PAIMON_KEY_BOUND];
	uint32		n = Min(len, PAIMON_KEY_BOUND);
	bytea	   *result;

	memcpy(cut, key, n);
	if (upper && len > PAIMON_KEY_BOUND)
	{
		PaimonKeyBuf buf;

		paimon_keybuf_init(&buf, cut, PAIMON_KEY_BOUND, NULL);
		buf.len = n;
		n = paimon_key_prefix_end(&buf) ? buf.len : 0;
	}
	result = palloc(VARHDRSZ + n);
	SET_VARSIZE(result, VARHDRSZ + n);
	memcpy(VARDATA(result), cut, n);
	return result;
}

/* Writes filter and footer.  Fills the manifest row but for extents, pages and LSN. */
static void
writer_write_footer(PaimonRunWriter *w, PaimonFileRow *row)
{
	PaimonRunFooter footer;
	StringInfoData buf;
	uint8	   *bloom;
	uint32		bloom_len;

	memset(&footer, 0, sizeof(footer));
	footer.storage_id = w->storage_id;
	footer.file_no = w->file_no;
	footer.bucket = w->p.bucket;
	footer.level = w->p.level;
	footer.source = w->p.source;
	footer.natts = w->natts;
	footer.encoding = PAIMON_ENCODING_VERSION;
	footer.nrows = w->file_rows;
	footer.ndeletes = w->file_deletes;
	footer.repeats = (uint32) w->file_repeats;
	footer.ngroups = w->ngroups;
	footer.groups = w->groups;
	footer.max_key.data = w->last_key;
	footer.max_key.len = w->last_key_len;
	bloom = paimon_run_bloom_build(w->hashes, w->nhashes, &footer, &bloom_len);
	footer.bloom_page = paimon_file_append(w->file, PG_UINT32_MAX, bloom, bloom_len);
	pfree(bloom);

	initStringInfo(&buf);
	paimon_run_footer_encode(&footer, &buf);
	row->footer_page = paimon_file_append(w->file, PG_UINT32_MAX, buf.data, buf.len);
	row->footer_len = buf.len;
	row->storage_id = footer.storage_id;
	row->file_no = footer.file_no;
	row->bucket = w->p.bucket;
	row->level = w->p.level;
	row->min_position = w->p.min_position;
	row->max_position = w->p.max_position;
	row->ordinal = w->p.ordinal;
	row->row_count = w->file_rows;
	row->delete_count = w->file_deletes;
	row->append_count = 0;
	row->closing_xid = InvalidFullTransactionId;
	row->creation_time = GetCurrentTimestamp();
	row->source = w->p.source;
	row->schema_natts = w->natts;
}

static void
writer_close_file(PaimonRunWriter *w)
{
	MemoryContext old = MemoryContextSwitchTo(w->file_cxt);
	PaimonFileRow row;
	PaimonExtentList extents;
	uint32		npages;
	XLogRecPtr	lsn;

	memset(&row, 0, sizeof(row));
	writer_write_footer(w, &row);
	memset(&extents, 0, sizeof(extents));
	paimon_file_finish(w->file, &extents, &npages, &lsn);
	row.npages = npages;
	row.bytes = (int64) npages * BLCKSZ;

	/* results live in the writer's context until it is finished */
	MemoryContextSwitchTo(w->cxt);
	row.extents.nruns = row.extents.allocated = extents.nruns;
	row.extents.runs = palloc_array(PaimonExtentRun, Max(extents.nruns, 1));
	memcpy(row.extents.runs, extents.runs, extents.nruns * sizeof(PaimonExtentRun));
	row.min_key = writer_bound(w->groups[0].first_key.data, w->groups[0].first_key.len, false);
	row.max_key = writer_bound(w->last_key, w->last_key_len, true);
	if (w->nfiles == w->files_allocated)
	{
		w->files_allocated = Max(w->files_allocated * 2, 8);
		w->files = w->files == NULL ? palloc_array(PaimonFileRow, w->files_allocated)
			: repalloc_array(w->files, PaimonFileRow, w->files_allocated);
	}
	w->files[w->nfiles++] = row;
	w->file = NULL;
	w->file_no = 0;
	w->file_rows = w->file_deletes = w->file_repeats = 0;
	if (lsn > w->lsn)
		w->lsn = lsn;
	MemoryContextSwitchTo(old);
	MemoryContextReset(w->file_cxt);
}

/* ---------- groups ---------- */

/* Tries to write a numeric column as scaled integers; on success *scaled has them. */
static bool
writer_scale_numerics(const uint64 *values, const bool *nulls, uint32 n, uint64 **scaled, int *scale)
{
	uint64	   *out = NULL;
	bool		any = false;

	for (uint32 i = 0; i < n; i++)
	{
		int			s;
		int64		v;

		if (nulls != NULL && nulls[i])
			continue;
		if (!paimon_numeric_to_scaled((Datum) values[i], &s, &v) || (any && s != *scale))
			return false;
		if (!any)
		{
			out = palloc0_array(uint64, n);
			*scale = s;
			any = true;
		}
		out[i] = (uint64) v;
	}
	*scaled = out;
	return any;
}

static void
writer_append_group(PaimonRunWriter *w, const uint8 *bytes, uint32 len)
{
	PaimonRunGroupEntry *entry;
	uint8	   *first;

	if (w->ngroups == w->groups_allocated)
	{
		MemoryContext old = MemoryContextSwitchTo(w->file_cxt);

		w->groups_allocated = Max(w->groups_allocated * 2, 64);
		w->groups = w->groups == NULL ? palloc_array(PaimonRunGroupEntry, w->groups_allocated)
			: repalloc_array(w->groups, PaimonRunGroupEntry, w->groups_allocated);
		MemoryContextSwitchTo(old);
	}
	entry = &w->groups[w->ngroups];
	first = MemoryContextAlloc(w->file_cxt, Max(w->keys[0].len, 1));
	memcpy(first, w->keys[0].data, w->keys[0].len);
	entry->page = paimon_file_append(w->file, w->ngroups, bytes, len);
	entry->len = len;
	entry->nrows = w->nrows;
	entry->first_key.data = first;
	entry->first_key.len = w->keys[0].len;
	w->ngroups++;
	w->pages = (uint64) entry->page + (len + PAIMON_PAGE_PAYLOAD - 1) / PAIMON_PAGE_PAYLOAD;
}

/* The columns of the group at hand, into in->columns, ->values, ->nulls. */
static void
writer_prepare_columns(PaimonRunWriter *w, PaimonGroupInput *in)
{
	const uint64 **values = palloc_array(const uint64 *, w->natts + 1);
	const bool **nulls = palloc_array(const bool *, w->natts + 1);

	for (int c = 0; c < w->natts; c++)
	{
		PaimonRowColumn *column = &w->gathered[c];
		uint64	   *scaled;
		int			scale = 0;

		w->columns[c] = w->p.desc->columns[c];
		values[c] = NULL;
		nulls[c] = NULL;
		if (column->n == 0)
			continue;			/* nothing but NULL */
		if (column->n < w->nrows)
			paimon_rowcolumn_skip(column, w->nrows);
		values[c] = column->values;
		if (column->has_nulls)
			nulls[c] = column->nulls;
		if (w->is_numeric[c] && writer_scale_numerics(values[c], nulls[c], w->nrows, &scaled, &scale))
		{
			w->columns[c].phys = PAIMON_PHYS_SCALED;
			w->columns[c].width = scale;
			values[c] = scaled;
		}
	}
	in->columns = w->columns;
	in->values = (const uint64_t *const *) values;
	in->nulls = nulls;
}

/* Encodes and writes the rows gathered; closes the file if it is large enough now, and may be. */
static void
writer_flush_group(PaimonRunWriter *w, bool may_close)
{
	MemoryContext old;
	PaimonGroupInput in;
	PaimonAllocator alloc = {writer_alloc, w->group_cxt};
	uint8	   *bytes;
	uint32		len;
	PaimonResult result;

	if (w->nrows == 0)
		return;
	if (w->file == NULL)
		writer_open_file(w);

	old = MemoryContextSwitchTo(w->group_cxt);
	memset(&in, 0, sizeof(in));
	in.id.storage_id = w->storage_id;
	in.id.file_no = w->file_no;
	in.id.group_no = w->ngroups;
	in.id.bucket = w->p.bucket;
	in.nrows = w->nrows;
	in.ncolumns = w->natts;
	in.keys = w->keys;
	in.kinds = w->kinds;
	in.zstd_level = w->p.zstd_level;
	writer_prepare_columns(w, &in);
	result = paimon_group_encode(&in, &alloc, &bytes, &len);
	if (result == PAIMON_NO_SPACE)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("rows of table \"%s\" are too large to be stored", RelationGetRelationName(w->p.rel))));
	if (result != PAIMON_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("rows of table \"%s\" could not be encoded", RelationGetRelationName(w->p.rel)),
				 errdetail("Bucket %d, %u rows.", w->p.bucket, w->nrows)));
	writer_append_group(w, bytes, len);
	MemoryContextSwitchTo(old);

	w->file_rows += w->nrows;
	w->nrows = 0;
	w->bytes = 0;
	for (int c = 0; c < w->natts; c++)
	{
		w->gathered[c].n = 0;
		w->gathered[c].has_nulls = false;
	}
	w->arena = NULL;
	w->arena_left = 0;
	MemoryContextReset(w->group_cxt);

	if (!may_close)
		return;
	if (w->file_rows >= w->p.target_file_rows || (int64) (w->pages * BLCKSZ) >= w->p.target_file_size)
		writer_close_file(w);
}

/* Room for one record, aligned to 8, until the group is written. */
static char *
writer_arena(PaimonRunWriter *w, Size size)
{
	char	   *result;

	size = MAXALIGN(size);
	if (size > ARENA_BLOCK / 4)
		return MemoryContextAllocExtended(w->group_cxt, size, MCXT_ALLOC_HUGE);
	if (size > w->arena_left)
	{
		w->arena = MemoryContextAlloc(w->group_cxt, ARENA_BLOCK);
		w->arena_left = ARENA_BLOCK;
	}
	result = w->arena;
	w->arena += size;
	w->arena_left -= size;
	return result;
}

static void
writer_remember_hash(PaimonRunWriter *w, uint64 hash)
{
	/* a file is opened only when its first group is written: its first row starts the array anew */
	if (w->file == NULL && w->nrows == 0)
		w->nhashes = 0;
	if (w->nhashes == w->hashes_allocated)
	{
		Size		n = Max(w->hashes_allocated * 2, PAIMON_GROUP_MAX_ROWS);

		if (w->hashes == NULL)
			w->hashes = MemoryContextAllocExtended(w->cxt, n * sizeof(uint64), MCXT_ALLOC_HUGE);
		else
			w->hashes = repalloc_huge(w->hashes, n * sizeof(uint64));
		w->hashes_allocated = n;
	}
	w->hashes[w->nhashes++] = hash;
}

/*
 * A row out of order would make keys unfindable: refuse to write it.  (Repeats are the caller's business: see run.h.)  Returns whether the key is that of
 * the row before.
 */
static bool
writer_check_order(PaimonRunWriter *w, const uint8 *key, uint32 keylen)
{
	uint64		prefix;
	int			order;

	if (keylen > PAIMON_KEY_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("key of a row of table \"%s\" is too long", RelationGetRelationName(w->p.rel))));
	if (!w->has_last_key)
		return false;
	prefix = paimon_key_prefix(key, keylen);
	if (w->last_prefix < prefix)
		return false;
	order = w->last_prefix > prefix ? 1 : paimon_bytes_cmp(w->last_key, w->last_key_len, key, keylen);
	if (order > 0)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("rows for a run file of table \"%s\" are not in key order", RelationGetRelationName(w->p.rel)),
				 errdetail("Bucket %d.", w->p.bucket)));
	return order == 0;
}

/* The row added last was the last one of its key. */
static void
writer_end_key(PaimonRunWriter *w)
{
	if (!w->has_last_key)
		return;
	if (PAIMON_RUN_IS_DELETE(w->last_kind) && !(w->last_kind == PAIMON_KIND_UPDATE_BEFORE && w->p.retracts_stay) &&
		!(w->last_kind == PAIMON_KIND_DELETE && w->p.deletes_stay))
		w->file_deletes++;
}

/* Makes room for a row of `size` bytes, key included; returns its number in the group. */
static uint32
writer_begin_row(PaimonRunWriter *w, const uint8 *key, uint32 keylen, uint8 kind, Size size)
{
	bool		same = writer_check_order(w, key, keylen);
	uint32		row;

	/* before last_key moves on: it is the largest key of a file that may be closed now */
	if (!same)
		writer_end_key(w);
	if (w->nrows > 0 &&
		(w->nrows >= w->max_rows || w->bytes + size > GROUP_TARGET_BYTES ||
		 (!same && w->file_rows + w->nrows >= w->p.target_file_rows)))
	{
		CHECK_FOR_INTERRUPTS();
		writer_flush_group(w, !same);
	}
	if (!same)
	{
		paimon_copy_key(w->last_key, key, keylen);
		w->last_key_len = keylen;
		w->last_prefix = paimon_key_prefix(key, keylen);
		w->has_last_key = true;
		writer_remember_hash(w, paimon_key_hash(key, keylen));
	}
	else
		w->file_repeats++;
	w->last_kind = kind;

	row = w->nrows++;
	w->bytes += size;
	w->keys[row].len = keylen;
	w->kinds[row] = kind;
	return row;
}

uint64
paimon_run_add(PaimonRunWriter *w, const uint8 *key, uint32 keylen, uint8 kind, const uint8 *payload, uint32 len)
{
	Size		size = MAXALIGN(len) + keylen;
	uint32		row = writer_begin_row(w, key, keylen, kind, size);

	if (!w->p.rows_stay)
	{
		uint8	   *copy = (uint8 *) writer_arena(w, size);

		if (len > 0)
			memcpy(copy, payload, len);
		memcpy(copy + MAXALIGN(len), key, keylen);
		payload = copy;
		key = copy + MAXALIGN(len);
	}
	w->keys[row].data = key;
	paimon_row_decode_columns(w->p.desc, payload, len, w->gathered, row);
	return w->total_rows++;
}

/* Bytes that a value takes beside its word. */
static inline Size
writer_value_size(const PaimonRunWriter *w, int c, Datum value)
{
	const FormData_pg_attribute *att = TupleDescAttr(w->p.desc->tupdesc, c);

	if (att->attbyval)
		return 0;
	return att->attlen > 0 ? (Size) att->attlen : VARSIZE_ANY(DatumGetPointer(value));
}

uint64
paimon_run_add_values(PaimonRunWriter *w, const uint8 *key, uint32 keylen, uint8 kind, const Datum *values, const bool *nulls)
{
	Size		size = keylen;
	uint32		row;
	char	   *copy;

	for (int i = 0; i < w->nstored; i++)
	{
		int			c = w->stored[i];

		if (!nulls[c])
			size += MAXALIGN(writer_value_size(w, c, values[c]));
	}
	row = writer_begin_row(w, key, keylen, kind, size);
	copy = writer_arena(w, size);
	for (int i = 0; i < w->nstored; i++)
	{
		int			c = w->stored[i];
		uint64		value = (uint64) values[c];
		Size		len;

		if (nulls[c])
			continue;
		len = writer_value_size(w, c, values[c]);
		if (len > 0)
		{
			memcpy(copy, DatumGetPointer(values[c]), len);
			value = (uint64) PointerGetDatum(copy);
			copy += MAXALIGN(len);
		}
		paimon_rowcolumn_put(&w->gathered[c], row, value);
	}
	memcpy(copy, key, keylen);
	w->keys[row].data = (const uint8 *) copy;
	return w->total_rows++;
}

void
paimon_run_finish(PaimonRunWriter *w, PaimonFileRow **files, int *nfiles, XLogRecPtr *lsn)
{
	PaimonFileRow *out;

	writer_end_key(w);
	writer_flush_group(w, true);
	if (w->file != NULL)
		writer_close_file(w);

	out = palloc_array(PaimonFileRow, Max(w->nfiles, 1));
	for (int i = 0; i < w->nfiles; i++)
	{
		PaimonFileRow *row = &out[i];

		*row = w->files[i];
		row->extents.runs = palloc_array(PaimonExtentRun, Max(row->extents.nruns, 1));
		memcpy(row->extents.runs, w->files[i].extents.runs, row->extents.nruns * sizeof(PaimonExtentRun));
		row->min_key = (bytea *) memcpy(palloc(VARSIZE(row->min_key)), row->min_key, VARSIZE(row->min_key));
		row->max_key = (bytea *) memcpy(palloc(VARSIZE(row->max_key)), row->max_key, VARSIZE(row->max_key));
	}
	*files = out;
	*nfiles = w->nfiles;
	*lsn = w->lsn;

	/* from here on the guards are the caller's */
	w->nfiles = 0;
	MemoryContextDelete(w->cxt);
}

void
paimon_run_release_guards(const PaimonFileRow *files, int nfiles)
{
	for (int i = 0; i < nfiles; i++)
		paimon_file_guard_release(files[i].storage_id, files[i].file_no);
}
