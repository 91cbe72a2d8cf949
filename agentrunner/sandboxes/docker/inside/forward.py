"""Forwards ports of a sandbox's loopback to Unix sockets: `forward.py PORT:SOCKET ...`.

Runs in the sandbox, on whatever Python 3 the image has: python3-minimal has no asyncio.
"""

import contextlib
import socket
import sys
import threading


def copy(source: socket.socket, target: socket.socket) -> None:
    """Copy everything and then the end, which does not end the other direction."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def forward(client: socket.socket, path: str) -> None:
    """Serve one connection."""
    with client, socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
        except OSError:
            return  # the listener may be about to come back
        back = threading.Thread(target=copy, args=(server, client), daemon=True)
        back.start()
        copy(client, server)
        back.join()


def serve(port: int, path: str) -> None:
    """Serve one door."""
    with socket.create_server(("127.0.0.1", port), backlog=128) as listener:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=forward, args=(client, path), daemon=True).start()


def main() -> None:
    """Serve all doors."""
    for door in sys.argv[1:]:
        port, _, path = door.partition(":")
        threading.Thread(target=serve, args=(int(port), path)).start()


if __name__ == "__main__":
    main()
