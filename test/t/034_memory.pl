# Memory: a backend's own stays below its write buffer and a constant however much it loads; memtables stay in their share whatever is
# kept alive, and commits never fail for it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->append_conf('postgresql.conf', <<'CONF');
shared_preload_libraries = 'paimon_am'
shared_buffers = '64MB'
autovacuum = off
paimon.memtable_memory = '2MB'
statement_timeout = '300s'
CONF
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

# ----- a long load in a small buffer -----

my $BUFFER = 8;    # MB
my $CONSTANT = 24;
my $file = PostgreSQL::Test::Utils::tempdir() . '/rows';
open(my $out, '>', $file) or die $!;
print $out "$_\tvalue of row $_\t" . ($_ * 7919 % 1000003) . "\n" for 1 .. 1_000_000;
close $out;

# Private pages of a process in kB; shared memory is mapped, not private.
sub private
{
	my ($pid) = @_;
	my $text = eval { slurp_file("/proc/$pid/smaps_rollup") } // return 0;
	return ($text =~ /^Private_Dirty:\s+(\d+)/m)[0];
}

for my $kind ('k int PRIMARY KEY', 'k int')
{
	$node->safe_psql('postgres', qq{DROP TABLE IF EXISTS t; CREATE TABLE t ($kind, t text, n int) USING paimon WITH ("write-buffer-size" = '${BUFFER}mb')});
	my $session = $node->background_psql('postgres', on_error_stop => 0);
	$session->query_until(qr/ready/, "SELECT count(*) FROM t;\n\\echo ready\n");
	my $pid = $node->safe_psql('postgres', q{SELECT pid FROM pg_stat_activity WHERE query LIKE 'SELECT count(*) FROM t%' AND pid <> pg_backend_pid()});
	my ($before, $most, $samples) = (private($pid), 0, 0);
	my $watcher = fork() // die "fork: $!";
	if (!$watcher)
	{
		# Notes the most that was seen until it is told to end.
		my $stop = 0;
		local $SIG{TERM} = sub { $stop = 1 };
		while (!$stop)
		{
			my $now = private($pid);
			$most = $now if $now > $most;
			$samples++;
			select(undef, undef, undef, 0.02);
		}
		open(my $note, '>', "$file.most") or die $!;
		print $note "$most $samples\n";
		close $note;
		require POSIX;
		POSIX::_exit(0);
	}
	$session->query_until(qr/loaded/, "\\copy t FROM '$file'\n\\echo loaded\n");
	kill 'TERM', $watcher;
	waitpid($watcher, 0);
	($most, $samples) = split ' ', slurp_file("$file.most");
	is($node->safe_psql('postgres', 'SELECT count(*), sum(n) FROM t'), $node->safe_psql('postgres',
		'SELECT count(*), sum(i * 7919::bigint % 1000003) FROM generate_series(1, 1000000) i'), "$kind: loaded");
	cmp_ok($samples, '>', 10, "$kind: memory was looked at");
	cmp_ok($most - $before, '<', ($BUFFER + $CONSTANT) * 1024, "$kind: private memory grew by at most the buffer and $CONSTANT MB");
	note(sprintf('%s: %.1f MB before, at most %.1f MB, %d samples', $kind, $before / 1024, $most / 1024, $samples));

	# What is left when it is over.
	$node->safe_psql('postgres', "SELECT pg_log_backend_memory_contexts($pid)");
	$session->query_until(qr/again/, "SELECT 1;\n\\echo again\n");
	my ($total) = slurp_file($node->logfile) =~ /\[$pid\].*Grand total: (\d+) bytes/s;
	cmp_ok($total // 0, '>', 0, "$kind: memory contexts are logged");
	cmp_ok($total // 0, '<', 8 * 1024 * 1024, "$kind: nothing is kept after the commit");
	$session->quit;
}

# ----- memtables: more than fits, and a reader that needs it all -----

$node->safe_psql('postgres', 'CREATE TABLE m (k int PRIMARY KEY, t text) USING paimon; INSERT INTO m VALUES (0, \'first\')');
my $reader = $node->background_psql('postgres', on_error_stop => 0);
$reader->query_until(qr/begun/, "BEGIN ISOLATION LEVEL REPEATABLE READ;\nSELECT count(*) FROM m;\n\\echo begun\n");
my $rows = q{SELECT i, (SELECT string_agg(md5(i || ':' || j), '') FROM generate_series(1, 8) j) FROM generate_series(%d, %d) i};
my $failed = 0;
for my $n (0 .. 29)
{
	my ($rc) = $node->psql('postgres', 'INSERT INTO m ' . sprintf($rows, $n * 1000 + 1, $n * 1000 + 1000));
	$failed++ if $rc != 0;
}
is($failed, 0, 'commits do not fail, whatever the memtables hold');
is($node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM m'), '30001|450015000', 'all rows are there');
my $held = $reader->query_until(qr/seen/, "SELECT 'rows ' || count(*) FROM m;\n\\echo seen\n");
like($held, qr/rows 1$/m, 'the reader sees what it saw');
$node->safe_psql('postgres', q{SELECT paimon.flush('m')});
$held = $reader->query_until(qr/seen/, "SELECT 'rows ' || count(*) FROM m;\n\\echo seen\n");
like($held, qr/rows 1$/m, 'also after a flush');
$reader->quit;
my $size = $node->safe_psql('postgres', q{SELECT pg_size_bytes(current_setting('paimon.memtable_memory'))});
my $used = $node->safe_psql('postgres', q{SELECT coalesce(sum(allocated_size), 0) FROM pg_shmem_allocations WHERE name LIKE 'paimon%memtable%'});
cmp_ok($used, '>', 0, 'memtables have shared memory');
cmp_ok($used, '<=', $size + 64 * 1024, 'of the size that was set');
is($node->safe_psql('postgres', 'SELECT count(*), sum(k) FROM m'), '30001|450015000', 'and all rows are there in the end');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|out of memory|signal (?:6|11|9)\b/, 'nobody died');
done_testing();
