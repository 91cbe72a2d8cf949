"""Programs that look at files and run none: what they are handed is what a command is about."""

from __future__ import annotations

COMPARES = frozenset("diff cmp comm colordiff sdiff".split())
"""The other thing that these are handed decides."""
LOOKS = frozenset("grep egrep fgrep rg test [ [[ jq wc ls stat cat head tail file md5sum".split())
ALSO_LOOK = frozenset(
    """! : cd echo printf true false exit find xargs cut awk git od xxd hexdump strings
    basename dirname sha256sum sha1sum cksum paste nl seq""".split()
)
"""Those that put together, or pass on, what others look at; words of the shell between them."""
