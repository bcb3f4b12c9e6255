#!/usr/bin/env python3
"""Explains every difference between PostgreSQL's suites run on heap and on paimon tables, by the rules of rules.py.

  classify.py SUITE HEAP PAIMON      SUITE: regress or isolation; directories with results/, scripts in PAIMON/scripts/, and server.log

Prints one line a script, all that no rule explains, how often each rule was used, and "N passed, N failed": scripts, and that there was
no crash, no internal error, nobody who waited for ever.
"""

import collections
import os
import re
import sys

import rules
import segments


def read(path):
    with open(path, errors="replace") as file:
        return file.read()


class Script:
    """One script: goes through its differences in order, and remembers what the earlier ones lead to."""

    def __init__(self, suite, name, text):
        self.suite = suite
        self.name = name
        self.text = text
        self.tainted = set()
        self.used = collections.Counter()
        self.unexplained = []

    def explain(self, where, statement, heap, paimon):
        difference = rules.Difference(self.suite, self.name, self.text, statement, heap, paimon, self.tainted)
        for name, rule in rules.RULES:
            if rule(difference):
                self.used[name] += 1
                self.tainted |= difference.taints
                return
        self.unexplained.append((where, statement, heap, paimon))

    def show(self, limit=12):
        for where, statement, heap, paimon in self.unexplained[:limit]:
            print("    ---- %s %s\n%s" % (self.name, where, indent(statement.split("\n")[-8:], " ")))
            print(indent(heap[:24], "-"))
            print(indent(paimon[:24], "+"))
        if len(self.unexplained) > limit:
            print("    ... and %d more" % (len(self.unexplained) - limit))


def indent(lines, mark):
    return "\n".join("    " + mark + line for line in lines)


def regress(script, heap, paimon):
    lines = segments.script_lines(script.text)
    for at, statement, one, two in segments.align(lines, heap, paimon):
        if one != two:
            script.explain("line %d" % at, statement, one, two)


def isolation(script, heap, paimon):
    one = segments.permutations(heap)
    two = segments.permutations(paimon)
    if [name for name, _ in one] != [name for name, _ in two]:
        script.explain("setup", script.text, heap, paimon)
        return
    for (name, a), (_, b) in zip(one, two):
        if a != b:
            script.explain(name, "\n".join(a), a, b)


def log_errors(directory):
    """(script, message) of the log's internal errors, and the log's lines that tell of a crash."""
    internal = collections.Counter()
    crashes = []
    for line in read(directory + "/server.log").split("\n"):
        if rules.CRASH.search(line):
            crashes.append(line)
        found = re.search(r"\] (\S*) *(?:ERROR|FATAL|PANIC|WARNING|LOG): +(XX...): (.*)", line)
        if found and found.group(2) in ("XX000", "XX001", "XX002"):
            internal[(found.group(1).split("/")[1] if "/" in found.group(1) else "", re.sub(r"\d{4,}", "N", found.group(3)))] += 1
    return internal, crashes


def check_logs(suite, heap, paimon):
    """Number of failures."""
    before, _ = log_errors(heap)
    after, crashes = log_errors(paimon)
    failed = 0
    for line in crashes:
        print("CRASH   " + line)
        failed = 1
    for (script, message), n in sorted((after - before).items()):
        if any(suite == s and script == t and re.search(m, message) for s, t, m, _ in rules.INTERNAL_ERRORS):
            continue
        print("INTERNAL ERROR   %s: %s (%d times)" % (script, message, n))
        failed = 1
    return failed


def main():
    suite, heap, paimon = sys.argv[1:]
    used = collections.Counter()
    passed = failed = 0
    for file in sorted(os.listdir(heap + "/results")):
        name = file[:-4]
        if not file.endswith(".out"):
            continue
        text = read("%s/scripts/%s.%s" % (paimon, name, "sql" if suite == "regress" else "spec"))
        script = Script(suite, name, text)
        if not os.path.exists(paimon + "/results/" + file):
            script.unexplained.append(("", "the script did not run", [], []))
        else:
            one, two = ([line.rstrip("\r") for line in read(d + "/results/" + file).split("\n")] for d in (heap, paimon))
            (regress if suite == "regress" else isolation)(script, one, two)
        used += script.used
        if script.unexplained:
            failed += 1
            print("FAILED  %-32s %d differences explained, %d not" % (name, sum(script.used.values()), len(script.unexplained)))
            script.show()
        else:
            passed += 1
            print("ok      %-32s %d differences explained" % (name, sum(script.used.values())))
    if check_logs(suite, heap, paimon):
        failed += 1
    else:
        passed += 1
    print()
    for name, n in used.most_common():
        print("%6d  %s" % (n, name))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
