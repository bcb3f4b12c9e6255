# A fork that is much longer than what it holds gets short by itself, once the table rests: what holds its end is moved to the front, the end is cut off.
# Readers of old versions, retention, the age of files and the deletes in them are as before; what gains nothing is not done.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('converges');
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
sub until_true { my ($text, $what) = @_; return ok($node->poll_query_until($db, $text), $what); }
sub stopped { my ($name) = @_; return until_true("SELECT paimon.stop_waiting('$name') = 1", "somebody waits at $name"); }
sub clean { my ($table, $what) = @_; return is(sql("SELECT severity, object, problem FROM paimon.verify('$table')"), '', $what); }
sub fork_size { my ($table) = @_; return sql("SELECT pg_relation_size('$table')"); }
sub live { my ($table) = @_; return sql("SELECT coalesce(sum(file_size_in_bytes), 0) FROM paimon.files('$table')"); }
sub moves { my ($table) = @_; return sql("SELECT count(*) FROM paimon.compaction_history WHERE \"table\" = '$table'::regclass AND reason = 'relocation' AND outcome = 'done'"); }
sub rows { my ($table) = @_; return sql("SELECT count(*) || ' ' || sum(hashtextextended(a || b, 0)) FROM $table"); }

# 1.6 times the live files, and 4 MB.
my $short = "pg_relation_size('%s') <= 1.6 * (SELECT coalesce(sum(file_size_in_bytes), 0) FROM paimon.files('%s')) + 4e6";
sub gets_short { my ($table, $what) = @_; return until_true('SELECT ' . sprintf($short, $table, $table), $what); }
sub is_short { my ($table) = @_; return sql('SELECT ' . sprintf($short, $table, $table)); }

my $one = q{"snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1};
my $wide = q{SELECT i, (SELECT string_agg(md5(i || ' ' || j || ' %s'), '') FROM generate_series(1, 8) j) FROM generate_series(1, %d) i};

# Fills a table twice over and merges that, with the worker kept from moving anything: the only file lies behind what it was made of.
sub far_out
{
	my ($table, $n, $options) = @_;
	sql("CREATE TABLE $table (a int PRIMARY KEY, b text) USING paimon" . ($options eq '' ? '' : " WITH ($options)"));
	sql("INSERT INTO $table " . sprintf($wide, $_, $n) . "; SELECT paimon.flush('$table')") for 1 .. 2;
	sql("SELECT paimon.compact('$table')");
	return;
}

# ---- a file behind free space, beside an old reader ----

sql("SELECT paimon.stop_arm('relocation-decided', 'wait')");
far_out('t', 120000, $one);
my $old = $node->background_psql($db);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $rows = $old->query_safe("SELECT count(*) || ' ' || sum(hashtextextended(a || b, 0)) FROM t");
$old->query_safe('COMMIT');
stopped('relocation-decided');
is(is_short('t'), 'f', 'the fork is long: its only file lies behind what it was made of');
my $ages = q{SELECT string_agg(concat_ws(' ', bucket, level, min_position, max_position, row_count, added_snapshot, append_count, creation_time, encode(min_key, 'hex')), ',')
 FROM paimon.file JOIN paimon.storage s USING (storage_id) WHERE s.relid = 't'::regclass AND closing_xid = '0'};
my $age = sql($ages);
my $numbers = sql("SELECT string_agg(file_no::text, ',') FROM paimon.file JOIN paimon.storage s USING (storage_id) WHERE s.relid = 't'::regclass AND closing_xid = '0'");
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT count(*) FROM t');
my $size = fork_size('t');
sql("SELECT paimon.stop_release('relocation-decided')");
until_true("SELECT count(*) > 0 FROM paimon.compaction_history WHERE \"table\" = 't'::regclass AND reason = 'relocation' AND outcome = 'done'", 'it is moved');
is(sql($ages), $age, 'it is as old as before, and in the same snapshots');
isnt(sql("SELECT string_agg(file_no::text, ',') FROM paimon.file JOIN paimon.storage s USING (storage_id) WHERE s.relid = 't'::regclass AND closing_xid = '0'"),
	$numbers, 'but another file');
sql("SELECT paimon.test_sweep('t')") for 1 .. 2;
is(fork_size('t'), $size, 'the old one stays for an old reader');
is($old->query_safe("SELECT count(*) || ' ' || sum(hashtextextended(a || b, 0)) FROM t"), $rows, 'who sees what he saw');
clean('t', 'and all is in order');
$old->query_safe('COMMIT');
gets_short('t', 'when he has gone the fork gets short by itself');
is(rows('t'), $rows, 'with all rows');
clean('t', 'and in order');
is(moves('t'), '1', 'moved once');

# ---- it is not done again where it gains nothing ----

sql("SELECT paimon.stop_arm('relocation-decided', 'count', times => 0)");
sql("INSERT INTO t VALUES (-$_, 'x'); SELECT paimon.flush('t')") for 1 .. 4;
sql("SELECT paimon.test_sweep('t')") for 1 .. 3;
is(sql("SELECT paimon.stop_hits('relocation-decided')"), '0', 'a short fork is left alone');
sql("SELECT paimon.stop_reset()");
is(is_short('t'), 't', 'and stays short');

# ---- default retention, which would keep a file of that size for an hour: but a moved one is not kept twice ----

far_out('r', 80000, '');
gets_short('r', 'also with snapshots kept');
is(moves('r'), '1', 'after it was moved');
cmp_ok(sql("SELECT count(*) FROM paimon.snapshots('r')"), '>=', 2, 'of which there are several');
clean('r', 'all in order');

# ---- deletes, and all deleted ----

sql('DELETE FROM t WHERE a % 2 = 0');
$rows = rows('t');
sql("SELECT paimon.compact('t')");
gets_short('t', 'half of the rows deleted');
is(rows('t'), $rows, 'the others are there');
sql('DELETE FROM t');
until_true("SELECT pg_relation_size('t') < 5e6", 'all rows deleted, in the log: the space returns by itself');
is(sql('SELECT count(*) FROM t'), '0', 'nothing is left');
clean('t', 'in order');

# ---- several buckets and levels; the server killed when a moved file is about to be published ----

sql("SELECT paimon.stop_arm('relocation-decided', 'wait')");
far_out('b', 120000, "$one, bucket = 3, \"target-file-size\" = '2 mb'");
sql("INSERT INTO b SELECT i, 'newest' FROM generate_series(1, 120000, 7) i; SELECT paimon.flush('b')");
$rows = rows('b');
stopped('relocation-decided');
sql("SELECT paimon.stop_arm('compact-before-publish', 'kill')");
sql("SELECT paimon.stop_release('relocation-decided')");
until_true("SELECT pg_postmaster_start_time() IS NOT NULL AND paimon.stop_hits('compact-before-publish') = 0", 'killed in the middle of moving');
gets_short('b', 'the fork gets short all the same');
is(rows('b'), $rows, 'with all rows');
sql("SELECT paimon.test_sweep('b')");
clean('b', 'in order');

# ---- a stream of small upserts: the fork stays near what is live, whatever passes through it ----

sql("CREATE TABLE s (a int PRIMARY KEY, b text) USING paimon WITH ($one, \"write-buffer-size\" = '256 kb')");
my $most = 0;
for my $round (1 .. 40)
{
	sql(join('', map { "INSERT INTO s SELECT i, repeat(md5(i::text), 4) || $round FROM generate_series($_ * 500, $_ * 500 + 499) i;" } 0 .. 39));
	my $now = fork_size('s');
	$most = $now if $now > $most;
}
note("longest fork of the stream $most, live files " . live('s'));
gets_short('s', 'after a stream the fork gets short by itself');
clean('s', 'in order');
$node->stop;
done_testing();
