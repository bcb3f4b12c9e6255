/*-------------------------------------------------------------------------
 *
 * storage_lock.c
 *	  Heavyweight locks on storages and files.
 *
 * Tags are of the advisory kind with class numbers that the SQL functions never give (those use 1 and 2).  They are keyed by
 * the storage's random id, so a rewritten table has locks of its own.  Being heavyweight they take part in
 * deadlock detection, show in pg_locks, and go with the transaction (or, for guards, the session).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/lock.h"

#include "storage/storage_internal.h"

/* field4 of the tag */
typedef enum PaimonLockClass
{
	PAIMON_LOCK_PUBLISH = 0x5041,
	PAIMON_LOCK_MODIFY = 0x5042,
	PAIMON_LOCK_FILE = 0x5043,
	PAIMON_LOCK_FLUSH = 0x5044,
	PAIMON_LOCK_COMPACT = 0x5045
} PaimonLockClass;

static void
set_tag(LOCKTAG *tag, uint64 key, PaimonLockClass class)
{
	SET_LOCKTAG_ADVISORY(*tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, class);
}

/*
 * A file's tag has room for 64 bits, not 128: two files may share one by chance, which makes a guard seem held (the sweep comes
 * back later) or wait for another's end.
 */
static void
set_file_tag(LOCKTAG *tag, uint64 storage_id, uint64 file_no)
{
	uint64 key[2] = {storage_id, file_no};

	set_tag(tag, hash_bytes_extended((const unsigned char *) key, sizeof(key), 0), PAIMON_LOCK_FILE);
}

/* See storage.h.  Survives the transaction's end: whoever takes it must release it, on errors too. */
void
paimon_file_guard_acquire(uint64 storage_id, uint64 file_no)
{
	LOCKTAG tag;

	set_file_tag(&tag, storage_id, file_no);
	(void) LockAcquire(&tag, ExclusiveLock, true, false);
}

void
paimon_file_guard_release(uint64 storage_id, uint64 file_no)
{
	LOCKTAG tag;

	set_file_tag(&tag, storage_id, file_no);
	(void) LockRelease(&tag, ExclusiveLock, true);
}

/* True if any session, this one included, holds the guard. */
bool
paimon_file_guard_is_held(uint64 storage_id, uint64 file_no)
{
	LOCKTAG           tag;
	LockAcquireResult result;

	set_file_tag(&tag, storage_id, file_no);
	result = LockAcquire(&tag, ShareLock, true, true);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ShareLock, true);

	/* ShareLock does not conflict with an ExclusiveLock of our own: ask for that one to learn of it. */
	result = LockAcquire(&tag, ExclusiveLock, true, true);
	if (result == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ExclusiveLock, true);
	return result == LOCKACQUIRE_ALREADY_HELD || result == LOCKACQUIRE_ALREADY_CLEAR;
}

/* See storage.h. */
void
paimon_lock_publish(uint64 storage_id)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_PUBLISH);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* As paimon_lock_publish, but does not wait; false if somebody else holds it. */
bool
paimon_try_lock_publish(uint64 storage_id)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_PUBLISH);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* See storage.h. */
void
paimon_lock_modify(uint64 storage_id, bool exclusive)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_MODIFY);
	(void) LockAcquire(&tag, exclusive ? ExclusiveLock : ShareLock, false, false);
}

/* See storage.h. */
void
paimon_lock_flush(uint64 storage_id)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_FLUSH);
	(void) LockAcquire(&tag, ExclusiveLock, false, false);
}

/* As paimon_lock_flush, but does not wait; false if somebody else holds it. */
bool
paimon_try_lock_flush(uint64 storage_id)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_FLUSH);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

/* See storage.h. */
bool
paimon_flush_lock_is_held(uint64 storage_id)
{
	LOCKTAG tag;

	set_tag(&tag, storage_id, PAIMON_LOCK_FLUSH);
	if (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ExclusiveLock, false);
	return false;
}

/* See storage.h.  A tag has room for 64 bits: two buckets may share one by chance, and then wait for each other's compaction. */
bool
paimon_try_lock_compact(uint64 storage_id, int bucket)
{
	LOCKTAG tag;
	uint64  key[2] = {storage_id, (uint64) bucket};

	set_tag(&tag, hash_bytes_extended((const unsigned char *) key, sizeof(key), 0), PAIMON_LOCK_COMPACT);
	return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
}
