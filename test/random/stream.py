"""
Steady streams of upserts at full speed, uniform and zipfian keys, small, middling and large commits, several clients each: what they cost, and that
nothing gets out of hand.

A batch's rows follow from its client and number, so the heap twin is made from the numbers afterwards, while the clients pause: it takes no time of the
stream.  Each client has keys of its own.

Environment: SEED; SECONDS (all streams together, 30), STREAM_SECONDS (each one instead), CLIENTS (3), KEYS (of a client; by the seconds), ONLY (streams by
name, as uniform_10,zipf_10000).
"""
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from pgwire import Hung, Lost, ServerError               # noqa: E402
from server import Server                                # noqa: E402

MAX_WRITE_AMPLIFICATION = 12
MAX_SIZE = 1.6              # of the compacted size: live files, and the fork,
FORK_BYTES = 6e6            # which may have that much beside
# somebody (ANALYZE of the heap table) may keep what is to be freed
OLD_SNAPSHOTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid() AND backend_type !~ 'paimon'"
REST = 20                   # seconds without a change: nothing more will come
MAX_WAIT = 5.0              # seconds
SLACK = 3                   # runs of transactions that had begun to write: at most one a client

SCHEMA = '''
CREATE TABLE {t} (k bigint PRIMARY KEY, c int, n int, v text) USING paimon WITH ("snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1{options});
CREATE TABLE {t}_heap (k bigint PRIMARY KEY, c int, n int, v text);
'''

# Rows of batch n of client c, the last of a key wins; u is uniform in [0, 1).  Zipfian with exponent 1: the logarithm of the rank is uniform; ranks are scattered over the keys.
ROWS = '''
SELECT {key} * {clients} + b.c AS k, b.c, b.n, md5(b.n || ' ' || i) || md5(i || ' ' || b.c) AS v, i
FROM {batches}, generate_series(1, {rows}) i,
LATERAL (SELECT (hashint8extended(b.n::bigint * {rows} + i, {seed} + b.c) & 1073741823) / 1073741824.0::float8) h(u)'''
KEYS = {'uniform': 'floor(u * {keys})::bigint', 'zipf': '(floor(exp(u * ln({keys}::float8)))::bigint * 7919 % {keys})'}

SUM = "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(concat_ws(',', k, c, n, v), 0)), 0) FROM {t}"


class Client(threading.Thread):
    """Writes batch after batch; between two it pauses if asked to."""

    def __init__(self, stream, number):
        super().__init__(daemon=True)
        self.stream, self.number = stream, number
        self.conn = stream.server.connect()
        self.batches = 0
        self.longest = 0.0
        self.error = None

    def run(self):
        stream = self.stream
        try:
            self.conn.query('PREPARE p AS INSERT INTO %s SELECT k, c, n, v FROM (%s) r ORDER BY i' % (
                stream.table, stream.rows_of('(SELECT %d AS c, $1::int AS n) b' % self.number)))
            while stream.may_go_on():
                began = time.monotonic()
                self.conn.query('EXECUTE p(%d)' % self.batches)
                self.longest = max(self.longest, time.monotonic() - began)
                self.batches += 1
        except (ServerError, Lost, Hung) as error:
            self.error = error
        stream.gone()


class Stream:
    def __init__(self, server, keys, rows, args):
        self.server, self.kind, self.rows = server, keys, rows
        self.name = '%s keys, %d rows a commit' % (keys, rows)
        self.table = '%s_%d' % (keys, rows)
        self.args = args
        self.watcher = server.connect(limit=3600)   # sorts all that was ever written
        self.problems = []
        self.changed = threading.Condition()
        self.pause, self.stop, self.resting = False, False, 0
        self.longest_fork = 0.0
        self.most_runs, self.compared, self.in_heap = 0, 0, [0] * args.clients
        self.watcher.query(SCHEMA.format(t=self.table, options=args.options))
        # All keys are there from the start, so the size does not grow with the stream.
        self.watcher.query("INSERT INTO {t}_heap SELECT k, k % {c}, -1, md5(k::text) || md5((-k)::text) FROM generate_series(0, {n} - 1) k; "
                           "INSERT INTO {t} SELECT * FROM {t}_heap".format(t=self.table, c=args.clients, n=args.clients * args.keys))

    def rows_of(self, batches):
        key = KEYS[self.kind].format(keys=self.args.keys)
        return ROWS.format(key=key, clients=self.args.clients, batches=batches, rows=self.rows, seed=self.args.seed)

    def problem(self, text):
        self.problems.append('%s: %s' % (self.name, text))

    # ---- clients ----

    def may_go_on(self):
        with self.changed:
            self.resting += 1
            self.changed.notify_all()
            while self.pause and not self.stop:
                self.changed.wait()
            self.resting -= 1
            return not self.stop

    def gone(self):
        with self.changed:
            self.resting += 1
            self.changed.notify_all()

    def pause_clients(self):
        with self.changed:
            self.pause = True
            if not self.changed.wait_for(lambda: self.resting == self.args.clients, 120):
                raise RuntimeError(self.name + ': a writer does not come to an end')

    def resume_clients(self):
        with self.changed:
            self.pause = False
            self.changed.notify_all()

    # ---- what must hold ----

    def stats(self):
        names = ('runs stop_trigger write_amplification rewrite_factor stalls file_bytes bytes_written rows_written compactions flushes large_commits '
                 'compaction_bytes_written').split()
        row = self.watcher.query("SELECT %s, extract(epoch FROM stall_time) FROM paimon.stats('%s')" % (', '.join(names), self.table))[0]
        return dict(zip(names + ['stall_seconds'], [float(x) if x is not None else 0.0 for x in row]))

    def watch(self, clients, seconds):
        """For so long, or until a client fails: runs, and a reader whose count never falls."""
        until, count = time.monotonic() + seconds, 0
        while time.monotonic() < until and not any(c.error for c in clients):
            stats = self.stats()
            self.most_runs = max(self.most_runs, int(stats['runs']))
            self.longest_fork = max(self.longest_fork, self.fork())
            if stats['runs'] > stats['stop_trigger'] + SLACK:
                self.problem('%d runs, the stop trigger is %d' % (stats['runs'], stats['stop_trigger']))
            if self.args.reads:
                now, keys = map(int, self.watcher.query('SELECT count(*), count(DISTINCT k) FROM %s' % self.table)[0])
                if now < count or now != keys:
                    self.problem('%d rows of %d keys after %d rows' % (now, keys, count))
                count = now
            with self.changed:
                self.changed.wait(min(0.1, max(0, until - time.monotonic())))

    def compare(self, clients):
        """Brings the twin up to what was written, and compares."""
        done = [client.batches for client in clients]
        batches = ', '.join('(%d, %d, %d)' % (c, self.in_heap[c], done[c] - 1) for c in range(len(done)) if done[c] > self.in_heap[c])
        if batches:
            source = '(SELECT w.c, n FROM (VALUES %s) w(c, lo, hi), generate_series(lo, hi) n) b' % batches
            self.watcher.query('INSERT INTO %s_heap SELECT DISTINCT ON (k) k, c, n, v FROM (%s) r ORDER BY k, n DESC, i DESC '
                               'ON CONFLICT (k) DO UPDATE SET c = EXCLUDED.c, n = EXCLUDED.n, v = EXCLUDED.v' % (self.table, self.rows_of(source)))
        self.in_heap = done
        self.compared += 1
        self.same('after %s batches' % done)

    def same(self, when):
        paimon, heap = [self.watcher.one(SUM.format(t=t)) for t in (self.table, self.table + '_heap')]
        if paimon != heap:
            self.problem('%s: paimon %s, heap %s' % (when, paimon, heap))

    def sizes(self):
        # live files, and the whole fork
        row = self.watcher.query("SELECT coalesce(sum(file_size_in_bytes), 0), pg_relation_size('%s') FROM paimon.files('%s')" % (self.table, self.table))[0]
        return float(row[0]), float(row[1])

    def fork(self):
        return float(self.watcher.one("SELECT pg_relation_size('%s')" % self.table))

    def settled(self):
        """All flushed, and until compaction and reclaim leave the table alone: what they want they have done when its size stays the same for long."""
        self.watcher.query("SELECT paimon.flush('%s')" % self.table)
        until, since, before = time.monotonic() + 120, time.monotonic(), None
        while time.monotonic() < until:
            now = (self.watcher.one("SELECT count(*) FROM paimon.compaction_history WHERE \"table\" = '%s'::regclass" % self.table),
                   self.watcher.one("SELECT count(*) FROM paimon.compaction_progress WHERE \"table\" = '%s'::regclass" % self.table), self.sizes())
            if now != before or now[1] != '0' or self.watcher.one(OLD_SNAPSHOTS) != '0':
                since = time.monotonic()
            live, fork = now[2]
            if time.monotonic() - since > (REST if fork > live + FORK_BYTES else 1):
                break
            before = now
            with self.changed:
                self.changed.wait(0.1)
        return self.sizes()

    def history(self):
        rows = self.watcher.query("SELECT outcome, count(*), round(sum(bytes_in) / 1e6, 1), round(sum(bytes_out) / 1e6, 1), sum(rows_merged_away), "
                                  "round(max(duration)), max(error) FROM paimon.compaction_history WHERE \"table\" = '%s'::regclass GROUP BY 1" % self.table)
        for outcome, n, into, out, away, longest, error in rows:
            print('    compactions %s: %s, %s MB into %s MB, %s rows merged away, longest %s ms' % (outcome, n, into, out, away, longest))
            if error is not None:
                self.problem('a compaction failed: ' + error)

    def run(self):
        clients = [Client(self, number) for number in range(self.args.clients)]
        for client in clients:
            client.start()
        spent = 0.0
        for part in range(self.args.parts):
            began = time.monotonic()
            self.watch(clients, self.args.seconds / self.args.parts)
            self.pause_clients()
            spent += time.monotonic() - began
            self.compare(clients)
            if part == self.args.parts - 1 or any(c.error for c in clients):
                break
            self.resume_clients()
        with self.changed:
            self.stop = True
            self.changed.notify_all()
        for client in clients:
            client.join(60)
            if client.error:
                self.problem('writer %d: %s' % (client.number, client.error))
        self.report(clients, spent)
        return self.problems

    def report(self, clients, spent):
        stats = self.stats()
        longest = max(client.longest for client in clients)
        live, fork = self.settled()
        self.same('when it has settled')
        self.watcher.query("SELECT paimon.compact('%s')" % self.table)
        compacted_live, compacted_fork = self.settled()
        self.same('when it is compacted')
        print('%s: %.0f s, %d commits, %.0f rows/s' % (self.name, spent, sum(c.batches for c in clients), sum(c.batches for c in clients) * self.rows / spent))
        print('    most runs %d (stop trigger %d), write amplification %.2f (rewrite factor %.2f), %d flushes, %d large commits, %d compactions' % (
            self.most_runs, stats['stop_trigger'], stats['write_amplification'], stats['rewrite_factor'], stats['flushes'], stats['large_commits'],
            stats['compactions']))
        print('    longest commit %.2f s, %d stalls of %.2f s together; %d comparisons' % (longest, stats['stalls'], stats['stall_seconds'], self.compared))
        print('    live files %.1f MB, fork %.1f MB; compacted %.1f MB, fork %.1f MB: %.2f and %.2f times' % (
            live / 1e6, fork / 1e6, compacted_live / 1e6, compacted_fork / 1e6, live / compacted_live, fork / compacted_live))
        print('    longest fork of the stream %.1f MB, %.2f times; %s relocations' % (
            self.longest_fork / 1e6, self.longest_fork / compacted_live,
            self.watcher.one("SELECT count(*) FROM paimon.compaction_history WHERE \"table\" = '%s'::regclass AND reason = 'relocation'" % self.table)))
        self.history()
        if stats['write_amplification'] >= MAX_WRITE_AMPLIFICATION:
            self.problem('write amplification %.2f' % stats['write_amplification'])
        if longest > MAX_WAIT:
            self.problem('a commit took %.2f s' % longest)
        if fork > MAX_SIZE * compacted_live + FORK_BYTES:
            self.problem('the fork is %.1f MB at rest, the table compacted %.1f MB' % (fork / 1e6, compacted_live / 1e6))
        if compacted_fork > MAX_SIZE * compacted_live + FORK_BYTES:
            self.problem('the fork is %.1f MB after a full compaction, its files %.1f MB' % (compacted_fork / 1e6, compacted_live / 1e6))
        if live > MAX_SIZE * compacted_live:
            self.problem('live files %.2f times the compacted size' % (live / compacted_live))
        for row in self.watcher.query("SELECT severity, object, problem FROM paimon.verify('%s')" % self.table):
            self.problem('verify: %s' % (row,))
        sys.stdout.flush()
        self.watcher.query('DROP TABLE %s, %s_heap' % (self.table, self.table))


class Arguments:
    def __init__(self):
        env = os.environ
        self.seed = int(env.get('SEED') or random.SystemRandom().randrange(1000000))
        cases = [(keys, rows) for keys in ('uniform', 'zipf') for rows in (10, 100, 10000)]
        only = (env.get('ONLY') or ','.join('%s_%d' % case for case in cases)).split(',')
        self.cases = [case for case in cases if '%s_%d' % case in only]
        self.seconds = float(env.get('STREAM_SECONDS') or float(env.get('SECONDS') or 30) / len(self.cases))
        self.clients = int(env.get('CLIENTS') or 3)
        self.keys = int(env.get('KEYS') or min(300007, max(50021, int(self.seconds * 1000))))
        while self.keys % 7919 == 0:
            self.keys += 1
        self.parts = 2 if self.seconds < 60 else 10
        self.reads = True
        # Short: files small enough that there are levels.
        self.options = ', "write-buffer-size" = \'%s\'' % (env.get('WRITE_BUFFER') or ('256 kb' if self.seconds < 60 else '8 mb'))


def main():
    args = Arguments()
    print('seed %d' % args.seed, flush=True)
    print('%d clients, %d keys of each%s' % (args.clients, args.keys, args.options))
    server = Server('stream', ['autovacuum_naptime = 1s', 'max_wal_size = 512MB'])
    passed, failed = 0, 0
    try:
        for keys, rows in args.cases:
            problems = Stream(server, keys, rows, args).run()
            passed, failed = passed + (not problems), failed + bool(problems)
            for problem in problems[:20]:
                print(problem, flush=True)
        for line in server.log_lines('PANIC', 'TRAP:', 'was terminated by signal'):
            print('server log: ' + line)
            failed += 1
    except (RuntimeError, ServerError, Lost, Hung) as error:
        print(error)
        failed += 1
    finally:
        if failed:
            print('server log ends:\n' + server.log_tail(15))
        if not os.environ.get('PAIMON_KEEP_SERVER'):
            server.remove()
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
