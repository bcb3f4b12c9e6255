"""
Random tables of every merge engine, aggregate function and option, and random statements on them, against an oracle that keeps every record and applies
them one by one (lib/engine_oracle.py).

Two parts.  Histories: the merge functions alone, through paimon.test_merge, which tries every way to cut a key's records into runs.  Rounds: tables, with
up to three sessions, savepoints, flushes, compactions, restarts and old snapshots; read by scans, by key, in order, backward, part of the columns.

Environment: SEED, ROUNDS (tables; 0: as many as fit), SECONDS (60), ONLY (just this round), STEPS (100 statements a table), HISTORIES (share of the time
for the first part, 0.25), TRACE (file for all statements), QUERY_SECONDS (300).
"""
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib'))

from engine_oracle import Refused, admitted, visible                          # noqa: E402
from engine_tables import SCHEMA, Table, expression, literal, record_text, same_value, value_of   # noqa: E402
from pgwire import Hung, Lost, ServerError               # noqa: E402
from server import Server                                # noqa: E402
from sessions import Failure                             # noqa: E402


def text_literal(text):
    return "'%s'" % text.replace("'", "''")


def array_literal(texts):
    return 'ARRAY[%s]::text[]' % ', '.join(map(text_literal, texts))


def show(table, values):
    return '(%s)' % ', '.join('%s %r' % (c.name, v) for c, v in zip(table.spec.columns, values)) if values else 'no row'


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


def main():
    seed = int(os.environ.get('SEED') or random.SystemRandom().randrange(1000000))
    seconds = float(os.environ.get('SECONDS') or 60)
    share = float(os.environ.get('HISTORIES') or 0.25)
    print('seed %d' % seed, flush=True)
    server = Server('engines', ['deadlock_timeout = 100ms', 'autovacuum_naptime = 1s'])
    conn = server.connect()
    conn.query(SCHEMA)
    count, failures = play_histories(server, seed, seconds * share)
    for report in failures:
        print(report)
    print('%d histories' % count)
    server.remove()
    print('%d passed, %d failed' % (count - len(failures), len(failures)))
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main())
