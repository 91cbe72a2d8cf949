"""Interpreters: the script that one runs, what it loads first, and the data passed to it."""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.context import Context
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.results.commands import LOADED_FIRST

INTERPRETERS = lazy_regex(
    r"^(node|nodejs|deno|bun|ruby|perl|php|lua|tsx|ts-node|Rscript|julia)\d*$"
)
CODE = frozenset({"-e", "-c", "--eval", "-p", "--print", "-E", "-pe", "-ne"})


def run_interpreter(context: Context, step: Step, words: list[str], by: str) -> None:
    """Follow `node x.js`, `ruby -Itest test/a.rb`, `perl -e …`."""
    program = step.program
    while words and words[0].startswith("-"):
        name, equals, value = words[0].partition("=")
        if name in LOADED_FIRST or (name == "-I" and program == "perl"):
            value = value if equals else (words[1] if len(words) > 1 else "")
            if path := context.file(step.folder, value):
                context.add(path, "it is loaded before the tests", "runner")
            words = words if equals else words[1:]
        elif name in CODE:
            return
        words = words[1:]
        while len(words) > 1 and _is_value(context, step, words[0]):
            words = words[1:]
    if program in ("deno", "bun") and words[:1] == ["run"]:
        words = words[1:]
        while words and words[0].startswith("-"):
            words = words[1:]
    if words and (path := context.existing(step.folder, words[0])):
        if path in context.tree.folders:  # `node .` runs the package's entry
            return
        context.execute(path, step, by)
        hand_over(context, step, words[1:], by)


def _is_value(context: Context, step: Step, word: str) -> bool:
    """Whether a word after an option is its value: `php -d zend.assertions=1 tests/run.php`."""
    if word.startswith("-") or word == "run":
        return False
    return not context.existing(step.folder, word)


def hand_over(context: Context, step: Step, words: list[str], by: str) -> None:
    """Record what a program of the project gets as arguments: data, not a test."""
    for word in words:
        value = word.partition("=")[2] if word.startswith("-") else word
        if path := context.file(step.folder, value):
            context.data.setdefault(path, f"{by} hands it to {step.words[0]}")
