# An error at every stop point of flush, compaction, publish, expiry, reclaim and of files: once, while a table is written to.  Whoever gets it says so, the
# workers go on by themselves, the views show the failure and forget it, and nothing is lost or left behind.
use strict;
use warnings;
use FindBin;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

# The points at which an error can be thrown, but not those of starting up, of single rows and of waiting.
my %seen;
for my $file (glob "$FindBin::RealBin/../../src/*/*.c")
{
	$seen{$_} = 1 for slurp_file($file) =~ /PAIMON_STOP_POINT\("([^"]+)"\)/g;
}
my $only = $ENV{PAIMON_ERROR_POINTS} // '(?:flush|compact|expire|reclaim|extent|log-free|truncate|storage|file|bulk|spill)-.*|cut_walk';
my @points = grep { /^(?:$only)$/ } sort keys %seen;
cmp_ok(scalar @points, '>', 20, 'stop points are found') if !$ENV{PAIMON_ERROR_POINTS};

my $node = PostgreSQL::Test::Cluster->new('errors');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
EOC
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
sub sum { my ($name) = @_; return sql("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM $name"); }

sub until_true
{
	my ($text, $what) = @_;
	my $until = time() + 60;
	my $result = '';
	while (time() < $until && $result ne 't') { $result = sql($text) }
	is($result, 't', $what);
	return $result eq 't';
}

my ($got, $salt);

# A statement for both tables in one transaction, or one of its own; only the injected error may come of it.
sub try_sql
{
	my ($point, $text) = @_;
	my ($rc, $out, $err) = $node->psql($db, $text);
	return if $rc == 0 && $err !~ /WARNING/;
	if ($err =~ /injected error at stop point "\Q$point\E"/) { $got = 1 }
	else { like($err, qr/background work on table "t" failed|was not (?:flushed|compacted)/, "$point: only the error that was injected") }
	return;
}

sub both
{
	my ($point, $text) = @_;
	(my $heap = $text) =~ s/\bt\b/h/g;
	$heap .= ' ON CONFLICT (a) DO UPDATE SET b = EXCLUDED.b' if $heap =~ /^INSERT/;
	return try_sql($point, "BEGIN; $text; $heap; COMMIT;");
}

# Small commits, large ones, rolled back ones, deletes, all of it flushed, compacted, expired, reclaimed.
sub work
{
	my ($point, $done) = @_;
	for my $n (1 .. 6)
	{
		$salt++;
		both($point, "INSERT INTO t SELECT i, md5((i * $salt)::text) FROM generate_series($n, 3000, $n) i");
		both($point, "INSERT INTO t SELECT i, repeat(md5((i + $salt)::text), 4) FROM generate_series(2000, 6000) i") if $n % 3 == 0;
		try_sql($point, "BEGIN; INSERT INTO t SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 5000) i; ROLLBACK");
		both($point, "DELETE FROM t WHERE a % 10 = $n");
		try_sql($point, "SELECT paimon.flush('t')");
		last if $n > 1 && $done->();
	}
	for (1 .. 20)
	{
		last if $done->();
		try_sql($point, "SELECT paimon.test_sweep('t')");
		try_sql($point, "SELECT paimon.compact('t')");
		both($point, 'DELETE FROM t WHERE a > 100');
		try_sql($point, 'VACUUM t');
	}
	return;
}

my @missed;
for my $point (@points)
{
	my $start = time();
	my $errors = sql("SELECT coalesce(sum(errors), 0) FROM paimon.worker_status");
	my $shown = 0;
	sql('DROP TABLE IF EXISTS t, h');
	sql('CREATE TABLE h (a int PRIMARY KEY, b text)');
	sql('CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH ("write-buffer-size" = \'128 kb\', "num-sorted-run.compaction-trigger" = 2,
		"snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)');
	$got = 0;
	sql("SELECT paimon.stop_arm('$point', 'error', times => 1)");
	work($point, sub { return $got ||= sql("SELECT paimon.stop_hits('$point') > 0") eq 't' });
	if (!$got)
	{
		push @missed, $point;
		sql('SELECT paimon.stop_reset()');
		next;
	}
	# A worker that got it counts it, and the history or the other view tells; a session was told.
	my $by_worker = sql('SELECT coalesce(sum(errors), 0) FROM paimon.worker_status') > $errors;
	$shown = sql("SELECT count(*) FROM paimon.worker_status WHERE last_error LIKE '%stop point \"$point\"%'") > 0 if $by_worker;
	ok(!$by_worker || $shown, "$point: the error is in the view of workers");
	# Nobody asks for anything now.
	my $ok = until_true('SELECT count(*) = 0 FROM paimon.worker_errors', "$point: it is forgotten when the work was done");
	$ok &&= until_true("SELECT sum(runs) <= 3 AND max(unflushed_bytes) < 200000 FROM paimon.stats('t')", "$point: work goes on");
	$ok &&= is(sum('t'), sum('h'), "$point: contents");
	until_true(q{SELECT count(*) = 0 FROM paimon.file WHERE closing_xid <> '0'}, "$point: what was replaced goes by itself");
	sql("INSERT INTO t VALUES (1, 'after'); INSERT INTO h VALUES (1, 'after') ON CONFLICT (a) DO UPDATE SET b = 'after'; SELECT paimon.compact('t')");
	is(sum('t'), sum('h'), "$point: contents when all is compacted");
	$ok &&= until_true("SELECT count(*) = 0 FROM paimon.verify('t')", "$point: verify") or diag(sql("SELECT severity, object, problem FROM paimon.verify('t')"));
	until_true("SELECT paimon.test_sweep('t') AND paimon.test_storage_usage('t') ~ ('^' || (SELECT coalesce(sum((file_size_in_bytes + 131071) / 131072), 0)
		FROM paimon.files('t')) + 1 || ' used')", "$point: no space is lost");
	note(sprintf('%s: %s, %.1f s', $point, $by_worker ? 'a worker' : 'a session', time() - $start));
	last if !$ok;
}
is("@missed", '', 'all of them are reached');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal (?:6|11)\b/, 'no panic');
done_testing();
