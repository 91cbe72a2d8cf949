"""Commands about texts, which start nothing: schema, parse, graph, explain."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from agentrunner.commands import options as opt
from agentrunner.commands.console import columns_of, show, show_json, width_of
from agentrunner.errors import ProtocolError
from agentrunner.errors.command_line import UnknownCode, UnknownSchema
from agentrunner.errors.task_files import Unreadable
from agentrunner.text.likeness import likest

Asked = Literal["plan_task", "next_action", "completion_assessment", "decompose", "plan_patch"]
"""See `protocol.message.MessageType`, which is not loaded for a text."""
SCHEMAS = ("task", "policy", "result", "event", *get_args(Asked))


@opt.with_file
def parse(
    message: Annotated[Asked, typer.Argument(metavar="TYPE", help="plan_task, next_action, …")],
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="Default: stdin.")] = "-",
    truncated: Annotated[
        bool, typer.Option("--truncated", help="The reply was cut at its length limit.")
    ] = False,
) -> int:
    """Read a reply as AgentRunner would, as one JSON object: the message, or what is wrong."""
    from agentrunner.protocol import parse_reply

    try:
        reason = "length" if truncated else "stop"
        reply = parse_reply(_bytes_of(file), message, finish_reason=reason)
    except ProtocolError as error:
        refused = {"code": error.fault, "path": error.path, "message": error.message}
        show_json({"error": refused}, ensure_ascii=False)
        return error.exit_code
    return show_json(reply.as_dict(), ensure_ascii=False)


def _bytes_of(file: str) -> bytes:
    """Return the raw reply, at most one byte more than is parsed; a model's output is data."""
    from agentrunner.protocol.parsing import MAX_REPLY_BYTES

    if file == "-":
        return sys.stdin.buffer.read(MAX_REPLY_BYTES + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(MAX_REPLY_BYTES + 1)
    except OSError as error:
        raise Unreadable(f"{file} can't be read: {error.strerror}.", path=file) from error


@opt.with_file
def schema(
    of: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Default: list the names.")
    ] = None,
) -> int:
    """A JSON Schema: of the task file, a policy file, the result, the events, or a message."""
    if of is None:
        show("\n".join(SCHEMAS))
        return 0
    show(json.dumps(_schema(of), indent=2, ensure_ascii=False))
    return 0


def _schema(name: str) -> dict[str, object]:
    if name == "task":
        from agentrunner.config.spec import TaskFile

        return TaskFile.model_json_schema()
    if name == "policy":
        from agentrunner.policy.policy_file import policy_schema

        return policy_schema()
    if name == "result":
        from agentrunner.results import result_schema

        return result_schema()
    if name == "event":
        from agentrunner.events import event_schema

        return event_schema()
    for kind in get_args(Asked):
        if name == kind:
            from agentrunner.protocol import message_schema

            return dict(message_schema(kind))
    raise UnknownSchema(f'there is no schema "{name}".', remedy="agentrunner schema")


@opt.with_file
def graph() -> int:
    """The graph as a Mermaid diagram, drawn from the graph that runs."""
    from agentrunner import environment

    environment.quiet_libraries()
    from agentrunner.graph.builder import mermaid

    show(mermaid().rstrip("\n"))
    return 0


@opt.with_file
def explain(
    code: Annotated[
        str | None,
        typer.Argument(metavar="[CODE | PAGE]", help="As in error[CODE]. Default: all codes."),
    ] = None,
    as_json: opt.OneJson = False,
) -> int:
    """What an error code means and what to do about it; or a page of the documentation."""
    if code is not None and code.endswith(".md"):
        return _show_page(code, as_json=as_json)
    from agentrunner.errors.reference import by_code, by_what, old_codes, page

    kinds = by_code()
    if code is None:
        if as_json:
            return show_json({"codes": list(kinds)})
        show(_overview(by_what()) if sys.stdout.isatty() else "\n".join(kinds))
        return 0
    code = code.partition(":")[0]  # `budget: tokens` is on the page of `budget`
    code = code if code in kinds else old_codes().get(code, code)
    if code not in kinds:
        near = likest(code, kinds)
        raise UnknownCode(
            f'there is no error code "{code}".',
            remedy=f"did you mean {near}?" if near else "agentrunner explain",
        )
    text = page(kinds[code]).rstrip("\n")
    if as_json:
        show_json({"code": code, "text": text}, ensure_ascii=False)
    else:
        _show_in_terminal(text)
    return 0


def _overview(groups: Mapping[str, Sequence[str]]) -> str:
    """Return the codes by what they are about, in lines that fit the terminal."""
    from agentrunner.screens.layout import wrap

    width = width_of(sys.stdout)
    blocks = ["\n".join([*wrap(what, width), *wrap("  ".join(codes), width, "  ")])
              for what, codes in groups.items()]  # fmt: skip
    return "\n\n".join([*blocks, "agentrunner explain CODE says what it means and what to do."])


def _show_in_terminal(text: str) -> None:
    """Show a page of Markdown: in a terminal with lines that fit it and paged, else as it is."""
    from agentrunner.commands.paging import page
    from agentrunner.screens.page import broken_to

    if columns := columns_of(sys.stdout):
        page(broken_to(text, columns), sys.stdout)
    else:
        show(text)


def _show_page(name: str, *, as_json: bool) -> int:
    """Show a page by its path below `docs/`, as messages and help name it."""
    from agentrunner.text.terminal import sanitize

    folder = _pages()
    wanted = name.removeprefix("docs/")
    pages = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*.md"))}
    if wanted not in pages:
        near = likest(wanted, pages) or "README.md"
        raise UnknownCode(f'there is no page "{wanted}".', remedy=f"agentrunner explain {near}")
    text = sanitize(pages[wanted].read_text("utf-8")).rstrip("\n")
    if as_json:
        show_json({"page": wanted, "text": text}, ensure_ascii=False)
    else:
        _show_in_terminal(text)
    return 0


def _pages() -> Path:
    """Return where the documentation is: in the wheel, or at the root of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "docs"
    return installed if installed.is_dir() else package.parent / "docs"
