"""Markers around text that we did not write, so that it cannot pose as ours.

The number in a marker is keyed with the run's salt. Repository and worker cannot guess it, every
call has another one, and the same state gives the same one, which replay and golden files need.
"""

from __future__ import annotations

import hashlib
import hmac


def marker(salt: str, call_number: int, message_type: str, block: str, text: str) -> str:
    """16 hex digits that do not occur in `text`."""
    while True:
        subject = f"{call_number}|{message_type}|{block}".encode()
        number = hmac.new(salt.encode(), subject, hashlib.sha256).hexdigest()[:16]
        if number not in text:
            return number
        call_number += 1


def marked(salt: str, call_number: int, message_type: str, block: str, text: str) -> str:
    """`text` between its two markers, each on a line of its own."""
    number = marker(salt, call_number, message_type, block, text)
    body = text.rstrip("\n")
    return f"[[BEGIN {block} {number}]]\n{body}\n[[END {block} {number}]]"
