/*-------------------------------------------------------------------------
 *
 * verify_space.c
 *	  The extent map against the manifest and the log's chain: each extent has one owner, and no extent is lost.
 *
 * The map is what it is now, the manifest is what our snapshot sees.  Files that this snapshot knows as live, or kept by a snapshot that it knows, cannot
 * lose an extent while it lives; those it knows as expired may, and others come into being.  So an extent with an owner that nobody knows is suspect only if
 * the last sweep for orphans would have had to free it (paimon_shared_swept_mark), and if it is still there at a second look.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "verify/verify.h"

/* An extent that a file claims. */
typedef struct Claim
{
	uint32		extent;			/* hash key */
	bool		seen;			/* in the map, with the right owner or a wrong one */
	uint64		file_no;
} Claim;

/* A file of the manifest. */
typedef struct KnownFile
{
	uint64		file_no;		/* hash key */
	bool		needed;			/* its extents must be there */
} KnownFile;

/* An owner, or an extent of the log, that should not be there. */
typedef struct Suspect
{
	uint64		key;			/* hash key: file number, or extent of the log */
	uint32		extents;
	int			looks;			/* so many times it was found */
} Suspect;

typedef struct Space
{
	PaimonVerify *v;
	HTAB	   *claims;
	HTAB	   *files;
	HTAB	   *chain;			/* extents of the log, before and after the look at the map */
	HTAB	   *log;			/* extents that the map gives to the log */
	HTAB	   *orphans;
	HTAB	   *lost;			/* extents of the log outside its chain */
	bool		marked;			/* there was a sweep: it began when ... */
	uint64		file_no;		/* ... this was the next file number, or the smallest one it spared */
	FullTransactionId xid;		/* ... and no older transaction ran */
	int			look;
} Space;

static HTAB *
make_table(const char *name, Size keysize, Size entrysize)
{
	HASHCTL		ctl = {.keysize = keysize, .entrysize = entrysize, .hcxt = CurrentMemoryContext};

	return hash_create(name, 1024, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static const char *
extent_name(uint32 extent)
{
	return psprintf("extent %u", extent);
}

/* ---- what the manifest claims ---- */

static void
claim_extents(Space *s, const PaimonFileRow *row)
{
	for (uint32 i = 0; i < row->extents.nruns; i++)
	{
		const PaimonExtentRun *run = &row->extents.runs[i];

		for (uint32 e = run->first; e < run->first + run->count; e++)
		{
			bool		found;
			Claim	   *claim = hash_search(s->claims, &e, HASH_ENTER, &found);

			CHECK_FOR_INTERRUPTS();
			if (found && claim->file_no != row->file_no)
				paimon_verify_report(s->v, "error", extent_name(e), "files " UINT64_FORMAT " and " UINT64_FORMAT " both claim it", claim->file_no,
									 row->file_no);
			claim->file_no = row->file_no;
			claim->seen = false;
		}
	}
}

/* Each file once, though it may have several rows; those that are needed first. */
static void
claim_files(Space *s)
{
	PaimonVerify *v = s->v;

	for (int pass = 0; pass < 3; pass++)
	{
		const PaimonFileRow *rows = pass == 0 ? v->live : v->closed;
		int			nrows = pass == 0 ? v->nlive : v->nclosed;

		for (int i = 0; i < nrows; i++)
		{
			KnownFile  *file;
			bool		found;

			if (pass > 0 && paimon_verify_retained(v, &rows[i]) != (pass == 1))
				continue;
			file = hash_search(s->files, &rows[i].file_no, HASH_ENTER, &found);
			if (found)
				continue;
			file->needed = pass < 2;
			if (file->needed)
				claim_extents(s, &rows[i]);
		}
	}
}

/* ---- what the map says ---- */

static void
suspect(HTAB *suspects, uint64 key, int look)
{
	bool		found;
	Suspect    *x = hash_search(suspects, &key, HASH_ENTER, &found);

	if (!found)
	{
		x->looks = 0;
		x->extents = 0;
	}
	if (x->looks == look)
	{
		x->looks++;
		x->extents = 0;
	}
	x->extents++;
}

static bool
swept_by(const Space *s, FullTransactionId xid)
{
	return s->marked && (!FullTransactionIdIsNormal(xid) || FullTransactionIdPrecedes(xid, s->xid));
}

static void
look_at_extent(void *arg, uint32 extent, uint64 owner, FullTransactionId xid)
{
	Space	   *s = arg;
	Claim	   *claim = hash_search(s->claims, &extent, HASH_FIND, NULL);
	KnownFile  *file;

	if (claim != NULL)
	{
		claim->seen = true;
		if (claim->file_no != owner && s->look == 0)
			paimon_verify_report(s->v, "error", extent_name(extent), "it belongs to file " UINT64_FORMAT ", the map gives it to %s" UINT64_FORMAT,
								 claim->file_no, owner == PAIMON_OWNER_LOG ? "the log, " : "file ", owner);
		return;
	}
	if (owner == PAIMON_OWNER_LOG)
	{
		(void) hash_search(s->log, &extent, HASH_ENTER, NULL);
		if (swept_by(s, xid) && hash_search(s->chain, &extent, HASH_FIND, NULL) == NULL)
			suspect(s->lost, extent, s->look);
		return;
	}
	file = hash_search(s->files, &owner, HASH_FIND, NULL);
	if (file == NULL)
	{
		if (swept_by(s, xid) && owner < s->file_no)
			suspect(s->orphans, owner, s->look);
	}
	else if (file->needed && s->look == 0)
		paimon_verify_report(s->v, "error", extent_name(extent), "the map gives it to file " UINT64_FORMAT ", which does not claim it", owner);
}

/* ---- the log ---- */

static void
read_chain(Space *s, HTAB *into)
{
	PaimonExtentList list;

	paimon_log_extents(s->v->rel, s->v->table->storage_id, &list);
	for (uint32 i = 0; i < list.nruns; i++)
	{
		for (uint32 e = list.runs[i].first; e < list.runs[i].first + list.runs[i].count; e++)
			(void) hash_search(into, &e, HASH_ENTER, NULL);
	}
}

/* Extents that were in the chain before and after the look at the map must be the log's there. */
static void
compare_chain(Space *s)
{
	HTAB	   *after = make_table("paimon chain after", sizeof(uint32), sizeof(uint32));
	HASH_SEQ_STATUS seq;
	uint32	   *extent;

	read_chain(s, after);
	hash_seq_init(&seq, s->chain);
	while ((extent = hash_seq_search(&seq)) != NULL)
	{
		if (hash_search(after, extent, HASH_FIND, NULL) != NULL && hash_search(s->log, extent, HASH_FIND, NULL) == NULL)
			paimon_verify_report(s->v, "error", extent_name(*extent), "the log uses it, the map says otherwise");
	}
	hash_destroy(after);
}

/* ---- all of it ---- */

static void
look_at_map(PaimonVerify *v, void *arg)
{
	Space	   *s = arg;

	s->chain = make_table("paimon chain", sizeof(uint32), sizeof(uint32));
	s->log = make_table("paimon log extents", sizeof(uint32), sizeof(uint32));
	read_chain(s, s->chain);
	paimon_extent_visit(v->rel, look_at_extent, s);
	if (s->look == 0)
		compare_chain(s);
}

static void
report_unseen(Space *s)
{
	HASH_SEQ_STATUS seq;
	Claim	   *claim;

	hash_seq_init(&seq, s->claims);
	while ((claim = hash_seq_search(&seq)) != NULL)
	{
		if (!claim->seen)
			paimon_verify_report(s->v, "error", extent_name(claim->extent), "it belongs to file " UINT64_FORMAT ", the map says that it is free",
								 claim->file_no);
	}
}

static void
report_suspects(Space *s)
{
	HASH_SEQ_STATUS seq;
	Suspect    *x;
	uint64		storage_id = s->v->table->storage_id;

	/* a reclaimer takes extents out of the chain first, and frees them then */
	bool		busy = paimon_flush_lock_is_held(storage_id);

	hash_seq_init(&seq, s->orphans);
	while ((x = hash_seq_search(&seq)) != NULL)
	{
		PaimonFileRow row;

		/* it may have been registered since our snapshot was taken */
		if (x->looks == 2 && !paimon_file_guard_is_held(storage_id, x->key) && !paimon_catalog_file_any(storage_id, x->key, &row))
			paimon_verify_report(s->v, "warning", psprintf("file " UINT64_FORMAT, x->key), "%u extents belong to it, but nobody knows it", x->extents);
	}
	hash_seq_init(&seq, s->lost);
	while ((x = hash_seq_search(&seq)) != NULL)
	{
		if (x->looks == 2 && !busy)
			paimon_verify_report(s->v, "warning", extent_name((uint32) x->key), "it belongs to the log, which does not use it");
	}
}

void
paimon_verify_space(PaimonVerify *v)
{
	Space		s = {.v = v};
	uint64		next_file_no = paimon_storage_next_file_no(v->rel);
	bool		ok;

	for (int i = 0; i < v->nlive + v->nclosed; i++)
	{
		const PaimonFileRow *row = i < v->nlive ? &v->live[i] : &v->closed[i - v->nlive];

		if (row->file_no >= next_file_no)
			paimon_verify_report(v, "error", "metapage", "the next file number is " UINT64_FORMAT ", but there is file " UINT64_FORMAT, next_file_no,
								 row->file_no);
	}
	s.claims = make_table("paimon claims", sizeof(uint32), sizeof(Claim));
	s.files = make_table("paimon known files", sizeof(uint64), sizeof(KnownFile));
	s.orphans = make_table("paimon suspect files", sizeof(uint64), sizeof(Suspect));
	s.lost = make_table("paimon suspect extents", sizeof(uint64), sizeof(Suspect));
	claim_files(&s);
	if (v->table->shared != NULL)
		s.marked = paimon_shared_swept_mark(v->table->shared, &s.file_no, &s.xid);
	ok = paimon_verify_guarded(v, "extent map", look_at_map, &s);
	if (ok)
		report_unseen(&s);
	s.look = 1;
	if (ok && hash_get_num_entries(s.orphans) + hash_get_num_entries(s.lost) > 0 &&
		paimon_verify_guarded(v, "extent map", look_at_map, &s))
		report_suspects(&s);
}
