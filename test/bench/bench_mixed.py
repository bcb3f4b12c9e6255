"""The workloads that last: many upserts onto a full table (W8), reading while others write (W11).  In the manner of bench_workloads.py."""

import threading
import time

from bench_server import Session, SizeSampler, pgbench, size, wal
from bench_workloads import CLIENTS, agree, stream_script

BATCH = 100
SCAN = "SELECT sum(qty) FROM t_@"


def scan_seconds(session, engine):
    """The better of two."""
    return min(session.timed(SCAN.replace("@", engine))[0] for _ in range(2))


def tidy(session, engine):
    """What the table is like when everything is done that can be: (bytes, seconds of a scan)."""
    if engine == "paimon":
        session.run("SELECT paimon.compact('t_paimon', \"full\" => true)")
    session.run(f"VACUUM t_{engine}")
    return size(session, engine), scan_seconds(session, engine)


def w8_churn(bench, law):
    """As many upserts as the table has rows, 100 a transaction, 8 clients; then size, scan and VACUUM, against the table when it is tidy."""
    workload = f"W8 {law}"
    s = bench.session
    transactions = max(10, bench.rows // BATCH // CLIENTS)
    rows = transactions * CLIENTS * BATCH
    # Old snapshots are kept as far as the user wants them; here nobody does.
    s.run("ALTER TABLE t_paimon SET (\"snapshot.num-retained.min\" = 1, \"snapshot.num-retained.max\" = 1)")
    for engine in bench.engines():
        tidy_size, tidy_scan = tidy(s, engine)
        script = stream_script(bench, engine, BATCH, law)
        sampler = SizeSampler(engine)
        sampler.start()
        s.run("CHECKPOINT")
        before = wal(s)
        seconds, latencies = pgbench(script, CLIENTS, transactions, bench.directory, bench.seed + bench.round)
        peak = sampler.stop()
        scan = scan_seconds(s, engine)
        vacuum, _ = s.timed(f"VACUUM t_{engine}")
        if engine == "paimon":
            tidy_size, tidy_scan = tidy(s, engine)
        bench.note(workload, engine, rows_per_s=rows / seconds, p99_ms=latencies[int(len(latencies) * 0.99)], max_ms=latencies[-1],
                   wal_bytes_row=(wal(s) - before) / rows, peak_size=peak / tidy_size, scan=scan / tidy_scan, vacuum_s=vacuum)
    agree(bench, workload)


class Scanner(threading.Thread):
    """Scans one after the other; their seconds."""

    def __init__(self, engine):
        super().__init__(daemon=True)
        self.engine = engine
        self.session = Session()
        self.done = threading.Event()
        self.seconds = []

    def run(self):
        while not self.done.is_set():
            self.seconds.append(self.session.timed(SCAN.replace("@", self.engine))[0])

    def stop(self):
        self.done.set()
        self.join()
        self.session.close()
        return sorted(self.seconds)


def w11_mixed(bench):
    """5000 rows a second are upserted by 4 clients, 100 a transaction, while one session scans and another looks keys up."""
    for engine in bench.engines():
        writer = stream_script(bench, engine, BATCH)
        reader = f"{bench.directory}/w11_{engine}.sql"
        with open(reader, "w") as f:
            f.write(f"\\set id random(1, {bench.rows})\nSELECT * FROM t_{engine} WHERE id = :id;\n")
        scanner = Scanner(engine)
        written = []
        writing = threading.Thread(target=lambda: written.extend(
            pgbench(writer, 4, None, bench.directory, bench.seed, seconds=bench.seconds, rate=50, name="writer")[1]))
        writing.start()
        scanner.start()
        time.sleep(0.1)
        _, points = pgbench(reader, 1, None, bench.directory, bench.seed, seconds=bench.seconds, name="reader")
        writing.join()
        scans = scanner.stop()
        bench.note("W11 scan", engine, p99_ms=scans[int(len(scans) * 0.99)] * 1000)
        bench.note("W11 point", engine, p99_ms=points[int(len(points) * 0.99)])
        bench.note("W11 commit", engine, p99_ms=written[int(len(written) * 0.99)], max_ms=written[-1])
