"""Scenes: situations with a known right answer, to try a planner before it is trusted.

A scene is a file of data (`scene.py`). It is staged in a temporary repository, and the planner is
asked by the code of a real run (`staging.py`, `playing.py`): the same prompts, schemas, parser and
refusals. The scene's own rules grade the answer (`rules.py`), and all grades together show what a
planner can be trusted with (`verdict.py`).
"""
