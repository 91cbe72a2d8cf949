"""The file that `agentrunner init` writes, for a person to fill in and run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence

from agentrunner.discovery.found import FoundCommand

_PRD = """\
---
{test}
{setup}{env}
# protect: ["tests/golden/**"]        # globs that no worker may change
# runner:
#   meta: {{kind: checklist}}           # without a planning model: the checks alone decide
#   worker: {{max_run_time_sec: 1800}}
---
# {title}

<!-- What should be different afterwards, for whom, and why. The worker reads this text. -->

## Acceptance criteria

<!-- One list item for each thing that must be true. With a check it is proven, without one it
     rests on a judgement. These lines are a comment; write yours below it.

- [ ] What is true when it is done (check: `{enter}a command that exits 0 then`)
- [ ] One test of the test command decides (check: test `test_name`)
- [ ] A text stands in a file (check: file {below}README.md contains "## Usage")
- [ ] (optional) What would be nice but may be missing
-->
"""

_YAML = """\
version: 1
task:
  id: {name}
  title: {title}
  prd:
    # What should be different afterwards, for whom, and why. The worker reads this text.
    text: ""
    # path: docs/prd.md                 # instead of text; give one of the two
{setup}{env}
{test}
  # One item for each thing that must be true. With a check it is proven, without one it rests on
  # a judgement. Or with keys: {{description: …, critical: false, check: "COMMAND"}}
  acceptance_criteria: []
  # - "What is true when it is done (check: `{enter}a command that exits 0 then`)"
  # - "One test of the test command decides (check: test `test_name`)"
  # - "(optional) What would be nice but may be missing"
  # protect: ["tests/golden/**"]        # globs that no worker may change
# runner:
#   meta: {{kind: checklist}}             # without a planning model: the checks alone decide
#   worker: {{max_run_time_sec: 1800}}    # seconds
"""


def render_task_file(
    name: str,
    *,
    tests: FoundCommand | None,
    setup: FoundCommand | None,
    hosts: Sequence[str] = (),
    env: FoundCommand | None = None,
    part: str = ".",
    yaml: bool = False,
) -> str:
    """Return a PRD with front matter (or, with `yaml`, a task file) for a task called `name`.

    `name` is a safe task id, `hosts` are the hosts that the set-up fetches from, `env` is a mapping
    of variables as YAML, and `part` is the folder in which the tests run. `validate` refuses the
    file until the person has filled in the rest.
    """
    margin = "  " if yaml else ""
    inside = part != "."
    value = _quoted(tests.command) if tests else ""
    value = f"{{command: {value}, cwd: {_quoted(part)}}}" if inside else value
    network = f", network: [{', '.join(map(_quoted, hosts))}]" if hosts else ""
    ready = f"{{command: {_quoted(setup.command)}{network}}}" if setup else ""
    title = name.replace("-", " ").replace("_", " ").strip().capitalize()
    return (_YAML if yaml else _PRD).format(
        name=_quoted(name),
        title=_quoted(title) if yaml else title,
        test=_setting("test", value, tests, margin),
        enter=f"cd {shlex.quote(part)} && " if inside else "",
        below=f"{part}/" if inside else "",
        setup=_setting("setup", ready, setup, margin),
        env=f"\n{_setting('env', env.command, env, margin)}" if env else "",
    )


def _setting(key: str, value: str, found: FoundCommand | None, margin: str) -> str:
    if found is None:
        example = '"COMMAND"' if key == "test" else '{command: "COMMAND"}'
        comment = "runs the tests" if key == "test" else "once per sandbox, before the tests"
        return f"{margin}# {key}: {example}    # {comment}"
    return f"{margin}{key}: {value}    # {found.where}"


def _quoted(text: str) -> str:
    """Format as a double-quoted YAML scalar; JSON strings are valid ones."""
    return json.dumps(text, ensure_ascii=False)
