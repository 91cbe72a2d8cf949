"""Files of JavaScript that import what they required."""

import pytest

from agentrunner.verification.test_changes.moved_imports import asks_for_es_modules, modules_follow

BEFORE = """\
'use strict';
const test = require('test');
const { tag, head: top } = require('../src/tag');
const { join } = require('node:path');

test('a tag', () => tag(top, join('x')));
"""
AFTER = """\
import test from 'test';
import { tag, head as top } from '../src/tag.js';
import { join } from 'path';

test('a tag', () => tag(top, join('x')));
"""


def test_the_same_names_come_from_the_same_modules() -> None:
    assert modules_follow(BEFORE.encode(), AFTER.encode())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("../src/tag.js", "./tag.js"),
        ("head as top", "tail as top"),
        ("import test from 'test'", "import { test } from 'test'"),
        ("import { join } from 'path';\n", ""),
        ("join('x')", "join('y')"),
        ("import test", "import './more.js';\nimport test"),
        ("import test from 'test';", "const test = () => {};"),
    ],
    ids=["module", "name", "part", "one less", "test", "effect", "double"],
)
def test_anything_else_is_another_test(old: str, new: str) -> None:
    assert old in AFTER
    assert not modules_follow(BEFORE.encode(), AFTER.replace(old, new).encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Move the package to ES modules.", True),
        ('`"type": "module"` in package.json', True),
        ("Move to ESM", True),
        ("Split the modules.", False),
        ("It works (check: `grep ESM x`).", False),
    ],
)
def test_a_text_asks_for_them(text: str, expected: bool) -> None:
    assert asks_for_es_modules(text) == expected
