# The storage under crashes: a backend is killed at each step, recovery runs, and the log is what it was or one whole batch more.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('storage');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
wal_consistency_checking = 'all'
restart_after_crash = on
autovacuum = off
CONF
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE ACCESS METHOD bare_storage TYPE TABLE HANDLER paimon.test_storage_handler;
CREATE TABLE t (a int) USING bare_storage;
SELECT paimon.test_storage_append('t', 300, 20, 1);
SQL

sub value
{
	return $node->safe_psql('postgres', "SELECT paimon.test_storage_$_[0]");
}

# Kills the backend that runs a statement at a stop point, and waits for recovery: that empties the table of stop points.
sub killed_at
{
	my ($point, $sql, $skip) = @_;
	my $arm = sprintf(q{SELECT paimon.stop_arm('%s', 'kill', skip => %d)}, $point, $skip // 0);
	my ($rc) = $node->psql('postgres', "$arm; $sql");
	isnt($rc, 0, "killed at $point");
	$node->poll_query_until('postgres', "SELECT paimon.stop_hits('$point') = 0") or die "no recovery after $point";
	return;
}

# ----- appends, with and without full-page images of the pages touched -----

my $big = q{SELECT paimon.test_storage_append('t', 2000000, 1, 2)};
for my $checkpoint (0, 1)
{
	for my $point (qw(log-extent-taken log-append-first-record log-append-before-last-record log-append-done))
	{
		$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		my $before = value(q{log('t')});
		my ($n) = $before =~ /^(\d+) /;
		killed_at($point, $big);
		my $after = value(q{log('t')});
		if ($point eq 'log-append-done')
		{
			like($after, qr/^@{[ $n + 1 ]} batches/, "$point: the whole batch is there");
		}
		else
		{
			is($after, $before, "$point: the log is as before");
		}

		# What the crash left behind is used, or swept; new batches of all sizes follow.
		my $orphans = value(q{orphans('t')});
		cmp_ok($orphans, '>', 0, "$point: extents that were never linked are found") if $point eq 'log-extent-taken';
		value(q{append('t', 100, 30, 3)});
		value(q{append('t', 8128 - 24, 2, 4)});
		value(q{append('t', 400000, 3, 5)});
		like(value(q{log('t')}), qr/^\d+ batches/, "$point: all batches are sound");
	}
}

# ----- batches that the WAL has compressed (negative seeds) begin and end anywhere on a page, with and without its full-page image -----

for my $checkpoint (0, 1)
{
	for my $bytes (16384, 50000, 8128 * 3 - 24, 180000)
	{
		value(qq{append('t', $bytes, 3, -2)});
		$node->safe_psql('postgres', 'CHECKPOINT') if $checkpoint;
		my ($n) = value(q{log('t')}) =~ /^(\d+) /;
		killed_at('log-append-before-last-record', "SELECT paimon.test_storage_append('t', $bytes, 1, -4)");
		like(value(q{log('t')}), qr/^$n batches/, "packed: $bytes bytes that never came");
		killed_at('log-append-done', "SELECT paimon.test_storage_append('t', $bytes, 1, -4)");
		like(value(q{log('t')}), qr/^@{[ $n + 1 ]} batches/, "packed: $bytes bytes are there after the crash");
	}
}

# ----- an error instead of a crash: the same tail, the same bytes -----

my $before = value(q{log('t')});
my ($rc, undef, $err) = $node->psql('postgres',
	q{SELECT paimon.stop_arm('storage-extent-allocated', 'error'); SELECT paimon.test_storage_write('t', 500000, 6)});
like($err, qr/injected error/, 'a file writer fails');
is(value(q{log('t')}), $before, 'the log does not care');

# ----- files -----

my $file = value(q{write('t', 3000000, 7)});
for my $point (qw(storage-extent-allocated file-pages-written))
{
	killed_at($point, q{SELECT paimon.test_storage_write('t', 1000000, 8)}, 1);
	is(value("check('t', $file, 3000000, 7)"), 't', "$point: another file is untouched");
}
killed_at('extent-free', "SELECT paimon.test_storage_free('t', $file, 0)");
is(value("check('t', $file, 3000000, 7)"), 't', 'extent-free: not freed yet');
cmp_ok(value("free('t', $file, 0)"), '>', 20, 'freed');
is(value("free('t', $file, 0)"), '0', 'freed once only');
my $next = value(q{write('t', 3000000, 9)});
cmp_ok($next, '>', $file, 'file numbers are not used again');
is(value("check('t', $next, 3000000, 9)"), 't', 'a file in extents used before');

# ----- the log below its head -----

my $kept = value(q{append('t', 300000, 1, 10)});
value(q{append('t', 1000000, 3, 11)});
my $head = value(q{append('t', 100, 1, 12)});
for my $point (qw(log-free-before log-free-unlinked))
{
	killed_at($point, "SELECT paimon.test_storage_trim('t', $head, ARRAY[$kept], 0)");
	is(value("header('t', $kept)"), 'live, flags 0', "$point: a batch that is kept");
	like(value("log('t', $head)"), qr/^1 batches/, "$point: the head");
}
cmp_ok(value(q{orphans('t')}), '>', 20, 'unlinked extents are swept');
is(value("trim('t', $head, ARRAY[$kept], 0)"), '0', 'nothing left to free');
$node->restart;
is(value("header('t', $kept)"), 'live, flags 0', 'kept over a restart');
value(q{append('t', 777, 3000, 13)});
is(value("freeze('t', $head)"), '3001', 'batches are frozen, also where the header lies on two pages');
like(value("log('t', $head)"), qr/^3001 batches/, 'and are sound');
is(value("header('t', $head)"), 'frozen, flags 2', 'with their flag');
my $end = value(q{append('t', 1, 1, 14)});
cmp_ok(value("trim('t', $end, '{}', 0)"), '>', 1, 'the kept ones go, too');

# ----- the free end -----

value(q{write('t', 20000000, 15)});
my $last = value(q{write('t', 20000000, 16)});
my $size = $node->safe_psql('postgres', q{SELECT pg_relation_size('t')});
value("free('t', $last, 0)");

# Freeing alone takes no transaction id, so its commit does not wait for WAL.
$node->safe_psql('postgres', 'CHECKPOINT');
killed_at('truncate-before', q{SELECT paimon.test_storage_truncate('t')});
cmp_ok(value(q{truncate('t')}), '>', 2000, 'the free end is given back');
cmp_ok($node->safe_psql('postgres', q{SELECT pg_relation_size('t')}), '<', $size - 16000000, 'the file is shorter');
is(value(q{truncate('t')}), '0', 'once');
my $reader = $node->background_psql('postgres');
$reader->query_safe('BEGIN; LOCK TABLE t IN ACCESS SHARE MODE');
value('free(\'t\', ' . value(q{write('t', 20000000, 17)}) . ', 0)');
is(value(q{truncate('t')}), '0', 'not while somebody uses the table');
$reader->quit;

# ----- unlogged and temporary tables -----

$node->safe_psql('postgres', <<'SQL');
CREATE UNLOGGED TABLE u (a int) USING bare_storage;
SELECT paimon.test_storage_append('u', 3000, 100, 1);
SQL
is(value(q{identity('u')}), 'original', 'an unlogged table has an id');
killed_at('log-append-done', q{SELECT paimon.test_storage_append('u', 3000, 1, 1)});
is(value(q{identity('u')}), 'none', 'and none after a crash');
like(value(q{log('u')}), qr/^0 batches/, 'and no log');
value(q{append('u', 3000, 10, 1)});
is(value(q{identity('u')}), 'reborn', 'and another with the first write');
like(value(q{log('u')}), qr/^10 batches/, 'and a new log');
is($node->safe_psql('postgres', <<'SQL'), 't', 'a temporary table');
CREATE TEMP TABLE x (a int) USING bare_storage;
DO $$ BEGIN PERFORM paimon.test_storage_append('x', 3000, 1000, 1); END $$;
SELECT paimon.test_storage_check('x', paimon.test_storage_write('x', 5000000, 1), 5000000, 1)
	AND paimon.test_storage_log('x') ~ '^1000 batches';
SQL

# ----- wal_level = minimal: nothing logged, synced at commit -----

$node->append_conf('postgresql.conf', "wal_level = minimal\nmax_wal_senders = 0");
$node->restart;
for my $bytes (50000, 5000000)
{
	$node->safe_psql('postgres', <<"SQL");
BEGIN;
DROP TABLE IF EXISTS m;
CREATE TABLE m (a int) USING bare_storage;
SELECT paimon.test_storage_append('m', $bytes, 1, 1);
SELECT paimon.test_storage_write('m', $bytes, 2);
COMMIT;
SQL
	killed_at('log-append-before-last-record', q{SELECT paimon.test_storage_append('m', 100, 1, 3)});
	like(value(q{log('m')}), qr/^1 batches/, "minimal: the log of $bytes bytes");
	is(value("check('m', 16, $bytes, 2)"), 't', "minimal: the file of $bytes bytes");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|inconsistent page/, 'no panic, no page that replay makes differently');
done_testing();
