/*-------------------------------------------------------------------------
 *
 * compact_end.c
 *	  What flush and compaction do when their transaction ends: guards of files are let go, the shared head moves.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "compact/compact_internal.h"

static List *at_end = NIL;		/* in TopMemoryContext */

/* Must not fail. */
static void
xact_callback(XactEvent event, void *arg)
{
	ListCell   *lc;

	if (at_end == NIL || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE))
		return;
	foreach(lc, at_end)
	{
		PaimonAtEnd *e = lfirst(lc);

		for (int i = 0; i < e->nguards; i++)
			paimon_file_guard_release(e->storage_id, e->guards[i]);
		if (event == XACT_EVENT_COMMIT && e->head != 0)
			paimon_shared_set_head(e->shared, e->head);
		if (e->guards != NULL)
			pfree(e->guards);
		pfree(e);
	}
	list_free(at_end);
	at_end = NIL;
}

PaimonAtEnd *
paimon_at_end_begin(PaimonTable *table)
{
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);
	PaimonAtEnd *e = palloc0(sizeof(PaimonAtEnd));

	e->shared = table->shared;
	e->storage_id = table->storage_id;
	at_end = lappend(at_end, e);
	MemoryContextSwitchTo(old);
	return e;
}

void
paimon_at_end_guards(PaimonAtEnd *e, const PaimonFileRow *files, int nfiles)
{
	Size		size = sizeof(uint64) * ((Size) e->nguards + nfiles);

	if (nfiles == 0)
		return;
	e->guards = e->guards == NULL ? MemoryContextAlloc(TopMemoryContext, size) : repalloc(e->guards, size);
	for (int i = 0; i < nfiles; i++)
		e->guards[e->nguards++] = files[i].file_no;
}

void
paimon_at_end_init(void)
{
	RegisterXactCallback(xact_callback, NULL);
}
