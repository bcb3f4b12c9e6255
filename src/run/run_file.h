/*-------------------------------------------------------------------------
 *
 * run_file.h
 *	  Open run files, as run_file.c, run_bloom.c and run_group.c share them.  Private to run/.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_RUN_FILE_H
#define PAIMON_RUN_FILE_H

#include "postgres.h"

#include "lib/ilist.h"

#include "core/core_bloom.h"
#include "run/run.h"
#include "run/run_footer.h"

/* Key of the cache; padding is zeroed. */
typedef struct PaimonRunFileKey
{
	PaimonLocator locator;
	uint64		storage_id;
	uint64		file_no;
} PaimonRunFileKey;

struct PaimonRunFile
{
	PaimonRunFileKey key;
	dlist_node	lru;			/* in the list of unreferenced files while refcount = 0 */
	uint32		refcount;		/* openers, and groups that are referenced */
	MemoryContext cxt;
	Oid			relid;			/* the relation is looked up for each read: a file may outlive every Relation pointer */
	const PaimonRowDesc *desc;	/* of the last opener; valid while somebody in this transaction may read */
	PaimonExtentList extents;
	PaimonRunFooter footer;
	PaimonBytes min_key;
	uint64	   *prefixes;		/* of the groups' first keys */
	uint64	   *first_rows;		/* rows in the groups before */
	PaimonBloom bloom;
	uint8	  **bloom_parts;	/* checked parts kept in memory, NULL where not; NULL if there are none */
	uint32		nbloom_parts;
	PaimonRunGroup **groups;	/* open groups by number */
};

/* The relation of the file, to be given back with RelationClose; an error if its storage was replaced meanwhile. */
extern Relation paimon_run_file_relation(const PaimonRunFile *file);

/* Copies bytes of what lies at a page of the file. */
extern void paimon_run_file_read(const PaimonRunFile *file, uint32 page, uint32 off, uint32 len, void *dest);

/* References that groups hold on their file. */
extern void paimon_run_file_ref(PaimonRunFile *file);
extern void paimon_run_file_unref(PaimonRunFile *file);

/* Drops the cached, unreferenced groups of a file that is about to go (run_group.c). */
extern void paimon_run_group_forget_file(PaimonRunFile *file);

/* Throws ERRCODE_DATA_CORRUPTED; group_no is PG_UINT32_MAX for damage elsewhere in the file. */
extern void paimon_run_corrupt(const PaimonRunFile *file, uint32 group_no, const char *reason) pg_attribute_noreturn();

/* ---- run_bloom.c ---- */

/* The filter of a file being written, cut into parts as they are stored; `page_bytes` (palloc'd) go to paimon_file_append.  Fills the footer's bloom fields but bloom_page. */
extern uint8 *paimon_run_bloom_build(const uint64 *hashes, uint64 n, PaimonRunFooter *footer, uint32 *len);

/* Prepares file->bloom from the footer. */
extern const char *paimon_run_bloom_open(PaimonRunFile *file);
extern bool paimon_run_bloom_test(PaimonRunFile *file, uint64 hash);
extern void paimon_run_bloom_forget(PaimonRunFile *file);

#endif							/* PAIMON_RUN_FILE_H */
