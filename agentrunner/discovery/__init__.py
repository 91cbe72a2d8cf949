"""What a repository and this machine offer: for `init`, `doctor`, `test: auto` and who works.

Repositories are read as data: small regular files inside them, nothing executed, git not asked.
"""

from agentrunner.discovery.candidates import candidates_of
from agentrunner.discovery.ci_environment import ci_environment
from agentrunner.discovery.git import read_branch
from agentrunner.discovery.machine import Offer, available_planners, available_workers
from agentrunner.discovery.repository import FoundCommand, detect_setup, detect_test, detect_tests
from agentrunner.discovery.services import likely_lacking
from agentrunner.discovery.set_up import LOCKED, propose_setup
from agentrunner.discovery.starter import render_task_file

__all__ = [
    "LOCKED",
    "FoundCommand",
    "Offer",
    "available_planners",
    "available_workers",
    "candidates_of",
    "ci_environment",
    "detect_setup",
    "detect_test",
    "detect_tests",
    "likely_lacking",
    "propose_setup",
    "read_branch",
    "render_task_file",
]
