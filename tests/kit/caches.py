"""Package caches of a user, filled by the real tools from packages made here.

Each function makes a project with one dependency, lets the tool fetch it as the user would, and
says how the project is tested. Nothing but this machine's own loopback is asked.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from tests.kit.files import write
from tests.kit.http_server import http_server
from tests.kit.missing import missing

SECRET = "s3cr3t-of-the-user"


@dataclass(frozen=True)
class Project:
    """A project whose tests need a package."""

    ecosystem: str
    test: str
    """A shell command that is green with the package and red without."""
    programs: tuple[str, ...]
    bait: tuple[Path, ...] = ()
    """Files with a credential, in the cache and beside it."""
    tools: tuple[Path, ...] = ()
    """Installations that a container has to see, each with a folder `bin`."""


Make = Callable[[Path, Path, "Server"], Project]


class Server:
    """Files below a folder, at `url`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"

    def put(self, name: str, data: bytes | str) -> None:
        """Serve this at a path, which need not be a name of its own kind of file."""
        place = self.folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)


class _Quiet(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        if self.path.startswith("/files/"):  # as indexes of Python packages say of wheels
            self.send_header("Cache-Control", "max-age=365000000, immutable, public")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server of files as long as this lasts."""
    folder.mkdir(parents=True, exist_ok=True)
    with http_server(partial(_Quiet, directory=str(folder))) as port:
        yield Server(folder, port)


def as_user(user: Path, cwd: Path, *words: str, **env: str) -> None:
    """Run a tool as the user does, with a home of its own."""
    program = shutil.which(words[0])
    if program is None:
        missing(f"{words[0]} is not installed")
    home = {"HOME": str(user), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    given = ("RUSTUP_HOME", "PYENV_ROOT")
    home |= {name: os.environ[name] for name in given if name in os.environ}
    home.setdefault("RUSTUP_HOME", str(Path.home() / ".rustup"))
    done = subprocess.run(
        [program, *words[1:]],
        cwd=cwd,
        env={**home, **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{words}: {done.stdout}\n{done.stderr}"


def bait(*files: Path) -> tuple[Path, ...]:
    """Write a credential into each, as tools and people leave them."""
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"remote = https://me:{SECRET}@packages.example/simple\n")
    return files


def go(user: Path, repo: Path, server: Server) -> Project:
    """A module of ours through a file proxy."""
    name, at = "example.test/greet", "example.test/greet@v1.2.3"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{at}/go.mod", f"module {name}\n\ngo 1.19\n")
        archive.writestr(f"{at}/greet.go", 'package greet\n\nfunc Word() string { return "hi" }\n')
    versions = f"{name}/@v"
    server.put(f"{versions}/list", "v1.2.3\n")
    server.put(f"{versions}/v1.2.3.info", '{"Version":"v1.2.3"}')
    server.put(f"{versions}/v1.2.3.mod", f"module {name}\n\ngo 1.19\n")
    server.put(f"{versions}/v1.2.3.zip", packed.getvalue())
    write(
        repo,
        {
            "go.mod": f"module example.test/app\n\ngo 1.19\n\nrequire {name} v1.2.3\n",
            "app_test.go": f'package app\n\nimport (\n\t"testing"\n\n\t"{name}"\n)\n\n'
            'func TestWord(t *testing.T) {\n\tif greet.Word() != "hi" {\n\t\tt.Fail()\n\t}\n}\n',
        },
    )
    proxy = {"GOPROXY": server.folder.as_uri(), "GONOSUMDB": "*", "GOFLAGS": "-mod=mod"}
    as_user(user, repo, "go", "mod", "tidy", **proxy)
    cache = user / "go/pkg/mod/cache"
    return Project(
        "go",
        "go test ./...",
        ("go",),
        bait(
            cache / "vcs/1a2b/config",
            cache / "download/example.test/greet/@v/v1.2.3.origin",
            cache / "notes.txt",
            user / "go/.netrc",
            user / ".config/go/env.bak",
        ),
    )


def cargo(user: Path, repo: Path, server: Server) -> Project:
    """A crate of ours through a sparse index."""
    crate = _tar(
        "greet-1.2.3",
        {
            "Cargo.toml": '[package]\nname = "greet"\nversion = "1.2.3"\nedition = "2021"\n',
            "src/lib.rs": 'pub fn word() -> &\'static str { "hi" }\n',
        },
    )
    entry = {
        "name": "greet", "vers": "1.2.3", "deps": [], "features": {}, "yanked": False,
        "cksum": hashlib.sha256(crate).hexdigest(),
    }  # fmt: skip
    server.put("index/config.json", json.dumps({"dl": f"{server.url}/crates/{{crate}}.crate"}))
    server.put("index/gr/ee/greet", json.dumps(entry) + "\n")
    server.put("crates/greet.crate", crate)
    write(
        repo,
        {
            ".cargo/config.toml": f'[registries.own]\nindex = "sparse+{server.url}/index/"\n',
            "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n\n'
            '[dependencies]\ngreet = { version = "1", registry = "own" }\n',
            "src/lib.rs": '#[test]\nfn word() {\n    assert_eq!(greet::word(), "hi");\n}\n',
        },
    )
    as_user(user, repo, "cargo", "fetch", "--quiet")
    registry = user / ".cargo/registry"
    named = subprocess.run(
        ["rustc", "--print", "sysroot"], capture_output=True, text=True, check=True
    )
    shutil.rmtree(registry / "src")  # it is unpacked when it is first built
    (registry / "src").mkdir()
    index = next((registry / "index").iterdir())
    return Project(
        "cargo",
        "cargo test --quiet",
        ("cargo",),
        bait(
            user / ".cargo/credentials.toml",
            user / ".cargo/config.toml",
            user / ".cargo/git/db/x/config",
            index / ".git/config",
            index / "note.txt",
            registry / "token.txt",
        ),
        (Path(named.stdout.strip()),),
    )


def maven(user: Path, repo: Path, server: Server) -> Project:
    """Debian's own repository as what Maven has fetched, and a project with an artifact of it."""
    system = Path("/usr/share/maven-repo")
    if not (system / "org/apache/maven/plugins/maven-surefire-plugin").is_dir():
        missing("Debian's Maven plug-ins are not installed")
    cache = user / ".m2/repository"
    shutil.copytree(system, cache)
    version = next((system / "junit/junit").glob("4.[0-9]*")).name
    write(
        repo,
        {
            "pom.xml": _POM.format(junit=version, plugins=_plugins(system)),
            "src/test/java/AppTest.java": "import org.junit.Test;\n"
            "public class AppTest { @Test public void works() {} }\n",
        },
    )
    return Project(
        "maven",
        "mvn -q -B -o test",
        ("mvn", "java"),
        bait(
            user / ".m2/settings.xml",
            user / ".m2/settings-security.xml",
            cache / "settings.xml",
            cache / "junit/junit/resolver-status.properties",
        ),
    )


def _registry(repo: Path, server: Server) -> None:
    """Serve a package of ours, and write a project that needs it."""
    packed = _tar(
        "package",
        {
            "package.json": '{"name": "greet", "version": "1.2.3", "main": "index.js"}',
            "index.js": 'module.exports = () => "hi";\n',
        },
    )
    digest = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
    hashes = {"integrity": digest, "shasum": hashlib.sha1(packed).hexdigest()}
    dist = {"tarball": f"{server.url}/greet-1.2.3.tgz", **hashes}
    about = {"name": "greet", "version": "1.2.3", "dist": dist}
    server.put("greet-1.2.3.tgz", packed)
    document = {"name": "greet", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": about}}
    server.put("greet/index.html", json.dumps(document))
    write(
        repo,
        {
            "package.json": '{"name": "app", "version": "1.0.0", "dependencies": {"greet": "1"}}',
            "test.js": 'if (require("greet")() !== "hi") process.exit(1);\n',
        },
    )


def npm(user: Path, repo: Path, server: Server) -> Project:
    """A package of ours through a registry."""
    _registry(repo, server)
    at = f"--registry={server.url}/"
    as_user(user, repo, "npm", "install", "--no-audit", "--no-fund", at)
    shutil.rmtree(repo / "node_modules")
    cache = user / ".npm"
    return Project(
        "npm",
        "npm ci --no-audit --no-fund && node test.js",
        ("npm", "node"),
        bait(
            user / ".npmrc",
            cache / "_logs/debug.log",
            cache / "_cacache/index-v5/aa/bb/cc",
            cache / "_cacache/tmp/half",
            cache / "_update-notifier",
        ),
    )


def pnpm(user: Path, repo: Path, server: Server) -> Project:
    """The same by pnpm, of any version."""
    tools = _rare("pnpm")
    _registry(repo, server)
    as_user(user, repo, "pnpm", "install", f"--registry={server.url}/")
    shutil.rmtree(repo / "node_modules")
    store = next((user / ".local/share/pnpm/store").iterdir())
    return Project(
        "pnpm",
        "pnpm install --frozen-lockfile && node test.js",
        ("pnpm", "node"),
        bait(user / ".npmrc", user / ".config/pnpm/rc", store / "tmp/half", store / "note.txt"),
        tools,
    )


def yarn(user: Path, repo: Path, server: Server) -> Project:
    """The same by Yarn 1."""
    tools = _rare("yarn")
    _registry(repo, server)
    write(repo, {".yarnrc": f'registry "{server.url}/"\n'})
    cache = user / ".cache/yarn"
    # Root's cache would be elsewhere.
    as_user(user, repo, "yarn", "install", YARN_CACHE_FOLDER=str(cache))
    shutil.rmtree(repo / "node_modules")
    packages = next(cache.glob("v*"))
    return Project(
        "yarn",
        "yarn install --frozen-lockfile && node test.js",
        ("yarn", "node"),
        bait(user / ".yarnrc", user / ".npmrc", cache / "note.txt", packages / "note.txt"),
        tools,
    )


def berry(user: Path, repo: Path, server: Server) -> Project:
    """The same by Yarn 2 or newer, installed as `berry`."""
    tools = _rare("berry")
    _registry(repo, server)
    settings = f"npmRegistryServer: {server.url}\nunsafeHttpWhitelist: [127.0.0.1]\n"
    more = "nodeLinker: node-modules\nenableTelemetry: false\nenableGlobalCache: true\n"
    write(repo, {".yarnrc.yml": settings + more, "yarn.lock": ""})
    env = {"YARN_NPM_MINIMAL_AGE_GATE": "0", "YARN_ENABLE_IMMUTABLE_INSTALLS": "false"}
    as_user(user, repo, "berry", "install", **env)
    shutil.rmtree(repo / "node_modules")
    cache = user / ".yarn/berry"
    return Project(
        "yarn",
        "berry install --immutable && node test.js",
        ("berry", "node"),
        bait(user / ".yarnrc.yml", cache / "metadata/note.txt", cache / "cache/note.txt"),
        tools,
    )


def _rare(program: str) -> tuple[Path, ...]:
    """Return where a tool is that no machine of ours has to have; skip the test without."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed, and need not be")
    return (Path(found).parents[1],)


def uv(user: Path, repo: Path, server: Server) -> Project:
    """A wheel of ours through an index."""
    serve_index(server)
    write(
        repo,
        {
            "pyproject.toml": '[project]\nname = "app"\nversion = "1"\nrequires-python = ">=3.9"\n'
            'dependencies = ["greet"]\n\n[[tool.uv.index]]\nname = "own"\n'
            f'url = "{server.url}/simple"\ndefault = true\n',
        },
    )
    as_user(user, repo, "uv", "sync", "--no-install-project", "--no-python-downloads")
    shutil.rmtree(repo / ".venv")
    cache = user / ".cache/uv"
    return Project(
        "uv",
        "uv sync --no-install-project --no-python-downloads && "
        ".venv/bin/python -c 'import greet; assert greet.word() == \"hi\"'",
        ("uv", "python3"),
        bait(
            user / ".config/uv/uv.toml",
            cache / "git-v0/db/x/config",
            cache / "builds-v0/x/pip.conf",
            next(cache.glob("simple-v*")) / "note.txt",
        ),
    )


def serve_index(server: Server) -> None:
    """Serve a wheel of ours, and an index with it."""
    name = "greet-1.2.3-py3-none-any.whl"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("greet.py", 'def word():\n    return "hi"\n')
        at = "greet-1.2.3.dist-info"
        archive.writestr(f"{at}/METADATA", "Metadata-Version: 2.1\nName: greet\nVersion: 1.2.3\n")
        archive.writestr(
            f"{at}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(
            f"{at}/RECORD", f"greet.py,,\n{at}/METADATA,,\n{at}/WHEEL,,\n{at}/RECORD,,\n"
        )
    data = packed.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    server.put(f"files/{name}", data)
    link = f'<a href="{server.url}/files/{name}#sha256={digest}">{name}</a>'
    server.put("simple/greet/index.html", f"<!DOCTYPE html><html><body>{link}</body></html>")


def _tar(folder: str, files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(f"{folder}/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


def _plugins(system: Path) -> str:
    """The versions of the plug-ins that Debian has, as nothing else is there."""
    found = []
    for name in ("resources", "compiler", "surefire"):
        folder = system / f"org/apache/maven/plugins/maven-{name}-plugin"
        version = next(
            p.name for p in sorted(folder.iterdir()) if p.is_dir() and p.name[0].isdigit()
        )
        found.append(
            "<plugin><groupId>org.apache.maven.plugins</groupId>"
            f"<artifactId>maven-{name}-plugin</artifactId><version>{version}</version></plugin>"
        )
    return "".join(found)


_POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>test.example</groupId><artifactId>app</artifactId><version>1</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source>
    <maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies><dependency>
    <groupId>junit</groupId><artifactId>junit</artifactId><version>{junit}</version>
  </dependency></dependencies>
  <build><plugins>{plugins}</plugins></build>
</project>
"""
