"""A registry of one small image, for an engine on this machine to fetch it from.

with Registry() as registry:
    registry.name            "127.0.0.1:40123/shop/image:1"
    registry.digest          "sha256:…" of its manifest
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import platform
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"
ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}
REPOSITORY = "shop/image"


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Registry:
    """Speaks as much of the registry's protocol as a pull needs, without TLS, on 127.0.0.1."""

    def __init__(self, mark: str, architecture: str = "") -> None:
        layer = _layer(mark)
        config = json.dumps(
            {
                "architecture": architecture or ARCHITECTURE[platform.machine()],
                "os": "linux",
                "config": {"Env": [f"MARK={mark}"]},
                "rootfs": {"type": "layers", "diff_ids": [digest_of(layer)]},
                "history": [{"created_by": mark}],
            }
        ).encode()
        packed = gzip.compress(layer, mtime=0)
        manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST,
                "config": _part(CONFIG, config),
                "layers": [_part(LAYER, packed)],
            }
        ).encode()
        self.digest = digest_of(manifest)
        self.blobs = {digest_of(data): data for data in (config, packed)}
        self.manifests = {"1": manifest, self.digest: manifest}
        """By tag and by digest; what a test puts here is served as it is."""

    def __enter__(self) -> Self:
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                registry._answer(self, with_body=True)

            def do_HEAD(self) -> None:
                registry._answer(self, with_body=False)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def repository(self) -> str:
        """Where the image is, without a tag."""
        return f"127.0.0.1:{self._server.server_port}/{REPOSITORY}"

    @property
    def name(self) -> str:
        """The image, by its tag."""
        return f"{self.repository}:1"

    def _answer(self, request: BaseHTTPRequestHandler, *, with_body: bool) -> None:
        place = request.path.rstrip("/")
        kind, _, key = place.removeprefix(f"/v2/{REPOSITORY}/").partition("/")
        body: bytes | None = b"{}" if place == "/v2" else None
        media = "application/json"
        if kind == "manifests" and key in self.manifests:
            body, media = self.manifests[key], MANIFEST
        elif kind == "blobs" and key in self.blobs:
            body, media = self.blobs[key], "application/octet-stream"
        request.send_response(200 if body is not None else 404)
        body = body if body is not None else b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}'
        request.send_header("Content-Type", media)
        request.send_header("Content-Length", str(len(body)))
        if kind == "manifests":
            request.send_header("Docker-Content-Digest", digest_of(body))
        request.end_headers()
        if with_body:
            request.wfile.write(body)


def _layer(mark: str) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        entry = tarfile.TarInfo("mark.txt")
        entry.size = len(mark)
        archive.addfile(entry, io.BytesIO(mark.encode()))
    return data.getvalue()


def _part(media: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media, "size": len(data), "digest": digest_of(data)}
