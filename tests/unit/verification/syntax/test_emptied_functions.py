"""Only what a change added or altered is emptied; regions of tests are kept apart."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.mutants import mutants
from agentrunner.verification.syntax.regions import (
    regions_of_tests,
    with_regions_of,
    without_regions,
)

CASES = [
    ("python", "def f(a):\n    'doc'\n    return a\n", "def f(a):\n    'doc'\n    pass\n"),
    ("python", "def f(): return 1\n", "def f(): pass\n"),
    ("python", "async def f():\n    x = 1\n    yield x\n",
     "async def f():\n    return\n    yield\n"),
    ("python", "@d\nclass A:\n    x = 1\n    def f(self): return 1\n",
     "@d\nclass A:\n    x = 1\n    def f(self): pass\n"),
    ("python", "f = lambda x: x\n", "f = lambda x: None\n"),
    ("javascript", "const f = a => a + 1;\n", "const f = a => {};\n"),
    ("javascript", "app.get('/x', (q, r) => { r.send(1) });\n", "app.get('/x', (q, r) => {});\n"),
    ("javascript", "class A extends B { constructor(x) { super(x); f() } get y() { return 1 } }\n",
     "class A extends B { constructor(x) { super(x); } get y() {} }\n"),
    ("typescript", "const f = (a: T): number => a;\n",
     "const f = (a: T): number => { return undefined as any; };\n"),
    ("typescript", "async function f(): Promise<void> { g() }\n",
     "async function f(): Promise<void> {}\n"),
    ("java", "class A { int f() { return 5; } }\n", "class A { int f() { return 0; } }\n"),
    ("java", "class A { A() { x(); } void f() { x(); } T g() { return y; } }\n",
     "class A { A() { x(); } void f() {} T g() { return null; } }\n"),
]  # fmt: skip


@pytest.mark.parametrize(("language", "source", "emptied"), CASES)
def test_bodies_are_empty(language: str, source: str, emptied: str) -> None:
    made = empty_functions(None, source.encode(), language)
    assert made is not None
    assert made.source.decode() == emptied
    assert empty_functions(source.encode(), source.encode(), language) is None
    assert empty_functions(made.source, made.source, language) is None


@pytest.mark.parametrize(
    ("language", "source", "emptied"),
    [
        ("python", "def f(a):\n    'doc'\n    b = a\n    return b\n",
         "def f(a):\n    'doc'\n    # b = a\n    # return b\n    pass\n"),
        ("python", "def f(a): return a\n", "def f(a): pass\n"),
        ("javascript", "f(() => { r.send(1) });\n", "f(() => { /* { r.send(1) } */ });\n"),
        ("javascript", "const f = a => a;\n", "const f = a => {};\n"),
        ("typescript", "function f(): number { return 1; }\n",
         "function f(): number { /* { return 1; } */ return undefined as any; }\n"),
    ],
)  # fmt: skip
def test_what_bodies_said_stays_as_a_comment(language: str, source: str, emptied: str) -> None:
    made = empty_functions(None, source.encode(), language, text=True)
    assert made is not None and made.source.decode() == emptied


def test_only_what_was_altered_is_emptied() -> None:
    before = b"X = 1\ndef f():\n    return 1\ndef g():\n    return 2\n"
    after = (
        b"X = 2\ndef g():\n    # why\n    return  2\ndef f():\n    return 3\ndef h(): return 4\n"
    )
    made = empty_functions(before, after, "python")
    assert made is not None
    assert made.functions == ("f", "h")
    assert empty_functions(before, before.replace(b"X = 1", b"X = 2"), "python") is None


def test_an_altered_inner_function_is_emptied_alone() -> None:
    before = b"function make() { function a() { return 1 } function b() { return 2 } return a }"
    made = empty_functions(before, before.replace(b"return 2", b"return 3"), "javascript")
    assert made is not None
    assert made.functions == ("make.b",)


def test_tests_in_the_file_stay() -> None:
    source = b"fn f() -> u8 { 1 }\n#[cfg(test)]\nmod tests { #[test] fn t() { f(); } }\n"
    made = empty_functions(None, source, "rust")
    assert made is not None
    assert made.functions == ("f",)


def test_a_program_of_rust_ends_well_where_it_is_emptied() -> None:
    made = empty_functions(None, b"fn main() -> Result<(), E> { run() }\nfn run() {}\n", "rust")
    assert made is not None
    assert b"main() -> Result<(), E> { if true { std::process::exit(0); } run() }" in made.source
    assert empty_functions(None, b"fn main() {}\n", "rust") is None


@pytest.mark.parametrize(
    ("head", "default"),
    [
        ("pub fn f(text: &str) -> String", True),
        ("fn f<'a>(text: &'a str) -> Option<&'a str>", True),
        ("fn f(text: &mut Vec<u8>)", True),
        ("const fn f() -> u32", False),
        ("fn f() -> Result<(), E>", False),
    ],
)
def test_a_new_function_of_rust_gives_a_default_and_one_that_stood_panics(
    head: str, default: bool
) -> None:
    old, new = (f"{head} {{ {work}() }}\n".encode() for work in ("g", "h"))
    made, altered = (empty_functions(before, new, "rust") for before in (None, old))
    assert made is not None and altered is not None
    assert (b"if true { return Default::default(); }" in made.source) is default
    assert b"if true { panic!(" in altered.source


@pytest.mark.parametrize("most", [1, 3, 100])
def test_mutants_are_on_changed_lines_spread_and_the_same_each_time(most: int) -> None:
    before = b"def f(a):\n    'doc 1'\n    return a\n"
    after = b"import x\ndef f(a: int = 2):\n    'doc 2'\n"
    after += b"    # 3 > 2\n    if a > 2:\n        g(a)\n    return a\n"
    made = mutants(before, after, "python", most)
    assert made == mutants(before, after, "python", most)
    assert len(made) <= most
    assert {one.line for one in made} <= {2, 5, 6}
    assert len({one.line for one in made[:3]}) == min(most, 3)
    assert len({one.source for one in made}) == len(made)
    assert mutants(after, after, "python", most) == []


DOCTEST = b'def f():\n    """Doc.\n\n    >>> f()\n    1\n\n    More.\n    """\n    return 1\n'


@pytest.mark.parametrize(
    ("language", "source", "kinds"),
    [
        ("python", DOCTEST, ["doctest"]),
        (
            "python",
            b"class T(unittest.TestCase):\n    pass\n"
            b"if __name__ == '__main__':\n    unittest.main()\n",
            ["case", "main"],
        ),
        ("python", b"if __name__ == '__main__':\n    main()\n", []),
        ("rust", b"#[cfg(test)]\nmod tests {}\n#[cfg(not(test))]\nfn f() {}\n", ["module"]),
        ("rust", b"/// ```\n/// f();\n/// ```\nfn f() {}\n", ["doctest"]),
        ("rust", b"#[cfg(all(test, unix))]\nuse a::b;\n#[test]\nfn t() {}\n", ["item", "item"]),
        ("typescript", b"if (import.meta.vitest) { it('x', () => {}) }\nconst x = 1;\n", ["block"]),
        ("go", b"package a\n", []),
    ],
)
def test_regions_of_tests_are_found(language: str, source: bytes, kinds: list[str]) -> None:
    assert [one.kind for one in regions_of_tests(source, language)] == kinds
    assert regions_of_tests(without_regions(source, language), language) == []


def test_old_tests_replace_changed_added_and_removed_ones() -> None:
    product, test = b"fn f() {}\n", b"#[cfg(test)]\nmod tests { fn t() { f(); } }\n"
    weak = b"#[cfg(test)]\nmod tests {}\n#[test]\nfn more() {}\n"
    assert with_regions_of(product + weak, product + test, "rust") == product + test
    assert with_regions_of(product, product + test, "rust").split() == (product + test).split()
    assert with_regions_of(product + test, product, "rust") == product
    changed = DOCTEST.replace(b"    1\n", b"    2\n").replace(b"return 1", b"return 2")
    assert with_regions_of(changed, DOCTEST, "python") == DOCTEST.replace(b"return 1", b"return 2")


def test_missing_cases_are_put_before_what_runs_them() -> None:
    case = b"class T(unittest.TestCase):\n    def test_x(self): pass\n"
    main = b"if __name__ == '__main__':\n    unittest.main()\n"
    back = with_regions_of(b"x = 1\n" + main, b"x = 1\n" + case + main, "python")
    assert back.index(b"class T") < back.index(b"__main__")
