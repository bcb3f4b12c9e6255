# Back-pressure: writers wait at the stop trigger while the compaction is held at a stop point, can be cancelled, go on when it is done; who does not
# wait, and why nobody waits for ever.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('stall');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
deadlock_timeout = '100ms'
max_prepared_transactions = 5
EOC
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
sub until_true { my ($text, $what) = @_; return ok($node->poll_query_until($db, $text), $what); }
sub arm { my ($name, $action) = @_; return sql("SELECT paimon.stop_arm('$name', '$action')"); }
sub stopped { my ($name) = @_; return until_true("SELECT paimon.stop_waiting('$name') = 1", "somebody waits at $name"); }
sub release { my ($name) = @_; return sql("SELECT paimon.stop_release('$name')"); }

# Sends statements to a session of their own and does not wait for them.
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

my $options = q("num-sorted-run.compaction-trigger" = 3, "num-sorted-run.stop-trigger" = 4, "write-buffer-size" = '64kb');

# A table with four runs that nobody compacts by himself: no worker has a reason to look at it.
sub full_table
{
	my ($name) = @_;
	sql("DROP TABLE IF EXISTS $name; CREATE TABLE $name (a int PRIMARY KEY, b text) USING paimon WITH (\"write-only\" = true, $options)");
	for my $n (1 .. 4)
	{
		sql("INSERT INTO $name SELECT i, 'run $n' FROM generate_series(1, 10) i; SELECT paimon.flush('$name')");
	}
	sql("ALTER TABLE $name RESET (\"write-only\")");
	is(runs($name), '4', "four runs of $name");
	return;
}

sub runs { my ($name) = @_; return sql("SELECT runs FROM paimon.stats('$name')"); }
sub waiting { my ($n, $what) = @_; return until_true("SELECT writers_waiting = $n FROM paimon.stats('t')", $what // "$n writers wait"); }
sub value { my ($key) = @_; return sql("SELECT b FROM t WHERE a = $key"); }

# A writer waits until the compaction is done, and the worker was told.
sub held
{
	my ($text, $what) = @_;
	full_table('t');
	arm('compact-merged', 'wait');
	my $writer = later($text);
	stopped('compact-merged');
	waiting(1, $what);
	return $writer;
}

# ---- a writer waits, shows it, and goes on ----

my $writer = held("INSERT INTO t VALUES (1, 'late');", 'INSERT waits');
like(sql("SELECT wait_event_type || ' ' || wait_event, backend_xid IS NULL FROM pg_stat_activity WHERE query LIKE 'INSERT INTO t VALUES (1%'"),
	qr/^Extension (Extension|PaimonStall)\|t$/, 'it shows in pg_stat_activity, and has no xid');
is(value(1), 'run 4', 'readers do not wait');
release('compact-merged');
is(result($writer), '', 'it goes on');
is(value(1), 'late', 'with its row');
is(sql("SELECT runs, stop_trigger, stalls, stall_time > '0', writers_waiting, compactions FROM paimon.stats('t')"), '1|4|1|t|0|1', 'the stall was counted');
sql("INSERT INTO t VALUES (2, 'next')");
is(sql("SELECT stalls FROM paimon.stats('t')"), '1', 'the next write does not wait');

for my $text (
	"UPDATE t SET b = 'late' WHERE a = 1;",
	"DELETE FROM t WHERE a = 1; INSERT INTO t VALUES (1, 'late');",
	"BEGIN; SELECT b FROM t WHERE a = 1 FOR UPDATE; UPDATE t SET b = 'late' WHERE a = 1; COMMIT;",
	"BEGIN; INSERT INTO t VALUES (1, 'first'); SAVEPOINT s; UPDATE t SET b = 'late' WHERE a = 1; COMMIT;",
	"COPY t FROM PROGRAM 'echo 1,late' (FORMAT csv);",
	"MERGE INTO t USING (VALUES (1)) v(k) ON a = k WHEN MATCHED THEN UPDATE SET b = 'late';",
	"BEGIN; INSERT INTO t VALUES (1, 'late'); PREPARE TRANSACTION 'p'; COMMIT PREPARED 'p';")
{
	$writer = held($text, "waits: $text");
	is(sql("SELECT count(*) FROM pg_locks WHERE locktype = 'userlock' AND pid IN (SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND backend_type = 'client backend')"),
		'0', 'it holds no lock of ours');
	release('compact-merged');
	unlike(result($writer), qr/ERROR|WARNING/, 'goes on');
	is(value(1), 'late', 'and is done');
	is(sql("SELECT stalls FROM paimon.stats('t')"), '1', 'waited once');
}

# ---- cancel, terminate, several at once ----

$writer = held("INSERT INTO t VALUES (1, 'cancelled');", 'one waits');
my $second = later("UPDATE t SET b = 'terminated' WHERE a = 1;");
my $third = later("INSERT INTO t VALUES (1, 'third');");
waiting(3);
sql("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE '%cancelled%' AND pid <> pg_backend_pid()");
like(result($writer), qr/canceling statement due to user request/, 'a waiting writer can be cancelled');
sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%terminated%' AND pid <> pg_backend_pid()");
waiting(1, 'neither counts as waiting any more');
$second->{run}->finish;
like(sql("SET statement_timeout = '1s'; SET client_min_messages = error; SELECT 1"), qr/1/, 'others go on');
my ($ret, $out, $err) = $node->psql($db, "SET lock_timeout = '1ms'; SET statement_timeout = '500ms'; INSERT INTO t VALUES (1, 'timeout')");
like($err, qr/statement timeout/, 'statement_timeout ends the wait');
release('compact-merged');
is(result($third), '', 'who stayed goes on');
is(value(1), 'third', 'with his row');

# ---- a warning, and an error when it takes too long ----

$writer = held("SET paimon.stall_timeout = 2; SET client_min_messages = warning; INSERT INTO t VALUES (1, 'never');", 'one waits');
$out = result($writer);
like($out, qr/WARNING:  a write to table "t" has been waiting for compaction for \d+ ms/, 'a warning');
like($out, qr/DETAIL:  A bucket has 4 sorted runs, the limit is 4; worker \d+ is compacting table "t"\./, 'says what is running');
like($out, qr/HINT:  .*num-sorted-run.stop-trigger/, 'and what to change');
like($out, qr/ERROR:  table "t" has too many sorted runs to be written to\nDETAIL:  .* did not change that within 2 s; worker \d+ is compacting table "t"\./, 'an error in the end');
is(value(1), 'run 4', 'nothing was written');
release('compact-merged');
until_true("SELECT runs = 1 FROM paimon.stats('t')", 'the compaction ends');

# ---- who does not wait: key locks, tables that are written only, no limit ----

full_table('t');
sql("DROP TABLE IF EXISTS u; CREATE TABLE u (a int PRIMARY KEY, b text) USING paimon; INSERT INTO u VALUES (1, 'u')");
arm('compact-merged', 'wait');
$writer = later("INSERT INTO t VALUES (1, 'waits');");
stopped('compact-merged');
waiting(1);
is(sql("BEGIN; UPDATE u SET b = 'locked'; INSERT INTO t VALUES (2, 'not'); COMMIT; SELECT b FROM t WHERE a = 2"), 'not', 'who holds a key, of any table, does not wait');
is(sql("BEGIN; UPDATE u SET b = 'again'; ROLLBACK; INSERT INTO u VALUES (2, 'u'); SELECT count(*) FROM u"), '2', 'other tables are written');
is(sql("BEGIN; SELECT 1 FROM t WHERE a = 3 FOR KEY SHARE; INSERT INTO t VALUES (3, 'not'); COMMIT; SELECT b FROM t WHERE a = 3"), "1\nnot", 'nor who has locked a row for others');
is(sql("BEGIN; SELECT 1 FROM t WHERE a = 4 FOR UPDATE NOWAIT; UPDATE t SET b = 'not' WHERE a = 4; COMMIT; SELECT b FROM t WHERE a = 4"), "1\nnot", 'nor NOWAIT');
$second = later("BEGIN; INSERT INTO u VALUES (3, 'u'); INSERT INTO t VALUES (5, 'waits'); COMMIT;");
waiting(2, 'who has only unwritten rows waits');
is(sql("UPDATE u SET b = 'on' WHERE a = 3 RETURNING 1; INSERT INTO u VALUES (3, 'mine'); SELECT b FROM u WHERE a = 3"), 'mine', 'nobody has to wait for those');
release('compact-merged');
is(result($writer) . result($second), '', 'both go on');

full_table('t');
arm('compact-merged', 'wait');
sql(q{ALTER TABLE t SET ("num-sorted-run.stop-trigger" = 2147483647)});
sql("INSERT INTO t VALUES (1, 'free')");
sql(q{ALTER TABLE t SET ("num-sorted-run.stop-trigger" = 4, "write-only" = true)});
sql("INSERT INTO t VALUES (1, 'free too')");
is(sql("SELECT stalls, stop_trigger FROM paimon.stats('t')"), '0|', 'no limit, write-only: nobody waits');
sql("SELECT paimon.stop_reset()");

# the limit is above what compaction leaves in peace
sql(q{DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH ("num-sorted-run.compaction-trigger" = 6, "num-sorted-run.stop-trigger" = 2)});
for my $n (1 .. 6)
{
	sql("INSERT INTO t VALUES (1, 'run $n'); SELECT paimon.flush('t')");
}
is(sql("SELECT stop_trigger, stalls FROM paimon.stats('t')"), '7|0', 'a stop trigger below the compaction trigger stops nobody for ever');

# ---- large commits wait for their flush; those of one commit count as one ----

sql("DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH ($options)");
arm('flush-begin', 'wait');
sql("INSERT INTO t SELECT i, repeat(md5(i::text), 4) FROM generate_series(1, 20000) i");
stopped('flush-begin');
cmp_ok(sql("SELECT max(read_amplification) FROM paimon.stats('t')"), '>', 8, 'a commit of many runs');
is(runs('t'), '1', 'is one');
release('flush-begin');
sql("SELECT paimon.compact('t')");
arm('flush-begin', 'wait');
for my $n (1 .. 3)
{
	sql("INSERT INTO t SELECT i, repeat('large$n', 20) FROM generate_series(1, 500) i");
}
stopped('flush-begin');
is(runs('t'), '4', 'runs without a snapshot id count');
$writer = later("INSERT INTO t VALUES (1, 'late');");
waiting(1);
release('flush-begin');
is(result($writer), '', 'they get it, are compacted, and the writer goes on');
is(value(1), 'late', 'with its row');

# ---- a prepared transaction that holds keys of the table is in nobody's way ----

sql("DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH (\"write-only\" = true, $options); INSERT INTO t VALUES (1, 'a'), (2, 'b')");
sql("BEGIN; UPDATE t SET b = 'prepared' WHERE a = 1; PREPARE TRANSACTION 'p'");
for my $n (1 .. 4)
{
	sql("INSERT INTO t VALUES (3, 'run $n'); SELECT paimon.flush('t')");
}
sql("SELECT paimon.stop_reset()");
sql("ALTER TABLE t RESET (\"write-only\")");
sql("INSERT INTO t VALUES (2, 'late')");
is(sql("SELECT stalls, runs FROM paimon.stats('t')"), '1|1', 'a write waited for a compaction beside a prepared transaction');
sql("COMMIT PREPARED 'p'");
is(value(1) . value(2), 'preparedlate', 'both are there');

# ---- DDL that waits for the writer that waits for the worker that cannot lock the table ----

$writer = held("INSERT INTO t VALUES (1, 'late');", 'one waits');
my $ddl = later("ALTER TABLE t ADD COLUMN c int;");
$out = result($writer);
like($out, qr/WARNING:  a write to table "t" does not wait for compaction any longer: the background worker could not lock the table/, 'it goes on with a warning');
is(result($ddl), '', 'and so does the DDL');
sql("SELECT paimon.stop_reset()");
is(value(1), 'late', 'the row is there');

# ---- who has the table to itself compacts it itself ----

full_table('t');
is(sql("BEGIN; LOCK TABLE t; INSERT INTO t VALUES (1, 'mine'); COMMIT; SELECT b FROM t WHERE a = 1"), 'mine', 'a locked table');
is(sql("SELECT stalls, runs, compactions FROM paimon.stats('t')"), '0|1|1', 'is compacted by the writer');
full_table('t');
sql("BEGIN; LOCK TABLE t; INSERT INTO t VALUES (1, 'mine'); ROLLBACK");
is(sql("SELECT stalls, runs, compactions FROM paimon.stats('t')"), '0|4|0', 'if it commits');
sql("INSERT INTO t VALUES (1, 'other')");
is(sql("SELECT stalls, runs FROM paimon.stats('t')"), '1|1', 'the next one waits');
full_table('t');
is(sql("BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE t; INSERT INTO t VALUES (1, 'mine'); COMMIT; SELECT b FROM t WHERE a = 1"), 'mine', 'or not, where that is not allowed');
is(sql(<<EOC), '12|t', 'a temporary table is compacted by its session');
CREATE TEMP TABLE tt (a int PRIMARY KEY, b text) USING paimon WITH ($options);
@{[ map { "INSERT INTO tt VALUES ($_, 'x');" } 1 .. 12 ]}
SELECT count(*), (SELECT runs < 5 FROM paimon.stats('tt')) FROM tt;
EOC

# ---- the worker is thrown out: another one comes ----

full_table('t');
sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type LIKE 'paimon worker%' OR backend_type LIKE 'paimon helper%'");
sql("INSERT INTO t VALUES (1, 'late')");
is(sql("SELECT stalls, runs FROM paimon.stats('t')"), '1|1', 'a writer brings a worker');

# ---- buckets: a bucket that cannot be compacted stops nobody while it is not the full one; the fullest counts ----

sql("DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH (\"write-only\" = true, bucket = 4, $options)");
for my $n (1 .. 4)
{
	sql("INSERT INTO t VALUES (1, 'run $n'); SELECT paimon.flush('t')");
}
is(sql("SELECT runs, read_amplification, (SELECT count(*) FROM paimon.buckets('t')) FROM paimon.stats('t')"), '4|4|1', 'one full bucket of four');
sql("ALTER TABLE t RESET (\"write-only\")");
sql("INSERT INTO t SELECT i FROM generate_series(2, 20) i");
is(sql("SELECT stalls, runs FROM paimon.stats('t')"), '1|1', 'writes to the others wait for it, too');

# ---- workers that fail, and none ----

full_table('t');
sql("SELECT paimon.stop_arm('compact-begin', 'error', times => 100)");
($ret, $out, $err) = $node->psql($db, "\\set VERBOSITY verbose\nINSERT INTO t VALUES (1, 'never')");
like($err, qr/ERROR:  53400: table "t" has too many sorted runs to be written to\nDETAIL:  .* has failed \d+ times in a row, last with: .*compact-begin/, 'compactions that keep failing: an error that says why');
($ret, $out, $err) = $node->psql($db, "INSERT INTO t VALUES (1, 'never')");
like($err, qr/in a row/, 'the next one does not wait');
is(value(1), 'run 4', 'nothing was written');
sql("SELECT paimon.stop_reset()");
sql("SELECT paimon.compact('t')");
sql("INSERT INTO t VALUES (1, 'again')");
is(value(1), 'again', 'after a compaction writers go on');

full_table('t');
sql("ALTER SYSTEM SET paimon.max_workers = 0");
$node->reload;
until_true("SELECT count(*) = 0 FROM paimon.worker_status WHERE kind = 'worker'", 'no workers');
($ret, $out, $err) = $node->psql($db, "INSERT INTO t VALUES (1, 'never')");
like($err, qr/ERROR:  table "t" has too many sorted runs to be written to\nDETAIL:  .* there are no background workers to compact it\.\nHINT:  Set paimon.max_workers/, 'no workers: an error at once');
is(sql("SELECT writers_waiting FROM paimon.stats('t')"), '0', 'nobody waits');
sql("SELECT paimon.compact('t')");
sql("INSERT INTO t VALUES (1, 'again')");
is(value(1), 'again', 'after a compaction writers go on');

# ---- the number of runs is found again after a restart ----

sql("ALTER SYSTEM RESET paimon.max_workers");
$node->reload;
full_table('t');
sql("ALTER TABLE t SET (\"write-only\" = true)");
$node->restart;
arm('compact-merged', 'wait');
sql("ALTER TABLE t RESET (\"write-only\")");
$writer = later("INSERT INTO t VALUES (1, 'late');");
waiting(1, 'a writer waits after a restart');
stopped('compact-merged');
release('compact-merged');
is(result($writer), '', 'and goes on');
$node->stop;
done_testing();
