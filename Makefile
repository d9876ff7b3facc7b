# seqsvr: build, run and test. Needs Go and make; what needs more says so.
SHELL := /bin/bash
export GOFLAGS ?= -buildvcs=false

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
DATE    ?= $(shell git log -1 --format=%cI 2>/dev/null || echo unknown)
VERPKG  := github.com/seqsvr/seqsvr/internal/base/version
LDFLAGS := -s -w -X $(VERPKG).Version=$(VERSION) -X $(VERPKG).Commit=$(COMMIT) -X $(VERPKG).Date=$(DATE)

.PHONY: help build run test e2e console race lint proto proto-check bench clients fuzz images drills kill-all robust soak sim mutants mutate model clean

help: ## what there is to make
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## static binaries of every daemon and seqctl, into bin/
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

run: build ## a whole cluster in one process; Ctrl-C hands over and stops
	./bin/seqctl dev

# Of one package. A busy machine needs several times what an idle one does, and go's own 10 minutes
# are not enough for tests/processes then; each wait in a test has a bound of its own.
LIMIT ?= 30m
# Compiled as the binaries are, so that both share what is compiled; make lint vets.
TEST := SEQSVR_BIN=$(CURDIR)/bin CGO_ENABLED=0 go test -trimpath -vet=off -timeout $(LIMIT)
test: build ## every test, with real processes from bin/
	$(TEST) ./...

e2e: build ## the tests of the module tests/e2e, which need other systems' libraries
	cd tests/e2e && go vet ./... && $(TEST) ./...

GROWTH ?= 10
console: build ## the console in a browser, watched for GROWTH seconds (needs node, npm and chromium; skips without)
	GROWTH=$(GROWTH) bash tests/console/run.sh

# internal/arch reads files, and shares no memory.
race: ## the packages that share memory, under the race detector
	failed=0; \
	go test -race -short -timeout $(LIMIT) ./allocsvr/... ./quorum/... ./storesvr/... ./client/... ./router/... ./membership/... ./snowflake/... $$(go list ./internal/... | grep -v /internal/arch) || failed=1; \
	go test -race -timeout $(LIMIT) ./tests/integration || failed=1; exit $$failed

lint: ## go vet, gofmt and the rules of the tree
	go vet ./...
	@test -z "$$(gofmt -l $$(git ls-files '*.go' | grep -v '\.pb\.go$$'))" || { gofmt -l .; echo 'run gofmt'; exit 1; }
	go test -count=1 ./internal/arch

proto: ## the Go code of proto/ (needs protoc 3.21)
	@mkdir -p bin/tools && GOBIN=$(CURDIR)/bin/tools go install google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
	PATH=$(CURDIR)/bin/tools:$$PATH protoc -I proto --go_out=proto --go_opt=paths=source_relative \
		--go-grpc_out=proto --go-grpc_opt=paths=source_relative proto/seqsvr/v1/*.proto

proto-check: proto ## fails if the generated code is not what is committed
	@git diff --exit-code --stat -- proto || { echo 'proto/ is not fresh: run make proto and commit'; exit 1; }

bench: build ## this tree beside what else is installed, into docs/benchmarks.md, or AGAINST=revision; wants a quiet machine (BENCH_SECONDS, BENCH_RUNS, BENCH_IDLE, BENCH_ONLY)
	go -C tests/e2e build -o $(CURDIR)/bin/ ./bench
	./bin/bench -root . $(if $(AGAINST),-against $(AGAINST))

clients: ## the libraries of clients/ as packages, into bin/clients; skips a language that is missing
	@bash clients/build.sh bin/clients

FUZZ ?= 20000x
fuzz: ## every fuzz target for FUZZ executions
	@for pkg in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$pkg 2>/dev/null | grep '^Fuzz'); do \
			echo "$$pkg $$target"; go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) $$pkg || exit 1; \
		done; done

CONTAINER ?= docker
REGISTRY ?= seqsvr
IMAGES := storesvr allocsvr router seqctl
images: build ## an image of each daemon and of seqctl, with docker or CONTAINER=podman, as REGISTRY/name
	@rm -rf bin/image && mkdir -p bin/image/data && cp $(addprefix bin/,$(IMAGES)) bin/image/
	@for name in $(IMAGES); do \
		$(CONTAINER) build --target $$name -t $(REGISTRY)/$$name:latest -t $(REGISTRY)/$$name:$(VERSION) -f deploy/images/Dockerfile bin/image || exit 1; \
	done

drills: build ## every drill three times, into docs/failover.md, or those with ONLY in their text, or of ENGINE=store or etcd; wants a quiet machine
	ONLY='$(ONLY)' ENGINE='$(ENGINE)' bash tests/drills/report.sh

TIMES ?= 20
kill-all: build ## every process killed TIMES times under load on 100,000 UIDs of an exact space: no hole (X1), one answer to an id (X2)
	bin/seqctl drill kill-all --space orders --uids 100000 --new 0 --rate 1500 --warm 30s --settle 2s --times $(TIMES)

robust: build bin/forgetfs ## every kind of fault once on real processes, a table (root: namespaces and disks too)
	go build -o bin/robust ./tests/robust && bin/robust -bin bin -forgetfs "$$(test -x bin/forgetfs && echo bin/forgetfs)" $(ROBUST)

DURATION ?= 30m
SEED ?= 0
soak: build bin/forgetfs ## random faults every 5 to 15 s for DURATION on real processes, from SEED; report in data/soak.json
	@mkdir -p data
	go build -o bin/robust ./tests/robust && bin/robust -bin bin -forgetfs "$$(test -x bin/forgetfs && echo bin/forgetfs)" \
		-soak $(DURATION) -seed $(SEED) -json data/soak.json $(ROBUST)

bin/forgetfs: $(wildcard tests/e2e/powercut/*.go tests/e2e/powercut/forgetfs/*.go)
	cd tests/e2e && CGO_ENABLED=0 go build -o ../../bin/forgetfs ./powercut/forgetfs

sim: ## clusters under random faults in virtual time, on StoreSvr, on an etcd and as two Sets in turn: DURATION=5m, or HOURS=2000; SEED=n; SIM='-native -engine etcd'
	cd tests/e2e && go run ./simrun $(if $(HOURS),-hours $(HOURS),-duration $(DURATION)) -seed $(SEED) $(SIM)

mutants: ## breaks every rule of the mutation list in a copy of the code: the tests must fail (MUTANTS='-update -resume' goes on with a run)
	go run ./tests/mutants $(MUTANTS)

MODEL ?= full
model: ## the protocol's models, explored by spin, and their mutants: MODEL=quick, full or deep (needs spin and gcc)
	go run ./tests/model -set $(MODEL)

PKG ?= ./storesvr/acceptor
mutate: ## breaks PKG in every small way that tests should see: survivors are printed (MUTATE='-most 100 -with ./storesvr -files section.go')
	go run ./tests/mutants/mutate $(MUTATE) $(PKG)

clean: ## removes bin/ and data/
	rm -rf bin data
