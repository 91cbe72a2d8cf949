"""Which hosts a set-up fetches packages from, according to the project's own files and tools.

No host is hard-coded: it stands in a lock file, in a configuration of the repository, or in what a
tool on this machine was configured with or recorded itself.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from agentrunner.environment import find_program, home_of
from agentrunner.registry import GRADLE_FILES
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.verification.results.files import table, text_of, toml_of

MOST_BYTES = 8 << 20
"""Bytes of one file that are read."""
_LOCKS: tuple[tuple[str, str], ...] = (
    ("uv.lock", r'\b(?:registry|url) = "(https://[^"]+)"'),
    ("poetry.lock", r'(?m)^url = "(https://[^"]+)"'),
    ("pdm.lock", r'\burl = "(https://[^"]+)"'),
    ("Pipfile.lock", r'"url":\s*"(https://[^"]+)"'),
    ("requirements*.txt", r"(?m)^[^\S\n]*(?:-i|--(?:extra-)?index-url)[ =]+(https://\S+)"),
    ("package-lock.json", r'"resolved":\s*"(https://[^"]+)"'),
    ("npm-shrinkwrap.json", r'"resolved":\s*"(https://[^"]+)"'),
    ("node_modules/.package-lock.json", r'"resolved":\s*"(https://[^"]+)"'),
    ("yarn.lock", r'\bresolved "(https://[^"]+)"'),
    ("pnpm-lock.yaml", r"\btarball: (https://[^\s,}]+)"),
    ("bun.lock", r'"(https://[^"\s]+\.tgz)"'),
    (".npmrc", r"(?m)^[^\S\n]*(?:@[\w-]+:)?registry\s*=\s*(https://\S+)"),
    (".yarnrc.yml", r"(?i)registry(?:server)?:\s*\"?(https://[^\s\"]+)"),
    (".cargo/config.toml", r'\b(?:index|registry) = "(?:sparse\+)?(https://[^"]+)"'),
    ("NuGet.config", r'<add\s[^>]*value="(https://[^"]+)"'),
    ("nuget.config", r'<add\s[^>]*value="(https://[^"]+)"'),
    ("Cargo.lock", r'(?m)^source = "(?:sparse|git)\+(https://[^"]+)"'),
    ("composer.lock", r'"dist":\s*\{[^{}]*?"url":\s*"(https:[^"]+)"'),
    ("gradle/wrapper/gradle-wrapper.properties", r"(?m)^distributionUrl\s*=\s*(https\\?:\S+)"),
    ("Gemfile.lock", r"(?m)^[^\S\n]*remote: (https://\S+)"),
    ("Gemfile", r"(?m)^[^\S\n]*source\s*\(?\s*[\"'](https://[^\"']+)[\"']"),
)
"""Files of a repository, and the pattern of a package address in them."""
_OF_MAVEN = lazy_regex(
    r"<(?P<kind>repositories|pluginRepositories)>(?P<text>.*?)</(?P=kind)>"
    r"|<distributionManagement>.*?</distributionManagement>",
    re.DOTALL,
)
"""What a POM fetches from; the addresses of its project, its developers and releases are others."""
_OF_GRADLE = lazy_regex(
    r"//[^\n]*|/\*.*?\*/|\"\"\".*?\"\"\"|'{3}.*?'{3}"
    r"|\"(?P<double>(?:\\.|[^\"\\\n])*)\"|'(?P<single>(?:\\.|[^'\\\n])*)'"
    r"|(?P<word>[\w.]+)|(?P<brace>[{}])",
    re.DOTALL,
)
"""What is between blocks of a Gradle file: comments and long texts, texts, words and braces."""
_CARGO_INDEX = lazy_regex(r"^(?P<host>[\w.-]+)-[0-9a-f]{16}$")

_PIP_SAYS = (
    "from pip._internal.models.index import PyPI as own\n"
    "from pip._internal.configuration import Configuration\n"
    "settings = Configuration(isolated=False)\n"
    "settings.load()\n"
    "print(*(value for key, value in settings.items() if key.endswith('index-url')))\n"
    "print(own.simple_url, 'https://' + own.file_storage_domain)\n"
)
"""Pip shows its own index by no command. A pip that is built otherwise says nothing here."""
_TOOLS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt"),
        ("python3", "-I", "-c", _PIP_SAYS),
    ),
    (("package.json",), ("npm", "config", "get", "registry")),
)
"""Manifests without a lock file, and the command by which their tool says where it looks."""
_CARGO_ASKED = ("cargo", "install", "agentrunner-asks-for-the-address")
"""Cargo shows its index by no command. It names it where it cannot be reached."""
_NOWHERE = {"CARGO_HTTP_PROXY": "http://127.0.0.1:1", "CARGO_NET_RETRY": "0"}
_TOOL_SEC = 10.0

_COULD_NOT_FETCH = lazy_regex(
    r"(?i)fail|fetch|could not|cannot|can't|unable|request|lookup|not resolve"
)
_HOST_NAMED = lazy_regex(
    r"(?P<url>https://[^\s'\"<>]+)"
    r"|HTTPSConnection(?:Pool)?\(host='(?P<pool>[a-z0-9.-]+)'"
    r"|(?i:resolve host(?:name)?|getaddrinfo \w+|lookup)[ :(]+(?P<host>[a-z0-9-]+(?:\.[a-z0-9-]+)+)"
)


def asked_for(output: str) -> list[str]:
    """The hosts, as `host:443`, that a command reports it could not fetch something from."""
    found = [
        match["url"] or f"https://{match['pool'] or match['host']}"
        for line in output.splitlines()
        if _COULD_NOT_FETCH.search(line)
        for match in _HOST_NAMED.finditer(line)
    ]
    return list(dict.fromkeys(_hosts(found)))


def registries_of(repo: Path, environ: Mapping[str, str]) -> list[str]:
    """The hosts, as `host:443` for `task.setup.network`; [] where no file names any. Blocks."""
    urls = [
        url
        for name, pattern in _LOCKS
        for file in sorted(repo.glob(name))
        for url in re.findall(pattern, text_of(file, MOST_BYTES))
    ]
    urls += _urls_of_pyproject(text_of(repo / "pyproject.toml", MOST_BYTES))
    urls += [
        url
        for part in _OF_MAVEN.finditer(text_of(repo / "pom.xml", MOST_BYTES))
        for url in re.findall(r"<url>\s*(https://[^<\s]+)\s*</url>", part["text"] or "")
    ]
    urls += [
        url for name in GRADLE_FILES for url in _urls_of_gradle(text_of(repo / name, MOST_BYTES))
    ]
    if (repo / "go.sum").exists():
        urls += _urls_of_go(repo, environ)
    if (repo / "Cargo.lock").exists() or (repo / "Cargo.toml").exists():
        urls += list(_urls_of_cargo(environ)) or _cargo_says(repo, environ)
    if not urls:
        urls += _urls_of_tools(repo, environ)
    return list(dict.fromkeys(_hosts(urls)))


def _urls_of_tools(repo: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """What the tools of the manifests say, asked where they run none of the repository's code."""
    for manifests, words in _TOOLS:
        if any(file.is_file() for pattern in manifests for file in repo.glob(pattern)):
            yield from re.findall(r"https://\S+", _output_of(repo, environ, words))


def _output_of(
    repo: Path, environ: Mapping[str, str], words: Sequence[str], *, fails: bool = False
) -> str:
    """What a tool of this machine, never of the repository, prints; with `fails`, as its error.

    "" where it is not there, or ends otherwise.
    """
    search = {"PATH": environ.get("PATH", os.defpath)}
    program = find_program(words[0], avoid=repo, environ=search)
    if program is None:
        return ""
    try:
        ended = subprocess.run(
            [program, *words[1:]],
            cwd="/",
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TOOL_SEC,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    if bool(ended.returncode) != fails:
        return ""
    return (ended.stderr if fails else ended.stdout).decode("utf-8", "replace")


def _urls_of_pyproject(text: str) -> Iterator[str]:
    """Indexes and sources from which Python tools are configured to install; no other addresses."""
    for tool in table(toml_of(text), "tool").values():
        for key, value in table(tool).items():
            rows = value if isinstance(value, list) else [value]
            if key in ("index", "source"):
                urls = [row.get("url") for row in rows if isinstance(row, dict)]
            elif key.endswith("index-url"):
                urls = rows
            else:
                continue
            yield from (url for url in urls if isinstance(url, str) and url.startswith("https://"))


def _urls_of_gradle(text: str) -> Iterator[str]:
    """Where a Gradle file fetches from; what it publishes to is another matter."""
    blocks: list[str] = []
    word = ""
    for part in _OF_GRADLE.finditer(text):
        if part["word"]:
            word = part["word"]
        elif part["brace"] == "{":
            blocks.append(word)
        elif part["brace"]:
            del blocks[-1:]
        else:
            url = part["double"] or part["single"] or ""
            path = ".".join(blocks)
            publishes = "publish" in path.lower() or "uploadArchives" in path
            if url.startswith("https://") and "repositories" in path and not publishes:
                yield url


def _urls_of_go(repo: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Go's proxy and checksum database: from the environment, settings, or as Go itself says."""
    files = [home_of(environ) / ".config/go/env"]
    if root := environ.get("GOROOT"):
        files.append(Path(root) / "go.env")
    for name in ("GOPROXY", "GOSUMDB"):
        texts = [environ.get(name, "")]
        texts += [
            match
            for file in files
            for match in re.findall(rf"(?m)^{name}=(.*)$", text_of(file, MOST_BYTES))
        ]
        settings = (
            next(filter(None, texts), "") or _output_of(repo, environ, ("go", "env", name)).strip()
        )
        for word in re.split(r"[,| ]", settings):
            if word.startswith("https://"):
                yield word
            elif name == "GOSUMDB" and "." in word:
                yield f"https://{word.partition('+')[0]}"


def _cargo_says(repo: Path, environ: Mapping[str, str]) -> list[str]:
    """The address of the index, from a Cargo that has used none here and can reach none now."""
    own = environ.get("CARGO_HOME") or home_of(environ) / ".cargo"
    with tempfile.TemporaryDirectory(prefix="agentrunner-") as home:
        for name in ("config.toml", "config"):
            if (settings := Path(own, name)).is_file():
                Path(home, name).symlink_to(settings)
        around = {
            **environ, **_NOWHERE, "CARGO_HOME": home, "CARGO_INSTALL_ROOT": home,
            "CARGO_NET_OFFLINE": "false",
        }  # fmt: skip
        error = _output_of(repo, around, _CARGO_ASKED, fails=True)
    return re.findall(r"https://[^\s`'\"]+", error)


def _urls_of_cargo(environ: Mapping[str, str]) -> Iterator[str]:
    """The sparse indexes that Cargo has used on this machine, and the hosts of their crates."""
    home = environ.get("CARGO_HOME", "")
    root = Path(home) if home.startswith("/") else home_of(environ) / ".cargo"
    for folder in sorted((root / "registry/index").glob("*")):
        if (match := _CARGO_INDEX.fullmatch(folder.name)) is None:
            continue
        try:
            config = json.loads(text_of(folder / "config.json", MOST_BYTES))
        except ValueError:
            continue  # an index of another kind
        yield f"https://{match['host']}"
        if isinstance(config, dict) and str(config.get("dl", "")).startswith("https://"):
            yield str(config["dl"])


def _hosts(urls: Iterable[str]) -> Iterator[str]:
    for url in urls:
        try:
            parts = urlsplit(url.replace("\\", ""))  # as JSON and Java properties write them
            host, port = parts.hostname, parts.port or 443
        except ValueError:
            continue
        if host and re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", host):
            yield f"{host}:{port}"
