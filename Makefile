# paimon_am: build, install, and the entrances to everything else.
#
#   make, make install            the extension, for the server of PG_CONFIG
#   make check                    every test, on clusters of its own; last line "N passed, N failed"
#   make check KINDS="regress"    some kinds only: unit fuzz regress isolation tap random
#   make check TESTS="guard"      some tests of those kinds only
#   make installcheck             regression and isolation tests on a running server
#   make lint                     what test/check looks at
#   make demo | bench | torture   see README.md
#   make regress-with-paimon      PostgreSQL's own suites on paimon tables, see test/regress-with-paimon
#   make unit | fuzz              the core outside the server, with sanitizers
#
# Variables: PG_CONFIG, CC (gcc or clang), PAIMON_TESTING=1 (stop points compiled in; never for a release).

TASKS = check demo unit fuzz bench lint torture regress-with-paimon

ifneq (,$(filter $(TASKS),$(MAKECMDGOALS)))

# ----- tasks: these need no server to be installed yet, so PGXS stays out -----

.PHONY: $(TASKS)
PG_CONFIG ?= pg_config
export PG_CONFIG KINDS TESTS SEED ROUNDS

check:
	@bash test/run.sh $(KINDS)

lint:
	@bash test/check/run.sh

unit:
	@$(MAKE) --no-print-directory -C test/unit check

fuzz:
	@$(MAKE) --no-print-directory -C test/fuzz check

demo:
	@bash test/run.sh demo

bench:
	@bash test/run.sh bench

torture:
	@bash test/run.sh torture

regress-with-paimon:
	@bash test/run.sh regress-with-paimon

# "make all check" and the like: the build goals go to a make of their own.
BUILD_GOALS = $(filter-out $(TASKS),$(MAKECMDGOALS))
ifneq (,$(BUILD_GOALS))
.PHONY: $(BUILD_GOALS)
$(BUILD_GOALS):
	@$(MAKE) --no-print-directory $@
endif

else

# ----- the extension -----

EXTENSION = paimon_am
EXTVERSION = $(shell sed -n "s/^default_version *= *'\(.*\)'/\1/p" paimon_am.control)
MODULE_big = paimon_am
SRCS := $(sort $(wildcard src/*.c src/*/*.c))
OBJS := $(SRCS:.c=.o)

# The install script is the parts in the order of their numbers; a testing build has the stop points' functions too.
INSTALL_SQL := sql/paimon_am--$(EXTVERSION).sql
SQL_PARTS := $(sort $(wildcard sql/parts/*.sql))
DATA = $(sort $(filter-out $(INSTALL_SQL),$(wildcard sql/paimon_am--*--*.sql)))
DATA_built = $(INSTALL_SQL)

PG_CPPFLAGS = -Isrc
PG_CFLAGS = -std=gnu11 -fvisibility=hidden -Wall -Wextra -Werror \
	-Wno-unused-parameter -Wno-sign-compare -Wno-declaration-after-statement \
	-MMD -MP
SHLIB_LINK = -lzstd
ifdef PAIMON_TESTING
PG_CPPFLAGS += -DPAIMON_TESTING
SQL_PARTS += $(sort $(wildcard sql/parts/*.sql.in))
endif
EXTRA_CLEAN = $(INSTALL_SQL) $(SRCS:.c=.d) .build-flags results regression.diffs regression.out output_iso tmp_check

# On a running server only a testing build can run the tests that use stop points; "make check" runs all.
REGRESS_FILES = $(wildcard test/sql/*.sql)
ISOLATION_FILES = $(wildcard test/isolation/specs/*.spec)
ifndef PAIMON_TESTING
REGRESS_FILES := $(if $(REGRESS_FILES),$(shell grep -L -E 'paimon\.(stop|test)_' $(REGRESS_FILES)))
ISOLATION_FILES := $(if $(ISOLATION_FILES),$(shell grep -L -E 'paimon\.(stop|test)_' $(ISOLATION_FILES)))
endif
REGRESS = $(sort $(basename $(notdir $(REGRESS_FILES))))
ISOLATION = $(sort $(basename $(notdir $(ISOLATION_FILES))))
REGRESS_OPTS = --inputdir=test --outputdir=. --load-extension=paimon_am
ISOLATION_OPTS = --inputdir=test/isolation --outputdir=output_iso --load-extension=paimon_am

# Bitcode would only let the JIT inline handler functions; it doubles the build.
override with_llvm = no

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq (,$(wildcard $(PGXS)))
$(error The server's build files were not found by "$(PG_CONFIG) --pgxs". Install them (Debian: apt-get install postgresql-server-dev-15) or set PG_CONFIG)
endif
include $(PGXS)

# Newer servers look for expected/ beside the input only when told; --expecteddir came with 16.
ifeq (,$(filter 9 10 11 12 13 14 15,$(MAJORVERSION)))
REGRESS_OPTS += --expecteddir=test
ISOLATION_OPTS += --expecteddir=test/isolation
endif

# The server may have been built by gcc: clang refuses some of gcc's flags, and the server's headers name gnu_printf.
ifneq (,$(findstring clang,$(CC)))
override CFLAGS := $(filter-out -fexcess-precision=standard -Wimplicit-fallthrough=% \
	-Wno-format-truncation -Wno-stringop-truncation -Wshadow=% -Wmissing-variable-declarations \
	-Wcast-function-type -ftree-vectorize,$(CFLAGS)) -Wno-ignored-attributes
endif

# Everything is rebuilt when compiler or flags change, and what includes a header when the header does.
BUILD_FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS)
ifneq ($(BUILD_FLAGS),$(file <.build-flags))
ifeq (,$(filter clean distclean,$(MAKECMDGOALS)))
$(file >.build-flags,$(BUILD_FLAGS))
endif
endif
$(OBJS): .build-flags
$(INSTALL_SQL): .build-flags $(SQL_PARTS) Makefile
	cat $(SQL_PARTS) >$@
-include $(SRCS:.c=.d)

endif
