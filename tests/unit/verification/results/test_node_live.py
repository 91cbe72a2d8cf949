"""Node's own runner, through instrument, run and read."""

from pathlib import Path

import pytest

from tests.kit.files import write
from tests.kit.reporting import need, plain, reported

SUITE = {
    "test/a.test.mjs": """
import { test, describe, it, before } from 'node:test';
import assert from 'node:assert';

test('good', () => {});
test('bad', () => assert.equal(1, 2, 'sums differ'));
test('skipped', { skip: true }, () => {});
test('known', { todo: true }, () => assert.fail());
describe('box', () => {
  it('opens', () => {});
  it('closes', () => assert.ok(false));
  describe('inner', () => { it('opens', () => {}); });
});
test('outer', async (t) => { await t.test('one', () => {}); await t.test('one', () => {}); });
describe('broken', () => {
  before(() => { throw new Error('no server'); });
  it('never', () => {});
});
""",
    "test/b.test.mjs": "import { test } from 'node:test';\ntest('good', () => {});\n",
}
A, B = "test/a.test.mjs", "test/b.test.mjs"
EXPECTED = {
    (f"{A} > good", "passed"),
    (f"{A} > bad", "failed"),
    (f"{A} > skipped", "skipped"),
    (f"{A} > known", "xfailed"),
    (f"{A} > box > opens", "passed"),
    (f"{A} > box > closes", "failed"),
    (f"{A} > box > inner > opens", "passed"),
    (f"{A} > outer > one", "passed"),
    (f"{A} > outer", "passed"),
    (f"{A} > broken", "error"),
    (f"{A} > broken > never", "error"),
    (f"{B} > good", "passed"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    need("node")
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


PACKAGE = {"package.json": '{"scripts": {"test": "node --test test/"}}'}


@pytest.mark.parametrize(
    "shell",
    [
        f"node --test {A} {B}",
        f"node --test --test-reporter=tap {A} {B}",
        f"node --test --test-reporter dot --test-reporter-destination stdout {A} {B}",
    ],
)
def test_every_outcome_by_name(tree: Path, shell: str) -> None:
    write(tree, SUITE)
    seen = reported(tree, shell)
    before = plain(tree, shell)
    assert seen.exit_code == before.returncode == 1
    assert before.stdout.splitlines()[0] == seen.stdout.splitlines()[0]
    assert set(seen.outcomes) == EXPECTED
    assert [name for name, _ in seen.outcomes].count(f"{A} > outer > one") == 2
    assert seen.results is not None and not seen.results.weak
    bad = seen.results.named(f"{A} > bad")[0]
    assert bad.file == A and "sums differ" in bad.message


def test_the_text_is_the_weaker_means(tree: Path) -> None:
    write(tree, SUITE)
    seen = reported(tree, f"node --test {A}", means=1)
    assert seen.results is not None and seen.results.weak
    assert {("good", "passed"), ("bad", "failed"), ("box > closes", "failed")} <= set(seen.outcomes)


def test_a_file_that_fails_and_one_that_ends_itself(tree: Path) -> None:
    write(
        tree,
        {
            "a.test.mjs": "import './nothing.mjs';\n",
            "b.test.mjs": "import { test } from 'node:test';\ntest('good', () => {});\n"
            "test('ends', () => process.exit(0));\ntest('never', () => {});\n",
        },
    )
    seen = reported(tree, "node --test a.test.mjs b.test.mjs")
    assert ("a.test.mjs", "error") in seen.outcomes
    assert seen.results is not None and not seen.results.all_named
    assert not seen.results.passed("b.test.mjs > never")


def test_a_file_that_dies_at_load_has_the_error_that_node_printed(tree: Path) -> None:
    write(
        tree,
        {
            "cjs.test.js": "require('./ship');\n",
            "esm.test.mjs": "import { ship } from './a.mjs';\n",
            "new.test.mjs": "import { ship } from './b.mjs';\n",
            "bad.test.js": "console.error('Error: ship');\ntest('ship', ( => 1);\n",
            "a.mjs": "export const total = 1;\n",
        },
    )
    seen = reported(tree, "node --test cjs.test.js esm.test.mjs new.test.mjs bad.test.js")
    assert seen.results is not None
    assert {test.name: (test.outcome, test.message) for test in seen.results.tests} == {
        "cjs.test.js": ("error", "Error: Cannot find module './ship'"),
        "esm.test.mjs": (
            "error",
            "SyntaxError: The requested module './a.mjs' does not provide an export named 'ship'",
        ),
        "new.test.mjs": (
            "error",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find module 'b.mjs' imported from new.test.mjs",
        ),
        "bad.test.js": ("error", "SyntaxError: Unexpected token '=>'"),
    }


def test_the_first_line_of_an_assertion_has_its_values(tree: Path) -> None:
    write(
        tree,
        {
            "a.test.js": "const { test } = require('node:test');\n"
            "test('a', () => require('node:assert').strictEqual('one', 'two'));\n"
        },
    )
    seen = reported(tree, "node --test a.test.js")
    assert seen.results is not None
    assert seen.results.tests[0].message.splitlines()[0] == (
        "AssertionError: Expected values to be strictly equal: 'one' !== 'two'"
    )


def test_through_npm_and_twice_in_one_command(tree: Path) -> None:
    need("npm")
    write(tree, {"one/test/x.test.js": "require('node:test').test('x', () => {});\n"})
    write(tree, {"two/test/x.test.js": "require('node:test').test('x', () => {});\n"})
    write(tree, {"one/package.json": PACKAGE["package.json"]})
    write(tree, {"two/package.json": PACKAGE["package.json"]})
    seen = reported(tree, "npm test --prefix one && (cd two && npm t) && node two/test/x.test.js")
    assert seen.outcomes == [
        ("one/test/x.test.js > x", "passed"),
        ("two/test/x.test.js > x", "passed"),
        ("two/test/x.test.js > x", "passed"),
    ]
    assert seen.results is not None and seen.results.complete


def test_processes_of_tests_are_not_told(tree: Path) -> None:
    write(
        tree,
        {
            "a.test.js": "const { test } = require('node:test');\n"
            "const { spawnSync } = require('node:child_process');\n"
            "test('a', () => {\n"
            "  const env = { ...process.env }; delete env.NODE_TEST_CONTEXT;\n"
            "  spawnSync(process.execPath, ['b.js'], { env });\n"
            "  require('node:assert').equal(process.env.NODE_OPTIONS, undefined);\n});\n",
            "b.js": "require('node:test').test('inner', () => { throw new Error(); });\n",
        },
    )
    seen = reported(tree, "node --test a.test.js")
    assert seen.outcomes == [("a.test.js > a", "passed")], seen.stdout
