"""What a planner asks to see before it answers: `looks` in any message, or a message of its own."""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from agentrunner.protocol.wire import Remark, Warnings, Wire, fault, is_unset

AT_ONCE = 8
"""Maximum number of looks per reply that are answered; the rest is ignored."""
SHOWN_CHARS = 200
"""Length limit of one look's description for people."""
FORMS = ("read", "search", "list", "diff", "output")
_WORDS = {"from": "first", "to": "last", "in": "folder"}
"""Wire keys that would be bad Python names."""


def has_form(look: Any, form: str) -> bool:
    """Whether a raw look has this form; it may have others as well."""
    value = look.get(form) if isinstance(look, dict) else None
    return not is_unset(value)


class Look(Wire):
    """One thing to look at, in exactly one of its forms."""

    read: Remark | None = None
    """A file as it is now; `first` and `last` are lines, counted from 1."""
    search: Remark | None = None
    """A text, in all files or below `folder`."""
    list: Remark | None = None
    """A folder."""
    diff: Remark | None = None
    """What changed in a file since before the task."""
    output: Remark | None = None
    """What a worker run or the tests printed; `first` is a character, counted from 0."""
    first: int | None = Field(None, ge=0, le=1_000_000_000)
    last: int | None = Field(None, ge=0, le=1_000_000_000)
    folder: Remark | None = None

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Rename the wire keys; drop empty texts and null."""
        named = {_WORDS.get(key, key): value for key, value in data.items()}
        return {k: v for k, v in named.items() if not is_unset(v)}

    @model_validator(mode="after")
    def _one_form(self) -> Look:
        forms = [name for name in FORMS if getattr(self, name) is not None]
        if len(forms) != 1:
            raise fault("invalid", "", f"a look has exactly one of {', '.join(FORMS)}")
        return self

    @property
    def form(self) -> str:
        """Which of FORMS it is."""
        return next(name for name in FORMS if getattr(self, name) is not None)

    @property
    def what(self) -> str:
        """The value of its form."""
        return str(getattr(self, self.form))

    @property
    def in_words(self) -> str:
        """A description for people: `read src/a.py from 1 to 80`."""
        within = {"in": self.folder, "from": self.first, "to": self.last}
        more = [f"{key} {value}" for key, value in within.items() if value is not None]
        text = " ".join((self.form, self.what, *more))
        return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"


class Looks(Wire):
    """What a planner wants to see instead of answering."""

    looks: list[Look] = Field(min_length=1, max_length=2000)
