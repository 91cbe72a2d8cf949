"""Executing a plan: each task as an ordinary run, in a workspace of its own."""
