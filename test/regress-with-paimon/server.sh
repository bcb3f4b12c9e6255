# The server under test: PostgreSQL's sources of this major, built with assertions.  Sourced by run.sh.

# Where the distribution's source package comes from: lists of our own, so that nothing on the machine changes and no root is needed.
apt_options()
{
	local apt=$keep/apt

	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/sources"
	: >"$apt/status"
	sed -e 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources >"$apt/sources/src.sources" 2>/dev/null ||
		sed -nE 's/^deb(-src)? /deb-src /p' /etc/apt/sources.list >"$apt/sources/src.list"
	printf '%s\n' -o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$apt/sources" -o "Dir::State::Lists=$apt/lists" \
		-o "Dir::State::status=$apt/status" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=
}

# The newest version that can still be had: a mirror may list one whose files are gone.
fetch_source()
{
	local options version

	if [[ -n ${PAIMON_PG_SOURCE:-} ]]; then
		ln -sfn "$PAIMON_PG_SOURCE" "$keep/source"
		return
	fi
	mapfile -t options < <(apt_options)
	apt-get -qq "${options[@]}" update || return 1
	for version in $(apt-cache "${options[@]}" showsrc --only-source "postgresql-$major" | sed -n 's/^Version: //p' | sort -rV); do
		echo "PostgreSQL $version"
		(cd "$keep" && apt-get -qq "${options[@]}" source --download-only "postgresql-$major=$version") || continue
		mkdir -p "$keep/unpack"
		tar -C "$keep/unpack" -xf "$keep"/postgresql-"$major"_*.orig.tar.* && mv "$keep"/unpack/* "$keep/source"
		return
	done
	echo "No source package of postgresql-$major can be had: set PAIMON_PG_SOURCE."
	return 1
}

build_server()
{
	mkdir -p "$keep/build"
	(
		cd "$keep/build" &&
			"$(readlink -f "$keep/source")/configure" --prefix="$keep/server" --enable-cassert --enable-debug --with-icu --without-readline \
				--without-zlib CFLAGS='-O2 -g' >configure.log 2>&1 &&
			make -s -j2 >make.log 2>&1 && make -s install >>make.log 2>&1 &&
			make -s -C src/test/regress all install >>make.log 2>&1 && make -s -C src/test/isolation all install >>make.log 2>&1
	) || {
		tail -n 20 "$keep/build/configure.log" "$keep/build/make.log" 2>/dev/null
		return 1
	}
	touch "$keep/built"
}

# Leaves the server in $keep/server with our extension installed; the suites' programs in $keep/build.
make_server()
{
	local flags=("PG_CONFIG=$keep/server/bin/pg_config" PAIMON_TESTING=1)

	[[ -d $keep/source ]] || fetch_source || return 1
	[[ -f $keep/built ]] || build_server || return 1
	make -s "${flags[@]}" clean && make -s -j2 "${flags[@]}" && make -s "${flags[@]}" install >/dev/null
}
