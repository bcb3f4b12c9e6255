# Old readers while everything they read is compacted and reclaimed: on the primary, on a standby that lets replay wait, on one that tells its primary, and on
# one that lets nobody wait, where the conflict is reported as it is for heap.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $db = 'postgres';
my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
wal_receiver_status_interval = '1s'
CONF
$primary->start;
$primary->safe_psql($db, 'CREATE EXTENSION paimon_am');
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', 'max_standby_streaming_delay = -1');
$standby->start;

my $sum = q{SELECT count(*) || ' ' || md5(string_agg(a || b, '' ORDER BY a)) FROM t};
my $other_sum = q{SELECT count(*) || ' ' || md5(string_agg(a || b, '' ORDER BY a)) FROM h};
my $round = 0;

sub sql { my ($text) = @_; return $primary->safe_psql($db, $text); }
sub caught_up { $primary->wait_for_catchup($standby, 'replay', $primary->lsn('insert')); return; }
sub closed { return sql(q{SELECT count(*) FROM paimon.file WHERE closing_xid <> '0'}); }

sub old_reader
{
	my ($node) = @_;
	my $wire = PaimonWire->connect(host => $node->host, port => $node->port, user => scalar getpwuid($<));
	$wire->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
	return ($wire, $wire->value($sum));
}

# All rows anew, into other files; what they were in is freed, and used again by the next round.
sub churn
{
	my ($rounds) = @_;
	for (1 .. $rounds)
	{
		$round++;
		sql("UPDATE t SET b = md5(a || ' $round') || repeat('x', 200 * (a % 3)); DELETE FROM t WHERE a % 50 = $round; "
			  . "INSERT INTO t SELECT i, 'round $round' FROM generate_series(100000 + $round * 100, 100099 + $round * 100) i");
		sql(q{SELECT paimon.compact('t')});
		sql(q{SELECT paimon.test_sweep('t')});
	}
	return;
}

sub clean { my ($what) = @_; return is(sql(q{SELECT severity, object, problem FROM paimon.verify('t')}), '', $what); }

sql(q{CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon WITH (bucket = 2, "write-buffer-size" = '256 kb', "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
	CREATE TABLE h (a int PRIMARY KEY, b text);
	INSERT INTO t SELECT i, md5(i::text) FROM generate_series(1, 8000) i; INSERT INTO h SELECT * FROM t; SELECT paimon.flush('t')});
sql(q{INSERT INTO t SELECT i, 'log' FROM generate_series(1, 100) i});
churn(1);
caught_up();

# ---- on the primary, and on a standby where replay waits ----

my ($here, $want) = old_reader($primary);
my ($there, $want_there) = old_reader($standby);
is($want_there, $want, 'both read the same');
$there->rows('DECLARE c CURSOR FOR SELECT a, b FROM t');
is(scalar @{ $there->rows('FETCH 10 FROM c') }, 10, 'a scan on the standby has begun');
for (1 .. 3)
{
	churn(2);
	is($here->value($sum), $want, "the primary's old reader, $round rounds later");
	is($there->value($sum), $want, "the standby's");
	is($there->value(q{SELECT b FROM t WHERE a = 7777}), $here->value(q{SELECT b FROM t WHERE a = 7777}), 'both by key');
}
is(10 + @{ $there->rows('FETCH ALL FROM c') }, (split / /, $want)[0], 'the scan comes to its end');
cmp_ok(closed(), '>', 0, 'the primary keeps files for its own reader');
$here->rows('COMMIT');
$here->close;
ok($primary->poll_query_until($db, q{SELECT paimon.test_sweep('t') AND count(*) = 0 FROM paimon.file WHERE closing_xid <> '0'}), 'and lets them go after it');
churn(3);
is($there->value($sum), $want, 'the standby reads on while the primary has used their space again');
$there->rows('COMMIT');
$there->close;
caught_up();
is($standby->safe_psql($db, $sum), sql($sum), 'then it catches up');
clean('the table is as it should be');

# ---- a standby that tells: the primary keeps what it reads ----

$standby->append_conf('postgresql.conf', "hot_standby_feedback = on\nmax_standby_streaming_delay = 0");
$standby->restart;
($there, $want) = old_reader($standby);
ok($primary->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_stat_replication WHERE backend_xmin IS NOT NULL}), 'the primary knows of the reader');
churn(3);
caught_up();
is($there->value($sum), $want, 'it reads its own version, and replay does not wait');
is($standby->safe_psql($db, $sum), sql($sum), 'others read the new one');
cmp_ok(closed(), '>', 0, 'files are kept for it');
$there->rows('COMMIT');
$there->close;
ok($primary->poll_query_until($db, q{SELECT paimon.test_sweep('t') AND count(*) = 0 FROM paimon.file WHERE closing_xid <> '0'}), 'and go when it has ended');

# ---- a standby that does not wait: cancelled, as for heap ----

$standby->append_conf('postgresql.conf', 'hot_standby_feedback = off');
$standby->restart;
ok($primary->poll_query_until($db, q{SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming' AND backend_xmin IS NULL}), 'no feedback');

# What the log says of an old reader whose rows go.
sub conflict
{
	my ($reading, $removing) = @_;
	my ($wire) = old_reader($standby);
	my $before = -s $standby->logfile;
	$wire->value($reading);
	$removing->();
	caught_up();
	ok(!eval { $wire->query('SELECT 1'); 1 }, 'an old reader is gone');
	$wire->close;
	return join "\n", slurp_file($standby->logfile, $before) =~ /(?:ERROR|FATAL|DETAIL|HINT): .*/g;
}
my $heap = conflict($other_sum, sub { sql(q{UPDATE h SET b = 'new'}); sql('VACUUM h') });
like($heap, qr/conflict with recovery\nDETAIL: .*row versions/, 'what heap says');
# Giving back the end of the file conflicts with every reader's lock, on heap too: not here.
my $no_truncation = $primary->background_psql($db);
$no_truncation->query_safe('BEGIN; LOCK TABLE t IN ACCESS SHARE MODE');
is(conflict($sum, sub { churn(2) }), $heap, 'and paimon the same');
$no_truncation->query_safe('COMMIT');
$no_truncation->quit;
ok($standby->poll_query_until($db, q{SELECT confl_snapshot >= 2 FROM pg_stat_database_conflicts WHERE datname = 'postgres'}), 'it is counted as heap\'s');
is($standby->safe_psql($db, $sum), sql($sum), 'the standby has what its primary has');
clean('the table is as it should be');

$_->stop for $standby, $primary;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP|signal (?:6|11)\b|WARNING.*pages/, 'no panic') for $primary, $standby;
done_testing();
