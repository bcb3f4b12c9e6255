# A standby has the same pages, and its old snapshots are cancelled before extents they may need are used again.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
wal_consistency_checking = 'all'
autovacuum = off
CONF
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE ACCESS METHOD bare_storage TYPE TABLE HANDLER paimon.test_storage_handler;
CREATE TABLE t (a int) USING bare_storage;
SELECT paimon.test_storage_append('t', 300, 20, 1);
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->start;

sub on_primary
{
	return $primary->safe_psql('postgres', "SELECT paimon.test_storage_$_[0]");
}

sub on_both
{
	my ($what, $name) = @_;
	my $want = on_primary($what);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is($standby->safe_psql('postgres', "SELECT paimon.test_storage_$what"), $want, $name);
	return $want;
}

on_primary(q{append('t', 300, 100, 2)});
on_primary(q{append('t', 8128 - 24, 3, 3)});
on_primary(q{append('t', 2000000, 2, 4)});
on_primary(q{append('t', 50000, 20, -4)});
my $file = on_primary(q{write('t', 70000000, 5)});
on_both(q{log('t')}, 'the log');
on_both(q{pages('t')}, 'all pages');
is($standby->safe_psql('postgres', "SELECT paimon.test_storage_check('t', $file, 70000000, 5)"), 't', 'the file');

# Freed behind a horizon that the snapshot sees as running: it goes before the extents do.
sub snapshot_on_standby
{
	my $session = $standby->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/begun/, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1;\n\\echo begun\n");
	return $session;
}

sub holds_snapshot
{
	return $standby->safe_psql('postgres',
		q{SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND backend_xmin IS NOT NULL});
}

my $session = snapshot_on_standby();
my $old = $primary->safe_psql('postgres', 'SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 50');
my $other = on_primary(q{write('t', 1000000, 6)});
on_primary("free('t', $other, $old)");
on_both(q{usage('t')}, 'an extent freed behind an old horizon');
is(holds_snapshot(), '1', 'cancels nobody');
my $now = $primary->safe_psql('postgres', 'SELECT pg_current_xact_id()::text::bigint');
on_primary("free('t', $file, $now)");
on_both(q{usage('t')}, 'an extent freed behind a new horizon');
ok($standby->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND backend_xmin IS NOT NULL}),
	'cancels the snapshot');
$session->quit;

# The same for the log.
my $kept = on_primary(q{append('t', 300000, 1, 7)});
on_primary(q{append('t', 1000000, 1, 8)});
my $head = on_primary(q{append('t', 100, 1, 9)});
$session = snapshot_on_standby();
$now = $primary->safe_psql('postgres', 'SELECT pg_current_xact_id()::text::bigint');
cmp_ok(on_primary("trim('t', $head, ARRAY[$kept], $now)"), '>', 1, 'log extents are freed');
ok($standby->poll_query_until('postgres',
		q{SELECT count(*) = 0 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%' AND backend_xmin IS NOT NULL}),
	'which cancels a snapshot as well');
$session->quit;
on_both("header('t', $kept)", 'a batch that was kept');
on_both("log('t', $head)", 'the log from its head');
on_primary("freeze('t', $head)");
on_both("log('t', $head)", 'and frozen');
cmp_ok(on_primary(q{truncate('t')}), '>', 1000, 'the free end is given back');
on_both(q{pages('t')}, 'all pages');

# A copied database: core logs our pages as standard ones.
$primary->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres STRATEGY wal_log');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $want = on_primary(q{pages('t')});
is($primary->safe_psql('copy', q{SELECT paimon.test_storage_pages('t')}), $want, 'a copy');
is($standby->safe_psql('copy', q{SELECT paimon.test_storage_pages('t')}), $want, 'and its copy on the standby');
$primary->stop('immediate');
$primary->start;
is($primary->safe_psql('copy', q{SELECT paimon.test_storage_pages('t')}), $want, 'and after a crash');

# Promotion: the tail is where it was.
on_primary(q{append('t', 2000, 10, 10)});
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('flush'));
$want = on_primary("log('t', $head)");
$standby->promote;
is($standby->safe_psql('postgres', "SELECT paimon.test_storage_log('t', $head)"), $want, 'the log after promotion');
$standby->safe_psql('postgres', q{SELECT paimon.test_storage_append('t', 200000, 10, 11)});
like($standby->safe_psql('postgres', "SELECT paimon.test_storage_log('t', $head)"),
	qr/^21 batches/, 'and it goes on');

unlike(slurp_file($standby->logfile), qr/PANIC|inconsistent page/, 'replay made the same pages');
$standby->stop;
$primary->stop;
done_testing();
