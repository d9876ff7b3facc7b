#!/usr/bin/env bash
# Runs the tests of the console in a browser, or says what is missing for that.
set -euo pipefail
cd "$(dirname "$0")"
for tool in node npm chromium; do
	command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (apt-get install nodejs npm chromium)"; exit 0; }
done
major=$(node -p 'process.versions.node.split(".")[0]')
[ "$major" -ge 20 ] || { echo "skipped: node $major is too old, expected 20 or newer"; exit 0; }
[ -d node_modules/playwright-core ] && [ -d node_modules/axe-core ] || PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --no-audit --no-fund
npm test --silent
