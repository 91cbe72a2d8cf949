"""Render facts as Markdown: templates, phrase tables in two languages, and a size limit.

Every value that a template prints is escaped unless it already is Markup (`finalize`), so that no
template, not even a person's own, can forget it.
"""

from __future__ import annotations

import functools
import json
import string
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import yaml
from jinja2 import DictLoader, StrictUndefined, Template, TemplateError
from jinja2.sandbox import SandboxedEnvironment
from markupsafe import Markup

from agentrunner.config.markdown import Language
from agentrunner.errors.runs import BadNoteTemplate
from agentrunner.notes import markdown
from agentrunner.notes.note_model import Label, Line, NoteView, TestFacts, next_step_of
from agentrunner.text.yaml_events import LOADER

MAX_BYTES = 1024 * 1024 - 1
TOP_LINES = 40
"""Most lines from the title to the rule under the summary."""
_TOP_FIXED = 24
"""The part of these lines that is always present."""
_UNESCAPED = ("safe", "forceescape", "tojson", "urlize", "xmlattr")
"""Jinja filters whose results would count as escaped."""
_TEMPLATE_FAULTS = (TemplateError, ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions that a person's own template can raise."""
_one_at_a_time = threading.Lock()
"""Runs of one process that end together would each compile the templates, in 2 MB."""
MARKER = "<!-- agentrunner-note "
"""Start of a note's first line; a JSON object and ` -->` follow."""


def render_note(
    view: NoteView, template: str, language: Language, template_text: str | None = None
) -> str:
    """Return the note as Markdown, under 1 MiB.

    `template` is one of NOTE_TEMPLATES; `template_text`, a person's own template, takes precedence.
    Raises UsageError if that template cannot be rendered.
    """
    with _one_at_a_time:
        words, environment = _words(language), _environment(language)
        if template_text is None:
            text = _rendered(environment.get_template(f"{template}.md.j2"), view)
        else:
            try:
                text = _rendered(environment.from_string(template_text), view)
            except _TEMPLATE_FAULTS as error:
                raise BadNoteTemplate(
                    f"the note's template cannot be rendered: {error}",
                    path="runner.note.template",
                ) from error
    return _fit(f"{_marker(view)}\n{text}", words, f"agentrunner logs {view.run_id}")


def render_plan(language: Language, **values: Any) -> str:
    """Return the note of a plan without its first line, from its built-in template."""
    text = _environment(language).get_template("plan.md.j2").render(**values)
    return _fit(text.strip() + "\n", _words(language), "agentrunner plan status")


class Words:
    """The phrases of one language."""

    def __init__(self, language: Language) -> None:
        self._phrases = _phrases(language)
        self._formatter = _Formatter(self)
        self.language = language

    def __call__(self, key: str, **values: Any) -> Markup:
        """Return a phrase with its values, escaped as the phrase specifies."""
        phrase = self._phrases[key]
        if not isinstance(phrase, str):
            phrase = phrase["one" if values.get("n") == 1 else "other"]
        text = self._formatter.vformat(phrase, (), values)
        if more := values.get("more"):
            text += f" {self('and_more', n=more)}"
        return Markup(text.rstrip() if values else text)

    def say(self, sentence: Line) -> Markup:
        return self(sentence.key, **sentence.values)

    def sentences(self, several: Iterable[Line]) -> Markup:
        return self("sentence_gap").join(map(self.say, several))

    def counts(self, test: TestFacts) -> Markup:
        return self._counts(test.exit_code, test.passed, test.failed)

    def counts_before(self, test: TestFacts) -> Markup:
        if test.before_exit is None:
            return self("tests_no_before")
        before = self._counts(test.before_exit, test.before_passed, test.before_failed)
        return self("tests_before", counts=before)

    def _counts(self, exit_code: int | None, passed: int | None, failed: int | None) -> Markup:
        if passed is None:
            return self("tests_exit", exit=exit_code)
        return self("tests_counts", passed=passed, failed=failed or 0)

    def duration(self, seconds: float) -> str:
        """Format a duration for people."""
        hour, minute, second = ("時間", "分", "秒") if self.language == "ja" else ("h", "m", "s")
        if seconds < 60:
            return f"{seconds:.1f} {second}"
        minutes, rest = divmod(round(seconds), 60)
        if minutes < 60:
            return f"{minutes} {minute} {rest} {second}"
        return f"{minutes // 60} {hour} {minutes % 60} {minute}"

    def tokens(self, number: int) -> Markup:
        """Round a number of tokens: "433k tokens", or "43.3 万トークン"."""
        if self.language == "ja":
            amount = f"{number / 10_000:.1f} 万" if number >= 10_000 else f"{number} "
        elif number >= 1_000_000:
            amount = f"{number / 1_000_000:.1f}M"
        else:
            amount = f"{number / 1000:.0f}k" if number >= 1000 else str(number)
        return self("tokens", amount=Markup(amount))


class _Formatter(string.Formatter):
    """Escapes every value: `{x}` as words, `{x:code}` as code, `{x:cell}` as code in a table."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def format_field(self, value: Any, format_spec: str) -> str:
        escape = _ESCAPES[format_spec]
        if isinstance(value, list | tuple):
            gap = " " if format_spec else self._words("list_gap")
            return gap.join(map(escape, value))
        return escape(value)


def _plain(value: object) -> Markup:
    return value if isinstance(value, Markup) else markdown.inline(value)


_ESCAPES: Mapping[str, Callable[[Any], Markup]] = {
    "": _plain,
    "code": markdown.code,
    "cell": markdown.cell_code,
}


@functools.cache
def _phrases(language: Language) -> Mapping[str, str | Mapping[str, str]]:
    phrases: dict[str, str | Mapping[str, str]] = yaml.load(
        _resource(f"{language}.yaml"), Loader=LOADER
    )
    return phrases


@functools.cache
def _words(language: Language) -> Words:
    return Words(language)


def _resource(name: str) -> str:
    return _templates().joinpath(name).read_text("utf-8")


def _templates() -> Traversable:
    return resources.files(__package__).joinpath("templates")


@functools.cache
def _environment(language: Language) -> SandboxedEnvironment:
    words = _words(language)
    names = [one.name for one in _templates().iterdir() if one.name.endswith(".md.j2")]
    environment = SandboxedEnvironment(
        loader=DictLoader({name: _resource(name) for name in names}),
        undefined=StrictUndefined,
        autoescape=True,  # so that blocks and macros return Markup, which is not escaped again
        finalize=_plain,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for name in _UNESCAPED:
        del environment.filters[name]
    environment.filters |= {
        "e": markdown.inline,
        "escape": markdown.inline,
        "inline": markdown.inline,
        "code": markdown.code,
        "codes": _codes,
        "fence": markdown.fence,
        "say": words.say,
        "sentences": words.sentences,
        "counts": words.counts,
        "counts_before": words.counts_before,
        "duration": words.duration,
        "tokens": words.tokens,
        "size": size,
    }
    environment.globals = {"t": words, "range": range}
    return environment


def _codes(texts: Sequence[str]) -> Markup:
    return Markup(" ").join(markdown.code(text) for text in texts)


def size(count: int) -> str:
    """Format a number of bytes for people."""
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def _rendered(template: Template, view: NoteView) -> str:
    spent = _TOP_FIXED + len(view.decide) + len(view.commands) + len(view.risks)
    room = TOP_LINES - spent
    rows = view.first(room if len(view.criteria) <= room else room - 1)
    heading = _heading(view.label)
    left = len(view.criteria) + view.criteria_omitted - len(rows)
    text = template.render(note=view, top_rows=rows, top_rows_left=left, decide_heading=heading)
    return text.strip() + "\n"


def _heading(label: Label) -> str:
    """Return the heading above what a person has to do, as a key of the phrase tables."""
    if label == "WAITING":
        return "heading_answer"
    if label == "STOPPED":
        return "heading_go_on"
    return "heading_missing" if next_step_of(label) == "retry" else "heading_decide"


def _marker(view: NoteView) -> str:
    return marker({"run_id": view.run_id, "task_id": view.task_id, "state": view.state})


def marker(facts: Mapping[str, str]) -> str:
    """Return the first line of a note: its owner, for `writer` and for other tools."""
    # It must not contain a sequence that ends an HTML comment.
    text = json.dumps({"version": 1, **facts}).replace("--", "-\\u002d").replace(">", "\\u003e")
    return f"{MARKER}{text} -->"


def _fit(text: str, words: Words, command: str) -> str:
    """Cut `text` to the limit at a line end, close what is open, and add a notice.

    `command` is the one that shows everything.
    """
    raw = text.encode("utf-8", "replace")
    if len(raw) <= MAX_BYTES:
        return text
    kept = raw[: MAX_BYTES - 4096].decode("utf-8", "ignore")
    kept = kept[: kept.rfind("\n") + 1]
    notice = words("cut", command=command)
    return f"{kept}{_closing(kept)}\n{notice}\n"


def _closing(text: str) -> str:
    """Return what closes an open fence and `<details>` at the end of our own Markdown."""
    ticks, details = "", False
    for line in text.splitlines():
        run = line[: len(line) - len(line.lstrip("`"))]
        if ticks:
            ticks = "" if line == run and len(run) >= len(ticks) else ticks
        elif len(run) >= 3:
            ticks = run
        elif line.startswith("<details>"):
            details = True
        elif line == "</details>":
            details = False
    return (f"{ticks}\n" if ticks else "") + ("\n</details>\n" if details else "")
