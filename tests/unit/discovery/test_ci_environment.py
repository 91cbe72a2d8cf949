"""Which variables of CI a task is offered: language, zone and CI, where CI says one thing."""

from pathlib import Path

import pytest

from agentrunner.discovery.ci_environment import CiEnvironment, ci_environment

CI = ".github/workflows/ci.yml"
STEPS = "    steps:\n      - run: pip install .\n"
TOKENS = "env:\n  TZ: Asia/Tokyo\n  LC_ALL: C.UTF-8\n  API_TOKEN: abc\n  CI: true\n  LANGUAGE: ja\n"

CASES: dict[str, tuple[str, dict[str, str]]] = {
    "of the workflow, and nothing else of it": (
        f"{TOKENS}jobs:\n  a:\n{STEPS}      - run: pytest -q\n",
        {"CI": "true", "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo"},
    ),
    "of the job and of the step": (
        f"jobs:\n  a:\n    env:\n      LANG: de_DE.UTF-8\n{STEPS}"
        "      - run: pytest -q\n        env:\n          TZ: UTC\n",
        {"LANG": "de_DE.UTF-8", "TZ": "UTC"},
    ),
    "not of a job that runs no tests": (
        f"jobs:\n  a:\n    env:\n      TZ: UTC\n{STEPS}  b:\n{STEPS}      - run: pytest -q\n",
        {},
    ),
    "not where steps differ": (
        f"jobs:\n  a:\n    env:\n      TZ: UTC\n{STEPS}      - run: pytest -q\n"
        f"  b:\n    env:\n      TZ: Asia/Tokyo\n{STEPS}      - run: pytest -q\n",
        {},
    ),
    "not where only some set it": (
        f"jobs:\n  a:\n{STEPS}      - run: pytest -q\n"
        f"  b:\n    env:\n      TZ: UTC\n{STEPS}      - run: pytest -q\n",
        {},
    ),
    "not what means something in CI alone": (
        f"env:\n  TZ: ${{{{ matrix.tz }}}}\n  LANG: $(locale)\njobs:\n  a:\n{STEPS}"
        "      - run: pytest -q\n",
        {},
    ),
    "no file": ("", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_what_ci_sets_for_the_tests(tmp_path: Path, case: str) -> None:
    text, expected = CASES[case]
    (tmp_path / CI).parent.mkdir(parents=True)
    if text:
        (tmp_path / CI).write_text(text)
    found = ci_environment(tmp_path)
    assert found == CiEnvironment(expected, CI if expected else "")


def test_gitlabs_variables_count_too(tmp_path: Path) -> None:
    text = "variables:\n  TZ: UTC\ntest:\n  variables:\n    CI: 1\n  script:\n    - pytest -q\n"
    (tmp_path / ".gitlab-ci.yml").write_text(text)
    found = ci_environment(tmp_path)
    assert found.env == {"CI": "1", "TZ": "UTC"}
    assert found.text == '{CI: "1", TZ: "UTC"}'
    assert found.without(["CI"]).text == '{TZ: "UTC"}'
