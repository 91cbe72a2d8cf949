"""Find the usual test command of a project's language by its files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.found import FoundCommand, line_of
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.manifests import json_of, table, toml_of

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
    r"(?im)^\s*(?:cmake_dependent_)?option\s*\(\s*(\w*TEST(?:S|ING)?)\s+(?:\"[^\"]*\"\s+)?(?:OFF\b|NO\b|FALSE\b|\))"
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
