#!/bin/sh
# What `make demo` runs: a small broken shop is copied to a scratch folder and repaired there.
# Nothing else is touched; the folder is yours to look at and to delete.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
agentrunner=${AGENTRUNNER:-agentrunner}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/agentrunner-demo.XXXXXX")

cp -R "$here/prd.md" "$here/worker.py" "$here/shop" "$scratch"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
(
    cd "$scratch/shop"
    export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
    git -c init.defaultBranch=main init --quiet
    git add .
    git -c user.name=demo -c user.email=demo@example.invalid commit --quiet -m "A shop with two bugs"
)

export AGENTRUNNER_STATE_DIR="$scratch/state"
# Last, so that your own python3 comes first; where there is none, the one of .venv will do.
case $agentrunner in */*) bin=$(dirname "$agentrunner") PATH=$PATH:$bin ;; esac

code=0
(cd "$scratch/shop" && "$agentrunner" run ../prd.md) || code=$?

# A line that a terminal breaks cannot be pasted: what is long stands in a file.
cat > "$scratch/enter" <<END
cd "$scratch/shop"
export AGENTRUNNER_STATE_DIR="$scratch/state"${bin+ PATH="\$PATH:$bin"}
END

cat <<END

The demo's folder:  $scratch
  what was asked       prd.md
  what was done        git diff, in shop
  the task note        shop/.agent-runner/task-cart-totals.md
To try the commands:   . $scratch/enter
Seen enough:           rm -rf $scratch
END
exit "$code"
