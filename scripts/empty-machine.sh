#!/bin/sh
# What a newcomer's machine has: Python, git, make and the tools of a POSIX shell on PATH, an empty home, CI unset.
# There the README's `make demo` is run, and of `make test` the share that finds what depends on
# the machine; as whoever starts it, and where that is root, as an ordinary user besides. With the
# word `short` root takes over what the ordinary user has set up, and tries there what differs for
# root where the system has no bwrap.
set -eu

cd "$(dirname "$0")/.."
checkout=$PWD
more= # a folder of further programs
place=$(mktemp -d "${TMPDIR:-/tmp}/agentrunner-empty.XXXXXX")
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
mkdir "$place/bin"
for python in /usr/bin/python3 "$(python3 -c 'import sys; print(sys.executable)')"; do
    # The system's own first: a version manager's stands where an ordinary user cannot read it.
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        ln -s "$python" "$place/bin/python3"
        break
    fi
done
for name in git make sh env cat cp rm mv mkdir mktemp ls ln chmod dirname basename readlink \
    sed grep tr head tail sort uniq wc cut date sleep touch true false test expr printf uname id tee \
    find xargs diff kill stat seq nproc od realpath nice sha256sum tar gzip; do
    path=$(command -v "$name" || true)
    case $path in /*) ln -s "$path" "$place/bin/$name" ;; esac
done

try() { # try NAME COMMAND...: in a clone and a home of its own
    name=$1
    shift
    mkdir -p "$place/$name/home" "$place/$name/tmp"
    git clone --quiet "$checkout" "$place/$name/AgentRunner"
    [ "$name" = "$(id -un)" ] || chown -R 65534:65534 "$place/$name"
    in_place "$name" "make demo && make .venv/.dev && .venv/bin/pytest -n 2 -q $share" "$@"
    echo "An empty machine, $name: the demo is COMPLETE, the share of the tests is green."
}

in_place() { # in_place NAME SCRIPT COMMAND...: in the clone and home of NAME
    name=$1
    script=$2
    shift 2
    (
        cd "$place/$name/AgentRunner"
        # Where packages come from is the machine's matter, and the only thing that is kept.
        kept=$(env | grep -E '^(PIP|UV|SSL|REQUESTS)_[A-Z_]*=' | tr '\n' ' ')
        # shellcheck disable=SC2086 # words
        "$@" env -i $kept PATH="$place/bin${more:+:$more}" HOME="$place/$name/home" TMPDIR="$place/$name/tmp" \
            PIP_CONFIG_FILE="$pip_config" PIP_CACHE_DIR="$place/$name/pip" \
            LANG=C.UTF-8 sh -c "$script"
    )
}

found_pip_config() {
    for file in "$HOME/.config/pip/pip.conf" "$HOME/.pip/pip.conf" /etc/pip.conf; do
        if [ -r "$file" ]; then
            cp "$file" "$place/pip.conf"
            chmod 644 "$place/pip.conf"
            echo "$place/pip.conf"
            return
        fi
    done
    echo /dev/null
}

pip_config=${PIP_CONFIG_FILE-$(found_pip_config)}

# Python without what a virtual environment is made with: with apt the demo is COMPLETE all the same,
# without it the set-up ends with a command.
bare_python() {
    if ! bwrap --dev-bind / / true 2>/dev/null; then
        echo "A bare Python was not played: bwrap, which hides pip and ensurepip, does not work here." >&2
        return
    fi
    mkdir -p "$place/nothing" "$place/bare/home" "$place/bare/tmp"
    git clone --quiet "$checkout" "$place/bare/AgentRunner"
    set --
    for folder in /usr/share/python-wheels $("$place/bin/python3" -c 'import sys
print(*(f"{place}/{name}" for place in sys.path for name in ("ensurepip", "pip")))'); do
        [ ! -d "$folder" ] || set -- "$@" --bind "$place/nothing" "$folder"
    done
    told=$(in_place bare "sh scripts/setup.sh runtime" bwrap --dev-bind / / "$@" 2>&1 || true)
    case $told in
        *"neither ensurepip nor pip."*"  try: "*) ;;
        *) echo "$told"; echo "Without pip and apt the set-up did not end with a command." >&2; exit 1 ;;
    esac
    if command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then
        more=$place/bare/bin
        mkdir "$more"
        ln -s "$(command -v apt-get)" "$(command -v dpkg-deb)" "$more"
        in_place bare "make demo" bwrap --dev-bind / / "$@"
        echo "An empty machine, Python without pip and ensurepip: the demo is COMPLETE."
    fi
}

share='tests/integration/sandboxes/test_conformance.py tests/integration/test_examples.py
    tests/graph/test_honesty.py tests/unit/commands/test_command_line.py tests/unit/discovery'
share=$(echo $share)
# Both failed once for root without a system bwrap: it comes from the extra, where a user that root
# turns into has to be able to read it.
as_root='tests/integration/sandboxes/test_bwrap_door.py::test_an_ordinary_user_has_a_door_too
    tests/integration/sandboxes/test_conformance.py::test_bwrap_keeps_every_promise_for_an_ordinary_user
    tests/unit/commands/test_command_line.py'
as_root=$(echo $as_root)

who=${1:-everybody}
if [ "$who" = bare ]; then
    bare_python
    exit
fi
# Beside the others: nearly all of it is one pip, which works on one core.
bare_python >"$place/bare.log" 2>&1 &
bare=$!
trap 'wait "$bare" || true; rm -rf "$place"' EXIT
if [ "$who" != short ] || [ "$(id -u)" -ne 0 ]; then
    try "$(id -un)"
fi
if [ "$(id -u)" -eq 0 ]; then
    # execvp imports warnings, which this user may not be able to read.
    try ordinary python3 -c 'import os, sys, warnings
os.setgroups([]); os.setgid(65534); os.setuid(65534); os.execvp(sys.argv[1], sys.argv[1:])'
fi
if [ "$who" = short ] && [ "$(id -u)" -eq 0 ]; then
    chown -R 0:0 "$place/ordinary"
    in_place ordinary "make demo && .venv/bin/pytest -q $as_root"
    echo "An empty machine, root: the demo is COMPLETE, what depends on being root is green."
fi
ended=0
wait "$bare" || ended=$?
cat "$place/bare.log"
exit "$ended"
