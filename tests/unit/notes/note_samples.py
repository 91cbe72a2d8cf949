"""Runs to write notes about: the one of the design's screens, in each way it may end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Literal

from agentrunner.config.spec import RunnerSection, TaskSection, TaskSpec
from agentrunner.execution.result import build_result
from agentrunner.notes.note_model import NoteView
from agentrunner.notes.view import build_view
from agentrunner.results import Result
from agentrunner.state.lifecycle import TaskState
from agentrunner.state.people import People, PersonDecision, PersonLine, Question
from agentrunner.state.run_state import (
    Assessment,
    Baseline,
    CheckOutcome,
    Counters,
    Criterion,
    Evidence,
    Finding,
    RedTest,
    RunInfo,
    TaskContext,
    TestOutcome,
    Verdict,
)
from agentrunner.state.state_model import FileRef
from agentrunner.storage.run_log import History, Record

Ending = Literal["COMPLETE", "UNPROVEN", "NEEDS_REVIEW", "FAILED", "WAITING", "STOPPED"]
NOW = datetime(2026, 11, 21, 14, 21, 0, tzinfo=timezone(timedelta(hours=9)))
TREE = "9c41f2e0" * 5
RUN_ID = "users-api-7f3a"

TEXTS: dict[str, Any] = {
    "en": {
        "title": "Register users over HTTP",
        "prd": "# Register users over HTTP\nPOST /users creates a user. E-mail addresses are\n"
        "unique.\n\n## Acceptance criteria\n- [ ] A valid POST returns 201 and the id\n",
        "criteria": [
            "A valid POST returns 201 and the id",
            "A taken e-mail returns 409",
            "Error texts are friendly",
            "At most 5 requests a second per client",
        ],
        "decision": "Add POST /users with validation and a unique e-mail index",
        "risk": "Addresses are compared in lower case, as answered in question 1.",
        "summary": "All endpoints work; the rate limit was left out.",
        "question": "Is Foo@x.jp the same address as foo@x.jp?",
        "options": ["the same", "different"],
    },
    "ja": {
        "title": "ユーザー登録 API",
        "prd": "# ユーザー登録 API\nPOST /users でユーザーを作成する。\n"
        "メールアドレスは一意とする。\n\n## 受け入れ条件\n- [ ] 正しい入力なら 201 と ID を返す\n",
        "criteria": [
            "正しい入力なら 201 と ID を返す",
            "登録済みのメールアドレスなら 409 を返す",
            "エラーメッセージが利用者に分かりやすい",
            "1 クライアントにつき毎秒 5 回までに制限する",
        ],
        "decision": "検証と一意制約を備えた POST /users を追加する",
        "risk": "質問 1 への回答どおり、メールアドレスは小文字にそろえて比較しています。",
        "summary": "エンドポイントはすべて動作します。回数制限は実装していません。",
        "question": "Foo@x.jp と foo@x.jp は同じアドレスですか。",
        "options": ["同じ", "異なる"],
    },
}


def spec_of(
    language: str = "en", template: str = "core", detail: str = "summary", **task: Any
) -> TaskSpec:
    texts = TEXTS[language]
    runner: dict[str, Any] = {
        "completion": task.pop("completion", None),
        "sandbox": {"kind": "bwrap"},
        "worker": {"model": "gpt-5.5-codex"},
        "note": {"template": template, "language": language, "detail": detail},
    }
    values: dict[str, Any] = {
        "task_id": "users-api",
        "title": texts["title"],
        "repo": "/home/hana/src/shop",
        "prd_text": texts["prd"],
        "base_dir": "/home/hana/src/shop",
        **task,
    }
    section = TaskSection.model_validate({"prd": {"text": values["prd_text"]}})
    return TaskSpec(task=section, runner=RunnerSection.model_validate(runner), **values)


def criteria_of(language: str, ending: Ending) -> list[Criterion]:
    one, two, three, four = TEXTS[language]["criteria"]
    begun = ending in ("WAITING", "STOPPED")
    ran = "unknown" if begun else "passed"
    second = "failed" if ending == "FAILED" else ran
    return [
        Criterion.model_validate({"id": f"AC-{number}", **fields})
        for number, fields in enumerate(
            [
                {"description": one, "status": ran, "evidence": "none" if begun else "checked"},
                {"description": two, "status": second, "evidence": "none" if begun else "checked"},
                {"description": three, "status": ran, "evidence": "none" if begun else "judged"},
                {"description": four, "critical": False},
            ],
            start=1,
        )
    ]


RED = [
    RedTest(
        name="tests/test_users.py::test_duplicate",
        file="tests/test_users.py",
        line=41,
        message="assert 500 == 409\n +  where 500 = <Response `1`|x>.status_code",
    )
]


def evidence_of(ending: Ending) -> Evidence | None:
    if ending in ("WAITING", "STOPPED"):
        return None
    red = ending == "FAILED"
    ran = [
        ("AC-1", "pytest -q tests/test_users.py::test_create", 0),
        ("AC-2", "pytest -q tests/test_users.py -k 'duplicate | taken'", int(red)),
    ]
    return Evidence(
        tree=TREE,
        test=TestOutcome(
            command="uv run pytest -q",
            reader="pytest",
            exit_code=int(red),
            passed=43 if red else 44,
            failed=int(red),
            failing=["tests/test_users.py::test_duplicate"] if red else [],
            red=RED if red else [],
            output=FileRef(path="evidence/2/test.out", size=4321),
            tail="FAILED tests/test_users.py::test_duplicate - assert 500 == 409\n" if red else "",
            duration_sec=3.8,
        ),
        checks=[
            CheckOutcome(
                criterion_id=criterion_id,
                what=what,
                outcome="failed" if exit_code else "passed",
                exit_code=exit_code,
                before="red",
            )
            for criterion_id, what, exit_code in ran
        ],
        findings=[
            Finding(code="dependencies_changed", message="…", paths=["uv.lock"], blocks=False)
        ],
        proof=[] if red else ["AC-1: `pytest -q tests/test_users.py::test_create` failed before"],
        changed_files=CHANGED,
        tests_added=2,
    )


CHANGED = ["README.md", "src/app.py", "src/users.py", "tests/test_users.py", "uv.lock"]

VERDICTS = {
    "COMPLETE": Verdict(state="COMPLETE", reason="complete"),
    "UNPROVEN": Verdict(state="COMPLETE", reason="unproven"),
    "NEEDS_REVIEW": Verdict(state="NEEDS_REVIEW", reason="loop_limit"),
    "FAILED": Verdict(state="FAILED", reason="loop_limit", text="`uv run pytest -q` exits 1."),
}


def context_of(language: str, ending: Ending) -> TaskContext:
    texts = TEXTS[language]
    evidence = evidence_of(ending)
    return TaskContext(
        run=RunInfo(
            run_id=RUN_ID,
            task_id="users-api",
            title=texts["title"],
            repo="/home/hana/src/shop",
            started_at="2026-11-21T05:02:10.000Z",
        ),
        state=TaskState(VERDICTS[ending].state if ending in VERDICTS else "RUNNING"),
        counters=Counters(loops=1, worker_runs=2, meta_calls=2),
        criteria=criteria_of(language, ending),
        baseline=Baseline(
            tree="0" * 40,
            test=TestOutcome(
                command="uv run pytest -q", exit_code=1, passed=41, failed=1, reader="pytest"
            ),
        ),
        evidence=evidence,
        assessment=Assessment(
            tree=TREE, satisfied=True, summary=texts["summary"], risks=[texts["risk"]]
        )
        if evidence
        else None,
        verdict=VERDICTS.get(ending),
        people=people_of(language),
    )


def with_known_red(language: str) -> TaskContext:
    """A run that is COMPLETE though a test is red that was red before."""
    context, red = context_of(language, "COMPLETE"), evidence_of("FAILED")
    evidence = context["evidence"]
    assert evidence is not None and red is not None and red.test is not None
    test = red.test.model_copy(update={"known_red": red.test.failing})
    return TaskContext(**{**context, "evidence": evidence.model_copy(update={"test": test})})


def people_of(language: str) -> People:
    texts = TEXTS[language]
    at = "2026-11-21T05:10:00.000Z"
    return People(
        older=[PersonLine(line="round 0, plan, Approve the plan: 4 criteria.: approve")],
        recent=[
            PersonDecision(id="q1-2", kind="ask_human", asked=texts["question"],
                           decision="answer", text=texts["options"][0], at=at, steers=True),
            PersonDecision(id="message-1", kind="message", decision="message",
                           text=texts["risk"], at=at, by="hana", round=1, steers=True),
            PersonDecision(id="accept-1", kind="acceptance", asked="AC-3", decision="accept",
                           text="read all six", at="2026-11-21T05:20:00.000Z", by="hana", round=2),
        ],
    )  # fmt: skip


def result_of(context: TaskContext, spec: TaskSpec, waiting: Question | None = None) -> Result:
    counted = {
        "meta_input_tokens": 28_000,
        "meta_output_tokens": 3_000,
        "worker_input_tokens": 390_000,
        "worker_output_tokens": 12_000,
        "wall_sec": 1121.4,
    }
    counters = context["counters"].model_copy(update=counted)
    state = TaskContext(**{**context, "counters": counters})
    return build_result(state, spec, waiting=waiting)


def question_of(language: str) -> Question:
    texts = TEXTS[language]
    return Question(
        id="3fa91c0b77de",
        kind="ask_human",
        text=texts["question"],
        options=texts["options"],
        subject="{}",
        state=TaskState.RUNNING,
    )


def record(kind: str, key: str, /, **data: Any) -> Record:
    return Record(kind, key, 1, 0, "2026-11-21T05:10:00.000Z", data)


def history_of(language: str, worker_runs: int = 2) -> History:
    texts = TEXTS[language]
    records = [
        record(
            "meta_call",
            "0",
            number=0,
            type="plan_task",
            at="2026-11-21T05:02:31.000Z",
            duration_sec=21.0,
            usage={"input_tokens": 1800, "output_tokens": 700},
            error=None,
            model="gpt-5.5",
            request={"path": "meta/0-request.yaml", "size": 5120, "sha256": ""},
            response={"path": "meta/0-response.yaml", "size": 900, "sha256": ""},
        ),
        record(
            "meta_call",
            "1",
            number=1,
            type="next_action",
            at="2026-11-21T05:10:21.000Z",
            duration_sec=18.2,
            usage={"input_tokens": 2500, "output_tokens": 300},
            error={"code": "syntax", "message": "line 3 is no YAML"},
            model="gpt-5.5",
            request={"path": "meta/1-request.yaml", "size": 6144, "sha256": ""},
            response=None,
        ),
    ]
    for number in range(worker_runs):
        worker_run_id = f"w{number + 1}"
        records.append(
            record(
                "decision",
                str(number),
                number=number,
                action="run_worker",
                reason=texts["decision"],
                loop=number,
                worker_run_id=worker_run_id,
                used_patterns=["implement_feature", "run_all_checks"],
            )
        )
        records.append(
            record(
                "worker_run",
                worker_run_id,
                worker_run_id=worker_run_id,
                worker="codex-cli",
                loop=number,
                outcome="completed",
                exit_code=0,
                started_at="2026-11-21T05:02:39.000Z",
                ended_at="2026-11-21T05:09:52.000Z",
                duration_sec=433.0,
                summary=texts["summary"],
                error="",
                output={"path": f"workers/{worker_run_id}/stdout", "size": 218_000, "sha256": ""},
                errors={"path": f"workers/{worker_run_id}/stderr", "size": 900, "sha256": ""},
                commands=[
                    {"command": "uv run pytest -q", "exit_code": 0, "status": "completed"},
                    {"command": "uv run ruff check", "exit_code": 1, "status": ""},
                ],
                changes=[{"path": "src/users.py", "kind": "modified", "added": 106, "removed": 5}],
            )
        )
    records += [
        record("decision", "9", number=9, action="mark_complete", reason=texts["summary"]),
        record("question", "q1", id="q1", kind="ask_human", text=texts["question"]),
        record("answer", "q1", id="q1", kind="ask_human", decision="answer", text="1"),
        record("human_edit", "0", paths=["docs/todo.md"], tree_before="a", tree_after="b"),
        record("warning", "edited", code="edited", message="edited while running: docs/todo.md"),
        record(
            "acceptance",
            "0",
            criteria=["AC-3"],
            reason="read all six",
            by="hana",
            at="2026-11-21T05:20:00.000Z",
            tree=TREE,
        ),
    ]
    kept = people_of(language).recent
    records += [record("person", one.id, **one.model_dump(mode="json")) for one in kept]
    return History(tuple(records))


def view_of(
    language: str = "en",
    ending: Ending = "COMPLETE",
    *,
    spec: TaskSpec | None = None,
    context: TaskContext | None = None,
    history: History | None = None,
    redact: Callable[[str], str] = str,
    tail: Callable[[FileRef], str] = lambda ref: f"the end of {ref.path}\n",
) -> NoteView:
    spec = spec or spec_of(language)
    context = context or context_of(language, ending)
    waiting = question_of(language) if ending == "WAITING" else None
    return build_view(
        result_of(context, spec, waiting),
        context,
        spec,
        history or history_of(language),
        host="hana@devbox",
        now=NOW,
        tail=tail,
        redact=redact,
    )
