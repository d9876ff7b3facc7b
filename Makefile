.PHONY: proto
proto: ## regenerate the Go code of proto/ (needs protoc 3.21)
	@mkdir -p bin/tools && GOBIN=$(CURDIR)/bin/tools go install google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc
	PATH=$(CURDIR)/bin/tools:$$PATH protoc -I proto --go_out=proto --go_opt=paths=source_relative \
		--go-grpc_out=proto --go-grpc_opt=paths=source_relative proto/seqsvr/v1/*.proto
