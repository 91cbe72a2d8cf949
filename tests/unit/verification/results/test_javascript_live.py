"""Jest, Vitest and Mocha, through instrument, run and read."""

from pathlib import Path

import pytest

from tests.kit.files import write
from tests.kit.missing import missing
from tests.kit.reporting import TOOLS, narrowed, need, plain, reported

JEST = """
test('good', () => {});
test('bad', () => { if (1 !== 2) throw new Error('sums differ'); });
test.skip('skipped', () => {});
describe('box', () => {
  test('opens', () => {});
  describe('inner', () => { test('opens', () => {}); });
});
test.each([1, 2])('number %i', (n) => {});
test('same', () => {}); test('same', () => {});
"""
VITEST = "import { test, describe } from 'vitest';\n" + JEST
MOCHA = (
    JEST.replace("test.skip", "it.skip")
    .replace("test.each([1, 2])('number %i', (n) => {});",
             "for (const n of [1, 2]) it(`number ${n}`, () => {});")
    .replace("test(", "it(")
)  # fmt: skip
SUITES = {"jest": ("a.test.js", JEST), "vitest": ("a.test.mjs", VITEST), "mocha": ("a.js", MOCHA)}
COMMANDS = {"jest": "jest", "vitest": "vitest run", "mocha": "mocha 'test/*.js'"}


def expected(file: str) -> list[tuple[str, str]]:
    return sorted(
        (f"{file} > {title}", outcome)
        for title, outcome in [
            ("good", "passed"),
            ("bad", "failed"),
            ("skipped", "skipped"),
            ("box > opens", "passed"),
            ("box > inner > opens", "passed"),
            ("number 1", "passed"),
            ("number 2", "passed"),
            ("same", "passed"),
            ("same", "passed"),
        ]
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    need("node", "npm")
    modules = TOOLS / "test-tools" / "node_modules"
    if not modules.exists():
        missing("Jest, Vitest and Mocha are not installed: scripts/install-test-tools.sh")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "node_modules").symlink_to(modules)
    return tmp_path / "tree"


def project(tree: Path, tool: str, script: str = "") -> str:
    """Write a project whose npm test is the tool; the path of its tests."""
    name, text = SUITES[tool]
    script = (script or COMMANDS[tool]).replace('"', '\\"')
    write(tree, {f"test/{name}": text, "package.json": f'{{"scripts": {{"test": "{script}"}}}}'})
    return f"test/{name}"


@pytest.mark.parametrize("tool", SUITES)
def test_every_outcome_by_name(tree: Path, tool: str) -> None:
    file = project(tree, tool)
    seen = reported(tree, "npm test")
    assert seen.exit_code == plain(tree, "npm test").returncode == 1
    assert sorted(seen.outcomes) == expected(file), seen.stderr
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert seen.results.reader == tool
    assert "sums differ" in seen.results.red[0].message
    assert seen.results.red[0].file == file
    assert "sums differ" in seen.stdout + seen.stderr, "people still see it"


@pytest.mark.series(3)
@pytest.mark.parametrize("tool", SUITES)
def test_options_are_the_weaker_means_and_used_where_a_script_sets_node_options(
    tree: Path, tool: str
) -> None:
    file = project(tree, tool, f"NODE_OPTIONS='--no-warnings' {COMMANDS[tool]}")
    for means in (0, 1):
        seen = reported(tree, "npm test", means=means)
        assert seen.exit_code == 1
        if tool == "mocha":  # its JSON joins titles by spaces
            assert len(seen.outcomes) == len(expected(file))
        else:
            assert sorted(seen.outcomes) == expected(file), seen.stderr
    direct = f"NODE_OPTIONS=--no-warnings npx {COMMANDS[tool]}"
    assert sorted(reported(tree, direct).outcomes) == expected(file)


@pytest.mark.parametrize("tool", SUITES)
def test_a_file_that_cannot_be_loaded(tree: Path, tool: str) -> None:
    name, _ = SUITES[tool]
    project(tree, tool)
    write(tree, {f"test/{name}": "import './nothing.js';\n"})
    seen = reported(tree, "npm test")
    assert seen.exit_code != 0
    assert seen.results is not None and not seen.results.all_named
    if tool != "mocha":  # it ends before anything is reported
        assert [(n, o) for n, o in seen.outcomes] == [(f"test/{name}", "error")]


@pytest.mark.parametrize("tool", SUITES)
def test_it_can_be_narrowed(tree: Path, tool: str) -> None:
    file = project(tree, tool)
    seen = narrowed(tree, "npm test", f"{file} > box > opens")
    assert seen.exit_code == 0, seen.stderr
    assert [name for name, outcome in seen.outcomes if outcome == "passed"] == [
        f"{file} > box > opens"
    ]


@pytest.mark.parametrize("tool", ["jest", "mocha"])
def test_a_program_under_test_reads_the_arguments_of_the_plain_command(
    tree: Path, tool: str
) -> None:
    name, _ = SUITES[tool]
    project(tree, tool)
    asks = "process.argv.slice(2).some((word) => word.startsWith('--'))"
    write(tree, {f"test/{name}": f"it('reads', () => {{ if ({asks}) throw 1; }});"})
    seen = reported(tree, "npm test")
    assert seen.outcomes == [(f"test/{name} > reads", "passed")], seen.stderr


def test_mocha_keeps_its_reporter_and_tells_of_hooks_and_cuts(tree: Path) -> None:
    write(
        tree,
        {
            "test/a.js": "describe('a', () => {\n  before(() => { throw new Error('no'); });\n"
            "  it('never', () => {});\n});\nit('good', () => {});\n",
            "test/b.js": "it('one', () => { throw new Error(); });\nit('two', () => {});\n",
            ".mocharc.json": '{"reporter": "dot"}',
        },
    )
    seen = reported(tree, "npx mocha 'test/a.js'")
    assert seen.stdout == plain(tree, "npx mocha 'test/a.js'").stdout or "1 failing" in seen.stdout
    assert ('test/a.js > a > "before all" hook for "never"', "error") in seen.outcomes
    assert seen.results is not None and seen.results.complete and not seen.results.all_named
    seen = reported(tree, "npx mocha --bail 'test/a.js'")
    assert seen.results is not None and not seen.results.named("test/a.js > good")[1:]
    seen = reported(tree, "npx mocha --bail --reporter=tap test/b.js")
    assert seen.outcomes == [("test/b.js > one", "failed")]
    assert seen.results is not None and not seen.results.complete
    assert "not ok 1" in seen.stdout
