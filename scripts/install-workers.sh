#!/bin/sh
# Installs the tested versions of further worker CLIs into .tools/workers of this checkout, for
# `make test-workers`: gemini, qwen, copilot, opencode (npm), aider, mini-swe-agent (pip). 2 GB.
# Nothing is installed globally, and nothing is done for what is there already.
set -eu

cd "$(dirname "$0")/.."
place=.tools/workers

tested() { sed -n 's/^TESTED = "\(.*\)"$/\1/p' "agentrunner/workers/$1.py"; }

node() { # name, package
    version=$(tested "$1")
    if grep -qs "\"version\": \"$version\"" "$place/$1/node_modules/$2/package.json"; then return; fi
    mkdir -p "$place/$1"
    # Install scripts would build modules for terminals and keyrings, or copy a native program.
    npm install --prefix "$place/$1" --no-save --no-audit --no-fund --ignore-scripts \
        --loglevel=error "$2@$version" >/dev/null
    echo "$2 $version"
}

python() { # name, package, what it needs beside it
    version=$(tested "$1")
    set -- "$1" "$2" "$3" "$place/$1/lib/python3."*"/site-packages/$(echo "$2" | tr - _)-$version.dist-info"
    if [ -d "$4" ]; then return; fi
    rm -rf "${place:?}/$1"
    "$interpreter" -m venv "$place/$1"
    # shellcheck disable=SC2086 - several words
    "$place/$1/bin/pip" install --quiet --disable-pip-version-check "$2==$version" $3
    echo "$2 $version"
}

command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or newer." >&2; exit 1; }
interpreter=
for name in python3 python3.12 python3.11 python3.10; do
    # aider is made for nothing newer.
    if "$name" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; then
        interpreter=$name
        break
    fi
done
[ -n "$interpreter" ] || { echo "Python 3.10, 3.11 or 3.12 is missing, for aider." >&2; exit 1; }

node gemini @google/gemini-cli
node qwen @qwen-code/qwen-code
node copilot @github/copilot
node opencode opencode-ai
# Its install script would put the native program in the place of one that only complains.
(cd "$place/opencode/node_modules" && ln -sf "../$(echo opencode-linux-*64/bin/opencode)" .bin/opencode)
python aider aider-chat ""
# litellm, which it asks the model with, fails for ever without mcp.
python mini mini-swe-agent "litellm==1.106.2 mcp==2.3.0"
