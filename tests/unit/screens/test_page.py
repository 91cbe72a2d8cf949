"""A page of the documentation in a terminal: lines that fit, and commands in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.screens.page import broken_to
from agentrunner.text.terminal import cell_width

ROOT = Path(__file__).parents[3]
PAGES = sorted((ROOT / "docs").rglob("*.md"))

PAGE = """\
# A heading that is longer than the terminal is wide

It waits. Wait for it (`agentrunner watch RUN`) or end it,
and go on.

- [ ] an item which is longer
  than a line
- short

```
a line of code that is longer than it
```

| a table | that nobody can break, however narrow |
"""
BROKEN = """\
# A heading that is longer than the terminal is wide

It waits. Wait for it
(`agentrunner watch RUN`) or
end it, and go on.

- [ ] an item which is
      longer than a line
- short

```
a line of code that is longer than it
```

| a table | that nobody can break, however narrow |
"""


def test_paragraphs_are_broken_to_the_terminal_and_code_is_not() -> None:
    assert broken_to(PAGE, 28) == BROKEN


def test_a_page_that_fits_stays_as_it_is() -> None:
    assert broken_to(PAGE, 200) == PAGE


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_loses_no_word(path: Path) -> None:
    text = path.read_text("utf-8")
    for columns in (80, 44):
        shown = broken_to(text, columns)
        assert [word for word in shown.split() if word != ">"] == [
            word for word in text.split() if word != ">"
        ]
        outside = "".join(shown.split("```")[::2]).split("\n")
        wide = [line for line in outside if cell_width(line) > columns]
        assert [one for one in wide if one[0].isalpha() and "`" not in one and " " in one] == []
