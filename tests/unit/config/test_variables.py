"""`task.env` and `task.setup.env`: what may stand there, and who may read this machine's."""

from __future__ import annotations

import pytest

from agentrunner.config.load import resolve_env
from agentrunner.errors import UsageError
from tests.kit.task_files import ENVIRON, Load

TASK = """
version: 1
task:
  prd: {text: "# Do it"}
  env: ENV
  setup: {command: make, env: SETUP}
"""


def task(load: Load, env: str = "{}", setup: str = "{}") -> dict[str, str]:
    text = TASK.replace("ENV", env).replace("SETUP", setup)
    spec = load(text, environ=ENVIRON)
    assert spec.task.setup is not None
    return {**spec.task.env, **resolve_env(spec.task.setup.env, ENVIRON, "task.setup.env")}


def test_texts_are_texts_and_references_are_looked_up(load: Load) -> None:
    env, setup = "{CI: 'true', TZ: UTC}", "{TOKEN: 'env:CI_TOKEN', A: 'literal:env:B'}"
    assert task(load, env, setup) == {"CI": "true", "TZ": "UTC", "TOKEN": "x", "A": "env:B"}


@pytest.mark.parametrize(
    ("env", "setup", "said"),
    [
        ("{TOKEN: 'env:CI_TOKEN'}", "{}", "only a set-up may be given"),
        ("{}", "{TOKEN: 'env:NOWHERE'}", "NOWHERE, which is not set"),
        ("{'A B': x}", "{}", "no name of a variable"),
        ("{LD_PRELOAD: x.so}", "{}", "write it into the command"),
        ("{}", "{GCONV_PATH: x}", "write it into the command"),
    ],
)
def test_what_cannot_be_given_is_refused_with_its_place(
    load: Load, env: str, setup: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        task(load, env, setup)
    assert "task.yaml:" in caught.value.path
