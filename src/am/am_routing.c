/*-------------------------------------------------------------------------
 *
 * am_routing.c
 *	  ON CONFLICT on servers that know only btrees as unique indexes (until 17).
 *
 * Core opens the indexes of a table that ON CONFLICT is about to insert into when the first row comes, and fails if a unique one is no btree.  It does not
 * open them again if that has been done: so we do it first, and find the equality operators by the btree operator classes that our indexes have.
 *
 * A partitioned table's partitions are opened by core's tuple routing when their first row comes.  There we look at each row before core does, and let core
 * prepare the partition for it as for a plain INSERT; what ON CONFLICT needs beyond that is added here.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/tableam.h"
#include "access/tupconvert.h"
#include "am/am.h"
#include "catalog/partition.h"
#include "executor/execPartition.h"
#include "executor/executor.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteManip.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* An ON CONFLICT into a partitioned table: the node that gives its rows, and how it did that before. */
typedef struct Routing
{
	struct Routing *next;
	PlanState  *source;
	ExecProcNodeMtd give_row;
	ModifyTableState *mt;
	ModifyTable *plain;			/* the plan, without ON CONFLICT */
} Routing;

static Routing *routings = NULL;

/* Equality of each key column, as core looks it up for btrees. */
static void
fill_unique_info(Relation index, IndexInfo *info)
{
	int			n = IndexRelationGetNumberOfKeyAttributes(index);

	info->ii_UniqueOps = palloc(sizeof(Oid) * n);
	info->ii_UniqueProcs = palloc(sizeof(Oid) * n);
	info->ii_UniqueStrats = palloc(sizeof(uint16) * n);
	for (int i = 0; i < n; i++)
	{
		Oid			type = index->rd_opcintype[i];

		info->ii_UniqueStrats[i] = BTEqualStrategyNumber;
		info->ii_UniqueOps[i] = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);
		if (!OidIsValid(info->ii_UniqueOps[i]))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("index \"%s\" has no equality operator for column %d", RelationGetRelationName(index), i + 1)));
		info->ii_UniqueProcs[i] = get_opcode(info->ii_UniqueOps[i]);
	}
}

static void
fill_unique_infos(ResultRelInfo *rri)
{
	for (int i = 0; i < rri->ri_NumIndices; i++)
	{
		if (rri->ri_IndexRelationInfo[i]->ii_Unique && rri->ri_IndexRelationInfo[i]->ii_UniqueOps == NULL)
			fill_unique_info(rri->ri_IndexRelationDescs[i], rri->ri_IndexRelationInfo[i]);
	}
}

/* Opens the indexes of a table that is not partitioned.  In the query's memory context. */
void
paimon_open_unique_indexes(ResultRelInfo *rri)
{
	if (rri->ri_RelationDesc->rd_rel->relhasindex && rri->ri_IndexRelationDescs == NULL)
		ExecOpenIndices(rri, false);
	fill_unique_infos(rri);
}

/* ---- partitions ---- */

/* The partition's indexes that descend from those by which the root looks for conflicts. */
static List *
arbiters(ResultRelInfo *root, ResultRelInfo *leaf)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(leaf->ri_RelationDesc))
	{
		List	   *ancestors = get_partition_ancestors(lfirst_oid(lc));
		ListCell   *lc2;

		foreach(lc2, root->ri_onConflictArbiterIndexes)
		{
			if (list_member_oid(ancestors, lfirst_oid(lc2)))
				result = lappend_oid(result, lfirst_oid(lc));
		}
	}
	return result;
}

/* An expression over the root's columns (and EXCLUDED's) as one over the partition's. */
static List *
translate(List *expressions, AttrMap *map, int root_varno, Relation partition)
{
	Oid			rowtype = RelationGetForm(partition)->reltype;
	bool		whole_row;
	Node	   *node = copyObject((Node *) expressions);

	node = map_variable_attnos(node, INNER_VAR, 0, map, rowtype, &whole_row);
	node = map_variable_attnos(node, root_varno, 0, map, rowtype, &whole_row);
	return (List *) node;
}

static List *
translate_columns(List *columns, AttrMap *root_to_leaf)
{
	List	   *result = NIL;
	ListCell   *lc;

	/* the map is by columns of the partition, and tells the root's */
	foreach(lc, columns)
	{
		for (int i = 0; i < root_to_leaf->maplen; i++)
		{
			if (root_to_leaf->attnums[i] == lfirst_int(lc))
				result = lappend_int(result, i + 1);
		}
	}
	return result;
}

static void
set_up_update(ModifyTableState *mt, ResultRelInfo *leaf)
{
	ModifyTable *plan = (ModifyTable *) mt->ps.plan;
	ResultRelInfo *root = mt->rootResultRelInfo;
	OnConflictSetState *state = makeNode(OnConflictSetState);
	EState	   *estate = mt->ps.state;
	TupleConversionMap *map = paimon_root_to_child(leaf, estate);

	leaf->ri_onConflict = state;
	state->oc_Existing = table_slot_create(leaf->ri_RelationDesc, &estate->es_tupleTable);
	if (map == NULL)
	{
		state->oc_ProjSlot = root->ri_onConflict->oc_ProjSlot;
		state->oc_ProjInfo = root->ri_onConflict->oc_ProjInfo;
		state->oc_WhereClause = root->ri_onConflict->oc_WhereClause;
	}
	else
	{
		TupleDesc	desc = RelationGetDescr(leaf->ri_RelationDesc);
		AttrMap    *by_name = paimon_attrmap_by_name(desc, RelationGetDescr(root->ri_RelationDesc));
		int			varno = mt->resultRelInfo[0].ri_RangeTableIndex;
		List	   *set = translate(plan->onConflictSet, by_name, varno, leaf->ri_RelationDesc);

		state->oc_ProjSlot = table_slot_create(leaf->ri_RelationDesc, &estate->es_tupleTable);
		state->oc_ProjInfo = ExecBuildUpdateProjection(set, true, translate_columns(plan->onConflictCols, map->attrMap), desc,
													   mt->ps.ps_ExprContext, state->oc_ProjSlot, &mt->ps);
		if (plan->onConflictWhere != NULL)
			state->oc_WhereClause = ExecInitQual(translate((List *) plan->onConflictWhere, by_name, varno, leaf->ri_RelationDesc), &mt->ps);
	}
}

static bool
is_prepared(const ResultRelInfo *leaf)
{
	for (int i = 0; i < leaf->ri_NumIndices; i++)
	{
		if (leaf->ri_IndexRelationInfo[i]->ii_Unique && leaf->ri_IndexRelationInfo[i]->ii_UniqueOps == NULL)
			return false;
	}
	return true;
}

/* Lets core find the row's partition, and if it has only now been opened adds what ON CONFLICT needs. */
static void
prepare_partition(Routing *r, TupleTableSlot *slot)
{
	ModifyTableState *mt = r->mt;
	EState	   *estate = mt->ps.state;
	Plan	   *plan = mt->ps.plan;
	ResultRelInfo *leaf;
	MemoryContext old;

	/* An error leaves an executor that nobody goes on with. */
	mt->ps.plan = (Plan *) r->plain;
	leaf = ExecFindPartition(mt, mt->rootResultRelInfo, mt->mt_partition_tuple_routing, slot, estate);
	mt->ps.plan = plan;
	if (is_prepared(leaf))
		return;
	old = MemoryContextSwitchTo(estate->es_query_cxt);
	fill_unique_infos(leaf);
	leaf->ri_onConflictArbiterIndexes = arbiters(mt->rootResultRelInfo, leaf);
	if (((ModifyTable *) plan)->onConflictAction == ONCONFLICT_UPDATE)
		set_up_update(mt, leaf);
	MemoryContextSwitchTo(old);
}

static TupleTableSlot *
give_row(PlanState *source)
{
	Routing    *r = routings;
	TupleTableSlot *slot;

	while (r->source != source)
		r = r->next;
	slot = r->give_row(source);
	if (!TupIsNull(slot))
		prepare_partition(r, slot);
	return slot;
}

static void
forget_routing(void *arg)
{
	for (Routing **link = &routings; *link != NULL; link = &(*link)->next)
	{
		if (*link == arg)
		{
			*link = (*link)->next;
			return;
		}
	}
}

/* An ON CONFLICT into a partitioned table with partitions of ours is about to run. */
void
paimon_route_conflicts(ModifyTableState *mt)
{
	MemoryContext cxt = mt->ps.state->es_query_cxt;
	Routing    *r = MemoryContextAllocZero(cxt, sizeof(Routing));
	MemoryContextCallback *callback = MemoryContextAlloc(cxt, sizeof(MemoryContextCallback));

	r->plain = MemoryContextAlloc(cxt, sizeof(ModifyTable));
	memcpy(r->plain, mt->ps.plan, sizeof(ModifyTable));
	r->plain->onConflictAction = ONCONFLICT_NONE;
	r->mt = mt;
	r->source = outerPlanState(mt);
	r->give_row = r->source->ExecProcNodeReal;
	r->next = routings;
	routings = r;
	callback->func = forget_routing;
	callback->arg = r;
	MemoryContextRegisterResetCallback(cxt, callback);
	ExecSetExecProcNode(r->source, give_row);
}
