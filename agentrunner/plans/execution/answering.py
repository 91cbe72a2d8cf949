"""A person's answer to a question of a plan: checked, without secrets, and kept in its store."""

from __future__ import annotations

import os
from pathlib import Path

from agentrunner.execution.credentials import secrets_in
from agentrunner.plans.conversation import check_message
from agentrunner.plans.execution.answers import asked_by
from agentrunner.plans.execution.plan_budget import raise_budget
from agentrunner.plans.store import BUDGET, OpenQuestion, PlanStore
from agentrunner.storage.plan_folder import PlanFolder
from agentrunner.text.redaction import Redactor
from agentrunner.text.times import stamp_now


def answer_question(
    folder: PlanFolder, name: str, text: str, *, repo: Path, state_dir: Path
) -> OpenQuestion:
    """Keep an answer to the question of a number, of a task or about the budget; return it.

    An answer about the budget raises the plan's limit. Raises UsageError (`unknown-question`,
    `wrong-answer`, `policy-breach`, …); then the question stays open. Blocks.
    """
    text = Redactor(secrets_in(os.environ)).redact(text)
    check_message(text)
    store = PlanStore(folder.plan)
    found = asked_by(store, name)
    if found.task_id == BUDGET:
        raise_budget(folder, store.load(), text, repo=repo, state_dir=state_dir, environ=os.environ)
    return store.answer(found.id, text, stamp_now())
