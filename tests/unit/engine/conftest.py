"""A repository with a task file in it."""

from tests.kit.task_files import load, repo

__all__ = ["load", "repo"]
