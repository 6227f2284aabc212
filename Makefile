# lease: a PostgreSQL extension, built by PGXS.
#
#   make                      builds the module
#   make install              installs it; DESTDIR=dir and PG_CONFIG=path as usual
#       bindir=dir mandir=dir completionsdir=dir      where leasectl and its manual page go
#   make installcheck         tests what is installed, on the server that runs
#   make demo                 shows the main job on a throw-away server
#   make test                 all suites on throw-away servers; ends with "N passed, M failed"
#       SUITES="unit regress isolation tap chaos pgxs clients"  only these
#       REGRESS=name ISOLATION=name TAP=test/tap/x.pl only these tests
#       SEED=number                                   of the chaos, to run it again
#       KEEP=1                                        leaves the temporary directory
#   make test-majors          the same suites on PostgreSQL 17 and 18 (MAJORS="17": on that one)
#   make soak                 chaos for an hour; MINUTES=60 SEED=number
#   make test-faults          plants faults, and sees that the chaos finds each; some minutes
#   make test-upgrade         pg_upgrade from PostgreSQL 15 to 17, in a Debian of its own
#   make test-odd             odd arguments in every encoding, for ten minutes; SEED=number
#   make test-memory          sanitizers; a server with assertions, also under valgrind
#   make fuzz                 libFuzzer on src/core; FUZZ_SECONDS=60
#   make test-package         builds the Debian packages, installs them in a Debian of their own
#   make lint                 formatting, clang-tidy, cppcheck, shellcheck, what the library exports...
#   make coverage             the suites once more, and which lines of src/ they do not reach
#   make bench                beside SELECT 1, advisory locks, ShedLock...: ten minutes, quiet machine
#       BENCH="tries cycles" BENCH_ROUNDS=5 BENCH_SECONDS=4
#   make bench-peers          beside Redis and etcd, too, as curves: 90 minutes, quiet machine (bench/peers/run)
#   make bench-instructions   fails if a call takes 5 % more instructions than it did
#   make pictures             doc/*.svg, from their text sources
#   make dist                 the archive for PGXN, of what is committed: build/lease-VERSION.zip
#   make freeze               takes down the checksums of released scripts (see CONTRIBUTING.md)
#   make clean
#
# These install with apt-get what they need and cannot find (test/harness/deps).
# WERROR=1 turns warnings into errors, COVERAGE=1 builds for gcov,
# LEASECTL_SANITIZE=address,undefined has leasectl watched, ASSERTIONS=1 compiles the module's
# assertions in.

PG_CONFIG ?= pg_config
TOP := $(patsubst %/,%,$(dir $(realpath $(firstword $(MAKEFILE_LIST)))))
.DEFAULT_GOAL := all

# These must work before there is any PGXS to include.
BY_HARNESS = demo test test-majors test-upgrade test-odd test-memory test-package test-faults soak fuzz pictures lint \
	coverage bench bench-peers bench-instructions
.PHONY: $(BY_HARNESS)
$(BY_HARNESS):
	@PG_CONFIG='$(PG_CONFIG)' exec $(TOP)/test/harness/run $@

DIST := lease-$(shell sed -n 's/^   "version": "\(.*\)",$$/\1/p' $(TOP)/META.json)
.PHONY: dist freeze
dist:
	@git -C $(TOP) diff --quiet HEAD || echo "What is not committed is not in it." >&2
	mkdir -p $(TOP)/build
	git -C $(TOP) archive --format=zip --prefix=$(DIST)/ --output=build/$(DIST).zip HEAD
freeze:
	cd $(TOP) && sha256sum sql/*.sql >sql/released.sha256

ifneq ($(filter-out $(BY_HARNESS) dist freeze,$(or $(MAKECMDGOALS),all)),)

MODULE_big = lease
EXTENSION = lease
DATA = $(patsubst $(TOP)/%,%,$(sort $(wildcard $(TOP)/sql/lease--*.sql)))
CORE = $(patsubst $(TOP)/%.cpp,%.o,$(wildcard $(TOP)/src/core/*.cpp))
OBJS = $(patsubst $(TOP)/%.cpp,%.o,$(wildcard $(TOP)/src/*.cpp)) $(CORE)
UNIT = build/unit
EXTRA_CLEAN = build .flags $(OBJS:.o=.gcno) $(OBJS:.o=.gcda)

PG_CPPFLAGS = -isystem $(includedir_server) $(if $(ASSERTIONS),-DUSE_ASSERT_CHECKING)
PG_CXXFLAGS = -std=c++17 -Wall -Wextra -Wno-register \
	-fno-exceptions -fno-rtti -fvisibility=hidden
PG_CXXFLAGS += $(if $(WERROR),-Werror) $(if $(COVERAGE),--coverage -fprofile-update=atomic)
PG_CPPFLAGS += $(LEASE_FAULTS:%=-DLEASE_FAULTS) # see src/core/faults.hpp
# The server's C++ driver links, so that it finds its own library.
override COMPILER = $(CXX) $(CXXFLAGS)
# Else PGXS compiles every file once more, by clang, in that one's own standard.
override with_llvm := no

# Input is in test/, expected output on top.
REGRESS = $(patsubst $(TOP)/test/sql/%.sql,%,$(sort $(wildcard $(TOP)/test/sql/*.sql)))
# Whatever the server's own encoding and locale are.
REGRESS_OPTS = --inputdir=$(TOP)/test --encoding=UTF8 --no-locale
ISOLATION = $(patsubst $(TOP)/test/isolation/specs/%.spec,%,$(sort $(wildcard $(TOP)/test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=$(TOP)/test/isolation --encoding=UTF8 --no-locale

SAY_VERSION = -DLEASE_VERSION='"$(shell sed -n "s/^default_version = '\(.*\)'/\1/p" $(TOP)/lease.control)"'

PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(wildcard $(PGXS)),)
$(error no PGXS found by $(PG_CONFIG): install postgresql-server-dev-NN, or say PG_CONFIG=path)
endif
include $(PGXS)

# The core is pure: without the server's headers in reach it cannot be otherwise.
$(CORE): override CPPFLAGS := $(filter-out -I% -isystem $(includedir_server),$(CPPFLAGS))

# leasectl is a client program, in ordinary C++. It is built where libpq's headers are (not with
# LEASECTL=, for whoever packages it by itself); its manual page, where scdoc is.
# By its full name: VPATH must not find that of another build.
LEASECTL_DIR = $(CURDIR)/build/leasectl
LEASECTL_SRC = $(wildcard $(TOP)/src/leasectl/*.cpp)
LEASECTL_OBJS = $(patsubst $(TOP)/src/leasectl/%.cpp,$(LEASECTL_DIR)/%.o,$(LEASECTL_SRC))
LEASECTL_CXXFLAGS = $(filter-out $(PG_CXXFLAGS),$(CXXFLAGS)) -std=c++17 -Wall -Wextra -pthread \
	$(if $(WERROR),-Werror) $(if $(COVERAGE),--coverage -fprofile-update=atomic) \
	$(LEASECTL_SANITIZE:%=-fno-sanitize-recover=all -fsanitize=%)
LEASECTL_CPPFLAGS = $(filter -D%,$(CPPFLAGS)) -I$(includedir) $(SAY_VERSION)
SCDOC ?= $(shell command -v scdoc)
# Where bash-completion looks; beside a server of one's own, its own share directory.
completionsdir ?= $(if $(filter /usr/%,$(bindir)),/usr/share,$(datadir))/bash-completion/completions

LEASECTL ?= $(wildcard $(includedir)/libpq-fe.h)
LEASECTL_FILES = $(LEASECTL_DIR)/leasectl $(if $(SCDOC),$(LEASECTL_DIR)/leasectl.1)

ifneq ($(LEASECTL),)
all: $(LEASECTL_FILES)
install: install-leasectl
uninstall: uninstall-leasectl
endif

$(LEASECTL_DIR)/leasectl: $(LEASECTL_OBJS)
	$(CXX) $(LEASECTL_CXXFLAGS) -o $@ $^ $(if $(COVERAGE),$(TOP)/test/coverage/flush.cpp) $(LDFLAGS) -L$(libdir) -lpq
$(LEASECTL_OBJS): $(LEASECTL_DIR)/%.o: $(TOP)/src/leasectl/%.cpp \
		$(wildcard $(TOP)/src/leasectl/*.hpp) $(TOP)/lease.control .flags
	@$(MKDIR_P) $(@D)
	$(CXX) $(LEASECTL_CXXFLAGS) $(LEASECTL_CPPFLAGS) -c -o $@ $<
$(LEASECTL_DIR)/leasectl.1: $(TOP)/doc/leasectl.1.scd
	@$(MKDIR_P) $(@D)
	$(SCDOC) <$< >$@.tmp && mv $@.tmp $@

.PHONY: install-leasectl uninstall-leasectl
install-leasectl: $(LEASECTL_FILES)
	$(MKDIR_P) '$(DESTDIR)$(bindir)' '$(DESTDIR)$(completionsdir)' '$(DESTDIR)$(mandir)/man1'
	$(INSTALL_PROGRAM) $(LEASECTL_DIR)/leasectl '$(DESTDIR)$(bindir)/leasectl'
	$(INSTALL_DATA) $(TOP)/src/leasectl/completion.bash '$(DESTDIR)$(completionsdir)/leasectl'
ifneq ($(SCDOC),)
	$(INSTALL_DATA) $(LEASECTL_DIR)/leasectl.1 '$(DESTDIR)$(mandir)/man1/leasectl.1'
else
	@echo "There is no scdoc here: leasectl is installed without its manual page."
endif
uninstall-leasectl:
	rm -f '$(DESTDIR)$(bindir)/leasectl' '$(DESTDIR)$(completionsdir)/leasectl' \
		'$(DESTDIR)$(mandir)/man1/leasectl.1'

# Packaged servers do not track dependencies.
CORE_HEADERS = $(wildcard $(TOP)/src/core/*.hpp)
$(OBJS): $(CORE_HEADERS) .flags | $(CURDIR)/src/core
$(filter-out $(CORE),$(OBJS)): $(wildcard $(TOP)/src/*.hpp)
src/module.o src/table.o: override CPPFLAGS += $(SAY_VERSION)
src/module.o src/table.o: $(TOP)/lease.control

# What was built for another server, or by other flags, is stale.
.flags: FORCE
	@echo '$(VERSION) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LEASECTL_SANITIZE)' | cmp -s - $@ || \
	echo '$(VERSION) $(CXX) $(CXXFLAGS) $(CPPFLAGS) $(LEASECTL_SANITIZE)' >$@

# Unit tests see the core only. They are programs of their own: with exceptions, and watched.
.PHONY: unit FORCE
unit: $(UNIT)/run
UNIT_SRC = $(wildcard $(TOP)/test/unit/*.cpp $(TOP)/src/core/*.cpp)
UNIT_OBJS = $(patsubst $(TOP)/%.cpp,$(UNIT)/%.o,$(UNIT_SRC))
UNIT_CXXFLAGS = -std=c++17 -O1 -g -Wall -Wextra -I$(TOP)/src -DBOOST_TEST_DYN_LINK \
	-fsanitize=address,undefined -fno-sanitize-recover=all \
	$(if $(WERROR),-Werror) $(if $(COVERAGE),--coverage)
$(UNIT)/run: $(UNIT_OBJS)
	$(CXX) $(UNIT_CXXFLAGS) -o $@ $^ -lboost_unit_test_framework
$(UNIT_OBJS): $(UNIT)/%.o: $(TOP)/%.cpp $(CORE_HEADERS) $(wildcard $(TOP)/test/unit/*.hpp) .flags
	@$(MKDIR_P) $(@D)
	$(CXX) $(UNIT_CXXFLAGS) -c -o $@ $<

# The chaos's clients are programs that know libpq only. test/harness/suites runs them.
.PHONY: chaos
chaos: build/chaos/run build/chaos/clock.so
CHAOS_OBJS = $(patsubst $(TOP)/%.cpp,build/%.o,$(wildcard $(TOP)/test/chaos/*.cpp))
CHAOS_CXXFLAGS = $(filter-out -I$(TOP)/src,$(UNIT_CXXFLAGS)) -I$(includedir)
build/chaos/run: $(CHAOS_OBJS)
	@$(MKDIR_P) $(@D)
	$(CXX) $(CHAOS_CXXFLAGS) -o $@ $^ -L$(libdir) -lpq -lboost_unit_test_framework
$(CHAOS_OBJS): build/%.o: $(TOP)/%.cpp $(wildcard $(TOP)/test/chaos/*.hpp) .flags
	@$(MKDIR_P) $(@D)
	$(CXX) $(CHAOS_CXXFLAGS) -c -o $@ $<
# The server loads it, so that its clock can be set.
build/chaos/clock.so: $(TOP)/test/chaos/preload/clock.cpp .flags
	@$(MKDIR_P) $(@D)
	$(CXX) -std=c++17 -O2 -Wall -Wextra $(if $(WERROR),-Werror) -shared -fPIC -o $@ $<

include $(TOP)/bench/peers/peers.mk

$(CURDIR)/src/core:
	$(MKDIR_P) $@

# Built elsewhere: pg_regress looks for expected/ where it runs.
ifneq ($(TOP),$(realpath $(CURDIR)))
installcheck: | $(CURDIR)/expected
$(CURDIR)/expected:
	ln -s $(TOP)/expected $@
EXTRA_CLEAN += $(CURDIR)/expected
endif

endif
