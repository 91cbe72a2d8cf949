"""RSpec, PHPUnit and behave, through instrument, run and read."""

from pathlib import Path

from tests.kit.files import write
from tests.kit.reporting import narrowed, need, plain, reported

SPEC = """
RSpec.describe 'Cart' do
  it('is good') { expect(1).to eq 1 }
  it('is bad') { expect(1).to eq 2 }
  xit('is skipped') { }
  it('is known') { pending 'later'; expect(1).to eq 2 }
  it('is mended') { pending 'later'; expect(1).to eq 1 }
  context('empty') { it('sums') { } }
  [1, 2].each { |n| it('is the same') { } }
  it('sees no trace') { expect(ENV['SPEC_OPTS']).to be_nil }
end
"""
S = "spec/a_spec.rb > Cart"
SPECS = {
    (f"{S} is good", "passed"),
    (f"{S} is bad", "failed"),
    (f"{S} is skipped", "skipped"),
    (f"{S} is known", "xfailed"),
    (f"{S} is mended", "failed"),
    (f"{S} empty sums", "passed"),
    (f"{S} is the same", "passed"),
    (f"{S} sees no trace", "passed"),
}


def test_rspec(tree: Path) -> None:
    need("rspec", "make")
    write(tree, {"spec/a_spec.rb": SPEC, "Makefile": "test:\n\t@rspec --format documentation\n"})
    seen = reported(tree, "make test")
    before = plain(tree, "make test")
    assert seen.exit_code == before.returncode != 0
    assert set(seen.outcomes) == SPECS
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert seen.results.names[f"{S} is the same"] == 2
    assert seen.stdout.splitlines()[:4] == before.stdout.splitlines()[:4]
    assert narrowed(tree, "rspec", f"{S} is good").passing == [f"{S} is good"]
    cut = reported(tree, "rspec --fail-fast")
    assert cut.results is not None and not cut.results.complete
    write(tree, {"spec/b_spec.rb": "require 'nothing_of_that_name'\n"})
    lost = reported(tree, "rspec")
    assert ("spec/b_spec.rb", "error") in lost.outcomes
    assert lost.results is not None and not lost.results.complete
    write(tree, {"spec/b_spec.rb": "RSpec.describe('B') { it('ends') { exit!(0) } }\n"})
    ended = reported(tree, "rspec spec/b_spec.rb")
    assert ended.exit_code == 0
    assert ended.results is not None and not ended.results.complete


PHP = """<?php
namespace Shop;
use PHPUnit\\Framework\\TestCase;
final class CartTest extends TestCase {
    public function testGood(): void { $this->assertTrue(true); }
    public function testBad(): void { $this->assertSame(1, 2, 'sums differ'); }
    public function testBreaks(): void { throw new \\RuntimeException('no'); }
    public function testSkipped(): void { $this->markTestSkipped('later'); }
    /** @dataProvider rows */
    public function testMany(int $n): void { $this->assertSame(1, $n); }
    public static function rows(): array { return [[1], 'two' => [2]]; }
    public function testSeesNoTrace(): void { $this->assertFalse(getenv('PHP_INI_SCAN_DIR')); }
}
"""
CLASS = "Shop\\CartTest::"
PHPS = {
    (f"{CLASS}testGood", "passed"),
    (f"{CLASS}testBad", "failed"),
    (f"{CLASS}testBreaks", "error"),
    (f"{CLASS}testSkipped", "skipped"),
    (f"{CLASS}testMany with data set #0", "passed"),
    (f'{CLASS}testMany with data set "two"', "failed"),
    (f"{CLASS}testSeesNoTrace", "passed"),
}


def test_phpunit(tree: Path) -> None:
    need("phpunit", "php")
    write(tree, {"tests/CartTest.php": PHP, "composer.json": '{"scripts": {"test": "phpunit"}}'})
    seen = reported(tree, "phpunit tests")
    assert seen.exit_code == plain(tree, "phpunit tests").returncode == 2
    assert set(seen.outcomes) == PHPS
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    bad = seen.results.named(f"{CLASS}testBad")[0]
    assert bad.file == "tests/CartTest.php" and "sums differ" in bad.message
    option = reported(tree, "phpunit tests", means=1)
    assert set(option.outcomes) - PHPS == {(f"{CLASS}testSeesNoTrace", "passed")} - PHPS
    assert narrowed(tree, "phpunit tests", f"{CLASS}testGood").passing == [f"{CLASS}testGood"]
    write(tree, {"tests/CartTest.php": PHP.replace("$this->assertTrue(true);", "exit(0);")})
    ended = reported(tree, "phpunit tests")
    assert ended.results is None or not ended.results.complete


FEATURES = {
    "features/cart.feature": """Feature: Cart
  Scenario: good
    Given 1
  Scenario: bad
    Given 2
  Scenario: undefined
    Given nothing
  @skip
  Scenario: skipped
    Given 1
  Scenario Outline: many
    Given <n>
    Examples: numbers
      | n |
      | 1 |
      | 2 |
  Scenario: breaks
    Given broken
""",
    "features/steps/steps.py": """import os
from behave import given

@given("{n:d}")
def step(context, n):
    assert "PYTHONPATH" not in os.environ
    assert n == 1, "sums differ"

@given("broken")
def broken(context):
    raise KeyError("no")
""",
}
F = "features/cart.feature"
SCENARIOS = {
    (f"{F} > good", "passed"),
    (f"{F} > bad", "failed"),
    (f"{F} > undefined", "failed"),
    (f"{F} > skipped", "skipped"),
    (f"{F} > many -- @1.1 numbers", "passed"),
    (f"{F} > many -- @1.2 numbers", "failed"),
    (f"{F} > breaks", "failed"),
}


def test_behave(tree: Path) -> None:
    need("behave")
    write(tree, FEATURES)
    shell = "behave --tags=-skip --format progress"
    seen = reported(tree, shell)
    before = plain(tree, shell)
    assert seen.exit_code == before.returncode == 1
    assert set(seen.outcomes) == SCENARIOS
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert "sums differ" in seen.results.named(f"{F} > bad")[0].message
    assert (
        seen.stdout.splitlines()[0].split("  #")[0] == before.stdout.splitlines()[0].split("  #")[0]
    )
    junit = reported(tree, shell, means=1)
    assert {name for name, _ in junit.outcomes} >= {f"{F} > good", f"{F} > bad"}
    assert [n for n, o in narrowed(tree, "behave", f"{F} > good").outcomes if o == "passed"] == [
        f"{F} > good"
    ]
    write(tree, {"features/steps/steps.py": "import os\nos._exit(0)\n"})
    ended = reported(tree, "behave")
    assert ended.results is None or not ended.results.complete
