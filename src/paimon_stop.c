/*-------------------------------------------------------------------------
 *
 * paimon_stop.c
 *	  Stop points; see stop.h for what they are.  Empty unless PAIMON_TESTING.
 *
 * A fixed array of entries in shared memory, one per name ever armed, protected by one
 * spinlock.  `active` counts entries with an action left, so that code with nothing armed
 * reads one word.  A waiter remembers the generation it found and sleeps until it
 * changes: release wakes exactly those who wait now.  Entries are never removed, only
 * disarmed; a crash restart clears them all.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#ifdef PAIMON_TESTING

#include <signal.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "paimon_am.h"
#include "stop.h"

#define STOP_MAX_POINTS 128
#define STOP_NAME_LEN 64

/* Our advisory-style locks: a class that SQL's advisory lock functions cannot make. */
#define STOP_LOCK_KEY 0x73746f70
#define STOP_LOCK_CLASS 3

typedef enum StopAction
{
	STOP_NONE,
	STOP_WAIT,
	STOP_LOCK,
	STOP_ERROR,
	STOP_KILL,
	STOP_PANIC,
	STOP_COUNT
} StopAction;

static const char *const action_names[] = {"none", "wait", "lock", "error", "kill", "panic", "count"};

typedef struct StopEntry
{
	char		name[STOP_NAME_LEN];	/* empty: free */
	StopAction	action;
	int			pid;			/* only this process, or 0: all */
	int64		skip;			/* hits to let pass before acting */
	int64		times;			/* hits to act on; negative: no end */
	int64		hits;			/* since armed */
	int			waiting;		/* processes in wait or lock */
	uint64		generation;		/* moved by release and by arming */
	ConditionVariable cv;
} StopEntry;

typedef struct StopControl
{
	slock_t		mutex;
	pg_atomic_uint32 active;	/* entries whose action is not STOP_NONE */
	StopEntry	entries[STOP_MAX_POINTS];
} StopControl;

static StopControl *control = NULL;

PG_FUNCTION_INFO_V1(paimon_stop_arm);
PG_FUNCTION_INFO_V1(paimon_stop_release);
PG_FUNCTION_INFO_V1(paimon_stop_waiting);
PG_FUNCTION_INFO_V1(paimon_stop_hits);
PG_FUNCTION_INFO_V1(paimon_stop_reset);

Size
paimon_stop_shmem_size(void)
{
	return MAXALIGN(sizeof(StopControl));
}

/* Called with AddinShmemInitLock held. */
void
paimon_stop_shmem_init(void)
{
	bool		found;

	control = ShmemInitStruct("paimon stop points", sizeof(StopControl), &found);
	if (found)
		return;
	memset(control, 0, sizeof(StopControl));
	SpinLockInit(&control->mutex);
	pg_atomic_init_u32(&control->active, 0);
	for (int i = 0; i < STOP_MAX_POINTS; i++)
		ConditionVariableInit(&control->entries[i].cv);
}

bool
paimon_stop_armed(void)
{
	return control != NULL && pg_atomic_read_u32(&control->active) != 0;
}

/* The entry of that name, or NULL.  Caller holds the spinlock. */
static StopEntry *
find_entry(const char *name)
{
	for (int i = 0; i < STOP_MAX_POINTS; i++)
	{
		StopEntry  *e = &control->entries[i];

		if (e->name[0] == '\0')
			return NULL;
		if (strcmp(e->name, name) == 0)
			return e;
	}
	return NULL;
}

/* The same, made if it is not there; NULL if the table is full.  Caller holds the spinlock. */
static StopEntry *
make_entry(const char *name)
{
	StopEntry  *e = find_entry(name);

	if (e != NULL)
		return e;
	for (int i = 0; i < STOP_MAX_POINTS; i++)
	{
		e = &control->entries[i];
		if (e->name[0] == '\0')
		{
			strlcpy(e->name, name, STOP_NAME_LEN);
			return e;
		}
	}
	return NULL;
}

/* Sets an action and keeps `active` right.  Caller holds the spinlock. */
static void
set_action(StopEntry *e, StopAction action)
{
	if (e->action == STOP_NONE && action != STOP_NONE)
		pg_atomic_fetch_add_u32(&control->active, 1);
	else if (e->action != STOP_NONE && action == STOP_NONE)
		pg_atomic_fetch_sub_u32(&control->active, 1);
	e->action = action;
}

static void
set_locktag(LOCKTAG *tag, const StopEntry *e)
{
	/* No database: stop points are the cluster's, and some workers are connected to none. */
	SET_LOCKTAG_ADVISORY(*tag, InvalidOid, STOP_LOCK_KEY, (uint32) (e - control->entries), STOP_LOCK_CLASS);
}

/*
 * Counts a hit and says what to do about it.  Waiters are counted here already, under
 * the same lock, so that nobody sees a hit taken and nobody waiting.
 */
static StopAction
take_hit(const char *name, bool critical, StopEntry **entry, uint64 *generation)
{
	StopAction	action = STOP_NONE;
	StopEntry  *e;

	SpinLockAcquire(&control->mutex);
	e = find_entry(name);
	if (e != NULL && e->action != STOP_NONE && (e->pid == 0 || e->pid == MyProcPid))
	{
		e->hits++;
		if (e->skip > 0)
			e->skip--;
		else if (e->times != 0)
		{
			action = e->action;
			if (critical && action != STOP_KILL && action != STOP_PANIC)
				action = STOP_COUNT;
			if (e->times > 0)
				e->times--;
			if (action == STOP_WAIT || action == STOP_LOCK)
				e->waiting++;
			*generation = e->generation;
		}
	}
	SpinLockRelease(&control->mutex);
	*entry = e;
	return action;
}

static void
stop_waiting_cleanup(int code, Datum arg)
{
	StopEntry  *e = (StopEntry *) DatumGetPointer(arg);

	SpinLockAcquire(&control->mutex);
	e->waiting--;
	SpinLockRelease(&control->mutex);
}

static bool
still_waiting(StopEntry *e, uint64 generation)
{
	bool		same;

	SpinLockAcquire(&control->mutex);
	same = e->generation == generation;
	SpinLockRelease(&control->mutex);
	return same;
}

static void
wait_here(StopEntry *e, StopAction action, uint64 generation)
{
	PG_ENSURE_ERROR_CLEANUP(stop_waiting_cleanup, PointerGetDatum(e));
	{
		if (action == STOP_LOCK)
		{
			LOCKTAG		tag;

			set_locktag(&tag, e);
			(void) LockAcquire(&tag, ShareLock, false, false);
			LockRelease(&tag, ShareLock, false);
		}
		else
		{
			ConditionVariablePrepareToSleep(&e->cv);
			while (still_waiting(e, generation))
				ConditionVariableSleep(&e->cv, PG_WAIT_EXTENSION);
			ConditionVariableCancelSleep();
		}
	}
	PG_END_ENSURE_ERROR_CLEANUP(stop_waiting_cleanup, PointerGetDatum(e));
	stop_waiting_cleanup(0, PointerGetDatum(e));
}

/* Behind the macros: something is armed, perhaps this point. */
void
paimon_stop_reached(const char *name, bool critical)
{
	StopEntry  *e;
	uint64		generation = 0;
	StopAction	action = take_hit(name, critical, &e, &generation);

	switch (action)
	{
		case STOP_NONE:
		case STOP_COUNT:
			break;
		case STOP_WAIT:
		case STOP_LOCK:
			wait_here(e, action, generation);
			break;
		case STOP_ERROR:
			ereport(ERROR,
					(errcode(ERRCODE_INTERNAL_ERROR),
					 errmsg("injected error at stop point \"%s\"", name)));
			break;
		case STOP_PANIC:
			kill(PostmasterPid, SIGKILL);
			/* FALLTHROUGH */
		case STOP_KILL:
			kill(MyProcPid, SIGKILL);
			pg_unreachable();
	}
}

static void
require_control(void)
{
	paimon_require_preload();
	if (control == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("stop points are not available in this process")));
}

static StopAction
parse_action(const char *text)
{
	for (int i = STOP_WAIT; i <= STOP_COUNT; i++)
	{
		if (strcmp(text, action_names[i]) == 0)
			return (StopAction) i;
	}
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized stop point action \"%s\"", text),
			 errhint("Actions are wait, lock, error, kill, panic and count.")));
}

/* Frees whoever waits at the point and disarms it.  Caller holds the spinlock. */
static void
release_entry(StopEntry *e)
{
	set_action(e, STOP_NONE);
	e->generation++;
}

/* The heavyweight lock of an entry, if this session holds it from arming. */
static void
drop_session_lock(StopEntry *e)
{
	LOCKTAG		tag;

	set_locktag(&tag, e);
	while (paimon_lock_held_by_me(&tag, ExclusiveLock))
	{
		if (!LockRelease(&tag, ExclusiveLock, true))
			break;
	}
}

/* paimon.stop_arm(name, action, times, skip, pid): times 0 means without end, pid 0 every process. */
Datum
paimon_stop_arm(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	StopAction	action = parse_action(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	int32		times = PG_GETARG_INT32(2);
	int32		skip = PG_GETARG_INT32(3);
	int32		pid = PG_GETARG_INT32(4);
	StopEntry  *e;

	require_control();
	if (strlen(name) == 0 || strlen(name) >= STOP_NAME_LEN)
		ereport(ERROR,
				(errcode(ERRCODE_NAME_TOO_LONG),
				 errmsg("name of a stop point must have 1 to %d bytes", STOP_NAME_LEN - 1)));

	SpinLockAcquire(&control->mutex);
	e = make_entry(name);
	SpinLockRelease(&control->mutex);
	if (e == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("too many stop points"),
				 errdetail("At most %d names can be used.", STOP_MAX_POINTS)));

	/* The lock first: whoever hits the point must find it taken. */
	if (action == STOP_LOCK)
	{
		LOCKTAG		tag;

		set_locktag(&tag, e);
		if (!paimon_lock_held_by_me(&tag, ExclusiveLock))
			(void) LockAcquire(&tag, ExclusiveLock, true, false);
	}

	SpinLockAcquire(&control->mutex);
	e->pid = pid;
	e->skip = skip;
	e->times = times > 0 ? times : -1;
	e->hits = 0;
	set_action(e, action);
	SpinLockRelease(&control->mutex);
	PG_RETURN_VOID();
}

/* paimon.stop_release(name): lets all go on that wait there, and disarms; no such point: nothing to do. */
Datum
paimon_stop_release(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	StopEntry  *e;

	require_control();
	SpinLockAcquire(&control->mutex);
	e = find_entry(name);
	if (e != NULL)
		release_entry(e);
	SpinLockRelease(&control->mutex);
	if (e != NULL)
	{
		ConditionVariableBroadcast(&e->cv);
		drop_session_lock(e);
	}
	PG_RETURN_VOID();
}

/* paimon.stop_waiting(name): how many processes wait there now. */
Datum
paimon_stop_waiting(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	StopEntry  *e;
	int32		waiting = 0;

	require_control();
	SpinLockAcquire(&control->mutex);
	e = find_entry(name);
	if (e != NULL)
		waiting = e->waiting;
	SpinLockRelease(&control->mutex);
	PG_RETURN_INT32(waiting);
}

/* paimon.stop_hits(name): how often it was reached since it was armed, until it was disarmed. */
Datum
paimon_stop_hits(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	StopEntry  *e;
	int64		hits = 0;

	require_control();
	SpinLockAcquire(&control->mutex);
	e = find_entry(name);
	if (e != NULL)
		hits = e->hits;
	SpinLockRelease(&control->mutex);
	PG_RETURN_INT64(hits);
}

/* paimon.stop_reset(): releases and disarms every point. */
Datum
paimon_stop_reset(PG_FUNCTION_ARGS)
{
	require_control();
	for (int i = 0; i < STOP_MAX_POINTS; i++)
	{
		StopEntry  *e = &control->entries[i];
		bool		used;

		SpinLockAcquire(&control->mutex);
		used = e->name[0] != '\0';
		if (used)
			release_entry(e);
		SpinLockRelease(&control->mutex);
		if (!used)
			break;
		ConditionVariableBroadcast(&e->cv);
		drop_session_lock(e);
	}
	PG_RETURN_VOID();
}

#endif							/* PAIMON_TESTING */
