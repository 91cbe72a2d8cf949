"""Help, examples, completion, and what people type that is no command."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from agentrunner import __version__, cli, registry
from agentrunner.commands import completion
from agentrunner.commands.examples import EXAMPLES, PAGES
from agentrunner.commands.plan_commands import COMMANDS as PLAN
from agentrunner.commands.planner_commands import COMMANDS as PLANNERS
from agentrunner.config.load import TaskSource, load_task
from agentrunner.git.own_checkout import own_commit
from agentrunner.storage.index import RunIndex, RunRow
from agentrunner.storage.run_folder import RunFolder
from tests.kit.command_lines import parse
from tests.kit.missing import missing

DOCS = Path(__file__).parents[3] / "docs"
NAMES = [
    *cli.COMMANDS,
    *(f"plan {name}" for name in PLAN),
    *(f"planners {name}" for name in PLANNERS),
]


def call(*arguments: str) -> int:
    return cli.call(cli.app, list(arguments), "agentrunner")


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example_and_a_page_and_no_types(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*name.split(), "-h") == 0
    out = capsys.readouterr().out
    assert "Examples:" in out and f"More: agentrunner explain {PAGES[name]}" in out
    options = out.partition("Options:")[2].partition("Examples:")[0].replace("NAME <EMAIL>", "")
    assert not re.search(r"<[a-z]|\[x|list\[|\[\[", out.partition("Options:")[0] + options)
    assert (DOCS / PAGES[name]).is_file()


@pytest.mark.parametrize("name", ["how-to/plan.md", "docs/how-to/plan.md"])
def test_the_page_that_help_names_is_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("explain", name) == 0
    assert capsys.readouterr().out.strip() == (DOCS / "how-to" / "plan.md").read_text().strip()
    assert call("explain", name, "--json") == 0
    assert json.loads(capsys.readouterr().out)["page"] == "how-to/plan.md"


def test_only_pages_of_the_documentation_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("how-to/pln.md", "../README.md", str(DOCS / "how-to" / "plan.md")):
        assert call("explain", name) == 2
        assert "agentrunner explain" in capsys.readouterr().err


def test_every_example_is_a_command_line_with_options_that_there_are() -> None:
    for lines in EXAMPLES.values():
        for line in lines:
            typed = re.split(r" {3,}| \| | [<>] ", line)[0].removeprefix('eval "$(')
            parse(shlex.split(typed.removesuffix(')"'))[1:])


def test_groups_hold_every_command_once() -> None:
    listed = [name for group in cli.GROUPS.values() for name in group]
    assert sorted(listed) == sorted(set(listed)) == sorted(cli.COMMANDS)
    page = (DOCS / "reference" / "commands.md").read_text("utf-8")
    assert [name for name in listed if not re.search(rf"(agentrunner |· |`){name}\b", page)] == []


def test_help_of_the_program(capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    call("help")
    golden("screens/help.txt", capsys.readouterr().out)


def test_the_program_for_scripts_has_help_of_the_same_form(
    capsys: pytest.CaptureFixture[str], golden: Any
) -> None:
    for option in ("-h", "--help"):
        assert cli.call(cli.stdin_app, [option], "agent-runner") == 0
        golden("screens/help-stdin.txt", capsys.readouterr().out)


def test_help_of_a_command(capsys: pytest.CaptureFixture[str], golden: Any) -> None:
    call("help", "diff")
    golden("screens/help-diff.txt", capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [["version"], ["-V"], ["--version"]])
def test_the_version(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*arguments) == 0
    assert capsys.readouterr().out.startswith("agentrunner ")
    assert call(*arguments, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"version": __version__, "commit": own_commit() or None}


def test_kinds_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    call("run", "-h")
    out = " ".join(capsys.readouterr().out.split())
    assert "codex-cli, claude-code" in out and "docker, bwrap, none" in out


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("ls", "try: agentrunner list"),
        ("login", "docs/how-to/login.md"),
        ("stop", "agentrunner cancel"),
        ("rnu", "did you mean run?"),
        ("statu", "agentrunner show"),
        ("zzzz", "agentrunner --help"),
        ("fixit", "agentrunner --help"),
        ("exec", 'agentrunner run FILE.md, or agentrunner "what you want"'),
        ("auth", "docs/how-to/login.md"),
        ("update", "uv tool install --reinstall"),
    ],
)
def test_what_is_no_command_is_answered_with_what_is_meant(
    word: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(word) == 2
    assert told in capsys.readouterr().err


# -- a sentence is a goal -------------------------------------------------------------------------


def test_a_sentence_is_a_goal_and_a_file_is_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentrunner.commands.start import source_of

    monkeypatch.chdir(tmp_path)
    (tmp_path / "my task").write_text("# T\n")
    assert cli.understood(["fix the failing test", "-q"]) == ["run", "fix the failing test", "-q"]
    with_model = ["--model", "gpt-5", "fix the failing test"]
    assert cli.understood(with_model) == ["run", *with_model]
    assert cli.understood(["--json", "a b"]) == ["--json", "a b"]
    assert cli.understood(["合計は個数を掛ける"]) == ["run", "合計は個数を掛ける"]
    assert cli.understood(["課題.md"]) == ["課題.md"]
    assert cli.understood(["my task"]) == ["my task"]
    assert cli.understood(["run"]) == ["run"]
    assert source_of("fix the failing test", None, None) == TaskSource(
        "goal", "fix the failing test"
    )
    assert source_of("my task", None, None).kind == "file"
    assert source_of("not there.md", None, None).kind == "file"


# -- where a PRD works ----------------------------------------------------------------------------


def loaded(path: str, cwd: Path, **options: Any) -> Any:
    return load_task(TaskSource("file", path), options=options, environ={}, cwd=cwd, auto=True)


def test_a_prd_outside_is_about_the_repository_one_stands_in(tmp_path: Path) -> None:
    shop, prds, plain = tmp_path / "shop", tmp_path / "prds", tmp_path / "plain"
    for folder in (shop / ".git", shop / "docs", prds, plain):
        folder.mkdir(parents=True)
    text = "# T\n\n## Acceptance criteria\n- x\n"
    for place in (prds / "x.md", shop / "docs" / "in.md"):
        place.write_text(text)
    assert loaded(str(prds / "x.md"), shop).repo == str(shop)
    assert loaded(str(prds / "x.md"), shop / "docs").repo == str(shop)
    assert loaded("docs/in.md", shop).repo == str(shop)
    assert loaded(str(shop / "docs" / "in.md"), plain).repo == str(shop)
    assert loaded(str(prds / "x.md"), plain).repo == str(plain)
    assert loaded("prds/x.md", tmp_path).repo == str(prds)


def test_a_model_of_an_option_is_that_of_whoever_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text("# T\n")
    spec = loaded("x.md", tmp_path, model="opus", planner_model="gpt-5.5")
    assert (spec.runner.worker.kind, spec.runner.worker.model) == ("auto", "opus")
    assert (spec.runner.meta.kind, spec.runner.meta.model) == ("auto", "gpt-5.5")
    spec = loaded("x.md", tmp_path, model="opus", worker="claude-code")
    assert (spec.runner.worker.kind, spec.runner.worker.model) == ("claude-code", "opus")


# -- completion -----------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    repo, state = tmp_path / "shop", tmp_path / "state"
    (repo / ".git").mkdir(parents=True)
    (repo / "users-api.md").write_text("# T\n")
    for run_id in ("users-api-7f3a", "totals-c21e"):
        RunFolder.create(state, run_id)
        RunIndex(state).record(
            RunRow(run_id, run_id[:-5], "Totals\tand \x1b[2J more", str(repo.resolve()), "FAILED")
        )
    monkeypatch.chdir(repo)
    monkeypatch.setenv("AGENTRUNNER_STATE_DIR", str(state))
    return repo


def test_what_prints_data_prints_it_as_json() -> None:
    """The others print JSON anyway, files of their own, or only talk."""
    without = {
        name
        for name, command in cli._commands(get_command(cli.app), "")
        if "--json" not in cli._options_of(command)
    }
    own_form = {"plan export", "plan import", "completion", "schema", "parse", "graph", "man"}
    assert without == {*own_form, "chat"}


def words(*typed: str) -> list[str]:
    return [value for value, _ in completion.candidates(get_command(cli.app), typed)]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (["resu"], {"resume"}),
        (["help", "resu"], {"resume"}),
        (["show", ""], {"users-api-7f3a", "totals-c21e"}),
        (["diff", "--stat", "to"], {"totals-c21e"}),
        (["run", "--worker", "cod"], {"codex-cli"}),
        (["run", "--sandbox", ""], set(registry.SANDBOXES) | {"auto"}),
        (["run", "--log-level", ""], {"debug", "info", "warning", "error"}),
        (["run", "us"], {"users-api.md", ":files"}),
        (["run", "--repo", ""], {":files"}),
        (["plan", "sta"], {"status"}),
        (["schema", "tas"], {"task"}),
        (["explain", "bus"], {"busy"}),
        (["completion", ""], {"bash", "zsh", "fish"}),
        (["list", "--state", "w"], {"waiting"}),
        (["run", "--worker=cod"], {"--worker=codex-cli"}),
        (["run", "--worker", "=", "cod"], {"codex-cli"}),  # as bash splits it
        (["run", "--worker", "="], set(registry.WORKERS) | {"auto"}),
        (["he"], {"help"}),
        (["help", "he"], set()),
        (["ver"], {"verify", "version"}),
        (["config", "set", "worker.ki"], {"worker.kind"}),
        (["config", "set", "runner.worker.ki"], {"runner.worker.kind"}),
        (["init", ""], set()),
        (["list", "--nope", "x"], set()),
        (["nope", "x", ""], set()),
    ],
)
def test_words_that_may_follow(typed: list[str], expected: set[str], place: Path) -> None:
    assert set(words(*typed)) == expected


@pytest.mark.parametrize(
    ("verb", "expected"),
    [
        ("answer", {"asks"}),
        ("approve", {"asks"}),
        ("accept", {"review", "failed"}),
        ("cancel", {"asks", "stopped"}),
        ("resume", {"asks", "stopped", "review", "failed"}),
        ("undo", {"asks", "stopped", "review", "failed", "done"}),
        ("show", {"asks", "stopped", "review", "failed", "done"}),
    ],
)
def test_only_runs_that_a_command_can_be_about_are_offered(
    verb: str, expected: set[str], place: Path
) -> None:
    index, at = RunIndex(place.parent / "state"), "2026-11-21T06:00:00Z"
    present: dict[str, dict[str, Any]] = {
        "asks": {"state": "PLANNING", "waiting": "plan"},
        "stopped": {"state": "RUNNING"},
        "review": {"state": "NEEDS_REVIEW", "finished_at": at},
        "failed": {"state": "FAILED", "finished_at": at},
        "done": {"state": "COMPLETE", "finished_at": at},
    }
    for run_id, known in present.items():
        RunFolder.create(index.state_dir, run_id)
        row = RunRow(run_id, "x", "T", str(place.resolve()), "", rounds=1)
        index.record(replace(row, **known))
    offered = {run for run in words(verb, "") if "-" not in run}
    assert offered == expected
    # What it waits for is in the folder before the index knows.
    index.note(RunRow("asks", "x", "T", str(place.resolve()), "RUNNING", rounds=1))
    assert "asks" not in words("answer", "")


def test_what_completes_an_answer_and_a_setting(place: Path) -> None:
    assert words("answer", "users-api-7f3a", "") == []
    assert "runner.worker.kind" in words("config", "set", "runner.worker.k")
    assert words("run", "--set", "task.test.c")[:1] == ["task.test.command="]
    assert words("plan", "switch", "") == []


def test_options_are_offered_with_what_they_do(place: Path) -> None:
    found = dict(completion.candidates(get_command(cli.app), ["plan", "run", "--p"]))
    assert {"--parallel", "--planner", "--planner-model", "--pr", "--policy"} == set(found)
    assert all(found.values())


def test_tasks_of_the_plan_are_offered(place: Path) -> None:
    from agentrunner.commands.plan_place import store_of
    from agentrunner.plans.plan import Plan

    assert words("plan", "show", "") == []
    assert isinstance(store_of(None, None).load(), Plan)


def test_nothing_of_a_title_reaches_the_terminal(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completion.complete(get_command(cli.app), ["show", "to"]) == 0
    assert capsys.readouterr().out == "totals-c21e\tfailed: Totals and more\n"


ASK = {
    "bash": """
        eval "$(agentrunner completion bash)"
        COMP_WORDS=(agentrunner show tot); COMP_CWORD=2; _agentrunner_complete
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        autoload -Uz compinit; compinit -u -D; eval "$(agentrunner completion zsh)"
        _describe() { print -l -- ${found%%:*} }
        words=(agentrunner show tot); CURRENT=3; _agentrunner
    """,
    "fish": """
        agentrunner completion fish | source
        complete -C 'agentrunner show tot' | string split -f1 \\t
    """,
}


@pytest.mark.parametrize("shell", ASK)
def test_the_scripts_work_in_their_shells(shell: str, place: Path) -> None:
    if shutil.which(shell) is None:
        missing(f"{shell} is not installed")
    folder = str(Path(sys.executable).parent)
    environ = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(place.parent)}
    command = [shell, "-c", ASK[shell]]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert done.stdout.split() == ["totals-c21e"]


def test_completion_imports_no_engine_and_starts_nothing(place: Path) -> None:
    script = (
        "import sys; from agentrunner import cli;"
        "sys.addaudithook(lambda e, a: e in ('subprocess.Popen', 'os.exec') and sys.exit(9));"
        "sys.argv = ['agentrunner', 'show', '']; cli.main()"
    )
    environ = {**os.environ, "_AGENTRUNNER_COMPLETE": "bash"}
    command = [sys.executable, "-X", "importtime", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 0 and "totals-c21e" in done.stdout
    for heavy in ("langgraph", "pydantic", "yaml", "asyncio", "rich"):
        assert not re.search(rf"\| +{heavy}$", done.stderr, re.MULTILINE), heavy


def test_help_fits_into_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    for arguments in (["--help"], ["run", "--help"], ["plan", "--help"]):
        assert cli.call(cli.app, arguments, "agentrunner") == 0
        told, _, _ = capsys.readouterr().out.partition("Examples:")
        long = [line for line in told.splitlines() if len(line) > 44]
        assert all(" " not in line.strip() for line in long), long  # a word alone is not broken
    for name in PAGES.keys() - {"agent-runner"}:
        assert cli.call(cli.app, [*name.split(), "--help"], "agentrunner") == 0
        _, _, more = capsys.readouterr().out.rpartition("More:")
        assert f"agentrunner explain {PAGES[name]}" in more.replace(" \\\n", " ")
        assert max(map(len, more.splitlines())) <= 44


def test_options_that_stand_without_a_command_are_shown_with_the_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.call(cli.app, ["plan", "--help"], "agentrunner") == 0
    group = capsys.readouterr().out
    cli.call(cli.app, ["plan", "say", "--help"], "agentrunner")
    own = re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out)
    assert len(own) > 5 and all(name in group for name in own if name != "--help")
