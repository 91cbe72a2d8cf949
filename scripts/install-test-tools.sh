#!/bin/sh
# Installs the test tools of other languages whose results AgentRunner reads, for the live tests:
# Jest, Vitest and Mocha into .tools/test-tools of this checkout, and from Debian Go, CMake, ccache,
# GoogleTest, Maven, Gradle, JUnit 5, RSpec, PHPUnit, behave, tox and make, where they are missing.
# With --npm only the former; with --missing nothing is installed, and what is missing of the latter is named.
# Nothing is done for what is there already.
set -eu

cd "$(dirname "$0")/.."
place=.tools/test-tools
packages="jest@30.5.2 vitest@4.1.12 mocha@12.0.3"

if [ "${1-}" != --npm ]; then
    missing=
    need() { command -v "$1" >/dev/null || missing="$missing $2"; }
    need_file() { [ -e "$1" ] || missing="$missing $2"; }
    need go golang-go
    need ctest cmake
    need cc gcc
    need c++ g++
    need_file /usr/include/gtest/gtest.h libgtest-dev
    need make make
    need ccache ccache
    need mvn maven
    need java default-jdk-headless
    need_file /usr/share/java/junit-platform-console.jar junit5
    need prove perl
    need rspec ruby-rspec
    need phpunit phpunit
    need behave python3-behave
    need gradle gradle
    need tox tox
    if [ "${1-}" = --missing ]; then
        echo "$missing"
        exit
    fi
    if [ -n "$missing" ]; then
        as_root=
        [ "$(id -u)" -eq 0 ] || as_root="sudo -n"
        $as_root apt-get update -qq
        # shellcheck disable=SC2086 - several words
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends \
            $missing >/dev/null
    fi
fi

command -v npm >/dev/null || { echo "npm is missing: install Node.js 20.19 or newer." >&2; exit 1; }
if [ "$(cat "$place/installed" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$place"
    mkdir -p "$place"
    # shellcheck disable=SC2086 - several words
    npm install --prefix "$place" --no-save --no-audit --no-fund --loglevel=error $packages >/dev/null
    echo "$packages" >"$place/installed"
fi
