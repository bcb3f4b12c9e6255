#!/usr/bin/env bash
# make demo: a first contact with paimon tables, on the package index of this machine.
#
# Called by test/run/inside.sh with a server running.  Loads all packages into a paimon table and, for comparison, into a heap table;
# sends both the same stream of transactions (demo_stream.py makes it); shows what happens inside; ends with a proof that both
# tables are equal, and fails if they are not.
#
# Environment: SEED, DEMO_CHANGES (rows changed by the stream; default 300000)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$PAIMON_TMP/out/demo
export PGOPTIONS='-c client_min_messages=warning -c synchronous_commit=on'
started=$SECONDS

sql()
{
	psql -X -q -v ON_ERROR_STOP=1 -P footer=off -P linestyle=ascii -P null=- "$@"
}

value()
{
	sql -A -t -c "$1"
}

step()
{
	printf '\n--- %s\n' "$*"
}

# Seconds that a command takes, as text; its output goes to a log that is shown when it fails.
seconds_of()
{
	local from=$EPOCHREALTIME

	"$@" >"$work/step.log" 2>&1 || {
		tail -n 20 "$work/step.log" >&2
		return 1
	}
	awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'
}

# The package index: apt's lists; without lists a copy of our own is fetched; without network what dpkg knows is installed.
package_index()
{
	local lists=$work/apt

	apt-cache dumpavail >"$work/index" 2>/dev/null || true
	if [[ $(grep -c '^Package:' "$work/index") -lt 10000 ]] && command -v apt-get >/dev/null; then
		mkdir -p "$lists/lists/partial" "$lists/cache/archives/partial"
		local private=(-o "Dir::State::Lists=$lists/lists" -o "Dir::Cache=$lists/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=)
		if timeout 60 apt-get "${private[@]}" -qq update >/dev/null 2>&1; then
			apt-cache "${private[@]}" dumpavail >"$work/index" 2>/dev/null || true
		fi
	fi
	if [[ ! -s $work/index && -r /var/lib/dpkg/status ]]; then
		cat /var/lib/dpkg/status >"$work/index"
	fi
	if [[ ! -s $work/index ]]; then
		echo "This machine has no package index (apt-cache dumpavail, /var/lib/dpkg/status)." >&2
		return 1
	fi
}

columns='package text PRIMARY KEY, version text, section text, priority text, installed_kb int, download_bytes bigint,
	maintainer text, summary text, depends text, changed timestamptz'

demo()
{
step "The package index of this machine"
package_index
/usr/bin/python3 "$here/demo_stream.py" "$work/index" "$work" "${DEMO_CHANGES:-300000}" "${SEED:-20240601}"

step "One table USING paimon, one heap table, the same columns and key"
cat <<'END'
CREATE TABLE packages (package text PRIMARY KEY, version text, ...)
    USING paimon WITH (bucket = 2, "write-buffer-size" = '4 mb', "snapshot.num-retained.min" = 1, "snapshot.num-retained.max" = 1);
CREATE TABLE packages_heap (package text PRIMARY KEY, version text, ...);
END
sql -c "CREATE TABLE packages ($columns) USING paimon WITH (bucket = 2, \"write-buffer-size\" = '4 mb',
	\"snapshot.num-retained.min\" = 1, \"snapshot.num-retained.max\" = 1)" \
	-c "CREATE TABLE packages_heap ($columns)"

step "COPY of all packages into each"
paimon=$(seconds_of sql -c "\\copy packages FROM '$work/packages.tsv'")
heap=$(seconds_of sql -c "\\copy packages_heap FROM '$work/packages.tsv'")
echo "paimon $paimon s, heap $heap s"
sql -c "SELECT (SELECT count(*) FROM packages) AS rows_paimon, (SELECT count(*) FROM packages_heap) AS rows_heap,
	pg_size_pretty(pg_relation_size('packages')) AS paimon, pg_size_pretty(pg_total_relation_size('packages_heap')) AS heap_with_key"

step "An INSERT of a key that exists replaces the row: no ON CONFLICT, no error"
sql <<'END'
BEGIN;
INSERT INTO packages (package, version, summary) SELECT package, '99-demo', summary FROM packages ORDER BY package LIMIT 1;
SELECT package, version, left(summary, 50) AS summary FROM packages ORDER BY package LIMIT 1;
ROLLBACK;
SELECT package, version, left(summary, 50) AS summary FROM packages ORDER BY package LIMIT 1;
END

step "The stream: version bumps (INSERT), removals (DELETE), re-adds (INSERT), changes of some columns (UPDATE)"
lsn=$(value 'SELECT pg_current_wal_lsn()')
paimon=$(seconds_of sql -f "$work/stream_paimon.sql")
paimon_wal=$(value "SELECT pg_size_pretty(pg_current_wal_lsn() - '$lsn'::pg_lsn)")
lsn=$(value 'SELECT pg_current_wal_lsn()')
heap=$(seconds_of sql -f "$work/stream_heap.sql")
heap_wal=$(value "SELECT pg_size_pretty(pg_current_wal_lsn() - '$lsn'::pg_lsn)")
echo "paimon $paimon s, $paimon_wal of WAL; heap (INSERT ... ON CONFLICT DO UPDATE) $heap s, $heap_wal of WAL"

step "Meanwhile, a background worker has flushed committed rows into sorted, compressed files; paimon.flush does it now"
if [[ $(value "SELECT to_regclass('paimon.worker_status') IS NOT NULL") == t ]]; then
	sql -c 'SELECT kind, state, flushes, rows_flushed, errors FROM paimon.worker_status ORDER BY kind'
fi
sql -c "SELECT paimon.flush('packages') AS newest_snapshot"
echo "SELECT * FROM paimon.snapshots('packages'), the last five:"
sql -c "SELECT * FROM (SELECT snapshot_id, commit_kind, date_trunc('second', commit_time) AS commit_time, delta_record_count,
	total_record_count FROM paimon.snapshots('packages') ORDER BY snapshot_id DESC LIMIT 5) s ORDER BY snapshot_id"
echo "SELECT bucket, level, ... FROM paimon.files('packages'), summed:"
sql -c "SELECT bucket, level, count(*) AS files, sum(record_count) AS records, pg_size_pretty(sum(file_size_in_bytes)) AS size
	FROM paimon.files('packages') GROUP BY bucket, level ORDER BY bucket, level"

step "Storage: before and after a full compaction, with VACUUM for both"
sizes="SELECT pg_size_pretty(pg_relation_size('packages')) AS paimon,
	(SELECT pg_size_pretty(sum(file_size_in_bytes)) FROM paimon.files('packages')) AS its_files,
	pg_size_pretty(pg_relation_size('packages_heap')) AS heap, pg_size_pretty(pg_indexes_size('packages_heap')) AS its_key,
	pg_size_pretty(pg_total_relation_size('packages_heap')) AS heap_with_key"
sql -c 'VACUUM packages' -c 'VACUUM packages_heap' -c "$sizes" \
	-c "SELECT paimon.compact('packages', \"full\" => true)" -c 'VACUUM packages' -c "$sizes"
echo "(Versions of a row that lie in several files are merged by compaction, which workers do all the time; the options above keep no older snapshot.
What a table's files do not take is the log, and room that it fills again before it grows.)"

step "Are both tables equal?"
sql <<'END'
SELECT 'paimon' AS "table", count(*), sum(installed_kb) AS sum_installed_kb, sum(hashtextextended(t::text, 0)::numeric) AS checksum
	FROM packages t
UNION ALL
SELECT 'heap', count(*), sum(installed_kb), sum(hashtextextended(t::text, 0)::numeric) FROM packages_heap t;
SELECT (SELECT count(*) FROM (TABLE packages EXCEPT TABLE packages_heap) x) AS only_in_paimon,
	(SELECT count(*) FROM (TABLE packages_heap EXCEPT TABLE packages) x) AS only_in_heap;
END
equal=$(value "SELECT (SELECT (count(*), sum(hashtextextended(t::text, 0)::numeric)) FROM packages t) =
		(SELECT (count(*), sum(hashtextextended(t::text, 0)::numeric)) FROM packages_heap t)
	AND NOT EXISTS (TABLE packages EXCEPT TABLE packages_heap) AND NOT EXISTS (TABLE packages_heap EXCEPT TABLE packages)")
if [[ $equal != t ]]; then
	echo "NO: the tables differ."
	exit 1
fi
echo "Yes. ($((SECONDS - started)) seconds altogether; the server and both tables are removed now.)"
}

# Tables end in an empty line, steps begin with one.
demo | cat -s
