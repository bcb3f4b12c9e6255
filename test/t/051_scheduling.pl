# Several workers of one database: what they do side by side, who goes first, how they are held back, cancelled and thrown out, and what the views say.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('scheduling');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '120s'
max_worker_processes = 16
paimon.max_workers = 3
paimon.naptime = 50
paimon.log_compaction_min_duration = 0
deadlock_timeout = '100ms'
EOC
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
# Nothing that is waited for here takes long: a test that fails says so at once.
sub until_true
{
	my ($text, $what) = @_;
	my $until = time() + 60;
	my $result = '';
	while (time() < $until)
	{
		$result = $node->safe_psql($db, $text);
		last if $result eq 't';
	}
	is($result, 't', $what) or die "waited in vain: $text";
	return;
}
sub arm { my ($name, $action, $times) = @_; return sql("SELECT paimon.stop_arm('$name', '$action', times => " . ($times // 1) . ')'); }
sub stopped { my ($name, $n) = @_; return until_true("SELECT paimon.stop_waiting('$name') = " . ($n // 1), "somebody waits at $name"); }
sub release { my ($name) = @_; return sql("SELECT paimon.stop_release('$name')"); }
sub sum { my ($name) = @_; return sql("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM $name"); }
sub later
{
	my ($text) = @_;
	my $session = $node->background_psql($db, on_error_stop => 0);
	$session->{stdin} .= "$text\n";
	$session->{run}->pump_nb;
	return $session;
}

sub result
{
	my ($session) = @_;
	$session->quit;
	return $session->{stdout} . $session->{stderr};
}

sub set
{
	my (%settings) = @_;
	sql("ALTER SYSTEM SET $_ = $settings{$_}") for keys %settings;
	$node->reload;
	while (my ($name, $value) = each %settings)
	{
		$value =~ s/'//g;
		$node->poll_query_until($db, "SELECT current_setting('$name') = '$value'") or die "$name was not set to $value";
	}
	return;
}

# Rows that come to `runs` runs, which nobody compacts before `go`.
sub make_table
{
	my ($name, $rows, $runs, $options) = @_;
	sql("DROP TABLE IF EXISTS $name; CREATE TABLE $name (a int PRIMARY KEY, b text) USING paimon
		WITH (\"write-only\" = true, \"num-sorted-run.compaction-trigger\" = 2" . ($options // '') . ')');
	for my $n (1 .. $runs)
	{
		sql("INSERT INTO $name SELECT i, md5((i * $n)::text) FROM generate_series(1, $rows) i");
		sql("SELECT paimon.flush('$name')");
	}
	return sum($name);
}

# From now on the workers compact it.
sub go
{
	my ($name) = @_;
	sql("ALTER TABLE $name RESET (\"write-only\"); INSERT INTO $name VALUES (0, 'go')");
	sql("SELECT paimon.flush('$name')");
	return sum($name);
}

sub tidy { my ($name) = @_; return until_true("SELECT max(n) <= 2 FROM (SELECT sum(runs) AS n FROM paimon.levels('$name') GROUP BY bucket) x", "$name has its shape"); }
sub history { my ($name, $what) = @_; return sql("SELECT $what FROM paimon.compaction_history WHERE relid = '$name'::regclass ORDER BY id DESC LIMIT 1"); }

# ---- two buckets of one table at the same time ----

make_table('t', 2000, 4, ', bucket = 2');
arm('compact-picked', 'wait', 2);
my $want = go('t');
stopped('compact-picked', 2);
is(sql(q{SELECT count(*), count(DISTINCT bucket), count(DISTINCT pid), count(DISTINCT "table") FROM paimon.compaction_progress}),
	'2|2|2|1', 'two workers compact two buckets');
is(sql(q{SELECT bool_and(bytes_total > 0 AND rows_total > 0 AND runs > 1 AND output_level > 0 AND NOT requested AND datname = 'postgres' AND phase = 'merging') FROM paimon.compaction_progress}),
	't', 'which the view tells');
is(sql(q{SELECT string_agg(kind || ' ' || state, ', ' ORDER BY kind) FROM paimon.worker_status WHERE kind <> 'launcher' AND state = 'compacting'}), 'helper compacting, worker compacting',
	'a helper has come');
# both are held: a flush and a request need a third
sql("CREATE TABLE u (a int PRIMARY KEY, b text) USING paimon; INSERT INTO u VALUES (1, 'x')");
is(sql("SELECT paimon.flush('u')"), '1', 'a request is served beside them');
release('compact-picked');
tidy('t');
is(sum('t'), $want, 'with the same rows');
until_true('SELECT count(*) = 0 FROM paimon.compaction_progress', 'none runs');
is(history('t', q{outcome, reason IS NOT NULL, requested, input_runs > 1, input_levels[1], output_level > 0, output_files, rows_in > rows_out, rows_merged_away = rows_in - rows_out,
	bytes_in > bytes_out, bytes_out > 0, wal_bytes > 0, duration > 0, "table", database, error IS NULL}), 'done|t|f|t|0|t|1|t|t|t|t|t|t|t|postgres|t', 'the history');
until_true(q{SELECT count(*) = 0 FROM paimon.worker_status WHERE kind = 'helper'}, 'helpers that have nothing to do leave');

# ---- a large compaction leaves a worker free ----

set('paimon.max_workers' => 2, 'paimon.large_compaction_size' => "'256kB'");
make_table('big1', 20000, 4);
make_table('big2', 20000, 4);
make_table('small', 100, 4);
arm('compact-picked', 'wait');
go('big1');
stopped('compact-picked');
is(sql(q{SELECT kind, "table" FROM paimon.worker_status WHERE state = 'compacting'}), 'helper|big1', 'a helper is at the large one');
go('big2');
$want = go('small');
tidy('small');
is(sum('small'), $want, 'a small table is flushed and compacted beside it');
is(sql("SELECT sum(runs) FROM paimon.levels('big2')"), '5', 'another large one has to wait');
is(sql(q{SELECT string_agg("table"::text, ',') FROM paimon.compaction_progress}), 'big1', 'and does not run');
my $compactor = later("SELECT 'mine', paimon.compact('big1');");
until_true(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT .mine' AND state = 'active'}, 'a user asks for the same');
is(sql("SELECT paimon.compact('small') > 0"), 't', 'a small table is compacted on request');
release('compact-picked');
like(result($compactor), qr/mine\|\d+\s*$/, 'who asked for the same waited for it, without a warning');
tidy('big1');
tidy('big2');

# ---- with one worker a large one makes room, but not for ever ----

set('paimon.max_workers' => 1);
until_true(q{SELECT count(*) <= 1 FROM paimon.worker_status WHERE kind <> 'launcher'}, 'one worker');
make_table('big1', 20000, 4);
arm('compact-merging', 'wait');
go('big1');
for my $round (1 .. 3)
{
	stopped('compact-merging');
	my $flush = later("INSERT INTO u VALUES ($round, 'y'); SELECT 'flushed', paimon.flush('u');");
	until_true(q{SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ '^SELECT .flushed' AND state = 'active'}, 'somebody waits for the worker');
	until_true(q{SELECT clock_timestamp() > started + interval '1 second' FROM paimon.compaction_progress}, 'for a while');
	# it is stopped again at once when it begins anew
	sql("SELECT paimon.stop_release('compact-merging')" . ($round < 3 ? ", paimon.stop_arm('compact-merging', 'wait')" : ''));
	like(result($flush), qr/flushed\|\d/, 'and is served');
	is(history('big1', 'outcome'), 'yielded', 'because the compaction made room') if $round < 3;
}
tidy('big1');
is(sql(q{SELECT string_agg(outcome, ',' ORDER BY id) FROM paimon.compaction_history WHERE relid = 'big1'::regclass}), 'yielded,yielded,done', 'twice, then it went on to its end');
is(sql('SELECT count(*) FROM paimon.worker_errors'), '0', 'that is no failure');
set('paimon.max_workers' => 3, 'paimon.large_compaction_size' => "'256MB'");

# ---- cancelled and terminated anywhere: at once, and it comes again ----

for my $point (qw(compact-begin compact-picked compact-merging compact-merged compact-before-publish compact-published-before-commit))
{
	for my $how (qw(cancel terminate))
	{
		make_table('t', 3000, 4);
		arm($point, 'wait');
		$want = go('t');
		stopped($point);
		my $pid = sql(q{SELECT pid FROM paimon.worker_status WHERE state = 'compacting'});
		if ($how eq 'terminate')
		{
			is(sql("SELECT pg_terminate_backend($pid, 1000)"), 't', "terminated at $point within a second");
		}
		else
		{
			my $start = time();
			sql("SELECT pg_cancel_backend($pid)");
			until_true("SELECT paimon.stop_waiting('$point') = 0", "cancelled at $point");
			cmp_ok(time() - $start, '<', 2, 'soon');
		}
		release($point);
		tidy('t');
		is(sum('t'), $want, 'with the same rows');
		is(sql(q{SELECT string_agg(outcome || coalesce(' ' || sqlstate, ''), ',' ORDER BY id) FROM paimon.compaction_history WHERE relid = 't'::regclass}),
			($point eq 'compact-begin' ? '' : $how eq 'cancel' ? 'cancelled 57014,' : 'terminated,') . 'done', 'the history tells both');
		is(sql(q{SELECT count(*) FROM paimon.worker_errors}), '0', 'no failure');
	}
}

# An error, and a table that goes.
make_table('t', 3000, 4);
arm('compact-merged', 'error', 2);
$want = go('t');
tidy('t');
is(sql(q{SELECT string_agg(concat_ws(' ', outcome, sqlstate, error), ',' ORDER BY id) FROM paimon.compaction_history WHERE relid = 't'::regclass}),
	'failed XX000 injected error at stop point "compact-merged",failed XX000 injected error at stop point "compact-merged",done', 'errors are in the history');
is(sql(q{SELECT count(*) FROM paimon.worker_errors}), '0', 'a bucket that could be compacted is no failure any more');
make_table('t', 3000, 4);
arm('compact-merged', 'wait');
go('t');
stopped('compact-merged');
my $oid = sql("SELECT 't'::regclass::oid");
sql('DROP TABLE t');
release('compact-merged');
until_true("SELECT string_agg(outcome, ',') = 'cancelled' FROM paimon.compaction_history WHERE relid = $oid", 'a dropped table is not compacted again');
is(sql('SELECT count(*) FROM paimon.worker_errors'), '0', 'that is no failure');

# A damaged or unlucky bucket does not stop the others.
make_table('t', 3000, 4, ', bucket = 4');
sql(q{SELECT paimon.stop_arm('compact-merged', 'error', times => 3)});
go('t');
until_true(q{SELECT count(DISTINCT bucket) = 4 FROM paimon.compaction_history WHERE relid = 't'::regclass AND outcome = 'done'}, 'all buckets are compacted in the end');
tidy('t');

# ---- held back ----

set('paimon.compaction_cost_delay' => "'100ms'", 'paimon.compaction_cost_limit' => 1);
make_table('t', 100000, 3);
go('t');
until_true(q{SELECT count(*) = 1 FROM pg_stat_activity a JOIN paimon.compaction_progress USING (pid) WHERE wait_event IN ('VacuumDelay', 'PaimonCompactionDelay')}, 'a compaction sleeps');
until_true(q{SELECT throttled AND delay_time > 0 AND rows_written > 0 AND rows_written < rows_total FROM paimon.compaction_progress}, 'and says so');
is(sql("SELECT pg_terminate_backend(pid, 1000) FROM paimon.compaction_progress"), 't', 'a sleeping one is terminated within a second');
until_true('SELECT throttled FROM paimon.compaction_progress', 'it comes again');
my $start = time();
sql("SELECT pg_cancel_backend(pid) FROM paimon.compaction_progress");
until_true(q{SELECT outcome = 'cancelled' FROM paimon.compaction_history ORDER BY id DESC LIMIT 1}, 'a sleeping one is cancelled');
cmp_ok(time() - $start, '<', 2, 'soon');
until_true('SELECT throttled FROM paimon.compaction_progress', 'it comes again');
sql("SELECT paimon.test_throttle_lift('t', 60000)");
tidy('t');
is(history('t', 'outcome, delay_time > 0'), 'done|t', 'not held back while somebody waits');
make_table('u', 100000, 3);
is(sql("SELECT paimon.compact('u') > 0"), 't', 'nor if a user asked for it');
is(history('u', 'outcome, requested, delay_time'), 'done|t|0', 'as the history says');
# a user who has enough of it
arm('compact-merging', 'wait');
make_table('u', 100000, 3);
$compactor = later("SELECT 'cancelled', paimon.compact('u');");
stopped('compact-merging');
sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ '^SELECT .cancelled'");
like(result($compactor), qr/canceling statement/, 'his statement ends');
until_true(q{SELECT clock_timestamp() > started + interval '1 second' FROM paimon.compaction_progress WHERE "table"::text = 'u'}, 'for a while it goes on');
release('compact-merging');
until_true(q{SELECT outcome = 'yielded' FROM paimon.compaction_history WHERE relid = 'u'::regclass ORDER BY id DESC LIMIT 1}, 'and so does the compaction');

# DROP DATABASE and shutdown do not wait for one that sleeps.
$db = 'd1';
$node->safe_psql('postgres', 'CREATE DATABASE d1');
sql('CREATE EXTENSION paimon_am');
make_table('t', 100000, 3);
go('t');
until_true(q{SELECT throttled FROM paimon.compaction_progress WHERE datname = 'd1'}, 'one sleeps in another database');
$db = 'postgres';
$start = time();
sql('DROP DATABASE d1');
cmp_ok(time() - $start, '<', 4, 'DROP DATABASE throws it out');
make_table('t', 100000, 3);
go('t');
until_true(q{SELECT throttled FROM paimon.compaction_progress}, 'one sleeps');
$start = time();
$node->stop('fast');
cmp_ok(time() - $start, '<', 10, 'fast shutdown does not wait for it');
$node->start;
is(sql('SELECT count(*) FROM paimon.compaction_history'), sql(q{SELECT count(*) FROM paimon.compaction_history WHERE outcome IN ('done', 'running')}), 'the history began anew');
set('paimon.compaction_cost_delay' => 0);
tidy('t');

# ---- compaction.async = false ----

make_table('t', 1000, 2, ', "compaction.async" = false');
sql('ALTER TABLE t RESET ("write-only")');
for my $n (1 .. 8)
{
	sql("INSERT INTO t SELECT i, '$n' FROM generate_series(1, 100) i");
	cmp_ok(sql("SELECT sum(runs) FROM paimon.levels('t')"), '<=', 2, 'after a commit nothing waits to be compacted');
	sql("SELECT paimon.flush('t')");
}
make_table('t', 1000, 4, ', "compaction.async" = false');
arm('compact-picked', 'wait');
sql('ALTER TABLE t RESET ("write-only")');
my $writer = later("INSERT INTO t VALUES (1, 'late'); SELECT 'committed';");
stopped('compact-picked');
is(sql("SELECT state FROM pg_stat_activity WHERE query ~ '^INSERT INTO t VALUES .1, .late'"), 'active', 'the commit waits');
is(sql("SELECT b FROM t WHERE a = 1"), sql("SELECT md5('4')"), 'and is not visible yet');
release('compact-picked');
like(result($writer), qr/committed/, 'until its table is compacted');
is(sql("SELECT b FROM t WHERE a = 1"), 'late', 'then it is');
cmp_ok(sql("SELECT sum(runs) FROM paimon.levels('t')"), '<=', 2, 'and the table has its shape');
make_table('t', 1000, 4, ', "compaction.async" = false');
sql("INSERT INTO t VALUES (1, 'x')");
is(sql("SELECT sum(runs) FROM paimon.levels('t')"), '4', 'write-only tables are left alone');
set('paimon.max_workers' => 0);
until_true(q{SELECT count(*) = 0 FROM paimon.worker_status WHERE kind <> 'launcher'}, 'no workers');
sql('ALTER TABLE t RESET ("write-only"); INSERT INTO t VALUES (1, \'y\')');
is(sql("SELECT b FROM t WHERE a = 1"), 'y', 'without workers nobody waits');
set('paimon.max_workers' => 2);

# ---- who sees what ----

sql(q{CREATE ROLE bob; GRANT CREATE ON SCHEMA public TO bob; SET ROLE bob; CREATE TABLE bobs (a int PRIMARY KEY, b text) USING paimon; INSERT INTO bobs VALUES (1, 'x')});
sql(q{SELECT paimon.flush('bobs')});
sql(q{SELECT paimon.compact('bobs')});
is(sql(q{SET ROLE bob; SELECT DISTINCT "table" FROM paimon.compaction_history}), 'bobs', 'a user sees compactions of own tables');
cmp_ok(sql(q{SELECT count(DISTINCT "table") FROM paimon.compaction_history}), '>', 1, 'a superuser all');

# ---- a hundred tables and a hot one ----

sql(q{CREATE TABLE hot (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 2, "num-sorted-run.compaction-trigger" = 2); CREATE TABLE stop_it (a int)});
sql(q{CREATE PROCEDURE heat() LANGUAGE plpgsql AS $$
DECLARE n bigint := 0;
BEGIN
	WHILE NOT EXISTS (SELECT FROM stop_it) LOOP
		n := n + 1;
		INSERT INTO hot SELECT i % 5000, md5((i + n)::text) FROM generate_series(n * 500, n * 500 + 499) i;
		COMMIT;
		IF n % 3 = 0 THEN
			PERFORM paimon.flush('hot');
			COMMIT;
		END IF;
	END LOOP;
END $$});
sql(q{CREATE PROCEDURE fill() LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		EXECUTE format('CREATE TABLE cold_%s (a int PRIMARY KEY, b text) USING paimon WITH ("num-sorted-run.compaction-trigger" = 2)', i);
		COMMIT;
		FOR n IN 1 .. 4 LOOP
			EXECUTE format('INSERT INTO cold_%s SELECT i, md5((i * %s)::text) FROM generate_series(1, 50) i', i, n);
			COMMIT;
			EXECUTE format('SELECT paimon.flush(''cold_%s'')', i);
			COMMIT;
		END LOOP;
	END LOOP;
END $$});
my $heater = later('SET statement_timeout = 0; CALL heat();');
until_true(q{SELECT count(*) > 0 FROM paimon.compaction_history WHERE "table"::text = 'hot'}, 'the hot table is hot');
sql('SET statement_timeout = 0; CALL fill()');
until_true(q{SELECT count(*) = 100 AND max(n) <= 2 FROM (SELECT c.oid, (SELECT sum(runs) FROM paimon.levels(c.oid)) AS n FROM pg_class c WHERE relname ~ '^cold_' AND relkind = 'r') x},
	'a hundred tables have their shape while one is written to all the time');
is(sql(q{SELECT count(*) FROM pg_stat_activity WHERE query ~ 'CALL heat' AND state = 'active' AND pid <> pg_backend_pid()}), '1', 'which it still is');
sql('INSERT INTO stop_it VALUES (1)');
result($heater);
tidy('hot');
is(sql('SELECT count(*) FROM hot'), '5000', 'all rows of it are there');
is(sql('SELECT count(*) FROM paimon.worker_errors'), '0', 'no failures');

$node->stop;
my $log = slurp_file($node->logfile);
like($log, qr/LOG:  compacted table "t", bucket 0: \d+ runs to level \d.*\n.*DETAIL:  Because of /, 'log lines above the threshold');
unlike($log, qr/PANIC|TRAP|signal (?:6|11)\b/, 'no panic');
done_testing();
