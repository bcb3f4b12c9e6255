# Manifests that sessions keep (H17), where announcements of versions do not come: on a standby, over its promotion, and after a crash of the server.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $primary = PostgreSQL::Test::Cluster->new('primary');
$primary->init(allows_streaming => 1);
$primary->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
paimon.naptime = 50
CONF
$primary->start;
$primary->safe_psql('postgres', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE TABLE t (k int PRIMARY KEY, v int) USING paimon WITH ("write-buffer-size" = '64kb');
INSERT INTO t SELECT i, 0 FROM generate_series(1, 3000) i;
SQL
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->append_conf('postgresql.conf', "max_standby_streaming_delay = -1\nhot_standby_feedback = on");
$standby->start;
$primary->wait_for_catchup($standby);

sub session
{
	my ($node) = @_;
	my $s = PaimonWire->connect(host => $node->host, port => $node->port, user => scalar getpwuid($<)) // die "no session";

	$s->rows("SET statement_timeout = '60s'");
	return $s;
}

# All rows by a scan, and some keys by look-ups.
my $ALL = 'SELECT count(*), sum(k), sum(v), (SELECT v FROM t WHERE k = 1), (SELECT v FROM t WHERE k = 4000), (SELECT v FROM t WHERE k = 5) FROM t';

sub contents
{
	my ($s) = @_;
	return join '|', map { $_ // 'null' } @{ $s->rows($ALL)->[0] };
}

my $step = 0;
my %changes = (
	small => sub { "INSERT INTO t VALUES (1, $step), (4000, $step)" },
	large => sub { "INSERT INTO t SELECT i, $step FROM generate_series($step, 3500 + $step) i" },
	removal => sub { 'DELETE FROM t WHERE k % 3 = ' . $step % 3 },
	flush => sub { "SELECT paimon.flush('t')" },
	compaction => sub { "SELECT paimon.compact('t')" },
	truncation => sub { 'TRUNCATE t' });
my @ORDER = qw(large small flush large compaction removal flush small compaction truncation small flush large large compaction);

# Every session sees each change as soon as a new one would.
sub changes
{
	my ($writer, $name, $catch_up, @readers) = @_;

	for my $change (@ORDER)
	{
		$step++;
		my $sql = $changes{$change}->();
		$writer->rows($sql);
		$catch_up->();
		my $want = contents(session_of($writer));
		is(contents($_), $want, "$name: $change, step $step") for @readers;
	}
}

my %node_of;

sub open_on
{
	my ($node) = @_;
	my $s = session($node);

	$node_of{$s} = $node;
	return $s;
}

# A new session on a session's node: it has kept nothing.
sub session_of
{
	my ($s) = @_;
	return session($node_of{$s});
}

my $writer = open_on($primary);
my $reader = open_on($primary);
my $far = open_on($standby);

contents($_) for $reader, $far;
changes($writer, 'streaming', sub { $primary->wait_for_catchup($standby) }, $reader, $far);
contents($reader);
$reader->rows('SELECT paimon.test_manifest_reads()');
contents($reader) for 1 .. 3;
like($reader->value('SELECT paimon.test_manifest_reads()'), qr/^nothing [1-9]/, 'the primary keeps manifests');
$far->rows('SELECT paimon.test_manifest_reads()');
contents($far) for 1 .. 3;
like($far->value('SELECT paimon.test_manifest_reads()'), qr/^nothing 0, version [1-9]\d*, rows 0$/, 'a standby asks for the version each time');

# an old snapshot on the standby
$far->rows('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $old = contents($far);
my $other = open_on($standby);
for my $change (qw(large flush compaction large))
{
	$step++;
	$writer->rows($changes{$change}->());
	$primary->wait_for_catchup($standby);
	is(contents($far), $old, "old snapshot on the standby: $change");
	isnt(contents($other), $old, "new snapshot on the standby: $change");
}
$far->rows('COMMIT');
is(contents($far), contents($other), 'old and new session after that');

# the server of the writer crashes; what was announced is forgotten
$primary->stop('immediate');
$primary->start;
$writer = open_on($primary);
$reader = open_on($primary);
is(contents($reader), contents($far), 'after the crash');
changes($writer, 'after the crash', sub { $primary->wait_for_catchup($standby) }, $reader, $far);

# a session of the standby lives on when that is promoted, and then has writers beside it
$primary->stop;
contents($far);
$standby->promote;
$writer = open_on($standby);
changes($writer, 'after promotion', sub { }, $far, $other);
contents($far);
$far->rows('SELECT paimon.test_manifest_reads()');
contents($far) for 1 .. 3;
like($far->value('SELECT paimon.test_manifest_reads()'), qr/^nothing [1-9]/, 'the promoted standby keeps manifests');
$standby->stop;
done_testing();
