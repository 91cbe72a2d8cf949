"""Whatever the bytes: a message or a ProtocolError, within a second and 100 MB."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.errors import ProtocolError
from agentrunner.protocol import MESSAGE_TYPES, MessageType, parse_reply
from tests.kit.examples import examples

VALID = "type: next_action\ndecision: {action: ask_human, reason: r}\n"
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)
MERGE_BOMB = "a0: &a0 {k: v}\n" + "".join(
    f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 10)
)

# name -> (an expression for the text, outcome)
HOSTILE = {
    "backticks": ("'`' * 1_000_000", "incomplete"),
    "fence lines": ("'```\\n' * 250_000", "ambiguous"),
    "fence lines of another language": ("'```py\\n```\\n' * 90_000", "too_large"),
    "longer and longer fences": ("''.join('`' * (3 + n % 900) + '\\n' for n in range(2_000))", "*"),
    "fence, long info, backtick": ("'```' + 'a' * 1_000_000 + '`'", "*"),
    "tildes": ("'~~~ \\n' * 250_000", "ambiguous"),
    "type lines": ("'type: next_action\\n' * 55_000", "*"),
    "escape characters": ("'\\x1b[' * 500_000", "*"),
    "think tags": ("'</think><think>' * 60_000", "incomplete"),
    "closed thoughts": ("'<think></think>' * 60_000", "*"),
    "codex lines": ("'codex\\n' * 170_000", "*"),
    "blank lines": ("' \\n' * 500_000", "empty"),
    "blank lines, then text": ("' \\n' * 500_000 + 'x'", "not_found"),
    "spaces": ("' ' * 1_000_000 + 'x'", "*"),
    "full size of nothing": ("'\\n' * 2_097_152", "empty"),
    "over size": ("'x' * 2_097_153", "too_large"),
    "surrogates": ("'\\ud800' * 1_000_000", "*"),
    "NUL": ("'\\0' * 1_000_000", "*"),
    "brackets": ("'[' * 30_000", "too_large"),
    "brackets after a key": ("VALID + 'x: ' + '[' * 30_000", "too_large"),
    "balanced brackets": ("'[' * 30_000 + ']' * 30_000", "too_large"),
    "braces": ("'{' * 250_000", "*"),
    "nested JSON": ("'{\"a\":' * 40_000", "*"),
    "nested JSON, closed": ("'{\"a\":' * 40_000 + '1' + '}' * 40_000", "too_large"),
    "list dashes": ("'- ' * 100_000", "too_large"),
    "key marks": ("VALID + '? ' * 100_000", "*"),
    "anchors": ("'&a ' * 80_000", "*"),
    "alias bomb": ("BOMB", "forbidden_yaml"),
    "merge bomb": ("MERGE_BOMB", "forbidden_yaml"),
    "alias bomb with a type": ("VALID + BOMB", "forbidden_yaml"),
    "directives": ("'%TAG ! a:\\n' * 20_000", "*"),
    "many values": ("VALID + 'x: [' + '1,' * 120_000 + ']'", "too_large"),
    "many values in JSON": ("'{\"x\": [' + '1,' * 120_000 + '1]}'", "too_large"),
    "many keys": ("VALID + ''.join(f'k{n}: 1\\n' for n in range(9_000))", "ok"),
    "huge number": ("VALID + 'x: ' + '9' * 10_000", "ok"),
    "huge version": ("VALID + 'version: ' + '9' * 10_000", "unsupported_version"),
    "huge number in JSON": ("'{\"type\": \"next_action\", \"version\": %s}' % ('9' * 10_000)", "*"),
    "huge exponent": ("'{\"x\": 1%se5}' % ('0' * 200_000)", "*"),
    "open string": ("'{\"a\": \"' + '\\\\' * 250_000", "incomplete"),
    "colons": ("VALID + 'x: {' + 'a:' * 100_000", "*"),
    "many lines in one scalar": ("VALID + 'x: ' + 'a\\n ' * 80_000", "ok"),
    "long comment": ("VALID + '#' * 250_000", "ok"),
    "placeholder of dots": ("VALID.replace('r}', '. ' * 9_000 + '}')", "*"),
    "many unknown fields in many criteria": (
        "'type: plan_task\\nacceptance_criteria:\\n' + '- {a: 1, b: 2, c: 3}\\n' * 2_400", "*"
    ),
}  # fmt: skip

CODES = {
    "ok", "empty", "too_large", "incomplete", "refusal", "not_found", "ambiguous", "syntax",
    "forbidden_yaml", "duplicate_key", "unsupported_version", "wrong_type", "missing", "invalid",
    "placeholder",
}  # fmt: skip

CHILD = """
import json, os, resource, sys, time
from agentrunner.errors import ProtocolError
from agentrunner.protocol import loading, parse_reply
import yaml

VALID, BOMB, MERGE_BOMB, cases, base = json.load(sys.stdin)
loading.LOADER = getattr(yaml, base)

def outcome(text, expected):
    try:
        parse_reply(text, expected)
        return "ok"
    except ProtocolError as error:
        return error.fault

def measured(text):
    pages = int(open("/proc/self/statm").read().split()[0])
    limit = pages * resource.getpagesize() + 100 * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (10, 10))
    started = time.process_time()
    code = outcome(text, "next_action")
    spent = time.process_time() - started
    outcome(text, "plan_task")
    return [code, spent]

results = {}
for name, expression in cases.items():
    text = eval(expression)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = measured(text)
        except BaseException as error:
            answer = [repr(error)[:200], 0.0]
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    status = os.waitpid(child, 0)[1]
    results[name] = json.loads(answer) if answer else [f"ended with status {status}", 0.0]
json.dump(results, sys.stdout)
"""


@pytest.fixture(
    scope="module",
    # The other one, for machines without libyaml, is three times as slow.
    params=["CSafeLoader", pytest.param("SafeLoader", marks=pytest.mark.whole)],
)
def results(request: pytest.FixtureRequest) -> dict[str, Any]:
    cases = {name: expression for name, (expression, _) in HOSTILE.items()}
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=json.dumps([VALID, BOMB, MERGE_BOMB, cases, request.param]),
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_reply(results: dict[str, Any], name: str) -> None:
    code, seconds = results[name]
    expected = HOSTILE[name][1]
    assert code == expected if expected != "*" else code in CODES
    assert seconds < 1.0


def outcome(text: str | bytes, expected: MessageType) -> str:
    try:
        message = parse_reply(text, expected)
    except ProtocolError as error:
        str(error).encode()
        return error.fault
    json.dumps(message.as_dict(), allow_nan=False, ensure_ascii=False).encode()
    return "ok"


TYPES = st.sampled_from(MESSAGE_TYPES)
Payloads = dict[MessageType, dict[str, Any]]


@given(st.binary(max_size=300), TYPES)
@settings(max_examples=examples(300), deadline=None)
def test_any_bytes(raw: bytes, expected: MessageType) -> None:
    assert outcome(raw, expected) in CODES
    assert outcome(raw.decode("utf-8", "surrogateescape"), expected) in CODES


FRAGMENTS = st.sampled_from(
    ["type: next_action\n", "decision:\n", "  action: abort\n", "  reason: r\n", "payload:\n", "{",
     "}", '"type": "next_action"', ",", "```yaml\n", "```\n", "~~~\n", "<think>", "</think>",
     "\ncodex\n", "---\n", "...\n", "&a ", "*a", "<<: ", "!!str ", "\ud800", "\x00", "\ufeff", "\r",
     "NaN", "1e999", "9" * 30, "\\ud83d", "'", '"', "- ", "  ", "\t", ": ", "null", "[", "]", "…"]
)  # fmt: skip


@given(st.lists(FRAGMENTS, max_size=25).map("".join), TYPES)
@settings(max_examples=examples(500), deadline=None)
def test_any_pieces_of_replies(text: str, expected: MessageType) -> None:
    assert outcome(text, expected) in CODES


@given(st.data(), TYPES, st.sampled_from([None, 1]))
@settings(max_examples=examples(300), deadline=None)
def test_any_damage_to_a_valid_reply(
    payloads: Payloads, data: st.DataObject, type_: MessageType, indent: int | None
) -> None:
    text = json.dumps({"type": type_, "payload": payloads[type_]}, indent=indent)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 20)))
        text = text[:start] + data.draw(FRAGMENTS | st.text(max_size=3)) + text[end:]
    assert outcome(text, type_) in CODES


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.data(), TYPES, JSON)
@settings(max_examples=examples(400), deadline=None)
def test_any_value_in_the_place_of_any_other(
    payloads: Payloads, data: st.DataObject, type_: MessageType, value: object
) -> None:
    document = json.loads(json.dumps({"type": type_, "version": 1, "payload": payloads[type_]}))
    node = document
    while True:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(keys))
        inner = node[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            break
        node = inner
    node[key] = value
    assert outcome(json.dumps(document), type_) in CODES
