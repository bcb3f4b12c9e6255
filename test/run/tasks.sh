# Demo, benchmark and crash torture.  Sourced by test/run/inside.sh.
#
# Each is test/<task>/run.sh.  Demo and benchmark find a running server of a release build (PGHOST, PGPORT, PGUSER,
# PGDATABASE) with the extension created; the torture makes and kills its own, of a testing build.

# start_cluster DIR CONFFILE: initdb and start; sets PGHOST, PGPORT, PGUSER, PGDATABASE.
start_cluster()
{
	local dir=$1 conf=$2

	mkdir -p "$dir/socket"
	initdb -D "$dir/data" -U postgres -A trust --no-locale --encoding=UTF8 --no-sync >"$dir/initdb.log"
	cat "$conf" >>"$dir/data/postgresql.conf"
	printf '%s\n' "listen_addresses = ''" "unix_socket_directories = '$dir/socket'" >>"$dir/data/postgresql.conf"
	export PGHOST=$dir/socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres
	pg_ctl -s -D "$dir/data" -l "$dir/server.log" -w start || {
		cat "$dir/server.log"
		return 1
	}
	psql -X -q -c 'CREATE EXTENSION paimon_am'
}

stop_cluster()
{
	pg_ctl -s -D "$1/data" -m fast -w stop
}

run_task()
{
	local task=$1 dir=$PAIMON_TMP/out/$1 conf=test/$1/postgresql.conf rc=0

	if [[ ! -f test/$task/run.sh ]]; then
		echo "There is no test/$task/run.sh."
		return 1
	fi
	mkdir -p "$dir"
	if [[ $task == torture ]]; then
		bash "test/$task/run.sh"
		return
	fi
	[[ -f $conf ]] || conf=test/regress.conf
	start_cluster "$dir" "$conf"
	bash "test/$task/run.sh" || rc=$?
	stop_cluster "$dir"
	return "$rc"
}
