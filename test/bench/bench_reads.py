"""Reading by key, hot: look-ups (W5), ranges (W6), pages.  On tidy tables, by clients with prepared statements; the engines' answers must be equal."""

import os

from bench_server import ENGINES, pgbench

CLIENTS = 8

# name: keys drawn, query, how many a client and second of BENCH_SECONDS
SHAPES = {
    "W5 hit": ("uniform", "SELECT * FROM t_@ WHERE id = :id", 500),
    "W5 zipf": ("zipf", "SELECT * FROM t_@ WHERE id = :id", 500),
    "W5 miss": ("missing", "SELECT * FROM t_@ WHERE id = :id", 500),
    "W6 aggregate": ("uniform", "SELECT sum(qty), max(amount), count(note) FROM t_@ WHERE id BETWEEN :id AND :id + 999", 10),
    "W6 rows": ("uniform", "SELECT * FROM t_@ WHERE id BETWEEN :id AND :id + 999", 10),
    "page first": (None, "SELECT * FROM t_@ ORDER BY id LIMIT 100", 100),
    "page next": ("uniform", "SELECT * FROM t_@ WHERE id > :id ORDER BY id LIMIT 100", 100),
}


def draw(bench, law):
    if law is None:
        return ""
    law = {"uniform": f"random(1, {bench.rows})", "zipf": f"permute(random_zipfian(1, {bench.rows}, 1.1) - 1, {bench.rows}) + 1",
           "missing": f"random({bench.rows * 3}, {bench.rows * 4})"}[law]
    return f"\\set id {law}\n"


def agree(bench, shape, query):
    """Both answer alike for 100 keys, and in the same order where one is asked for."""
    found = {}
    for engine in ENGINES:
        one = query.replace("@", engine).replace(":id", "k.id")
        order = " ORDER BY t.id" if "BETWEEN" in query and "sum" not in query else ""
        found[engine] = bench.session.run(f"""
            SELECT md5(string_agg(k.id || found, '|' ORDER BY k.id)) FROM
            (SELECT 1 + (i::bigint * 7919 * 104729) % {bench.rows} AS id FROM generate_series(1, 100) i) k,
            LATERAL (SELECT coalesce(string_agg(t::text, ';'{order}), 'none') AS found FROM ({one}) t) f""")
    if found["heap"] != found["paimon"]:
        raise RuntimeError(f"{shape}: the engines answer differently")


def reads(bench, which):
    bench.session.run("SELECT paimon.compact('t_paimon')")
    bench.session.run("VACUUM (FREEZE, ANALYZE) t_heap")
    bench.session.run("ANALYZE t_paimon")
    for shape, (law, query, rate) in SHAPES.items():
        if not shape.startswith(which):
            continue
        agree(bench, shape, query)
        transactions = max(int(rate * bench.seconds), 10)
        for engine in bench.engines():
            name = os.path.join(bench.directory, f"{shape.replace(' ', '_')}_{engine}.sql")
            with open(name, "w") as f:
                f.write(f"{draw(bench, law)}{query.replace('@', engine)};\n")
            pgbench(name, CLIENTS, max(transactions // 4, 1), bench.directory, bench.seed + 1000)
            seconds, latencies = pgbench(name, CLIENTS, transactions, bench.directory, bench.seed + bench.round)
            bench.note(shape, engine, per_s=transactions * CLIENTS / seconds, p99_ms=latencies[int(len(latencies) * 0.99)])
