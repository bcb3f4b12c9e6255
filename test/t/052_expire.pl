# Space after all is deleted, retention by time and by default, reclaiming beside a compaction, and paimon.verify: clean beside writers, and not when bytes
# on disk are wrong.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('expire');
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
sub clean { my ($table, $what) = @_; return is(sql("SELECT severity, object, problem FROM paimon.verify('$table')"), '', $what); }
sub closed { my ($table) = @_; return "(SELECT count(*) FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE s.relid = '$table'::regclass AND closing_xid <> '0')"; }

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

# ---- default retention: an hour, of which a small table keeps all; a large one no more than a share of its size ----

sql('CREATE TABLE small (a int PRIMARY KEY, b text) USING paimon');
for my $n (1 .. 3)
{
	sql("INSERT INTO small SELECT i, md5((i * $n)::text) FROM generate_series(1, 3000) i");
	sql("SELECT paimon.flush('small')");
}
sql("SELECT paimon.compact('small')");
sql("SELECT paimon.test_sweep('small')") for 1 .. 3;
is(sql("SELECT string_agg(snapshot_id || commit_kind, ' ' ORDER BY snapshot_id) FROM paimon.snapshots('small')"), '1APPEND 2APPEND 3APPEND 4COMPACT', 'snapshots are kept');
is(sql('SELECT ' . closed('small')), '3', 'with the files they need');
clean('small', 'which is as it should be');

my $wide = q{SELECT i, (SELECT string_agg(md5(i || ' ' || j), '') FROM generate_series(1, 20) j) FROM generate_series(1, 60000) i};
sql("CREATE TABLE large (a int PRIMARY KEY, b text) USING paimon; INSERT INTO large $wide; SELECT paimon.flush('large')");
my $size = sql("SELECT pg_relation_size('large')");
cmp_ok($size, '>', 18e6, 'a larger one');
sql("INSERT INTO large $wide; SELECT paimon.compact('large')");
until_true("SELECT coalesce(sum(bytes), 0) < 17e6 FROM paimon.file f JOIN paimon.storage s USING (storage_id)
	WHERE s.relid = 'large'::regclass AND closing_xid <> '0'", 'does not keep all that was replaced');
clean('large', 'and is as it should be');

# ---- all is deleted: the space comes back by itself ----

sql("DELETE FROM large; SELECT paimon.compact('large')");
is(sql("SELECT count(*) FROM paimon.files('large')"), '0', 'a full compaction leaves no file of a table without rows');
until_true("SELECT pg_relation_size('large') < $size / 10", 'and the relation shrinks, with nobody asking');
is(sql('SELECT count(*) FROM large'), '0', 'it is empty');
clean('large', 'and as it should be');
sql("INSERT INTO large SELECT i, 'x' FROM generate_series(1, 1000) i; SELECT paimon.flush('large')");
is(sql('SELECT count(*), sum(a) FROM large'), '1000|500500', 'it can be filled again');
clean('large', 'and is as it should be then');

# The end of the log lies behind all files here: it moves to the front, or the fork could not shrink.
sql('CREATE TABLE tail (a int PRIMARY KEY, b text) USING paimon WITH ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)');
sql("INSERT INTO tail $wide; SELECT paimon.flush('tail')");
sql('DELETE FROM tail WHERE a <= 3000; DELETE FROM tail');
sql("SELECT paimon.compact('tail')");
until_true("SELECT pg_relation_size('tail') < 1e6", 'a relation shrinks below the extent in which its log ended');
clean('tail', 'and is as it should be');
sql("INSERT INTO tail VALUES (1, 'x')");
is(sql('SELECT * FROM tail'), '1|x', 'the log goes on');
sql("SELECT paimon.flush('tail')");
is(sql('SELECT * FROM tail'), '1|x', 'and is flushed');
clean('tail', 'as it should be');

# ---- by time: nobody writes, and it goes all the same ----

sql(q{CREATE TABLE timed (a int PRIMARY KEY, b text) USING paimon WITH ("snapshot.num-retained.min" = 1, "snapshot.time-retained" = '3 s')});
sql("INSERT INTO timed SELECT i, 'x' FROM generate_series(1, 1000) i; SELECT paimon.flush('timed')");
sql("INSERT INTO timed SELECT i, 'y' FROM generate_series(1, 1000) i; SELECT paimon.compact('timed')");
until_true('SELECT ' . closed('timed') . ' = 0', 'files go when their snapshots are old enough');
is(sql("SELECT count(*) FROM paimon.snapshots('timed')"), '1', 'with these');

# ---- VACUUM VERBOSE says how the table is ----

my ($ret, $out, $err) = $node->psql($db, 'VACUUM VERBOSE small');
like($err, qr/table "small": 1 buckets with files, at most 1 runs each/, 'levels');
like($err, qr/level 0: 0 runs, 0 files, 0 kB; level 1: 0 runs, 0 files, 0 kB; level 2: 1 runs, 1 files, \d+ kB/, 'in detail');
like($err, qr/table "small": 4 snapshots, 1 to 4/, 'snapshots');
like($err, qr/3 files, \d+ kB, are kept for older snapshots/, 'what they keep');
like($err, qr/table "small": \d+ extents of 128 kB in use, \d+ free/, 'space');
my $reader = $node->background_psql($db);
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM small');
my $pid = $reader->query_safe('SELECT pg_backend_pid()');
sql('ALTER TABLE small SET ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)');
($ret, $out, $err) = $node->psql($db, 'VACUUM VERBOSE small');
like($err, qr/3 files, \d+ kB, wait for transactions from \d+ on, the oldest one in process $pid/, 'who is waited for');
is($reader->query_safe('SELECT count(DISTINCT b) FROM small'), '3000', 'that reads on');
$reader->query_safe('COMMIT');
$reader->quit;
until_true('SELECT ' . closed('small') . ' = 0', 'then they go');
clean('small', 'and all is as it should be');

# ---- reclaiming while a compaction runs: without workers each is done by its session ----

sql(q{CREATE TABLE r (a int PRIMARY KEY, b text) USING paimon WITH ("write-only" = true, "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1)});
for my $n (1 .. 3)
{
	sql("INSERT INTO r SELECT i, md5((i * $n)::text) FROM generate_series($n, 5000, $n) i");
	sql("SELECT paimon.flush('r')");
}
my $want = sql("SELECT count(*), md5(string_agg(b, '' ORDER BY a)) FROM r");
sql('ALTER SYSTEM SET paimon.max_workers = 0');
$node->reload;
until_true("SELECT count(*) = 0 FROM pg_stat_activity WHERE backend_type = 'paimon worker'", 'workers are off');
arm('compact-merged', 'wait');
my $compactor = later("SELECT 'id', paimon.compact('r');");
stopped('compact-merged');
clean('r', 'a table that is being compacted is as it should be');
release('compact-merged');
like(result($compactor), qr/id\|4/, 'the compaction ends');
($ret, $out, $err) = $node->psql($db, 'VACUUM VERBOSE r') for 1 .. 3;
like($err, qr/0 snapshots expired/, 'VACUUM expires and reclaims by itself');
is(sql('SELECT ' . closed('r')), '0', 'what was replaced is gone');
is(sql("SELECT count(*), md5(string_agg(b, '' ORDER BY a)) FROM r"), $want, 'all rows are there');
clean('r', 'and all is as it should be');
sql('ALTER SYSTEM RESET paimon.max_workers');
$node->reload;

# ---- no false alarms beside writers, flushes, compactions, expiry, reclaim, rolled back files ----

sql(q{CREATE TABLE busy (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 2, "write-buffer-size" = '128 kb', "num-sorted-run.compaction-trigger" = 2,
	"snapshot.num-retained.min" = 2, "snapshot.num-retained.max" = 3)});
sql(<<'EOS');
CREATE PROCEDURE work(seed int, rounds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		INSERT INTO busy SELECT (g * seed * i) % 20000, md5(g::text) FROM generate_series(1, 20 + 4000 * (i % 3 / 2)) g;
		IF i % 5 = 0 THEN ROLLBACK; ELSE COMMIT; END IF;
		DELETE FROM busy WHERE a % 50 = i % 50;
		COMMIT;
		IF i % 4 = 0 THEN PERFORM paimon.flush('busy'); END IF;
		COMMIT;
	END LOOP;
END $$;
EOS
my @writers = map { later("CALL work($_, 120);\nSELECT 'done';") } 1 .. 2;
my $alarms = '';
my $looks = 0;
do
{
	$alarms .= sql('BEGIN ISOLATION LEVEL ' . ($looks % 2 ? 'REPEATABLE READ' : 'READ COMMITTED')
		  . "; SELECT severity, object, problem FROM paimon.verify('busy'); SELECT count(*) * 0 FROM busy HAVING count(*) < 0; SELECT severity, object, problem FROM paimon.verify('busy'); COMMIT");
	$looks++;
} while ($alarms eq '' && sql("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL work%'") > 0);
is($alarms, '', "no alarm in $looks looks");
cmp_ok($looks, '>=', 3, 'at a table in use');
like(result($_), qr/done/, 'a writer was not disturbed') for @writers;
sql("SELECT paimon.test_sweep('busy')") for 1 .. 2;
clean('busy', 'nothing is left behind');

# ---- damage on disk ----

# Changes bytes of a block of a table that is in no buffer.
sub damage
{
	my ($table, $block, $offset) = @_;
	my $path = $node->data_dir . '/' . sql("SELECT pg_relation_filepath('$table')");
	sql('CHECKPOINT');
	$node->stop;
	open(my $file, '+<:raw', $path) or die "$path: $!";
	seek($file, $block * 8192 + $offset, 0);
	read($file, my $bytes, 4);
	seek($file, $block * 8192 + $offset, 0);
	print $file pack('N', unpack('N', $bytes) ^ 0x5A5A5A5A);
	close($file);
	$node->start;
	return sub {
		$node->stop;
		open(my $again, '+<:raw', $path) or die "$path: $!";
		seek($again, $block * 8192 + $offset, 0);
		print $again $bytes;
		close($again);
		$node->start;
		return;
	};
}
sub problems { my ($table) = @_; return sql("SELECT severity, object, problem FROM paimon.verify('$table')"); }

sql(q{CREATE TABLE x (a int PRIMARY KEY, b text) USING paimon WITH ("write-only" = true)});
sql("INSERT INTO x SELECT i, md5(i::text) FROM generate_series(1, 20000) i; SELECT paimon.flush('x')");
sql("INSERT INTO x SELECT i, md5(i::text) FROM generate_series(1, 200) i");
clean('x', 'a table without damage');
my $file = sql(q{SELECT file_no FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE relid = 'x'::regclass});
my ($first, $footer) = split /\|/,
  sql(q{SELECT get_byte(extents, 0) + 256 * get_byte(extents, 1), footer_page FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE relid = 'x'::regclass});
for my $case (
	[ 2 + $first * 16, 2000, qr/^error\|bucket 0, file $file\|/, 'a row group' ],
	[ 2 + $first * 16 + $footer, 100, qr/^error\|bucket 0, file $file\|/, 'a footer' ],
	[ 2 + $first * 16 + $footer - 1, 100, qr/^error\|bucket 0, file $file\|/, 'a bloom filter' ],
	# with data checksums, the default since PostgreSQL 18, the server finds it first
	[ 1, 200, qr/^error\|extent map\|(?:damaged extent map in block 1 of table "x"|invalid page in block 1 of relation)/m, 'the extent map' ])
{
	my ($block, $offset, $pattern, $what) = @$case;
	my $repair = damage('x', $block, $offset);
	like(problems('x'), $pattern, "$what is damaged");
	$repair->();
	clean('x', 'and is whole again');
}
my $log = sql(q{SELECT min(i) FROM generate_series(0, pg_relation_size('x') / 8192 / 16 - 1) i
	WHERE NOT EXISTS (SELECT FROM paimon.file f JOIN paimon.storage s USING (storage_id) WHERE relid = 'x'::regclass
		AND i BETWEEN get_byte(extents, 0) + 256 * get_byte(extents, 1) AND get_byte(extents, 0) + 256 * get_byte(extents, 1) + get_byte(extents, 4) - 1)});
note("the log is in extent $log");

# an extent in two files, and one in none
sql(q{UPDATE paimon.file f SET extents = '\x0000000002000000' FROM paimon.storage s WHERE s.storage_id = f.storage_id AND s.relid = 'x'::regclass});
like(problems('x'), qr/^error\|extent \d+\|/m, 'a file that claims extents of others');
sql(q{DELETE FROM paimon.file f USING paimon.storage s WHERE s.storage_id = f.storage_id AND s.relid = 'x'::regclass});
like(problems('x'), qr/snapshot 1\|20000 records, its files have 0/, 'a file that is missing in the manifest');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal (?:6|11)\b/, 'no panic');
done_testing();
