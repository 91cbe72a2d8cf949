"""What build tools say of a command without its project, or with a word that they do not know.

The outputs are those of the tools themselves, run in an empty folder. .NET, Mix and Composer were
not on the machine: theirs are written after their sources.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agentrunner.verification.rooms.complaints import MISUSED, misused

CARGO = "error: could not find `Cargo.toml` in `/repo` or any parent directory\n"
GO = "go: go.mod file not found in current directory or any parent directory; see 'go help modules'"
GO_ALL = (
    "pattern ./...: directory prefix . does not contain main module or its selected dependencies\n"
)
MAVEN = """\
[[1;31mERROR[m] The goal you specified requires a project to execute but there is no POM in this \
directory (/repo). Please verify you invoked Maven from the correct directory. -> [1m[Help 1][m
[[1;31mERROR[m]
[[1;31mERROR[m] Re-run Maven using the [1m-X[m switch to enable full debug logging.
"""
YARN = """\
yarn run v1.22.22
error Couldn't find a package.json file in "/repo"
info Visit https://yarnpkg.com/en/docs/cli/run for documentation about this command.
"""
BERRY = "\x1b[31m\x1b[1mUsage Error\x1b[22m\x1b[39m: No project found in /repo\n\n$ yarn run …\n"
PNPM = """\
Error: ERR_PNPM_NO_IMPORTER_MANIFEST_FOUND

  × No package.json, package.json5, or package.yaml was found in "/repo/a/long/
  │ folder"

"""
OLD_PNPM = (
    " ERR_PNPM_NO_IMPORTER_MANIFEST_FOUND  No package.json (or package.yaml, or package.json5)"
    ' was found in "/repo".\n'
)
GRADLE = """\
FAILURE: Build failed with an exception.

* What went wrong:
Task 'test' not found in root project 'shop'.
"""
NEW_GRADLE = GRADLE.replace(
    "Task 'test' not found in root project 'shop'.",
    "Directory '/repo' does not contain a Gradle build.",
)
TOX = "ERROR: tox config file (either pyproject.toml, tox.ini, setup.cfg) not found\n"
BUNDLER = "Could not locate Gemfile or .bundle/ directory\n"
DOTNET = (
    "MSBUILD : error MSB1003: Specify a project or solution file. The current working directory"
    " does not contain a project or solution file.\n"
)
MIX = (
    "** (Mix) Could not find a Mix.Project, please ensure you are running Mix in a directory"
    " with a mix.exs file\n"
)
COMPOSER = "Composer could not find a composer.json file in /repo\n"

PROJECTS = [
    ("cargo test", 101, CARGO, "Cargo.toml"),
    ("cargo test --manifest-path Cargo.toml", 101,
     "error: manifest path `Cargo.toml` does not exist\n", "Cargo.toml"),
    ("go test", 1, GO, "go.mod"),
    ("go test ./...", 1, GO_ALL, "go.mod"),
    ("mvn -q test", 1, MAVEN, "pom.xml"),
    ("yarn test", 1, YARN, "package.json"),
    ("yarn test", 1, BERRY, "package.json"),
    ("pnpm run test", 1, PNPM, "package.json"),
    ("pnpm test", 1, OLD_PNPM, "package.json"),
    ("gradle test", 1, NEW_GRADLE, "build.gradle"),
    ("tox", 1, TOX, "tox.ini"),
    ("bundle exec rspec", 10, BUNDLER, "Gemfile"),
    ("dotnet test", 1, DOTNET, "*.csproj"),
    ("mix test", 1, MIX, "mix.exs"),
    ("composer test", 1, COMPOSER, "composer.json"),
]  # fmt: skip
"""Command, exit code, output, and what is to be looked for."""

WORDS = [
    ("cargo tset", 101, "error: no such command: `tset`\n\nhelp: …\n", "tset"),
    ("cargo tset", 101, "error: no such subcommand: `tset`\n", "tset"),
    ("cargo test --nope", 1, "error: unexpected argument '--nope' found\n", "--nope"),
    ("cargo test --nope", 1, "error: Found argument '--nope' which wasn't expected, or …\n",
     "--nope"),
    ("cargo test --test nope", 101, "error: no test target named `nope` in default-run packages\n",
     "nope"),
    ("cargo test -p nope", 101,
     "error: package ID specification `nope` did not match any packages\n", "nope"),
    ("go tset", 2, "go tset: unknown command\nRun 'go help' for usage.\n", "tset"),
    ("go test -nope ./...", 2, "flag provided but not defined: -nope\nusage: go test …\n", "-nope"),
    ("go test ./nope", 1, "stat /repo/nope: directory not found\n", "./nope"),
    ("go test ./nope/...", 1, "pattern ./nope/...: lstat ./nope/: no such file or directory\n",
     "./nope/..."),
    ("mvn --nope test", 1,
     "Unable to parse command line options: Unrecognized option: --nope\n\nusage: mvn …\n",
     "--nope"),
    ("mvn -B tset", 1,
     '[INFO] Scanning for projects...\n[ERROR] Unknown lifecycle phase "tset". You must …\n',
     "tset"),
    ("mvn -f nope.xml test", 1,
     "POM file nope.xml specified with the -f/--file command line argument does not exist\n",
     "nope.xml"),
    ("mvn -pl nope test", 1,
     "[ERROR] Could not find the selected project in the reactor: nope -> [Help 1]\n", "nope"),
    ("gradle --nope", 1, "Unknown command-line option '--nope'.\n\nUSAGE: gradle …\n", "--nope"),
    ("npm tset", 1, 'Unknown command: "tset"\n\n\nDid you mean this?\n', "tset"),
    ("yarn --cwd nope test", 1, 'yarn run v1.22.22\nerror Directory "/repo/nope" doesn\'t exist\n',
     "nope"),
    ("pnpm --nope test", 2, "error: unexpected argument '--nope' found\n", "--nope"),
    ("node --test --nope", 9, "node: bad option: --nope\n", "--nope"),
    ("npx jest --nope", 1, '● Unrecognized CLI Parameter:\n\n  Unrecognized option "nope".\n',
     "--nope"),
    ("vitest run --nope", 1, "CACError: Unknown option `--nope`\n    at Command.check (…)\n",
     "--nope"),
    ("bundle exec rspec --nope", 1, "invalid option: --nope\n\nPlease use --help …\n", "--nope"),
    ("python3 -m unittest --nope", 2,
     "usage: …\npython3 -m unittest: error: unrecognized arguments: --nope\n",
     "--nope"),
    ("make --nope test", 2, "make: unrecognized option '--nope'\nUsage: make …\n", "--nope"),
]  # fmt: skip
"""Command, exit code, output, and the word that the tool does not know."""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    for ending in ("py", "rs", "go", "java", "js", "rb", "cs", "ex", "php"):
        (tmp_path / f"cart.{ending}").write_text("")
    return tmp_path


def touched(place: Path, name: str) -> None:
    place.mkdir(exist_ok=True)
    (place / name.replace("*", "shop")).write_text("")


@pytest.mark.parametrize(("shell", "code", "output", "lacks"), PROJECTS)
class TestNoProject:
    def test_it_is_told_with_what_is_missing(
        self, repo: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        said = misused(shell, code, output, repo, "Charge for every piece")
        assert said.startswith(MISUSED)
        assert lacks in said
        assert "\x1b" not in said and "\n" not in said

    def test_it_is_told_through_make(
        self, repo: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        (repo / "Makefile").write_text(f"test:\n\t{shell}\n")
        printed = f"{shell}\n{output}make: *** [Makefile:2: test] Error {code}\n"
        assert lacks in misused("make test", 2, printed, repo, "Charge for every piece")

    def test_the_folder_that_has_it_is_named(
        self, repo: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        touched(repo / "backend", lacks)
        said = misused(shell, code, output, repo, "Charge for every piece")
        assert said.endswith(f"{lacks.replace('*', 'shop')} is in backend")

    @pytest.mark.parametrize("wanted", ["Write {}.", "- [ ] `{}` is there (check: file {})"])
    def test_what_the_task_names_may_still_be_written(
        self, repo: Path, shell: str, code: int, output: str, lacks: str, wanted: str
    ) -> None:
        name = lacks.replace("*", "shop")
        assert misused(shell, code, output, repo, wanted.replace("{}", name)) == ""

    def test_a_project_that_is_there_is_red(
        self, repo: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        """Then a test has said it, of a folder of its own."""
        touched(repo, lacks)
        assert misused(shell, code, output, repo, "Charge for every piece") == ""

    def test_another_tool_may_print_the_same(
        self, repo: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        assert misused("./run-tests", code, output, repo, "Charge for every piece") == ""
        assert misused(shell, 0, output, repo, "Charge for every piece") == ""

    def test_code_of_another_language_makes_no_such_project(
        self, tmp_path: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        (tmp_path / "cart.py").write_text("")
        said = misused(shell, code, output, tmp_path, "Charge for every piece")
        assert said.startswith(MISUSED) and lacks in said

    def test_a_project_where_there_is_no_code_is_to_be_written(
        self, tmp_path: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        (tmp_path / "build.sh").write_text("true")
        assert misused(shell, code, output, tmp_path, "Write a shop") == ""
        touched(tmp_path / "backend", lacks)
        assert misused(shell, code, output, tmp_path, "Write a shop")

    def test_a_repository_of_texts_is_to_be_filled(
        self, tmp_path: Path, shell: str, code: int, output: str, lacks: str
    ) -> None:
        (tmp_path / "prd.md").write_text("# A shop")
        assert misused(shell, code, output, tmp_path, "A shop") == ""


def test_the_project_is_looked_for_where_the_command_runs(repo: Path) -> None:
    touched(repo / "backend", "go.mod")
    told = misused("cd frontend && go test", 1, GO, repo, "Charge")
    assert told.endswith("go.mod is in backend")
    assert misused("cd backend && go test", 1, GO, repo, "Charge") == ""
    assert misused("go test", 1, GO, repo, "Charge", "backend") == ""
    assert misused("cd backend/shop && go test", 1, GO, repo, "Charge") == ""


def test_old_gradle_says_the_same_of_no_build_and_of_no_such_task(repo: Path) -> None:
    told = misused("gradle test", 1, GRADLE, repo, "It passes the test.")
    assert told.endswith("(build.gradle)")
    touched(repo, "build.gradle.kts")
    tset = GRADLE.replace("'test'", "'tset'")
    assert "'tset' not found" in misused("gradle tset", 1, tset, repo, "It passes the test.")
    assert misused("gradle tset", 1, tset, repo, "Add a task tset.") == ""
    assert misused("gradle test", 1, tset, repo, "It passes the test.") == ""


def test_a_repository_may_link_to_itself(repo: Path) -> None:
    (repo / "link").symlink_to(repo)
    touched(repo / "backend", "go.mod")
    assert misused("go test", 1, GO, repo, "Charge").endswith("go.mod is in backend")


@pytest.mark.parametrize(("shell", "code", "output", "word"), WORDS)
class TestUnknownWord:
    def test_it_is_told(self, repo: Path, shell: str, code: int, output: str, word: str) -> None:
        said = misused(shell, code, output, repo, "Charge for every piece")
        assert said.startswith(MISUSED)
        assert word.lstrip("-./").split("/")[0] in said

    def test_a_word_that_the_command_has_not_is_red(
        self, repo: Path, shell: str, code: int, output: str, word: str
    ) -> None:
        """Then something that the tests start has said it."""
        other = output.replace(word.lstrip("-./").split("/")[0], "other")
        assert misused(shell, code, other, repo, "Charge for every piece") == ""

    def test_what_the_task_names_may_still_be_written(
        self, repo: Path, shell: str, code: int, output: str, word: str
    ) -> None:
        name = word.removesuffix("/...").rpartition("/")[2]
        assert misused(shell, code, output, repo, f"Write {name}.") == ""
