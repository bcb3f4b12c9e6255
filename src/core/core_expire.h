/*-------------------------------------------------------------------------
 *
 * core_expire.h
 *	  Which snapshots of a table expire: a pure function of their times, the table's retention and the clock.
 *
 * Snapshots are numbered without gaps and expire oldest first, so the answer is one id: everything below it goes.  Nothing here keeps state or
 * reads a clock.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_CORE_EXPIRE_H
#define PAIMON_CORE_EXPIRE_H

#include "core/core.h"

/* Times and durations are in one unit of the caller's choice. */
typedef struct PaimonRetention
{
	int64_t		min;			/* snapshot.num-retained.min: so many are always kept; at least 1 */
	int64_t		max;			/* snapshot.num-retained.max: never more; below min counts as min; INT64_MAX = no limit */
	int64_t		time;			/* snapshot.time-retained: between the two, those that were the newest one within this time are kept */
	int64_t		limit;			/* snapshot.expire.limit: so many expire at once at most */
} PaimonRetention;

extern void paimon_retention_init(PaimonRetention *r, int64_t hour);

/*
 * times[i] is that of snapshot earliest + i; n > 0 of them, the last one is the newest.  Returns the id below which all expire, `earliest` if none does; never
 * more than the newest snapshot's id.  *next is set to the first moment at which more can expire though no snapshot is added: INT64_MAX if never, `now` if only
 * the limit stopped it.  next may be NULL.
 */
extern int64_t paimon_expire_until(int64_t earliest, const int64_t *times, int64_t n, const PaimonRetention *r, int64_t now,
								   int64_t *next);

/* A file that is no longer live: snapshots with a smaller id than `removed` have it. */
typedef struct PaimonRetainedFile
{
	int64_t		removed;
	int64_t		bytes;
} PaimonRetainedFile;

/* Bytes of the files that snapshots from `earliest` on need beside the live ones. */
extern int64_t paimon_retained_bytes(const PaimonRetainedFile *files, int64_t n, int64_t earliest);

/*
 * The smallest id from `until` on (at most `latest`) below which snapshots must expire for the files kept for the rest to have no more than `bytes`.  files are
 * sorted by `removed`.
 */
extern int64_t paimon_expire_for_space(int64_t until, int64_t latest, const PaimonRetainedFile *files, int64_t n, int64_t bytes);

#endif							/* PAIMON_CORE_EXPIRE_H */
