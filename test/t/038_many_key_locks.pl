# H16: an UPDATE of a million rows with the smallest table of key locks. It does not fail for want of room; meanwhile others read, refer to its rows and write other
# tables; when it has ended, in whichever way, all keys are free.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PaimonWire;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('many');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'paimon_am'\nautovacuum = off\npaimon.max_key_locks = 16384\nstatement_timeout = '500s'\nfsync = off");
$node->start;
my $rows = 1000000;
$node->safe_psql('postgres', qq{
	CREATE EXTENSION paimon_am;
	CREATE TABLE t (k int PRIMARY KEY, v int) USING paimon WITH (bucket = 4);
	CREATE TABLE u (k int PRIMARY KEY, v int) USING paimon;
	INSERT INTO t SELECT i, 0 FROM generate_series(1, $rows) i;
	INSERT INTO u SELECT i, 0 FROM generate_series(1, 1000) i;
});

my %where = (host => $node->host, port => $node->port, user => scalar getpwuid($<));
my ($many, $other) = map { PaimonWire->connect(%where) } 1 .. 2;
$other->rows("SET lock_timeout = '200ms'");

sub outcome
{
	my ($sql) = @_;
	my $result = $other->query($sql);
	return $result->{error} ? $result->{error}{C} : $result->{tag};
}

for my $case ([ 'ROLLBACK', 50000 ], [ 'ROLLBACK TO a', 50000 ], [ 'COMMIT', $rows ])
{
	my ($end, $n) = @$case;
	$many->rows('BEGIN; SAVEPOINT a');
	my $result = $many->query("UPDATE t SET v = v + 1 WHERE k <= $n");
	is($result->{error} ? $result->{error}{M} : $result->{tag}, "UPDATE $n", "$n rows ($end)");
	is($other->value('SELECT count(*) || \' \' || sum(v) FROM t'), "$rows 0", 'others read');
	is(outcome('SELECT v FROM t WHERE k = 5 FOR KEY SHARE'), 'SELECT 1', 'KEY SHARE');
	is(outcome('UPDATE t SET v = 9 WHERE k = 5'), '55P03', 'a row of it is locked');
	is(outcome('INSERT INTO t VALUES (-5, 0)'), '55P03', 'so are keys that are not there: whole buckets are');
	is(outcome('UPDATE u SET v = v + 1'), 'UPDATE 1000', 'another table');
	$many->rows($end);
	is(outcome('BEGIN; UPDATE t SET v = v + 1 WHERE k % 100000 = 0; ROLLBACK'), 'ROLLBACK', "free after $end");
	$many->rows('COMMIT') if $end =~ /TO/;
}
is($other->value('SELECT count(*) || \' \' || sum(v) FROM t'), "$rows $rows", 'the rows');
is($node->safe_psql('postgres', q{SELECT count(*) FROM paimon.verify('t')}), '0', 'verify');
$node->stop;
done_testing();
