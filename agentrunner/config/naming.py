"""Ids of tasks: which are safe as part of a file name, and those of tasks that were given none."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from datetime import date

TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
"""Ids become file names: no separator, no leading dot or dash, nothing a shell trips on."""

DEVICE_NAMES = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")
"""Names that are devices on Windows, where a checkout with the task's note may go."""

_LENGTH = 48


def is_safe_id(text: str) -> bool:
    """Whether `text` can be a task id, and so part of a file name."""
    return (
        TASK_ID.fullmatch(text) is not None
        and ".." not in text
        and DEVICE_NAMES.fullmatch(text) is None
    )


def task_id_from(stem: str, title: str, today: date | None, text: str = "") -> str:
    """A file name as it is or as a slug, else a slug of the title, else `task-MMDD-xxxx`.

    The last four are of the digest of `text`, what is to be done: two tasks of one day that have
    neither name nor title are two, and the same one again is the same.
    """
    if is_safe_id(stem):
        return stem
    return slug(stem) or slug(title) or _untitled(today, text)


def _untitled(today: date | None, text: str) -> str:
    if today is None:
        return "task"
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:4]
    return f"task-{today:%m%d}-{digest}"


def slug(text: str) -> str:
    """`Register users over HTTP` → `register-users-over-http`; "" where most of it would be lost.

    Of 「ユーザー登録 API」 only `api` would be left, which names anything.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9_]+", "-", plain.lower()).strip("-_")
    kept, all_ = sum(map(str.isalnum, words)), sum(map(str.isalnum, text))
    if kept * 2 < all_ or not words:
        return ""
    if len(words) > _LENGTH:
        words = words[:_LENGTH].rsplit("-", 1)[0].strip("-_")
    return words if is_safe_id(words) else f"task-{words}"
