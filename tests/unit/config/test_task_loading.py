"""From what a person writes to a TaskSpec: defaults, precedence, places of mistakes."""

from __future__ import annotations

import io
import json
import os
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from agentrunner.config.agents import DEFAULT_PLANNER_MODEL
from agentrunner.config.load import (
    TaskSource,
    changed_sources,
    load_task,
    read_stdin,
    resolve_env,
    task_schema,
)
from agentrunner.config.spec import TaskSpec
from agentrunner.errors import InfraError, UsageError
from tests.kit.task_files import Load

MINIMAL = "version: 1\ntask: {prd: {text: Do it}}\n"
PRD = """\
---
test: uv run pytest -q
protect: ["tests/golden/**"]
---
# Register users over HTTP
POST /users creates a user.

## Acceptance criteria
- [ ] A valid POST returns 201 (check: `true`)
"""


def failure(load: Load, text: str | bytes, **more: Any) -> UsageError:
    with pytest.raises(UsageError) as caught:
        load(text, **more)
    assert caught.value.exit_code == 2
    return caught.value


def pick(spec: TaskSpec, path: str) -> Any:
    value: Any = spec
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize(
    ("row", "path", "value"),
    [
        ("R-041", "task_id", "task"),
        ("R-042", "title", "task"),
        ("R-046", "task.test", None),
        ("R-049", "runner.meta.kind", "openai-chat"),
        ("R-050", "runner.meta.model", DEFAULT_PLANNER_MODEL),
        ("R-051", "runner.meta.system_prompt", None),
        ("R-052", "runner.meta.max_loops", 5),
        ("R-053", "runner.worker.kind", "codex-cli"),
        ("R-054", "runner.worker.docker_image", None),
        ("R-055", "runner.worker.max_run_time_sec", 1800),
        ("R-056", "runner.worker.env", {}),
        ("R-252", "runner.meta.timeout_sec", None),  # 60 s, and 600 of a CLI: see `timeout_of`
        ("C-06", "runner.sandbox.network", None),
        ("budget", "runner.budget.wall_sec", 3600),
        ("budget", "runner.budget.tokens", None),
        ("completion", "completion", "evidence"),
        ("retention", "runner.retention_days", 14),
        ("note", "runner.note.template", "core"),
    ],
)
def test_defaults(load: Load, row: str, path: str, value: object) -> None:
    assert pick(load(MINIMAL), path) == value


def test_r040_the_version_is_required_and_is_one(load: Load) -> None:
    error = failure(load, "task: {prd: {text: x}}\n")
    assert (error.code, error.message) == ("missing-key", "version is missing.")
    assert failure(load, "version: 2\ntask: {prd: {text: x}}\n").path == "task.yaml:1"


def test_r043_the_repository_is_the_git_root_else_the_folder(
    load: Load, repo: Path, tmp_path: Path
) -> None:
    assert load(MINIMAL, "docs/deep/x.yaml").repo == str(repo)
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "x.yaml").write_text(MINIMAL)
    spec = load_task(TaskSource("file", str(bare / "x.yaml")), environ={}, cwd=repo)
    assert spec.repo == str(bare)


def test_a_worker_outside_of_the_repository_is_found_from_every_work_tree(
    load: Load, tmp_path: Path
) -> None:
    (tmp_path / "agent.sh").touch()
    words = ["sh", "../agent.sh", "../missing.sh", "./mine.sh"]
    command = f"runner.worker.command={json.dumps(words)}"
    spec = load(MINIMAL, overrides=["runner.worker.kind=command", command])
    found = ["sh", str(tmp_path / "agent.sh"), "../missing.sh", "./mine.sh"]
    assert spec.runner.worker.command == found


def test_r044_r045_the_prd_is_a_path_or_a_text(load: Load, repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "x.md").write_text("# Wanted\n")
    assert load("version: 1\ntask: {prd: {path: docs/x.md}}\n").prd_text == "# Wanted\n"
    assert load(MINIMAL).prd_text == "Do it"
    for prd in ("{}", "{path: docs/x.md, text: x}"):
        error = failure(load, f"version: 1\ntask:\n  prd: {prd}\n")
        assert "exactly one of path and text" in error.message
        assert error.path == "task.yaml:3"


def test_r047_r048_the_test_command_as_text_or_with_settings(load: Load) -> None:
    for test in ("npm test", "{command: npm test}"):
        spec = load(f"version: 1\ntask:\n  prd: {{text: x}}\n  test: {test}\n")
        assert spec.task.test is not None
        assert (spec.task.test.command, spec.task.test.cwd) == ("npm test", ".")


@pytest.mark.parametrize(
    ("text", "kind", "what"),
    [
        ('file README.md contains "POST /users"', "file", "POST /users"),
        ("test `test_duplicate`", "test", "test_duplicate"),
        ("file README.md", "command", "file README.md"),
        ("test -f README.md", "command", "test -f README.md"),
        (
            "grep -q 'file a contains b' README.md",
            "command",
            "grep -q 'file a contains b' README.md",
        ),
    ],
)
def test_a_check_in_the_words_of_a_prd_is_no_command(
    load: Load, text: str, kind: str, what: str
) -> None:
    quoted = text.replace("'", "''")
    criteria = f"acceptance_criteria:\n  - {{description: b, check: '{quoted}'}}\n"
    spec = load(f"{MINIMAL_TASK}  test: pytest\n  {criteria}")
    check = spec.criteria[0].check
    assert check is not None
    assert (check.kind, check.contains or check.name or check.run) == (kind, what)


def test_the_sample_of_the_specification(load: Load, repo: Path) -> None:
    (repo / "docs").mkdir()
    (repo / "docs" / "TASK-123.md").write_text("Users register.\n")
    spec = load(
        """\
version: 1
task:
  id: "TASK-123"
  title: "Implement user registration API"
  repo: "."
  prd:
    path: "./docs/TASK-123.md"
  test:
    command: "npm test"
    cwd: "./"
runner:
  meta: {kind: "openai-chat", model: "gpt-4o", max_loops: 5}
  worker:
    kind: "codex-cli"
    env:
      CODEX_API_KEY: "env:CODEX_API_KEY"
""",
        environ={"CODEX_API_KEY": "sk-1"},
    )
    assert (spec.task_id, spec.runner.meta.model) == ("TASK-123", "gpt-4o")
    assert "sk-1" not in spec.model_dump_json()
    assert TaskSpec.model_validate_json(spec.model_dump_json()) == spec


def test_text_fields_keep_their_text(load: Load) -> None:
    spec = load(
        "version: 1\ntask:\n  id: 001\n  title: 2025-11-22\n  prd: {text: 12:30:45}\n"
        "  protect: [yes, 1e3]\nrunner:\n  worker: {env: {A: 010, B: null_, C: on}}\n"
    )
    assert (spec.task_id, spec.title, spec.prd_text) == ("001", "2025-11-22", "12:30:45")
    assert spec.task.protect == ["yes", "1e3"]
    assert spec.runner.worker.env == {"A": "010", "B": "null_", "C": "on"}


@pytest.mark.parametrize(
    ("name", "text", "task_id"),
    [
        ("TASK-123.yaml", MINIMAL, "TASK-123"),
        ("Users API.md", "x", "users-api"),
        ("résumé.md", "x", "resume"),
        ("登録.md", "# Register users\n", "register-users"),
        ("登録.md", "# ユーザー登録 API\n", "task-1121-3d3a"),
        ("登録.yaml", MINIMAL, "task-1121-8af0"),
        ("con.md", "x", "task-con"),
        ("..md.md", "x", "md"),
    ],
)
def test_an_id_is_made_of_file_name_title_or_date(
    load: Load, name: str, text: str, task_id: str
) -> None:
    assert load(text, name, today=date(2026, 11, 21)).task_id == task_id


def test_a_prd_with_front_matter(load: Load, repo: Path) -> None:
    spec = load(PRD, "users-api.md")
    assert (spec.task_id, spec.title) == ("users-api", "Register users over HTTP")
    assert spec.task.test is not None
    assert spec.task.test.command == "uv run pytest -q"
    assert spec.task.protect == ["tests/golden/**"]
    assert spec.prd_text.startswith("# Register")
    assert [(c.id, c.line) for c in spec.criteria] == [("AC-1", 9)]
    assert spec.prd_file is not None
    assert spec.prd_file.path == str(repo / "users-api.md")


def test_front_matter_may_hold_every_section(load: Load) -> None:
    text = "---\nversion: 1\ntitle: T\ntask: {id: a-1}\nrunner:\n  meta: {max_loops: 2}\n---\nx\n"
    spec = load(text, "p.md")
    assert (spec.task_id, spec.title, spec.runner.meta.max_loops) == ("a-1", "T", 2)


@pytest.mark.parametrize(
    ("front", "code", "path"),
    [
        ("tset: x", "unknown-key", "p.md:2"),
        ("max_loops: 3", "unknown-key", "p.md:2"),
        ("title: a\ntask: {title: b}", "bad-value", "p.md:2"),
        ("prd: {text: x}", "bad-value", "p.md:2"),
        ("task: x", "bad-value", "p.md:2"),
        ("a: [", "yaml-syntax", "p.md:2"),
    ],
)
def test_mistakes_in_front_matter_have_the_line_of_the_file(
    load: Load, front: str, code: str, path: str
) -> None:
    error = failure(load, f"---\n{front}\n---\nx\n", name="p.md")
    assert (error.code, error.path) == (code, path)


def test_front_matter_that_does_not_end_is_an_error_and_a_rule_is_none(load: Load) -> None:
    assert failure(load, "---\ntest: x\n\n# T\n", name="p.md").path == "p.md:1"
    assert load("---\nJust words\n---\nx\n", "p.md").prd_text.startswith("---")
    assert load("---\n# only a comment\n---\nx\n", "p.md").prd_text == "x\n"


def test_the_heading_of_the_prd_is_the_title_wherever_the_prd_stands(
    load: Load, repo: Path
) -> None:
    (repo / "users.md").write_text("# Register users\n", "utf-8")
    for prd in ("{path: users.md}", '{text: "# Register users\\n"}'):
        spec = load(f"version: 1\ntask:\n  id: a-1\n  prd: {prd}\n", "task.yaml")
        assert (spec.task_id, spec.title) == ("a-1", "Register users")


@pytest.mark.parametrize(
    ("prd", "title"),
    [
        ("Refunds are negative.\\n\\n## Acceptance criteria\\n- one", "a-1"),
        ("## 受け入れ条件\\n- 一つ", "a-1"),
        ("Refunds are negative.\\n\\n## Background\\nWhy.", "a-1"),
        ("## Refunds\\nThey are negative.", "Refunds"),
        ("A draft.\\n\\n# Refunds\\nThey are negative.", "Refunds"),
    ],
)
def test_a_heading_within_the_prd_is_no_title(load: Load, prd: str, title: str) -> None:
    spec = load(f'version: 1\ntask: {{id: a-1, prd: {{text: "{prd}"}}}}\n', "task.yaml")
    assert spec.title == title


def test_a_goal_is_the_prd_and_its_first_line_the_title(repo: Path) -> None:
    source = TaskSource("goal", f"Fix the rounding of totals{'!' * 80}\nand test it")
    spec = load_task(source, environ={}, cwd=repo, options={"test": "pytest -q"})
    assert spec.title.startswith("Fix the rounding")
    assert len(spec.title) == 80
    assert spec.task_id == "fix-the-rounding-of-totals"
    assert spec.prd_text == source.value
    assert (spec.repo, spec.task_file) == (str(repo), None)
    with pytest.raises(UsageError, match="is empty"):
        load_task(TaskSource("goal", " \n"), environ={}, cwd=repo)


def test_a_prd_by_option_belongs_to_the_current_directory(repo: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "papers"
    elsewhere.mkdir()
    (elsewhere / "p.md").write_text(PRD)
    spec = load_task(TaskSource("prd", "../papers/p.md"), environ={}, cwd=repo)
    assert (spec.repo, spec.base_dir, spec.task_id) == (str(repo), str(repo), "p")
    assert spec.task.test is not None


def test_standard_input_is_a_task_file(repo: Path) -> None:
    spec = load_task(read_stdin(io.BytesIO(MINIMAL.encode())), environ={}, cwd=repo)
    assert (spec.task_id, spec.repo) == ("task", str(repo))
    with pytest.raises(UsageError) as caught:
        read_stdin(io.BytesIO(b"x" * (2 << 20)))
    assert caught.value.code == "too-large"


@pytest.mark.parametrize(
    ("name", "text", "is_prd"),
    [
        ("task", MINIMAL, False),
        ("task.txt", "# comment\n" + MINIMAL, False),
        ("task.json", '{"version": 1, "task": {"prd": {"text": "x"}}}', False),
        ("p", "# Title\nx\n", True),
        ("p.MARKDOWN", "x", True),
    ],
)
def test_task_file_or_prd(load: Load, name: str, text: str, is_prd: bool) -> None:
    assert (load(text, name).prd_file is not None) == is_prd


def test_a_file_that_could_be_either_is_refused(load: Load) -> None:
    assert failure(load, "Make it better\n", name="x.txt").code == "unknown-file"


def test_an_unknown_key_has_its_line_and_a_suggestion(load: Load) -> None:
    error = failure(load, MINIMAL + "runner:\n  worker:\n    max_runtime_sec: 900\n")
    assert error.code == "unknown-key"
    assert error.message == "runner.worker.max_runtime_sec is not a setting."
    assert (error.path, error.source_line) == ("task.yaml:5", "max_runtime_sec: 900")
    assert error.remedy == "did you mean max_run_time_sec?"
    misplaced = failure(load, MINIMAL + "runner:\n  max_loops: 3\n")
    assert misplaced.remedy == "did you mean runner.meta.max_loops?"


def test_a_file_that_is_missing_is_told_with_the_line_that_names_it(load: Load) -> None:
    error = failure(load, "version: 1\ntask:\n  prd: {path: docs/x.md}\n")
    assert (error.code, error.path) == ("unreadable", "docs/x.md")
    assert error.details[1:] == (("named by", "task.yaml:3 prd: {path: docs/x.md}"),)


def test_further_mistakes_are_listed(load: Load) -> None:
    error = failure(load, MINIMAL + "runner:\n  meta: {max_loops: many}\n  retention_days: -1\n")
    assert error.message == 'runner.meta.max_loops is "many", which is no whole number.'
    assert error.details == (
        ("also", "task.yaml:5: runner.retention_days must be greater than or equal to 0."),
    )


def test_each_typo_has_its_own_suggestion(load: Load) -> None:
    typos = "runner:\n  meta: {max_lops: 3}\n  wroker: {}\n  budget: {usdd: 5}\n"
    error = failure(load, MINIMAL + typos)
    found = {error.message: error.remedy, **{text: text for _, text in error.details}}
    for name, meant in (("max_lops", "max_loops"), ("wroker", "worker"), ("usdd", "usd")):
        (tip,) = (tip for text, tip in found.items() if name in text)
        assert f"id you mean {meant}?" in tip
    many = "".join(f"  x{number}: 1\n" for number in range(7))
    assert failure(load, f"{MINIMAL}runner:\n{many}").details[-1] == ("and", "2 more")


def test_a_list_where_settings_belong_is_told_their_names(load: Load) -> None:
    error = failure(load, MINIMAL + "runner: {approve: [plan]}\n")
    assert error.remedy == "its keys: plan, worker, complete"


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        ("comand", "did you mean command?"),
        ("shell", "{kind: command, run: COMMAND} runs a command in a shell"),
    ],
)
def test_a_check_of_an_unknown_kind_is_a_mistake(load: Load, kind: str, way_out: str) -> None:
    error = failure(load, f"{MINIMAL_TASK}  acceptance_criteria:\n  - {criterion_of(kind)}\n")
    assert (error.code, error.remedy) == ("unknown-kind", way_out)
    assert f'check.kind "{kind}" is not known. Known: command, test, file' in error.message


def criterion_of(kind: str) -> str:
    return f"{{description: It is there, check: {{kind: {kind}, run: ls}}}}"


def test_a_typo_in_front_matter_may_mean_a_key_beside_the_task(load: Load) -> None:
    error = failure(load, "---\nruner: {}\n---\n# Title\n", name="prd.md")
    assert error.remedy == "did you mean runner?"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("runner: {meta: {kind: openai}}", "unknown-kind"),
        ("runner: {worker: {kind: codx}}", "unknown-kind"),
        ("runner: {sandbox: {kind: dokcer}}", "unknown-kind"),
        ("runner: {sandbox: {kind: bwarp}}", "unknown-kind"),
        ("runner: {sandbox: {network: some}}", "bad-value"),
        ("runner: {sandbox: {network: {allow: [a.example]}}}", "bad-value"),
        ("runner: {sandbox: {network: {policy: full, allow: ['a.example:443']}}}", "bad-value"),
        ("runner: {sandbox: {network: {allow: ['*.com:443']}}}", "bad-value"),
        ("runner: {sandbox: {network: host}}", "bad-value"),
        ("runner: {sandbox: {memory: lots}}", "bad-value"),
        ("runner: {worker: {kind: command}}", "missing-key"),
        ("runner: {meta: {kind: script}}", "missing-key"),
        ("runner: {meta: {kind: script, script: none.yaml}}", "unreadable"),
        ("runner: {patterns: ../../etc/passwd}", "outside"),
        ("runner: {note: {dir: ../notes}}", "outside"),
        ("runner: {completion: sure}", "bad-value"),
        ("runner: {budget: {wall_sec: .inf}}", "bad-value"),
        ("runner: {budget: {wall_sec: nan}}", "bad-value"),
        ("runner: {meta: {max_loops: 1001}}", "bad-value"),
        ("runner: {meta: }\nrunner: {}", "duplicate-key"),
        ("runner: {meta: }", "bad-value"),
        ("runner: [a]", "bad-value"),
        ("runner: {worker: {env: {A-B: x}}}", "bad-value"),
        ("runner: {worker: {env: {A: }}}", "bad-value"),
        ("runner: {worker: {env: {A: 'env:'}}}", "env-missing"),
        ("runner: {worker: {env: {A: 'env:NOT_THERE'}}}", "env-missing"),
        ("runner: {worker: {flags: x}}", "bad-value"),
        ("runner: &a {}", "forbidden-yaml"),
        ("runner: !!map {}", "forbidden-yaml"),
        ("runner: {}\n---\na: b", "forbidden-yaml"),
        ("? [a]\n: b", "forbidden-yaml"),
        ("runner:\n\tmeta: x", "yaml-syntax"),
        ("title: Fix: this", "yaml-syntax"),
        ("runner: " + "[" * 5000, "forbidden-yaml"),
    ],
)
def test_a_mistake_is_refused_with_place(load: Load, lines: str, code: str) -> None:
    error = failure(load, MINIMAL + lines + "\n")
    assert error.code == code
    assert error.path


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        (
            "task:\n  id: a\n   title: b\n",
            "mapping",
            "line 4 is indented by 3 spaces, more than",
        ),
        (
            "task:\n    id: a\n  title: b\n",
            "key",
            "line 4 is indented by 2 spaces, fewer than",
        ),
        ("task:\n\tid: a\n", "token", "not with tabs"),
        ("task:\n  title: Fix: a\n", "mapping", "double quotes"),
        ("task:\n  prd:\n    text: a\n  title: Fix: it\n", "mapping", "double quotes"),
        ("task:\n  id: a\n", "task.prd is missing", "prd: {path: FILE.md}, or prd: {text:"),
        ("task:\n  prd: docs/a.md\n", "must hold settings", "prd: {path: docs/a.md}"),
        ("task:\n  prd: fix it\n", "must hold settings", 'prd: {text: "…"}'),
        (
            "task:\n  prd: {path: docs/a.md}\n",
            "does not exist",
            "relative to the task file's folder",
        ),
    ],
)
def test_a_typical_slip_is_told_with_how_to_write_it(
    load: Load, text: str, told: str, remedy: str
) -> None:
    error = failure(load, f"version: 1\n{text}")
    assert told in error.message
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("- {description: a, line: 3}", "unknown-key"),
        ("- {description: a, chek: x}", "unknown-key"),
        ("- {id: a b, description: a}", "bad-value"),
        ("- {id: AC-1}", "missing-key"),
        ("- 'AC-1: a'\n  - {id: ac-1, description: b}", "duplicate-id"),
        ("- 'a (check: pytest)'", "bad-check"),
        ("- {description: a, check: {kind: command}}", "bad-check"),
        ("- {description: a, check: {kind: file, contains: x}}", "bad-check"),
        ("- {description: a, check: {kind: file, path: x, matches: '('}}", "bad-check"),
        ("- {description: a, check: {kind: file, path: ../x, exists: true}}", "outside"),
        ("- {description: a, check: {kind: command, run: x, cwd: /}}", "outside"),
        ("- [a]", "bad-value"),
        ("-", "bad-value"),
    ],
)
def test_a_mistake_in_a_criterion(load: Load, lines: str, code: str) -> None:
    error = failure(load, f"{MINIMAL_TASK}  acceptance_criteria:\n  {lines}\n")
    assert error.code == code
    assert error.path in ("task.yaml:5", "task.yaml:6")


MINIMAL_TASK = "version: 1\ntask:\n  prd: {text: x}\n"


def test_criteria_of_task_file_and_prd_are_one_list(load: Load, repo: Path) -> None:
    (repo / "p.md").write_text("---\nauthor: me\n---\n## Done when\n- a\n")
    spec = load(
        "version: 1\ntask:\n  prd: {path: p.md}\n  acceptance_criteria:\n"
        "  - b (optional)\n  - {id: AC-1, description: c, check: true}\n"
    )
    assert [(c.id, c.description, c.line) for c in spec.criteria] == [
        ("AC-2", "b", 5),
        ("AC-1", "c", 6),
        ("AC-3", "a", 5),
    ]
    assert spec.criteria[1].check is not None
    assert spec.criteria[1].check.run == "true"


def test_set_comes_first_and_the_named_options_win(load: Load) -> None:
    text = MINIMAL_TASK + "  test: {command: a, cwd: web}\nrunner: {meta: {max_loops: 1}}\n"
    spec = load(
        text,
        overrides=[
            "runner.meta.max_loops=2",
            "task.test.timeout_sec=7",
            "runner.budget={tokens: 9}",
            "runner.worker.kind=command",
        ],
        options={
            "max_loops": 3,
            "test": "b",
            "worker": "mock",
            "meta": "mock",
            "sandbox": "none",
            "approve": "plan, complete",
            "strict": True,
            "repo": None,
        },
    )
    test, runner = spec.task.test, spec.runner
    assert test is not None
    assert (test.command, test.cwd, test.timeout_sec) == ("b", "web", 7)
    assert (runner.meta.max_loops, runner.budget.tokens) == (3, 9)
    assert (runner.worker.kind, runner.sandbox.kind) == ("mock", "none")
    assert (runner.approve.plan, runner.approve.worker) == ("always", "never")
    assert spec.completion == "strict"


def test_none_in_place_of_a_test_command_runs_none(load: Load) -> None:
    """Whoever gives it: `run`, a plan's settings, the API."""
    text = "version: 1\ntask: {prd: {text: x}, test: {command: make test}}\n"
    assert load(text, options={"test": "none"}).task.test is None


def test_a_short_test_can_be_given_settings(load: Load) -> None:
    spec = load(MINIMAL_TASK + "  test: a\n", overrides=["task.test.cwd=web"])
    assert spec.task.test is not None
    assert (spec.task.test.command, spec.task.test.cwd) == ("a", "web")


def test_what_belongs_to_the_runner_may_be_named_without_it(load: Load) -> None:
    spec = load(MINIMAL, overrides=["worker.kind=mock", "budget.usd=3", "task.test.command=a"])
    assert spec.runner.worker.kind == "mock" and spec.runner.budget.usd == 3
    assert spec.task.test is not None and spec.task.test.command == "a"


@pytest.mark.parametrize(
    ("override", "code", "path"),
    [
        ("tsk.test.cwd=web", "unknown-key", "--set tsk.test.cwd"),
        ("worker.knd=mock", "unknown-key", "--set worker.knd"),
        ("runner.meta.max_loops", "bad-option", "--set"),
        ("=3", "bad-option", "--set"),
        ("runner..x=3", "bad-option", "--set"),
        ("version.x=3", "bad-option", "--set version.x"),
        ("runner.meta.max_loop=3", "unknown-key", "--set runner.meta.max_loop"),
        ("runner.meta.max_loops=x", "bad-value", "--set runner.meta.max_loops"),
        ("runner.meta.kind=[", "yaml-syntax", "--set runner.meta.kind:1"),
    ],
)
def test_a_mistake_in_set(load: Load, override: str, code: str, path: str) -> None:
    error = failure(load, MINIMAL, overrides=[override])
    assert (error.code, error.path) == (code, path)


def test_a_mistake_in_an_option_names_the_option(load: Load) -> None:
    error = failure(load, MINIMAL, options={"worker": "codex-clo"})
    assert (error.path, error.remedy) == ("--worker", "did you mean codex-cli?")
    assert failure(load, MINIMAL, options={"approve": "plam"}).remedy == "did you mean plan?"
    assert failure(load, MINIMAL, options={"max_loops": -1}).path == "--max-loops"


@pytest.mark.parametrize("kind", ["mock", "checklist"])
@pytest.mark.parametrize(
    ("option", "named"), [("planner_model", "--planner-model"), ("base_url", "--base-url")]
)
def test_an_option_about_a_model_is_refused_by_a_planner_without_one(
    load: Load, kind: str, option: str, named: str
) -> None:
    value = "http://127.0.0.1:8080/v1"
    error = failure(load, MINIMAL, options={"meta": kind, option: value})
    assert (error.code, error.path) == ("bad-option", named)
    assert kind in str(error)
    in_file = MINIMAL + f"runner: {{meta: {{kind: {kind}, model: m}}}}\n"
    assert load(in_file).runner.meta.kind == kind
    assert failure(load, in_file, options={option: value}).path == named
    load(MINIMAL, options={"meta": "openai-chat", option: value})


def test_which_setting_wins(load: Load) -> None:
    environ = {"OPENAI_MODEL": "b", "META_TIMEOUT_SEC": "7.5"}
    assert load(MINIMAL, environ=environ).runner.meta.model == "b"
    both = environ | {"AGENTRUNNER_META_MODEL": "a"}
    assert load(MINIMAL, environ=both).runner.meta.model == "a"
    assert load(MINIMAL, environ=environ).runner.meta.timeout_sec == 7.5
    text = MINIMAL + "runner: {meta: {model: c, timeout_sec: 3}}\n"
    meta = load(text, environ=both).runner.meta
    assert (meta.model, meta.timeout_sec) == ("c", 3)


@pytest.mark.parametrize("value", ["x", "0", "-1", "nan", "inf"])
def test_a_meta_timeout_that_is_none(load: Load, value: str) -> None:
    assert failure(load, MINIMAL, environ={"META_TIMEOUT_SEC": value}).path == "META_TIMEOUT_SEC"


def test_env_references_are_checked_now_and_resolved_later(load: Load) -> None:
    text = MINIMAL + (
        "runner:\n  worker:\n    env:\n      A: env:HOST_A\n      B: plain\n"
        "      C: literal:env:X\n      D: environment\n"
    )
    error = failure(load, text, environ={"HOST_A": ""})
    assert "HOST_A" in error.message
    assert (error.code, error.path, error.source_line) == ("env-missing", "task.yaml:6", "")
    env = load(text, environ={"HOST_A": "secret"}).runner.worker.env
    assert env["A"] == "env:HOST_A"
    assert resolve_env(env, {"HOST_A": "secret"}) == {
        "A": "secret",
        "B": "plain",
        "C": "env:X",
        "D": "environment",
    }
    with pytest.raises(UsageError, match="HOST_A"):
        resolve_env(env, {})


def test_a_line_that_may_hold_a_secret_is_not_shown(load: Load) -> None:
    error = failure(load, MINIMAL + "runner:\n  worker:\n    env:\n      A-B: hunter2\n")
    assert "hunter2" not in f"{error.message}{error.source_line}{error.remedy}{error.details}"


def test_auto_asks_for_a_test_command(load: Load, repo: Path) -> None:
    text = MINIMAL_TASK + "  test: auto\n"
    asked: list[Path] = []

    def detect(place: Path) -> str | None:
        asked.append(place)
        return "make test"

    spec = load(text, detect_test=detect)
    assert spec.task.test is not None
    assert (spec.task.test.command, asked) == ("make test", [repo])
    assert failure(load, text, detect_test=lambda place: None).code == "no-test"
    assert failure(load, text).path == "task.yaml:4"


def test_named_files_are_kept_with_the_task(load: Load, repo: Path) -> None:
    for name in ("replies.yaml", "patterns.yaml", "note.md"):
        (repo / name).write_text(f"{name}\n")
    spec = load(
        MINIMAL
        + "runner:\n  meta: {kind: script, script: replies.yaml}\n  patterns: patterns.yaml\n"
        "  note: {template: note.md}\n"
    )
    assert spec.script_text == "replies.yaml\n"
    assert spec.patterns_text == "patterns.yaml\n"
    assert spec.template_text == "note.md\n"


def test_languages(load: Load) -> None:
    assert load("# 登録\nユーザーを登録する\n", "p.md").language == "ja"
    spec = load("---\nrunner: {note: {language: en}}\n---\nユーザーを登録する\n", "p.md")
    assert (spec.language, spec.note_language) == ("ja", "en")


def test_changed_sources_are_told_with_a_diff(load: Load, repo: Path) -> None:
    (repo / "p.md").write_text("one\n")
    (repo / "r.yaml").write_text("[]\n")
    text = "version: 1\ntask: {prd: {path: p.md}}\nrunner: {meta: {kind: script, script: r.yaml}}\n"
    spec = load(text)
    assert changed_sources(spec) == []
    (repo / "p.md").write_bytes(b"\xef\xbb\xbfone\r\n")
    assert changed_sources(spec) == []
    (repo / "p.md").write_text("two\n")
    (repo / "r.yaml").unlink()
    (prd, diff), (script, gone) = changed_sources(spec)
    assert (prd, script) == (str(repo / "p.md"), str(repo / "r.yaml"))
    assert "-one\n+two" in diff
    assert "does not exist" in gone


def test_a_prd_that_is_the_task_file_is_compared_once(load: Load, repo: Path) -> None:
    spec = load(PRD, "p.md")
    (repo / "p.md").write_text(PRD + "more\n")
    assert len(changed_sources(spec)) == 1


def test_the_schema_accepts_what_the_loader_accepts_and_explains_every_key() -> None:
    schema = task_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    sample = yaml.safe_load(
        MINIMAL_TASK + "  test: pytest\n  acceptance_criteria: [a, {description: b, check: c}]\n"
        "runner: {worker: {command: [a, b]}, sandbox: {network: full}}\n"
    )
    jsonschema.validate(sample, schema)
    sample["runner"]["nonsense"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(sample, schema)
    models = [schema, *schema["$defs"].values()]
    unexplained = [
        name
        for model in models
        for name, p in model["properties"].items()
        if "description" not in p
    ]
    assert unexplained == []
    assert '"line"' not in json.dumps(schema)


@pytest.mark.parametrize("named", ["/", "~home", "missing", "file"])
def test_a_repository_that_cannot_be_one(
    load: Load, tmp_path: Path, repo: Path, named: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (repo / "file").write_text("")
    (tmp_path / "link").symlink_to(home)
    place = {"~home": str(tmp_path / "link")}.get(named, named)
    error = failure(load, MINIMAL, options={"repo": place}, environ={"HOME": str(home)})
    assert (error.code, error.path) == ("bad-repo", "--repo")


def test_links_to_the_repository_are_resolved(load: Load, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "link, with: marks\n").symlink_to(repo)
    spec = load(MINIMAL, options={"repo": "../link, with: marks\n"})
    assert spec.repo == str(repo)


def test_a_repository_of_another_user_is_refused(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: ours + 1)
    with pytest.raises(InfraError) as caught:
        load(MINIMAL)
    assert (caught.value.code, caught.value.exit_code) == ("repo-owner", 5)
    assert caught.value.nothing_spent


@pytest.mark.parametrize(
    ("globs", "message"),
    [
        ("paths: ['tests/**']\n    product: ['tests/**']", "is in task.test.paths and in"),
        ("product: [a]\n    paths: ['b', '/a/']", "names nothing in the repository"),
        ("product: ['../x']", "names nothing in the repository"),
        ("paths: ['/']", "names nothing in the repository"),
    ],
)
def test_globs_of_tests_and_of_the_product(load: Load, globs: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load(f"{MINIMAL_TASK}  test:\n    command: pytest\n    {globs}\n", "t.yaml")
    assert caught.value.path.startswith("t.yaml:")
    assert caught.value.remedy


def test_a_list_as_test_is_told_the_usual_form(tmp_path: Path) -> None:
    from agentrunner.config.mistakes import wrong_value

    details: Any = {"input": [1, 2], "type": "model_type", "msg": "", "loc": (), "url": ""}
    text, _ = wrong_value("task.test", details)
    assert text == "task.test must be a text, such as `test: pytest -q`, or settings."
