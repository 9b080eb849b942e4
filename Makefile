# The short way in; Meson and Ninja do the work. `make help` lists what there is.
#
# SETUP=: leaves the installing of packages out. ARGUMENTS= is handed to the demo, or to pytest.

prefix = /usr/local
SETUP = tools/setup
MESON = meson
JOBS = $(shell nproc 2>/dev/null || echo 2)
NINJA = ninja -j $(JOBS)
# Debian's own Python has Debian's pytest; another one may stand before it on PATH.
PYTHON = $(firstword $(wildcard /usr/bin/python3) python3)
# $(call ALL_TESTS,BUILD,PAIRS[,BEFORE[,OPTIONS]]): Meson's tests (with OPTIONS) and the service suite on each pair of
# engines, all of them whatever fails; then the list of what failed. .ci/run counts by these headings.
ALL_TESTS = failed=; echo "Meson's tests of $(1)"; \
	$(3) tools/in_memory $(MESON) test -C $(1) --no-rebuild --num-processes $(MESON_TESTS) --print-errorlogs $(4) || failed="unit, store and fault tests"; \
	$(call COMPILED,$(1)); for pair in $(2); do echo "service tests on $$pair"; \
	TEST_PAIRS="$(2)" TEST_CHECKED="$(CHECKED)" TEST_ENGINES=$$pair CROUPIER_BIN=$(abspath $(1)/croupier) $(3) \
	tools/in_memory $(PYTHON) -m pytest -p no:cacheprovider -q -n $(WORKERS) tests/service $(ARGUMENTS) || failed="$${failed:+$$failed; }service tests on $$pair"; \
	done; [ -z "$$failed" ] || { echo "failed of $(1): $$failed"; exit 1; }
# pytest rewrites each assertion of a module when it compiles it, which takes a process five seconds. So what is compiled is kept,
# whatever the environment says, and one process compiles all before ten workers look for it.
unexport PYTHONDONTWRITEBYTECODE
COMPILED = [ -e tests/service/__pycache__ ] || CROUPIER_BIN=$(abspath $(1)/croupier) $(PYTHON) -m pytest -p no:cacheprovider -q --collect-only tests/service >/dev/null
# Of the odds store and the platform store; see tests/service/engines.py. `make test` has each engine once, and
# the two sanitized runs have the other two pairs, so `.ci/run` has all of them. ThreadSanitizer has the engines with
# threads of their own. What it can say nothing about is left to the other runs: the fault tests, programs that are killed or
# whose calls fail, and what is `threadless`, of programs that have no second thread, or none that the other tests have not.
# `make test` with all four: make test PAIRS="embedded,sqlite redis,sqlite embedded,postgresql redis,postgresql"
PAIRS = embedded,sqlite redis,postgresql
ASAN_PAIRS = embedded,postgresql
TSAN_PAIRS = redis,sqlite
# Most of a service test is waiting, and of many of Meson's, so more of them than there are processors run at once.
WORKERS = 10
MESON_TESTS = $(shell expr 3 \* $(JOBS))
# .ci/run (AFTER=check) tests what `make check` has tested. Its plain run on the second pair leaves out what the first has run,
# where a sanitized run had the engine that matters; a test that a sanitized run only samples stays.
CHECKED = $(if $(filter check,$(AFTER)),$(ASAN_PAIRS) $(TSAN_PAIRS))
# Limits are for programs that hang, not for a machine that has much else to do, and sanitized ones are several times slower;
# they try an eighth of the points of long campaigns (tests/servers.py, SAMPLE), which the plain runs try all.
# What only prepares a test of the service is done by gcc's build, whose commands start in a fifth of the time.
PATIENT = env CROUPIER_PATIENCE=3 TEST_SAMPLE=8 TEST_PREPARED_BY=$(abspath build/check-gcc/croupier)
# Address-space randomisation of newer kernels is more than ThreadSanitizer's run-time can place.
UNRANDOMIZED = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: help run build test test-valkey test-quick model model-faults check check-format check-layout check-manual check-compilers check-gcc check-clang check-tree check-lint \
	check-asan check-tsan bench docs install deb test-deb image test-image clean
.NOTPARALLEL:

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 22

run: build ## build, then serve sample customers and moving odds (croupier demo)
	build/croupier demo $(ARGUMENTS)

build: build/build.ninja ## leave the program at build/croupier
	@$(SETUP) build
	@$(NINJA) -C build croupier

build/build.ninja:
	@$(SETUP) build
	@$(MESON) setup build -Dtests=disabled

# Where `make test` builds. .ci/run names what `make check` has left, which differs in nothing but that warnings are errors.
TESTED = build
test: $(TESTED)/with-tests ## unit tests, store tests, faults, and the service from outside on every engine
	@$(SETUP) build test
	@$(NINJA) -C $(TESTED)
	@failed=; ($(call ALL_TESTS,$(TESTED),$(PAIRS),,--timeout-multiplier 5)) || failed=yes; \
	$(if $(BOTH),$(VALKEY_TOO) || failed=yes;) [ -z "$$failed" ]

# Where Redis and Valkey are both installed, `make test` has run against Redis, and what is about Redis runs against Valkey too.
BOTH = $(and $(shell command -v redis-check-rdb),$(shell command -v valkey-check-rdb))
VALKEY_TOO = $(MAKE) --no-print-directory test-valkey
VALKEY_PAIR = redis,sqlite
WITH_VALKEY = env TEST_REDIS_SERVER=valkey TEST_CHECKED= TEST_PAIRS="embedded,sqlite $(VALKEY_PAIR)"
test-valkey: $(TESTED)/with-tests ## what is about Redis, against Valkey
	@$(SETUP) build test
	@$(NINJA) -C $(TESTED)
	@$(call ALL_TESTS,$(TESTED),$(VALKEY_PAIR),$(WITH_VALKEY),--timeout-multiplier 5 --suite redis)

# Where most changes show: no stores by themselves, no faults, no servers, and of the service not what takes half of the time,
# nor what takes programs that nothing else here does.
QUICK_PAIR = embedded,sqlite
test-quick: ARGUMENTS = $(foreach name,console_pages document_tools examples odds_damage package platform_postgresql reference typed_client \
	wallet_crashes wallet_tampering,--ignore=tests/service/test_$(name).py) -m 'not takes'
test-quick: TESTS = test-quick
test-quick: $(TESTED)/with-tests ## unit tests, and the service from outside on files alone, in less than two minutes
	@$(SETUP) build $(TESTS)
	@$(NINJA) -C $(TESTED)
	@$(call ALL_TESTS,$(TESTED),$(QUICK_PAIR),,--timeout-multiplier 5 --suite unit)

# A model of the wallet against the program: tests/service/model.
MINUTES = 60
MODEL_PAIRS = $(PAIRS)
model: $(TESTED)/with-tests ## for an hour (MINUTES=), what a model in Python says against the program, by seeds that are printed
	@$(SETUP) build test
	@$(NINJA) -C $(TESTED)
	@failed=; for pair in $(MODEL_PAIRS); do TEST_PAIRS="$(MODEL_PAIRS)" TEST_ENGINES=$$pair MINUTES=$(MINUTES) \
	$(foreach name,MODEL_SEED MODEL_EXAMPLES MODEL_STEPS,$(if $($(name)),$(name)=$($(name)))) \
	CROUPIER_BIN=$(abspath $(TESTED)/croupier) tools/in_memory $(PYTHON) -m pytest -p no:cacheprovider -q -s --tb=short \
	-k says tests/service/model || failed=yes; done; [ -z "$$failed" ]

model-faults: $(TESTED)/with-tests ## plant each fault of tests/service/model/faults in a copy, and show that the model finds it
	@$(SETUP) build test
	@$(PYTHON) tests/service/model/plant_faults.py $(ARGUMENTS)

TESTS = test
build/with-tests: build/build.ninja
	@$(SETUP) build $(TESTS)
	@$(MESON) configure build -Dtests=enabled
	@touch $@

build/check-gcc/with-tests: build/check-gcc/build.ninja
	@touch $@

# Every stage runs whatever fails before it.
CHECKS = check-format check-compilers check-tree check-lint check-asan check-tsan
check: ## format, warnings of two compilers, order of the tree, lint, tests under sanitizers
	@failed=; for stage in $(CHECKS); do \
	$(MAKE) --no-print-directory -k $$stage || failed="$$failed $$stage"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

SOURCES = $(shell git ls-files --cached --others --exclude-standard -- '*.c' '*.h')

check-format: check-layout check-manual

check-layout:
	@$(SETUP) build test check
	@case "$$(clang-format --version)" in \
	*' 14.'*) clang-format --dry-run -Werror $(SOURCES) ;; \
	*) echo 'layout not checked: it takes clang-format 14' ;; \
	esac

check-manual:
	@$(SETUP) build test check
	mandoc -T lint -W warning man/*.1

# gcc's optimised build, as optimising warns of more; of clang the build that ThreadSanitizer runs, whose
# warnings are the same.
check-compilers: check-gcc check-clang

check-gcc: build/check-gcc/build.ninja
	$(NINJA) -k 0 -C build/check-gcc

check-clang: build/check-tsan/build.ninja
	$(NINJA) -k 0 -C build/check-tsan

# Which file may include, call or ask what: see the head of each.
check-tree: build/check-gcc/build.ninja
	$(PYTHON) tools/check_includes.py
	$(PYTHON) tools/check_private.py
	$(NINJA) -C build/check-gcc libcroupier.a
	$(PYTHON) tools/check_circles.py build/check-gcc
	$(PYTHON) tools/check_clock.py build/check-gcc

# clang-tidy looks at a source once for each command that compiles it, and tests compile some with small sizes.
ONE_COMMAND = import json; commands = json.load(open("build/check-tsan/compile_commands.json")); \
	print(json.dumps(list({command["file"]: command for command in reversed(commands)}.values())))
check-lint: build/check-tsan/build.ninja
	-@$(NINJA) -k 0 -C build/check-tsan # for the headers that it makes; what does not compile is said by check-clang
	mkdir -p build/check-lint
	$(PYTHON) -c '$(ONE_COMMAND)' > build/check-lint/compile_commands.json
	printf '%s\n' $(filter src/%.c bench/%.c,$(SOURCES)) | xargs -P $(JOBS) -n 4 clang-tidy -p build/check-lint --quiet --warnings-as-errors='*'

check-asan: build/check-asan/build.ninja build/check-gcc/build.ninja
	$(NINJA) -C build/check-gcc croupier tests/service/put_odds
	$(NINJA) -C build/check-asan
	@$(call ALL_TESTS,build/check-asan,$(ASAN_PAIRS),$(PATIENT),--timeout-multiplier 10)

check-tsan: ARGUMENTS = -m 'not threadless'
check-tsan: build/check-tsan/build.ninja build/check-gcc/build.ninja
	$(NINJA) -C build/check-gcc croupier tests/service/put_odds
	$(NINJA) -C build/check-tsan
	@$(call ALL_TESTS,build/check-tsan,$(TSAN_PAIRS),$(PATIENT) $(UNRANDOMIZED),--timeout-multiplier 10 --no-suite faults --no-suite threadless)

# A hundred programs are linked in each of these: by lld, which takes a third of the time, and with what a sanitizer prints, without
# what only a debugger asks for. $(call SETUP_CHECK[, OPTIONS]): with these of the compiler as well.
SETUP_CHECK = $(if $(shell command -v ld.lld),CC_LD=lld) $(MESON) setup -Dtests=enabled '-Dc_args=-g1$(1)'
build/check-gcc/build.ninja:
	CC=gcc $(call SETUP_CHECK) build/check-gcc -Dwerror=true
# Sanitizers confuse some of gcc's warnings, so those are no errors here: they are in build/check-gcc.
# With -O2 gcc takes AddressSanitizer's build two fifths longer. Its programs have 200,000 addresses of places in the source, which a
# position-independent one writes anew at each start: a sixth of the time of a command.
SANITIZED = -Dbuildtype=debugoptimized -Db_lundef=false
build/check-asan/build.ninja:
	CC=gcc $(call SETUP_CHECK, -fno-pie) -Dc_link_args=-Wl,-no-pie build/check-asan $(SANITIZED) -Doptimization=1 -Db_sanitize=address,undefined
build/check-tsan/build.ninja:
	CC=clang $(call SETUP_CHECK) build/check-tsan $(SANITIZED) -Db_sanitize=thread -Dwerror=true

bench: build ## measure against a bare loop, nginx and other peers; see bench/RESULTS.md
	@$(SETUP) build test bench
	@$(NINJA) -C build croupier bench/bare_loop bench/bare_ledger bench/bare_lmdb bench/bare_postgres bench/ledger bench/feed bench/visible bench/waiters bench/bare_push bench/changes bench/interest bench/sync.so
	$(PYTHON) bench/run.py $(ARGUMENTS)

share = $(DESTDIR)$(prefix)/share
PLACES = s|@bindir@|$(prefix)/bin|; s|@libdir@|$(prefix)/lib/croupier|; s|/usr/share|$(prefix)/share|
zsh_completions = $(prefix)/share/zsh/site-functions
# The generator comes from npm, by a lock file; neither the package nor a test of the program needs it.
docs: ## the reference of the three OpenAPI documents as one page: build/reference.html (needs npm)
	@mkdir -p build/reference && cp tools/reference/package.json tools/reference/package-lock.json build/reference/
	@cd build/reference && npm ci --ignore-scripts --no-audit --no-fund
	@$(PYTHON) tools/make_reference.py build/reference/node_modules build/reference.html
	@echo build/reference.html

# What commands write obeys the umask of the caller; what install(1) makes does not.
install: build ## install the program, its unit, configuration, manual, completions, documents, kit, alarms and board (DESTDIR, prefix)
	install -D -m 0755 build/croupier $(DESTDIR)$(prefix)/bin/croupier
	install -D -m 0644 man/croupier.1 $(share)/man/man1/croupier.1
	install -d $(DESTDIR)$(prefix)/lib/systemd/system
	install -D -m 0644 dist/croupier.sysusers $(DESTDIR)$(prefix)/lib/sysusers.d/croupier.conf
	install -D -m 0644 dist/croupier.tmpfiles $(DESTDIR)$(prefix)/lib/tmpfiles.d/croupier.conf
	umask 022; for unit in croupier.service $(foreach job,backup verify,croupier-$(job).service croupier-$(job).timer); do \
	sed '$(PLACES)' dist/$$unit >$(DESTDIR)$(prefix)/lib/systemd/system/$$unit || exit 1; done
	install -d $(DESTDIR)$(prefix)/lib/croupier
	sed '$(PLACES)' dist/croupier-backup >$(DESTDIR)$(prefix)/lib/croupier/croupier-backup
	chmod 0755 $(DESTDIR)$(prefix)/lib/croupier/croupier-backup
	install -d $(share)/bash-completion/completions $(DESTDIR)$(zsh_completions) $(share)/fish/vendor_completions.d
	umask 022; build/croupier completion bash >$(share)/bash-completion/completions/croupier
	umask 022; build/croupier completion zsh >$(DESTDIR)$(zsh_completions)/_croupier
	umask 022; build/croupier completion fish >$(share)/fish/vendor_completions.d/croupier.fish
	install -D -m 0644 dist/grafana/croupier.json $(share)/croupier/grafana/croupier.json
	install -d $(share)/croupier/kit
	install -m 0755 kit/certify $(share)/croupier/kit/
	install -m 0644 kit/*.json $(share)/croupier/kit/
	umask 022; $(PYTHON) tools/package_docs.py $(share)/doc/croupier
	umask 022; sed 's|file:///usr/share|file://$(prefix)/share|' dist/prometheus/croupier.rules.yml >$(share)/croupier/croupier.rules.yml
	test -e $(DESTDIR)/etc/croupier/croupier.conf || install -D -m 0644 dist/croupier.conf $(DESTDIR)/etc/croupier/croupier.conf

deb: ## build the Debian package for this release, its debug symbols and its list of parts, in build/deb
	@$(SETUP) build package
	@JOBS=$(JOBS) tools/make_deb

# As root: what it installs goes into systems of its own below build/test-deb, which it boots with systemd-nspawn.
# RELEASE=bookworm, trixie or noble: a new user builds the package on a bare system of that release as well.
test-deb: $(if $(RELEASE),,deb) ## install, start, use, upgrade, remove and purge that package on a bare system (as root)
	@$(SETUP) test-deb
	tests/package/try_deb $(RELEASE)

image: build ## make an OCI archive of the program, build/croupier.oci.tar, without a daemon
	@$(SETUP) build image
	@tools/make_image

test-image: image ## run what is in that archive, alone and in the containers of docs/compose.md and dist/kubernetes (as root)
	@$(SETUP) test-image
	$(PYTHON) tests/package/try_image
	$(PYTHON) tests/package/try_compose

clean: ## remove everything that was built
	rm -rf build
