"""What `doctor` reports about an engine."""

from __future__ import annotations

from pathlib import Path

from agentrunner.sandboxes.docker.engine import Engine
from agentrunner.sandboxes.docker.recipes import HOST_IMAGE, OURS, RECIPES, default_recipe


async def describe_engine(engine: Engine) -> str:
    """Return "Docker 28.2.2; API 1.50, cgroup v2, …; unix:///…". Raises EngineError."""
    info = await engine.call("ask what it is", lambda api: api.info())
    traits = engine.traits
    parts = [
        f"API {traits.api[0]}.{traits.api[1]}",
        f"cgroup v{traits.cgroup}",
        str(info.get("Driver") or "no storage driver"),
        "rootless" if traits.rootless else "",
        "" if traits.bridge else "no network of its own",
        f"cannot limit {', '.join(sorted(traits.lacks))}" if traits.lacks else "",
    ]
    description = ", ".join(filter(None, parts))
    return f"{traits.product} {traits.version}; {description}; {engine.host}"


async def our_images(engine: Engine) -> list[str]:
    """Return the names of our images on the engine, from recipes and repositories; EngineError."""
    images = await engine.call("list the images", lambda api: api.images())
    names = {str(tag) for image in images for tag in image.get("RepoTags") or ()}
    # Podman puts the place where it was built before a name without a registry.
    short = {name.removeprefix("localhost/").removeprefix("docker.io/") for name in names}
    return sorted(name for name in short if name.startswith(OURS))


def image_to_try(there: list[str], worker_kind: str) -> tuple[str, tuple[Path, ...]]:
    """Return the image for showing what a sandbox isolates, and the host paths that it must read.

    That is this worker's image, or else any of ours; the worker's, too, if there is none.
    """
    wanted = default_recipe(worker_kind).image
    for name in (wanted, *(recipe.image for recipe in RECIPES.values())):
        if name in there:
            return name, ()
    return (HOST_IMAGE, (Path("/usr"),)) if HOST_IMAGE in there else (wanted, ())
