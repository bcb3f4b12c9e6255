#!/usr/bin/env bash
# Long forms of the randomised tests.  Run by "make torture" (test/run/tasks.sh), with a private server in PAIMON_BINDIR.
#
#   SECONDS_EACH   time for each randomised program (default 900)
#   SEED           of the first run; each further run takes the next one
#   RUNS           runs of each program (default 3)
#
# The last line is "N passed, N failed" over all of them.
set -uo pipefail

cd "$PAIMON_SRC"
seconds=${SECONDS_EACH:-900}
seed=${SEED:-$((RANDOM * 32768 + RANDOM))}
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

for program in test/random/*.py; do
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
