"""What a command does not tell."""

import pytest

from agentrunner.verification.evidence.outcomes import hint_of
from agentrunner.verification.results.model import Results

CARGO = "test result: FAILED. 1 passed; 1 failed\nerror: test failed, to rerun pass `--lib`\n"
MINI = "Finished in 0.01s\n3 runs, 4 assertions, 1 failures, 0 errors, 0 skips\n"


@pytest.mark.parametrize(
    ("shell", "code", "tail", "results", "said"),
    [
        ("cargo test", 101, CARGO, Results("cargo"), "--no-fail-fast"),
        ("cargo test --no-fail-fast", 101, CARGO, Results("cargo"), ""),
        ("cargo test", 101, f"{CARGO}error: 1 target failed:\n    `--lib`\n", None, ""),
        ("cargo test", 0, CARGO, Results("cargo"), ""),
        ("ruby test/a.rb", 1, MINI, None, "by the names"),
        ("ruby test/a.rb", 1, MINI, Results("minitest"), ""),
        ("pytest", 1, "1 failed", None, ""),
    ],
)
def test_hints(shell: str, code: int, tail: str, results: Results | None, said: str) -> None:
    hint = hint_of(shell, code, tail, results)
    assert (said in hint) if said else hint == ""
