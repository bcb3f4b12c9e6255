# Counting.  Sourced by test/run/inside.sh.
#
# Each kind of test adds to the totals; the last line of a run is their sum.

total_passed=0
total_failed=0
summary=

# count KIND PASSED FAILED
count()
{
	total_passed=$((total_passed + $2))
	total_failed=$((total_failed + $3))
	summary+="$(printf '%-10s %6d passed, %d failed' "$1" "$2" "$3")"$'\n'
}

# Prints the sum; fails if anything failed or nothing ran.
totals()
{
	if [[ $((total_passed + total_failed)) -eq 0 ]]; then
		count nothing 0 1
	fi
	if [[ $total_failed -gt 0 ]]; then
		summary+="Logs and results of this run are in check-logs/ of the source tree."$'\n'
	fi
	printf '\n%s%d passed, %d failed\n' "$summary" "$total_passed" "$total_failed"
	[[ $total_failed -eq 0 ]]
}

# From a log, "PASSED FAILED" by its last line "N passed, N failed", else by its TAP lines.  $2: the program's exit
# code.  A program that ended badly without a failure in its log, or had nothing to say, is one failure.
counts_of_log()
{
	local log=$1 rc=$2
	local passed failed line

	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1 || true)
	if [[ -n $line ]]; then
		passed=${line%% *}
		failed=$(sed -E 's/.*, ([0-9]+) failed/\1/' <<<"$line")
	else
		passed=$(grep -cE '^ok [0-9]+' "$log" || true)
		failed=$(grep -E '^not ok [0-9]+' "$log" | grep -vcE '# TODO' || true)
	fi
	if [[ $failed -eq 0 ]] && { [[ $rc -ne 0 ]] || [[ $passed -eq 0 ]]; }; then
		failed=1
	fi
	echo "$passed $failed"
}

# From the log of several programs that each print "name: N passed, M failed": a program counts as one test, since
# a single one makes millions of checks.  One without its line ends in "name: died with exit code C".
counts_of_programs()
{
	local log=$1 rc=$2
	local passed failed

	passed=$(grep -cE '^[a-z0-9_]+: [0-9]+ passed, 0 failed$' "$log" || true)
	failed=$(grep -cE '^[a-z0-9_]+: [0-9]+ passed, [1-9][0-9]* failed$|: died with exit code [0-9]+$' "$log" || true)
	if [[ $failed -eq 0 ]] && { [[ $rc -ne 0 ]] || [[ $passed -eq 0 ]]; }; then
		failed=1
	fi
	echo "$passed $failed"
}

# From pg_regress's output (15: "test x ... ok", 16 and up: TAP), against the number of tests it was given: those it
# never came to are failures.
counts_of_regress()
{
	local log=$1 expected=$2
	local passed failed

	passed=$(grep -cE '(\.\.\. ok +[0-9]+ ms|^ok [0-9]+)' "$log" || true)
	failed=$((expected - passed))
	echo "$passed $failed"
}
