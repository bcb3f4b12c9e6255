/*-------------------------------------------------------------------------
 *
 * worker_agenda.c
 *	  What a worker remembers of its database's tables, and from that: when to come again, and for what.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "worker/agenda.h"

#define STALL_MAX_MS	5000
#define RECLAIM_MAX_MS	10000
#define TRIM_NAPS		5		/* a table rests when nothing was flushed, compacted or freed for so many naptimes, ... */
#define BUSY_BYTES		(1024 * 1024)	/* ... and less than that was written a second */
#define TRIM_BUSY_MS	60000	/* one that does not rest is looked at all the same after this */
#define MOVE_FIRST_MS	15000	/* after files were moved and the fork has not become shorter: the next time after this, then twice as long ... */
#define MOVE_MAX_MS		3600000

static HTAB *states = NULL;

PaimonTableState *
paimon_agenda_of(Oid relid)
{
	bool		found;
	PaimonTableState *s;

	if (states == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Oid), .entrysize = sizeof(PaimonTableState), .hcxt = TopMemoryContext};

		states = hash_create("paimon worker tables", 128, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	s = hash_search(states, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(s, 0, sizeof(*s));
		s->relid = relid;
		s->expire_at = PG_INT64_MAX;
	}
	return s;
}

void
paimon_agenda_forget(Oid relid)
{
	if (states != NULL)
		hash_search(states, &relid, HASH_REMOVE, NULL);
	paimon_jobs_forget(relid);
	paimon_failure_clear(MyDatabaseId, relid, false, PAIMON_ALL_BUCKETS);
	paimon_failure_clear(MyDatabaseId, relid, true, PAIMON_ALL_BUCKETS);
}

List *
paimon_agenda_tables(void)
{
	HASH_SEQ_STATUS seq;
	PaimonTableState *s;
	List	   *result = NIL;

	if (states == NULL)
		return NIL;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
		result = lappend_oid(result, s->relid);
	return result;
}

bool
paimon_agenda_expiry(TimestampTz *at)
{
	HASH_SEQ_STATUS seq;
	PaimonTableState *s;
	TimestampTz first = PG_INT64_MAX;

	*at = 0;
	if (states == NULL)
		return false;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
		first = Min(first, s->expire_at);
	if (first != PG_INT64_MAX)
		*at = first;
	return true;
}

/* After a visit that changed something, or freed something: when to reclaim, and to look at the fork's end. */
static void
plan_cleaning(PaimonTableState *s, int work, const PaimonVisit *visit, TimestampTz now)
{
	if (visit->progress || visit->compacted)
	{
		s->reclaim = true;
		s->reclaim_after = now;
		s->reclaim_ms = PAIMON_RECLAIM_FIRST_MS / 2;
	}
	if (visit->progress || visit->compacted || visit->freed > 0)
		s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_NAPS * paimon_naptime);
	if (visit->freed > 0 && !s->trim)
	{
		s->trim = true;
		s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
	}
	if ((work & PAIMON_WORK_FAR) && visit->outcome == PAIMON_WORK_DONE && !visit->failed)
	{
		/* once more, if somebody was in the way */
		s->trim = visit->end_is_free || visit->reclaim_pending;
		s->trim_after = TimestampTzPlusMilliseconds(now, Max(STALL_MAX_MS, s->reclaim_ms));
		s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
	}
}

void
paimon_agenda_visited(Oid relid, int work, const PaimonVisit *visit)
{
	PaimonTableState *s = paimon_agenda_of(relid);
	TimestampTz now = GetCurrentTimestamp();

	if (visit->progress || (work & PAIMON_WORK_CHECK))
		s->compact = true;
	plan_cleaning(s, work, visit, now);
	if (visit->progress)
		s->moved_gain = 0;
	s->expire |= visit->compacted;
	if (visit->progress)
	{
		s->stall_ms = 0;
		s->flush_after = 0;
	}
	else if (work & PAIMON_WORK_FLUSH)
	{
		s->stall_ms = s->stall_ms == 0 ? PAIMON_STALL_FIRST_MS : Min(s->stall_ms * 2, STALL_MAX_MS);
		s->flush_after = TimestampTzPlusMilliseconds(now, s->stall_ms);
	}
	if ((work & PAIMON_WORK_RECLAIM) && visit->outcome == PAIMON_WORK_DONE && !visit->failed)
	{
		s->expire_at = visit->expire_at;
		if (work & PAIMON_WORK_EXPIRE)
			s->expire = visit->reclaim_pending;
		s->reclaim = visit->reclaim_pending;
		s->reclaimed = now;
		s->reclaim_ms = Min(Max(s->reclaim_ms, PAIMON_RECLAIM_FIRST_MS / 2) * 2, RECLAIM_MAX_MS);
		s->reclaim_after = TimestampTzPlusMilliseconds(now, s->reclaim_ms);
	}
	else if (visit->outcome == PAIMON_WORK_BLOCKED || visit->failed)
		s->reclaim_after = TimestampTzPlusMilliseconds(now, STALL_MAX_MS);
}

void
paimon_agenda_written(Oid relid, uint64 tail)
{
	PaimonTableState *s = paimon_agenda_of(relid);
	TimestampTz now = GetCurrentTimestamp();
	long		ms = TimestampDifferenceMilliseconds(s->tail_time, now);

	if (ms < 1000)
		return;
	if (s->tail_time != 0 && tail > s->tail && (tail - s->tail) / BUSY_BYTES * 1000 >= (uint64) ms)
		s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_NAPS * paimon_naptime);
	s->tail = tail;
	s->tail_time = now;
}

void
paimon_agenda_news(Oid relid, int news)
{
	PaimonTableState *s = paimon_agenda_of(relid);
	TimestampTz now = GetCurrentTimestamp();

	if (news & (PAIMON_NEWS_COMPACTED | PAIMON_NEWS_NOT_COMPACTED))
		paimon_agenda_compacted(relid, (news & PAIMON_NEWS_COMPACTED) != 0);
	if (news & PAIMON_NEWS_FLUSHED)
	{
		s->compact = true;
		s->moved_gain = 0;
	}
	s->reclaim |= (news & PAIMON_NEWS_RECLAIM) != 0;
	s->expire |= (news & PAIMON_NEWS_COMPACTED) != 0;
	if (news & (PAIMON_NEWS_FLUSHED | PAIMON_NEWS_COMPACTED))
	{
		s->reclaim = true;
		s->reclaim_after = now;
		s->reclaim_ms = PAIMON_RECLAIM_FIRST_MS / 2;
		s->trim_after = TimestampTzPlusMilliseconds(now, TRIM_NAPS * paimon_naptime);
		if (!s->trim)
			s->trim_busy = TimestampTzPlusMilliseconds(now, TRIM_BUSY_MS);
		s->trim = true;
	}
}

void
paimon_agenda_compacted(Oid relid, bool compacted)
{
	PaimonTableState *s = paimon_agenda_of(relid);

	s->compact = true;
	if (compacted)
	{
		s->compact_ms = 0;
		s->compact_after = 0;
		s->yields = 0;
		return;
	}
	s->compact_ms = s->compact_ms == 0 ? PAIMON_STALL_FIRST_MS : Min(s->compact_ms * 2, STALL_MAX_MS);
	s->compact_after = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), s->compact_ms);
}

int
paimon_agenda_cleaning(const PaimonTableState *s, TimestampTz now, bool *later)
{
	bool		reclaim = s->reclaim || s->expire_at <= now;

	if (reclaim && s->reclaim_after <= now)
		return PAIMON_WORK_RECLAIM | (s->expire ? PAIMON_WORK_EXPIRE : 0);
	if (s->trim && (s->trim_after <= now || s->trim_busy <= now))
		return PAIMON_WORK_RECLAIM | PAIMON_WORK_SWEEP | PAIMON_WORK_FAR | (s->trim_after <= now ? 0 : PAIMON_WORK_BUSY);
	*later |= reclaim || s->trim;
	return 0;
}

bool
paimon_agenda_may_move(PaimonTableState *s, const PaimonVisit *visit, TimestampTz now)
{
	if (s->moved_gain > 0 && visit->relocation.end > s->moved_end - s->moved_gain / 2)
	{
		s->move_ms = Min(Max(s->move_ms * 2, MOVE_FIRST_MS), MOVE_MAX_MS);
		s->move_after = TimestampTzPlusMilliseconds(now, s->move_ms);
	}
	else if (s->moved_gain > 0)
		s->move_ms = 0;
	s->moved_gain = 0;
	return visit->nfar > 0 && now >= s->move_after;
}

long
paimon_agenda_nap(void)
{
	HASH_SEQ_STATUS seq;
	PaimonTableState *s;
	long		result = paimon_naptime;

	if (states == NULL)
		return result;
	hash_seq_init(&seq, states);
	while ((s = hash_seq_search(&seq)) != NULL)
	{
		if (s->reclaim)
			result = Min(result, Max(TimestampDifferenceMilliseconds(GetCurrentTimestamp(), s->reclaim_after), PAIMON_RECLAIM_FIRST_MS / 2));
	}
	return result;
}
