"""Reads the JUnit XML of JVM tools: what Maven and Gradle write in the tree during this run, and
what JUnit's own launcher (ConsoleLauncher) writes where an option asks for it, by a shim.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Sequence

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.commands import Run
from agentrunner.verification.results.files import ReportFile, read_plain, reports_below
from agentrunner.verification.results.model import (
    Command,
    Instrumented,
    Ran,
    Results,
    TestResult,
)
from agentrunner.verification.results.names import made
from agentrunner.verification.results.tools.base import (
    Tool,
    added,
    join_junit,
    join_reports,
    shimmed,
)
from agentrunner.verification.results.xml import ReportedCase, dotted, read_junit

MAVEN = frozenset({"mvn", "mvnw", "mvnd"})
GRADLE = frozenset({"gradle", "gradlew"})
COLLECT = """mkdir {place}/junit && n=10000000 && find . -name 'TEST-*.xml' -type f \\
    -newer {place}/started -not -path '*/node_modules/*' | sort | while IFS= read -r each; do
    n=$((n + 1))
    cp "$each" {place}/junit/$n.xml && printf '%s\\n' "$n $each" >>{place}/junit.names
done
chmod -R a+rX {place}/junit"""
LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
FILE = "junit-platform-console"
ENDINGS = (".java", ".kt", ".groovy", ".scala")
METHOD = lazy_regex(r"[(\[]")
STANDARD = lazy_regex(r"/(?:target|build)/.*$|/[^/]*$")


class Java(Tool):
    """Results by module, class and method, as in `core: shop.CartTest#sums`."""

    means = ("junit",)
    programs: frozenset[str] = frozenset()

    def matches(self, run: Run) -> bool:
        """The tool, or its wrapper in the tree."""
        return run.program in self.programs

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Copy the files after the command has ended."""
        return Instrumented(command.shell, after=COLLECT.format(place=place))

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read the copies, which are named by the folders that they come from."""
        listed = (read_plain(ran.place, "junit.names", 4_000_000) or b"").decode("utf-8", "replace")
        sources = JavaSources(ran.paths, ran.cwd)
        paths = dict(line.split(" ", 1) for line in listed.splitlines() if " " in line)

        def read_one(report: ReportFile) -> tuple[list[TestResult], bool]:
            path = posixpath.normpath(paths.get(report.path.removesuffix(".xml"), ""))
            module = STANDARD.sub("", f"/{path}").strip("/")
            return read_junit(report.content, lambda case: _case(case, module, sources))

        return join_reports(self.name, reports_below(ran.place, "junit"), read_one, ran.exit_code)


def _case(case: ReportedCase, module: str, sources: JavaSources) -> TestResult:
    name = f"{module}: {dotted(case)}" if module else dotted(case)
    file = sources.file_of(case.classname, module)
    return made(name, case.outcome, file, message=case.message)


class Maven(Java):
    """Surefire and Failsafe."""

    name = "maven"
    programs = MAVEN

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by `-Dtest=Class#method+method`."""
        classes: dict[str, list[str]] = {}
        for name in names:
            where, _, method = name.rpartition(": ")[2].partition("#")
            classes.setdefault(where, []).append(re.split(r"[\[({ ]", method)[0])
        wanted = [
            f"{where}#{'+'.join(dict.fromkeys(methods))}" if all(methods) else where
            for where, methods in classes.items()
        ]
        options = [f"-Dtest={','.join(wanted)}", "-Dsurefire.failIfNoSpecifiedTests=false"]
        return added(shell, run, [*options, "-DfailIfNoTests=false"])


class Gradle(Java):
    """Gradle's test tasks."""

    name = "gradle"
    programs = GRADLE

    def narrowed(self, shell: str, run: Run, names: Sequence[str]) -> str | None:
        """Narrow by `--tests Class.method`, where one task called test is run."""
        if "test" not in run.words:
            return None
        options = []
        for name in names:
            where, _, method = name.rpartition(": ")[2].partition("#")
            options += ["--tests", f"{where}.{METHOD.split(method)[0]}"]
        at = run.words.index("test") + 1
        return added(shell, run, options, at if at < len(run.words) else None)


class JunitConsole(Tool):
    """Results by class and method, as in `shop.CartTest#sums()`."""

    name = "console"
    means = ("junit",)

    def matches(self, run: Run) -> bool:
        """`java` with the launcher's class, or its file behind -jar."""
        files = [word for at, word in enumerate(run.words) if run.words[at - 1] == "-jar"]
        return run.program == "java" and (
            LAUNCHER in run.words or any(FILE in file.rsplit("/", 1)[-1] for file in files)
        )

    def instrument(self, command: Command, place: str, means: int) -> Instrumented | None:
        """Put a `java` before the real one."""
        return shimmed(command.shell, place, "java")

    def read(self, ran: Ran, means: int) -> Results | None:
        """Read one file per JUnit engine, written when that engine has run its tests."""
        sources = JavaSources(ran.paths, ran.cwd)

        def named(case: ReportedCase) -> TestResult:
            file = sources.file_of(case.classname)
            return made(dotted(case), case.outcome, file, message=case.message)

        found = reports_below(ran.place, "", "TEST-*.xml")
        ours = (report for report in found if report.path.startswith("java-"))
        return join_junit("console", ours, named, ran.exit_code)


class JavaSources:
    """The sources of one tree by the names of their classes."""

    def __init__(self, paths: Collection[str], cwd: str) -> None:
        self._cwd = cwd or "."
        self._named: dict[str, list[str]] = {}
        for path in paths:
            stem, ending = posixpath.splitext(posixpath.basename(path))
            if ending in ENDINGS:
                self._named.setdefault(stem, []).append(path)

    def file_of(self, name: str, module: str = "") -> str:
        """The file of a class, relative to the command's folder; "" unless there is exactly one.

        A nested class is in the file of its outer class. `module` is the folder of its build.
        """
        own = name.partition("$")[0].replace(".", "/")
        named = self._named.get(posixpath.basename(own), [])
        here = [path for path in named if f"/{path}".rpartition(".")[0].endswith(f"/{own}")]
        within = posixpath.normpath(posixpath.join(self._cwd, module))
        found = [path for path in here if path.startswith(f"{within}/")] or here
        return posixpath.relpath(found[0], self._cwd) if len(found) == 1 else ""
