# A user's aggregate function that fails: who writes and who reads is told, other tables go on, restarts change nothing, and the worker goes on by itself when it is mended.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('failures');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\npaimon.naptime = 100ms\npaimon.memtable_memory = 2MB");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION paimon_am;
	CREATE FUNCTION plus(int, int) RETURNS int LANGUAGE plpgsql IMMUTABLE STRICT AS
		$$ BEGIN IF $2 = 0 THEN RAISE EXCEPTION 'nothing is added'; END IF; RETURN $1 + $2; END $$;
	CREATE TABLE broken (k int PRIMARY KEY, n int, pad text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'plus',
		"write-buffer-size" = '64kb', "num-sorted-run.stop-trigger" = 6);
	CREATE TABLE whole (k int PRIMARY KEY, n int, pad text) USING paimon WITH ("merge-engine" = 'aggregation', "fields.n.aggregate-function" = 'sum',
		"write-buffer-size" = '64kb', "num-sorted-run.stop-trigger" = 6);
	INSERT INTO broken VALUES (1000, 1, ''), (1000, 0, '');
});

# A row more in each commit, so that the sum says which have been committed.
sub add
{
	my ($name, $n) = @_;

	return $node->psql('postgres', "INSERT INTO $name SELECT g % 100, $n, repeat('x', 100) FROM generate_series(1, 2000) g", timeout => 120);
}


my ($written, $refused) = (0, '');
for my $i (1 .. 60)
{
	my ($rc, $out, $err) = add('broken', 1);

	$rc == 0 ? $written++ : ($refused = $err);
	is((add('whole', 1))[0], 0, "the other table is written, round $i") if $i % 10 == 0 || $rc != 0;
	last if $rc != 0;
}
like($refused, qr/table "broken" has too many sorted runs.*nothing is added/s, 'writers are told the cause');
cmp_ok($written, '>', 0, 'but could write at first');
ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM paimon.worker_errors WHERE message LIKE '%nothing is added%'}), 'the view shows it');
$node->safe_psql('postgres', q{SELECT paimon.compact('whole')});
is($node->safe_psql('postgres', q{SET enable_seqscan = off; SELECT n FROM broken WHERE k = 5}), 20 * $written, 'other rows can be read by their keys');
my ($rc, $out, $err) = $node->psql('postgres', 'SELECT sum(n) FROM broken');
like($err, qr/nothing is added.*aggregate function public.plus of column "n".*key \(k\)=\(1000\) of table "broken"/s, 'readers are told column and key');

for my $mode ('immediate', 'fast')
{
	$node->stop($mode);
	$node->start;
	ok($node->poll_query_until('postgres', q{SELECT count(*) > 0 FROM paimon.worker_errors WHERE message LIKE '%nothing is added%'}), "and shows it again after a restart ($mode)");
	is($node->safe_psql('postgres', q{SELECT count(*) FROM paimon.verify('broken')}), '0', "nothing is damaged ($mode)");
}

# While it is broken it is protected, and it is mended as any function is.
for my $change ('DROP FUNCTION plus', 'ALTER FUNCTION plus(int, int) VOLATILE')
{
	($rc, $out, $err) = $node->psql('postgres', $change);
	isnt($rc, 0, "refused: $change");
}
$node->safe_psql('postgres', q{ALTER FUNCTION plus RENAME TO "add up";
	CREATE OR REPLACE FUNCTION "add up"(int, int) RETURNS int LANGUAGE sql IMMUTABLE STRICT AS 'SELECT $1 + $2'});
ok($node->poll_query_until('postgres', q{SELECT count(*) = 0 FROM paimon.worker_errors}), 'the worker goes on by itself');
ok($node->poll_query_until('postgres', q{SELECT runs < 6 AND unflushed_bytes = 0 FROM paimon.stats('broken')}), 'and does what it has to do');
is((add('broken', 1))[0], 0, 'the table can be written again');
is($node->safe_psql('postgres', 'SELECT sum(n) FROM broken'), 2000 * ($written + 1) + 1, 'with all rows that were committed');
is($node->safe_psql('postgres', q{SELECT count(*) FROM paimon.verify('broken')}), '0', 'nothing is damaged');
done_testing();
