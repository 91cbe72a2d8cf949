"""What programs expect line by line, changed; read from their words."""

import pytest

from agentrunner.verification.syntax.edits import applied
from agentrunner.verification.syntax.stated_literals import other_expectations

NODE = """function check(name, got, want) {
  if (got !== want) failed += 1;
}
check('empty', total([]), 0);
check('count', total([{ price: 5, count: 3 }]), 15);
const n = 3;
"""
SHELL = """expect() {
   if [ "$1" != "$2" ]; then failed=1; fi
}
[ "$(total)" = 0 ] || failed=1
total 5 3 > out; expect "$(cat out)" 15
count=15
"""
C = """#define SAME(a, b) do { if ((a) != (b)) failures++; } while (0)
int main(void) {
    CHECK(total(5, 3) == 15);
    SAME(total(1, 1), 1);
    if (argc == 2) {
    }
    return failures ? 1 : 0;
}
"""
PERL = """sub check { my ($name, $got, $want) = @_; if ($got != $want) { $failed++ } }
check("a", total([5,3]), 15);
total() == 0 or die "empty";
"""


@pytest.mark.parametrize(
    ("program", "lines", "sure"),
    [
        (
            NODE,
            [
                "check('empty', total([]), 1);",
                "check('count', total([{ price: 5, count: 3 }]), 16);",
            ],
            True,
        ),
        (
            SHELL,
            [
                '   if [ "$1" != "$2" ]; then failed=2; fi',
                '[ "$(total)" = 1 ] || failed=1',
                'total 5 3 > out; expect "$(cat out)" 16',
            ],
            None,
        ),
        (C, ["    CHECK(total(5, 3) == 16);", "    SAME(total(1, 1), 2);"], None),
        (PERL, ['check("a", total([5,3]), 16);', 'total() == 1 or die "empty";'], None),
    ],
)
def test_each_line_expects_something_else(
    program: str, lines: list[str], sure: bool | None
) -> None:
    source = program.encode()
    found = other_expectations(source, "end()")
    changed = [applied(source, one.edits).decode().split("\n")[one.line - 1] for one in found]
    assert changed == lines
    assert sure is None or all(one.sure is sure for one in found)
    for one in found:
        ended = applied(source, one.kill).decode().split("\n")
        assert ended[one.line - 1].strip() == "end();"
        assert ended[one.line] == program.split("\n")[one.line - 1]


def test_what_a_check_is_called_is_not_what_it_expects() -> None:
    program = """check() {
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        failed=1
    fi
}
check "usage" "$code" 2
exit 1
"""
    found = other_expectations(program.encode(), "exit 1")
    assert [one.kind for one in found if one.line == 8] == ["check, argument 3"]
