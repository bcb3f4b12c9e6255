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
	CREATE FUNCTION s.longest(text, text) RETURNS text LANGUAGE sql IMMUTABLE STRICT AS $$ SELECT CASE WHEN length($2) > length($1) THEN $2 ELSE $1 END $$;
	CREATE TABLE ea (id int PRIMARY KEY, n int, t text, "long est" text, op text) USING paimon WITH ("merge-engine" = 'aggregation',
		"fields.n.aggregate-function" = 'sum', "fields.t.aggregate-function" = 'listagg', "fields.t.list-agg-delimiter" = ' = ',
		"fields.long est.aggregate-function" = 's.longest', "rowkind.field" = 'op', "fields.t.ignore-retract" = true, "fields.long est.ignore-retract" = true);
	INSERT INTO ea VALUES (1, 1, 'a', 'x', '+I'), (1, 2, 'b', 'xyz', '+I'), (1, 5, 'c', 'xy', '-U'), (2, 3, 'c', 'x', '-D'), (3, 1, 'a', 'a', '+I'), (4, 1, 'a', 'a', '+I');
	UPDATE ea SET t = '  ', op = '-D' WHERE id = 3;
	UPDATE ea SET op = 'none' WHERE id = 4;
	CREATE TABLE eb (id int PRIMARY KEY, a text, g int, b text, h int, h2 int) USING paimon WITH ("merge-engine" = 'partial-update',
		"fields.g.sequence-group" = 'a', "fields.h,h2.sequence-group" = 'b', "partial-update.remove-record-on-sequence-group" = 'g');
	INSERT INTO eb VALUES (1, 'a', 2, 'b', 2, NULL), (1, 'old', 1, 'new', 2, 1), (2, 'a', 2, 'b', 2, NULL);
	UPDATE eb SET g = NULL, h = NULL WHERE id = 2;
	CREATE TABLE ec (id int PRIMARY KEY, v text) USING paimon WITH ("merge-engine" = 'first-row', "ignore-delete" = true);
	INSERT INTO ec VALUES (1, 'first'), (1, 'second');
	CREATE TABLE ed (id int PRIMARY KEY, v text, s int, s2 numeric) USING paimon WITH ("sequence.field" = 's,s2', "sequence.field.sort-order" = 'descending');
	INSERT INTO ed VALUES (1, 'late', 2, 2.5), (1, 'new', 1, 7), (2, 'null', NULL, NULL);
	CREATE TABLE ee (id int, p int, n int, c int[], PRIMARY KEY (id, p)) PARTITION BY LIST (p) USING paimon WITH ("merge-engine" = 'aggregation',
		"fields.n.aggregate-function" = 'sum', "fields.c.aggregate-function" = 'collect', "fields.c.distinct" = true);
	CREATE TABLE ee1 PARTITION OF ee FOR VALUES IN (1);
	CREATE TABLE ee2 PARTITION OF ee FOR VALUES IN (2) WITH ("fields.n.aggregate-function" = 'max');
	INSERT INTO ee VALUES (1, 1, 1, '{1,1}'), (1, 1, 2, '{2}'), (1, 2, 1, '{1}'), (1, 2, 2, '{1}'), (2, 1, 0, '{}');
	UPDATE ee SET c = '{3,3}' WHERE id = 2;
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
	SELECT 'ea', * FROM ea ORDER BY 1, 2;
	SELECT 'eb', * FROM eb ORDER BY 1, 2;
	SELECT 'ec', * FROM ec ORDER BY 1, 2;
	SELECT 'ed', * FROM ed ORDER BY 1, 2;
	SELECT 'ee', tableoid::regclass, * FROM ee ORDER BY p, id;
	SELECT r::regclass, f.* FROM unnest(ARRAY['ea', 'eb', 'ec', 'ed', 'ee', 'ee1', 'ee2']) r, paimon.aggregation_fields(r::regclass) f;
	SELECT objid::regclass, refobjid::regprocedure FROM pg_depend WHERE refclassid = 'pg_proc'::regclass AND classid = 'pg_class'::regclass;
};
my $before = $node->safe_psql('a', $state);
like($before, qr/^ad1\|p\|\{table-am=paimon,bucket=3,bucket-key=id\}\|\w*\|ad1_pkey\|paimon_key/m, 'partitioned partition is ours');
like($before, qr/^ab\|p\|\|\w*\|ab_pkey\|btree/m, 'partitioned heap table is not');

like($before, qr/^ea\|1\|-2\|a = b\|xyz\|\nea\|2\|-3\|\|\|\nea\|3\|1\|  \|a\|-D\nea\|4\|1\|a\|a\|none$/m, 'aggregated rows');
like($before, qr/^eb\|1\|a\|2\|new\|2\|1\neb\|2\|a\|\|b\|\|$/m, 'rows of sequence groups, also without an order');
like($before, qr/^ea\|s\.longest\(text,text\)$/m, 'the table depends on the function');

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

# What was restored goes on as it would have.
my $more = q{
	INSERT INTO ea VALUES (1, 1, 'z', 'longest of all', '+I'), (2, 1, 'a', 'b', '-U'), (3, 1, 'b', 'b', '+I');
	INSERT INTO eb VALUES (1, 'x', 1, 'x', 2, 0), (2, 'first', 0, 'first', NULL, 0);
	INSERT INTO ec VALUES (1, 'third'), (2, 'new');
	INSERT INTO ed VALUES (1, 'late again', 1, 8), (2, 'number', 9, 9);
	INSERT INTO ee VALUES (2, 1, 1, '{3,4}'), (1, 2, 0, '{5}');
};
$node->safe_psql($_, $more) for ('a', 'b');
is($node->safe_psql('b', $state), $node->safe_psql('a', $state), 'rows after the restore are merged with restored ones');
$node->safe_psql('a', "SELECT paimon.compact(c) FROM unnest(ARRAY['ea', 'eb', 'ec', 'ed', 'ee']::regclass[]) c");
is($node->safe_psql('b', $state), $node->safe_psql('a', $state), '... after compaction, too');

# One table alone keeps its options.
like(dump_of('a', '-t', 's.aa'), qr/bucket='11', "bucket-key"='Key one'/, 'dump of one table has its options');

$node->stop;
done_testing();
