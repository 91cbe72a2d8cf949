"""A server on this machine's loopback, for boxes that may or may not reach it."""

from __future__ import annotations

import socket
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def greeter() -> Iterator[int]:
    """A server that says hello to whoever reaches it; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    line, _ = server.accept()
                except OSError:
                    return
                with line:
                    line.sendall(b"hello\n")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


ASK = """\
import os, socket, sys, time
def ask(host):
    proxy = os.environ["HTTPS_PROXY"].rpartition(":")[2]
    with socket.create_connection(("127.0.0.1", int(proxy))) as line:
        line.sendall(f"CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
        return line.makefile("rb").read()
host, times = sys.argv[1], int(sys.argv[2])
for _ in range(times):
    reply = ask(host)
    print(reply, flush=True)
    if not reply.startswith(b"HTTP/1.1 403"):
        break
else:
    if times > 1:
        time.sleep(1000)
"""


async def echo(reader: StreamReader, writer: StreamWriter) -> None:
    """Gives back what it gets, and ends when its client has ended."""
    while data := await reader.read(1 << 20):
        writer.write(data)
        await writer.drain()
    writer.close()
