"""
Several sessions feed the same keys at the same time, under each merge engine: what is left must be what some order of the committed transactions gives.

Each record has a token of its own.  listagg keeps all of them, so that it says in which order the records of a key were merged: all that were committed are there
once and no others, those of a transaction stand together, orders of different keys and of two tables agree, a transaction that had ended before another began stands before it, and the
other functions give what that order gives.  Under the other engines the row must be one that could be the last, or the first.  Looked at in memory, flushed and
compacted.  Transactions are short ones, ones that write files, with UPDATE, savepoints and rollbacks.

Environment: SEED, SECONDS (20), SESSIONS (5), KEYS (number of keys; drawn).
"""
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from pgwire import Hung, Lost, ServerError               # noqa: E402
from server import Server                                # noqa: E402

PLAIN = ('c0', 'c1', 'c2')
TABLES = {
    'sums': ('k int PRIMARY KEY, total int, largest int, smallest int, tokens text, newest text, oldest text, n int',
             {'merge-engine': 'aggregation', 'fields.total.aggregate-function': 'sum', 'fields.largest.aggregate-function': 'max', 'fields.smallest.aggregate-function': 'min',
              'fields.tokens.aggregate-function': 'listagg', 'fields.newest.aggregate-function': 'last_value', 'fields.oldest.aggregate-function': 'first_value',
              'fields.n.aggregate-function': 'sum', 'num-sorted-run.compaction-trigger': '2', 'num-sorted-run.stop-trigger': '100'}),
    'again': ('k int PRIMARY KEY, tokens text', {'merge-engine': 'aggregation', 'fields.tokens.aggregate-function': 'listagg'}),
    'whole': ('k int PRIMARY KEY, token text, pad text', {'bucket': '2'}),
    'parts': ('k int PRIMARY KEY, ' + ', '.join(c + ' text' for c in PLAIN), {'merge-engine': 'partial-update'}),
    'versions': ('k int PRIMARY KEY, token text, version int, total int, tokens text, other int',
                 {'merge-engine': 'partial-update', 'fields.version.sequence-group': 'token', 'fields.other.sequence-group': 'total,tokens',
                  'fields.total.aggregate-function': 'sum', 'fields.tokens.aggregate-function': 'listagg'}),
    'latest': ('k int PRIMARY KEY, token text, version int', {'sequence.field': 'version'}),
    'firsts': ('k int PRIMARY KEY, token text', {'merge-engine': 'first-row'}),
}


class Record:
    def __init__(self, where, key, token, value=0):
        self.where, self.key, self.token, self.value = where, key, token, value


class Writer(threading.Thread):
    """A session; `done` gets its committed transactions: (name, began, ended, records)."""

    def __init__(self, server, number, seed, keys, until):
        super().__init__()
        self.rng = random.Random('%d writer %d' % (seed, number))
        self.conn, self.number, self.keys, self.until = server.connect(), number, keys, until
        self.done, self.failure, self.count, self.tokens = [], None, 0, 0
        self.records, self.marks, self.name = [], [], ''

    def run(self):
        try:
            while time.monotonic() < self.until:
                self.transaction()
        except (ServerError, Lost, Hung, OSError) as error:
            self.failure = 'session %d: %s' % (self.number, error)

    def transaction(self):
        self.count += 1
        self.name = '%d_%d' % (self.number, self.count)
        self.records, self.marks = [], []
        began = time.monotonic()
        try:
            self.conn.query('BEGIN')
            if self.rng.random() < 0.04:
                self.write_much()
            elif self.rng.random() < 0.3:
                self.write_both()
            else:
                for _ in range(self.rng.choice([1, 1, 2, 3, 5])):
                    self.step()
            if self.rng.random() < 0.15:
                self.conn.query('ROLLBACK')
                return
            self.conn.query('COMMIT')
            self.done.append((self.name, began, time.monotonic(), self.records))
        except ServerError as error:
            if error.sqlstate != '40P01':
                raise
            self.conn.query('ROLLBACK')

    def token(self):
        self.tokens += 1
        return '%s.%d' % (self.name, self.tokens)

    def write(self, sql, *records):
        """The records count if the statement has written something."""
        if self.conn.query(sql + ' RETURNING 1'):
            self.records += records

    def write_much(self):
        """More than the write buffer holds."""
        rows = [(self.rng.randrange(self.keys), self.token()) for _ in range(1200)]
        self.conn.query('INSERT INTO sums VALUES ' + ', '.join("(%d, 1, 1, 1, '%s', '%s', '%s', 1)" % (k, t, t, t) for k, t in rows))
        self.conn.query('INSERT INTO whole VALUES ' + ', '.join("(%d, '%s', repeat('x', 60))" % row for row in rows))
        self.records += [Record('sums', k, t, 1) for k, t in rows] + [Record('whole', k, t) for k, t in rows]

    def write_both(self):
        """Little, to two tables: both must have it in the same order."""
        for _ in range(self.rng.choice([1, 2, 3])):
            key, token, value = self.rng.randrange(self.keys), self.token(), self.rng.randrange(-50, 50)
            into = ["INSERT INTO sums VALUES (%d, %d, %d, %d, '%s', '%s', '%s', 1)" % (key, value, value, value, token, token, token),
                    "INSERT INTO again VALUES (%d, '%s')" % (key, token)]
            for sql in self.rng.sample(into, 2):
                self.conn.query(sql)
            self.records += [Record('sums', key, token, value), Record('again', key, token)]

    def step(self):
        rng, key, token, value = self.rng, self.rng.randrange(self.keys), self.token(), self.rng.randrange(-50, 50)
        version = rng.randrange(1000000)
        what = rng.choice(['sum', 'sum', 'sum', 'add', 'add', 'whole', 'whole', 'change', 'parts', 'versions', 'latest', 'first', 'savepoint', 'rollback'])
        if what == 'sum':
            self.write("INSERT INTO sums VALUES (%d, %d, %d, %d, '%s', '%s', '%s', 1)" % (key, value, value, value, token, token, token), Record('sums', key, token, value))
        elif what == 'add':
            self.write("UPDATE sums SET total = total + %d, largest = greatest(largest, %d), smallest = least(smallest, %d), tokens = tokens || ',%s', newest = '%s', n = n + 1 "
                       'WHERE k = %d' % (value, value, value, token, token, key), Record('sums', key, token, value))
        elif what == 'whole':
            self.write("INSERT INTO whole VALUES (%d, '%s')" % (key, token), Record('whole', key, token))
        elif what == 'change':
            self.write("UPDATE whole SET token = '%s' WHERE k = %d" % (token, key), Record('whole', key, token))
        elif what == 'parts':
            some = rng.sample(PLAIN, rng.choice([1, 2]))
            self.write('INSERT INTO parts (k, %s) VALUES (%d, %s)' % (', '.join(some), key, ', '.join("'%s'" % token for _ in some)), *[Record(c, key, token) for c in some])
        elif what == 'versions':
            self.write("INSERT INTO versions VALUES (%d, '%s', %d, %d, '%s', %d)" % (key, token, version, value, token, version), Record('versions', key, token, (version, value)))
        elif what == 'latest':
            self.write("INSERT INTO latest VALUES (%d, '%s', %d)" % (key, token, version), Record('latest', key, token, version))
        elif what == 'first':
            self.write("INSERT INTO firsts VALUES (%d, '%s')" % (key, token), Record('firsts', key, token))
        elif what == 'savepoint':
            self.conn.query('SAVEPOINT s%d' % len(self.marks))
            self.marks.append(len(self.records))
        elif self.marks:
            self.conn.query('ROLLBACK TO s%d' % (len(self.marks) - 1))
            del self.records[self.marks[-1]:]


class Keeper(threading.Thread):
    """Flushes and compacts meanwhile."""

    def __init__(self, server, seed, until):
        super().__init__()
        self.rng, self.conn, self.until, self.failure = random.Random('%d keeper' % seed), server.connect(), until, None

    def run(self):
        try:
            while time.monotonic() < self.until:
                how = self.rng.choice(["SELECT paimon.flush('%s')", "SELECT paimon.compact('%s')", 'VACUUM %s', 'SELECT count(*) FROM %s'])
                self.conn.query(how % self.rng.choice(sorted(TABLES)))
        except (ServerError, Lost, Hung, OSError) as error:
            self.failure = 'keeper: %s' % error


def transaction_of(token):
    return token.split('.')[0]


def number_of(token):
    return int(token.split('.')[1])


class Check:
    def __init__(self, conn, done):
        self.conn, self.bad = conn, []
        self.times = {name: (began, ended) for name, began, ended, _ in done}
        self.records = {}
        for _, _, _, records in done:
            for record in records:
                self.records.setdefault(record.where, {}).setdefault(record.key, []).append(record)

    def fail(self, *what):
        self.bad.append(' '.join(map(str, what)))

    def rows(self, table, columns, where):
        """Rows by their keys, which must be those of the records."""
        rows = {int(row[0]): row[1:] for row in self.conn.query('SELECT k, %s FROM %s WHERE %s IS NOT NULL' % (', '.join(columns), table, columns[0]))}
        wanted = self.records.get(where, {})
        if set(rows) != set(wanted):
            self.fail(table, 'has keys', sorted(rows), 'and not', sorted(wanted))
        return [(key, rows[key], wanted[key]) for key in wanted if key in rows]

    def order(self, table, key, tokens):
        """The transactions of a key in their order."""
        names, numbers = [], {}
        for token in tokens:
            name, number = transaction_of(token), number_of(token)
            if not names or names[-1] != name:
                names.append(name)
            if number < numbers.get(name, -1):
                self.fail(table, key, 'has', token, 'behind a later record of its transaction')
            numbers[name] = number
        if len(set(names)) != len(names):
            self.fail(table, key, 'has records of others between those of one transaction:', tokens)
        latest = 0
        for name in names:
            if self.times[name][1] < latest:
                self.fail(table, key, 'has', name, 'behind one that began after its end')
            latest = max(latest, self.times[name][0])
        return names

    def sums(self):
        after = {}
        for key, row, records in self.rows('sums', ['tokens', 'total', 'largest', 'smallest', 'newest', 'oldest', 'n'], 'sums'):
            tokens, values = row[0].split(','), {r.token: r.value for r in records}
            if sorted(tokens) != sorted(values):
                self.fail('sums', key, 'has', set(tokens) - set(values), 'too much and', set(values) - set(tokens), 'too little of', len(tokens))
                continue
            wanted = (sum(values.values()), max(values.values()), min(values.values()), tokens[-1], tokens[0], len(tokens))
            if row[1:] != tuple(map(str, wanted)):
                self.fail('sums', key, 'has', row[1:], 'and not', wanted)
            self.follow(after, self.order('sums', key, tokens))
        for key, (tokens,), records in self.rows('again', ['tokens'], 'again'):
            if sorted(tokens.split(',')) != sorted(r.token for r in records):
                self.fail('again', key, 'has', tokens)
            else:
                self.follow(after, self.order('again', key, tokens.split(',')))
        self.no_circle(after)

    def follow(self, after, names):
        for first, second in zip(names, names[1:]):
            after.setdefault(first, set()).add(second)

    def no_circle(self, after):
        """Keys and tables agree on the order of transactions: those that stand behind nobody are taken away until none is left."""
        before = {}
        for seconds in after.values():
            for second in seconds:
                before[second] = before.get(second, 0) + 1
        free, left = [name for name in after if name not in before], set(after) | set(before)
        while free:
            name = free.pop()
            left.discard(name)
            for second in after.get(name, ()):
                before[second] -= 1
                if before[second] == 0:
                    free.append(second)
        if left:
            self.fail('keys do not agree on the order of', sorted(left)[:10])

    def newest(self, table, column, where):
        """The row is of a transaction's last record that no other one must have followed."""
        for key, (token,), records in self.rows(table, [column], where):
            tokens = [r.token for r in records]
            if token not in tokens:
                self.fail(table, key, 'has', token)
                continue
            name = transaction_of(token)
            if any(self.times[transaction_of(t)][0] > self.times[name][1] for t in tokens):
                self.fail(table, key, 'has', token, 'though later ones were committed')
            if any(transaction_of(t) == name and number_of(t) > number_of(token) for t in tokens):
                self.fail(table, key, 'has', token, 'and not the last of its transaction')

    def oldest(self):
        for key, (token,), records in self.rows('firsts', ['token'], 'firsts'):
            tokens = [r.token for r in records]
            name = transaction_of(token)
            if token not in tokens or any(self.times[transaction_of(t)][1] < self.times[name][0] for t in tokens):
                self.fail('firsts', key, 'has', token, 'of', tokens)
            elif any(transaction_of(t) == name and number_of(t) < number_of(token) for t in tokens):
                self.fail('firsts', key, 'has', token, 'and not the first of its transaction')

    def ordered(self):
        for key, row, records in self.rows('versions', ['token', 'version', 'total', 'tokens', 'other'], 'versions'):
            best = max(records, key=lambda r: r.value[0])
            wanted = (best.token, str(best.value[0]), str(sum(r.value[1] for r in records)), str(best.value[0]))
            if row[:3] + row[4:] != wanted or sorted(row[3].split(',')) != sorted(r.token for r in records):
                self.fail('versions', key, 'has', row, 'and not', wanted)
        for key, row, records in self.rows('latest', ['token', 'version'], 'latest'):
            best = max(records, key=lambda r: r.value)
            if row != (best.token, str(best.value)):
                self.fail('latest', key, 'has', row, 'and not', best.token, best.value)

    def all(self):
        self.sums()
        self.newest('whole', 'token', 'whole')
        for column in PLAIN:
            self.newest('parts', column, column)
        self.oldest()
        self.ordered()
        return self.bad


def play(server, seed, number, seconds):
    """One round; returns reports and the number of transactions."""
    conn, rng = server.connect(), random.Random('%d round %d' % (seed, number))
    keys = int(os.environ.get('KEYS') or rng.choice([3, 12, 40, 300]))
    for table, (columns, options) in TABLES.items():
        conn.query('DROP TABLE IF EXISTS %s; CREATE TABLE %s (%s) USING paimon WITH ("write-buffer-size" = \'64kb\', %s)' % (
            table, table, columns, ', '.join('"%s" = \'%s\'' % option for option in options.items())))
    until = time.monotonic() + seconds
    writers = [Writer(server, n, seed * 1000 + number, keys, until) for n in range(int(os.environ.get('SESSIONS') or 5))]
    threads = writers + [Keeper(server, seed, until)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bad = [thread.failure for thread in threads if thread.failure]
    done = [entry for writer in writers for entry in writer.done]
    for how in (None, 'flush', 'compact'):
        for table in sorted(TABLES) if how else ():
            conn.query("SELECT paimon.%s('%s')" % (how, table))
        bad += ['%s: %s' % (how or 'as written', what) for what in Check(conn, done).all()[:5]]
    for thread in threads:
        thread.conn.close()
    conn.close()
    return ['seed %d, round %d, %d keys: %s' % (seed, number, keys, what[:2000]) for what in bad], len(done)


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1000000))
    seconds = float(os.environ.get('SECONDS') or 20)
    print('seed %d' % seed, flush=True)
    server, passed, failed, count, began = Server('orders', ['deadlock_timeout = 20ms']), 0, 0, 0, time.monotonic()
    try:
        while time.monotonic() - began < seconds and failed < 3:
            reports, transactions = play(server, seed, passed + failed + 1, 4)
            count += transactions
            passed, failed = passed + (not reports), failed + bool(reports)
            for report in reports:
                print(report, flush=True)
        for line in server.log_lines('PANIC', 'TRAP:', 'was terminated by signal'):
            print('server log: ' + line)
            failed += 1
    finally:
        server.remove()
    print('%d transactions' % count)
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
