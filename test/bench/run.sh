#!/usr/bin/env bash
# make bench: heap and paimon side by side; see README.md of this folder.  Called by test/run/inside.sh with a server running.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$PAIMON_TMP/out/bench

"${CC:-cc}" -O2 -o "$work/bench_rows" "$here/bench_rows.c"
exec /usr/bin/python3 "$here/bench.py" "$work"
