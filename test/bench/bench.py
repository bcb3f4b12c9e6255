"""Heap and paimon side by side on the workloads of README.md.

  bench.py DIRECTORY

The server, with the extension, is that of PGHOST and PGPORT.  Environment: BENCH_ROWS (5000000), BENCH_ROUNDS (3), BENCH_SECONDS (10: nominal
length of a streaming run on heap), BENCH_LARGE_ROWS (10000000: the load whose memory is watched), BENCH_ONLY (workloads, such as
"W1 W3"; W1 always runs), SEED.  All figures go to result.json in the directory.
"""

import json
import os
import subprocess
import sys

import bench_merge as merge
import bench_mixed as m
import bench_modes
import bench_reads
import bench_workloads as w
from bench_server import COLUMNS, ENGINES, Session

# What the first version must reach: workload, figure, at least this ratio to heap (or at most this many bytes a row, or ratio of bytes)
TARGETS = [
    ("W1", "rows_per_s", "ratio", 2.5),
    ("W1", "wal_bytes_row", "bytes", 60),
    ("W1", "stored_bytes_row", "bytes", 30),
    ("W2", "rows_per_s", "ratio", 6),
    ("W2", "settled_rows_per_s", "ratio", 4),
    ("W3/1", "rows_per_s", "ratio", 1.0),
    ("W3/10", "rows_per_s", "ratio", 2.0),
    ("W3/100", "rows_per_s", "ratio", 3.0),
    ("W3/1", "wal_bytes_row", "ratio at most", 1 / 3),
    ("W3/10", "wal_bytes_row", "ratio at most", 1 / 3),
    ("W3/100", "wal_bytes_row", "ratio at most", 1 / 3),
    ("W5 hit", "per_s", "ratio", 0.66),
    ("W5 zipf", "per_s", "ratio", 0.66),
    ("W5 miss", "per_s", "ratio", 0.66),
    ("W6 aggregate", "per_s", "ratio", 1.5),
    ("W6 rows", "per_s", "ratio", 1.5),
    ("page first", "per_s", "ratio", 0.5),
    ("page next", "per_s", "ratio", 0.5),
    ("W7 UPDATE", "rows_per_s", "ratio", 2.0),
    ("W7 DELETE", "rows_per_s", "ratio", 2.0),
    ("W8 uniform", "rows_per_s", "ratio", 3.0),
    ("W8 uniform", "peak_size", "times at most", 2.0),
    ("W8 uniform", "scan", "times at most", 1.5),
    ("W8 zipf", "rows_per_s", "ratio", 4.0),
    ("W8 zipf", "peak_size", "times at most", 2.0),
    ("W8 zipf", "scan", "times at most", 1.5),
    ("W9 statement", "rows_per_s", "ratio", 1.5),
    ("W9 statement", "wal_bytes_row", "ratio at most", 1 / 5),
    ("W9 streamed", "rows_per_s", "ratio", 3.0),
    ("W9 streamed", "wal_bytes_row", "ratio at most", 1 / 5),
    ("W10 bulk", "rows_per_s", "ratio", 5.0),
    ("W10 streamed", "rows_per_s", "ratio", 3.0),
    ("W11 commit", "max_ms", "ms at most", 100),
]
UNITS = {"rows_per_s": "rows/s", "settled_rows_per_s": "rows/s settled", "cpu_us_row": "us CPU/row", "wal_bytes_row": "WAL B/row",
         "stored_bytes_row": "stored B/row", "p99_ms": "p99 ms", "max_ms": "longest ms", "per_s": "per s",
         "peak_size": "x tidy size", "scan": "x tidy scan", "vacuum_s": "s VACUUM"}


class Bench:
    def __init__(self, directory):
        env = os.environ
        self.directory = directory
        self.rows = int(env.get("BENCH_ROWS") or 5000000)
        self.rounds = int(env.get("BENCH_ROUNDS") or 3)
        self.seconds = float(env.get("BENCH_SECONDS") or 10)
        self.large_rows = int(env.get("BENCH_LARGE_ROWS") or 10000000)
        self.only = (env.get("BENCH_ONLY") or "W1 W2 W3 W4 W5 W6 page W7 W8 W9 W10 W11 modes memory").split()
        self.seed = int(env.get("SEED") or 20240601)
        self.round = 0
        self.figures = {}
        self.memory_peak = None
        self.base = self.generate("base", 1, self.rows)
        self.session = Session()

    def generate(self, name, first, count):
        path = os.path.join(self.directory, name + ".tsv")
        with open(path, "wb") as out:
            subprocess.run([os.path.join(self.directory, "bench_rows"), str(first), str(count), str(self.seed)], stdout=out, check=True)
        return path

    def engines(self):
        """Both, the first one changing from round to round."""
        return ENGINES if self.round % 2 == 0 else ENGINES[::-1]

    def note(self, workload, engine, **figures):
        for name, value in figures.items():
            self.figures.setdefault(workload, {}).setdefault(name, {e: [] for e in ENGINES})[engine].append(value)

    def medians(self, workload, name):
        return w.medians(self.figures[workload][name])

    def say(self, text):
        print(text, flush=True)

    def make_staging(self):
        path = self.generate("staging", 1 + self.rows // 2, self.rows)
        self.session.run("DROP TABLE IF EXISTS staging")
        self.session.run(f"CREATE TABLE staging ({COLUMNS.replace(' PRIMARY KEY', '')})")
        self.session.run(f"COPY staging FROM '{path}'")
        self.session.run("VACUUM (FREEZE, ANALYZE) staging")
        os.remove(path)

    def wants(self, name):
        return name in self.only

    def run_round(self):
        w.w1_load(self)
        if self.wants("W4"):
            w.w4_scan(self)
        if self.wants("W2"):
            w.w2_upsert(self)
        for reads in ("W5", "W6", "page"):
            if self.wants(reads):
                bench_reads.reads(self, reads)
        if self.wants("W7"):
            w.w7_change(self)
        if self.wants("W3"):
            for batch in (1, 10, 100):
                w.w3_stream(self, batch)
        if self.wants("W8"):
            for law in ("uniform", "zipf"):
                m.w8_churn(self, law)
        if self.wants("W9"):
            merge.w9_counters(self)
        if self.wants("W10"):
            merge.w10_parts(self)
        if self.wants("W11"):
            m.w11_mixed(self)

    def run(self):
        self.say(f"{self.rows} rows, {self.rounds} rounds, seed {self.seed}; medians; the engines agreed after each workload")
        if self.wants("W2"):
            self.make_staging()
        for self.round in range(self.rounds):
            self.run_round()
            self.say(f"round {self.round + 1} done")
        if self.wants("modes"):
            bench_modes.modes(self)
        if self.wants("memory"):
            os.remove(self.base)
            self.large = self.generate("large", 1, self.large_rows)
            w.memory(self)

    def report(self):
        self.say(f"\n{'':14} {'':16} {'heap':>14} {'paimon':>14} {'ratio':>8}   target")
        result = {}
        targets = {(t[0], t[1]): t[2:] for t in TARGETS}
        for workload, figures in self.figures.items():
            for name in figures:
                m = self.medians(workload, name)
                ratio = m["paimon"] / m["heap"] if m["heap"] else float("nan")
                verdict = judge(targets.get((workload, name)), m["paimon"], ratio)
                self.say(f"{workload:14} {UNITS[name]:16} {m['heap']:14,.1f} {m['paimon']:14,.1f} {ratio:8.2f}   {verdict}".rstrip())
                result.setdefault(workload, {})[name] = {**m, "ratio": ratio, "target": verdict, "rounds": figures[name]}
        if self.memory_peak is not None:
            limit = 64 * 1024 * 1024
            verdict = "ok" if self.memory_peak < limit * 1.25 else "FALLS SHORT"
            self.say(f"\nPrivate memory of the backend in a COPY of {self.large_rows} rows: {self.memory_peak / 1048576:.1f} MB "
                     f"above its start; write-buffer-size 64 MB plus a quarter at most: {verdict}")
            result["memory"] = {"peak_bytes": self.memory_peak, "target": verdict}
        with open(os.path.join(self.directory, "result.json"), "w") as f:
            json.dump({"rows": self.rows, "rounds": self.rounds, "seconds": self.seconds, "seed": self.seed, "workloads": result}, f, indent=1)


def judge(target, value, ratio):
    if target is None:
        return ""
    kind, limit = target
    if kind == "ratio":
        return f">= {limit:g} x: {'ok' if ratio >= limit else 'FALLS SHORT'}"
    if kind == "ratio at most":
        return f"<= {limit:.2f} x: {'ok' if ratio <= limit else 'FALLS SHORT'}"
    if kind in ("times at most", "ms at most"):
        return f"<= {limit:g} {kind.split()[0]}: {'ok' if value <= limit else 'FALLS SHORT'}"
    return f"<= {limit:g} B: {'ok' if value <= limit else 'FALLS SHORT'}"


def main():
    bench = Bench(sys.argv[1])
    bench.run()
    bench.report()
    bench.session.close()


main()
