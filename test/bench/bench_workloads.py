"""The workloads.  Each takes the Bench (bench.py), runs once for each engine, checks that the engines agree, and notes its figures."""

import os
import statistics

from bench_server import COLUMNS, ENGINES, MemorySampler, checksums, pgbench, size, wal

SET_ALL = ", ".join(f"{c.split()[0]} = excluded.{c.split()[0]}" for c in COLUMNS.split(", ")[1:])
ON_CONFLICT = {"heap": f" ON CONFLICT (id) DO UPDATE SET {SET_ALL}", "paimon": ""}
CLIENTS = 8


def statement(bench, workload, engine, sql, rows, settled=False):
    """One statement: rate, processor time, WAL with a checkpoint before; `settled` adds the flush."""
    s = bench.session
    s.run("CHECKPOINT")
    before = wal(s)
    seconds, cpu = s.timed(sql)
    bench.note(workload, engine, rows_per_s=rows / seconds, cpu_us_row=cpu * 1e6 / rows)
    if settled:
        more, _ = s.timed("SELECT paimon.flush('t_paimon')") if engine == "paimon" else (0, 0)
        bench.note(workload, engine, settled_rows_per_s=rows / (seconds + more))
    bench.note(workload, engine, wal_bytes_row=(wal(s) - before) / rows)


def agree(bench, workload):
    found = {engine: checksums(bench.session, engine) for engine in ENGINES}
    if found["heap"] != found["paimon"]:
        raise RuntimeError(f"{workload}: the engines differ: heap {found['heap']}, paimon {found['paimon']}")


def w1_load(bench):
    """COPY of random keys into an empty table with its key."""
    s = bench.session
    for engine in bench.engines():
        s.run(f"DROP TABLE IF EXISTS t_{engine}")
        s.run(f"CREATE TABLE t_{engine} ({COLUMNS}) USING {engine}")
        statement(bench, "W1", engine, f"COPY t_{engine} FROM '{bench.base}'", bench.rows, settled=True)
        bench.note("W1", engine, stored_bytes_row=size(s, engine) / bench.rows)
    agree(bench, "W1")


def w2_upsert(bench):
    """As many rows again, half of them with keys that exist, from a staging table."""
    s = bench.session
    for engine in bench.engines():
        statement(bench, "W2", engine, f"INSERT INTO t_{engine} SELECT * FROM staging{ON_CONFLICT[engine]}", bench.rows, settled=True)
        bench.note("W2", engine, stored_bytes_row=size(s, engine) / (bench.rows * 1.5))
    agree(bench, "W2")


def stream_script(bench, engine, batch, law="uniform"):
    """
    A pgbench script of upserts.  The i-th row of a transaction has its key in the i-th stripe of the keys, so rows of a statement are in order
    (heap cannot deadlock) and distinct; the key's remainder is the client, so the result does not depend on who commits first.
    """
    name = os.path.join(bench.directory, f"stream_{engine}_{batch}_{law}.sql")
    stripe = bench.rows // batch // CLIENTS
    draw = {"uniform": f"random(0, {stripe - 1})", "zipf": f"(random_zipfian(1, {stripe}, 1.1) - 1)"}[law]
    with open(name, "w") as f:
        for i in range(batch):
            f.write(f"\\set id{i} ({draw} + {i * stripe}) * {CLIENTS} + :client_id + 1\n")
        f.write("\\set c random(1, 90000)\n\\set q random(1, 50)\n")
        # A prepared statement of pgbench has room for 255 parameters.
        changing = [(f":c::int + {i}", ":q") if i < 70 else (str(i * 900), str(i % 50)) for i in range(batch)]
        rows = [f"(:id{i}, '2026-07-01 10:00:{i % 60:02d}+00', {c}, 'region-{i * 7 % 20:02d}', 'paid', {i * 37 % 9000}.25, {q}, "
                f"'changed {hash_text(i)}')" for i, (c, q) in enumerate(changing)]
        f.write(f"INSERT INTO t_{engine} VALUES {', '.join(rows)}{ON_CONFLICT[engine]};\n")
    return name


def hash_text(n):
    return f"{(n * 0x9e3779b97f4a7c15 ^ 0x5bd1e995) % 2 ** 64:016x} some more words"


def w3_stream(bench, batch):
    """Upserts of uniformly drawn keys, 8 clients, a few rows a transaction."""
    workload = f"W3/{batch}"
    nominal = {1: 8000, 10: 3500, 100: 800}[batch]
    transactions = max(50, int(nominal * bench.seconds / CLIENTS))
    rows = transactions * CLIENTS * batch
    for engine in bench.engines():
        script = stream_script(bench, engine, batch)
        if bench.round == 0:
            bench.session.run("CHECKPOINT")
        before = wal(bench.session)
        seconds, latencies = pgbench(script, CLIENTS, transactions, bench.directory, bench.seed + bench.round)
        bench.note(workload, engine, rows_per_s=rows / seconds, p99_ms=latencies[int(len(latencies) * 0.99)],
                   wal_bytes_row=(wal(bench.session) - before) / rows)
    agree(bench, workload)


QUERIES = {
    "count(*)": "SELECT count(*) FROM @",
    "sum(qty)": "SELECT sum(qty) FROM @",
    "sum(amount)": "SELECT sum(amount) FROM @",
    "by region": "SELECT region, sum(amount) FROM @ WHERE status = 'paid' GROUP BY region ORDER BY region",
    "one day": "SELECT count(*), sum(qty) FROM @ WHERE ts >= '2026-06-10' AND ts < '2026-06-11'",
    "customer": "SELECT count(*), sum(amount) FROM @ WHERE customer = 4711",
    "LIKE": "SELECT count(*) FROM @ WHERE note LIKE '%abc%'",
}


def w4_scan(bench):
    """Full scans; for information."""
    for name, query in QUERIES.items():
        results = {}
        for engine in bench.engines():
            results[engine] = bench.session.run(query.replace("@", f"t_{engine}"))
            seconds, _ = bench.session.timed(query.replace("@", f"t_{engine}"))
            bench.note(f"W4 {name}", engine, per_s=1 / seconds)
        if results["heap"] != results["paimon"]:
            raise RuntimeError(f"W4 {name}: the engines differ: {results}")


def w7_change(bench):
    """UPDATE, then DELETE, of 1 % random rows by key from a list; not the same rows, which would be in memory."""
    s = bench.session
    n = bench.rows // 100
    for seed, what, sql in ((0.1, "UPDATE", "UPDATE t_@ t SET qty = qty + 1, status = 'packed' FROM keys k WHERE k.id = t.id"),
                            (0.15, "DELETE", "DELETE FROM t_@ t USING keys k WHERE k.id = t.id")):
        s.run("DROP TABLE IF EXISTS keys")
        s.run(f"SELECT setseed({seed + bench.round / 10})")
        s.run(f"CREATE TABLE keys AS SELECT DISTINCT 1 + floor(random() * {bench.rows})::bigint AS id FROM generate_series(1, {n})")
        s.run("ANALYZE keys")
        for engine in bench.engines():
            statement(bench, f"W7 {what}", engine, sql.replace("@", engine), n)
        agree(bench, f"W7 {what}")


def memory(bench):
    """Private memory of the backend during a COPY of many rows, against write-buffer-size."""
    s = bench.session
    s.run("DROP TABLE IF EXISTS t_heap, t_paimon")
    s.run(f"CREATE TABLE t_paimon ({COLUMNS}) USING paimon")
    sampler = MemorySampler(s.pid)
    sampler.start()
    s.run(f"COPY t_paimon FROM '{bench.large}'")
    peak = sampler.stop()
    if s.run("SELECT count(*) FROM t_paimon") != str(bench.large_rows):
        raise RuntimeError("memory: rows are missing")
    bench.memory_peak = peak


def medians(figures):
    return {name: statistics.median(values) for name, values in figures.items()}
