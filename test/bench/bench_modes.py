"""What merging on read, copy-on-write and a regular full compaction cost and give: one table, three settings, the same stream of upserts."""

import json

from bench_mixed import SCAN, tidy
from bench_server import COLUMNS, pgbench, wal
from bench_workloads import CLIENTS, ON_CONFLICT, stream_script

MODES = {
    "merge on read": "",
    "optimization-interval 5 s": "\"compaction.optimization-interval\" = '5 s'",
    "copy on write": '"full-compaction.delta-commits" = 1',
}
TABLE = "mode"  # its name is t_mode, as bench_workloads names tables
BATCH = 100
ON_CONFLICT[TABLE] = ""


def scan_ms(session):
    return session.timed(SCAN.replace("@", TABLE))[0] * 1000


def lookup_ms(bench, rows):
    name = f"{bench.directory}/mode_lookup.sql"
    with open(name, "w") as f:
        f.write(f"\\set id random(1, {rows})\nSELECT * FROM t_{TABLE} WHERE id = :id;\n")
    _, latencies = pgbench(name, 1, 2000, bench.directory, bench.seed)
    return latencies[len(latencies) // 2]


def one_mode(bench, options):
    s = bench.session
    s.run(f"DROP TABLE IF EXISTS t_{TABLE}")
    # A small write buffer, so that the seconds of a run are many flushes.
    s.run(f"CREATE TABLE t_{TABLE} ({COLUMNS}) USING paimon WITH (\"write-buffer-size\" = '8 mb'{', ' if options else ''}{options})")
    s.run(f"INSERT INTO t_{TABLE} SELECT * FROM t_paimon ORDER BY id LIMIT {min(bench.rows, 1000000)}")
    rows = int(s.run(f"SELECT max(id) FROM t_{TABLE}"))
    s.run(f"SELECT paimon.compact('t_{TABLE}', \"full\" => true)")
    tidy_scan = min(scan_ms(s) for _ in range(3))
    script = stream_script(type("Table", (), {"rows": rows, "directory": bench.directory}), TABLE, BATCH)
    s.run("CHECKPOINT")
    before = wal(s)
    _, latencies = pgbench(script, CLIENTS, None, bench.directory, bench.seed, seconds=bench.seconds)
    written = len(latencies) * BATCH
    scan = min(scan_ms(s) for _ in range(2))
    point = lookup_ms(bench, rows)
    stats = json.loads(s.run(f"SELECT to_json(st) FROM paimon.stats('t_{TABLE}') st"))
    return {"rows/s": written / bench.seconds, "p99 ms": latencies[int(len(latencies) * 0.99)], "runs": stats["runs"],
            "scan, x tidy": scan / tidy_scan, "lookup ms": point, "WAL B/row": (wal(s) - before) / written,
            "times written": stats["rewrite_factor"] or 0}


def modes(bench):
    """A table: a line for each setting."""
    figures = {name: one_mode(bench, options) for name, options in MODES.items()}
    names = list(next(iter(figures.values())))
    bench.say(f"\n{'':28}" + "".join(f"{n:>15}" for n in names))
    for mode, values in figures.items():
        bench.say(f"{mode:28}" + "".join(f"{values[n]:15,.2f}" for n in names))
    bench.session.run(f"DROP TABLE t_{TABLE}")
