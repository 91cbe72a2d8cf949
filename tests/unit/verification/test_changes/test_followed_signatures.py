"""Tests and doubles that follow what a function takes now."""

from __future__ import annotations

import pytest

from agentrunner.verification.test_changes.signatures import changed_heads, follows_heads

OLD = b"class Client:\n    def __init__(self, host):\n        self.host = host\n"
NEW = b"class Client:\n    def __init__(self, host, timeout):\n        self.host = host\n"
ASKED = "A Client must be given a timeout."


@pytest.mark.parametrize(
    ("before", "after", "asked", "follows"),
    [
        ('c = Client("h")\n', 'c = Client("h", timeout=10)\n', ASKED, True),
        ('c = Client("h")\n', 'c = Client("h", timeout=10)\n', "Make it fast.", False),
        ('c = Client("h")\n', 'c = Client("x", timeout=10)\n', ASKED, False),
        ('c = Client("h")\nassert c.a == 1\n', 'c = Client("h", 1)\nassert c.a\n', ASKED, False),
        ("c = other(1)\n", "c = other(1, 2)\n", ASKED, False),
    ],
)
def test_only_what_is_taken_now(before: str, after: str, asked: str, follows: bool) -> None:
    heads = changed_heads([(OLD, NEW)])
    found = follows_heads(before.encode(), after.encode(), "python", heads, asked)
    assert found is follows


def test_a_double_in_go() -> None:
    heads = changed_heads(
        [(b"type S interface { Get(id int) }", b"type S interface { Get(ctx C, id int) }")]
    )
    assert follows_heads(
        b"package a\nfunc (f fake) Get(id int) int { return f[id] }\n",
        b"package a\nfunc (f fake) Get(ctx C, id int) int { return f[id] }\n",
        "go",
        heads,
        "Get takes a ctx as its first argument.",
    )


def test_a_head_that_takes_functions() -> None:
    old = b"package a\nfunc Fetch(get func() (string, error), tries int) error { return nil }\n"
    new = old.replace(b"Fetch(get", b"Fetch(ctx context.Context, get")
    test = (
        b"package a\nfunc TestFetch(t *testing.T) { Fetch(func() (string, error) { return }, 3) }\n"
    )
    assert follows_heads(
        test,
        test.replace(b"Fetch(func", b"Fetch(context.Background(), func"),
        "go",
        changed_heads([(old, new)]),
        "`Fetch` should take a `context.Context` as its first parameter.",
    )
