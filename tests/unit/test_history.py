"""The history of a project as cases."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.battery.history import commits

OLD = "def total(items):\n    return 0\n"
NEW = "def total(items):\n    return sum(items)\n"
TEST = "from cart import total\n\n\ndef test():\n    assert total([1]) == 1\n"


def commit(repo: Path, message: str, **files: str) -> None:
    for name, text in files.items():
        (repo / f"{name}.py").write_text(text)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    for command in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", message)):
        subprocess.run(["git", "-C", str(repo), *command], check=True)


def test_a_change_of_code_and_tests_is_worth_playing(tmp_path: Path) -> None:
    commit(tmp_path, "Begin", cart=OLD)
    commit(tmp_path, "Totals add up (#12)\n\nSigned-off-by: t", cart=NEW, test_cart=TEST)
    commit(tmp_path, "Say more in the file", cart=f"# A cart.\n{NEW}")
    commit(tmp_path, "Format all the files", cart=NEW, test_cart=f"# Tests.\n{TEST}")
    (found,) = commits(tmp_path, "2000-01-01")
    assert found.message == "Totals add up"
    assert b"test_cart.py" in found.tests_patch
    assert b"b/cart.py" not in found.tests_patch
    assert b"b/cart.py" in found.patch
