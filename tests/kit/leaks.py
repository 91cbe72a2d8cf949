"""A secret that a worker prints in every spelling, and what of it would be found."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

SECRET = "Tok/en+\"4\\2'é&<7>-bcdefgh"


SPEAK = """
import base64, json, os, sys, time, urllib.parse
token = os.environ["TOKEN"]
raw = token.encode()
print(token); print(token, file=sys.stderr)
for before in (b"", b"u:", b"me:"):
    print(base64.b64encode(before + raw + b"@host").decode())
print(base64.urlsafe_b64encode(raw).decode(), raw.hex(), raw.hex().upper())
print(urllib.parse.quote(token, safe=""), json.dumps(token), json.dumps([json.dumps(token)]))
print(json.dumps({"commands": [{"cmd": "login " + token, "status": "passed"}]}))
sys.stdout.flush()
for half in (raw[:9], raw[9:] + b"\\n"):
    os.write(1, half); time.sleep(0.1)
os.write(1, b"x" * 65530 + raw)
sys.exit(token if FAIL else 0)
"""


def spellings() -> dict[str, bytes]:
    """The bytes to look for, by name."""
    raw = SECRET.encode()
    found = {
        "raw": raw,
        "hex": raw.hex().encode(),
        "HEX": raw.hex().upper().encode(),
        "url": quote(SECRET, safe="").encode(),
        "json": json.dumps(SECRET)[1:-1].encode(),
        "json in json": json.dumps(json.dumps(SECRET)[1:-1])[1:-1].encode(),
        "json, not ascii": json.dumps(SECRET, ensure_ascii=False)[1:-1].encode(),
    }
    for before in (b"", b"u:", b"me:"):
        middle = base64.b64encode(before + raw + b"@host")[4:-8]
        found[f"base64 after {len(before)}"] = middle
    return found
