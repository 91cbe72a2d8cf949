#!/bin/sh
# Stands before a tool on PATH, and lets it write a report beside what it does anyway. The tool and
# its processes find the real one: this folder is taken off PATH.
here=$(cd "$(dirname "$0")" && pwd)
place=$(dirname "$here")
tool=$(basename "$0")
kept=
set -f
IFS=:
for each in $PATH; do
    [ "$each" = "$here" ] || kept="$kept${kept:+:}$each"
done
unset IFS
set +f
PATH=$kept
export PATH
file="$place/$tool-$(date +%s)-$$"

given() { # words...: whether the tool was given one of them
    for word in $arguments; do
        for each; do
            case $word in "$each" | "$each="*) return 0 ;; esac
        done
    done
    return 1
}
# Options only: what stands behind `--` or `-args` is not the tool's.
arguments=
for word; do
    case $word in
    -- | -args | --args) break ;;
    -*) arguments="$arguments $(printf %s "$word" | tr -d ' \t\n*?[')" ;;
    esac
done

case $tool in
go)
    if [ "$1" != test ] || given -c -h -help --help -list --list -n; then exec go "$@"; fi
    shift
    go test -json "$@" >"$file.jsonl"
    code=$?
    tab=$(printf '\t')
    sed -e 's/^{.*"Output":"\(.*\)"}$/\1/' -e 's/^{"\(Time\|Action\|ImportPath\)".*//' \
        -e 's/\\n$//' -e "s/\\\\t/$tab/g" -e 's/\\u003c/</g' -e 's/\\u003e/>/g' -e 's/\\u0026/\&/g' \
        -e 's/\\"/"/g' -e 's/\\\\/\\/g' -e '/^$/d' "$file.jsonl"
    exit $code
    ;;
cargo)
    plus=
    case $1 in +*)
        plus=$1
        shift
        ;;
    esac
    case $1 in
    test | t) ;;
    *) exec cargo ${plus:+"$plus"} "$@" ;;
    esac
    # Else the programs behind the first that fails do not run, and nobody knows what is red there.
    sub=$1
    shift
    if ! given --no-fail-fast --no-run; then set -- --no-fail-fast "$@"; fi
    exec cargo ${plus:+"$plus"} --config "target.'cfg(all())'.runner=['$here/agentrunner_cargo']" "$sub" "$@"
    ;;
agentrunner_cargo)
    # Cargo's runner: the program of a target, and what it is given.
    if given --list --logfile --help || ! grep -qF 'Write logs to the specified file' "$1"; then
        exec "$@"
    fi
    {
        printf '#package %s\n#binary %s\n' "$CARGO_PKG_NAME" "$1"
        # What the compiler read, the crate's own file first: `cargo test -q` names no target.
        sed -n '1s/^[^ ]*: \([^ ]*\.rs\).*$/#root \1/p' "$1.d" 2>/dev/null
        "$@" --list 2>/dev/null | sed -n 's/^\(.*\): test$/#listed \1/p'
    } >"$file.cargo"
    "$@" --logfile "$file.log"
    code=$?
    cat "$file.log" >>"$file.cargo" 2>/dev/null
    printf '#exit %s\n' "$code" >>"$file.cargo"
    exit "$code"
    ;;
ctest)
    if given --output-junit -N --show-only -S --script -D --dashboard --build-and-test --help -h \
        --version -M -T || ! ctest --help 2>/dev/null | grep -q -e --output-junit; then
        exec ctest "$@"
    fi
    exec ctest "$@" --output-junit "$file.xml"
    ;;
java)
    # JUnit's own launcher, by its class or its file, where it runs tests.
    launcher=
    previous=
    for word; do
        case $launcher,$previous,$word in
        ,*,org.junit.platform.console.ConsoleLauncher | ,-jar,*junit-platform-console*.jar)
            launcher=yes
            ;;
        yes,*,discover | yes,*,engines | yes,*,--list-engines | yes,*,--help | yes,*,-h)
            launcher=no
            ;;
        yes,*,--reports-dir | yes,*,--reports-dir=*) launcher=no ;;
        esac
        previous=$word
    done
    if [ "$launcher" != yes ]; then exec java "$@"; fi
    exec java "$@" --reports-dir "$file"
    ;;
dotnet)
    if [ "$1" != test ] || given --help -h '-?' -t --list-tests --results-directory; then exec dotnet "$@"; fi
    shift
    count=$#
    added=
    while [ "$count" -gt 0 ]; do
        if [ "$1" = -- ] && [ -z "$added" ]; then
            set -- "$@" --logger trx --results-directory "$file"
            added=yes
        fi
        set -- "$@" "$1"
        shift
        count=$((count - 1))
    done
    if [ -z "$added" ]; then set -- "$@" --logger trx --results-directory "$file"; fi
    exec dotnet test "$@"
    ;;
esac
exec "$tool" "$@"
