"""Bringing a task's work together with the rest: the merge, and what proves or breaks it."""
