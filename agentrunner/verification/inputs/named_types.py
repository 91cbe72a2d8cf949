"""Source files that are used by the name of the type they declare, where no import names a file.

Java, Kotlin, C#, Swift and others: what a file imports is not followed to another file, but a
file is called like the type in it, and whoever uses the type says its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentrunner.verification.inputs.references import References
from agentrunner.verification.syntax.tokens import lexical_family, tokens

_DECLARES = r"\b(?:class|interface|enum|record|struct|object|trait|protocol|actor|module)\s+{}\b"


def used_by_type(references: References, code: Iterable[str], users: Iterable[str]) -> bool:
    """Whether any of these files declares a type of its own name that one of the users says.

    A word in a text or a comment is no use. A name that two files have says nothing: one of them
    may be a copy that is read as data.
    """
    types = set()
    for path in code:
        name = path.rpartition("/")[2].partition(".")[0]
        declared = re.search(_DECLARES.format(re.escape(name)), references.tree.text(path) or "")
        if declared and references.only_file(name, path) == [path]:
            types.add(name)
    if not types:
        return False
    word = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(types)))})\b")
    texts = ((path, references.tree.text(path) or "") for path in users)
    return any(word.search(text) and _names(path, text, types) for path, text in texts)


def _names(path: str, text: str, types: set[str]) -> bool:
    source = text.encode("utf-8", "replace")
    family = lexical_family(path, source)
    if family is None:
        return False
    return any(one.kind == "name" and one.text in types for one in tokens(source, family))
