"""Which language a program is in."""

import pytest

from agentrunner.verification.inputs.inline_programs import STEM, for_people
from agentrunner.verification.syntax.languages import program_language


@pytest.mark.parametrize(
    ("path", "first", "language"),
    [
        ("check", "#!/usr/bin/env python3", "python"),
        ("check", "#!/usr/bin/node", "javascript"),
        ("check", "#!/bin/bash -e", "sh"),
        ("check", "#!/usr/bin/perl5.36", "perl"),
        ("check.rb", "#!/bin/sh", "ruby"),
        ("t/a.t", "", "perl"),
        ("check.ts", "", "typescript"),
        ("check", "#!/usr/bin/shellcheck", ""),
        ("check.go", "", "go"),
        ("check", "", ""),
    ],
)
def test_a_program_is_known_by_its_ending_or_first_line(
    path: str, first: str, language: str
) -> None:
    assert program_language(path, first.encode()) == language


def test_people_read_of_the_command_not_of_a_file_of_ours() -> None:
    assert for_people(f"`assert` in src/{STEM}12ab_0.py has to fail") == (
        "`assert` in the command has to fail"
    )
