"""Which caches a box is shown, and what of them is refused or hidden."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentrunner.registry import ECOSYSTEMS
from agentrunner.sandboxes import find_caches as module
from agentrunner.sandboxes.base import Caches
from agentrunner.sandboxes.caches import CACHES
from agentrunner.sandboxes.deny import holds_secret
from agentrunner.sandboxes.find_caches import find_caches
from tests.kit.files import write

PAGE = Path(__file__).parents[3] / "docs/reference/caches.md"


class Machine:
    def __init__(self, root: Path) -> None:
        self.repo, self.user = root / "work/repo", root / "home/user"
        self.repo.mkdir(parents=True)
        self.user.mkdir(parents=True)

    def put(self, name: str, text: str = "x\n") -> Path:
        return write(self.user, {name: text}) / name

    def use(self, *names: str) -> None:
        write(self.repo, dict.fromkeys(names, ""))

    def caches(self, wanted: list[str] | None = None, /, **environ: str) -> Caches:
        return find_caches(self.repo, environ, self.user, wanted)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_uv_has_its_whole_cache_in_one_mount_as_it_moves_what_it_builds_within_it() -> None:
    (row,) = (row for row in CACHES if row.ecosystem == "uv")
    assert [(folder.name, folder.layer) for folder in row.folders] == [(".", True)]


def test_the_table_has_every_ecosystem_and_the_page_has_the_table() -> None:
    assert {row.ecosystem for row in CACHES} == set(ECOSYSTEMS)
    page = PAGE.read_text()
    for row in CACHES:
        line = next(
            line
            for line in page.splitlines()
            if line.startswith(f"| {row.ecosystem} |") and f"`{row.places[-1]}`" in line
        )
        words = [*row.places, *(folder.name for folder in row.folders), *row.without]
        words += [*row.env, *row.offline, row.locks, row.tried]
        assert [word for word in words if word not in line] == []
        assert not row.note or row.note in page


def test_only_what_the_repository_uses_is_shown(machine: Machine) -> None:
    machine.put("go/pkg/mod/a.test/b@v1.0.0/b.go")
    machine.put(".npm/_cacache/index-v5/a")
    assert machine.caches().ecosystems == ()
    machine.use("services/api/go.mod", "node_modules/x/package.json")
    assert machine.caches().ecosystems == ("go",)
    assert machine.caches(["npm"]).ecosystems == ("npm",)
    assert machine.caches(["npm", "go"]).ecosystems == ("go", "npm")
    allowed = find_caches(machine.repo, {}, machine.user, ["npm", "go"], allowed=["npm"])
    assert allowed.ecosystems == ("npm",)
    assert (machine.caches(["cargo"]).folders, machine.caches(["cargo"]).offline) == ((), {})


def test_variables_and_settings_move_a_cache(machine: Machine, tmp_path: Path) -> None:
    machine.use("go.mod")
    for name in ("a", "b/pkg/mod", "c", "home/user/go/pkg/mod"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)

    def place(**environ: str) -> Path:
        (cache,) = machine.caches(**environ).folders
        assert cache.place == "go/pkg/mod"
        return cache.source.relative_to(tmp_path)

    assert place() == Path("home/user/go/pkg/mod")
    assert place(GOPATH=f"{tmp_path}/b:/other") == Path("b/pkg/mod")
    assert place(GOPATH=f"{tmp_path}/b", GOMODCACHE=f"{tmp_path}/a") == Path("a")
    machine.put(".config/go/env", f"GOPROXY=off\nGOMODCACHE={tmp_path}/c\n")
    assert place() == Path("c")


def test_a_place_that_may_not_be_shown_is_a_notice(machine: Machine, tmp_path: Path) -> None:
    machine.use("go.mod", "own/mod/x")
    closed, root = tmp_path / "closed", tmp_path / "link"
    closed.mkdir(mode=0o000)
    root.symlink_to("/")
    refused = {
        str(root): "a folder of the system",
        str(machine.user): "a home",
        str(machine.user / ".ssh"): "credentials",
        str(machine.repo / "own/mod"): "in the repository",
        str(machine.repo.parent): "in the repository, or above it",
    }
    (machine.user / ".ssh").mkdir()
    if not os.geteuid():
        os.chown(closed, 65534, 65534)  # in a box root is not above the permissions of others
    refused[str(closed)] = "cannot be read"
    for place, why in refused.items():
        found = machine.caches(GOMODCACHE=place)
        assert (found.folders, why in found.notices[0]) == ((), True), found
    nowhere = machine.caches(GOMODCACHE=str(tmp_path / "nowhere"))
    assert (nowhere.folders, nowhere.notices) == ((), ())


def test_tools_are_told_their_place_where_nothing_is_shown(machine: Machine) -> None:
    machine.use("Gemfile")
    machine.put("gems/gems/a/a.rb")
    for caches in (machine.caches([]), machine.caches()):
        assert caches.env == {"GEM_HOME": "{home}/gems"}
    assert machine.caches([]).folders == ()
    assert machine.caches(GEM_HOME=str(machine.user / "x")).env == {"GEM_HOME": "{home}/gems"}


OWN_PLACES = {
    "npm": ("package.json", ".npmrc", "registry=x\ncache = .npm-cache\n", ["npm_config_cache"]),
    "yarn": ("yarn.lock", ".yarnrc", '# x\ncache-folder "./c"\n', ["YARN_CACHE_FOLDER"]),
    "berry": ("package.json", ".yarnrc.yml", "globalFolder: ./c\n", ["YARN_GLOBAL_FOLDER"]),
    "pnpm": (
        *("pnpm-lock.yaml", ".npmrc", "store-dir=.store\n"),
        ["npm_config_store_dir", "pnpm_config_store_dir"],
    ),
    "pnpm 10": (
        *("pnpm-lock.yaml", "pnpm-workspace.yaml", "packages: []\nstoreDir: .store\n"),
        ["npm_config_store_dir", "pnpm_config_store_dir"],
    ),
    "uv": ("uv.lock", "uv.toml", 'cache-dir = "./c"\n', ["UV_CACHE_DIR"]),
    "uv in a project": (
        *("uv.lock", "pyproject.toml", '[tool.uv]\nx = 1\ncache-dir = "./c"\n'),
        ["UV_CACHE_DIR"],
    ),
    "pip": ("setup.py", "pip.conf", "[global]\ncache-dir = c\n", ["PIP_CACHE_DIR"]),
    "nuget": (
        *("a.csproj", "NuGet.Config", '<add key="globalPackagesFolder" value="p" />\n'),
        ["NUGET_PACKAGES"],
    ),
}


@pytest.mark.parametrize("below", ["", "services/api/"])
@pytest.mark.parametrize("tool", OWN_PLACES)
def test_a_place_that_the_project_names_is_not_overruled(
    machine: Machine, tool: str, below: str
) -> None:
    manifest, settings, text, variables = OWN_PLACES[tool]
    write(machine.repo, {manifest: "", f"{below}{settings}": ""})
    if tool == "berry":
        write(machine.repo, {".yarnrc.yml": ""})
    before = machine.caches()
    assert set(variables) <= set(before.env)
    write(machine.repo, {f"{below}{settings}": text})
    after = machine.caches()
    assert set(before.env) - set(after.env) == set(variables)
    assert after.offline == before.offline
    assert settings.lower() in PAGE.read_text().lower()


def test_settings_of_another_tool_name_no_place(machine: Machine) -> None:
    write(machine.repo, {"pyproject.toml": '[tool.uv]\nx = 1\n[tool.ruff]\ncache-dir = "c"\n'})
    os.mkfifo(machine.repo / "uv.toml")
    assert "UV_CACHE_DIR" in machine.caches().env


def test_files_with_credentials_are_hidden_and_named(machine: Machine) -> None:
    machine.use("go.mod")
    mod = "go/pkg/mod"
    machine.put(f"{mod}/cache/vcs/a/config", "url = https://me:pass@host.test/x\n")
    machine.put(f"{mod}/cache/download/a/@v/v1.info", '{"URL": "https://me:pass@host.test/x"}')
    machine.put(f"{mod}/a.test/b@v1.0.0/README", "use postgres://user:pass@localhost/db\n")
    machine.put(f"{mod}/big", "token = abcdef\n" + " " * (70 << 10))
    found = machine.caches()
    assert found.folders[0].hidden == ("cache/vcs", "cache/download/a/@v/v1.info")
    assert found.notices[0].startswith("go: left out as they hold credentials: cache/download/a/")


def test_a_cache_that_is_full_of_them_is_not_shown(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.use("go.mod")
    for number in range(4):
        machine.put(f"go/pkg/mod/cache/{number}", "token = abcdef\n")
    monkeypatch.setattr(module, "MOST_HIDDEN", 3)
    found = machine.caches()
    assert (found.folders, found.notices[0]) == ((), found.notices[0])
    assert "4 of its files hold credentials" in found.notices[0]


@pytest.mark.parametrize(
    "text",
    [
        "https://user:pass@host.test/simple",
        "//registry.test/:_authToken=abc123",
        'token = "abcdef"',
        "password: hunter22",
        '{"key": "x", "headers": {"authorization": "Bearer abc"}}',
        "<password>hunter2</password>",
        "machine host.test login me password x",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
    ],
)
def test_what_looks_like_a_credential(text: str) -> None:
    assert holds_secret(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "https://host.test:8443/simple",
        "//registry.test/:_authToken=${NPM_TOKEN}",
        '{"name": "js-tokens", "features": {"token": ["full"], "secret": []}}',
        '{"key": "make-fetch-happen:request-cache:https://host.test/token", "size": 3}',
        "module example.test/token",
        "token = null",
        "git@host.test:me/repo.git",
    ],
)
def test_what_does_not(text: str) -> None:
    assert not holds_secret(text.encode())
