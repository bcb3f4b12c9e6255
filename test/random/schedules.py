"""
No lost update in any schedule: two transactions with one statement each on the same key, in every combination of statements, whether there is a row or
was one, isolation levels, ends of the first transaction and orders; on a paimon table and on its heap twin.  Who waits, what each statement returns
(rows, count, SQLSTATE), what others see after each step and what is there in the end must be equal.

Where paimon differs by design, the heap twin does what paimon is said to do, or a rule lets the difference pass.  All of that is here:

  BLIND   A plain INSERT, a large one, and under READ COMMITTED an ON CONFLICT DO UPDATE of the whole row, takes effect when its transaction commits
          (or is prepared) and locks nothing before; the last that is appended wins, without 40001.  Heap does the statement as its equivalent
          ON CONFLICT DO UPDATE just before that, in a transaction at READ COMMITTED.
  ONTO    An UPDATE that moves a row onto a key replaces the row there, no duplicate key: the key is upserted (under a lock, without 40001), the
          row's old key deleted.  Heap does just that.
  LARGE   The commit of a large INSERT waits for everybody who has locked or changed rows of the table, whichever, and whatever that lock allows.
  COARSE  SERIALIZABLE: predicate locks are those of the whole table, so a transaction may fail with 40001 that need not.  What the others do must be
          right without it.

Under SERIALIZABLE also: what the committed transactions have returned and left behind must be what they do one after the other in some order.

Environment: SEED, SECONDS (20), ALL=1 (every schedule, whatever the time), ONLY (names of schedules, with commas), QUERY_SECONDS (60).
"""
import itertools
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from pgwire import Hung, Lost, ServerError               # noqa: E402
from schedule import Player, Step                        # noqa: E402
from server import Server                                # noqa: E402

FILL = 120          # more rows of a large INSERT; with keys below 0, the same for all

# {T} the table, {K} the key, {M} a key from which the session moves rows, {N} one to which, {V} a value of the session
VALUES = {'a': 1000, 'b': 20000}
INSERTED = "INSERT INTO {T} VALUES ({K}, {V}, 'new')"
FULL = INSERTED + ' ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v, w = EXCLUDED.w'
LARGE = "INSERT INTO {T} SELECT CASE WHEN i = 0 THEN {K} ELSE -i END, {V}, repeat('large', 20) FROM generate_series(0, %d) i" % FILL
WRITES = {
    'insert': INSERTED,
    'full': FULL,
    'add': "INSERT INTO {T} VALUES ({K}, {V}, 'new') ON CONFLICT (k) DO UPDATE SET v = {T}.v + EXCLUDED.v RETURNING v, w",
    'nothing': "INSERT INTO {T} VALUES ({K}, {V}, 'new') ON CONFLICT (k) DO NOTHING RETURNING v, w",
    'update': 'UPDATE {T} SET v = v + {V} WHERE k = {K} RETURNING v, w',
    'delete': 'DELETE FROM {T} WHERE k = {K} RETURNING v, w',
    'away': 'UPDATE {T} SET k = {N}, v = v + {V} WHERE k = {K} RETURNING k, v, w',
    'onto': 'UPDATE {T} SET k = {K}, v = v + {V} WHERE k = {M}',
    'large': LARGE,
}
HEAP = {
    'insert': FULL,
    'onto': 'INSERT INTO {T} SELECT {K}, v + {V}, w FROM {T} WHERE k = {M} '
            'ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v, w = EXCLUDED.w; DELETE FROM {T} WHERE k = {M}',
    'large': LARGE + ' ON CONFLICT (k) DO UPDATE SET v = EXCLUDED.v, w = EXCLUDED.w',
}
MODES = {'upd': 'UPDATE', 'nku': 'NO KEY UPDATE', 'share': 'SHARE', 'ks': 'KEY SHARE'}
LOCKS = {'for_' + short: 'SELECT v, w FROM {T} WHERE k = {K} FOR ' + mode for short, mode in MODES.items()}
POLICIES = {name + suffix: sql + words for name, sql in LOCKS.items() for suffix, words in (('_nowait', ' NOWAIT'), ('_skip', ' SKIP LOCKED'))}
STATEMENTS = {**WRITES, **LOCKS, **POLICIES}

LEVELS = {'rc': 'READ COMMITTED', 'rr': 'REPEATABLE READ', 'ser': 'SERIALIZABLE'}
# How the first transaction ends
ENDS = ('commit', 'rollback', 'savepoint', 'savepoint_ks', 'prepared_commit', 'prepared_rollback')
RESTARTED = ('restart_commit', 'restart_rollback')
# Orders: the first ends first; the second does; the first has committed before the second's statement, but the second has an older snapshot
ORDERS = ('first', 'second', 'before')
ROWS = ('there', 'absent', 'deleted')


class Case:
    def __init__(self, one, two, rows, level, end, order):
        self.one, self.two, self.rows, self.level, self.end, self.order = one, two, rows, level, end, order
        self.name = '-'.join((one, two, rows, level, end, order))

    def blind(self, op):
        return op in ('insert', 'large') or (op == 'full' and self.level == 'rc')

    def makes_sense(self):
        if self.one in POLICIES:
            return False                    # as the first the same as without
        if self.order == 'before' and (self.level == 'rc' or self.end not in ('commit', 'prepared_commit')):
            return False                    # the snapshot would be a new one; nothing would have happened
        return True


def all_cases(ends):
    for parts in itertools.product(STATEMENTS, STATEMENTS, ROWS, LEVELS, ends, ORDERS):
        case = Case(*parts)
        if case.makes_sense():
            yield case


class Table:
    """A pair of twins.  Each schedule has keys of its own in it."""

    def __init__(self, server, number, rng):
        self.names = {'paimon': 'p%d' % number, 'heap': 'h%d' % number}
        self.rng = rng
        self.conn = server.connect()
        self.next = 0
        self.conn.query("CREATE TABLE p%d (k int PRIMARY KEY, v int, w text) USING paimon WITH (bucket = %d, \"write-buffer-size\" = '64kb')" % (
            number, rng.choice([1, 1, 3])))
        self.conn.query('CREATE TABLE h%d (k int PRIMARY KEY, v int, w text) USING heap WITH (fillfactor = 50)' % number)

    def prepare(self, case):
        """Rows for a schedule; returns its key."""
        key, self.next = self.next, self.next + 10
        for side, name in self.names.items():
            self.conn.query("INSERT INTO %s SELECT i, i, 'old' FROM generate_series(%d, %d) i" % (name, key, key + 5))
            if case.rows != 'there':
                self.conn.query('DELETE FROM %s WHERE k = %d' % (name, key))
        if self.rng.random() < 0.15:
            self.conn.query("SELECT paimon.flush('%s')" % self.names['paimon'])
        return key if case.rows != 'absent' else key + 6

    def contents(self, side, key):
        base = key - key % 10
        return 'SELECT k, v, w FROM %s WHERE k BETWEEN %d AND %d ORDER BY k' % (self.names[side], base, base + 9)

    def rows(self, side, key):
        return tuple(self.conn.query(self.contents(side, key)))

    def drop(self):
        self.conn.query('DROP TABLE %s' % ', '.join(self.names.values()))
        self.conn.close()


class Script:
    """The steps of a schedule on one of the twins."""

    def __init__(self, case, side, table, key, prefix):
        self.case, self.side, self.table, self.key = case, side, table, key
        self.gid = '%s_%s_%d' % (prefix, side, key)

    def sql(self, op, value):
        base = self.key - self.key % 10
        text = HEAP.get(op, STATEMENTS[op]) if self.side == 'heap' else STATEMENTS[op]
        for mark, with_what in (('{T}', self.table.names[self.side]), ('{K}', self.key), ('{M}', base + (1 if value == VALUES['a'] else 2)), ('{N}', base + 8), ('{V}', value)):
            text = text.replace(mark, str(with_what))
        return text

    def level(self, op):
        """At which heap runs what stands for `op`."""
        return LEVELS['rc'] if self.side == 'heap' and (op == 'onto' or self.case.blind(op)) else LEVELS[self.case.level]

    def later(self, op):
        return self.side == 'heap' and self.case.blind(op)

    def op(self, who, op, value):
        if self.later(op):
            return Step(who, who + '_op', None, ((), FILL + 1 if op == 'large' else 1))
        return Step(who, who + '_op', self.sql(op, value), rows=op != 'onto')

    def end(self, who, op, value, sql):
        if self.later(op):
            return Step(who, who + '_end', 'BEGIN; %s; %s' % (self.sql(op, value), sql))
        return Step(who, who + '_end', sql)

    def begin(self, who, op):
        if self.later(op):
            return Step(who, who + '_begin', None, ((), 'BEGIN'))
        return Step(who, who + '_begin', 'BEGIN ISOLATION LEVEL ' + self.level(op))

    def look(self, who):
        return Step(who, who + '_look', self.table.contents(self.side, self.key))

    def first(self):
        """Steps of the first transaction up to its statement, and after it."""
        case, op, value = self.case, self.case.one, VALUES['a']
        if case.end.startswith('savepoint'):
            # A blind statement that is rolled back does nothing at all.
            steps = [Step('a', 'a_begin', 'BEGIN ISOLATION LEVEL ' + LEVELS[case.level])]
            if case.end == 'savepoint_ks':
                steps.append(Step('a', 'a_lock', self.sql('for_ks', value)))
            steps += [Step('a', 'a_savepoint', 'SAVEPOINT s'), self.op('a', op, value), Step('a', 'a_back', 'ROLLBACK TO s')]
            return steps, [Step('a', 'a_end', 'COMMIT')]
        steps = [self.begin('a', op), self.op('a', op, value)]
        if case.end == 'commit':
            return steps, [self.end('a', op, value, 'COMMIT')]
        if case.end == 'rollback':
            return steps, [Step('a', 'a_end', None, ((), 'ROLLBACK')) if self.later(op) else Step('a', 'a_end', 'ROLLBACK')]
        steps.append(self.end('a', op, value, "PREPARE TRANSACTION '%s'" % self.gid))
        finish = 'COMMIT' if case.end.endswith('commit') else 'ROLLBACK'
        return steps, [Step('x', 'x_finish', "%s PREPARED '%s'" % (finish, self.gid))]

    def second(self):
        case, op, value = self.case, self.case.two, VALUES['b']
        steps = [self.begin('b', op)]
        if case.level != 'rc' or case.order == 'before':
            steps.append(self.look('b'))
        steps.append(self.op('b', op, value))
        return steps, [self.end('b', op, value, 'COMMIT')]

    def steps(self):
        """All of it, in the order of the schedule."""
        (one, one_end), (two, two_end) = self.first(), self.second()
        if self.case.order == 'before':
            return two[:-1] + one + one_end + two[-1:] + two_end
        if self.case.order == 'second':
            return one + two + two_end + one_end
        return one + two + one_end + two_end

    def restarted(self):
        """The same up to the restart, and after it."""
        (one, one_end), (two, two_end) = self.first(), self.second()
        return one, two + (one_end + two_end if self.case.order == 'first' else two_end + one_end)


def failed_at(trace):
    """Names of sessions whose transaction got a serialization failure."""
    return {name[0] for name, result in trace if result == '40001'}


class Judge:
    """Compares what happened on the twins."""

    def __init__(self):
        self.let_pass = {}

    def note(self, rule):
        self.let_pass[rule] = self.let_pass.get(rule, 0) + 1

    def equal(self, case, paimon, heap):
        """None, or what is wrong."""
        if paimon == heap:
            return None
        if case.two == 'large' or case.one == 'large':
            ends = [('a_end' if case.one == 'large' else ''), ('b_end' if case.two == 'large' else '')]
            if self.compare_large(paimon, heap, ends):
                self.note('LARGE')
                return None
        if case.level == 'ser' and failed_at(paimon):
            self.note('COARSE')
            return None
        return 'paimon and heap differ'

    @staticmethod
    def compare_large(paimon, heap, ends):
        """Apart from when the large commit came about: the same results, the same rows in the end."""
        def kept(trace):
            return sorted((str(item) for item in trace if not item[0].startswith('seen') and not (item[0] in ends and item[1] == 'waits')))
        return kept(paimon) == kept(heap)


def committed(trace, who):
    return (who + '_end', ((), 'COMMIT')) in trace or (who == 'a' and any(n == 'x_finish' and r == ((), 'COMMIT PREPARED') for n, r in trace))


class Game:
    def __init__(self, server, seed):
        self.server = server
        self.rng = random.Random(seed)
        self.judge = Judge()
        self.played = self.failed = self.tables = 0
        self.notes = []
        self.table = None
        self.connect()

    def connect(self):
        self.conns = {side: {who: self.server.connect() for who in 'abx'} for side in ('paimon', 'heap')}
        self.watcher = self.server.connect()

    def close(self):
        for conns in self.conns.values():
            for conn in conns.values():
                conn.close()
        self.watcher.close()

    def new_table(self):
        self.tables += 1
        return Table(self.server, self.tables, self.rng)

    def player(self, table, side, key):
        self.notes.append('-- ' + side)
        return Player(self.conns[side], self.watcher, table.contents(side, key), self.notes.append)

    def serial(self, case, table, key, trace, left):
        """SERIALIZABLE: is it what the committed transactions do one after the other, on heap?"""
        if case.one in POLICIES or case.two in POLICIES or case.end.startswith('savepoint'):
            return None
        done = [who for who in 'ab' if committed(trace, who)]
        seen = []
        for order in itertools.permutations(done):
            script = Script(case, 'heap', table, key, 's')
            conn, got = self.watcher, {}
            conn.query('BEGIN; DELETE FROM %s WHERE k BETWEEN %d AND %d' % (table.names['heap'], key - key % 10, key - key % 10 + 9))
            for row in self.before:
                conn.query("INSERT INTO %s VALUES (%s, %s, '%s')" % ((table.names['heap'],) + row))
            for who in order:
                op = case.one if who == 'a' else case.two
                if who == 'b':
                    got['b_look'] = tuple(conn.query(table.contents('heap', key)))
                rows = conn.query(script.sql(op, VALUES[who]))
                got[who + '_op'] = tuple(sorted(rows, key=str)) if op != 'onto' else ()
            rows = tuple(conn.query(table.contents('heap', key)))
            conn.query('ROLLBACK')
            seen.append((rows, got))
            if rows == left and all(result[0] == got[name] for name, result in trace if name in got and result != 'waits'):
                return None
        return 'not serializable: one after the other they give %s' % seen

    def verdict(self, case, table, key, traces):
        wrong = self.judge.equal(case, traces['paimon'], traces['heap'])
        left = table.rows('paimon', key)
        if wrong is None and table.rows('heap', key) != left and not (
                case.level == 'ser' and failed_at(traces['paimon'])):
            wrong = 'paimon and heap hold different rows: %s, %s' % (left, table.rows('heap', key))
        if wrong is None and case.level == 'ser':
            wrong = self.serial(case, table, key, traces['paimon'], left)
        self.played += 1
        if wrong is not None:
            self.failed += 1
            print('not ok: %s: %s\n    %s' % (case.name, wrong, '\n    '.join(self.notes)), flush=True)

    def play(self, case):
        if self.table is None or self.table.next > 1500:
            if self.table is not None:
                self.table.drop()
            self.table = self.new_table()
        table, traces = self.table, {}
        self.notes = []
        key = table.prepare(case)
        self.before = table.rows('heap', key)
        for side in ('heap', 'paimon'):
            traces[side] = self.player(table, side, key).play(Script(case, side, table, key, 'g').steps())
        self.verdict(case, table, key, traces)

    def play_restarted(self, cases):
        """Many at once, each in a table of its own: the first transactions are prepared, the server restarted, then come the second ones."""
        waiting = []
        for case in cases:
            self.notes = []
            table = self.new_table()
            key, players = table.prepare(case), {}
            before = table.rows('heap', key)
            for side in ('heap', 'paimon'):
                players[side] = self.player(table, side, key)
                players[side].play(Script(case, side, table, key, table.names[side]).restarted()[0])
            waiting.append((case, table, key, players, before, self.notes))
            table.conn.close()
        self.close()
        self.server.restart(self.rng.choice(['fast', 'immediate']))
        self.connect()
        for case, table, key, players, before, self.notes in waiting:
            self.before, traces = before, {}
            self.notes.append('-- restart')
            table.conn = self.server.connect()
            for side in ('heap', 'paimon'):
                self.notes.append('-- ' + side)
                players[side].conns, players[side].watcher = self.conns[side], self.watcher
                traces[side] = players[side].play(Script(case, side, table, key, table.names[side]).restarted()[1])
            self.verdict(case, table, key, traces)
            table.drop()


def run(game, cases, restarted, until):
    for case in cases:
        if time.monotonic() > until or game.failed >= 20:
            break
        game.play(case)
    while restarted and game.failed < 20:
        game.play_restarted(restarted[:60])
        restarted = restarted[60:]
        if time.monotonic() > until:
            break


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1000000))
    everything = os.environ.get('ALL') == '1'
    only = os.environ.get('ONLY')
    seconds = float(os.environ.get('SECONDS') or 20)
    print('seed %d' % seed, flush=True)
    os.environ.setdefault('QUERY_SECONDS', '60')
    server = Server('schedules', ['deadlock_timeout = 100ms', 'autovacuum_naptime = 1s', 'max_prepared_transactions = 200'])
    game = Game(server, seed)
    cases, restarted = list(all_cases(ENDS)), [case for case in all_cases(RESTARTED) if case.order != 'before']
    total = len(cases) + len(restarted)
    if only:
        cases, restarted = ([case for case in some if case.name in only.split(',')] for some in (cases, restarted))
    game.rng.shuffle(cases)
    game.rng.shuffle(restarted)
    began = time.monotonic()
    try:
        if everything or only:
            run(game, cases, restarted, began + 1e9)
        else:
            run(game, cases, restarted[:20] if seconds < 60 else restarted, began + seconds * 0.7)
    except (Hung, Lost, RuntimeError, ServerError) as error:
        game.failed += 1
        print('not ok: %s: %s\n    %s\n%s' % (type(error).__name__, error, '\n    '.join(game.notes), server.log_tail(15)), flush=True)
    for line in server.log_lines('PANIC', 'TRAP:', 'was terminated by signal', 'XX000'):
        print('server log: ' + line)
        game.failed += 1
    print('%d of %d schedules in %d s; let pass: %s' % (game.played, total, time.monotonic() - began, game.judge.let_pass or 'nothing'))
    server.remove()
    print('%d passed, %d failed' % (game.played - min(game.failed, game.played), game.failed))
    return 1 if game.failed else 0


if __name__ == '__main__':
    sys.exit(main())
