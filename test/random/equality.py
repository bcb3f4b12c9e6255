"""
Random statements on twin tables, one of paimon and one of heap, that must hold the same rows after every transaction and inside of it.

Environment: SEED, ROUNDS (pairs of tables; 0: as many as fit), SECONDS (60), ONLY (run just this round), TRACE (file for all statements),
QUERY_SECONDS (300: a statement that takes longer hangs).
"""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from pgwire import Hung, Lost, ServerError               # noqa: E402
from server import Server                                # noqa: E402
from sessions import Driver, Failure, Session            # noqa: E402
from twins import OTHERS, Twins                                  # noqa: E402


class Round:
    def __init__(self, server, number, seed):
        self.rng = rng = random.Random(seed * 1000003 + number)
        self.number = number
        self.server = server
        self.driver = Driver(server, rng)
        nsessions = rng.choice([1, 2, 2, 3])
        self.twins = Twins(str(number), rng, nsessions)
        self.driver.sessions = self.sessions = [Session(n, server.connect()) for n in range(nsessions)]
        self.reader = None          # a connection with an old snapshot
        self.salt = 0
        self.cursor_no = 0
        self.counts = {}
        self.compared = 0

    # ---- running and comparing ----

    def run(self, session, sql, copy_data=None):
        if OTHERS in sql and self.twins.added:
            sql = sql.replace(OTHERS, ''.join(', %s = EXCLUDED.%s' % (name, name) for name, _ in self.extra_columns(session)))
        rows = self.driver.run(session, sql, copy_data)
        return sorted(rows, key=str), session.conn.tag

    def both(self, session, paimon, heap, compare_tags=True):
        """A statement on each table; same rows returned, same count."""
        self.begin(session)
        session.wrote = True
        first = self.run(session, paimon)
        second = self.run(session, heap)
        if first[0] != second[0] or (compare_tags and first[1] != second[1]):
            raise Failure('not the same result: paimon %s, heap %s' % (str(first)[:1500], str(second)[:1500]))

    def begin(self, session):
        if session.open:
            return
        session.isolation = self.rng.choice(['READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ'])
        self.run(session, 'BEGIN ISOLATION LEVEL ' + session.isolation)
        session.open = True

    def compare(self, conn, who):
        """Contents of both tables as a connection sees them."""
        self.compared += 1
        sums = conn.query(self.twins.sums())[0]
        if sums[0] != sums[1]:
            raise Failure('%s sees paimon: %s, heap: %s\n%s' % (who, sums[0], sums[1], '\n'.join(map(str, conn.query(self.twins.difference())))))

    def look(self, conn, who):
        """Other ways to read: by key, by part of the columns, in order."""
        rng, t = self.rng, self.twins
        g = self.some_g(rng.randrange(len(self.sessions)))
        sql = rng.choice([
            'SELECT x::text FROM {T} x WHERE ' + t.where_key(g),
            'SELECT g, v FROM {T} WHERE v > %d' % rng.randrange(1000),
            'SELECT count(*), sum(v), min(g), count(t) FROM {T}',
            'SELECT own, count(*), sum(length(t)) FROM {T} GROUP BY own ORDER BY 1',
            'SELECT x::text FROM {T} x ORDER BY %s LIMIT 7' % ', '.join(t.key_names + ['g', 'v', 't'] + ([] if t.kind else ['x::text'])),
            'SELECT count(*) FROM {T} x JOIN {T} y USING (%s)' % ', '.join(t.key_names) if t.kind else 'SELECT count(*) FROM {T}',
            'SELECT x::text FROM {T} x WHERE g IN (SELECT y.g FROM {T} y WHERE y.v %% 3 = %d)' % rng.randrange(3),
            'SELECT count(*) FROM {T} x WHERE EXISTS (SELECT FROM generate_series(0, 40) n WHERE %s)' % t.where_key('n'),
        ])
        settings = rng.choice(['', '', 'SET LOCAL enable_seqscan = off; ', 'SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; '])
        paimon, heap = [sorted(conn.query(settings + one), key=str) for one in t.both(sql)]
        if paimon != heap:
            raise Failure('%s: %s%s\npaimon: %s\nheap: %s' % (who, settings, sql, str(paimon)[:1500], str(heap)[:1500]))

    def compare_all(self):
        if self.twins.persistence == 'TEMP ':
            self.compare(self.sessions[0].conn, 'its session')
            return
        if any(s.exclusive for s in self.sessions):
            return
        self.compare(self.driver.watcher, 'a new snapshot')
        if self.rng.random() < 0.3:
            self.look(self.driver.watcher, 'a new snapshot')
        if self.reader is not None:
            self.compare(self.reader, 'an old snapshot')

    # ---- choices ----

    def some_g(self, session_no):
        return self.rng.randrange(self.twins.spread) * len(self.sessions) + session_no

    def next_salt(self):
        self.salt += 1000
        return self.salt

    def some_rows(self, session):
        """A condition on rows of the session."""
        rng = self.rng
        g = self.some_g(session.number)
        return rng.choice([
            self.twins.where_key(g),
            self.twins.where_key(g),
            'own = %d AND g BETWEEN %d AND %d' % (session.number, g, g + rng.choice([5, 20, 400])),
            'own = %d AND g %% %d = %d' % (session.number, rng.choice([2, 3, 7]), rng.randrange(2)),
            'own = %d AND v > %d' % (session.number, rng.randrange(1000)),
            'own = %d' % session.number,
        ])

    # ---- statements ----

    def op_upsert(self, session):
        self.upsert(session, [self.some_g(session.number)])

    def op_upsert_rows(self, session):
        self.upsert(session, [self.some_g(session.number) for _ in range(self.rng.choice([2, 5, 50, 300]))])

    def upsert(self, session, numbers, returning=''):
        """Rows by a list of numbers, possibly repeated: the last of a key wins."""
        t, salt = self.twins, self.next_salt()
        pairs = list(enumerate(numbers))
        last = {g: o for o, g in pairs}
        kept = [(o, g) for o, g in pairs if last[g] == o or not t.kind]
        template = t.select(session.number, '(VALUES {rows}) u(g, o)', salt)
        one, two = [template.replace('{rows}', ', '.join('(%d, %d)' % (g, o) for o, g in rows)) for rows in (pairs, kept)]
        returning = self.rng.choice(['', '', ' RETURNING g, v, t']) if len(pairs) == len(kept) else ''
        self.both(session, t.insert(one)[0] + returning, t.insert(two)[1] + returning, compare_tags=len(pairs) == len(kept))

    def op_upsert_range(self, session):
        t, n, rng = self.twins, len(self.sessions), self.rng
        count = rng.choice([10, 100, 1000, min(t.spread, 3000)])
        lo = self.some_g(session.number)
        source = '(SELECT g, g %% 997 AS o FROM generate_series(%d, %d, %d) g) u' % (lo, lo + count * n, n)
        self.both(session, *t.insert(t.select(session.number, source, self.next_salt())))

    def op_large_value(self, session):
        size = self.rng.choice([100, 3000, 30000, 90000])
        value = self.rng.choice(["repeat(md5(g::text), %d)" % size,
                                 "(SELECT string_agg(md5((i * 31 + g)::text), '') FROM generate_series(1, %d) i)" % size])
        source = '(VALUES (%d, 0)) u(g, o)' % self.some_g(session.number)
        self.both(session, *self.twins.insert(self.twins.select(session.number, source, self.next_salt(), value)))

    def op_update(self, session):
        returning = self.rng.choice(['', '', ' RETURNING g, v'])
        self.both(session, *self.twins.both('UPDATE {T} SET %s WHERE %s%s' % (self.twins.set_values(self.next_salt()), self.some_rows(session), returning)))

    def op_update_from(self, session):
        """An update that joins with the table itself."""
        self.both(session, *self.twins.both(
            'UPDATE {T} x SET v = coalesce(y.v, 0) + 1 FROM {T} y WHERE x.own = %d AND y.own = %d AND y.g = x.g AND x.g %% 3 = %d' % (
                session.number, session.number, self.rng.randrange(3))) if self.twins.kind else self.twins.both('UPDATE {T} SET v = 1 WHERE own = %d' % session.number))

    def op_move(self, session):
        """Changes a key."""
        old, new = self.some_g(session.number), self.some_g(session.number)
        if old == new:
            return
        paimon, heap = self.twins.both('UPDATE {T} SET %s WHERE %s' % (self.twins.set_key(str(new)), self.twins.where_key(old)))
        self.begin(session)
        if self.twins.kind:
            self.run(session, 'DELETE FROM %s WHERE %s AND EXISTS (SELECT FROM %s WHERE %s)' % (
                self.twins.heap, self.twins.where_key(new), self.twins.heap, self.twins.where_key(old)))
        self.both(session, paimon, heap)

    def op_move_many(self, session):
        """Moves many rows at once, each perhaps to where another one was."""
        where = self.rng.choice(['own = %d' % session.number, 'own = %d AND g %% 4 < 2' % session.number])
        paimon, heap = self.twins.moves(where, len(self.sessions) * self.rng.choice([1, 1, 2, 5]))
        self.begin(session)
        session.wrote = True
        first = self.run(session, paimon[0])
        for sql in heap[:-1]:
            second = self.run(session, sql)
        self.run(session, heap[-1])
        if first[1] != second[1]:
            raise Failure('moved %s rows in paimon, %s in heap' % (first[1], second[1]))

    def op_delete(self, session):
        returning = self.rng.choice(['', '', ' RETURNING g, v, t'])
        self.both(session, *self.twins.both('DELETE FROM {T} WHERE %s%s' % (self.some_rows(session), returning)))

    def op_copy(self, session):
        """COPY out of a query, and its data into the table."""
        t = self.twins
        n, count = len(self.sessions), self.rng.choice([3, 100, 1500])
        lo = self.some_g(session.number)
        source = '(SELECT g, g %% 997 AS o FROM generate_series(%d, %d, %d) g) u' % (lo, lo + count * n, n)
        select = t.select(session.number, source, self.next_salt())
        self.begin(session)
        session.wrote = True
        types = [k[0] for k in t.keys] + ['int', 'int'] + [t.columns[c][0] for c in t.columns]
        typed = 'SELECT %s FROM (%s) x(%s)' % (', '.join('x.%s::%s' % pair for pair in zip(t.names(), types)), select, ', '.join(t.names()))
        self.run(session, 'COPY (%s) TO STDOUT' % typed)
        data = session.conn.copied
        first = self.run(session, 'COPY %s (%s) FROM STDIN' % (t.paimon, ', '.join(t.names())), data)
        second = self.run(session, t.heap_insert(select))
        if first[1].split()[-1] != second[1].split()[-1]:
            raise Failure('copied %s, inserted %s' % (first[1], second[1]))

    def op_insert_from_itself(self, session):
        """Rows read from the table while it is written (Halloween)."""
        t = self.twins
        step = len(self.sessions) * self.rng.choice([1, 3])
        source = "(SELECT x.g + %d AS g, x.g %% 7 AS o FROM {T} x WHERE x.own = %d%s ORDER BY x.g LIMIT 2000) u" % (
            step, session.number, '' if t.kind else ' AND x.g % 5 = 0')
        paimon, heap = t.insert(t.select(session.number, source, self.next_salt()))
        self.both(session, paimon.replace('{T}', t.paimon), heap.replace('{T}', t.heap))

    def op_fail(self, session):
        """A statement that fails after some rows, in a sub-transaction."""
        t = self.twins
        lo = self.some_g(session.number)
        source = '(SELECT g, g / (g - %d) AS o FROM generate_series(%d, %d, %d) g) u' % (
            lo + 20 * len(self.sessions), lo, lo + 100 * len(self.sessions), len(self.sessions))
        insert = t.insert(t.select(session.number, source, self.next_salt()).replace('SELECT ', 'SELECT /* %d */ ' % lo, 1))[0]
        update = 'UPDATE %s SET v = 1 / (g - %d) WHERE own = %d' % (t.paimon, lo, session.number)
        self.begin(session)
        session.wrote = True
        self.run(session, 'SAVEPOINT failing')
        try:
            self.run(session, self.rng.choice([insert, update]))
        except ServerError as error:
            if error.sqlstate != '22012':
                raise
        self.run(session, 'ROLLBACK TO failing; RELEASE failing')

    def op_for_update(self, session):
        mode = self.rng.choice(['FOR UPDATE', 'FOR NO KEY UPDATE', 'FOR SHARE', 'FOR KEY SHARE'])
        self.both(session, *self.twins.both('SELECT x::text FROM {T} x WHERE %s %s' % (self.some_rows(session), mode)))

    def op_cursor_update(self, session):
        """WHERE CURRENT OF.  (A cursor on one partition is none on the table, on heap either.)"""
        if not self.twins.kind or self.twins.partitioned:
            return
        g = self.some_g(session.number)
        self.begin(session)
        session.wrote = True
        change = self.rng.choice(['DELETE FROM {T} WHERE CURRENT OF cc', 'UPDATE {T} SET v = -v WHERE CURRENT OF cc'])
        tags = []
        where = self.twins.where_key(g)
        for table in (self.twins.paimon, self.twins.heap):
            self.run(session, 'DECLARE cc CURSOR FOR SELECT * FROM %s WHERE %s%s' % (table, where, ' FOR UPDATE' if self.cursor_no % 2 else ''))
            self.run(session, 'FETCH cc')
            if session.conn.tag == 'FETCH 1':
                tags.append(self.run(session, change.replace('{T}', table))[1])
            else:
                tags.append('')
            self.run(session, 'CLOSE cc')
        self.cursor_no += 1
        if tags[0] != tags[1]:
            raise Failure('WHERE CURRENT OF: %s' % tags)

    def op_merge(self, session):
        """MERGE with update, delete and insert."""
        if not self.twins.kind:
            return
        t, salt = self.twins, self.next_salt()
        numbers = sorted({self.some_g(session.number) for _ in range(self.rng.choice([1, 10, 100]))})
        source = t.select(session.number, '(VALUES %s) u(g, o)' % ', '.join('(%d, %d)' % (g, g % 50) for g in numbers), salt)
        names = t.names()
        on = ' AND '.join('x.%s = s.%s' % (k, k) for k in t.key_names)
        types = [k[0] for k in t.keys] + ['int', 'int'] + [t.columns[c][0] for c in t.columns]
        typed = 'SELECT %s FROM (%s) z(%s)' % (', '.join('z.%s::%s AS %s' % (n, ty, n) for n, ty in zip(names, types)), source, ', '.join(names))
        self.both(session, *t.both(
            'MERGE INTO {T} x USING (%s) s ON %s WHEN MATCHED AND x.g %% 5 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = coalesce(x.v, 0) + 1, t = s.t '
            'WHEN NOT MATCHED THEN INSERT (%s) VALUES (%s)' % (typed, on, ', '.join(names), ', '.join('s.' + n for n in names))))

    def op_on_conflict(self, session):
        """INSERT ... ON CONFLICT in all its forms; rows may come twice."""
        t, rng, salt = self.twins, self.rng, self.next_salt()
        numbers = [self.some_g(session.number) for _ in range(rng.choice([1, 1, 2, 5, 40, 300]))]
        if rng.random() < 0.7:
            numbers = sorted(set(numbers))
        source = '(VALUES %s) u(g, o)' % ', '.join('(%d, %d)' % (g, o) for o, g in enumerate(numbers))
        if rng.random() < 0.3:
            n, lo = len(self.sessions), self.some_g(session.number)
            source = '(SELECT g, g %% 997 AS o FROM generate_series(%d, %d, %d) g) u' % (lo, lo + rng.choice([20, 300, 2000]) * n, n)
        sql = 'INSERT INTO {T} AS x (%s) %s ' % (', '.join(t.names()), t.select(session.number, source, salt))
        if t.kind:
            everything = ', '.join('%s = EXCLUDED.%s' % (n, n) for n in t.names()[rng.choice([0, len(t.key_names)]):])
            where = rng.choice(['', '', ' WHERE x.v % 2 = 0', ' WHERE x.v < EXCLUDED.v'])
            sql += rng.choice(['ON CONFLICT DO NOTHING',
                               'ON CONFLICT ({K}) DO NOTHING',
                               'ON CONFLICT ({K}) DO UPDATE SET ' + everything,
                               'ON CONFLICT ({K}) DO UPDATE SET ' + everything,
                               'ON CONFLICT ({K}) DO UPDATE SET v = coalesce(x.v, 0) + 1' + where,
                               'ON CONFLICT ({K}) DO UPDATE SET v = x.v + EXCLUDED.v % 100, t = EXCLUDED.t' + where,
                               'ON CONFLICT ({K}) DO UPDATE SET t = x.t' + where]).replace('{K}', ', '.join(t.key_names))
        else:
            sql += 'ON CONFLICT DO NOTHING'
        sql += rng.choice(['', '', ' RETURNING g, v, t'])
        self.begin(session)
        session.wrote = True
        results = []
        for one in t.both(sql):
            self.run(session, 'SAVEPOINT conflict')
            try:
                results.append(self.run(session, one))
                self.run(session, 'RELEASE conflict')
            except ServerError as error:
                if error.sqlstate not in ('21000', '22003'):
                    raise
                results.append(error.sqlstate)
                self.run(session, 'ROLLBACK TO conflict; RELEASE conflict')
        if results[0] != results[1]:
            raise Failure('not the same result: paimon %s, heap %s' % (str(results[0])[:1500], str(results[1])[:1500]))

    def op_savepoint(self, session):
        self.begin(session)
        name = 's%d' % len(session.savepoints)
        self.run(session, 'SAVEPOINT ' + name)
        session.savepoints.append((name, session.exclusive, set(session.cursors)))

    def op_rollback_to(self, session):
        if session.savepoints:
            at = self.rng.randrange(len(session.savepoints))
            name, exclusive, cursors = session.savepoints[at]
            del session.savepoints[at + 1:]
            session.cursors = {c: v for c, v in session.cursors.items() if c in cursors}
            # the lock stays if it was older
            session.exclusive = session.exclusive and exclusive
            self.run(session, 'ROLLBACK TO ' + name)

    def op_release(self, session):
        if session.savepoints:
            at = self.rng.randrange(len(session.savepoints))
            name = session.savepoints[at][0]
            del session.savepoints[at:]
            self.run(session, 'RELEASE ' + name)

    def op_cursor(self, session):
        """Opens a cursor on each table, or reads one that is open to its end: it shows what was there when it was opened."""
        self.begin(session)
        if session.cursors and self.rng.random() < 0.5:
            name = self.rng.choice(list(session.cursors))
            seen = session.cursors.pop(name)
            for side in (0, 1):
                seen[side] += self.run(session, 'FETCH ALL FROM %s%d' % (name, side))[0]
                self.run(session, 'CLOSE %s%d' % (name, side))
            if sorted(seen[0], key=str) != sorted(seen[1], key=str):
                only = [sorted(set(seen[a]) - set(seen[1 - a]), key=str)[:3] for a in (0, 1)]
                raise Failure('cursor %s saw %d rows of paimon and %d of heap; only paimon %s, only heap %s' % (
                    name, len(seen[0]), len(seen[1]), str(only[0])[:800], str(only[1])[:800]))
            return
        if session.exclusive:
            return
        name = 'c%d_' % self.cursor_no
        self.cursor_no += 1
        seen = [[], []]
        count = self.rng.choice([0, 1, 3, 50])
        everything = self.rng.randrange(2)
        for side, table in enumerate((self.twins.paimon, self.twins.heap)):
            self.run(session, 'DECLARE %s%d CURSOR FOR SELECT x.* FROM %s x WHERE own = %d OR %d > 0' % (
                name, side, table, session.number, everything))
            if count:
                seen[side] = self.run(session, 'FETCH %d FROM %s%d' % (count, name, side))[0]
        session.cursors[name] = seen

    def op_truncate(self, session):
        """Only if no other session could be waited for."""
        if not self.alone(session):
            return
        self.both(session, *self.twins.both('TRUNCATE {T}'))
        session.exclusive = True

    # ---- definitions ----

    def alone(self, session):
        """May a statement of the session lock the whole table?"""
        return not (any(s.open or s.prepared for s in self.sessions if s is not session) or session.cursors or self.reader is not None)

    def try_both(self, session, sql, allowed):
        """A statement that may fail, on both tables alike, in a sub-transaction."""
        self.begin(session)
        session.wrote = True
        results = []
        for one in self.twins.both(sql):
            self.run(session, 'SAVEPOINT trying')
            try:
                results.append(self.run(session, one))
                self.run(session, 'RELEASE trying')
            except ServerError as error:
                if error.sqlstate not in allowed:
                    raise
                results.append(error.sqlstate)
                self.run(session, 'ROLLBACK TO trying; RELEASE trying')
        if results[0] != results[1]:
            raise Failure('not the same result: paimon %s, heap %s' % (str(results[0])[:1500], str(results[1])[:1500]))
        session.exclusive = True

    def extra_columns(self, session):
        """Columns that were added by this test: it asks, since additions may have been rolled back."""
        rows = self.driver.run(session, "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute WHERE attrelid = '%s'::regclass AND attname ~ '^x[0-9]' "
                               "AND NOT attisdropped AND attgenerated = '' ORDER BY attnum" % self.twins.heap)
        return rows

    def some_alter(self, session):
        """A change of the definition; the test's own columns stay as they are, but for their types."""
        rng, t = self.rng, self.twins
        t.added += 1
        choices = ['ADD COLUMN x%d int' % t.added,
                   "ADD COLUMN x%d text DEFAULT 'new%d'" % (t.added, t.added),
                   'ADD COLUMN x%d numeric NOT NULL DEFAULT 1.50' % t.added,
                   'ADD COLUMN x%d bigint GENERATED ALWAYS AS (g * 2) STORED' % t.added,
                   "ADD COLUMN x%d int, ADD COLUMN x%da text COLLATE \"C\" DEFAULT 'a'" % (t.added, t.added),
                   'ALTER COLUMN v TYPE bigint', 'ALTER COLUMN v TYPE int',
                   'ALTER COLUMN g TYPE int USING g + 0', 'ALTER COLUMN own SET NOT NULL', 'ALTER COLUMN own DROP NOT NULL',
                   'ADD CHECK (own >= 0)']
        for name, kind in self.extra_columns(session):
            choices += ['DROP COLUMN ' + name, 'DROP COLUMN %s, ADD COLUMN x%d int DEFAULT 7' % (name, t.added), 'RENAME COLUMN %s TO x%d' % (name, t.added),
                        'ALTER COLUMN %s TYPE text' % name if kind != 'text' else 'ALTER COLUMN %s TYPE int USING length(%s)' % (name, name),
                        'ALTER COLUMN %s DROP NOT NULL' % name]
        if not t.partitioned:
            choices += {'int': ['ALTER COLUMN k1 TYPE bigint', 'ALTER COLUMN k1 TYPE int'], 'text': ['ALTER COLUMN k1 TYPE varchar', 'ALTER COLUMN k1 TYPE text'],
                        'varchar': ['ALTER COLUMN k1 TYPE varchar(60)', 'ALTER COLUMN k1 TYPE text']}.get(t.kind, [])
            if t.persistence != 'TEMP ':
                choices += ['SET UNLOGGED', 'SET LOGGED']
        return 'ALTER TABLE {T} ' + rng.choice(choices)

    def op_alter(self, session):
        """Changes of the definition, perhaps rolled back, with rows changed before and after."""
        if self.alone(session):
            self.try_both(session, self.some_alter(session), ('23502', '22003', '22001', '42P16', '42804', '0A000'))

    def op_update_extra(self, session):
        """Values of columns that came later."""
        if not self.alone(session):
            return
        self.begin(session)
        columns = self.extra_columns(session)
        if columns:
            name, kind = self.rng.choice(columns)
            value = {'text': "'u' || g", 'numeric': 'g * 1.25'}.get(kind, 'g % 100')
            if self.rng.random() < 0.2:
                value = 'NULL'
            self.try_both(session, 'UPDATE {T} SET %s = %s WHERE %s' % (name, value, self.some_rows(session)), ('23502', '22003'))

    def op_access_method(self, session):
        """To heap and back, with changes in between, either way perhaps rolled back."""
        t, rng = self.twins, self.rng
        if not self.alone(session) or t.partitioned:
            return
        self.begin(session)
        session.wrote = session.exclusive = True
        to_heap, back = 'ALTER TABLE %s SET ACCESS METHOD heap' % t.paimon, 'ALTER TABLE %s SET ACCESS METHOD paimon, SET (%s)' % (t.paimon, t.options)
        # The twin is rewritten, too: then both hold the newest rows, be the session's snapshot older; to older ones of others, which may be waiting for the lock, both are empty.
        to_heap += '; ALTER TABLE %s ALTER COLUMN own TYPE int USING own + 0' % t.heap
        change = t.both('UPDATE {T} SET v = coalesce(v, 0) + 1 WHERE ' + self.some_rows(session))
        if rng.random() < 0.3:
            self.run(session, 'SAVEPOINT method')
            self.run(session, to_heap)
            self.both(session, *change)
            self.run(session, 'ROLLBACK TO method; RELEASE method')
        self.run(session, to_heap)
        self.both(session, *change)
        self.compare(session.conn, 'its session, as heap,')
        if rng.random() < 0.3:
            self.run(session, 'SAVEPOINT method')
            self.run(session, back)
            self.both(session, *change)
            self.run(session, 'ROLLBACK TO method; RELEASE method')
        self.run(session, back)
        self.both(session, *change)
        self.compare(session.conn, 'its session')

    def op_commit(self, session):
        if session.open:
            self.driver.end(session, True)
            self.compare_all()

    def op_rollback(self, session):
        if session.open:
            self.driver.end(session, False)
            self.compare_all()

    def op_prepare(self, session):
        """Two-phase commit; refused once run files were written."""
        if not session.open or session.exclusive or self.twins.persistence == 'TEMP ':
            return
        gid = 'x%d_%d_%d' % (self.number, session.number, self.next_salt())
        try:
            self.run(session, "PREPARE TRANSACTION '%s'" % gid)
            session.prepared = gid
        except ServerError as error:
            if error.sqlstate not in ('0A000', '40P01'):
                raise
            self.driver.note('s%d' % session.number, '-- ' + error.message)
        session.ended()
        self.compare_all()

    # ---- around the sessions ----

    def op_flush(self, session):
        if any(s.exclusive for s in self.sessions):
            return
        conn = self.driver.watcher
        if self.twins.persistence == 'TEMP ':
            if session.open:
                return
            conn = session.conn
        sql = self.rng.choice(["SELECT paimon.flush('%s')", "SELECT paimon.flush('%s')", "SELECT paimon.compact('%s')",
                               "SELECT paimon.compact('%s', full => false)", 'VACUUM %s', 'ANALYZE %s']) % self.twins.paimon
        self.driver.note('flush', sql)
        conn.query(sql)
        self.compare_all()

    def op_vacuum_full(self, session):
        if any(s.open or s.prepared for s in self.sessions) or self.reader is not None:
            return
        self.run(session, self.rng.choice(['VACUUM FULL ', 'REINDEX TABLE ', 'VACUUM (FREEZE) ']) + self.twins.paimon)
        self.compare_all()

    def op_old_snapshot(self, session):
        """Takes, or lets go, a snapshot that is compared from then on."""
        if self.twins.persistence == 'TEMP ' or any(s.exclusive for s in self.sessions):
            return
        if self.reader is None:
            self.reader = self.server.connect()
            self.driver.note('reader', 'BEGIN')
            self.reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
            self.compare(self.reader, 'an old snapshot')
        else:
            self.end_reader()

    def end_reader(self):
        if self.reader is not None:
            self.compare(self.reader, 'an old snapshot')
            self.driver.note('reader', 'COMMIT')
            self.reader.query('COMMIT')
            self.reader.close()
            self.reader = None

    def op_restart(self, session):
        if self.twins.persistence == 'TEMP ':
            return
        mode = self.rng.choice(['fast', 'immediate'])
        self.driver.note('server', 'restart ' + mode)
        # Sessions first: who hangs up rolls back, and PostgreSQL, with heap tables too, does not start after a crash right after a TRUNCATE of an
        # unlogged table was rolled back (its init fork comes back, while the other file is still there).
        self.server.stop(mode)
        for conn in [s.conn for s in self.sessions] + [self.driver.watcher] + ([self.reader] if self.reader else []):
            conn.close()
        self.reader = None
        self.server.start()
        self.driver.reconnect()
        self.compare_all()

    def op_compare_inside(self, session):
        if session.open and not any(s.exclusive for s in self.sessions if s is not session):
            self.compare(session.conn, 'session %d inside its transaction' % session.number)
            self.look(session.conn, 'session %d inside its transaction' % session.number)

    WEIGHTS = (('upsert', 12), ('upsert_rows', 8), ('upsert_range', 6), ('large_value', 3), ('update', 14), ('update_from', 2), ('move', 6),
               ('move_many', 3), ('delete', 8), ('copy', 4), ('insert_from_itself', 3), ('fail', 3), ('for_update', 4), ('cursor_update', 3),
               ('merge', 3), ('on_conflict', 8), ('savepoint', 9), ('rollback_to', 6), ('release', 4), ('cursor', 7), ('truncate', 2), ('alter', 5), ('update_extra', 3), ('access_method', 1), ('commit', 14),
               ('rollback', 5), ('prepare', 3), ('flush', 8), ('vacuum_full', 3), ('old_snapshot', 3), ('restart', 1), ('compare_inside', 10))

    def step(self):
        rng = self.rng
        session = rng.choice(self.sessions)
        if session.prepared:
            if rng.random() < 0.3:
                self.driver.end_prepared(session, rng.random() < 0.6)
                self.compare_all()
            return
        names = [name for name, _ in self.WEIGHTS]
        name = rng.choices(names, [weight for _, weight in self.WEIGHTS])[0]
        self.counts[name] = self.counts.get(name, 0) + 1
        try:
            getattr(self, 'op_' + name)(session)
        except ServerError as error:
            # Sessions have rows of their own, but large commits exclude transactions that hold rows of the table.
            if not session.may_fail(error):
                raise
            self.driver.note('s%d' % session.number, '-- ' + error.message)
            self.driver.end(session, False)
            self.compare_all()

    def play(self, steps):
        for sql in self.twins.create():
            self.run(self.sessions[0], sql)
        for _ in range(steps):
            self.step()
        self.end_reader()
        for session in self.sessions:
            if session.prepared:
                self.driver.end_prepared(session, self.rng.random() < 0.5)
            self.driver.end(session, self.rng.random() < 0.7)
        self.compare_all()

    def finish(self, failed):
        """Removes the tables, unless something went wrong."""
        if not failed:
            self.sessions[0].conn.query(self.twins.drop())
        for conn in [s.conn for s in self.sessions] + [self.driver.watcher] + ([self.reader] if self.reader else []):
            conn.close()


def activity(server):
    try:
        return server.activity()
    except (ServerError, Lost, Hung, OSError) as error:
        return 'the server does not say: %s' % error


def play_round(server, number, seed, steps, trace):
    """One round; returns the report of its failure, or None, and what it did."""
    game = Round(server, number, seed)
    report = None
    try:
        game.play(steps)
    except (Failure, ServerError, Lost, Hung, RuntimeError) as error:
        report = 'seed %d, round %d (%s): %s: %s' % (seed, number, game.twins.describe(), type(error).__name__, error)
        if isinstance(error, Hung):
            report += '\n  meanwhile:\n' + activity(server)
        report += '\n  last statements:\n    ' + '\n    '.join(text[:700] for text in game.driver.history[-25:])
    if trace:
        with open(trace, 'a', encoding='utf8') as out:
            out.write('-- round %d: %s\n%s\n' % (number, game.twins.describe(), '\n'.join(game.driver.history)))
    try:
        game.finish(report is not None)
    except (ServerError, Lost, Hung) as error:
        report = report or 'seed %d, round %d: %s: %s' % (seed, number, type(error).__name__, error)
    return report, game


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1000000))
    rounds = int(os.environ.get('ROUNDS') or 0)
    seconds = float(os.environ.get('SECONDS') or 60)
    only = os.environ.get('ONLY')
    trace = os.environ.get('TRACE')
    steps = int(os.environ.get('STEPS') or 80)
    print('seed %d' % seed, flush=True)
    server = Server('equality', ['deadlock_timeout = 100ms', 'autovacuum_naptime = 1s'])
    passed, failed, compared, counts = 0, 0, 0, {}
    began = time.monotonic()
    number = int(only) if only else 1
    try:
        while True:
            report, game = play_round(server, number, seed, steps, trace)
            compared += game.compared
            for name, count in game.counts.items():
                counts[name] = counts.get(name, 0) + count
            if report:
                failed += 1
                print(report, flush=True)
                if failed >= 5:
                    break
                server.restart('fast')
            else:
                passed += 1
            number += 1
            if only or (number > rounds if rounds else time.monotonic() - began > seconds):
                break
        for line in server.log_lines('PANIC', 'TRAP:', 'was terminated by signal'):
            print('server log: ' + line)
            failed += 1
    except RuntimeError as error:
        print(error)
        failed += 1
    finally:
        if failed:
            print('server log ends:\n' + server.log_tail(15))
        if not os.environ.get('PAIMON_KEEP_SERVER'):
            server.remove()
    print('%d comparisons; %s' % (compared, ', '.join('%s %d' % item for item in sorted(counts.items()))))
    print('%d passed, %d failed' % (passed, failed))
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
