/*-------------------------------------------------------------------------
 *
 * stop.h
 *	  Stop points: named places in the code where a test may hold a session,
 *	  make it fail or kill it, so that races and crashes are reproduced without sleeping.
 *
 * Compiled in only with PAIMON_TESTING; otherwise the macros are empty.  Armed from
 * SQL (see sql/parts/90_testing.sql.in) by session, for a number of hits:
 *
 *	wait	blocks on a condition variable until paimon.stop_release(name)
 *	lock	blocks on a heavyweight lock that the arming session holds until it
 *			releases or ends: for isolation specs, whose tester sees heavyweight locks only
 *	error	ereport(ERROR)
 *	kill	SIGKILL to this process
 *	panic	SIGKILL to the postmaster and this process
 *	count	nothing; the hit is counted
 *
 * PAIMON_STOP_POINT needs a place where waiting and throwing are allowed: no LWLock or
 * spinlock held, not in a critical section.  PAIMON_STOP_POINT_CRIT may stand anywhere
 * with a PGPROC; there wait, lock and error only count.
 *
 * Cost when nothing is armed: one read of a shared counter.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_STOP_H
#define PAIMON_STOP_H

#include "postgres.h"

#ifdef PAIMON_TESTING

extern Size paimon_stop_shmem_size(void);
extern void paimon_stop_shmem_init(void);
extern bool paimon_stop_armed(void);
extern void paimon_stop_reached(const char *name, bool critical);

#define PAIMON_STOP_POINT(name) \
	do { \
		if (unlikely(paimon_stop_armed())) \
			paimon_stop_reached((name), false); \
	} while (0)
#define PAIMON_STOP_POINT_CRIT(name) \
	do { \
		if (unlikely(paimon_stop_armed())) \
			paimon_stop_reached((name), true); \
	} while (0)


/* What must hold: an assertion that builds for tests also have on servers without assertions. */
#define PAIMON_MUST(condition) \
	do { \
		if (unlikely(!(condition))) \
			elog(ERROR, "%s:%d: does not hold: %s", __FILE__, __LINE__, #condition); \
	} while (0)

#else

#define PAIMON_MUST(condition) Assert(condition)
#define PAIMON_STOP_POINT(name) ((void) 0)
#define PAIMON_STOP_POINT_CRIT(name) ((void) 0)

#endif							/* PAIMON_TESTING */

#endif							/* PAIMON_STOP_H */
