"""From a package index (stanzas as of apt-cache dumpavail) the input of the demo:

  demo_stream.py INDEX DIRECTORY CHANGES SEED

packages.tsv (COPY text), stream_paimon.sql and stream_heap.sql (the same transactions; heap needs ON CONFLICT for an upsert).
"""

import random
import sys

FIELDS = ["Package", "Version", "Section", "Priority", "Installed-Size", "Size", "Maintainer", "Description", "Depends"]
COLUMNS = ["package", "version", "section", "priority", "installed_kb", "download_bytes", "maintainer", "summary", "depends", "changed"]
NUMBERS = (4, 5)


def stanzas(path):
    fields = {}
    with open(path, encoding="utf-8", errors="replace") as index:
        for line in index:
            if line == "\n":
                yield fields
                fields = {}
            elif line[0] not in " \t":
                name, _, value = line.partition(":")
                if name.startswith("Description"):
                    name = name.split("-")[0] if name != "Description-md5" else name
                fields[name] = value.strip()
    yield fields


def read_packages(path):
    """Package name -> row; the last stanza of a name wins, as it would in the table."""
    packages = {}
    for fields in stanzas(path):
        if "Package" not in fields or "Version" not in fields:
            continue
        row = [fields.get(name) for name in FIELDS]
        for c in NUMBERS:
            row[c] = int(row[c]) if row[c] is not None and row[c].isdigit() else None
        if row[8] is not None:
            row[8] = row[8][:120]
        row.append("2024-06-01 00:00:00+00")
        packages[row[0]] = row
    return packages


def copy_line(row):
    def text(v):
        if v is None:
            return "\\N"
        return str(v).replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n")

    return "\t".join(text(v) for v in row) + "\n"


def literal(v):
    if v is None:
        return "NULL"
    if isinstance(v, int):
        return str(v)
    return "'" + v.replace("'", "''") + "'"


class Stream:
    """Writes each transaction to both files and knows which packages there are at the moment."""

    def __init__(self, packages, paimon, heap, rng):
        self.rows = packages
        self.present = list(packages)
        self.removed = []
        self.paimon = paimon
        self.heap = heap
        self.rng = rng
        self.clock = 0
        self.counts = {"bumped": 0, "removed": 0, "re-added": 0, "updated": 0}

    def both(self, statement):
        self.paimon.write(statement.replace("@", "packages", 1))
        self.heap.write(statement.replace("@", "packages_heap", 1))

    def upsert(self, rows):
        values = ",\n".join("(" + ", ".join(literal(v) for v in row) + ")" for row in rows)
        changes = ", ".join(f"{c} = excluded.{c}" for c in COLUMNS[1:])
        self.paimon.write(f"INSERT INTO packages VALUES\n{values};\n")
        self.heap.write(f"INSERT INTO packages_heap VALUES\n{values}\nON CONFLICT (package) DO UPDATE SET {changes};\n")

    def take(self, names, n):
        """Removes up to n random names from a list and returns them."""
        taken = []
        for _ in range(min(n, len(names))):
            i = self.rng.randrange(len(names))
            names[i], names[-1] = names[-1], names[i]
            taken.append(names.pop())
        return taken

    def bump(self, name):
        row = self.rows[name]
        row[1] = f"{row[1].split('+demo')[0]}+demo{self.clock}"
        if row[5] is not None:
            row[5] += self.rng.randrange(-500, 2000)
        row[9] = f"2024-06-{1 + self.clock // 86400 % 28:02d} {self.clock // 3600 % 24:02d}:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}+00"
        return row

    def transaction(self):
        rng = self.rng
        self.clock += 1
        self.paimon.write("BEGIN;\n")
        self.heap.write("BEGIN;\n")
        back = self.take(self.removed, rng.randrange(0, 6))
        bumped = {self.present[rng.randrange(len(self.present))] for _ in range(rng.randrange(10, 150))}
        self.upsert([self.bump(name) for name in sorted(bumped) + back])
        self.present += back
        if rng.random() < 0.7:
            gone = self.take(self.present, rng.randrange(1, 8)) if len(self.present) > 50 else []
            if gone:
                for name in gone:
                    self.both(f"DELETE FROM @ WHERE package = {literal(name)};\n")
                self.removed += gone
                self.counts["removed"] += len(gone)
        if rng.random() < 0.5:
            some = sorted({self.present[rng.randrange(len(self.present))] for _ in range(rng.randrange(1, 6))})
            for name in some:
                self.both(f"UPDATE @ SET priority = 'important', installed_kb = installed_kb + 1 WHERE package = {literal(name)};\n")
                self.rows[name][3] = "important"
                if self.rows[name][4] is not None:
                    self.rows[name][4] += 1
            self.counts["updated"] += len(some)
        self.paimon.write("COMMIT;\n")
        self.heap.write("COMMIT;\n")
        self.counts["bumped"] += len(bumped)
        self.counts["re-added"] += len(back)
        return sum(self.counts.values())


def main():
    index, directory, changes, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    packages = read_packages(index)
    with open(f"{directory}/packages.tsv", "w", encoding="utf-8") as out:
        out.writelines(copy_line(row) for row in packages.values())
    n = len(packages)
    with open(f"{directory}/stream_paimon.sql", "w", encoding="utf-8") as paimon, \
            open(f"{directory}/stream_heap.sql", "w", encoding="utf-8") as heap:
        stream = Stream(packages, paimon, heap, random.Random(seed))
        while stream.transaction() < changes:
            pass
    counts = ", ".join(f"{v} {k}" for k, v in stream.counts.items())
    print(f"{n} packages; from them a stream of {stream.clock} transactions: {counts} (seed {seed})")


main()
