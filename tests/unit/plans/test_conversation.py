"""Talking about a plan: the scripted conversation, and what a planner or a person can do wrong."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentrunner.errors import TaskFailed, UsageError
from agentrunner.errors.planners import PlannerAway
from agentrunner.errors.plans import PlanConflict
from agentrunner.plans.conversation import MAX_MESSAGE_BYTES, Conversation
from agentrunner.plans.execution.waiting_questions import waiting_questions
from agentrunner.plans.patch import PatchRejected, PlanEdit, apply
from agentrunner.plans.plan import Plan, PlanTaskStatus
from agentrunner.plans.planner import PanelPlanner, RepositoryView
from agentrunner.plans.planner_view import plan_facts, plan_ids
from agentrunner.plans.proposal import keep, kept, propose
from agentrunner.plans.store import StoredTask
from agentrunner.prompts import assemble
from agentrunner.protocol import PlanPatch, parse_reply
from agentrunner.protocol.plan_schema import PlanIds
from agentrunner.screens.plan_diff import proposal_screen
from agentrunner.screens.plan_tree import plan_screen
from agentrunner.storage.run_log import RunLog
from agentrunner.text.terminal import cell_width
from tests.kit.asked_planner import KEY
from tests.kit.fault_server import Fault, FaultServer, completion, server
from tests.kit.talks import Item, Talks, change, create, decompose, outline, patch, phase, task

__all__ = ["server"]

Golden = Callable[[str, str], None]

SAID = {
    "en": [
        "Make a product list page.",
        "Add a search field, after the list.",
        "Search first, please. And we do not need the styles.",
        "The API is ready; the list is about 500 products, so page it.",
    ],
    "ja": [
        "商品一覧ページを作って。",
        "一覧のあとに検索欄も追加して。",
        "検索を先にして。スタイルは要らない。",
        "API はできている。商品は 500 件くらいあるので、ページ分けして。",
    ],
}
WORDS = {
    "en": {
        "design": "Design", "build": "Build", "card": "Product card", "list": "Product list",
        "style": "Styles", "search": "Search field", "paged": "Product list in pages",
        "question": "How many products are shown at once?", "answer": "50",
        "got": "A page that lists products.", "warning": "Both change the page.",
    },
    "ja": {
        "design": "設計", "build": "実装", "card": "商品カード", "list": "商品一覧",
        "style": "スタイル", "search": "検索欄", "paged": "ページ分けした商品一覧",
        "question": "一度に何件表示しますか？", "answer": "50 件",
        "got": "商品を一覧するページ。", "warning": "どちらもページを変更します。",
    },
}  # fmt: skip


def replies(w: dict[str, str]) -> list[Item]:
    files = {"suggested_impl": {"language": None, "file_paths": ["src/list.ts"], "constraints": []}}
    return [
        decompose(
            phase(w["design"], task("t1", w["card"])),
            phase(w["build"], task("t2", w["list"], "t1", **files), task("t3", w["style"], "t2")),
            understanding=w["got"],
            questions=[w["question"]],
        ),
        patch(
            create("n1", w["search"], parent_id="node-0003", dependencies=["TASK-0002"],
                   position={"after": "TASK-0002"}, **files),
            potential_conflicts=[
                {"file": "src/list.ts", "tasks": ["TASK-0002", "n1"], "warning": w["warning"]}
            ],
        ),
        patch(
            change("move", "TASK-0004", position={"index": 0}),
            change("update", "TASK-0004", dependencies=["TASK-0001"]),
            change("delete", "TASK-0003"),
        ),
        patch(change("update", "TASK-0002", title=w["paged"], estimated_effort="large")),
    ]  # fmt: skip


async def held(talks: Talks, language: str) -> str:
    """The whole conversation; what people saw of it."""
    w = WORDS[language]
    seen = []
    talks.script(replies(w))
    for number, text in enumerate(SAID[language]):
        async with talks.open() as talk:
            if number == 3:
                talks.store.answer(1, w["answer"], "2026-03-01T10:00:00.000Z")
            proposal = await talk.propose(text)
            plan = talk.accept(proposal)
            asked = waiting_questions(talk.store)
            seen += [f"> {text}", proposal_screen(proposal, asked, width=80)]
            seen += ["", plan_screen(plan, driven=True, width=80), ""]
    async with talks.open() as talk:
        _, plan, _ = talk.store.undo(at=talk.stamp(), author=talk.author)
    return "\n".join([*seen, "> /undo", plan_screen(plan, driven=True, width=80), ""])


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_from_nothing_to_a_plan(language: str, tmp_path: Path, golden: Golden) -> None:
    talks, again = Talks(tmp_path / "one"), Talks(tmp_path / "two")
    seen = await held(talks, language)
    golden(f"plans/conversation.{language}.txt", seen)
    assert all(cell_width(line) <= 80 for line in seen.split("\n") if not line.startswith(">"))
    w = WORDS[language]
    assert outline(talks.store.load()) == [
        w["design"],
        f"  TASK-0001 {w['card']}",
        w["build"],
        f"  TASK-0004 {w['search']} after TASK-0001",
        f"  TASK-0002 {w['list']} after TASK-0001",
    ]
    assert [c.kind for c in talks.store.changes()] == ["decompose", *["plan_patch"] * 3, "undo"]
    golden(f"prompts/decompose.{language}.md", talks.page(0))
    golden(f"prompts/plan_patch.{language}.md", talks.page(3))
    assert w["answer"] in talks.page(3) and w["answer"] not in talks.page(2)
    assert w["question"] in talks.page(2) and "answer: null" in talks.page(2)
    criteria = [one.get("acceptance_criteria") for one in facts(talks)["tasks"]["items"]]
    assert criteria == [[f"{w['card']}: OK"], [], [f"{w['list']}: OK"]]
    taken_back = {
        "en": f'Taken back: "{SAID["en"][3]}"',
        "ja": f"取り消しました：「{SAID['ja'][3]}」",
    }
    assert facts(talks)["history"]["items"][-1] == {"role": "user", "text": taken_back[language]}
    assert await held(again, language) == seen
    assert again.prompts() == talks.prompts() and len(talks.prompts()) == 4


def facts(talks: Talks) -> dict[str, Any]:
    """What the planner would be told now."""
    return plan_facts(talks.store.load(), talks.store.conversation())


@pytest.mark.parametrize("language", ["en", "ja"])
async def test_a_large_plan_is_cut_the_same_each_time(
    language: str, tmp_path: Path, golden: Golden
) -> None:
    talks = Talks(tmp_path)
    plan = Plan()
    for start in (0, 150):
        titles = [f"{WORDS[language]['list']} {start + number}" for number in range(150)]
        edits = [PlanEdit("create", f"t{title}", {"title": title}) for title in titles]
        plan = apply(plan, edits, goal=SAID[language][0])
        talks.store.save(plan, at="", kind="import", author="hana", message="many")
    for status, number in ((PlanTaskStatus.COMPLETE, 7), (PlanTaskStatus.RUNNING, 290)):
        talks.store.note(StoredTask(f"TASK-{number:04d}", status), "")

    async def prompt() -> str:
        async with talks.open(patch()) as talk:
            made = talk.prompt(talk.store.load(), SAID[language][1])
            assert made.language == language and made.facts["tasks"]["total"] == 300
            kept_tasks = [one["id"] for one in made.facts["tasks"]["items"]]
            assert len(kept_tasks) == 200 and kept_tasks[0] == "TASK-0290"
            assert "TASK-0007" not in kept_tasks
            return "\n".join(message.content for message in assemble(made))

    first = await prompt()
    assert await prompt() == first
    digest = hashlib.sha256(first.encode()).hexdigest()
    golden(f"prompts/plan_patch.300.{language}.sha256", f"{digest}  {len(first)} characters\n")


async def test_what_is_done_is_told_without_its_criteria(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST) as talk:
        await begun(talk)
    talks.store.note(StoredTask("TASK-0001", PlanTaskStatus.COMPLETE), "")
    done, ready = facts(talks)["tasks"]["items"]
    assert "acceptance_criteria" not in done and ready["acceptance_criteria"] == ["Style: OK"]


async def test_an_added_criterion_takes_none_away(tmp_path: Path) -> None:
    """A planner that adds to what it is shown, however long that is."""
    talks = Talks(tmp_path)
    old = ["List: " + "語" * 500, "It pages."]
    first = decompose(phase("Build", task("t1", "List", acceptance_criteria=old)))
    async with talks.open(first, patch()) as talk:
        await begun(talk)
        await talk.propose("Thanks.")
        (shown,) = facts(talks)["tasks"]["items"]
        assert all(text in talks.page(1) for text in shown["acceptance_criteria"])
        added = [*shown["acceptance_criteria"], "It sorts."]
        reply = PlanPatch.model_validate(
            {
                "understanding": "It sorts, too.",
                "operations": [change("update", "TASK-0001", acceptance_criteria=added)],
            }
        )
        after = propose(talks.store.load(), "It should sort, too.", reply).after
    assert after.design_of("TASK-0001").acceptance_criteria == (*old, "It sorts.")


# -- a planner that errs --------------------------------------------------------------------------


async def begun(talk: Conversation) -> Plan:
    return talk.accept(await talk.propose("Make a product list page."))


FIRST = decompose(phase("Build", task("t1", "List"), task("t2", "Style", "t1")))
HOSTILE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a cycle of places": (
        [create("n1", "A", parent_id="TASK-0001"), change("move", "TASK-0001", parent_id="n1")],
        "cannot be put below itself",
    ),
    "a cycle of dependencies": (
        [change("update", "TASK-0001", dependencies=["TASK-0002"])],
        "go in a circle",
    ),
    "an unknown id": ([change("delete", "TASK-0099")], "there is no task or node TASK-0099"),
    "the root": ([change("delete", "node-root", cascade=True)], "the root of the plan stays"),
    "a task at work": ([change("delete", "TASK-0001")], "is being worked on"),
    "what it deletes itself": (
        [change("delete", "TASK-0002"), create("n1", "A", dependencies=["TASK-0002"])],
        "is deleted",
    ),
    "two temporary ids": ([create("n1", "A"), create("n1", "B")], "is created twice"),
    "201 operations": ([create(f"n{n}", "A") for n in range(201)], "at most 200 items"),
    "10,000 operations": (
        [create(f"n{n}", "A") for n in range(10_000)],
        "a message has at most 262144 bytes",
    ),
    "no title": ([create("n1", "A") | {"title": None}], "needs a title"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_bad_patch_is_told_to_the_planner_and_mended(name: str, tmp_path: Path) -> None:
    operations, told = HOSTILE[name]
    talks = Talks(tmp_path)
    bad = patch(*operations)
    bad["reply"] = json.dumps(bad["reply"])  # a script has a limit of its own
    async with talks.open(FIRST, bad, patch(create("n1", "Search"))) as talk:
        await begun(talk)
        talks.store.note(StoredTask("TASK-0001", PlanTaskStatus.RUNNING), "")
        before = talks.store.path.read_bytes()
        proposal = await talk.propose("Change it.")
        assert [proposal.after.designs[n].title for n in proposal.changes.created] == ["Search"]
    assert told in talks.page(2) and "previous_answer" in talks.page(2)
    assert outline(talks.store.load()) == outline(proposal.before)
    assert before != b"" and len(talks.store.changes()) == 1


async def test_what_may_be_named_is_the_plans_and_a_misspelt_id_is_taken(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    misspelt = patch(change("update", "task_0002", title="Colours", dependencies=["TASK0001"]))
    async with talks.open(FIRST, misspelt) as talk:
        plan = await begun(talk)
        choices = talk.prompt(plan, "Rename it.").choices
        assert choices is not None and choices.plan == PlanIds(
            ("TASK-0001", "TASK-0002"), ("node-0001",),
            ("node-root", "node-0001", "node-0002", "node-0003"),
        )  # fmt: skip
        after = (await talk.propose("Rename it.")).after
    assert after.design_of("TASK-0002").title == "Colours"
    assert after.design_of("TASK-0002").dependencies == ("TASK-0001",)
    log = RunLog(talks.folder.conversation / "log.jsonl").records("warning")
    assert [one.data["code"] for one in log] == ["reply-taken", "reply-taken"]
    talks.store.note(StoredTask("TASK-0002", PlanTaskStatus.RUNNING), "")
    assert plan_ids(talks.store.load()).at_work == ("TASK-0002",)


async def test_after_three_re_asks_it_is_over_and_nothing_is_kept(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    bad = patch(change("delete", "TASK-0099"))
    async with talks.open(FIRST, bad, bad, bad, bad) as talk:
        await begun(talk)
        before = talks.store.path.read_bytes()
        with pytest.raises(TaskFailed) as raised:
            await talk.propose("Change it.")
    assert raised.value.code == "meta-garbage" and "no task or node TASK-0099" in str(raised.value)
    assert talks.store.path.read_bytes() == before
    assert len(talks.prompts()) == 5


async def test_every_bad_operation_is_named_at_once(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    bad = patch(change("delete", "TASK-0098"), change("move", "TASK-0099", parent_id="node-root"))
    async with talks.open(FIRST, bad, patch()) as talk:
        await begun(talk)
        assert (await talk.propose("Change it.")).empty
    assert "operation 0: there is no task or node TASK-0098 (unknown_id)" in talks.page(2)
    assert "operation 1: there is no task or node TASK-0099 (unknown_id)" in talks.page(2)


async def test_a_decomposition_needs_a_task_or_a_question(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    asks = decompose(questions=["Which framework?"])
    async with talks.open(decompose(), decompose(phase("Empty")), asks) as talk:
        proposal = await talk.propose("Make something.")
        assert proposal.empty and [q.text for q in waiting_questions(talk.store)] == [
            "Which framework?"
        ]
    assert "a plan needs at least one task" in talks.page(1)
    assert talks.store.changes() == []


async def test_a_decomposition_into_too_much_is_told_and_mended(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    many = [phase(f"P{p}", *(task(f"t{p}.{n}", "A") for n in range(70))) for p in range(3)]
    circle = phase("Round", task("t1", "A", "t2"), task("t2", "B", "t1"))
    async with talks.open(decompose(*many), decompose(circle), FIRST) as talk:
        assert len((await talk.propose("Make something.")).after.tasks) == 2
    assert "213 operations; at most 200 at once (too_many)" in talks.page(1)
    assert "the dependencies go in a circle" in talks.page(2)
    assert talks.store.changes() == []


async def test_a_planner_that_does_not_answer_is_left(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST) as talk:
        never = asyncio.Event()

        class Silent:
            async def ask(self, *_: object) -> Any:
                await never.wait()

        talk.planner, talk.timeout_sec = Silent(), 0.01
        with pytest.raises(TaskFailed, match="no answer within") as raised:
            await talk.propose("Make a page.")
    assert raised.value.code == "chat-timeout"
    assert talks.store.conversation() == []


async def test_calls_are_counted_and_the_budget_ends_them(tmp_path: Path) -> None:
    talks = Talks(tmp_path, ["runner.budget.tokens=200"])
    async with talks.open(FIRST, patch(), patch()) as talk:
        await begun(talk)
        await talk.propose("One more.")
    async with talks.open() as talk:
        with pytest.raises(TaskFailed) as raised:
            await talk.propose("And again.")
    assert raised.value.code == "budget: tokens"
    lines = (talks.folder.conversation / "log.jsonl").read_text("utf-8").splitlines()
    log = [json.loads(line) for line in lines]
    calls = [one["data"] for one in log if one["kind"] == "meta_call"]
    assert [(c["type"], c["usage"]["output_tokens"]) for c in calls] == [
        ("decompose", 10), ("plan_patch", 10),
    ]  # fmt: skip


# -- people ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "message-empty"),
        (" \n　", "message-empty"),
        ("x" * 100_000, "message-too-long"),
        ("長" * (MAX_MESSAGE_BYTES // 3 + 1), "message-too-long"),
    ],
)
async def test_what_is_no_message_is_not_passed_on(text: str, code: str, tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST) as talk:
        with pytest.raises(UsageError) as raised:
            await talk.propose(text)
    assert raised.value.code == code and talks.prompts() == {}


async def test_two_editors_the_second_is_told_what_changed(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    script = [FIRST, patch(create("n1", "Search")), patch(create("n1", "Basket"))]
    async with talks.open(*script) as one, talks.open() as other:
        await begun(one)
        mine = await one.propose("Add a search.")
        theirs = await other.propose("Add a basket.")
        other.accept(theirs)
        before = talks.store.load()
        with pytest.raises(PlanConflict) as raised:
            one.accept(mine)
    assert raised.value.details == (("version 2", "hana: Add a basket."),)
    assert talks.store.load() == before


def told(talks: Talks, number: int) -> list[str]:
    """The conversation as a call was told of it."""
    plan = talks.page(number).partition("\nhistory:")[2].partition("\nquestions:")[0]
    return [line.partition("text: ")[2] for line in plan.splitlines() if "text: " in line]


async def test_what_was_refused_taken_back_or_left_is_told_as_such(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    baskets = [patch(create("n1", name), understanding=f"{name}.") for name in ("A", "B", "C")]
    async with talks.open(FIRST, *baskets, patch(), patch(create("n1", "D")), patch()) as talk:
        await begun(talk)
        talk.refuse(await talk.propose("Add A."))
        talk.accept(await talk.propose("Add B."))
        talk.store.undo(at=talk.stamp(), author=talk.author)
        left = await talk.propose("Add\nC {}.")
        keep(talks.store.path.parent, left)
        assert (await talk.propose("Well done.")).empty
        assert kept(talks.store.path.parent, talks.store.load()) == left
        keep(talks.store.path.parent, await talk.propose("Add D."))
        await talk.propose("Hm.")
    refused, taken_back = """'Not accepted: "Add A."'""", """'Taken back: "Add B."'"""
    not_yet = """'Not applied so far: "Add C {}."'"""
    assert told(talks, 2)[2:] == ["Add A.", "A.", refused]
    assert told(talks, 3)[5:] == ["Add B.", "B.", taken_back]
    assert told(talks, 4)[-1] == not_yet
    assert told(talks, 5)[-3:] == ["Well done.", "Understood.", not_yet]
    assert told(talks, 6)[-4:] == [
        not_yet,
        "Add D.",
        "Understood.",
        """'Not applied so far: "Add D."'""",
    ]


async def test_what_a_person_refused_is_not_accepted_later(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST, patch(create("n1", "検索"))) as talk:
        plan = await begun(talk)
        folder = talks.store.path.parent
        proposal = await talk.propose("検索を追加して")
        keep(folder, propose(plan, "Somebody else's wish", proposal.reply))
        talk.refuse(proposal)
        assert kept(folder, plan).message == "Somebody else's wish"
        keep(folder, proposal)
        talk.refuse(proposal)
    with pytest.raises(UsageError, match="no proposal"):
        kept(folder, plan)


async def test_a_task_that_was_begun_meanwhile_is_not_taken_away(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST, patch(change("delete", "TASK-0001"))) as talk:
        await begun(talk)
        proposal = await talk.propose("No list.")
        talks.store.note(StoredTask("TASK-0001", PlanTaskStatus.RUNNING), "")
        with pytest.raises(PatchRejected, match="being worked on"):
            talk.accept(proposal)
    assert talks.store.load().version == 1


async def test_a_proposal_is_kept_and_is_the_same_later(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST, patch(create("n1", "検索", position={"index": 0}))) as talk:
        await begun(talk)
        proposal = await talk.propose("検索を追加して")
        keep(tmp_path, proposal)
        again = kept(tmp_path, talks.store.load())
        assert again == proposal and again.id == proposal.id
        talk.accept(proposal)
    with pytest.raises(UsageError, match="made for version 1"):
        kept(tmp_path, talks.store.load())


def test_no_proposal_and_a_damaged_one_are_told(tmp_path: Path) -> None:
    for text in (None, "{", '{"kind": "plan_patch", "reply": {}, "version": 0, "message": ""}'):
        if text is not None:
            (tmp_path / "proposal.json").write_text(text)
        with pytest.raises(UsageError) as raised:
            kept(tmp_path, Plan())
        assert raised.value.code == "no-proposal"


async def test_secrets_are_neither_sent_nor_kept(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    secret = "sk-proj-" + "a1B2" * 8
    async with talks.open(FIRST, OPENAI_API_KEY=secret) as talk:
        talk.accept(await talk.propose(f"Use the key {secret} for it."))
    kept_files = [path for path in talks.folder.root.rglob("*") if path.is_file()]
    assert kept_files and not any(secret.encode() in path.read_bytes() for path in kept_files)


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    async def ask_twice() -> None:
        talks = Talks(tmp_path)
        asks = decompose(phase("Build", task("t1", "List")), questions=["Which colour?"])
        async with talks.open(asks, patch(questions=["Which colour?", "Which size?"])) as talk:
            await begun(talk)
            await talk.propose("Go on.")
            assert [q.text for q in waiting_questions(talk.store)] == [
                "Which colour?",
                "Which size?",
            ]

    asyncio.run(ask_twice())


def test_a_patch_that_changes_nothing_is_empty() -> None:
    plan = apply(Plan(), [PlanEdit("create", "a", {"title": "A"})])
    text = json.dumps({"type": "plan_patch", "understanding": "Nothing.", "operations": []})
    reply = parse_reply(text, "plan_patch").payload
    assert isinstance(reply, PlanPatch)
    proposal = propose(plan, "Thanks!", reply)
    assert proposal.empty and proposal.operations == []


async def test_another_candidate_plans_where_a_quota_is_spent(tmp_path: Path) -> None:
    candidates = "runner.profiles.plan.candidates=[{kind: script}, {kind: mock}]"
    talks = Talks(tmp_path, [candidates])
    spent = {"error": {"status": 429, "retry_after": 3600}}
    async with talks.open(spent) as talk:
        plan = await begun(talk)
        assert outline(plan)[0] == "Mock phase"
        assert not (await talk.propose("More.")).empty  # the first one is left alone
    talks.settings.append("runner.profiles.plan.fallback_on_rate_limit=false")
    async with talks.open(*[spent] * 9) as talk:
        with pytest.raises(PlannerAway, match="its quota is spent"):
            await talk.propose("And more.")  # after waits that budget.wait_sec allows


async def test_another_candidate_plans_where_an_answer_cannot_be_used(tmp_path: Path) -> None:
    candidates = "runner.profiles.plan.candidates=[{kind: script}, {kind: mock}]"
    talks = Talks(tmp_path, [candidates])
    async with talks.open(*[{"reply": "Sure, here is a plan."}] * 9) as talk:
        assert outline(await begun(talk))[0] == "Mock phase"
        assert isinstance(talk.planner, PanelPlanner)
        assert [one.split(":")[0] for one in talk.planner.warnings()] == [
            "script does not answer, mock does"
        ]
        assert talk.planner.warnings() == []
    talks.settings.append("runner.profiles.plan.fallback_on_rate_limit=false")
    async with talks.open(*[{"reply": "Sure."}] * 19) as talk:
        with pytest.raises(TaskFailed) as raised:
            await talk.propose("And more.")
    assert raised.value.code == "meta-garbage"


async def test_a_server_that_reads_half_of_a_prompt_is_told_of(
    tmp_path: Path, server: FaultServer
) -> None:
    whole = json.loads(completion(mock_plan()).body)
    whole["usage"] = {"prompt_tokens": 1024, "completion_tokens": 90, "total_tokens": 1114}
    server.script = [Fault(body=json.dumps(whole), streamed=True)]
    candidates = f"[{{kind: openai-chat, model: some-model, base_url: '{server.url}'}}]"
    talks = Talks(tmp_path, [f"runner.profiles.plan.candidates={candidates}"])
    async with talks.open(decompose(), OPENAI_API_KEY=KEY) as talk:
        assert isinstance(talk.planner, PanelPlanner)
        await begun(talk)
        [sentence] = talk.planner.warnings()
        assert "read 1,024 of about" in sentence and "OLLAMA_CONTEXT_LENGTH=" in sentence
        with pytest.raises(TaskFailed):  # a plan is there: this reply is no patch of it
            await talk.propose("More.")
        assert talk.planner.warnings() == []  # once is enough
    log = (talks.folder.conversation / "log.jsonl").read_text("utf-8")
    assert log.count('"prompt-cut"') == 1


def mock_plan() -> str:
    """A small plan, as a model would answer it."""
    return json.dumps(decompose(phase("Do", task("t1", "Pages")))["reply"])


async def test_it_looks_before_it_plans(tmp_path: Path) -> None:
    talks = Talks(tmp_path)
    look = {"type": "look", "version": 1, "payload": {"looks": [
        {"read": "shop.py"}, {"read": ".env"}, {"read": "../state/secret"}, {"diff": "shop.py"},
        {"output": "test"}, {"search": "price", "in": "."},
    ]}}  # fmt: skip
    talks.repo.mkdir()
    (talks.repo / "shop.py").write_text("def price(article):\n    return 3\n")
    (talks.repo / ".env").write_text("TOKEN=1\n")
    async with talks.open({"reply": look}, decompose(phase("Do", task("t1", "Pages")))) as talk:
        proposal = await talk.propose("Make it a shop.")
    assert len(proposal.changes.created) == 2
    seen = talks.page(1)
    assert "1: def price(article):" in seen and "shop.py:1: def price" in seen
    assert "looks like credentials" in seen and "stays in it" in seen
    assert "nothing changed there" in seen and "no such output" in seen
    assert "TOKEN" not in seen


@pytest.mark.parametrize(
    ("see", "told", "looks"),
    [("nothing", False, False), ("change", True, False), ("repo", True, True)],
)
async def test_what_leaves_is_what_the_person_allows(
    tmp_path: Path, see: str, told: bool, looks: bool
) -> None:
    talks = Talks(tmp_path, [f"runner.meta.see={see}"])
    talks.repo.mkdir()
    (talks.repo / "shop.py").write_text("def price(article):\n    return 3\n")
    async with talks.open(decompose(phase("Do", task("t1", "Pages")))) as talk:
        view = RepositoryView(talk.spec, talks.place, talks.state_dir, str, {})
        assert (view.looks, talk.see) == (looks, see)
        spec = talk.spec.with_planner(kind="openai-chat")
        facts = RepositoryView(spec, talks.place, talks.state_dir, str, {}).facts("Pages.")
    assert (facts is not None) == told
    assert facts is None or "def price" in facts["outline"]["files"]["shop.py"]


async def test_a_proposal_that_is_to_be_different_waits_until_another_is_there(
    tmp_path: Path,
) -> None:
    talks = Talks(tmp_path)
    async with talks.open(FIRST, *[decompose()] * 4, FIRST) as talk:
        first = await talk.propose("Make a product list page.")
        keep(talk.store.path.parent, first)
        with pytest.raises(TaskFailed):
            await talk.propose("Styles first.", in_place_of=first)
        assert kept(talk.store.path.parent, talk.store.load()).id == first.id
        second = await talk.propose("Styles first.", in_place_of=first)
        keep(talk.store.path.parent, second)
        assert kept(talk.store.path.parent, talk.store.load()).id == second.id
        assert talk.accept(second).goal == "Make a product list page."
    assert 'Not accepted: "Make a product list page."' in talks.page(5)
