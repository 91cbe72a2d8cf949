"""Changed inputs of the proof: which need no question, and what is put back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.verification.inputs.changes import ProofChanges, judge_changes, put_back
from agentrunner.verification.inputs.finder import find_inputs
from tests.kit.examples import examples


def judge(command: str, before: dict[str, str], edits: dict[str, str | None]) -> ProofChanges:
    old = {path: text.encode() for path, text in before.items()}
    new = {**old, **{path: (text or "").encode() for path, text in edits.items()}}
    new = {path: text for path, text in new.items() if edits.get(path, "") is not None}
    inputs = find_inputs([(command, ".")], old, old.get)
    changed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
    return judge_changes(inputs, old, old.get, new, new.get, changed)


MAKEFILE = (
    "SRC = calc.c \\\n  main.c\nOBJ = calc.o main.o\ncalc: $(OBJ)\n\tcc -o $@ $^\n"
    "calc.o: calc.c\n\tcc -c $<\ntest: calc check\n\t./calc 2 | diff - two.txt\n"
)
C = {"Makefile": MAKEFILE, "calc.c": "", "main.c": "int main(){}", "two.txt": "4"}
SCRIPTS = {"test": "npm run unit", "unit": "jest", "build": "tsc"}
PACKAGE: dict[str, Any] = {
    "scripts": SCRIPTS,
    "dependencies": {"left": "^1.0.0"},
    "jest": {"testTimeout": 5},
}
NODE = {"package.json": json.dumps(PACKAGE), "src/a.js": "", "src/a.test.js": "require('./a')"}
PYPROJECT = (
    '[project]\nname = "shop"\nversion = "1"\ndependencies = ["httpx>=0.27"]\n\n'
    '[tool.pytest.ini_options]\naddopts = "-q"\n\n[tool.ruff]\nline-length = 80\n'
)
TEST = "import shop\nfrom shop import a\n\n\ndef test_a():\n    assert a() == 1\n"
PYTHON = {"pyproject.toml": PYPROJECT, "shop.py": "", "tests/test_a.py": TEST}
GO = {
    "go.mod": "module x\n\ngo 1.22\n\nrequire a.example/b v1.0.0\n",
    "go.sum": "a.example/b v1.0.0 h1:abc=\n",
    "x_test.go": "package x\n\nfunc TestA(t *testing.T) {\n\tif f() != 1 {\n\t\tt.Fatal()\n"
    "\t}\n}\n",
}
CARGO = '[package]\nname = "x"\nversion = "0.1.0"\n\n[dependencies]\nserde = "1"\n'
RUST = {
    "Cargo.toml": CARGO,
    "Cargo.lock": 'version = 3\n\n[[package]]\nname = "serde"\nversion = "1.0.1"\n'
    'source = "registry+index"\nchecksum = "a"\n',
    "src/lib.rs": "pub fn f() -> i32 { 1 }\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n"
    "    #[test]\n    fn one() { assert_eq!(f(), 2); }\n}\n",
}


def package(**changes: object) -> str:
    return json.dumps({**PACKAGE, **changes})


MONEY = {"libs/money/package.json": "{}", "libs/money/index.js": "",
         "libs/money/Cargo.toml": '[package]\nname = "money"\nversion = "0.1.0"\n',
         "libs/money/pyproject.toml": '[project]\nname = "money"\n',
         "libs/money/go.mod": "module c.example/money\n"}  # fmt: skip
"""A package of the repository, that nothing uses before the run."""
ADDED = {
    "package.json": package(dependencies={"left": "^1.0.0", "money": "file:libs/money"}),
    "package-lock.json": json.dumps(
        {
            "packages": {
                "": {"dependencies": {"money": "file:libs/money"}},
                "libs/money": {"version": "1.0.0"},
                "node_modules/money": {"resolved": "libs/money", "link": True},
            }
        }
    ),
    "Cargo.toml": CARGO + 'money = { path = "libs/money" }\n',
    "Cargo.lock": RUST["Cargo.lock"] + '\n[[package]]\nname = "money"\nversion = "0.1.0"\n',
    "pyproject.toml": PYPROJECT.replace('"httpx>=0.27"', '"httpx>=0.27", "money"')
    + '[tool.uv.workspace]\nmembers = ["libs/money"]\n'
    "[tool.uv.sources]\nmoney = { workspace = true }\n",
    "uv.lock": 'version = 1\n\n[[package]]\nname = "money"\nversion = "1.0"\n'
    'source = { editable = "libs/money" }\n',
    "go.mod": GO["go.mod"] + "\nrequire c.example/money v0.0.0\n\n"
    "replace c.example/money => ./libs/money\n",
}
"""Manifests and locks that name it as a dependency."""
PLACES = [
    ("npm test", {**NODE, "package-lock.json": '{"packages": {"": {}}}'}, "package.json"),
    ("npm test", {**NODE, "package-lock.json": '{"packages": {"": {}}}'}, "package-lock.json"),
    ("cargo test", RUST, "Cargo.toml"),
    ("cargo test", RUST, "Cargo.lock"),
    ("pytest", PYTHON, "pyproject.toml"),
    ("pytest", {**PYTHON, "uv.lock": "version = 1\n"}, "uv.lock"),
    ("go test ./...", GO, "go.mod"),
]


UNDERSTOOD = [
    ("make test", C, "Makefile", {"Makefile": MAKEFILE.replace("calc.c \\", "calc.c more.c \\")
                                  .replace("calc.o main.o", "calc.o more.o main.o"), "more.c": ""}),
    ("make test", C, "Makefile", {"Makefile": MAKEFILE.replace("  main.c", "  main.c \\\n  more.c"),
                                  "more.c": ""}),
    ("make test", C, "Makefile", {
        "Makefile": MAKEFILE.replace("calc.o main.o", "calc.o main.o more.o").replace(
            "test: calc", "more.o: more.c\n\tcc -c $<\ntest: calc"), "more.c": ""}),
    ("npm test", NODE, "package.json",
     {"package.json": package(dependencies={"left": "^1.0.0", "right": "~2.1"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(scripts={**SCRIPTS, "docs": "node docs.js"})}),
    ("npm test", NODE, "package.json", {"package.json": package(version="2.0.0", description="x")}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT.replace('"httpx>=0.27"', '"httpx>=0.27", "rich~=13.0"')}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT.replace("80", "100").replace('version = "1"', 'version = "2"')}),
    ("pytest", {**PYTHON, "requirements.txt": "httpx\n"}, "requirements.txt",
     {"requirements.txt": "httpx\nrich==13.7.1  # colours\n"}),
    ("pytest", PYTHON, "tests/test_b.py", {"tests/test_b.py": "def test_b(): assert 1"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST + "\n\ndef test_b():\n    assert a() != 2\n"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST.replace("import a\n", "import a, more\n")
      + "\n\n@pytest.mark.parametrize('x', [1])\ndef test_b(x):\n    assert more(x)\n"}),
    ("go test ./...", GO, "go.mod",
     {"go.mod": GO["go.mod"] + "\nrequire c.example/d v0.3.0 // indirect\n"}),
    ("go test ./...", GO, "go.sum", {"go.sum": GO["go.sum"] + "c.example/d v0.3.0 h1:x=\n"}),
    ("go test ./...", GO, "x_test.go",
     {"x_test.go": GO["x_test.go"] + "\nfunc TestB(t *testing.T) {\n\tif f() == 3 {\n"
      "\t\tt.Fatal()\n\t}\n}\n"}),
    ("cargo test", RUST, "Cargo.toml", {"Cargo.toml": CARGO + 'rand = { version = "0.8" }\n'}),
    ("cargo test", RUST, "Cargo.lock", {
        "Cargo.lock": RUST["Cargo.lock"] + '\n[[package]]\nname = "rand"\nversion = "0.8.5"\n'
        'source = "registry+index"\nchecksum = "b"\n'}),
    ("cargo test", RUST, "src/lib.rs",
     {"src/lib.rs": RUST["src/lib.rs"].replace("{ 1 }", "{ 2 }")}),
    ("cargo test", RUST, "src/lib.rs", {"src/lib.rs": RUST["src/lib.rs"].replace(
        "2); }\n", "2); }\n    #[test]\n    fn two() { assert_eq!(f(), 2); }\n")}),
    ("node --test", {"a.test.js": "test('a', () => {\n  ok(1);\n});\n", "a.js": ""}, "a.test.js",
     {"a.test.js": "test('a', () => {\n  ok(1);\n});\n\ntest('b', () => {\n  ok(2);\n});\n"}),
    ("mvn test", {"pom.xml": "<project><dependencies></dependencies></project>"}, "pom.xml",
     {"pom.xml": "<project><dependencies><dependency><groupId>a</groupId><artifactId>b</artifactId>"
                 "<version>1</version></dependency></dependencies></project>"}),
]  # fmt: skip

SUSPECT = [
    ("npm test", {**NODE, "package-lock.json": '{"dependencies": {"left": {"version": "1"}}}'},
     "package-lock.json",
     {"package-lock.json": '{"dependencies": {"left": {"version": "file:x"}}}'}),
    ("make test", C, "Makefile", {"Makefile": MAKEFILE.replace("| diff - two.txt", "")}),
    ("make test", C, "Makefile", {"Makefile": MAKEFILE.replace("cc -o", "cc -DNDEBUG -o")}),
    ("make test", C, "Makefile", {"Makefile": MAKEFILE + "test: more\nmore:\n\ttrue\n"}),
    ("make test", C, "Makefile", {"Makefile": MAKEFILE.replace("calc.c \\", "gone.c \\")}),
    ("make test", C, "Makefile", {"Makefile": "SHELL = true\n" + MAKEFILE}),
    ("make test", C, "two.txt", {"two.txt": "5"}),
    ("npm test", NODE, "package.json", {"package.json": package(jest={"testTimeout": 9})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(scripts={**SCRIPTS, "unit": "true"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(scripts={**SCRIPTS, "preunit": "node x"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(scripts={**SCRIPTS, "postinstall": "node x"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(dependencies={"left": "^1.0.0", "b": "file:../b"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(dependencies={"left": "^1.0.0", "b": "github:x/b"})}),
    ("npm test", NODE, "package.json",
     {"package.json": package(dependencies={"left": "^1.0.0", "jest": "1.0.0"})}),
    ("npm test", NODE, "package.json", {"package.json": "{broken"}),
    ("npm test", NODE, ".npmrc", {".npmrc": "registry=x"}),
    ("npm test", NODE, "jest.config.js", {"jest.config.js": ""}),
    ("pytest", PYTHON, "pyproject.toml", {"pyproject.toml": PYPROJECT.replace("-q", "-q -x")}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT.replace('"httpx>=0.27"', '"httpx @ file:///x"')}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT.replace('"httpx>=0.27"', '"httpx>=0.27", "pytest-rerun"')}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT + '[project.entry-points.pytest11]\nx = "shop"\n'}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT + '[tool.uv.sources]\nhttpx = { path = "x" }\n'}),
    ("pytest", PYTHON, "pyproject.toml",
     {"pyproject.toml": PYPROJECT + '[build-system]\nrequires = []\nbackend-path = ["."]\n'}),
    ("pytest", {**PYTHON, "requirements.txt": "httpx\n"}, "requirements.txt",
     {"requirements.txt": "--index-url x\nhttpx\n"}),
    ("pytest", {**PYTHON, "requirements.txt": "httpx\n"}, "requirements.txt",
     {"requirements.txt": "httpx\n-e ./kit\n"}),
    ("pytest", PYTHON, "tests/test_a.py", {"tests/test_a.py": TEST.replace("== 1", "== 2")}),
    ("pytest", PYTHON, "tests/test_a.py", {"tests/test_a.py": None}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST + "\ndef test_a():\n    pass\n"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST + "\nshop.a = lambda: 1\n"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST + "\npytestmark = pytest.mark.skip\n"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST + "\n@pytest.fixture(autouse=True)\ndef mend():\n    pass\n"}),
    ("pytest", PYTHON, "tests/test_a.py",
     {"tests/test_a.py": TEST.replace("import shop\n", "import shop\nfrom fake import shop\n")}),
    ("pytest", PYTHON, "tests/test_a/__init__.py", {"tests/test_a/__init__.py": ""}),
    ("pytest", PYTHON, "tests/conftest.py", {"tests/conftest.py": ""}),
    ("pytest", PYTHON, "conftest.py", {"conftest.py": ""}),
    ("pytest", PYTHON, "tests/json.py", {"tests/json.py": ""}),
    ("go test ./...", GO, "go.mod", {"go.mod": GO["go.mod"] + "\nreplace a.example/b => ./b\n"}),
    ("go test ./...", GO, "go.sum", {"go.sum": "a.example/b v1.0.0 h1:other=\n"}),
    ("go test ./...", GO, "x_test.go",
     {"x_test.go": GO["x_test.go"] + "\nfunc TestMain(m *testing.M) {\n\tos.Exit(0)\n}\n"}),
    ("cargo test", RUST, "Cargo.toml", {"Cargo.toml": CARGO + 'rand = { path = "rand" }\n'}),
    ("cargo test", RUST, "Cargo.toml", {"Cargo.toml": CARGO + "[lib]\ntest = false\n"}),
    ("cargo test", RUST, "build.rs", {"build.rs": "fn main() {}"}),
    ("cargo test", RUST, "src/lib.rs",
     {"src/lib.rs": RUST["src/lib.rs"].replace("f(), 2", "f(), 1")}),
    ("cargo test", RUST, "src/lib.rs", {"src/lib.rs": "pub fn f() -> i32 { 1 }\n"}),
    ("node --test", {"a.test.js": "test('a', () => {\n  ok(1);\n});\n", "a.js": ""}, "a.test.js",
     {"a.test.js": "test('a', () => {\n  return;\n  ok(1);\n});\n"}),
    ("node --test", {"a.test.js": "test('a', () => {\n  ok(1);\n});\n", "a.js": ""}, "a.test.js",
     {"a.test.js": "test('a', () => {\n  ok(1);\n});\ntest.only('b', () => {\n});\n"}),
    ("mvn test", {"pom.xml": "<project><dependencies></dependencies></project>"}, "pom.xml",
     {"pom.xml": "<project><dependencies></dependencies><skipTests>true</skipTests></project>"}),
]  # fmt: skip


@pytest.mark.parametrize(("command", "before", "path", "edits"), UNDERSTOOD)
def test_an_addition_of_the_closed_list_needs_no_question(
    command: str, before: dict[str, str], path: str, edits: dict[str, str | None]
) -> None:
    judged = judge(command, before, edits)
    assert [one.path for one in judged.understood if one.path == path] == [path]
    assert judged.suspects == []


@pytest.mark.parametrize(("command", "before", "path"), PLACES)
def test_a_package_of_the_repository_that_stood_before_may_become_a_dependency(
    command: str, before: dict[str, str], path: str
) -> None:
    def suspects(before: dict[str, str], **edits: str) -> list[str]:
        judged = judge(command, before, {path: ADDED[path], **edits})
        return [one.path for one in judged.suspects]

    assert suspects({**before, **MONEY}) == []
    assert path in suspects(before) or path == "Cargo.lock"  # where it is, Cargo.toml says
    written = {"libs/money/new.txt": ""}
    assert path in suspects({**before, **MONEY}, **written) or path == "Cargo.lock"


@pytest.mark.parametrize(
    ("command", "path", "name"),
    [("npm test", "package.json", "left"), ("npm test", "package.json", "jest"),
     ("cargo test", "Cargo.toml", "serde"), ("pytest", "pyproject.toml", "httpx"),
     ("go test ./...", "go.mod", "a.example/b")],
)  # fmt: skip
def test_a_package_of_the_repository_takes_no_name_that_something_had(
    command: str, path: str, name: str
) -> None:
    before = {**NODE, **PYTHON, **GO, **RUST, **MONEY}
    after = ADDED[path].replace("c.example/money", name).replace("money =", f"{name} =")
    after = after.replace('"money":', f'"{name}":')
    assert path in [one.path for one in judge(command, before, {path: after}).suspects]


def test_a_new_member_of_a_workspace_is_no_package_that_stood_before() -> None:
    before = {**PYTHON, "pyproject.toml": PYPROJECT + '[tool.uv.workspace]\nmembers = ["libs/*"]\n'}
    after = ADDED["pyproject.toml"].replace("libs/money", "libs/*")
    assert judge("pytest", {**before, **MONEY}, {"pyproject.toml": after}).suspects == []
    plugin = '[project]\nname = "money"\n[project.entry-points.pytest11]\nmoney = "money"\n'
    edits: dict[str, str | None] = {"pyproject.toml": after, "libs/money/pyproject.toml": plugin}
    assert "pyproject.toml" in [one.path for one in judge("pytest", before, edits).suspects]


WORK = {
    "go.work": "go 1.22\n\nuse ./app\n",
    "app/go.mod": "module x.example/app\n\ngo 1.22\n\nrequire a.example/check v1.0.0\n",
    "app/app_test.go": 'package app\n\nimport "a.example/check"\n\nfunc TestA(t *testing.T) {}\n',
}
USES = "go 1.22\n\nuse (\n\t./app\n\t./text\n)\n"


@pytest.mark.parametrize(
    ("manifest", "fine"),
    [
        ("module x.example/text\n\ngo 1.22\n\nrequire a.example/b v1.0.0\n", True),
        ("module a.example/check\n\ngo 1.22\n", False),
        ("module a.example/check/inner\n\ngo 1.22\n", False),
        ("module x.example/text\n\ngo 1.22\n\nreplace a.example/check => ./mine\n", False),
    ],
)
def test_a_new_module_of_go_takes_nothings_place(manifest: str, fine: bool) -> None:
    edits: dict[str, str | None] = {"go.work": USES, "text/go.mod": manifest, "text/a.go": ""}
    assert bool(judge("cd app && go test ./...", WORK, edits).suspects) is not fine
    assert judge("cd app && go test ./...", {**WORK, "text/b.go": ""}, edits).suspects


CRATES = {
    "Cargo.toml": '[workspace]\nmembers = ["app"]\n',
    "app/Cargo.toml": CARGO,
    "app/src/lib.rs": RUST["src/lib.rs"] + "fn g() { std::process::exit(1) }\n",
}
KINDS = {
    "kinds/Cargo.toml": '[package]\nname = "kinds"\nversion = "1.0.0"\n'
    '[dev-dependencies]\nnames = {path = "../names"}\n',
    "kinds/src/lib.rs": "",
}
"""A crate whose tests use the crate that uses it."""
BUILT_KINDS = {**KINDS, "kinds/build.rs": "fn main() {}"}


@pytest.mark.parametrize(
    ("name", "more", "extra", "fine"),
    [
        ("names", "", {}, True),
        ("std", "", {}, False),
        ("names", "[lib]\nproc-macro = true\n", {}, False),
        ("names", "", {"names/build.rs": "fn main() {}"}, False),
        ("names", "[dependencies]\nother = {git = 'https://a.example'}\n", {}, False),
        ("names", "[dependencies]\nkinds = {path = '../kinds'}\n", KINDS, True),
        ("names", "[dependencies]\nkinds = {path = '../kinds'}\n", BUILT_KINDS, False),
    ],
)
def test_a_new_crate_runs_nothing_by_itself(
    name: str, more: str, extra: dict[str, str | None], fine: bool
) -> None:
    edits: dict[str, str | None] = {
        "Cargo.toml": CRATES["Cargo.toml"].replace('"app"', '"app", "names"'),
        "app/Cargo.toml": f'{CARGO}{name} = {{path = "../names"}}\n',
        "names/Cargo.toml": f'[package]\nname = "{name}"\nversion = "1.0.0"\n{more}',
        "names/src/lib.rs": "",
        **extra,
    }
    assert bool(judge("cargo test --workspace", CRATES, edits).suspects) is not fine


@pytest.mark.parametrize(("command", "before", "path", "edits"), SUSPECT)
def test_every_other_change_is_put_back(
    command: str, before: dict[str, str], path: str, edits: dict[str, str | None]
) -> None:
    judged = judge(command, before, edits)
    assert path in [one.path for one in judged.suspects]
    assert all(one.input.why for one in judged.changes)
    back = put_back(judged)
    assert path in back
    if path not in before:
        assert back[path] is None


@pytest.mark.parametrize(
    ("command", "before", "edits"),
    [
        ("pytest", PYTHON, {"shop.py": "def a(): return 1", "http/greet.js": "", "profile.py": ""}),
        ("pytest", PYTHON, {"testing/kit.py": "", "Makefile": "test:\n\ttrue\n"}),
        ("node --test", {"http/greet.js": "", "http/greet.test.js": "require('./greet')"},
         {"http/greet.js": "module.exports = 1", "server.js": ""}),
        ("python main.py | diff - two.txt", {"main.py": "", "two.txt": ""},
         {"main.py": "print(2)"}),
    ],
)  # fmt: skip
def test_the_work_itself_is_no_input(
    command: str, before: dict[str, str], edits: dict[str, str | None]
) -> None:
    assert judge(command, before, edits).changes == []


def test_a_makefile_keeps_its_recipe_and_gets_the_new_source() -> None:
    changed = MAKEFILE.replace("| diff - two.txt", "").replace("calc.o main.o", "calc.o main.o b.o")
    judged = judge("make test", C, {"Makefile": changed, "b.c": ""})
    expected = MAKEFILE.replace("calc.o main.o", "calc.o main.o b.o").encode()
    assert put_back(judged) == {"Makefile": expected}
    assert judged.suspects[0].partly


def test_a_package_keeps_its_scripts_and_gets_the_new_dependency() -> None:
    scripts = {**SCRIPTS, "unit": "true"}
    new = package(scripts=scripts, dependencies={"left": "^1.0.0", "right": "^2.0.0"})
    back = put_back(judge("npm test", NODE, {"package.json": new}))
    made = json.loads(back["package.json"] or b"")
    assert made == {**PACKAGE, "dependencies": {"left": "^1.0.0", "right": "^2.0.0"}}


def test_a_rust_file_keeps_its_tests_and_gets_the_new_product() -> None:
    new = RUST["src/lib.rs"].replace("{ 1 }", "{ 3 }").replace("f(), 2", "f(), 3")
    back = (put_back(judge("cargo test", RUST, {"src/lib.rs": new}))["src/lib.rs"] or b"").decode()
    assert "{ 3 }" in back and "assert_eq!(f(), 2)" in back and "f(), 3" not in back


def test_an_example_in_a_docstring_is_put_back_into_the_new_function() -> None:
    old = 'def f():\n    """It is one.\n\n    >>> f()\n    1\n    """\n    return 0\n'
    new = 'def f():\n    """It is two.\n\n    >>> f()\n    2\n    """\n    return 2\n'
    judged = judge("python -m doctest calc.py", {"calc.py": old}, {"calc.py": new})
    back = (put_back(judged)["calc.py"] or b"").decode()
    assert "return 2" in back and "    1\n" in back and "    2\n" not in back


def test_understood_tests_can_be_taken_out_as_well() -> None:
    edits: dict[str, str | None] = {
        "tests/test_b.py": "def test_b(): pass",
        "tests/test_a.py": TEST + "\n\ndef test_c():\n    assert a()\n",
    }
    judged = judge("pytest", PYTHON, edits)
    assert put_back(judged) == {}
    everything = put_back(judged, understood=True)
    assert everything == {"tests/test_b.py": None, "tests/test_a.py": TEST.encode()}
    assert put_back(judged, ["tests/test_b.py"], understood=True) == {"tests/test_b.py": None}


def test_what_may_decide_is_said_where_it_changed() -> None:
    files = {"server.js": "process.argv.includes('--check') || process.exit(1)"}
    judged = judge("node server.js --check", files, {"server.js": "serve()"})
    assert judged.changes == []
    assert [path for path, _ in judged.unsure] == ["server.js"]
    assert "it checks itself with --check" in judged.unsure[0][1]


NAMES = [
    *("package.json", "package-lock.json", "pyproject.toml", "Cargo.toml", "Cargo.lock", "go.mod"),
    *("go.sum", "Makefile", "tests/test_a.py", "x_test.go", "a.test.js", "pom.xml", "Gemfile"),
    *("Gemfile.lock", "composer.json", "composer.lock", "uv.lock", "requirements.txt"),
    *("yarn.lock", "src/lib.rs", "tests/a.rs"),
]
CONTENT = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet='{}[]":,=\n\\ ()#@abt1.-\'>', max_size=80).map(str.encode),
    st.sampled_from(['{"packages": 3}', '{"dependencies": []}', '{"scripts": 1}', "[project]\n",
                     "[[package]]\nname=1\n", "package=3\n", "[tool]\nx=1\n", '{"packages": [1]}',
                     "[project]\ndependencies=3", "[dependencies]\na=[]", "null",
                     "[]"]).map(str.encode),
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), st.tuples(CONTENT, CONTENT), max_size=6))
@settings(max_examples=examples(400), deadline=None)
def test_it_never_raises(files: dict[str, tuple[bytes, bytes]]) -> None:
    old = {path: pair[0] for path, pair in files.items()}
    new = {path: pair[1] for path, pair in files.items()}
    shells = ["npm test", "pytest", "cargo test", "go test ./...", "make", "mvn test", "rspec",
              "phpunit", "node --test"]  # fmt: skip
    inputs = find_inputs([(shell, ".") for shell in shells], old, old.get)
    changed = frozenset(path for path in old if old[path] != new[path])
    judged = judge_changes(inputs, old, old.get, new, new.get, changed)
    assert {one.path for one in judged.changes} <= changed


VENDORED = {
    "go.mod": "module x\n\ngo 1.22\n\nrequire a.example/b v1.0.0\n",
    "vendor/modules.txt": "# a.example/b v1.0.0\n## explicit; go 1.19\na.example/b\n",
    "vendor/a.example/b/b.go": 'package b\n\nimport (\n\t"testing"\n\n\t"a.example/b/c"\n)\n',
    "vendor/a.example/b/c/c.go": "package c\n",
    "vendor/a.example/p/p.go": "package p\n",
    "x.go": 'package x\n\nimport "a.example/p"\n',
    "x_test.go": 'package x\n\nimport (\n\t"testing"\n\n\tb "a.example/b"\n)\n',
}
SUM = {
    "go.mod": VENDORED["go.mod"] + "\nrequire c.example/d v0.3.0\n",
    "vendor/modules.txt": VENDORED["vendor/modules.txt"]
    + "# c.example/d v0.3.0\n## explicit\nc.example/d\n",
    "vendor/c.example/d/d.go": "package d\n",
}


@pytest.mark.parametrize(
    ("before", "edits", "suspects"),
    [
        (VENDORED, SUM, set()),
        (
            {"go.mod": "module x\n\ngo 1.22\n", "x_test.go": "package x\n"},
            {**SUM, "go.mod": "module x\n\ngo 1.22\n\nrequire c.example/d v0.3.0\n"},
            set(),
        ),
        (VENDORED, {"vendor/a.example/p/p.go": "package p\n\nvar P = 1\n"}, set()),
        (
            VENDORED,
            {**SUM, "vendor/a.example/b/c/c.go": "package c\n\nvar C = 1\n"},
            {"go.mod", "vendor/modules.txt", "vendor/a.example/b/c/c.go"},
        ),
        (
            VENDORED,
            {**SUM, "go.mod": SUM["go.mod"] + "replace a.example/b => ./mine\n"},
            {"go.mod", "vendor/modules.txt"},
        ),
        (
            VENDORED,
            {**SUM, "vendor/modules.txt": SUM["vendor/modules.txt"].replace("go 1.19", "go 1.22")},
            {"go.mod", "vendor/modules.txt"},
        ),
        (
            VENDORED,
            {**SUM, "vendor/modules.txt": SUM["vendor/modules.txt"] + "# a.example/b => ./mine\n"},
            {"go.mod", "vendor/modules.txt"},
        ),
        (VENDORED, {**SUM, "vendor/modules.txt": None}, {"go.mod", "vendor/modules.txt"}),
    ],
)
def test_manifest_lock_and_vendored_modules_of_go_go_together(
    before: dict[str, str], edits: dict[str, str | None], suspects: set[str]
) -> None:
    found = judge("go test ./...", before, edits)
    assert {one.path for one in found.suspects} == suspects
    assert put_back(found) == {
        path: before[path].encode() if path in before else None for path in suspects
    }
