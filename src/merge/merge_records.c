/*-------------------------------------------------------------------------
 *
 * merge_records.c
 *	  The fold over records as they lie in logs, buffers and run files.
 *
 * Records of a key are remembered as they lie, and folded column by column from there, as long as nothing but adding happens to it and there are few of
 * them (merge_vectors.c); else they go to the fold as rows.
 *
 * Memory: a context for the fold and one for the key at hand, which is emptied at the next key.  When a key has so many records that its context grows
 * large, what they come to so far is copied into another one, and the first is emptied.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "core/core_key.h"
#include "merge/merge_records.h"
#include "merge/merge_server.h"
#include "merge/merge_vectors.h"
#include "run/run_group.h"

StaticAssertDecl(sizeof(Datum) == sizeof(uint64_t), "values of a fold are Datums");

#define KEY_LIMIT ((Size) 4 * 1024 * 1024)	/* memory of a key's records at which they are joined on the way */
#define ADDS_A_LOOK 256			/* between two looks at it */
#define MAX_REFS	128			/* records of a key that are remembered as they lie */

struct PaimonMerger
{
	const char *relname;
	const PaimonRowDesc *desc;
	const PaimonMergePlan *plan;
	bool		show_key;
	MemoryContext cxt;
	MemoryContext key_cxt;
	MemoryContext spare_cxt;	/* takes over when key_cxt is too large */
	Size		key_limit;		/* of key_cxt's memory */
	uint32		added;
	PaimonAllocator alloc;
	PaimonAllocator key_alloc;
	PaimonFold *fold;
	PaimonVectorPlan *vectors;	/* NULL: columns cannot be folded from where the records lie */
	bool		direct;			/* the key's records are refs[0 .. nrefs), and the fold has none of them */
	int			nrefs;
	PaimonRecordRef *refs;
	Datum	   *row_values;		/* what they come to */
	bool	   *row_nulls;
	PaimonFoldRecord row;
	int			decoded;		/* attributes of a payload that are decoded */
	uint8		key[PAIMON_KEY_MAX];
	uint32		keylen;
	const PaimonFoldRecord *out;
};

static void
begin_direct(PaimonMerger *m)
{
	MemoryContext old = MemoryContextSwitchTo(m->cxt);
	int			natts = m->desc->tupdesc->natts;

	m->vectors = paimon_vectors_plan(m->plan);
	if (m->vectors != NULL)
	{
		m->refs = palloc_array(PaimonRecordRef, MAX_REFS);
		m->row_values = palloc0_array(Datum, natts + 1);
		m->row_nulls = palloc_array(bool, natts + 1);
		memset(m->row_nulls, true, natts + 1);
		m->row.values = (const uint64_t *) m->row_values;
		m->row.nulls = m->row_nulls;
	}
	MemoryContextSwitchTo(old);
}

PaimonMerger *
paimon_merger_begin(const char *relname, const PaimonRowDesc *desc, const PaimonMergePlan *plan, bool show_key)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "paimon merger", ALLOCSET_SMALL_SIZES);
	PaimonMerger *m = MemoryContextAllocZero(cxt, sizeof(PaimonMerger));

	Assert(plan->ncolumns == desc->tupdesc->natts);
	m->relname = relname;
	m->desc = desc;
	m->plan = plan;
	m->show_key = show_key;
	m->decoded = plan->nactive > 0 ? plan->active[plan->nactive - 1] + 1 : 0;
	m->cxt = cxt;
	m->key_cxt = AllocSetContextCreate(cxt, "paimon merger key", ALLOCSET_DEFAULT_SIZES);
	m->spare_cxt = AllocSetContextCreate(cxt, "paimon merger key", ALLOCSET_DEFAULT_SIZES);
	paimon_merge_allocator(m->cxt, &m->alloc);
	paimon_merge_allocator(m->key_cxt, &m->key_alloc);
	m->fold = paimon_fold_create(plan, &m->alloc);
	begin_direct(m);
	return m;
}

void
paimon_merger_end(PaimonMerger *m)
{
	MemoryContextDelete(m->cxt);
}

void
paimon_merger_key(PaimonMerger *m, const uint8 *key, uint32 len)
{
	MemoryContextReset(m->key_cxt);
	Assert(len <= PAIMON_KEY_MAX);
	paimon_copy_key(m->key, key, len);
	m->keylen = len;
	m->direct = m->vectors != NULL;
	m->nrefs = 0;
	m->key_limit = KEY_LIMIT;
	m->added = 0;
	paimon_fold_begin(m->fold, &m->key_alloc);
}

PaimonBytes
paimon_merger_key_bytes(const PaimonMerger *m)
{
	PaimonBytes key = {.data = m->key, .len = m->keylen};

	return key;
}

/* Copies a record of the fold into CurrentMemoryContext. */
static void
copy_record(const PaimonMerger *m, const PaimonFoldRecord *from, PaimonFoldRecord *to)
{
	int			natts = m->desc->tupdesc->natts;
	Datum	   *values = palloc0_array(Datum, natts + 1);
	bool	   *nulls = palloc_array(bool, natts + 1);

	memset(nulls, true, natts + 1);
	for (int i = 0; i < m->plan->nactive; i++)
	{
		int			c = m->plan->active[i];
		Form_pg_attribute att = TupleDescAttr(m->desc->tupdesc, c);

		nulls[c] = from->nulls[c];
		if (!nulls[c])
			values[c] = datumCopy((Datum) from->values[c], att->attbyval, att->attlen);
	}
	to->kind = from->kind;
	to->values = (const uint64_t *) values;
	to->nulls = nulls;
}

/*
 * The key has many records: what they come to replaces them, as it would if it had been stored in between, and their memory is given back.
 */
static void
move_on(PaimonMerger *m)
{
	MemoryContext full = m->key_cxt;
	MemoryContext old = MemoryContextSwitchTo(m->spare_cxt);
	const PaimonFoldRecord *out;
	int			n = paimon_fold_partial(m->fold, false, &out);
	PaimonFoldRecord *records = palloc_array(PaimonFoldRecord, n + 1);

	for (int i = 0; i < n; i++)
		copy_record(m, &out[i], &records[i]);
	MemoryContextSwitchTo(old);

	m->key_cxt = m->spare_cxt;
	m->spare_cxt = full;
	paimon_merge_allocator(m->key_cxt, &m->key_alloc);
	paimon_fold_begin(m->fold, &m->key_alloc);
	for (int i = 0; i < n; i++)
		(void) paimon_fold_add(m->fold, &records[i]);
	MemoryContextReset(full);
	m->key_limit = Max(KEY_LIMIT, 2 * MemoryContextMemAllocated(m->key_cxt, true));
}

static bool
add(PaimonMerger *m, uint8 kind, const Datum *values, const bool *nulls)
{
	PaimonFoldRecord record = {.kind = kind, .values = (const uint64_t *) values, .nulls = nulls};

	CHECK_FOR_INTERRUPTS();
	if (unlikely(++m->added % ADDS_A_LOOK == 0) && MemoryContextMemAllocated(m->key_cxt, true) > m->key_limit)
	{
		PaimonFoldRecord copy;
		MemoryContext old = MemoryContextSwitchTo(m->spare_cxt);

		copy_record(m, &record, &copy);
		MemoryContextSwitchTo(old);
		move_on(m);
		return paimon_fold_add(m->fold, &copy);
	}
	return paimon_fold_add(m->fold, &record);
}

/* A row of a group as values in the key's memory. */
static bool
add_copy(PaimonMerger *m, uint8 kind, PaimonRunGroup *group, uint32 row, bool whole)
{
	MemoryContext old = MemoryContextSwitchTo(m->key_cxt);
	int			natts = m->desc->tupdesc->natts;
	Datum	   *values = palloc_array(Datum, natts + 1);
	bool	   *nulls = palloc_array(bool, natts + 1);

	if (m->plan->nactive < natts)
		memset(nulls, true, natts);
	for (int i = 0; i < m->plan->nactive; i++)
	{
		int			c = m->plan->active[i];

		if (!whole && group->values[c] == NULL)
		{
			values[c] = paimon_run_group_value(group, row, c, false, &nulls[c]);
			continue;
		}
		if (group->values[c] == NULL)
			paimon_run_group_load(group, c);
		nulls[c] = group->nulls[c] != NULL && group->nulls[c][row];
		values[c] = nulls[c] ? (Datum) 0 : group->values[c][row];
	}
	MemoryContextSwitchTo(old);
	return add(m, kind, values, nulls);
}

/* The records remembered go to the fold. */
static void
leave_direct(PaimonMerger *m)
{
	m->direct = false;
	for (int i = 0; i < m->nrefs; i++)
	{
		const PaimonRecordRef *r = &m->refs[i];

		if (r->group != NULL)
			(void) add_copy(m, r->kind, r->group, r->row, true);
		else
			(void) add(m, r->kind, r->values, r->nulls);
	}
}

/* Does what is remembered begin with a row that older records cannot change?  Whoever goes on adding them all the same has them passed over. */
static inline bool
is_complete(const PaimonMerger *m)
{
	return m->nrefs > 0 && m->refs[m->nrefs - 1].kind == PAIMON_KIND_REPLACE;
}

/* Remembers a record where it lies; false if it must go to the fold. */
static inline bool
remember(PaimonMerger *m, uint8 kind, const Datum *values, const bool *nulls, PaimonRunGroup *group, uint32 row)
{
	PaimonRecordRef *r;

	if (!m->direct)
		return false;
	if (is_complete(m))
		return true;
	if (!paimon_vectors_take(kind) || m->nrefs == MAX_REFS)
	{
		leave_direct(m);
		return false;
	}
	CHECK_FOR_INTERRUPTS();
	r = &m->refs[m->nrefs++];
	r->group = group;
	r->row = row;
	r->kind = kind;
	r->values = values;
	r->nulls = nulls;
	return true;
}

/* The key's records from where they lie, into m->row; false: the fold must say. */
static bool
fold_direct(PaimonMerger *m)
{
	uint8		oldest;

	if (!m->direct)
		return false;
	if (m->nrefs == 0 || !paimon_vectors_fold(m->vectors, m->refs, m->nrefs, m->row_values, m->row_nulls))
	{
		leave_direct(m);
		return false;
	}
	oldest = m->refs[m->nrefs - 1].kind;
	m->row.kind = m->nrefs == 1 || oldest == PAIMON_KIND_REPLACE ? oldest : PAIMON_KIND_INSERT;
	return true;
}

bool
paimon_merger_add_values(PaimonMerger *m, uint8 kind, const Datum *values, const bool *isnull)
{
	if (remember(m, kind, values, isnull, NULL, 0))
		return !is_complete(m);
	return add(m, kind, values, isnull);
}

bool
paimon_merger_add(PaimonMerger *m, uint8 kind, const uint8 *payload, uint32 len, bool copy)
{
	MemoryContext old = MemoryContextSwitchTo(m->key_cxt);
	int			natts = m->desc->tupdesc->natts;
	Datum	   *values = palloc_array(Datum, natts + 1);
	bool	   *nulls = palloc_array(bool, natts + 1);

	if (copy && len > 0)
	{
		uint8	   *mine = palloc(len);

		memcpy(mine, payload, len);
		payload = mine;
	}
	paimon_row_decode(m->desc, m->key, m->keylen, payload, len, m->decoded, values, nulls);
	memset(nulls + m->decoded, true, natts - m->decoded);
	MemoryContextSwitchTo(old);
	return paimon_merger_add_values(m, kind, values, nulls);
}

bool
paimon_merger_add_row(PaimonMerger *m, uint8 kind, PaimonRunGroup *group, uint32 row, bool whole)
{
	/* what is not decoded whole is decoded now, while it is known that just this row is wanted */
	if (whole && remember(m, kind, NULL, NULL, group, row))
		return !is_complete(m);
	if (!whole && m->direct)
		leave_direct(m);
	return add_copy(m, kind, group, row, whole);
}

/* Errors that the types' and users' functions raise by themselves say where, too. */
static void
merging_callback(void *arg)
{
	PaimonMerger *m = arg;

	if (m->show_key)
		errcontext("merging the rows with key %s of table \"%s\"", paimon_key_describe(m->desc, m->key, m->keylen), m->relname);
	else
		errcontext("merging rows of table \"%s\"", m->relname);
}

bool
paimon_merger_row(PaimonMerger *m, const Datum **values, const bool **isnull)
{
	ErrorContextCallback callback = {.previous = error_context_stack, .callback = merging_callback, .arg = m};
	PaimonFoldRecord row;
	PaimonFoldError error;
	PaimonFoldOutcome outcome = PAIMON_FOLD_ROW;

	error_context_stack = &callback;
	if (fold_direct(m))
		row = m->row;
	else
		outcome = paimon_fold_visible(m->fold, &row, &error);
	error_context_stack = callback.previous;
	if (outcome == PAIMON_FOLD_FAILED)
		paimon_merge_report(m->relname, m->plan, &error, m->show_key ? paimon_key_describe(m->desc, m->key, m->keylen) : NULL);
	if (outcome == PAIMON_FOLD_GONE)
		return false;
	*values = (const Datum *) row.values;
	*isnull = row.nulls;
	return true;
}

int
paimon_merger_partial(PaimonMerger *m, bool oldest)
{
	ErrorContextCallback callback = {.previous = error_context_stack, .callback = merging_callback, .arg = m};
	int			n;

	error_context_stack = &callback;
	if (fold_direct(m))
	{
		m->out = &m->row;
		n = 1;
	}
	else
		n = paimon_fold_partial(m->fold, oldest, &m->out);
	error_context_stack = callback.previous;
	return n;
}

uint8
paimon_merger_record(PaimonMerger *m, int i, const Datum **values, const bool **isnull)
{
	*values = (const Datum *) m->out[i].values;
	*isnull = m->out[i].nulls;
	return m->out[i].kind;
}

uint8
paimon_merger_encode(PaimonMerger *m, int i, StringInfo payload)
{
	paimon_row_encode(m->desc, (const Datum *) m->out[i].values, m->out[i].nulls, payload);
	return m->out[i].kind;
}

uint8
paimon_merge_rewrite_kind(const PaimonMergePlan *plan, const bool *isnull)
{
	if (!plan->keeps_values)
		return PAIMON_KIND_REPLACE;
	for (int g = 0; g < plan->ngroups; g++)
	{
		const PaimonMergeGroup *group = &plan->groups[g];
		bool		active = false;
		bool		values = false;

		for (int i = 0; i < group->nordering; i++)
			active |= !isnull[group->ordering[i]];
		for (int i = 0; i < group->ncolumns; i++)
			values |= !isnull[group->columns[i]];
		if (values && !active)
			return PAIMON_KIND_REPLACE;
	}
	return PAIMON_KIND_INSERT;
}
