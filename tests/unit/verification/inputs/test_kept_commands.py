"""Files that the PRD wants changed: the commands in them that decide stay."""

from __future__ import annotations

import json

from agentrunner.verification.inputs.kept_part import with_old_commands

MAKE = b"all: test\ntest: lint\n\t./check\nlint:\n\t./lint\n"


def package(**scripts: str) -> bytes:
    return json.dumps({"name": "shop", "scripts": scripts}).encode()


def test_the_script_that_decides_goes_back_and_a_new_one_stays() -> None:
    wanted = "Add a script start to package.json. All tests pass."
    after = package(test="true", start="node .")
    made = with_old_commands("package.json", package(test="jest"), after, [], {"test"}, wanted)
    assert made is not None
    assert json.loads(made)["scripts"] == {"test": "jest", "start": "node ."}


def test_a_script_that_the_prd_speaks_of_beside_the_file_is_free() -> None:
    one, other = package(test="jest"), package(test="vitest")
    wanted = "Change package.json so that its tests run with vitest."
    assert with_old_commands("package.json", one, other, [], {"test"}, wanted) is None
    wanted = "Update package.json."
    assert with_old_commands("package.json", one, other, [], {"test"}, wanted) is not None


def test_recipes_that_lead_from_the_command_go_back() -> None:
    after = MAKE.replace(b"./check", b"true").replace(b"./lint", b"false") + b"clean:\n\trm -rf a\n"
    wanted = "Add a target clean to build.mk."
    made = with_old_commands("build.mk", MAKE, after, ["make -f build.mk test"], (), wanted)
    assert made == MAKE + b"clean:\n\trm -rf a\n"
    assert (
        with_old_commands("build.mk", MAKE, after, ["make -f build.mk clean"], (), wanted) is None
    )


def test_what_is_no_such_file_is_left_alone() -> None:
    assert with_old_commands("a.json", b"{}", b"[]", ["make test"], {"test"}, "") is None
    assert with_old_commands("package.json", b"[]", b"x", [], {"test"}, "") is None
