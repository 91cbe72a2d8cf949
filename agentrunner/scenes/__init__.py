"""Scenes: situations with a known right answer, by which a planner is tried before it is trusted.

A scene is a file of data (`model.py`). It is staged in a throw-away repository and asked about by
the code that asks in a real run (`staging.py`, `playing.py`): the same prompts, schemas, parser
and refusals. What comes back is graded by the scene's own rules (`rules.py`), and all of it
together says what a planner can be trusted with (`verdict.py`).
"""
