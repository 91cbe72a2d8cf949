"""Nothing here raises, whatever stands in a source, and what was of a language stays so."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrunner.verification.syntax.calls import names_called, names_changed
from agentrunner.verification.syntax.canary import changed_literal
from agentrunner.verification.syntax.definitions import definitions
from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.ends import failing_end
from agentrunner.verification.syntax.languages import LARGEST, language_of, parse
from agentrunner.verification.syntax.mutants import mutants
from agentrunner.verification.syntax.regions import (
    regions_of_tests,
    with_regions_of,
    without_regions,
)
from agentrunner.verification.syntax.test_finder import all_tests, find_test
from agentrunner.verification.syntax.words import identifiers
from tests.unit.verification.syntax.sources import SOURCES

LANGUAGES = sorted(SOURCES)
SLOW = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def everything(source: bytes, language: str) -> list[bytes]:
    """All that can be asked of a source; the sources that are made of it."""
    made: list[bytes] = [without_regions(source, language)]
    for found in all_tests(source, language):
        assert 0 <= found.span.start <= found.span.end <= len(source)
        find_test(source, language, found.span.name)
        for canary in (failing_end(found), changed_literal(found)):
            if canary is not None:
                assert canary.source != source
                made.append(canary.source)
        names_called(found)
    emptied = empty_functions(None, source, language)
    made += [emptied.source] if emptied is not None else []
    made += [one.source for one in mutants(None, source, language, 5)]
    names_changed(None, source, language)
    definitions(source, language)
    regions_of_tests(source, language)
    with_regions_of(source, source, language)
    return made


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_made_of_a_source_is_of_its_language(language: str) -> None:
    for source in SOURCES[language]:
        parsed = parse(source, language)
        assert parsed is not None
        assert not parsed.root.has_error
        for made in everything(source, language):
            after = parse(made, language)
            assert after is not None
            assert not after.root.has_error, made.decode()


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.data())
@SLOW
def test_no_bytes_raise(language: str, data: st.DataObject) -> None:
    everything(data.draw(st.binary(max_size=400)), language)


@pytest.mark.parametrize("language", LANGUAGES)
@given(data=st.data())
@SLOW
def test_no_torn_source_raises_and_what_parsed_still_does(
    language: str, data: st.DataObject
) -> None:
    source = data.draw(st.sampled_from(SOURCES[language]))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(source)))
        end = data.draw(st.integers(at, min(len(source), at + 30)))
        put = data.draw(st.sampled_from([b"", b"(", b"{", b"}", b'"', b"\xff", b"\n", b"'", b"\\"]))
        source = source[:at] + put + source[end:]
    parsed = parse(source, language)
    for made in everything(source, language):
        after = parse(made, language)
        if parsed is not None and not parsed.root.has_error:
            assert after is not None
            assert not after.root.has_error, made.decode("utf-8", "replace")


@given(text=st.text(max_size=300))
def test_no_sentence_raises(text: str) -> None:
    assert all(name.isascii() for name in identifiers(text))


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", ["", " ", "[", "::", "(", "/", "a" * 100_000, "x > " * 5_000])
def test_no_name_raises(language: str, name: str) -> None:
    for source in SOURCES[language]:
        find_test(source, language, name)


@pytest.mark.series(3)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("piece", [b"(", b"[", b"{", b"a(", b"x = [", b"((a)+", b"f(a,", b"!"])
def test_deep_sources_end_within_the_budget(language: str, piece: bytes) -> None:
    began = time.monotonic()
    assert everything(piece * 100_000, language) is not None
    assert parse(piece * 100_000, language) is None or time.monotonic() - began < 30


def test_large_sources_and_unknown_languages_have_no_tree() -> None:
    assert parse(b"x" * (LARGEST + 1), "python") is None
    assert parse(b"x = 1", "cobol") is None
    assert all_tests(b"def test_a(): pass", "cobol") == []


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.py", "python"),
        ("x.test.tsx", "tsx"),
        ("x.spec.ts", "typescript"),
        ("x.mjs", "javascript"),
        ("x_test.go", "go"),
        ("src/lib.rs", "rust"),
        ("A.java", "java"),
        ("Makefile", None),
        (".py", None),
        ("", None),
    ],
)
def test_languages_are_known_by_the_ending(path: str, language: str | None) -> None:
    assert language_of(path) == language


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", b"x = 1\n# no\ry = 2\n"),
        ("python", b"# coding: utf-7\n#+AAo-x = 1\n"),
        ("python", b"# coding: unicode_escape\n#\\nx = 1\n"),
        ("python", b"# coding: no-such-encoding\nx = 1\n"),
        ("python", b"x = '\xff'\n"),
        ("java", b"class A { // \\u000a int x;\n}\n"),
        ("javascript", b"let x = 1 // no\rx = 2\n"),
    ],
)
def test_a_source_that_may_hide_code_has_no_tree(language: str, source: bytes) -> None:
    assert parse(source, language) is None


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", b"x = 1\r\n# yes\r\n"),
        ("python", b"# coding: latin-1\nx = '\xe9'\n"),
        ("python", "\ufeffx = '日本'\n".encode()),
        ("java", b'class A { String x = "\\u00e9"; }\n'),
    ],
)
def test_a_source_in_its_own_encoding_has_one(language: str, source: bytes) -> None:
    assert parse(source, language) is not None


def test_two_mutants_of_one_line_are_told_apart_by_their_columns() -> None:
    source = "def shown(cents):\n    return f'é', cents // 100, cents % 100\n".encode()
    made = [one for one in mutants(None, source, "python", 50) if one.description == "100 is 101"]
    assert [(one.line, one.column) for one in made] == [(2, 27), (2, 40)]
