"""A command that cannot start is a missing environment; what is not written yet is red."""

from __future__ import annotations

import re
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentrunner.verification.results.counts import Counts, read_counts
from agentrunner.verification.results.model import Results, TestOutcomeKind, TestResult
from agentrunner.verification.rooms.start_up import (
    NO_TESTS,
    why_no_test_says_anything,
    why_not_started,
)
from agentrunner.verification.rooms.start_up import tests_that_could_not_run as without


@dataclass(frozen=True)
class Ran:
    """What one command came to."""

    exit_code: int
    tail: str
    counts: Counts | None = None


JVM_CFG = "Error: could not open `/usr/lib/jvm/java-17-openjdk-amd64/lib/jvm.cfg'\n"
SECURITY = """\
Exception in thread "main" java.lang.InternalError: Error loading java.security file
\tat java.base/java.security.Security.initialize(Security.java:106)
"""
VM = (
    "Error occurred during initialization of VM\njava/lang/NoClassDefFoundError: java/lang/Object\n"
)
LIBRARY = "{}: error while loading shared libraries: libfoo.so.1: cannot open shared object file"
GLIBC = "{0}: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by {0})"
MAKE = "make: {0}: No such file or directory\nmake: *** [Makefile:2: test] Error 127\n"

CONFTEST = """\
ImportError while loading conftest '/repo/tests/conftest.py'.
tests/conftest.py:1: in <module>
    import {0}
E   ModuleNotFoundError: No module named '{0}'
"""
CURE = "E   RuntimeError: The testclient needs it. Install it with:\nE       $ pip install httpx\n"

PLUGIN = (
    "[ERROR] Plugin org.apache.maven.plugins:maven-resources-plugin:2.6 or one of its dependencies"
    " could not be resolved: {0} -> [Help 1]\n"
)
OFFLINE = "Cannot access central (https://repo.example) in offline mode"

DEPENDENCY = (
    "\x1b[0m[ERROR] Failed to execute goal on project app: Could not resolve dependencies for"
    " project test:app:jar:1: Could not transfer artifact junit:junit:pom:4.13 from/to central"
    " (https://repo.example): Unknown host repo.example -> [Help 1]\n"
)
GRADLE = """\
> Could not download greet.jar (test.example:greet:1.2.3){0}
   > Could not get resource 'https://repo.example/greet-1.2.3.jar'.
      > Could not HEAD 'https://repo.example/greet-1.2.3.jar'.
         > repo.example: Temporary failure in name resolution
"""
BUNDLER = (
    "definition.rb:486:in `materialize': Could not find greet-1.2.3 in {0} (Bundler::GemNotFound)\n"
)
GO = "app.go:3:8: {0}\n"
NO_SUM = """\
# x.test/app
app.go:3:8: missing go.sum entry for module providing package x.test/y (imported by x.test/app); \
to add:
\tgo get x.test/app
FAIL\tx.test/app [setup failed]
"""
EXTENSION = (
    "[ERROR] [ERROR] Some problems were encountered while processing the POMs:\n"
    "[ERROR] Unresolveable build extension: Plugin x.y:z:1 or one of its dependencies could not be"
    " resolved: {0} @ \n @ \n[ERROR] The build could not read 1 project -> [Help 1]\n"
)
CRATE = "error: failed to get `y` as a dependency of package `app v0.1.0`\n\nCaused by:\n{0}\n"
LOCKED = """\
Could not find gem 'greet (>= 2)' in locally installed gems.
Run `bundle install` to install missing gems.
"""

NODE = """\
Error: Cannot find module 'p-try'
Require stack:
- {0}
- /repo/test.js
    at Module._load
"""

NOT_STARTED = {
    "a program behind env": (
        "env A=1 /opt/py/python -m pytest", 127,
        "env: \u2018/opt/py/python\u2019: No such file or directory\n",
    ),
    "a program behind env, plain quotes": (
        "env A=1 /opt/py/python -m pytest", 127,
        "env: '/opt/py/python': No such file or directory\n",
    ),
    "a package that npm installed in part": (
        "npx jest", 1, NODE.format("/repo/node_modules/p-limit/index.js"),
    ),
    "Maven's plug-in, offline": ("mvn -o -B test", 1, PLUGIN.format(OFFLINE)),
    "Maven's dependency": ("mvn -B test", 1, DEPENDENCY),
    "Maven's parent": (
        "mvn test", 1,
        "[FATAL] Non-resolvable parent POM for a:b:1: Could not transfer artifact a:p:pom:1 from\n",
    ),
    "Maven's repository": (
        "mvn test", 1, "[ERROR] Could not create local repository at /home/a/.m2 -> [Help 1]\n",
    ),
    "Gradle's daemon": (
        "gradle test", 1,
        "FAILURE: Build failed with an exception.\n\n* What went wrong:\n"
        "Could not create service of type DaemonClient using DaemonClientServices.create().\n",
    ),
    "a script of Yarn": (
        "yarn test", 1, 'yarn run v1.22.22\nerror Command "test" not found.\ninfo Visit x\n',
    ),
    "a script of pnpm": (
        "pnpm run test", 1, "Error: ERR_PNPM_NO_SCRIPT\n\n  × Missing script: test\n  help: …\n",
    ),
    "a script of an older pnpm": (
        "pnpm run test", 1, " ERR_PNPM_NO_SCRIPT  Missing script: test\n",
    ),
    "Gradle's dependency": ("gradle test", 1, GRADLE.format("")),
    "Gradle's dependency, offline": (
        "gradle test", 1, "> Could not download a.jar: No cached version available for offline mode"
    ),
    "a module of Go": ("go test ./...", 1, GO.format('x.test/y@v1.2.3: Get "p": dial tcp: no')),
    "a module of Go that is there in part": (
        "go test ./...", 1, GO.format("open /a/pkg/mod/cache/download/y/@v/v1.lock: read-only"),
    ),
    "a module of Go of which the cache cannot take the folder": (
        "go test ./...", 1,
        GO.format("mkdir /home/agent/go/pkg/mod/cache/download/x.test: read-only file system"),
    ),
    "a module of Go without its sum": ("go test ./...", 1, NO_SUM),
    "a module of Go without the sum of its go.mod": (
        "go test ./...", 1,
        "go: x.test/y@v1.2.3: missing go.sum entry for go.mod file; to add it:\n\tgo mod tidy\n",
    ),
    "an extension of Maven": ("mvn test", 1, EXTENSION.format(OFFLINE)),
    "an extension of Maven, without a network": (
        "mvn test", 1, EXTENSION.format("Failed to read artifact descriptor for x.y:z:jar:1"),
    ),
    "Rust's tool without a version": (
        "cargo test", 1,
        "error: rustup could not choose a version of cargo to run, because one wasn't specified\n",
    ),
    "a version of Rust that is not there": (
        "cargo test", 1, "error: toolchain '1.70.0-x86_64-unknown-linux-gnu' is not installed\n",
    ),
    "a version of Python that pyenv lacks": (
        "pytest", 1, "pyenv: version `3.9.1' is not installed (set by /repo/.python-version)\n",
    ),
    "a folder that is not there": ("cd backend && pytest", 2, "sh: 1: cd: can't cd to backend\n"),
    "a folder that is not there, in bash": (
        "cd backend/x && pytest", 1, "bash: line 1: cd: backend/x: No such file or directory\n",
    ),
    "Docker without Compose": (
        "docker compose run tests", 1,
        "docker: unknown command: docker compose\n\nRun 'docker --help' for more information\n",
    ),
    "Docker without an engine": (
        "docker run x", 125, "docker: Cannot connect to the Docker daemon at unix:///x. Is the\n",
    ),
    "a crate": ("cargo test", 101, CRATE.format("  download of config.json failed")),
    "a crate, offline": (
        "cargo test", 101, CRATE.format("  As a reminder, you're using offline mode ("),
    ),
    "a crate that is there in part": (
        "cargo test", 101, "error: failed to download `y v1.2.3`\n\nCaused by:\n  unexpected end\n",
    ),
    "a jar that is there in part": (
        "mvn test", 1, "[ERROR] error reading /home/a/.m2/repository/j/j.jar; zip END not found\n",
    ),
    "a gem of a git repository": (
        "bundle exec rake", 11, "The git source https://g/x.git is not yet checked out. Please\n",
    ),
    "a gem of the lock file": ("bundle exec rake", 1, BUNDLER.format("any of the sources")),
    "a gem, in newer words": ("bundle exec rake", 7, BUNDLER.format("locally installed gems")),
    "a gem of the Gemfile": ("bundle exec rake", 7, LOCKED),
    "a makefile": ("make", 2, "make: *** No targets specified and no makefile found.  Stop.\n"),
    "a Rakefile": ("rake", 1, "rake aborted!\nNo Rakefile found (looking for: rakefile)\n"),
    "a task of rake": ("rake x", 1, "rake aborted!\nDon't know how to build task 'x' (see -T)\n"),
    "a program that is not there": ("pytest -q", 127, "sh: 1: pytest: not found"),
    "one that may not be executed": ("tool", 126, "sh: 1: tool: Permission denied"),
    "the runner's module": ("python3 -m pytest", 1, "/usr/bin/python3: No module named pytest"),
    "a JVM without jvm.cfg": ("mvn -q test", 1, JVM_CFG),
    "a JVM without its security file": ("mvn -q test", 1, SECURITY),
    "a JVM without its classes": ("gradle test", 1, VM),
    "a library of a tool": ("tool test", 127, LIBRARY.format("tool")),
    "a library of a tool behind make": ("make test", 2, LIBRARY.format("/usr/bin/tool")),
    "another libc": ("node --test", 1, GLIBC.format("node")),
    "a symbol": ("tool", 127, "tool: symbol lookup error: tool: undefined symbol: x"),
    "a tool behind make": ("make test", 2, MAKE.format("cargo")),
    "Python without its library": (
        "python3 -m pytest", 1, "Fatal Python error: init_fs_encoding: failed to get the codec\n",
    ),
    "a system call that is denied": ("cargo test", 159, "Bad system call (core dumped)\n"),
    "a member of a Go workspace beside the repository": (
        "go test ./...", 1, "go: open /elsewhere/x/go.mod: no such file or directory\n",
    ),
    "a Go workspace that cannot be read": (
        "go test ./...", 1, "reading go.work: /repo/go.work:2: unknown directive: uses\n",
    ),
    "a newer Go": (
        "go test ./...", 1,
        "go: go.work requires go >= 1.25.0 (running go 1.22.2; GOTOOLCHAIN=local)\n",
    ),
    "what conftest says how to install": ("pytest", 4, CONFTEST.format("httpx") + CURE),
    "a script of Python that is not there": (
        "python3 nope.py", 2, "python3: can't open file '/repo/nope.py': [Errno 2] No such file",
    ),
    "a file of tests that is not there": (
        "pytest -q t/no.py", 4, "ERROR: file or directory not found: t/no.py\n\nno tests ran",
    ),
    "a script of Node that is not there": (
        "node nope.js", 1, "Error: Cannot find module '/repo/nope.js'\n    at Module._load\n",
    ),
    "a shell script that is not there": ("sh t/no.sh", 2, "sh: 0: cannot open t/no.sh: No such"),
    "a makefile that is not there": (
        "make -f nope.mk", 2, "make: nope.mk: No such file or directory\n",
    ),
    "a crash before a word": ("node --test", 139, "Segmentation fault\n"),
}  # fmt: skip

FINDING = (
    "/usr/bin/python3: Error while finding module specification for '{}' "
    "(ModuleNotFoundError: No module named '{}')\n"
)
"""What Python says where the package of a submodule is missing."""

RED = {
    "a module that the project's own code asks for": ("node test.js", 1, NODE.format("/repo/a.js")),
    "a script that is not written": ("./run.sh", 127, "sh: 1: ./run.sh: not found"),
    "a script in a folder": ("bin/tool", 127, "bash: line 1: bin/tool: No such file or directory"),
    "one by its whole path": ("/repo/run", 127, "sh: 1: /repo/run: not found"),
    "a library that is not built": ("./app", 127, LIBRARY.format("./app")),
    "a library behind make": ("make test", 2, LIBRARY.format("build/app")),
    "a program behind make": ("make test", 2, MAKE.format("./build/check")),
    "an extension of Maven that nobody has published": (
        "mvn test", 1, EXTENSION.format("Could not find artifact x.y:z:jar:1 in central (https:)"),
    ),
    "a folder that a script of the project enters": (
        "make test", 2, "sh: 1: cd: can't cd to out\n",
    ),
    "a module of the project": ("python3 -m pytest", 1, "E  No module named 'shop'"),
    "a submodule of a package that is not written": (
        "python3 -m shop.check", 1, FINDING.format("shop.check", "shop"),
    ),
    "a package that cannot be executed": (
        "python3 -m shop", 1,
        "python3: No module named shop.__main__; 'shop' is a package and cannot be executed\n",
    ),
    "a class of the project": (
        "java -cp . Shop", 1, "Error: Could not find or load main class Shop\n",
    ),
    "a crash of the project": ("./test_app", 139, "Segmentation fault\n"),
    "a crash in its own script": ("python3 tests/run.py", 139, ""),
    "a crash after words": ("node --test", 139, "adds two numbers\nSegmentation fault\n"),
    "a member of a Go workspace that is not written": (
        "go test ./...", 1, "go: open /repo/x/go.mod: no such file or directory\n",
    ),
    "a module that conftest needs and nobody declares": ("pytest", 4, CONFTEST.format("shop")),
    "a file that a test misses": (
        "python3 run.py", 1, "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    ),
    "a failing test": ("tool", 1, "1 failed"),
    "a package of Go that go.mod does not name": (
        "go test ./...", 1, GO.format("no required module provides package x.test/y; to add it:"),
    ),
    "a crate of the project that is not written": (
        "cargo test", 101, CRATE.format("  failed to read `/repo/y/Cargo.toml`"),
    ),
    "a product that looks for something": (
        "ruby test.rb", 1, "app.rb:3: Could not find config-2 in the settings\n",
    ),
    "tests that quote such words": (
        "pytest -q", 1, f"{VM}E assert\n1 failed, 3 passed in 0.1s\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_STARTED)
def test_what_cannot_start_is_no_red_test(name: str) -> None:
    shell, code, tail = NOT_STARTED[name]
    ran = Ran(code, tail, read_counts(tail, ""))
    assert why_not_started(shell, ran, Path("/repo"), is_test=True) not in ("", NO_TESTS)


@pytest.mark.parametrize("name", NOT_STARTED)
def test_colours_hide_no_reason(name: str) -> None:
    shell, code, tail = NOT_STARTED[name]
    plain = why_not_started(shell, Ran(code, tail), Path("/repo"), is_test=True)
    words = re.sub(r"\b(?:ERROR|error|go|make|FATAL)\b", "\x1b[1;31m\\g<0>\x1b[m", tail)
    coloured = re.sub(r"(?m)^.+$", "\x1b[0m\\g<0>\x1b[0m", words)
    assert coloured != tail or not tail
    told = why_not_started(shell, Ran(code, coloured), Path("/repo"), is_test=True)
    assert told == plain


def test_only_a_submodule_of_the_projects_own_package_is_still_to_be_written(
    tmp_path: Path,
) -> None:
    (tmp_path / "src/shop").mkdir(parents=True)
    (tmp_path / "requirements.txt").write_text("twisted\n")

    def why(shell: str, tail: str) -> str:
        return why_no_test_says_anything(shell, Ran(1, tail), None, tmp_path)

    missing = "/usr/bin/python3: No module named {}"
    assert not why("python3 -m shop.check", missing.format("shop.check"))
    assert not why("python3 -m shop.parts.check", FINDING.format("shop.parts.check", "shop.parts"))
    for tool in ("pytest", "unittest.nosuch"):
        assert why(f"python3 -m {tool} -q", missing.format(tool)) == missing.format(tool)
    lacks = why("python3 -m twisted.trial", FINDING.format("twisted.trial", "twisted"))
    assert lacks == "the package twisted is named in requirements.txt, and is not installed"


def test_a_script_that_the_prd_asks_for_is_red() -> None:
    shell, code, tail = NOT_STARTED["a script of Python that is not there"]
    prd = "Nope.py is still to be written, and runs all tests."
    assert not why_not_started(shell, Ran(code, tail), Path("/repo"), is_test=True, wanted=prd)


@pytest.mark.parametrize(
    ("shell", "code", "tail", "prd"),
    [
        ("cd backend && pytest", 2, "sh: 1: cd: can't cd to backend\n", "A backend that adds."),
        ("go test ./...", 1, NO_SUM, "Go.sum is not up to date."),
    ],
)
def test_what_the_prd_asks_for_is_red(shell: str, code: int, tail: str, prd: str) -> None:
    repo = Path(__file__).parent
    assert why_not_started(shell, Ran(code, tail), repo, is_test=True)
    assert not why_not_started(shell, Ran(code, tail), repo, is_test=True, wanted=prd)


def test_the_reason_is_the_tool_s_own_line() -> None:
    told = why_not_started("go test ./...", Ran(1, NO_SUM), Path("/repo"), is_test=True)
    assert told.startswith("app.go:3:8: missing go.sum entry for module")
    assert told.endswith("to add: go get x.test/app")
    ran = Ran(1, EXTENSION.format(OFFLINE))
    told = why_not_started("mvn test", ran, Path("/repo"), is_test=True)
    assert told.startswith("[ERROR] Unresolveable build extension: Plugin x.y:z:1")
    assert told.endswith("in offline mode")
    tail = (
        "error: no matching package named `serde` found\nlocation searched: crates.io index\n"
        "As a reminder, you're using offline mode (--offline) which can sometimes cause failures\n"
    )
    told = why_not_started("cargo test", Ran(101, tail), Path("/repo"), is_test=True)
    assert told == "error: no matching package named `serde` found"


@pytest.mark.parametrize("name", RED)
def test_what_is_not_written_or_fails_is_red(name: str, tmp_path: Path) -> None:
    shell, code, tail = RED[name]
    ran = Ran(code, tail, read_counts(tail, ""))
    assert why_not_started(shell, ran, Path("/repo"), is_test=True) == ""


def test_a_package_that_is_declared_and_not_installed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[dependency-groups]\ntests = ["trio-x>=0.2"]\n')
    ran = Ran(4, CONFTEST.format("trio_x"))
    told = why_not_started("pytest", ran, tmp_path, is_test=True)
    assert told == "ModuleNotFoundError: No module named 'trio_x'"
    (tmp_path / "trio_x").mkdir()
    assert why_not_started("pytest", ran, tmp_path, is_test=True) == ""


def test_a_check_is_judged_alike_but_for_the_number_of_its_tests() -> None:
    assert why_not_started("java -jar x", Ran(1, JVM_CFG), Path("/repo"), is_test=False)
    none = Ran(0, "", Counts(0, 0, 0))
    assert why_not_started("pytest", none, Path("/repo"), is_test=True) == NO_TESTS
    assert why_not_started("pytest", none, Path("/repo"), is_test=False) == ""


def real(shell: str, repo: Path) -> Ran:
    done = subprocess.run(
        ["sh", "-c", shell], cwd=repo, capture_output=True, text=True, check=False
    )
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Ran(code, done.stdout + done.stderr)


def test_the_words_of_the_shell_and_make_of_this_machine(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF not really")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "Makefile").write_text("test:\n\tno-such-tool-at-all\nown:\n\t./not-written\n")
    for shell in ("no-such-tool-at-all -q", "make test", "cd . && no-such-tool-at-all", "./broken"):
        assert why_not_started(shell, real(shell, tmp_path), tmp_path, is_test=True), shell
    for shell in ("./not-written", "make own"):
        assert not why_not_started(shell, real(shell, tmp_path), tmp_path, is_test=True), shell


def test_a_virtual_environment_that_leads_out_is_not_to_be_written(tmp_path: Path) -> None:
    venv, away = tmp_path / "repo/app/.venv/bin", tmp_path / "away/python3.11"
    venv.mkdir(parents=True)
    (venv / "python").symlink_to(away)
    (venv / "pytest").write_text(f"#!{venv}/python\n")
    (venv / "run").write_text("#!/no/such/interpreter\n")
    for name in ("pytest", "run"):
        (venv / name).chmod(0o755)
    (tmp_path / "repo/app/later").symlink_to("not-written")
    judged = {
        shell: why_not_started(
            shell, real(shell, venv.parents[1]), tmp_path / "repo", is_test=True, cwd="app"
        )
        for shell in (".venv/bin/python -m x", ".venv/bin/pytest", ".venv/bin/run", "./later")
    }
    assert list(judged.values()) == [
        f".venv/bin/python leads to {away}, which is not in the sandbox",
        f".venv/bin/pytest leads to {away}, which is not in the sandbox",
        "",
        "",
    ]


GO_AT = "far_test.go:2:20:"
UNFETCHED = {
    "go": f"{GO_AT} greet@v1.2.3: Get: dial tcp: no",
    "go.sum": f"{GO_AT} missing go.sum entry for module providing package greet",
    "cargo": "error: failed to download `greet v1.2.3`",
    "maven": DEPENDENCY[4:].rstrip(),
    "gradle": "   > No cached version of a:b:1 available for offline mode.",
    "node": "Error: Cannot find module 'zz'\nRequire stack:\n- /x/node_modules/y/index.js",
}
"""Of each tool: what it says of tests that need a package which nobody fetched."""


@pytest.mark.parametrize("tool", UNFETCHED)
def test_tests_whose_package_nobody_fetched_say_nothing_here(tmp_path: Path, tool: str) -> None:
    def judged(outcome: TestOutcomeKind, *others: TestResult) -> tuple[str, dict[str, str]]:
        lacks = TestResult("far", outcome, message=UNFETCHED[tool])
        results = Results("x", (lacks, TestResult("idle", "skipped"), *others))
        ran = Ran(1, "FAIL\n")
        why = why_no_test_says_anything("x", ran, results, tmp_path)
        return why, without(results, tmp_path, "")

    why, alone = judged("error")
    assert why
    assert alone == {"far": why}
    assert judged("error", TestResult("near", "failed", message="1 != 2")) == ("", alone)
    assert judged("error", TestResult("near", "passed")) == ("", alone)
    assert judged("failed") == ("", {})  # one that ran, and whose subject are such messages


def test_a_lock_file_that_the_task_names_is_to_be_written(tmp_path: Path) -> None:
    lacks = Results("go", (TestResult("far", "error", message=UNFETCHED["go.sum"]),))
    wanted = "Write the go.sum of this module."
    assert why_no_test_says_anything("x", Ran(1, ""), lacks, tmp_path, wanted) == ""
    assert without(lacks, tmp_path, wanted) == {}


def test_a_module_that_maven_cannot_begin_has_no_names_to_go_on_without(tmp_path: Path) -> None:
    near = Results("junit", (TestResult("near", "passed"), TestResult("red", "failed")))
    assert why_no_test_says_anything("mvn test", Ran(1, DEPENDENCY), near, tmp_path)
    assert why_no_test_says_anything("mvn test", Ran(0, DEPENDENCY), near, tmp_path) == ""
    assert why_no_test_says_anything("mvn test", Ran(1, "[ERROR] no"), near, tmp_path) == ""
