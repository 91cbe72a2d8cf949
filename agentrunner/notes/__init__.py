"""The note of a task or plan: for a reviewer to decide, and for another agent to continue.

`view` collects the facts, `render` words them in English or Japanese, `writer` puts the file into
the repository without following anything that a worker may have planted there.
"""
