# H10: what a transaction has seen is not reused before it ends, even by a flush whose transaction began before ours: only the snapshot that the first write
# registers holds that back. A deferred trigger fetches the old row by its ctid at the commit.
use strict;
use warnings;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('deferred');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'paimon_am'\nautovacuum = off\nstatement_timeout = '60s'");
$node->start;
$node->safe_psql('postgres', q{
	CREATE EXTENSION paimon_am;
	CREATE TABLE seen (n serial, old text, new text);
	CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN INSERT INTO seen (old, new) VALUES (rtrim(OLD.w), NEW.w); RETURN NULL; END $$;
	CREATE TABLE t (k int PRIMARY KEY, w text) USING paimon WITH ("write-buffer-size" = '4mb');
	INSERT INTO t SELECT i, 'row ' || i || repeat(' ', 110) FROM generate_series(1, 1500) i;
	CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note();
});

# A flush has its xid, and has not committed.
$node->safe_psql('postgres', "SELECT paimon.stop_arm('flush-published-before-commit', 'wait')");
my $flusher = $node->background_psql('postgres');
$flusher->query_until(qr/begun/, "\\echo begun\nSELECT 'flushed ' || (paimon.flush('t') > 0);\n");
ok($node->poll_query_until('postgres', "SELECT paimon.stop_waiting('flush-published-before-commit') = 1"), 'the flush waits');

# (The first extent of the log lies below the head that it sets.) Another sees and changes rows that lie in the log for it.
my $writer = $node->background_psql('postgres');
$writer->query_safe(q{BEGIN; UPDATE t SET w = 'new ' || k WHERE k IN (1, 50)});
$node->safe_psql('postgres', "SELECT paimon.stop_release('flush-published-before-commit')");
like($flusher->query_safe('SELECT 1'), qr/1/, 'the flush ends');

# The log is reclaimed as far as allowed, and what is free is used again.
for my $round (1 .. 3)
{
	$node->safe_psql('postgres', "INSERT INTO t SELECT i, 'other ' || repeat('z', 110) FROM generate_series(100000, 101500) i");
	$node->safe_psql('postgres', "SELECT paimon.flush('t')");
	$node->safe_psql('postgres', 'VACUUM t');
}
$writer->query_safe('COMMIT');
is($node->safe_psql('postgres', 'SELECT old, new FROM seen ORDER BY n'), "row 1|new 1\nrow 50|new 50", 'old rows were still there');
is($node->safe_psql('postgres', 'SELECT rtrim(w) FROM t WHERE k IN (1, 2, 50) ORDER BY k'), "new 1\nrow 2\nnew 50", 'and the update is right');
$writer->quit;
$flusher->quit;
$node->stop;
done_testing();
