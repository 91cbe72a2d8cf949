"""Projects whose packages are where their tools keep them, and the repair that each needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.kit.caches import Make, cargo, go, maven

GO = """\
package app

import "example.test/greet"

func Word() string { return greet.Word() + "?" }
"""


GO_TEST = """\
package app

import "testing"

func TestApp(t *testing.T) {
\tif Word() != "hi" {
\t\tt.Fatal(Word())
\t}
}
"""


JAVA_TEST = """\
import org.junit.Test;
import static org.junit.Assert.assertEquals;
public class AppTest { @Test public void word() { assertEquals("hi", App.word()); } }
"""


@dataclass(frozen=True)
class Task:
    """A project with a package in a cache, and the repair of its only red test."""

    make: Make
    files: Mapping[str, str]
    product: str
    """The file that the repair changes: a question mark is too much in it."""
    test: str = ""
    """The test command, where it is another than the project's own."""
    gone: str = ""
    """A file of the project that it is without."""


TASKS = (
    Task(go, {"app.go": GO, "word_test.go": GO_TEST}, "app.go", "go test -v ./...", "app_test.go"),
    Task(
        cargo,
        {
            "src/lib.rs": 'pub fn word() -> String { format!("{}?", greet::word()) }\n',
            "tests/word.rs": '#[test]\nfn word() {\n    assert_eq!(app::word(), "hi");\n}\n',
        },
        "src/lib.rs",
        "cargo test",
    ),
    Task(
        maven,
        {
            "src/main/java/App.java": "public class App {\n"
            '    static String word() { return "hi?"; }\n}\n',
            "src/test/java/AppTest.java": JAVA_TEST,
        },
        "src/main/java/App.java",
    ),
)
