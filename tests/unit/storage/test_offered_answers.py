"""An answer that lies in a run's folder until the terminal that asks takes it."""

from __future__ import annotations

from pathlib import Path

from agentrunner.storage import offered_answers
from agentrunner.storage.run_folder import RunFolder


def test_it_is_taken_once_and_by_its_own_question_only(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "users-api-7f3a")
    assert offered_answers.take(folder, "abc") is None
    offered_answers.offer(folder, {"id": "abc", "text": "yes"})
    assert offered_answers.is_offered(folder)
    assert (folder.root / offered_answers.NAME).stat().st_mode & 0o777 == 0o600
    assert offered_answers.take(folder, "another") is None and offered_answers.is_offered(folder)
    assert offered_answers.take(folder, "abc") == {"id": "abc", "text": "yes"}
    assert offered_answers.take(folder, "abc") is None


def test_what_cannot_be_read_is_no_answer_and_can_be_withdrawn(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "users-api-7f3a")
    (folder.root / offered_answers.NAME).write_text("{torn")
    assert offered_answers.take(folder, "abc") is None
    assert offered_answers.withdraw(folder) and not offered_answers.withdraw(folder)
