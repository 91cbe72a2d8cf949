"""Find the usual test command of a project's language by its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrunner.config.repo import git_root
from agentrunner.discovery.found import FoundCommand, line_of
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import json_of, table, toml_of

_MANAGERS = (
    ("pnpm-lock.yaml", "pnpm", "pnpm test"),
    ("yarn.lock", "yarn", "yarn test"),
    ("bun.lock", "bun", "bun run test"),
    ("bun.lockb", "bun", "bun run test"),
    ("package-lock.json", "npm", "npm test"),
)
_COMMANDS = {manager: command for _, manager, command in _MANAGERS}
_INSTALLED = ("node_modules", ".pnp.cjs", ".pnp.js")
"""Where installed packages are; the last two are Yarn's."""


_OWN_RUNNER = lazy_regex(r"""(?:\bfrom\s*|\b(?:require|import)\s*\(?\s*)["']node:test["']""")
_FOUND_BY_NODE = lazy_regex(r"(?:^|/)test/|(?:^|/)(?:test|test-[^/]*|[^/]*[._-]test)\.[cm]?js$")
"""Where `node --test` looks by itself."""

_PLAIN = (
    ("go.mod", "go test ./..."),
    ("mix.exs", "mix test"),
    ("Package.swift", "swift test"),
    ("pubspec.yaml", "dart test"),
    ("stack.yaml", "stack test"),
    ("cabal.project", "cabal test all"),
    ("build.zig", "zig build test"),
    ("dune-project", "dune test"),
    ("build.sbt", "sbt test"),
    ("project.clj", "lein test"),
)


def language_tests(repo: Path) -> Iterator[FoundCommand]:
    """Yield test commands of every language whose manifest is at the top."""
    yield from _cargo(repo)
    for name, command in _PLAIN:
        if exists(repo, name):
            yield FoundCommand(command, name)
    yield from _jvm(repo)
    yield from _ruby(repo)
    yield from _php(repo)
    yield from _perl(repo)
    yield from _dotnet(repo)
    yield from _native(repo)


def _cargo(repo: Path) -> Iterator[FoundCommand]:
    text = read_inside(repo, "Cargo.toml")
    if not exists(repo, "Cargo.toml"):
        return
    # Without a package of its own at the top, cargo tests all members anyway.
    both = {"workspace", "package"} <= toml_of(text).keys()
    line = line_of(text, r"\s*\[workspace\]") if both else 0
    if both and (where := _workspace_in_ci(repo)):
        yield FoundCommand("cargo test --workspace", where)
    yield FoundCommand("cargo test", f"Cargo.toml, line {line}" if line else "Cargo.toml")


def _workspace_in_ci(repo: Path) -> str:
    """Return the CI file and line that test the whole workspace, "" for none."""
    pattern = r".*\btest\b.*\s--(?:workspace|all)(?:\s|$)"
    for name in [*names_inside(repo, ".github/workflows", (".yml", ".yaml")), ".gitlab-ci.yml"]:
        if line := line_of(read_inside(repo, name), pattern):
            return f"{name}, line {line}"
    return ""


def _jvm(repo: Path) -> Iterator[FoundCommand]:
    for wrapper, tool, manifests in (
        ("mvnw", "mvn", ("pom.xml",)),
        ("gradlew", "gradle", GRADLE_FILES),
    ):
        for name in manifests:
            if exists(repo, name):
                wrapped = exists(repo, wrapper)
                yield FoundCommand(f"{f'./{wrapper}' if wrapped else tool} test", name)
                break


def _ruby(repo: Path) -> Iterator[FoundCommand]:
    bundled = "bundle exec " if exists(repo, "Gemfile") else ""
    if exists(repo, ".rspec") or exists(repo, "spec/spec_helper.rb"):
        yield FoundCommand(f"{bundled}rspec", ".rspec" if exists(repo, ".rspec") else "spec/")
    rakefile = read_inside(repo, "Rakefile")
    if re.search(r"TestTask|task[ (]:?['\"]?test\b", rakefile):
        line = line_of(rakefile, r".*(?:TestTask|task[ (]:?['\"]?test\b)")
        yield FoundCommand(f"{bundled}rake test", f"Rakefile, line {line}")


def _dotnet(repo: Path) -> Iterator[FoundCommand]:
    """Yield the command for a solution or project at the top, or in the source folder."""
    for folder in (".", "src", "Src"):
        for name in names_inside(repo, folder, (".sln", ".slnx", ".csproj", ".fsproj")):
            yield FoundCommand(
                "dotnet test" if folder == "." else f"dotnet test {name}", name.removeprefix("./")
            )
            return


def _php(repo: Path) -> Iterator[FoundCommand]:
    text = read_inside(repo, "composer.json")
    scripts = table(json_of(text), "scripts")
    there = exists(repo, "vendor")
    needs = "" if there else "vendor is not there yet"
    if "test" in scripts:
        line = line_of(text, r'.*"test"\s*:')
        yield FoundCommand("composer test", f"composer.json, line {line}", needs)
    for name in ("phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml"):
        if exists(repo, name):
            own = exists(repo, "vendor/bin/phpunit")
            if there and not own:
                # Its libraries come from elsewhere, for example from a distribution's packages.
                yield FoundCommand("phpunit", name)
            lacks = needs or ("" if own else "vendor/bin/phpunit is not there yet")
            yield FoundCommand("vendor/bin/phpunit", name, lacks)
            break


def _perl(repo: Path) -> Iterator[FoundCommand]:
    has_tests = bool(names_inside(repo, "t", (".t",)))
    for name, command in (
        ("Makefile.PL", "perl Makefile.PL && make test"),
        ("Build.PL", "perl Build.PL && ./Build && ./Build test"),
    ):
        if exists(repo, name):
            yield FoundCommand(command, name)
    if has_tests:
        yield FoundCommand("prove -lr t", "t/")


def _native(repo: Path) -> Iterator[FoundCommand]:
    """Yield commands for C and C++; an existing build folder is used again."""
    if exists(repo, "CMakeLists.txt"):
        yield FoundCommand(built_first(repo, "ctest --output-on-failure"), "CMakeLists.txt")
    if exists(repo, "meson.build"):
        built = _existing_build(repo, "build.ninja")
        first = "" if built else "meson setup build && "
        yield FoundCommand(f"{first}meson test -C {built or 'build'}", "meson.build")
    if exists(repo, "configure"):
        first = "" if exists(repo, "Makefile") else "./configure && "
        yield FoundCommand(f"{first}make check", "configure")


_TEST_DIR = lazy_regex(r"\s--test-dir(?:=|\s+)(\S+)")
_OFF = lazy_regex(
    r"(?im)^[^\S\n]*(?:cmake_dependent_)?option\s*\(\s*(\w*TEST(?:S|ING)?)\s+(?:\"[^\"]*\"\s+)?(?:OFF\b|NO\b|FALSE\b|\))"
)
"""A CMake option that builds the tests and is off by default."""


def built_first(repo: Path, line: str) -> str:
    """Return a ctest command preceded by the build, in the folder it names or a usual one."""
    named = _TEST_DIR.search(line)
    known = named[1].strip("\"'") if named else _existing_build(repo, "CMakeCache.txt") or "build"
    configure = f"cmake -S . -B {known}"
    options = _OFF.findall(read_inside(repo, "CMakeLists.txt"))
    configure += "".join(f" -D{name}=ON" for name in dict.fromkeys(options))
    first = "" if exists(repo, f"{known}/CMakeCache.txt") else f"{configure} && "
    rest = _TEST_DIR.sub("", line).removeprefix("ctest").strip()
    return f"{first}cmake --build {known} && ctest --test-dir {known} {rest}".strip()


def _existing_build(repo: Path, mark: str) -> str:
    """Return an existing build folder with this file; "" for none."""
    for name in ("build", "_build", "out", "builddir", "cmake-build-debug"):
        if exists(repo, f"{name}/{mark}"):
            return name
    return ""


def node_tests(repo: Path) -> Iterator[FoundCommand]:
    """Yield the script `test`, run by the lock file's package manager, tests of Node's own runner,
    and Deno's.
    """
    text = read_inside(repo, "package.json")
    package = json_of(text)
    script = table(package, "scripts").get("test")
    if isinstance(script, str) and "no test specified" not in script:
        line = line_of(text, r'.*"test"\s*:')
        yield FoundCommand(
            _command(repo, package), f"package.json, line {line}", missing_packages(repo)
        )
    elif name := _of_own_runner(repo):
        yield FoundCommand("node --test", name)
    for name in ("deno.json", "deno.jsonc"):
        if exists(repo, name):
            yield FoundCommand("deno test", name)


def _of_own_runner(repo: Path) -> str:
    """Return the first file of tests that import Node's own runner, which needs no script; ""
    for none.
    """
    for folder in ("test", "tests", "."):
        for found in names_inside(repo, folder, (".js", ".mjs", ".cjs")):
            name = found.removeprefix("./")
            if _FOUND_BY_NODE.search(name) and _OWN_RUNNER.search(read_inside(repo, name)):
                return name
    return ""


def missing_packages(repo: Path) -> str:
    """Return why no script of package.json can run yet; "" if packages are present or unneeded."""
    package = json_of(read_inside(repo, "package.json"))
    wanted = any(package.get(key) for key in ("dependencies", "devDependencies"))
    root = git_root(repo) or repo  # a workspace has its members' packages at the top
    there = any(exists(place, name) for place in {repo, root} for name in _INSTALLED)
    return "node_modules is not there yet" if wanted and not there else ""


def _command(repo: Path, package: dict[str, object]) -> str:
    """Return the command of the manager that package.json names, else of the lock file's."""
    named = str(package.get("packageManager", "")).partition("@")[0]
    locked = next((command for lock, _, command in _MANAGERS if exists(repo, lock)), "npm test")
    return _COMMANDS.get(named, locked)
