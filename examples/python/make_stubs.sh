#!/bin/sh
# Makes gen/ from the .proto files: with pip's grpcio-tools, or with Debian's protobuf-compiler
# and protobuf-compiler-grpc. gen/ goes into PYTHONPATH.
set -eu
cd "$(dirname "$0")"
out=$(mkdir -p "${1:-gen}" && cd "${1:-gen}" && pwd)
files='seqsvr/v1/sequence.proto seqsvr/v1/snowflake.proto seqsvr/v1/error.proto seqsvr/v1/route.proto'
if command -v grpc_python_plugin >/dev/null; then
	cd ../../proto
	exec protoc -I . --python_out="$out" --grpc_python_out="$out" \
		--plugin=protoc-gen-grpc_python="$(command -v grpc_python_plugin)" $files
fi
exec python3 -m grpc_tools.protoc -I ../../proto --python_out="$out" --grpc_python_out="$out" $files
