# The README's list of refusals: each statement, on the tables that it says, gives that SQLSTATE and message.  The list is taken from README.md itself.
# And the other way round: what the sources refuse with 0A000 is in the list, or below with the reason why no single statement shows it.
use strict;
use warnings;
use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $src = $ENV{PAIMON_SRC} or die 'PAIMON_SRC is not set';

# Refused, but not by a statement on a fresh table: the beginning of the message, and when it comes.
my %elsewhere = (
	'cannot read temporary table' => 'of another session; t/013_worker.pl',
	'cannot %s temporary table' => 'of another session',
	'cannot write to temporary table' => 'by a deferred trigger at COMMIT',
	'table "%s" cannot have this kind of index' => 'no such index can be made',
	'cannot create index "%s" on table' => 'refused earlier, with another message',
	'primary key of paimon table "%s" cannot use access method' => 'no other access method has primary keys',
	'cannot drop column "%s" of paimon table "%s" because of its type' => 'together with a type that a library defines',
	'column "%s" of table "%s" has type %s, which tables using access method paimon cannot store' => 'types without binary form',
	'column "%s" of table "%s" with type %s cannot be in the key' => 'refused when the table is made',
	'column "%s" of type %s cannot be a bucket key' => 'all types of keys can be',
	'table "%s" has keys of encoding version' => 'tables of newer versions',
	'table "%s" was written by a newer version' => 'tables of newer versions',
	'type %s cannot be in a key' => 'of a testing build only',
	'option "%s" is not supported for paimon table' => 'options that never can be',
	'cannot change access method of partitioned table "%s" because it has a primary key' => 'from 17 on',
	'cannot flush table' => 'isolation levels above READ COMMITTED; sql/flush.sql',
	'cannot compact table' => 'isolation levels above READ COMMITTED; sql/compact.sql',
	'cannot leave out a row of table' => 'triggers on a table with ignore-delete; sql/engines.sql',
	'ON CONFLICT is not supported for partitioned table' => 'partitions with different merge engines; sql/engines.sql',
	'ON CONFLICT DO UPDATE of all columns' => 'row security with a merge engine; sql/engines.sql',
	'publication "%s" does not publish' => 'a warning; sql/publications.sql',
);

sub slurp
{
	open(my $in, '<:encoding(UTF-8)', $_[0]) or die "$_[0]: $!";
	local $/ = undef;
	return <$in>;
}

my $readme = slurp("$src/README.md");
my ($section) = $readme =~ /^### Refusals\n(.*?)^##/ms or die 'README.md has no section "Refusals"';
my ($setup) = $section =~ /^```sql\n(.*?)^```/ms or die 'the section has no statements that make its tables';
my @rows = $section =~ /^\| `(.*)` \| `(\w{5})` \| `(.*)` \|$/mg;
my $lines = () = $section =~ /^\| `/mg;
is(scalar(@rows), $lines * 3, 'each line of the list has statement, SQLSTATE and message');
cmp_ok($lines, '>', 30, 'there is a list');

my $node = PostgreSQL::Test::Cluster->new('refusals');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nmax_prepared_transactions = 5\nfsync = off\nwal_level = logical");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

my @listed;
while (@rows)
{
	my ($sql, $sqlstate, $message) = splice(@rows, 0, 3);
	my $err = '';

	push @listed, $message;
	$node->safe_psql('postgres', "SET client_min_messages = error; DROP PUBLICATION IF EXISTS c; DROP SCHEMA public CASCADE; "
		. "CREATE SCHEMA public; $setup");
	$node->psql('postgres', "\\set VERBOSITY verbose\n" . join(";\n", split(/; /, $sql)) . ';',
		stderr => \$err, on_error_stop => 1, timeout => 120);
	my ($got) = $err =~ /ERROR:  (.*)/;
	# 17 and up make indexes under a search_path of their own, where names of types come with their schema
	$got =~ s/of type \Kpublic\.//;
	is($got, "$sqlstate: $message", $sql);
}

# ---- nothing is refused that is not listed ----

my @refused;
find({ no_chdir => 1, wanted => sub {
	return unless /\.c$/;
	my $text = slurp($_);
	(my $file = $_) =~ s,^\Q$src\E/,,;
	while ($text =~ /errcode\(ERRCODE_FEATURE_NOT_SUPPORTED\),\s*errmsg\("((?:[^"\\]|\\.)*)"/g)
	{
		(my $message = $1) =~ s/\\"/"/g;
		push @refused, [$file, $message];
	}
} }, "$src/src");
cmp_ok(scalar(@refused), '>', 20, 'refusals were found in the sources');

my @unlisted;
for my $refused (@refused)
{
	my ($file, $message) = @$refused;
	my $pattern = join('.*', map { quotemeta } split(/%\w+/, $message, -1));

	next if grep { /^$pattern$/ } @listed;
	next if grep { index($message, $_) == 0 } keys %elsewhere;
	push @unlisted, "$file: $message";
}
is(join("\n", @unlisted), '', 'what the sources refuse is in the README\'s list of refusals');

$node->stop;
done_testing();
