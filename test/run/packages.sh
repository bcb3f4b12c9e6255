# Installs what is missing to build and test, on Debian.  Sourced by test/run.sh.
#
# What is there already is found by looking for the thing itself, so a machine that has all of it needs neither apt
# nor root; on another system the list below says what to install by hand.

# Major version of the server to test: PG_CONFIG's, else the one the distribution offers.
server_major()
{
	local config=${PG_CONFIG:-pg_config}

	if command -v "$config" >/dev/null; then
		"$config" --version | sed -E 's/^PostgreSQL ([0-9]+).*/\1/'
	elif command -v apt-cache >/dev/null; then
		apt-cache policy postgresql 2>/dev/null | sed -nE 's/^ *Candidate: ([0-9]+).*/\1/p' | grep . || echo 15
	else
		echo 15
	fi
}

# The things that must be there, one line each: the Debian package, then a command that succeeds if it is there.
needed_packages()
{
	local major=$1
	local config=${PG_CONFIG:-pg_config}

	cat <<END
postgresql-$major	[ -x "\$($config --bindir)/initdb" ]
postgresql-server-dev-$major	[ -f "\$($config --pgxs)" ]
gcc	command -v gcc
make	command -v make
libc6-dev	[ -f /usr/include/stdio.h ]
libzstd-dev	[ -f /usr/include/zstd.h ]
libicu-dev	[ -f /usr/include/unicode/ucol.h ]
binutils	command -v nm
perl	command -v prove
libipc-run-perl	perl -MIPC::Run -e 1
python3	[ -x /usr/bin/python3 ]
clang	command -v clang
$(clang_runtime_line)
diffutils	command -v diff
procps	command -v ps
END
}

# libFuzzer and the sanitizers come in clang's runtime package, whose name carries clang's version.
clang_runtime_line()
{
	local version=

	if command -v clang >/dev/null; then
		version=$(clang -dumpversion | cut -d. -f1)
	fi
	printf 'libclang-rt-%sdev\tls "$(clang -print-resource-dir)"/lib/*/libclang_rt.fuzzer* ' "${version:+$version-}"
	printf '"$(clang -print-resource-dir)"/lib/*/*/libclang_rt.fuzzer* 2>/dev/null | grep -q .\n'
}

# Names of the packages whose thing is missing.
missing_packages()
{
	local package test

	while IFS=$'\t' read -r package test; do
		if [[ -n $package ]] && ! bash -c "$test" >/dev/null 2>&1; then
			echo "$package"
		fi
	done < <(needed_packages "$1")
}

as_root()
{
	if [[ $(id -u) -eq 0 ]]; then
		"$@"
	else
		sudo "$@"
	fi
}

ensure_packages()
{
	local major missing

	major=$(server_major)
	mapfile -t missing < <(missing_packages "$major")
	[[ ${#missing[@]} -gt 0 ]] || return 0

	echo "missing: ${missing[*]}"
	if ! command -v apt-get >/dev/null || { [[ $(id -u) -ne 0 ]] && ! command -v sudo >/dev/null; }; then
		echo "Install these packages (names are Debian's), or run as root or with sudo on Debian." >&2
		echo "0 passed, 1 failed"
		exit 1
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
	# The server package must not make and start a cluster of its own if there was no server here.
	if [[ ! -d /etc/postgresql-common ]]; then
		as_root mkdir -p /etc/postgresql-common
		echo 'create_main_cluster = false' | as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
	fi
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		-o Dpkg::Options::=--force-confold "${missing[@]}" >/dev/null
	# clang itself came only now: its runtime's name is known from here on.
	mapfile -t missing < <(missing_packages "$major")
	if [[ ${#missing[@]} -gt 0 ]]; then
		as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
	fi
}
