/*-------------------------------------------------------------------------
 *
 * catalog_relation.c
 *	  Where the extension's objects are: OIDs, looked up once per backend and forgotten when they change.
 *
 * The cache is filled in one go and dropped as a whole: by a relcache invalidation of one of the manifest tables or indexes, and by any
 * change of a schema.  So DROP EXTENSION and CREATE EXTENSION in any session are noticed.  A schema or table that only has the right name does not
 * count: the objects must belong to the extension.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "catalog/catalog_internal.h"

#define EXTENSION_NAME	"paimon_am"
#define SCHEMA_NAME		"paimon"

static const char *const table_names[PAIMON_MANIFEST_TABLES] = {
	"storage", "log", "file", "snapshot"
};

static const char *const index_names[PAIMON_MANIFEST_INDEXES] = {
	"storage_pkey", "storage_relid_idx", "log_pkey", "file_pkey", "snapshot_pkey"
};

static struct
{
	bool		valid;
	Oid			extension;
	Oid			namespace;
	Oid			tables[PAIMON_MANIFEST_TABLES];
	Oid			indexes[PAIMON_MANIFEST_INDEXES];
} cache;

static bool callbacks_registered = false;

/* Relcache callback: InvalidOid means everything. */
static void
forget_relation(Datum arg, Oid relid)
{
	if (!cache.valid)
		return;
	if (!OidIsValid(relid))
	{
		cache.valid = false;
		return;
	}
	for (int i = 0; i < PAIMON_MANIFEST_TABLES; i++)
	{
		if (cache.tables[i] == relid)
			cache.valid = false;
	}
	for (int i = 0; i < PAIMON_MANIFEST_INDEXES; i++)
	{
		if (cache.indexes[i] == relid)
			cache.valid = false;
	}
}

/* Syscache callback for schemas: they change rarely. */
static void
forget_namespace(Datum arg, int cacheid, uint32 hashvalue)
{
	cache.valid = false;
}

/* Schema and extension, or false. */
static bool
find_extension(Oid *namespace, Oid *extension)
{
	*namespace = get_namespace_oid(SCHEMA_NAME, true);
	if (!OidIsValid(*namespace))
		return false;			/* the usual case without the extension, and a cheap one */
	*extension = get_extension_oid(EXTENSION_NAME, true);
	return OidIsValid(*extension) &&
		getExtensionOfObject(NamespaceRelationId, *namespace) == *extension;
}

static void
report_absent(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("extension \"%s\" is not installed in database \"%s\"", EXTENSION_NAME,
					get_database_name(MyDatabaseId)),
			 errhint("Run CREATE EXTENSION %s.", EXTENSION_NAME)));
}

static void
report_missing(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("object \"%s.%s\" of extension \"%s\" is missing", SCHEMA_NAME, name, EXTENSION_NAME),
			 errdetail("The installed version of the extension may be older or newer than the loaded library."),
			 errhint("Run ALTER EXTENSION %s UPDATE.", EXTENSION_NAME)));
}

/*
 * Fills the cache if it is not valid.  Looking up can process invalidations that make what was found stale, so validity is set first and
 * the work repeated if it was lost.
 */
static void
fill_cache(void)
{
	while (!cache.valid)
	{
		Oid			namespace;
		Oid			extension;

		if (!callbacks_registered)
		{
			CacheRegisterRelcacheCallback(forget_relation, (Datum) 0);
			CacheRegisterSyscacheCallback(NAMESPACEOID, forget_namespace, (Datum) 0);
			callbacks_registered = true;
		}
		memset(&cache, 0, sizeof(cache));
		AcceptInvalidationMessages();
		if (!find_extension(&namespace, &extension))
			report_absent();
		for (int i = 0; i < PAIMON_MANIFEST_TABLES; i++)
		{
			Oid			relid = get_relname_relid(table_names[i], namespace);

			if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_RELATION ||
				getExtensionOfObject(RelationRelationId, relid) != extension)
				report_missing(table_names[i]);
			cache.tables[i] = relid;
		}
		for (int i = 0; i < PAIMON_MANIFEST_INDEXES; i++)
		{
			Oid			relid = get_relname_relid(index_names[i], namespace);

			if (!OidIsValid(relid) || get_rel_relkind(relid) != RELKIND_INDEX)
				report_missing(index_names[i]);
			cache.indexes[i] = relid;
		}
		cache.namespace = namespace;
		cache.extension = extension;
		cache.valid = true;

		/* What arrived while we looked may have been about an OID not yet in the cache: look once more if anything moved. */
		for (int i = 0; i < PAIMON_MANIFEST_TABLES && cache.valid; i++)
		{
			if (get_relname_relid(table_names[i], namespace) != cache.tables[i])
				cache.valid = false;
		}
	}
}

Oid
paimon_manifest_table_oid(PaimonManifestTable table)
{
	if (unlikely(!cache.valid))
		fill_cache();
	return cache.tables[table];
}

Oid
paimon_manifest_index_oid(PaimonManifestIndex index)
{
	if (unlikely(!cache.valid))
		fill_cache();
	return cache.indexes[index];
}

/* OID of schema paimon; an error if the extension is absent.  Needs a transaction, as all of this file. */
Oid
paimon_catalog_namespace(void)
{
	if (unlikely(!cache.valid))
		fill_cache();
	return cache.namespace;
}

/* OID of a relation in schema paimon; an error if it is absent.  Only the manifest tables are cached. */
Oid
paimon_catalog_relid(const char *name)
{
	Oid			namespace = paimon_catalog_namespace();
	Oid			relid;

	for (int i = 0; i < PAIMON_MANIFEST_TABLES; i++)
	{
		if (strcmp(name, table_names[i]) == 0)
			return cache.tables[i];
	}
	relid = get_relname_relid(name, namespace);
	if (!OidIsValid(relid))
		report_missing(name);
	return relid;
}

/* Is the extension installed in this database?  Cheap where it is not, unless a schema of that name exists. */
bool
paimon_extension_exists(void)
{
	Oid			namespace;
	Oid			extension;

	return cache.valid || find_extension(&namespace, &extension);
}

/*
 * Are all manifest tables there?  Not while DROP EXTENSION … CASCADE is at work, which deletes them and users' tables in any order.
 */
bool
paimon_manifest_exists(void)
{
	Oid			namespace;
	Oid			extension;

	if (cache.valid)
		return true;
	if (!find_extension(&namespace, &extension))
		return false;
	for (int i = 0; i < PAIMON_MANIFEST_TABLES; i++)
	{
		if (!OidIsValid(get_relname_relid(table_names[i], namespace)))
			return false;
	}
	for (int i = 0; i < PAIMON_MANIFEST_INDEXES; i++)
	{
		if (!OidIsValid(get_relname_relid(index_names[i], namespace)))
			return false;
	}
	return true;
}
