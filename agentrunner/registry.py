"""Short names to classes, imported only when asked for.

An adapter that is not used costs nothing, and an unknown name is answered with the known ones.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

from agentrunner.errors import UsageError

SANDBOXES = {
    "docker": "agentrunner.sandboxes.docker:DockerSandbox",
    "bwrap": "agentrunner.sandboxes.bwrap:BwrapSandbox",
    "none": "agentrunner.sandboxes.local:LocalSandbox",
}
WORKERS = {
    "codex-cli": "agentrunner.workers.codex:CodexWorker",
    "claude-code": "agentrunner.workers.claude:ClaudeWorker",
    "gemini-cli": "agentrunner.workers.gemini:GeminiWorker",
    "qwen-code": "agentrunner.workers.qwen:QwenWorker",
    "opencode": "agentrunner.workers.opencode:OpencodeWorker",
    "copilot-cli": "agentrunner.workers.copilot:CopilotWorker",
    "cursor-cli": "agentrunner.workers.cursor:CursorWorker",
    "aider": "agentrunner.workers.aider:AiderWorker",
    "mini-swe-agent": "agentrunner.workers.mini:MiniWorker",
    "command": "agentrunner.workers.command:CommandWorker",
    "mock": "agentrunner.workers.mock:MockWorker",
}
LOGINS = {
    "codex-cli": "agentrunner.workers.codex_login:CodexLogin",
    "claude-code": "agentrunner.workers.claude_login:ClaudeLogin",
}
METAS = {
    "openai-chat": "agentrunner.planners.openai_chat:OpenAIChatMeta",
    "chat": "agentrunner.planners.chat:ChatMeta",
    "codex-cli": "agentrunner.planners.codex_cli:CodexMeta",
    "claude-code": "agentrunner.planners.claude_code:ClaudeMeta",
    "mock": "agentrunner.planners.mock:MockMeta",
    "script": "agentrunner.planners.script:ScriptMeta",
    "checklist": "agentrunner.planners.checklist:ChecklistMeta",
}

ECOSYSTEMS = ("go", "cargo", "maven", "gradle", "uv", "pip", "npm", "yarn", "pnpm", "nuget", "gem")
"""Whose package caches a box can be shown."""


def load(table: dict[str, str], name: str, what: str) -> Any:
    """The class registered under `name`; raises UsageError with the known names."""
    if name not in table:
        near = difflib.get_close_matches(name, table, n=1)
        raise UsageError(
            f'{what} "{name}" is not known. Known: {", ".join(table)}.',
            code="unknown-kind",
            remedy=f"did you mean {near[0]}?" if near else "",
        )
    module, _, attribute = table[name].partition(":")
    return getattr(import_module(module), attribute)
