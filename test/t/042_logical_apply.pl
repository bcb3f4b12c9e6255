# A subscriber applies changes of heap tables to paimon tables: rows are found by the primary key, or by a scan of the whole table where it has none to look up.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $publisher = PostgreSQL::Test::Cluster->new('publisher');
$publisher->init(allows_streaming => 'logical');
$publisher->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'");
$publisher->start;
my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
$subscriber->init;
$subscriber->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nmax_prepared_transactions = 5");
$subscriber->start;
$subscriber->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

my %tables = (
	by_key => 'a int, b text, v int, filler text, PRIMARY KEY (a, b)',
	one => 'a bigint PRIMARY KEY, b text, v int, filler text',
	everything => 'a int, b text, v int, filler text');
for my $name (sort keys %tables)
{
	$publisher->safe_psql('postgres', "CREATE TABLE $name ($tables{$name})");
	$publisher->safe_psql('postgres', "ALTER TABLE $name REPLICA IDENTITY FULL") if $name eq 'everything';
	$publisher->safe_psql('postgres', "INSERT INTO $name SELECT g, 'b' || g, g, repeat('x', 200) FROM generate_series(1, 1000) g");
	# Keys that the publisher does not know: still found by the whole old row.
	my $columns = $name eq 'everything' ? 'a int, b text, v int, filler text, PRIMARY KEY (b)' : $tables{$name};
	$subscriber->safe_psql('postgres', "CREATE TABLE $name ($columns) USING paimon WITH (bucket = 2)");
}
$publisher->safe_psql('postgres', 'CREATE PUBLICATION p FOR ALL TABLES');
my $connection = $publisher->connstr . ' dbname=postgres';
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');

sub same
{
	my $what = shift;

	$publisher->wait_for_catchup('s');
	for my $name (sort keys %tables)
	{
		my $query = "SELECT count(*), sum(hashtext(t::text)::bigint) FROM $name t";
		is($subscriber->safe_psql('postgres', $query), $publisher->safe_psql('postgres', $query), "$what: $name");
	}
	return;
}

sub change
{
	my $first = shift;

	for my $name (sort keys %tables)
	{
		$publisher->safe_psql('postgres', "UPDATE $name SET v = -v WHERE a BETWEEN $first AND $first + 20");
		$publisher->safe_psql('postgres', "DELETE FROM $name WHERE a BETWEEN $first + 10 AND $first + 12");
		$publisher->safe_psql('postgres', "UPDATE $name SET a = a + 5000, b = b || ' moved' WHERE a = $first + 5");
		$publisher->safe_psql('postgres', "BEGIN; INSERT INTO $name VALUES (10000 + $first, 'new $first', 1, 'y'); "
			. "UPDATE $name SET v = 2 WHERE a = 10000 + $first; DELETE FROM $name WHERE a = $first; COMMIT");
	}
	return;
}

same('copied');
change(1);
same('in the log');
$subscriber->safe_psql('postgres', "SELECT paimon.flush('$_')") for sort keys %tables;
change(101);
same('in files');

# A row that the subscriber has already is replaced, as by any INSERT.
$subscriber->safe_psql('postgres', "INSERT INTO by_key VALUES (20000, 'local', 1, 'local'); DELETE FROM by_key WHERE a = 400; UPDATE one SET v = 1234 WHERE a = 400");
$publisher->safe_psql('postgres', q{INSERT INTO by_key VALUES (20000, 'local', 2, 'remote')});
# And one that it has no more stays away.
$publisher->safe_psql('postgres', 'UPDATE by_key SET v = 0 WHERE a = 400; DELETE FROM by_key WHERE a = 400; UPDATE one SET v = 0 WHERE a = 400');
$publisher->wait_for_catchup('s');
same('over local changes');

# The subscriber's own transaction has changed the row and goes first: the worker waits for it, and writes after it.
my $other = $subscriber->background_psql('postgres');
$other->query_safe('BEGIN; UPDATE by_key SET v = 777 WHERE a = 300');
$publisher->safe_psql('postgres', 'UPDATE by_key SET v = 888 WHERE a = 300');
ok($subscriber->poll_query_until('postgres', q{
	SELECT count(*) > 0 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
	WHERE NOT l.granted AND a.backend_type LIKE 'logical replication%worker'}), 'the worker waits for a local writer');
$other->query_safe('COMMIT');
$other->quit;
same('after a local writer');

$publisher->safe_psql('postgres', 'TRUNCATE one');
same('truncated');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');

# FOR ALL TABLES publishes the manifest of a publisher that has the extension, too: the copy and all changes of it are left out.
my @manifest = qw(storage log file snapshot);
my $elsewhere = 'CREATE TABLE elsewhere (k int PRIMARY KEY, v text) USING paimon';
my $written = q{INSERT INTO elsewhere SELECT g, 'x' FROM generate_series(1, 100) g; SELECT paimon.flush('elsewhere')};
$publisher->safe_psql('postgres', "CREATE EXTENSION paimon_am; $elsewhere");
$publisher->safe_psql('postgres', $written);
$subscriber->safe_psql('postgres', $elsewhere);
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p");
$subscriber->wait_for_subscription_sync($publisher, 's');
my $foreign = $publisher->safe_psql('postgres', 'SELECT storage_id FROM paimon.storage');

sub no_foreign_rows
{
	my $what = shift;

	for my $name (@manifest)
	{
		my $query = "SELECT count(*) > 0 FROM paimon.$name WHERE storage_id = $foreign";
		is($publisher->safe_psql('postgres', $query), 't', "$what: there are rows of paimon.$name to be published");
		is($subscriber->safe_psql('postgres', $query), 'f', "$what: none of them is in the subscriber's manifest");
	}
	return;
}

no_foreign_rows('copied');
$publisher->safe_psql('postgres', $written) for 1, 2;
$publisher->safe_psql('postgres', q{SELECT paimon.compact('elsewhere')});
$publisher->safe_psql('postgres', q{INSERT INTO one VALUES (1, 'after', 1, 'x')});
same('after the manifest has changed');
no_foreign_rows('applied');
$subscriber->safe_psql('postgres', "SELECT paimon.flush('$_')") for sort keys %tables;
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
for my $name (@manifest)
{
	my ($rc, $out, $err) = $subscriber->psql('postgres',
		"SET session_replication_role = replica; UPDATE paimon.$name SET storage_id = storage_id RETURNING 1; DELETE FROM paimon.$name RETURNING 1");
	is("$rc $out $err", '0  ', "a row of paimon.$name that is the subscriber's own stays");
}

# Under the merge engines inserts are merged, updates replace, and deletes that have no effect do not stop the worker.
my %engines = (
	sums => q{"merge-engine" = 'aggregation', "fields.v.aggregate-function" = 'sum', "ignore-delete" = true},
	parts => q{"merge-engine" = 'partial-update'},
	firsts => q{"merge-engine" = 'first-row', "ignore-delete" = true});
for my $name (sort keys %engines)
{
	$publisher->safe_psql('postgres', "CREATE TABLE $name (k int PRIMARY KEY, v int, x text)");
	$subscriber->safe_psql('postgres', "CREATE TABLE $name (k int PRIMARY KEY, v int, x text) USING paimon WITH ($engines{$name}); INSERT INTO $name VALUES (1, 100, 'here')");
}
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION s CONNECTION '$connection' PUBLICATION p WITH (copy_data = false)");
$publisher->safe_psql('postgres', "INSERT INTO $_ VALUES (1, 1, NULL), (2, 2, 'b'), (3, 3, 'c')") for sort keys %engines;
$publisher->safe_psql('postgres', "UPDATE $_ SET v = 7, x = NULL WHERE k = 2") for qw(sums parts);
$publisher->safe_psql('postgres', "DELETE FROM $_ WHERE k = 3") for sort keys %engines;
$publisher->safe_psql('postgres', "INSERT INTO $_ VALUES (3, 4, NULL)") for sort keys %engines;
$publisher->wait_for_catchup('s');
sub rows_of { return $subscriber->safe_psql('postgres', "SELECT string_agg(t::text, ' ' ORDER BY k) FROM $_[0] t"); }
is(rows_of('sums'), '(1,101,here) (2,7,) (3,7,c)', 'sums are applied, and deletes left out');
is(rows_of('parts'), '(1,1,here) (2,7,) (3,4,)', 'partial rows are applied');
is(rows_of('firsts'), '(1,100,here) (2,2,b) (3,3,c)', 'first rows are applied');
$subscriber->safe_psql('postgres', 'DROP SUBSCRIPTION s');
is($subscriber->safe_psql('postgres', "SELECT count(*) FROM paimon.verify('one')"), '0', 'nothing is damaged');
done_testing();
