#!/usr/bin/env bash
# build.sh FOLDER: the libraries as packages. Skips a language that is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
out=$(cd "$1" && pwd)
version=$(sed -n 's/.*"version": "\(.*\)".*/\1/p' clients/node/package.json)

if command -v npm >/dev/null; then
	(cd clients/node && npm pack --silent --pack-destination "$out")
else
	echo 'no npm: no tarball for Node'
fi

if command -v python3 >/dev/null; then
	python3 clients/python/wheel.py "$version" "$out"
else
	echo 'no python3: no wheel'
fi

if command -v javac >/dev/null; then
	classes=$(mktemp -d)
	javac --release 17 -d "$classes" $(find clients/java/src -name '*.java')
	jar --create --date 2000-01-01T00:00:00Z --file "$out/seqsvr-client-$version.jar" -C "$classes" . -C clients/java README.md
	rm -r "$classes"
	echo "seqsvr-client-$version.jar"
else
	echo 'no javac: no jar'
fi
