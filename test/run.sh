#!/usr/bin/env bash
# Runs tests, the demo, the benchmark or the crash torture, on clusters of their own.
#
#   test/run.sh [KIND...]     unit fuzz regress isolation tap random (default: all of them)
#   test/run.sh demo | bench | torture | regress-with-paimon
#
# The last line of a test run is "N passed, N failed" over everything.  Steps:
#   1. install what is missing (Debian's packages; needs root or sudo only then)
#   2. make a directory under /tmp; copy the server's programs and the source tree into it
#   3. as an unprivileged user (root becomes postgres): build there, install into the private copy of the server,
#      and run test/run/inside.sh
#   4. remove the directory
# So nothing outside that directory changes, system clusters are never touched, and several
# runs may go on at the same time.
#
# Environment: PG_CONFIG   the server to test (default: pg_config in PATH)
#              TESTS       only tests of these names (without folder and suffix)
#              SEED        seed of randomised tests (default: made from the sources, so that every commit tries another one, and
#                          what passed in one checkout passes in the next; torture draws lots)
#              CC          compiler
#              PAIMON_KEEP=1   keep the directory
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=test/run/packages.sh
. "$root/test/run/packages.sh"
# shellcheck source=test/run/stage.sh
. "$root/test/run/stage.sh"

kinds=("$@")
if [[ ${#kinds[@]} -eq 0 ]]; then
	kinds=(unit fuzz regress isolation tap random)
fi
for kind in "${kinds[@]}"; do
	case $kind in
		unit | fuzz | regress | isolation | tap | random | demo | bench | torture | regress-with-paimon) ;;
		*)
			echo "unknown kind of test: $kind" >&2
			echo "0 passed, 1 failed"
			exit 2
			;;
	esac
done

source_seed()
{
	find "$root/src" "$root/test" -type f \( -name '*.[ch]' -o -name '*.sql' -o -name '*.spec' -o -name '*.py' -o -name '*.p[lm]' \) -print0 |
		LC_ALL=C sort -z | xargs -0 cat | cksum | awk '{ print $1 % 1000000 }'
}

tmp=
cleanup()
{
	local rc=$?

	if [[ -n $tmp && -d $tmp ]]; then
		if [[ ${PAIMON_KEEP:-0} != 0 ]]; then
			echo "kept: $tmp" >&2
		else
			stop_leftovers "$tmp"
			rm -rf "$tmp"
		fi
	fi
	exit "$rc"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

ensure_packages "${kinds[@]}"
if [[ -z ${SEED:-} && ${kinds[0]} != torture ]]; then
	SEED=$(source_seed)
fi
PG_CONFIG=$(command -v "${PG_CONFIG:-pg_config}")
tmp=$(mktemp -d /tmp/paimon_am.XXXXXX)
chmod 755 "$tmp"
stage_server "$PG_CONFIG" "$tmp/server"
stage_source "$root" "$tmp/src"
mkdir -p "$tmp/home" "$tmp/out"

rc=0
run_unprivileged "$tmp" bash "$tmp/src/test/run/inside.sh" "$tmp" "$(private_pg_config "$PG_CONFIG" "$tmp/server")" \
	"${kinds[@]}" || rc=$?
if [[ $rc -ne 0 ]]; then
	keep_logs "$tmp" "$root/check-logs"
elif [[ -f $tmp/out/bench/result.json ]]; then
	mkdir -p "$root/check-logs"
	cp "$tmp/out/bench/result.json" "$root/check-logs/bench.json"
	echo "All figures, round by round: check-logs/bench.json"
fi
exit "$rc"
