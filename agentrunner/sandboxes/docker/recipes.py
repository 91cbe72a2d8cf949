"""The images that AgentRunner builds itself: from the Dockerfiles in images/, and its own files."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from msgspec import Struct

from agentrunner import __version__
from agentrunner.errors.command_line import NotInstalled

OURS = "agentrunner/"
"""Names that no registry is asked for: anybody could have taken them there."""
HOST_IMAGE = "agentrunner/worker:hostusr"
"""An image without files of its own, for sandboxes that read this machine's /usr."""


class Recipe(Struct, frozen=True):
    """A Dockerfile of ours, and the image that it builds."""

    kind: str
    """A worker's kind, or `all-in-one`."""
    folder: str
    """Its folder below images/."""
    image: str
    """Name and tag; the tag is the version of its content."""

    def dockerfile(self) -> bytes:
        """Return the Dockerfile's content."""
        return (_folder() / self.folder / "Dockerfile").read_bytes()


SELF = Recipe("self", "self", f"agentrunner/self:{__version__}")
"""AgentRunner itself, for machines that cannot run it: no sandbox is ever made from it."""
ALL_IN_ONE = Recipe("all-in-one", "all-in-one", f"agentrunner/all-in-one:{__version__}")
RECIPES = {
    recipe.kind: recipe
    for recipe in (
        Recipe("codex-cli", "codex", "agentrunner/codex:0.169.0"),
        Recipe("claude-code", "claude-code", "agentrunner/claude-code:2.1.197"),
        Recipe("gemini-cli", "gemini", "agentrunner/gemini:0.61.0"),
        ALL_IN_ONE,
    )
}


def default_recipe(worker_kind: str) -> Recipe:
    """Return the recipe for a worker of this kind if its task names no image."""
    return RECIPES.get(worker_kind, ALL_IN_ONE)


def recipe_of(image: str) -> Recipe | None:
    """Return the recipe for a name of ours; None for somebody else's image."""
    return next((recipe for recipe in RECIPES.values() if recipe.image == image), None)


def _folder() -> Traversable:
    """The Dockerfiles are in the wheel; in a checkout they are at its root."""
    installed = resources.files("agentrunner") / "images"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "images"


DISTRIBUTION = "agentrunner-graph"


def own_files() -> Iterator[tuple[str, bytes]]:
    """Yield each file of the package with its place below `agentrunner/`; links are followed.

    An installation gives the same files as a checkout, whose links lead to its root.
    """
    package, images = Path(str(resources.files("agentrunner"))), Path(str(_folder()))
    yield from _below(package, "agentrunner")
    if not images.is_relative_to(package):
        yield from _below(images, "agentrunner/images")


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
        if path.name == "__pycache__" or path.name.endswith(".pyc"):
            continue
        if path.is_dir():
            yield from _below(path, f"{place}/{path.name}")
        elif path.is_file():
            yield f"{place}/{path.name}", path.read_bytes()
