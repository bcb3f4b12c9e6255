"""Results of PostgreSQL's suites in pieces that can be compared: a statement and what came out of it, or a permutation and its steps."""

import re

# After these psql passes over lines of the script.
SKIPS = re.compile(r"\\(quit|q\b|if|elif|else|endif|set ECHO)")
COPY = re.compile(r"\bfrom\s+stdin\b.*;\s*(--.*)?$|^\\copy\b.*\bfrom\s+stdin\b|^from stdin", re.I)


def script_lines(text):
    """The lines that psql -a shows again: neither empty ones nor data of COPY."""
    lines = []
    data = False
    for line in text.split("\n"):
        if data:
            data = line != "\\."
        elif line:
            lines.append(line)
            data = COPY.search(line) is not None
    return lines


def outputs(script, result):
    """What came out after which line of the script: {number of lines before it: [output lines]}."""
    found = {}
    at = 0
    for line in result:
        if at < len(script) and line != script[at]:
            ahead = script[at:at + 400]
            if SKIPS.match(script[at - 1] if at else "") and line in ahead:
                at += ahead.index(line)
        if at < len(script) and line == script[at]:
            at += 1
        else:
            found.setdefault(at, []).append(line)
    return found


def statement_before(script, at):
    """The statement that ends with line `at`, counted from 1."""
    first = at - 1
    while first > 0 and at - first < 80 and not re.search(r";\s*(--.*)?$|^\\", script[first - 1]):
        first -= 1
    return "\n".join(line for line in script[max(first, 0):at] if not line.startswith("--"))


def align(script, heap, paimon):
    """Yields (line, statement, heap's output, paimon's output) of every statement."""
    one = outputs(script, heap)
    two = outputs(script, paimon)
    for at in sorted(set(one) | set(two)):
        yield at, statement_before(script, at), one.get(at, []), two.get(at, [])


def permutations(result):
    """Results of isolationtester: (permutation, its lines), in order."""
    pieces = []
    name, lines = "", []
    for line in result:
        if line.startswith("starting permutation: "):
            pieces.append((name, lines))
            name, lines = line[len("starting permutation: "):], []
        else:
            lines.append(line)
    pieces.append((name, lines))
    return pieces
