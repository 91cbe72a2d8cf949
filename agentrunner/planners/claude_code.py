"""Claude Code as the planner: `claude -p --json-schema`. Tested with 2.1.197.

The schema becomes a tool; the CLI checks the tool's input, and that input is the answer. A model
that does not call the tool is nudged once; then the CLI ends successfully with nothing but prose.
"""

from __future__ import annotations

import json

from agentrunner.planners.cli_base import CliAnswer, CliCall, CliPlanner
from agentrunner.workers.base import WorkerCommand
from agentrunner.workers.claude import KEY_ENV
from agentrunner.workers.failures import kind_of_status
from agentrunner.workers.streams import count_of, dict_of, list_of, parse_object, text_of

URL_ENV = "ANTHROPIC_BASE_URL"
_READING = "Read,Grep,Glob"
"""Tools that it gets where it may read the repository."""
_UNSTRUCTURED = "error_max_structured_output_retries"


class ClaudePlanner(CliPlanner):
    """Runs `claude -p` for each message."""

    kind = "claude-code"
    url_variable = URL_ENV
    takes_schema = "that the CLI holds answers to"

    def command(self, call: CliCall, program: str, model: str | None) -> WorkerCommand:
        """Return the `claude -p` command line; its session is not kept."""
        place = call.place
        home, scratch = place.home / "claude", place.home / "tmp"
        system = place.home / "system.md"
        argv = (
            *(program, "-p", "--output-format", "json", "--no-session-persistence"),
            *(("--json-schema", json.dumps(call.schema)) if call.schema else ()),
            *("--system-prompt-file", str(system)),
            *(("--model", model) if model else ()),
            *("--permission-mode", "dontAsk", "--strict-mcp-config", "--disable-slash-commands"),
            # Settings of a readable repository could otherwise send the key to another server.
            *("--settings", json.dumps({"env": {URL_ENV: call.base_url}})),
            # Nothing but what we pass; with --bare the CLI ignores a login's token, so not for a
            # login.
            *(() if call.shown.token_env else ("--bare",)),
            *_tools(call),
        )
        return WorkerCommand(
            argv=argv,
            stdin=call.prompt.encode(),
            env={
                "CLAUDE_CONFIG_DIR": str(home),
                "CLAUDE_CODE_TMPDIR": str(scratch),
                "TMPDIR": str(scratch),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                # We count, record and wait for failed calls ourselves.
                "CLAUDE_CODE_MAX_RETRIES": "0",
                "DISABLE_AUTOUPDATER": "1",
                URL_ENV: call.base_url,
            },
            key_env=KEY_ENV,
            folders=(home, scratch),
            files={system: call.system},
        )

    def read(self, stdout: bytes) -> CliAnswer:
        """Return the input of the schema's tool; else the prose, which our parser judges."""
        result = parse_object(stdout.decode("utf-8", "replace").strip()) or {}
        if result.get("type") != "result":
            return CliAnswer()
        text = text_of(result.get("result"))
        failed = bool(result.get("is_error"))
        unstructured = result.get("subtype") == _UNSTRUCTURED
        if "structured_output" in result and not failed:
            text = json.dumps(result["structured_output"], ensure_ascii=False)
        elif unstructured:
            text = "; ".join(map(text_of, list_of(result.get("errors"))))
        usage = dict_of(result.get("usage"))
        cached = count_of(usage.get("cache_read_input_tokens"))
        fresh = ("input_tokens", "cache_creation_input_tokens")
        cost = result.get("total_cost_usd")
        return CliAnswer(
            text=text if unstructured or not failed else "",
            completed=unstructured or not failed,
            input_tokens=cached + sum(count_of(usage.get(name)) for name in fresh),
            cached_tokens=cached,
            output_tokens=count_of(usage.get("output_tokens")),
            usd=float(cost) if isinstance(cost, int | float) else None,
            model=next(iter(dict_of(result.get("modelUsage"))), ""),
            error=text if failed and not unstructured else "",
            kind=kind_of_status(result.get("api_error_status")),
        )


def _tools(call: CliCall) -> tuple[str, ...]:
    if call.place.repo is None:
        return ("--tools", "")
    return ("--tools", _READING, "--allowedTools", _READING, "--add-dir", str(call.place.repo))
