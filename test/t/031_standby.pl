# A streaming standby: equal to its primary at any time, with snapshots of its own, until and after it is promoted.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonLoad;
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{SEED} // int rand 1000000000;
my $SESSIONS = 3;
my $dir = $ENV{TESTDATADIR} // '.';
note("seed $seed");

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
max_prepared_transactions = 20
wal_consistency_checking = 'all'
paimon.memtable_memory = '8MB'
paimon.naptime = 50
CONF
$primary->start;
$primary->safe_psql('postgres', join(";\n", 'CREATE EXTENSION paimon_am', PaimonLoad::schema($SESSIONS)));
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->start;

my @tables = (PaimonLoad::tables($SESSIONS), 'bank', 'hot');
my @models = map { PaimonLoad::new_model($_) } 0 .. $SESSIONS - 1;
my $run = 0;

sub connect_to
{
	my ($node) = @_;
	return (host => $node->host, port => $node->port, user => scalar getpwuid($<));
}

# Load for some seconds, with somebody reading on each server; what they note must be no error.
sub load
{
	my ($node, $seconds, $reading_on, $name) = @_;
	my @pids;
	my $until = time() + $seconds;

	$run++;
	unlink glob "$dir/session_*";
	for my $session (0 .. $SESSIONS)
	{
		my $pid = fork() // die "fork: $!";
		if (!$pid)
		{
			my %arg = (log => "$dir/session_$session", until => $until, seed => $seed + 100 * $run + $session);
			if ($session == $SESSIONS) { PaimonLoad::reader(%arg, connect => { connect_to($reading_on) }) }
			else { PaimonLoad::session(%arg, connect => { connect_to($node) }, model => $models[$session]) }
			require POSIX;
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	waitpid($_, 0) for @pids;
	my @wrong = map { (PaimonLoad::replay($models[$_], "$dir/session_$_"))[ 1 .. 3 ] } 0 .. $SESSIONS - 1;
	@wrong = grep { defined } @wrong, grep { /^E/ } split /\n/, slurp_file("$dir/session_$SESSIONS");
	is(join("\n", @wrong), '', $name);
	cmp_ok($models[0]{n}, '>', 2, 'and something was done');
	return;
}

sub sums
{
	my ($node) = @_;
	return $node->safe_psql('postgres',
		join(' UNION ALL ', map { "SELECT '$_', count(*), md5(string_agg(x::text, ' ' ORDER BY x::text COLLATE \"C\")) FROM $_ x" } @tables) . ' ORDER BY 1');
}

sub models_match
{
	my ($node, $name) = @_;
	my $wire = PaimonWire->connect(connect_to($node));
	my @found;

	for my $table (PaimonLoad::tables($SESSIONS))
	{
		$found[ $_->[0] % PaimonLoad::STRIDE ]{$table}{ $_->[0] } = $_->[1] for @{ $wire->rows("SELECT i, n FROM $table") };
	}
	is(join("\n", map { PaimonLoad::differences($_, $found[ $_->{session} ]) } @models), '', $name);
	return;
}

sub compare
{
	my ($name) = @_;
	my $want = sums($primary);
	$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
	is(sums($standby), $want, $name);
	return;
}

# ----- equal while the log is in memtables, in files, after reclaiming -----

load($primary, 3, $standby, 'load, and a reader on the standby');
models_match($primary, 'the primary has what was acknowledged');
compare('equal after load');
$primary->safe_psql('postgres', join(';', map { "INSERT INTO $_ SELECT * FROM $_ LIMIT 5" } grep { $_ ne 'ap' } @tables));
compare('equal with small commits in the log');
$primary->safe_psql('postgres', "SELECT paimon.flush('$_')") for @tables;
compare('equal after flushes');
$standby->restart;
compare('equal after a restart of the standby, whose memtables are empty');
my ($rc, $out, $err) = $standby->psql('postgres', 'INSERT INTO bank VALUES (1000, 1)');
like($err, qr/read-only transaction/, 'no writing on a standby');
($rc, $out, $err) = $standby->psql('postgres', q{SELECT paimon.flush('kv')});
isnt($rc, 0, 'no flush on a standby');

# ----- a batch that is frozen is not seen by snapshots that were there before it was committed -----

$primary->safe_psql('postgres', 'CREATE TABLE frozen (k int PRIMARY KEY, n int) USING paimon; INSERT INTO frozen SELECT i, 0 FROM generate_series(1, 1000) i');
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $unfrozen = PaimonWire->connect(connect_to($standby));
$unfrozen->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($unfrozen->value('SELECT sum(n) FROM frozen'), 0, 'a snapshot on the standby');
$primary->safe_psql('postgres', 'UPDATE frozen SET n = 1');
$primary->safe_psql('postgres', 'VACUUM (FREEZE) frozen');
my $frozen_lsn = $primary->lsn('insert');
ok($standby->poll_query_until('postgres', "SELECT pg_last_wal_replay_lsn() >= '$frozen_lsn'"
		  . q{ OR EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryConflictSnapshot')}),
	'the standby comes to the frozen batch');
is($unfrozen->value('SELECT sum(n) FROM frozen'), 0, 'and the snapshot still does not see it');
$unfrozen->close;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', 'SELECT sum(n) FROM frozen'), 1000, 'a new one does');

# ----- an old snapshot there: replay waits for it, or cancels it -----

$primary->safe_psql('postgres', <<'SQL');
CREATE TABLE old (k int PRIMARY KEY, t text) USING paimon;
INSERT INTO old SELECT i, (SELECT string_agg(md5(i || ' ' || j), '') FROM generate_series(1, 20) j) FROM generate_series(1, 3000) i;
SQL
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $old = PaimonWire->connect(connect_to($standby));
my $sum = q{SELECT count(*) || ' ' || md5(string_agg(t, '' ORDER BY k)) FROM old};
$old->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $before = $old->value($sum);

# Each time: new rows, everything flushed, everything older freed and used again.
for my $n (1 .. 4)
{
	$primary->safe_psql('postgres', "UPDATE old SET t = t || '$n'");
	$primary->safe_psql('postgres', "SELECT paimon.flush('old')");
	$primary->safe_psql('postgres', 'VACUUM old');
	is($old->value($sum), $before, "an old snapshot on the standby, $n updates of all rows later");
}
is($primary->safe_psql('postgres', $sum) ne $before, 1, 'while the primary went on');
$old->close;
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), 'replay goes on when it has ended');
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = 0');
$standby->restart;
$old = PaimonWire->connect(connect_to($standby));
$old->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->value($sum);
for my $n (5 .. 6)
{
	$primary->safe_psql('postgres', "UPDATE old SET t = t || '$n'");
	$primary->safe_psql('postgres', "SELECT paimon.flush('old')");
	$primary->safe_psql('postgres', 'VACUUM old');
}
$primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert'));
my $got = eval { $old->query($sum) };
ok(!$got || $got->{error}, 'a snapshot is cancelled where replay must not wait');
like($got->{error}{M}, qr/conflict with recovery/, 'saying why') if $got;
is($standby->safe_psql('postgres', $sum), $primary->safe_psql('postgres', $sum), 'and others see the new rows');
# The readers to come are not to be cancelled.
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->reload;

# ----- a prepared transaction, and promotion under load -----

$primary->safe_psql('postgres', q{BEGIN; UPDATE old SET t = 'prepared' WHERE k <= 10; DELETE FROM old WHERE k = 20; PREPARE TRANSACTION 'p'});
$primary->safe_psql('postgres', q{INSERT INTO old VALUES (100000, 'later')});
$primary->safe_psql('postgres', q{SELECT paimon.flush('old')});
load($primary, 1, $standby, 'load before the promotion');
compare('equal before the promotion');
my $want = sums($primary);
$primary->stop('immediate');
$standby->promote;
is(sums($standby), $want, 'equal after the promotion');
models_match($standby, 'the promoted standby has what was acknowledged');
my $locked = $standby->psql('postgres', q{SET lock_timeout = '200ms'; UPDATE old SET t = 'no' WHERE k = 5});
isnt($locked, 0, 'rows of the prepared transaction are locked');
$standby->safe_psql('postgres', q{COMMIT PREPARED 'p'});
is($standby->safe_psql('postgres', q{SELECT count(*) FILTER (WHERE t = 'prepared'), count(*) FILTER (WHERE k = 20), count(*) FILTER (WHERE t = 'later') FROM old}),
	'10|0|1', 'and are there when it is committed');
load($standby, 2, $standby, 'load after the promotion');
models_match($standby, 'and it has what was acknowledged');
for my $table (@tables, 'old')
{
	$standby->safe_psql('postgres', "SELECT paimon.flush('$table')");
	$standby->safe_psql('postgres', "VACUUM $table");
}
$want = sums($standby);
models_match($standby, 'after flushes');
$standby->stop('immediate');
$standby->start;
is(sums($standby), $want, 'the same after a crash');
$standby->stop;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|inconsistent page|signal (?:6|11)\b/, 'no panic, no page that replay makes differently') for $primary, $standby;
done_testing();
