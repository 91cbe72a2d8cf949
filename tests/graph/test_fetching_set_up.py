"""A set-up that fetches its packages over the network, and tests that then need none."""

from __future__ import annotations

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from agentrunner.discovery.set_up import propose_setup
from agentrunner.folders import remove_tree
from tests.kit.cached_tasks import TASKS, Task
from tests.kit.caches import Make, cargo, go, maven, serving
from tests.kit.files import write
from tests.kit.http_server import http_server
from tests.kit.metas import assess, finish, plan, work
from tests.kit.missing import missing
from tests.kit.project import Project
from tests.kit.runs import Run

pytestmark = pytest.mark.whole
HOST = "packages.test"
CENTRAL = "<id>central</id><url>https://{0}/maven-repo</url>"
REPOSITORIES = (
    f"<repositories><repository>{CENTRAL}</repository></repositories>"
    f"<pluginRepositories><pluginRepository>{CENTRAL}</pluginRepository></pluginRepositories>"
)
TRUST = "-Djavax.net.ssl.trustStore=trust.p12 -Djavax.net.ssl.trustStorePassword=changeit\n"


@contextmanager
def behind_tls(folder: Path, place: Path) -> Iterator[int]:
    """These files at `HOST` with TLS, by the certificate `place`/ca.pem; yields the port."""
    make = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    made = subprocess.run(
        ["openssl", *make, "-keyout", str(folder.parent / "key.pem"), "-out", str(place / "ca.pem"),
         "-days", "2", "-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}"],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        missing("openssl makes no certificate here")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(place / "ca.pem", folder.parent / "key.pem")
    with http_server(partial(SimpleHTTPRequestHandler, directory=str(folder)), tls) as port:
        yield port


def moved(folder: Path, old: str, new: str) -> None:
    """Replace an address in the small text files below a folder."""
    for file in folder.rglob("*"):
        if file.is_file() and ".git" not in file.parts and old.encode() in file.read_bytes():
            file.write_text(file.read_text().replace(old, new))


def for_maven(repo: Path, at: str) -> None:
    """The repository of this POM, and whom Java trusts."""
    pom = repo / "pom.xml"
    pom.write_text(pom.read_text().replace("<build>", REPOSITORIES.format(at) + "<build>"))
    write(repo, {".mvn/jvm.config": TRUST})
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "own", "-file", "ca.pem", "-keystore",
         "trust.p12", "-storetype", "PKCS12", "-storepass", "changeit"],
        cwd=repo, check=True, capture_output=True,
    )  # fmt: skip


@pytest.mark.timeout(600)  # all of what Maven needs is fetched anew
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.make.__name__)
def test_a_set_up_with_a_network_fetches_what_tests_then_find(tmp_path: Path, task: Task) -> None:
    project = Project.make(tmp_path, {"notes.txt": "notes\n"})
    repo, user, served = project.repo, tmp_path / "user", tmp_path / "served"
    user.mkdir()
    with serving(served) as server:
        cached = task.make(user, repo, server)
    remove_tree(str(user))
    user.mkdir()
    if task.gone:
        (repo / task.gone).unlink()
    write(repo, {".gitignore": "target/\n", **task.files})
    with behind_tls(served, repo) as port:
        at = f"{HOST}:{port}"
        for folder in (repo, served):
            moved(folder, server.url, f"https://{at}")
        if task.make is maven:
            (served / "maven-repo").symlink_to("/usr/share/maven-repo")
            for_maven(repo, at)
        project.git("add", ".")
        project.git("commit", "-qm", "app")
        proposed = propose_setup(repo)
        assert proposed is not None
        envs: dict[Make, dict[str, str]] = {
            go: {"GOPROXY": f"https://{at}", "GONOSUMDB": "*", "SSL_CERT_FILE": f"{repo}/ca.pem"},
            cargo: {"CARGO_HTTP_CAINFO": f"{repo}/ca.pem"},
        }
        tools = [str(one) for one in cached.tools]
        path = f'PATH="{"".join(f"{one}/bin:" for one in tools)}$PATH" '
        run = Run(project)
        run.environ = {**os.environ, "HOME": str(user)}
        run.start(
            [plan(), work(), finish(), assess()],
            f'sed -i \'s/?"/"/; s/ + ""//\' {task.product}',
            test=path + (task.test or cached.test),
            runner={"sandbox": {"read_paths": tools}},
            setup={
                "command": path + proposed.command,
                "network": [f"{at}@127.0.0.1"],
                "env": envs.get(task.make, {}),
            },
        )
    assert run.ending == ("COMPLETE", "complete", 0), run.result["missing"]
    assert list(user.iterdir()) == [], "the user's own cache has changed"
