/*-------------------------------------------------------------------------
 *
 * agenda.h
 *	  What a worker remembers of its database's tables.
 *
 * Private to the process: a worker that begins anew looks at all tables.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_AGENDA_H
#define PAIMON_AGENDA_H

#include "postgres.h"

#include "nodes/pg_list.h"

#include "worker/worker_internal.h"

#define PAIMON_STALL_FIRST_MS	100	/* a flush that got nowhere (a running transaction stops it) is tried again after this, then twice as long ... */
#define PAIMON_RECLAIM_FIRST_MS 100	/* what waits for the horizon is looked at again after this, then twice as long ... */

/* What the worker remembers of a table. */
typedef struct PaimonTableState
{
	Oid			relid;			/* hash key */
	TimestampTz flush_after;	/* not before */
	int			stall_ms;
	bool		reclaim;		/* something waits for the horizon */
	bool		expire;			/* was compacted: snapshots expire though it is write-only */
	TimestampTz reclaim_after;
	int			reclaim_ms;
	TimestampTz reclaimed;		/* last time */
	TimestampTz expire_at;		/* snapshots that keep files go then; PG_INT64_MAX: not by time */
	bool		trim;			/* much may be free now: the end is given back when the table has come to rest */
	TimestampTz trim_after;
	TimestampTz trim_busy;		/* then in any case */
	uint64		tail;			/* of the log at tail_time */
	TimestampTz tail_time;
	uint32		moved_end;		/* files were moved when this was the end of what is used, to give back ... */
	uint32		moved_gain;		/* ... so many extents; 0: they were not, or something was written since */
	TimestampTz move_after;
	int			move_ms;
	bool		compact;		/* a bucket may want to be compacted */
	TimestampTz compact_after;
	int			compact_ms;		/* waited after a try that somebody was in the way of */
	int			yields;			/* how often its large compaction was given up for other work since one was finished */
} PaimonTableState;

/* The table's, made if it is new. */
extern PaimonTableState *paimon_agenda_of(Oid relid);
/* The table is not there any more: its jobs and failures are forgotten as well. */
extern void paimon_agenda_forget(Oid relid);
/* All that are known; in the current memory context. */
extern List *paimon_agenda_tables(void);

/* After a visit: when to come again. */
extern void paimon_agenda_visited(Oid relid, int work, const PaimonVisit *visit);
/* A compaction came back, ours or a helper's: when to look at the table again. */
extern void paimon_agenda_compacted(Oid relid, bool compacted);
/* How far the log has come: a table that much is written to does not rest, though it be long between two flushes. */
extern void paimon_agenda_written(Oid relid, uint64 tail);
/* After a helper's visit. */
extern void paimon_agenda_news(Oid relid, int news);

/* What a table needs now beside flushes and compactions; 0: nothing.  *later: something is due that has to wait. */
extern int	paimon_agenda_cleaning(const PaimonTableState *s, TimestampTz now, bool *later);
/*
 * Should files be moved that hold the fork's end, as the visit found them?  Moving that has not made the fork shorter, though nothing was written meanwhile,
 * is not tried again for a while.
 */
extern bool paimon_agenda_may_move(PaimonTableState *s, const PaimonVisit *visit, TimestampTz now);
/* When snapshots of some table expire that keep files; 0: never.  False if no table is known. */
extern bool paimon_agenda_expiry(TimestampTz *at);
/* How long the scheduler may sleep, in ms: what waits for the horizon is looked at more often than all else. */
extern long paimon_agenda_nap(void);

#endif							/* PAIMON_AGENDA_H */
