"""Statements that ask with values: made to report these when they fail, or to fail with them.

Python, JavaScript and TypeScript. Pure.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Sequence

from agentrunner.verification.syntax.asked_values import AskedCall
from agentrunner.verification.syntax.edits import Edit, replaced

MARK = "agentrunner saw "
PYTHON = """

def {name}(number, asks, values):
    plain = (str, int, float, bool)
    try:
        told = [one if isinstance(one, plain) and len(str(one)) < 200 else None for one in values()]
        told = "{mark}%d %s" % (number, __import__("json").dumps(told))
    except Exception:
        return asks()
    try:
        good = asks()
    except BaseException:
        raise AssertionError(told) from None
    if good is False:
        raise AssertionError(told)
    return good


def {name}_again(was, asks, values):
    try:
        now = values()
        same = all(w is None or n == w or str(n) == str(w) for n, w in zip(now, was))
    except Exception:
        same = False
    if same:
        raise AssertionError("asked again")
    return asks()
"""
SCRIPT = """

function {name}(number{any}, asks{any}, values{any}){any} {{
  const plain = (one{any}) => ["string", "number", "boolean"].includes(typeof one);
  let told = "";
  try {{
    const all = values().map((one{any}) => (plain(one) && String(one).length < 200 ? one : null));
    told = "{mark}" + number + " " + JSON.stringify(all);
  }} catch (_) {{
    return asks();
  }}
  let good{any} = false;
  try {{
    good = asks();
  }} catch (_) {{
    throw new Error(told);
  }}
  if (good === false) throw new Error(told);
  return good;
}}

function {name}_again(was{any}, asks{any}, values{any}){any} {{
  let same = false;
  try {{
    const now = values();
    const is = (w{any}, one{any}) => w === null || one === w || String(one) === String(w);
    same = was.every((w{any}, at{any}) => is(w, now[at]));
  }} catch (_) {{
    same = false;
  }}
  if (same) throw new Error("asked again");
  return asks();
}}
"""


def telling(call: AskedCall, language: str, number: int, name: str) -> Edit:
    """Return the edit that makes a statement report its values on failure (`name`: its helper)."""
    return _wrapped(call, language, f"{name}({number}")


def ask_again(call: AskedCall, language: str, values: Sequence[object], name: str) -> Edit:
    """Return the edit that makes a statement fail with these values; None matches any value."""
    was = repr(list(values)) if language == "python" else json.dumps(list(values))
    return _wrapped(call, language, f"{name}_again({was}")


def helper(language: str, name: str) -> str:
    """Return the source of the function that statements are wrapped in, for the end of the file."""
    text = PYTHON if language == "python" else SCRIPT
    return text.format(name=name, mark=MARK, any=": any" if language.startswith("t") else "")


def values_in(message: str, mark: str = MARK) -> dict[int, tuple[object, ...]]:
    """Return the values that statements reported in a failure message, by statement number."""
    found = {}
    for hit in re.finditer(rf"{mark}(\d+) (?=\[)", message):
        with contextlib.suppress(ValueError):
            found[int(hit[1])] = tuple(json.JSONDecoder().raw_decode(message, hit.end())[0])
    return found


def _wrapped(asked: AskedCall, language: str, call: str) -> Edit:
    text = (asked.where.text or b"").decode("utf-8", "replace")
    values = ", ".join(asked.values)
    if language == "python":
        asks = f"bool({text})" if asked.condition else f"({text})"
        asks = f"not {asks}" if asked.is_reversed else asks
        wrapped = f"{call}, lambda: {asks}, lambda: [{values}])"
        return replaced(asked.where, f"(not {wrapped})" if asked.is_reversed else wrapped)
    no = "!" * asked.is_reversed
    return replaced(asked.where, f"{no}{call}, () => {no}({text}), () => [{values}])")
