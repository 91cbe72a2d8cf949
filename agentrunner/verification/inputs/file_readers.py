"""Programs that look at files and run none: a command is about the files it passes to them."""

from __future__ import annotations

COMPARES = frozenset("diff cmp comm colordiff sdiff".split())
"""For these, the other file that they get decides."""
LOOKS = frozenset("grep egrep fgrep rg test [ [[ jq wc ls stat cat head tail file md5sum".split())
ALSO_LOOK = frozenset(
    """! : cd echo printf true false exit find xargs cut awk git od xxd hexdump strings
    basename dirname sha256sum sha1sum cksum paste nl seq""".split()
)
"""Programs that combine or pass on what others look at, and shell words between them."""
