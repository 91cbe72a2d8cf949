"""What a test suite needs besides packages: a database, a browser, Docker. A sentence for each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from agentrunner.discovery.reading import names_inside, read_inside
from agentrunner.discovery.workflows import ci_services
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex

SENTENCES = {
    "database": "it wants a database or another server, and a sandbox starts none: have the test "
    "command start one, or leave out the tests that want it",
    "browser": "it wants a browser or a display, and a sandbox has none: an image that has one "
    "(runner.sandbox.image), or leave out the tests that want it",
    "docker": "it wants Docker, and a sandbox never gives a way to the engine: leave out the tests "
    "that want it",
}
_OUTPUT = {
    "database": lazy_regex(
        r"(?i)could not connect to (?:server|database)|(?:psycopg|sqlalchemy)\S*OperationalError"
        r"|redis\S*ConnectionError|MongoNetworkError|ServerSelectionTimeout|ECONNREFUSED \S+"
        r":(?:3306|5432|6379|27017|9200|5672)|connection to server at .* failed"
        r"|can't connect to (?:local )?mysql|connection refused.*(?:3306|5432|6379|27017)"
    ),
    "browser": lazy_regex(
        r"(?i)browserType\.launch|playwright install|could not find (?:chrome|chromium|browser)"
        r"|cannot open display|no chrome binary|geckodriver|chromedriver.*(?:not|exec)"
        r"|missing x server|failed to launch the browser"
    ),
    "docker": lazy_regex(
        r"(?i)cannot connect to the docker daemon|docker\.errors\.DockerException|docker\.sock"
        r"|could not find a valid docker environment|is the docker daemon running"
        r"|docker: unknown command|is not a docker command"
        r"|docker(?:-compose)?: (?:command )?not found"
    ),
}
_PACKAGES = {
    "browser": ("playwright", "puppeteer", "selenium", "cypress", "webdriverio", "testcafe"),
    "docker": ("testcontainers",),
}
_MANIFESTS = (
    "pyproject.toml", "package.json", "go.mod", "Cargo.toml", "pom.xml", *GRADLE_FILES[:2],
    "Gemfile", "composer.json",
)  # fmt: skip


def lacking(output: str) -> tuple[str, ...]:
    """Return a sentence for each service whose absence the output of a test command shows."""
    return tuple(SENTENCES[kind] for kind, words in _OUTPUT.items() if words.search(output))


def likely_lacking(repo: Path) -> list[str]:
    """The same judged by files, each with the file that shows it, before anything is tried."""
    return [f"{where}: {SENTENCES[kind]}" for kind, where in _by_files(repo)]


def _by_files(repo: Path) -> Iterator[tuple[str, str]]:
    services = ci_services(repo)
    if services:
        image, where = services[0]
        yield "database", f"{where} starts {image}"
    manifests = [*_MANIFESTS, *names_inside(repo, ".", (".csproj",))]
    texts = {name: read_inside(repo, name) for name in manifests}
    for kind, packages in _PACKAGES.items():
        for name, text in texts.items():
            hit = re.search(rf"[\"'/\s-](?:{'|'.join(packages)})\b", text)
            if hit:
                yield kind, f"{name} names {hit[0].strip(' /-').strip(chr(34) + chr(39))}"
                break
