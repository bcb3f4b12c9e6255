"""
One random table under random statements of several sessions, against the oracle.

The model: for each key, the records that were committed, in the order of commits, and for each session those of its open transaction, in the order in which
they were written.  A session sees the committed ones (or those that its snapshot has) and its own behind them.
"""
import os
import random

from engine_oracle import Refused, admitted, visible
from engine_statements import Statements
from engine_tables import TYPES, Table, copy_text, expression, literal, same_value, value_of
from pgwire import ServerError
from sessions import Driver, Failure, Session


def show(table, values):
    return '(%s)' % ', '.join('%s %r' % (c.name, v) for c, v in zip(table.spec.columns, values)) if values else 'no row'


def rank(value):
    return value.encode() if isinstance(value, str) else value


class Ender(Driver):
    """Tells the model how transactions end, also those that are ended because somebody waits for them."""

    def __init__(self, server, rng, game):
        super().__init__(server, rng)
        self.game = game

    def note(self, who, text):
        """The trace has whole statements, to be played again."""
        if os.environ.get('TRACE'):
            self.history.append('%s: %s' % (who, text))
        else:
            super().note(who, text)

    def committed(self, session):
        self.game.ended(session, session.conn.tag == 'COMMIT')

    def end_prepared(self, session, commit):
        super().end_prepared(session, commit)
        self.game.prepared_ended(session, commit)

    def take_earlier(self, session):
        """Whose COMMIT was under way, and has come before this session's, must be told to the model before, too."""
        others = [s for s in self.sessions if s is not session and s.conn.running == 'COMMIT' and s.xid and s.conn.ready(0)]
        for other in others if session.xid else []:
            if self.watcher.query('SELECT pg_xact_commit_timestamp(\'%s\') < pg_xact_commit_timestamp(\'%s\')' % (other.xid, session.xid))[0][0] == 't':
                self.take_answer(other)

    def end(self, session, commit):
        committed = False
        try:
            session.xid = self.watcher.query('SELECT backend_xid FROM pg_stat_activity WHERE pid = %d' % session.conn.pid)[0][0]
            self.run(session, 'COMMIT' if commit else 'ROLLBACK')
            committed = session.conn.tag == 'COMMIT'
            if committed:
                self.take_earlier(session)
        except ServerError as error:
            if not session.may_fail(error):
                raise
            self.note('s%s' % session.number, '-- ' + error.message)
        self.game.ended(session, committed)


class Play(Statements):
    def __init__(self, server, number, seed):
        self.rng = rng = random.Random(seed * 1000003 + number)
        self.server, self.number = server, number
        self.table = Table(rng, 'engine%d' % number)
        self.spec = self.table.spec
        self.driver = Ender(server, rng, self)
        self.nsessions = rng.choice([1, 2, 2, 3])
        self.spread = rng.choice([2, 5, 20, 60, 250])
        self.committed = {n: [] for n in range(self.spread * self.nsessions)}
        self.driver.sessions = self.sessions = [self.fresh(Session(n, server.connect())) for n in range(self.nsessions)]
        for session in self.sessions:
            session.kept = ([], [])     # records and events of its prepared transaction
        self.touched = None         # the column that triggers look at
        self.events, self.prepares = [], 0
        self.rows_seen = {}         # by key: (number of records, row)
        self.reader = self.reader_view = None
        self.counts, self.compared, self.cursors, self.added = {}, 0, 0, 0

    # ---- the model ----

    @staticmethod
    def fresh(session):
        session.pending, session.events, session.marks, session.view, session.xid = [], [], [], None, None
        return session

    def commit_records(self, records, events):
        for n, record in records:
            self.committed[n].append(record)
        self.events += events

    def ended(self, session, committed):
        if committed:
            self.commit_records(session.pending, session.events)
        session.ended()
        self.fresh(session)

    def lengths(self):
        return {n: len(records) for n, records in self.committed.items()}

    def row(self, n, session=None, view=None):
        records = self.committed[n] if view is None else self.committed[n][:view[n]]
        own = [record for m, record in session.pending if m == n] if session else []
        if own:
            return visible(self.spec, records + own)
        if self.rows_seen.get((n, len(records))) is None:
            self.rows_seen[(n, len(records))] = (visible(self.spec, records),)
        return self.rows_seen[(n, len(records))][0]

    def write(self, session, n, kind, values):
        """A record goes into the session's transaction; whether it counts."""
        if not admitted(self.spec, kind, values):
            return False
        session.pending.append((n, (kind, values)))
        return True

    def many_records(self, n):
        """More would show when they are merged (A.8)."""
        count = len(self.committed[n]) + sum(m == n for s in self.sessions for m, _ in s.pending + s.kept[0])
        return count >= self.table.most_records

    # ---- running ----

    def run(self, session, sql, copy_data=None):
        self.begin(session)
        return self.driver.run(session, sql, copy_data)

    def begin(self, session):
        if session.open:
            return
        session.isolation = self.rng.choice(['READ COMMITTED', 'READ COMMITTED', 'READ COMMITTED', 'REPEATABLE READ'])
        self.driver.run(session, 'BEGIN ISOLATION LEVEL ' + session.isolation)
        session.open = True
        if session.isolation == 'REPEATABLE READ':
            self.driver.run(session, 'SELECT 1')
            session.view = self.lengths()

    def count_is(self, session, wanted):
        got = session.conn.tag.split(' ')[-1]
        if got != str(wanted):
            raise Failure('%s instead of %s rows' % (session.conn.tag, wanted))

    def refused(self, session, sql, copy_data=None):
        """The statement must fail, saying that the engine cannot do that."""
        self.run(session, 'SAVEPOINT refused')
        try:
            self.driver.run(session, sql, copy_data)
        except ServerError as error:
            if error.sqlstate != '0A000':
                raise
            self.driver.run(session, 'ROLLBACK TO refused; RELEASE refused')
            return
        raise Failure('not refused: ' + sql)

    # ---- comparing ----

    def parse(self, columns, row):
        return [value_of(self.spec.columns[c].kind, text) for c, text in zip(columns, row)]

    def key_numbers(self):
        return {tuple(self.table.key_of(n)): n for n in self.committed}

    def check_rows(self, who, columns, rows, numbers, session, view):
        """Rows, as parsed and with all key columns, are those of the keys."""
        by_key, known = {}, self.key_numbers()
        at = [columns.index(c) for c in self.table.keys]
        for row in rows:
            n = known.get(tuple(row[i] for i in at))
            if n is None or n in by_key:
                raise Failure('%s sees %s key %s' % (who, 'an unknown' if n is None else 'twice the', [row[i] for i in at]))
            by_key[n] = row
        for n in numbers:
            wanted, got = self.row(n, session, view), by_key.pop(n, None)
            if (wanted is None) != (got is None) or (got and any(not same_value(self.spec.columns[c], g, wanted[c]) for c, g in zip(columns, got))):
                records = self.committed[n] if view is None else self.committed[n][:view[n]]
                lines = ['%s %s' % (kind, show(self.table, values)) for kind, values in records]
                lines += ['own %s %s' % (r[0], show(self.table, r[1])) for m, r in (session.pending if session else []) if m == n]
                raise Failure('%s sees %s of key %s\n  wanted %s\n  records\n    %s' % (
                    who, got, self.table.key_of(n), [wanted[c] for c in columns] if wanted else None, '\n    '.join(lines[-40:])))
        if by_key:
            raise Failure('%s sees other keys: %s' % (who, by_key))

    def select(self, columns):
        return ', '.join(expression(self.spec.columns[c]) for c in columns)

    def compare(self, conn, who, session=None, view=None):
        self.compared += 1
        columns = list(range(len(self.spec.columns)))
        rows = [self.parse(columns, row) for row in conn.query('SELECT %s FROM %s' % (self.select(columns), self.table.name))]
        self.check_rows(who, columns, rows, self.committed, session, view)

    def some_columns(self):
        extra = [c for c in range(len(self.spec.columns)) if c not in self.table.keys]
        columns = self.table.keys + self.rng.sample(extra, self.rng.randrange(len(extra) + 1))
        self.rng.shuffle(columns)
        return columns

    def look(self, conn, who, session=None, view=None):
        """Other ways to read: by key, in the key's order, backward, part of the columns, counts."""
        rng, columns, t = self.rng, self.some_columns(), self.table
        how = rng.choice(['lookup', 'lookup', 'order', 'backward', 'part', 'count', 'where', 'scroll'])
        keys = [self.spec.columns[c].name for c in t.keys]
        who += ' (%s)' % how
        if how == 'lookup':
            for n in rng.sample(sorted(self.committed), min(len(self.committed), 5)):
                rows = conn.query('SELECT %s FROM %s WHERE %s' % (self.select(columns), t.name, t.where(n)))
                self.check_rows(who, columns, [self.parse(columns, row) for row in rows], [n], session, view)
        elif how in ('order', 'backward'):
            down = how == 'backward'
            sql = 'SELECT %s FROM %s ORDER BY %s' % (self.select(columns), t.name, ', '.join(k + (' DESC' if down else '') for k in keys))
            rows = [self.parse(columns, row) for row in conn.query('SET LOCAL enable_seqscan = off; ' + sql)]
            order = [[rank(row[columns.index(c)]) for c in t.keys] for row in rows]
            if order != sorted(order, reverse=down):
                raise Failure('%s sees rows out of order' % who)
            self.check_rows(who, columns, rows, self.committed, session, view)
        elif how == 'part':
            rows = [self.parse(columns, row) for row in conn.query('SELECT %s FROM %s' % (self.select(columns), t.name))]
            self.check_rows(who, columns, rows, self.committed, session, view)
        elif how in ('count', 'where'):
            c = rng.choice(columns)
            name = self.spec.columns[c].name
            rows = [row for row in (self.row(n, session, view) for n in self.committed) if row]
            wanted = len(rows) if how == 'count' else sum(row[c] is None for row in rows)
            got = conn.one('SELECT count(*) FROM %s%s' % (t.name, '' if how == 'count' else ' WHERE %s IS NULL' % name))
            if got != str(wanted):
                raise Failure('%s counts %s instead of %d (%s)' % (who, got, wanted, name))
        else:
            self.scroll(conn, who, columns, session, view)

    def scroll(self, conn, who, columns, session, view):
        """Backward from the end of a cursor."""
        inside = conn.status == 'T'
        self.cursors += 1
        name = 'back%d' % self.cursors
        sql = 'SELECT %s FROM %s' % (self.select(columns), self.table.name)
        conn.query('%sDECLARE %s SCROLL CURSOR FOR %s; MOVE ALL IN %s' % ('' if inside else 'BEGIN; ', name, sql, name))
        rows = [self.parse(columns, row) for row in conn.query('FETCH BACKWARD ALL IN %s' % name)]
        conn.query('CLOSE %s%s' % (name, '' if inside else '; COMMIT'))
        self.check_rows(who, columns, rows, self.committed, session, view)

    def compare_all(self):
        self.compare(self.driver.watcher, 'a new snapshot')
        if self.rng.random() < 0.5:
            self.look(self.driver.watcher, 'a new snapshot')
        if self.reader is not None:
            self.compare(self.reader, 'an old snapshot', None, self.reader_view)
            self.look(self.reader, 'an old snapshot', None, self.reader_view)
        if self.rng.random() < 0.3:
            self.check_triggers()

    # ---- rows to write ----

    def own(self, session):
        return [n for n in self.committed if not self.table.own_keys or n % self.nsessions == session.number]

    def some_key(self, session):
        keys = self.own(session)
        for _ in range(5):
            n = self.rng.choice(keys)
            if not self.many_records(n):
                return n
        return None

    def some_records(self, session, count):
        """Records that are not refused: (number of the key, kind, values)."""
        records, used = [], {}
        for _ in range(count):
            n = self.some_key(session)
            if n is None or (self.table.most_records < 10 ** 9 and used.get(n, 0) > 2):
                continue
            kind = self.table.kind()
            values = self.table.row(n, kind)
            try:
                admitted(self.spec, kind, values)
            except Refused:
                kind = '+I'
                values = self.table.row(n, kind)
            used[n] = used.get(n, 0) + 1
            records.append((n, kind, values))
        return records

    def names(self):
        return ', '.join(c.name for c in self.spec.columns)

    def values(self, row, cast=False):
        return '(%s)' % ', '.join(literal(c.kind, v) + ('::' + TYPES[c.kind] if cast else '') for c, v in zip(self.spec.columns, row))

    def insert(self, session, records):
        if not records:
            return
        how = self.rng.random()
        if how < 0.6:
            sql, data = 'INSERT INTO %s (%s) VALUES %s' % (self.table.name, self.names(), ', '.join(self.values(r[2]) for r in records)), None
        elif how < 0.8:
            sql, data = 'INSERT INTO %s (%s) SELECT * FROM (VALUES %s) v' % (
                self.table.name, self.names(), ', '.join(self.values(r[2], True) for r in records)), None
        else:
            sql = 'COPY %s (%s) FROM STDIN' % (self.table.name, self.names())
            data = ''.join('\t'.join(copy_text(c.kind, v) for c, v in zip(self.spec.columns, r[2])) + '\n' for r in records).encode()
            self.driver.note('copy', data.decode())
        self.run(session, sql, data)
        for n, kind, values in records:
            values = self.incoming(values)
            self.write(session, n, kind, values)
            self.told(session, 'INSERT', None, values)
        self.count_is(session, len(records))

    def op_insert(self, session):
        self.insert(session, self.some_records(session, 1))

    def op_insert_rows(self, session):
        self.insert(session, self.some_records(session, self.rng.choice([2, 3, 10, 60, 300])))

    def op_refused(self, session):
        for _ in range(10):
            n = self.some_key(session)
            if n is None:
                return
            kind = self.table.kind()
            values = self.table.row(n, kind)
            try:
                admitted(self.spec, kind, values)
            except Refused:
                self.refused(session, 'INSERT INTO %s (%s) VALUES %s' % (self.table.name, self.names(), self.values(values)))
                return

    # ---- UPDATE and DELETE ----

    def some_keys(self, session):
        """A condition, and the numbers of the keys for which it holds."""
        rng, own = self.rng, [n for n in self.own(session) if not self.many_records(n)]
        if not own:
            return None, []
        if len(own) == len(self.committed) and rng.random() < 0.1:
            return 'true', own
        numbers = rng.sample(own, min(len(own), rng.choice([1, 1, 1, 2, 5, 30])))
        return ' OR '.join('(%s)' % self.table.where(n) for n in numbers), numbers

    def some_set(self):
        """Assignments: (column, expression, value by old row)."""
        rng, result = self.rng, []
        fixed = ('key',) if not self.table.own_keys else ('key', 'seq', 'order')
        columns = [c for c, col in enumerate(self.spec.columns) if col.role not in fixed]
        for c in rng.sample(columns, min(len(columns), rng.choice([1, 1, 2, 3]))):
            col = self.spec.columns[c]
            if col.role == 'value' and col.kind in ('int', 'int8') and rng.random() < 0.5:
                result.append((c, '%s + 1' % col.name, lambda row, c=c: None if row[c] is None else row[c] + 1))
            elif col.role == 'value' and col.kind == 'text' and rng.random() < 0.3:
                result.append((c, "%s || 'u'" % col.name, lambda row, c=c: None if row[c] is None else row[c] + 'u'))
            else:
                value = self.table.values.any(col) if col.role in ('value', 'op') else self.table.order_value(col, True)
                result.append((c, literal(col.kind, value), lambda row, value=value: value))
        return result

    def change(self, session, sql, numbers, records_of):
        """A statement that changes the rows of keys: those that it saw and that are still there when it locks them."""
        self.begin(session)
        before = {n for n in numbers if self.row(n, session, session.view or self.lengths())}
        if before and self.is_refused(session, before, records_of):
            self.refused(session, sql)
            return
        self.run(session, sql)
        count = 0
        for n in sorted(before):
            row = self.row(n, session, session.view)
            if row is None:
                continue
            records = records_of(n, row)
            written = [self.write(session, m, kind, values) for m, kind, values in records]
            count += written[0]
            if written[0]:
                deleted = records[-1][1] == 'DELETE'
                self.told(session, 'DELETE' if deleted else 'UPDATE', row, None if deleted else records[-1][2])
        self.count_is(session, count)

    def is_refused(self, session, numbers, records_of):
        try:
            for n in numbers:
                for _, kind, values in records_of(n, self.row(n, session, session.view)):
                    admitted(self.spec, kind, values)
        except Refused:
            return True
        return False

    def op_update(self, session):
        condition, numbers = self.some_keys(session)
        if not self.table.updates or condition is None:
            return
        assignments = self.some_set()
        if not assignments:
            return

        def records_of(n, row):
            new = list(row)
            for c, _, value in assignments:
                new[c] = value(row)
            return [(n, 'UPDATE', self.incoming(new))]
        sql = 'UPDATE %s SET %s WHERE %s' % (self.table.name, ', '.join('%s = %s' % (self.spec.columns[c].name, text) for c, text, _ in assignments), condition)
        self.change(session, sql, numbers, records_of)

    def op_delete(self, session):
        condition, numbers = self.some_keys(session)
        if not self.table.deletes or condition is None:
            return
        self.change(session, 'DELETE FROM %s WHERE %s' % (self.table.name, condition), numbers, lambda n, row: [(n, 'DELETE', row)])

    def op_move(self, session):
        """Another key: the row is deleted there, and inserted, that is merged, here."""
        old, new = self.some_key(session), self.some_key(session)
        if not self.table.deletes or old is None or new is None or old == new:
            return
        assignments = [(c, v) for c, v in zip(self.table.keys, self.table.key_of(new))]
        if self.table.own_keys:
            assignments += [(c, self.table.tick(col)) for c, col in enumerate(self.spec.columns) if col.role in ('seq', 'order')]

        def records_of(n, row):
            moved = list(row)
            for c, value in assignments:
                moved[c] = value
            return [(n, 'DELETE', row), (new, '+I', self.incoming(moved))]
        sql = 'UPDATE %s SET %s WHERE %s' % (self.table.name, ', '.join(
            '%s = %s' % (self.spec.columns[c].name, literal(self.spec.columns[c].kind, v)) for c, v in assignments), self.table.where(old))
        self.begin(session)
        if self.spec.ignore_delete or self.spec.engine == 'first-row':
            if self.row(old, session, session.view):
                self.refused(session, sql)
            return
        self.change(session, sql, [old], records_of)

    def op_on_conflict(self, session):
        """All columns from EXCLUDED: as a plain insert.  Other forms compute a row and store it as UPDATE does."""
        rng, spec = self.rng, self.spec
        if spec.rowkind is not None or (session.open and session.isolation != 'READ COMMITTED'):
            return
        self.begin(session)
        if session.isolation != 'READ COMMITTED':
            return
        records = {n: (n, kind, values) for n, kind, values in self.some_records(session, rng.choice([1, 1, 3, 20]))}
        keys = ', '.join(spec.columns[c].name for c in self.table.keys)
        rest = [c for c in range(len(spec.columns)) if c not in self.table.keys]
        plain = [c for c in rest if spec.columns[c].role == 'value']
        form = rng.choice(['all', 'all', 'nothing', 'some' if len(rest) > 1 else 'all'])
        if not records or (form == 'all' and self.touched is not None and spec.engine == 'deduplicate') or (form == 'some' and (not plain or spec.engine == 'first-row' or not self.table.updates)):
            return
        some = rng.choice(plain) if form == 'some' else None
        action = {'all': 'DO UPDATE SET ' + ', '.join('%s = EXCLUDED.%s' % (spec.columns[c].name, spec.columns[c].name) for c in rest),
                  'nothing': 'DO NOTHING', 'some': 'DO UPDATE SET %s = EXCLUDED.%s' % ((spec.columns[some or 0].name,) * 2)}[form]
        self.run(session, 'INSERT INTO %s (%s) VALUES %s ON CONFLICT (%s) %s' % (
            self.table.name, self.names(), ', '.join(self.values(r[2]) for r in records.values()), keys, action))
        for n, kind, values in records.values():
            row, values = self.row(n, session), self.incoming(values)
            if form == 'all' or row is None:
                self.write(session, n, kind, values)
                self.told(session, 'INSERT', None, values)
            elif form == 'some':
                new = self.incoming(row[:some] + [values[some]] + row[some + 1:])
                self.write(session, n, 'UPDATE', new)
                self.told(session, 'UPDATE', row, new)

    # ---- transactions ----

    def op_savepoint(self, session):
        name = 's%d' % len(session.marks)
        self.run(session, 'SAVEPOINT ' + name)
        session.marks.append((name, len(session.pending), len(session.events)))

    def op_rollback_to(self, session):
        if session.marks:
            at = self.rng.randrange(len(session.marks))
            name, length, events = session.marks[at]
            del session.marks[at + 1:]
            self.run(session, 'ROLLBACK TO ' + name)
            del session.pending[length:]
            del session.events[events:]

    def op_release(self, session):
        if session.marks:
            at = self.rng.randrange(len(session.marks))
            self.run(session, 'RELEASE ' + session.marks[at][0])
            del session.marks[at:]

    def op_commit(self, session):
        if session.open:
            self.driver.end(session, True)
            self.compare_all()

    def op_rollback(self, session):
        if session.open:
            self.driver.end(session, False)
            self.compare_all()

    def op_look_inside(self, session):
        if session.open:
            who = 'session %d inside its transaction' % session.number
            self.compare(session.conn, who, session, session.view)
            self.look(session.conn, who, session, session.view)

    # ---- around them ----

    def op_flush(self, session):
        sql = self.rng.choice(["SELECT paimon.flush('%s')", "SELECT paimon.flush('%s')", "SELECT paimon.flush('%s')", "SELECT paimon.compact('%s')",
                               "SELECT paimon.compact('%s', full => false)", 'VACUUM %s', 'ANALYZE %s']) % self.table.name
        self.driver.note('watcher', sql)
        self.driver.watcher.query(sql)
        self.compare_all()

    def op_vacuum_full(self, session):
        if not self.alone():
            return
        sql = self.rng.choice(['VACUUM FULL %s', 'CLUSTER %s USING %s_pkey' % ('%s', self.table.name)]) % self.table.name
        self.driver.note('watcher', sql)
        self.driver.watcher.query(sql)
        self.forget_history()
        self.compare_all()

    def forget_history(self):
        """After a rewrite the rows that are seen are all there is; where rows may still come late, they are as if inserted."""
        if self.table.late_sequence:
            return
        for n in self.committed:
            row = self.row(n)
            self.committed[n] = [('UPDATE', row)] if row else []
        self.rows_seen = {}

    def op_old_snapshot(self, session):
        if self.reader is None:
            self.reader = self.server.connect()
            self.driver.note('reader', 'BEGIN')
            self.reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
            self.reader_view = self.lengths()
            self.compare(self.reader, 'an old snapshot', None, self.reader_view)
        else:
            self.end_reader()

    def end_reader(self):
        if self.reader is not None:
            self.compare(self.reader, 'an old snapshot', None, self.reader_view)
            self.driver.note('reader', 'COMMIT')
            self.reader.query('COMMIT')
            self.reader.close()
            self.reader = None

    def op_restart(self, session):
        mode = self.rng.choice(['fast', 'immediate'])
        self.driver.note('server', 'restart ' + mode)
        for conn in [s.conn for s in self.sessions] + [self.driver.watcher] + ([self.reader] if self.reader else []):
            conn.close()
        self.reader = None
        self.server.restart(mode)
        self.driver.reconnect()
        for s in self.sessions:
            self.fresh(s)
        self.compare_all()

    def op_alter(self, session):
        """A column gets another name, which options follow, is dropped or gets another type; a new column reads as NULL or its default in the rows that are there."""
        rng, spec = self.rng, self.spec
        if not self.alone():
            return
        self.added += 1
        how = rng.choice(['name', 'name', 'add', 'drop', 'type'])
        if how in ('drop', 'type'):
            sql = self.drop_column() if how == 'drop' else self.change_type()
            if sql is None:
                return
        elif how == 'name':
            col = rng.choice([col for c, col in enumerate(spec.columns) if c != self.touched])
            new = '%s_%d' % (col.name[:1], self.added)
            sql = 'ALTER TABLE %s RENAME COLUMN %s TO %s' % (self.table.name, col.name, new)
            col.name = new
        elif self.table.late_sequence and spec.engine == 'aggregation':
            return              # its function would depend on the order of rows
        else:
            default = rng.choice([None, 7]) if spec.engine in ('deduplicate', 'partial-update', 'first-row') else None
            self.table.add('int', 'value', 'n%d' % self.added)
            spec.columns[-1].function = self.table.default_function
            sql = 'ALTER TABLE %s ADD COLUMN n%d int%s' % (self.table.name, self.added, '' if default is None else ' DEFAULT 7')
            for records in self.committed.values():
                records[:] = [(kind, values + [default]) for kind, values in records]
            self.rows_seen = {}
        self.driver.note('watcher', sql)
        self.driver.watcher.query(sql)
        self.compare_all()

    # ---- the game ----

    WEIGHTS = (('insert', 14), ('insert_rows', 14), ('refused', 2), ('update', 10), ('delete', 6), ('move', 3), ('on_conflict', 4), ('savepoint', 6),
               ('rollback_to', 4), ('release', 3), ('commit', 16), ('rollback', 3), ('look_inside', 8), ('flush', 12), ('vacuum_full', 1), ('old_snapshot', 3),
               ('restart', 0.7), ('alter', 1.5), ('merge', 6), ('prepare', 2), ('end_prepared', 3), ('terminate', 0.7))

    def step(self):
        session = self.rng.choice(self.sessions)
        name = self.rng.choices([n for n, _ in self.WEIGHTS], [w for _, w in self.WEIGHTS])[0]
        self.counts[name] = self.counts.get(name, 0) + 1
        try:
            getattr(self, 'op_' + name)(session)
        except ServerError as error:
            if not session.may_fail(error):
                raise
            self.driver.note('s%d' % session.number, '-- ' + error.message)
            self.driver.end(session, False)
            self.compare_all()

    def play(self, steps):
        self.driver.note('watcher', self.table.create())
        self.driver.watcher.query(self.table.create())
        self.make_triggers()
        for _ in range(steps):
            self.step()
        self.end_reader()
        for session in self.sessions:
            if session.prepared:
                self.driver.end_prepared(session, self.rng.random() < 0.7)
            self.driver.end(session, self.rng.random() < 0.7)
        self.compare_all()
        self.check_triggers()
        for sql in ("SELECT paimon.flush('%s')", "SELECT paimon.compact('%s')"):
            self.driver.watcher.query(sql % self.table.name)
            self.compare_all()
        damage = self.driver.watcher.query("SELECT * FROM paimon.verify('%s')" % self.table.name)
        if damage:
            raise Failure('paimon.verify: %s' % damage[:5])

    def finish(self, failed):
        if not failed:
            self.driver.watcher.query('DROP TABLE IF EXISTS {0}, {0}_log; DROP FUNCTION IF EXISTS {0}_before, {0}_after'.format(self.table.name))
        for conn in [s.conn for s in self.sessions] + [self.driver.watcher] + ([self.reader] if self.reader else []):
            conn.close()
