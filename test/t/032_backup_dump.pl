# Copies made by the server's own tools: base backup, checksums, dump and restore, a database from a template.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('copies');
$node->init(allows_streaming => 1, extra => ['--data-checksums']);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nrestart_after_crash = on\npaimon.naptime = 100");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE source');
$node->safe_psql('source', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE TABLE plain (k int PRIMARY KEY, t text, n numeric) USING paimon WITH (bucket = 4, "write-buffer-size" = '1mb');
CREATE TABLE "Two Keys" (a text, b date, "v 1" jsonb, PRIMARY KEY (b, a)) USING paimon;
CREATE TABLE appended (i int, t text) USING paimon;
CREATE TABLE parts (region text, k int, v int, PRIMARY KEY (region, k)) PARTITION BY LIST (region);
CREATE TABLE parts_a PARTITION OF parts FOR VALUES IN ('a') USING paimon WITH (bucket = 2);
CREATE TABLE parts_b PARTITION OF parts FOR VALUES IN ('b') USING paimon;
CREATE TABLE empty (k int PRIMARY KEY) USING paimon;
CREATE UNLOGGED TABLE unlogged (k int PRIMARY KEY, t text) USING paimon;
CREATE VIEW of_plain AS SELECT count(*) FROM plain;
COMMENT ON TABLE plain IS 'rows in files and in the log';
INSERT INTO plain SELECT i, repeat(md5(i::text), 3), i / 7.0 FROM generate_series(1, 20000) i;
INSERT INTO "Two Keys" SELECT 'x' || i, date '2020-01-01' + i % 100, jsonb_build_object('i', i) FROM generate_series(1, 1000) i;
INSERT INTO appended SELECT i, nullif('t' || i % 10, 't3') FROM generate_series(1, 2000) i;
INSERT INTO parts SELECT CASE WHEN i % 3 = 0 THEN 'a' ELSE 'b' END, i, i * i FROM generate_series(1, 1000) i;
INSERT INTO unlogged SELECT i, 'u' || i FROM generate_series(1, 500) i;
SELECT paimon.flush('plain'), paimon.flush('parts_a'), paimon.flush('unlogged');
UPDATE plain SET t = 'changed ' || k WHERE k % 100 = 0;
DELETE FROM plain WHERE k % 100 = 1;
DELETE FROM parts WHERE k % 10 = 0;
UPDATE appended SET t = 'changed' WHERE i < 20;
SQL

my @tables = ('plain', '"Two Keys"', 'appended', 'parts', 'parts_a', 'empty');

sub sums
{
	my ($where, $db, @more) = @_;
	return $where->safe_psql($db,
		join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(x::text, ' ' ORDER BY x::text COLLATE \"C\")) FROM $_ x" } @tables, @more)
		  . ' ORDER BY 1');
}
my $want = sums($node, 'source');
my $want_all = sums($node, 'source', 'unlogged');

# Rows by key, new rows, flushes: that a copy is alive, and does not change what it was copied from.
sub use_copy
{
	my ($where, $db, $name) = @_;
	is($where->safe_psql($db, q{SET enable_seqscan = off; SELECT t FROM plain WHERE k IN (100, 101, 102) ORDER BY k}),
		"changed 100\n" . $where->safe_psql($db, 'SELECT repeat(md5(102::text), 3)'), "$name: rows by key");
	is($where->safe_psql($db, <<'SQL'), '19802|19801', "$name: can be written and flushed");
INSERT INTO plain VALUES (100000, 'new', 1), (100001, 'new', 1), (100002, 'new', 1);
DELETE FROM plain WHERE k = 100001;
SELECT paimon.flush('plain') IS NULL AS x \gset
SELECT count(*), count(*) FILTER (WHERE k <> 100000) FROM plain;
SQL
	return;
}

# ----- pg_basebackup, pg_verifybackup -----

my $backup = $node->backup_dir . '/base';
$node->command_ok([ 'pg_basebackup', '--no-sync', '-D', $backup, '-c', 'fast', '-X', 'stream', '-h', $node->host, '-p', $node->port ], 'pg_basebackup');
command_ok([ 'pg_verifybackup', $backup ], 'pg_verifybackup');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($node, 'base');
$copy->start;
is(sums($copy, 'source'), $want, 'the backup has the same rows');
is($copy->safe_psql('source', 'SELECT count(*) FROM unlogged'), '0', 'and the unlogged table empty');
use_copy($copy, 'source', 'backup');
$copy->stop;
command_ok([ 'pg_checksums', '--check', '-D', $copy->data_dir ], 'checksums of the copy');

# ----- pg_checksums -----

$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'checksums after a stop');
command_ok([ 'pg_checksums', '--disable', '-D', $node->data_dir ], 'checksums off');
command_ok([ 'pg_checksums', '--enable', '-D', $node->data_dir ], 'checksums on');
$node->start;
is(sums($node, 'source', 'unlogged'), $want_all, 'the same rows with checksums made anew');

# ----- pg_dump, restored in two ways -----

my $file = PostgreSQL::Test::Utils::tempdir() . '/dump';
$node->safe_psql('postgres', 'CREATE DATABASE restored');
$node->command_ok([ 'pg_dump', '-f', "$file.sql", 'source' ], 'pg_dump');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', 'restored', '-f', "$file.sql" ], 'into psql');
is(sums($node, 'restored', 'unlogged'), $want_all, 'restored: the same rows');
my $options = q{SELECT c.relname, c.relpersistence, am.amname, c.reloptions FROM pg_class c LEFT JOIN pg_am am ON am.oid = c.relam
	WHERE relnamespace = 'public'::regnamespace ORDER BY 1};
is($node->safe_psql('restored', $options), $node->safe_psql('source', $options), 'restored: the same tables, indexes and options');
use_copy($node, 'restored', 'restored');
$node->safe_psql('postgres', 'CREATE DATABASE parallel');
$node->command_ok([ 'pg_dump', '-Fd', '-j', '2', '-f', "$file.dir", 'source' ], 'pg_dump -Fd -j 2');
$node->command_ok([ 'pg_restore', '-j', '2', '-d', 'parallel', "$file.dir" ], 'pg_restore -j 2');
is(sums($node, 'parallel', 'unlogged'), $want_all, 'restored in parallel: the same rows');

# ----- databases from a template, then a crash -----

for my $strategy (qw(wal_log file_copy))
{
	$node->safe_psql('postgres', "CREATE DATABASE of_$strategy TEMPLATE source STRATEGY $strategy");
	$node->stop('immediate');
	$node->start;
	is(sums($node, "of_$strategy"), $want, "$strategy: the same rows after a crash");
	use_copy($node, "of_$strategy", $strategy);
	is(sums($node, 'source'), $want, "$strategy: the template is as it was");
	is($node->safe_psql("of_$strategy", q{INSERT INTO unlogged VALUES (1, 'x'); SELECT count(*) FROM unlogged}), '1', "$strategy: unlogged tables begin anew");
}

# ----- the manifest's heap tables -----

$node->safe_psql('source', 'CREATE EXTENSION amcheck');
$node->command_ok([ 'pg_amcheck', '-d', 'source', '--heapallindexed', '-s', 'paimon' ], 'pg_amcheck of the manifest');
$node->stop;
command_ok([ 'pg_checksums', '--check', '-D', $node->data_dir ], 'checksums at the end');
done_testing();
