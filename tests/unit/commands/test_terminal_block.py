"""Lines that are drawn again in place, as a terminal shows them."""

from __future__ import annotations

import io
import re

import pytest

from agentrunner.commands.plan_live import Block


class Screen(io.StringIO):
    """What a terminal shows of the few sequences that a block writes."""

    def shown(self, columns: int) -> list[str]:
        rows: list[str] = [""]
        for part in re.split(r"(\n|\r?\x1b\[\d*[AJ])", self.getvalue()):
            if part == "\n":
                rows.append("")
            elif part.endswith("A"):
                up = int(re.sub(r"\D", "", part))
                rows = rows[: len(rows) - up]
            elif part.endswith("J"):
                rows[-1] = ""
            else:
                plain = re.sub(r"\x1b\[[0-9;]*m", "", part)
                cut = [plain[n : n + columns] for n in range(0, len(plain), columns)] or [""]
                rows[-1:] = [rows[-1] + cut[0], *cut[1:]]
        return rows


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "6")


@pytest.mark.usefixtures("small")
def test_a_block_is_replaced_and_what_is_said_stays_above() -> None:
    screen = Screen()
    block = Block(screen)
    block.draw(["one", "two"])
    block.above(["said"])
    block.draw(["\x1b[1mthree\x1b[0m"])
    block.above(["more"])
    assert screen.shown(20) == ["said", "more", "three", ""]
    block.clear()
    assert screen.shown(20)[:2] == ["said", "more"] and "three" not in screen.shown(20)


@pytest.mark.usefixtures("small")
def test_lines_that_the_terminal_wrapped_and_too_many_are_no_trouble() -> None:
    screen = Screen()
    block = Block(screen)
    assert (block.width, block.height) == (19, 5)
    block.draw(["x" * 30, "y"])
    block.draw([str(number) for number in range(9)])
    assert screen.shown(20) == ["0", "1", "2", "3", "…", ""]
    before = screen.getvalue()
    block.draw([str(number) for number in range(9)])
    assert screen.getvalue() == before, "nothing new is nothing written"
