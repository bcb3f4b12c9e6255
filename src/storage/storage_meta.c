/*-------------------------------------------------------------------------
 *
 * storage_meta.c
 *	  The metapage: identity of a storage, its counters, the anchor of log and map.
 *
 * Block 0 of the main fork.  Every change is one WAL record made under the exclusive
 * buffer lock; the checksum is renewed with each and checked at each read.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "access/xloginsert.h"
#include "catalog/pg_class.h"
#include "catalog/storage.h"
#include "catalog/storage_xlog.h"
#include "miscadmin.h"
#include "storage/smgr.h"

#include "core/core.h"
#include "storage/storage_internal.h"

/* Storage ids: random, and never 0. */
static uint64
new_storage_id(void)
{
	uint64 id = 0;

	while (id == 0)
	{
		if (!pg_strong_random(&id, sizeof(id)))
			ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random storage identifier")));
	}
	return id;
}

static void
fill_metapage(Page page, uint64 storage_id)
{
	PaimonMeta *meta;

	paimon_page_init(page, PAIMON_PAGE_META, storage_id, PAIMON_OWNER_FREE, 0, PAIMON_NO_UNIT);
	meta = (PaimonMeta *) paimon_page_data(page);
	meta->magic = PAIMON_META_MAGIC;
	meta->read_version = PAIMON_FORMAT_VERSION;
	meta->write_version = PAIMON_FORMAT_VERSION;
	meta->storage_id = storage_id;
	meta->next_file_no = PAIMON_FIRST_FILE_NO;
	meta->next_row_no = 1;
	meta->log_position = 0;
	meta->log_extent = PAIMON_NO_EXTENT;
	meta->nextents = 0;
	meta->flags = 0;
	paimon_page_special(page)->used = sizeof(PaimonMeta);
	paimon_page_seal(page);
	paimon_meta_seal(page);
}

/*
 * Writes block 0 of a fork that was just created, past the buffer manager.
 *
 * The file is extended first and the record follows: if a checkpoint begins in between, replay starts before the
 * record; if it begins later, it finds the request to sync the file.
 */
static void
write_first_block(SMgrRelation srel, ForkNumber fork, uint64 storage_id, bool log)
{
	PaimonIoBlock block;
	PaimonLocator locator = paimon_smgr_locator(srel);

	fill_metapage((Page) block.data, storage_id);
	PageSetChecksumInplace((Page) block.data, PAIMON_META_BLOCK);
	smgrextend(srel, fork, PAIMON_META_BLOCK, block.data, false);
	if (log)
		log_newpage(&locator, fork, PAIMON_META_BLOCK, (Page) block.data, true);
}

/*
 * See storage.h.  The caller has created the main fork (RelationCreateStorage); the init fork of an unlogged relation is
 * created here.
 */
uint64
paimon_storage_create(SMgrRelation srel, char persistence)
{
	uint64        storage_id = new_storage_id();
	PaimonLocator locator = paimon_smgr_locator(srel);

	/* With wal_level = minimal, core syncs (or logs) new permanent files at commit. */
	write_first_block(srel, MAIN_FORKNUM, storage_id, persistence == RELPERSISTENCE_PERMANENT && XLogIsNeeded());

	/* A relation truncated in place still has its init fork, which never changes. */
	if (persistence == RELPERSISTENCE_UNLOGGED && !smgrexists(srel, INIT_FORKNUM))
	{
		/* Recovery copies this fork before it replays anything that a commit could have flushed: sync at once. */
		smgrcreate(srel, INIT_FORKNUM, false);
		log_smgrcreate(&locator, INIT_FORKNUM);
		write_first_block(srel, INIT_FORKNUM, 0, true);
		smgrimmedsync(srel, INIT_FORKNUM);
	}
	return storage_id;
}

static uint32
meta_crc(const PaimonMeta *meta)
{
	return paimon_crc32c(0, meta, offsetof(PaimonMeta, crc));
}

void
paimon_meta_seal(Page page)
{
	PaimonMeta *meta = (PaimonMeta *) paimon_page_data(page);

	meta->crc = meta_crc(meta);
}

/*
 * Pins and locks the metapage (mode as LockBuffer's), checked; *meta points into it.  Exclusive mode refuses a format that
 * this version may read but not write.
 */
Buffer
paimon_meta_lock(Relation rel, int mode, PaimonMeta **meta)
{
	Buffer      buf = ReadBuffer(rel, PAIMON_META_BLOCK);
	Page        page = BufferGetPage(buf);
	PaimonMeta *m = (PaimonMeta *) paimon_page_data(page);

	LockBuffer(buf, mode);
	if (paimon_page_damage(page) != NULL || paimon_page_special(page)->kind != PAIMON_PAGE_META ||
		paimon_page_special(page)->used < sizeof(PaimonMeta))
		paimon_page_report(rel, PAIMON_META_BLOCK, page, "the metapage");
	if (m->magic != PAIMON_META_MAGIC || m->crc != meta_crc(m) ||
		m->storage_id != paimon_page_special(page)->storage_id)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
						errmsg("damaged metapage in block %d of table \"%s\"", PAIMON_META_BLOCK,
							   RelationGetRelationName(rel)),
						errdetail("Its checksum does not match its contents.")));
	if ((mode == BUFFER_LOCK_EXCLUSIVE ? m->write_version : m->read_version) > PAIMON_FORMAT_VERSION)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" was written by a newer version of paimon_am", RelationGetRelationName(rel)),
				 errdetail("Its storage has format version %u (read) and %u (write); this server knows version %d.",
						   m->read_version, m->write_version, PAIMON_FORMAT_VERSION),
				 errhint("Install the newer version of paimon_am.")));
	*meta = m;
	return buf;
}

/* Copies the metapage's content. */
void
paimon_meta_read(Relation rel, PaimonMeta *copy)
{
	PaimonMeta *meta;
	Buffer      buf = paimon_meta_lock(rel, BUFFER_LOCK_SHARE, &meta);

	*copy = *meta;
	UnlockReleaseBuffer(buf);
}

/* Logs a change of the locked metapage.  In a critical section. */
static void
log_metapage(Relation rel, Buffer buf, bool identity)
{
	PaimonXlogBlock block = {.buffer = buf};
	Page            page = BufferGetPage(buf);

	paimon_meta_seal(page);
	paimon_xlog_touch(&block, paimon_page_data(page), sizeof(PaimonMeta));
	if (identity)
	{
		paimon_page_seal(page);
		paimon_xlog_touch(&block, paimon_page_special(page), sizeof(PaimonPageSpecial));
	}
	paimon_xlog_patch(rel, &block, 1, InvalidFullTransactionId);
}

/* See storage.h. */
uint64
paimon_storage_id(Relation rel)
{
	PaimonMeta meta;

	paimon_meta_read(rel, &meta);
	return meta.storage_id;
}

/* See storage.h. */
bool
paimon_storage_is_reborn(Relation rel)
{
	PaimonMeta meta;

	paimon_meta_read(rel, &meta);
	return (meta.flags & PAIMON_META_REBORN) != 0;
}

/* See storage.h. */
uint64
paimon_storage_assign_id(Relation rel)
{
	uint64      id = new_storage_id();
	PaimonMeta *meta;
	Buffer      buf = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta);

	if (meta->storage_id != 0)
		id = meta->storage_id;
	else
	{
		START_CRIT_SECTION();
		meta->storage_id = id;
		meta->flags |= PAIMON_META_REBORN;
		paimon_page_special(BufferGetPage(buf))->storage_id = id;
		log_metapage(rel, buf, true);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(buf);
	return id;
}

/* Adds n to a counter of the metapage and returns its value before. */
static uint64
take_numbers(Relation rel, Size field, uint32 n)
{
	PaimonMeta *meta;
	Buffer      buf = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta);
	uint64     *counter = (uint64 *) ((char *) meta + field);
	uint64      first = *counter;

	START_CRIT_SECTION();
	*counter += n;
	log_metapage(rel, buf, false);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buf);
	return first;
}

/* See storage.h. */
uint64
paimon_storage_new_file_no(Relation rel, uint32 n)
{
	return take_numbers(rel, offsetof(PaimonMeta, next_file_no), n);
}

/* See storage.h. */
uint64
paimon_storage_next_file_no(Relation rel)
{
	PaimonMeta meta;

	paimon_meta_read(rel, &meta);
	return meta.next_file_no;
}

/* See storage.h. */
uint64
paimon_storage_new_row_no(Relation rel, uint32 n)
{
	return take_numbers(rel, offsetof(PaimonMeta, next_row_no), n);
}

/* See storage.h. */
void
paimon_storage_follow_row_no(Relation rel, Relation other)
{
	PaimonMeta  theirs;
	PaimonMeta *meta;
	Buffer      buf;

	paimon_meta_read(other, &theirs);
	buf = paimon_meta_lock(rel, BUFFER_LOCK_EXCLUSIVE, &meta);
	if (meta->next_row_no < theirs.next_row_no)
	{
		START_CRIT_SECTION();
		meta->next_row_no = theirs.next_row_no;
		log_metapage(rel, buf, false);
		END_CRIT_SECTION();
	}
	UnlockReleaseBuffer(buf);
}
