# Checks of the tests and scripts.  Sourced by test/check/run.sh.

# pairs_of TESTS-SUFFIX TESTS-DIR EXPECTED-DIR: each test has an expected file and each expected file (x.out, x_1.out) its test.
pairs_of()
{
	local suffix=$1 tests=$2 expected=$3 file name

	for file in "$tests"/*."$suffix"; do
		name=$(basename "$file" ".$suffix")
		[[ -f $expected/$name.out || -f $expected/${name}_1.out ]] || echo "$file: no $expected/$name.out"
	done
	for file in "$expected"/*; do
		name=$(basename "$file" .out)
		[[ -f $tests/$name.$suffix || -f $tests/${name%_[0-9]}.$suffix ]] || echo "$file: no test of that name"
	done
}

check_expected()
{
	pairs_of sql test/sql test/expected
	pairs_of spec test/isolation/specs test/isolation/expected
}

# Tests are found by wildcard (test/run/kinds.sh); a file that none of them matches would never run.
check_all_tests_run()
{
	local file

	while IFS= read -r file; do
		case $file in
			test/sql/*.sql | test/expected/*.out | test/sql/data/* | test/sql/include/*) ;;
			test/isolation/specs/*.spec | test/isolation/expected/*.out) ;;
			test/t/*.pl | test/t/lib/*.pm) ;;
			test/random/*.pl | test/random/*.py | test/random/lib/*) ;;
			test/unit/test_*.c | test/unit/unit*.[ch] | test/unit/Makefile | test/unit/golden/*) ;;
			test/fuzz/fuzz_*.c | test/fuzz/fuzz.[ch] | test/fuzz/Makefile | test/fuzz/corpus/* | test/fuzz/regress/*) ;;
			test/regress-with-paimon/* | test/demo/* | test/bench/* | test/torture/* | test/check/*.sh | test/run/*.sh) ;;
			test/run.sh | test/regress.conf) ;;
			*/README.md | */.gitignore) ;;
			*) echo "$file: no runner would find it" ;;
		esac
	done < <(tree_files | grep '^test/')
	for file in test/t/*.py test/random/*/*.sql; do
		echo "$file: no runner would find it"
	done
}

# No waiting by the clock: a test that sleeps is slow when it works and fails when the machine is busy.
check_no_sleeps()
{
	grep -nE '\b(pg_sleep|usleep|nanosleep|sleep)\b *\(|time\.sleep|^[[:space:]]*sleep [0-9]' \
		test/sql/*.sql test/isolation/specs/*.spec test/t/*.pl test/random/*.{pl,py} test/torture/* 2>/dev/null |
		grep -v 'lint: allowed'
	return 0
}

# Nothing passes by skipping.
check_no_skips()
{
	grep -nE '\bskip_all\b|\bSKIP:|\btodo_skip\b|\bTODO:' test/t/*.pl test/random/*.pl 2>/dev/null | grep -v 'lint: allowed'
	return 0
}

check_scripts_parse()
{
	local file

	while IFS= read -r file; do
		case $file in
			*.sh | .ci/run) bash -n "$file" ;;
			*.py) /usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$file" 2>&1 | tail -n 1 ;;
			META.json) /usr/bin/python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$file" 2>&1 | tail -n 1 ;;
		esac
	done < <(tree_files)
	return 0
}

# The numbers in control file, META.json and upgrade scripts belong together.
check_versions_agree()
{
	local version

	version=$(sed -nE "s/^default_version *= *'(.*)'/\1/p" paimon_am.control)
	grep -q "\"version\": \"$version\.[0-9]*\"" META.json || echo "META.json: not version $version"
	grep -q "sql/paimon_am--$version.sql" META.json || echo "META.json: not file sql/paimon_am--$version.sql"
	grep -qF "sql/paimon_am--$version.sql" .gitignore || echo ".gitignore: the built sql/paimon_am--$version.sql is not listed"
}

# Every function in the install script is commented, and its rights are said.
check_install_script()
{
	local file function

	for file in sql/parts/*.sql sql/parts/*.sql.in; do
		while IFS= read -r function; do
			grep -qE "^COMMENT ON (FUNCTION|PROCEDURE|AGGREGATE) $function *\(" sql/parts/* || echo "$file: no COMMENT ON FUNCTION $function"
			grep -qE "(REVOKE|GRANT)[^;]*" sql/parts/* && tr '\n' ' ' <<<"$(cat sql/parts/*)" | grep -oE '(REVOKE|GRANT) [^;]*;' |
				grep -qE "(FUNCTION|FUNCTIONS|ROUTINES|,) *[^;]*\b${function//./\\.}\b|ALL (FUNCTIONS|ROUTINES) IN SCHEMA paimon" ||
				echo "$file: no REVOKE or GRANT for $function"
		done < <(sed -nE 's/^CREATE (OR REPLACE )?(FUNCTION|PROCEDURE) ([a-z_]+\.[a-z_0-9]+).*/\3/p' "$file" | sort -u)
		grep -nE '^CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|TABLE|VIEW|TYPE|SEQUENCE|AGGREGATE) +[a-z_]+ *(\(|AS|$)' "$file" |
			sed "s,^,$file: not in schema paimon: ,"
	done
	return 0
}

# Built options and all settings are in the README.
check_documented()
{
	local name

	sed -nE 's/^\t\{BUILT\("([^"]+)".*/\1/p' src/options/options_table.c | while IFS= read -r name; do
		grep -qF "\`$name\`" README.md || echo "option $name"
	done
	grep -hoE '"paimon\.[a-z_]+", *("|$)|DefineCustom[A-Za-z]+Variable\("paimon\.[a-z_]+"' src/*/*.c | grep -oE 'paimon\.[a-z_]+' | sort -u |
		while IFS= read -r name; do
			grep -qF "\`$name\`" README.md || echo "setting $name"
		done
	return 0
}

check "built options and settings are in README.md" check_documented
check "tests and expected files belong together" check_expected
check "every test is run" check_all_tests_run
check "no test sleeps" check_no_sleeps
check "no test skips" check_no_skips
check "scripts parse" check_scripts_parse
check "versions agree" check_versions_agree
check "install script: comments, rights, schema" check_install_script
