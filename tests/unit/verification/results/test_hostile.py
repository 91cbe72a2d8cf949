"""Reports that are cut, huge, malformed or no reports: bounded, said to be incomplete, no error."""

import json
import os
import time
from pathlib import Path

import pytest

from agentrunner.verification.results import files, xml
from agentrunner.verification.results.lines import read_lines
from agentrunner.verification.results.model import Results
from agentrunner.verification.results.registry import READERS, read_results
from agentrunner.verification.results.xml import read_junit

START = {"k": "start", "cwd": "/repo"}
END = {"k": "end"}


def lines(place: Path, *events: object, name: str = "pytest-1.jsonl") -> Results | None:
    text = "\n".join(each if isinstance(each, str) else json.dumps(each) for each in events)
    (place / name).write_text(text)
    return read_lines(place, "pytest", "/repo")


def case(name: str, outcome: str = "passed", **more: object) -> dict[str, object]:
    return {"k": "test", "n": name, "o": outcome, **more}


def test_a_whole_report(tmp_path: Path) -> None:
    found = lines(tmp_path, START, case("a"), case("a", "failed", m="x" * 3000, l=4), END)
    assert found is not None and found.complete
    assert [(t.name, t.outcome, t.line) for t in found.tests] == [("a", "passed", None),
                                                                 ("a", "failed", 4)]  # fmt: skip
    assert len(found.tests[1].message) == 2000
    assert not found.passed("a")


@pytest.mark.parametrize(
    "events",
    [
        (START, case("a")),
        (START, case("a"), '{"k": "test", "n": "b'),
        (START, case("a"), {"k": "lost"}, END),
        (START, case("a"), {"k": "end", "cut": True}),
        (START, case("a"), "[" * 100_000, END),
        (START, case("a"), '{"k": "test", "n": "\\ud800', END),
    ],
)
def test_a_report_that_is_cut_is_not_complete(tmp_path: Path, events: tuple[object, ...]) -> None:
    found = lines(tmp_path, *events)
    assert found is not None and not found.complete
    assert [test.name for test in found.tests] == ["a"]


def test_odd_values_do_no_harm(tmp_path: Path) -> None:
    odd: list[object] = [3, None, "text", [], {"k": []}, {"k": "test"},
           {"k": "test", "n": {}, "o": [], "l": 1e99},
           case("\x00\n\ud800", "failed", m=5, f=7, l=True)]  # fmt: skip
    found = lines(tmp_path, START, *odd, END)
    assert found is not None
    assert all(test.name.isprintable() for test in found.tests)


def test_bytes_that_are_no_utf_8(tmp_path: Path) -> None:
    (tmp_path / "pytest-1.jsonl").write_bytes(
        b'{"k":"test","n":"\xff\xfe","o":"passed"}\n{"k":"end"}'
    )
    found = read_lines(tmp_path, "pytest", "")
    assert found is not None and found.tests[0].name == "\ufffd\ufffd"


def test_links_pipes_and_devices_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(json.dumps(case("a")))
    place = tmp_path / "place"
    place.mkdir()
    (place / "pytest-1.jsonl").symlink_to(secret)
    os.mkfifo(place / "pytest-2.jsonl")
    (place / "pytest-3.jsonl").symlink_to("/dev/zero")
    (place / "pytest-4.jsonl").mkdir()
    (place / "tap").symlink_to("/etc")
    assert read_lines(place, "pytest", "") is None
    assert list(files.reports_below(place, "tap")) == []
    for reader in READERS:
        shell = {"node": "node --test", "tap": "prove"}.get(reader.name, "python -m " + reader.name)
        assert read_results(shell, ".", lambda _: None, place, "", "", 0) is None
    (tmp_path / "link").symlink_to(place)
    assert read_lines(tmp_path / "link", "pytest", "") is None
    assert read_lines(tmp_path / "nowhere", "pytest", "") is None


def test_only_so_much_is_read(tmp_path: Path) -> None:
    with (tmp_path / "pytest-1.jsonl").open("wb") as report:
        report.write((json.dumps(START) + "\n" + json.dumps(case("a")) + "\n").encode())
        report.truncate(1 << 30)  # a sparse gigabyte
    began = time.monotonic()
    found = read_lines(tmp_path, "pytest", "/repo")
    assert found is not None and not found.complete
    assert [test.name for test in found.tests] == ["a"]
    assert time.monotonic() - began < 20


def test_a_hundred_thousand_tests(tmp_path: Path) -> None:
    found = lines(tmp_path, START, *(case(f"t.py::test[{n}]") for n in range(100_000)), END)
    assert found is not None and found.complete and len(found.tests) == 100_000
    document = "".join(f'<testcase classname="a.B" name="t{n}"/>' for n in range(100_000))
    tests, whole = read_junit(f"<testsuite>{document}</testsuite>".encode())
    assert whole and len(tests) == 100_000


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "document",
    [
        f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]><testsuite><testcase name="&l9;"/></testsuite>',
        '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><testcase name="b">&e;</testcase>',
        '<!DOCTYPE x SYSTEM "http://127.0.0.1/x.dtd"><a/>',
        "<a>" * 100_000,
        "<testsuite><testcase name='a'/>",
        "<testsuite><testcase name='a'></testsuite>",
        "<testsuite>\x01</testsuite>",
        "",
        "{}",
        '<?xml version="1.0" encoding="no-such"?><a/>',
    ],
)
def test_xml_that_is_malformed_or_hostile_is_refused(document: str) -> None:
    tests, whole = read_junit(document.encode())
    assert not whole
    assert [test.name for test in tests] in ([], ["a"])


def test_long_texts_are_cut_while_they_are_read() -> None:
    seen: list[int] = []
    text = "x" * 10_000_000
    assert xml.parse(
        f"<a>{text}</a>".encode(), lambda _: None, lambda p: seen.append(len(p[-1].text))
    )
    assert seen == [xml.MOST_TEXT]
