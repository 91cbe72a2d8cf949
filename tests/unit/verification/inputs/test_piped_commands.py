"""Commands of which something else reads the output."""

from __future__ import annotations

import pytest

from agentrunner.verification.inputs.shell import piped_commands


@pytest.mark.parametrize(
    ("shell", "found"),
    [
        ("! ./report | grep -v 'EUR$'", ["./report"]),
        ('test -z "$(./report a | grep -v EUR)"', ["./report a"]),
        ('[ "$(./a | grep -v x | wc -l)" -eq 0 ]', ["./a"]),
        ("bash -c 'diff <(./a) <(./a --sorted)'", ["./a", "./a --sorted"]),
        ("cat f | ./a | grep -q x && echo ok", ["cat f | ./a"]),
        ("cd app && ! ./run 2>&1 | grep -i error", ["./run 2>&1"]),
        ("if ./a | grep b; then exit 1; fi", ["./a"]),
        ("./a && ./b || exit 1", []),
        ("! grep -n 'a | b' src/*.py", []),
        ("test $(ls | wc -l) -eq $((1 + 2))", []),
        ("make test", []),
        ("", []),
        ("! ./a | grep 'x", ["./a"]),
    ],
)
def test_piped_commands(shell: str, found: list[str]) -> None:
    assert [shell[left:right].strip() for left, right in piped_commands(shell)] == found
