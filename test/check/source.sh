# Checks of the source text.  Sourced by test/check/run.sh.

# Folders by layer, lowest first.  A folder includes its own layer and those below it.
layer_of()
{
	case $1 in
		core) echo 0 ;;
		options | row | catalog | storage) echo 1 ;;
		levels | merge | memtable | run) echo 2 ;;
		scan | compact | changelog | snapshot | verify) echo 3 ;;
		am | worker) echo 4 ;;
		*) echo none ;;
	esac
}

# May a file of folder $1 include one of folder $2?
may_include()
{
	if [[ $1 == "$2" ]]; then
		return 0
	fi
	if [[ $1 == ddl ]]; then
		[[ $2 == core || $2 == options || $2 == row || $2 == catalog || $2 == storage || $2 == memtable || $2 == merge ]]
		return
	fi
	[[ $(layer_of "$1") != none && $(layer_of "$2") != none && $(layer_of "$2") -le $(layer_of "$1") && $1 != core ]]
}

# Lines "file from-folder to-folder" of includes between our folders.
folder_includes()
{
	local file folder target

	for file in src/*/*.[ch]; do
		folder=$(basename "$(dirname "$file")")
		while IFS= read -r target; do
			if [[ -f src/$target ]]; then
				echo "$file $folder ${target%%/*}"
			fi
		done < <(sed -nE 's/^#include "([a-z]+\/[a-z0-9_]+\.h)".*/\1/p' "$file")
	done
}

check_layers()
{
	local file from to

	for file in src/*/; do
		if [[ $(layer_of "$(basename "$file")") == none && $file != src/ddl/ ]]; then
			echo "$file: which layer? Add it to layer_of in test/check/source.sh."
		fi
	done
	while read -r file from to; do
		if ! may_include "$from" "$to"; then
			echo "$file: $from must not include $to/"
		fi
	done < <(folder_includes)
}

check_no_circles()
{
	folder_includes | awk '$2 != $3 { seen[$2 " " $3] = $1 }
		END { for (pair in seen) { split(pair, f, " ");
			if ((f[2] " " f[1]) in seen && f[1] < f[2])
				print f[1] " and " f[2] " include each other: " seen[pair] ", " seen[f[2] " " f[1]] } }'
}

# src/core: C's and zstd's headers and its own, nothing else.
check_core_is_plain()
{
	local file

	for file in src/core/*.[ch]; do
		grep -HnE '^ *# *include' "$file" |
			grep -vE '"(core/)?core[a-z0-9_]*\.h"|<(std[a-z]+|string|limits|math|float|inttypes|assert|errno|zstd[a-z_]*|immintrin|nmmintrin|emmintrin|arm_neon)\.h>'
		grep -HnE '\b(palloc|pfree|ereport|elog|Datum|MemoryContext|CHECK_FOR_INTERRUPTS|malloc|calloc|realloc)\b *\(' "$file" |
			grep -vE ':[[:space:]]*(\*|/\*)'
	done
	return 0
}

check_version_only_in_compat()
{
	grep -nE '\bPG_VERSION_NUM\b|\bPG_MAJORVERSION' src/**/*.[ch] | grep -v '^src/compat\.h:' | grep -vE ':[[:space:]]+\*'
	return 0
}

check_wal_only_in_storage()
{
	grep -nE '\b(XLogInsert|XLogBeginInsert|XLogRegister[A-Z][A-Za-z]*|log_newpage[a-z_]*|GenericXLog[A-Z][A-Za-z]*|paimon_xlog_register_[a-z_]*)\b *\(' \
		src/**/*.[ch] | grep -vE '^src/(storage/|compat\.h:)' | grep -vE ':[[:space:]]+\*'
	return 0
}

# Server error locations show the base name only.
check_base_names()
{
	local file folder

	for file in src/*/*.c; do
		folder=$(basename "$(dirname "$file")")
		[[ $(basename "$file") == "${folder}"_*.c || $(basename "$file") == "$folder.c" ]] || echo "$file: should be src/$folder/${folder}_<topic>.c"
	done
	printf '%s\n' src/**/*.c | sed 's,.*/,,' | sort | uniq -d | sed 's/$/: base name used twice/'
}

# With -Isrc first, a header of ours at the path of a server's header would replace it.
check_no_shadowing()
{
	local header include

	include=$("$PG_CONFIG" --includedir-server)
	for header in src/*/*.h src/*.h; do
		[[ ! -e $include/${header#src/} ]] || echo "$header: hides the server's ${header#src/}"
	done
}

# Each file begins with a comment that names it and says what it does.
check_file_headers()
{
	local file

	for file in src/**/*.[ch]; do
		head -n 8 "$file" | grep -qF "$(basename "$file")" || echo "$file: no opening comment with its name"
	done
}

# Under hidden visibility PostgreSQL 15 needs compat.h for what the server looks up by name.
check_exports_use_compat()
{
	local file

	for file in src/**/*.c; do
		if grep -qE '^(PG_FUNCTION_INFO_V1|PG_MODULE_MAGIC)' "$file" && ! grep -q '^#include "compat.h"' "$file"; then
			echo "$file: PG_FUNCTION_INFO_V1 without #include \"compat.h\""
		fi
	done
}

check_file_length()
{
	wc -l src/**/*.[ch] sql/parts/* test/**/*.{sh,pl,py,c,h} 2>/dev/null |
		awk '$2 != "total" && $1 > 1000 { print $2 ": " $1 " lines, more than 1000" }'
}

# A function's body runs from a brace in the first column to the next closing one.
function_lengths()
{
	awk -v limit="$1" 'FNR == 1 { start = 0 }
		/^[a-z_A-Z0-9]+\(/ { name = $0; sub(/\(.*/, "", name) }
		/^\{/ { start = FNR }
		/^\}/ { if (start && FNR - start > limit) print FILENAME ":" start ": " name " has " FNR - start " lines"; start = 0 }' \
		src/**/*.c
}

report_long_functions()
{
	function_lengths 120
}

check_no_endless_functions()
{
	function_lengths 250
}

# Paths of somebody's machine do not belong into the tree.
check_no_machine_paths()
{
	local pattern='/(work|root|home|Users)''/[A-Za-z0-9.]'

	tree_files | grep -v '^LICENSE$' | xargs -d '\n' grep -nIE "$pattern" 2>/dev/null
	return 0
}

check_white_space()
{
	tree_files | grep -E '\.(c|h|sql|sh|pl|py|in)$|^Makefile$|^\.ci/run$' | xargs -d '\n' grep -nE '[[:blank:]]+$' 2>/dev/null
	return 0
}

report_format()
{
	if command -v clang-format >/dev/null; then
		clang-format --dry-run src/**/*.[ch] 2>&1 | grep -c 'warning: code should be clang-formatted' |
			sed 's/$/ places that clang-format would lay out differently/; /^0 /d'
	fi
}

check "folders include only their layer and below" check_layers
check "no two folders include each other" check_no_circles
check "src/core is plain C" check_core_is_plain
check "PG_VERSION_NUM only in src/compat.h" check_version_only_in_compat
check "WAL only from src/storage" check_wal_only_in_storage
check "base names are unique and carry their folder" check_base_names
check "no header hides one of the server's" check_no_shadowing
check "every file says what it is" check_file_headers
check "exported functions include compat.h" check_exports_use_compat
check "no file above 1000 lines" check_file_length
check "no function above 250 lines" check_no_endless_functions
check "no paths of a machine" check_no_machine_paths
check "no blanks at the end of lines" check_white_space
report "functions above 120 lines" report_long_functions
report "clang-format" report_format
