"""The messages of a run: plan_task, next_action, completion_assessment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from agentrunner.protocol.wire import (
    MAX_ITEMS,
    Flag,
    Id,
    Line,
    Prompt,
    Remark,
    Text,
    Warnings,
    Wire,
    fault,
    is_blank,
    is_unset,
    shown,
    tidy,
)
from agentrunner.registry import canonical_worker_type
from agentrunner.text.lazy_regex import lazy_regex

MAX_CRITERIA = 50
MAX_OPTIONS = 20
Action = Literal["run_worker", "mark_complete", "ask_human", "abort"]
CHECK_KINDS = ("command", "test", "file", "pytest", "playwright", "go-test", "npm-script", "diff")
"""Kinds of check that can be executed; others are kept but count as not executable."""

MAX_TESTS = 20
"""Per criterion."""
_DECIMAL = lazy_regex(r"[0-9]{1,9}(?:\.[0-9]{1,6})?")


def _decimal(value: Any) -> Any:
    # YAML floats are read as text, so that 1.20 does not become 1.2 in a description
    return float(value) if isinstance(value, str) and _DECIMAL.fullmatch(value) else value


class CheckDraft(Wire):
    """How the planner wants a criterion decided. Which fields count depends on the kind."""

    kind: Id
    run: Line | None = None
    cwd: Line | None = None
    timeout_sec: Annotated[float, BeforeValidator(_decimal), Field(gt=0, le=86_400)] | None = None
    expect_exit: Annotated[int, Field(ge=0, le=255)] | None = None
    path: Line | None = None
    exists: Flag | None = None
    contains: Remark | None = None
    matches: Remark | None = None
    file: Line | None = None
    test_name: Line | None = None
    name: Line | None = None
    must_change: Annotated[list[Line], Field(max_length=MAX_ITEMS)] | None = None
    must_not_change: Annotated[list[Line], Field(max_length=MAX_ITEMS)] | None = None

    @model_validator(mode="after")
    def _kind_has_its_field(self) -> CheckDraft:
        needed = {"command": "run", "file": "path"}.get(self.kind)
        if needed and getattr(self, needed) is None:
            raise fault("missing", needed, f"a check of kind {self.kind} needs {needed}")
        return self


def _check_of(check: Any, path: str, warnings: Warnings) -> Any:
    """Normalize a raw check: text becomes a command, an empty check becomes None."""
    if isinstance(check, str) and check.strip():
        check = {"kind": "command", "run": check}
    if isinstance(check, dict):
        check = tidy(CheckDraft, check, f"{path}check.", warnings)
    return None if is_blank(check) else check or None


def _validated(check: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the keys that were given; raises an error that names the faulty one."""
    if check is None:
        return None
    try:
        return CheckDraft.model_validate(check).model_dump(exclude_unset=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(str(part) for part in first["loc"])
        inner = first.get("ctx", {}).get("at", "")
        code = first["type"] if first["type"] in ("missing", "placeholder") else "invalid"
        raise fault(code, ".".join(filter(None, (at, inner))), first["msg"]) from error


CheckFields = Annotated[dict[str, Any] | None, AfterValidator(_validated)]
"""A check as a plain mapping, only the fields that were given."""


class NewTest(Wire):
    """A test that is still to be written, in a file that the suite collects."""

    file: Line
    name: Line

    @field_validator("file", mode="after")
    @classmethod
    def _in_the_repository(cls, file: str) -> str:
        if file.startswith("/") or ".." in file.split("/"):
            raise fault("invalid", "", f"{shown(file)} is no path in the repository")
        return file


class CriterionDraft(Wire):
    """An acceptance criterion as planned; its status is never the planner's word."""

    id: Id = ""
    """`AC-<n>` where the planner gave none or one twice."""
    description: Text
    type: Remark = ""
    critical: Flag = True
    check: CheckFields = None
    rationale: Remark = ""
    tests: list[Line] = Field([], max_length=MAX_TESTS)
    """Tests of the suite, by name, that show this criterion when they turn green."""
    new_test: NewTest | None = None
    """Decides it where there is no check."""
    passed: Flag = False

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Make a text check a command; treat an empty check or a blank new test as none."""
        new = data.get("new_test")
        if is_blank(new) or (isinstance(new, dict) and all(is_unset(v) for v in new.values())):
            data["new_test"] = None
        tests = data.get("tests")
        tests = [tests] if isinstance(tests, str) and tests.strip() else tests or []
        return {**data, "tests": tests, "check": _check_of(data.get("check"), path, warnings)}

    @property
    def decided_by(self) -> dict[str, Any] | None:
        """Its check, else that its new test passes."""
        if self.check is not None or self.new_test is None:
            return self.check
        return {"kind": "test", "file": self.new_test.file, "name": self.new_test.name}


class PlanTask(Wire):
    """The acceptance criteria by which the task counts as done."""

    task_id: Id | None = None
    """What the planner calls the task; ours is authoritative."""
    acceptance_criteria: Annotated[list[CriterionDraft], Field(max_length=MAX_CRITERIA)]
    """Empty where the task's own criteria lack nothing; whoever asks knows whether it has any."""

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Make plain texts descriptions; give every criterion a unique id."""
        if is_blank(data.get("task_id")):
            data["task_id"] = None
        criteria = data.get("acceptance_criteria")
        if isinstance(criteria, list):
            items = [{"description": item} if _is_text(item) else item for item in criteria]
            data["acceptance_criteria"] = _with_ids(items, f"{path}acceptance_criteria", warnings)
        return data


def _is_text(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _with_ids(items: list[Any], path: str, warnings: Warnings) -> list[Any]:
    """Give `AC-<n>` to criteria without an id, and to later ones that repeat an id."""
    given = [_given_id(item) for item in items]
    taken: set[str] = set(filter(None, given))
    seen: set[str] = set()
    result: list[Any] = []
    for number, (item, own) in enumerate(zip(items, given, strict=True)):
        if not isinstance(item, dict) or (own is None and not is_unset(item.get("id"))):
            result.append(item)  # no criterion, or an id of a wrong type: the model refuses it
            continue
        if own is None or own in seen:
            new = _free_id(number + 1, taken)
            taken.add(new)
            why = f"{shown(own)} is there twice" if own else "it had none"
            warnings.add("id_assigned", f"{path}.{number}.id", f"{new} assigned: {why}")
            own = new
        seen.add(own)
        result.append({**item, "id": own})
    return result


def _given_id(item: Any) -> str | None:
    value = item.get("id") if isinstance(item, dict) else None
    return str(value).strip() or None if _is_text(value) else None


def _free_id(number: int, taken: set[str]) -> str:
    while f"AC-{number}" in taken:
        number += 1
    return f"AC-{number}"


def _not_reserved(value: Any) -> Any:
    if value == "retry_with_context":
        raise fault("invalid", "", "retry_with_context is reserved; use run_worker with a prompt")
    return value


class Decision(Wire):
    """What to do next, and why."""

    action: Annotated[Action, BeforeValidator(_not_reserved)]
    reason: Text


class WorkerCall(Wire):
    """One order to a worker. All but type, mode and prompt is checked against allow-lists."""

    worker_type: Annotated[Id, AfterValidator(canonical_worker_type)]
    mode: Literal["exec", "resume"]
    prompt: Prompt
    model: Id | None = None
    flags: list[Line] = Field([], max_length=MAX_ITEMS)
    env: dict[str, Remark] = Field({}, max_length=MAX_ITEMS)
    tool_specific: dict[str, Any] = Field({}, max_length=MAX_ITEMS)
    use_stdin: Flag | None = None

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Note where a worker's name is written in another way."""
        given = data.get("worker_type")
        if isinstance(given, str) and given.strip() != (name := canonical_worker_type(given)):
            place = f"{path}worker_type"
            warnings.add("taken", place, f"{shown(given)} is taken as {shown(name)}")
        return data


class CriterionUpdate(Wire):
    """What the planner thinks of a criterion in passing; evidence decides, not this."""

    id: Id
    passed: Flag | None = None
    comment: Remark = ""


class CheckChange(Wire):
    """A check that the planner takes back, because it asks for the wrong thing."""

    id: Id
    """Of the criterion; description and weight of it stay."""
    reason: Text
    check: CheckFields = None
    """The replacement; None if the check is withdrawn."""

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Make a text check a command; treat an empty one as none."""
        return {**data, "check": _check_of(data.get("check"), path, warnings)}


class NextAction(Wire):
    """The decision of one round."""

    decision: Decision
    worker_call: WorkerCall | None = None
    """There exactly when the action is run_worker."""
    used_patterns: list[Id] = Field([], max_length=MAX_ITEMS)
    updated_acceptance_criteria: list[CriterionUpdate] = Field([], max_length=MAX_CRITERIA)
    question: Text | None = None
    """For ask_human; without one the reason is the question."""
    options: list[Line] = Field([], max_length=MAX_OPTIONS)
    changed_checks: list[CheckChange] = Field([], max_length=MAX_CRITERIA)
    """Checks of its own that it withdraws or replaces."""

    @classmethod
    def reshape(cls, data: dict[str, Any], path: str, warnings: Warnings) -> dict[str, Any]:
        """Treat a worker_call without content and a blank question as none."""
        call = data.get("worker_call")
        if isinstance(call, dict) and all(is_unset(v) or v in ([], {}) for v in call.values()):
            data["worker_call"] = None
        if is_blank(data.get("question")):
            data["question"] = None
        return data

    @model_validator(mode="after")
    def _worker_call_iff_run_worker(self) -> NextAction:
        action = self.decision.action
        if action == "run_worker" and self.worker_call is None:
            raise fault("missing", "worker_call", "run_worker needs a worker_call")
        if action != "run_worker" and self.worker_call is not None:
            raise fault("invalid", "worker_call", f"a worker_call contradicts {action}")
        return self


class CriterionVerdict(Wire):
    """The assessment's word about one criterion."""

    id: Id
    status: Literal["passed", "failed"]
    comment: Remark = ""


class CriterionQuote(Wire):
    """What a judge copies from the change for a criterion that it passed."""

    id: Id
    quote: Remark = ""
    """The line that meets the criterion; empty where there is none."""


class AssessmentDetails(Wire):
    """The older shape of an assessment."""

    passed_criteria: list[Id] = Field([], max_length=MAX_ITEMS)
    remaining_risks: list[Text] = Field([], max_length=MAX_ITEMS)


class CompletionAssessment(Wire):
    """How far the criteria are met, in the planner's eyes. Where it contradicts itself the
    more negative word counts.
    """

    summary: Text
    details: AssessmentDetails = AssessmentDetails()
    all_criteria_satisfied: Flag | None = None
    by_criterion: list[CriterionVerdict] = Field([], max_length=MAX_ITEMS)
    quotes: list[CriterionQuote] = Field([], max_length=MAX_ITEMS)
    """The answer to a judge's second question, which has nothing else; it passes nothing."""

    @model_validator(mode="before")
    @classmethod
    def _quotes_need_no_summary(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("quotes") and "summary" not in data:
            return {**data, "summary": "Quotes only."}
        return data

    @property
    def passed_criteria(self) -> list[str]:
        """Ids listed as passed in the older shape."""
        return self.details.passed_criteria

    @property
    def remaining_risks(self) -> list[str]:
        """What may still be wrong."""
        return self.details.remaining_risks

    def failed_ids(self) -> list[str]:
        """Criteria named as failed, in order, each once."""
        return list(dict.fromkeys(v.id for v in self.by_criterion if v.status == "failed"))

    def unexplained_failures(self) -> list[CriterionVerdict]:
        """Verdicts that fail a criterion without a word about it."""
        return [v for v in self.by_criterion if v.status == "failed" and not v.comment.strip()]

    def passed_ids(self) -> list[str]:
        """Criteria that every list speaking of criteria calls passed, in order, each once."""
        named = [verdict.id for verdict in self.by_criterion] + self.passed_criteria
        failed = set(self.failed_ids())
        listed = set(self.passed_criteria) or set(named)
        return [id_ for id_ in dict.fromkeys(named) if id_ in listed and id_ not in failed]

    def satisfied(self, critical_ids: Iterable[str]) -> bool:
        """Whether every critical criterion passed; one that no list names counts by
        `all_criteria_satisfied`.
        """
        passed = set(self.passed_ids())
        named = {v.id for v in self.by_criterion}.union(self.passed_criteria)
        return all(
            id_ in passed if id_ in named else self.all_criteria_satisfied is True
            for id_ in critical_ids
        )
