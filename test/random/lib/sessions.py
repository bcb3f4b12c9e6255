"""Sessions of a randomised test, driven by one thread: statements that wait for another session are noticed, and what they wait for is ended."""
import time

from pgwire import Hung, ServerError


class Failure(Exception):
    """The test found something wrong."""


class Session:
    """One connection, and what its transaction has done so far."""

    def __init__(self, number, conn):
        self.number = number
        self.reset(conn)
        self.prepared = None        # global id of this session's prepared transaction
        self.answer = None          # of its running statement, (rows, error), received while another session was waited for

    def reset(self, conn):
        self.conn = conn
        self.ended()

    def ended(self):
        self.open = False
        self.isolation = None
        self.savepoints = []
        self.cursors = {}
        self.exclusive = False      # holds a lock on the whole table
        self.wrote = False

    def may_fail(self, error):
        """Deadlocks happen at any level; serialization failures only where the snapshot is kept."""
        return error.sqlstate == '40P01' or (error.sqlstate == '40001' and self.isolation not in (None, 'READ COMMITTED'))


class Driver:
    """Runs statements of sessions.  `history` holds them for the report of a failure."""

    def __init__(self, server, rng):
        self.server = server
        self.rng = rng
        self.watcher = server.connect()
        self.sessions = []
        self.history = []
        self.waits = 0

    def note(self, who, text):
        self.history.append('%s: %s' % (who, text if len(text) < 3000 else text[:1500] + ' [...] ' + text[-200:]))

    def run(self, session, sql, copy_data=None):
        """Runs a statement; ends the transactions that it turns out to wait for."""
        self.note('s%s' % session.number, sql)
        conn = session.conn
        conn.send(sql, copy_data)
        patience, began = 0.05, time.monotonic()
        while not conn.ready(patience):
            self.end_blockers(session)
            if session.answer is not None:
                (rows, error), session.answer = session.answer, None
                if error is not None:
                    raise error
                return rows
            patience = min(patience * 1.5, 1.0)
            if time.monotonic() - began > 180:
                raise Hung('no end within 180 seconds of: %s' % sql[:2000])
        return conn.receive()

    def end_blockers(self, session):
        blockers = {int(row[0]) for row in self.watcher.query('SELECT unnest(pg_blocking_pids(%d))' % session.conn.pid)}
        for other in self.sessions:
            if other.conn.pid in blockers and other.open:
                self.waits += 1
                if other.conn.running is None:
                    self.end(other, self.rng.random() < 0.7)
                elif other.conn.ready(0):
                    self.take_answer(other)
        if 0 in blockers:           # a prepared transaction
            for other in self.sessions:
                if other.prepared:
                    self.waits += 1
                    self.end_prepared(other, self.rng.random() < 0.7)

    def take_answer(self, session):
        """
        Takes the answer of a statement that itself is under way.  If it has lost a deadlock against the one that is waited for, the transaction is ended here: where that
        was in a sub-transaction, the locks of the one around it are still held.
        """
        sql, rows, failure = session.conn.running, None, None
        try:
            rows = session.conn.receive()
            if sql == 'COMMIT':
                self.committed(session)
        except ServerError as error:
            failure = error
            self.end(session, False)
        session.answer = (rows, failure)

    def committed(self, session):
        """Its COMMIT has been answered while others go on."""

    def end(self, session, commit):
        """Ends a session's transaction.  A deadlock is a way to end, too."""
        try:
            self.run(session, 'COMMIT' if commit else 'ROLLBACK')
        except ServerError as error:
            if not session.may_fail(error):
                raise
            self.note('s%s' % session.number, '-- ' + error.message)
        session.ended()

    def end_prepared(self, session, commit):
        gid, session.prepared = session.prepared, None
        sql = '%s PREPARED \'%s\'' % ('COMMIT' if commit else 'ROLLBACK', gid)
        self.note('watcher', sql)
        self.watcher.query(sql)

    def reconnect(self):
        self.watcher = self.server.connect()
        for session in self.sessions:
            session.reset(self.server.connect())
