"""Stands in for the gateway process: takes over the listeners of boxes, and answers on them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from pathlib import Path


class ControlServer:
    """Listens on `folder`/control.sock; whoever comes by a listener is told NAME and our label."""

    def __init__(self, folder: Path, label: str = "served") -> None:
        self.label = label
        self.handed_over = threading.Semaphore(0)
        """Released once for each listener that comes."""
        self._stopped = False
        self._open: list[socket.socket] = []
        control = self._keep(socket.socket(socket.AF_UNIX))
        place = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(FileNotFoundError):
            os.unlink("control.sock", dir_fd=place)
        control.bind(f"/proc/self/fd/{place}/control.sock")
        os.close(place)
        control.listen()
        self._threads: list[threading.Thread] = []
        self._start(self._accept, control)

    def stop(self) -> None:
        """End as a crash would: without a word, and with every socket closed.

        Not shut down: the listeners are the box's too.
        """
        self._stopped = True
        for thread in self._threads:
            thread.join()
        for each in self._open:
            each.close()

    def _keep(self, given: socket.socket) -> socket.socket:
        given.settimeout(0.05)
        self._open.append(given)
        return given

    def _start(self, target: object, *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self, control: socket.socket) -> None:
        while not self._stopped:
            with contextlib.suppress(TimeoutError):
                self._start(self._take, self._keep(control.accept()[0]))

    def _take(self, client: socket.socket) -> None:
        while not self._stopped:
            with contextlib.suppress(TimeoutError):
                data, files, _, _ = socket.recv_fds(client, 4096, 1)
                if not data:
                    return
                name = json.loads(data)["socket"]
                self._start(self._serve, self._keep(socket.socket(fileno=files[0])), name)
                self.handed_over.release()

    def _serve(self, listener: socket.socket, name: str) -> None:
        while not self._stopped:
            with contextlib.suppress(TimeoutError):
                visitor, _ = listener.accept()
                visitor.sendall(f"{name} {self.label}\n".encode())
                visitor.close()
