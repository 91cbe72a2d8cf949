"""Further caches of a user, as in `tests.kit.caches`: of gems, of pip, of Gradle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kit.caches import Project, Server, as_user, bait, serve_index
from tests.kit.files import write

GEM = """\
Gem::Specification.new do |s|
  s.name = "greet"
  s.version = "1.2.3"
  s.summary = "Greets."
  s.authors = ["us"]
  s.files = ["lib/greet.rb"]
  s.bindir = "exe"
  s.executables = ["greet"]
end
"""


def gem(user: Path, repo: Path, server: Server, **env: str) -> Project:
    """A gem of ours, installed for this user, and a Gemfile with it."""
    if shutil.which("bundle") is None:
        pytest.skip("Bundler is not installed, and need not be")
    source = server.folder / "greet"
    write(
        source,
        {
            "greet.gemspec": GEM,
            "lib/greet.rb": 'module Greet; def self.word = "hi"; end\n',
            "exe/greet": 'require "greet"\nputs Greet.word\n',
        },
    )
    as_user(user, source, "gem", "build", "-q", "greet.gemspec")
    where = () if env else ("--user-install",)
    install = ("gem", "install", "-q", "--local", "--no-document", *where, "greet-1.2.3.gem")
    as_user(user, source, *install, **env)
    write(repo, {"Gemfile": 'source "https://gems.example"\ngem "greet"\n'})
    as_user(user, repo, "bundle", "lock", "--local", **env)
    shown = user / "gems" if env else next((user / ".local/share/gem/ruby").iterdir())
    return Project(
        "gem",
        "bundle install --local && bundle exec greet | grep -x hi && "
        "bundle exec ruby -e 'require \"greet\"; exit Greet.word == %q(hi)'",
        ("bundle", "ruby"),
        bait(
            user / ".local/share/gem/credentials",
            user / ".gem/credentials",
            user / ".bundle/config",
            shown / "specifications/note.txt",
        ),
    )


def gem_home(user: Path, repo: Path, server: Server) -> Project:
    """The same in the place that GEM_HOME names."""
    return gem(user, repo, server, GEM_HOME=str(user / "gems"))


def pip(user: Path, repo: Path, server: Server) -> Project:
    """A wheel of ours that is named by its address: an index would be asked even with the cache."""
    serve_index(server)
    wheel = f"{server.url}/files/greet-1.2.3-py3-none-any.whl"
    write(repo, {"requirements.txt": f"--trusted-host 127.0.0.1\ngreet @ {wheel}\n"})
    try:
        as_user(user, repo, "python3", "-m", "venv", ".venv")
    except AssertionError:
        pytest.skip("Python's venv is not installed, and need not be")
    own = str(repo / ".venv/bin/pip")
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    as_user(user, repo, own, "install", "-r", "requirements.txt", **quiet)
    as_user(user, repo, own, "uninstall", "-y", "greet", **quiet)
    cache = user / ".cache/pip"
    return Project(
        "pip",
        ".venv/bin/pip install -r requirements.txt && "
        ".venv/bin/python -c 'import greet; assert greet.word() == \"hi\"'",
        ("python3",),
        bait(
            user / ".config/pip/pip.conf",
            user / ".pip/pip.conf",
            cache / "selfcheck/note.txt",
            next(cache.glob("http*")) / "note.txt",
        ),
    )


def gradle(user: Path, repo: Path, server: Server) -> Project:
    """JUnit from a repository of files, which Gradle takes from its place and not from a cache."""
    if shutil.which("gradle") is None:
        pytest.skip("Gradle is not installed, and need not be")
    version = next(Path("/usr/share/maven-repo/junit/junit").glob("4.[0-9]*")).name
    write(
        repo,
        {
            "settings.gradle": "rootProject.name = 'app'\n",
            "build.gradle": "apply plugin: 'java'\n"
            "repositories { maven { url 'file:///usr/share/maven-repo' } }\n"
            f"dependencies {{ testCompile 'junit:junit:{version}' }}\n",
            "src/test/java/AppTest.java": "import org.junit.Test;\n"
            "public class AppTest { @Test public void works() {} }\n",
        },
    )
    modules = user / ".gradle/caches/modules-2"
    return Project(
        "gradle",
        "gradle --no-daemon --offline test",
        ("gradle", "java"),
        bait(user / ".gradle/gradle.properties", modules / "note.txt", modules / "x/settings.xml"),
    )
