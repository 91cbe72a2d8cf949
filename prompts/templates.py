"""Render the template files of this package, and nothing else, strictly."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import FileSystemLoader, StrictUndefined
from jinja2.sandbox import SandboxedEnvironment

from agentrunner.config.markdown import Language


@cache
def _environment() -> SandboxedEnvironment:
    # No autoescape: the reader is a model, not a browser. Strict: a missing value fails a test
    # instead of silently being blank. Sandboxed: a second barrier, since values are never
    # templates.
    return SandboxedEnvironment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        autoescape=False,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(name: str, language: Language, **values: Any) -> str:
    """Render the template `name` (a file's stem) in `language`; raises UndefinedError for a gap."""
    template = _environment().get_template(f"{language}/{name}.jinja")
    return template.render(language=language, **values).strip()


def render_part(name: str, part: str, language: Language, **values: Any) -> str:
    """Render only the block `part` of a template."""
    template = _environment().get_template(f"{language}/{name}.jinja")
    context = template.new_context({"language": language, **values})
    return "".join(template.blocks[part](context)).strip()
