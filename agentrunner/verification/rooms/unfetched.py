"""Packages that a tool could not fetch or unpack, in the tools' own words.

Such a package is in no cache here, or only in part. One that no manifest names is red, in other
words: that is for the worker to add.
"""

from __future__ import annotations

from agentrunner.text.lazy_regex import lazy_regex
from agentrunner.text.mentions import speaks_of

UNRESOLVED = lazy_regex(
    r"(?m)^\[ERROR\] "
    r"(?:(?:Failed to execute goal [^:\n]\S* .*: Execution \S+ of goal \S+ failed: )?"
    r"Plugin \S+ or one of its dependencies could not be resolved"
    r"|No plugin found for prefix|Error resolving version for plugin"
    r"|Failed to execute goal on project \S+: Could not resolve dependencies for project).*"
    r"(?:offline mode|[Cc]ould not transfer|[Uu]nknown host|[Nn]ame resolution|[Cc]onnect).*$"
    r"|^\[(?:FATAL|ERROR)\] Non-resolvable parent POM .*"
    r"(?:offline mode|[Cc]ould not transfer).*$"
    r"|^\[ERROR\] Unresolveable build extension: (?!.*Could not find artifact).*?(?= @ *$| *$)"
    r"|^\[ERROR\] Could not create local repository at .*$"
    r"|^\s*> ?.*\bNo cached version (?:of \S+ )?available for offline mode\.?$"
    r"|^\s*> Could not (?:HEAD|GET) '\S+'\.\n.*$"
)
"""Messages of Maven and Gradle where a part of themselves or a dependency cannot be fetched: no
test ran. For a version that was never published they have another message, and that is red."""
NOT_FETCHED = (
    lazy_regex(
        r"(?m)^(?:go: |\S+\.go:\d+:\d+: )(?:\S+@v\S+: .*(?:\bdial tcp\b|lookup disabled|\bzip: )"
        r"|\w+ \S+/cache/download/\S*: ).*$"
    ),
    lazy_regex(
        r"(?m)^(?:go: |\S+\.go:\d+:\d+: ).*\bmissing (?P<file>go\.sum) entry\b.*(?:\n\t.+)?$"
    ),
    lazy_regex(r"(?m)^error: failed to download `.*$|^\s*download of \S+ failed$"),
    lazy_regex(r"(?m)^The git source \S+ is not yet checked out\b.*$"),
    lazy_regex(
        r"(?m)^(?P<fault>error: [^\n]*)\n(?:(?!error: )[^\n]*\n)*?[^\n]*"
        r"(?:you're using offline mode \(|but --offline was specified)"
    ),
    lazy_regex(r"(?m)^.*(?:you're using offline mode \(|but --offline was specified).*$"),
    lazy_regex(r"(?m)^\[ERROR\] error reading \S+/\.m2/\S+\.jar; .*$"),
)
"""Messages of Go, Cargo, Bundler and Maven's compiler. Where there is a `fault`, it says which
package it is."""
INSTALLED_IN_PART = lazy_regex(
    r"(?m)^(?P<fault>(?:Error: )?Cannot find module '\S+')\s*\n"
    r"Require stack:\s*\n- \S*/node_modules/\S+$"
)
"""Node's message about a module that an installed package, the first of the stack, asks for."""


def unfetched(output: str, wanted: str) -> str:
    """The message about a package that could not be fetched, in the words of any tool; else "".

    A lock file that `wanted`, the text of the task, names may be what the worker is to write.
    """
    for pattern in NOT_FETCHED:
        found = pattern.search(output)
        parts = found.groupdict() if found else {}
        if found and not speaks_of(wanted, parts.get("file") or ""):
            return " ".join((parts.get("fault") or found[0]).split())
    if why := unresolved(output):
        return why
    if partly := INSTALLED_IN_PART.search(output):
        return f"{partly['fault']}, which an installed package needs: node_modules is incomplete"
    return ""


def unresolved(output: str) -> str:
    """The message of Maven or Gradle about a part of the build that could not start; else ""."""
    found = UNRESOLVED.search(output)
    return " ".join(found[0].split()) if found else ""
