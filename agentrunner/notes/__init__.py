"""The task note: what a reviewer reads to decide, and another agent to go on.

`view` gathers the facts, `render` words them in English or Japanese, `writer` puts the file in
the repository without following anything that a worker may have planted there.
"""
