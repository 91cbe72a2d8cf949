"""Reports and output of real runs, read again: what each tool writes, without the tool."""

import json
from pathlib import Path

import pytest

from agentrunner.verification.results.registry import READERS, read_results

DATA = Path(__file__).parents[3] / "data" / "results"
CASES = sorted(path.name for path in DATA.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", CASES)
def test_what_was_captured_is_read_as_it_was(name: str) -> None:
    folder = DATA / name
    expected = json.loads((folder / "expected.json").read_text())
    results = read_results(
        expected["shell"],
        ".",
        lambda _: None,
        folder / "place",
        (folder / "stdout").read_text(),
        (folder / "stderr").read_text(),
        expected["exit"],
        expected["means"],
    )
    assert results is not None
    assert [[test.name, test.outcome] for test in results.tests] == expected["tests"]
    assert (results.reader, results.weak, results.complete) == (
        expected["reader"], expected["weak"], expected["complete"],
    )  # fmt: skip
    assert results.all_named == expected.get("all_named", results.complete)
    assert any(test.red and test.message for test in results.tests) or results.weak


def test_every_reader_has_captured_data() -> None:
    assert {reader.name for reader in READERS} <= {name.partition("-")[0] for name in CASES}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_what_is_cut_is_never_complete_nor_an_error(name: str, keep: float, tmp_path: Path) -> None:
    """Cut at any place; a report that ends in the middle must not look whole."""
    folder = DATA / name
    expected = json.loads((folder / "expected.json").read_text())
    names = {each for each, _ in expected["tests"]}
    for path in sorted((folder / "place").rglob("*")):
        target = tmp_path / path.relative_to(folder / "place")
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif path.name in ("started", "junit.names") or path.suffix == ".cwd":
            target.write_bytes(path.read_bytes())
        else:
            content = path.read_bytes()
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content[: int(len(content) * keep)])
    results = read_results(
        expected["shell"], ".", lambda _: None, tmp_path, "", "", expected["exit"],
        expected["means"],
    )  # fmt: skip
    assert results is None or not results.complete
    if results is not None and expected["tests"]:
        assert sum(test.name in names for test in results.tests) <= len(expected["tests"])
