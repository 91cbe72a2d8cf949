"""Reads what test tools report: the result of each test by name, never only totals.

registry   the readers, one per tool in `tools`; `reporters` are files of ours that run in tools
commands   the programs that a command runs in the end; `shell` splits its texts
files      reads report files and manifests; reports in the forms `tap`, `lines` and `xml`; `model`
           the results
names      names of tests, and comparisons of runs; `counts` totals where there are none
"""
