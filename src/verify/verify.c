/*-------------------------------------------------------------------------
 *
 * verify.c
 *	  paimon.verify: looks at everything a table consists of and says what is wrong.
 *
 * Each check runs in a subtransaction: the code that reads pages reports damage by error, which ends that check, gives back its buffers and references, and
 * becomes a row.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "compat.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "options/options.h"
#include "paimon_am.h"
#include "verify/verify.h"

PG_FUNCTION_INFO_V1(paimon_verify);

enum
{
	VERIFY_SEVERITY = 0,
	VERIFY_OBJECT,
	VERIFY_PROBLEM,
	VERIFY_RELATION,
	VERIFY_COLUMNS
};

static void
put_row(const PaimonVerify *v, const char *severity, const char *object, const char *problem)
{
	Datum		values[VERIFY_COLUMNS];
	bool		nulls[VERIFY_COLUMNS] = {false};

	values[VERIFY_SEVERITY] = CStringGetTextDatum(severity);
	values[VERIFY_OBJECT] = CStringGetTextDatum(object);
	values[VERIFY_PROBLEM] = CStringGetTextDatum(problem);
	values[VERIFY_RELATION] = ObjectIdGetDatum(RelationGetRelid(v->rel));
	tuplestore_putvalues(v->rsinfo->setResult, v->rsinfo->setDesc, values, nulls);
}

void
paimon_verify_report(const PaimonVerify *v, const char *severity, const char *object, const char *fmt,...)
{
	StringInfoData buf;

	initStringInfo(&buf);
	for (;;)
	{
		va_list		args;
		int			needed;

		va_start(args, fmt);
		needed = appendStringInfoVA(&buf, fmt, args);
		va_end(args);
		if (needed == 0)
			break;
		enlargeStringInfo(&buf, needed);
	}
	put_row(v, severity, object, buf.data);
	pfree(buf.data);
}

/* What an error says: message and detail. */
static void
report_error(PaimonVerify *v, const char *object, const ErrorData *edata)
{
	if (edata->detail != NULL)
		paimon_verify_report(v, "error", object, "%s: %s", edata->message, edata->detail);
	else
		paimon_verify_report(v, "error", object, "%s", edata->message);
}

static bool
is_damage(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_DATA_CORRUPTED || sqlerrcode == ERRCODE_INDEX_CORRUPTED ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_IO_ERROR;
}

bool
paimon_verify_guarded(PaimonVerify *v, const char *object, paimon_verify_check check, void *arg)
{
	MemoryContext old = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon verify", ALLOCSET_DEFAULT_SIZES);
	volatile bool ok = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(cxt);
	PG_TRY();
	{
		check(v, arg);
		ReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old);
		CurrentResourceOwner = owner;
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(old);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(old);
		CurrentResourceOwner = owner;
		if (!is_damage(edata->sqlerrcode))
			ReThrowError(edata);	/* with no sub-transaction open that nobody would close */
		report_error(v, object, edata);
		FreeErrorData(edata);
		ok = false;
	}
	PG_END_TRY();
	MemoryContextDelete(cxt);
	return ok;
}

/* Read by one snapshot, into the caller's context. */
static void
read_manifest(PaimonVerify *v)
{
	uint64		storage_id = v->table->storage_id;

	v->live = paimon_catalog_files(storage_id, v->snapshot, &v->nlive);
	v->closed = paimon_catalog_closed_files(storage_id, v->snapshot, &v->nclosed);
	v->snapshots = paimon_catalog_snapshots(storage_id, v->snapshot, &v->nsnapshots);
	if (!paimon_catalog_log_get(storage_id, v->snapshot, &v->log))
		memset(&v->log, 0, sizeof(v->log));
}

static void
verify_one(ReturnSetInfo *rsinfo, Relation rel)
{
	PaimonVerify v = {.rsinfo = rsinfo, .rel = rel, .snapshot = GetActiveSnapshot()};
	MemoryContext cxt;
	MemoryContext old;
	PaimonStorageRow row;

	CHECK_FOR_INTERRUPTS();
	v.table = paimon_table_get(rel, false);
	if (v.table->storage_id == 0)
		return;
	cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon verify table", ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(cxt);
	if (!paimon_catalog_storage_get(v.table->storage_id, InvalidOid, &row) && !paimon_storage_is_reborn(rel))
		paimon_verify_report(&v, "error", "manifest", "\"paimon.storage\" has no row for storage " UINT64_FORMAT, v.table->storage_id);
	read_manifest(&v);
	paimon_verify_manifest(&v);
	paimon_verify_space(&v);
	paimon_verify_files(&v);
	paimon_verify_log(&v);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(cxt);
}

/* Whoever may read the table, or owns it, may look; checked before any lock. */
static Relation
open_table(Oid relid)
{
	char	   *relname = get_rel_name(relid);
	Relation	rel;

	paimon_require_preload();
	if (relname == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", relid)));
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table using access method paimon", relname)));
	if (!paimon_owns_relation(relid) && pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(get_rel_relkind(relid)), relname);
	rel = try_relation_open(relid, AccessShareLock);
	if (rel == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"%s\" does not exist", relname),
				 errdetail("It was dropped concurrently.")));
	if (RELATION_IS_OTHER_TEMP(rel))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot read temporary table \"%s\" of another session", relname)));
	if (!paimon_is_table(relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("access method of table \"%s\" was changed concurrently", relname)));
	return rel;
}

/* paimon.verify(regclass): no rows if all is well.  Of a partitioned table: all partitions that are ours. */
Datum
paimon_verify(PG_FUNCTION_ARGS)
{
	Relation	rel = open_table(PG_GETARG_OID(0));
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		verify_one(rsinfo, rel);
	else
	{
		ListCell   *lc;

		foreach(lc, find_all_inheritors(RelationGetRelid(rel), AccessShareLock, NULL))
		{
			Relation	leaf;

			if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_RELATION || !paimon_is_table(lfirst_oid(lc)))
				continue;
			leaf = table_open(lfirst_oid(lc), NoLock);
			verify_one(rsinfo, leaf);
			table_close(leaf, NoLock);
		}
	}
	table_close(rel, NoLock);
	return (Datum) 0;
}
