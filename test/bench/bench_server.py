"""Sessions and measurements of the benchmark: psql as a co-process, its backend's processor time and memory, WAL, pgbench."""

import glob
import os
import subprocess
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
ENGINES = ("heap", "paimon")
COLUMNS = "id bigint PRIMARY KEY, ts timestamptz, customer int, region text, status text, amount numeric(12,2), qty int, note text"


class Session:
    """One psql, one backend."""

    MARK = "\\echo ==end=="

    def __init__(self):
        self.psql = subprocess.Popen(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.run("SET client_min_messages = warning")
        self.pid = int(self.run("SELECT pg_backend_pid()"))

    def run(self, sql):
        """Runs statements and returns what they print."""
        self.psql.stdin.write(sql.rstrip().rstrip(";") + ";\n" + self.MARK + "\n")
        self.psql.stdin.flush()
        lines = []
        for line in self.psql.stdout:
            if line == "==end==\n":
                return "".join(lines).rstrip("\n")
            lines.append(line)
        raise RuntimeError(f"failed: {sql}\n{''.join(lines)}")

    def cpu(self):
        """Seconds of processor time of the backend."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def timed(self, sql):
        """(seconds, processor seconds of the backend) of one statement with its commit."""
        cpu = self.cpu()
        begin = time.monotonic()
        self.run(sql)
        return time.monotonic() - begin, self.cpu() - cpu

    def close(self):
        self.psql.stdin.close()
        self.psql.wait()


class MemorySampler(threading.Thread):
    """Largest private memory (RssAnon: without shared memory and files) of a backend, above what it had at the start; in bytes."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.done = threading.Event()
        self.start_bytes = self.sample()
        self.peak = 0

    def sample(self):
        with open(f"/proc/{self.pid}/status") as f:
            for line in f:
                if line.startswith("RssAnon:"):
                    return int(line.split()[1]) * 1024
        return 0

    def run(self):
        while not self.done.wait(0.05):
            self.peak = max(self.peak, self.sample() - self.start_bytes)

    def stop(self):
        self.done.set()
        self.join()
        return self.peak


def wal(session):
    """Position in bytes."""
    return int(session.run("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"))


def size(session, engine):
    """Bytes stored, the key's index with them."""
    return int(session.run(f"SELECT pg_total_relation_size('t_{engine}')"))


def checksums(session, engine):
    """Count, sums and a checksum over all columns of all rows, independent of their order."""
    return session.run(f"SELECT count(*), sum(qty), sum(amount), sum(hashtextextended(t::text, 0)::numeric) FROM t_{engine} t")


class SizeSampler(threading.Thread):
    """Largest size of a table while something else runs, in bytes."""

    def __init__(self, engine):
        super().__init__(daemon=True)
        self.engine = engine
        self.session = Session()
        self.done = threading.Event()
        self.peak = 0

    def run(self):
        while not self.done.wait(0.25):
            self.peak = max(self.peak, size(self.session, self.engine))

    def stop(self):
        self.done.set()
        self.join()
        self.session.close()
        return self.peak


def pgbench(script, clients, transactions, directory, seed, seconds=None, rate=None, name="latency"):
    """
    Runs a script with prepared statements, so many transactions a client, or for some seconds at some rate (transactions a second); returns seconds and
    the latencies in ms, sorted.
    """
    prefix = os.path.join(directory, name)
    for old in glob.glob(prefix + ".*"):
        os.remove(old)
    command = ["pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)),
               f"--random-seed={seed}", "-l", f"--log-prefix={prefix}", "-f", script]
    command += ["-T", str(int(seconds))] if seconds else ["-t", str(transactions)]
    command += ["-R", str(rate)] if rate else []
    begin = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    took = time.monotonic() - begin
    if done.returncode != 0:
        raise RuntimeError(f"pgbench failed:\n{done.stdout[:1000]}")
    latencies = []
    for log in glob.glob(prefix + ".*"):
        with open(log) as f:
            latencies += [int(line.split()[2]) / 1000 for line in f]
    if not seconds and len(latencies) != clients * transactions:
        raise RuntimeError(f"pgbench did {len(latencies)} of {clients * transactions} transactions:\n{done.stdout}")
    return took, sorted(latencies)
