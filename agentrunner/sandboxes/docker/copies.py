"""Throw-away layers in a container: overlays made by the engine, or else copies on the host.

Both live as long as one command.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.base import ErrorKind, Mount, SandboxError
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

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Copies:
        """Restore it from its fields, as read from JSON."""
        sources = tuple(map(Path, fields["sources"]))
        return cls(Path(fields["folder"]), sources, bool(fields["overlays"]))

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
