"""The images that AgentRunner builds itself, from the Dockerfiles in images/."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from agentrunner import __version__

OURS = "agentrunner/"
"""Names that no registry is asked for: anybody could have taken them there."""
HOST_IMAGE = "agentrunner/worker:hostusr"
"""An image without files of its own, for sandboxes that read this machine's /usr."""


@dataclass(frozen=True)
class Recipe:
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
