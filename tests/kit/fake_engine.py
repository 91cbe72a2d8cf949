"""An engine that misbehaves: a Unix socket that speaks as much of Docker's API as a box needs.

By default every call succeeds and a command prints "clean 0", then ends with 0. `faults` says
for a call ("create", "start", "exec", "stream", "inspect", …) what happens instead.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

CALLS = (
    ("GET", r"/_ping", "ping"),
    ("GET", r"/version", "version"),
    ("GET", r"/info", "info"),
    ("GET", r"/networks", "networks"),
    ("GET", r"/images/json.*", "images"),
    ("GET", r"/images/.*/json", "image"),
    ("POST", r"/build.*", "build"),
    ("GET", r"/containers/json.*", "list"),
    ("POST", r"/containers/create.*", "create"),
    ("POST", r"/containers/\w+/start", "start"),
    ("POST", r"/containers/\w+/exec", "exec"),
    ("GET", r"/containers/\w+/top.*", "top"),
    ("GET", r"/containers/\w+/json", "look"),
    ("DELETE", r"/containers/.*", "remove"),
    ("POST", r"/exec/\w+/start", "stream"),
    ("GET", r"/exec/\w+/json", "inspect"),
)
VERSION = {"ApiVersion": "1.41", "Version": "20.10.24", "Os": "linux", "Arch": "amd64"}
INFO = {
    "MemoryLimit": True, "CpuCfsQuota": True, "PidsLimit": True, "CgroupVersion": "2",
    "SecurityOptions": ["name=seccomp,profile=default"], "OSType": "linux",
    "Architecture": "x86_64",
}  # fmt: skip
IMAGE = {"Id": "sha256:" + "1" * 64, "Os": "linux", "Architecture": "amd64", "Config": {"Env": []}}
BODIES: dict[str, Any] = {
    "version": VERSION, "info": INFO, "networks": [], "image": IMAGE, "list": [],
    "create": {"Id": "c0ffee"}, "exec": {"Id": "e0"}, "look": {"State": {"Pid": 0}},
    "inspect": {"Running": False, "ExitCode": 0},
    "build": {"stream": "Step 1/1 : FROM fake"},
    "top": {"Titles": ["PID", "UID"], "Processes": [["1", "64999"]]},
}  # fmt: skip

Fault = int | str
"""A status to answer with, "silence" or "close"; for `stream` "cut" in the middle, or "late": its
last words come when somebody has been told that the command is over."""


@dataclass
class FakeEngine:
    """Listens until the `with` ends."""

    path: Path
    faults: dict[str, Fault] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    """Names of the calls, in the order in which they came."""
    created: list[dict[str, Any]] = field(default_factory=list)
    """Bodies of the create calls."""
    built: list[str] = field(default_factory=list)
    """Names of the images that it was told to build, which it has from then on."""
    once: set[str] = field(default_factory=set)
    """Faults that happen one time only."""
    inspected: threading.Event = field(default_factory=threading.Event)
    """Somebody was told that the command is over."""

    @property
    def address(self) -> str:
        """For DOCKER_HOST."""
        return f"unix://{self.path}"


@contextlib.contextmanager
def fake_engine(path: Path, **faults: Fault) -> Iterator[FakeEngine]:
    """An engine at this socket, with these faults."""
    engine = FakeEngine(path, dict(faults))
    over = threading.Event()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(64)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(
                        target=_serve, args=(engine, client, over), daemon=True
                    ).start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield engine
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()


def _serve(engine: FakeEngine, client: socket.socket, over: threading.Event) -> None:
    with client, client.makefile("rb") as reading, contextlib.suppress(OSError):
        while head := reading.readline().decode():
            method, target, _ = head.split()
            length, chunked = 0, False
            while (line := reading.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
                chunked |= name.lower() == b"transfer-encoding"
            body = reading.read(length)
            while chunked and (size := int(reading.readline(), 16)):
                reading.read(size + 2)
            if chunked:
                reading.readline()
            call = _name(method, re.sub(r"^/v[\d.]+", "", target))
            engine.calls.append(call)
            if call == "build" and not engine.faults.get("build"):
                engine.built += parse_qs(urlsplit(target).query)["t"]
            if call == "create":
                engine.created.append(json.loads(body))
            if not _answer(engine, call, client, over):
                return


def _answer(engine: FakeEngine, call: str, client: socket.socket, over: threading.Event) -> bool:
    """Whether the connection can take another call."""
    fault = engine.faults.get(call, engine.faults.get("all", 0))
    if call in engine.once:
        engine.faults.pop(call, None)
    if fault == "silence":
        over.wait()
        return False
    if fault == "close":
        return False
    if isinstance(fault, int) and fault:
        _send(client, fault, {"message": f"fake {fault}"})
        return True
    if call == "stream":
        client.sendall(b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
        client.recv(1)  # our first line: only then does it print
        engine.inspected.clear()
        client.sendall(_frame(b"clean 0\n"))
        if fault == "cut":
            client.sendall(_frame(b"begun\n") + _frame(b"and cut off")[:12])
        elif fault == "late":
            engine.inspected.wait()
            client.sendall(_frame(b"last words\n"))
        elif fault == "hang":
            over.wait()
        return False
    images = [{"Id": IMAGE["Id"], "RepoTags": [name]} for name in engine.built]
    body = images if call == "images" else BODIES.get(call, {})
    _send(client, 201 if call in ("create", "exec") else 200, body)
    if call == "inspect":
        engine.inspected.set()
    return True


def _name(method: str, target: str) -> str:
    for verb, pattern, name in CALLS:
        if verb == method and re.fullmatch(pattern, target):
            return name
    return f"{method} {target}"


def _send(client: socket.socket, status: int, body: object) -> None:
    data = json.dumps(body).encode()
    head = f"HTTP/1.1 {status} x\r\nContent-Type: application/json\r\n"
    client.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)


def _frame(data: bytes) -> bytes:
    return struct.pack(">BxxxL", 1, len(data)) + data
