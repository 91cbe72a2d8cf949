"""JSON and constrained YAML to plain values, alike on both of PyYAML's scanners."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.errors import ProtocolError
from agentrunner.protocol.loading import (
    MAX_DEPTH,
    MAX_DOCUMENT_BYTES,
    MAX_NODES,
    load_document,
    load_json,
    load_yaml,
)
from tests.kit.examples import examples

BASES = [pytest.param(yaml.CSafeLoader, id="libyaml"), pytest.param(yaml.SafeLoader, id="python")]


@pytest.fixture(params=BASES)
def base(request: pytest.FixtureRequest) -> type[Any]:
    chosen: type[Any] = request.param
    return chosen


def code(text: str, base: type[Any] | None = None) -> str:
    with pytest.raises(ProtocolError) as caught:
        load_yaml(text, base) if base else load_document(text)
    return caught.value.fault


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("999999999999999999", 999999999999999999),
        *[
            (text, text)
            for text in (
                "NO", "no", "on", "off", "Yes", "True", "None", "NULL", "010", "-0", "+1", "1_000",
                "0x1F", "12:30", "1.20", "1e3", ".nan", ".inf", "2026-01-01", "2026-01-01T00:00:00",
                "=", "1000000000000000000", "a&b", "AC-1", "3.11",
            )
        ],
        ("'true'", "true"),
        ('"7"', "7"),
        ("'~'", "~"),
        ("a #b", "a"),
        ("a#b", "a#b"),
    ],
)  # fmt: skip
def test_plain_scalars(base: type[Any], written: str, value: object) -> None:
    loaded = load_yaml(f"key: {written}\n", base)
    assert loaded == {"key": value}
    assert type(loaded["key"]) is type(value)


def test_collections_block_scalars_and_markers(base: type[Any]) -> None:
    text = "---\na: |\n  x: 1\n  ```\nb: >\n  one\n  two\nc: [1, {d: e}]\n2: true\nno:\n- x\n...\n"
    assert load_yaml(text, base) == {
        "a": "x: 1\n```\n",
        "b": "one two\n",
        "c": [1, {"d": "e"}],
        "2": True,
        "no": ["x"],
    }


@pytest.mark.parametrize("text", ["a: &x 1", "&x a: 1", "a: &x [1]", "a: &x [1]\nb: *x"])
def test_anchors_are_refused(base: type[Any], text: str) -> None:
    assert code(text, base) == "forbidden_yaml"


@pytest.mark.parametrize(
    "text",
    [
        "a: *x",
        "a: !!str 1",
        "a: !x 1",
        "a: ! 1",
        "!!map {a: 1}",
        "a: !!binary aGk=",
        "a: !!python/name:os.system x",
        "a: 1\n---\nb: 1\n",
        "a: 1\n...\n---\nb: 1\n",
        "a: 1\n---\n",
        "%YAML 1.1\n---\na: 1\n",
        "%TAG ! tag:x,2026:\n---\na: 1\n",
        "<<: {a: 1}",
        "a: {<<: {b: 1}, c: 1}",
        "? [a]\n: 1",
        "{a: 1}: 2",
        "? {a: 1}\n: 2",
    ],
)
def test_what_constrained_yaml_leaves_out_is_refused(base: type[Any], text: str) -> None:
    assert code(text, base) == "forbidden_yaml"


def test_a_quoted_merge_sign_is_a_key_like_others(base: type[Any]) -> None:
    assert load_yaml("'<<': 1", base) == {"<<": 1}


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2", "{a: 1, 'a': 2}", "a: {b: 1, b: 1}", "1: x\n'1': y"]
)
def test_duplicate_keys_are_refused(base: type[Any], text: str) -> None:
    assert code(text, base) == "duplicate_key"


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c",
        "a:\n\tb: 1",
        "a: [1, 2",
        "a: 'x",
        'a: "\\ud83d\\ude00"',
        'a: "\\q"',
        "a: \x1b[31m",
        "a: \x00",
        "a: @x",
        "a: `x`",
        "a: **x**",
        "a: %x",
        "\ufeffa: 1\ufeff",
    ],
)
def test_what_is_not_yaml_is_refused(base: type[Any], text: str) -> None:
    assert code(text, base) == "syntax"


def test_limits_hold_before_anything_is_built(base: type[Any]) -> None:
    deep = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert load_yaml(deep, base) == load_json(deep)
    assert code(f"[{deep}]", base) == "too_large"
    assert code(f"[{deep}]") == "too_large"
    wide = "[" + "1," * (MAX_NODES - 2) + "1]"
    assert len(load_yaml(wide, base)) == len(load_json(wide)) == MAX_NODES - 1
    assert code(wide.replace("]", ",1]"), base) == "too_large"
    assert code(wide.replace("]", ",1]")) == "too_large"
    full = "a: " + "x" * (MAX_DOCUMENT_BYTES - 3)
    assert load_document(full)
    assert code(full + "x") == "too_large"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
def test_json_numbers_are_finite(number: str) -> None:
    assert code(f'{{"a": {number}}}') == "syntax"


def test_json_keys_are_unique_and_long_numbers_keep_their_text() -> None:
    assert code('{"a": 1, "a": 1}') == "duplicate_key"
    assert code('{"a": {"b": 1, "b": 2}}') == "duplicate_key"
    assert load_json('{"a": %s}' % ("9" * 10_000)) == {"a": "9" * 10_000}


def test_json_never_goes_through_yaml() -> None:
    assert load_document('{"a": "\\ud83d\\ude00", "b": "x\\/y",\n\t"c": 1.5}') == {
        "a": "😀",
        "b": "x/y",
        "c": 1.5,
    }


@pytest.mark.parametrize("text", ["{'a': 'b'}", '{"a": "b",}', "{a: b}", "{'a': b\n}"])
def test_flow_yaml_takes_what_almost_is_json(text: str) -> None:
    assert load_document(text) == {"a": "b"}


@pytest.mark.parametrize("text", ['{"a": "b', '{"a": ', '{"a": tr', '{"a": [1', '{"a": "\\u00'])
def test_json_that_just_ends_is_incomplete(text: str) -> None:
    assert code(text) == "incomplete"


def test_an_error_names_line_column_and_the_line_itself() -> None:
    with pytest.raises(ProtocolError) as caught:
        load_document("type: x\nreason: AC-2 failed: got 500\n")
    assert "line 2, column 20" in caught.value.message
    assert "reason: AC-2 failed: got 500" in caught.value.message


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**18) + 1, 10**18 - 1)
    | st.text(st.characters(codec="utf-8", exclude_characters="\x00")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab: #-'\"é"), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1), JSON_VALUES, min_size=1))
@settings(max_examples=examples(100), deadline=None)
def test_any_json_reads_as_itself(value: dict[str, Any]) -> None:
    assert load_document(json.dumps(value)) == value
    assert load_document(json.dumps(value, ensure_ascii=False, indent=2)) == value


YAML_LIKE = st.lists(
    st.sampled_from(
        ["a", "type", ": ", ":", "\n", "  ", "- ", "[", "]", "{", "}", ",", "'", '"', "|\n", ">\n",
         "#", "1", "010", "true", "~", "&x ", "*x", "!t ", "<<", "---\n", "...\n", "?", "é", "\\"]
    ),
    max_size=14,
).map("".join)  # fmt: skip


def result(text: str, base: type[Any]) -> object:
    try:
        return load_yaml(text, base)
    except ProtocolError:
        return ProtocolError


@given(YAML_LIKE)
@settings(max_examples=examples(300), deadline=None)
def test_both_scanners_read_or_refuse(text: str) -> None:
    for scanner in (yaml.CSafeLoader, yaml.SafeLoader):
        value = result(text, scanner)
        assert (
            value is ProtocolError
            or value is None
            or isinstance(value, bool | int | str | list | dict)
        )


@given(st.dictionaries(st.text("abc", min_size=1), JSON_VALUES, min_size=1))
@settings(max_examples=examples(100), deadline=None)
def test_both_scanners_agree_on_what_a_yaml_writer_writes(value: dict[str, Any]) -> None:
    text = yaml.safe_dump(value, allow_unicode=True)
    assert result(text, yaml.CSafeLoader) == result(text, yaml.SafeLoader)
