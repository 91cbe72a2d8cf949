"""Reads from a repository what its image is built from: a Dockerfile or devcontainer.json, as data.

Nothing of it is executed here. A build does execute it, in containers of the engine, so it must
have been allowed.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct, field

from agentrunner.errors import UsageError
from agentrunner.errors.sandboxes import BadImageSource
from agentrunner.text.lazy_regex import lazy_regex

MOST_TEXT = 1 << 20
MOST_CONTEXT = 1 << 30
"""Bytes of a build context; more is nearly always a missing .dockerignore."""
OWN_DOCKERFILE = ".agentrunner.Dockerfile"
"""The name of the Dockerfile in the context; the original may be outside it."""
NEVER_SENT = (".git", ".agent-runner", OWN_DOCKERFILE)
"""At the top of a context. A build needs none of them, and some change with every run."""
_EPOCH = 946_684_800
"""2000-01-01: the same time for all files, so that equal contents give equal images. Zip files,
including wheels, cannot store times before 1980."""
_COMMENT = lazy_regex(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = lazy_regex(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])')


class Build(Struct, frozen=True):
    """A build that a repository describes."""

    context: Path
    dockerfile: Path
    args: Mapping[str, str] = field(default_factory=dict)
    target: str = ""


def read_source(file: Path, repo: Path) -> str | Build:
    """Return the image that a devcontainer.json names, or the build that the file describes.

    Links are followed within the repository only. Raises UsageError (`image-source`).
    """
    place = _inside(repo / file, repo, "file")
    if place.suffix == ".json":
        return _devcontainer(place, repo)
    return Build(place.parent, place)


def pack(build: Build, repo: Path) -> tuple[BinaryIO, str]:
    """Return the build context as a tar file, and an image name derived from its contents.

    The caller closes the file. The same files, arguments and target give the same name. Raises
    UsageError (`image-source`).
    """
    context = tempfile.TemporaryFile()  # noqa: SIM115 - handed to the caller
    try:
        with tarfile.open(fileobj=context, mode="w") as archive:
            add_bytes(archive, OWN_DOCKERFILE, _text(build.dockerfile, repo).encode())
            left = MOST_CONTEXT
            for name in _context_files(build.context):
                left -= _add(archive, build.context / name, name)
                if left < 0:
                    raise _refused(
                        build.context,
                        f"it has more than {MOST_CONTEXT >> 30} GiB to send to the engine",
                        "leave out what the image does not need, in a .dockerignore beside it",
                    )
        context.seek(0)
        digest = hashlib.file_digest(context, "sha256")
    except OSError as error:
        context.close()
        raise _refused(build.context, f"{error.strerror}: {error.filename}") from error
    except BaseException:
        context.close()
        raise
    digest.update(json.dumps([build.target, sorted(build.args.items())]).encode())
    context.seek(0)
    return context, f"agentrunner/repository:{digest.hexdigest()[:16]}"


def _devcontainer(place: Path, repo: Path) -> str | Build:
    wanted = _json_with_comments(place, repo)
    if isinstance(image := wanted.get("image"), str) and image:
        _refuse_extras(wanted, place)
        return image
    given = wanted.get("build")
    build: Mapping[str, Any] = given if isinstance(given, dict) else {}
    dockerfile = build.get("dockerfile") or wanted.get("dockerFile")
    if not isinstance(dockerfile, str) or not dockerfile:
        raise _refused(place, "it names neither an image nor a Dockerfile", _BY_HAND)
    _refuse_extras(wanted, place)
    args = build.get("args") or {}
    context = build.get("context") or wanted.get("context") or "."
    target = build.get("target") or ""
    texts = [context, target, *args.keys(), *args.values()] if isinstance(args, dict) else [args]
    if not all(isinstance(text, str) and "${" not in text for text in texts):
        raise _refused(place, "its build has settings that are no plain texts", _BY_HAND)
    return Build(
        _inside(place.parent / context, repo, "folder"),
        _inside(place.parent / dockerfile, repo, "file"),
        args,
        target,
    )


_BY_HAND = "build it with the tool it is for, and name the result in runner.worker.docker_image"


def _refuse_extras(wanted: Mapping[str, Any], place: Path) -> None:
    """Refuse settings that the image would silently lack."""
    for name in ("features", "dockerComposeFile"):
        if wanted.get(name):
            raise _refused(place, f'its "{name}" are not understood here', _BY_HAND)


def _json_with_comments(place: Path, repo: Path) -> Mapping[str, Any]:
    """Parse JSON that may contain comments and trailing commas, like devcontainer.json."""
    text = _COMMENT.sub(lambda match: match[1] or " ", _text(place, repo))
    text = _TRAILING.sub(lambda match: match[1] or "", text)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(place, f"it is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise _refused(place, "it is no JSON object")
    return value


def _text(place: Path, repo: Path) -> str:
    with _inside(place, repo, "file").open("rb") as file:
        data = file.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise _refused(place, "it is larger than 1 MiB")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise _refused(place, "it is not UTF-8") from error


def _inside(path: Path, repo: Path, what: str) -> Path:
    """Return the real path. A repository's file cannot make us read anything outside it."""
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except (OSError, RuntimeError, ValueError) as error:
        raise _refused(path, "it does not exist or cannot be read") from error
    if not real.is_relative_to(repo.resolve()):
        raise _refused(path, "it is outside of the repository")
    if not (stat.S_ISREG(mode) if what == "file" else stat.S_ISDIR(mode)):
        raise _refused(path, f"it is no {what}")
    return real


def _context_files(context: Path) -> Iterator[str]:
    """Yield relative names in a stable order, without those that .dockerignore excludes."""
    from docker.utils.build import exclude_paths

    patterns: list[str] = []
    ignore = context / ".dockerignore"
    if ignore.is_file() and not ignore.is_symlink():
        lines = ignore.read_text("utf-8", "replace")[:MOST_TEXT].splitlines()
        patterns = [line.strip() for line in lines if line.strip() and line[0] != "#"]
    # This function never follows a link out of the context.
    yield from sorted(exclude_paths(str(context), [*patterns, *NEVER_SENT]))


def _add(archive: tarfile.TarFile, path: Path, name: str) -> int:
    """Add a file, folder or link unchanged; return its size in bytes."""
    if Path(name).parts[0] in NEVER_SENT:
        return 0  # a .dockerignore could have included them again
    facts = path.lstat()
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.mode = _EPOCH, stat.S_IMODE(facts.st_mode) & 0o777
    if stat.S_ISLNK(facts.st_mode):
        entry.type, entry.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115 - its text
        archive.addfile(entry)
    elif stat.S_ISDIR(facts.st_mode):
        entry.type = tarfile.DIRTYPE
        archive.addfile(entry)
    elif stat.S_ISREG(facts.st_mode):
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            entry.size = os.fstat(file.fileno()).st_size
            if entry.size <= MOST_CONTEXT:
                archive.addfile(entry, file)
        return entry.size
    return 0


def add_bytes(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    """Add a file with this content."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(data), _EPOCH
    archive.addfile(entry, io.BytesIO(data))


def _refused(path: Path, reason: str, remedy: str = "") -> UsageError:
    return BadImageSource(
        f"No image can be made from {path}: {reason}.",
        path="runner.sandbox.image_from",
        remedy=remedy,
    )
