"""
Two transactions step by step on one table: what each step returns, which of them wait, and what others see meanwhile.

A step that waits for the other session does not end the schedule: what its session has still to do comes when it goes on.  Who waits is asked of the
server, as isolationtester does it.
"""
import time

from pgwire import Hung, ServerError


class Step:
    """`who`: 'a', 'b' (a session each) or 'x' (neither).  sql None: a step that is not taken here, whose result is known."""

    def __init__(self, who, name, sql, known=None, rows=True):
        self.who = who
        self.name = name
        self.sql = sql
        self.known = known
        self.rows = rows            # False: they do not count


def count_of(tag):
    """The number at the end of a command tag; for COMMIT and such the tag, since that of a failed transaction is ROLLBACK."""
    last = tag.split(' ')[-1] if tag else ''
    return int(last) if last.isdigit() else tag


class Player:
    """`look`: the statement that a third session runs after each step, which shows what is committed; conns: a, b, x and the watcher of waits."""

    def __init__(self, conns, watcher, look, note):
        self.conns = conns
        self.watcher = watcher
        self.look = look
        self.note = note
        self.trace = []             # (step, result) in the order in which steps ended; results: 'waits', or (rows, count), or an SQLSTATE
        self.running = {}           # by session: the step that waits
        self.later = {'a': [], 'b': []}

    def blocked(self, who):
        """Does the running step wait for the other session, or a prepared transaction?"""
        ours = {conn.pid for conn in self.conns.values()} | {0}
        blockers = self.watcher.query('SELECT unnest(pg_blocking_pids(%d))' % self.conns[who].pid)
        return any(int(pid) in ours for pid, in blockers)

    def settle(self, who, step, may_wait):
        """Until the step has ended, or it waits for somebody of ours; whether it has ended."""
        conn, patience, began = self.conns[who], 0.002, time.monotonic()
        while not conn.ready(patience):
            if may_wait and self.blocked(who) and not conn.ready(0):
                return False
            patience = min(patience * 2, 0.1)
            if time.monotonic() - began > conn.limit:
                raise Hung('no end within %g seconds of: %s' % (conn.limit, step.sql))
        self.running.pop(who, None)
        try:
            rows = conn.receive()
            self.ended(step, (tuple(sorted(rows, key=str)) if step.rows else (), count_of(conn.tag)))
        except ServerError as error:
            self.note('%s: %s' % (who, error.message))
            self.ended(step, error.sqlstate)
        return True

    def ended(self, step, result):
        self.trace.append((step.name, result))
        self.note('%s %s: %s' % (step.who, step.name, result))

    def begin(self, step):
        if step.sql is None:
            self.ended(step, step.known)
            return
        self.note('%s %s= %s' % (step.who, step.name, step.sql))
        self.conns[step.who].send(step.sql)
        if not self.settle(step.who, step, True):
            self.running[step.who] = step
            self.ended(step, 'waits')

    def go_on(self):
        """Sessions that waited and do not any more."""
        moved = True
        while moved:
            moved = False
            for who in sorted(self.running):
                # Where both wait, one must be told of the deadlock.
                both = len(self.running) == 2
                if both:
                    ready = False
                    while not ready:
                        who = next((w for w in self.running if self.conns[w].ready(0.01)), None)
                        ready = who is not None
                if self.settle(who, self.running[who], not both):
                    moved = True
                    while self.later[who] and who not in self.running:
                        self.begin(self.later[who].pop(0))
                    break

    def play(self, steps):
        for step in steps:
            if step.who in self.running:
                self.later[step.who].append(step)
                continue
            self.begin(step)
            self.go_on()
            if step.sql is not None or step.who != 'x':
                self.trace.append(('seen after ' + step.name, tuple(self.conns['x'].query(self.look))))
        if self.running:
            raise Hung('steps wait that nobody will let go on: %s\n%s' % ([s.name for s in self.running.values()], self.watcher.query(
                "SELECT a.pid, pg_blocking_pids(a.pid), l.* FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid OR l.pid IS NULL "
                "WHERE cardinality(pg_blocking_pids(a.pid)) > 0")))
        return self.trace
