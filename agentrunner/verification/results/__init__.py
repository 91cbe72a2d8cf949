"""Reads what test tools report: the result of each test by name, never only totals.

registry   the readers, one per tool in `tools`; `reporters` are files of ours that run in tools
commands   the programs that a command runs in the end; `shell`, `scripts` split its texts
files      reads report files; `junit`, `tap`, `lines`, `xml` are their forms, `model` the results
names      names of tests, and comparisons of runs; `counts` totals where there are none, `hints`
           what would give some
"""
