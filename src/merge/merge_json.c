/*-------------------------------------------------------------------------
 *
 * merge_json.c
 *	  jsonb as lists of the aggregate functions: the entries of an object where a map is meant, the objects of an array where rows are.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "merge/merge_server.h"

/* An element: a map's entry has a key, a row has none. */
typedef struct JsonElement
{
	JsonbValue	key;
	JsonbValue	value;
} JsonElement;

static const JsonElement *
element(const PaimonCell *e)
{
	return (const JsonElement *) (uintptr_t) e->word;
}

static bool
is_map(const PaimonMergeColumn *col)
{
	return col->nested_key == NULL && strncmp(paimon_merge_function_name(col), "merge_map", strlen("merge_map")) == 0;
}

/* ---------- fields ---------- */

/* A field of an object; NULL if it is not there or null. */
static JsonbValue *
field(const JsonbValue *object, const char *name, JsonbValue *space)
{
	JsonbValue *v = NULL;

	if (object->type == jbvBinary && JsonContainerIsObject(object->val.binary.data))
		v = getKeyJsonValueFromContainer(object->val.binary.data, name, (int) strlen(name), space);
	return v != NULL && v->type != jbvNull ? v : NULL;
}

static int
compare_values(JsonbValue *a, JsonbValue *b)
{
	Jsonb	   *x = JsonbValueToJsonb(a);
	Jsonb	   *y = JsonbValueToJsonb(b);
	int			c = compareJsonbContainers(&x->root, &y->root);

	pfree(x);
	pfree(y);
	return c;
}

/* NULL is the smallest and equal to itself. */
static int
compare_fields(const JsonbValue *a, const JsonbValue *b, char *const *names, int n)
{
	for (int i = 0; i < n; i++)
	{
		JsonbValue	xspace;
		JsonbValue	yspace;
		JsonbValue *x = field(a, names[i], &xspace);
		JsonbValue *y = field(b, names[i], &yspace);
		int			c = (x != NULL) - (y != NULL);

		if (x != NULL && y != NULL)
			c = compare_values(x, y);
		if (c != 0)
			return c;
	}
	return 0;
}

/* ---------- in and out ---------- */

static void
add_element(PaimonList *list, const JsonbValue *key, const JsonbValue *value)
{
	JsonElement *e = palloc0_object(JsonElement);

	if (key != NULL)
		e->key = *key;
	e->value = *value;
	if (list->n == list->cap)
	{
		list->cap = list->cap == 0 ? 16 : list->cap * 2;
		list->e = list->e == NULL ? palloc_array(PaimonCell, list->cap) : repalloc_array(list->e, PaimonCell, list->cap);
	}
	list->e[list->n].word = (uint64_t) (uintptr_t) e;
	list->e[list->n++].isnull = false;
}

/* An entry of merge_map_with_keytime is an object whose time is a string, or null. */
static bool
entry_is_good(const PaimonMergeColumn *col, const JsonbValue *value)
{
	JsonbValue	space;
	JsonbValue *time;

	if (col->ts_field == NULL || value->type == jbvNull)
		return true;
	if (value->type != jbvBinary || !JsonContainerIsObject(value->val.binary.data))
		return false;
	time = field(value, col->ts_field, &space);
	return time == NULL || time->type == jbvString;
}

static PaimonFoldCode
unpack(const PaimonMergeColumn *col, Jsonb *json, PaimonList *out)
{
	bool		map = is_map(col);
	JsonbIterator *it = JsonbIteratorInit(&json->root);
	JsonbIteratorToken token;
	JsonbValue	value;
	JsonbValue	key;

	if (map ? !JB_ROOT_IS_OBJECT(json) : (!JB_ROOT_IS_ARRAY(json) || JB_ROOT_IS_SCALAR(json)))
		return PAIMON_FOLD_BAD_VALUE;
	(void) JsonbIteratorNext(&it, &value, true);
	while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
	{
		if (token == WJB_KEY)
			key = value;
		else if (token == WJB_VALUE)
		{
			if (!entry_is_good(col, &value))
				return PAIMON_FOLD_BAD_VALUE;
			add_element(out, &key, &value);
		}
		else if (token == WJB_ELEM)
		{
			if (value.type != jbvBinary || !JsonContainerIsObject(value.val.binary.data))
				return PAIMON_FOLD_BAD_VALUE;
			add_element(out, NULL, &value);
		}
	}
	return PAIMON_FOLD_OK;
}

static PaimonFoldCode
json_unpack(const PaimonMergeColumn *col, uint64_t value, const PaimonAllocator *alloc, PaimonList *out)
{
	MemoryContext old = paimon_merge_enter(alloc);
	PaimonFoldCode code;

	memset(out, 0, sizeof(*out));
	code = unpack(col, DatumGetJsonbP((Datum) value), out);
	MemoryContextSwitchTo(old);
	return code;
}

static uint64_t
json_pack(const PaimonMergeColumn *col, const PaimonList *list, const PaimonAllocator *alloc)
{
	MemoryContext old = paimon_merge_enter(alloc);
	bool		map = is_map(col);
	JsonbParseState *state = NULL;
	JsonbValue *result;
	Jsonb	   *json;

	(void) pushJsonbValue(&state, map ? WJB_BEGIN_OBJECT : WJB_BEGIN_ARRAY, NULL);
	for (uint32 i = 0; i < list->n; i++)
	{
		JsonElement e = *element(&list->e[i]);

		if (map)
			(void) pushJsonbValue(&state, WJB_KEY, &e.key);
		(void) pushJsonbValue(&state, map ? WJB_VALUE : WJB_ELEM, &e.value);
	}
	result = pushJsonbValue(&state, map ? WJB_END_OBJECT : WJB_END_ARRAY, NULL);
	json = JsonbValueToJsonb(result);
	MemoryContextSwitchTo(old);
	return (uint64_t) JsonbPGetDatum(json);
}

/* ---------- elements ---------- */

static bool
json_equal(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b, bool by_key)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	JsonElement x = *element(a);
	JsonElement y = *element(b);

	if (by_key && t->nkeys > 0)
		return compare_fields(&x.value, &y.value, t->keynames, t->nkeys) == 0;
	if (is_map(col) && (x.key.val.string.len != y.key.val.string.len ||
						memcmp(x.key.val.string.val, y.key.val.string.val, x.key.val.string.len) != 0))
		return false;
	return by_key || compare_values(&x.value, &y.value) == 0;
}

static uint32_t
json_hash(const PaimonMergeColumn *col, const PaimonCell *e, bool by_key)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	const JsonElement *x = element(e);
	uint32		hash = 0;

	if (is_map(col))
		return DatumGetUInt32(hash_any((const unsigned char *) x->key.val.string.val, x->key.val.string.len));
	if (!by_key)
		return hash_bytes_uint32(x->value.val.binary.len);
	for (int i = 0; i < t->nkeys; i++)
	{
		JsonbValue	space;
		JsonbValue *v = field(&x->value, t->keynames[i], &space);

		if (v != NULL && v->type != jbvBinary)
			JsonbHashScalarValue(v, &hash);
	}
	return hash;
}

static bool
json_key_has_null(const PaimonMergeColumn *col, const PaimonCell *e)
{
	const PaimonMergeType *t = paimon_merge_type(col);

	for (int i = 0; i < t->nkeys; i++)
	{
		JsonbValue	space;

		if (field(&element(e)->value, t->keynames[i], &space) == NULL)
			return true;
	}
	return false;
}

/* Times of entries compare as strings, byte by byte. */
static int
compare_times(const JsonbValue *x, const JsonbValue *y)
{
	if (x == NULL || y == NULL)
		return (x != NULL) - (y != NULL);
	return paimon_bytes_cmp((const uint8_t *) x->val.string.val, x->val.string.len, (const uint8_t *) y->val.string.val, y->val.string.len);
}

static int
json_order(const PaimonMergeColumn *col, const PaimonCell *a, const PaimonCell *b)
{
	const PaimonMergeType *t = paimon_merge_type(col);
	JsonbValue	xspace;
	JsonbValue	yspace;

	if (col->ts_field != NULL)
		return compare_times(field(&element(a)->value, col->ts_field, &xspace), field(&element(b)->value, col->ts_field, &yspace));
	return compare_fields(&element(a)->value, &element(b)->value, t->ordernames, t->norder);
}

static bool
json_order_is_null(const PaimonMergeColumn *col, const PaimonCell *e)
{
	JsonbValue	space;

	return field(&element(e)->value, col->ts_field, &space) == NULL;
}

static bool
json_is_void(const PaimonMergeColumn *col, const PaimonCell *e)
{
	return element(e)->value.type == jbvNull;
}

/* The later of two equal fields of an object counts: the new ones come behind. */
static PaimonCell
json_overlay(const PaimonMergeColumn *col, const PaimonCell *old, const PaimonCell *new, const PaimonAllocator *alloc)
{
	MemoryContext cxt = paimon_merge_enter(alloc);
	const PaimonCell *const parts[2] = {old, new};
	JsonElement *result = palloc0_object(JsonElement);
	PaimonCell	cell = {.word = (uint64_t) (uintptr_t) result, .isnull = false};
	JsonbParseState *state = NULL;
	Jsonb	   *json;

	(void) pushJsonbValue(&state, WJB_BEGIN_OBJECT, NULL);
	for (int i = 0; i < 2; i++)
	{
		JsonbIterator *it = JsonbIteratorInit(element(parts[i])->value.val.binary.data);
		JsonbIteratorToken token;
		JsonbValue	value;
		JsonbValue	key;

		(void) JsonbIteratorNext(&it, &value, true);
		while ((token = JsonbIteratorNext(&it, &value, true)) != WJB_DONE)
		{
			if (token == WJB_KEY)
				key = value;
			else if (token == WJB_VALUE && (i == 0 || value.type != jbvNull))
			{
				(void) pushJsonbValue(&state, WJB_KEY, &key);
				(void) pushJsonbValue(&state, WJB_VALUE, &value);
			}
		}
	}
	json = JsonbValueToJsonb(pushJsonbValue(&state, WJB_END_OBJECT, NULL));
	result->value.type = jbvBinary;
	result->value.val.binary.data = &json->root;
	result->value.val.binary.len = VARSIZE(json) - VARHDRSZ;
	MemoryContextSwitchTo(cxt);
	return cell;
}

const PaimonMergeOps paimon_merge_json_ops = {
	.compare = paimon_merge_type_compare, .unpack = json_unpack, .pack = json_pack, .hash = json_hash, .equal = json_equal,
	.key_has_null = json_key_has_null, .order = json_order, .order_is_null = json_order_is_null, .is_void = json_is_void,
	.overlay = json_overlay,
};

void
paimon_merge_json_fields(PaimonMergeColumn *col)
{
	PaimonMergeType *t = col->ops_arg;

	if (col->nested_key != NULL)
		t->keynames = paimon_merge_names(col->nested_key, &t->nkeys);
	if (col->nested_sequence != NULL)
		t->ordernames = paimon_merge_names(col->nested_sequence, &t->norder);
}
