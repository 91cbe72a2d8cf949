"""What was read of late is at hand, up to a size, and is never another object's."""

from __future__ import annotations

import pytest

from agentrunner.git.blobs import Recent


class Store:
    """Values by name that counts how often each was read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def value(self, name: str) -> bytes:
        self.read.append(name)
        return name.encode() * 10


def ask(recent: Recent[bytes], store: Store, names: str) -> None:
    for name in names:
        assert recent.get(name, lambda name=name: store.value(name)) == name.encode() * 10  # type: ignore[misc]


def test_a_value_is_read_once_while_there_is_room() -> None:
    store = Store()
    ask(Recent(30), store, "abcabcab")
    assert store.read == list("abc")


def test_the_one_that_was_used_longest_ago_goes_first() -> None:
    store = Store()
    ask(Recent(20), store, "abacaab")
    assert store.read == list("abcb")


def test_one_that_would_take_most_of_the_room_is_not_kept() -> None:
    store = Store()
    ask(Recent(15), store, "aa")
    assert store.read == list("aa")


def test_what_could_not_be_read_is_tried_again() -> None:
    recent: Recent[bytes] = Recent(30)

    def gone() -> bytes:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        recent.get("a", gone)
    assert recent.get("a", lambda: b"x") == b"x"


def test_the_last_few_are_kept_whatever_their_size() -> None:
    store, recent = Store(), Recent[bytes](15, least=2)
    ask(recent, store, "abab")
    assert store.read == list("ab")
    assert recent.latest() == ("b", b"b" * 10)
    ask(recent, store, "cba")
    assert store.read == list("abca")
