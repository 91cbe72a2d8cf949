"""The image that a task asks for: found, or downloaded or built if allowed, and checked.

An image that is merely missing is not downloaded or built; that takes permission.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct

from agentrunner.environment import leads_through
from agentrunner.errors import SandboxUnavailable, UsageError
from agentrunner.errors.sandboxes import (
    BadImageHelper,
    BadImageName,
    ImageMissing,
    ImagePullFailed,
    WrongArchitecture,
    WrongDigest,
)
from agentrunner.sandboxes.base import SandboxOrder
from agentrunner.sandboxes.docker.builds import (
    ImageBuild,
    PullProgress,
    build,
    followed,
    import_host_image,
    order_recipe,
    order_repository,
)
from agentrunner.sandboxes.docker.engine import NOT_FOUND, Engine, EngineError
from agentrunner.sandboxes.docker.recipes import (
    HOST_IMAGE,
    OURS,
    RECIPES,
    default_recipe,
    recipe_of,
)
from agentrunner.sandboxes.docker.sources import pack, read_source
from agentrunner.text.lazy_regex import lazy_regex

OnProgress = Callable[[str], None]

_NAME = lazy_regex(r"[A-Za-z0-9](?:[A-Za-z0-9._:@-]|/(?!\.))*", re.ASCII)
"""Matches every image reference, and nothing that leads elsewhere in the engine's API."""
_NO_REFERENCE = 400
"""The engine's status for a name that it cannot parse."""
_BY_ID = lazy_regex(r"(sha256:)?[0-9a-f]{64}")
_RUNS = {"x86_64": ("amd64", "386"), "aarch64": ("arm64",)}
"""From a machine to the architectures of images that run on it."""


@dataclass(frozen=True)
class Image:
    """An image that is on the engine."""

    id: str
    """"sha256:…" of its configuration: exactly this image, even if its name is reused later."""
    name: str
    """The name that was asked for."""
    digest: str = ""
    """"sha256:…" in the registry it came from; "" for one that was built here."""
    source: str = ""
    """Why this image is used, for people."""

    def __str__(self) -> str:
        """Return its name and the exact image: "debian:13 (sha256:0b65b315c2c0)"."""
        exact = self.digest or self.id
        return self.name if exact in self.name else f"{self.name} ({exact[:19]})"


class WantedImage(Struct, frozen=True):
    """The name of a requested image, and how to get it."""

    name: str
    source: str
    order: ImageBuild | None = None
    """How it is built; None for one that is downloaded."""
    command: str = ""
    """The command by which a person gets it; "" is the engine's own pull."""


async def ensure_image(engine: Engine, spec: SandboxOrder) -> Image:
    """Return the image of this sandbox, ready to be started.

    With `spec.pull` "missing" an absent image is downloaded, or built if it comes from the
    repository or from a recipe of ours; with "always" this is done in any case. Raises UsageError
    for an invalid name or file, SandboxUnavailable (`image-missing`, `image-pull-failed`,
    `image-build-failed`, `image-digest`, `image-architecture`) and EngineError.
    """
    wanted = await asyncio.to_thread(wanted_image, spec)
    with contextlib.ExitStack() as stack:
        if wanted.order is not None:
            stack.enter_context(wanted.order.context)
        if spec.pull != "always":
            there = await find_image(engine, wanted.name, wanted.source)
            if there is not None:
                return there
        if spec.pull != "never":
            await asyncio.to_thread(check_helpers, spec.repo)
            await _obtain(engine, wanted, spec.on_progress or _quiet)
            there = await find_image(engine, wanted.name, wanted.source)
            if there is not None:
                return there
    raise _missing(engine, wanted)


def _quiet(line: str) -> None:
    pass


def wanted_image(spec: SandboxOrder) -> WantedImage:
    """Return the image that a sandbox asks for; may read the repository's files for that.

    Raises UsageError (`image-name`, `image-source`).
    """
    if spec.image:
        return _wanted_by_name(spec.image, "named by the task")
    if spec.image_from is not None:
        found = read_source(spec.image_from, spec.repo)
        shown = os.path.relpath(spec.repo / spec.image_from, spec.repo)
        if isinstance(found, str):
            return _wanted_by_name(found, f"named by {shown}")
        context, name = pack(found, spec.repo)
        command = f"agentrunner image build --from {shlex.quote(str(spec.image_from))}"
        order = order_repository(found, context, name)
        return WantedImage(name, f"made from {shown}", order, command)
    recipe = default_recipe(spec.worker_kind)
    return _wanted_by_name(recipe.image, f"the default for {spec.worker_kind or 'every worker'}")


def _wanted_by_name(name: str, source: str) -> WantedImage:
    if not _NAME.fullmatch(name):
        raise _bad_name(name)
    if recipe := recipe_of(name):
        # Nobody owns these names in a registry, so anybody could take them: never ask one.
        command = f"agentrunner image build {recipe.kind}"
        return WantedImage(name, source, order_recipe(recipe), command)
    if name == HOST_IMAGE:
        return WantedImage(name, source, command="agentrunner image build host")
    if name.startswith(OURS):  # an older version's image, or a typo
        return WantedImage(name, source, command="agentrunner image build")
    return WantedImage(name, source)


def _bad_name(name: str) -> UsageError:
    return BadImageName(
        f'"{name}" cannot be the name of an image.',
        path="runner.worker.docker_image",
    )


async def find_image(engine: Engine, name: str, source: str = "") -> Image | None:
    """Return the image of this name, if it is there and can run here; nothing is downloaded.

    Raises UsageError (`image-name`), SandboxUnavailable (`image-digest`, `image-architecture`) and
    EngineError.
    """
    try:
        facts = await engine.call(
            "look for the image",
            lambda api: api.inspect_image(name),
        )
    except EngineError as error:
        if error.status == NOT_FOUND:
            return None
        if error.status == _NO_REFERENCE:
            raise _bad_name(name) from error
        raise
    _check_architecture(name, facts, platform.machine())
    return Image(str(facts["Id"]), name, _digest(name, facts), source)


def _check_architecture(name: str, facts: Mapping[str, Any], machine: str) -> None:
    made_for = str(facts.get("Architecture") or "")
    system = str(facts.get("Os") or "linux")
    runs = _RUNS.get(machine, (made_for,))
    if system != "linux" or (made_for and made_for not in runs):
        raise WrongArchitecture(
            f"the image {name} is for {system}/{made_for}, this machine is linux/{runs[0]}",
            remedy=f"docker pull --platform linux/{runs[0]} {name}",
        )


def _digest(name: str, facts: Mapping[str, Any]) -> str:
    """Return its digest in the registry; if the name contains one, it must match."""
    known = [str(entry).rpartition("@") for entry in facts.get("RepoDigests") or ()]
    repository, _, asked = name.partition("@")
    if asked:
        if asked not in {str(facts["Id"]), *(digest for _, _, digest in known)}:
            raise WrongDigest(
                f"the engine has another image under the name {name}",
                remedy=f"docker image rm {name}, then docker pull {name}",
                details=(("it is", str(facts["Id"])),),
            )
        return asked
    named = [digest for place, _, digest in known if _same_repository(place, repository)]
    return next(iter(named or [digest for _, _, digest in known]), "")


def _same_repository(place: str, name: str) -> bool:
    head, slash, last = name.rpartition("/")
    return place == head + slash + last.partition(":")[0]


async def _obtain(engine: Engine, wanted: WantedImage, on_progress: OnProgress) -> None:
    if wanted.order is not None:
        await build(engine, wanted.order, on_progress)
    elif wanted.name == HOST_IMAGE:
        await import_host_image(engine)
    elif not _BY_ID.fullmatch(wanted.name) and not wanted.name.startswith(OURS):
        await _pull(engine, wanted, on_progress)


async def _pull(engine: Engine, wanted: WantedImage, on_progress: OnProgress) -> None:
    """Download it from its registry; raises SandboxUnavailable (`image-pull-failed`)."""
    from docker.utils import parse_repository_tag

    repository, tag = parse_repository_tag(wanted.name)
    progress = PullProgress(wanted.name, on_progress)
    words = await followed(
        engine,
        "fetch the image",
        lambda api: api.pull(repository, tag=tag or "latest", stream=True, decode=True),
        progress,
    )
    if words:
        raise ImagePullFailed(
            f"the image {wanted.name} could not be fetched: {words}",
            remedy=_pull_command(engine, wanted.name),
        )


def _missing(engine: Engine, wanted: WantedImage) -> SandboxUnavailable:
    message = f"the image {wanted.name} ({wanted.source}) is not on the engine"
    if wanted.order is not None and wanted.order.foreign:
        message += "; building it runs the repository's own commands in a container"
    return ImageMissing(
        message,
        remedy=wanted.command or _pull_command(engine, wanted.name),
        details=(("or", "runner.sandbox.pull: missing"),) if _obtainable(wanted) else (),
    )


def _obtainable(wanted: WantedImage) -> bool:
    """Whether `pull: missing` would get it."""
    return wanted.name == HOST_IMAGE or wanted.order is not None or not wanted.command


def _pull_command(engine: Engine, name: str) -> str:
    return f"{engine.traits.product.lower()} pull {name}"


def check_helpers(repo: Path) -> None:
    """Refuse to continue if PATH leads to a helper for a registry's credentials in the repository.

    Raises SandboxUnavailable (`image-helper`). docker-py looks the programs up itself, so it cannot
    be given another one.
    """
    from docker import auth

    config = auth.load_config()
    for name in {config.creds_store, *(config.cred_helpers or {}).values()} - {None, ""}:
        found = shutil.which(f"docker-credential-{name}")
        if found is None:
            continue
        place = Path(found)
        if not place.is_absolute() or leads_through(place, repo):
            raise BadImageHelper(
                f"PATH leads to {found} in the repository, which would be given the registry's"
                " credentials",
                remedy="take the repository and relative folders out of PATH",
            )


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
