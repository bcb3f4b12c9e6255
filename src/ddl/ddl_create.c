/*-------------------------------------------------------------------------
 *
 * ddl_create.c
 *	  CREATE TABLE, CREATE TABLE AS, CREATE MATERIALIZED VIEW … USING paimon.
 *
 * Options are taken out of the statement, checked, and left in the frame; the
 * object-access hook stores them as soon as the table exists.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "storage/lockdefs.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "ddl/ddl_internal.h"

static void
add_mark(List **items)
{
	PaimonOptionItem *item;

	if (paimon_option_item(*items, PAIMON_MARK_OPTION) != NULL)
		return;
	item = palloc(sizeof(PaimonOptionItem));
	item->name = pstrdup(PAIMON_MARK_OPTION);
	item->value = pstrdup(PAIMON_MARK_VALUE);
	*items = lcons(item, *items);
}

static List *
without_mark(List *items)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, items)
	{
		PaimonOptionItem *item = lfirst(lc);

		if (strcmp(item->name, PAIMON_MARK_OPTION) != 0)
			result = lappend(result, item);
	}
	return result;
}

/* Does a WITH list name an option of ours, so that a partitioned table must be ours? */
static bool
names_our_option(List *defs)
{
	ListCell   *lc;

	foreach(lc, defs)
	{
		DefElem    *def = lfirst(lc);

		if (def->defnamespace == NULL ? !paimon_option_is_core(def->defname) && paimon_option_is_known(def->defname) :
			strcmp(def->defnamespace, "toast") != 0 &&
			paimon_option_is_known(psprintf("%s.%s", def->defnamespace, def->defname)))
			return true;
	}
	return false;
}

/* Options of tables that LIKE … INCLUDING ALL stands for. */
static List *
items_of_sources(CreateStmt *stmt)
{
	List	   *items = NIL;
	ListCell   *lc;

	foreach(lc, stmt->tableElts)
	{
		TableLikeClause *like = lfirst(lc);
		Oid			source;

		if (!IsA(like, TableLikeClause) || like->options != (bits32) CREATE_TABLE_LIKE_ALL)
			continue;
		source = RangeVarGetRelid(like->relation, AccessShareLock, true);
		if (OidIsValid(source) && paimon_is_table(source))
			items = paimon_ddl_merge_items(items, without_mark(paimon_ddl_read_items(source, NULL)));
	}
	return items;
}

/* Sets the frame up for a table of ours; returns core's part of the WITH list. */
static List *
expect_table(DdlFrame *frame, const char *relname, List *defs, List *inherited, bool partitioned)
{
	List	   *items;
	List	   *core;

	paimon_ddl_split_defs(relname, defs, &items, &core);
	items = paimon_ddl_merge_items(inherited, items);
	if (partitioned)
		add_mark(&items);
	frame->create_name = relname;
	frame->create_items = items;
	return core;
}

void
paimon_ddl_create(DdlFrame *frame, CreateStmt *stmt)
{
	bool		partitioned = stmt->partspec != NULL;
	Oid			parent = InvalidOid;
	bool		parent_is_ours = false;
	bool		ours;
	List	   *inherited;

	if (!OidIsValid(paimon_table_am_oid()))
	{
		paimon_ddl_run(frame, (Node *) stmt, frame->context);
		return;
	}

	if (stmt->partbound != NULL && stmt->inhRelations != NIL)
	{
		/* Core takes the same lock on the parent, and finds what we find. */
		parent = RangeVarGetRelid(linitial(stmt->inhRelations), AccessExclusiveLock, true);
		parent_is_ours = OidIsValid(parent) && paimon_is_table(parent);
	}

	/*
	 * The default access method does not make a partitioned table ours: a restore
	 * creates the next one under whatever the last table has left it at.
	 */
	if (stmt->accessMethod != NULL)
		ours = paimon_ddl_am_is_paimon(stmt->accessMethod);
	else if (parent_is_ours)
		ours = true;
	else if (OidIsValid(parent) && OidIsValid(paimon_ddl_relam(parent)))
		ours = false;			/* it says so itself, and core hears it */
	else if (partitioned)
		ours = names_our_option(stmt->options);
	else
		ours = paimon_ddl_am_is_paimon(NULL);

	if (OidIsValid(parent))
		paimon_ddl_new_partition(parent, stmt->relation->relname, ours);
	if (!ours)
	{
		paimon_ddl_run(frame, (Node *) stmt, frame->context);
		return;
	}

	stmt = copyObject(stmt);
	inherited = items_of_sources(stmt);
	if (parent_is_ours)
		inherited = paimon_ddl_merge_items(inherited, without_mark(paimon_ddl_read_items(parent, NULL)));
	stmt->options = expect_table(frame, stmt->relation->relname, stmt->options, inherited, partitioned);
	if (!partitioned)
		stmt->accessMethod = pstrdup("paimon");
	else if (!PAIMON_PARTITIONED_HAS_AM)
		stmt->accessMethod = NULL;
	if (partitioned && parent_is_ours && OidIsValid(paimon_ddl_primary_key(parent)))
		paimon_ddl_late_parents(frame, parent);
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
}

/* The same for INTO of CREATE TABLE AS and CREATE MATERIALIZED VIEW. */
static void
expect_into(DdlFrame *frame, IntoClause *into)
{
	into->options = expect_table(frame, into->rel->relname, into->options, NIL, false);
	into->accessMethod = pstrdup("paimon");
}

void
paimon_ddl_create_as(DdlFrame *frame, CreateTableAsStmt *stmt)
{
	if (stmt->into != NULL && paimon_ddl_am_is_paimon(stmt->into->accessMethod))
	{
		stmt = copyObject(stmt);
		expect_into(frame, stmt->into);
	}
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
}

/* EXPLAIN ANALYZE CREATE TABLE AS creates the table without asking the utility hook again. */
void
paimon_ddl_explain(DdlFrame *frame, ExplainStmt *stmt)
{
	Query	   *query = (Query *) stmt->query;

	if (query != NULL && IsA(query, Query) && query->commandType == CMD_UTILITY &&
		IsA(query->utilityStmt, CreateTableAsStmt))
	{
		CreateTableAsStmt *create = (CreateTableAsStmt *) query->utilityStmt;

		if (create->into != NULL && paimon_ddl_am_is_paimon(create->into->accessMethod))
		{
			stmt = copyObject(stmt);
			create = (CreateTableAsStmt *) ((Query *) stmt->query)->utilityStmt;
			expect_into(frame, create->into);
		}
	}
	paimon_ddl_run(frame, (Node *) stmt, frame->context);
}
