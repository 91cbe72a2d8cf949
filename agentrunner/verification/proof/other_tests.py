"""Whether the worker's tests still pass in other words: where they accept no other value."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.unicode import to_bytes
from agentrunner.verification.evidence.target import Target
from agentrunner.verification.proof.examination import Examination
from agentrunner.verification.results.model import Results
from agentrunner.verification.syntax.alternatives import narrowed
from agentrunner.verification.syntax.languages import language_of
from agentrunner.verification.syntax.words import options, signatures
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
MOST_SWITCHES = 5
"""So many switches are tried."""

SAME = "every test that gives `{}`, which the requirements name, also passes without it"
MOST = 3
"""So many options are tried."""

ACCEPTS_MORE = "it passes by a value that it accepts beside the one that the task names"


class PlacedTests(Struct, frozen=True):
    """Tests of a command by the paths of their files."""

    exam: Examination
    target: Target
    places: Mapping[str, Sequence[str]]

    async def red_in_other_words(self, change: Callable[[str, bytes], bytes]) -> list[str]:
        """Those in files that `change` makes different, and that fail there.

        Raises what running in rooms raises.
        """
        world = self.exam.world
        files = await asyncio.to_thread(self.files)
        made = {path: change(path, text) for path, text in files.items()}
        changed = {path: text for path, text in made.items() if text != files[path]}
        if not changed:
            return []
        tree = await asyncio.to_thread(world.snapshots.with_texts, world.new, changed)
        names = [name for path in changed for name in self.places[path]]
        ran = await self.exam.run(self.target, tree, names)
        red = {test.name for test in ran.results.red} if ran.results is not None else set()
        return [name for name in names if name in red]

    def files(self) -> dict[str, bytes]:
        """Their files in the new tree, with what these say. Blocks."""
        world = self.exam.world
        entries = world.snapshots.list(world.new)
        texts = ((path, world.now(path)) for path in self.places if path in entries)
        return {path: text for path, text in texts if text is not None}


async def find_wider_answers(tests: PlacedTests, asked: str) -> dict[str, str]:
    """Tests that fail where they accept only what `asked` names; and why.

    Raises what running in rooms raises.
    """

    def narrow(path: str, text: bytes) -> bytes:
        language = language_of(path)
        return text if language is None else narrowed(text, language, asked)

    return dict.fromkeys(await tests.red_in_other_words(narrow), ACCEPTS_MORE)


async def not_asked_for(tests: PlacedTests, asked: str, now: Results) -> str:
    """Why tests do not ask what a new option is for; else "".

    Any test that passes `now` may ask it. Raises what running in rooms raises.
    """
    for name, text in list(options(asked).items())[:MOST]:
        tree = await asyncio.to_thread(_tree_without, tests, name)
        if tree is None:
            continue
        ran = await tests.exam.run(tests.target, tree)
        if ran.results is not None and not any(now.passed(one.name) for one in ran.results.red):
            return SAME.format(text)
    return ""


def _tree_without(tests: PlacedTests, name: str) -> str | None:
    """The new tree whose tests do not give an option that is new; None where none gives one."""
    given = re.compile(to_bytes(rf"--{re.escape(name)}(?![\w-])"))
    world = tests.exam.world
    if not any(
        given.search(world.now(path) or b"") and not given.search(world.was(path) or b"")
        for path in world.product
    ):
        return None
    changed = {
        path: without_option(text, name)
        for path, text in tests.files().items()
        if given.search(text)
    }
    return world.snapshots.with_texts(world.new, changed) if changed else None


def without_option(source: bytes, name: str) -> bytes:
    """A source that does not give an option, with its value: not as an argument, nor in a line."""
    option = rf"--{re.escape(name)}(?:=[^\s\"'`,)\]]*)?"
    alone = rf"[bfr]?(?P<q>[\"'`]){option}(?P=q)"
    for pattern in (
        rf",\s*{alone}",
        rf"{alone}\s*,\s*",
        rf"(?<=[\[(])\s*{alone}\s*(?=[\])])",
        rf"\s{option}(?![\w=-])",
    ):
        source = re.sub(to_bytes(pattern), b"", source)
    return source


async def find_switched_on(tests: PlacedTests, asked: str) -> dict[str, str]:
    """Tests that fail where the switches stay off, each with the reason.

    Raises what running in rooms raises.

    A switch is a name that the work sets to false. A test that sets it to true shows what the
    product would do. Where the requirements name the switch, that is what they ask for. An argument
    is one where they write the function with its parameters, and without that one, or where they
    leave nothing to whoever calls: "a cart above 100 euros gets 10 percent off".
    """
    found: dict[str, str] = {}
    switches = await asyncio.to_thread(_switches, tests.exam.world, asked)
    for switch in sorted(switches)[:MOST_SWITCHES]:
        off = partial(_off_in, switch=switch, handed=switches[switch])
        red = await tests.red_in_other_words(off)
        found |= dict.fromkeys(red, WHERE_OFF.format(switch))
    return found


def _switches(world: SnapshotTrees, asked: str) -> dict[str, bool]:
    """Names that the work sets to false, and that neither the old files nor people name. Blocks.

    The values are whether one is a parameter more than people write.
    """
    added: set[str] = set()
    written = signatures(asked, bare=True)
    handed: set[str] = set()
    for path in world.product:
        text, before = world.now(path) or b"", world.was(path) or b""
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
    heads = [rf"[\"'`](?:[\w./:]+[./:])?{switch}[\"'`]\s*,\s*|\.{switch}\s*=\s*"]
    if handed:
        heads.insert(0, rf"(?<![\w.]){switch}\s*[=:]\s*")
    for head in heads:
        on = re.compile(to_bytes(rf"({head})([Tt])rue\b"))
        source = on.sub(lambda hit: hit[1] + (b"False" if hit[2] == b"T" else b"false"), source)
    return source
