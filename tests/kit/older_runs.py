"""Runs that an earlier commit made, saved with neutral paths and put back below a test's folder.

`tests/data/older_runs/README.md` says how an archive is made.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack

DATA = Path(__file__).parents[1] / "data" / "older_runs"
PLACE = "/where/older/runs/are"
"""Stands in an archive for the folder that holds the repositories and the state folder."""
LEFT_OUT = re.compile(r"(^|/)(run\.lock|locks|index\.sqlite|pycache|__pycache__)(/|$)")
"""Of a process and a machine that are gone; the index is made again from the runs' folders."""


def unpack(name: str, place: Path) -> Path:
    """Put the repositories and the state folder of an archive into `place`; return the latter."""
    with tarfile.open(DATA / f"{name}.tar.xz") as archive:
        archive.extractall(place, filter="data")
    move(place, {PLACE: str(place)})
    return place / "state"


def move(place: Path, texts: Mapping[str, str]) -> None:
    """Replace texts in all files of a folder, those of saved states included."""
    for path in sorted(place.rglob("*")):
        if not path.is_file() or "objects" in path.parts:
            continue
        if path.suffix == ".sqlite":
            _move_states(path, texts)
            continue
        data = moved = path.read_bytes()
        for old, new in texts.items():
            moved = moved.replace(old.encode(), new.encode())
        if moved != data:
            path.write_bytes(moved)


def _move_states(path: Path, texts: Mapping[str, str]) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        for table, column in (("checkpoints", "checkpoint"), ("writes", "value")):
            rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            for row, blob in rows:
                if blob:
                    changed = _moved(blob, texts)
                    database.execute(
                        f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, row)
                    )


def _moved(blob: bytes, texts: Mapping[str, str]) -> bytes:
    """The same values with other texts: in msgpack a text has its length before it."""

    def value_of(value: Any) -> Any:
        if isinstance(value, str):
            for old, new in texts.items():
                value = value.replace(old, new)
            return value
        if isinstance(value, Mapping):
            return {value_of(key): value_of(below) for key, below in value.items()}
        if isinstance(value, list | tuple):
            return [value_of(below) for below in value]
        return value

    def ext(tag: int, data: bytes) -> ormsgpack.Ext:
        return ormsgpack.Ext(tag, _moved(data, texts))

    option = ormsgpack.OPT_NON_STR_KEYS
    known = ormsgpack.unpackb(blob, ext_hook=ext, option=option)
    return ormsgpack.packb(value_of(known), option=option)


def pack(made: Path, name: str, host: str) -> None:
    """Make an archive of a folder in which an earlier commit has worked."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "copy")
        shutil.copytree(
            made, copy, ignore=lambda _, names: [one for one in names if LEFT_OUT.search(one)]
        )
        move(copy, {str(made): PLACE, host: "hana@machine"})
        with tarfile.open(DATA / f"{name}.tar.xz", "w:xz") as archive:
            for path in sorted(copy.iterdir()):
                archive.add(path, path.name, filter=_of_nobody)


def _of_nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    pack(Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3])
