# Dump and restore: options, keys and partitioned tables come out as they went in.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('dump');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'");
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE a');
$node->safe_psql('postgres', 'CREATE DATABASE b');

# A heap table that is partitioned comes right after paimon tables: a restore leaves the default access method at
# paimon there.
$node->safe_psql('a', q{
	CREATE EXTENSION paimon_am;
	CREATE TYPE mood AS ENUM ('glad', 'sad');
	CREATE TABLE aa (id int PRIMARY KEY, v text) USING paimon
		WITH (bucket = 2, fillfactor = 60, "write-buffer-size" = '1 mb');
	CREATE TABLE ab (id int PRIMARY KEY, v text) PARTITION BY HASH (id);
	CREATE TABLE ab0 PARTITION OF ab FOR VALUES WITH (MODULUS 1, REMAINDER 0);
	CREATE TABLE ac (a text, m mood, PRIMARY KEY (a, m)) USING paimon;
	CREATE TABLE ad (id int, v text, PRIMARY KEY (id)) PARTITION BY RANGE (id) USING paimon
		WITH (bucket = 3, "bucket-key" = 'id');
	CREATE TABLE ad0 PARTITION OF ad FOR VALUES FROM (0) TO (10);
	CREATE TABLE ad1 PARTITION OF ad FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (id);
	CREATE TABLE ad11 PARTITION OF ad1 FOR VALUES FROM (10) TO (15) WITH (bucket = 1);
	CREATE TABLE ae (id int) USING paimon;
	CREATE TABLE af (a int, b int, PRIMARY KEY (b, a)) USING paimon WITH ("bucket-key" = 'a');
	CREATE TABLE ag USING paimon WITH (bucket = 5) AS SELECT g AS x FROM generate_series(1, 10) g;
	CREATE MATERIALIZED VIEW ah USING paimon WITH (bucket = 5) AS SELECT count(*) FROM ag;
	CREATE TABLE ai (id int, v int, PRIMARY KEY (id) INCLUDE (v) DEFERRABLE) USING paimon;
	CREATE SCHEMA s;
	CREATE TABLE s.aa ("Key one" int PRIMARY KEY) USING paimon WITH (bucket = 11, "bucket-key" = 'Key one');
	ALTER TABLE s.aa REPLICA IDENTITY USING INDEX aa_pkey;
	INSERT INTO aa SELECT g, 'v' || g FROM generate_series(1, 1000) g;
	INSERT INTO ac VALUES ('x', 'glad'), ('x', 'sad');
	INSERT INTO ad SELECT g, 'v' || g FROM generate_series(0, 14) g;
});

# What a database holds, in so far as it must be the same.
my $state = q{
	SELECT c.oid::regclass, c.relkind, c.reloptions, t.amname, k.oid::regclass, m.amname,
		ARRAY(SELECT o.opcname FROM unnest(i.indclass::oid[]) u JOIN pg_opclass o ON o.oid = u)
	FROM pg_class c LEFT JOIN pg_am t ON t.oid = c.relam LEFT JOIN pg_index i ON i.indrelid = c.oid
		LEFT JOIN pg_class k ON k.oid = i.indexrelid LEFT JOIN pg_am m ON m.oid = k.relam
	WHERE c.relkind IN ('r', 'p', 'm') AND c.relnamespace IN ('public'::regnamespace, 's'::regnamespace)
	ORDER BY c.relnamespace::regnamespace::text, c.relname;
	SELECT count(*), sum(id), min(v), max(v) FROM aa;
	SELECT * FROM ac ORDER BY a, m;
	SELECT tableoid::regclass, count(*), sum(id) FROM ad GROUP BY 1 ORDER BY 1;
	SELECT count(*) FROM ag;
};
my $before = $node->safe_psql('a', $state);
like($before, qr/^ad1\|p\|\{table-am=paimon,bucket=3,bucket-key=id\}\|\w*\|ad1_pkey\|paimon_key/m, 'partitioned partition is ours');
like($before, qr/^ab\|p\|\|\w*\|ab_pkey\|btree/m, 'partitioned heap table is not');

# A copy of a dump without what is different in each (a random key, in newer minor releases).
sub dump_of
{
	my ($db, @options) = @_;
	my ($out, $err) = ('', '');
	my $rc = PostgreSQL::Test::Utils::run_log([ 'pg_dump', @options, '-d', $node->connstr($db) ], '>', \$out, '2>', \$err);

	ok($rc, "pg_dump @options of $db") or diag($err);
	$out =~ s/^\\(un)?restrict .*\n//mg;
	return $out;
}

my $dump = dump_of('a');
my $file = $node->basedir . '/a.sql';
append_to_file($file, $dump);
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('b'), '-f', $file ], 'restored');
is($node->safe_psql('b', $state), $before, 'restored database holds the same');
is(dump_of('b'), $dump, 'restored database gives the same dump');

# One table alone keeps its options.
like(dump_of('a', '-t', 's.aa'), qr/bucket='11', "bucket-key"='Key one'/, 'dump of one table has its options');

$node->stop;
done_testing();
