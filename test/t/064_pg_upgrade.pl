# pg_upgrade, by copying and then by linking the files: rows in files, in the log, sealed, spilled; unlogged, append and partitioned tables; dropped and added columns.
# The server before and after is of one version, so core allows no tablespaces here.
use strict;
use warnings;
use Cwd qw(getcwd);
use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

sub new_cluster
{
	my ($name, $preload) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(extra => [ '--data-checksums' ]);
	$node->append_conf('postgresql.conf', 'shared_preload_libraries = ' . ($preload ? "'paimon_am'" : "''"));
	$node->append_conf('postgresql.conf', "autovacuum = off\nstatement_timeout = '120s'\nmax_prepared_transactions = 2\npaimon.max_workers = 0");
	return $node;
}

sub upgrade
{
	my ($from, $to, @more) = @_;

	return (
		'pg_upgrade', '--no-sync', '-d', $from->data_dir, '-D', $to->data_dir, '-b', $ENV{PAIMON_BINDIR}, '-B', $ENV{PAIMON_BINDIR},
		'-s', $to->host, '-p', $from->port, '-P', $to->port, @more);
}

# All that pg_upgrade and the servers under it have logged.
sub upgrade_logs
{
	my $dir = shift;
	my $all = '';

	find(sub { $all .= slurp_file($_) if -f && /\.log$/ }, $dir);
	return $all;
}

chdir $PostgreSQL::Test::Utils::tmp_check or die;

# ---- the old cluster: transaction ids beyond the first epoch, so that their upper half matters ----

my $old = new_cluster('old', 1);
command_ok([ 'pg_resetwal', '-e', '3', $old->data_dir ], 'three epochs on');
$old->start;
$old->safe_psql('postgres', 'CREATE DATABASE db');
$old->safe_psql('db', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE SCHEMA app;		-- restored before schema paimon
CREATE TYPE app.colour AS ENUM ('red', 'green', 'blue');
CREATE TABLE app.flushed (k int PRIMARY KEY, t text, n numeric CHECK (n >= 0)) USING paimon WITH (bucket = 4);
CREATE TABLE app.logged (c app.colour, k int, a int[], PRIMARY KEY (c, k)) USING paimon;
CREATE TABLE sealed (k int PRIMARY KEY, t text) USING paimon WITH ("write-buffer-size" = '64 kb', bucket = 2);
CREATE TABLE spilled (k int PRIMARY KEY, t text) USING paimon WITH ("write-buffer-size" = '64 kb');
CREATE TABLE appended (i int NOT NULL, t text) USING paimon;
CREATE TABLE parts (region text, k int, v int, PRIMARY KEY (region, k)) PARTITION BY LIST (region);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a') USING paimon WITH (bucket = 2);
CREATE TABLE parts_b (v int, k int NOT NULL, region text NOT NULL) USING paimon;
ALTER TABLE parts ATTACH PARTITION parts_b FOR VALUES IN ('b');
CREATE TABLE dropped (a int, b text, k int PRIMARY KEY, c text) USING paimon;
CREATE TABLE forms (k int PRIMARY KEY, c "char", s int2, i int4, l int8, m macaddr8, n macaddr, u uuid, t timestamptz, f float8, b bool, v text, j jsonb, z int) USING paimon;
CREATE TABLE refers (k int PRIMARY KEY, f int REFERENCES app.flushed) USING paimon;
CREATE TABLE empty (k int PRIMARY KEY) USING paimon;
CREATE TABLE truncated (k int PRIMARY KEY, t text) USING paimon WITH (bucket = 3);
CREATE UNLOGGED TABLE unlogged (k int PRIMARY KEY, t text) USING paimon;
CREATE TABLE plain (k int PRIMARY KEY, t text) USING heap;
INSERT INTO app.flushed SELECT i, repeat(md5(i::text), 3), i / 7.0 FROM generate_series(1, 5000) i;
INSERT INTO dropped SELECT i, 'b' || i, i, 'c' || i FROM generate_series(1, 1000) i;
INSERT INTO forms SELECT i, 'c', i, i, i, '08:00:2b:01:02:03:04:05', '08:00:2b:01:02:03', md5(i::text)::uuid, now(), i, true, repeat('v', i), '{"a": 1}', i FROM generate_series(1, 300) i;
SELECT paimon.flush('app.flushed'), paimon.flush('dropped'), paimon.flush('forms');
INSERT INTO forms SELECT i, 'c', i, i, i, '08:00:2b:01:02:03:04:05', '08:00:2b:01:02:03', md5(i::text)::uuid, now(), i, true, repeat('v', i), '{"a": 1}', i FROM generate_series(200, 400) i;
ALTER TABLE forms DROP COLUMN c, DROP COLUMN s, DROP COLUMN i, DROP COLUMN l, DROP COLUMN m, DROP COLUMN n, DROP COLUMN u, DROP COLUMN t, DROP COLUMN f, DROP COLUMN b, DROP COLUMN v, DROP COLUMN j;
ALTER TABLE dropped DROP COLUMN b;
ALTER TABLE dropped ADD COLUMN d int DEFAULT 7;
INSERT INTO dropped SELECT i, i, 'new', 8 FROM generate_series(1, 100) i;
ALTER TABLE dropped DROP COLUMN a, ADD COLUMN e text NOT NULL DEFAULT 'e';
UPDATE app.flushed SET t = 'changed ' || k WHERE k % 100 = 0;
DELETE FROM app.flushed WHERE k % 100 = 1;
INSERT INTO app.logged SELECT (ARRAY['red', 'green', 'blue'])[1 + i % 3]::app.colour, i, ARRAY[i, i + 1] FROM generate_series(1, 500) i;
BEGIN;
INSERT INTO app.logged SELECT 'red', i FROM generate_series(1000, 1100) i;
ROLLBACK;
INSERT INTO spilled SELECT i, repeat(md5(i::text), 2) FROM generate_series(1, 20000) i;
INSERT INTO appended SELECT i, nullif('t' || i % 10, 't3') FROM generate_series(1, 2000) i;
SELECT paimon.flush('appended');
INSERT INTO appended SELECT i, 'more' FROM generate_series(1, 200) i;
DELETE FROM appended WHERE i % 50 = 0;
INSERT INTO parts SELECT CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END, i, i * i FROM generate_series(1, 1000) i;
SELECT paimon.flush('parts_a');
INSERT INTO refers SELECT i, i FROM generate_series(2, 100) i;
INSERT INTO truncated SELECT i, 'old' FROM generate_series(1, 1000) i;
SELECT paimon.flush('truncated');
TRUNCATE truncated;
INSERT INTO truncated SELECT i, 'new' FROM generate_series(1, 500) i;
INSERT INTO unlogged SELECT i, 'u' || i FROM generate_series(1, 500) i;
SELECT paimon.flush('unlogged');
INSERT INTO unlogged SELECT i, 'newer' FROM generate_series(1, 50) i;
INSERT INTO plain SELECT i, 'p' FROM generate_series(1, 100) i;
CREATE MATERIALIZED VIEW seen USING paimon AS SELECT k, t FROM app.flushed WHERE k < 50;
SQL
$old->safe_psql('db', join ";\n", map { "INSERT INTO sealed SELECT i, repeat(md5(i::text), 2) FROM generate_series($_ * 20, $_ * 20 + 29) i" } (0 .. 149));
$old->safe_psql('db', "INSERT INTO app.flushed SELECT i, 'round $_', $_ FROM generate_series($_ * 7 + 2, $_ * 7 + 9) i WHERE i % 100 <> 1; SELECT paimon.flush('app.flushed')")
  for (0 .. 5);
$old->safe_psql('db', "SELECT paimon.compact('app.flushed'); INSERT INTO app.flushed VALUES (7, 'after compaction', 0)");

# Old files of a compaction, and a memtable that is full, are still there.
is($old->safe_psql('db', q{SELECT count(*) > 0 FROM paimon.file WHERE closing_xid <> '0'}), 't', 'replaced files wait');
is($old->safe_psql('db', q{SELECT count(*) FROM paimon.files('spilled') WHERE level = 0}) > 0, 1, 'a large commit has files');
is($old->safe_psql('db', q{SELECT unflushed_bytes > 4 * 65536 FROM paimon.stats('sealed')}), 't', 'more than a memtable waits for a flush');

my @paimon = qw(app.flushed app.logged sealed spilled appended parts parts_a parts_b dropped forms refers empty truncated unlogged seen);
my $sums = join(' UNION ALL ',
	map { "SELECT '$_', count(*), md5(string_agg(x::text, ' ' ORDER BY x::text COLLATE \"C\")) FROM $_ x" } @paimon, 'plain') . ' ORDER BY 1';
my $verify = join(' UNION ALL ', map { "SELECT '$_' AS t, v::text FROM paimon.verify('$_') v" } grep { $_ ne 'parts' } @paimon);
my $shape = q{
	SELECT c.oid::regclass, c.relpersistence, am.amname, c.reloptions, c.relnatts FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam
	WHERE relnamespace IN ('public'::regnamespace, 'app'::regnamespace) ORDER BY c.oid;
	SELECT conrelid::regclass, conname, contype, pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid <> 0 ORDER BY conrelid, conname;
	SELECT pg_describe_object(classid, objid, objsubid) FROM pg_depend
	WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'paimon_am') ORDER BY 1;
	SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgname = 'skip_replicated' ORDER BY tgrelid;
	SELECT oid::regclass, coalesce(relacl, acldefault('r', relowner)) FROM pg_class WHERE relnamespace = 'paimon'::regnamespace ORDER BY oid};
my $manifest = q{
	SELECT * FROM paimon.storage ORDER BY storage_id; SELECT * FROM paimon.log ORDER BY storage_id;
	SELECT * FROM paimon.file ORDER BY storage_id, file_no, level; SELECT * FROM paimon.snapshot ORDER BY storage_id, snapshot_id};
my $want = $old->safe_psql('db', $sums);
my $want_shape = $old->safe_psql('db', $shape);
my $want_manifest = $old->safe_psql('db', $manifest);
is($old->safe_psql('db', $verify), '', 'sound before');

# ---- what core refuses, and what we do ----

my $copied = new_cluster('copied', 1);
$old->safe_psql('db', "BEGIN; INSERT INTO app.logged VALUES ('red', 7777); PREPARE TRANSACTION 'p'");
$old->stop;
command_checks_all([ upgrade($old, $copied, '--check') ], 1, [qr/contains prepared transactions/i], [qr/^/], 'prepared transactions stop it');
$old->start;
$old->safe_psql('db', "ROLLBACK PREPARED 'p'");
is($old->safe_psql('db', $sums), $want, 'and nothing happened');
$old->stop;

my $without = new_cluster('without', 0);
command_fails([ upgrade($old, $without) ], 'a new cluster without the library does not take the tables');
like(upgrade_logs($without->data_dir), qr/paimon_am must be loaded via shared_preload_libraries/, 'and says why');

# ---- copied, then linked ----

# Everything is there; it can be written; what is written outlives a crash.
sub use_cluster
{
	my ($node, $name, $number) = @_;

	$node->start;
	is($node->safe_psql('db', $sums), $want, "$name: the same rows");
	is($node->safe_psql('db', $shape), $want_shape, "$name: the same tables, keys and options");
	is($node->safe_psql('db', $manifest), $want_manifest, "$name: the same manifest");
	is($node->safe_psql('db', $verify), '', "$name: sound");
	is($node->safe_psql('db', 'SET enable_seqscan = off; SELECT t FROM app.flushed WHERE k IN (7, 200) ORDER BY k; SELECT t FROM sealed WHERE k = 300; SELECT v FROM parts WHERE (region, k) = (\'a\', 30)'),
		"after compaction\nchanged 200\n" . $node->safe_psql('db', 'SELECT repeat(md5(300::text), 2)') . "\n900", "$name: rows by key");
	is($node->psql('db', 'INSERT INTO refers VALUES (1, 101)'), 3, "$name: foreign keys hold");

	$node->append_conf('postgresql.conf', 'paimon.max_workers = 2');
	$node->reload;

	$node->safe_psql('db', <<"SQL");
INSERT INTO app.flushed SELECT i, 'upgrade $number', $number FROM generate_series(4990, 5100) i;
UPDATE app.flushed SET t = 'updated $number' WHERE k BETWEEN 20 AND 30;
DELETE FROM app.logged WHERE k = 10 + $number;
INSERT INTO app.logged SELECT 'blue', i FROM generate_series(490, 510) i;
INSERT INTO sealed SELECT i, 'upgrade $number' FROM generate_series(1, 10) i;
INSERT INTO spilled SELECT i, repeat('upgrade $number ', 5) FROM generate_series(19000, 22000) i;
INSERT INTO appended VALUES ($number, 'upgrade');
UPDATE appended SET t = 'upgrade $number' WHERE i = 11;
INSERT INTO parts VALUES ('a', 1, $number), ('b', 1, $number);
INSERT INTO dropped VALUES (1000, 'upgrade', $number, 'x');
INSERT INTO truncated VALUES (1, 'upgrade $number');
INSERT INTO unlogged VALUES (1, 'upgrade $number');
REFRESH MATERIALIZED VIEW seen;
SQL
	my $now = $node->safe_psql('db', $sums);
	isnt($now, $want, "$name: writes show");
	for my $table (grep { $_ ne 'seen' } @paimon)
	{
		$node->safe_psql('db', "SELECT paimon.flush('$table')");
		$node->safe_psql('db', "SELECT paimon.compact('$table')") if $table ne 'unlogged';
	}
	is($node->safe_psql('db', $sums), $now, "$name: the same rows, flushed and compacted");
	is($node->safe_psql('db', 'VACUUM; ' . $verify), '', "$name: sound after that");
	$node->safe_psql('db', "INSERT INTO unlogged SELECT i, 'u' || i FROM generate_series(1, 500) i; INSERT INTO parts VALUES ('a', 2, $number)");
	$node->append_conf('postgresql.conf', 'paimon.max_workers = 0');
	$node->restart;
	$want = $node->safe_psql('db', $sums);
	$want_manifest = $node->safe_psql('db', $manifest);
	$want_shape = $node->safe_psql('db', $shape);
	return;
}

command_ok([ upgrade($old, $copied) ], 'pg_upgrade, copying');
$old->start;
is($old->safe_psql('db', $sums), $want, 'the old cluster is as it was');
$old->stop;
use_cluster($copied, 'copied', 1);
$copied->stop;
command_ok([ 'pg_checksums', '--check', '-D', $copied->data_dir ], 'checksums of the copy');

my $linked = new_cluster('linked', 1);
command_ok([ upgrade($copied, $linked, '--link') ], 'pg_upgrade again, linking');
use_cluster($linked, 'linked', 2);
$linked->stop('immediate');
$linked->start;
$sums =~ s/FROM unlogged x/FROM unlogged x WHERE false/;
my $before = $want =~ s/^unlogged\|.*$/unlogged|0|/mr;
is($linked->safe_psql('db', $sums), $before, 'a crash takes nothing');
is($linked->safe_psql('db', 'SELECT count(*) FROM unlogged'), '0', 'but the rows of an unlogged table');
is($linked->safe_psql('db', "INSERT INTO unlogged VALUES (1, 'x'); SELECT paimon.flush('unlogged') > 0, count(*) FROM unlogged"), 't|1', 'which can be filled again');
is($linked->safe_psql('db', $verify), '', 'sound at the end');
$linked->stop;

done_testing();
