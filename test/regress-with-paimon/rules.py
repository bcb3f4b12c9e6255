"""The list: what may differ between heap and paimon tables in PostgreSQL's own suites, and why it is right.

Each rule says what it is about in its documentation; the first that applies to a difference explains it.  A rule may taint names: what the
statement would have made, or changed otherwise.  Later differences of statements that mention these follow from that.
"""

import collections
import re

# In the server's log: a crash.
CRASH = re.compile(r"was terminated by signal|TRAP:|PANIC:|server process .* exited with exit code [^01]|Sanitizer")

# Internal errors (XX000, XX001) that are not ours: suite, script, message, why.
INTERNAL_ERRORS = [
    ("regress", "equivclass", r"could not find commutator for operator",
     "core's own, for operators without a commutator: on heap with enable_indexscan = off, too"),
]

# What paimon tables refuse, each listed in README.md's limits, and what core says when such a thing is missing.
REFUSED = re.compile("|".join([
    r"cannot create an index on paimon table",
    r"system column \"\w+\" is not available for tables using access method paimon",
    r"cannot add table \"[^\"]*\" to a publication",
    r"WARNING:  publication \"[^\"]*\" does not publish changes of",
    r"using access method paimon cannot be a partition of",
    r"cannot drop the primary key of paimon table",
    r"cannot change access method of table \"[^\"]*\" to paimon because of",
    r"unrecognized option \"[^\"]*\" for paimon table",
    r"cannot refresh materialized view \"[^\"]*\" concurrently",
    r"cannot be a key column of paimon table",
]))

ABORTED = re.compile(r"current transaction is aborted|savepoint \"\w+\" does not exist|there is no transaction in progress")

# What only tells how a table is stored.
STORAGE = re.compile(
    r"\bctid\b|\btid\b|tidscan|currtid|reltoastrelid|pg_column_compression|pg_column_size|pg_(total_)?relation_size|pg_table_size|relfilenode|"
    r"pg_filenode_relation|relpages|reltuples|relallvisible|pg_stat|\bcmin\b|\bxmin\b|pg_attribute|has_toast|explain|pg_locks|"
    r"pg_visibility|pg_relation_filepath|pg_tablespace_databases|pg_am\b|\\dA|\\dt\+|\\di\+|\\d\+ |\\dm\+|amname|relam", re.I)

PLAN = re.compile(r"Custom Scan|Seq Scan|Index (Only )?Scan|Bitmap (Heap|Index) Scan|Tid (Range )?Scan|Sample Scan|Hash Join|Merge Join|Nested Loop|"
                  r"Memoize|HashAggregate|GroupAggregate|Sort|Gather|cost=|Node Type|rows=|Append", re.I)


class Difference:
    def __init__(self, suite, script, text, statement, heap, paimon, tainted):
        self.text = text
        self.suite = suite
        self.script = script
        self.statement = statement
        self.heap = heap
        self.paimon = paimon
        self.tainted = tainted
        self.taints = set()

    def heap_says(self, pattern):
        return any(re.search(pattern, line) for line in self.heap)

    def paimon_says(self, pattern):
        return any(re.search(pattern, line) for line in self.paimon)

    def taint(self):
        """What the statement makes or changes."""
        for pattern in (r"\b(?:table|view|index|sequence|schema|function|type|publication|rule|trigger|constraint|policy|statistics)\s+"
                        r"(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?(?:only\s+)?([\w.\"]+)",
                        r"\b(?:into|update|on|only|copy|from|truncate|of)\s+(?:only\s+)?([\w.\"]+)", r"\\\w+\+?\s+([\w.\"]+)"):
            for name in re.findall(pattern, self.statement, re.I):
                name = name.replace('"', "").lower()
                if name not in NOT_NAMES and not name.isdigit():
                    self.taints.update({name, name.split(".")[-1]})


NOT_NAMES = set("if not exists select values set the a an all each row conflict only as on stdin stdout delete update insert cascade null by "
                "table view index do nothing constraint primary key unique to from where returning default partition commit".split())


def words(lines):
    return collections.Counter(re.sub(r"[-\s|+]+", " ", line).strip() for line in lines if line.strip() and not re.match(r"^[-+]+$", line.strip()))


# ---- the rules ----

def plan(d):
    """Plans: PaimonScan takes the place of sequential scans, costs and row estimates are those of another storage, and there are no other
    indexes than the key.  What plans give is compared by the statements that are run."""
    explains = re.search(r"\bexplain|QUERY PLAN", d.statement + "\n".join(d.heap[:3] + d.paimon[:3]), re.I)
    return bool(explains) and (d.paimon_says(PLAN) or d.heap_says(PLAN)) and not d.paimon_says(r"^ERROR")


def order(d):
    """The same rows in another order.  Without ORDER BY none is promised, and with it none among equals; rows of key tables come in the order
    of their keys, updated rows stay where they were."""
    return words(d.heap) == words(d.paimon)


def key_index(d):
    """The index of a primary key uses access method paimon_key, not btree."""
    def plain(lines):
        return words(re.sub(r"\bpaimon_key\b", "btree", line) for line in lines)
    return d.paimon_says(r"paimon_key") and plain(d.heap) == plain(d.paimon)


def refused(d):
    """What README.md lists as refused, with its error.  Names in the statement are tainted: the index, constraint, table is not there."""
    if not d.paimon_says(REFUSED):
        return False
    d.taint()
    return True


def upsert(d):
    """INSERT of a key that exists replaces the row; on heap it is an error.  The table holds other rows from then on."""
    if d.heap_says(r"duplicate key value violates unique constraint|could not create unique index|contains duplicate rows") \
            and not d.paimon_says(r"^ERROR:  (?!current transaction)"):
        d.taint()
        return True
    return False


def transaction(d):
    """The transaction is aborted, since an earlier statement of it is refused, or on heap a duplicate key; not here."""
    if (d.paimon_says(ABORTED) and not d.heap_says(ABORTED) or d.heap_says(ABORTED)) and d.tainted:
        d.taint()
        return True
    return False


def storage(d):
    """How rows are stored: ctids, sizes, TOAST, page and tuple counters, system columns, locks on tuples and pages."""
    where = d.statement if d.suite == "regress" else "\n".join(d.heap)
    return STORAGE.search(where) is not None and not d.paimon_says(r"^ERROR")


def missing(d):
    """An index that is not there because it is refused, also in a script that ran before, or with the name that core would have given it."""
    says = re.compile(r"^(ERROR|NOTICE):  (relation|index|constraint|table) \"[^\"]*\" (does not exist|has no indexes)|is not an index|"
                      r"no unique or exclusion constraint matching the ON CONFLICT|index \"[^\"]*\" for table \"[^\"]*\" does not exist|"
                      r"there is no previously clustered index")
    about = re.compile(r"\bindex\b|\breindex\b|_property|brin_|gin_|\bcluster\b|_idx\b|_key\b|\bconstraints?\b|on conflict|regclass", re.I)
    if not d.paimon_says(says) or d.heap_says(says) or not about.search(d.statement + "\n".join(d.paimon)):
        return False
    d.taint()
    return True


def consequence(d):
    """Follows from an earlier difference: the statement, or what came out of it, mentions something that is tainted."""
    text = (d.statement + "\n" + "\n".join(d.heap + d.paimon)).lower()
    if any(re.search(r"(?<![\w])%s(?![\w])" % re.escape(name), text) for name in d.tainted):
        if d.paimon_says(r"^(psql:.*)?ERROR|NOTICE|WARNING") or d.heap_says(r"^ERROR"):
            d.taint()
        return True
    return False


def listed(d):
    """One of the single differences below."""
    for suite, script, pattern, _ in SINGLE:
        if suite == d.suite and script == d.script and re.search(pattern, d.statement + "\n" + "\n".join(d.heap + d.paimon), re.S):
            return True
    return False


def coarse_serializable(d):
    """SERIALIZABLE reads lock whole tables, so there are more serialization failures than on heap, or they come at COMMIT instead of at the
    statement; never fewer."""
    def count(lines):
        return sum(1 for line in lines if "could not serialize access" in line)
    return d.suite == "isolation" and re.search(r"serializable|repeatable read", d.text, re.I) is not None and \
        d.paimon_says("could not serialize access") and count(d.paimon) >= count(d.heap)


MOVED = "a row that an UPDATE gives another key, or moves to another partition, is another row: who waited for it finds it deleted (README.md, limits)"
IN_GROUP = "rows come to an aggregate in another order within a group, which nothing fixes"
NO_FIRST = "a cursor without ORDER BY gives the rows in another order; what it updates and deletes are the rows it stands on"

# suite, script, pattern in statement or output, why
SINGLE = [
    ("isolation", "lock-committed-keyupdate", "", MOVED),
    ("isolation", "merge-match-recheck", "_pa", MOVED),
    ("isolation", "merge-update", "pa_merge", MOVED),
    ("isolation", "merge-update", "due to concurrent delete", MOVED),
    ("isolation", "partition-key-update-1", "moved to another partition", MOVED),
    ("isolation", "partition-key-update-2", "", "rows of a transaction that has not committed are no conflict: INSERT waits for nobody (README.md), and COMMIT for who has locked the key"),
    ("isolation", "partition-key-update-3", "", "the same"),
    ("isolation", "alter-table-3", "canceling step", "an INSERT that fails on heap keeps its table locked here, and the tester waits for the session that waits for it"),
    ("isolation", "two-ids", "could not serialize", "one of the false positives that heap's locks on pages cause, and ours do not: the script says which four failures must be"),
    ("isolation", "reindex-concurrently-toast", "", "there is no TOAST table"),
    ("isolation", "eval-plan-qual", "moved to another partition", MOVED),
    ("isolation", "eval-plan-qual", "NOTICE|ctid", "the order in which rows are looked at, and where they are"),
    ("regress", "join_hash", "initially_multibatch|original \\|| multibatch", "batches of a hash join follow from estimates"),
    ("regress", "polymorphism", "group by f3", IN_GROUP),
    ("regress", "psql_crosstab", "string_agg", IN_GROUP),
    ("regress", "portals", "uctest|FETCH", NO_FIRST),
    ("regress", "tidscan", "FETCH|ctid", "cursors over made-up ctids"),
    ("regress", "tidrangescan", "FETCH|ctid", "cursors over made-up ctids"),
    ("regress", "triggers", "self_ref_trigger", "DELETE comes to the parent before its children, so its trigger changes none that is still to be deleted"),
    ("regress", "update", "violates partition constraint", "which of the rows that fail is met first"),
    ("regress", "update", "utrtest", "RETURNING of a system column is refused, so the update before is not done"),
    ("regress", "reloptions", "toast_oid", "there is no TOAST table"),
    ("regress", "stats", "idx1_oid", "the index that a variable is taken from is refused"),
    ("regress", "publication", "", "most of it is about publishing tables, which is refused"),
    ("regress", "tablesample", "", "which rows are in a sample follows from where they lie; a small table is one block, all of it or nothing"),
    ("regress", "tablespace", "testschema.amv", "the table below it took a row that its unique index, which is refused, would have kept out"),
    ("regress", "alter_table", "my_locks", "there is no TOAST table to be locked"),
    ("regress", "alter_table", "alter_idx_rename_test", "indexes are refused"),
    ("regress", "indexing", "parted_index_col_drop11|parted_replica_tab", "indexes are refused, so the partition has none, and the partitioned table could not be made"),
    ("regress", "matview", "mvtest_tmm", "a materialized view below it could not be refreshed concurrently, having no unique index"),
    ("regress", "namespace", "test_ns_schema", "the schema was made together with a table that is refused"),
    ("regress", "stats_ext", "tststats.s10", "there is no TOAST table"),
    ("regress", "stats_ext", "check_estimated_rows|estimated", "estimates of rows, where heap's own come from its number of pages"),
    ("regress", "collate.icu.utf8", "INTERSECT|EXCEPT|UNION|DISTINCT", "which of equal strings stands for all of them"),
    ("regress", "brin", "did not get", "the script tells of plans without its index"),
    ("regress", "brin_bloom", "did not get", "the script tells of plans without its index"),
    ("regress", "brin_multi", "did not get", "the script tells of plans without its index"),
    ("regress", "uuid", "relkind='i'", "indexes are refused"),
    ("regress", "create_index", "no indexes that can be reindexed", "indexes are refused"),
]

RULES = [
    ("plan", plan),
    ("order", order),
    ("key index", key_index),
    ("refused", refused),
    ("upsert", upsert),
    ("missing index", missing),
    ("listed", listed),
    ("transaction", transaction),
    ("storage", storage),
    ("coarse serializable", coarse_serializable),
    ("consequence", consequence),
]
