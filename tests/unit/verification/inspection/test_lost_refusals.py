"""What functions refuse no more, in the usual languages."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.lost_refusals import lost_refusals
from tests.kit.text_trees import both_trees

ASKED = "`total` ignores the quantity of a line. Fix it."
SHARE = (
    "def share(part, whole):\n    if whole == 0:\n        raise ValueError(f'no share of {part}')\n"
    "    if part < 0:\n        raise ValueError('negative')\n    return part / whole\n"
)
BARE = "def share(part, whole):\n    return part / whole\n"


def _kinds(path: str, old: str, new: str, asked: str = ASKED, **more: str) -> list[str]:
    trees = both_trees(
        {path: old}, {path: new, **{f"{name}.py": text for name, text in more.items()}}
    )
    return [one.kind for one in lost_refusals(trees, asked)]


@pytest.mark.parametrize(
    ("path", "head", "guard", "rest", "kind"),
    [
        ("a.py", "def f(x):\n", "    if x: raise errors.Bad('no such')\n", "    return x\n", "Bad"),
        (
            "a.js",
            "function f(x) {\n",
            "  if (x) throw new RangeError('no');\n",
            "  g(x);\n}\n",
            "RangeError",
        ),
        ("a.js", "function f(x) {\n", "  if (x) return send(401, 'no');\n", "  g(x);\n}\n", "401"),
        (
            "a.go",
            "package a\n\nfunc F(x int) error {\n",
            '\tif x < 0 {\n\t\treturn errors.New("negative")\n\t}\n',
            "\treturn g(x)\n}\n",
            "errors.New",
        ),
        (
            "a.rs",
            "fn f(x: i32) -> Result<i32, String> {\n",
            '    if x < 0 { return Err(format!("negative: {x}")); }\n',
            "    Ok(x)\n}\n",
            "Err",
        ),
        (
            "a.php",
            "<?php\nfunction f($x)\n{\n",
            '    if ($x) {\n        throw new \\LogicException("no $x");\n    }\n',
            "    return $x;\n}\n",
            "LogicException",
        ),
        (
            "a.rb",
            "def f(x)\n",
            "  raise ArgumentError, 'no' unless x\n",
            "  x\nend\n",
            "ArgumentError",
        ),
        (
            "a.c",
            "int f(int x) {\n",
            "    if (x < 0)\n        return -1;\n",
            "    return g(x);\n}\n",
            "return -1",
        ),
        ("a.sh", "#!/bin/sh\n", '[ -d "$1" ] || exit 2\n', 'cp "$1" to\n', "exit 2"),
    ],
)
def test_a_check_is_gone(path: str, head: str, guard: str, rest: str, kind: str) -> None:
    assert _kinds(path, head + guard + rest, head + rest) == [kind]
    assert _kinds(path, head + guard + rest, head + guard + rest + "\n") == []


def test_what_says_no_in_other_words_or_elsewhere_is_kept() -> None:
    merged = BARE.replace(
        "    return", "    if whole == 0 or part < 0:\n        raise ValueError\n    return"
    )
    assert _kinds("a.py", SHARE, merged) == []
    other = SHARE.replace("ValueError", "ShareError")
    assert _kinds("a.py", SHARE, other) == []
    moved = "def check(part, whole):\n" + SHARE.split("\n", 1)[1]
    assert (
        _kinds(
            "a.py", SHARE, BARE.replace("    return", "    check(part, whole)\n    return"), b=moved
        )
        == []
    )
    by_name = BARE.replace("    return", "    if whole == 0:\n        fail('no share')\n    return")
    assert _kinds("a.py", SHARE, by_name) == []
    assert (
        _kinds("a.py", "def f():\n    raise NotImplementedError\n", "def f():\n    return 1\n")
        == []
    )


def test_what_the_text_speaks_of_may_go() -> None:
    assert _kinds("a.py", SHARE, BARE, "`share` should not raise where nothing is there.") == []
    assert _kinds("a.py", SHARE, BARE, "No ValueError, please.") == []
    assert _kinds("a.py", SHARE, BARE, "Negative parts are allowed.") == []
    assert _kinds("a.py", SHARE, BARE, "Drop blanks.") == ["ValueError", "ValueError"]


@pytest.mark.parametrize("changed", [False, True])
def test_what_is_lost_can_be_put_back(changed: bool) -> None:
    """Lines that are only changed stay as they are now."""
    now = BARE.replace("part / whole", "part * 1.0 / whole") if changed else BARE
    trees = both_trees({"a.py": SHARE}, {"a.py": now})
    lines, whole = lost_refusals(trees, ASKED)[0].restored
    restored = [now[: one.start] + one.text + now[one.end :] for one in (lines, whole)]
    assert restored[1] == SHARE
    one_of_two = now.replace("    return", "".join(SHARE.splitlines(True)[1:3]) + "    return")
    assert restored[0] == (one_of_two if changed else SHARE)


ADMIN = """def require_admin(user):
    if not user.admin:
        raise Forbidden(user)


def logged_in(function):
    def inner(user):
        if user is None:
            raise Forbidden("nobody")
        return function(user)
    return inner


@logged_in
def show(user):
    return user.name


def delete(user, post):
    require_admin(user)
    post.delete()
"""


@pytest.mark.parametrize("line", ["    require_admin(user)\n", "@logged_in\n"])
def test_a_function_that_checks_is_not_called_any_more(line: str) -> None:
    assert _kinds("a.py", ADMIN, ADMIN.replace(line, "")) == [line.strip(" @\n").split("(")[0]]
    assert _kinds("a.py", ADMIN, ADMIN.replace(line, line + "\n")) == []
    asked = "Everybody may call `delete`: take out `require_admin` and `logged_in`."
    assert _kinds("a.py", ADMIN, ADMIN.replace(line, ""), asked) == []
