"""Write the tables of docs/reference/events.md from the models of events and results.

What stands between two marks, `<!-- table: NAME -->` and `<!-- end of table -->`, is written here;
the rest of the page is written by hand. The text of a row is the docstring of the class, and of
each of its fields.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from agentrunner import events, header, results

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "events.md"
MARKED = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
MOST_VALUES = 7
"""A field of more words than that says in prose what it may be."""
MOST_KEYS = 14
"""An object of more keys has a table of its own."""
PLAIN = {str: "text", int: "number", float: "number", bool: "true or false"}


@cache
def docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    """What the source says below each field of a model and of its bases."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if not issubclass(kind, BaseModel) or kind is BaseModel:
            continue
        (tree,) = ast.parse(inspect.getsource(kind)).body
        assert isinstance(tree, ast.ClassDef)
        for before, after in zip(tree.body, tree.body[1:], strict=False):
            if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
                found[ast.unparse(before.target)] = str(ast.literal_eval(after.value))
    return found


def one_line(text: str) -> str:
    """A docstring as the cell of a table; JSON has null for None."""
    text = " ".join(text.split()).removesuffix(".")
    return re.sub(r"\bNone\b", "null", text).replace("|", r"\|")


def shape(kind: Any) -> str:
    """What a value looks like: its words, the keys of an object, or what kind of value it is."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (UnionType, Union):
        kinds = [shape(one) for one in inner if one is not NoneType]
        return " or ".join([*kinds, "null"] if NoneType in inner else kinds)
    if origin is Literal or (isinstance(kind, type) and issubclass(kind, Enum)):
        words = [f"`{value}`" for value in inner or list(kind) if value != ""]
        few = 1 < len(words) <= MOST_VALUES
        return f"{', '.join(words[:-1])} or {words[-1]}" if few else "text"
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        names = [field.alias or name for name, field in kind.model_fields.items()]
        return f"`{{{', '.join(names)}}}`" if len(names) <= MOST_KEYS else "object"
    if origin is list:
        of = shape(inner[0])
        return f"`[{of.strip('`')}]`" if of.startswith("`{") else f"list of {of}s"
    return PLAIN.get(kind, "object")


def said_of(model: type[BaseModel], name: str) -> str:
    """What a model says of its field, as the middle of a sentence."""
    text = one_line(docstrings(model).get(name, ""))
    return text if text[1:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def listed(model: type[BaseModel], leave_out: Iterable[str] = ()) -> str:
    """The fields of a model in one cell, with the shape of those that are no plain values."""
    cells = []
    for name, field in model.model_fields.items():
        if name in leave_out:
            continue
        looks, said = shape(field.annotation), said_of(model, name)
        plain = looks.removesuffix(" or null") in {*PLAIN.values(), "list of texts"}
        kind = "or null" * looks.endswith(" or null") if plain else looks
        cells.append(f"`{field.alias or name}`" + f" ({kind})" * bool(kind) + f": {said}")
    return "; ".join(cell.removesuffix(": ") for cell in cells)


def keys(model: type[BaseModel]) -> str:
    """A table with a row for each key."""
    rows = ["| key | value | is |", "|---|---|---|"]
    for name, field in model.model_fields.items():
        looks = shape(field.annotation)
        rows.append(f"| `{field.alias or name}` | {looks} | {said_of(model, name)} |")
    return "\n".join(rows)


def kinds(models: Mapping[str, type[BaseModel]], base: type[BaseModel]) -> str:
    """A table with a row for each kind of event; of a result the keys follow in another table."""
    rows = ["| event | is | fields |", "|---|---|---|"]
    for kind, model in models.items():
        whole = issubclass(model, results.Result | results.PlanResult)
        fields = "see below" if whole else listed(model, base.model_fields)
        rows.append(f"| `{kind}` | {one_line(inspect.getdoc(model) or '')} | {fields} |")
    return "\n".join(rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "every-event": lambda: keys(events.RunEvent),
    "run-events": lambda: kinds(events.RUN_EVENTS, events.RunEvent),
    "header": lambda: keys(header.Header),
    "header-limits": lambda: keys(header.HeaderLimits),
    "result": lambda: keys(results.Result),
    "criterion": lambda: keys(results.CriterionResult),
    "test": lambda: keys(results.TestSummary),
    "list": lambda: keys(results.RunEntry),
    "every-plan-event": lambda: keys(events.PlanEvent),
    "plan-events": lambda: kinds(events.PLAN_EVENTS, events.PlanEvent),
    "plan-result": lambda: keys(results.PlanResult),
}


def written(page: str) -> str:
    """The page with its tables as the models are now."""
    return MARKED.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n\n{found[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), encoding="utf-8")
