#!/bin/sh
# The other versions of Python that AgentRunner supports: a bounded part of the tests on each that
# is found on PATH (or by uv), in an environment of its own below .pythons/; the others are "not run".
#
#   pythons.sh               the README's demo, and the part: rooms without LangGraph, a few whole runs
#   pythons.sh --all         all tests
#   pythons.sh 3.13 [--all]  on this one alone, which must be there
set -eu

cd "$(dirname "$0")/.."
known='3.11 3.12 3.13'
wanted=
part='tests/unit/config tests/unit/verification tests/unit/storage tests/unit/git tests/unit/protocol
    tests/unit/planners tests/unit/discovery tests/unit/notes tests/unit/screens tests/graph/test_honesty.py'
for word in "$@"; do
    case $word in
        --all) part=tests ;;
        3.*) wanted=$word known=$word ;;
        *) echo "usage: pythons.sh [VERSION] [--all]" >&2; exit 2 ;;
    esac
done

version_of() { "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || true; }

# A shim of a version manager is on PATH also where no such Python is: so each is asked.
find_python() {
    for name in "python$1" python3 python; do
        if [ "$(version_of "$name")" = "$1" ]; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    if command -v uv >/dev/null 2>&1; then
        UV_PYTHON_DOWNLOADS=never uv python find --system "$1" 2>/dev/null || true
    fi
}

demo() { # demo ENVIRONMENT: a real run in a scratch folder, whose output is kept beside it
    rm -rf "$1/demo"
    mkdir "$1/demo"
    if ! TMPDIR=$1/demo AGENTRUNNER=$1/bin/agentrunner sh examples/quickstart/run.sh >"$1/demo/output" 2>&1; then
        echo "the demo ended otherwise than COMPLETE: $1/demo/output" >&2
        return 1
    fi
}

try() { # try VERSION PYTHON
    place=.pythons/$1
    [ "$(version_of "$place/bin/python")" = "$1" ] || rm -rf "$place"
    if command -v uv >/dev/null 2>&1; then
        [ -e "$place" ] || uv venv --quiet --python "$2" "$place"
        uv pip install --quiet --python "$place/bin/python" --editable '.[sandbox]' --group dev
    else
        [ -e "$place" ] || "$2" -m venv "$place"
        "$place/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
        "$place/bin/python" -m pip install --quiet --editable '.[sandbox]' --group dev
    fi
    demo "$PWD/$place" || return 1
    # shellcheck disable=SC2086 # several folders
    "$place/bin/python" -m pytest -q -x -p no:cacheprovider $part
}

present=$(version_of .venv/bin/python)
lines=
failed=0
for version in $known; do
    if [ "$version" = "$present" ] && [ -z "$wanted" ]; then
        lines="$lines
Python $version: the one of .venv, tried with everything else"
        continue
    fi
    python=$(find_python "$version")
    if [ -z "$python" ]; then
        lines="$lines
Python $version: not run, it is not on PATH"
        [ -z "$wanted" ] || failed=1
    elif try "$version" "$python"; then
        lines="$lines
Python $version: green"
    else
        lines="$lines
Python $version: RED"
        failed=1
    fi
done
echo "${lines#?}"
exit "$failed"
