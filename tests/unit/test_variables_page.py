"""The table of variables on the page of the installation, and what the code reads."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from agentrunner.config.agents import MODEL_VARIABLES
from agentrunner.execution.credentials import FORGE_TOKENS
from agentrunner.gateway.dial import PROXY_VARIABLES
from agentrunner.plans.execution.forge import remote

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text("utf-8")
NAME = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
OBJECTS = re.compile(r"(^|[._])(environ|env|environment)(\(\))?$")
"""What holds variables, as it is called in the code."""
IN_LISTS = {*MODEL_VARIABLES, *FORGE_TOKENS, *PROXY_VARIABLES, "VISUAL", "EDITOR", "COLUMNS"}
"""Read by a loop, or by a library."""
WRITTEN = {"AGENTRUNNER_EVENT", "AGENTRUNNER_RUN", "AGENTRUNNER_TEXT"}
"""Given to the commands of `--notify`, never read."""
OF_TESTS = {"AGENTRUNNER_TEST", "AGENTRUNNER_FAILPOINT", "AGENTRUNNER_CONFORMANCE_CANARY"}
OF_SYSTEM = {"HOME", "PATH", "LD_LIBRARY_PATH"}
"""Everybody has them, and nobody sets them for us."""
INSIDE = {"CA", "AGENTRUNNER_ATTACH_"}
"""Between our own processes."""
OF_LIBRARIES = {"LANGSMITH_TRACING", "LANGGRAPH_STRICT_MSGPACK", "NODE_OPTIONS"}
"""Set or switched off by us, see AGENTRUNNER_TRACE."""


def documented() -> set[str]:
    table = PAGE.partition("## Variables")[2]
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    names = {name.partition("=")[0] for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert len(names) > 30
    return names


def sources() -> Iterator[ast.Module]:
    for place in ("agentrunner", "nodes", "graph", "prompts"):
        for file in (ROOT / place).rglob("*.py"):
            if not {"reporters", "testing"} & set(file.parts):  # in sandboxes, for their suites
                yield ast.parse(file.read_bytes())
    yield ast.parse((ROOT / "cli.py").read_bytes())


def looked_up(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """Where something is looked up, and what."""
    match node:
        case ast.Call(func=ast.Attribute(value=place, attr="get"), args=[name, *_]):
            return place, name
        case ast.Subscript(value=place, slice=name, ctx=ast.Load()):
            return place, name
        case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[place]):
            return place, name
    return None


@cache
def read_by_the_code() -> set[str]:
    found: set[str] = set()
    for tree in sources():
        constants = {
            target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and str(node.value).startswith("AGENTRUNNER_"):
                found |= {str(node.value)} if NAME.fullmatch(str(node.value).rstrip("_")) else set()
            if (pair := looked_up(node)) is None or not OBJECTS.search(ast.unparse(pair[0])):
                continue
            name = pair[1].value if isinstance(pair[1], ast.Constant) else None
            if isinstance(pair[1], ast.Name):
                name = constants.get(pair[1].id)
            if isinstance(name, str) and NAME.fullmatch(name):
                found.add(name)
    return found


def test_every_variable_that_is_read_is_in_the_table() -> None:
    read = read_by_the_code() | IN_LISTS | set(remote_variables())
    assert {"AGENTRUNNER_BELL", "PAGER", "DOCKER_HOST", "OPENAI_API_KEY"} <= read  # they are seen
    apart = WRITTEN | OF_TESTS | OF_SYSTEM | INSIDE | OF_LIBRARIES
    assert read - documented() - apart == set()


def test_every_variable_of_the_table_is_read() -> None:
    known = read_by_the_code() | IN_LISTS | set(remote_variables())
    keys = {"ANTHROPIC_API_KEY", "XDG_CONFIG_HOME"}
    assert documented() - known - keys - {"…"} == set()


def remote_variables() -> Iterator[str]:
    """The variables that name a forge of one's own, and its token."""
    for by_forge in vars(remote).values():
        if isinstance(by_forge, dict) and set(by_forge) == {"github", "gitlab"}:
            for names in by_forge.values():
                if isinstance(names, tuple):
                    yield from (one for one in names if NAME.fullmatch(str(one)))
