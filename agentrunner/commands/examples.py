"""The end of each command's help: lines to copy, and where to read more.

A test checks that each command has examples, that each example parses, and that each page exists.
"""

from __future__ import annotations

from collections.abc import Mapping

_COMMANDS = "reference/commands.md"

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "agentrunner init users-api               write a first task here",
        "agentrunner run users-api.md             work on it until it is proven done",
        'agentrunner "fix the failing test"       the same, from a sentence',
        "agentrunner help run                     all that run can do",
    ),
    "agent-runner": ("agent-runner < task.yaml",),
    "run": (
        "agentrunner run users-api.md",
        'agentrunner run "fix the failing test" --test "pytest -q"',
        "agentrunner run users-api.md --worker claude-code --model claude-opus-4-7 --budget usd=5",
        "agentrunner run users-api.md --worktree          in a branch, outside of the checkout",
        "agentrunner run users-api.md --detach            stays at work without the terminal",
        "agentrunner run users-api.md --json --no-input   in a script or in CI",
    ),
    "resume": (
        "agentrunner resume",
        'agentrunner resume users-api -m "use integer cents"',
        "agentrunner resume users-api --budget usd=+5",
    ),
    "answer": (
        "agentrunner answer                    shows the question, and asks",
        "agentrunner answer 1                  the first option",
        'agentrunner answer users-api "the same, compared in lower case"',
    ),
    "approve": (
        "agentrunner approve                   shows what is asked, and asks",
        "agentrunner approve users-api --id 3fa91c20",
    ),
    "reject": (
        "agentrunner reject                    shows what is asked, and asks why",
        'agentrunner reject users-api --id 3fa91c20 --reason "AC-2 is missing"',
    ),
    "accept": (
        'agentrunner accept AC-4 --reason "I read the six texts"',
        'agentrunner accept users-api --known-red test_clock --reason "red since May"',
    ),
    "cancel": ("agentrunner cancel users-api",),
    "list": (
        "agentrunner list --state waiting",
        "agentrunner list --all -n 10",
        "agentrunner list --json | jq .run_id",
    ),
    "watch": (
        "agentrunner watch                     what is at work here, to its end",
        "agentrunner watch users-api --json    its events, from the first on",
        "agentrunner watch --plan              the plan, as a tree",
    ),
    "show": ("agentrunner show", "agentrunner show users-api --json -o result.json"),
    "logs": (
        "agentrunner logs -f                   follow a run at work",
        "agentrunner logs users-api --round 2",
        "agentrunner logs users-api --tests    what the tests printed",
    ),
    "diff": (
        "agentrunner diff --stat",
        "agentrunner diff users-api --round 2",
        "agentrunner diff users-api -o users-api.patch",
    ),
    "verify": ("agentrunner verify", "agentrunner verify users-api --mutants"),
    "undo": ("agentrunner undo users-api",),
    "gc": ("agentrunner gc", "agentrunner gc --older-than 7 --max-size 1g"),
    "plan": (
        'agentrunner plan "make a product list page"',
        "agentrunner plan                      the tree",
        "agentrunner plan run -j 3",
        "agentrunner plan status -f",
    ),
    "plan say": ('agentrunner plan say "search belongs to phase one"',),
    "plan accept": ("agentrunner plan accept",),
    "plan show": ("agentrunner plan show TASK-0002",),
    "plan run": (
        'agentrunner plan run --test "npm test" -j 3',
        "agentrunner plan run --only 2 --budget usd=5",
        "agentrunner plan run --dry-run",
    ),
    "plan status": ("agentrunner plan status -f",),
    "plan answer": ('agentrunner plan answer 1 "no VAT, prices are net"',),
    "plan new": ("agentrunner plan new shop-page",),
    "plan list": ("agentrunner plan list", "agentrunner plan list --all"),
    "plan switch": ("agentrunner plan switch shop-page",),
    "plan archive": ("agentrunner plan archive",),
    "plan undo": ("agentrunner plan undo",),
    "plan export": ("agentrunner plan export plan/",),
    "plan import": ("agentrunner plan import plan/",),
    "chat": ("agentrunner chat", 'agentrunner chat --test "npm test"'),
    "validate": ("agentrunner validate users-api.md", "agentrunner validate users-api.md --json"),
    "schema": ("agentrunner schema", "agentrunner schema task"),
    "parse": ("agentrunner parse next_action reply.txt",),
    "graph": ("agentrunner graph",),
    "image": ("agentrunner image build codex-cli", "agentrunner image build --from Dockerfile"),
    "workers": ("agentrunner workers",),
    "planners": (
        "agentrunner planners                  the kinds, and which are ready here",
        "agentrunner planners try              what the one that is set can be trusted with",
    ),
    "planners list": ("agentrunner planners list --json",),
    "planners try": (
        "agentrunner planners try --planner openai-chat --planner-model gpt-5.5",
        "agentrunner planners try --base-url http://127.0.0.1:8080/v1 --lang ja",
        "agentrunner planners try --scenes my-scenes --json -o trial.json",
    ),
    "config": (
        "agentrunner config show --all",
        "agentrunner config set runner.worker.kind codex-cli",
        "agentrunner config edit --project",
    ),
    "doctor": (
        "agentrunner doctor",
        "agentrunner doctor --planner          tries it with a small request",
        "agentrunner doctor --fix              offers what it can do itself",
        "agentrunner doctor --sandbox docker",
    ),
    "init": ("agentrunner init users-api", "agentrunner init users-api --yaml --no-try"),
    "explain": ("agentrunner explain busy", "agentrunner explain how-to/plan.md"),
    "man": ("agentrunner man ~/.local/share/man/man1",),
    "completion": (
        'eval "$(agentrunner completion bash)"                        for ~/.bashrc',
        "agentrunner completion fish > ~/.config/fish/completions/agentrunner.fish",
    ),
}
"""By command, "plan run" for one of a group; "" is the program. Three blanks begin a remark."""

PAGES: Mapping[str, str] = {
    **dict.fromkeys(EXAMPLES, _COMMANDS),
    "": "README.md",
    "run": "how-to/typical-tasks.md",
    "answer": "how-to/waiting-runs.md",
    "approve": "how-to/waiting-runs.md",
    "reject": "how-to/waiting-runs.md",
    "accept": "how-to/verify.md",
    "resume": "how-to/waiting-runs.md",
    "diff": "how-to/waiting-runs.md",
    "undo": "how-to/waiting-runs.md",
    "verify": "how-to/verify.md",
    "watch": "how-to/leave-it-alone.md",
    "plan": "how-to/plan.md",
    "plan run": "how-to/plan-run.md",
    "plan export": "reference/plan-files.md",
    "plan import": "reference/plan-files.md",
    "chat": "how-to/plan.md",
    "validate": "how-to/prd.md",
    "image": "how-to/docker.md",
    "workers": "how-to/workers.md",
    "planners": "reference/planners.md",
    "planners list": "reference/planners.md",
    "planners try": "reference/planner-scenes.md",
    "config": "how-to/settings.md",
}
"""Pages below docs/."""
