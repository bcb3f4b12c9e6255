-- The manifest: what every paimon table of this database consists of.
--
-- Plain heap tables, read with the snapshot of whoever asks: that is what makes a commit, a flush and a compaction
-- atomic (src/catalog/README.md).  Only src/catalog writes them, from C, in any user's transaction.  They have no
-- triggers that would have to fire for that and plain btree indexes only: rows are written while a transaction commits.  Columns are ordered so that
-- fixed-width ones come first; unsigned 64-bit numbers are kept as the bigint with the same bits.
--
-- Nobody is granted SELECT: bounds of keys are values of users' tables.

CREATE TABLE paimon.storage (
	storage_id	bigint NOT NULL,
	created		timestamp with time zone NOT NULL,
	relid		oid NOT NULL,
	nbuckets	integer NOT NULL,
	encoding	integer NOT NULL,
	keys		smallint[] NOT NULL,
	bucket_keys	smallint[] NOT NULL,
	copied		boolean NOT NULL,
	CONSTRAINT storage_pkey PRIMARY KEY (storage_id)
) USING heap WITH (vacuum_truncate = false);

CREATE INDEX storage_relid_idx ON paimon.storage USING btree (relid);

CREATE TABLE paimon.log (
	storage_id	bigint NOT NULL,
	head		bigint NOT NULL,
	version		bigint NOT NULL,
	leftover	bigint[] NOT NULL,
	closed_head	bigint[] NOT NULL,
	closed_xid	xid8[] NOT NULL,
	CONSTRAINT log_pkey PRIMARY KEY (storage_id)
) USING heap WITH (fillfactor = 40, vacuum_truncate = false,
	autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

CREATE TABLE paimon.file (
	storage_id	bigint NOT NULL,
	file_no		bigint NOT NULL,
	min_position	bigint NOT NULL,
	max_position	bigint NOT NULL,
	row_count	bigint NOT NULL,
	delete_count	bigint NOT NULL,
	bytes		bigint NOT NULL,
	added_snapshot	bigint NOT NULL,
	removed_snapshot	bigint NOT NULL,
	append_count	bigint NOT NULL,
	closing_xid	xid8 NOT NULL,
	creation_time	timestamp with time zone NOT NULL,
	bucket		integer NOT NULL,
	level		integer NOT NULL,
	ordinal		integer NOT NULL,
	npages		integer NOT NULL,
	footer_page	integer NOT NULL,
	footer_len	integer NOT NULL,
	source		integer NOT NULL,
	schema_natts	integer NOT NULL,
	min_key		bytea NOT NULL,
	max_key		bytea NOT NULL,
	extents		bytea NOT NULL,
	CONSTRAINT file_pkey PRIMARY KEY (storage_id, file_no, level)
) USING heap WITH (fillfactor = 60, vacuum_truncate = false,
	autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- Bounds are short and must not be compressed: every scan reads them.
ALTER TABLE paimon.file ALTER COLUMN min_key SET STORAGE PLAIN;
ALTER TABLE paimon.file ALTER COLUMN max_key SET STORAGE PLAIN;

CREATE TABLE paimon.snapshot (
	storage_id	bigint NOT NULL,
	snapshot_id	bigint NOT NULL,
	commit_time	timestamp with time zone NOT NULL,
	"position"	bigint NOT NULL,
	total_record_count	bigint NOT NULL,
	delta_record_count	bigint NOT NULL,
	append_count	bigint NOT NULL,
	commit_kind	integer NOT NULL,
	schema_natts	integer NOT NULL,
	CONSTRAINT snapshot_pkey PRIMARY KEY (storage_id, snapshot_id)
) USING heap WITH (vacuum_truncate = false);

REVOKE ALL ON paimon.storage, paimon.log, paimon.file, paimon.snapshot FROM PUBLIC;

-- A subscription to a publication FOR ALL TABLES of a database with the extension brings that one's manifest, which means nothing here.
CREATE FUNCTION paimon.skip_replicated() RETURNS trigger
AS 'MODULE_PATHNAME', 'paimon_skip_replicated'
LANGUAGE C;
COMMENT ON FUNCTION paimon.skip_replicated() IS 'leaves out changes of the manifest that logical replication brings';
REVOKE ALL ON FUNCTION paimon.skip_replicated() FROM PUBLIC;

CREATE TRIGGER skip_replicated BEFORE INSERT OR UPDATE OR DELETE ON paimon.storage
	FOR EACH ROW EXECUTE FUNCTION paimon.skip_replicated();
ALTER TABLE paimon.storage ENABLE REPLICA TRIGGER skip_replicated;
CREATE TRIGGER skip_replicated BEFORE INSERT OR UPDATE OR DELETE ON paimon.log
	FOR EACH ROW EXECUTE FUNCTION paimon.skip_replicated();
ALTER TABLE paimon.log ENABLE REPLICA TRIGGER skip_replicated;
CREATE TRIGGER skip_replicated BEFORE INSERT OR UPDATE OR DELETE ON paimon.file
	FOR EACH ROW EXECUTE FUNCTION paimon.skip_replicated();
ALTER TABLE paimon.file ENABLE REPLICA TRIGGER skip_replicated;
CREATE TRIGGER skip_replicated BEFORE INSERT OR UPDATE OR DELETE ON paimon.snapshot
	FOR EACH ROW EXECUTE FUNCTION paimon.skip_replicated();
ALTER TABLE paimon.snapshot ENABLE REPLICA TRIGGER skip_replicated;

COMMENT ON TABLE paimon.storage IS
	'storages of paimon tables (a table gets a new one by TRUNCATE or a rewrite) and how their rows are keyed';
COMMENT ON COLUMN paimon.storage.storage_id IS 'identity of the storage, as in the first page of its file';
COMMENT ON COLUMN paimon.storage.created IS 'when this row was first written';
COMMENT ON COLUMN paimon.storage.relid IS 'the table that had the storage when the row was written';
COMMENT ON COLUMN paimon.storage.nbuckets IS 'number of buckets';
COMMENT ON COLUMN paimon.storage.encoding IS 'version of the key encoding';
COMMENT ON COLUMN paimon.storage.keys IS 'column numbers of the key, in key order; empty for a table without a key';
COMMENT ON COLUMN paimon.storage.copied IS 'VACUUM FULL made it: snapshots that do not see this row cannot read the table';
COMMENT ON COLUMN paimon.storage.bucket_keys IS 'column numbers that decide about the bucket';

COMMENT ON TABLE paimon.log IS 'delta logs of paimon tables: where the part begins that is not yet in run files';
COMMENT ON COLUMN paimon.log.storage_id IS 'see paimon.storage';
COMMENT ON COLUMN paimon.log.head IS 'first log position that is not in run files';
COMMENT ON COLUMN paimon.log.version IS 'number of times the manifest of this storage was published';
COMMENT ON COLUMN paimon.log.leftover IS 'positions below head of batches of prepared transactions that no flush has taken';
COMMENT ON COLUMN paimon.log.closed_head IS 'heads of the last publishes, oldest first: the log below one may be reused ...';
COMMENT ON COLUMN paimon.log.closed_xid IS '... once nobody can see less than this transaction';

COMMENT ON TABLE paimon.file IS 'run files of paimon tables; a file that moved up without being rewritten has a row for each level';
COMMENT ON COLUMN paimon.file.storage_id IS 'see paimon.storage';
COMMENT ON COLUMN paimon.file.file_no IS 'number of the file within its storage, never used again';
COMMENT ON COLUMN paimon.file.min_position IS 'first log position that the rows stand for';
COMMENT ON COLUMN paimon.file.max_position IS 'last log position that the rows stand for';
COMMENT ON COLUMN paimon.file.row_count IS 'rows, delete markers included';
COMMENT ON COLUMN paimon.file.delete_count IS 'delete markers';
COMMENT ON COLUMN paimon.file.bytes IS 'size of its pages';
COMMENT ON COLUMN paimon.file.added_snapshot IS 'first snapshot with this file; 0 if it awaits one';
COMMENT ON COLUMN paimon.file.removed_snapshot IS 'first snapshot without this file; 0 if it is live';
COMMENT ON COLUMN paimon.file.append_count IS 'of a file above level 0: append_count of the snapshot that put it there';
COMMENT ON COLUMN paimon.file.closing_xid IS 'transaction that took the file out of the live set, or out of the last snapshot that was kept; 0 if it is live';
COMMENT ON COLUMN paimon.file.creation_time IS 'when the file was written';
COMMENT ON COLUMN paimon.file.bucket IS 'bucket of all its rows';
COMMENT ON COLUMN paimon.file.level IS 'level of the LSM tree';
COMMENT ON COLUMN paimon.file.ordinal IS 'order among files of one commit, higher is newer';
COMMENT ON COLUMN paimon.file.npages IS 'number of pages';
COMMENT ON COLUMN paimon.file.footer_page IS 'page of the file on which the footer begins';
COMMENT ON COLUMN paimon.file.footer_len IS 'length of the footer in bytes';
COMMENT ON COLUMN paimon.file.source IS '0 = flush, 1 = large commit, 2 = compaction';
COMMENT ON COLUMN paimon.file.schema_natts IS 'number of columns the table had, dropped ones included';
COMMENT ON COLUMN paimon.file.min_key IS 'lower bound of the encoded keys, inclusive';
COMMENT ON COLUMN paimon.file.max_key IS 'upper bound of the encoded keys, inclusive; empty = none';
COMMENT ON COLUMN paimon.file.extents IS 'where its pages are: pairs of first extent and count, 32 bits each, little-endian';

COMMENT ON TABLE paimon.snapshot IS 'snapshots of paimon tables';
COMMENT ON COLUMN paimon.snapshot.storage_id IS 'see paimon.storage';
COMMENT ON COLUMN paimon.snapshot.snapshot_id IS '1, 2, 3, ... within the storage';
COMMENT ON COLUMN paimon.snapshot.commit_time IS 'when it was published';
COMMENT ON COLUMN paimon.snapshot."position" IS 'log positions below it are in the snapshot';
COMMENT ON COLUMN paimon.snapshot.total_record_count IS 'rows in its files, versions and delete markers included';
COMMENT ON COLUMN paimon.snapshot.delta_record_count IS 'rows in the files it added, less those of the files it removed';
COMMENT ON COLUMN paimon.snapshot.append_count IS 'snapshots of kind APPEND until then, this one included, expired ones too';
COMMENT ON COLUMN paimon.snapshot.commit_kind IS '0 = APPEND, 1 = COMPACT, 2 = OVERWRITE, 3 = ANALYZE';
COMMENT ON COLUMN paimon.snapshot.schema_natts IS 'number of columns the table had, dropped ones included';
