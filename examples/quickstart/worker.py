"""Stands in for a coding agent, so that the demo needs no key and no model.

Like an agent it gets a prompt on stdin, looks for what is red, and edits the repository it stands
in. Unlike one it knows only the repairs below, and it makes a single one per run: the first whose
symptom it can see. It takes nobody's word: without evidence in the prompt it runs the tests.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in a file."""

    path: str
    old: str
    new: str


@dataclass(frozen=True)
class Repair:
    """What to do where `symptom` is among the red things."""

    symptom: str
    why: str
    edits: tuple[Edit, ...]


REPAIRS = (
    Repair(
        "test_total_counts_every_piece",
        "A total added up the lines and forgot how many pieces each has.",
        (
            Edit(
                "shop/cart.py",
                "sum(line.price for line in lines)",
                "sum(line.price * line.pieces for line in lines)",
            ),
        ),
    ),
    Repair(
        "AC-2",
        "Cents below ten were written without their zero.",
        (
            Edit("shop/money.py", "{cents % 100}", "{cents % 100:02}"),
            Edit("README.md", "shown in euros.", "shown in euros, always with two decimals."),
        ),
    ),
)


def main() -> int:
    """Make one repair; 0 where one was made."""
    red = failing_in(sys.stdin.read()) or failing_tests()
    print("red:", ", ".join(red) or "nothing")
    for repair in REPAIRS:
        if repair.symptom in red:
            print(repair.why)
            made = [apply(edit) for edit in repair.edits]
            return 0 if all(made) else 1
    print("I know no repair for that.")
    return 1


def failing_in(prompt: str) -> list[str]:
    """Tests and criteria that the prompt lists as red, in its order."""
    _, _, evidence = prompt.partition("## What is not right yet")
    evidence = re.split(r"^#|^Acceptance criteria", evidence, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^- (?:failing: )?([\w-]+)", evidence, re.MULTILINE)


def failing_tests() -> list[str]:
    """Tests that are red here and now."""
    command = [sys.executable, "-m", "unittest"]
    print("$ python3 -m unittest")
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    return re.findall(r"^(?:FAIL|ERROR): (\w+)", ran.stderr, re.MULTILINE)


def apply(edit: Edit) -> bool:
    """Make the edit; whether its place was found."""
    path = Path(edit.path)
    text = path.read_text(encoding="utf-8")
    if edit.old not in text:
        print(f"{edit.path}: {edit.old!r} is not there")
        return False
    path.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
    print(f"{edit.path}: {edit.old} -> {edit.new}")
    return True


if __name__ == "__main__":
    sys.exit(main())
