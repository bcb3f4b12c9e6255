# H11: unlogged tables after a crash: empty, usable, and nothing of the old rows comes back; temporary ones are gone. H12: pages are whole where core copies and logs
# them: CREATE DATABASE with both strategies, followed by a crash, and SET TABLESPACE.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('identity');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nautovacuum = off\nstatement_timeout = '60s'\nmax_wal_size = '1GB'\nwal_level = replica");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

# ---- unlogged ----

$node->safe_psql('postgres', q{
	CREATE UNLOGGED TABLE u (k int PRIMARY KEY, v text) USING paimon WITH ("write-buffer-size" = '64kb', bucket = 2);
	CREATE UNLOGGED TABLE fresh (k int PRIMARY KEY, v text) USING paimon;
	INSERT INTO u SELECT i, 'large' FROM generate_series(1, 9000) i;
	INSERT INTO u SELECT i, 'flushed' FROM generate_series(1, 30) i;});
$node->safe_psql('postgres', "SELECT paimon.flush('u')");
$node->safe_psql('postgres', "INSERT INTO u SELECT i, 'log' FROM generate_series(10, 40) i");
is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE v = 'log') FROM u"), '9000|31', 'an unlogged table');
$node->restart;
is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE v = 'log') FROM u"), '9000|31', 'is kept by a clean restart');
for my $round (1, 2)
{
	$node->stop('immediate');
	$node->start;
	is($node->safe_psql('postgres', 'SELECT count(*), (SELECT count(*) FROM u WHERE k = 15), (SELECT count(*) FROM fresh) FROM u'), '0|0|0', "empty after crash $round");
	is($node->safe_psql('postgres', "SELECT count(*) FROM paimon.files('u')"), '0', 'no files');
	$node->safe_psql('postgres', "INSERT INTO u SELECT i, 'new' FROM generate_series(1, 20) i; UPDATE u SET v = 'newer' WHERE k = 2; INSERT INTO fresh VALUES (1, 'x')");
	is($node->safe_psql('postgres', "SELECT count(*), min(v), max(v) FROM u"), '20|new|newer', 'it can be written');
	$node->safe_psql('postgres', "SELECT paimon.flush('u'), paimon.flush('fresh')");
	$node->safe_psql('postgres', 'VACUUM u');
	is($node->safe_psql('postgres', "SELECT count(*), min(v), max(v) FROM u"), '20|new|newer', 'and flushed');
	$node->safe_psql('postgres', "INSERT INTO u SELECT i, 'large again' FROM generate_series(100, 9000) i");
	is($node->safe_psql('postgres', "SELECT count(*) FROM u"), '8921', 'and loaded');
}
$node->safe_psql('postgres', 'ALTER TABLE u SET LOGGED');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', "SELECT count(*), count(*) FILTER (WHERE v = 'large again') FROM u"), '8921|8901', 'SET LOGGED survives a crash');
is($node->safe_psql('postgres', "INSERT INTO u VALUES (1, 'again'); SELECT paimon.flush('u') > 0; SELECT count(*) FROM u"), "t\n8921", 'and is written');

# TRUNCATE, then a crash before and after its commit
$node->safe_psql('postgres', "CREATE TABLE tr (k int PRIMARY KEY, v text) USING paimon; INSERT INTO tr VALUES (1, 'kept')");
my $open = $node->background_psql('postgres');
$open->query_safe("BEGIN; TRUNCATE tr; INSERT INTO tr VALUES (2, 'lost')");
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT k, v FROM tr'), '1|kept', 'a truncation that did not commit');
$node->safe_psql('postgres', "BEGIN; INSERT INTO tr VALUES (3, 'gone'); TRUNCATE tr; INSERT INTO tr VALUES (4, 'kept'); COMMIT");
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT k, v FROM tr'), '4|kept', 'one that did');
eval { $open->quit };

# ---- copies of a database ----

$node->safe_psql('postgres', 'CREATE DATABASE src');
$node->safe_psql('src', q{
	CREATE EXTENSION paimon_am;
	CREATE TABLE t (k int PRIMARY KEY, v text) USING paimon WITH ("write-buffer-size" = '64kb', bucket = 3);
	CREATE TABLE empty (k int PRIMARY KEY) USING paimon;
	CREATE UNLOGGED TABLE u (k int PRIMARY KEY, v text) USING paimon;
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 20000) i;
	INSERT INTO u VALUES (1, 'unlogged');});
$node->safe_psql('src', "SELECT paimon.flush('t')");
$node->safe_psql('src', "INSERT INTO t SELECT i, 'log ' || i FROM generate_series($_ * 10, $_ * 10 + 30) i") for (1 .. 50);
$node->safe_psql('src', 'DELETE FROM t WHERE k % 100 = 0 AND k < 2000');
my $sum = "SELECT count(*), sum(hashtext(k || v)::bigint), (SELECT count(*) FROM empty) FROM t";
my $expected = $node->safe_psql('src', $sum);
for my $strategy ('wal_log', 'file_copy')
{
	$node->safe_psql('postgres', "CREATE DATABASE copy_$strategy TEMPLATE src STRATEGY $strategy");
	is($node->safe_psql("copy_$strategy", "$sum; SELECT v FROM u"), "$expected\nunlogged", "a copy by $strategy");
	$node->safe_psql("copy_$strategy", "INSERT INTO t VALUES (1, 'copy'); SELECT paimon.flush('t')");
	is($node->safe_psql('src', $sum), $expected, 'the original is untouched by what happens to the copy');
}
# (wal_log last: a file_copy ends with a checkpoint, after which nothing would be replayed)
$node->safe_psql('postgres', "CREATE DATABASE crash_$_ TEMPLATE src STRATEGY $_") for ('file_copy', 'wal_log');
$node->stop('immediate');
$node->start;
for my $strategy ('wal_log', 'file_copy')
{
	is($node->safe_psql("crash_$strategy", $sum), $expected, "a copy by $strategy after a crash");
	is($node->safe_psql("crash_$strategy", 'SELECT count(*) FROM u'), '0', 'its unlogged table is empty');
	is($node->safe_psql("crash_$strategy", "INSERT INTO u VALUES (2, 'x'); INSERT INTO t VALUES (20001, 'x'); SELECT paimon.flush('t') > 0; SELECT count(*) FROM t WHERE k > 20000"),
		"t\n1", 'and it works');
}

# ---- another tablespace ----

my $dir = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('src', "CREATE TABLESPACE ts LOCATION '$dir'");
$node->safe_psql('src', 'ALTER TABLE t SET TABLESPACE ts');
is($node->safe_psql('src', $sum), $expected, 'moved');
$node->stop('immediate');
$node->start;
is($node->safe_psql('src', $sum), $expected, 'moved, after a crash');
$node->safe_psql('src', "BEGIN; ALTER TABLE t SET TABLESPACE pg_default; INSERT INTO t VALUES (30000, 'x'); ROLLBACK");
is($node->safe_psql('src', $sum), $expected, 'a move that was taken back');
$node->safe_psql('src', "BEGIN; INSERT INTO t VALUES (30000, 'before'); ALTER TABLE t SET TABLESPACE pg_default; INSERT INTO t VALUES (30001, 'x'); COMMIT");
is($node->safe_psql('src', "SELECT count(*), min(v) FROM t WHERE k >= 30000"), '2|before', 'writes before and after a move');
is($node->safe_psql('src', "SELECT paimon.flush('t') > 0; SELECT count(*), min(v) FROM t WHERE k >= 30000"), "t\n2|before", 'and a flush');
$node->stop;
done_testing();
