"""The message of a commit, from a template and the results of a run. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import SandboxedEnvironment

from agentrunner.errors import UsageError
from agentrunner.errors.plans import BadCommitMessage
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import one_line, sanitize

DEFAULT_TEMPLATE = """\
{{ title }}
{% if proof %}

{% for line in proof %}
- {{ line }}
{% endfor %}
{% endif %}

{% if task_id %}
Task: {{ task_id }}
{% endif %}
{% if run_id %}
Run: {{ run_id }}
{% endif %}
"""
"""For a task's commit. A plan's own template may use the same names."""
MAX_CHARACTERS = 8_000
MAX_PROOF = 20
TITLE_WIDTH = 100
PROOF_WIDTH = 300
_JOINER = "\u2060"
_FORGE_REFERENCES = lazy_regex(
    r"""(?<=[@])(?=[\w/-])                  # a mention
      | (?<=[#!&%~$])(?=[\w"-])               # an issue, a request, an epic, a milestone, a label
      | (?<=\bGH-)(?=\d)
      | (?<=\bhttp:)(?=//) | (?<=\bhttps:)(?=//)""",
    re.VERBOSE | re.IGNORECASE,
)
_ERRORS = (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError)
"""What a person's own template can raise."""


def harmless(text: str, width: int) -> str:
    """Return text on one line that notifies nobody and closes nothing where a forge reads it.

    A word joiner, which is invisible, is put into mentions, references to issues and addresses:
    forges look for `fixes #1` in commits and in descriptions, on GitLab also in code.
    """
    return _FORGE_REFERENCES.sub(_JOINER, one_line(text, width))


def commit_message(
    template: str, *, title: str, proof: Sequence[str] = (), task_id: str = "", run_id: str = ""
) -> str:
    """Render the template with its values, which are single lines that fake no trailer and notify
    nobody.

    Raises UsageError (`commit-message`) for a template that cannot be rendered or is empty.
    """
    environment = SandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    try:
        text = environment.from_string(template).render(
            title=harmless(title, TITLE_WIDTH) or task_id,
            proof=[harmless(line, PROOF_WIDTH) for line in proof[:MAX_PROOF]],
            task_id=task_id,
            run_id=run_id,
        )
    except _ERRORS as error:
        raise _bad_template(str(error)) from error
    text = re.sub(r"\n{3,}", "\n\n", sanitize(text)).strip()[:MAX_CHARACTERS]
    if not text:
        raise _bad_template("it comes to an empty message")
    return text + "\n"


def _bad_template(why: str) -> UsageError:
    return BadCommitMessage(
        f"The template of commit messages cannot be used: {why}.",
        path="--commit-message",
        remedy="its names are title, proof, task_id and run_id",
    )
