"""Find the version of a worker's CLI in a sandbox, once per image and binary."""

from __future__ import annotations

import json
import re
from pathlib import Path

from agentrunner.sandboxes.base import Request, Sandbox, SandboxError
from agentrunner.storage.run_folder import write_private
from agentrunner.storage.worker_ledger import read_json
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.workers.cli import CliWorker
from agentrunner.workers.member import Member

CACHE = "versions.json"
"""Usual file name in the state folder."""
_TIMEOUT_SEC = 60.0
_KEPT = 200
_VERSION = lazy_regex(r"(?<!\d)\d++(?:\.\d+)+[\w.+-]*", re.ASCII)
_LONGEST = 60


async def sandbox_version(sandbox: Sandbox, member: Member, cache: Path) -> str:
    """Return the version that this worker's CLI reports in this sandbox; "" if it reports none.

    `cache` is our own file, created if missing, so that the same program in the same image is not
    run again. Programs that are no CLI of a known kind are not run at all. Program failures raise
    nothing; OSError if `cache` cannot be written.
    """
    worker = member.worker
    if not isinstance(worker, CliWorker):
        return ""
    key = _key(sandbox, worker.program())
    known = read_json(cache) or {}
    if isinstance(known.get(key), str):
        return str(known[key])
    version = await _run_version(sandbox, member, worker)
    if version:
        kept = [*known.items()][1 - _KEPT :]
        write_private(cache, json.dumps(dict([*kept, (key, version)])).encode(), sync=False)
    return version


async def _run_version(sandbox: Sandbox, member: Member, worker: CliWorker) -> str:
    request = Request(
        command=(worker.program(), "--version"),
        workdir=Path(member.spec.repo),
        env=worker.version_env,
        timeout_sec=_TIMEOUT_SEC,
    )
    try:
        result = await sandbox.run(request)
    except SandboxError:
        return ""
    found = _VERSION.search(result.stdout.decode("utf-8", "replace"))
    return found[0][:_LONGEST] if found and result.exit_code == 0 else ""


def _key(sandbox: Sandbox, program: str) -> str:
    """Cache key: sandbox, image, and the program's file on this machine."""
    facts = [sandbox.kind, sandbox.image, program]
    try:
        status = Path(program).stat() if Path(program).is_absolute() else None
    except OSError:
        status = None
    if status is not None:
        facts += [str(status.st_size), str(status.st_mtime_ns)]
    return " ".join(facts)
