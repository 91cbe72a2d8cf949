"""The gateway process: the proxy and gateway of one command, until the end of its stdin.

It prints a JSON line `{"event": "ready"}` when it listens, and `{"event": "stop", "reason": ENTRY}`
if its worker keeps asking for a host that an allow-list with ENTRY would permit. Complaints go to
stderr. Its order holds secrets and stays in memory only: the process leaves no core dump, and no
other process of its user may read its memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from agentrunner.errors import AgentRunnerError
from agentrunner.gateway.listeners import Close, Control, Listener, Serve, closed_to_others
from agentrunner.gateway.order import (
    CONTROL_SOCKET,
    GATEWAY_SOCKET,
    PROXY_SOCKET,
    GatewayOrder,
)

ORDER_LIMIT = 16 << 20
END_SEC = 1.5
"""How long services may take to end; the rest is cut off."""
PR_SET_DUMPABLE = 4


def main() -> NoReturn:
    """Serve the order on stdin; ends with 0 when stdin ends.

    Exit code 143 after SIGTERM, 1 if it cannot listen, 2 for an unreadable order.
    """
    keep_secret()
    try:
        order = read_order(0)
    except (ValueError, msgspec.ValidationError) as error:
        complain(f"its order cannot be read: {type(error).__name__}")
        code = 2
    else:
        code = _run(order)
    os._exit(code)


def _run(order: GatewayOrder) -> int:
    # The runner is not closed: it would wait for look-ups in threads that hang.
    runner = asyncio.Runner()
    try:
        return runner.run(serve(order))
    except (OSError, ValueError, AgentRunnerError) as error:
        complain(str(error))
        return 1
    except Exception:  # noqa: BLE001 - it ends with a message, and is started again
        sys.excepthook(*sys.exc_info())
        return 1


def keep_secret() -> None:
    """Forbid core dumps, reading of our memory and environment, and files readable by others."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)


def read_order(fd: int) -> GatewayOrder:
    """Return the order: a line with its length, then that many bytes of JSON.

    Raises ValueError or ValidationError for anything else; their texts may contain secrets.
    """
    line = b""
    while not line.endswith(b"\n") and len(line) < 20:
        byte = os.read(fd, 1)
        if not byte:
            break
        line += byte
    length = int(line)
    if not 0 <= length <= ORDER_LIMIT:
        raise ValueError("too long")
    data = bytearray()
    while length > len(data) and (chunk := os.read(fd, length - len(data))):
        data += chunk
    return GatewayOrder.from_json(bytes(data))


def tell(**event: str) -> None:
    """Print an event; its reader may be gone."""
    with contextlib.suppress(OSError):
        os.write(1, json.dumps(event).encode() + b"\n")


def complain(text: str) -> None:
    """Print a complaint for the log of the process that started us."""
    with contextlib.suppress(OSError):
        print(f"gateway: {text}", file=sys.stderr, flush=True)  # noqa: T201 - its only output


async def serve(order: GatewayOrder) -> int:
    """Listen until stdin ends or SIGTERM comes; return the exit code for that.

    Raises OSError if it cannot listen, ValueError for an unusable host or proxy, UsageError for
    unreadable prices.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Queue[int] = asyncio.Queue()
    loop.add_signal_handler(signal.SIGTERM, ended.put_nowait, 128 + signal.SIGTERM)
    loop.add_signal_handler(signal.SIGINT, lambda: None)  # in a terminal Ctrl-C is for others
    _at_end_of_input(0, lambda: ended.put_nowait(0))
    services, closers = await make_services(order)
    control = Control(services)
    with contextlib.ExitStack() as listeners:
        try:
            await _listen(order.sockets, services, control, listeners)
            tell(event="ready")
            return await ended.get()
        finally:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SEC):
                    await asyncio.gather(control.close(), *(close() for close in closers))


async def _listen(
    folder: Path, services: Mapping[str, Serve], control: Control, listeners: contextlib.ExitStack
) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    # In a container the forwarder has a uid different from ours. It may connect if nobody else on
    # this machine can reach the folder.
    shared = closed_to_others(folder)
    if shared:
        folder.chmod(0o711)
    for name, accept in services.items():
        listener = Listener(folder, name, 0o666 if shared else 0o600)
        listeners.callback(listener.close)
        await accept(listener.socket)
    listener = Listener(folder, CONTROL_SOCKET, 0o600)
    listeners.callback(listener.close)
    control.serve(listener.socket)


async def make_services(
    order: GatewayOrder,
) -> tuple[dict[str, Serve], list[Callable[[], Awaitable[None]]]]:
    """Return what serves each socket, and what ends the services. Loads only what is needed."""
    services: dict[str, Serve] = {}
    closers: list[Callable[[], Awaitable[None]]] = []
    if order.allow is not None:
        from agentrunner.gateway.proxy import make_proxy

        proxy = make_proxy(order, ask=lambda entry: tell(event="stop", reason=entry))
        services[PROXY_SOCKET] = proxy.serve
        closers.append(proxy.close)
    if order.upstream is not None:
        serve_models, close = await _gateway(order)
        services[GATEWAY_SOCKET] = serve_models
        closers.append(close)
    return services, closers


async def _gateway(order: GatewayOrder) -> tuple[Serve, Callable[[], Awaitable[None]]]:
    # This import takes a third of a second, which a command without a model does not pay.
    from aiohttp import web

    from agentrunner.gateway.gateway import make_app

    runner = web.AppRunner(make_app(order), shutdown_timeout=END_SEC / 2)
    await runner.setup()

    async def accept(listener: socket.socket) -> Close:
        served = web.SockSite(runner, listener)
        await served.start()
        return served.stop

    return accept, runner.cleanup


def _at_end_of_input(fd: int, action: Callable[[], None]) -> None:
    """Run `action` when the process that started us closes our stdin, even by dying."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(fd, 4096):
            loop.remove_reader(fd)
            action()

    try:
        loop.add_reader(fd, look)
    except PermissionError:  # a file, which has already ended
        action()
