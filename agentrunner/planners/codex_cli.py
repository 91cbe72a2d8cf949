"""OpenAI's Codex CLI as the planner: `codex exec --output-schema`. Tested with 0.169.0.

It sends the schema to the provider and does not check the answer. The answer is taken from the
event stream: `-o FILE` has the same text, but in a file that the sandbox could have replaced by a
link.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from agentrunner.planners.cli_base import CliAnswer, CliCall, CliPlanner
from agentrunner.workers.base import WorkerCommand
from agentrunner.workers.codex import KEY_ENV, provider_table
from agentrunner.workers.streams import count_of, dict_of, parse_object, text_of

_QUIET = (
    # Each of these phones home, or costs 5 s where there is no network.
    *("--disable", "plugins", "-c", "analytics.enabled=false"),
    *("-c", "check_for_update_on_startup=false"),
    # A planner does not need these; their descriptions would fill half of each request.
    *("--disable", "multi_agent", "--disable", "image_generation", "--disable", "goals"),
    *("--disable", "sleep_tool", "-c", "web_search=disabled"),
    *("-c", "shell_environment_policy.ignore_default_excludes=false"),
)
_NO_COMMANDS = ("--disable", "shell_tool", "--disable", "unified_exec")
"""Without a repository there is nothing to run a command on."""


class CodexPlanner(CliPlanner):
    """Runs `codex exec` for each message."""

    kind = "codex-cli"
    url_variable = "OPENAI_BASE_URL"
    takes_schema = "that its provider holds answers to; the CLI does not look"

    def command(self, call: CliCall, program: str, model: str | None) -> WorkerCommand:
        """Return the `codex exec` command line; its session is not kept."""
        place = call.place
        home, scratch = place.home / "codex", place.home / "tmp"
        schema, system = place.home / "schema.json", place.home / "system.md"
        # No retries by the CLI: we count, record and wait for failed calls ourselves.
        provider = provider_table(call.base_url, retries=0, idle_sec=300)
        argv = (
            *(program, "exec", "--json", "--ephemeral", "--skip-git-repo-check"),
            *("-C", str(place.work)),
            *(("--output-schema", str(schema)) if call.schema else ()),
            *(("-m", model) if model else ()),
            *("-c", f"model_instructions_file={json.dumps(str(system))}"),
            *("-c", "model_provider=ar", "-c", f"model_providers.ar={provider}"),
            # Inside our sandbox Codex's own one fails silently, with exit 0.
            *(
                ("--dangerously-bypass-approvals-and-sandbox",)
                if place.isolated
                else ("-s", "read-only")
            ),
            *_QUIET,
            *(() if place.repo else _NO_COMMANDS),
            "-",
        )
        return WorkerCommand(
            argv=argv,
            stdin=call.prompt.encode(),
            # Codex refuses a CODEX_HOME under TMPDIR, and its own sandbox then fails silently.
            env={
                "CODEX_HOME": str(home),
                "TMPDIR": str(scratch),
            },
            key_env=KEY_ENV,
            folders=(home, scratch),
            files={
                **({schema: json.dumps(call.schema)} if call.schema else {}),
                system: call.system,
            },
        )

    def read(self, stdout: bytes) -> CliAnswer:
        """Return the last message of a completed turn."""
        text, error, completed = "", "", False
        usage: Mapping[str, object] = {}
        for line in stdout.decode("utf-8", "replace").splitlines():
            event = parse_object(line) or {}
            item = dict_of(event.get("item"))
            match event.get("type"):
                case "item.completed" if item.get("type") == "agent_message":
                    text = text_of(item.get("text"))
                case "error":
                    error = text_of(event.get("message"))
                case "turn.failed":
                    error = text_of(dict_of(event.get("error")).get("message")) or error
                case "turn.completed":
                    completed, usage = True, dict_of(event.get("usage"))
        return CliAnswer(
            text=text if completed else "",
            completed=completed,
            input_tokens=count_of(usage.get("input_tokens")),
            cached_tokens=count_of(usage.get("cached_input_tokens")),
            output_tokens=count_of(usage.get("output_tokens")),
            error="" if completed else error,
        )
