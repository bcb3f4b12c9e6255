/*-------------------------------------------------------------------------
 *
 * scan_manifest.c
 *	  Manifests kept by a backend: the files of a storage as sorted runs, and its log's row, as they were read last (H17).
 *
 * What was read is of one manifest version; paimon_shared_sees_version tells whether another snapshot sees the same.  If not, or if that cannot be told (on a
 * standby; a writer's own publish; announcements that are gone), the log's row is read: it has the version too, and often the files need not be read
 * again.  Manifests are not changed once they are made: readers hold references, which a reset callback of their memory context gives back.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "fmgr.h"
#include "lib/ilist.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "scan/scan_internal.h"

/* A backend keeps so many, and so much, least recently used ones going first; larger ones are not kept. */
#define MANIFESTS_MAX		128
#define MANIFESTS_BYTES		((Size) 16 * 1024 * 1024)
#define MANIFEST_KEEP_BYTES	(MANIFESTS_BYTES / 4)

struct PaimonManifest
{
	PaimonLevels *levels;
	PaimonLogRow log;
	FullTransactionId writer;	/* of the log's row; Invalid: frozen, or no row */
	MemoryContext cxt;
	Size		bytes;
	uint32		refs;			/* of readers, and 1 while it is kept */
	bool		kept;
	dlist_node	lru;			/* while it is kept */
};

typedef struct ManifestEntry
{
	uint64		storage_id;		/* hash key */
	PaimonManifest *manifest;
} ManifestEntry;

/* A reader's reference. */
struct PaimonManifestRef
{
	MemoryContextCallback callback;
	PaimonManifest *manifest;
};

/* For tests: how often a kept manifest was taken without reading, after reading the log's row, and not at all. */
typedef enum ManifestRead
{
	READ_NOTHING,
	READ_VERSION,
	READ_ROWS,
	READ_KINDS
} ManifestRead;

#ifdef PAIMON_TESTING
static int64 reads[READ_KINDS];
#define COUNT_READ(kind) (reads[kind]++)
#else
#define COUNT_READ(kind) ((void) 0)
#endif

static HTAB *manifests = NULL;
static dlist_head manifest_lru = DLIST_STATIC_INIT(manifest_lru);
static Size manifests_bytes = 0;

static void
drop_reference(PaimonManifest *m)
{
	Assert(m->refs > 0);
	if (--m->refs == 0)
		MemoryContextDelete(m->cxt);
}

static void
ref_callback(void *arg)
{
	PaimonManifestRef *ref = arg;

	if (ref->manifest != NULL)
		drop_reference(ref->manifest);
	ref->manifest = NULL;
}

void
paimon_manifest_release(PaimonManifestRef *ref)
{
	ref_callback(ref);
}

/* Lets go of a kept manifest; readers may still have it. */
static void
forget(PaimonManifest *m)
{
	(void) hash_search(manifests, &m->log.storage_id, HASH_REMOVE, NULL);
	dlist_delete(&m->lru);
	manifests_bytes -= m->bytes;
	m->kept = false;
	drop_reference(m);
}

/* Keeps a manifest, in place of another of the storage. */
static void
keep(PaimonManifest *m)
{
	ManifestEntry *entry;
	bool		found;

	m->bytes = MemoryContextMemAllocated(m->cxt, true);
	if (m->bytes > MANIFEST_KEEP_BYTES)
		return;
	if (manifests == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(uint64), .entrysize = sizeof(ManifestEntry)};

		manifests = hash_create("paimon manifests", MANIFESTS_MAX, &ctl, HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(manifests, &m->log.storage_id, HASH_ENTER, &found);
	if (found)
	{
		PaimonManifest *old = entry->manifest;

		dlist_delete(&old->lru);
		manifests_bytes -= old->bytes;
		old->kept = false;
		drop_reference(old);
	}
	entry->manifest = m;
	m->kept = true;
	m->refs++;
	manifests_bytes += m->bytes;
	dlist_push_tail(&manifest_lru, &m->lru);
	while (hash_get_num_entries(manifests) > MANIFESTS_MAX || manifests_bytes > MANIFESTS_BYTES)
		forget(dlist_head_element(PaimonManifest, lru, &manifest_lru));
}

static PaimonManifest *
find(uint64 storage_id)
{
	ManifestEntry *entry;

	if (manifests == NULL)
		return NULL;
	entry = hash_search(manifests, &storage_id, HASH_FIND, NULL);
	return entry != NULL ? entry->manifest : NULL;
}

/* Reads the rows; *own: the running transaction has changed them. */
static PaimonManifest *
read_rows(PaimonTable *table, Relation rel, Snapshot snapshot, bool *own)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon manifest", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	PaimonManifest *m = palloc0_object(PaimonManifest);

	m->cxt = cxt;
	m->levels = paimon_levels_load(table->storage_id, RelationGetRelationName(rel), snapshot, &m->log);
	*own = TransactionIdIsCurrentTransactionId(m->log.writer);
	m->writer = paimon_version_writer(m->log.writer);
	MemoryContextSwitchTo(old);

	/* not below the reader's context: that would take it away before its callback is called */
	MemoryContextSetParent(cxt, CacheMemoryContext);
	return m;
}

/* Is a kept manifest what the snapshot sees, according to the log's row?  Not for one's own changes: they go by commands. */
static bool
same_version(const PaimonManifest *m, PaimonTable *table, Snapshot snapshot)
{
	PaimonLogRow log;

	(void) paimon_catalog_log_get(table->storage_id, snapshot, &log);
	return log.version == m->log.version && !TransactionIdIsCurrentTransactionId(log.writer);
}

/* What is kept of the storage, if the snapshot sees just that. */
static PaimonManifest *
find_seen(PaimonTable *table, Snapshot snapshot)
{
	PaimonManifest *m = find(table->storage_id);

	if (m == NULL)
		return NULL;
	if (paimon_shared_sees_version(table->shared, snapshot, m->log.version, m->writer))
		COUNT_READ(READ_NOTHING);
	else if (same_version(m, table, snapshot))
		COUNT_READ(READ_VERSION);
	else
		return NULL;
	if (dlist_tail_node(&manifest_lru) != &m->lru)
	{
		dlist_delete(&m->lru);
		dlist_push_tail(&manifest_lru, &m->lru);
	}
	return m;
}

bool
paimon_manifest_kept_rows(const PaimonTable *table, Snapshot snapshot, double *rows)
{
	const PaimonManifest *m = table->shared != NULL ? find(table->storage_id) : NULL;

	if (m == NULL || !paimon_shared_sees_version(table->shared, snapshot, m->log.version, m->writer))
		return false;
	*rows = 0;
	for (int i = 0; i < m->levels->nfiles; i++)
		*rows += (double) m->levels->files[i].row_count - 2.0 * m->levels->files[i].delete_count;
	return true;
}

/*
 * What the snapshot sees of a storage's manifest; *ref, in CurrentMemoryContext, holds it until paimon_manifest_release or until that context is reset.
 * Raises what paimon_levels_load raises.  Only tables with a shared entry have their manifests kept: temporary ones are of no use to others, and change much.
 */
PaimonManifest *
paimon_manifest_open(PaimonTable *table, Relation rel, Snapshot snapshot, PaimonManifestRef **ref)
{
	PaimonManifest *m = table->shared != NULL ? find_seen(table, snapshot) : NULL;
	bool		own;

	*ref = palloc0_object(PaimonManifestRef);
	(*ref)->callback.func = ref_callback;
	(*ref)->callback.arg = *ref;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &(*ref)->callback);
	if (m == NULL)
	{
		COUNT_READ(READ_ROWS);
		m = read_rows(table, rel, snapshot, &own);
		if (table->shared != NULL && !own)
			keep(m);
	}
	m->refs++;
	(*ref)->manifest = m;
	return m;
}

const PaimonLevels *
paimon_manifest_levels(const PaimonManifest *m)
{
	return m->levels;
}

const PaimonLogRow *
paimon_manifest_log(const PaimonManifest *m)
{
	return &m->log;
}

#ifdef PAIMON_TESTING

PG_FUNCTION_INFO_V1(paimon_test_manifest_reads);

/* test_manifest_reads(): how manifests were come by in this session since the last call. */
Datum
paimon_test_manifest_reads(PG_FUNCTION_ARGS)
{
	char	   *text = psprintf("nothing " INT64_FORMAT ", version " INT64_FORMAT ", rows " INT64_FORMAT, reads[READ_NOTHING],
								reads[READ_VERSION], reads[READ_ROWS]);

	memset(reads, 0, sizeof(reads));
	PG_RETURN_TEXT_P(cstring_to_text(text));
}

#endif							/* PAIMON_TESTING */
