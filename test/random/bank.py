"""
pgbench's own TPC-B on paimon tables: 8 clients, kill -9 of the whole server while they run, and the money must be there: the sums of accounts,
tellers, branches and history are equal whenever one looks, also while the clients run, and no transaction is lost that pgbench was told of.

Environment: SEED, SECONDS (12: of load, over all rounds), BANK_ROUNDS (3), SCALE (2).
"""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from pgwire import Lost, ServerError                     # noqa: E402
from server import Server                                # noqa: E402

CLIENTS = 8
SUMS = ('SELECT (SELECT sum(abalance) FROM pgbench_accounts), (SELECT sum(tbalance) FROM pgbench_tellers), (SELECT sum(bbalance) FROM pgbench_branches), '
        'coalesce((SELECT sum(delta) FROM pgbench_history), 0), (SELECT count(*) FROM pgbench_history), (SELECT count(*) FROM pgbench_accounts), '
        '(SELECT count(*) FROM pgbench_tellers), (SELECT count(*) FROM pgbench_branches)')


class Bank:
    def __init__(self, rng, scale):
        self.rng = rng
        self.scale = scale
        self.server = Server('bank', ('max_worker_processes = 16', 'statement_timeout = 120s', 'checkpoint_timeout = 30s'))
        self.env = dict(os.environ, PGHOST=self.server.sockets, PGUSER='postgres', PGDATABASE='postgres', PGPORT='5432')
        self.acknowledged = 0
        self.passed = self.failed = self.looked = 0

    def check(self, good, what):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print('FAILED: ' + what, flush=True)

    def init(self):
        """The steps of pgbench -i, keys made after the load as it makes them (and foreign keys in some runs), or before it."""
        steps = self.rng.choice(['dtgvp', 'dtgvp', 'dtpgv', 'dtGvp', 'dtgvpf'])
        env = dict(self.env, PGOPTIONS='-c default_table_access_method=paimon -c client_min_messages=warning')
        done = subprocess.run([self.server.bin + '/pgbench', '-i', '-I', steps, '-s', str(self.scale), '-q'], env=env, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=600, check=False)
        self.check(done.returncode == 0, 'pgbench -i -I %s: %s' % (steps, done.stdout.decode()[-500:]))
        conn = self.server.connect()
        found = conn.one("SELECT count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE c.relname LIKE 'pgbench%' AND a.amname LIKE 'paimon%'")
        self.check(found == '7', '%s tables and indexes of pgbench use paimon, not 7 (-I %s)' % (found, steps))
        conn.query('ALTER TABLE pgbench_accounts SET ("write-buffer-size" = \'%s\')' % self.rng.choice(['64 kb', '1 mb', '64 mb']))
        conn.close()
        print('pgbench -i -I %s -s %d' % (steps, self.scale), flush=True)

    def begin_load(self, seconds):
        mode = self.rng.choice(['simple', 'extended', 'prepared'])
        log = os.path.join(self.server.dir, 'load.log')
        with open(log, 'wb') as out:
            load = subprocess.Popen([self.server.bin + '/pgbench', '-n', '-b', 'tpcb-like', '-c', str(CLIENTS), '-j', '2', '-T', str(seconds), '-M', mode],
                                    env=self.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        return load, log

    def end_load(self, load, log, may_fail):
        load.wait(300)
        with open(log, encoding='utf8', errors='replace') as out:
            text = out.read()
        done = re.search(r'number of transactions actually processed: (\d+)', text)
        self.check(may_fail or (load.returncode == 0 and done and int(done.group(1)) > 0), 'pgbench: %s' % text[-1500:])
        bad = [line for line in re.findall(r'ERROR: .*', text) if not (may_fail and 'terminating connection' in line)]
        self.check(not bad, 'pgbench met errors: %s' % bad[:3])
        # Where the server was killed pgbench may tell of nothing, or of less than it was told.
        self.acknowledged += int(done.group(1)) if done else 0

    def sums(self, conn, when):
        accounts, tellers, branches, history, rows, naccounts, ntellers, nbranches = [int(x) for x in conn.query(SUMS)[0]]
        self.looked += 1
        self.check(accounts == tellers == branches == history, '%s: accounts %d, tellers %d, branches %d, history %d' % (when, accounts, tellers, branches, history))
        self.check((naccounts, ntellers, nbranches) == (100000 * self.scale, 10 * self.scale, self.scale),
                   '%s: %d accounts, %d tellers, %d branches' % (when, naccounts, ntellers, nbranches))
        return rows

    def watch(self, load, enough):
        """Looks at the sums while the clients run, until so many transactions more are in, or pgbench has ended."""
        first = None
        conn = self.server.connect()
        while load.poll() is None:
            rows = self.sums(conn, 'under load')
            first = rows if first is None else first
            if enough and rows >= first + enough:
                break
        conn.close()

    def processes(self):
        found = []
        for name in os.listdir('/proc'):
            try:
                if name.isdigit() and os.readlink('/proc/%s/cwd' % name) == self.server.data:
                    found.append(int(name))
            except OSError:
                pass
        return found

    @staticmethod
    def kill(pid):
        """False: it is gone for good."""
        try:
            os.kill(pid, signal.SIGKILL)
            return True
        except ProcessLookupError:
            return False

    def kill_server(self):
        """SIGKILL to the postmaster and all that it has started."""
        with open(os.path.join(self.server.data, 'postmaster.pid'), encoding='utf8') as file:
            pids = [int(file.readline())] + self.processes()
        until = time.monotonic() + 60
        left = list(dict.fromkeys(pids))
        while left or self.processes():
            left = [pid for pid in left if self.kill(pid)]
            if time.monotonic() > until:
                raise RuntimeError('killed processes do not go')
        self.server.start()

    def kill_backend(self, load):
        """One backend goes: the postmaster has all others end and recovers."""
        conn = self.server.connect()
        pids = conn.query("SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench'")
        if pids:
            os.kill(int(self.rng.choice(pids)[0]), signal.SIGKILL)
        load.wait(300)
        conn.close()
        until = time.monotonic() + 120
        while True:
            try:
                self.server.connect().close()
                return
            except (Lost, ServerError, OSError):
                if time.monotonic() > until:
                    raise

    def round(self, how, seconds):
        load, log = self.begin_load(seconds)
        self.watch(load, self.rng.randrange(50, 400) if how else 0)
        if how and load.poll() is None:
            print('kill -9: ' + how, flush=True)
            if how == 'server':
                self.kill_server()
            else:
                self.kill_backend(load)
        self.end_load(load, log, how)
        conn = self.server.connect()
        rows = self.sums(conn, 'after the load' if not how else 'after kill -9')
        self.check(rows >= self.acknowledged, '%d transactions are in, %d were acknowledged' % (rows, self.acknowledged))
        damaged = conn.query("SELECT c.relname, v::text FROM pg_class c, paimon.verify(c.oid::regclass) v WHERE c.relname LIKE 'pgbench%' AND c.relkind = 'r'")
        self.check(not damaged, 'paimon.verify: %s' % damaged[:3])
        if self.rng.random() < 0.5:
            conn.query("SELECT %s(c.oid::regclass) FROM pg_class c WHERE c.relname LIKE 'pgbench%%' AND c.relkind = 'r'" % self.rng.choice(
                ['paimon.flush', 'paimon.compact']))
            self.sums(conn, 'compacted')
        conn.close()


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1, 10 ** 6))
    print('seed %d' % seed, flush=True)
    rng = random.Random(seed)
    rounds = int(os.environ.get('BANK_ROUNDS') or 3)
    seconds = max(2, int(os.environ.get('SECONDS') or 12) // rounds)
    bank = Bank(rng, int(os.environ.get('SCALE') or 2))
    try:
        bank.init()
        for number in range(rounds):
            bank.round([None, 'server', rng.choice(['server', 'backend'])][(number + 1) % 3], seconds)
        for line in bank.server.log_lines('PANIC', 'TRAP:'):
            print('server log: ' + line)
            bank.failed += 1
    except (RuntimeError, Lost, ServerError, subprocess.TimeoutExpired) as error:
        print('FAILED: %s' % error)
        print('server log ends:\n' + bank.server.log_tail(15))
        bank.failed += 1
    finally:
        if not os.environ.get('PAIMON_KEEP_SERVER'):
            bank.server.remove()
    print('%d transactions acknowledged, looked %d times' % (bank.acknowledged, bank.looked))
    print('%d passed, %d failed' % (bank.passed, bank.failed))
    return 1 if bank.failed else 0


if __name__ == '__main__':
    sys.exit(main())
