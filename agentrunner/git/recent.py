"""A cache of objects read from a store: they never change, so none is read twice in a row."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sized
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Sized)


class Recent(Generic[Value]):
    """The most recently used values by the name of their object, up to a total size.

    Sizes are those of `len`: bytes of a content, entries of a listing. A value larger than half of
    the total is read each time, so that it does not push all the others out; with `least`, that
    many of the last values are kept whatever their size. Thread-safe; two threads that ask for the
    same name at once may both read it.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        self._most = most
        self._least = least
        self._size = 0
        self._values: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, read: Callable[[], Value]) -> Value:
        """Return the value of an object, read if it is not cached; raises what `read` raises."""
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
                return self._values[name]
        value = read()
        self.keep(name, value)
        return value

    def known(self, names: Iterable[str]) -> dict[str, Value]:
        """Return the cached ones of the values, by name."""
        with self._lock:
            return {name: self._values[name] for name in names if name in self._values}

    def latest(self) -> tuple[str, Value] | None:
        """Return the name and value that were used last; None if nothing is cached."""
        with self._lock:
            name = next(reversed(self._values), None)
            return None if name is None else (name, self._values[name])

    def keep(self, name: str, value: Value) -> None:
        """Put the value of an object into the cache."""
        with self._lock:
            if name not in self._values and (self._least or len(value) <= self._most // 2):
                self._values[name] = value
                self._size += len(value)
            while self._size > self._most and len(self._values) > self._least:
                self._size -= len(self._values.popitem(last=False)[1])
