"""Decide whether programs that commands execute are tests, the product, or both."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import alone
from agentrunner.verification.inputs.context import Context, Executed
from agentrunner.verification.inputs.fixtures import TEST_KITS
from agentrunner.verification.inputs.helper_code import Asked
from agentrunner.verification.inputs.product import Product
from agentrunner.verification.inputs.references import References, family_of
from agentrunner.verification.inputs.shadows import provided
from agentrunner.verification.inputs.tree import folder_of

SAYS_NO = lazy_regex(
    r"\bassert|AssertionError|\braise\b|\bsys\.exit|SystemExit|_exit\(|process\.exit|exitCode"
    r"|\bthrow\b|\bexit\s*\(|\bdie\b|\bexpect\(|\babort\(|check_call|check_output|check=True|panic"
    r"|\bfail|return\s+(?!0\s*;|EXIT_SUCCESS)[^;\n]+;|^\s*(ok|is)\b|not ok|\bexit\s+[1-9$]",
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
STARTS_OTHERS = lazy_regex(
    r"\bsubprocess\b|child_process|\bspawn|\bsystem\s*\(|\bpopen\b|exec[vl]?p?\w*\s*\(|\bexec\(|`[^`\n]+`"
)


def classify(
    context: Context, references: References, product: Product, asked: Asked
) -> tuple[set[str], dict[str, str], dict[str, str]]:
    """Sort executed programs: tests; product with the reason; unsure with the reason.

    A program that only ever comes after another one in a pipe, and that nothing in `asked` names,
    is a test: it is how tests read what the product prints.
    """
    by_path: dict[str, list[Executed]] = {}
    for one in context.executed:
        by_path.setdefault(one.path, []).append(one)
    tests: set[str] = set()
    is_product: dict[str, str] = {}
    unsure: dict[str, str] = {}
    for path, runs in by_path.items():
        if _is_read_into_another(references, path, by_path):
            continue  # judged as what a test imports, as where a build does not name it
        if path in context.collected or (
            asked
            and all(run.step.fed for run in runs)
            and _stands_between(context, product, path, asked)
        ):
            tests.add(path)
        elif all(run.step.feeds for run in runs):
            is_product[path] = "its output is what is compared"
        elif why := _why_unsure(context, references, product, path, runs, asked):
            unsure[path] = why
        elif why is None:
            is_product[path] = "it is part of the program that the tests run"
        else:
            tests.add(path)
    return tests, is_product, unsure


def _is_read_into_another(references: References, path: str, others: Collection[str]) -> bool:
    """Whether a source in C without `main` is no part of a program itself: others include it."""
    return family_of(path) == "c" and any(path in references.imports(one)[0] for one in others)


def _stands_between(context: Context, product: Product, path: str, asked: Asked) -> bool:
    used = path in product.entries or product.imported.get(path)
    return not used and not asked.names(path, context.tree.text(path) or "")


def _why_unsure(
    context: Context,
    references: References,
    product: Product,
    path: str,
    runs: list[Executed],
    asked: Asked,
) -> str | None:
    """Return why an executed program may be the product; "" for a test, None for pure product."""
    text = context.tree.text(path) or ""
    family = family_of(path)
    own = path in context.only_tested
    if family in ("c", "go", "rust") and not own and not re.search(r"\bmain\s*\(", text):
        return None
    options = {
        word.partition("=")[0] for run in runs for word in run.step.words[1:]
        if word.startswith("-") and len(word) > 2
    }  # fmt: skip
    switched = next((o for o in sorted(options) if re.search(rf"[\"'`]{re.escape(o)}\b", text)), "")
    imports = set(references.imports(path)[1])
    kit = bool(imports & TEST_KITS) or bool(
        re.search(
            r"[\"'](node:test|vitest|chai|@jest/globals|mocha)[\"']|import (unittest|pytest)", text
        )
    )
    if switched and not kit:
        return f"it checks itself with {switched}"
    if path in product.entries:
        return f"{product.entries[path]} starts it, too"
    if path in context.product_programs:
        return "it is part of a program that is built for more than tests"
    if users := product.imported.get(path):
        return f"{min(users)} imports it, too"
    if own:
        return ""
    if family == "shell" or (not family and re.match(r"#!.*\b(ba|z|da|k)?sh\b", text)):
        return _shell_script(context, references, path, text, runs, asked)
    starts = path in context.starters
    if not (starts or _reaches_other_code(context, references, path, text)):
        return "it checks itself"
    if not (kit or starts or _says_no(context, references, product, path, text)):
        return "it is run, and says no to nothing by itself"
    return ""


def _says_no(
    context: Context, references: References, product: Product, path: str, text: str
) -> bool:
    """Whether a program can fail by what it says, or by a helper that the product does not use.

    Tests in C often keep the macro that compares in a header beside them.
    """
    files, _ = references.imports(path)
    helpers = [one for one in sorted(files) if not product.imported.get(one)]
    texts = [text, *(context.tree.text(one) or "" for one in helpers[:MOST_HELPERS])]
    return any(SAYS_NO.search(one) for one in texts)


def _shell_script(
    context: Context,
    references: References,
    path: str,
    text: str,
    runs: list[Executed],
    asked: Asked,
) -> str | None:
    """Do the same for a shell script: one that only other scripts run may well be the product."""
    callers = {run.by for run in runs}
    sourced = all(run.step.words[0] in (".", "source") for run in runs)
    if not sourced:
        if _is_looked_at(context, path, text, runs, asked):
            return f"{min(callers)} runs it, and looks at what it prints"
        return ""  # a command or a recipe runs it, or a script checks its exit code
    if any(run.step.globs for run in runs) and _is_found_and_run(
        context, references, path, text, runs
    ):
        return ""
    if not DECIDES.search(text):
        return None  # its functions are called and compared
    homes = {folder_of(caller) for caller in callers} - {""}
    if any(path.startswith(f"{home}/") for home in homes):
        return ""
    return f"{min(callers)} reads it, and it checks something itself"


def _is_looked_at(
    context: Context, path: str, text: str, runs: list[Executed], asked: Asked
) -> bool:
    """Whether scripts look at what a script prints as well as at its exit code.

    It stands apart from them, and compares nothing itself.
    """
    callers = {run.by for run in runs}
    homes = {folder_of(caller) for caller in callers} - {""}
    if not callers <= context.tree.paths or any(path.startswith(f"{home}/") for home in homes):
        return False
    return not DECIDES.search(text) and (
        any(run.step.feeds for run in runs) or bool(asked and asked.names(path, text))
    )


def _is_found_and_run(
    context: Context, references: References, path: str, text: str, runs: list[Executed]
) -> bool:
    """Whether a script that a loop finds and reads is a test: nothing calls its functions by name.

    A test stands below the script that finds it, or it reaches other code. The functions of a
    library are called by their names, and a library stands by itself.
    """
    scripts = [one for one in sorted(context.tree.paths) if references.family(one) == "shell"]
    scripts = [one for one in scripts if one != path][:MOST_SCRIPTS]
    context.tree.prefetch(scripts)
    texts = [context.tree.text(one) or "" for one in scripts]
    free = [
        name
        for name in SHELL_FUNCTION.findall(text)
        if len(re.findall(alone(name), text)) == 1
        and not any(re.search(alone(name), one) for one in texts)
    ]
    if not free and SHELL_FUNCTION.search(text):
        return False
    homes = {folder_of(run.by) for run in runs} - {""}
    if any(path.startswith(f"{home}/") for home in homes):
        return True
    return any(place != folder_of(path) for place in references.mentioned(path)) or any(
        word in context.tree.paths and folder_of(word) != folder_of(path)
        for word in re.findall(r"[\w.-]+(?:/[\w.-]+)+", text)
    )


def _reaches_other_code(context: Context, references: References, path: str, text: str) -> bool:
    """Whether a program reaches anything else in the tree, or code that is still to be written."""
    files, missing = references.imports(path)
    if files or STARTS_OTHERS.search(text):
        return True
    if any(not provided(context, name) for name in missing):
        return True
    return any(place != folder_of(path) for place in references.mentioned(path))
