# Workers beside others: what a flush holds while it merges (H13), who goes first (H14), snapshots by time, errors, databases, shutdown, promotion.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('protocol');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
deadlock_timeout = '100ms'
EOC
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
sub until_true { my ($text, $what) = @_; return ok($node->poll_query_until($db, $text), $what); }
sub stopped { my ($name) = @_; return until_true("SELECT paimon.stop_waiting('$name') = 1", "somebody waits at $name"); }
sub release { my ($name) = @_; return sql("SELECT paimon.stop_release('$name')"); }

# A session that is at work; its output is looked at in the end.
sub later
{
	my ($text) = @_;
	my $session = $node->background_psql($db, on_error_stop => 0);
	send_to($session, $text);
	return $session;
}

sub send_to
{
	my ($session, $text) = @_;
	$session->{stdin} .= "$text\n";
	$session->{run}->pump_nb;
	return;
}

# Waits for its end.
sub result
{
	my ($session) = @_;
	$session->quit;
	return $session->{stdout} . $session->{stderr};
}

# ---- H13: no snapshot and no xid while runs are written ----

sql('CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon; CREATE TABLE u (a int PRIMARY KEY, b text) USING paimon');
sql('INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i; INSERT INTO u VALUES (1, 1)');
sql("SELECT paimon.stop_arm('flush-run-written', 'wait')");
my $flusher = later("SELECT 'id', paimon.flush('t');");
stopped('flush-run-written');
is(sql("SELECT backend_xmin IS NULL, backend_xid IS NULL FROM pg_stat_activity WHERE backend_type = 'paimon worker' AND query = 'flushing table \"t\"'"),
	't|t', 'a worker that merges has no snapshot and no xid');
is(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = " . 0x5043 . " AND mode = 'ExclusiveLock' AND granted"), '1', 'and guards its file');
sql("INSERT INTO t SELECT i, 'later' FROM generate_series(5001, 5100) i");
is(sql('SELECT count(*) FROM t'), '5100', 'readers and writers go on meanwhile');

# H14: a session blocked by the worker's lock on the table throws it out.
my $start = time();
sql('ALTER TABLE t ADD COLUMN c int');
cmp_ok(time() - $start, '<', 20, 'ALTER TABLE does not wait for the worker');
like(result($flusher), qr/WARNING.*table "t" was not flushed/s, 'who waited for it is told');
release('flush-run-written');
is(sql("SELECT count(*) FROM paimon.worker_errors"), '0', 'that is no failure');
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('t')}, 'the flush is done later all the same');
is(sql('SELECT count(*), count(c) FROM t'), '5100|0', 'and all rows are there');
is(sql("SELECT paimon.test_sweep('t')"), 't', 'the half flush is swept');
is(sql(q{SELECT paimon.test_storage_usage('t') ~ ('^' || (1 + (SELECT sum((file_size_in_bytes + 131071) / 131072) FROM paimon.files('t'))) || ' used')}), 't', 'and left nothing');

# A lock that the worker cannot get: who waits goes on with a WARNING.
my $locker = $node->background_psql($db);
$locker->query_safe('BEGIN; LOCK TABLE u IN SHARE MODE');
my $strong = later('BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE; COMMIT;');
until_true("SELECT count(*) = 1 FROM pg_locks WHERE relation = 'u'::regclass AND NOT granted", 'a strong lock is awaited');
like($locker->query(q{SELECT 'id', paimon.flush('u')}) . $locker->{stderr}, qr/WARNING.*table "u" was not flushed.*background worker could not lock it/s, 'a flush goes on with a warning');
$locker->quit;
result($strong);
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('u')}, 'and is done later');

# DDL that needs it does it itself.
is(sql("BEGIN; LOCK TABLE u IN ACCESS EXCLUSIVE MODE; SELECT paimon.flush('u'); COMMIT"), '1', 'who holds the table flushes by himself');

# ---- H3: snapshots are prefixes of whole transactions; a large commit has one of its own, in log order ----

sql(q{CREATE TABLE p (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 4, "write-buffer-size" = '1 mb')});
my $open = $node->background_psql($db);
sql("INSERT INTO p SELECT i, 'first' FROM generate_series(1, 100) i");
$open->query_safe("BEGIN; SELECT paimon.stop_arm('append-done', 'wait', pid => pg_backend_pid()); INSERT INTO p SELECT i, 'open' FROM generate_series(101, 200) i;");
send_to($open, 'COMMIT;');
stopped('append-done');
sql("INSERT INTO p SELECT i, 'behind' FROM generate_series(201, 300) i");
sql("INSERT INTO p SELECT i, md5(i::text) FROM generate_series(1001, 40000) i");
sql("INSERT INTO p SELECT i, 'last' FROM generate_series(301, 400) i");
is(sql("SELECT paimon.flush('p')"), '1', 'a flush takes what lies before a running transaction');
is(sql("SELECT snapshot_id, total_record_count FROM paimon.snapshots('p')"), '1|100', 'all buckets of it, and no more');
is(sql("SELECT count(*), count(DISTINCT bucket) FROM paimon.files('p') WHERE min_sequence_number < 100000 AND record_count < 100"), '4|4', 'in four files');
is(sql('SELECT count(*) FROM p'), '39300', 'readers see what is committed');
release('append-done');
result($open);
until_true("SELECT max(snapshot_id) >= 3 FROM paimon.snapshots('p')", 'the large commit gets its id when the transaction is over, without anybody asking');
sql("SELECT paimon.flush('p')");
is(sql("SELECT string_agg(snapshot_id || ':' || delta_record_count, ' ' ORDER BY snapshot_id) FROM paimon.snapshots('p')"),
	'1:100 2:200 3:39000 4:100', 'ids without gaps in the order of the log, whole transactions, a large commit alone');
is(sql("SELECT count(*), sum(a) FROM p"), '39400|' . (400 * 401 / 2 + 41001 * 39000 / 2), 'all rows');

# ---- snapshot.interval ----

sql(q{CREATE TABLE i (a int PRIMARY KEY) USING paimon WITH ("snapshot.interval" = '200 ms'); INSERT INTO i VALUES (1)});
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('i')}, 'snapshot.interval makes a snapshot by itself');
sql('INSERT INTO i VALUES (2)');
until_true(q{SELECT count(*) = 2 FROM paimon.snapshots('i')}, 'and the next');

# ---- errors ----

sql(q{CREATE TABLE f (a int PRIMARY KEY) USING paimon WITH ("snapshot.interval" = '100 ms'); CREATE TABLE g (a int PRIMARY KEY) USING paimon WITH ("snapshot.interval" = '100 ms')});
my $worker = sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'paimon worker'");
sql("SELECT paimon.stop_arm('flush-before-publish', 'error', times => 2); INSERT INTO f VALUES (1)");
until_true(q{SELECT count(*) = 1 FROM paimon.worker_errors WHERE "table" = 'f'::regclass AND failures = 2 AND message LIKE '%stop point%' AND next_try > last_failure}, 'a failing flush is shown, and tried again');
sql('INSERT INTO g VALUES (1)');
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('g')}, 'other tables go on');
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('f')}, 'it succeeds when the cause is gone');
until_true('SELECT count(*) = 0 FROM paimon.worker_errors', 'and the error leaves the view');
is(sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'paimon worker'"), $worker, 'the worker lives');
is(sql("SELECT errors >= 2, last_error LIKE '%stop point%' FROM paimon.worker_status WHERE kind = 'worker'"), 't|t', 'and remembers');

# A request that comes from a large commit survives a failure, too.
sql(q{CREATE TABLE h (a int PRIMARY KEY, b text) USING paimon WITH ("write-buffer-size" = '1 mb')});
sql("SELECT paimon.stop_reset(); SELECT paimon.stop_arm('flush-before-publish', 'error'); INSERT INTO h SELECT i, md5(i::text) FROM generate_series(1, 20000) i");
until_true(q{SELECT count(*) = 1 FROM paimon.snapshots('h')}, 'a large commit gets its id after a failure');
cmp_ok(sql("SELECT paimon.stop_hits('flush-before-publish')"), '>=', 1, 'there was one');

# ---- databases ----

# More databases than workers: they take turns.
$node->append_conf('postgresql.conf', 'paimon.max_workers = 1');
$node->reload;
sql("CREATE DATABASE db$_") for 1 .. 4;
for my $n (1 .. 4)
{
	$node->safe_psql("db$n", q{CREATE EXTENSION paimon_am; CREATE TABLE x (a int PRIMARY KEY) USING paimon WITH ("snapshot.interval" = '100 ms')});
	$node->safe_psql("db$n", 'INSERT INTO x VALUES (1)');
}
ok($node->poll_query_until("db$_", "SELECT count(*) = 1 FROM paimon.snapshots('x')"), "database $_ has its turn") for 1 .. 4;
$start = time();
is($node->safe_psql("db$_", "INSERT INTO x VALUES (2); SELECT paimon.flush('x') >= 2"), 't', "database $_ gets its flush") for 1 .. 4;
cmp_ok(time() - $start, '<', 60, 'in time');
cmp_ok(sql("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'paimon worker'"), '<=', 1, 'with one worker');

# A worker does not stand in the way of whoever wants a database for himself.
for my $command ('ALTER DATABASE db4 RENAME TO db5', 'CREATE DATABASE db6 TEMPLATE db5', 'ALTER DATABASE db5 SET TABLESPACE pg_default', 'DROP DATABASE db6', 'DROP DATABASE db5')
{
	my ($name) = $command =~ /(?:TEMPLATE|DATABASE) (db\d)(?: RENAME| SET|$)/;
	$node->safe_psql($name, "INSERT INTO x VALUES (3); SELECT paimon.flush('x')");
	$start = time();
	sql($command);
	cmp_ok(time() - $start, '<', 30, $command);
}
sql("DROP DATABASE db$_") for 1 .. 3;

# ---- promotion ----

$node->backup('b');
my $standby = PostgreSQL::Test::Cluster->new('promoted');
$standby->init_from_backup($node, 'b', has_streaming => 1);
$standby->start;
sql('INSERT INTO u SELECT i, i FROM generate_series(10, 20) i');
$node->wait_for_catchup($standby);
is($standby->safe_psql($db, "SELECT count(*) FROM pg_stat_activity WHERE backend_type LIKE 'paimon%'"), '0', 'a standby has no workers');
my ($rc, $out, $err) = $standby->psql($db, "SELECT paimon.flush('u')");
like($err, qr/cannot execute paimon.flush\(\) during recovery/, 'and flushes nothing');
$standby->promote;
ok($standby->poll_query_until($db, "SELECT count(*) > 0 FROM pg_stat_activity WHERE backend_type = 'paimon launcher'"), 'the launcher comes with promotion');
is($standby->safe_psql($db, "SELECT paimon.flush('u')"), '2', 'and a worker flushes');
is($standby->safe_psql($db, 'SELECT count(*), sum(a) FROM u'), '12|166', 'what the old primary had written');
$standby->stop;

# ---- shutdown, in the middle of a flush ----

for my $mode ('fast', 'immediate')
{
	sql("INSERT INTO t SELECT i, '$mode' FROM generate_series(6000, 9000) i");
	sql("SELECT paimon.stop_arm('flush-before-publish', 'wait')");
	$flusher = later("SELECT paimon.flush('t');");
	stopped('flush-before-publish');
	$start = time();
	$node->stop($mode);
	cmp_ok(time() - $start, '<', 30, "$mode shutdown during a flush");
	eval { $flusher->quit; };
	$node->start;
	is(sql('SELECT count(*), max(b) FROM t WHERE a >= 6000'), "3001|$mode", 'nothing is lost');
}
is(sql("SELECT paimon.test_sweep('t')"), 't', 'flushed and swept');
is(sql('SELECT count(*) FROM t'), '8101', 'all rows');
$node->stop;
done_testing();
