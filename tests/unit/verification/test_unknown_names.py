"""Names that nobody can guess, and that a killed examination makes again."""

from __future__ import annotations

from agentrunner.verification.unknown_names import UnknownNames


def five(names: UnknownNames) -> list[str]:
    return [names.make() for _ in range(5)]


def test_each_is_made_once_and_no_two_examinations_make_the_same() -> None:
    made = [name for _ in range(20) for name in five(UnknownNames())]
    assert len(set(made)) == len(made)
    assert all(len(name) == 8 and int(name, 16) >= 0 for name in made)


def test_the_same_seed_makes_the_same_names_in_the_same_order() -> None:
    names, others = UnknownNames(), UnknownNames()
    names.seed(b"one")
    others.seed(b"one")
    first = five(names)
    assert five(others) == first and five(names) != first
    names.seed(b"one")
    assert five(names) == first
    names.seed(b"two")
    assert not set(five(names)) & set(first)
