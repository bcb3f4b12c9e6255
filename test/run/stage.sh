# The private copies a run works on.  Sourced by test/run.sh.

# Where the copy of an absolute path of the server lies.
private_pg_config()
{
	echo "$2$("$1" --bindir)/pg_config"
}

# Copies programs, library and share directories under $2, each at its own absolute path.  The programs find their
# files relative to themselves, so the copy installs, initialises and runs as a server of its own.
stage_server()
{
	local config=$1 target=$2
	local dir include

	for dir in "$("$config" --bindir)" "$("$config" --pkglibdir)" "$("$config" --sharedir)"; do
		mkdir -p "$target$dir"
		tar -C "$dir" --exclude=./bitcode -cf - . | tar -C "$target$dir" --no-same-owner -xf -
	done
	rm -f "$target$("$config" --pkglibdir)/paimon_am.so" "$target$("$config" --sharedir)"/extension/paimon_am*
	for include in "$("$config" --includedir)" "$("$config" --includedir-server)"; do
		if [[ ! -e $target$include ]]; then
			mkdir -p "$(dirname "$target$include")"
			ln -s "$include" "$target$include"
		fi
	done
}

# The source tree without history and without anything built.
stage_source()
{
	local from=$1 target=$2

	mkdir -p "$target"
	tar -C "$from" --exclude=./.git --exclude='*.o' --exclude='*.so' --exclude='*.d' --exclude=./.build-flags \
		--exclude=./test/unit/build --exclude=./test/fuzz/build --exclude=./check-logs -cf - . |
		tar -C "$target" --no-same-owner -xf -
}

# A server does not run as root: root hands the directory to postgres (or PAIMON_USER) and becomes that user.
# The environment is rebuilt, so that nothing of the caller's (locale, PGHOST, paths of his home) matters.
run_unprivileged()
{
	local tmp=$1
	local user=${PAIMON_USER:-postgres}
	local keep=() name
	local env_vars=(HOME="$tmp/home" PATH="/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin" LANG=C.UTF-8 TZ=UTC)

	shift
	for name in TESTS SEED ROUNDS RUNS SECONDS_EACH STREAM_SECONDS FUZZ_SECONDS SIM_ROUNDS CC TERM ${!PAIMON_@} ${!BENCH_@} ${!DEMO_@}; do
		if [[ -n ${!name:-} ]]; then
			keep+=("$name=${!name}")
		fi
	done
	if [[ $(id -u) -ne 0 ]]; then
		(cd "$tmp" && env -i "${env_vars[@]}" "${keep[@]}" "$@")
		return
	fi
	if ! id "$user" >/dev/null 2>&1; then
		echo "There is no user $user to run the server as; set PAIMON_USER." >&2
		echo "0 passed, 1 failed"
		return 1
	fi
	chown -R "$user" "$tmp"
	(cd "$tmp" && runuser -u "$user" -- env -i "${env_vars[@]}" "${keep[@]}" "$@")
}

# Ends what a broken test left running in our directory: postmasters by their pid files, nothing by name.
stop_leftovers()
{
	local file pid

	while IFS= read -r file; do
		pid=$(head -n 1 "$file" 2>/dev/null || true)
		if [[ $pid =~ ^[0-9]+$ ]] && [[ $(readlink "/proc/$pid/cwd" 2>/dev/null || true) == "$1"/* ]]; then
			kill -QUIT "$pid" 2>/dev/null || true
		fi
	done < <(find "$1" -name postmaster.pid 2>/dev/null)
}

# After a failure: what is small and tells why, into the work tree.
keep_logs()
{
	local tmp=$1 target=$2
	local file

	rm -rf "$target"
	mkdir -p "$target" 2>/dev/null || return 0
	while IFS= read -r file; do
		mkdir -p "$target/$(dirname "${file#"$tmp"/}")"
		tail -c 1000000 "$file" >"$target/${file#"$tmp"/}"
	done < <(find "$tmp/out" -type f \( -name '*.log' -o -name '*.diffs' -o -path '*/results/*.out' -o -name 'regress_log_*' -o -name 'postmaster.log' \))
}
