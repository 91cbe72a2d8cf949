"""A run, step by step, each step as a process of its own would do it: new loop, new options.

    run = Run(project)
    run.start([plan(), work(), finish(), assess()], FIX, test=TEST)
    assert run.result["state"] == "COMPLETE"

Steps are synchronous, so that every one of them has an event loop of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from agentrunner.engine import runs
from agentrunner.engine.attempt_run import Options
from agentrunner.engine.attempts import latest
from agentrunner.results import Result
from agentrunner.state.people import Answer, Question, QuestionKind
from agentrunner.state.run_state import TaskContext
from agentrunner.storage.run_folder import RunFolder
from agentrunner.storage.run_log import Record, RunLog
from tests.kit.metas import Item
from tests.kit.project import Project, require_bwrap

SMALL = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "tests/run.sh": "grep -q 'a + b' calc.py\n",
}
"""A bug, and a test of it that takes no time. The test command is TEST, the repair FIX."""
TEST = "sh tests/run.sh"
FIX = "sed -i 's/a - b/a + b/' calc.py"
NO_FIX = "echo '# looked at' >> calc.py"


class Run:
    """One run of a project, from `start` on; `result` is that of its latest step."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.result: dict[str, Any] = {}
        self.environ: dict[str, str] | None = None
        self.adjust: Callable[[Options], Options] = lambda options: options
        """Applied to the options of every step: another clock, a listener."""

    # -- steps ------------------------------------------------------------------------------------

    def start(
        self,
        script: Sequence[Item] | None,
        worker: str = "true",
        *,
        answers: list[Answer] | None = None,
        **task: Any,
    ) -> dict[str, Any]:
        """Begin; with `script` the shipped planner of that name plays it."""
        require_bwrap()
        if script is not None:
            replies = self.project.state_dir.parent / "replies.yaml"
            replies.write_text(json.dumps(list(script), ensure_ascii=False), "utf-8")
            meta = {"kind": "script", "script": str(replies), "max_loops": 2}
            runner_ = task.pop("runner", {})
            task["runner"] = {**runner_, "meta": {**meta, **runner_.get("meta", {})}}
        spec = self.project.spec(worker, **task)
        return self._step(lambda options: runs.start(spec, options), answers)

    def resume(self, **how: Any) -> dict[str, Any]:
        """Go on, or the next attempt."""
        return self._step(lambda options: runs.resume(self.id, options, **how))

    def answer(self, text: str, question_id: str = "") -> dict[str, Any]:
        """Answer the question of the planner."""
        return self.respond(Answer(id=question_id, kind="ask_human", text=text))

    def respond_text(self, text: str) -> dict[str, Any]:
        """Answer in words whatever is asked."""
        return self.respond(Answer(id="", kind=self.kind, text=text))

    def approve(self, question_id: str = "", edit: str = "") -> dict[str, Any]:
        """Say yes to what is asked."""
        return self.respond(Answer(id=question_id, kind=self.kind, decision="approve", edit=edit))

    def reject(self, reason: str, question_id: str = "") -> dict[str, Any]:
        """Say no to what is asked."""
        return self.respond(Answer(id=question_id, kind=self.kind, decision="reject", text=reason))

    def respond(self, answer: Answer) -> dict[str, Any]:
        """Any answer at all."""
        return self._step(lambda options: runs.respond(self.id, answer, options))

    def accept(
        self, *criteria: str, reason: str = "I looked.", unchanged: bool = False
    ) -> dict[str, Any]:
        """A person's yes after looking."""
        return self._step(
            lambda options: runs.accept(
                self.id, list(criteria), reason, "hana", options, unchanged=unchanged
            )
        )

    def accept_known_red(self, *names: str, reason: str = "No network here.") -> dict[str, Any]:
        """A person's word that these were red for another reason."""
        return self._step(
            lambda options: runs.accept(self.id, [], reason, "hana", options, known_red=names)
        )

    def cancel(self) -> dict[str, Any]:
        """End it."""
        return self._step(lambda options: runs.cancel(self.id, options))

    def _step(
        self,
        work: Callable[[Options], Awaitable[Result]],
        answers: list[Answer] | None = None,
    ) -> dict[str, Any]:
        options = self.project.options(answers)
        if self.environ is not None:
            options = replace(options, environ=self.environ)
        options = self.adjust(options)

        async def step() -> Result:
            return await work(options)

        self.result = asyncio.run(step()).as_dict()
        return self.result

    # -- what is known of it ----------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The run id."""
        return str(self.result["run_id"]) if self.result else self.ids()[0]

    def ids(self) -> list[str]:
        """Every run of the state folder."""
        return sorted(path.name for path in (self.project.state_dir / "runs").iterdir())

    @property
    def folder(self) -> RunFolder:
        """The run's folder."""
        return RunFolder.open(self.project.state_dir, self.id)

    @property
    def ending(self) -> Any:
        """State, reason and exit code."""
        return self.result["state"], self.result["reason"], self.result["exit_code"]

    @property
    def kind(self) -> QuestionKind:
        """What kind of question it waits with."""
        kind: QuestionKind = self.result["waiting"]["kind"]
        return kind

    @property
    def question(self) -> str:
        """The id of the question it waits with."""
        return str(self.result["waiting"]["id"])

    @property
    def subject(self) -> dict[str, Any]:
        """What the question is about."""
        return dict(json.loads(self.result["waiting"]["subject"]))

    def state(self) -> TaskContext:
        """The saved state."""
        return asyncio.run(latest(self.folder))

    def log(self, kind: str) -> list[Record]:
        """The records of one kind."""
        return RunLog(self.folder.log_file).records(kind)

    def path(self) -> list[str]:
        """Every state the task was in, in order, over all attempts."""
        moves = [record.data for record in self.log("state")]
        return [str(moves[0]["from"]), *(str(move["to"]) for move in moves)] if moves else []

    def calls(self) -> list[str]:
        """What the planner was asked for, attempt by attempt on the wire."""
        return [str(record.data["type"]) for record in self.log("meta_call")]

    def prompt(self, number: int = -1) -> str:
        """All that the planner was sent with one call, the latest unless told."""
        return "\n".join(message["content"] for message in self.messages[number])

    @property
    def messages(self) -> list[list[dict[str, str]]]:
        """What the planner was sent, call by call."""
        files = sorted(self.folder.planner_dir.glob("*.request.json"))
        return [json.loads(file.read_text("utf-8")) for file in files]

    def note(self) -> str:
        """The text of the task note."""
        name = self.result["note"]
        return self.project.read(name)

    def warnings(self) -> list[tuple[str, str]]:
        """Code and message of every warning that was told."""
        told = self.project.told("warning")
        return [(str(event["code"]), str(event["message"])) for event in told]


def asking(answer: Callable[[Question], Answer | None]) -> Callable[[Options], Options]:
    """Options that answer inline, with what `answer` says to the question."""
    return lambda options: replace(options, ask=answer)
