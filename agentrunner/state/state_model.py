"""The base class of every part of a run's saved state."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class StateModel(BaseModel):
    """A frozen value of the state, validated again whenever a node passes it on."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", revalidate_instances="always", defer_build=True
    )


class FileRef(StateModel):
    """A file of the run's folder, by relative path."""

    path: str
    size: int = 0
    sha256: str = ""
