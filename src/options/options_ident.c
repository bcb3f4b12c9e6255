/*-------------------------------------------------------------------------
 *
 * options_ident.c
 *	  Which relations are ours.
 *
 * Tables and materialized views say so by their access method.  A partitioned
 * table has none before version 17, and on newer servers a restore gives it one only
 * after it was created: so an option marks it, on all versions alike.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "utils/syscache.h"

#include "options/options.h"

static Oid
am_oid(const char *name, char amtype)
{
	HeapTuple	tuple = SearchSysCache1(AMNAME, CStringGetDatum(name));
	Oid			oid = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		Form_pg_am	form = (Form_pg_am) GETSTRUCT(tuple);

		if (form->amtype == amtype)
			oid = form->oid;
		ReleaseSysCache(tuple);
	}
	return oid;
}

Oid
paimon_table_am_oid(void)
{
	return am_oid("paimon", AMTYPE_TABLE);
}

Oid
paimon_key_am_oid(void)
{
	return am_oid("paimon_key", AMTYPE_INDEX);
}

Oid			paimon_becomes_heap = InvalidOid;

bool
paimon_is_table(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Form_pg_class form;
	bool		ours = false;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW)
		ours = OidIsValid(form->relam) && form->relam == paimon_table_am_oid();
	else if (form->relkind == RELKIND_PARTITIONED_TABLE)
	{
		bool		isnull;
		Datum		reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);

		ours = paimon_option_item(paimon_options_untransform(reloptions, isnull, NULL),
								  PAIMON_MARK_OPTION) != NULL;
	}
	ReleaseSysCache(tuple);
	return ours;
}
