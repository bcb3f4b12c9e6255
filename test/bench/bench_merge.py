"""The workloads of merge engines: counters (W9) and wide rows that come in parts (W10).  In the manner of bench_workloads.py; heap has ON CONFLICT DO UPDATE."""

import os

from bench_server import ENGINES, pgbench, wal
from bench_workloads import CLIENTS

COUNTERS = "k int PRIMARY KEY, n bigint, total bigint, top int"
COUNTER_OPTIONS = ("\"merge-engine\" = 'aggregation', \"fields.n.aggregate-function\" = 'sum', "
                   "\"fields.total.aggregate-function\" = 'sum', \"fields.top.aggregate-function\" = 'max'")
# Heap cannot change a row twice in one statement: the increments of a key are summed up before.
COUNT = {
    "heap": "INSERT INTO c_heap AS t SELECT k, count(*), sum(v), max(v) FROM ({0}) s GROUP BY k ORDER BY k ON CONFLICT (k) DO UPDATE "
            "SET n = t.n + excluded.n, total = t.total + excluded.total, top = greatest(t.top, excluded.top)",
    "paimon": "INSERT INTO c_paimon SELECT k, 1, v, v FROM ({0}) s",
}
STREAMS = 3
PART = 20               # columns of a part


def create(bench, prefix, columns, options):
    for engine in ENGINES:
        bench.session.run(f"DROP TABLE IF EXISTS {prefix}_{engine}")
        bench.session.run(f"CREATE TABLE {prefix}_{engine} ({columns}) USING {engine}" + (f" WITH ({options})" if engine == "paimon" else ""))


def stage(bench, name, query):
    """What a statement reads, so that it need not be computed there."""
    bench.session.run(f"DROP TABLE IF EXISTS {name}")
    bench.session.run(f"CREATE UNLOGGED TABLE {name} AS {query}")
    bench.session.run(f"VACUUM (FREEZE, ANALYZE) {name}")


def same(bench, workload, prefix, key):
    found = {e: bench.session.run(f"SELECT count(*), sum({key}::numeric), sum(hashtextextended(t::text, 0)::numeric) FROM {prefix}_{e} t")
             for e in ENGINES}
    if found["heap"] != found["paimon"]:
        raise RuntimeError(f"{workload}: the engines differ: {found}")


def one_statement(bench, workload, engine, sql, rows):
    s = bench.session
    s.run("CHECKPOINT")
    before = wal(s)
    seconds, cpu = s.timed(sql)
    bench.note(workload, engine, rows_per_s=rows / seconds, cpu_us_row=cpu * 1e6 / rows, wal_bytes_row=(wal(s) - before) / rows)


def streamed(bench, workload, engine, scripts, rows):
    """`rows` a transaction; the scripts one after the other."""
    transactions = max(20, int(bench.seconds * 60 / len(scripts)))
    bench.session.run("CHECKPOINT")
    before = wal(bench.session)
    took, latencies = 0, []
    for n, text in enumerate(scripts):
        name = os.path.join(bench.directory, f"merge_{engine}.sql")
        with open(name, "w") as f:
            f.write(text)
        seconds, some = pgbench(name, CLIENTS, transactions, bench.directory, bench.seed + bench.round * 10 + n)
        took += seconds
        latencies += some
    latencies.sort()
    done = transactions * CLIENTS * len(scripts) * rows
    bench.note(workload, engine, rows_per_s=done / took, p99_ms=latencies[int(len(latencies) * 0.99)],
               wal_bytes_row=(wal(bench.session) - before) / done)


def w9_counters(bench):
    """Increments of counters: all in one statement, and 1000 a transaction by 8 clients."""
    keys = max(bench.rows // 50, 100)
    increments = bench.rows // 5
    draw = f"SELECT (hashint8(g + {{0}}) & 2147483647) % {keys} + 1 AS k, hashint8(g + 7) & 1023 AS v FROM generate_series(1, {{1}}) g"
    create(bench, "c", COUNTERS, COUNTER_OPTIONS)
    stage(bench, "increments", draw.format(bench.round, increments))
    for engine in ENGINES:
        bench.session.run(f"INSERT INTO c_{engine} SELECT g, 0, 0, 0 FROM generate_series(1, {keys}) g")
    for engine in bench.engines():
        one_statement(bench, "W9 statement", engine, COUNT[engine].format("SELECT k, v FROM increments"), increments)
    same(bench, "W9 statement", "c", "k")
    for engine in bench.engines():
        streamed(bench, "W9 streamed", engine, ["\\set r random(1, 1000000000)\n" + COUNT[engine].format(draw.format(":r", 1000)) + ";\n"], 1000)
    same(bench, "W9 streamed", "c", "k")
    for engine in ENGINES:
        bench.session.run(f"DROP TABLE c_{engine}")
    bench.session.run("DROP TABLE increments")


def part_columns():
    """Of each stream, names and types: mostly numbers, every fifth a short text."""
    return [[(f"s{s}_{c}", "text" if c % 5 == 0 else "bigint") for c in range(PART)] for s in range(STREAMS)]


def part_rows(stream, source, cheap=False):
    """A stream's part of the rows whose keys `source` gives; what it holds follows from the key.  cheap: without computing much."""
    def value(i, kind):
        if kind == "text":
            return f"'changed {i}'" if cheap else f"'v' || hashint8(id + {i})"
        return f"id + {i}" if cheap else f"id * {i + 1} % 100000"

    return "SELECT id, " + ", ".join(f"{value(i, kind)} AS {name}" for i, (name, kind) in enumerate(part_columns()[stream])) + f" FROM ({source}) k"


def part_insert(engine, stream, rows):
    columns = part_columns()[stream]
    names = ", ".join(name for name, _ in columns)
    sql = f"INSERT INTO w_{engine} (id, {names}) {rows}"
    if engine == "heap":
        sql += " ON CONFLICT (id) DO UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name, _ in columns)
    return sql


def w10_parts(bench):
    """Three streams, each with 20 of 60 columns of the rows: all keys at once, and 100 a transaction by 8 clients."""
    keys = max(bench.rows // 10, CLIENTS * 200)
    columns = "id bigint PRIMARY KEY, " + ", ".join(f"{name} {kind}" for part in part_columns() for name, kind in part)
    create(bench, "w", columns, "\"merge-engine\" = 'partial-update'")
    everything = f"SELECT id FROM (SELECT generate_series(1, {keys}) AS id) g ORDER BY hashint8(id)"
    for stream in range(STREAMS):
        stage(bench, f"part_{stream}", part_rows(stream, everything))
    for engine in bench.engines():
        for stream in range(STREAMS):
            one_statement(bench, "W10 bulk", engine, part_insert(engine, stream, f"SELECT * FROM part_{stream}"), keys)
        bench.note("W10 bulk", engine, stored_bytes_row=int(bench.session.run(
            ("SELECT paimon.flush('w_paimon'), paimon.compact('w_paimon', \"full\" => true)" if engine == "paimon" else "SELECT 1") +
            f"\\g /dev/null\nSELECT pg_total_relation_size('w_{engine}')")) / keys)
    same(bench, "W10 bulk", "w", "id")
    stripe = keys // CLIENTS
    # 7919 is prime, so a transaction's keys are distinct; no two clients have the same.
    some = f"SELECT (:r + g * 7919::bigint) % {stripe} * {CLIENTS} + :client_id + 1 AS id FROM generate_series(1, 100) g"
    for engine in bench.engines():
        scripts = ["\\set r random(1, 1000000000)\n" + part_insert(engine, stream, part_rows(stream, some, cheap=True)) + ";\n" for stream in range(STREAMS)]
        streamed(bench, "W10 streamed", engine, scripts, 100)
    same(bench, "W10 streamed", "w", "id")
    for engine in ENGINES:
        bench.session.run(f"DROP TABLE w_{engine}")
    for stream in range(STREAMS):
        bench.session.run(f"DROP TABLE part_{stream}")
