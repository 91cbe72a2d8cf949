"""Read the source of a task: a task file, a PRD with front matter, standard input, or a goal."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import BinaryIO, Literal

from msgspec import Struct

from agentrunner.config.naming import is_safe_id
from agentrunner.config.spec import TaskFile
from agentrunner.config.text_files import MAX_BYTES, decode, read_text, require_size
from agentrunner.config.yaml_text import Path as KeyPath
from agentrunner.config.yaml_text import Place, YamlTree, read_yaml
from agentrunner.errors import UsageError
from agentrunner.errors.task_files import BadEncoding, BadValue, UnknownFile, Unreadable, YamlSyntax

_MARKDOWN = frozenset({".md", ".markdown"})
_YAML = frozenset({".yaml", ".yml", ".json"})
_TOP = frozenset(TaskFile.model_fields)
_TITLE_CHARS = 80
STDIN = "standard input"


class TaskSource(Struct, frozen=True):
    """The source of a task.

    `file`: a task file or a PRD, by path; `stdin`: the text of a task file; `goal`: the
    requirements themselves; `prd`: a PRD by path, with everything else relative to the current
    directory.
    """

    kind: Literal["file", "stdin", "goal", "prd"]
    value: str


class Document(Struct, frozen=True):
    """A source as a tree in the shape of a task file."""

    tree: YamlTree
    name: str
    base_dir: Path
    """Absolute; relative paths are resolved against it."""
    text: str
    path: Path | None = None
    """The file it was read from."""
    stem: str = ""
    """The file's name without its suffix, from which an id is made."""
    title: str = ""
    """The title if the tree has none."""
    is_prd: bool = False
    """Whether the file is itself the PRD, named by the caller."""


def read_stdin(stream: BinaryIO) -> TaskSource:
    """Read the task file on standard input; raises UsageError as for a file."""
    data = stream.read(MAX_BYTES + 1)
    require_size(data, STDIN)
    return TaskSource("stdin", decode(data, STDIN))


def read_document(source: TaskSource, cwd: Path) -> Document:
    """Read a source; raises UsageError if it is unreadable or neither a task file nor a PRD."""
    match source.kind:
        case "stdin":
            tree = _task_tree(source.value, STDIN)
            return Document(tree, STDIN, cwd, source.value)
        case "goal":
            return _goal(source.value, cwd)
    path = cwd / Path(source.value).expanduser()
    text = _read(path, source.value)
    if source.kind == "prd":
        return _prd(text, source.value, path, cwd, source.value)
    # Links are not followed for the folder: relative paths are what the caller sees.
    if _is_markdown(path, text, source.value):
        return _prd(text, source.value, path, path.parent, path.name)
    tree = _task_tree(text, source.value)
    return Document(tree, source.value, path.parent, text, path, path.stem)


def _read(path: Path, name: str) -> str:
    """Return the file's text; if the file is missing, the error says how to make one."""
    try:
        return read_text(path, name=name)
    except Unreadable as error:
        if path.is_dir():
            error.remedy = f"name a task file or a PRD; for the repository: --repo {name}"
        elif not os.path.lexists(path) and not error.remedy:
            # A path with folders is probably mistyped rather than not written yet.
            new = path.stem if path.name == name and is_safe_id(path.stem) else ""
            first = f"agentrunner init {new} writes one" if new else "look at the path"
            error.remedy = f'{first}; in words: agentrunner run -g "what you want"'
        raise


def _is_markdown(path: Path, text: str, name: str) -> bool:
    suffix = path.suffix.lower()
    if suffix in _MARKDOWN or suffix in _YAML:
        return suffix in _MARKDOWN
    if re.search(r"^(version|task)\s*:", text, re.MULTILINE) or text.lstrip().startswith("{"):
        return False
    if re.match(r"\s*(---\n|#{1,6}\s)", text):
        return True
    raise UnknownFile(
        f"{name} could be a task file or a PRD.",
        path=name,
        remedy="end its name in .yaml or .md, or say --prd FILE",
    )


def _task_tree(text: str, name: str) -> YamlTree:
    tree = read_yaml(text, name)
    if not isinstance(tree.value, dict):
        empty = tree.value is None
        raise BadValue(
            f"{name} is empty." if empty else f"{name} is not a task file: it holds no settings.",
            path=name,
            remedy="agentrunner init writes one" if empty else "a PRD is a file that ends in .md",
        )
    return tree


def _goal(text: str, cwd: Path) -> Document:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadEncoding("the goal is not UTF-8 text.", path="--goal") from error
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    tree = YamlTree({"version": "1", "task": {"prd": {"text": text}}}, {(): Place("--goal")})
    return Document(tree, "--goal", cwd, text, title=first[:_TITLE_CHARS].strip())


def _prd(text: str, name: str, path: Path, base_dir: Path, prd_path: str) -> Document:
    """Convert a PRD to a task file from its front matter and its path."""
    tree = front_matter(text, name)
    if tree is None:
        tree = YamlTree({}, {(): Place(name)})
    front: dict[str, object] = tree.value
    task = front.get("task") if "task" in front else {}
    if not isinstance(task, dict):
        raise _front_error(tree, ("task",), "task must hold settings, one `key: value` a line.")
    for key in [key for key in front if key not in _TOP]:
        # Top-level `test:` is `task.test:`. So is any key that is not one of the three sections,
        # which lets the answer to a mistyped one list what is allowed here.
        if key in task:
            raise _front_error(tree, (key,), f"{key} is given twice: here and under task.")
        task[key] = front.pop(key)
        tree.move_places((key,), ("task", key))
    if "prd" in task:
        message = "task.prd cannot stand in the front matter: the PRD is this file."
        raise _front_error(tree, ("task", "prd"), message)
    task["prd"] = {"path": prd_path}
    tree.value = {"version": "1", **front, "task": task}
    return Document(tree, name, base_dir, text, path, path.stem, is_prd=True)


def _front_error(tree: YamlTree, path: KeyPath, message: str) -> UsageError:
    place = tree.place(path)
    return BadValue(message, path=place.where, source_line=place.source_line)


def front_matter(text: str, name: str) -> YamlTree | None:
    """Return the YAML between `---` lines at the very beginning, or None.

    Raises UsageError if it is not closed or not YAML.
    """
    end = _front_end(text, name)
    if end is None:
        return None
    tree = read_yaml("\n".join(text.split("\n")[1:end]), name, first_line=2)
    if tree.value is None:
        tree.value = {}
    if isinstance(tree.value, dict):
        return tree
    return None


def _front_end(text: str, name: str) -> int | None:
    """Return the index of the line that closes the front matter."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return None
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip() in ("---", "..."):
            return index
    raise YamlSyntax(
        f"the front matter of {name} is not closed.",
        path=f"{name}:1",
        source_line="---",
        remedy="end it with a line of ---",
    )


def body(text: str, name: str) -> tuple[str, int]:
    """Return a PRD without its front matter, and the file's line number where that begins."""
    if front_matter(text, name) is None:
        return text, 1
    end = _front_end(text, name) or 0
    return "\n".join(text.split("\n")[end + 1 :]), end + 2
