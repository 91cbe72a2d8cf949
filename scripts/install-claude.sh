#!/bin/sh
# Installs the tested version of Claude Code into .tools/ of this checkout, for the tests.
# Nothing is installed globally, and nothing is done where that version is already there.
set -eu

cd "$(dirname "$0")/.."
version=$(sed -n 's/^TESTED = "\(.*\)"$/\1/p' agentrunner/workers/claude.py)
package=.tools/claude/node_modules/@anthropic-ai/claude-code/package.json

if grep -qs "\"version\": \"$version\"" "$package" && .tools/claude/node_modules/.bin/claude --version >/dev/null 2>&1; then
    exit 0
fi
if ! command -v npm >/dev/null; then
    echo "npm is missing: install Node.js, or put claude $version on PATH." >&2
    exit 1
fi
mkdir -p .tools/claude
npm install --prefix .tools/claude --no-save --no-audit --no-fund --loglevel=error "@anthropic-ai/claude-code@$version" >/dev/null
.tools/claude/node_modules/.bin/claude --version
