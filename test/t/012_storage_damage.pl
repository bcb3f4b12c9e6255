# Bytes changed on disk: an error that names the table, never a crash, never another content.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $seed = $ENV{SEED} // int(time());
note "seed $seed";
srand($seed);

my $node = PostgreSQL::Test::Cluster->new('damage');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nautovacuum = off");
$node->start;
$node->safe_psql('postgres', <<'SQL');
CREATE EXTENSION paimon_am;
CREATE ACCESS METHOD bare_storage TYPE TABLE HANDLER paimon.test_storage_handler;
CREATE TABLE t (a int) USING bare_storage;
SELECT paimon.test_storage_append('t', 3000, 60, 1);
SELECT paimon.test_storage_append('t', 150000, 1, 1);
SELECT paimon.test_storage_write('t', 400000, 3);
SQL
my $read = q{SELECT paimon.test_storage_log('t') || paimon.test_storage_check('t', 16, 400000, 3)};
my $want = $node->safe_psql('postgres', $read);
my $path = $node->data_dir . '/' . $node->safe_psql('postgres', q{SELECT pg_relation_filepath('t')});
$node->stop;
my $size = -s $path;

# Changes the byte at an offset; gives what it was.
sub change_byte
{
	my ($offset, $change) = @_;
	open(my $fh, '+<:raw', $path) or die "open: $!";
	sysseek($fh, $offset, 0);
	sysread($fh, my $byte, 1) == 1 or die "read: $!";
	sysseek($fh, $offset, 0);
	syswrite($fh, chr(ord($byte) ^ $change)) == 1 or die "write: $!";
	close($fh);
	return;
}

# Where to hit: header fields, payload and special space of each kind of page, and anywhere.
my $special = 8192 - 40;
my @offsets = (
	10, 12, 16, 24, 30, 40, 70, $special, $special + 28,    # metapage
	(map { 8192 + $_ } (12, 24, 28, 32, 56, 4000, $special + 16)),    # map page
	(map { 2 * 8192 + $_ } (12, 24, 28, 32, 40, 5000, $special + 8, $special + 24, $special + 28, $special + 32)));    # log
push @offsets, int(rand($size)) for 1 .. 15;

my $errors = 0;
for my $offset (@offsets)
{
	my $change = 1 + int(rand(255));
	change_byte($offset, $change);
	$node->start;
	my ($rc, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$read", on_error_stop => 1);
	my $where = sprintf('block %d, byte %d', $offset / 8192, $offset % 8192);
	if ($rc == 0)
	{
		# Harmless, or in a file's payload, which is checked by its reader.
		(my $without = $out) =~ s/(true|false)$/true/;
		is($without, $want, "$where: the same log");
	}
	else
	{
		$errors++;
		like($err, qr/XX001: .*(table "t"|relation)/, "$where: reported as damage");
	}
	$node->stop;
	change_byte($offset, $change);
}
cmp_ok($errors, '>=', 15, 'most were noticed');
$node->start;
is($node->safe_psql('postgres', $read), $want, 'sound again');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|terminated by signal/, 'nothing crashed');
done_testing();
