"""Functions of a Python file as they were before."""

import pytest

from agentrunner.verification.syntax.emptied_functions import with_former_functions, without_classes

BEFORE = """
class Logged:
    def set_up(self):
        self.log("start")

    def log(self, text):
        print(text)
"""
AFTER = """
class Logged:
    @property
    def __repr__(self):
        return "logged"

    def set_up(self):
        self.log("begin")

    def log(self, text):
        return text
"""


def former(*names: str, before: str | None = BEFORE, after: str = AFTER) -> str | None:
    made = with_former_functions(before.encode() if before else None, after.encode(), names)
    return made.decode() if made is not None else None


def test_a_new_one_is_gone_and_an_altered_one_is_as_it_was() -> None:
    made = former("Logged.__repr__", "Logged.set_up")
    assert made == AFTER.replace("begin", "start").replace(
        '@property\n    def __repr__(self):\n        return "logged"', "pass"
    )


def test_a_file_that_is_new_has_none_of_them() -> None:
    made = former("Logged.log", before=None)
    assert made is not None
    assert "return text" not in made
    assert "begin" in made


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("Logged.missing", AFTER),
        ("Logged.log", BEFORE),
        ("Logged.log", AFTER.replace("    ", "  ")),
    ],
)
def test_what_is_not_in_the_text_or_stands_elsewhere_is_left(name: str, after: str) -> None:
    assert former(name, after=after) is None


def test_a_property_and_its_setter_are_both_as_they_were() -> None:
    before = """
class Shown:
    @property
    def name(self):
        return "a"

    @name.setter
    def name(self, to):
        self.to = to
"""
    after = before.replace('"a"', '"b"').replace("self.to = to", "pass")
    assert former("Shown.name", before=before, after=after) == before


def test_the_last_of_several_decides() -> None:
    twice = AFTER + "\n    def log(self, text):\n        return None\n"
    made = former("Logged.log", after=twice)
    assert made is not None
    assert "return" not in made.partition("def set_up")[2]


def test_classes_are_taken_out_with_their_decorators() -> None:
    source = b"@skip\nclass A(B):\n    def a(self):\n        pass\n\n\nclass C:\n    pass\n"
    assert without_classes(source, {"A"}) == b"pass\n\n\nclass C:\n    pass\n"
    assert without_classes(source, {"A", "B"}) is None
