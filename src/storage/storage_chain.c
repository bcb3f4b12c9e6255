/*-------------------------------------------------------------------------
 *
 * storage_chain.c
 *	  The chain of extents that carries the log: where a stream position lies, and where the stream ends.
 *
 * The metapage names the first extent; the first page of each extent names the next.  The extents'
 * positions rise along the chain; there are gaps where flushed extents were taken out from between kept ones.
 *
 * A backend remembers, per storage, which extent holds which positions.  An entry once right stays right for as long
 * as anybody may read those positions: an extent leaves the chain only when nobody can need it, and positions are never given out again.
 * Every page says itself what it holds, so a stale entry is noticed.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "storage/storage_internal.h"

/* Walks that meet an extent just taken out of the chain begin again; so often at most. */
#define MAX_WALKS 100

/* Storages remembered; when more come, all are forgotten. */
#define MAX_CHAINS 128

typedef struct ChainKey
{
	PaimonLocator locator;
	uint64        storage_id;
} ChainKey;

typedef struct Chain
{
	ChainKey       key;
	PaimonLogLink *links; /* by rising ordinal */
	int            nlinks;
	int            allocated;
} Chain;

static HTAB         *chains = NULL;
static Chain        *last_chain = NULL; /* asked for last; an entry of the table, which stays where it is until all go */
static MemoryContext chain_context = NULL;

static void
reset_chains(void)
{
	HASHCTL ctl = {.keysize = sizeof(ChainKey), .entrysize = sizeof(Chain)};

	if (chain_context == NULL)
		chain_context = AllocSetContextCreate(TopMemoryContext, "paimon log chains", ALLOCSET_SMALL_SIZES);
	chains = NULL;
	last_chain = NULL;
	MemoryContextReset(chain_context);
	ctl.hcxt = chain_context;
	chains = hash_create("paimon log chains", 16, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static Chain *
get_chain(Relation rel, uint64 storage_id)
{
	ChainKey key;
	Chain   *chain;
	bool     found;

	if (last_chain != NULL && last_chain->key.storage_id == storage_id && paimon_locator_equals(last_chain->key.locator, paimon_rel_locator(rel)))
		return last_chain;
	memset(&key, 0, sizeof(key));
	key.locator = paimon_rel_locator(rel);
	key.storage_id = storage_id;
	if (chains == NULL)
		reset_chains();
	chain = last_chain = hash_search(chains, &key, HASH_FIND, NULL);
	if (chain != NULL)
		return chain;
	if (hash_get_num_entries(chains) >= MAX_CHAINS)
		reset_chains();
	chain = last_chain = hash_search(chains, &key, HASH_ENTER, &found);
	chain->links = NULL;
	chain->nlinks = 0;
	chain->allocated = 0;
	return chain;
}

/* Forgets what this backend knows of a storage's chain. */
void
paimon_chain_forget(Relation rel, uint64 storage_id)
{
	get_chain(rel, storage_id)->nlinks = 0;
}

static void
add_link(Chain *chain, uint64 ordinal, uint32 extent)
{
	if (chain->nlinks == chain->allocated)
	{
		int allocated = chain->allocated == 0 ? 16 : chain->allocated * 2;

		if (chain->links == NULL)
			chain->links = MemoryContextAlloc(chain_context, sizeof(PaimonLogLink) * allocated);
		else
			chain->links = repalloc_huge(chain->links, sizeof(PaimonLogLink) * allocated);
		chain->allocated = allocated;
	}
	chain->links[chain->nlinks].ordinal = ordinal;
	chain->links[chain->nlinks].extent = extent;
	chain->nlinks++;
}

/*
 * Reads from an extent's first page where in the stream it begins and which extent comes next.  False if the page is not the
 * beginning of an extent of this log.
 */
bool
paimon_chain_link(Relation rel, uint64 storage_id, uint32 extent, uint64 *position, uint32 *next)
{
	PaimonPageSpecial special;

	if (extent >= PAIMON_MAX_EXTENTS || !paimon_page_identify(rel, paimon_extent_block(extent), &special))
		return false;
	if (special.kind != PAIMON_PAGE_LOG || special.owner != PAIMON_OWNER_LOG || special.storage_id != storage_id ||
		special.position % PAIMON_EXTENT_BYTES != 0)
		return false;
	*position = special.position;
	*next = special.unit;
	return true;
}

/*
 * Follows the chain behind what is known of it.  False if it leads to an extent that is not the log's.
 *
 * An extent that we were about to look at may have left the chain, and be used again at the log's end: then the step leaves out all that lies between.
 * Such a step goes to a position that does not follow, as steps over extents that were taken out rightly do.  *gap: there was one.
 */
static bool
extend_chain(Relation rel, uint64 storage_id, Chain *chain, bool *gap)
{
	PaimonLogLink last = chain->links[chain->nlinks - 1];
	uint64        position;
	uint32        next;

	*gap = false;
	if (!paimon_chain_link(rel, storage_id, last.extent, &position, &next) ||
		position != last.ordinal * PAIMON_EXTENT_BYTES)
		return false;
	while (next != PAIMON_NO_EXTENT)
	{
		uint32 extent = next;
		uint64 before = chain->links[chain->nlinks - 1].ordinal;

		CHECK_FOR_INTERRUPTS();
		if (!paimon_chain_link(rel, storage_id, extent, &position, &next) || position / PAIMON_EXTENT_BYTES <= before)
			return false;
		*gap |= position / PAIMON_EXTENT_BYTES != before + 1;
		add_link(chain, position / PAIMON_EXTENT_BYTES, extent);
	}
	return true;
}

/* Raises DATA_CORRUPTED: the chain is broken, or does not hold a position that it should. */
void
paimon_log_report_missing(Relation rel, uint64 position)
{
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("log of table \"%s\" does not hold position " UINT64_FORMAT,
															RelationGetRelationName(rel), position)));
}

/* Does a chain begin with these links? */
static bool
begins_with(const Chain *chain, const PaimonLogLink *links, int nlinks)
{
	if (chain->nlinks < nlinks)
		return false;
	for (int i = 0; i < nlinks; i++)
	{
		if (chain->links[i].ordinal != links[i].ordinal || chain->links[i].extent != links[i].extent)
			return false;
	}
	return true;
}

/*
 * Reads the chain anew, from the metapage on.
 *
 * A walk with gaps is believed when the next one finds the same.  Extents leave the chain before they can be used again, so a walk that begins
 * after a wrong step was made does not come to where it was made.
 */
static void
build_chain(Relation rel, uint64 storage_id, Chain *chain)
{
	PaimonMeta     meta;
	PaimonLogLink *seen = NULL;
	int            nseen = 0;
	bool           done = false;

	for (int walk = 0; walk < MAX_WALKS && !done; walk++)
	{
		bool gap;

		CHECK_FOR_INTERRUPTS();
		paimon_meta_read(rel, &meta);
		chain->nlinks = 0;
		if (meta.storage_id != storage_id)
			break;
		if (meta.log_extent == PAIMON_NO_EXTENT)
		{
			done = true;
			break;
		}
		add_link(chain, meta.log_position / PAIMON_EXTENT_BYTES, meta.log_extent);
		if (!extend_chain(rel, storage_id, chain, &gap))
			continue;
		done = !gap || (seen != NULL && begins_with(chain, seen, nseen));
		if (!done)
		{
			if (seen != NULL)
				pfree(seen);
			nseen = chain->nlinks;
			seen = palloc_extended(sizeof(PaimonLogLink) * nseen, MCXT_ALLOC_HUGE);
			memcpy(seen, chain->links, sizeof(PaimonLogLink) * nseen);
		}
	}
	if (seen != NULL)
		pfree(seen);
	if (done)
		return;
	chain->nlinks = 0;
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("chain of log extents of table \"%s\" is broken", RelationGetRelationName(rel)),
					errdetail("Its first extent is %u, of storage " UINT64_FORMAT "; storage " UINT64_FORMAT
							  " was looked for.",
							  meta.log_extent, meta.storage_id, storage_id)));
}

/* The chain as it is now; valid until the next call of a function of this file. */
PaimonLogLink *
paimon_chain_links(Relation rel, uint64 storage_id, int *nlinks)
{
	Chain *chain = get_chain(rel, storage_id);

	build_chain(rel, storage_id, chain);
	*nlinks = chain->nlinks;
	return chain->links;
}

/* The extent with that ordinal, among those known.  Ordinals rise, most by one: it is there or in front of it, where it would be if all did. */
static bool
find_link(const Chain *chain, uint64 ordinal, uint32 *extent)
{
	int lo = 0;
	int hi = chain->nlinks - 1;

	if (hi < 0 || ordinal < chain->links[0].ordinal)
		return false;
	hi = (int) Min((uint64) hi, ordinal - chain->links[0].ordinal);
	if (chain->links[hi].ordinal == ordinal)
	{
		*extent = chain->links[hi].extent;
		return true;
	}
	while (lo <= hi)
	{
		int mid = lo + (hi - lo) / 2;

		if (chain->links[mid].ordinal == ordinal)
		{
			*extent = chain->links[mid].extent;
			return true;
		}
		if (chain->links[mid].ordinal < ordinal)
			lo = mid + 1;
		else
			hi = mid - 1;
	}
	return false;
}

/* The extent that holds a stream position; false if the log has none. */
bool
paimon_chain_lookup(Relation rel, uint64 storage_id, uint64 position, uint32 *extent)
{
	Chain *chain = get_chain(rel, storage_id);
	uint64 ordinal = position / PAIMON_EXTENT_BYTES;
	bool   gap;

	if (find_link(chain, ordinal, extent))
		return true;
	if (chain->nlinks == 0 || ordinal <= chain->links[chain->nlinks - 1].ordinal ||
		!extend_chain(rel, storage_id, chain, &gap) || gap)
		build_chain(rel, storage_id, chain);
	return find_link(chain, ordinal, extent);
}

/*
 * Goes from page to page, from the one that holds *position, to the first that is not full.  That is the tail: a page that an append
 * filled has a successor, made by the same record.  Pages behind the tail may be anything, so they are never
 * looked at.  False if the pages are not those of the log.
 */
static bool
walk_to_tail(Relation rel, uint64 storage_id, uint32 extent, uint64 position, PaimonLogTail *tail)
{
	position -= position % PAIMON_PAGE_PAYLOAD;
	for (;;)
	{
		PaimonPageSpecial special;

		CHECK_FOR_INTERRUPTS();
		if (extent >= PAIMON_MAX_EXTENTS || !paimon_page_identify(rel, paimon_log_block(extent, position), &special) ||
			special.kind != PAIMON_PAGE_LOG || special.owner != PAIMON_OWNER_LOG || special.storage_id != storage_id ||
			special.position != position)
			return false;
		if (special.used < PAIMON_PAGE_PAYLOAD)
		{
			tail->position = position + special.used;
			tail->extent = extent;
			return true;
		}
		position += PAIMON_PAGE_PAYLOAD;
		if (position % PAIMON_EXTENT_BYTES == 0)
		{
			uint64 start;
			uint32 next;

			if (!paimon_chain_link(rel, storage_id, extent, &start, &next) || next == PAIMON_NO_EXTENT ||
				!paimon_chain_link(rel, storage_id, next, &start, &extent) || start < position)
				return false;
			position = start;
			extent = next;
		}
	}
}

/* See storage.h. */
void
paimon_log_find_tail(Relation rel, uint64 storage_id, PaimonLogTail *tail)
{
	PaimonMeta meta;

	if (tail->extent != PAIMON_NO_EXTENT && walk_to_tail(rel, storage_id, tail->extent, tail->position, tail))
		return;
	for (int walk = 0; walk < MAX_WALKS; walk++)
	{
		paimon_meta_read(rel, &meta);
		if (meta.storage_id != storage_id)
			break;
		if (meta.log_extent == PAIMON_NO_EXTENT)
		{
			tail->position = 0;
			tail->extent = PAIMON_NO_EXTENT;
			return;
		}
		if (walk_to_tail(rel, storage_id, meta.log_extent, meta.log_position, tail))
			return;
	}
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("end of the log of table \"%s\" was not found", RelationGetRelationName(rel)),
					errdetail("Its pages, from extent %u at position " UINT64_FORMAT " on, are damaged.",
							  meta.log_extent, meta.log_position)));
}

/* See storage.h. */
uint64
paimon_log_first(Relation rel, uint64 storage_id)
{
	PaimonMeta meta;

	paimon_meta_read(rel, &meta);
	return meta.log_position;
}
