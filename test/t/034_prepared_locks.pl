# H16: what a prepared transaction wrote or only locked stays locked over a restart and a crash, for everybody and in the right mode, before anybody can append;
# and it is free when the transaction has ended.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('prepared');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'paimon_am'\nautovacuum = off\nmax_prepared_transactions = 10\nstatement_timeout = '60s'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION paimon_am;
	CREATE TABLE t (k int PRIMARY KEY, v int) USING paimon WITH (bucket = 2, "write-buffer-size" = '64kb');
	INSERT INTO t SELECT i, i FROM generate_series(1, 10) i;
	CREATE FUNCTION may(what text) RETURNS text LANGUAGE plpgsql AS $$
	BEGIN
		EXECUTE what;
		RAISE EXCEPTION 'undo' USING ERRCODE = 'PX001';
	EXCEPTION WHEN lock_not_available THEN RETURN 'no';
		WHEN SQLSTATE 'PX001' THEN RETURN 'yes';
	END $$;
	BEGIN;
	UPDATE t SET v = v + 100 WHERE k = 1;
	DELETE FROM t WHERE k = 2;
	INSERT INTO t VALUES (3, 300);
	SELECT * FROM t WHERE k = 4 FOR UPDATE;
	SELECT * FROM t WHERE k = 5 FOR SHARE;
	SELECT * FROM t WHERE k = 6 FOR KEY SHARE;
	SAVEPOINT a;
	SELECT * FROM t WHERE k = 7 FOR UPDATE;
	ROLLBACK TO a;
	SELECT * FROM t WHERE k = 8 FOR NO KEY UPDATE;
	PREPARE TRANSACTION 'p';
});

# Which of the four modes each key can be had in; who is tried first after the start must find the locks.
sub modes
{
	return $node->safe_psql('postgres', q{
		SELECT string_agg(k || ':' || m, ' ' ORDER BY k) FROM (
			SELECT k, string_agg(CASE may(format('SELECT 1 FROM t WHERE k = %s FOR %s NOWAIT', k, mode)) WHEN 'yes' THEN '+' ELSE '-' END, '' ORDER BY n) AS m
			FROM generate_series(1, 9) k, unnest(ARRAY['KEY SHARE', 'SHARE', 'NO KEY UPDATE', 'UPDATE']) WITH ORDINALITY AS x (mode, n) GROUP BY k) y});
}

my ($rc, $out, $err);
my $before = '1:+--- 2:---- 3:+--- 4:---- 5:++-- 6:+++- 7:++++ 8:+--- 9:++++';
is(modes(), $before, 'prepared');
$node->restart;
is(modes(), $before, 'after a restart');
$node->stop('immediate');
$node->start;

# The very first statement after a crash is an upsert: it must not slip through.
($rc, $out, $err) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO t VALUES (4, 0)");
like($err, qr/lock timeout/, 'an upsert of a key that was only locked waits after a crash');
$node->stop('immediate');
$node->start;
($rc, $out, $err) = $node->psql('postgres', "SET lock_timeout = '200ms'; INSERT INTO t SELECT i, 0 FROM generate_series(100, 9000) i");
like($err, qr/lock timeout/, 'a large commit waits after a crash');
is(modes(), $before, 'the modes after crashes');
is($node->safe_psql('postgres', "INSERT INTO t VALUES (9, 900); SELECT paimon.flush('t') > 0"), 't', 'a flush goes past it');
is(modes(), $before, 'after a flush');
$node->stop('immediate');
$node->start;
is(modes(), $before, 'left over by a flush, after a crash');
is($node->safe_psql('postgres', 'SELECT sum(v) FROM t'), '946', 'nothing of it is seen');

$node->safe_psql('postgres', "COMMIT PREPARED 'p'");
is($node->safe_psql('postgres', "SELECT string_agg(k || ' ' || v, ', ' ORDER BY k) FROM t WHERE k < 5 OR k = 9"), '1 101, 3 300, 4 4, 9 900', 'committed');
is(modes(), '1:++++ 2:++++ 3:++++ 4:++++ 5:++++ 6:++++ 7:++++ 8:++++ 9:++++', 'all is free');
is($node->safe_psql('postgres', "INSERT INTO t VALUES (4, 444); SELECT paimon.flush('t') > 0; SELECT sum(v) FROM t"), "t\n1781", 'and can be written');
$node->stop;
done_testing();
