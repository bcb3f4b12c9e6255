# More tables than there is room for in shared memory: only those that running transactions use take room, so sessions that stay keep nobody from other tables,
# and a table that had to make room for others is as it was.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $TABLES = 40;
my $ROOM = 16;

my $node = PostgreSQL::Test::Cluster->new('main');
$node->init;
$node->append_conf('postgresql.conf', <<"CONF");
shared_preload_libraries = 'paimon_am'
paimon.max_tables = $ROOM
max_prepared_transactions = 2
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

my @sessions;
for my $n (0 .. 3)
{
	my $s = PaimonWire->connect(host => $node->host, port => $node->port, user => scalar getpwuid($<)) // die "no session";
	$s->rows("SET statement_timeout = '60s'");
	push @sessions, $s;
}

# every session comes by every table, and stays
my $next = 0;
for my $n (1 .. $TABLES)
{
	my $s = $sessions[$next++ % @sessions];
	$s->rows("CREATE TABLE t$n (k int PRIMARY KEY, v int) USING paimon");
	$s->rows("INSERT INTO t$n SELECT i, i FROM generate_series(1, $n) i");
}
for my $round (1 .. 3)
{
	for my $n (1 .. $TABLES)
	{
		my $s = $sessions[$next++ % @sessions];
		$s->rows("UPDATE t$n SET v = v + 1 WHERE k = 1");
		$s->rows("SELECT paimon.flush('t$n')") if $round == 2 && $n % 3 == 0;
	}
	$next++;
}

sub sums
{
	my ($s) = @_;
	return join ',', map { $s->rows("SELECT sum(v) FROM t$_")->[0][0] } 1 .. $TABLES;
}
my $expected = join ',', map { $_ * ($_ + 1) / 2 + 3 } 1 .. $TABLES;
is(sums($sessions[$_]), $expected, "session $_ sees all tables") for 0 .. $#sessions;

# row locks of a table are kept while it makes room, for running transactions and prepared ones
my ($a, $b) = @sessions;
$a->rows('BEGIN');
$a->rows('UPDATE t1 SET v = 0 WHERE k = 1');
$a->rows("PREPARE TRANSACTION 'p'");
$a->rows('BEGIN');
$a->rows('SELECT * FROM t2 WHERE k = 2 FOR UPDATE');
is(sums($b), $expected, 'all tables again');
for my $row ('t1 WHERE k = 1', 't2 WHERE k = 2')
{
	my ($rc, $out, $err) = $node->psql('postgres', "SELECT v FROM $row FOR UPDATE NOWAIT");
	like($err, qr/could not obtain lock on row/, "the lock in $row is there");
}
$a->rows('COMMIT');
$b->rows("COMMIT PREPARED 'p'");
is($a->rows('SELECT v FROM t1')->[0][0], 0, 'the prepared change is there');

# what one transaction uses has to fit
my ($rc, $out, $err) = $node->psql('postgres', 'BEGIN; ' . join('; ', map { "SELECT sum(v) FROM t$_" } 1 .. $ROOM + 1));
like($err, qr/too many paimon tables in use, cannot open table "t1[0-9]"/, 'one transaction that uses too many tables');
is($node->safe_psql('postgres', "SELECT sum(v) FROM t$TABLES"), $TABLES * ($TABLES + 1) / 2 + 3, 'others go on');
is($node->safe_psql('postgres', join '; ', map { "SELECT * FROM paimon.verify('t$_')" } 1 .. $TABLES), '', 'nothing is damaged');
$node->stop;
done_testing();
