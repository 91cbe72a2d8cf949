"""Test tools of compiled languages: go, cargo, ctest, meson, Maven, Gradle, dotnet, swift."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.inputs.cmake import calls_of
from agentrunner.verification.inputs.context import (
    Context,
    Handler,
    ShellText,
    handlers,
    positional,
)
from agentrunner.verification.inputs.globs import inside
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import Tree, above, folder_of, join

IMPORT = lazy_regex(
    r"^[^\S\n]*+(?:import\s++)?(?:\(\s*+)?(?:[\w.]+\s+)?\"([^\"\s]+)\"", re.MULTILINE
)
DECLARATION = lazy_regex(r"^(?:func|type|var|const)\b", re.MULTILINE)
MOST_FILES = 5_000
"""The most source files that are read; nothing is returned for a larger module."""

MOST_READ = 2_000
"""The most source files of a package that are read to see whether they contain tests."""
MAIN = lazy_regex(r"\bmain\s*\(")
RUST_TESTS = lazy_regex(r"#\[(cfg\(.*\btest\b.*|(\w+::)*test(\(.*)?)\]|^[^\S\n]*//[/!].*```", re.M)


GO_VALUES = frozenset(
    f"{dashes}{name}"
    for dashes in ("-", "--")
    for name in """run skip count timeout tags bench coverprofile p parallel cpu exec mod C o
    shuffle covermode coverpkg vet""".split()
)


def go(context: Context, step: Step, words: list[str], by: str) -> None:
    """`go test PACKAGES` collects files named _test.go and testdata below the packages."""
    locks = ("go.mod", "go.sum", "go.work", "go.work.sum", "vendor/modules.txt")
    context.place_above(step.folder, locks, "it says which modules are used")
    verb = next((word for word in words if not word.startswith("-")), "")
    if verb == "run":
        _go_run(context, step, words[words.index("run") + 1 :], by)
        return
    if verb not in ("test", "vet"):
        return
    for place in above(step.folder):
        if join(place, "vendor/modules.txt") in context.tree.paths:
            for package in only_for_tests(context.tree, place):
                context.collect(inside(package, "*"), "only tests import it", "fixture")
    rest = words[words.index(verb) + 1 :]
    for package in positional(rest, GO_VALUES) or ["."]:
        clean = package.removesuffix("...").rstrip("/")
        base = join(step.folder, clean or ".")
        deep = "**/" * package.endswith("...")
        if base.endswith(".go"):
            context.collect(base, f"{by} names it")
            continue
        context.roots.add(base)
        if deep:
            context.place(inside(base, "**/go.mod"), "its folder is left out of ./...")
        context.collect(inside(base, f"{deep}*_test.go"), "go test collects it by its rules")
        context.collect(
            inside(base, f"{deep}testdata/**"), "tests read it, go ignores it", "fixture"
        )


def _go_run(context: Context, step: Step, words: list[str], by: str) -> None:
    plain = [word for word in words if not word.startswith("-")]
    for word in plain[:1]:
        path = join(step.folder, word)
        found = (
            [path] if path in context.tree.paths else context.tree.matching(inside(path, "*.go"))
        )
        for one in found:
            if re.search(r"^func main\(", context.tree.text(one) or "", re.M):
                context.execute(one, step, by)


def cargo(context: Context, step: Step, words: list[str], by: str) -> None:
    """`cargo test` collects tests/ of every package, tests in sources, and examples in comments."""
    verb = next((word for word in words if not word.startswith(("-", "+"))), "")
    names = ("Cargo.toml", "Cargo.lock", ".cargo/config.toml", ".cargo/config", "clippy.toml",
             "rust-toolchain.toml", "rust-toolchain", ".config/nextest.toml")  # fmt: skip
    context.place_above(step.folder, names, "configuration that cargo reads")
    if verb not in ("test", "t", "nextest", "run", "r", "llvm-cov", "tarpaulin"):
        return
    manifests = [path for path in context.tree.under(step.folder)
                 if path == "Cargo.toml" or path.endswith("/Cargo.toml")]  # fmt: skip
    manifests = manifests or [join(place, "Cargo.toml") for place in above(step.folder)]
    for manifest in manifests[:500]:
        place = folder_of(manifest)
        if context.tree.exists(manifest):
            _rust_package(context, manifest, place, by)


def _rust_package(context: Context, manifest: str, place: str, by: str) -> None:
    context.add(manifest, "configuration that cargo reads", "config")
    context.place(join(place, "build.rs"), "cargo runs it before it builds", "runner")
    context.name_folder(join(place, "tests"), "cargo collects it")
    context.collect(inside(place, "tests/**"), "cargo collects tests/ by its rules")
    settings = context.tree.toml(manifest)
    for kind in ("test", "bench"):
        for target in settings.get(kind) or []:
            path = target.get("path") if isinstance(target, dict) else None
            if isinstance(path, str):
                context.collect(join(place, path), f"{manifest} names it")
    sources = [path for path in context.tree.under(join(place, "src")) if path.endswith(".rs")]
    context.tree.prefetch(sources[:MOST_READ])
    for path in sources[:MOST_READ]:
        if RUST_TESTS.search(context.tree.text(path) or ""):
            context.add(path, "it has tests inside, which cargo runs", "test", region=True)


def cmake_project(context: Context, folder: str, by: str) -> None:
    """Read CMakeLists.txt: its tests, and the sources of the programs that they run."""
    tree = context.tree
    lists = [path for path in tree.under(folder)
             if path.endswith(("CMakeLists.txt", ".cmake"))][:300]  # fmt: skip
    for path in tree.under(folder):
        if path.endswith((".cmake.in", "Presets.json")):
            context.add(path, "CMake or CTest reads what it says about tests", "recipe")
    programs: dict[str, list[str]] = {}
    tests: list[tuple[str, str, list[str]]] = []
    installed: set[str] = set()
    libraries: set[str] = set()
    for call in calls_of(tree, folder, lists):
        name, words, place = call.name, list(call.words), call.folder
        if name in ("add_executable", "add_library") and words:
            sources = [join(place, word) for word in words[1:]]
            sources = [one for one in sources if one in tree.paths]
            if name == "add_library":
                libraries.update(sources)
            else:
                programs[words[0]] = sources
        elif name == "install":
            installed.update(words)
        elif name == "add_test":
            plain = [word for word in words if word not in ("NAME", "COMMAND")]
            tests.append((call.path, place, plain[1:]))
        elif name.endswith("_discover_tests") and words:
            tests.append((call.path, place, [words[0]]))
        elif name == "include" and words:
            context.add(join(place, words[0]), f"included by {call.path}", "recipe")
    for path in lists:
        context.add(path, "it says how tests are built and run", "recipe")
    run = {name for _, _, words in tests for word in words if (name := _program(word, programs))}
    others = libraries.union(
        *(programs[name] for name in programs if name not in run or name in installed)
    )
    for name in run:
        context.only_tested.update(_only_tested(tree, programs[name], others))
    for path, place, words in tests:
        for word in words:
            if name := _program(word, programs):
                context.built.setdefault(join(place, name), tuple(programs[name]))
                if name in installed:
                    context.product_programs.update(programs[name])
        if words and (name := _program(words[0], programs)):
            step = Step((name, *words[1:]), place)
            for source in programs[name]:
                context.execute(source, step, path)
            for word in words[1:]:
                _test_argument(context, place, word, path)
        elif words:
            context.follow(ShellText(" ".join(words), place, path))


def _program(word: str, programs: Collection[str]) -> str:
    """Return the program that a word of a test means; "" for none."""
    name = posixpath.basename(word)
    return word if word in programs else name if name in programs else ""


def _only_tested(tree: Tree, sources: Sequence[str], others: Collection[str]) -> list[str]:
    """Return the sources of a test program whose `main` comes from a kit (GoogleTest, Catch).

    Sources that a library or another program is built from as well are product.
    """
    alone = [path for path in sources if path not in others]
    return [] if any(MAIN.search(tree.text(path) or "") for path in alone) else alone


def _test_argument(context: Context, place: str, word: str, by: str) -> None:
    if path := context.file(place, word):
        context.data.setdefault(path, f"{by} hands it to a test")


def ctest(context: Context, step: Step, words: list[str], by: str) -> None:
    """ctest and cmake: follow the project that the build folder belongs to."""
    for place in above(step.folder):
        if join(place, "CMakeLists.txt") in context.tree.paths:
            cmake_project(context, place, by)
            return
    cmake_project(context, step.folder, by)


def meson(context: Context, step: Step, words: list[str], by: str) -> None:
    """meson and ninja: follow the tests that meson.build names, and their sources."""
    tree = context.tree
    files = [path for path in tree.under(step.folder) if path.endswith("meson.build")][:300]
    if not files:
        ctest(context, step, words, by)
        return
    for path in files:
        place, text = folder_of(path), tree.text(path) or ""
        context.add(path, "it says how tests are built and run", "recipe")
        programs: dict[str, list[str]] = {}
        for found in re.finditer(r"(\w+)\s*=\s*executable\s*\(([^()]*)\)", text):
            names = re.findall(r"'([^']+)'", found[2])
            programs[found[1]] = [join(place, one) for one in names]
            if "install" in found[2]:
                context.product_programs.update(programs[found[1]])
        for found in re.finditer(r"\btest\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)", text):
            for name, sources in programs.items():
                if re.search(rf"\b{name}\b", found[1]):
                    for source in sources:
                        context.execute(source, Step((name,), place), path)
            for word in re.findall(r"'([^']+)'", found[1])[1:]:
                if named := context.file(place, word):
                    context.add(named, f"{path} runs it", "test")


def java(context: Context, step: Step, words: list[str], by: str) -> None:
    """Maven and Gradle collect src/test of every module; what builds them counts as well."""
    tree = context.tree
    for name in ("pom.xml", ".mvn/**", *GRADLE_FILES, "gradle.properties", "gradle/**",
                 "buildSrc/**", "mvnw", "gradlew", "build.xml"):  # fmt: skip
        context.place(inside(step.folder, name), "configuration of the build that runs the tests")
    builds = ("pom.xml", *GRADLE_FILES[:2])
    modules = {folder_of(path) for path in tree.under(step.folder) if path.endswith(builds)}
    for module in sorted(modules | {step.folder})[:300]:
        for name in builds:
            context.add(join(module, name), "configuration of the build", "config")
        context.name_folder(join(module, "src/test"), "Maven and Gradle collect it")
        context.collect(inside(module, "src/{test,it,integrationTest,testFixtures}/**"),
                        "Maven and Gradle collect src/test by their rules")  # fmt: skip
        text = (tree.text(join(module, "pom.xml")) or "") + (
            tree.text(join(module, "build.gradle")) or ""
        )
        for found in re.finditer(r"<testSourceDirectory>([^<]+)<|test\s*\{[^}]*srcDirs?\s*[=(]?"
                                 r"\s*\[?"
                                 r"['\"]([^'\"]+)", text):  # fmt: skip
            named = (found[1] or found[2]).replace("${project.basedir}/", "").strip()
            context.collect(inside(join(module, named), "**"), "the build names it")


def dotnet(context: Context, step: Step, words: list[str], by: str) -> None:
    """`dotnet test` collects the folder of every project that needs the test kit."""
    for path in context.tree.under(step.folder):
        if re.search(r"\.(cs|fs|vb)proj$", path):
            text = context.tree.text(path) or ""
            if re.search(r"Microsoft\.NET\.Test\.Sdk|IsTestProject>\s*true|MSTest\.Sdk", text):
                context.name_folder(folder_of(path), "dotnet test collects it")
                context.collect(inside(folder_of(path), "**"), "it belongs to a test project")
            context.add(path, "configuration of the build", "config")
    names = ("Directory.Build.props", "Directory.Build.targets", "Directory.Packages.props",
             "global.json", "nuget.config", ".runsettings", "*.runsettings")  # fmt: skip
    context.place_above(step.folder, names, "configuration of the build that runs the tests")


def _tool_with_test_folder(*globs: str, config: tuple[str, ...] = ()) -> Handler:
    def handler(context: Context, step: Step, words: list[str], by: str) -> None:
        """Collect the tests of a tool that keeps them in a separate folder."""
        if words and not {"test", "check", "testOnly", "spec"} & set(words):
            return
        for name in config:
            context.place(join(step.folder, name), "configuration of the build that runs the tests")
        for glob in globs:
            context.collect(inside(step.folder, glob), "the tool collects it by its rules")

    return handler


HANDLERS = handlers(
    ("go", go),
    ("gotestsum", lambda context, step, words, by: go(context, step, ["test", *words], by)),
    ("cargo", cargo),
    ("ctest cmake", ctest),
    ("meson ninja", meson),
    ("mvn mvnw gradle gradlew ant", java),
    ("dotnet", dotnet),
    ("swift", _tool_with_test_folder("Tests/**", config=("Package.swift", "Package.resolved"))),
    ("mix", _tool_with_test_folder("test/**", config=("mix.exs", "mix.lock", ".formatter.exs"))),
    ("sbt", _tool_with_test_folder("**/src/test/**", config=("build.sbt",))),
    ("dart flutter", _tool_with_test_folder("test/**", config=("pubspec.yaml", "pubspec.lock"))),
    ("stack", _tool_with_test_folder("test/**", config=("stack.yaml", "package.yaml"))),
    ("cabal", _tool_with_test_folder("test/**", "tests/**")),
)


def only_for_tests(tree: Tree, module: str) -> list[str]:
    """Return the folders of vendored packages that only a module's tests need, sorted.

    `module` is the folder that contains go.mod and vendor/; "" is the root.
    """
    vendor = join(module, "vendor")
    sources = [path for path in tree.under(module) if path.endswith(".go")]
    if len(sources) > MOST_FILES:
        return []
    tree.prefetch(sources)
    packages: dict[str, list[str]] = {}
    needed: dict[bool, set[str]] = {True: set(), False: set()}
    for path in sources:
        is_test = path.endswith("_test.go")
        if not path.startswith(f"{vendor}/"):
            needed[is_test] |= _imported(tree, vendor, path)
        elif not is_test:
            packages.setdefault(folder_of(path), []).append(path)
    product = _with_imports(tree, vendor, packages, needed[False])
    return sorted(_with_imports(tree, vendor, packages, needed[True]) - product)


def _imported(tree: Tree, vendor: str, path: str) -> set[str]:
    text = tree.text(path) or ""
    end = DECLARATION.search(text)
    head = text[: end.start()] if end else text
    return {f"{vendor}/{name}" for name in IMPORT.findall(head)}


def _with_imports(
    tree: Tree, vendor: str, packages: Mapping[str, Iterable[str]], first: set[str]
) -> set[str]:
    """Return these packages with everything that they import themselves."""
    found: set[str] = set()
    waiting = list(first)
    while waiting:
        package = waiting.pop()
        if package in found or package not in packages:
            continue
        found.add(package)
        for path in packages[package]:
            waiting += _imported(tree, vendor, path)
    return found
