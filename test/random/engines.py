"""
Random tables of every merge engine, aggregate function and option, and random statements on them, against an oracle that keeps every record and applies
them one by one (lib/engine_oracle.py).

Two parts.  Histories: the merge functions alone, through paimon.test_merge, which tries every way to cut a key's records into runs.  Rounds: tables, with
up to three sessions, savepoints, MERGE, two-phase commit, triggers, flushes, compactions, rewrites, ALTER TABLE, restarts and old snapshots; read by
scans, by key, in order, backward, part of the columns.

Environment: SEED, ROUNDS (tables; 0: as many as fit), SECONDS (60), ONLY (just this round), STEPS (100 statements a table), HISTORIES (share of the time
for the first part, 0.25), ENGINE (tables of that one only), TRACE (file for all statements), QUERY_SECONDS (300).
"""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from engine_oracle import Refused, admitted, visible                          # noqa: E402
from engine_tables import SCHEMA, Table, expression, record_text, same_value, value_of   # noqa: E402
from engine_play import Play, show                      # noqa: E402
from pgwire import Hung, Lost, ServerError               # noqa: E402
from server import Server                                # noqa: E402
from sessions import Failure                             # noqa: E402


def text_literal(text):
    return "'%s'" % text.replace("'", "''")


def array_literal(texts):
    return 'ARRAY[%s]::text[]' % ', '.join(map(text_literal, texts))


def differs(table, columns, got, wanted):
    return any(not same_value(table.spec.columns[c], g, wanted[c]) for c, g in zip(columns, got))


# ---- the functions alone ----

def random_history(table, rng):
    """Records of one key, as they could be written; at most nine."""
    spec, records = table.spec, []
    for _ in range(rng.choice([1, 2, 3, 4, 5, 7])):
        row = visible(spec, records)
        choice = rng.random()
        if choice < 0.15 and row and table.updates:
            values = table.row(1, '+I')
            for c, col in enumerate(spec.columns):
                if col.role in ('key', 'seq') or (col.role == 'order' and rng.random() < 0.7) or rng.random() < 0.3:
                    values[c] = row[c]
            record = ('UPDATE', values)
        elif choice < 0.22 and row and table.deletes:
            record = ('DELETE', row)
        else:
            kind = table.kind()
            record = (kind, table.row(1, kind))
        try:
            if admitted(spec, *record):
                records.append(record)
        except Refused:
            pass
    return records


def play_history(conn, table, rng):
    spec = table.spec
    records = random_history(table, rng)
    if not records:
        return None
    wanted = visible(spec, records)
    columns = list(range(len(spec.columns)))
    options = array_literal(['%s=%s' % (name if not name.endswith('.ignore-delete') else 'ignore-delete', value) for name, value in table.options])
    sql = 'SELECT %s FROM (SELECT paimon.test_merge(%s, %s, %s, %s)::%s AS r OFFSET 0) x' % (
        ', '.join(expression(col).replace(col.name, '(x.r).' + col.name) for col in spec.columns), text_literal(table.name), options,
        array_literal([kind for kind, _ in records]), array_literal([record_text(spec.columns, values) for _, values in records]), table.name)
    report = '%s\n  records %s\n  wanted %s\n  %s' % (
        table.describe(), '\n    '.join('%s %s' % (kind, show(table, values)) for kind, values in records), show(table, wanted), sql)
    try:
        row = conn.query(sql)[0]
    except ServerError as error:
        return '%s\n  %s' % (error, report)
    got = [value_of(col.kind, text) for col, text in zip(spec.columns, row)]
    if got[table.keys[0]] is None:
        got = None
    if (got is None) != (wanted is None) or (got and differs(table, columns, got, wanted)):
        return 'got %s\n  %s' % (show(table, got), report)
    return None


def play_histories(server, seed, seconds):
    """Returns the number of histories and the reports of failures."""
    conn, failures, number, count, began = server.connect(), [], 0, 0, time.monotonic()
    while time.monotonic() - began < seconds and len(failures) < 3:
        number += 1
        rng = random.Random('%d history %d' % (seed, number))
        table = Table(rng, 'history')
        conn.query(table.create(False))
        for _ in range(15):
            count += 1
            report = play_history(conn, table, rng)
            if report:
                failures.append('seed %d, history %d: %s' % (seed, number, report))
                break
        conn.query('DROP TABLE history')
    conn.close()
    return count, failures


# ---- tables ----

def play_round(server, number, seed, steps, trace):
    """One table; returns the report of its failure, or None, and what was done."""
    game, report = Play(server, number, seed), None
    try:
        game.play(steps)
    except (Failure, ServerError, Lost, Hung, RuntimeError) as error:
        report = 'seed %d, round %d (%s): %s: %s' % (seed, number, game.table.describe(), type(error).__name__, error)
        if isinstance(error, Hung):
            try:
                report += '\n  meanwhile:\n' + server.activity()
            except (ServerError, Lost, Hung, OSError) as silent:
                report += '\n  the server does not say: %s' % silent
        report += '\n  last statements:\n    ' + '\n    '.join(text[:700] for text in game.driver.history[-25:])
    if trace:
        with open(trace, 'a', encoding='utf8') as out:
            out.write('-- round %d: %s\n%s\n' % (number, game.table.describe(), '\n'.join(game.driver.history)))
    try:
        game.finish(report is not None)
    except (ServerError, Lost, Hung) as error:
        report = report or 'seed %d, round %d: %s: %s' % (seed, number, type(error).__name__, error)
    return report, game


class Tally:
    def __init__(self):
        self.passed, self.failed, self.compared, self.counts = 0, 0, 0, {}

    def add(self, report, game):
        self.compared += game.compared
        for name, count in game.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        if report:
            self.failed += 1
            print(report, flush=True)
        else:
            self.passed += 1


def play_rounds(server, seed, seconds, tally):
    rounds, only = int(os.environ.get('ROUNDS') or 0), os.environ.get('ONLY')
    number, began = int(only) if only else 1, time.monotonic()
    while tally.failed < 5:
        report, game = play_round(server, number, seed, int(os.environ.get('STEPS') or 100), os.environ.get('TRACE'))
        tally.add(report, game)
        if report:
            server.restart('immediate')
        number += 1
        if only or (number > rounds if rounds else time.monotonic() - began > seconds):
            break


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1000000))
    seconds = float(os.environ.get('SECONDS') or 60)
    share = float(os.environ.get('HISTORIES') or 0.25) if not os.environ.get('ONLY') else 0
    print('seed %d' % seed, flush=True)
    server, tally = Server('engines', ['deadlock_timeout = 100ms', 'track_commit_timestamp = on', 'autovacuum_naptime = 1s']), Tally()
    try:
        server.connect().query(SCHEMA)
        histories, reports = play_histories(server, seed, seconds * share)
        print('%d histories' % histories)
        for report in reports:
            print(report, flush=True)
        tally.passed, tally.failed = histories - len(reports), len(reports)
        if share < 1:
            play_rounds(server, seed, seconds * (1 - share), tally)
        for line in server.log_lines('PANIC', 'TRAP:', 'was terminated by signal'):
            print('server log: ' + line)
            tally.failed += 1
    except RuntimeError as error:
        print(error)
        tally.failed += 1
    finally:
        if tally.failed:
            print('server log ends:\n' + server.log_tail(15))
        if not os.environ.get('PAIMON_KEEP_SERVER'):
            server.remove()
    print('%d comparisons; %s' % (tally.compared, ', '.join('%s %d' % item for item in sorted(tally.counts.items()))))
    print('%d passed, %d failed' % (tally.passed, tally.failed))
    return 1 if tally.failed else 0


if __name__ == '__main__':
    sys.exit(main())
