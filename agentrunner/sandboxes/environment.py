"""The environment of a command: built from nothing, never inherited."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

PLAIN = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
"""Those of the variables that programs find everywhere."""


def base_environment(
    path: Sequence[Path], *, home: Path, repo: Path, pycache: Path
) -> dict[str, str]:
    """Return the variables that every command gets.

    Byte code is kept in `pycache`: so tests leave nothing in the repository, and a forged
    `__pycache__` in it is never read.
    """
    return {
        "PATH": ":".join(map(str, path)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "TMPDIR": "/tmp",
        "PYTHONPYCACHEPREFIX": str(pycache),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(repo),
    }


def proxy_environment(port: int) -> dict[str, str]:
    """Return the variables that send programs to a CONNECT proxy on the sandbox's 127.0.0.1:`port`.

    Each is given in both cases: curl reads only the lower-case `http_proxy`, others only capitals.
    Node, Yarn, Gradle and Maven need variables of their own. Other Java programs are left out: the
    variable that they all read (JAVA_TOOL_OPTIONS) makes each of them print a line.
    """
    url = f"http://127.0.0.1:{port}"
    local = "localhost,127.0.0.1,::1"
    usual = {"HTTPS_PROXY": url, "HTTP_PROXY": url, "ALL_PROXY": url, "NO_PROXY": local}
    java = [f"-D{wire}.proxy{what}" for wire in ("http", "https") for what in ("Host", "Port")]
    places = ("127.0.0.1", port, "127.0.0.1", port)
    options = " ".join(f"{name}={value}" for name, value in zip(java, places, strict=True))
    return {
        **usual,
        **{name.lower(): value for name, value in usual.items()},
        "NODE_USE_ENV_PROXY": "1",
        # npm packages that download binaries read these instead of the usual ones.
        "npm_config_proxy": url,
        "npm_config_https_proxy": url,
        "YARN_HTTP_PROXY": url,
        "YARN_HTTPS_PROXY": url,
        "GRADLE_OPTS": options,
        "MAVEN_OPTS": options,
    }
