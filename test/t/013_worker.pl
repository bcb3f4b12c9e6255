# Launcher and workers: they come, do their work, survive errors, and get out of the way.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('worker');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nautovacuum = off\npaimon.naptime = 100");
$node->start;

sub workers
{
	my ($where) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'paimon worker' AND $where");
}

ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'paimon launcher'"),
	'the launcher runs');
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'paimon worker' AND datname = 'postgres'"),
	'CREATE EXTENSION brings a worker');

# A flush by a worker, and nobody's own rows.
$node->safe_psql('postgres', 'CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon; INSERT INTO t SELECT i, i FROM generate_series(1, 100) i');
is($node->safe_psql('postgres', "SELECT paimon.flush('t')"), '1', 'flush gives the snapshot id');
is($node->safe_psql('postgres', "BEGIN; INSERT INTO t VALUES (101); SELECT paimon.flush('t'); COMMIT"), '1', 'own rows are not included');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'), '101|5151', 'nothing is lost');

# An error: logged, counted, shown; other tables go on; cleared when the cause is gone.
$node->safe_psql('postgres', 'CREATE TABLE u (a int PRIMARY KEY) USING paimon; INSERT INTO u VALUES (1)');
$node->safe_psql('postgres', "SELECT paimon.stop_arm('flush-before-publish', 'error')");
my ($rc, $out, $err) = $node->psql('postgres', "SELECT paimon.flush('t')");
is($rc, 3, 'the caller gets the error');
like($err, qr/background work on table "t" failed: injected error at stop point/, 'and its text');
is($node->safe_psql('postgres', q{SELECT "table", failures FROM paimon.worker_errors}), 't|1', 'the failure is shown');
is($node->safe_psql('postgres', "SELECT paimon.flush('u')"), '1', 'another table is flushed');
is($node->safe_psql('postgres', "SELECT paimon.flush('t')"), '2', 'and this one when the cause is gone');
is($node->safe_psql('postgres', 'SELECT count(*) FROM paimon.worker_errors'), '0', 'the failure is cleared');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM t'), '101|5151', 'nothing is lost by the failure');

# A lock that conflicts (H14): a warning, no waiting.
my $locker = $node->background_psql('postgres');
$locker->query_safe('BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE');
($rc, $out, $err) = $node->psql('postgres', "SET lock_timeout = '5s'; SELECT paimon.flush('u')");
like($err, qr/lock timeout/, 'the caller itself needs a lock on the table');
is($locker->query_safe("SELECT paimon.flush('u')"), '1', 'who holds it flushes in his own transaction');
$locker->query_safe('COMMIT');

# DROP DATABASE and templates do not wait for workers.
$node->safe_psql('postgres', 'CREATE DATABASE d1');
$node->safe_psql('d1', 'CREATE EXTENSION paimon_am; CREATE TABLE x (a int PRIMARY KEY) USING paimon; INSERT INTO x VALUES (1)');
$node->safe_psql('d1', "SELECT paimon.flush('x')");
is(workers("datname = 'd1'"), '1', 'a worker is in the database');
my $start = time();
$node->safe_psql('postgres', 'CREATE DATABASE d2 TEMPLATE d1');
ok(time() - $start < 4, 'CREATE DATABASE TEMPLATE throws it out');
is($node->safe_psql('d2', "INSERT INTO x VALUES (2); SELECT paimon.flush('x'); SELECT sum(a) FROM x"), "2\n3", 'the copy works');
$start = time();
$node->safe_psql('postgres', 'DROP DATABASE d1');
$node->safe_psql('postgres', 'DROP DATABASE d2');
ok(time() - $start < 8, 'DROP DATABASE throws it out');

# A launcher that was killed starts no second workers.
$node->safe_psql('postgres', "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'paimon launcher'");
ok($node->poll_query_until('postgres', "SELECT count(*) = 1 FROM paimon.worker_status WHERE kind = 'launcher'"), 'the launcher comes back');
$node->safe_psql('postgres', "SELECT paimon.flush('t')");
is(workers("datname = 'postgres'"), '1', 'and there is one worker');

# Without workers the session does it.
$node->safe_psql('postgres', 'ALTER SYSTEM SET paimon.max_workers = 0');
$node->reload;
ok($node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'paimon worker'"), 'workers off');
is($node->safe_psql('postgres', "INSERT INTO t VALUES (200); SELECT paimon.flush('t')"), '3', 'the session flushes itself');
($rc, $out, $err) = $node->psql('postgres', 'VACUUM t');
like($err, qr/was not flushed, only frozen/, 'VACUUM says that it only froze');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET paimon.max_workers');
$node->reload;

# Restart: what was committed and not flushed is found; fast shutdown is fast.
$node->safe_psql('postgres', 'INSERT INTO t SELECT i, i FROM generate_series(1000, 1100) i');
$start = time();
$node->stop('fast');
ok(time() - $start < 20, 'fast shutdown');
$node->start;
is($node->safe_psql('postgres', "SELECT paimon.flush('t')"), '4', 'flushed after a restart');
$node->stop('immediate');
$node->start;
is($node->safe_psql('postgres', 'SELECT count(*) FROM t'), '203', 'and all there after a crash');
$node->stop;

done_testing();
