"""Building images on the engine: from our Dockerfiles, from a repository's, and from nothing."""

from __future__ import annotations

import io
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from agentrunner.errors.sandboxes import ImageBuildFailed
from agentrunner.sandboxes.docker.engine import Engine, EngineError
from agentrunner.sandboxes.docker.recipes import (
    HOST_IMAGE,
    SELF,
    Recipe,
    own_files,
    own_requirements,
)
from agentrunner.sandboxes.docker.sources import OWN_DOCKERFILE, Build, add_bytes

_KEPT_LINES = 20
_DONE = ("Pull complete", "Already exists")


class PullProgress:
    """The layers of an image being downloaded; a line for every tenth of it."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's message, if it failed."""
        self._name = name
        self._tell = tell
        self._layers: dict[str, bool] = {}
        self._bytes: dict[str, tuple[int, int]] = {}
        self._shown = ""

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Process an entry, and report the progress if it changed."""
        if error := entry.get("error"):
            self.error = str(error)
            return
        layer, status = str(entry.get("id") or ""), str(entry.get("status") or "")
        if not layer or status.startswith("Pulling from"):
            return
        self._layers[layer] = status in _DONE
        detail = entry.get("progressDetail") or {}
        if status == "Downloading" and detail.get("total"):
            self._bytes[layer] = (int(detail.get("current") or 0), int(detail["total"]))
        elif self._layers[layer] and layer in self._bytes:
            self._bytes[layer] = (self._bytes[layer][1],) * 2
        self._report()

    def _report(self) -> None:
        done, got = sum(self._layers.values()), sum(now for now, _ in self._bytes.values())
        total = sum(size for _, size in self._bytes.values())
        tenth = 10 * got // total if total else 0
        line = f"{self._name}: {done} of {len(self._layers)} layers"
        if total:
            line += f", {tenth * 10} % of {total / 1e6:.0f} MB"
        if line != self._shown:
            self._shown = line
            self._tell(line)


class BuildProgress:
    """The lines of a build, and its outcome."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.error = ""
        """The engine's message, if it failed."""
        self.last: deque[str] = deque(maxlen=_KEPT_LINES)
        """The end of what it printed."""
        self._tell = tell
        self._partial_line = ""
        self._base: PullProgress | None = None

    def feed(self, entry: Mapping[str, Any]) -> None:
        """Process an entry, and report the lines that it completes."""
        if error := entry.get("error"):
            self.error = str(error)
        elif "stream" in entry:
            *lines, self._partial_line = (self._partial_line + str(entry["stream"])).split("\n")
            for line in lines:
                self._line(line)
        elif "status" in entry:
            self._base = self._base or PullProgress("its base", self._tell)
            self._base.feed(entry)

    def _line(self, line: str) -> None:
        if line := line.rstrip():
            self.last.append(line)
            self._tell(line)


OnProgress = Callable[[str], None]


class ImageBuild(Struct, frozen=True):
    """A build, ready to be sent. The code that ordered it closes its context."""

    name: str
    """The image's name."""
    context: BinaryIO
    """A tar file, read from its beginning."""
    args: Mapping[str, str] = field(default_factory=dict)
    target: str = ""
    foreign: bool = False
    """Whether it runs commands of the repository."""


def order_recipe(
    recipe: Recipe, name: str = "", args: Mapping[str, str] | None = None
) -> ImageBuild:
    """Return the build of one of our own images, under its usual name if no other is given."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        add_bytes(archive, OWN_DOCKERFILE, recipe.dockerfile())
    context.seek(0)
    return ImageBuild(name or recipe.image, context, args or {})


def order_self(name: str = "", args: Mapping[str, str] | None = None) -> ImageBuild:
    """Return the build of an image with this AgentRunner: its files as installed here."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as archive:
        add_bytes(archive, OWN_DOCKERFILE, SELF.dockerfile())
        add_bytes(
            archive, "requirements.txt", "".join(f"{one}\n" for one in own_requirements()).encode()
        )
        for place, data in own_files():
            add_bytes(archive, place, data)
    context.seek(0)
    return ImageBuild(name or SELF.image, context, args or {})


def order_repository(found: Build, context: BinaryIO, name: str) -> ImageBuild:
    """Return the build that a repository describes, with a context made by `sources.pack`."""
    return ImageBuild(name, context, found.args, found.target, foreign=True)


async def build(engine: Engine, order: ImageBuild, on_progress: OnProgress) -> None:
    """Build the image, and pass each line that the build prints to `on_progress`.

    Its commands run in containers of the engine, with the engine's default network for containers,
    or with this machine's if it has none. Raises SandboxUnavailable (`image-build-failed`) and
    EngineError.
    """
    progress = BuildProgress(on_progress)
    words = await followed(
        engine,
        "build the image",
        lambda api: api.build(
            fileobj=order.context,
            custom_context=True,
            dockerfile=OWN_DOCKERFILE,
            tag=order.name,
            buildargs=dict(order.args),
            target=order.target or None,
            network_mode=None if engine.traits.bridge else "host",
            rm=True,
            forcerm=True,
            decode=True,
        ),
        progress,
    )
    if words:
        raise ImageBuildFailed(
            f"the image {order.name} could not be built: {words}",
            details=tuple(("printed", line) for line in list(progress.last)[-5:]),
        )


async def import_host_image(engine: Engine, name: str = HOST_IMAGE) -> None:
    """Make an image without programs, for sandboxes that read this machine's /usr.

    It needs no registry and no network: `runner.sandbox.read_paths: [/usr]` provides the programs.
    Raises EngineError.
    """
    data = host_image()
    repository, _, tag = name.partition(":")
    changes = ["ENV LANG=C.UTF-8", 'CMD ["sleep","infinity"]']
    await engine.call(
        "import the image",
        lambda api: api.import_image_from_data(data, repository, tag or "latest", changes),
    )


_FOLDERS = ("dev", "etc", "proc", "root", "run/agentrunner", "sys", "usr")
_SCRATCH = ("home/agent", "tmp", "var/tmp")
"""What is mounted on these takes their mode."""
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "nsswitch.conf", "ssl/certs")
"""Entries of /etc by which programs of /usr find each other, and certificates of authorities."""
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n"
_GROUP = b"root:x:0:\nagent:x:1000:\n"


def host_image() -> bytes:
    """Return the tar file of an image that fits this machine's /usr."""
    data, root = io.BytesIO(), Path("/")
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name in (*_FOLDERS, *_SCRATCH):
            entry = tarfile.TarInfo(name)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name in _SCRATCH else 0o755
            archive.addfile(entry)
        for name in ("bin", "sbin", "lib", "lib32", "lib64"):
            if (root / name).is_symlink():
                archive.add(root / name, name)
        add_bytes(archive, "etc/passwd", _PASSWD)
        add_bytes(archive, "etc/group", _GROUP)
        for name in _ETC:
            if (root / "etc" / name).exists():
                archive.add(root / "etc" / name, f"etc/{name}")
    return data.getvalue()


async def followed(
    engine: Engine,
    op: str,
    start: Callable[[Any], Iterable[dict[str, object]]],
    progress: PullProgress | BuildProgress,
) -> str:
    """Run a long call with progress; return the engine's error message, "" if it succeeded.

    Raises EngineError if the engine does not answer.
    """
    try:
        await engine.follow(op, start, progress.feed)
    except EngineError as error:
        if error.status is None:
            raise
        return error.cause
    return progress.error
