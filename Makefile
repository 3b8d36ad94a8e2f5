# Longshore. `make help` lists the targets.

BIN     := bin/longshore
SANDBOX := bin/longshore-sandbox
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# Without -trimpath, which the image has: so the tests and lint find in the cache what the build has compiled.
# The sum of longshore-sandbox is linked into longshore, which starts no other: see sandbox/process/starter_linux.go.
LDFLAGS  = -s -w -X main.version=$(VERSION) -X github.com/longshore-run/longshore/sandbox/process.starterSum=$(SUM)
SUM      = $$({ sha256sum $(SANDBOX) 2>/dev/null || shasum -a 256 $(SANDBOX); } | cut -d ' ' -f 1)

.DEFAULT_GOAL := help
.PHONY: help build run test partitions race lint fmt bench fuzz sim clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/longshore, and bin/longshore-sandbox beside it
	CGO_ENABLED=0 go build -buildvcs=false -ldflags "-s -w" -o $(SANDBOX) ./sandbox/process/longshore-sandbox
	go build -ldflags "$(LDFLAGS)" -o $(BIN) .

run: build ## start the whole fleet in one process and work the example tasks
	./$(BIN) run --agents deploy/examples/agents $(addprefix --file ,$(filter-out %/survey.json,$(wildcard deploy/examples/tasks/*.json)))

test: ## run the whole test suite, with the race detector where it matters; needs only Go
	@.ci/test

partitions: ## run with the logs and events of runs and the queue in four streams each the tests in which processes are killed
	@.ci/partitions

race: ## run with the race detector what make test runs without it to save time
	@.ci/test race

lint: ## run golangci-lint, as CI does
	golangci-lint run ./...

fmt: ## format the code
	golangci-lint fmt ./...

bench: ## measure speed against a floor, what a run costs and what grows; prints JSON lines
	go run ./deploy/bench

fuzz: ## run each fuzz target for a moment
	@.ci/fuzz 20000x

sim: ## play 60,000 seeds of the crash simulation, or SEEDS
	LONGSHORE_SIM_SEEDS=$(or $(SEEDS),60000) go test ./worker/runner -run TestSimulation -v -timeout 20m

clean: ## remove what the build made
	rm -rf bin
