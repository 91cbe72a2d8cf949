"""Regular expressions that are compiled when they are first used.

A start imports hundreds of them and needs a few: compiling all took a tenth of its time.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyRegex:
    """Stands for a `re.Pattern`; has its methods from the first use on."""

    def __init__(self, source: str | bytes, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(re.compile(self._source, self._flags), name)
        # Found in the instance next time, without coming here.
        self.__dict__[name] = value
        return value


def lazy_regex(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` would, compiled at its first use; raises `re.error` only then.

    Only its own methods and attributes can be used: `re.search(it, …)` takes it for no pattern.
    """
    return cast("re.Pattern[AnyStr]", _LazyRegex(source, flags))
