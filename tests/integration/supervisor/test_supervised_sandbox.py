"""The supervisor around a real bubblewrap."""

from __future__ import annotations

from dataclasses import replace

from tests.kit.stage import Stage


async def test_the_exit_code_is_the_one_of_the_command(stage: Stage) -> None:
    result = await stage.run(stage.boxed("echo in the box; exit 9"))
    assert (result.outcome, result.exit_code) == ("exited", 9)
    assert stage.text("w1") == "in the box\n"


async def test_a_command_that_can_not_be_found_in_the_box_never_ran(stage: Stage) -> None:
    order = stage.boxed("true")
    argv = (*order.launch.argv[:-3], "/nonexistent")
    result = await stage.run(replace(order, launch=replace(order.launch, argv=argv)))
    assert (result.outcome, result.exit_code) == ("infra", None)
    assert "nonexistent" in stage.text("w1", "stderr")


async def test_a_box_that_can_not_be_made_never_ran(stage: Stage) -> None:
    order = stage.boxed("true")
    argv = (order.launch.argv[0], "--bind", "/nonexistent", "/x", *order.launch.argv[1:])
    result = await stage.run(replace(order, launch=replace(order.launch, argv=argv)))
    assert (result.outcome, result.exit_code) == ("infra", None)


async def test_the_worker_in_the_box_is_asked_before_the_box_is_killed(stage: Stage) -> None:
    script = "trap 'echo saved > saved; exit 7' TERM; sleep 600 & wait"
    result = await stage.run(stage.boxed(script, wall_sec=0.5))
    assert (result.outcome, result.exit_code) == ("timeout", 7)
    assert "saved" in stage.snapshots.list(result.tree_after)


async def test_the_whole_box_ends_with_a_stubborn_worker(stage: Stage) -> None:
    script = "trap '' TERM; setsid sh -c 'setsid sleep 600 & sleep 600' & sleep 600"
    result = await stage.run(stage.boxed(script, wall_sec=0.5))
    assert result.outcome == "timeout" and result.duration_sec < 8
    assert stage.left() == []


async def test_the_box_ends_with_the_worker(stage: Stage) -> None:
    result = await stage.run(stage.boxed("setsid sleep 600 & echo done"))
    assert (result.outcome, result.exit_code) == ("exited", 0)
    assert stage.text("w1") == "done\n" and stage.left() == []
