"""Decide whether programs that commands execute are tests, the product, or both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.verification.inputs.context import Context
from agentrunner.verification.inputs.fixtures import TEST_KITS
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.inputs.product import Product
from agentrunner.verification.inputs.references import References, family_by_first_line, family_of
from agentrunner.verification.inputs.shadows import provided
from agentrunner.verification.inputs.shell import Step
from agentrunner.verification.inputs.tree import folder_of

SAYS_NO = lazy_regex(
    r"\bassert|AssertionError|\braise\b|\bsys\.exit|SystemExit|_exit\(|process\.exit|exitCode"
    r"|\bthrow\b|\bexit\s*\(|\bdie\b|\bexpect\(|\babort\(|check_call|check_output|check=True|panic"
    r"|\bfail|return\s+(?!0\s*;|EXIT_SUCCESS)[^;\n]+;|^[^\S\n]*(ok|is)\b|not ok|\bexit\s+[1-9$]",
    re.MULTILINE,
)
DECIDES = lazy_regex(
    r"\bexit\s+[^0\s]|\bassert|\b(diff|cmp|grep\s+-q)\b|\breturn\s+1"
    r"|(?:\[|\btest)\s+\"?\$\{?[1-9]\}?\"?\s+(?:!?=|==|-eq|-ne)\s+\"?\$\{?[1-9]",
    re.MULTILINE,
)
"""How a shell script signals failure, or compares two values that it is given."""
SHELL_FUNCTION = lazy_regex(r"^[ \t]*(?:function[ \t]+)?([\w:.-]+)[ \t]*\(\)", re.MULTILINE)
MOST_SCRIPTS = 400
"""The most shell scripts in which calls of a function are looked for."""
MOST_HELPERS = 20
"""How many files that a program imports are searched for what signals failure."""
KIT = lazy_regex(r"[\"'](node:test|vitest|chai|@jest/globals|mocha)[\"']|import (unittest|pytest)")
STARTS_OTHERS = lazy_regex(
    r"\bsubprocess\b|child_process|\bspawn|\bsystem\s*\(|\bpopen\b|exec[vl]?p?\w*\s*\(|\bexec\(|`[^`\n]+`"
)


@dataclass
class Programs:
    """The programs that commands execute, sorted by what they are.

    A program that only ever comes after another one in a pipe, and that nothing in `asked` names,
    is a test: it is how tests read what the product prints.
    """

    context: Context
    references: References
    from_product: Product
    asked: Asked
    tests: set[str] = field(default_factory=set)
    product: dict[str, str] = field(default_factory=dict)
    """Those of the product, with the reason."""
    unsure: dict[str, str] = field(default_factory=dict)
    """Those that may be either, with the reason."""

    def __post_init__(self) -> None:
        self._runs: dict[str, list[Step]] = {}
        self._callers: dict[str, set[str]] = {}
        for one in self.context.executed:
            self._runs.setdefault(one.path, []).append(one.step)
            self._callers.setdefault(one.path, set()).add(one.by)
        for path, runs in self._runs.items():
            if self._is_read_into_another(path):
                continue  # judged as what a test imports, as where a build does not name it
            if path in self.context.collected or (
                self.asked and all(run.fed for run in runs) and self._stands_between(path)
            ):
                self.tests.add(path)
            elif all(run.feeds and not _is_read_by_a_loop(run) for run in runs):
                self.product[path] = "its output is what is compared"
            elif why := self._why_unsure(path):
                self.unsure[path] = why
            elif why is None:
                self.product[path] = "it is part of the program that the tests run"
            else:
                self.tests.add(path)

    def _text(self, path: str) -> str:
        return self.context.tree.text(path) or ""

    def _is_read_into_another(self, path: str) -> bool:
        """Whether a source in C without `main` is no program of its own: others include it."""
        if family_of(path) != "c":
            return False
        return any(path in self.references.imports(one)[0] for one in self._runs)

    def _stands_between(self, path: str) -> bool:
        used = path in self.from_product.entries or self.from_product.imported.get(path)
        return not used and not self.asked.names(path, self._text(path))

    def _why_unsure(self, path: str) -> str | None:
        """Why an executed program may be the product; "" for a test, None for pure product."""
        context, product, text = self.context, self.from_product, self._text(path)
        family = family_of(path)
        own = path in context.only_tested
        if family in ("c", "go", "rust") and not own and not re.search(r"\bmain\s*\(", text):
            return None
        options = {
            word.partition("=")[0] for run in self._runs[path] for word in run.words[1:]
            if word.startswith("-") and len(word) > 2
        }  # fmt: skip
        switched = (one for one in sorted(options) if re.search(rf"[\"'`]{re.escape(one)}\b", text))
        imports = set(self.references.imports(path)[1])
        kit = bool(imports & TEST_KITS or KIT.search(text))
        if (option := next(switched, "")) and not kit:
            return f"it checks itself with {option}"
        if path in product.entries:
            return f"{product.entries[path]} starts it, too"
        if path in context.product_programs:
            return "it is part of a program that is built for more than tests"
        if users := product.imported.get(path):
            return f"{min(users)} imports it, too"
        if own:
            return ""
        if "shell" in (family, family_by_first_line(text)):
            return self._shell_script(path, text)
        starts = path in context.starters
        if not (starts or self._reaches_other_code(path, text)):
            return "it checks itself"
        if not (kit or starts or self._says_no(path, text)):
            return "it is run, and says no to nothing by itself"
        return ""

    def _says_no(self, path: str, text: str) -> bool:
        """Whether a program can fail by what it says, or by a helper that the product does not use.

        Tests in C often keep the macro that compares in a header beside them.
        """
        files, _ = self.references.imports(path)
        helpers = [one for one in sorted(files) if not self.from_product.imported.get(one)]
        texts = [text, *map(self._text, helpers[:MOST_HELPERS])]
        return any(SAYS_NO.search(one) for one in texts)

    def _shell_script(self, path: str, text: str) -> str | None:
        """Do the same for a shell script: one that only other scripts run may be the product."""
        runs, first = self._runs[path], min(self._callers[path])
        if not all(run.words[0] in (".", "source") for run in runs):
            if self._is_looked_at(path, text):
                return f"{first} runs it, and looks at what it prints"
            return ""  # a command or a recipe runs it, or a script checks its exit code
        if any(map(_is_read_by_a_loop, runs)) and self._is_found_and_run(path, text):
            return ""
        if not DECIDES.search(text):
            return None  # its functions are called and compared
        if self._is_below_a_caller(path):
            return ""
        return f"{first} reads it, and it checks something itself"

    def _is_below_a_caller(self, path: str) -> bool:
        homes = set(map(folder_of, self._callers[path])) - {""}
        return any(path.startswith(f"{home}/") for home in homes)

    def _is_looked_at(self, path: str, text: str) -> bool:
        """Whether scripts look at what a script prints as well as at its exit code.

        It stands apart from them, and compares nothing itself.
        """
        if not self._callers[path] <= self.context.tree.paths or self._is_below_a_caller(path):
            return False
        return not DECIDES.search(text) and (
            any(run.feeds for run in self._runs[path])
            or bool(self.asked and self.asked.names(path, text))
        )

    def _is_found_and_run(self, path: str, text: str) -> bool:
        """Whether a script that a loop finds and reads is a test: nothing calls its functions.

        A test stands below the script that finds it, or it reaches other code. The functions of a
        library are called by their names, and a library stands by itself.
        """
        tree, references = self.context.tree, self.references
        scripts = [one for one in sorted(tree.paths) if references.family(one) == "shell"]
        scripts = [one for one in scripts if one != path][:MOST_SCRIPTS]
        tree.prefetch(scripts)
        texts = list(map(self._text, scripts))
        free = [
            name
            for name in SHELL_FUNCTION.findall(text)
            if len(re.findall(alone(name), text)) == 1
            and not any(re.search(alone(name), one) for one in texts)
        ]
        if not free and SHELL_FUNCTION.search(text):
            return False
        if self._is_below_a_caller(path):
            return True
        own = folder_of(path)
        return any(place != own for place in references.mentioned(path)) or any(
            word in tree.paths and folder_of(word) != own
            for word in re.findall(r"[\w.-]+(?:/[\w.-]+)+", text)
        )

    def _reaches_other_code(self, path: str, text: str) -> bool:
        """Whether a program reaches anything else in the tree, or code still to be written."""
        files, missing = self.references.imports(path)
        return (
            bool(files or STARTS_OTHERS.search(text))
            or any(not provided(self.context, name) for name in missing)
            or any(place != folder_of(path) for place in self.references.mentioned(path))
        )


def _is_read_by_a_loop(run: Step) -> bool:
    """Whether a loop over a glob reads a script into the shell that runs."""
    return bool(run.globs) and run.words[0] in (".", "source")
