# fleetgraph: `make` prints this help.
SHELL := /bin/bash
GO ?= go
BIN := $(CURDIR)/bin
DATA_DIR ?= $(CURDIR)/.data
LISTEN ?= 127.0.0.1:8080
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(BIN)/golangci-lint-$(GOLANGCI_VERSION)
FUZZTIME ?= 60s
# What npm leaves behind when the dependencies are installed.
CONFORMANCE := conformance/node_modules/.package-lock.json

.DEFAULT_GOAL := help
.PHONY: help run build test generate check-generate check-schema conformance lint drift bench fuzz migration graphiql tools clean

help: ## print this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

run: build ## serve with a demo site on loopback and print the URL that logs in
	@scripts/need postgres
	$(BIN)/fleetgraph serve --demo --listen $(LISTEN) --data-dir $(DATA_DIR) --admin-token-file $(DATA_DIR)/admin-token

build: ## build the binaries into bin/
	@scripts/need go
	$(GO) build -trimpath -o $(BIN)/ ./cmd/...

test: ## run all tests, with the race detector, on a real Postgres that the tests start
	@scripts/need go postgres
	$(GO) test -race -timeout 20m ./...

generate: ## regenerate entities, executor, schema.graphql and client
	@scripts/need go
	$(GO) run ./ent/entc.go
	$(GO) tool gqlgen generate
	$(GO) run ./cmd/fleetgraph schema > schema.graphql.tmp && mv schema.graphql.tmp schema.graphql
	$(GO) tool genqlient cmd/fleetctl/genqlient.yaml

check-generate: generate ## fail when generated code is not what generate writes
	@git diff --exit-code -- ent graph schema schema.graphql cmd/fleetctl/client resolvers || \
		{ echo "generated code is stale: run make generate and commit"; exit 1; }
	@test -z "$$(git status --porcelain -- ent graph schema schema.graphql cmd/fleetctl/client resolvers)" || \
		{ git status --porcelain; echo "generated code is stale: run make generate and commit"; exit 1; }

check-schema: $(CONFORMANCE) ## fail when the schema breaks clients of the last release and the change log does not say so
	@node conformance/schema.mjs

conformance: build $(CONFORMANCE) ## hold the transports against the packages that clients use, these proven first
	@scripts/need postgres
	@cd conformance && npm run --silent prove && npm test --silent

$(CONFORMANCE): conformance/package-lock.json
	@scripts/need npm
	cd conformance && npm ci

lint: $(GOLANGCI) ## lint and check formatting and the import arrows
	$(GOLANGCI) run ./...

drift: ## fail when the migrations and the entities disagree
	@scripts/need go postgres
	$(GO) test -count=1 -run 'Drift' ./migrate/...

bench: ## measure, print a table, and write it to bench/results
	@scripts/need go postgres
	$(GO) run ./bench

fuzz: ## run each fuzz target for FUZZTIME (60s)
	$(GO) test -run '^$$' -fuzz '^FuzzDocument$$' -fuzztime $(FUZZTIME) ./services/sku
	$(GO) test -run '^$$' -fuzz '^FuzzInventory$$' -fuzztime $(FUZZTIME) ./services/sku
	$(GO) test -run '^$$' -fuzz '^FuzzMessage$$' -fuzztime $(FUZZTIME) ./server/graphqlws
	$(GO) test -run '^$$' -fuzz '^FuzzOfText$$' -fuzztime $(FUZZTIME) ./internal/jsonsize
	$(GO) test -run '^$$' -fuzz '^FuzzIssuerOf$$' -fuzztime $(FUZZTIME) ./internal/openid

migration: ## write the migration NAME from the entities' difference to the migrations
	$(GO) run ./migrate/diff $(NAME)

graphiql: ## rebuild the embedded GraphiQL page (needs npm)
	@scripts/need npm
	cd web/graphiql && npm ci && npm run build

tools: $(GOLANGCI) ## install the pinned linter into bin/

$(GOLANGCI):
	GOBIN=$(BIN)/.tools $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mkdir -p $(BIN) && mv $(BIN)/.tools/golangci-lint $@

clean: ## remove what was built; the data directory stays
	rm -rf $(BIN)
