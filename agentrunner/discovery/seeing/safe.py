"""Text of a repository made fit for a prompt, and which files are not shown at all."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from agentrunner.git.snapshot_writer import LARGE_MARK
from agentrunner.sandboxes.deny import holds_secret
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.terminal import escape, one_line

Redact = Callable[[str], str]

_CREDENTIALS = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
    "id_*", ".netrc", "_netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", ".htpasswd",
    "credentials", "credentials.*", "secrets.*",
)  # fmt: skip
"""Names of files that are kept for credentials. What they hold cannot tell: a key without any
word around it is only a long text."""
_ONLY_NAMES = (".env.example", ".env.sample", ".env.template", ".env.dist")
_PUBLIC = (".pub",)
_CONTROL = lazy_regex(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")
MOST_SCANNED = 64 << 10
NAME_CELLS = 200


def shown_text(data: bytes, redact: Redact) -> str:
    """The content as it may be shown: without secrets, nothing in it invisible, nothing removed.

    Escape sequences are written out rather than taken away: what runs would else be hidden.
    """
    return clean_text(data.decode("utf-8", "replace"), redact)


def clean_text(text: str, redact: Redact) -> str:
    """The same for text."""
    return escape(redact(text.replace("\r\n", "\n")))


def shown_name(path: str) -> str:
    """A path on one line; what cannot be seen in it is written out."""
    return one_line(escape(path), NAME_CELLS)


def is_binary(data: bytes) -> bool:
    """Whether this is no text: a tenth of it cannot be read as such.

    A single NUL, or what git and .gitattributes say, makes no file one: a script may hold both.
    """
    sample = data[:MOST_SCANNED]
    odd = len(_CONTROL.findall(sample)) + sample.decode("utf-8", "replace").count("\ufffd")
    return odd * 10 > len(sample)


def is_stand_in(data: bytes) -> bool:
    """Whether a snapshot kept only size and times of the file."""
    return data.startswith(LARGE_MARK)


def is_hidden(path: str, data: bytes) -> bool:
    """Whether nothing of a file is shown."""
    return is_binary(data) or is_stand_in(data) or holds_credentials(path, data)


def holds_credentials(path: str, data: bytes = b"") -> bool:
    """Whether a file looks like one for credentials: by its name, or as a key that it begins with.

    `data` is its content, where it was read; small settings files are judged by it, too.
    """
    name = PurePosixPath(path).name.lower()
    if name.endswith(_PUBLIC) or name in _ONLY_NAMES:
        return False
    if any(fnmatchcase(name, pattern) for pattern in _CREDENTIALS):
        return not _is_source(name)
    return b"PRIVATE KEY-----" in data[:MOST_SCANNED] and holds_secret(data[:MOST_SCANNED])


def _is_source(name: str) -> bool:
    """`id_map.py`, `secrets.go`: code, whose literals the redaction is for."""
    from agentrunner.verification.syntax.languages import language_of

    return language_of(name) is not None or name.endswith((".rb", ".php", ".c", ".h", ".cs", ".sh"))
