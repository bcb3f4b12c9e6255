# paimon.verify looks at each part in a sub-transaction.  A session in which it is cancelled goes on, inside a transaction and outside.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE TABLE t (k int PRIMARY KEY, v text) USING paimon WITH (bucket = 4);
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 300000) i;
SELECT paimon.flush('t');
INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 1000) i;
SQL

my $cancelled = 0;
for my $ms (1, 2, 4, 8, 12, 16, 24, 32)
{
	my ($rc, $out, $err) = $node->psql('postgres', <<"SQL", on_error_stop => 0);
SET statement_timeout = $ms;
SELECT count(*) FROM paimon.verify('t');
SET statement_timeout = 0;
SELECT 'outside';
BEGIN;
SAVEPOINT a;
SET LOCAL statement_timeout = $ms;
SELECT count(*) FROM paimon.verify('t');
ROLLBACK TO a;
SELECT 'inside';
COMMIT;
SELECT 'after', count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype NOT IN ('relation', 'virtualxid');
SQL
	$cancelled += () = $err =~ /canceling statement due to statement timeout/g;
	like($out, qr/outside\n(0\n)?inside\nafter\|0$/, "after $ms ms");
	unlike($err, qr/WARNING|FATAL|current transaction is aborted/, "$ms ms: nothing else is said");
}
cmp_ok($cancelled, '>=', 4, 'it was cancelled in between');
is($node->safe_psql('postgres', "SELECT * FROM paimon.verify('t')"), '', 'nothing is wrong');
$node->stop;
done_testing();
