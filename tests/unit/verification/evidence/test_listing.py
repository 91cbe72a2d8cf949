from typing import Any

from agentrunner.config.spec import (
    Check,
    CriterionSpec,
    TaskSpec,
)
from agentrunner.verification.evidence.checks import commands_of
from agentrunner.verification.evidence.listing import inputs_of_task, listed, problems
from tests.kit.task_specs import task_spec_of

FILES = {
    "tests/test_a.py": b"import shop\n",
    "shop.py": b"",
    "server.js": b"process.argv.includes('--check') && process.exit(1)",
    "Makefile": b"test:\n\tpytest\n",
    "golden/a.txt": b"",
}


CHECK = Check(kind="command", run="node server.js --check")


def spec(test: dict[str, Any] | None = None, places: dict[str, str] | None = None) -> TaskSpec:
    criteria = [
        CriterionSpec(id="AC-1", description="a", check=CHECK),
        CriterionSpec(id="AC-2", description="b", check=Check(kind="test", name="test_a")),
        CriterionSpec(id="AC-3", description="c"),
    ]
    tests = {"command": "make test", **(test or {})}
    return task_spec_of({"test": tests}, places=places or {}, criteria=criteria)


def test_the_test_command_and_the_checks_decide() -> None:
    found = commands_of(spec(), FILES.get)
    assert found[:2] == [("make test", "."), ("node server.js --check", ".")]


def test_the_lists_say_paths_and_reasons() -> None:
    lists = listed(inputs_of_task(spec(), FILES, FILES.get))
    assert [one["path"] for one in lists["unsure"]] == ["server.js"]
    assert lists["tests"][0] == {
        "path": "**/test_*.py", "why": "pytest collects test_*.py by its rules", "kind": "test",
    }  # fmt: skip
    recipe = next(one for one in lists["tests"] if one["path"] == "Makefile")
    assert recipe["parts"] == ["test"]
    assert not any("pytest.ini" in one["path"] for one in lists["tests"])


def test_long_lists_are_cut_with_a_number() -> None:
    files = {f"tests/test_{i}.py": b"import shop" for i in range(9)}
    command = {"command": "pytest " + " ".join(files)}
    lists = listed(inputs_of_task(spec(command), files, files.get), 3)
    assert len(lists["tests"]) == 3
    assert lists["tests_more"] >= 6


def test_globs_that_match_nothing_or_both_are_named_with_their_line() -> None:
    test = {"paths": ["golden/**", "checks"], "product": ["golden/a.txt", "tests/kit"]}
    told = problems(spec(test, {"task.test.paths[1]": "t.yaml:6"}), FILES)
    assert told == [
        ("t.yaml:6", 'task.test.paths: "checks" matches no file'),
        ("task.test.product[1]", 'task.test.product: "tests/kit" matches no file'),
        ("task.test.product", "task.test.paths and task.test.product both match golden/a.txt"),
    ]
    assert problems(spec({"paths": ["golden/**"]}), FILES) == []
