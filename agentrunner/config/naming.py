"""Task ids: which ones are safe as part of a file name, and how one is made if none is given."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from datetime import date

from agentrunner.text.lazy_regex import lazy_regex

TASK_ID = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
"""Ids become file names: no separator, no leading dot or dash, nothing that a shell interprets."""

DEVICE_NAMES = lazy_regex(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
"""Names of devices on Windows, where the task's note may be checked out."""

_LENGTH = 48


def is_safe_id(text: str) -> bool:
    """Whether `text` can be a task id, and so part of a file name."""
    return (
        TASK_ID.fullmatch(text) is not None
        and ".." not in text
        and DEVICE_NAMES.fullmatch(text) is None
    )


def task_id_from(stem: str, title: str, today: date | None, text: str = "") -> str:
    """Return the file name as it is or as a slug, else a slug of the title, else `task-MMDD-xxxx`.

    The last four characters are from the digest of `text`, the requirements: two tasks of one day
    without name and title get different ids, the same task again gets the same one.
    """
    if is_safe_id(stem):
        return stem
    return slug(stem) or slug(title) or _untitled_id(today, text)


def _untitled_id(today: date | None, text: str) -> str:
    if today is None:
        return "task"
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:4]
    return f"task-{today:%m%d}-{digest}"


def slug(text: str) -> str:
    """`Register users over HTTP` → `register-users-over-http`; "" if most of the text would be
    lost.

    For example, of 「ユーザー登録 API」 only `api` would remain, which could name anything.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9_]+", "-", plain.lower()).strip("-_")
    kept, all_ = sum(map(str.isalnum, words)), sum(map(str.isalnum, text))
    if kept * 2 < all_ or not words:
        return ""
    if len(words) > _LENGTH:
        words = words[:_LENGTH].rsplit("-", 1)[0].strip("-_")
    return words if is_safe_id(words) else f"task-{words}"
