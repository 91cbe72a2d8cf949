"""What a repository and this machine provide: for `init`, `doctor`, `test: auto` and kind `auto`.

Repositories are read as data: only small regular files inside them. Nothing is executed and git is
not run.
"""
