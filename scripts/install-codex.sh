#!/bin/sh
# Installs the tested version of the Codex CLI into .tools/ of this checkout, for the tests.
# Nothing is installed globally, and nothing is done where that version is already there.
set -eu

cd "$(dirname "$0")/.."
version=$(sed -n 's/^TESTED = "\(.*\)"$/\1/p' agentrunner/workers/codex.py)
package=.tools/node_modules/@openai/codex/package.json

if grep -qs "\"version\": \"$version\"" "$package" && .tools/node_modules/.bin/codex --version >/dev/null 2>&1; then
    exit 0
fi
if ! command -v npm >/dev/null; then
    echo "npm is missing: install Node.js, or put codex $version on PATH." >&2
    exit 1
fi
mkdir -p .tools
npm install --prefix .tools --no-save --no-audit --no-fund --loglevel=error "@openai/codex@$version" >/dev/null
.tools/node_modules/.bin/codex --version
