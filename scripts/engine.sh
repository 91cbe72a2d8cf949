#!/usr/bin/env bash
# A private Docker engine from Debian packages, for tests: as root, on a machine that has none.
#
#   engine.sh up               install what is missing, start dockerd, say where it listens
#   engine.sh hostusr [NAME]   make the image whose /usr is the host's (read_paths: [/usr]);
#                              on the engine of DOCKER_HOST, if that is set
#   engine.sh status | env     is it up? | the DOCKER_HOST line, for eval
#   engine.sh down [--purge]   stop it, and with --purge delete its data
#
# It leaves the host's network alone: no bridge, no iptables. Containers have no network, or the
# host's. All of it may be called again and again.
set -euo pipefail

STATE=${AR_ENGINE_STATE:-/var/lib/agentrunner-engine}
RUN=${AR_ENGINE_RUN:-/run/agentrunner-engine}
SOCKET=$RUN/docker.sock
PIDFILE=$RUN/dockerd.pid
LOG=$RUN/dockerd.log
WAIT_SEC=60
IMAGE=agentrunner/worker:hostusr

say() { printf 'engine: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}
engine() { docker --host "unix://$SOCKET" "$@"; }
answers() { engine version >/dev/null 2>&1; }
is_dockerd() { grep -qs '^dockerd$' "/proc/${1:-none}/comm"; }
pid() { cat "$PIDFILE" 2>/dev/null || true; }

install_missing() { # without letting a package start its service
    local missing=() policy=/usr/sbin/policy-rc.d made=
    command -v docker >/dev/null && command -v dockerd >/dev/null || missing+=(docker.io)
    command -v containerd >/dev/null || missing+=(containerd)
    command -v runc >/dev/null || missing+=(runc)
    ((${#missing[@]})) || return 0
    say "installing ${missing[*]}"
    if [[ ! -e $policy ]]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        made=1
    fi
    local failed=
    {
        DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
                "${missing[@]}"
    } >"$RUN/apt.log" 2>&1 || failed=1
    [[ -z $made ]] || rm -f "$policy"
    [[ -z $failed ]] || die "apt-get failed: $(tail -n 5 "$RUN/apt.log")"
}

start() { # start [FLAG...]: until it answers
    rm -f "$PIDFILE" "$SOCKET" "$RUN/exec/containerd/containerd.pid"
    setsid dockerd --host "unix://$SOCKET" --pidfile "$PIDFILE" \
        --data-root "$STATE/data" --exec-root "$RUN/exec" \
        --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
        --userland-proxy=false --exec-opt native.cgroupdriver=cgroupfs \
        --shutdown-timeout 5 "$@" >"$LOG" 2>&1 </dev/null 9>&- &
    local started=$! deadline=$((SECONDS + WAIT_SEC))
    until answers; do
        kill -0 "$started" 2>/dev/null || return 1
        if ((SECONDS > deadline)); then
            kill "$started"
            return 1
        fi
        sleep 0.1
    done
}

up() {
    [[ $EUID -eq 0 ]] || die "only root can start an engine; let DOCKER_HOST name one that runs"
    mkdir -p "$STATE" "$RUN"
    chmod 700 "$STATE" "$RUN"
    exec 9>"$RUN/lock"
    flock 9
    install_missing
    if ! answers; then
        ! is_dockerd "$(pid)" || stop
        if ! grep -q ' cgroup2\? ' /proc/mounts; then
            mount -t cgroup2 cgroup2 /sys/fs/cgroup
        fi
        start || {
            say "trying the vfs storage driver"
            start --storage-driver=vfs
        } || die "dockerd did not start: $(tail -n 5 "$LOG")"
    fi
    exec 9>&-
    say "$(engine version --format '{{.Server.Version}}') at unix://$SOCKET"
}

hostusr() {
    local name=${1:-$IMAGE} host=${DOCKER_HOST:-unix://$SOCKET} root link
    docker --host "$host" image inspect "$name" >/dev/null 2>&1 && return 0
    root=$(mktemp -d)
    mkdir -p "$root"/{etc/ssl,proc,sys,dev,usr,tmp,var/tmp,run,root,home}
    chmod 1777 "$root/tmp" "$root/var/tmp"
    for link in bin sbin lib lib32 lib64 libx32; do
        [[ ! -L /$link ]] || ln -s "usr/$link" "$root/$link"
    done
    printf 'root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n' \
        >"$root/etc/passwd"
    printf 'root:x:0:\nagent:x:1000:\n' >"$root/etc/group"
    cp -a /etc/ld.so.c* /etc/alternatives /etc/nsswitch.conf "$root/etc/"
    cp -aL /etc/ssl/certs "$root/etc/ssl/" 2>/dev/null || true # there may be none
    tar -C "$root" -c . | docker --host "$host" import - "$name" >/dev/null
    rm -rf "$root"
    say "made $name"
}

stop() {
    local stopping
    stopping=$(pid)
    kill "$stopping"
    for _ in {1..150}; do
        is_dockerd "$stopping" || return 0
        sleep 0.1
    done
    die "dockerd ($stopping) did not stop"
}

forgotten_shims() { # by a containerd that was killed while it made a container
    local process
    for process in /proc/[0-9]*; do
        [[ $(cat "$process/comm" 2>/dev/null) != containerd-shim* ]] ||
            ! grep -qs -- "-address.$RUN/exec/containerd/" <(tr '\0' ' ' <"$process/cmdline") ||
            echo "${process#/proc/}"
    done
}

down() {
    # Containers outlive an engine that was killed: only another one can end them.
    if ! is_dockerd "$(pid)" && [[ -n $(ls -A "$STATE/data/containers" 2>/dev/null) ]]; then
        up
    fi
    if is_dockerd "$(pid)"; then
        engine ps -aq | xargs -r docker --host "unix://$SOCKET" rm -f >/dev/null 2>&1 || true
        stop
        say "stopped"
    fi
    [[ ${1:-} == --purge ]] || return 0
    forgotten_shims | xargs -r kill -9
    # What a killed engine leaves mounted, the deepest first.
    awk -v state="$STATE/" -v run="$RUN/" \
        'index($2, state) == 1 || index($2, run) == 1 { print $2 }' /proc/mounts |
        sort -r | xargs -r -d '\n' -n 1 umount -l || true
    rm -rf --one-file-system "$STATE" "$RUN"
}

case ${1:-} in
up) up ;;
hostusr) hostusr "${2:-}" ;;
status) answers && say up || die down ;;
env) echo "export DOCKER_HOST=unix://$SOCKET" ;;
down) down "${2:-}" ;;
*)
    sed -n '2,12s/^# \?//p' "$0"
    exit 2
    ;;
esac
