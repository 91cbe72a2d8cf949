"""Comments of a source are found, and nothing in a string is one."""

import pytest

from agentrunner.verification.syntax.tokens import comments


@pytest.mark.parametrize(
    ("family", "source", "wanted"),
    [
        ("python", 'x = "# no"  # yes\n# too', ["# yes", "# too"]),
        ("script", 'let x = "// no"; // yes\n/* and\nthis */ x', ["// yes", "/* and\nthis */"]),
        ("shell", "#!/bin/sh\necho '# no' a#b # yes\n", ["#!/bin/sh", "# yes"]),
        ("c", "int a; // one\n#define X 1 /* two */\n", ["// one", "/* two */"]),
        ("ruby", "x = 1 # yes\n=begin\nall\n=end\n", ["# yes", "=begin\nall\n=end"]),
        ("python", "", []),
    ],
)
def test_comments(family: str, source: str, wanted: list[str]) -> None:
    found = comments(source.encode(), family)
    assert [text for _, text in found] == wanted
    assert all(source.startswith(text, start) for start, text in found)
