/*-------------------------------------------------------------------------
 *
 * storage_page.c
 *	  The frame that all our pages have in common: special space, its checksum, the page's bounds.
 *
 * pd_lower stands behind the payload in use and pd_upper at the special space, so that core, which copies
 * and logs our pages as standard ones, leaves out zeros only.  Everything that changes `used` or another field of the special space
 * ends with paimon_page_seal.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "storage/smgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

static uint32
special_crc(const PaimonPageSpecial *special)
{
	PaimonPageSpecial copy = *special;

	copy.crc = 0;
	return paimon_crc32c(0, &copy, sizeof(copy));
}

/* Makes an empty page; the payload is zeroed.  The caller seals it after filling. */
void
paimon_page_init(Page page, PaimonPageKind kind, uint64 storage_id, uint64 owner, uint64 position, uint32 unit)
{
	PaimonPageSpecial *special;

	PageInit(page, BLCKSZ, sizeof(PaimonPageSpecial));
	special = paimon_page_special(page);
	special->storage_id = storage_id;
	special->owner = owner;
	special->position = position;
	special->unit = unit;
	special->used = 0;
	special->kind = (uint16) kind;
	special->reserved = 0;
	paimon_page_seal(page);
}

/* Brings bounds and checksum in line with the special space.  Changes only bytes: also for redo. */
void
paimon_page_seal(Page page)
{
	PageHeader         header = (PageHeader) page;
	PaimonPageSpecial *special = paimon_page_special(page);

	header->pd_lower = (LocationIndex) (PAIMON_PAGE_DATA_OFFSET + special->used);
	header->pd_upper = PAIMON_PAGE_SPECIAL_OFFSET;
	special->crc = special_crc(special);
}

/* What is wrong with the frame of a page, for an error's detail; NULL if nothing is. */
const char *
paimon_page_damage(Page page)
{
	PageHeader         header = (PageHeader) page;
	PaimonPageSpecial *special = paimon_page_special(page);

	if (PageIsNew(page))
		return "The page is empty.";
	if (header->pd_special != PAIMON_PAGE_SPECIAL_OFFSET)
		return "The page header is damaged.";
	if (special->crc != special_crc(special))
		return "The checksum of the page's description does not match.";
	if (special->used > PAIMON_PAGE_PAYLOAD || header->pd_lower != PAIMON_PAGE_DATA_OFFSET + special->used ||
		header->pd_upper != PAIMON_PAGE_SPECIAL_OFFSET)
		return "The page header does not match the page's description.";
	return NULL;
}

/* Is this a sound page, and the one that should be here? */
bool
paimon_page_matches(Page page, PaimonPageKind kind, uint64 storage_id, uint64 owner, uint64 position)
{
	PaimonPageSpecial *special = paimon_page_special(page);

	return paimon_page_damage(page) == NULL && special->kind == kind && special->storage_id == storage_id &&
		   special->owner == owner && special->position == position;
}

/* Raises DATA_CORRUPTED for a page that is not `what` ("page 3 of file 17"). */
void
paimon_page_report(Relation rel, BlockNumber block, Page page, const char *what)
{
	const char       *damage = paimon_page_damage(page);
	PaimonPageSpecial special = *paimon_page_special(page);

	if (damage != NULL)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("damaged page in block %u of table \"%s\", where %s should be", block,
							   RelationGetRelationName(rel), what),
						errdetail_internal("%s", damage)));
	ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
					errmsg("wrong page in block %u of table \"%s\", where %s should be", block,
						   RelationGetRelationName(rel), what),
					errdetail("The page is of kind %u, owner " UINT64_FORMAT ", position " UINT64_FORMAT
							  ", storage " UINT64_FORMAT ", with %u bytes in use.",
							  special.kind, special.owner, special.position, special.storage_id, special.used)));
}

/*
 * Length of the main fork's file, in blocks.  Not RelationGetNumberOfBlocks: that asks the access method, which
 * may answer with a size for the planner.
 */
BlockNumber
paimon_fork_blocks(Relation rel)
{
	return smgrnblocks(RelationGetSmgr(rel), MAIN_FORKNUM);
}

/* See storage.h. */
bool
paimon_page_identify(Relation rel, BlockNumber block, PaimonPageSpecial *special)
{
	Buffer      buf;
	Page        page;
	const char *damage;

	if (block >= paimon_fork_blocks(rel))
		return false;
	buf = ReadBuffer(rel, block);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (PageIsNew(page))
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	damage = paimon_page_damage(page);
	*special = *paimon_page_special(page);
	UnlockReleaseBuffer(buf);
	if (damage != NULL)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("damaged page in block %u of table \"%s\"", block, RelationGetRelationName(rel)),
						errdetail_internal("%s", damage)));
	return true;
}
