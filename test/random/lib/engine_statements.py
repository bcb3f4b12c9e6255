"""More of what a session may do to an engine's table: MERGE, two-phase commit, triggers, lost connections, columns that are dropped or get another type, rewrites."""
from collections import Counter

from engine_oracle import Refused, admitted
from engine_tables import TYPES
from pgwire import ServerError
from sessions import Failure

LOG = '''
CREATE TABLE {0}_log (later boolean, op text, old text, new text);
CREATE FUNCTION {0}_before() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.{1} := NEW.{1} || '!'; RETURN NEW; END $$;
CREATE FUNCTION {0}_after() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO {0}_log VALUES (TG_NAME = 'later', TG_OP, CASE WHEN TG_OP <> 'INSERT' THEN OLD.{1} END, CASE WHEN TG_OP <> 'DELETE' THEN NEW.{1} END);
	RETURN NULL;
END $$;
CREATE TRIGGER before BEFORE INSERT OR UPDATE ON {0} FOR EACH ROW EXECUTE FUNCTION {0}_before();
CREATE TRIGGER once AFTER INSERT OR UPDATE OR DELETE ON {0} FOR EACH ROW EXECUTE FUNCTION {0}_after();
CREATE CONSTRAINT TRIGGER later AFTER INSERT OR UPDATE OR DELETE ON {0} DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {0}_after();
'''


class Statements:
    """Part of Play."""

    # ---- triggers: one changes a text column of incoming rows, others note what they are told ----

    def make_triggers(self):
        spec = self.spec
        texts = [c for c, col in enumerate(spec.columns) if col.kind == 'text' and col.role == 'value' and col.function not in ('listagg',)]
        if not texts or spec.ignore_delete or spec.ignore_update_before or self.rng.random() < 0.6:
            return
        self.touched = self.rng.choice(texts)
        self.driver.watcher.query(LOG.format(self.table.name, spec.columns[self.touched].name))

    def incoming(self, values):
        """The row as triggers before INSERT and UPDATE leave it."""
        if self.touched is None or values[self.touched] is None:
            return values
        return values[:self.touched] + [values[self.touched] + '!'] + values[self.touched + 1:]

    def told(self, session, op, old, new):
        """Triggers hear of a row."""
        if self.touched is not None:
            session.events.append((op, old[self.touched] if old else None, new[self.touched] if new else None))

    def check_triggers(self):
        """All that is committed was told once at once and once later; later an INSERT's row may be what it was merged into."""
        if self.touched is None:
            return
        rows = self.driver.watcher.query('SELECT later, op, old, new FROM %s_log' % self.table.name)
        once = Counter((op, old, new) for later, op, old, new in rows if later == 'f')
        wanted = Counter(self.events)
        if once != wanted:
            raise Failure('triggers were told %s and not %s' % (list((once - wanted).items())[:5], list((wanted - once).items())[:5]))
        ops = Counter(op for later, op, _, _ in rows if later == 't')
        if ops != Counter(op for op, _, _ in self.events):
            raise Failure('deferred triggers were told %s of %s' % (ops, Counter(op for op, _, _ in self.events)))

    # ---- MERGE ----

    def merge_actions(self, session, assignments):
        """What becomes of the rows of keys in MERGE, drawn for each: its letter and the records that an existing row gets."""
        letters = ['k', 'n'] + (['d', 'd'] if self.table.deletes else []) + (['u'] * 4 if self.table.updates and assignments else [])

        def records_of(letter, n, row):
            if letter == 'd':
                return [(n, 'DELETE', row)]
            if letter == 'u':
                new = list(row)
                for c, _, value in assignments:
                    new[c] = value(row)
                return [(n, 'UPDATE', self.incoming(new))]
            return []
        return letters, records_of

    def merge_sql(self, sources, assignments):
        spec, t = self.spec, self.table
        names = ['x%d' % c for c in range(len(spec.columns))]
        rows = ', '.join("%s, '%s')" % (self.values(values, True)[:-1], letter) for _, _, values, letter in sources)
        sql = 'MERGE INTO %s USING (VALUES %s) s(%s, w) ON %s' % (
            t.name, rows, ', '.join(names), ' AND '.join('%s = x%d' % (spec.columns[c].name, c) for c in t.keys))
        if t.deletes:
            sql += " WHEN MATCHED AND w = 'd' THEN DELETE"
        if t.updates and assignments:
            sql += " WHEN MATCHED AND w = 'u' THEN UPDATE SET " + ', '.join('%s = %s' % (spec.columns[c].name, text) for c, text, _ in assignments)
        sql += ' WHEN MATCHED THEN DO NOTHING' if self.rng.random() < 0.5 else ''
        return sql + " WHEN NOT MATCHED AND w <> 'n' THEN INSERT (%s) VALUES (%s)" % (self.names(), ', '.join(names))

    def op_merge(self, session):
        """By the rows that it sees; what was deleted meanwhile is inserted, and what was inserted meanwhile is a duplicate."""
        self.begin(session)
        if session.isolation != 'READ COMMITTED':
            return
        assignments = self.some_set()
        letters, records_of = self.merge_actions(session, assignments)
        sources = [(n, kind, values, self.rng.choice(letters)) for n, (kind, values) in
                   {n: (kind, values) for n, kind, values in self.some_records(session, self.rng.choice([1, 2, 5, 20]))}.items()]
        if not sources:
            return
        sql = self.merge_sql(sources, assignments)
        before = {n for n, _, _, _ in sources if self.row(n, session)}
        try:
            for n, _, _, letter in sources:
                for _, kind, values in records_of(letter, n, self.row(n, session)) if n in before else []:
                    admitted(self.spec, kind, values)
        except Refused:
            try:
                self.refused(session, sql)
            except ServerError as error:        # a duplicate may come first
                if error.sqlstate != '23505':
                    raise
                self.driver.run(session, 'ROLLBACK TO refused; RELEASE refused')
            return
        self.run(session, 'SAVEPOINT merge')
        try:
            self.driver.run(session, sql)
        except ServerError as error:
            if error.sqlstate != '23505' or not any(n not in before and letter != 'n' and self.row(n, session) for n, _, _, letter in sources):
                raise
            self.driver.run(session, 'ROLLBACK TO merge; RELEASE merge')
            return
        tag = session.conn.tag
        self.driver.run(session, 'RELEASE merge')
        count = 0
        for n, kind, values, letter in sources:
            row = self.row(n, session)
            if n in before and (row or letter == 'k'):
                written = [self.write(session, *record) for record in records_of(letter, n, row)] if row else [False]
                count += any(written)
                if any(written):
                    self.told(session, 'UPDATE' if letter == 'u' else 'DELETE', row, session.pending[-1][1][1] if letter == 'u' else None)
            elif letter != 'n':
                if row:
                    raise Failure('MERGE has inserted a row of key %s, which was there' % self.table.key_of(n))
                values = self.incoming(values)
                self.write(session, n, kind, values)
                self.told(session, 'INSERT', None, values)
                count += 1
        if tag.split(' ')[-1] != str(count):
            raise Failure('%s instead of %d rows' % (tag, count))

    # ---- two-phase commit ----

    def op_prepare(self, session):
        if not session.open or not session.pending or session.prepared:
            return
        self.prepares += 1
        gid = '%s_%d' % (self.table.name, self.prepares)
        try:
            self.driver.run(session, "PREPARE TRANSACTION '%s'" % gid)
        except ServerError as error:
            if error.sqlstate != '0A000':       # it has written files
                raise
            self.driver.end(session, False)
            return
        session.prepared, session.kept = gid, (session.pending, session.events)
        session.ended()
        self.fresh(session)
        self.compare_all()

    def op_end_prepared(self, session):
        if session.prepared:
            self.driver.end_prepared(session, self.rng.random() < 0.7)
            self.compare_all()

    def prepared_ended(self, session, committed):
        (records, events), session.kept = session.kept, ([], [])
        if committed:
            self.commit_records(records, events)

    # ---- lost connections ----

    def op_terminate(self, session):
        watcher, pid = self.driver.watcher, session.conn.pid
        self.driver.note('watcher', 'terminates s%d' % session.number)
        watcher.query('SELECT pg_terminate_backend(%d, 60000)' % pid)
        session.conn.close()
        session.reset(self.server.connect())
        self.fresh(session)
        self.compare_all()

    # ---- the whole table ----

    def alone(self):
        """Ends everybody's transactions, now and then, so that the table can be locked; whether it can."""
        busy = [s for s in self.sessions if s.open or s.prepared]
        if (busy or self.reader is not None) and self.rng.random() < 0.5:
            return False
        self.end_reader()
        for s in self.sessions:
            if s.prepared:
                self.driver.end_prepared(s, self.rng.random() < 0.7)
            if s.open:
                self.driver.end(s, self.rng.random() < 0.7)
        return True

    def drop_column(self):
        """One that no option names, nor a trigger; the statement, or None."""
        spec, t = self.spec, self.table
        can = [c for c, col in enumerate(spec.columns) if col.role == 'value' and col.group is None and c != self.touched and not col.named]
        if len(can) < 2:
            return None
        gone = self.rng.choice(can)
        name = spec.columns[gone].name
        del spec.columns[gone]

        def moved(c):
            return c - (c > gone) if c is not None else None
        t.keys, spec.sequence = [moved(c) for c in t.keys], [moved(c) for c in spec.sequence]
        spec.rowkind, self.touched = moved(spec.rowkind), moved(self.touched)
        for group in spec.groups:
            group.order, group.columns = [moved(c) for c in group.order], [moved(c) for c in group.columns]
        for records in self.committed.values():
            records[:] = [(kind, values[:gone] + values[gone + 1:]) for kind, values in records]
        self.rows_seen = {}
        return 'ALTER TABLE %s DROP COLUMN %s' % (t.name, name)

    def change_type(self):
        """Of a column that no option names: the table is rewritten; the statement, or None."""
        can = [col for col in self.spec.columns if col.role == 'value' and col.kind in ('int', 'int2') and not col.named and col.group is None]
        if not can:
            return None
        col = self.rng.choice(can)
        col.kind = 'int8'
        self.forget_history()
        return 'ALTER TABLE %s ALTER COLUMN %s TYPE %s' % (self.table.name, col.name, TYPES['int8'])
