"""Listeners on the loopback of a sandbox without network, handed to the process that serves them.

Part of `enter`: standard library only.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL_SOCKET = "control.sock"
BACKLOG = 128
RETRY_MS = 50
"""Between two tries to reach a gateway that has ended and is being restarted."""

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
NS_GET_USERNS = 0xB701
IP_FREEBIND = 15

libc = ctypes.CDLL(None, use_errno=True)


class DoorKeeper:
    """Holds the listeners, and the connection over which FOLDER/control.sock's process got them.

    That process accepts connections. We hold the listeners too, so a connection made while it is
    away waits. When it ends, the connection closes, and its successor gets the listeners again.
    """

    def __init__(self, folder: str, ports: Mapping[int, str], inside: int) -> None:
        """Listen on `ports` in the network of the process `inside`, 0 for ours; raises OSError."""
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._connection: socket.socket | None = None
        listeners = _listen_inside(inside, list(ports)) if inside else _listen(list(ports))
        self._listeners = dict(zip(listeners, ports.values(), strict=True))

    def hand_over(self) -> None:
        """Hand the listeners over, if a process is there to take them."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.setblocking(False)
        try:
            # Use the folder's descriptor: the address of a Unix socket is limited to 107 bytes.
            connection.connect(f"/proc/self/fd/{self._folder}/{CONTROL_SOCKET}")
            for listener, name in self._listeners.items():
                socket.send_fds(connection, [b'{"socket": "%s"}\n' % name.encode()], [listener])
        except OSError:
            connection.close()
        else:
            self._connection = connection

    def keep(self, ended: int) -> None:
        """Hand over again whenever it is necessary, until the process of the pidfd `ended` ends."""
        while True:
            poller = select.poll()
            poller.register(ended, select.POLLIN)
            if self._connection is not None:
                poller.register(self._connection, select.POLLIN)
            ready = [fd for fd, _ in poller.poll(RETRY_MS if self._connection is None else None)]
            if ended in ready:
                return
            if self._connection is None:
                self.hand_over()
            elif self._connection.fileno() in ready and not _is_alive(self._connection):
                self._connection.close()
                self._connection = None


def _is_alive(connection: socket.socket) -> bool:
    """Whether the other side is alive; its answers have no other meaning."""
    try:
        return bool(connection.recv(4096))
    except BlockingIOError:
        return True
    except OSError:
        return False


def _listen(ports: list[int]) -> list[int]:
    """Return descriptors that listen on 127.0.0.1; raises OSError."""
    listeners = []
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Bubblewrap may not have brought the sandbox's loopback up yet.
        listener.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise OSError(error.errno, f"127.0.0.1:{port}: {error.strerror}") from None
        listener.listen(BACKLOG)
        listeners.append(listener.detach())
    return listeners


def _listen_inside(pid: int, ports: list[int]) -> list[int]:
    """Listen in the network of another process; otherwise like `_listen`.

    A child does it because a process that has entered a user namespace cannot leave it.
    """
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            _enter(pid)
            socket.send_fds(theirs, [b"\n"], _listen(ports))
        except OSError as error:
            theirs.send(str(error).encode(errors="replace"))
        finally:
            os._exit(0)
    theirs.close()
    message, listeners, _, _ = socket.recv_fds(ours, 4096, len(ports))
    ours.close()
    os.waitpid(child, 0)
    if len(listeners) != len(ports):
        raise OSError(f"no door into the sandbox: {message.decode(errors='replace')}")
    return listeners


def _enter(pid: int) -> None:
    """Join a process's network namespace, with all rights in it; raises OSError."""
    network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    # Root may make a sandbox without a user namespace; entering our own again is an error.
    if os.fstat(owner).st_ino != os.stat("/proc/self/ns/user").st_ino:  # noqa: PTH116
        _set_namespace(owner, CLONE_NEWUSER)
    _set_namespace(network, CLONE_NEWNET)


def _set_namespace(fd: int, kind: int) -> None:
    # os.setns is newer than Python 3.11.
    if libc.setns(fd, kind) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")
