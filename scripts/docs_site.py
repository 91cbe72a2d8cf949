"""Hooks of mkdocs.yml: the order of pages, files outside of docs/ that they link to, and diagrams.

The pages are read on a forge, too, so their links lead to files of the repository. On the site,
such a file outside of docs/ is a page below source/.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pymdownx.superfences import fence_code_format

LOG = logging.getLogger("mkdocs.hooks.docs_site")
ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
MERMAID = ROOT / "build" / "mermaid.min.js"  # `make docs` gets it; a check does without
CSS = ".md-grid { max-width: 76rem } .md-typeset pre > code { font-size: .6rem }"
"""What a terminal of 100 columns prints is read without scrolling."""
ENTRY = re.compile(r"^(?:- |\d+\. )\[(.+?)\]\(([^)#]+)\)", re.MULTILINE)
CODE_OR_LINK = re.compile(
    r"^ *(?P<fence>`{3,}).*?^ *(?P=fence) *$|(?<=\]\()(?P<link>[^)\s#:]+)(?=[)#])",
    re.DOTALL | re.MULTILINE,
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the order of pages from the lists of docs/README.md and docs/decisions/README.md."""
    sections = re.split(r"^## ", (DOCS / "README.md").read_text("utf-8"), flags=re.MULTILINE)[1:]
    config.nav = [{"Documentation": "README.md"}]
    config.nav += [{text.partition("\n")[0]: list(_entries(text))} for text in sections]
    config.extra_css.append("assets/site.css")
    if MERMAID.exists():
        config.extra_javascript.append("assets/mermaid.min.js")
        fence = {"name": "mermaid", "class": "mermaid", "format": fence_code_format}
        config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [fence]}
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and those that these link to; and room for code."""
    files.append(File.generated(config, "assets/site.css", content=CSS))
    if MERMAID.exists():
        files.append(File.generated(config, "assets/mermaid.min.js", abs_src_path=str(MERMAID)))
    waiting = [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        if DOCS not in path.parents:
            files.append(File.generated(config, _site_name(path), content=_markdown(path)))
        links = [match["link"] for match in CODE_OR_LINK.finditer(_markdown(path))]
        linked = {(path.parent / link).resolve() for link in links if link}
        fresh = {file for file in linked - seen if file.exists() and DOCS not in file.parents}
        seen |= fresh
        waiting += sorted(fresh)
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links lead to pages of the site; MkDocs names those that lead nowhere."""
    name = page.file.src_uri
    path = ROOT / name.removeprefix("source/") if name.startswith("source/") else DOCS / name

    def on_site(match: re.Match[str]) -> str:
        target = path.parent / (match["link"] or "")
        if match["link"] is None or not target.exists():
            return match[0]
        return os.path.relpath(_site_name(target.resolve()), Path(name).parent)

    return CODE_OR_LINK.sub(on_site, markdown)


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Warn of a list, table or code block that a forge shows and the site does not."""
    forge = MarkdownIt("gfm-like", {"linkify": False}).render(page.markdown or "")
    for tag in ("<li", "<table", "<pre"):
        shown = html.count(tag)
        if shown != forge.count(tag):
            LOG.warning(
                "%s: %d times %s> here, %d times on a forge. Leave a line free above a list, "
                "and indent by four.",
                page.file.src_uri,
                shown,
                tag,
                forge.count(tag),
            )
    return html


def _entries(text: str) -> Iterator[dict[str, Any]]:
    for title, link in ENTRY.findall(text):
        path = (DOCS / link).resolve()
        if path == DOCS / "decisions" / "README.md":
            pages = [{name: f"decisions/{file}"} for name, file in ENTRY.findall(_markdown(path))]
            yield {title: [link, *pages]}
        else:
            yield {title: _site_name(path)}


def _site_name(path: Path) -> str:
    if DOCS in path.parents:
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix().removeprefix(".")  # MkDocs leaves .folders out
    return f"source/{name}{'' if path.suffix == '.md' else '.md'}"


def _markdown(path: Path) -> str:
    if path.suffix == ".md":
        return path.read_text("utf-8")
    title = f"# `{path.relative_to(ROOT)}`\n\n"
    if path.is_dir():
        names = [each.name for each in sorted(path.iterdir()) if each.name[0] not in "._"]
        return title + "".join(f"- [{name}]({path.name}/{name})\n" for name in names)
    return f"{title}````````{path.suffix[1:]}\n{path.read_text('utf-8')}\n````````\n"
