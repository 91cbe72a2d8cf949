"""What a repository and this machine offer: for `init`, `doctor`, `test: auto` and who works.

Repositories are read as data: small regular files inside them, nothing executed, git not asked.
"""
