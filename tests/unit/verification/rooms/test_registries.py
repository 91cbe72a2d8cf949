"""Hosts of packages are read off lock files and what tools have been told, never known by heart."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agentrunner.verification.rooms.registries import asked_for, registries_of

FILES = {
    "uv.lock": 'source = { registry = "https://packages.example/simple" }\n'
    'sdist = { url = "https://files.example/a.tar.gz", hash = "x" }\n',
    "package-lock.json": '{"a": {"resolved": "https://npm.example:8443/a.tgz", '
    '"funding": {"url": "https://sponsors.example/a"}}}',
    "yarn.lock": '  resolved "https://yarn.example/a.tgz#1"\n',
    "pnpm-lock.yaml": "    resolution: {integrity: x, tarball: https://pnpm.example/a.tgz}\n",
    ".npmrc": "@own:registry=https://own.example/npm/\n//own.example/npm/:_authToken=${T}\n",
    "node_modules/.package-lock.json": '{"a": {"resolved": "https://npm.example/a.tgz"}}',
    "pom.xml": (
        "<project><url>https://project.example</url><developers><developer>\n"
        "<url>https://me.example</url><id>me</id></developer></developers>\n"
        "<distributionManagement><repository><url>https://releases.example</url></repository>"
        "</distributionManagement>\n"
        "<repositories><repository><id>a</id><url>https://maven.example/x</url></repository>"
        "</repositories>\n"
        "<pluginRepositories><pluginRepository>\n<url> https://plugins.example </url>\n"
        "</pluginRepository></pluginRepositories></project>\n"
    ),
    "Gemfile": "source 'https://ruby.example'\ngem 'rake', source: 'https://other.example'\n",
    "Gemfile.lock": "GEM\n  remote: https://gems.example/\n",
    "composer.lock": '{"packages": [{"name": "a", "source": {"url": "https://git.example/a"},'
    ' "dist": {"type": "zip", "url": "https:\\/\\/zips.example\\/a"}, "support": '
    '{"url": "https://support.example"}}]}',
    "Cargo.lock": '[[package]]\nname = "a"\nsource = "registry+https://old.example/index"\n'
    '[[package]]\nsource = "sparse+https://own.example/i/"\n'
    '[[package]]\nsource = "git+https://code.example/a?rev=1#2"\n',
    "build.gradle": """\
// repositories { maven { url "https://comment.example" } }
buildscript { repositories { maven { url 'https://scripts.example/m2' } } }
repositories {
    mavenCentral()
    maven { url "https://maven.example/x"; content { includeGroup "a" } }
}
publishing { repositories { maven { url = uri("https://releases.example") } } }
println "https://print.example { repositories {"
""",
    "settings.gradle.kts": """\
pluginManagement { repositories { maven("https://plugins.example/m2") { name = "x" } } }
dependencyResolutionManagement.repositories { maven { url = uri("https://maven.example") } }
publishing.repositories { maven("https://releases.example") }
""",
    "gradle/wrapper/gradle-wrapper.properties": "distributionUrl=https\\://gradle.example/g.zip\n",
    "Pipfile.lock": '{"sources": [{"url": "https://u:p@pip.example/simple"}]}',
}


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("uv.lock", ["packages.example:443", "files.example:443"]),
        ("package-lock.json", ["npm.example:8443"]),
        ("yarn.lock", ["yarn.example:443"]),
        ("pnpm-lock.yaml", ["pnpm.example:443"]),
        ("node_modules/.package-lock.json", ["npm.example:443"]),
        (".npmrc", ["own.example:443"]),
        ("Gemfile.lock", ["gems.example:443"]),
        ("Gemfile", ["ruby.example:443"]),
        ("pom.xml", ["maven.example:443", "plugins.example:443"]),
        ("composer.lock", ["zips.example:443"]),
        ("Cargo.lock", ["own.example:443", "code.example:443"]),
        ("build.gradle", ["scripts.example:443", "maven.example:443"]),
        ("settings.gradle.kts", ["plugins.example:443", "maven.example:443"]),
        ("gradle/wrapper/gradle-wrapper.properties", ["gradle.example:443"]),
        ("Pipfile.lock", ["pip.example:443"]),
    ],
)
def test_a_file_of_the_repository_says_it(tmp_path: Path, name: str, hosts: list[str]) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
    (tmp_path / name).write_text(FILES[name])
    environ = {"HOME": str(tmp_path / "user"), "PATH": "/nowhere"}
    assert registries_of(tmp_path, environ) == hosts


def test_go_and_cargo_say_it_themselves(tmp_path: Path) -> None:
    user, repo = tmp_path / "user", tmp_path / "repo"
    repo.mkdir()
    environ = {"HOME": str(user), "GOROOT": str(tmp_path / "go"), "PATH": "/nowhere"}
    (repo / "go.sum").touch()
    (repo / "Cargo.lock").touch()
    assert registries_of(repo, environ) == []
    index = user / ".cargo/registry/index/index.example-6f17d22bba15001f"
    index.mkdir(parents=True)
    (index / "config.json").write_text(json.dumps({"dl": "https://crates.example/crates"}))
    (tmp_path / "go").mkdir()
    told = "GOPROXY=https://proxy.example,direct\nGOSUMDB=sum.example\n"
    (tmp_path / "go/go.env").write_text(told)
    go = ["proxy.example:443", "sum.example:443"]
    assert registries_of(repo, environ) == [*go, "index.example:443", "crates.example:443"]
    own = {**environ, "GOPROXY": "https://own.example"}
    assert registries_of(repo, own)[:2] == ["own.example:443", "sum.example:443"]


def test_nonsense_is_no_host(tmp_path: Path) -> None:
    (tmp_path / "yarn.lock").write_bytes(
        b'  resolved "https://[::1"\n resolved "https://a b\xff"\n'
    )
    (tmp_path / "uv.lock").mkdir()
    assert registries_of(tmp_path, {"HOME": str(tmp_path)}) == []


def test_addresses_of_a_project_s_own_are_no_registries(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project.urls]\nHome = "https://home.example"\n'
        '[[tool.sponcon.sponsors]]\nurl = "https://sponsor.example/"\n'
        '[[tool.uv.index]]\nurl = "https://index.example/simple"\n'
        '[tool.pip]\nextra-index-url = ["https://more.example/simple"]\n'
    )
    assert registries_of(tmp_path, {}) == ["index.example:443", "more.example:443"]


@pytest.mark.parametrize(
    ("output", "hosts"),
    [
        (
            "npm error request to https://npm.example/glob failed: no cached response",
            ["npm.example"],
        ),
        ("error: Failed to fetch: `https://packages.example/simple/six/`", ["packages.example"]),
        (
            "[6] Could not resolve hostname (Could not resolve host: crates.example)",
            ["crates.example"],
        ),
        (
            'Get "https://proxy.example/m/@v/list": dial tcp: lookup proxy.example',
            ["proxy.example"],
        ),
        (
            "ERROR: Could not install packages due to an OSError: HTTPSConnectionPool("
            "host='wheels.example', port=443): Max retries exceeded with url: /a.whl",
            ["wheels.example"],
        ),
        (
            "Retrying after 'NewConnectionError(\"HTTPSConnection(host='index.example', port=443): "
            "Failed to establish a new connection: [Errno -3]\")': /simple/greet/",
            ["index.example"],
        ),
        ("added 3 packages\nread https://sponsors.example/us", []),
    ],
)
def test_a_tool_that_was_refused_names_the_host(output: str, hosts: list[str]) -> None:
    assert asked_for(output) == [f"{host}:443" for host in hosts]


def test_pip_and_npm_say_it_where_no_file_does(tmp_path: Path) -> None:
    repo, user = tmp_path / "repo", tmp_path / "user"
    repo.mkdir()
    user.mkdir()
    (repo / "requirements.txt").write_text("thing\n")
    (repo / "package.json").write_text("{}")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)
    npm = programs / "npm"
    npm.write_text('#!/bin/sh\necho https://npm.example/ "$*"\n')
    npm.chmod(0o755)
    environ = {
        "HOME": str(user),
        "PATH": f"{programs}:{os.defpath}",
        "PIP_INDEX_URL": "https://u:p@pip.example/simple",
    }
    hosts = registries_of(repo, environ)
    assert hosts[0] == "pip.example:443" and hosts[-1] == "npm.example:443"
    assert len(hosts) == 4  # pip's own index and its files, whatever pip calls them


def test_go_and_cargo_are_asked_where_nothing_was_used_here(tmp_path: Path) -> None:
    repo, user, programs = tmp_path / "repo", tmp_path / "user", tmp_path / "bin"
    for folder in (repo, user, programs):
        folder.mkdir()
    (repo / "go.sum").touch()
    (repo / "Cargo.toml").touch()
    go, cargo = programs / "go", programs / "cargo"
    go.write_text(
        '#!/bin/sh\n[ "$PWD$1" = /env ] || exit 1\n'
        "case $2 in GOPROXY) echo https://proxy.example,direct;; *) echo sum.example;; esac\n"
    )
    cargo.write_text(
        '#!/bin/sh\n[ "$PWD" = / ] && : > "$CARGO_HOME/used" || exit 9\n'
        "printf 'error: x\\n  failed to download from `https://index.example/config.json`\\n' >&2\n"
        "exit 101\n"
    )
    for program in (go, cargo):
        program.chmod(0o755)
    environ = {"HOME": str(user), "PATH": f"{programs}:{os.defpath}"}
    hosts = [f"{name}.example:443" for name in ("proxy", "sum", "index")]
    assert registries_of(repo, environ) == hosts
    assert list(user.iterdir()) == []
    cargo.write_text("#!/bin/sh\necho https://a.example\n")  # installed: it was from elsewhere
    assert registries_of(repo, environ) == hosts[:2]


def test_a_tool_inside_the_repository_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text("{}")
    npm = tmp_path / "npm"
    npm.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho https://npm.example/\n")
    npm.chmod(0o755)
    assert registries_of(tmp_path, {"HOME": str(tmp_path), "PATH": str(tmp_path)}) == []
    assert not (tmp_path / "ran").exists()
