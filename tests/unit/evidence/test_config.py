import pytest

from agentrunner.evidence.config import steers_alike

CARGO = '[package]\nname = "shop"\nversion = "0.1.0"\n[dependencies]\nserde = "1"\n'
PACKAGE = '{"name": "shop", "scripts": {"test": "jest"}, "dependencies": {}}'
PYPROJECT = '[project]\nname = "shop"\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("Cargo.toml", CARGO, CARGO + 'rand = "0.9"\n'),
        ("web/package.json", PACKAGE, PACKAGE.replace("{}", '{"left-pad": "1"}')),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('"shop"', '"shop"\ndependencies = ["x"]')),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "[tool.ruff]\nline-length = 100\n"),
        (
            "go.mod",
            "module shop\n\ngo 1.23\n",
            "module shop\n\ngo 1.23\n\nrequire x.org/y v1.0.0\n",
        ),
        ("go.mod", "module s\nrequire (\n\ta v1\n)\n", "module s\nrequire (\n\ta v1\n\tb v1\n)\n"),
    ],
)
def test_a_new_dependency_steers_no_test(path: str, before: str, after: str) -> None:
    assert steers_alike(path, before.encode(), after.encode())


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("Cargo.toml", CARGO, CARGO + '[[test]]\nname = "a"\nharness = false\n'),
        ("Cargo.toml", CARGO, CARGO.replace("[dep", "autotests = false\n[dep")),
        ("Cargo.toml", CARGO, CARGO + '[dev-dependencies]\nx = { path = "fake" }\n'),
        ("Cargo.toml", CARGO, CARGO + '[patch.crates-io]\nx = { path = "fake" }\n'),
        ("package.json", PACKAGE, PACKAGE.replace("jest", "exit 0")),
        ("package.json", PACKAGE, PACKAGE.replace("{}", '{}, "jest": {"testMatch": []}')),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace("tests", "none")),
        ("pyproject.toml", PYPROJECT, PYPROJECT + 'addopts = "--collect-only"\n'),
        ("go.mod", "module shop\n", "module shop\nreplace a => ./fake\n"),
        ("package.json", PACKAGE, "[]"),
        ("package.json", PACKAGE, "not JSON"),
        ("pytest.ini", "[pytest]\n", "[pytest]\n\n"),
    ],
)
def test_what_steers_tests_is_told_apart(path: str, before: str, after: str) -> None:
    assert not steers_alike(path, before.encode(), after.encode())
