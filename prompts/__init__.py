"""What models read: templates in English and Japanese, and the functions that fill them in.

The prose is in the `.jinja` files beside this module, one per message and language, each with the
parts `role`, `contract` and `request`. A run is one conversation that only grows (`assembly.py`).
Values are inserted, never made part of a template, and all text that AgentRunner did not write
itself is placed between keyed markers (`marking.py`).
"""

from agentrunner.prompts.assembly import (
    Looked,
    PromptInput,
    PromptMessage,
    Quotes,
    Repair,
    Seen,
    assemble,
    fixed_tokens,
)
from agentrunner.prompts.context_budget import ContextBudget, budget_for
from agentrunner.prompts.patterns import Pattern, choose, load_patterns, own_part, worker_prompt
from agentrunner.prompts.rounds import Round
from agentrunner.prompts.templates import render

__all__ = [
    "ContextBudget",
    "Looked",
    "Pattern",
    "PromptInput",
    "PromptMessage",
    "Quotes",
    "Repair",
    "Round",
    "Seen",
    "assemble",
    "budget_for",
    "choose",
    "fixed_tokens",
    "load_patterns",
    "own_part",
    "render",
    "worker_prompt",
]
