"""The order for the helper beside a worker: in its environment, because it may hold secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentrunner.sandboxes.base import Door
from agentrunner.sandboxes.docker.config import User
from agentrunner.sandboxes.docker.copies import Copies
from agentrunner.sandboxes.docker.exec import ExecCommand

PASSED_ON = ("LD_LIBRARY_PATH",)
"""All that the helper gets of our environment: what its Python needs to start."""
PREFIX = "AGENTRUNNER_ATTACH_"
PIECE = 100_000
"""Characters per variable: the kernel takes no string above 128 KiB."""


@dataclass(frozen=True)
class AttachOrder:
    """One command in its own container."""

    host: str
    """The engine's address."""
    folder: Path
    """For the lifeline."""
    config: Mapping[str, Any]
    user: User
    command: ExecCommand
    door: Door | None
    masked: Path | None
    """The repository, if its missing `.git` is masked."""
    layers: Copies = field(default_factory=Copies)

    def to_env(self) -> dict[str, str]:
        """Return the order as variables, in pieces."""
        text = json.dumps(asdict(self), default=str)
        pieces = range(0, len(text), PIECE)
        return {f"{PREFIX}{n}": text[at : at + PIECE] for n, at in enumerate(pieces)}

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> AttachOrder:
        """Return the order that `to_env` wrote; raises KeyError or ValueError for anything else."""
        count = sum(name.startswith(PREFIX) for name in environ)
        fields = json.loads("".join(environ[f"{PREFIX}{n}"] for n in range(count)))
        command, door, masked = fields["command"], fields["door"], fields["masked"]
        return cls(
            host=fields["host"],
            folder=Path(fields["folder"]),
            config=fields["config"],
            user=User(**fields["user"]),
            command=ExecCommand(tuple(command["argv"]), command["env"], command["workdir"]),
            door=door and Door(Path(door["folder"]), {int(k): v for k, v in door["ports"].items()}),
            masked=masked and Path(masked),
            layers=Copies.from_json(fields["layers"]),
        )
