"""The files of this installation, for an image that contains AgentRunner."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path

from agentrunner.errors.command_line import NotInstalled

DISTRIBUTION = "agentrunner-graph"
_LEFT_OUT = frozenset({"__pycache__"})
_BESIDE = ("images",)
"""In a checkout they are at its root, in a wheel inside the package."""


def own_files() -> Iterator[tuple[str, bytes]]:
    """Yield each file of the package with its place below `agentrunner/`; links are followed.

    An installation gives the same files as a checkout, whose links lead to its root.
    """
    package = Path(str(resources.files("agentrunner")))
    yield from _below(package, "agentrunner")
    for name in _BESIDE:
        beside = package.parent / name
        if not (package / name).exists() and beside.is_dir():
            yield from _below(beside, f"agentrunner/{name}")


def own_requirements() -> list[str]:
    """Return this version's requirements, as pip reads them; without those of the extras.

    Raises UsageError if the installation does not list them.
    """
    try:
        requirements = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError as error:
        raise NotInstalled(
            f"{DISTRIBUTION} is not installed here as a package, so that its needs are not known.",
            remedy="run scripts/setup.sh runtime, or pip install . in AgentRunner's folder",
        ) from error
    return [one for one in requirements if "extra ==" not in one]


def _below(folder: Path, place: str) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.iterdir()):
        if path.name in _LEFT_OUT or path.name.endswith(".pyc"):
            continue
        if path.is_dir():
            yield from _below(path, f"{place}/{path.name}")
        elif path.is_file():
            yield f"{place}/{path.name}", path.read_bytes()
