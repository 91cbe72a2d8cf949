"""What functions refuse no more, in the usual languages."""

from __future__ import annotations

import time

import pytest

from agentrunner.verification.inspection.lost_refusals import lost_refusals
from agentrunner.verification.syntax.edits import applied
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
        ("a.sh", "#!/bin/sh\n", "from=${1:?which}\n", 'cp "$from" to\n', "${1:?"),
        ("a.rb", "def f(x)\n", "  fail KeyError, 'no' unless x\n", "  x\nend\n", "KeyError"),
        ("a.rb", "def f(x)\n", "  return head :forbidden unless x\n", "  x\nend\n", "forbidden"),
        (
            "a.go",
            "package a\n\nfunc F(w W) {\n",
            '\tif no {\n\t\thttp.Error(w, "no", http.StatusForbidden)\n\t\treturn\n\t}\n',
            "\tg(w)\n}\n",
            "Forbidden",
        ),
        ("a.py", "x = 1\n", "if x:\n    raise SystemExit('no')\n", "print(x)\n", "SystemExit"),
        ("a.php", "<?php\n", "if ($x) {\n    send(403);\n}\n", "echo 1;\n", "403"),
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
    restored = [applied(now.encode(), one).decode() for one in (lines, whole)]
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


LAX = "`share` gets a second argument."


@pytest.mark.parametrize(
    ("asked", "lost"),
    [
        (f"{LAX}\n\n## Acceptance criteria\n\n- It works.", True),
        (f"{LAX} It accepts anything.", False),
        (f"{LAX} Bad parts are ignored.", False),
        (f"{LAX} `whole` is optional.", False),
        (f"{LAX} It falls back to 1.", False),
        (f"{LAX} Validation moves to the model.", False),
        ("0 で割ってもエラーにしない", False),
        ("確認を外す", False),
    ],
)
def test_words_by_which_less_may_be_refused(asked: str, lost: bool) -> None:
    assert bool(_kinds("a.py", SHARE, BARE, asked)) is lost


def test_a_refusal_that_is_asked_for_does_not_pay_for_another() -> None:
    other = BARE.replace(
        "    return", "    if part > whole:\n        raise TooMuch(part)\n    return"
    ).replace("    if part >", "    if part > 9:\n        raise TooMuch(9)\n    if part >")
    assert _kinds("a.py", SHARE, other) == []
    asked = "`share` should raise TooMuch for more than the whole."
    assert _kinds("a.py", SHARE, other, asked) == ["ValueError", "ValueError"]
    assert _kinds("a.py", SHARE, SHARE.replace("ValueError", "TooMuch"), asked) == []


GO = 'package a\n\nfunc F(x int) error {\n\tif x < 0 {\n\t\treturn errors.New("no")\n\t}\n'


def test_comments_and_what_is_handed_on_say_nothing() -> None:
    old, now = GO + "\treturn g(x)\n}\n", "package a\n\nfunc F(x int) error {\n"
    assert _kinds("a.go", old, now + "\t// never fails\n\treturn g(x)\n}\n") == ["errors.New"]
    handed = "\terr := g(x)\n\tif err != nil {\n\t\treturn err\n\t}\n\treturn nil\n}\n"
    assert _kinds("a.go", old, now + handed) == ["errors.New"]


SIGNED = (
    "function a(req, res) {\n  if (!req.user) return send(res, 401);\n  send(res, 200);\n}\n"
    "function b(req, res) {\n  if (!req.user) return send(res, 401);\n  list(res);\n}\n"
    "r.get('/a', a);\nr.get('/b', b);\n"
)
HELPED = (
    "function signedIn(req, res) {\n  if (req.user) return true;\n  send(res, 401);\n}\n"
    "function a(req, res) {\n  if (!signedIn(req, res)) return;\n  send(res, 200);\n}\n"
    "function b(req, res) {\n  if (!signedIn(req, res)) return;\n  list(res);\n}\n"
    "r.get('/a', a);\nr.get('/b', b);\n"
)
BEFORE_ROUTES = (
    "function auth(req, res, next) {\n  if (!req.user) return send(res, 401);\n  next();\n}\n"
    "function a(req, res) {\n  send(res, 200);\n}\nfunction b(req, res) {\n  list(res);\n}\n"
    "r.get('/a', auth, a);\nr.get('/b', auth, b);\n"
)
USERS = (
    "def name(uid):\n    if uid not in USERS:\n        raise NotFound(uid)\n"
    "    return USERS[uid].name\n"
    "\n\ndef age(uid):\n    if uid not in USERS:\n        raise NotFound(uid)\n"
    "    return USERS[uid].age\n"
)
FOUND = (
    "def _user(uid):\n    if uid not in USERS:\n        raise NotFound(uid)\n"
    "    return USERS[uid]\n"
    "\n\ndef name(uid):\n    return _user(uid).name\n\n\ndef age(uid):\n    return _user(uid).age\n"
)
RUST = (
    "fn f(x: i32) -> Result<(), E> {\n    if x < 0 { return Err(E::Low); }\n    g(x)\n}\n"
    "fn h(x: i32) -> Result<(), E> {\n    if x < 0 { return Err(E::Low); }\n    Ok(())\n}\n"
)
RUST_HELPED = (
    "fn check(x: i32) -> Result<(), E> {\n    if x < 0 { return Err(E::Low); }\n    Ok(())\n}\n"
    "fn f(x: i32) -> Result<(), E> {\n    check(x)?;\n    g(x)\n}\n"
    "fn h(x: i32) -> Result<(), E> {\n    check(x)?;\n    Ok(())\n}\n"
)


@pytest.mark.parametrize(
    ("path", "old", "new", "cheat"),
    [
        ("a.js", SIGNED, HELPED, "  if (!signedIn(req, res)) return;\n"),
        ("a.js", SIGNED, BEFORE_ROUTES, "auth, "),
        ("a.js", SIGNED, BEFORE_ROUTES.replace("auth, ", "") + "r.use(auth);\n", "r.use(auth);\n"),
        ("a.py", USERS, FOUND, "_user(uid)."),
        ("a.rs", RUST, RUST_HELPED, "    check(x)?;\n"),
    ],
)  # fmt: skip
def test_a_helper_or_what_stands_before_a_route_refuses(
    path: str, old: str, new: str, cheat: str
) -> None:
    assert _kinds(path, old, new) == []
    assert len(_kinds(path, old, new.replace(cheat, ""))) > 0


@pytest.mark.parametrize(
    ("path", "head", "old", "new"),
    [
        ("a.go", "func F() error {", 'if x {\n\t\treturn fmt.Errorf("invalid")\n\t}', error)
        for error in (
            "if x {\n\t\treturn ErrMissing\n\t}",
            "if x {\n\t\treturn &MissingError{1}\n\t}",
        )
    ]
    + [
        ("a.rs", "fn f() -> R {", "match g() { Some(x) => Ok(x), None => Err(E) }", error)
        for error in ("g().ok_or(E)", "Ok(g().map_err(E)?)")
    ]
    + [
        ("a.js", "function f(x) {", "if (!x) throw new TypeError('no');", new)
        for new in ("assert.ok(x);", "invariant(x);", "bodySchema.parse(x);")
    ]
    + [
        (
            "a.java",
            "void f(B x) {",
            "if (x == null) throw new NullPointerException();",
            "Objects.requireNonNull(x);",
        ),
        (
            "a.cs",
            "void F(B x) {",
            "if (x == null) throw new ArgumentException();",
            "ArgumentNullException.ThrowIfNull(x);",
        ),
        (
            "a.js",
            "function f(x) {",
            "x.sort((a, b) => { if (a < b) return -1; return 2; });",
            "x.sort((a, b) => a - b);",
        ),
        ("a.c", "int f(int a, int b) {", "if (a < b) return -1; return 1;", "return a - b;"),
        ("a.js", "function f(x) {", "let width = 400;", "let width = 500;"),
        ("a.js", "function f(x) {", "process.exit(0);", "x();"),
        ("a.js", "function f(x) {", "process.exit();", "x();"),
    ],
)
def test_what_refuses_in_other_words_or_never_did(path: str, head: str, old: str, new: str) -> None:
    assert _kinds(path, f"{head}\n\t{old}\n}}\n", f"{head}\n\t{new}\n}}\n") == []


@pytest.mark.parametrize(
    "line", ["res.status(404).end();", "res.statusCode = 404;", "return [1, 404];"]
)
def test_a_status_is_lost(line: str) -> None:
    assert _kinds(
        "a.js", f"function f(res) {{\n  {line}\n}}\n", "function f(res) {\n  g(res);\n}\n"
    ) == ["404"]


STORE = (
    "class Store {\n  save(x) {\n    throw new Error('abstract');\n  }\n}\n"
    "class Files extends Store {\n  save(x) {\n    this.all.push(x);\n  }\n}\n"
    "function add(x) {\n  repo.save(x);\n  save(x);\n  g(x);\n}\n"
)


def test_what_another_definition_works_for_is_no_check() -> None:
    assert _kinds("a.js", STORE, STORE.replace("  repo.save(x);\n  save(x);\n", "")) == []
    alone = "def stop():\n    raise Halt\n\n\ndef f(x):\n    stop()\n    g(x)\n"
    assert _kinds("a.py", alone, alone.replace("    stop()\n", "")) == []


def test_a_long_function_is_put_back_as_a_whole() -> None:
    long = "    g()\n" * 3000
    trees = both_trees(
        {"a.py": f"def f(x):\n    if x:\n        raise Bad\n{long}"}, {"a.py": f"def f(x):\n{long}"}
    )
    assert len(lost_refusals(trees, ASKED)[0].restored) == 1


def test_a_head_and_imports_are_put_back() -> None:
    old = 'package a\n\nimport (\n\t"errors"\n)\n\n' + GO[11:] + "\treturn nil\n}\n"
    now = "package a\n\nfunc F(x int) {\n}\n"
    whole = lost_refusals(both_trees({"a.go": old}, {"a.go": now}), ASKED)[0].restored[-1]
    restored = applied(now.encode(), whole).decode()
    assert restored == 'package a\nimport "errors"\n\n' + GO[11:] + "\treturn nil\n}\n"
    other = {"a.py": "from old import g\nimport h\n\n\ndef f(x):\n    if x:\n        raise Bad\n"}
    same = {"a.py": "from new import g\n\n\ndef f(x):\n    g(x)\n"}
    assert [len(one) for one in lost_refusals(both_trees(other, same), ASKED)[0].restored] == [1, 1]
    php = "<?php\nfunction f($x): int\n{\n    if ($x) throw new Bad();\n    return 1;\n}\n"
    trees = both_trees({"a.php": php}, {"a.php": "<?php\nfunction f($x)\n{\n    return 1;\n}\n"})
    first = lost_refusals(trees, ASKED)[0].restored[-1]
    assert first[-1].text.startswith("function f($x): int\n")


NEED = "def need(x):\n    if not x:\n        raise Bad\n    return x\n"


@pytest.mark.parametrize(
    ("call", "kept"), [("return need(x)", True), ("return a.need(x)", False), ("return x", False)]
)
def test_a_helper_of_an_unchanged_file_refuses(call: str, kept: bool) -> None:
    old = {"a.py": NEED.replace("need", "f"), "b.py": NEED}
    trees = both_trees(old, {**old, "a.py": f"def f(x):\n    {call}\n"})
    assert (lost_refusals(trees, ASKED) == []) is kept


RENAMED = SHARE.replace("share(part", "portion(part")


@pytest.mark.parametrize("path", ["a.py", "parts/a.py"])
def test_another_name_or_file_hides_no_loss(path: str) -> None:
    bare = RENAMED.replace("    if part < 0:\n        raise ValueError('negative')\n", "")
    other = SHARE.replace("ValueError('neg", "TooLow('neg")
    trees = both_trees({"a.py": other}, {path: bare})
    (lost,) = lost_refusals(trees, ASKED)
    assert (lost.kind, lost.path) == ("TooLow", path)
    assert applied(bare.encode(), lost.restored[0]).decode() == RENAMED.replace(
        "ValueError('neg", "TooLow('neg"
    )
    assert (
        lost_refusals(both_trees({"a.py": other}, {path: other.replace("share", "of")}), "") == []
    )


def test_the_same_error_for_something_else_is_no_stand_in() -> None:
    asked = "`share` raises `ValueError` for more than the whole."
    other = BARE.replace(
        "    return", "    if part > whole:\n        raise ValueError('all')\n    return"
    )
    old = SHARE.replace("    if part < 0:\n        raise ValueError('negative')\n", "").replace(
        "whole == 0", "nothing()"
    )
    assert _kinds("a.py", old, other, asked) == ["ValueError"]
    same = old.replace("if nothing()", "if part > whole")
    assert _kinds("a.py", same, other, asked) == []


CAUGHT = "def f(x):\n    try:\n        g(x)\n    except OSError:\n        close()\n        raise\n"


def test_what_is_caught_is_handed_on() -> None:
    swallowed = CAUGHT.replace("        raise\n", "        return None\n")
    trees = both_trees({"a.py": CAUGHT}, {"a.py": swallowed})
    (lost,) = lost_refusals(trees, ASKED)
    assert applied(swallowed.encode(), lost.restored[0]).decode() == swallowed.replace(
        "        close()", "        raise\n        close()"
    )
    cleaned = CAUGHT.replace("    except OSError:", "    finally:").replace("        raise\n", "")
    assert _kinds("a.py", CAUGHT, cleaned) == []


@pytest.mark.parametrize(
    ("asked", "lost"),
    [
        ("`total(lines, note)` takes an optional note.", True),
        ("The `allow_list` and `schema_version` are written.", True),
        ("`ratio` takes an optional note.", False),
        ("`share` takes an optional note.", False),
        ("A note is optional.", False),
    ],
)
def test_words_for_another_function_let_no_check_go(asked: str, lost: bool) -> None:
    rest = "\n\ndef total(lines):\n    return 1\n\n\ndef ratio(x):\n    return share(x, 2)\n"
    assert bool(_kinds("a.py", SHARE + rest, BARE + rest, asked)) is lost


def test_a_name_that_is_only_kept_refuses_nothing() -> None:
    counts = "    counts.failed = invalid = 0\n    counts.failed += 1\n"
    counted = BARE.replace("    return", f"{counts}    return")
    assert _kinds("a.py", SHARE, counted) == ["ValueError", "ValueError"]


def test_a_warning_refuses_nothing() -> None:
    warned = SHARE.replace("raise ValueError(", "log.warning(")
    assert _kinds("a.py", SHARE, warned) == ["ValueError", "ValueError"]


def test_an_error_with_its_status_is_one() -> None:
    old = "def f(x):\n    if x:\n        raise Http(\n            status=404)\n    g(404)\n"
    assert _kinds("a.py", old, old.replace("Http(\n            status=404)", "Missing")) == []
    assert _kinds("a.py", old, "def f(x):\n    g(x)\n", "No 404 any more.") == []


def test_data_beside_functions_are_no_status() -> None:
    old = "<?php\n$x = [1, 404];\nf(1, 2);\n"
    assert _kinds("a.php", old, "<?php\n$x = [1];\nf(1, 2);\n") == []


def test_a_decorator_whose_name_stands_in_a_text_refuses() -> None:
    old = "def f(x):\n    if x < 0:\n        raise Bad('positive')\n    return x\n"
    guard = (
        "def positive(of):\n    def inner(x):\n"
        "        if x < 0:\n            raise Bad('positive')\n"
        "        return of(x)\n    return inner\n\n\n"
    )
    two = old + "\n\n" + old.replace("f(x)", "g(x)")
    bare = "@positive\ndef f(x):\n    return x\n\n\n@positive\ndef g(x):\n    return x\n"
    assert _kinds("a.py", two, guard + bare) == []
    assert _kinds("a.py", two, guard + bare.replace("@positive\n", "")) != []


GUARD = "function need(req) {\n  if (!req.user) throw new Forbidden();\n}\n"
ROUTES = "app.get('/a', need, (req) => f(req));\napp.get('/b', need, (req) => g(req));\n"


@pytest.mark.parametrize(
    ("now", "lost"),
    [
        (ROUTES.replace("need, (req) => f", "(req) => f"), True),
        (ROUTES.replace("need, ", "") + "app.use(need);\n", False),
        (ROUTES.replace("app.get('/a', need, ", "guarded('/a', "), False),
        (ROUTES.replace("f(req)", "h(req)"), False),
    ],
)
def test_a_function_that_refuses_stands_before_a_route(now: str, lost: bool) -> None:
    for guard in ("", GUARD):  # in the same file, or in one that is as it was
        old = {"a.js": guard + ROUTES, "b.js": "" if guard else GUARD}
        trees = both_trees(old, {**old, "a.js": guard + now})
        found = lost_refusals(trees, ASKED)
        assert [one.kind for one in found] == (["need"] if lost else [])
        for one in found[0].restored if lost else ():
            assert applied((guard + now).encode(), one).decode() == guard + ROUTES


@pytest.mark.parametrize("long", ["a" * 150_000, "status" * 25_000, "$" * 150_000 + "("])
def test_a_file_with_a_long_word_is_looked_at_quickly(long: str) -> None:
    begun = time.process_time()
    guard = f"function f(x) {{\n  if ({long}) throw new RangeError('no');\n"
    assert _kinds("a.js", guard + "  g(x);\n}\n", "function f(x) {\n  g(x);\n}\n")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    ("kit", "lost"),
    [
        ("", []),
        ("class Row:\n    def get_or_404(self, key):\n        abort(404)\n", []),
        ("class Row:\n    def get_or_404(self, key):\n        return {}\n", ["404"]),
        ("rows.get_or_404 = rows.get\n", ["404"]),
        ("from rows import get as get_or_404\n", ["404"]),
        ('setattr(rows, "get_or_404", rows.get)\n', ["404"]),
        ("from rows import get_or_404\n", []),
    ],
)
def test_what_is_called_has_the_number_of_a_refusal_in_its_name(kit: str, lost: list[str]) -> None:
    old = "def show(key):\n    row = rows.get(key)\n    if row is None:\n        abort(404)\n"
    new = "def show(key):\n    row = rows.get_or_404(key)\n"
    end = "    return row.title\n"
    assert _kinds("a.py", old + end, new + end, kit=kit) == lost
