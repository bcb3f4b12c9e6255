# Crashes under load: every commit that was acknowledged is there, what was not is not, or whole.
#
# A round: sessions write (lib/PaimonLoad.pm) and note outside of the database what they do; the postmaster, a session, a worker,
# or whoever comes to a stop point is killed with SIGKILL; the server recovers; contents, lookups and manifest are compared with
# the notes.  The one transaction that each session had in flight may be there or not, as a whole.
#
# Environment: SEED; ROUNDS (default: each stop point once, and some kills at random times); PAIMON_CRASH_POINTS: a pattern of stop points, only these.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonLoad;
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Storable;
use Test::More;
use Time::HiRes qw(time);

my $seed = $ENV{SEED} // int rand 1000000000;
my $SESSIONS = 4;
my @plain = $ENV{PAIMON_CRASH_POINTS} ? () : qw(postmaster backend postmaster worker postmaster);
my @points = stop_points();
my $rounds = $ENV{ROUNDS} // @points + @plain;
my $dir = $ENV{TESTDATADIR} // '.';
note("seed $seed");
srand $seed;

# The stop points of the source: all but those at which nothing can be lost.
sub stop_points
{
	my %seen;
	for my $file (glob "$FindBin::RealBin/../../src/*/*.c")
	{
		$seen{$_} = 1 for slurp_file($file) =~ /PAIMON_STOP_POINT(?:_CRIT)?\("([^"]+)"\)/g;
	}
	my $only = $ENV{PAIMON_CRASH_POINTS} // '.*';
	return grep { /^(?:$only)$/ } sort keys %seen;
}

my $node = PostgreSQL::Test::Cluster->new('crash');
$node->init;
$node->append_conf('postgresql.conf', <<"CONF");
shared_preload_libraries = 'paimon_am'
restart_after_crash = on
max_prepared_transactions = 20
max_wal_size = '64MB'
checkpoint_timeout = '30s'
wal_consistency_checking = 'all'
autovacuum_naptime = '1s'
log_autovacuum_min_duration = -1
paimon.memtable_memory = '@{[ (4, 16, 64)[rand 3] ]}MB'
paimon.naptime = 50
CONF
$node->start;
my %connect = (host => $node->host, port => $node->port, user => scalar getpwuid($<), dbname => 'postgres');
$node->safe_psql('postgres', join(";\n", 'CREATE EXTENSION paimon_am', PaimonLoad::schema($SESSIONS)));
my @models = map { PaimonLoad::new_model($_) } 0 .. $SESSIONS - 1;

# ----- killing and coming back -----

sub server_processes
{
	my $data = $node->data_dir;
	return grep { (readlink("/proc/$_/cwd") // '') eq $data } map { m,^/proc/(\d+)$, } glob '/proc/[0-9]*';
}

# The postmaster is gone, or is killed now; its children are killed, or left to notice.  Then a start.  If the process that was stopped died with it, its LWLocks
# are held for good: who waits for one of them, as for one of the server's own, notices nothing, and is killed after a while.
sub restart_after_kill
{
	my ($children_too, $holder_died) = @_;
	my $until = time() + 30;
	my $patience = time() + 5;
	my $pid = postmaster_pid();

	$node->kill9;
	kill 9, server_processes() if $children_too;
	while (server_processes() || kill(0, $pid))
	{
		kill 9, server_processes() if $holder_died && time() > $patience;
		die 'children outlive the postmaster' if time() > $until;
		select(undef, undef, undef, 0.02);
	}
	$node->start;
	return;
}

sub postmaster_pid
{
	return (split /\n/, slurp_file($node->data_dir . '/postmaster.pid'))[0];
}

# A connection once the server takes one; after a crash restart, which has forgotten that the stop point was reached.
sub connected
{
	my ($point) = @_;
	my $until = time() + 120;
	while (time() < $until)
	{
		my $wire = PaimonWire->connect(%connect);
		return $wire if $wire && (!$point || eval { $wire->value("SELECT paimon.stop_hits('$point')") == 0 });
		select(undef, undef, undef, 0.02);
	}
	die 'the server does not come back';
}

sub kill_one
{
	my ($wire, $type) = @_;
	my $pids = $wire->rows("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = '$type'");
	kill 9, $pids->[ rand @$pids ][0] if @$pids;
	return scalar @$pids;
}

# ----- a round -----

my %flushing = (flush => 25, vacuum => 12);
my %focus = (
	'flush-.*|compact-.*|expire-.*|cut_walk|reclaim-.*|extent-free|log-free-.*' => \%flushing,
	'spill-.*|bulk-.*' => { large => 40 },
	'append-blocked' => { hot => 0.8 },
	'locks-appended' => { prepared => 60 });

# What leads to a stop point that the load seldom comes to: statements run before it, in a session that may be killed.
my @fresh = ('CREATE TABLE fresh (k int PRIMARY KEY, t text) USING paimon');
my $rows = q{SELECT i, (SELECT string_agg(md5(i || j::text), '') FROM generate_series(1, 20) j) FROM generate_series(1, 3000) i};
my %prelude = (
	'shared_ready' => [ @fresh, 'INSERT INTO fresh VALUES (1)' ],
	'log-free-.*' => [ @fresh, ("INSERT INTO fresh $rows") x 3, q{SELECT paimon.flush('fresh')}, ('VACUUM fresh') x 30 ],
	'log-append-first-record' => [ @fresh, "INSERT INTO fresh $rows" ],
	'expire-.*' => [
		@fresh, q{ALTER TABLE fresh SET ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)},
		("INSERT INTO fresh $rows", q{SELECT paimon.flush('fresh')}) x 3, q{SELECT paimon.compact('fresh')}, 'VACUUM fresh' ],
	'compact-.*' => [ @fresh, ("INSERT INTO fresh $rows", q{SELECT paimon.flush('fresh')}) x 2, q{SELECT paimon.compact('fresh')} ],
	'extent-free|truncate-.*' => [
		@fresh, q{ALTER TABLE fresh SET ("write-buffer-size" = '64kb')}, 'BEGIN', "INSERT INTO fresh $rows", 'ROLLBACK',
		(q{SELECT paimon.test_sweep('fresh')}) x 30 ]);

sub for_point
{
	my ($table, $point) = @_;
	return (map { $table->{$_} } grep { $point =~ /^(?:$_)$/ } sort keys %$table)[0];
}

sub start_sessions
{
	my ($round, $focus, $until) = @_;
	my @pids;

	for my $session (0 .. $SESSIONS)
	{
		my %arg = (connect => \%connect, log => "$dir/session_$session", until => $until, seed => $seed + $round * 100 + $session);
		my $pid = fork() // die "fork: $!";
		if (!$pid)
		{
			if ($session == $SESSIONS) { PaimonLoad::reader(%arg) }
			else { PaimonLoad::session(%arg, model => $models[$session], focus => $focus) }
			require POSIX;
			POSIX::_exit(0);
		}
		push @pids, $pid;
	}
	return @pids;
}

# Load and death.  Returns what was done.
sub load_and_kill
{
	my ($round, $how, $wire) = @_;
	my $point = $how =~ /^stop (.*)/ ? $1 : undef;
	my $action = rand() < 0.5 ? 'kill' : 'panic';
	my $limit = $point ? 8 : 0.2 + rand 1.3;
	my $killed = 0;
	my $begin = time();

	if ($point)
	{
		my $prelude = for_point(\%prelude, $point);
		my $skip = $prelude || $point eq 'append-blocked' ? 0 : (0, 0, 1, 3, 6)[rand 5];
		$wire->rows("SELECT paimon.stop_arm('$point', '$action', skip => $skip)");
		$how .= " ($action, $skip passed)";
		for my $sql (@{ $prelude // [] })
		{
			$killed = 1 if !eval { $wire->query($sql) };
			last if $killed;
		}
	}
	my $focus = for_point(\%focus, $point // '') // {};
	unlink glob "$dir/session_*";
	my @pids = $killed ? () : start_sessions($round, $focus, time() + $limit + 60);
	my $end = time() + $limit;
	while (time() < $end && !$killed)
	{
		$killed = 1 if !eval { $wire->rows('SELECT 1') };
		select(undef, undef, undef, 0.02);
	}
	if (!$killed && $how =~ /^(?:backend|worker)$/)
	{
		my $type = $how eq 'backend' ? 'client backend' : 'paimon worker';
		$killed = eval { kill_one($wire, $type) } // 1;
	}
	$how .= ' not reached' if $point && !$killed;
	$how .= ' not found' if !$point && !$killed && $how ne 'postmaster';
	my $dead = time();
	my $holder_died = $killed && $point && $action eq 'panic';
	my $restart = !$killed || $holder_died;
	restart_after_kill(rand() < 0.7, $holder_died) if $restart;
	waitpid($_, 0) for @pids;
	note(sprintf('load %.1f s, restart %.1f s', $dead - $begin, time() - $dead));
	return ($how, $killed);
}

# ----- what must hold afterwards -----

# The transactions in flight: prepared ones are ended, in one way or the other.
sub settle
{
	my ($wire, $model, $flight) = @_;
	my $name = "s$model->{session}_" . ($flight ? $flight->{n} : 0);
	my $there = $wire->value("SELECT count(*) FROM pg_prepared_xacts WHERE gid = '$name'");
	my @wrong;

	return ($flight, @wrong) if !$flight;
	if ($there)
	{
		my $commit = rand() < 0.5;
		$wire->rows('SELECT count(*) FROM kv') if rand() < 0.5;
		$wire->rows("SELECT paimon.flush('kv')") if rand() < 0.5;
		$wire->rows(($commit ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$name'");
		$commit ? PaimonLoad::commit($model, $flight) : PaimonLoad::abort($model, $flight);
		return (undef, @wrong);
	}
	push @wrong, "prepared transaction $name is lost" if $flight->{state} eq 'P';
	if ($flight->{state} =~ /[CR]/)
	{
		# It was prepared and is no longer: the end that was asked for came.
		$flight->{state} eq 'C' ? PaimonLoad::commit($model, $flight) : PaimonLoad::abort($model, $flight);
		return (undef, @wrong);
	}
	return ($flight, @wrong);
}

# All rows of all tables by session; what is wrong in itself goes to the list.
sub contents
{
	my ($wire, $wrong) = @_;
	my @found;

	for my $table (PaimonLoad::tables($SESSIONS))
	{
		my $rows = $wire->rows("SELECT i, n, f = repeat(md5(i || ':' || n), 1 + n % 5) FROM $table");
		for (@$rows)
		{
			my ($i, $n, $good) = @$_;
			my $of = $found[ $i % PaimonLoad::STRIDE ]{$table} //= {};
			push @$wrong, "$table: two rows of i $i" if exists $of->{$i};
			push @$wrong, "$table: i $i, n $n: not what transaction $n wrote" if $good ne 't';
			$of->{$i} = $n;
		}
	}
	for (@{ $wire->rows('SELECT session, n FROM hot') })
	{
		my ($session, $n) = @$_;
		push @$wrong, "hot: of transaction $n of session $session, which was rolled back" if $models[$session]{aborted}{$n};
	}
	my $sum = $wire->value('SELECT sum(v) FROM bank');
	push @$wrong, "sum of accounts: $sum" if $sum != 100 * PaimonLoad::ACCOUNTS;
	return \@found;
}

# By key: some that are there, some that are not; one by one and in a join.
sub lookups
{
	my ($wire, $found, $wrong) = @_;

	$wire->rows('SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off');
	my @i = map { int rand 12000 } 1 .. 60;
	my $list = join ', ', @i;
	my %got = map { $_->[0] => $_->[1] } @{ $wire->rows("SELECT x, n FROM unnest(ARRAY[$list]) x JOIN kv ON kv.k = x") };
	for my $i (@i)
	{
		my $want = $found->[ $i % PaimonLoad::STRIDE ]{kv}{$i} // 'none';
		push @$wrong, "kv by key: i $i: n " . ($got{$i} // 'none') . " instead of $want" if ($got{$i} // 'none') ne $want;
	}
	for my $i (@i[ 0 .. 9 ])
	{
		my $want = $found->[ $i % PaimonLoad::STRIDE ]{kt}{$i} // 'none';
		my $have = $wire->value("SELECT coalesce((SELECT n::text FROM kt WHERE k = 'x' || $i % 100 || '-' || $i), 'none')");
		push @$wrong, "kt by key: i $i: n $have instead of $want" if $have ne $want;
	}
	$wire->rows('RESET enable_seqscan; RESET enable_hashjoin; RESET enable_mergejoin');
	return;
}

# Manifest: extents belong to one file each; snapshots are numbered without gaps and have the rows of their files.
sub manifest
{
	my ($wire, $wrong) = @_;
	my %owner;

	for (@{ $wire->rows(q{SELECT storage_id, file_no, encode(extents, 'hex'), npages, row_count, delete_count, min_position, max_position FROM paimon.file}) })
	{
		my ($storage, $file, $hex, $npages, $nrows, $ndeletes, $min, $max) = @$_;
		my @extents = unpack 'V*', pack 'H*', $hex;
		my $total = 0;
		while (my ($first, $count) = splice @extents, 0, 2)
		{
			$total += $count;
			for my $e ($first .. $first + $count - 1)
			{
				push @$wrong, "extent $e of storage $storage: in files $owner{$storage}{$e} and $file"
				  if exists $owner{$storage}{$e} && $owner{$storage}{$e} ne $file;    # a file that was lifted has two rows
				$owner{$storage}{$e} = $file;
			}
		}
		push @$wrong, "file $file of storage $storage: $npages pages in $total extents" if $npages > $total * 16 || $npages <= ($total - 1) * 16;
		push @$wrong, "file $file of storage $storage: $nrows rows, $ndeletes deleted, positions $min to $max"
		  if $nrows < 1 || $ndeletes > $nrows || ($max < $min && $max != $min - 1);
	}
	my $gaps = $wire->rows(q{SELECT storage_id, count(*), min(snapshot_id), max(snapshot_id) FROM paimon.snapshot GROUP BY 1
		HAVING count(*) <> max(snapshot_id) - min(snapshot_id) + 1});
	push @$wrong, "snapshots of storage $_->[0]: $_->[1] from $_->[2] to $_->[3]" for @$gaps;
	my $sums = $wire->rows(q{SELECT storage_id, snapshot_id, total_record_count, files FROM paimon.snapshot s,
		LATERAL (SELECT coalesce(sum(row_count), 0) AS files FROM paimon.file f WHERE f.storage_id = s.storage_id
			AND added_snapshot BETWEEN 1 AND s.snapshot_id AND (removed_snapshot = 0 OR removed_snapshot > s.snapshot_id)) f
		WHERE snapshot_id = (SELECT max(snapshot_id) FROM paimon.snapshot l WHERE l.storage_id = s.storage_id) AND total_record_count <> files});
	push @$wrong, "snapshot $_->[1] of storage $_->[0]: $_->[2] rows, its files have $_->[3]" for @$sums;
	for my $table (PaimonLoad::tables($SESSIONS))
	{
		push @$wrong, map { "verify of $table: @$_" } @{ $wire->rows("SELECT severity, object, problem FROM paimon.verify('$table')") };
	}
	$wire->rows("SELECT count(*) FROM paimon.files('$_'), paimon.buckets('$_'), paimon.snapshots('$_')") for PaimonLoad::tables($SESSIONS);
	return;
}

sub verify
{
	my ($wire) = @_;
	my (@wrong, @flights);

	for my $model (@models)
	{
		my ($flight, @bad) = PaimonLoad::replay($model, "$dir/session_$model->{session}");
		push @wrong, @bad;
		($flight, @bad) = settle($wire, $model, $flight);
		push @wrong, @bad;
		push @flights, $flight;
	}
	if (-e "$dir/session_$SESSIONS")
	{
		push @wrong, map { s/^E /reader: /r } split /\n/, slurp_file("$dir/session_$SESSIONS");
	}
	my $found = contents($wire, \@wrong);
	for my $model (@models)
	{
		my $flight = $flights[ $model->{session} ];
		my $rows = $found->[ $model->{session} ];
		my @diff = PaimonLoad::differences($model, $rows);
		if ($flight && @diff)
		{
			my $with = PaimonLoad::copy_of($model);
			PaimonLoad::commit($with, $flight);
			my @diff_with = PaimonLoad::differences($with, $rows);
			@diff = @diff_with ? ((map { "without transaction $flight->{n}: $_" } @diff), map { "with it: $_" } @diff_with) : ();
			$model->{$_} = $with->{$_} for keys %$with;
		}
		elsif ($flight) { PaimonLoad::abort($model, $flight) }
		push @wrong, @diff;
	}
	lookups($wire, $found, \@wrong);
	manifest($wire, \@wrong);
	store(\@models, "$dir/expected-state");
	return @wrong;
}

# Flushing, compacting and reclaiming everything changes no row.
sub settle_down
{
	my ($wire) = @_;
	my @wrong;

	for my $table (PaimonLoad::tables($SESSIONS), 'bank')
	{
		$wire->rows(rand() < 0.5 ? "SELECT paimon.flush('$table')" : "SELECT paimon.compact('$table', full => @{[ rand() < 0.7 ? 'true' : 'false' ]})");
		$wire->rows("VACUUM $table") for 1 .. 2;
	}
	my $found = contents($wire, \@wrong);
	push @wrong, map { PaimonLoad::differences($_, $found->[ $_->{session} ]) } @models;
	lookups($wire, $found, \@wrong);
	manifest($wire, \@wrong);
	return map { "after flush or compaction, and VACUUM: $_" } @wrong;
}

# New storages now and then.
sub begin_anew
{
	my ($wire) = @_;
	$wire->rows('TRUNCATE ' . join(', ', PaimonLoad::tables($SESSIONS)));
	PaimonLoad::forget_rows($_) for @models;
	return;
}

# ----- all rounds -----

my @modes = map { ($_ < @plain ? $plain[$_] : ()) } 0 .. $#plain;
push @modes, map { "stop $_" } @points;
my (%reached, $time);
for my $round (1 .. $rounds)
{
	my $mode = $modes[ ($round - 1) % @modes ];
	my $wire = connected();
	my $start = time();
	my ($how, $killed) = load_and_kill($round, $mode, $wire);
	$reached{$mode} = 1 if $killed;
	$wire = connected($killed && $mode =~ /^stop (.*)/ ? $1 : undef);
	my @wrong = verify($wire);
	push @wrong, settle_down($wire) if !@wrong && ($round % 6 == 0 || $round == $rounds);
	$wire->rows('DROP TABLE IF EXISTS fresh');
	begin_anew($wire) if !@wrong && $round % 6 == 0;
	$wire->close;
	ok(!@wrong, sprintf('round %d: %s, transactions so far %s', $round, $how, join(' ', map { $_->{n} } @models)));
	note(sprintf('%.1f s', time() - $start));
	if (@wrong)
	{
		diag("seed $seed, round $round");
		diag($_) for @wrong[ 0 .. ($#wrong > 20 ? 20 : $#wrong) ];
		last;
	}
}
if ($rounds >= @modes)
{
	my @missed = grep { !$reached{"stop $_"} } @points;
	note("not reached: @missed") if @missed;
	cmp_ok(scalar @missed, '<', @points / 4, 'nearly all stop points were reached');
}
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|inconsistent page|signal (?:6|11)\b/, 'no panic, no page that replay makes differently');
done_testing();
