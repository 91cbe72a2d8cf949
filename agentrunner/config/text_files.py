"""Read small text files that people name: once, with a size limit, without ever blocking."""

from __future__ import annotations

import errno
import os
import re
import shlex
import stat
from collections.abc import Sequence
from pathlib import Path

from agentrunner.errors import UsageError
from agentrunner.errors.task_files import BadEncoding, FileOutside, FileTooLarge, Unreadable
from agentrunner.text.likeness import slip_of

MAX_BYTES = 1 << 20
"""Size limit of a task file, a PRD or any file they name."""


def read_text(path: Path, *, name: str, within: Sequence[Path] = ()) -> str:
    r"""Return the text of a regular UTF-8 file, line ends as `\\n`, without a BOM.

    Messages call the file `name`. With `within`, the file with all links followed must be below one
    of these folders. Raises UsageError (`unreadable`, `outside`, `too-large`, `encoding`) without
    ever blocking: a FIFO or a device is refused, not read.
    """
    real = Path(os.path.realpath(path))
    if within and not any(real.is_relative_to(os.path.realpath(root)) for root in within):
        raise FileOutside(
            f"{name} lies outside the repository and the folder of the task file.",
            path=name,
            remedy="copy it into the repository",
            details=(("it is", str(real)),),
        )
    return decode(_read_bytes(real, path, name), name)


def _read_bytes(real: Path, path: Path, name: str) -> bytes:
    try:
        # Checked before opening, since opening some devices has effects.
        _require_regular(real.stat(), name)
        fd = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:  # noqa: PTH123 - a descriptor, not a path
            _require_regular(os.fstat(fd), name)
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise _unreadable(error, path, name) from error
    require_size(data, name)
    return data


def require_size(data: bytes, name: str) -> None:
    """Raise UsageError (`too-large`) for more than MAX_BYTES."""
    if len(data) > MAX_BYTES:
        raise _too_large(name)


def _too_large(name: str) -> FileTooLarge:
    return FileTooLarge(
        f"{name} is larger than 1 MiB.",
        path=name,
        remedy="keep in it what is wanted, and name in it the files that the worker is to read",
    )


def _require_regular(status: os.stat_result, name: str) -> None:
    mode = status.st_mode
    if stat.S_ISREG(mode):
        if status.st_size > MAX_BYTES:
            raise _too_large(name)
        return
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    raise Unreadable(f"{name} is {kind}, not a file.", path=name)


def _unreadable(error: OSError | ValueError, path: Path, name: str) -> UsageError:
    missing = isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.ENOTDIR)
    if missing:
        near = _similar_name(path, name)
        return Unreadable(
            f"{name} does not exist.",
            path=name,
            remedy=f"did you mean {near}?" if near else "",
        )
    reason = error.strerror if isinstance(error, OSError) else "the path is not valid"
    return Unreadable(f"{name} cannot be read: {reason}.", path=name)


def _similar_name(path: Path, name: str) -> str:
    try:
        names = sorted(entry.name for entry in os.scandir(path.parent))[:1000]
    except (OSError, ValueError):
        return ""
    # By the stem: that two names end in .yaml makes neither like the other.
    names.sort(key=lambda one: Path(one).suffix == path.suffix)  # of one stem the last is kept
    stems = {Path(one).stem: one for one in names}
    found = slip_of(path.stem, stems)
    return str(Path(name).with_name(stems[found])) if found else ""


def decode(data: bytes, name: str) -> str:
    r"""Decode UTF-8, line ends as `\\n`, BOM dropped; the error names another likely encoding."""
    guess = _other_encoding(data)
    if not guess:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            guess = _guess_japanese(data)
            if not guess:
                line = data.count(b"\n", 0, error.start) + 1
                raise BadEncoding(
                    f"{name} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}.",
                    path=f"{name}:{line}",
                    remedy="save it as UTF-8",
                ) from error
        else:
            if "\0" in text:
                raise BadEncoding(f"{name} holds a NUL byte; it is no text file.", path=name)
            return text.replace("\r\n", "\n").replace("\r", "\n")
    code, spoken = guess
    suffix = Path(name).suffix
    target = f"{name.removesuffix(suffix)}.utf8{suffix}"
    raise BadEncoding(
        f"{name} is not UTF-8; it looks like {spoken}.",
        path=name,
        remedy=f"iconv -f {code} -t UTF-8 {_quoted(name)} > {_quoted(target)}",
    )


def _quoted(name: str) -> str:
    """Quote a name for a shell; `shlex` would also quote names that are merely not ASCII."""
    return name if re.fullmatch(r"[\w./][\w@%+=:,./-]*", name) else shlex.quote(name)


Guess = tuple[str, str] | None


def _other_encoding(data: bytes) -> Guess:
    """Detect encodings that are beyond doubt, even if the bytes happen to be valid UTF-8."""
    if data.startswith((b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff")):
        return "UTF-32", "UTF-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16", "UTF-16"
    head = data[:4096]
    zeros = (head[0::2].count(0), head[1::2].count(0))
    if max(zeros) > len(head) // 8 and min(zeros) == 0:
        code = "UTF-16LE" if zeros[1] else "UTF-16BE"
        return code, f"UTF-16 without a byte order mark ({code})"
    if b"\x1b$B" in data or b"\x1b$@" in data:
        return "ISO-2022-JP", "ISO-2022-JP"
    return None


def _guess_japanese(data: bytes) -> Guess:
    """Return the encoding with which the bytes look most like Japanese."""
    best: tuple[float, Guess] = (0.3, None)
    for codec, code, spoken in (
        ("cp932", "CP932", "CP932 (Shift_JIS)"),
        ("euc_jp", "EUC-JP", "EUC-JP"),
    ):
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        foreign = [char for char in text if char > "\x7f"]
        # EUC-JP read as CP932 looks like half-width katakana.
        plausible = sum(1 for char in foreign if re.match(r"[぀-ヿ一-鿿、-〿！-～]", char))
        score = plausible / max(1, len(foreign))
        if score > best[0]:
            best = (score, (code, spoken))
    return best[1]
