# Tables that fill the memory of memtables together, each of them far below its own write buffer's size, are flushed all the same.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('pressure');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'paimon_am'\nautovacuum = off\npaimon.memtable_memory = '1MB'\npaimon.max_workers = 1\nstatement_timeout = '120s'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');
my @tables = map { "t$_" } (1 .. 4);
$node->safe_psql('postgres', "CREATE TABLE $_ (k int PRIMARY KEY, v text) USING paimon") for (@tables);
for my $round (1 .. 10)
{
	for my $t (@tables)
	{
		my $from = $round * 1000;
		$node->safe_psql('postgres', "INSERT INTO $t SELECT i, repeat('v', 100) FROM generate_series($from, $from + 499) i");
	}
}
# 2.5 MB of rows, where the default write-buffer-size is 64 MB
ok($node->poll_query_until('postgres', join(' + ', map { "(SELECT count(*) FROM paimon.files('$_'))" } (@tables)) =~ s/^/SELECT 0 < /r),
	'a table was flushed because memory was short');
is($node->safe_psql('postgres', join(' UNION ALL ', map { "SELECT count(*) FROM $_" } (@tables))), join("\n", (5000) x 4), 'all rows are there');
$node->stop;
done_testing();
