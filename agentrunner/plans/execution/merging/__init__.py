"""Merging a task's work with the rest: the merge, and what proves or breaks it."""
