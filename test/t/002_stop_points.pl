# The stop points themselves: a test that arms one must be able to rely on it.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('stop');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nrestart_after_crash = on");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION paimon_am');

my ($rc, $out, $err) = $node->psql('postgres', q{SELECT paimon.stop_arm('x', 'nonsense')});
is($rc, 3, 'an unknown action is refused');
like($err, qr/unrecognized stop point action "nonsense"/, 'and named');

# paimon.check_preload() has the stop point check_preload.
my $point = 'check_preload';
my $hit = 'SELECT paimon.check_preload()';

is($node->safe_psql('postgres', "SELECT paimon.stop_hits('$point')"), '0', 'nothing counted when not armed');
$node->safe_psql('postgres', "SELECT paimon.stop_arm('$point', 'count', times => 0)");
$node->safe_psql('postgres', "$hit; $hit");
is($node->safe_psql('postgres', "SELECT paimon.stop_hits('$point')"), '2', 'hits are counted');
$node->safe_psql('postgres', "SELECT paimon.stop_release('$point')");
$node->safe_psql('postgres', $hit);
is($node->safe_psql('postgres', "SELECT paimon.stop_hits('$point')"), '2', 'and no longer after release');

# error: one shot, after one skipped hit.
$node->safe_psql('postgres', "SELECT paimon.stop_arm('$point', 'error', skip => 1)");
is($node->psql('postgres', $hit), 0, 'the skipped hit passes');
($rc, $out, $err) = $node->psql('postgres', $hit);
is($rc, 3, 'the next one fails');
like($err, qr/injected error at stop point "check_preload"/, 'with the injected error');
is($node->psql('postgres', $hit), 0, 'once only');

# wait: until released; the waiter is seen.
$node->safe_psql('postgres', "SELECT paimon.stop_arm('$point', 'wait')");
my $waiter = $node->background_psql('postgres', on_error_stop => 0);
$waiter->query_until(qr/sent/, "\\echo sent\n$hit;\n\\echo passed\n");
ok($node->poll_query_until('postgres', "SELECT paimon.stop_waiting('$point') = 1"), 'a session waits');
$node->safe_psql('postgres', "SELECT paimon.stop_release('$point')");
$waiter->query_until(qr/passed/, '');
ok($node->poll_query_until('postgres', "SELECT paimon.stop_waiting('$point') = 0"), 'and goes on');

# wait: a cancelled waiter is not counted any more.
$node->safe_psql('postgres', "SELECT paimon.stop_arm('$point', 'wait')");
$waiter->query_until(qr/sent/, "\\echo sent\n$hit;\n\\echo cancelled\n");
$node->poll_query_until('postgres', "SELECT paimon.stop_waiting('$point') = 1");
$node->safe_psql('postgres',
	q{SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query ~ 'check_preload' AND pid <> pg_backend_pid()});
$waiter->query_until(qr/cancelled/, '');
is($node->safe_psql('postgres', "SELECT paimon.stop_waiting('$point')"), '0', 'a cancelled waiter is gone');
$node->safe_psql('postgres', 'SELECT paimon.stop_reset()');

# lock: the waiter is blocked by the session that armed it, as the isolation tester wants it.
my $holder = $node->background_psql('postgres');
$holder->query_safe("SELECT paimon.stop_arm('$point', 'lock')");
$waiter->query_until(qr/sent/, "\\echo sent\n$hit;\n\\echo unlocked\n");
ok($node->poll_query_until('postgres',
		q{SELECT count(*) = 1 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) = 1}),
	'lock blocks by a heavyweight lock');
$holder->query_safe("SELECT paimon.stop_release('$point')");
$waiter->query_until(qr/unlocked/, '');
pass('and lets go on after release');
$holder->quit;
$waiter->quit;

# kill: the backend dies, the server recovers, nothing stays armed.
$node->safe_psql('postgres', "SELECT paimon.stop_arm('$point', 'kill')");
($rc, $out, $err) = $node->psql('postgres', $hit);
is($rc, 2, 'kill ends the connection');
ok($node->poll_query_until('postgres', "SELECT paimon.stop_hits('$point') = 0"), 'the server is back, nothing armed');
is($node->psql('postgres', $hit), 0, 'and the point is passed again');

$node->stop;
done_testing();
