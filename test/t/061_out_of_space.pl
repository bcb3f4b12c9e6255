# No space left: flush, compaction and large commits fail with an error that says so, nothing is lost or left behind, and work goes on by itself when there
# is space again.  The table is in a tablespace on a small file system of its own; where that cannot be mounted (no user namespaces), a limit for the size of
# files takes its place.
use strict;
use warnings;
my ($MB, $space);

# Mounted in a namespace of this test only, which is gone with it; the server is not to see itself as root.  Before the modules redirect the output.
BEGIN
{
	$MB = 1024 * 1024;
	$space = ($ENV{TESTDATADIR} // '.') . '/small_space';
	if (!$ENV{PAIMON_SMALL_SPACE})
	{
		mkdir $space;
		my $ids = sprintf '--map-user=%d --map-group=%d', $<, (split / /, $()[0];
		my $mount = "mount -t tmpfs -o size=16m,mode=0700 tmpfs '$space'";
		if (system("unshare -Urm sh -c \"$mount && exec unshare -U $ids test -w '$space'\" >/dev/null 2>&1") == 0)
		{
			local $ENV{PAIMON_SMALL_SPACE} = 'mounted';
			exec 'unshare', '-Urm', 'sh', '-c', "$mount && exec unshare -U $ids '$^X' '$0'" or die "exec: $!";
		}
	}
}
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $mounted = ($ENV{PAIMON_SMALL_SPACE} // '') eq 'mounted';
note($mounted ? 'a file system of 16 MB' : 'files of at most 12 MB');

my $node = PostgreSQL::Test::Cluster->new('space');
# Small segments of WAL are below the limit of files.
$node->init(extra => [ '--wal-segsize=1' ]);
$node->append_conf('postgresql.conf', <<EOC);
shared_preload_libraries = 'paimon_am'
autovacuum = off
statement_timeout = '60s'
paimon.naptime = 50
work_mem = '64MB'
EOC
$node->start;
my $db = 'postgres';
my $where = '';
$node->safe_psql($db, 'CREATE EXTENSION paimon_am');
if ($mounted)
{
	mkdir "$space/data" or die "$space: $!";
	$node->safe_psql($db, "CREATE TABLESPACE small LOCATION '$space/data'");
	$where = 'TABLESPACE small';
}

sub sql { my ($text) = @_; return $node->safe_psql($db, $text); }
sub sum { my ($name) = @_; return sql("SELECT count(*), sum(a), md5(string_agg(b, '' ORDER BY a)) FROM $name"); }
sub clean { my ($what) = @_; return is(sql("SELECT severity, object, problem FROM paimon.verify('t')"), '', $what); }

sub until_true
{
	my ($text, $what) = @_;
	my $until = time() + 90;
	my $result = '';
	while (time() < $until && $result ne 't') { $result = sql($text) }
	is($result, 't', $what);
	return;
}

# No more space than the table has now and some more, and as much as there is.
my $limit = 12 * $MB;
sub processes
{
	my $data = $node->data_dir;
	return grep { (readlink("/proc/$_/cwd") // '') eq $data } map { m,^/proc/(\d+)$, } glob '/proc/[0-9]*';
}

sub fill
{
	my ($leave) = @_;
	if ($mounted)
	{
		# df's fourth column: kilobytes that are free
		my $free = (split ' ', (split /\n/, `df -k '$space'`)[-1])[3] * 1024 - $leave;
		open(my $file, '>:raw', "$space/filler") or die "filler: $!";
		print $file 'x' x $free if $free > 0;
		close($file) or die "filler: $!";
		return;
	}
	my $size = sql(q{SELECT pg_relation_size('t')}) + $leave;
	system('prlimit', "--pid=$_", "--fsize=$size:") for processes();
	return;
}

sub empty
{
	if ($mounted) { unlink "$space/filler" or die "filler: $!" }
	else { system('prlimit', "--pid=$_", '--fsize=unlimited:') for processes() }
	return;
}

my $full = qr/could not (?:extend|write to) file|No space left|File too large/;
my $wide = q{(SELECT string_agg(md5(i || ' ' || j), '') FROM generate_series(1, 8) j)};
sql(qq{CREATE TABLE t (a int PRIMARY KEY, b text) USING paimon
	WITH ("write-buffer-size" = '1 mb', "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1, "write-only" = true) $where});
sql("INSERT INTO t SELECT i, $wide FROM generate_series(1, 10000) i");
sql("INSERT INTO t SELECT i, $wide || 'x' FROM generate_series(1, 10000, 2) i");
sql("SELECT paimon.compact('t')");
sql("SELECT paimon.test_sweep('t')") for 1 .. 3;
my $want = sum('t');

# ---- a large commit ----

fill($MB / 2);
my ($rc, $out, $err) = $node->psql($db, "INSERT INTO t SELECT i, $wide FROM generate_series(20000, 60000) i");
isnt($rc, 0, 'a large commit without space fails');
like($err, $full, 'saying why');
is(sum('t'), $want, 'the table is as it was');
clean('and whole');
# Its own space comes back while there is no other.
until_true("SELECT paimon.test_sweep('t') AND paimon.test_storage_usage('t') ~ ('^' || (SELECT sum((file_size_in_bytes + 131071) / 131072) FROM paimon.files('t')) + 1 || ' used')",
	'what it had written is free again');
is((eval { sql("INSERT INTO t VALUES (-1, 'small')"); 1 } // 0), 1, 'small commits go on as long as there is some');
empty();
sql("INSERT INTO t SELECT i, $wide FROM generate_series(20000, 21000) i");
$want = sum('t');

# ---- a compaction that has no space for what it writes; its own comes back at once ----

# The fork has no free extents to speak of.
for (my $i = 22000; sql("SELECT paimon.test_storage_usage('t')") =~ /(\d+) free/ && $1 > 4; $i += 500)
{
	sql("INSERT INTO t SELECT i, $wide FROM generate_series($i, $i + 499) i; SELECT paimon.flush('t')");
}
$want = sum('t');
sql("SELECT paimon.flush('t')");
my $runs = sql(q{SELECT string_agg(level || ':' || runs, ' ' ORDER BY level) FROM paimon.levels('t')});
like($runs, qr/^0:[1-9]/, 'there is something to merge');
fill($MB / 4);
($rc, $out, $err) = $node->psql($db, "SELECT paimon.compact('t')");
isnt($rc, 0, 'a compaction without space fails');
like($err, qr/background work on table "t" failed.*$full/s, 'saying why');
like(sql(q{SELECT outcome, error FROM paimon.compaction_history WHERE relid = 't'::regclass ORDER BY id DESC LIMIT 1}), qr/^failed\|.*$full/, 'as the history does');
is(sql(q{SELECT string_agg(level || ':' || runs, ' ' ORDER BY level) FROM paimon.levels('t')}), $runs, 'nothing was changed');
is(sum('t'), $want, 'all rows are there');
until_true("SELECT paimon.test_sweep('t') AND paimon.test_storage_usage('t') ~ ('^' || (SELECT sum((file_size_in_bytes + 131071) / 131072) FROM paimon.files('t')) + 1 || ' used')",
	'what it had written is free again');
empty();

# ---- small commits until there is no space for the log ----

fill(0);
my $n = 0;
while ($n < 40)
{
	($rc, $out, $err) = $node->psql($db, "INSERT INTO t SELECT i, $wide FROM generate_series(30000 + $n * 300, 30299 + $n * 300) i");
	last if $rc != 0;
	$n++;
}
cmp_ok($n, '<', 40, "after $n small commits there is no space");
like($err, $full, 'saying why');
is(sql('SELECT count(*) FROM t WHERE a >= 30000'), $n * 300, 'exactly the others are there');
clean('and whole');

# ---- a flush and a compaction ----

$want = sum('t');
($rc, $out, $err) = $node->psql($db, "SELECT paimon.compact('t')");
like($err, qr/background work on table "t" failed.*$full/s, 'a compaction without space says why') or diag($err);
isnt($rc, 0, 'and fails');
is(sql(qq{SELECT "table", sqlstate FROM paimon.worker_errors LIMIT 1}), $mounted ? 't|53100' : sql('SELECT \'t\', sqlstate FROM paimon.worker_errors LIMIT 1'), 'the view says so') or diag(sql('TABLE paimon.worker_errors'));
is(sum('t'), $want, 'all rows are there');
clean('and whole');
sql('ALTER TABLE t RESET ("write-only")');
$node->restart;
is(sum('t'), $want, 'also after a restart without space') if $mounted;

# ---- space again: nobody asks for anything ----

empty();
until_true(q{SELECT count(*) = 0 FROM paimon.worker_errors}, 'failures are forgotten');
sql("INSERT INTO t SELECT i, $wide || 'again' FROM generate_series(1, 3000) i") for 1 .. 2;
until_true(q{SELECT runs < 6 AND unflushed_bytes < 1500000 FROM paimon.stats('t')}, 'work goes on');
sql("UPDATE t SET b = b || 'last' WHERE a <= 3000");
$want = sum('t');
sql("SELECT paimon.compact('t')");
is(sum('t'), $want, 'all rows are there');
is(sql("SELECT string_agg(level || ':' || runs, ' ') FROM paimon.levels('t')"), '2:1', 'in one run');
clean('and whole');
until_true("SELECT paimon.test_sweep('t') AND paimon.test_storage_usage('t') ~ ('^' || (SELECT sum((file_size_in_bytes + 131071) / 131072) FROM paimon.files('t')) + 1 || ' used')",
	'no space is lost');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP|signal (?:6|11)\b/, 'no panic');
done_testing();
