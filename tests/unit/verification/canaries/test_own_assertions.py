"""Assertions made to fail: each changed program is well-formed and red in its own way."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agentrunner.verification.canaries.own_assertions import failing_by_words
from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.failing_assertions import Failing, failing_in_tree
from tests.kit.missing import missing

NODE = """const assert = require('assert');
assert.strictEqual(1 + 1, 2);
assert(1 + 1 === 2);
console.assert(1 === 1);
if (1 + 1 !== 2) { process.exit(1); }
"""
PYTHON = "assert 1 + 1 == 2\nif 1 + 1 != 2:\n    raise SystemExit(1)\n"
PHP = """<?php // assert(1);
assert(1 + 1 === 2, "assert(0)");
\\assert(max(1, 2) === 2);
"""
PROGRAMS = {
    "node": (NODE, "javascript", ["assert.strictEqual", "assert", "if … exit"]),
    "python3": (PYTHON, "python", ["assert", "if … throw"]),
    "php": (PHP, "php", ["assert", "assert"]),
}


def made(source: bytes, language: str) -> list[Failing]:
    """The assertions of a program."""
    return (failing_by_words if language == "php" else failing_in_tree)(source, language)


@pytest.mark.parametrize("program", PROGRAMS)
def test_each_assertion_fails_and_is_reached(program: str, tmp_path: Path) -> None:
    if shutil.which(program) is None:
        missing(f"no {program}")
    text, language, kinds = PROGRAMS[program]
    source, path = text.encode(), tmp_path / "program"
    found = made(source, language)
    assert [one.kind for one in found] == kinds and all(one.sure for one in found)

    def ran(content: bytes) -> "subprocess.CompletedProcess[str]":
        path.write_bytes(content)
        on = ["-d", "zend.assertions=1"] if program == "php" else []
        run = [program, *on, str(path)]
        return subprocess.run(run, capture_output=True, text=True, timeout=60, check=False)

    assert ran(source).returncode == 0
    for one in found:
        failed = ran(applied(source, one.edits))
        assert failed.returncode > 0 and "syntax" not in failed.stderr.lower()
        assert ran(applied(source, one.kill)).returncode == -9
