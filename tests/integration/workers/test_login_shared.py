"""Twenty runs' worth of a login, two of them at a time: each refresh token is used once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from agentrunner.workers.login import login_for
from tests.kit.token_issuer import TokenIssuer

ROUNDS = 10
RUN = """\
import asyncio, os, sys
from pathlib import Path
from agentrunner.workers.login import login_for

login = login_for("codex-cli", os.environ, Path("/nonexistent"))
token = ""
for _ in range(int(sys.argv[1])):
    access = asyncio.run(login.access(60, refused=token))
    token = access.fingerprint
    print(access.token)
"""
"""A run that has its token refused after each round."""


def runs(environ: dict[str, str], number: int) -> list[list[str]]:
    """The access tokens of so many processes at the same time."""
    command = [sys.executable, "-c", RUN, str(ROUNDS)]
    processes = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
        for _ in range(number)
    ]
    outputs = [process.communicate()[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0] * number
    return outputs


async def test_after_twenty_runs_two_at_a_time_the_login_still_works(tmp_path: Path) -> None:
    with TokenIssuer() as issuer:
        file = tmp_path / "codex" / "auth.json"
        issuer.write_login(file)
        environ = {
            **os.environ,
            "CODEX_HOME": str(file.parent),
            "CODEX_REFRESH_TOKEN_URL_OVERRIDE": issuer.url,
        }
        first, second = runs(environ, 2)
        assert len(first) == len(second) == ROUNDS
        assert set(first) | set(second) <= set(issuer.made)
        assert issuer.reused == []
        assert ROUNDS - 1 <= len(issuer.spent) == len(set(issuer.spent)) <= 2 * ROUNDS
        kept = json.loads(file.read_bytes())["tokens"]
        assert kept["refresh_token"] not in issuer.spent
        assert kept["access_token"] == issuer.made[-1]
        login = login_for("codex-cli", environ, tmp_path)
        assert login is not None
        assert issuer.accepts((await login.access(7200)).token)
        assert issuer.reused == []
    assert sorted(path.name for path in file.parent.iterdir()) == ["auth.json", "auth.lock"]
