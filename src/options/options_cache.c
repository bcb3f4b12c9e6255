/*-------------------------------------------------------------------------
 *
 * options_cache.c
 *	  Options of a table at run time: parsed once, kept per backend.
 *
 * An entry is thrown away by the relcache invalidation that any change of
 * pg_class or of the table's columns sends.  Parsing takes no lock and raises
 * no error over what is stored: a table must stay readable whatever its options.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "options/options_def.h"

StaticAssertDecl(PAIMON_MAX_BUCKET_KEYS <= INDEX_MAX_KEYS || INDEX_MAX_KEYS < 32, "room for bucket keys");

typedef struct CacheEntry
{
	Oid			relid;			/* hash key */
	bool		valid;
	PaimonOptions options;
} CacheEntry;

static HTAB *cache = NULL;

static void
invalidate(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS status;
	CacheEntry *entry;

	if (OidIsValid(relid))
	{
		entry = hash_search(cache, &relid, HASH_FIND, NULL);
		if (entry != NULL)
			entry->valid = false;
		return;
	}
	hash_seq_init(&status, cache);
	while ((entry = hash_seq_search(&status)) != NULL)
		entry->valid = false;
}

static void
create_cache(void)
{
	HASHCTL		ctl = {0};

	ctl.keysize = sizeof(Oid);
	ctl.entrysize = sizeof(CacheEntry);
	ctl.hcxt = CacheMemoryContext;
	cache = hash_create("paimon table options", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	CacheRegisterRelcacheCallback(invalidate, (Datum) 0);
}

static void
store(PaimonOptions *out, const PaimonOptionDef *def, int64 value)
{
	char	   *field = (char *) out + def->offset;

	if (def->type == PAIMON_OPT_BOOL)
		*(bool *) field = value != 0;
	else if (def->narrow)
		*(int32 *) field = (int32) value;
	else
		*(int64 *) field = value;
}

void
paimon_options_defaults(PaimonOptions *out)
{
	memset(out, 0, sizeof(*out));
	out->snapshot_interval_ms = -1;
	out->optimization_interval_ms = -1;
	out->record_expire_time_ms = -1;
	out->num_retained_max = PG_INT64_MAX;
	for (const PaimonOptionDef *def = paimon_option_defs; def->name != NULL; def++)
	{
		int64		value;

		if (def->offset < 0 || def->deflt == NULL)
			continue;
		if (!paimon_option_parse(def, def->deflt, &value))
		{
			Assert(false);		/* the table is wrong */
			continue;
		}
		store(out, def, value);
	}
}

/* 0: there is none of that name. */
static AttrNumber
number_of_column(Relation rel, const char *name)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (!att->attisdropped && strcmp(NameStr(att->attname), name) == 0)
			return att->attnum;
	}
	return InvalidAttrNumber;
}

static void
set_bucket_key(Relation rel, PaimonOptions *out, const char *text)
{
	ListCell   *lc;

	out->nbucketkey = 0;
	foreach(lc, paimon_parse_columns(text))
	{
		AttrNumber	attno = number_of_column(rel, lfirst(lc));

		if (attno == InvalidAttrNumber)
		{
			out->nbucketkey = 0;
			return;
		}
		if (out->nbucketkey < PAIMON_MAX_BUCKET_KEYS)
			out->bucketkey[out->nbucketkey++] = attno;
	}
}

static void
set_record_time_field(Relation rel, PaimonOptions *out, const char *text)
{
	List	   *columns = paimon_parse_columns(text);

	out->record_time_field = columns == NIL ? InvalidAttrNumber : number_of_column(rel, linitial(columns));
}

static bool
is_retention(const PaimonOptionDef *def)
{
	return def->offset == offsetof(PaimonOptions, num_retained_min) || def->offset == offsetof(PaimonOptions, num_retained_max) ||
		def->offset == offsetof(PaimonOptions, time_retained_ms);
}

static void
fill(Relation rel, PaimonOptions *out)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "paimon options", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	HeapTuple	tuple;
	Datum		reloptions;
	bool		isnull;
	ListCell   *lc;

	paimon_options_defaults(out);
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(rel)));
	if (HeapTupleIsValid(tuple))
	{
		reloptions = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
		foreach(lc, paimon_options_untransform(reloptions, isnull, NULL))
		{
			const PaimonOptionItem *item = lfirst(lc);
			const PaimonOptionDef *def = paimon_option_find(item->name);
			int64		value;

			if (def == NULL || def->state != PAIMON_OPT_IMPLEMENTED)
				continue;
			if (strcmp(def->name, "bucket-key") == 0)
				set_bucket_key(rel, out, item->value);
			else if (strcmp(def->name, "record-level.time-field") == 0)
				set_record_time_field(rel, out, item->value);
			else if (def->offset < 0 || !paimon_option_parse(def, item->value, &value))
				continue;
			else
			{
				store(out, def, value);
				if (is_retention(def))
					out->retention_given = true;
			}
		}
		ReleaseSysCache(tuple);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

const PaimonOptions *
paimon_options_get(Relation rel)
{
	Oid			relid = RelationGetRelid(rel);
	PaimonOptions options;
	CacheEntry *entry;
	bool		found;

	if (cache == NULL)
		create_cache();
	entry = hash_search(cache, &relid, HASH_ENTER, &found);
	if (!found)
		entry->valid = false;
	if (entry->valid)
		return &entry->options;

	/*
	 * Reading the catalog may process invalidations, also for this entry.  Marking it valid first lets such
	 * a one win: the caller gets what was read, the next call reads again.
	 */
	entry->valid = true;
	PG_TRY();
	{
		fill(rel, &options);
	}
	PG_CATCH();
	{
		entry->valid = false;
		PG_RE_THROW();
	}
	PG_END_TRY();
	entry->options = options;
	return &entry->options;
}
