"""Minitest and test-unit, through instrument, run and read."""

from pathlib import Path

import pytest

from agentrunner.verification.results.reporters import text_of
from tests.kit.files import write
from tests.kit.reporting import narrowed, need, plain, reported

CART = """
require 'minitest/autorun'
class CartTest < Minitest::Test
  def test_good; assert true; end
  def test_bad; assert_equal 1, 2, 'sums differ'; end
  def test_breaks; raise 'no'; end
  def test_skipped; skip 'later'; end
  def test_sees_no_trace; assert_nil ENV['RUBYLIB']; end
end
"""
SEEN = {
    ("CartTest#test_good", "passed"),
    ("CartTest#test_bad", "failed"),
    ("CartTest#test_breaks", "error"),
    ("CartTest#test_skipped", "skipped"),
    ("CartTest#test_sees_no_trace", "passed"),
}
RAKE = """
require 'minitest/test_task'
Minitest::TestTask.create(:test) { |t| t.test_globs = ['test/*_test.rb'] }
task default: :test
"""


def test_minitest(tmp_path: Path) -> None:
    need("ruby")
    write(tmp_path, {"test/cart_test.rb": CART})
    seen = reported(tmp_path, "ruby -Itest test/cart_test.rb --seed 1")
    before = plain(tmp_path, "ruby -Itest test/cart_test.rb --seed 1")
    assert seen.exit_code == before.returncode != 0
    assert set(seen.outcomes) == SEEN
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    bad = next(test for test in seen.results.tests if test.name == "CartTest#test_bad")
    assert bad.file == "test/cart_test.rb" and "sums differ" in bad.message
    assert narrowed(tmp_path, "ruby test/cart_test.rb", "CartTest#test_good").passing == [
        "CartTest#test_good"
    ]
    by_script = """ruby -e 'Dir["./test/*_test.rb"].each { |one| require one }'"""
    assert narrowed(tmp_path, by_script, "CartTest#test_good").passing == ["CartTest#test_good"]


def test_minitest_behind_rake(tmp_path: Path) -> None:
    need("ruby", "rake")
    write(tmp_path, {"test/cart_test.rb": CART, "Rakefile": RAKE})
    assert set(reported(tmp_path, "rake").outcomes) == SEEN


TEST_UNIT = """
require 'test/unit'
class CartTest < Test::Unit::TestCase
  def test_good; assert true; end
  def test_bad; assert_equal 1, 2, 'sums differ'; end
  def test_breaks; raise 'no'; end
  def test_skipped; omit 'later'; end
  def test_sees_no_trace; assert_nil ENV['RUBYLIB']; end
  data('one', 1)
  def test_rows(value); assert_equal 1, value; end
end
"""


def test_test_unit(tmp_path: Path) -> None:
    need("ruby")
    if plain(tmp_path, "ruby -e 'gem %q(test-unit)'").returncode:
        pytest.skip("test-unit is not installed")
    write(tmp_path, {"test/cart_test.rb": TEST_UNIT})
    seen = reported(tmp_path, "ruby test/cart_test.rb")
    before = plain(tmp_path, "ruby test/cart_test.rb")
    assert seen.exit_code == before.returncode != 0
    assert set(seen.outcomes) == {*SEEN, ("CartTest#test_rows[one]", "passed")}
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    bad = next(test for test in seen.results.tests if test.name == "CartTest#test_bad")
    assert bad.file == "test/cart_test.rb" and bad.line == 5 and "sums differ" in bad.message
    by_script = """ruby -e 'Dir["./test/*_test.rb"].each { |one| require one }'"""
    assert narrowed(tmp_path, by_script, "CartTest#test_good").passing == ["CartTest#test_good"]


def test_a_run_that_ends_in_the_middle(tmp_path: Path) -> None:
    need("ruby")
    ends = (
        "require 'minitest/autorun'\nclass B < Minitest::Test\n  def test_a; exit!(0); end\nend\n"
    )
    write(tmp_path, {"test/b_test.rb": ends})
    seen = reported(tmp_path, "ruby test/b_test.rb")
    assert seen.exit_code == 0
    assert seen.results is not None and not seen.results.complete


def test_a_report_works_in_old_rubies_and_takes_no_number_of_a_seeded_sequence(
    tmp_path: Path,
) -> None:
    need("ruby")
    write(tmp_path, {"lib/agentrunner_ruby.rb": text_of("agentrunner_ruby.rb")})
    program = (
        "class << File; alias by_one dirname; def dirname(path); by_one(path); end; end;"
        "srand(1); require './lib/agentrunner_ruby'; AgentRunnerReport.new('x');"
        "print rand(1 << 30)"
    )
    with_report = plain(tmp_path, f'ruby -e "{program}"')
    alone = plain(tmp_path, "ruby -e 'srand(1); print rand(1 << 30)'")
    assert (with_report.returncode, with_report.stdout) == (0, alone.stdout)
    assert len([*tmp_path.glob("x-*.jsonl")]) == 1
