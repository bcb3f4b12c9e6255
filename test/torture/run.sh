#!/usr/bin/env bash
# The crash test (test/t/030_crash_kill.pl) for long: ROUNDS kills, 250 unless set.  Run by "make torture", which builds
# and installs into a private copy of the server first.  SEED repeats a run.
set -euo pipefail

out=$PAIMON_TMP/out/torture
log=$out/torture.log
mkdir -p "$out/log" "$out/tmp_check/log"
export ROUNDS=${ROUNDS:-250}
export TESTDIR=$out TESTDATADIR=$out TESTLOGDIR=$out/log

rc=0
perl test/t/030_crash_kill.pl 2>&1 | tee "$log" || rc=$?
printf '\n%d passed, %d failed\n' "$(grep -cE '^ok [0-9]+' "$log" || true)" "$(grep -cE '^not ok [0-9]+' "$log" || true)"
exit "$rc"
