"""Tests. A package, so that `from tests.kit import …` means this folder and no installed one."""
