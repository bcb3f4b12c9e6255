# The kinds of tests.  Sourced by test/run/inside.sh.
#
# Every kind finds its files by wildcard, so that no test waits to be listed somewhere:
#   unit       test/unit/test_*.c         core code outside the server; test/unit/Makefile; a program counts as one
#   fuzz       test/fuzz/fuzz_*.c         decoders under libFuzzer; test/fuzz/Makefile
#   regress    test/sql/*.sql             pg_regress, test/expected
#   isolation  test/isolation/specs/*.spec
#   tap        test/t/*.pl                PostgreSQL::Test
#   random     test/random/*.pl, *.py     randomised tests; TAP, or a last line "N passed, N failed"
# A kind that has files and ran none of them fails.

# Whether any of the kinds needs a built extension.
wants_server()
{
	local kind

	for kind in "$@"; do
		case $kind in
			unit | fuzz) ;;
			*) return 0 ;;
		esac
	done
	return 1
}

# The kind's files, one a line, only those in TESTS if that is set.
files_of()
{
	local pattern file name wanted

	case $1 in
		unit) pattern='test/unit/test_*.c' ;;
		fuzz) pattern='test/fuzz/fuzz_*.c' ;;
		regress) pattern='test/sql/*.sql' ;;
		isolation) pattern='test/isolation/specs/*.spec' ;;
		tap) pattern='test/t/*.pl' ;;
		random) pattern='test/random/*.pl test/random/*.py' ;;
	esac
	for file in $pattern; do
		[[ -e $file ]] || continue
		name=$(basename "${file%.*}")
		if [[ -z ${TESTS:-} ]]; then
			echo "$file"
			continue
		fi
		for wanted in $TESTS; do
			if [[ $name == "$wanted" || $name == test_$wanted || $name == fuzz_$wanted ]]; then
				echo "$file"
			fi
		done
	done
}

run_kind()
{
	local kind=$1 files

	mapfile -t files < <(files_of "$kind")
	if [[ ${#files[@]} -eq 0 ]]; then
		return 0
	fi
	printf '\n== %s ==\n' "$kind"
	mkdir -p "$PAIMON_TMP/out/$kind"
	case $kind in
		unit | fuzz) run_make "$kind" "${files[@]}" ;;
		regress) run_regress "${files[@]}" ;;
		isolation) run_isolation "${files[@]}" ;;
		tap | random) run_programs "$kind" "${files[@]}" ;;
	esac
}

# Unit tests and fuzzers have a Makefile of their own, which prints their sum.
run_make()
{
	local kind=$1 log=$PAIMON_TMP/out/$1/$1.log rc=0 counts names=()
	local args=()

	shift
	if [[ -n ${TESTS:-} ]]; then
		mapfile -t names < <(printf '%s\n' "$@" | sed -E 's,.*/(test|fuzz)_(.*)\.c$,\2,')
		args+=("TESTS=${names[*]}")
	fi
	if [[ -n ${SEED:-} ]]; then
		args+=("SEED=$SEED")
	fi
	env -u TESTS timeout -k 10 3600 make -s -C "test/$kind" check "${args[@]}" 2>&1 | tee "$log" || rc=$?
	if grep -qE '^[a-z0-9_]+: [0-9]+ passed, [0-9]+ failed$' "$log"; then
		read -r -a counts < <(counts_of_programs "$log" "$rc")
	else
		read -r -a counts < <(counts_of_log "$log" "$rc")
	fi
	count "$kind" "${counts[@]}"
}

# Options common to pg_regress and pg_isolation_regress, one a line: each starts a cluster of its own.
regress_options()
{
	local kind=$1 input=$2 major

	printf '%s\n' "--temp-instance=$PAIMON_TMP/$kind" "--temp-config=test/regress.conf" "--bindir=$PAIMON_BINDIR" \
		"--inputdir=$input" "--outputdir=$PAIMON_TMP/out/$kind" --load-extension=paimon_am --no-locale --encoding=UTF8 \
		"--port=$((20000 + (BASHPID * 7) % 20000))"
	major=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
	if [[ $major -ge 16 ]]; then
		echo "--expecteddir=$input"
	fi
}

# run_regress_program KIND PROGRAM INPUTDIR FILE...
run_regress_program()
{
	local kind=$1 program=$2 input=$3 log=$PAIMON_TMP/out/$1/$1.log counts options names

	shift 3
	mapfile -t options < <(regress_options "$kind" "$input")
	mapfile -t names < <(printf '%s\n' "$@" | sed -E 's,.*/,,; s,\.[a-z]+$,,')
	timeout -k 10 3600 "$program" "${options[@]}" --dbname=regression "${names[@]}" 2>&1 | tee "$log" || true
	if [[ -s $PAIMON_TMP/out/$kind/regression.diffs ]]; then
		head -n 400 "$PAIMON_TMP/out/$kind/regression.diffs"
	fi
	if grep -qE 'postmaster (failed|did not)|could not connect|server closed the connection' "$log" "$PAIMON_TMP/out/$kind/regression.diffs" 2>/dev/null; then
		tail -n 30 "$PAIMON_TMP/out/$kind/log/postmaster.log" | sed 's/^/    /'
	fi
	read -r -a counts < <(counts_of_regress "$log" "${#names[@]}")
	count "$kind" "${counts[@]}"
}

run_regress()
{
	run_regress_program regress "$PG_REGRESS" test "$@"
}

run_isolation()
{
	run_regress_program isolation "$(dirname "$(dirname "$PG_REGRESS")")/isolation/pg_isolation_regress" test/isolation "$@"
}

# Perl tests and programs: one by one, each in a directory of its own.
run_programs()
{
	local kind=$1 file name log rc counts passed=0 failed=0 run

	shift
	for file in "$@"; do
		name=$(basename "${file%.*}")
		log=$PAIMON_TMP/out/$kind/$name.log
		case $file in
			*.pl) run=(perl "$file") ;;
			*.py) run=(/usr/bin/python3 "$file") ;;
		esac
		rc=0
		mkdir -p "$PAIMON_TMP/out/$kind/$name/log" "$PAIMON_TMP/out/$kind/$name/tmp_check/log"
		TESTDIR=$PAIMON_TMP/out/$kind/$name TESTDATADIR=$PAIMON_TMP/out/$kind/$name TESTLOGDIR=$PAIMON_TMP/out/$kind/$name/log \
			timeout -k 10 3600 "${run[@]}" >"$log" 2>&1 || rc=$?
		read -r -a counts < <(counts_of_log "$log" "$rc")
		passed=$((passed + counts[0]))
		failed=$((failed + counts[1]))
		if [[ ${counts[1]} -eq 0 ]]; then
			printf 'ok      %-40s %5d passed\n' "$name" "${counts[0]}"
			rm -rf "$PAIMON_TMP/out/$kind/$name"
		else
			printf 'FAILED  %-40s %5d passed, %d failed (exit code %d)\n' "$name" "${counts[@]}" "$rc"
			{ grep -vE '^ok ' "$log" || true; } | tail -n 60 | sed 's/^/    /'
		fi
		{ grep -iE '^(# )?seed' "$log" || true; } | head -n 3 | sed 's/^/    /'
	done
	count "$kind" "$passed" "$failed"
}
