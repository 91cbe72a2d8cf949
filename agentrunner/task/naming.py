"""Ids for tasks that were given none."""

from __future__ import annotations

import re
import unicodedata
from datetime import date

from agentrunner.task.spec import is_safe_id

_LENGTH = 48


def task_id_from(stem: str, title: str, today: date | None) -> str:
    """A file name as it is or as a slug, else a slug of the title, else `task-MMDD`."""
    if is_safe_id(stem):
        return stem
    return slug(stem) or slug(title) or (f"task-{today:%m%d}" if today else "task")


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
