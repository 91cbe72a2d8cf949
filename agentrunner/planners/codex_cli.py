"""OpenAI's Codex CLI as the planner: `codex exec --output-schema`. Tested with 0.169.0.

It sends the schema to the provider and does not look at the answer. The answer is taken from its
event stream: `-o FILE` has the same text, in a file that the sandbox could have made a link.
"""

from __future__ import annotations

import json

from agentrunner.planners.cli_base import CliAnswer, CliCall, CliPlanner
from agentrunner.workers.base import WorkerCommand
from agentrunner.workers.codex import KEY_ENV, provider_table
from agentrunner.workers.streams import count_of, dict_of, parse_object, text_of

_QUIET = (
    # Each of these phones home, or costs 5 s where there is no network.
    *("--disable", "plugins", "-c", "analytics.enabled=false"),
    *("-c", "check_for_update_on_startup=false"),
    # What a planner has no use for; half of each request would describe it.
    *("--disable", "multi_agent", "--disable", "image_generation", "--disable", "goals"),
    *("--disable", "sleep_tool", "-c", "web_search=disabled"),
    *("-c", "shell_environment_policy.ignore_default_excludes=false"),
)
_NO_COMMANDS = ("--disable", "shell_tool", "--disable", "unified_exec")
"""Where there is no repository, there is nothing to run a command on."""


class CodexPlanner(CliPlanner):
    """See the module."""

    kind = "codex-cli"
    url_variable = "OPENAI_BASE_URL"
    takes_schema = "that its provider holds answers to; the CLI does not look"

    def command(self, call: CliCall, program: str, model: str | None) -> WorkerCommand:
        """`codex exec`, whose session is not kept."""
        place = call.place
        home, scratch = place.home / "codex", place.home / "tmp"
        schema, system = place.home / "schema.json", place.home / "system.md"
        # It is not to repeat anything: that is counted, recorded and waited for by us.
        provider = provider_table(call.base_url, retries=0, idle_sec=300)
        argv = (
            *(program, "exec", "--json", "--ephemeral", "--skip-git-repo-check"),
            *("-C", str(place.work)),
            *(("--output-schema", str(schema)) if call.schema else ()),
            *(("-m", model) if model else ()),
            *("-c", f"model_instructions_file={json.dumps(str(system))}"),
            *("-c", "model_provider=ar", "-c", f"model_providers.ar={provider}"),
            # Codex's own sandbox inside ours fails without a word and with exit 0.
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
        """The last message of a turn that was completed."""
        text, error, completed = "", "", False
        usage: dict[str, object] = {}
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
