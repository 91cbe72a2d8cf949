import asyncio
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from agentrunner.verification.inputs.minimal_set import smallest


def search(size: int, guilty: set[int], budget: int = 10_000) -> tuple[list[int], bool, int]:
    asked = 0

    async def is_red(some: Sequence[int]) -> bool:
        nonlocal asked
        asked += 1
        return guilty <= set(some)

    found, cut = asyncio.run(
        smallest(list(range(1000, 1000 + size)), is_red, budget, clock=lambda: asked)
    )
    return found, cut, asked


@given(st.integers(1, 60), st.data())
def test_exactly_what_matters_is_found(size: int, data: st.DataObject) -> None:
    places = st.sets(st.integers(1000, 999 + size), min_size=1, max_size=4)
    guilty = data.draw(places)
    found, cut, _ = search(size, guilty)
    assert set(found) == guilty
    assert not cut


def test_one_of_many_is_found_with_few_questions() -> None:
    found, _, asked = search(1000, {1337})
    assert found == [1337]
    assert asked < 40


def test_a_single_one_needs_no_question() -> None:
    assert search(1, {1000}) == ([1000], False, 0)


def test_the_search_stops_when_the_time_is_over() -> None:
    found, cut, asked = search(100, {1001, 1098}, budget=5)
    assert cut
    assert {1001, 1098} <= set(found)
    assert asked == 5


def test_equal_items_are_kept_apart() -> None:
    async def is_red(some: Sequence[str]) -> bool:
        return some.count("a") == 2

    async def run() -> tuple[list[str], bool]:
        return await smallest(["".join(["a"]), "b", "".join(["a"])], is_red, 1e18)

    assert asyncio.run(run()) == (["a", "a"], False)
