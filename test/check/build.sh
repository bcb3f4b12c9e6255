# Checks that compile.  Sourced by test/check/run.sh.  They build copies; the tree is left as it is.

copy_tree()
{
	mkdir -p "$tmp/$1"
	tree_files | tar -cf - -T - | tar -C "$tmp/$1" -xf -
}

# The release build and the testing build, without a warning.
build_with()
{
	copy_tree "$1"
	(cd "$tmp/$1" && make -s -k -j2 CC="$1" PG_CONFIG="$PG_CONFIG" 2>&1) || true
	[[ -f $tmp/$1/paimon_am.so ]] || echo "$1: no paimon_am.so"
}

check_gcc()
{
	build_with gcc
}

check_clang()
{
	build_with clang
}

check_testing_build()
{
	copy_tree testing
	(cd "$tmp/testing" && make -s -k -j2 PAIMON_TESTING=1 PG_CONFIG="$PG_CONFIG" 2>&1) || true
	[[ -f $tmp/testing/paimon_am.so ]] || echo "testing build: no paimon_am.so"
}

# The library shows the server what it looks up by name, and nothing else.
check_exported_symbols()
{
	local symbols

	if [[ ! -f $tmp/gcc/paimon_am.so ]]; then
		echo "no paimon_am.so to look at"
		return
	fi
	symbols=$(nm -D --defined-only "$tmp/gcc/paimon_am.so" | awk '{ print $3 }')
	while IFS= read -r symbol; do
		case $symbol in
			_PG_init | Pg_magic_func | paimon_launcher_main | paimon_worker_main | paimon_helper_main | pg_finfo_paimon_* | _init | _fini) ;;
			*) grep -qx "pg_finfo_$symbol" <<<"$symbols" || echo "$symbol" ;;
		esac
	done <<<"$symbols"
	for symbol in _PG_init Pg_magic_func; do
		grep -qx "$symbol" <<<"$symbols" || echo "$symbol is missing"
	done
}

# What files share among themselves begins with paimon_, or it would clash some day.
check_shared_names()
{
	local objects=("$tmp"/gcc/src/**/*.o)

	if [[ ${#objects[@]} -eq 0 ]]; then
		echo "no objects to look at"
		return
	fi
	nm -A --defined-only --extern-only "${objects[@]}" | sed "s,^$tmp/gcc/,," |
		awk '$3 !~ /^(paimon_|pg_finfo_paimon_|_PG_init$|Pg_magic_func$)/ { print $1 " " $3 }'
}

# A library that lacks a symbol builds, but a server that preloads it does not start.
check_no_missing_symbols()
{
	local names="$tmp/names"

	if [[ ! -f $tmp/gcc/paimon_am.so ]]; then
		echo "no paimon_am.so to look at"
		return
	fi
	grep -rhoE '\bpaimon_[a-z0-9_]+ ?\(' src --include='*.h' | tr -d ' (' | sort -u >"$names"
	nm -D --undefined-only "$tmp/gcc/paimon_am.so" | awk '{ print $2 }' | grep -xFf "$names" | sed 's/$/: declared and used, defined nowhere/'
	return 0
}

check_no_stop_points_in_release()
{
	if [[ -f $tmp/gcc/paimon_am.so ]]; then
		nm "$tmp/gcc/paimon_am.so" | grep paimon_stop
		grep -n 'paimon\.stop_' "$tmp"/gcc/sql/paimon_am--*.sql
	fi
	return 0
}

# Each header compiles alone: core's without the server's headers, the others with nothing before them but postgres.h.
check_headers_alone()
{
	local header flags

	for header in src/**/*.h; do
		flags=(-std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wno-sign-compare -fsyntax-only -Isrc)
		if [[ $header == src/core/* ]]; then
			printf '#include "%s"\n' "${header#src/}" >"$tmp/alone.c"
		else
			flags+=(-I"$("$PG_CONFIG" --includedir-server)" -DPAIMON_TESTING)
			printf '#include "postgres.h"\n#include "%s"\n' "${header#src/}" >"$tmp/alone.c"
		fi
		gcc "${flags[@]}" "$tmp/alone.c" 2>&1 | grep -E 'error|warning' | head -n 3 | sed "s,^,$header: ,"
	done
	return 0
}

check "headers compile alone" check_headers_alone
check "gcc builds without a warning" check_gcc
check "clang builds without a warning" check_clang
check "the testing build builds without a warning" check_testing_build
check "only what the server looks up is exported" check_exported_symbols
check "shared names begin with paimon_" check_shared_names
check "nothing used is missing" check_no_missing_symbols
check "no stop points in a release build" check_no_stop_points_in_release
