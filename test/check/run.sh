#!/usr/bin/env bash
# Lint: what a reviewer should not have to look for.  Run by "make lint".
#
# Each check is a function that prints its findings; nothing printed means passed.  Reports (format, long functions)
# are shown and do not count.  The last line is "N passed, N failed".
set -uo pipefail
shopt -s nullglob globstar

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PG_CONFIG=${PG_CONFIG:-pg_config}
tmp=$(mktemp -d /tmp/paimon_am_lint.XXXXXX)
trap 'rm -rf "$tmp"' EXIT
passed=0
failed=0

# check NAME FUNCTION
check()
{
	local findings rc=0

	findings=$("$2" 2>&1) || rc=$?
	if [[ $rc -ne 0 && -z $findings ]]; then
		findings="the check itself failed with exit code $rc"
	fi
	if [[ -z $findings ]]; then
		echo "ok      $1"
		passed=$((passed + 1))
	else
		echo "not ok  $1"
		head -n 40 <<<"$findings" | sed 's/^/        /'
		failed=$((failed + 1))
	fi
}

# report NAME FUNCTION: shown, not counted.
report()
{
	local findings

	findings=$("$2" 2>&1)
	if [[ -n $findings ]]; then
		echo "report  $1"
		head -n 15 <<<"$findings" | sed 's/^/        /'
	fi
}

# The files under version control and new ones that are not ignored; all files in a copy without history.
tree_files()
{
	if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard | while IFS= read -r file; do
			[[ -f $file ]] && echo "$file"
		done
	else
		find . -type f ! -path './.git/*' ! -path './check-logs/*' ! -name '*.o' ! -name '*.so' ! -name '*.d' -printf '%P\n'
	fi
	return 0
}

for part in source build tests; do
	# shellcheck disable=SC1090
	. "test/check/$part.sh"
done

echo "$passed passed, $failed failed"
[[ $failed -eq 0 ]]
