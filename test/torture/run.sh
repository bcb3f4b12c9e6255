#!/usr/bin/env bash
# Long forms of the crash test, the fuzzers, the compaction simulation and the randomised tests.
# Run by "make torture" (test/run/tasks.sh), with a private server in PAIMON_BINDIR.
#
#   ROUNDS         of the crash test (default 250; 0: none)
#   FUZZ_SECONDS   for each fuzzer (default 300; 0: none)
#   SIM_ROUNDS     histories of the compaction simulation (default 50000; 0: none)
#   STREAM_SECONDS for each stream of upserts, of six (default 600; 0: none)
#   SECONDS_EACH   time for each other randomised program (default 900)
#   SEED           of the first run; each further run takes the next one
#   RUNS           runs of each program (default 3; 0: none, nor all the schedules of test/random/schedules.py)
#
# The last line is "N passed, N failed" over all of them.
set -uo pipefail

cd "$PAIMON_SRC"
seconds=${SECONDS_EACH:-900}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
rounds=${ROUNDS:-250}
fuzz=${FUZZ_SECONDS:-300}
histories=${SIM_ROUNDS:-50000}
stream=${STREAM_SECONDS:-600}
unset ROUNDS STREAM_SECONDS
passed=0
failed=0

# add LOG: the program's own last line
add()
{
	local line

	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$1" | tail -n 1)
	if [[ -z $line ]]; then
		failed=$((failed + 1))
		return
	fi
	passed=$((passed + ${line%% *}))
	failed=$((failed + $(sed -E 's/.*, ([0-9]+) failed/\1/' <<<"$line")))
}

crash()
{
	local out=$PAIMON_TMP/out/torture/crash
	local log=$out/crash.log rc=0 bad

	mkdir -p "$out/log" "$out/tmp_check/log"
	echo "== test/t/030_crash_kill.pl, seed $seed, $rounds rounds"
	env SEED="$seed" ROUNDS="$rounds" TESTDIR="$out" TESTDATADIR="$out" TESTLOGDIR="$out/log" \
		perl test/t/030_crash_kill.pl >"$log" 2>&1 || rc=$?
	tail -n 40 "$log"
	bad=$(grep -cE '^not ok ' "$log")
	if [[ $rc -ne 0 && $bad -eq 0 ]]; then
		bad=1
	fi
	passed=$((passed + $(grep -cE '^ok ' "$log")))
	failed=$((failed + bad))
}

# One after the other, each for its time.
fuzz()
{
	local log=$PAIMON_TMP/out/torture/fuzz.log

	mkdir -p "$PAIMON_TMP/out/torture"
	echo "== test/fuzz, seed $seed, $fuzz s each"
	make -s -C test/fuzz check FUZZ_SECONDS="$fuzz" FUZZ_SEED="$seed" >"$log" 2>&1
	tail -n 60 "$log"
	add "$log"
}

simulation()
{
	local log=$PAIMON_TMP/out/torture/simulation.log

	mkdir -p "$PAIMON_TMP/out/torture"
	echo "== test/unit/test_compaction_sim.c, seed $seed, $histories histories"
	env SIM_ROUNDS="$histories" make -s -C test/unit check TESTS=compaction_sim SEED="$seed" TEST_TIMEOUT=7200 >"$log" 2>&1
	tail -n 60 "$log"
	add "$log"
}

stream()
{
	local log=$PAIMON_TMP/out/torture/stream.log

	mkdir -p "$PAIMON_TMP/out/torture"
	echo "== test/random/stream.py, seed $seed, $stream s each"
	env SEED="$seed" STREAM_SECONDS="$stream" timeout -k 10 $((stream * 12 + 1800)) /usr/bin/python3 test/random/stream.py >"$log" 2>&1
	tail -n 60 "$log"
	add "$log"
}

# Every schedule of two transactions, once.
schedules()
{
	local log=$PAIMON_TMP/out/torture/schedules.log

	mkdir -p "$PAIMON_TMP/out/torture"
	echo "== test/random/schedules.py, seed $seed"
	env SEED="$seed" ALL=1 timeout -k 10 14400 /usr/bin/python3 test/random/schedules.py >"$log" 2>&1
	tail -n 60 "$log"
	add "$log"
}

if [[ $rounds -gt 0 ]]; then
	crash
fi
if [[ $fuzz -gt 0 ]]; then
	fuzz
fi
if [[ $histories -gt 0 ]]; then
	simulation
fi
if [[ $stream -gt 0 ]]; then
	stream
fi
if [[ ${RUNS:-3} -gt 0 ]]; then
	schedules
fi
for program in test/random/*.py; do
	if [[ $program == */stream.py || $program == */schedules.py ]]; then
		continue
	fi
	for ((run = 0; run < ${RUNS:-3}; run++)); do
		log=$PAIMON_TMP/out/torture/$(basename "$program" .py).$run.log
		echo "== $program, seed $((seed + run))"
		env SEED=$((seed + run)) SECONDS="$seconds" STEPS=150 timeout -k 10 $((seconds + 900)) /usr/bin/python3 "$program" >"$log" 2>&1
		tail -n 40 "$log"
		add "$log"
	done
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
