# Refund Ledger. `make` alone lists what there is to do.

GO ?= go
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

.DEFAULT_GOAL := help
.PHONY: help build demo test race evals evals-all clients lint golden bench bench-large prove

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## build the commands into bin/
	CGO_ENABLED=0 $(GO) build -ldflags "-X github.com/refundledger/refundledger/cmd/internal/release.name=$(VERSION)" -o bin/ ./cmd/...

demo: build ## build the server and show its main job: look up, refund, refusal, history, proof
	$(GO) run ./evals/demo -server bin/refund-mcp

test: ## run all tests and the evals: needs nothing but Go
	$(GO) test ./...
	$(GO) run ./evals

# How evals-all reaches the server.
TRANSPORTS ?= stdio http

evals-all: build ## run the trajectories on every backend, over stdio and HTTP: needs PostgreSQL's programs
	@for backend in memory sqlite rest postgres; do for transport in $(TRANSPORTS); do \
		echo "== $$backend over $$transport"; \
		$(GO) run ./evals -server bin/refund-mcp -backend $$backend -transport $$transport || exit 1; \
	done; done

race: ## run all tests under the race detector: needs a C compiler
	$(GO) test -race ./...

evals: ## run the scripted agent trajectories, a line per case
	$(GO) run ./evals

clients: ## check the server with the official TypeScript clients, the MCP Inspector and the conformance suite: needs Node and npm
	LEDGER_TEST_CLIENTS=1 $(GO) test -count=1 -v ./evals/clients

lint: ## formatting, vet and staticcheck
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not gofmt-ed:"; echo "$$files"; exit 1; fi
	$(GO) vet ./...
	$(GO) -C evals/bench vet ./...
	$(GO) run $(STATICCHECK) ./...

golden: ## rewrite the golden files and the generated parts of README.md after a change on purpose
	$(GO) test ./adapters/mcpserver ./adapters/restserver . -update

bench: ## measure the server beside its floors and print ratios
	$(GO) -C evals/bench run .

bench-large: ## measure large ledgers against small ones
	$(GO) -C evals/bench run . -large

prove: ## the full counts of every promise, in resumable chunks: takes hours
	$(GO) run ./evals/prove
