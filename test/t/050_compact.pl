# Compaction beside others: what it holds while it merges (H13), who goes first (H14), what happens to it when its table goes, large commits,
# two of one bucket, readers with old snapshots, errors, space.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $node = PostgreSQL::Test::Cluster->new('compact');
$node->init;
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
sub arm { my ($name, $action) = @_; return sql("SELECT paimon.stop_arm('$name', '$action')"); }
sub stopped { my ($name) = @_; return until_true("SELECT paimon.stop_waiting('$name') = 1", "somebody waits at $name"); }
sub release { my ($name) = @_; return sql("SELECT paimon.stop_release('$name')"); }

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

# A table with some runs that no worker compacts by itself, and what it holds.  Only the newest snapshot is kept: replaced files go at once.
sub make_table
{
	my ($name, $options) = @_;
	sql("DROP TABLE IF EXISTS $name; CREATE TABLE $name (a int PRIMARY KEY, b text) USING paimon WITH (\"write-only\" = true, \"snapshot.num-retained.min\" = 1, \"snapshot.num-retained.max\" = 1" . ($options // '') . ')');
	for my $n (1 .. 3)
	{
		sql("INSERT INTO $name SELECT i, md5((i * $n)::text) FROM generate_series($n, 5000, $n) i; DELETE FROM $name WHERE a % 10 = $n");
		sql("SELECT paimon.flush('$name')");
	}
	return sum($name);
}

sub sum { my ($name) = @_; return sql("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM $name"); }
sub levels { my ($name) = @_; return sql("SELECT string_agg(level || ':' || runs, ' ' ORDER BY bucket, level) FROM paimon.levels('$name')"); }

# Extents in use are those of the live files, and nothing waits to be reclaimed.
sub no_leak
{
	my ($name, $what) = @_;
	until_true("SELECT paimon.test_sweep('$name') AND paimon.test_storage_usage('$name') ~ ('^' || (SELECT coalesce(sum((file_size_in_bytes + 131071) / 131072), 0)
		FROM paimon.files('$name')) + 1 || ' used')", $what);
	return;
}

# ---- H13: no snapshot and no xid while merging; readers and writers go on ----

my $want = make_table('t');
is(levels('t'), '0:3', 'three runs');
arm('compact-merged', 'wait');
my $compactor = later("SELECT 'id', paimon.compact('t');");
stopped('compact-merged');
is(sql("SELECT backend_xmin IS NULL, backend_xid IS NULL, query FROM pg_stat_activity WHERE backend_type = 'paimon worker'"),
	't|t|compacting table "t"', 'a worker that merges has no snapshot and no xid, and says what it does');
is(sql("SELECT state, \"table\" FROM paimon.worker_status WHERE kind = 'worker'"), 'compacting|t', 'also in the view of workers');
is(sum('t'), $want, 'readers go on meanwhile');
sql("INSERT INTO t VALUES (1, 'new'), (100000, 'new')");
# a large commit comes in between: it is newer than all that is merged
sql("INSERT INTO t SELECT i, repeat('large', 20) FROM generate_series(1000, 1100) i");
my $newer = sum('t');
release('compact-merged');
like(result($compactor), qr/id\|\d/, 'it ends');
is(levels('t'), '2:1', 'one run');
is(sum('t'), $newer, 'with the same rows');
sql("SELECT paimon.compact('t')");
is(levels('t'), '2:1', 'one run again');
is(sum('t'), $newer, 'with the same rows');
no_leak('t', 'space comes back');

# ---- a large commit registers its files while a compaction is about to publish ----

$want = make_table('t', q(, "write-buffer-size" = '64kb'));
arm('compact-before-publish', 'wait');
$compactor = later("SELECT paimon.compact('t');");
stopped('compact-before-publish');
sql("INSERT INTO t SELECT i, repeat('large', 20) FROM generate_series(1000, 6000) i");
$newer = sum('t');
release('compact-before-publish');
result($compactor);
is(sum('t'), $newer, 'a large commit during a compaction stays newer');
like(levels('t'), qr/^0:\d+ 2:1$/, 'its runs are above');
sql("SELECT paimon.compact('t')");
is(levels('t'), '2:1', 'and are merged by the next one');
is(sum('t'), $newer, 'with the same rows');

# ... and one that is not committed yet when it is published
$want = make_table('t', q(, "write-buffer-size" = '64kb'));
arm('bulk-registered', 'wait');
my $writer = later("INSERT INTO t SELECT i, repeat('large', 20) FROM generate_series(1000, 6000) i;");
stopped('bulk-registered');
$compactor = later("SELECT paimon.compact('t');");
until_true(q{SELECT count(*) = 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT granted AND backend_type = 'paimon worker'}, 'a compaction waits for its end');
release('bulk-registered');
result($writer);
result($compactor);
$newer = sum('t');
is(sql("SELECT count(*) FROM t WHERE b LIKE 'largelarge%'"), '5001', 'the large commit is there');
sql("SELECT paimon.compact('t')");
is(sum('t'), $newer, 'and stays so');

# ---- the table goes: the compaction is given up ----

for my $point (qw(compact-begin compact-merged compact-before-publish compact-published-before-commit))
{
	for my $command ('TRUNCATE t', 'ALTER TABLE t ADD COLUMN c int', 'VACUUM FULL t', 'DROP TABLE t')
	{
		$want = make_table('t');
		arm($point, 'wait');
		$compactor = later("SELECT paimon.compact('t');");
		stopped($point);
		sql($command);
		# whoever asked is told, unless the table is gone
		like(result($compactor), $command =~ /DROP/ ? qr/^/ : qr/WARNING.*was not compacted/s, "$command at $point goes first");
		release($point);
		is(sum('t'), $want, 'all rows are there') if $command =~ /ALTER|VACUUM/ && $command !~ /ADD/;
		is(sum('t'), '0||', 'the table is empty') if $command =~ /TRUNCATE/;
		next if $command =~ /DROP/;
		is(sql('SELECT count(*) FROM paimon.worker_errors'), '0', 'that is no failure');
		sql("INSERT INTO t (a, b) VALUES (7, 'after'); SELECT paimon.compact('t')");
		is(sql("SELECT b FROM t WHERE a = 7"), 'after', 'and the table can be compacted');
		is(levels('t'), '2:1', 'into one run');
		no_leak('t', 'nothing is left of the one that was given up');
	}
}

# ---- an error: the same ----

for my $point (qw(compact-begin compact-merged compact-before-publish compact-published-before-commit))
{
	$want = make_table('t');
	my $before = levels('t');
	sql("SELECT paimon.stop_arm('$point', 'error')");
	my ($ret, $out, $err) = $node->psql($db, "SELECT paimon.compact('t')");
	like($err, qr/background work on table "t" failed/, "error at $point is told");
	is(levels('t'), $before, 'nothing was changed');
	is(sum('t'), $want, 'all rows are there');
	is(sql(q{SELECT "table" FROM paimon.worker_errors}), 't', 'it is noted');
	sql("SELECT paimon.stop_release('$point')");
	sql("INSERT INTO t VALUES (7, 'after'); SELECT paimon.flush('t')");
	sql("SELECT paimon.compact('t')");
	is(sql(q{SELECT count(*) FROM paimon.worker_errors}), '0', 'until it works');
	is(levels('t'), '2:1', 'which it does');
	no_leak('t', 'nothing is left of the one that failed');
}

# ---- readers with old snapshots keep reading while all is compacted and reclaimed ----

$want = make_table('t', q(, bucket = 3));
my $reader = $node->background_psql($db);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
is($reader->query_safe("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM t"), $want, 'an old snapshot');
my $cursor = $node->background_psql($db);
$cursor->query_safe('BEGIN; DECLARE c CURSOR FOR SELECT a, b FROM t');
my $first = $cursor->query_safe('FETCH 10 FROM c');
sql("UPDATE t SET b = 'changed'; DELETE FROM t WHERE a % 3 = 0; SELECT paimon.compact('t')");
$newer = sum('t');
sql("INSERT INTO t SELECT i, 'x' FROM generate_series(1, 3000) i; DELETE FROM t WHERE a <= 3000 AND a % 7 = 0; SELECT paimon.compact('t')");
sql("SELECT paimon.test_sweep('t')") for 1 .. 3;
sql("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(10000, 20000) i; SELECT paimon.compact('t')");
is($reader->query_safe("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM t"), $want, 'reads what it always read');
is($reader->query_safe('SELECT b = md5((4999)::text) FROM t WHERE a = 4999'), 't', 'also by key');
cmp_ok(sql(q{SELECT count(*) FROM paimon.file WHERE closing_xid <> '0'}), '>', 0, 'files are kept for it');
$reader->query_safe('COMMIT');
is($cursor->query_safe('FETCH ALL FROM c') =~ tr/\n// + 1 + 10, (split /\|/, $want)[0], 'a cursor sees all its rows');
$cursor->query_safe('COMMIT');
$reader->quit;
$cursor->quit;
until_true(q{SELECT count(*) = 0 FROM paimon.file WHERE closing_xid <> '0'}, 'they go when it has ended');
no_leak('t', 'with their space');

# A file that only changes its level: readers with old snapshots see it where it was, and it is not freed with its old row.
sql(q{DROP TABLE t; CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH ("write-only" = true, "compaction.small-file-ratio" = 0, "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)});
sql("INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 5000) i; SELECT paimon.flush('t')");
$want = sum('t');
$reader = $node->background_psql($db);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
sql("SELECT paimon.compact('t')");
is(levels('t'), '2:1', 'lifted');
is(sql("SELECT count(*), count(DISTINCT file_no) FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE s.relid = 't'::regclass"), '2|1', 'the same file in two levels');
is($reader->query_safe("SELECT level FROM paimon.levels('t')"), '0', 'an old snapshot sees it in level 0');
is($reader->query_safe("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM t"), $want, 'and all its rows');
$reader->query_safe('COMMIT');
$reader->quit;
until_true(q{SELECT count(*) = 0 FROM paimon.file WHERE closing_xid <> '0'}, 'the old row goes');
no_leak('t', 'but not the file');
is(sum('t'), $want, 'which is read');
$node->restart;
is(sum('t'), $want, 'also after a restart');

# ---- two compactions of one bucket; without workers the sessions do it themselves ----

$want = make_table('t', ', bucket = 2');
sql('ALTER SYSTEM SET paimon.max_workers = 0');
$node->reload;
until_true(q{SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'paimon worker'}, 'no worker');
arm('compact-merged', 'wait');
my $one = later("SELECT 'one', paimon.compact('t', bucket => 0);");
stopped('compact-merged');
my ($ret, $out, $err) = $node->psql($db, "SELECT paimon.compact('t', bucket => 0)");
like($err, qr/NOTICE.*bucket 0 of table "t" is being compacted by another session/, 'the second one of a bucket does not wait');
$node->psql($db, "SELECT paimon.compact('t', bucket => 1)");
is(levels('t'), '0:3 2:1', 'another bucket goes at the same time');
release('compact-merged');
like(result($one), qr/one\|\d/, 'the first one ends');
is(levels('t'), '2:1 2:1', 'both are done');
is(sum('t'), $want, 'all rows are there');
sql('ALTER SYSTEM RESET paimon.max_workers');
$node->reload;
no_leak('t', 'and no space is lost');

# ---- by itself: a table that is written to keeps its shape ----

sql(q{CREATE TABLE u (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 2)});
for my $n (1 .. 12)
{
	sql("INSERT INTO u SELECT (i * $n) % 3000, md5((i + $n)::text) FROM generate_series(1, 500) i; SELECT paimon.flush('u')");
}
$want = sum('u');
until_true(q{SELECT max(n) < 6 FROM (SELECT sum(runs) AS n FROM paimon.levels('u') GROUP BY bucket) x}, 'runs are fewer than the trigger and one');
is(sum('u'), $want, 'all rows are there');
cmp_ok(sql(q{SELECT count(*) FROM paimon.snapshots('u') WHERE commit_kind = 'COMPACT'}), '>', 1, 'compactions made snapshots');
is(sql(q{SELECT count(*) = max(snapshot_id) FROM paimon.snapshots('u')}), 't', 'without gaps');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal (?:6|11)\b/, 'no panic');
done_testing();
