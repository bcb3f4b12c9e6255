# Space: the log's extents and those of files come back, orphans are swept, the free end is given back, and nothing that somebody needs is freed (H9, H28).
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('space');
$node->init;
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
restart_after_crash = on
EOC
$node->start;
my $db = 'postgres';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
sub pages { my ($table) = @_; return sql("SELECT pg_relation_size('$table') / 8192"); }
sub used { my ($table) = @_; return (sql("SELECT paimon.test_storage_usage('$table')") =~ /^(\d+) used/)[0]; }
sub sweep { my ($table, $what) = @_; return is(sql("SELECT paimon.test_sweep('$table')"), 't', $what); }
sub until_true { my ($text, $what) = @_; return ok($node->poll_query_until($db, $text), $what); }
sub stopped { my ($name) = @_; return until_true("SELECT paimon.stop_waiting('$name') = 1", "somebody waits at $name"); }

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

# After a crash that we made; the session saw it.
sub crashed
{
	my ($session) = @_;
	eval { $session->quit; };
	$node->poll_query_until($db, 'SELECT true') or die 'the server did not come back';
	return;
}

# ---- the log ----

# Small commits and flushes by the worker: 50 MB of log go through a fork that stays small, since keys repeat and runs compress.
sql(q{CREATE TABLE l (a int PRIMARY KEY, b text) USING paimon WITH ("write-buffer-size" = '1 mb', "write-buffer-spill-size" = '2 mb')});
my $most = 0;
for my $round (1 .. 25)
{
	sql(join('', map { 'INSERT INTO l SELECT i, repeat(md5(i::text), 16) || ' . "$round FROM generate_series($_ * 40, $_ * 40 + 39) i;" } 0 .. 99));
	$most = pages('l') if pages('l') > $most;
}
cmp_ok(sql("SELECT head FROM paimon.log JOIN paimon.storage USING (storage_id) WHERE relid = 'l'::regclass"),
	'>', 45e6, '50 MB of log were flushed');
cmp_ok($most, '<', 3000, 'through a small fork');
is(sql('SELECT count(*), count(DISTINCT right(b, 2)) FROM l'), '4000|1', 'with all rows');

# An old snapshot keeps its part of the log; afterwards it is freed and used again.
sql('CREATE TABLE o (a int PRIMARY KEY, b text) USING paimon; INSERT INTO o SELECT i, repeat(md5(i::text), 16) FROM generate_series(1, 4000) i');
my $old = $node->background_psql($db);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->query_safe('SELECT count(*), min(length(b)) FROM o'), '4000|512', 'an old snapshot');
sql("INSERT INTO o SELECT i, 'new' FROM generate_series(1, 4000) i");
my $before = used('o');
sweep('o', 'swept beside the old snapshot');
cmp_ok(used('o'), '>=', $before, 'nothing was freed');
is($old->query_safe('SELECT count(*), min(length(b)) FROM o'), '4000|512', 'it sees what it saw');
is(sql('SELECT count(*), min(length(b)) FROM o'), '4000|3', 'others see the new rows');
$old->query_safe('COMMIT');
sweep('o', 'swept without it');
cmp_ok(used('o'), '<', $before - 10, 'now the log is freed');
my $size = pages('o');
sql('INSERT INTO o SELECT i, repeat(md5(i::text), 8) FROM generate_series(1, 1500) i');
is(pages('o'), $size, 'and used again');
$old->quit;

# ---- orphans ----

my $big = q{SELECT i, md5(i::text) || md5((-i)::text) FROM generate_series(1, 60000) i};
my $small_buffer = q{USING paimon WITH ("write-buffer-size" = '1 mb')};
sql("CREATE TABLE w (a int PRIMARY KEY, b text) $small_buffer; INSERT INTO w VALUES (0, 'x')");
sweep('w', 'an almost empty table');
$before = used('w');
sql("SELECT paimon.stop_arm('reclaim-before-free', 'wait')");
sql("BEGIN; INSERT INTO w $big; ROLLBACK");
stopped('reclaim-before-free');
cmp_ok(used('w'), '>', $before + 15, 'a large transaction that was rolled back leaves files');
sql("SELECT paimon.stop_release('reclaim-before-free')");
until_true(q{SELECT split_part(paimon.test_storage_usage('w'), ' ', 1)::int <= } . ($before + 1), 'a worker sweeps them by itself');
sql("SELECT paimon.stop_arm('spill-bucket-written', 'error', times => 1, skip => 1)");
my ($rc, $out, $err) = $node->psql($db, "INSERT INTO w $big");
like($err, qr/stop point/, 'one that fails in the middle of a file');
until_true(q{SELECT split_part(paimon.test_storage_usage('w'), ' ', 1)::int <= } . ($before + 1), 'as well');
sql("BEGIN; SAVEPOINT s; INSERT INTO w $big; ROLLBACK TO s; INSERT INTO w VALUES (-1, 'y'); COMMIT; DELETE FROM w WHERE a = -1");
until_true(q{SELECT split_part(paimon.test_storage_usage('w'), ' ', 1)::int <= } . ($before + 2), 'as well as those of a savepoint');

# A running transaction's files stay, whenever it commits: here between the look at its status and the look for its rows.
my $writer = $node->background_psql($db);
$writer->query_safe("BEGIN; INSERT INTO w $big");
sql("SELECT paimon.stop_arm('reclaim-extents-noted', 'wait')");
my $sweeper = later("SELECT 'swept', paimon.test_sweep('w');");
stopped('reclaim-extents-noted');
$writer->query_safe('COMMIT');
sql("SELECT paimon.stop_release('reclaim-extents-noted')");
result($sweeper);
is(sql('SELECT count(*), sum(a) FROM w'), '60001|1800030000', 'a transaction that commits while orphans are looked for keeps its files');
sweep('w', 'and once more');
is(sql('SELECT count(*), sum(a), count(DISTINCT b) FROM w'), '60001|1800030000|60001', 'they are all there');
$writer->quit;

# A killed worker's files.
sql("CREATE TABLE k (a int PRIMARY KEY, b text) USING paimon; INSERT INTO k SELECT i, md5(i::text) FROM generate_series(1, 8000) i");
sql("SELECT paimon.stop_arm('flush-run-written', 'wait')");
my $flusher = later("SELECT paimon.flush('k');");
stopped('flush-run-written');
sql('CHECKPOINT');
kill 'KILL', sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'paimon worker' AND state = 'active' AND wait_event_type IS NOT NULL AND query LIKE 'flushing%'");
crashed($flusher);
sweep('k', 'swept after the crash');
is(sql('SELECT count(*), sum(a) FROM k'), '8000|32004000', 'nothing is lost with a worker');
is(sql(q{SELECT count(*) FROM paimon.files('k')}), '1', 'one file');
sweep('k', 'swept again');
cmp_ok(used('k'), '<=', 1 + sql(q{SELECT sum((file_size_in_bytes + 131071) / 131072) FROM paimon.files('k')}), 'the killed flush left nothing');

# ---- closed files ----

# Closes the oldest file of a table, as a compaction will.
sub close_file
{
	my ($table) = @_;
	sql(<<EOS);
BEGIN;
UPDATE paimon.file f SET closing_xid = pg_current_xact_id(), removed_snapshot = 1 FROM paimon.storage s
WHERE s.storage_id = f.storage_id AND s.relid = '$table'::regclass
AND f.file_no = (SELECT min(file_no) FROM paimon.file g WHERE g.storage_id = f.storage_id AND g.closing_xid = '0');
UPDATE paimon.log l SET version = version + 1 FROM paimon.storage s WHERE s.storage_id = l.storage_id AND s.relid = '$table'::regclass;
COMMIT;
EOS
	return;
}
sub closed { my ($table) = @_; return sql("SELECT count(*) FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE s.relid = '$table'::regclass AND closing_xid <> '0'"); }

sql("CREATE TABLE c (a int PRIMARY KEY, b text) USING paimon; INSERT INTO c SELECT i, md5(i::text) FROM generate_series(1, 20000) i; SELECT paimon.flush('c')");
sql("INSERT INTO c SELECT i, md5(i::text) FROM generate_series(20001, 40000) i; SELECT paimon.flush('c')");
sweep('c', 'two files');
$before = used('c');
$old = $node->background_psql($db);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
is($old->query_safe('SELECT count(*) FROM c'), '40000', 'an old snapshot');
close_file('c');
is(sql('SELECT count(*), min(a) FROM c'), '20000|20001', 'a file is closed');
sweep('c', 'swept beside the old snapshot');
is(used('c'), $before, 'the closed file is still there');
is($old->query_safe('SELECT count(DISTINCT b) FROM c'), '40000', 'and readable');
$old->query_safe('COMMIT');
$old->quit;

# A crash between freeing and the end of the row.
sql("SELECT paimon.stop_arm('reclaim-after-free', 'wait')");
$sweeper = later("SELECT paimon.test_sweep('c');");
stopped('reclaim-after-free');
sql('CHECKPOINT');
kill 'KILL', sql("SELECT pid FROM pg_stat_activity WHERE backend_type = 'paimon worker' AND state = 'active' AND query LIKE 'reclaiming%'");
crashed($sweeper);
sql("BEGIN; INSERT INTO c SELECT i, md5(i::text) FROM generate_series(1, 20000) i; COMMIT; SELECT paimon.flush('c')");
sweep('c', 'swept after the crash: the row goes, extents of new owners stay');
is(closed('c'), '0', 'the closed row is gone');
is(sql('SELECT count(DISTINCT b) FROM c'), '40000', 'the extents that were freed are others\' now');
$node->restart;
is(sql('SELECT count(DISTINCT b) FROM c'), '40000', 'also after a restart');

# ---- the free end ----

sql("CREATE TABLE e (a int PRIMARY KEY, b text) $small_buffer; INSERT INTO e SELECT i, 'x' FROM generate_series(1, 100) i; SELECT paimon.flush('e')");
my $path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('e')");
sql("SELECT paimon.stop_arm('truncate-locked', 'wait')");
sql("BEGIN; INSERT INTO e $big; ROLLBACK");
stopped('truncate-locked');
$size = (-s $path) / 8192;
my $reader = later("SET deadlock_timeout = '30s'; SELECT 'rows', count(*) FROM e;");
until_true("SELECT count(*) > 0 FROM pg_locks WHERE relation = 'e'::regclass AND NOT granted", 'a reader waits for the truncation');
sql("SELECT paimon.stop_release('truncate-locked')");
like(result($reader), qr/rows\|100/, 'it goes on');
is(pages('e'), $size, 'and the truncation gave up');
sweep('e', 'swept without a waiter');
cmp_ok(pages('e'), '<', $size / 4, 'then the free end is given back');
is(sql('SELECT count(*), sum(a) FROM e'), '100|5050', 'and the rows are there');
sql("INSERT INTO e SELECT i, 'y' FROM generate_series(101, 5000) i; SELECT paimon.flush('e')");
is(sql('SELECT count(*) FROM e'), '5000', 'the fork grows again');

# ---- whole tables ----

$path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('w')");
cmp_ok(-s $path, '>', 1e6, 'a table with files');
sql('TRUNCATE w');
cmp_ok(pages('w'), '<', 40, 'TRUNCATE gives space back');
sql('CHECKPOINT');
ok(!-s $path, 'the old file is gone');
$path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('l')");
my $oid = sql("SELECT 'l'::regclass::oid");
sql('BEGIN; DROP TABLE l; ROLLBACK');
is(sql('SELECT count(*) FROM l'), '4000', 'a DROP that was rolled back');
sql('DROP TABLE l; CHECKPOINT');
ok(!-s $path, 'DROP gives space back');
is(sql("SELECT (SELECT count(*) FROM paimon.storage WHERE relid = $oid), (SELECT count(*) FROM paimon.file f WHERE NOT EXISTS (SELECT FROM paimon.storage s WHERE s.storage_id = f.storage_id)),"
		. ' (SELECT count(*) FROM paimon.log f WHERE NOT EXISTS (SELECT FROM paimon.storage s WHERE s.storage_id = f.storage_id))'), '0|0|0', 'and its rows in the manifest go');

# ---- without workers ----

# A commit that finds too much log flushes it as part of its own transaction (H31), VACUUM reclaims.
sql('ALTER SYSTEM SET paimon.max_workers = 0');
$node->reload;
until_true("SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'paimon worker'", 'workers are off');
sql(q{CREATE TABLE n (a int PRIMARY KEY, b text) USING paimon WITH ("write-buffer-size" = '1 mb', "write-buffer-spill-size" = '1 mb', "num-sorted-run.stop-trigger" = 2147483647)});
sql("INSERT INTO n SELECT i, repeat(md5(i::text), 4) FROM generate_series($_ * 200, $_ * 200 + 199) i") for 0 .. 79;
cmp_ok(sql("SELECT count(*) FROM paimon.snapshots('n')"), '>=', 2, 'commits flushed by themselves');
is(sql('SELECT count(*), sum(a) FROM n'), '16000|127992000', 'and lost nothing');
sql('BEGIN; ' . join(' ', map { "INSERT INTO n VALUES ($_ + 100000, repeat('y', 2000));" } 1 .. 90) . ' ROLLBACK');
is(sql('SELECT count(*), sum(a) FROM n'), '16000|127992000', 'also after a rollback');
sql("INSERT INTO n SELECT i, repeat(md5(i::text), 4) FROM generate_series($_ * 200, $_ * 200 + 199) i; VACUUM n") for 0 .. 79;
$before = used('n');
for my $round (1 .. 3)
{
	sql("INSERT INTO n SELECT i, repeat(md5(i::text), 4) FROM generate_series($_ * 200, $_ * 200 + 199) i") for 0 .. 79;
	sql('VACUUM n');
}
cmp_ok(used('n'), '<=', $before + 4 * sql("SELECT count(*) FROM paimon.files('n')"), 'VACUUM frees the log');
is(sql('SELECT count(*), sum(a) FROM n'), '16000|127992000', 'and loses nothing');
$node->stop;
done_testing();
