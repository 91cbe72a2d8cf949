"""Find the test command of a JavaScript project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agentrunner.config.repo import git_root
from agentrunner.discovery.found import FoundCommand, line_of
from agentrunner.discovery.reading import exists, names_inside, read_inside
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.manifests import json_of, table

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
