/*-------------------------------------------------------------------------
 *
 * ddl_internal.h
 *	  What the files of src/ddl share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef PAIMON_DDL_INTERNAL_H
#define PAIMON_DDL_INTERNAL_H

#include "postgres.h"

#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/relcache.h"

#include "options/options.h"

/*
 * One utility statement being executed.  Frames nest (core runs parts of a
 * statement as statements of their own, event triggers run anything) and live on
 * the C stack of the utility hook.
 */
typedef struct DdlFrame
{
	struct DdlFrame *up;

	/* the statement, as the utility hook got it */
	PlannedStmt *pstmt;
	const char *query;
	bool		read_only_tree;
	ProcessUtilityContext context;
	ParamListInfo params;
	QueryEnvironment *query_env;
	DestReceiver *dest;
	QueryCompletion *qc;

	/* CREATE of a paimon table: its name, the items to store, and its OID once there */
	const char *create_name;
	List	   *create_items;
	Oid			created;

	/* change of access method: the table, and what it will be (true: paimon) */
	Oid			am_table;
	bool		am_to_paimon;

	bool		reindex;		/* a REINDEX: copies of key indexes are made */

	/* key indexes of partitioned tables stay btrees until the statement's end (ddl_partition.c) */
	bool		late_parents;
	List	   *late;			/* OIDs of those indexes */

	List	   *flipped;		/* OIDs of indexes whose relcache entries were patched */
	List	   *lost_key;		/* OIDs of tables whose key index was dropped */
	List	   *may_lose_key;	/* OIDs of tables known to be empty and locked */
} DdlFrame;

/* ddl_utility.c */
extern DdlFrame *paimon_ddl_frame;
extern void paimon_ddl_finish_lost_keys(DdlFrame *frame);
extern void paimon_ddl_run(DdlFrame *frame, Node *stmt, ProcessUtilityContext context);

/* ddl_create.c */
extern void paimon_ddl_create(DdlFrame *frame, CreateStmt *stmt);
extern void paimon_ddl_create_as(DdlFrame *frame, CreateTableAsStmt *stmt);
extern void paimon_ddl_explain(DdlFrame *frame, ExplainStmt *stmt);

/* ddl_alter.c */
extern void paimon_ddl_alter(DdlFrame *frame, AlterTableStmt *stmt);

/* ddl_publication.c */
extern void paimon_ddl_create_publication(DdlFrame *frame, CreatePublicationStmt *stmt);
extern void paimon_ddl_alter_publication(DdlFrame *frame, AlterPublicationStmt *stmt);
extern void paimon_ddl_warn_published(Oid relid, Oid parentid);
extern void paimon_ddl_refuse_published(Oid relid);

/* ddl_partition.c */
extern void paimon_ddl_new_partition(Oid parentid, const char *leafname, bool leaf_is_paimon);
extern bool paimon_ddl_can_mark(Oid relid);
extern bool paimon_ddl_has_index(Oid relid);
extern void paimon_ddl_mark_parent(Oid relid, List *items);
extern void paimon_ddl_late_parents(DdlFrame *frame, Oid relid);
extern void paimon_ddl_flip_late(DdlFrame *frame);
extern bool paimon_ddl_has_partitioned_child(Oid relid);

/* ddl_access.c */
extern void paimon_ddl_access_init(void);
extern void paimon_ddl_check_reserved(Oid relid);
extern char *paimon_ddl_new_attname(Oid relid, AttrNumber attno);

/* ddl_merge.c */
extern void paimon_ddl_merge_init(void);
extern void paimon_ddl_qualify_functions(Oid relid, List *items);
extern void paimon_ddl_check_merge(Oid relid, List *items);
extern void paimon_ddl_forget_functions(Oid relid);
extern void paimon_ddl_check_added(Oid relid, AlterTableStmt *stmt);
extern List *paimon_ddl_items_of_rest(Oid relid, AlterTableStmt *stmt, List *items);

/* ddl_flip.c */
extern void paimon_ddl_check_key(Oid relid, const int16 *attnos, int nkeys);
extern void paimon_ddl_flip(Oid indexid, bool to_paimon);
extern void paimon_ddl_depend_on_am(Oid relid, Oid amid);

/* ddl_catalog.c */
extern List *paimon_ddl_read_items(Oid relid, List **core);
extern void paimon_ddl_write_items(Oid relid, List *items);
extern void paimon_ddl_remove_items(Oid relid);
extern PaimonTableShape *paimon_ddl_shape(Oid relid);
extern void paimon_ddl_check_table(Oid relid);
extern bool paimon_ddl_is_empty(Oid relid);
extern void paimon_ddl_reset_storage(Oid relid);
extern void paimon_ddl_split_defs(const char *relname, List *defs, List **items, List **core);
extern List *paimon_ddl_merge_items(List *base, List *over);
extern Oid	paimon_ddl_primary_key(Oid relid);
extern Oid	paimon_ddl_relam(Oid relid);
extern void paimon_ddl_remember(List **oids, Oid oid);
extern bool paimon_ddl_am_is_paimon(const char *amname);

#endif							/* PAIMON_DDL_INTERNAL_H */
