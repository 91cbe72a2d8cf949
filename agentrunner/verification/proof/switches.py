"""Whether tests turn on what the work adds and leaves off: the product as delivered does not do it.

A switch is a name that the work sets to false. A test that sets it to true shows what the product
would do. Where the requirements name the switch, that is what they ask for. An argument is one
where they write the function with its parameters, and without that one, or where they leave
nothing to whoever calls: "a cart above 100 euros gets 10 percent off".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial

from agentrunner.git.snapshots import Snapshots
from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.proof.other_tests import red_in_other_words
from agentrunner.verification.syntax.words import signatures
from agentrunner.verification.target import Run, Target
from agentrunner.verification.world import SnapshotTrees

OFF = lazy_regex(rb"(?<![\w-])(?P<name>[A-Za-z_]\w*)[\"']?\s*(?::\s*\w+\s*)?[:=]\s*(?:[Ff]alse)\b")
HEAD = lazy_regex(rb"(?:\bdef|\bfunction|\bconstructor|\bfn|\bfunc)\s*\w*\s*\(([^()]*)\)")
OFFERS = lazy_regex(
    r"(?i)\b(?:option\w*|flag|switch\w*|parameter|argument|keyword|mode|allow\w*|can|may|could|support\w*"
    r"|choos\w+|choice|enabl\w+|opt|opt-?in|setting|config\w*|want\w*|if|when|unless|whether|default\w*"
    r"|toggle|either|also|callers?|users?|dry|verbose|strict|lenient|force)\b"
    r"|オプション|引数|設定|場合|モード|選択|できる"
)
"""Words of a text that may leave something to whoever calls."""
WHERE_OFF = "it passes only where it turns on `{}`, which the work adds and leaves off"
MOST = 5
"""So many switches are tried."""


async def find_switched_on(
    run: Run,
    target: Target,
    snapshots: Snapshots,
    world: SnapshotTrees,
    places: Mapping[str, Sequence[str]],
    asked: str,
) -> dict[str, str]:
    """Tests at `places`, by path, that fail where the switches stay off, each with the reason.

    Raises what running in rooms raises.
    """
    found: dict[str, str] = {}
    switches = await asyncio.to_thread(_switches, snapshots, world, asked)
    for switch in sorted(switches)[:MOST]:
        off = partial(_off_in, switch=switch, handed=switches[switch])
        red = await red_in_other_words(run, target, snapshots, world, places, off)
        found |= dict.fromkeys(red, WHERE_OFF.format(switch))
    return found


def _switches(snapshots: Snapshots, world: SnapshotTrees, asked: str) -> dict[str, bool]:
    """Names that the work sets to false, and that neither the old files nor people name. Blocks.

    The values are whether one is a parameter more than people write.
    """
    read, read_old = snapshots.reader(world.new), snapshots.reader(world.old)
    added: set[str] = set()
    written = signatures(asked, bare=True)
    handed: set[str] = set()
    for path in world.product:
        text, before = read(path) or b"", read_old(path) or b""
        found = {hit["name"].decode() for hit in OFF.finditer(text)}
        added |= {name for name in found if not re.search(to_bytes(rf"\b{name}\b"), before)}
        heads = [re.search(to_bytes(rf"(?<!\w){one}\s*\(([^()]*)\)"), text) for one in written]
        if not heads and not OFFERS.search(asked):
            heads = list(HEAD.finditer(text))
        handed |= {
            name
            for name in found
            if any(head and re.search(to_bytes(rf"\b{name}\b"), head[1]) for head in heads)
        }
    named = {name for name in added if re.search(rf"(?<!\w){name}(?!\w)", asked)}
    return {name: name in handed for name in added - named}


def _off_in(_path: str, text: bytes, *, switch: str, handed: bool) -> bytes:
    return left_off(text, switch, handed=handed)


def left_off(source: bytes, switch: str, *, handed: bool = False) -> bytes:
    """A source that leaves a switch off where it turned it on: `"ACTIVE", True`, `active = true`.

    An argument of that name is none, but where it is `handed`: `run(active=True)` is what callers
    say.
    """
    if handed:
        on = re.compile(to_bytes(rf"(?P<head>(?<![\w.]){switch}\s*[=:]\s*)(?P<on>[Tt])rue\b"))
        source = on.sub(
            lambda hit: hit["head"] + (b"F" if hit["on"] == b"T" else b"f") + b"alse", source
        )
    on = re.compile(
        to_bytes(
            rf"(?P<head>[\"'`](?:[\w./:]+[./:])?{switch}[\"'`]\s*,\s*|\.{switch}\s*=\s*)"
            r"(?P<on>[Tt])rue\b"
        )
    )
    return on.sub(lambda hit: hit["head"] + (b"F" if hit["on"] == b"T" else b"f") + b"alse", source)
