# VACUUM: has the table flushed, freezes the log in place, and relfrozenxid advances without a flush (H18).
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('vacuum');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nautovacuum = off\npaimon.max_workers = 0\nvacuum_freeze_min_age = 0");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');
$node->safe_psql('postgres', 'CREATE TABLE v (a int PRIMARY KEY, b text) USING paimon');
$node->safe_psql('postgres', "INSERT INTO v SELECT i, 'x' FROM generate_series(1, 1000) i");
$node->safe_psql('postgres', "BEGIN; INSERT INTO v VALUES (2000, 'rolled back'); ROLLBACK");
my $before = $node->safe_psql('postgres', "SELECT txid_current()");
$node->safe_psql('postgres', 'VACUUM v');
cmp_ok($node->safe_psql('postgres', "SELECT relfrozenxid FROM pg_class WHERE relname = 'v'"), '>=', $before, 'relfrozenxid advances without a flush');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM v'), '1000|500500', 'and the rows are there');
$node->restart;
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM v'), '1000|500500', 'also after a restart');
is($node->safe_psql('postgres', "SELECT paimon.flush('v')"), '1', 'frozen batches are flushed');
is($node->safe_psql('postgres', 'SELECT count(*), sum(a) FROM v'), '1000|500500', 'with all rows');
$node->stop;
done_testing();
