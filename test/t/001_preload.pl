# Without shared_preload_libraries the extension refuses, and says what to put where.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('preload');
$node->init;
$node->start;

# Result code and error output of a statement that ought to fail.
sub refused
{
	my ($sql, $user) = @_;
	my ($rc, $out, $err) =
	  $node->psql('postgres', $sql, on_error_stop => 1, defined $user ? (extra_params => [ '-U', $user ]) : ());
	return ($rc, $err);
}

my ($rc, $err) = refused('CREATE EXTENSION paimon_am');
is($rc, 3, 'refused while shared_preload_libraries is empty');
like($err, qr/ERROR:\s+paimon_am must be loaded via shared_preload_libraries/, 'message');
like($err, qr/DETAIL:\s+shared_preload_libraries is currently empty\./, 'detail');
like($err,
	qr/HINT:\s+Put shared_preload_libraries = 'paimon_am' into postgresql\.conf and restart the server\./, 'hint');
is($node->safe_psql('postgres', q{SELECT count(*) FROM pg_namespace WHERE nspname = 'paimon'}),
	'0', 'nothing is left behind');

# The hint keeps the libraries that are there already.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'auto_explain'");
$node->restart;
($rc, $err) = refused('CREATE EXTENSION paimon_am');
is($rc, 3, 'refused with another library preloaded');
like($err, qr/DETAIL:\s+shared_preload_libraries is currently 'auto_explain'\./, 'detail with the other library');
like($err, qr/HINT:\s+Put shared_preload_libraries = 'auto_explain,paimon_am' into postgresql\.conf/,
	'hint with the other library');

# Loading it into one session is harmless, and no way in.
($rc, $err) = refused("LOAD 'paimon_am'; CREATE EXTENSION paimon_am");
is($rc, 3, 'refused after LOAD');
like($err, qr/must be loaded via shared_preload_libraries/, 'message after LOAD');

# What the hint says works.
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'auto_explain,paimon_am'");
$node->restart;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');
is($node->safe_psql('postgres', q{SELECT extversion FROM pg_extension WHERE extname = 'paimon_am'}),
	'0.1', 'installed after following the hint');

# An installation whose server lost the setting says so too, instead of working without shared memory.
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
($rc, $err) = refused('SELECT paimon.check_preload()');
like($err, qr/must be loaded via shared_preload_libraries/, 'an existing extension asks for the setting');

$node->stop;

# The single-user server of a new cluster gives tables OIDs that no other has: they are ours all the same.
my $single = PostgreSQL::Test::Cluster->new('single');
$single->init;
$single->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'");
my ($out, $errors);
run_log(
	[ 'postgres', '--single', '-D', $single->data_dir, 'postgres' ],
	'<',
	\"CREATE EXTENSION paimon_am;\nCREATE TABLE t (k int PRIMARY KEY, v text) USING paimon;\nINSERT INTO t VALUES (1, 'a'), (1, 'b');\n",
	'>', \$out, '2>', \$errors);
unlike($errors, qr/ERROR/, 'single-user server: no error');
$single->start;
is( $single->safe_psql('postgres', q{SELECT amname, (SELECT v FROM t WHERE k = 1) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE relname = 't_pkey'}),
	'paimon_key|b', 'single-user server: the table and its key');
$single->stop;
done_testing();
