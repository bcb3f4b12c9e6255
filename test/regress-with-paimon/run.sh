#!/usr/bin/env bash
# PostgreSQL's own regression and isolation suites with default_table_access_method = paimon, on a server built with assertions; then our own.
# Run by "make regress-with-paimon" (test/run/tasks.sh); README.md says how it works.
#
#   PAIMON_PG_SERVER   a directory to keep the sources and the server in, and to find them in again (default: the run's own, thrown away)
#   PAIMON_PG_SOURCE   an unpacked source tree to take, instead of the distribution's source package
#   PAIMON_SUITES      of "regress isolation own" (default: all)
set -uo pipefail

cd "$PAIMON_SRC" || exit 1
here=test/regress-with-paimon
out=$PAIMON_TMP/out/regress-with-paimon
keep=${PAIMON_PG_SERVER:-$PAIMON_TMP/pg}
major=$("$PG_CONFIG" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/')
mkdir -p "$out" "$keep" || exit 1

# shellcheck source=test/regress-with-paimon/server.sh
. $here/server.sh
# shellcheck source=test/run/count.sh
. test/run/count.sh
# shellcheck source=test/run/kinds.sh
. test/run/kinds.sh

# Copies the scripts of a suite, edited.
stage_scripts()
{
	local suite=$1 target=$2 from=$keep/source/src/test/$1 name expression folder=specs suffix=spec

	if [[ $suite == regress ]]; then
		folder=sql suffix=sql
	fi
	mkdir -p "$target"
	cp -r "$from/$folder" "$from/expected" "$target/"
	[[ ! -d $from/data ]] || cp -r "$from/data" "$target/"
	while read -r name expression; do
		[[ $name == "$suite"/* ]] || continue
		name=$target/$folder/${name#*/}.$suffix
		cp "$name" "$name.orig"
		sed -i -e "$expression" "$name"
		if cmp -s "$name" "$name.orig"; then
			echo "edits.txt: nothing changed in $name by $expression"
			count edits 0 1
		fi
		rm "$name.orig"
	done < <(grep -vE '^(#|$)' $here/edits.txt)
	# The publication script leaves publications behind where a step of it is refused: everything after it would be about them.
	if [[ $suite == regress ]]; then
		{
			sed 's/^test: publication subscription$/test: subscription/' "$from/parallel_schedule"
			echo "test: publication"
		} >"$target/schedule"
	else
		cp "$from/isolation_schedule" "$target/schedule"
	fi
}

# One run of a suite with an access method.
run_suite()
{
	local suite=$1 am=$2 dir=$out/$1.$2 program=$keep/build/src/test/regress/pg_regress

	[[ $suite == regress ]] || program=$keep/build/src/test/isolation/pg_isolation_regress
	mkdir -p "$dir"
	stage_scripts "$suite" "$dir/input"
	cat test/regress.conf $here/postgresql.conf >"$dir/conf"
	echo "default_table_access_method = $am" >>"$dir/conf"
	# A step that still waits after this is cancelled, and says so in the result.
	PGISOLATIONTIMEOUT=10 timeout -k 10 3000 "$program" --temp-instance="$dir/instance" --temp-config="$dir/conf" --bindir="$keep/server/bin" \
		--inputdir="$dir/input" --outputdir="$dir" --dlpath="$keep/build/src/test/regress" --load-extension=paimon_am --no-locale --encoding=UTF8 \
		--port=$((20000 + (BASHPID * 7) % 20000)) --dbname="$([[ $suite == regress ]] || echo isolation_)regression" \
		--schedule="$dir/input/schedule" >"$dir/run.log" 2>&1
	cp "$dir/log/postmaster.log" "$dir/server.log"
	mkdir -p "$dir/scripts"
	cp "$dir"/input/s*/*.s* "$dir/scripts/"
	rm -rf "$dir/instance"
}

compare()
{
	local suite=$1 log=$out/$1.log rc=0 counts

	run_suite "$suite" heap
	run_suite "$suite" paimon
	printf '\n== %s of PostgreSQL, heap against paimon ==\n' "$suite"
	/usr/bin/python3 -B $here/classify.py "$suite" "$out/$suite.heap" "$out/$suite.paimon" 2>&1 | tee "$log" || rc=$?
	read -r -a counts < <(counts_of_log "$log" "$rc")
	count "$suite" "${counts[@]}"
}

ulimit -v 8000000
make_server || {
	count server 0 1
	totals
	exit 1
}
for suite in ${PAIMON_SUITES:-regress isolation own}; do
	if [[ $suite == own ]]; then
		export PG_CONFIG=$keep/server/bin/pg_config PAIMON_BINDIR=$keep/server/bin PATH=$keep/server/bin:$PATH
		PG_REGRESS=$keep/build/src/test/regress/pg_regress run_kind regress
		PG_REGRESS=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")/test/regress/pg_regress run_kind isolation
	else
		compare "$suite"
	fi
done
totals
