"""Tests without a grammar are found by their words, and made to expect something else."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.word_tests import tests_by_words as by_words

PHP = b"""<?php
final class CartTest extends TestCase
{
    public function testCount(): void
    {
        $cart->add(15);
        $this->assertSame(15, total([[15, 1]]), "message");
    }

    public function testNone(): void
    {
        $this->assertSame(0, total([]));
    }
}
"""
RUBY = b"""RSpec.describe 'total' do
  it('counts') { expect(total([[5, 3]])).to eq(15) }
  it 'none' do
    expect(total([])).to eq 0
  end
end
"""
PERL = b"""is(total(0, 3), 0, "none");
is(
  total(5, 3),
  15,
  "count",
);
ok(total(1, 1) != 2, "other");
"""
MINITEST = b"class CartTest < Minitest::Test\n  def test_n; assert_equal 3, abs(3); end\nend\n"


@pytest.mark.parametrize(
    ("source", "path", "name", "before", "after"),
    [
        (
            PHP,
            "t/CartTest.php",
            "CartTest::testCount",
            b"Same(15, total([[15",
            b"Same(16, total([[15",
        ),
        (RUBY, "spec/cart_spec.rb", "spec/cart_spec.rb > total counts", b"eq(15)", b"eq(16)"),
        (RUBY, "spec/cart_spec.rb", "spec/cart_spec.rb > total none", b"eq 0", b"eq 1"),
        (PERL, "t/cart.t", "t/cart.t > count", b"  15,", b"  16,"),
        (MINITEST, "test/cart_test.rb", "CartTest#test_n", b"equal 3,", b"equal 4,"),
    ],
)
def test_what_a_claimed_test_expects_is_changed(
    source: bytes, path: str, name: str, before: bytes, after: bytes
) -> None:
    (found,) = by_words(source, path, name, None)
    sure = [edit for one in found.statements if one.sure for edit in one.edits]
    made = applied(source, sure).replace(b'"agentrunner"', b'"message"')
    assert made == source.replace(before, after)


MESSAGES = b"""<?php
class CartTest extends TestCase
{
    public function testSame()
    {
        $this->assertSame($want, $got, 'they differ by 3');
        assert($want == $got, "differ");
    }

    public function testSum()
    {
        $this->assertSame(15, $total + 1, 'differs');
        $this->assertSame('a' . 'b', $got);
        assert($got == 3, "differ by 1");
    }
}
"""
GTESTS = b"""TEST(CartTest, Sums) { EXPECT_EQ(15, total(1, 2)) << "sum 3"; }
TEST_F(OtherTest, Sums) {
  ASSERT_EQ('a', first("abc"));
  EXPECT_STREQ("abc", all());
}
"""


def test_what_an_assertion_says_when_it_fails_is_not_what_it_expects() -> None:
    (found,) = by_words(MESSAGES, "t/CartTest.php", "CartTest::testSame", None)
    assert found.statements == ()
    (found,) = by_words(MESSAGES, "t/CartTest.php", "CartTest::testSum", None)
    made = applied(MESSAGES, [edit for one in found.statements for edit in one.edits])
    wanted = MESSAGES.replace(b"Same(15,", b"Same(16,").replace(b"$got == 3", b"$got == 4")
    assert made == wanted, "two parts of a sum can change each other's change"


LISTED = b"""subtest 'With filename' => sub {
    my @expected = lines(<<"HERE");
$file-1-I met a traveller
HERE
    lists_match(\\@results, \\@expected, q{With filename});
};
"""


def test_any_value_of_a_group_counts_where_no_statement_says_what_is_equal() -> None:
    (found,) = by_words(LISTED, "t/a.t", "t/a.t > With filename > match > With filename", None)
    made = applied(LISTED, [edit for one in found.statements for edit in one.edits])
    assert made == LISTED.replace(b"$file-1-I", b"$file-2-I")


@pytest.mark.parametrize(
    ("name", "line", "before", "after"),
    [
        ("CartTest.Sums", 1, b"EQ(15", b"EQ(16"),
        ("Few/OtherTest.Sums/0", 2, b'STREQ("abc"', b'STREQ("agentrunner"'),
    ],
)
def test_googletests_are_found_by_suite_and_name(
    name: str, line: int, before: bytes, after: bytes
) -> None:
    (found,) = by_words(GTESTS, "cart_test.cc", name, None)
    assert found.line == line
    sure = [edit for one in found.statements if one.sure for edit in one.edits]
    assert applied(GTESTS, sure) == GTESTS.replace(before, after)
    assert found.end is not None and b"EXPECT_EQ(1, 2);\n}" in applied(GTESTS, [found.end])


def test_what_is_not_equal_is_not_sure() -> None:
    (found,) = by_words(PERL, "t/cart.t", "t/cart.t > other", None)
    assert [one.sure for one in found.statements] == [False]


def test_the_end_stands_in_the_body_of_one_line() -> None:
    (found,) = by_words(RUBY, "spec/cart_spec.rb", "x > total counts", None)
    assert found.end is not None
    assert b'eq(15) \nexpect("made").to eq("to fail")\n}' in applied(RUBY, [found.end])


def test_a_name_that_stands_nowhere_is_found_by_its_line() -> None:
    assert by_words(PHP, "t/CartTest.php", "made up", None) == []
    assert by_words(PHP, "t/CartTest.php", "made up", 11)[0].line == 11


def test_what_a_question_is_asked_with_is_no_expected_value() -> None:
    body = b"  def test_n\n    assert_equal true, over?(1, 2)\n  end\n"
    source = b"class CartTest < Minitest::Test\n" + body + b"end\n"
    (found,) = by_words(source, "test/cart_test.rb", "CartTest#test_n", None)
    assert not found.statements and found.end is not None
