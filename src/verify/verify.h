/*-------------------------------------------------------------------------
 *
 * verify.h
 *	  What the files of src/verify share.  See README.md here.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_VERIFY_H
#define PAIMON_VERIFY_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "utils/rel.h"

#include "catalog/manifest.h"
#include "memtable/table.h"

/* One table that is looked at.  Everything of the manifest is as one snapshot sees it. */
typedef struct PaimonVerify
{
	ReturnSetInfo *rsinfo;
	Relation	rel;
	PaimonTable *table;
	Snapshot	snapshot;
	PaimonFileRow *live;
	int			nlive;
	PaimonFileRow *closed;
	int			nclosed;
	PaimonSnapshotRow *snapshots;	/* oldest first */
	int			nsnapshots;
	PaimonLogRow log;			/* zeros if nothing was flushed yet */
} PaimonVerify;

/* Adds a row to the result.  severity: "error" for damage, "warning" for space that nobody will use. */
extern void paimon_verify_report(const PaimonVerify *v, const char *severity, const char *object, const char *fmt,...)
			pg_attribute_printf(4, 5);

/*
 * Runs a check; if it finds damage by way of an error, that becomes a row about `object` and the result is false.  Other errors pass.  What the check
 * leaves in its memory context is freed.
 */
typedef void (*paimon_verify_check) (PaimonVerify *v, void *arg);
extern bool paimon_verify_guarded(PaimonVerify *v, const char *object, paimon_verify_check check, void *arg);

/* Do snapshots that are kept need this closed row? */
static inline bool
paimon_verify_retained(const PaimonVerify *v, const PaimonFileRow *row)
{
	return v->nsnapshots > 0 && row->removed_snapshot > Max(v->snapshots[0].snapshot_id, row->added_snapshot);
}

extern void paimon_verify_files(PaimonVerify *v);	/* contents, bounds, levels */
extern void paimon_verify_manifest(PaimonVerify *v);	/* snapshots, and the log's row */
extern void paimon_verify_space(PaimonVerify *v);	/* metapage, map, owners of extents */
extern void paimon_verify_log(PaimonVerify *v);

#endif							/* PAIMON_VERIFY_H */
