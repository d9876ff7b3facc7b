#!/usr/bin/env bash
# build.sh FOLDER: the libraries as packages.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)

if command -v npm >/dev/null; then
	(cd clients/node && npm pack --silent --pack-destination "$out")
else
	echo 'no npm: no tarball for Node'
fi
