"""Throw-away layers in a container: overlays made by the engine, or else copies on the host.

Both live as long as one command.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from agentrunner.sandboxes.base import ErrorKind, Mount, SandboxError
from agentrunner.sandboxes.docker.config import bind
from agentrunner.sandboxes.docker.engine import Engine, EngineError, remove_container
from agentrunner.sandboxes.docker.owners import owner_labels
from agentrunner.sandboxes.layers import LAYERS, make_layers, make_uppers, remove_layers


@dataclass(frozen=True)
class Copies:
    """What one command has as overlays or copies, and the command's folder for them."""

    folder: Path = Path()
    sources: tuple[Path, ...] = ()
    overlays: bool = False
    """Whether the engine makes overlays; otherwise the sources are copied."""

    @classmethod
    def of(cls, mounts: Sequence[Mount], run: Path, *, overlays: bool = False) -> Copies:
        """Return the layers that these mounts need; `run` is the folder of the run."""
        sources = tuple(dict.fromkeys(mount.source.resolve() for mount in mounts if mount.layer))
        if not sources:
            return cls()
        return cls(run / LAYERS / secrets.token_hex(8), sources, overlays)

    def laid(self, mounts: Sequence[Mount]) -> tuple[Mount, ...]:
        """Return the same mounts with the layers in place of their sources."""
        return tuple(self._laid(mount) if mount.layer else mount for mount in mounts)

    @asynccontextmanager
    async def made(self) -> AsyncIterator[None]:
        """Make the layers, and remove them afterwards; raises SandboxError(INFRA) if that fails."""
        if not self.sources:
            yield
            return
        folder = str(self.folder)
        making = asyncio.ensure_future(
            asyncio.to_thread(
                make_uppers if self.overlays else make_layers,
                folder,
                list(map(str, self.sources)),
            )
        )
        keeper = -1
        try:
            try:
                keeper = await asyncio.shield(making)
            except OSError as error:
                raise SandboxError(ErrorKind.INFRA, "run", str(error)) from error
            except asyncio.CancelledError:
                keeper = await making
                raise
            yield
        finally:
            if keeper >= 0:
                await asyncio.shield(asyncio.to_thread(remove_layers, folder))
                os.close(keeper)

    def _laid(self, mount: Mount) -> Mount:
        number = self.sources.index(mount.source.resolve())
        place = self.folder / str(number)
        if self.overlays:
            return replace(mount, read_only=False, upper=place)
        return replace(mount, source=place, read_only=False, layer=False)


async def can_overlay(engine: Engine, image: str, run: Path, sources: Sequence[Path]) -> bool:
    """Whether overlays work, tried with a container of this image that has one.

    `run` is the folder of the run, `sources` are the folders to put overlays over. An engine in a
    virtual machine, or one without the right to mount, fails at the start.
    """
    if not all(path.is_dir() and _is_plain(path) for path in (run, *sources)):
        return False
    with tempfile.TemporaryDirectory(dir=run, prefix="overlay-") as place:
        lower = Path(place).resolve() / "lower"
        lower.mkdir()
        layers = Copies(Path(place, "layer"), (lower,), overlays=True)
        (mount,) = layers.laid([Mount(lower, Path("/overlay"), layer=True)])
        try:
            async with layers.made():
                return await _starts(engine, image, mount)
        except SandboxError:
            return False


def _is_plain(path: Path) -> bool:
    """Whether a path can be written in the options of an overlay."""
    return not set(":,\\\"'\n").intersection(str(path))


async def _starts(engine: Engine, image: str, mount: Mount) -> bool:
    body = {
        "Image": image,
        # The image may have no program at all: it is enough that the engine's own one starts.
        "Entrypoint": ["true"],
        "Labels": await asyncio.to_thread(owner_labels),
        "HostConfig": {
            "Init": True,
            "NetworkMode": "none",
            "Mounts": [bind(mount, apart=False)],
        },
    }
    ident = ""
    try:
        answer = await engine.call("create", lambda api: api.create_container_from_config(body))
        ident = answer["Id"]
        await engine.call("start", lambda api: api.start(ident))
        return True
    except EngineError:
        return False
    finally:
        if ident:
            with contextlib.suppress(EngineError):
                await remove_container(engine, ident)
