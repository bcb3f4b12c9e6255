# H15: memtables are a cache. With memory for a part of the log only, commits succeed and reads are right; two who catch up at once share the work; a memtable may
# be thrown out under a reader. H26: batches larger than one WAL record, logs over many extents.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
# no worker: nothing is flushed but on demand
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'paimon_am'\nautovacuum = off\npaimon.memtable_memory = '1MB'\npaimon.max_workers = 0\nstatement_timeout = '120s'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');
for my $t ('a', 'b', 'c')
{
	$node->safe_psql('postgres', qq{
		CREATE TABLE $t (k int PRIMARY KEY, v int, w text) USING paimon WITH (bucket = 3);
		CREATE TABLE h_$t (k int PRIMARY KEY, v int, w text) USING heap;});
}

# Whether paimon and heap hold the same, by a scan and by keys.
sub same
{
	my ($t, $name) = @_;
	my $differ = $node->safe_psql('postgres', "SELECT count(*) FROM (SELECT * FROM $t EXCEPT ALL SELECT * FROM h_$t) x");
	my $count = $node->safe_psql('postgres', "SELECT (SELECT count(*) FROM $t) - (SELECT count(*) FROM h_$t)");
	my $keys = $node->safe_psql('postgres', qq{
		SET enable_hashjoin = off; SET enable_mergejoin = off; SET enable_seqscan = off;
		SELECT count(*) FROM generate_series(1, 6000, 7) n WHERE (SELECT v FROM $t WHERE k = n) IS DISTINCT FROM (SELECT v FROM h_$t WHERE k = n)});
	is("$differ $count $keys", '0 0 0', $name);
}

# 2.5 MB in one batch: many WAL records, 20 extents, more than all memtables may have.
sub both
{
	my ($t, $sql) = @_;
	$node->safe_psql('postgres', "BEGIN; " . join('; ', map { my $s = $sql; $s =~ s/\bT\b/$_/g; $s } ($t, "h_$t")) . "; COMMIT");
}
both('a', "INSERT INTO T SELECT i, i, repeat(chr(97 + i % 26), 400) FROM generate_series(1, 6000) i");
is($node->safe_psql('postgres', "SELECT count(*) FROM paimon.files('a')"), '0', 'it is in the log');
same('a', 'a batch larger than all memory');

# Small ones on two tables, which want the memory from each other.
for my $round (1 .. 6)
{
	for my $t ('b', 'a')
	{
		both($t, "DELETE FROM T WHERE k % 31 = $round");
		my $from = $round * 500;
		my $to = $from + 1000;
		my $sql = "SELECT i, i * $round, repeat('$round', 300) FROM generate_series($from, $to) i";
		$node->safe_psql('postgres', "BEGIN; INSERT INTO $t $sql; INSERT INTO h_$t $sql ON CONFLICT (k) DO UPDATE SET v = excluded.v, w = excluded.w; COMMIT");
	}
	both('a', "UPDATE T SET v = v + 1 WHERE k % 13 = $round");
}
same('a', 'table a beyond the memory');
same('b', 'table b beyond the memory');

# A reader with a cursor: the memtables it reads are thrown out, flushed and reclaimed under it.
my $reader = $node->background_psql('postgres');
$reader->query_safe("BEGIN ISOLATION LEVEL REPEATABLE READ; DECLARE c CURSOR FOR SELECT k, v FROM b ORDER BY k; FETCH 10 FROM c");
my $expected = $node->safe_psql('postgres', "SELECT count(*), sum(k::bigint * v) FROM (SELECT k, v FROM h_b ORDER BY k OFFSET 10) x");
$reader->query_safe("CREATE TEMP TABLE before AS SELECT k, v FROM b");
for my $round (1 .. 3)
{
	both('b', "DELETE FROM T WHERE k % 17 = $round");
	$node->safe_psql('postgres', "SELECT paimon.flush('b')");
	both('a', "UPDATE T SET w = w || 'x' WHERE k % 11 = $round");
	$node->safe_psql('postgres', 'SELECT count(*) FROM a');
	$node->safe_psql('postgres', 'VACUUM b');
}
$reader->query_safe(q{
	CREATE TEMP TABLE rest (k int, v int);
	DO $$ DECLARE c refcursor := 'c'; r record; BEGIN LOOP FETCH c INTO r; EXIT WHEN NOT FOUND; INSERT INTO rest VALUES (r.k, r.v); END LOOP; END $$;});
is($reader->query_safe("SELECT count(*), sum(k::bigint * v) FROM rest"), $expected, 'a cursor goes on over memtables that are gone');
is($reader->query_safe("SELECT count(*) FROM (SELECT k, v FROM b EXCEPT SELECT k, v FROM before) x"), '0', 'so does its transaction');
is($reader->query_safe("SELECT (SELECT count(*) FROM b) - (SELECT count(*) FROM before)"), '0', 'and nothing is missing');
$reader->query_safe('COMMIT');
same('b', 'table b as it is now');

# Many small batches, some slices of them, which fit.
both('c', join('; ', map { my $from = $_ * 100; my $to = $from + 80; "INSERT INTO T SELECT i, i, repeat('c', 150) FROM generate_series($from, $to) i" } ($_))) for (1 .. 30);
same('c', 'small batches');

# After a crash nothing is indexed. Two catch up at once: the first is stopped between two slices, the second does what is left.
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', "SELECT paimon.stop_arm('catch_up_slice', 'wait', skip => 1)");
my $first = $node->background_psql('postgres');
$first->query_until(qr/begun/, "\\echo begun\nSELECT 'sum ' || count(*) FROM c;\n");
ok($node->poll_query_until('postgres', "SELECT paimon.stop_waiting('catch_up_slice') = 1"), 'the first waits between slices');
same('c', 'another catches up meanwhile');
$node->safe_psql('postgres', "SELECT paimon.stop_release('catch_up_slice')");
my $n = $node->safe_psql('postgres', 'SELECT count(*) FROM h_c');
like($first->query_safe('SELECT 1'), qr/sum $n\b/, 'and the first is right too');
same('b', 'table b after a crash');

# An error in the middle of catching up leaves what is there usable.
$node->stop('immediate');
$node->start;
$node->safe_psql('postgres', "SELECT paimon.stop_arm('catch_up_slice', 'error', skip => 2)");
my ($rc, $out, $err) = $node->psql('postgres', 'SELECT count(*) FROM c');
like($err, qr/injected error/, 'an error while catching up');
same('c', 'the next one goes on');
same('a', 'table a after a crash');
$node->safe_psql('postgres', "SELECT paimon.flush('a'), paimon.flush('b')");
same('a', 'table a after a flush');
same('b', 'table b after a flush');
$reader->quit;
$first->quit;
$node->stop;
done_testing();
