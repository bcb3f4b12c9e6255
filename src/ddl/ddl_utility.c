/*-------------------------------------------------------------------------
 *
 * ddl_utility.c
 *	  The utility hook: sends statements about paimon tables to their files,
 *	  and does what has to be done when a statement is through.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_class.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ddl/ddl.h"
#include "ddl/ddl_internal.h"

DdlFrame   *paimon_ddl_frame = NULL;

static ProcessUtility_hook_type prev_process_utility = NULL;

/* Run a statement in place of the frame's own one. */
void
paimon_ddl_run(DdlFrame *frame, Node *stmt, ProcessUtilityContext context)
{
	PlannedStmt *pstmt = frame->pstmt;
	bool		read_only = frame->read_only_tree;

	if (stmt != pstmt->utilityStmt)
	{
		pstmt = copyObject(pstmt);
		pstmt->utilityStmt = stmt;
		read_only = false;
	}
	if (prev_process_utility)
		prev_process_utility(pstmt, frame->query, read_only, context, frame->params, frame->query_env,
							 frame->dest, frame->qc);
	else
		standard_ProcessUtility(pstmt, frame->query, read_only, context, frame->params, frame->query_env,
								frame->dest, frame->qc);
}

/*
 * Indexes that LIKE copies from a paimon table are asked for as paimon_key.
 * Let core make a btree in any case; where it has to be, it is flipped.
 */
static void
run_index(DdlFrame *frame, IndexStmt *stmt)
{
	if (stmt->primary && stmt->accessMethod != NULL && strcmp(stmt->accessMethod, "paimon_key") == 0)
	{
		stmt = copyObject(stmt);
		stmt->accessMethod = pstrdup("btree");
	}
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
}

/*
 * A table that has lost its key keeps storage ordered by that key.  ALTER TABLE
 * has made sure that it is empty; other ways (DROP TYPE … CASCADE) have not.
 */
void
paimon_ddl_finish_lost_keys(DdlFrame *frame)
{
	ListCell   *lc;

	foreach(lc, frame->lost_key)
	{
		Oid			relid = lfirst_oid(lc);
		char		relkind = get_rel_relkind(relid);

		if ((relkind != RELKIND_RELATION && relkind != RELKIND_MATVIEW) ||
			!paimon_is_table(relid) || OidIsValid(paimon_ddl_primary_key(relid)))
			continue;
		if (!list_member_oid(frame->may_lose_key, relid))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot drop the primary key of paimon table \"%s\" together with other objects",
							get_rel_name(relid)),
					 errhint("Drop the table, or its primary key, first.")));
		paimon_ddl_reset_storage(relid);
	}
	frame->lost_key = NIL;
}

/* Patched relcache entries (see ddl_flip.c) are to be built anew. */
static void
forget_flipped(DdlFrame *frame)
{
	ListCell   *lc;

	foreach(lc, frame->flipped)
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			CacheInvalidateRelcacheByRelid(lfirst_oid(lc));
	}
}

static void
dispatch(DdlFrame *frame)
{
	Node	   *stmt = frame->pstmt->utilityStmt;

	switch (nodeTag(stmt))
	{
		case T_CreateStmt:
			paimon_ddl_create(frame, (CreateStmt *) stmt);
			break;
		case T_CreateTableAsStmt:
			paimon_ddl_create_as(frame, (CreateTableAsStmt *) stmt);
			break;
		case T_ExplainStmt:
			paimon_ddl_explain(frame, (ExplainStmt *) stmt);
			break;
		case T_AlterTableStmt:
			paimon_ddl_alter(frame, (AlterTableStmt *) stmt);
			break;
		case T_IndexStmt:
			run_index(frame, (IndexStmt *) stmt);
			break;
		case T_CreatePublicationStmt:
			paimon_ddl_create_publication(frame, (CreatePublicationStmt *) stmt);
			break;
		case T_AlterPublicationStmt:
			paimon_ddl_alter_publication(frame, (AlterPublicationStmt *) stmt);
			break;
		default:
			frame->reindex = IsA(stmt, ReindexStmt);
			paimon_ddl_run(frame, stmt, frame->context);
			break;
	}
	paimon_ddl_flip_late(frame);
	if (OidIsValid(frame->created))
	{
		paimon_ddl_check_table(frame->created);
		paimon_ddl_warn_published(frame->created, InvalidOid);
	}
	paimon_ddl_finish_lost_keys(frame);
	forget_flipped(frame);
}

/* Statements during which no relation can be defined: no frame for them. */
static bool
is_plain(Node *stmt)
{
	switch (nodeTag(stmt))
	{
		case T_TransactionStmt:
		case T_VariableSetStmt:
		case T_VariableShowStmt:
		case T_FetchStmt:
		case T_ClosePortalStmt:
		case T_DeclareCursorStmt:
		case T_PrepareStmt:
		case T_DeallocateStmt:
		case T_CopyStmt:
		case T_NotifyStmt:
		case T_ListenStmt:
		case T_UnlistenStmt:
		case T_CheckPointStmt:
		case T_LockStmt:
		case T_ConstraintsSetStmt:
		case T_CallStmt:
		case T_DoStmt:
		case T_VacuumStmt:
			return true;
		default:
			return false;
	}
}

static void
process_utility(PlannedStmt *pstmt, const char *query, bool read_only_tree, ProcessUtilityContext context,
				ParamListInfo params, QueryEnvironment *query_env, DestReceiver *dest, QueryCompletion *qc)
{
	DdlFrame	frame = {0};

	frame.up = paimon_ddl_frame;
	frame.pstmt = pstmt;
	frame.query = query;
	frame.read_only_tree = read_only_tree;
	frame.context = context;
	frame.params = params;
	frame.query_env = query_env;
	frame.dest = dest;
	frame.qc = qc;

	if (is_plain(pstmt->utilityStmt))
	{
		paimon_ddl_run(&frame, pstmt->utilityStmt, context);
		return;
	}

	paimon_ddl_frame = &frame;
	PG_TRY();
	{
		dispatch(&frame);
	}
	PG_FINALLY();
	{
		paimon_ddl_frame = frame.up;
	}
	PG_END_TRY();
}

void
paimon_ddl_init(void)
{
	prev_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
	paimon_ddl_access_init();
}
