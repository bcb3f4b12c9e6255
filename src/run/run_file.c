/*-------------------------------------------------------------------------
 *
 * run_file.c
 *	  Open run files: the backend's cache of decoded footers.
 *
 * A run file never changes and its number is never used again within a storage, so a cached footer is never stale: files leave the cache
 * only to make room.  What can change is the manifest's row (its level, for one), which is why nothing but the extents is kept of it.
 *
 * References are plain counts.  Nobody forces them to zero at the end of a transaction, since a slot may be cleared later than that: whoever
 * may be thrown out by an error drops its references in a reset callback of its own memory context.  A reference that is lost all
 * the same costs the memory of one footer until the backend ends, and nothing else.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "run/run_file.h"

#define FILE_CACHE_MAX 256		/* unreferenced files beyond this many in all are let go */

typedef struct FileEntry
{
	PaimonRunFileKey key;
	PaimonRunFile *file;
} FileEntry;

static HTAB *file_cache = NULL;
static dlist_head file_lru = DLIST_STATIC_INIT(file_lru);	/* unreferenced ones, least recently used first */
static MemoryContext file_cxt = NULL;

static void
file_key_init(PaimonRunFileKey *key, Relation rel, uint64 storage_id, uint64 file_no)
{
	memset(key, 0, sizeof(*key));
	key->locator = paimon_rel_locator(rel);
	key->storage_id = storage_id;
	key->file_no = file_no;
}

void
paimon_run_corrupt(const PaimonRunFile *file, uint32 group_no, const char *reason)
{
	Relation	rel = RelationIdGetRelation(file->relid);
	char	   *name = rel != NULL ? pstrdup(RelationGetRelationName(rel)) : psprintf("%u", file->relid);

	if (rel != NULL)
		RelationClose(rel);
	if (group_no == PG_UINT32_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg("table \"%s\", bucket %u, file %llu is damaged",
						name, file->footer.bucket, (unsigned long long) file->key.file_no),
				 errdetail("%s.", reason)));
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("table \"%s\", bucket %u, file %llu is damaged",
					name, file->footer.bucket, (unsigned long long) file->key.file_no),
			 errdetail("Row group %u: %s.", group_no, reason)));
}

Relation
paimon_run_file_relation(const PaimonRunFile *file)
{
	Relation	rel = RelationIdGetRelation(file->relid);

	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("table with OID %u does not exist", file->relid)));
	if (!paimon_locator_equals(paimon_rel_locator(rel), file->key.locator))
	{
		char	   *name = pstrdup(RelationGetRelationName(rel));

		RelationClose(rel);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("rows of table \"%s\" cannot be read because its storage was replaced", name)));
	}
	return rel;
}

void
paimon_run_file_read(const PaimonRunFile *file, uint32 page, uint32 off, uint32 len, void *dest)
{
	Relation	rel = paimon_run_file_relation(file);

	paimon_file_read(rel, file->key.storage_id, file->key.file_no, &file->extents, page, off, len, dest);
	RelationClose(rel);
}

/* Frees an unreferenced file with its groups and filter. */
static void
file_drop(PaimonRunFile *file)
{
	Assert(file->refcount == 0);
	dlist_delete(&file->lru);
	hash_search(file_cache, &file->key, HASH_REMOVE, NULL);
	paimon_run_group_forget_file(file);
	paimon_run_bloom_forget(file);
	MemoryContextDelete(file->cxt);
}

static void
file_cache_init(void)
{
	HASHCTL		ctl;

	file_cxt = AllocSetContextCreate(TopMemoryContext, "paimon run files", ALLOCSET_DEFAULT_SIZES);
	ctl.keysize = sizeof(PaimonRunFileKey);
	ctl.entrysize = sizeof(FileEntry);
	ctl.hcxt = file_cxt;
	file_cache = hash_create("paimon run files", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* The identity in the footer must be the one we looked for: the checksum alone would accept another file's footer. */
static const char *
file_check_identity(const PaimonRunFile *file, const PaimonFileRow *row)
{
	const PaimonRunFooter *f = &file->footer;

	if (f->storage_id != row->storage_id || f->file_no != row->file_no)
		return "footer belongs to another file";
	if (f->bucket != (uint32) row->bucket || f->nrows != (uint64) row->row_count)
		return "footer disagrees with the manifest";
	if (f->bloom_page >= (uint32) row->npages || f->groups[f->ngroups - 1].page >= (uint32) row->npages)
		return "footer points behind the end of the file";
	return NULL;
}

/* Fills a new file from its footer; the current context is the file's. */
static void
file_load(PaimonRunFile *file, const PaimonFileRow *row)
{
	uint8	   *bytes;
	const char *reason;
	uint64		nrows = 0;

	file->footer.bucket = row->bucket;	/* for messages, until the footer is known */
	file->extents.nruns = file->extents.allocated = row->extents.nruns;
	file->extents.runs = palloc_array(PaimonExtentRun, Max(row->extents.nruns, 1));
	if (row->extents.nruns > 0)
		memcpy(file->extents.runs, row->extents.runs, row->extents.nruns * sizeof(PaimonExtentRun));
	if (row->footer_len <= 0 || (uint64) row->footer_len > (uint64) row->npages * PAIMON_PAGE_PAYLOAD)
		paimon_run_corrupt(file, PG_UINT32_MAX, "length of the footer is impossible");

	bytes = palloc_extended(row->footer_len, MCXT_ALLOC_HUGE);
	paimon_run_file_read(file, row->footer_page, 0, row->footer_len, bytes);
	reason = paimon_run_footer_decode(bytes, row->footer_len, &file->footer);
	if (reason == NULL)
		reason = file_check_identity(file, row);
	if (reason == NULL)
		reason = paimon_run_bloom_open(file);
	if (reason != NULL)
	{
		file->footer.bucket = row->bucket;
		paimon_run_corrupt(file, PG_UINT32_MAX, reason);
	}

	file->min_key = file->footer.groups[0].first_key;
	file->prefixes = palloc_array(uint64, file->footer.ngroups);
	file->first_rows = palloc_array(uint64, file->footer.ngroups);
	for (uint32 i = 0; i < file->footer.ngroups; i++)
	{
		const PaimonRunGroupEntry *g = &file->footer.groups[i];

		file->prefixes[i] = paimon_key_prefix(g->first_key.data, g->first_key.len);
		file->first_rows[i] = nrows;
		nrows += g->nrows;
	}
	file->groups = palloc0_array(PaimonRunGroup *, file->footer.ngroups);
}

PaimonRunFile *
paimon_run_open(Relation rel, const PaimonRowDesc *desc, const PaimonFileRow *row)
{
	PaimonRunFileKey key;
	FileEntry  *entry;
	PaimonRunFile *file;
	MemoryContext cxt;
	MemoryContext old;
	bool		found;

	if (file_cache == NULL)
		file_cache_init();
	file_key_init(&key, rel, row->storage_id, row->file_no);
	entry = hash_search(file_cache, &key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		file = entry->file;
		file->desc = desc;
		file->relid = RelationGetRelid(rel);
		paimon_run_file_ref(file);
		return file;
	}

	/* built below the caller's context, so that an error leaves nothing */
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon run file", ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(cxt);
	file = palloc0_object(PaimonRunFile);
	file->key = key;
	file->cxt = cxt;
	file->relid = RelationGetRelid(rel);
	file->desc = desc;
	file_load(file, row);
	MemoryContextSwitchTo(old);

	/* decoding reads the relation, and what that may call could have opened the same file */
	entry = hash_search(file_cache, &key, HASH_ENTER, &found);
	if (found)
	{
		MemoryContextDelete(cxt);
		entry->file->desc = desc;
		paimon_run_file_ref(entry->file);
		return entry->file;
	}
	entry->file = file;
	MemoryContextSetParent(cxt, file_cxt);
	file->refcount = 1;
	while (hash_get_num_entries(file_cache) > FILE_CACHE_MAX && !dlist_is_empty(&file_lru))
		file_drop(dlist_head_element(PaimonRunFile, lru, &file_lru));
	return file;
}

void
paimon_run_file_ref(PaimonRunFile *file)
{
	if (file->refcount++ == 0)
		dlist_delete(&file->lru);
}

void
paimon_run_file_unref(PaimonRunFile *file)
{
	Assert(file->refcount > 0);
	if (--file->refcount > 0)
		return;
	dlist_push_tail(&file_lru, &file->lru);
	if (hash_get_num_entries(file_cache) > FILE_CACHE_MAX)
		file_drop(dlist_head_element(PaimonRunFile, lru, &file_lru));
}

void
paimon_run_close(PaimonRunFile *file)
{
	paimon_run_file_unref(file);
}

uint32
paimon_run_ngroups(const PaimonRunFile *file)
{
	return file->footer.ngroups;
}

const PaimonBytes *
paimon_run_group_first_key(const PaimonRunFile *file, uint32 group_no)
{
	return &file->footer.groups[group_no].first_key;
}

uint32
paimon_run_group_rows(const PaimonRunFile *file, uint32 group_no)
{
	return file->footer.groups[group_no].nrows;
}

uint64
paimon_run_group_first_row(const PaimonRunFile *file, uint32 group_no)
{
	return file->first_rows[group_no];
}

const PaimonBytes *
paimon_run_min_key(const PaimonRunFile *file)
{
	return &file->min_key;
}

const PaimonBytes *
paimon_run_max_key(const PaimonRunFile *file)
{
	return &file->footer.max_key;
}

int
paimon_run_bucket(const PaimonRunFile *file)
{
	return (int) file->footer.bucket;
}

uint64
paimon_run_file_no(const PaimonRunFile *file)
{
	return file->key.file_no;
}

bool
paimon_run_may_contain(PaimonRunFile *file, const uint8 *key, uint32 len)
{
	const PaimonBytes *max = &file->footer.max_key;

	if (paimon_bytes_cmp(key, len, file->min_key.data, file->min_key.len) < 0 ||
		paimon_bytes_cmp(key, len, max->data, max->len) > 0)
		return false;
	return paimon_run_bloom_test(file, paimon_key_hash(key, len));
}

uint32
paimon_run_find_group(PaimonRunFile *file, const uint8 *key, uint32 len)
{
	uint64		prefix = paimon_key_prefix(key, len);
	uint32		lo = 0;
	uint32		hi = file->footer.ngroups;

	/* the first group whose first key is > key lies in [lo, hi] */
	while (lo < hi)
	{
		uint32		mid = lo + (hi - lo) / 2;
		const PaimonBytes *first = &file->footer.groups[mid].first_key;
		bool		greater;

		if (file->prefixes[mid] != prefix)
			greater = file->prefixes[mid] > prefix;
		else
			greater = paimon_bytes_cmp(first->data, first->len, key, len) > 0;
		if (greater)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo == 0 ? 0 : lo - 1;
}

uint32
paimon_run_find_first_group(PaimonRunFile *file, const uint8 *key, uint32 len)
{
	uint32		group_no = paimon_run_find_group(file, key, len);

	/* the rows before a group's first one may have its key, too */
	while (file->footer.repeats > 0 && group_no > 0)
	{
		const PaimonBytes *first = &file->footer.groups[group_no].first_key;

		if (paimon_bytes_cmp(first->data, first->len, key, len) != 0)
			break;
		group_no--;
	}
	return group_no;
}

uint64
paimon_run_repeats(const PaimonRunFile *file)
{
	return file->footer.repeats;
}

PaimonRunGroup *
paimon_run_resolve_tid(Relation rel, const PaimonRowDesc *desc, const PaimonPageSpecial *special,
					   BlockNumber block, PaimonRunFile **file)
{
	PaimonRunFileKey key;
	FileEntry  *entry = NULL;
	PaimonRunFile *f;
	PaimonRunGroup *g = NULL;

	/* only the first page of a row group has ctids */
	if (special->kind != PAIMON_PAGE_FILE || special->unit == PG_UINT32_MAX)
		return NULL;
	file_key_init(&key, rel, special->storage_id, special->owner);
	if (file_cache != NULL)
		entry = hash_search(file_cache, &key, HASH_FIND, NULL);
	if (entry != NULL)
	{
		f = entry->file;
		f->desc = desc;
		paimon_run_file_ref(f);
	}
	else
	{
		PaimonFileRow row;

		if (!paimon_catalog_file_any(special->storage_id, special->owner, &row))
			return NULL;
		f = paimon_run_open(rel, desc, &row);
	}
	if (special->unit < f->footer.ngroups && f->footer.groups[special->unit].page == special->position &&
		paimon_file_block(&f->extents, special->position) == block)
		g = paimon_run_group(f, special->unit);
	if (g == NULL)
	{
		paimon_run_close(f);
		return NULL;
	}
	if (file != NULL)
		*file = f;
	else
		paimon_run_close(f);
	return g;
}

void
paimon_run_prefetch(PaimonRunFile *file, uint32 group_no)
{
	const PaimonRunGroupEntry *e = &file->footer.groups[group_no];
	Relation	rel = paimon_run_file_relation(file);

	paimon_file_prefetch(rel, &file->extents, e->page, (e->len + PAIMON_PAGE_PAYLOAD - 1) / PAIMON_PAGE_PAYLOAD);
	RelationClose(rel);
}

/* What a whole-file check counts. */
typedef struct FileCounts
{
	uint64		removals;		/* keys whose oldest record is a REMOVE, ... */
	uint64		deletes;		/* ... a -D */
	uint64		retracts;		/* ... a -U */
	uint64		repeats;
	uint8		last_kind;		/* of the row before */
	bool		any;
} FileCounts;

/* The row before was the last of its key. */
static void
file_count_key(FileCounts *counts)
{
	if (!counts->any)
		return;
	counts->removals += counts->last_kind == PAIMON_KIND_REMOVE;
	counts->deletes += counts->last_kind == PAIMON_KIND_DELETE;
	counts->retracts += counts->last_kind == PAIMON_KIND_UPDATE_BEFORE;
}

/* Whether -D and -U are delete markers depends on the table's options when the file was written. */
static bool
deletes_agree(const FileCounts *counts, uint64 ndeletes)
{
	uint64		rest = ndeletes - counts->removals;

	return ndeletes >= counts->removals &&
		(rest == 0 || rest == counts->deletes || rest == counts->retracts || rest == counts->deletes + counts->retracts);
}

/* One group of a whole-file check. */
static void
file_check_group(PaimonRunFile *file, uint32 group_no, FileCounts *counts)
{
	PaimonRunGroup *g = paimon_run_group(file, group_no);
	const PaimonBytes *keys;
	const uint64 *prefixes;
	const PaimonBytes *limit;
	uint32		fixed_len;
	uint32		n = paimon_run_group_nrows(g);
	bool		repeats = file->footer.repeats > 0;
	int			c;

	if (paimon_group_check(paimon_run_group_core(g)) != PAIMON_OK)
		paimon_run_corrupt(file, group_no, "contents are damaged");
	paimon_run_group_keys(g, &keys, &prefixes, &fixed_len);
	limit = group_no + 1 < file->footer.ngroups ? &file->footer.groups[group_no + 1].first_key : &file->footer.max_key;
	if (paimon_bytes_cmp(keys[0].data, keys[0].len, file->footer.groups[group_no].first_key.data,
						 file->footer.groups[group_no].first_key.len) != 0)
		paimon_run_corrupt(file, group_no, "first key disagrees with the footer");
	for (uint32 i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		c = i > 0 ? paimon_bytes_cmp(keys[i - 1].data, keys[i - 1].len, keys[i].data, keys[i].len) : -1;
		if (c > 0 || (c == 0 && !repeats))
			paimon_run_corrupt(file, group_no, "keys are not in order");
		if (!paimon_run_bloom_test(file, paimon_key_hash(keys[i].data, keys[i].len)))
			paimon_run_corrupt(file, group_no, "a key is missing in the bloom filter");
		if (c == 0)
			counts->repeats++;
		else if (i > 0)
			file_count_key(counts);
		counts->last_kind = paimon_run_group_kind(g, i);
		counts->any = true;
	}
	c = paimon_bytes_cmp(keys[n - 1].data, keys[n - 1].len, limit->data, limit->len);
	if (group_no + 1 < file->footer.ngroups ? c > 0 || (c == 0 && !repeats) : c != 0)
		paimon_run_corrupt(file, group_no, "last key disagrees with the footer");
	if (group_no + 1 < file->footer.ngroups && c == 0)
		counts->repeats++;
	else
		file_count_key(counts);
	paimon_run_group_unref(g);
}

void
paimon_run_check(PaimonRunFile *file)
{
	FileCounts	counts = {0};

	for (uint32 i = 0; i < file->footer.ngroups; i++)
	{
		CHECK_FOR_INTERRUPTS();
		file_check_group(file, i, &counts);
	}
	if (!deletes_agree(&counts, file->footer.ndeletes))
		paimon_run_corrupt(file, PG_UINT32_MAX, "number of delete markers disagrees with the footer");
	if (counts.repeats != file->footer.repeats)
		paimon_run_corrupt(file, PG_UINT32_MAX, "number of repeated keys disagrees with the footer");
}
