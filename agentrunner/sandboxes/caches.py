"""Package caches, as data: which of the user's folders a sandbox shows, and what tools need there.

Each row is one location of one ecosystem. Only exact subfolders of downloaded packages are listed:
never a tool's home, a configuration, a log or a clone of a git repository. The table of the
reference (docs/reference/caches.md) is generated from these rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from msgspec import Struct

from agentrunner.registry import GRADLE_FILES


class Folder(Struct, frozen=True):
    """A folder of a cache that is shown in the sandbox."""

    name: str
    """Path below the cache's location; `*` matches what is there; "." means all of it."""
    layer: bool = False
    """Whether the tool must be able to write there, even if everything is downloaded."""


@dataclass(frozen=True)
class CacheRow:
    """One location of one ecosystem."""

    ecosystem: str
    used_by: tuple[str, ...]
    """Names of files which show that a repository uses it; `*` matches any text."""
    places: tuple[str, ...]
    """Where it is, `$NAME` for a variable, `~` for the home; the first whose variable is set."""
    below_home: str
    """Where it is in the sandbox, below its home."""
    folders: tuple[Folder, ...]
    without: tuple[str, ...] = ()
    """Patterns of paths below the location that are never shown."""
    published: tuple[str, ...] = ()
    """Below the location: packed or unpacked packages as published. They are not searched for
    credentials: a README that shows an example would go missing from its package."""
    programs: tuple[str, ...] = ()
    """Folders of programs below the location."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the tool in the sandbox; `{home}` stands for the sandbox's home."""
    offline: Mapping[str, str] = field(default_factory=dict)
    """Variables for the tool where no network can be reached."""
    moved_in: tuple[tuple[str, str], ...] = ()
    """Files of the user's that may name another location, each with the pattern of that line."""
    named_in: tuple[tuple[str, str], ...] = ()
    """Files of the repository that may name a cache of its own, each with the pattern of that
    setting. Variables would overrule it, so those of `env` that name a place are then not set."""
    unless: tuple[str, ...] = ()
    """Files in the repository's root with which another row applies instead."""
    locks: str = "none"
    """What the tool locks while it works, for people."""
    note: str = ""
    """What does not work with it, for people."""
    tried: str = "not tried"
    """The versions with which it was tried offline in a sandbox."""


PYTHON = ("pyproject.toml", "requirements*.txt", "setup.py", "setup.cfg", "uv.lock", "tox.ini")
GEMS = ("Gemfile", "*.gemspec")
GEM_HOME = {"GEM_HOME": "{home}/gems"}
"""Where Ruby installs gems: its own place is the system's, which no sandbox can write to. It finds
those of the other places as well."""

_GEM = CacheRow(
    "gem",
    used_by=GEMS,
    places=("~/.local/share/gem",),
    below_home=".local/share/gem",
    folders=(Folder("ruby"),),
    without=("ruby/*/bundler", "ruby/*/cache/bundler"),
    published=("ruby/*/gems/*", "ruby/*/cache/*.gem", "ruby/*/doc", "ruby/*/extensions"),
    programs=("ruby/*/bin",),
    env=GEM_HOME,
    tried="Ruby 3.1.2, Bundler 2.3.15",
)
CACHES: tuple[CacheRow, ...] = (
    CacheRow(
        "go",
        used_by=("go.mod", "go.work"),
        places=("$GOMODCACHE", "$GOPATH/pkg/mod", "~/go/pkg/mod"),
        moved_in=(("~/.config/go/env", r"GOMODCACHE=(/.+)"),),
        below_home="go/pkg/mod",
        folders=(Folder("."),),
        without=("cache/vcs", "cache/lock"),
        published=("*@v[0-9]*", "cache/download/*.zip"),
        env={"GOMODCACHE": "{home}/go/pkg/mod"},
        locks="cache/lock and one per download, only to download",
        tried="Go 1.19.8",
    ),
    CacheRow(
        "cargo",
        used_by=("Cargo.toml",),
        places=("$CARGO_HOME/registry", "~/.cargo/registry"),
        below_home=".cargo/registry",
        folders=(Folder("index"), Folder("cache"), Folder("src", layer=True)),
        without=("index/*/.git",),
        published=("src/*/*", "cache/*/*.crate"),
        env={"CARGO_HOME": "{home}/.cargo"},
        offline={"CARGO_NET_OFFLINE": "true"},
        locks=".package-cache in the tool's home, which is the sandbox's own",
        note="packages from git repositories need task.setup; an index of the git protocol too",
        tried="cargo 1.95.0",
    ),
    CacheRow(
        "maven",
        used_by=("pom.xml", ".mvn"),
        places=("~/.m2/repository",),
        moved_in=(("~/.m2/settings.xml", r"<localRepository>\s*(/[^<]+?)\s*</"),),
        below_home=".m2/repository",
        folders=(Folder(".", layer=True),),
        published=("*.jar", "*.pom", "*.war", "*.aar", "*.zip", "*.sha1", "*.md5"),
        # Java takes the home from the system's list of users, not from HOME.
        env={"MAVEN_OPTS": "-Duser.home={home}"},
        offline={"MAVEN_ARGS": "--offline"},
        locks="none by default",
        tried="Maven 3.8.7",
    ),
    CacheRow(
        "gradle",
        used_by=GRADLE_FILES,
        places=("$GRADLE_USER_HOME", "~/.gradle"),
        below_home=".gradle",
        folders=(Folder("caches/modules-*", layer=True), Folder("wrapper/dists", layer=True)),
        published=("caches/modules-*/files-*", "wrapper/dists/*/*/*"),
        env={"GRADLE_USER_HOME": "{home}/.gradle"},
        locks="modules-*.lock in caches/modules-*, and one per distribution",
        note="before version 6.1 it looks for what is in the cache where it was filled, and finds"
        " nothing in a sandbox (4.4.1: refused with a sentence); a repository of files works"
        " (4.4.1); versions that may change want --offline in the command",
    ),
    CacheRow(
        "uv",
        used_by=PYTHON,
        places=("$UV_CACHE_DIR", "$XDG_CACHE_HOME/uv", "~/.cache/uv"),
        below_home=".cache/uv",
        # It moves what it builds of the repository from one of its folders to another, which works
        # within one mount alone.
        folders=(Folder(".", layer=True),),
        without=("git-v*/*/*",),
        published=("archive-v*/*", "*.whl"),
        env={"UV_CACHE_DIR": "{home}/.cache/uv", "UV_LINK_MODE": "copy"},
        named_in=(
            ("uv.toml", r"(?m)^[^\S\n]*cache-dir\s*="),
            ("pyproject.toml", r"(?ms)^\[tool\.uv\]\s*$(?:(?!^\[).)*?^\s*cache-dir\s*="),
        ),
        offline={"UV_OFFLINE": "1"},
        locks="one per package, in the cache",
        tried="uv 0.13.9",
    ),
    CacheRow(
        "pip",
        used_by=PYTHON,
        places=("$PIP_CACHE_DIR", "$XDG_CACHE_HOME/pip", "~/.cache/pip"),
        moved_in=(("~/.config/pip/pip.conf", r"cache-dir\s*=\s*(/.+)"),),
        below_home=".cache/pip",
        folders=(Folder("http*", layer=True), Folder("wheels", layer=True)),
        published=("*.whl", "http*/*.body"),
        env={"PIP_CACHE_DIR": "{home}/.cache/pip"},
        named_in=(("pip.conf", r"(?m)^[^\S\n]*cache-dir\s*="),),
        note="what a requirement names by its address comes from the cache; for other names pip"
        " asks its index even so, and installs nothing without one; wheels in a folder that"
        " --find-links names are found",
        tried="pip 23.2.1",
    ),
    CacheRow(
        "npm",
        used_by=("package.json", "package-lock.json"),
        places=("$npm_config_cache", "$NPM_CONFIG_CACHE", "~/.npm"),
        moved_in=(("~/.npmrc", r"cache\s*=\s*(/.+)"),),
        below_home=".npm",
        folders=(Folder("_cacache", layer=True),),
        without=("_cacache/tmp",),
        published=("_cacache/content-v*",),
        env={"npm_config_cache": "{home}/.npm"},
        named_in=((".npmrc", r"(?m)^[^\S\n]*cache\s*=\s*\S"),),
        offline={"npm_config_offline": "true"},
        tried="npm 11.19.1",
    ),
    CacheRow(
        "yarn",
        used_by=("yarn.lock",),
        unless=(".yarnrc.yml",),
        places=("$YARN_CACHE_FOLDER", "~/.cache/yarn"),
        moved_in=(("~/.yarnrc", r'cache-folder\s+"?(/[^"]+)'),),
        below_home=".cache/yarn",
        folders=(Folder("v*", layer=True),),
        published=("v*/*/node_modules/*",),
        env={"YARN_CACHE_FOLDER": "{home}/.cache/yarn"},
        named_in=((".yarnrc", r"(?m)^[^\S\n]*(?:--[\w.*]*)?cache-folder\s+\S"),),
        note="of version 1",
        tried="Yarn 1.22.22",
    ),
    CacheRow(
        "yarn",
        used_by=(".yarnrc.yml",),
        places=("$YARN_GLOBAL_FOLDER", "~/.yarn/berry"),
        below_home=".yarn/berry",
        folders=(Folder("cache", layer=True),),
        published=("cache/*.zip",),
        env={"YARN_GLOBAL_FOLDER": "{home}/.yarn/berry"},
        named_in=((".yarnrc.yml", r"(?m)^globalFolder\s*:"),),
        offline={"YARN_ENABLE_NETWORK": "false"},
        note="of version 2 and newer",
        tried="Yarn 4.18.1",
    ),
    CacheRow(
        "pnpm",
        used_by=("pnpm-lock.yaml", "pnpm-workspace.yaml"),
        places=(
            *("$pnpm_config_store_dir", "$npm_config_store_dir"),
            *("$XDG_DATA_HOME/pnpm/store", "~/.local/share/pnpm/store"),
        ),
        below_home=".local/share/pnpm/store",
        folders=(Folder("v*", layer=True),),
        without=("v*/tmp",),
        published=("v*/files/??/*[0-9a-f]", "v*/files/??/*-exec"),
        # From version 11 on it reads only names of its own. It also asks the registry how old each
        # package of the lock file is; what is in the store was let in by that already.
        env={
            "npm_config_store_dir": "{home}/.local/share/pnpm/store",
            "pnpm_config_store_dir": "{home}/.local/share/pnpm/store",
        },
        named_in=(
            (".npmrc", r"(?m)^[^\S\n]*store-dir\s*=\s*\S"),
            ("pnpm-workspace.yaml", r"(?m)^storeDir\s*:"),
        ),
        offline={
            "npm_config_offline": "true",
            "pnpm_config_offline": "true",
            "pnpm_config_trust_lockfile": "true",
        },
        tried="pnpm 10.34.9, 11.28.11",
    ),
    CacheRow(
        "nuget",
        used_by=("*.csproj", "*.fsproj", "*.vbproj", "*.sln", "packages.config"),
        places=("$NUGET_PACKAGES", "~/.nuget/packages"),
        below_home=".nuget/packages",
        folders=(Folder(".", layer=True),),
        published=("*/*/lib", "*/*/ref", "*/*/runtimes", "*/*/build*", "*.nupkg", "*.nuspec"),
        env={"NUGET_PACKAGES": "{home}/.nuget/packages"},
        named_in=(("[Nn]u[Gg]et.[Cc]onfig", r"<add\s+key=\"globalPackagesFolder\""),),
        locks="in the temporary folder",
    ),
    _GEM,
    replace(_GEM, places=("~/.gem",), below_home=".gem"),
    CacheRow(
        "gem",
        used_by=GEMS,
        places=("$GEM_HOME", "~/gems"),
        below_home="gems",
        folders=tuple(
            Folder(name, layer=True)
            for name in ("bin", "extensions", "gems", "plugins", "specifications")
        ),
        published=("gems/*", "extensions/*"),
        programs=("bin",),
        env=GEM_HOME,
        tried="Ruby 3.1.2, Bundler 2.3.15",
    ),
)
