import pytest

from agentrunner.evidence.steering import is_executable_config, is_steering, is_test, matches


@pytest.mark.parametrize(
    "path",
    [
        "tests/test_cart.py",
        "test_cart.py",
        "cart_test.py",
        "src/cart.test.ts",
        "src/__tests__/cart.tsx",
        "cart_test.go",
        "spec/cart_spec.rb",
        "src/test/java/CartTest.java",
        "tests/data/big.json",
        "src/__snapshots__/a.snap",
        "Tests/helpers.py",
        "api_tests/data.json",
        "Shop.Tests/Usings.cs",
        "src/TestCart.java",
        "run-tests.sh",
        "test.c",
        "t/basic.t",
        "features/cart.feature",
    ],
)
def test_tests_are_known_by_their_names(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/cart.py",
        "src/contest.py",
        "latest/x.py",
        "src/attest.ts",
        "protest.sh",
        "src/Testing.java",
    ],
)
def test_product_code_is_no_test(path: str) -> None:
    assert not is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py",
        "a/b/conftest.py",
        "pytest.ini",
        "package.json",
        "jest.config.js",
        "Makefile",
        "pyproject.toml",
        ".cargo/config.toml",
        "x.pth",
        "sitecustomize.py",
        "vitest.setup.ts",
        ".pytest.toml",
        "go.mod",
        "tsconfig.build.json",
        "shop.egg-info/entry_points.txt",
        "lib/evil-1.0.dist-info/METADATA",
    ],
)
def test_configuration_steers(path: str) -> None:
    assert is_steering(path)


@pytest.mark.parametrize("path", ["pytest.py", "pytest/__init__.py", "json.py", "tests/random.py"])
def test_new_modules_that_shadow_the_runner_steer(path: str) -> None:
    assert is_steering(path, new=True)
    assert not is_steering(path)


@pytest.mark.parametrize("path", ["shop/types.py", "shop/json/__init__.py", "src/cart.py"])
def test_new_modules_deeper_down_shadow_nothing(path: str) -> None:
    assert not is_steering(path, new=True)


def test_what_the_test_command_names_steers() -> None:
    assert is_steering("tools/verify.sh", ["tools/verify.sh"])
    assert not is_steering("tools/other.sh", ["tools/verify.sh"])


@pytest.mark.parametrize(
    ("path", "pattern", "expected"),
    [
        ("tests/golden/a.txt", "tests/golden/**", True),
        ("tests/golden/b/c.txt", "tests/golden/**", True),
        ("tests/a.txt", "tests/golden/**", False),
        ("a/b/secret.txt", "secret.txt", True),
        ("docs/a.md", "docs", True),
        ("docs2/a.md", "docs", False),
        ("src/a.py", "src/*.py", True),
        ("src/x/a.py", "src/*.py", False),
        ("src/x/a.py", "**/a.py", True),
        ("a.py", "**/a.py", True),
        ("ab.py", "a?.py", True),
        ("a[1].py", "a[1].py", True),
    ],
)
def test_globs_match_like_gitignore(path: str, pattern: str, expected: bool) -> None:
    assert matches(path, [pattern]) is expected


def test_an_empty_glob_matches_nothing() -> None:
    assert not matches("a.py", ["", "/"])


@pytest.mark.parametrize(
    "path",
    [
        ".github/workflows/ci.yml",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".envrc",
        "sub/.git/config",
        ".gitattributes",
        "a/.husky/pre-commit",
    ],
)
def test_what_tools_run_unasked_is_executable_config(path: str) -> None:
    assert is_executable_config(path)


def test_ordinary_files_are_no_executable_config() -> None:
    assert not is_executable_config("src/github/workflows.py")
