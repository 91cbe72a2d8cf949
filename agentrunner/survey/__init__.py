"""What a repository and this machine offer: for `init`, `doctor`, `test: auto` and who works.

Repositories are read as data: small regular files inside them, nothing executed, git not asked.
"""

from agentrunner.survey.candidates import candidates_of
from agentrunner.survey.ci_surroundings import ci_surroundings
from agentrunner.survey.git import read_branch
from agentrunner.survey.machine import Offer, available_metas, available_workers
from agentrunner.survey.repository import Found, detect_setup, detect_test, detect_tests
from agentrunner.survey.set_up import LOCKED, propose_setup
from agentrunner.survey.starter import render_task_file
from agentrunner.survey.surroundings import likely_lacking

__all__ = [
    "LOCKED",
    "Found",
    "Offer",
    "available_metas",
    "available_workers",
    "candidates_of",
    "ci_surroundings",
    "detect_setup",
    "detect_test",
    "detect_tests",
    "likely_lacking",
    "propose_setup",
    "read_branch",
    "render_task_file",
]
