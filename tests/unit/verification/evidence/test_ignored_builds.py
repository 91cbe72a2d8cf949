"""Whether an ignored binary file is a build of a source, by the names in it."""

from __future__ import annotations

import pytest

from agentrunner.verification.evidence.ignored_builds import (
    holds,
    is_built_alike,
    is_called_after,
    is_compiled,
    names_defined,
)

C = b"""
static int twice(int n) { return 2 * n; }
int half(int n)
{
    while (n > 9) { n -= 1; }
    return n / 2;
}
"""


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (C, {b"twice", b"half"}),
        (b"pub fn twice<T>(n: T) -> T {\n    n\n}\n", {b"twice"}),
        (b"func (l List) Sum(values []int) int {\n\treturn 1\n}\n", {b"Sum"}),
        (b"cpdef int twice(int n):\n    return 2 * n\n", {b"twice"}),
        (b"#define SIZE 3\nextern int size;\n", set()),
    ],
)
def test_what_a_source_defines(source: bytes, names: set[bytes]) -> None:
    assert names_defined(source) == names


@pytest.mark.parametrize(
    ("path", "before", "after", "same"),
    [
        ("a.c", b"int n = 1; // one\n", b"// two\n\nint n = 1;\n", True),
        ("a.c", b"  int n = 1;\n", b"  /* one */ int n = 1; /* and\n more */\n", True),
        ("a.rs", b"let n = 1 + 2;\n", b"let n = /* two\n lines */ 1 + 2;\n", True),
        ("a.rs", b'let s = "a\n\nb";\n', b'let s = "a\nb";\n', False),
        ("a.c", b"#define A(x) x\n", b"#define A (x) x\n", False),
        ("a.c", b'char *s = "a  b";\n', b'char *s = "a b";\n', False),
        ("a.pyx", b"if n:\n    n += 1\n    n += 2\n", b"if n:\n    n += 1\nn += 2\n", False),
        ("a.go", b"//go:build linux\npackage a\n", b"//go:build darwin\npackage a\n", False),
        ("a.c", None, b"", False),
    ],
)
def test_what_a_source_is_built_from(
    path: str, before: bytes | None, after: bytes, same: bool
) -> None:
    assert is_built_alike(path, before, after) is same


def test_a_build_holds_most_of_the_names_of_its_source() -> None:
    names = {b"twice", b"half", b"third"}
    assert holds(b"\x7fELF\0twice\0half\0", names)
    assert holds(b"\0_ZN4fast5twice17h0aE\0_ZN4fast4half17h0aE\0", names), "mangled"
    assert not holds(b"\0twice\0printf\0", names), "one of three may be there by chance"
    assert not holds(b"\0twiced\0halfway\0", names), "parts of other words"


def test_in_folders_of_packages_the_name_of_the_file_has_to_fit() -> None:
    assert is_called_after("node_modules/x/_fast.cpython-312.so", "src/fast.c")
    assert is_called_after("lib/libshop.so", "shop/sums.c")
    assert not is_called_after(".venv/numpy/core.so", "src/fast.c")


@pytest.mark.parametrize(
    ("path", "compiled"),
    [("a.c", True), ("a.rs", True), ("a.go", True), ("A.java", True), ("a.py", False)],
)
def test_whatis_compiled(path: str, compiled: bool) -> None:
    assert is_compiled(path) is compiled
