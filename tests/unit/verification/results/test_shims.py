"""Tools report wherever the command takes them from: PATH, a PATH of its own, or a path."""

import pytest

from agentrunner.verification.results.tools.base import shimmed


@pytest.mark.parametrize(
    ("command", "run"),
    [
        ("cargo test", "cargo test"),
        ("PATH=/opt/rust:$PATH cargo test", "PATH=/r/run:/opt/rust:$PATH cargo test"),
        ("export PATH=~/rust; cargo test", "export PATH=/r/run:~/rust; cargo test"),
        ("env PATH=/opt/rust cargo t", "env PATH=/r/run:/opt/rust cargo t"),
        ("cd a && ~/.cargo/bin/cargo test", 'cd a && PATH=/r/run:~/.cargo/bin:"$PATH" cargo test'),
        ("$HOME/bin/cargo test", 'PATH=/r/run:$HOME/bin:"$PATH" cargo test'),
        ("./cargo test", "./cargo test"),
        ("MYPATH=/x cargo test", "MYPATH=/x cargo test"),
    ],
)
def test_a_shim_comes_first(command: str, run: str) -> None:
    made = shimmed(command, "/r", "cargo")
    assert made.shell == run
    assert shimmed(made.shell, "/r", "cargo").shell == run
    assert list(made.files) == ["bin/cargo"]
