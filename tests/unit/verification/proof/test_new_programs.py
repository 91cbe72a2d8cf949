"""What Cargo calls the programs that the work adds."""

import pytest

from agentrunner.verification.proof.names_of_work import new_programs

MAIN = "fn main() {}\n"
PACKAGE = '[package]\nname = "rle"\n'


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ({"src/main.rs": MAIN}, ["rle"]),
        ({"src/bin/show.rs": MAIN}, ["show"]),
        ({"src/bin/show/main.rs": MAIN}, ["show"]),
        ({"tools/show.rs": MAIN}, ["other"]),
        ({"src/main.rs": "mod text;\n"}, []),
        ({"src/text.rs": MAIN}, []),
    ],
    ids=["main", "bin", "folder", "manifest", "no main", "no program"],
)
def test_programs_of_a_package(files: dict[str, str], names: list[str]) -> None:
    texts = {"Cargo.toml": f'{PACKAGE}[[bin]]\nname = "other"\npath = "tools/show.rs"\n', **files}
    found = new_programs([*files], {"Cargo.toml"}, lambda path: texts.get(path, "").encode())
    assert found == {f"CARGO_BIN_EXE_{name}" for name in names}
    assert new_programs([*files], files.keys(), lambda path: texts[path].encode()) == set()


def test_a_package_in_a_folder() -> None:
    texts = {"rle/Cargo.toml": PACKAGE, "rle/src/main.rs": MAIN}
    found = new_programs(["rle/src/main.rs"], (), lambda path: texts.get(path, "").encode())
    assert found == {"CARGO_BIN_EXE_rle"}
