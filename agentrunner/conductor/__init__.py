"""Carrying a plan out: each task as an ordinary run, in a work tree of its own."""
