#!/usr/bin/env bash
# The unprivileged half of test/run.sh: builds in the private copy and runs what was asked for.
#
#   inside.sh TMP PG_CONFIG KIND...
#
# For the scripts it calls, the environment has
#   PAIMON_TMP      the run's directory; theirs is $PAIMON_TMP/out/<kind>
#   PAIMON_BINDIR   programs of the private server (first in PATH, too)
#   PAIMON_SRC      the copy of the source tree (the current directory)
#   PG_CONFIG, PG_REGRESS, PERL5LIB for PostgreSQL::Test, SEED if given
set -euo pipefail

export PAIMON_TMP=$1
export PG_CONFIG=$2
shift 2
export PAIMON_SRC=$PAIMON_TMP/src
PAIMON_BINDIR=$("$PG_CONFIG" --bindir)
pgxs=$(dirname "$(dirname "$("$PG_CONFIG" --pgxs)")")
export PAIMON_BINDIR
export PATH=$PAIMON_BINDIR:$PATH
export PG_REGRESS=$pgxs/test/regress/pg_regress
export PERL5LIB=$pgxs/test/perl
cd "$PAIMON_SRC"

# shellcheck source=test/run/count.sh
. test/run/count.sh
# shellcheck source=test/run/kinds.sh
. test/run/kinds.sh
# shellcheck source=test/run/tasks.sh
. test/run/tasks.sh

# Builds and installs into the private server; $1: testing (stop points) or release.
build()
{
	local flags=()

	if [[ $1 == testing ]]; then
		flags+=(PAIMON_TESTING=1)
	fi
	if [[ -n ${CC:-} ]]; then
		flags+=("CC=$CC")
	fi
	make -s -j2 "${flags[@]}" && make -s "${flags[@]}" install >/dev/null
}

# A runner that breaks in the middle must not look like one that had nothing to do.
finished=0
broken()
{
	if [[ $finished -eq 0 ]]; then
		echo "The test runner itself stopped."
		count runner 0 1
		totals
	fi
}
trap broken EXIT

# The last thing of a test run.
finish()
{
	finished=1
	totals
}

main()
{
	local kind flavour=testing

	case $1 in
		demo | bench) flavour=release ;;
		regress-with-paimon)
			# builds a server of its own, and against that
			finished=1
			bash test/regress-with-paimon/run.sh
			return
			;;
	esac
	if wants_server "$@" && ! build "$flavour"; then
		echo "The extension does not build."
		count build 0 1
		# What needs no server is still worth running.
		for kind in "$@"; do
			case $kind in
				unit | fuzz) run_kind "$kind" ;;
			esac
		done
		finish
		return
	fi
	case $1 in
		demo | bench | torture)
			finished=1
			run_task "$1"
			return
			;;
	esac
	for kind in "$@"; do
		run_kind "$kind"
	done
	finish
}

main "$@"
