"""What counts as tests, on the first screen and in what validate says."""

from typing import Any

from agentrunner.screens.live import counts_lines, header_rows


def entries(*paths: str) -> list[dict[str, Any]]:
    return [{"path": path, "why": "taken as product; it checks itself"} for path in paths]


def test_the_header_says_what_counts() -> None:
    inputs = {"tests": entries("tests/**"), "product": [], "unsure": entries("server.js")}
    rows = dict(header_rows({"tests": "pytest", "inputs": inputs}, "/home/hana"))
    assert rows["counts"] == (
        "as tests: tests/** · unsure: server.js, taken as product; it checks itself"
    )


def test_long_lists_are_cut_and_names_are_harmless() -> None:
    inputs = {
        "tests": entries(*(f"t{i}\x1b[31m" for i in range(9))),
        "tests_more": 4,
        "product": entries("main.py"),
        "unsure": entries("a", "b", "c"),
    }
    [line] = counts_lines(inputs)
    assert "\x1b" not in line
    assert " and 8 more · as product: main.py · " in line
    assert line.endswith("· 1 more unsure")


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert counts_lines(None) == []
    assert counts_lines({"tests": [], "product": [], "unsure": []}) == []
    assert "counts" not in dict(header_rows({}, ""))
