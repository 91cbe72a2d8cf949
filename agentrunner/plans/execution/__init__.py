"""Carrying a plan out: each task as an ordinary run, in a workspace of its own."""
