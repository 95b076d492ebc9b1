# `make tools` once, then `make test`; each step of it is a target of its own.

GOTEST ?= go test
# Flags of the drivers in testdata/js, see the README there.
CONFORMANCE ?= --subscriptions
CLIENT ?=
BENCH ?=

.PHONY: build run tools lint unit integration conformance client trials test bench

build:
	CGO_ENABLED=0 go build -trimpath -o firn ./cmd/firn

run: build
	./firn serve

tools:
	bash testdata/make/tools.sh

lint:
	bash testdata/make/lint.sh

# What needs neither the tools nor a binary.
unit:
	$(GOTEST) -race ./...

# All Go tests: the unit tests and those with real servers.
integration:
	$(GOTEST) -race -tags integration ./...

conformance: build
	node testdata/js/conformance.mjs $(CONFORMANCE)

# With the defaults, and with all data cold before they are read.
client: build
	node testdata/js/client.mjs $(CLIENT)
	node testdata/js/client.mjs --cold -- --hot.max-bytes=64KiB --seal.target-bytes=16KiB --seal.max-age=1s

# TRIALS names a script that takes the URL of a server.
trials: build
	node testdata/js/with-server.mjs bash $(TRIALS)

test:
	bash testdata/make/test.sh tools build lint integration conformance client $(if $(TRIALS),trials)

# A server beside what this machine can do at most; BENCH takes scenarios and flags.
bench: build
	./firn bench $(BENCH)
