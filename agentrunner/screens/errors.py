"""The common form of error messages: what, where, and one thing to try."""

from __future__ import annotations

from agentrunner.errors import AgentRunnerError
from agentrunner.screens.layout import PLAIN, WIDTH, Paint, flat, hanging, pasteable, wrap
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import cell_width

_SHORT = 200
"""Characters of the longest advice that is shown whole with an error."""
_LINK = lazy_regex(r"\[([^][]*)\]\([^)]*\)")
_SENTENCE = lazy_regex(r"(?<=\.) (?=[A-Z`])")
DID_YOU_MEAN = "did you mean"
"""The beginning of a remedy that is a suggestion."""


def error_screen(
    error: AgentRunnerError, width: int = WIDTH, paint: Paint = PLAIN, columns: int = 0
) -> str:
    """Format `error[CODE]: sentence`, then place, details and remedy, each on its own line.

    `columns` are the terminal's; 0 without one, where no detail and no command is broken.
    """
    head = f"error[{flat(error.code)}]:"
    first, *rest = wrap(f"{head} {error.message}", width - 2)
    if error.nothing_spent and "nothing was spent" not in error.message.lower():
        rest.append("Nothing was spent.")
    lines = [first.replace(head, paint.bad(head), 1), *(f"  {line}" for line in rest)]
    if error.path:
        lines += hanging("  at ", f"{flat(error.path)}", columns)
        lines[-1] += _source(error.source_line)
    details = [
        line
        for label, text in error.details
        for line in _hanging(flat(label), text, width, columns)
    ]
    # A suggestion is about what stands at the place, not about the last of the details.
    if error.remedy.lower().startswith(DID_YOU_MEAN):
        return "\n".join([*lines, *wrap(error.remedy, width, "  "), *details])
    if not error.remedy:
        return "\n".join([*lines, *details, *wrap(f"try: {_advice(error)}", width, "  ")])
    return "\n".join([*lines, *details, *_hanging("try", error.remedy, width, columns)])


def _advice(error: AgentRunnerError) -> str:
    """Return what the page of an error's code advises; of a long one the first sentence."""
    from agentrunner.errors.reference import by_code, meaning_and_advice

    code = error.code.partition(":")[0]
    page = f"agentrunner explain {code}"
    kind = by_code().get(code)
    if kind is None:
        return page
    if "```" in meaning_and_advice(kind)[1]:  # lines that have to stay lines
        return page
    advice = " ".join(_LINK.sub(r"\1", meaning_and_advice(kind)[1]).split())
    if len(advice) <= _SHORT:
        return advice
    first = _SENTENCE.split(advice, maxsplit=1)[0]
    return f"{first} More: {page}" if len(first) <= _SHORT else page


def _source(line: str) -> str:
    return f"     {flat(line.strip())}" if line.strip() else ""


def _hanging(label: str, text: str, width: int, columns: int) -> list[str]:
    """Format `  label: text`."""
    lead = f"  {label}: "
    if "\n" not in text:
        too_wide = columns and cell_width(lead + flat(text)) > columns
        if too_wide and text.startswith("agentrunner ") and not set(text) & set(",;|"):
            return [lead.rstrip(), *pasteable(text, columns, "    ")]
        return hanging(lead, text, columns)
    lines = wrap(text, width, " " * len(lead))
    return [lead + lines[0].lstrip(), *lines[1:]]
