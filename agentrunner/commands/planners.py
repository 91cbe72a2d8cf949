"""The planners: which kinds there are, what each needs here, and what one can be trusted with."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.asking import read_line
from agentrunner.commands.console import Output, interactive, paint_for, show, width_of
from agentrunner.commands.index import CONTEXT, Entries, Index
from agentrunner.commands.runs import here
from agentrunner.registry import METAS

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.errors import InfraError
    from agentrunner.scenes.model import Named
    from agentrunner.scenes.playing import Company, Played

COMMANDS: Entries = {
    "list": ("planners:list_kinds", "The kinds of planner, and which are ready here."),
    "try": (
        "planners:try_out",
        "Play scenes with a known right answer; see what it is fit for.",
    ),
}
NOT_USABLE = 1
INTERRUPTED = 130


class Language(StrEnum):
    """Of scenes."""

    en = "en"
    ja = "ja"


class PlannerCommands(Index):
    """The commands by name; none is the list."""

    entries = COMMANDS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As typer does, with `list` where no command is named."""
        if args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        if not args or (args[0].startswith("-") and args[0] not in CONTEXT["help_option_names"]):
            args = ["list", *args]
        return list(super().parse_args(ctx, args))


app = typer.Typer(
    name="planners",
    cls=PlannerCommands,
    add_completion=False,
    context_settings=CONTEXT,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback(options_metavar="", subcommand_metavar="[COMMAND]")
def _about() -> None:
    """The kinds of planner, and which are ready here; try one before you trust it.

    Without a command: the list.
    """


@opt.with_file
def list_kinds(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    policy: opt.PolicyFile = None,
    state_dir: opt.StateDir = None,
) -> int:
    """Every kind of planner: whether it is ready here, what it lacks, and which one is set."""
    from agentrunner.screens.planners import planners_screen

    settled, why = settled_planner(os.environ, environment.state_dir(state_dir), policy)
    rows = rows_of(settled, why, os.environ)
    if as_json:
        for row in rows:
            show(json.dumps(row, ensure_ascii=False))
        return 0
    show(planners_screen(rows, width_of(sys.stdout), paint_for(sys.stdout)))
    return 0


@opt.with_file
def try_out(
    planner: Annotated[
        str | None,
        typer.Option("--planner", metavar="KIND", help=f"Who: {', '.join(METAS)}. {opt.CHOSEN}"),
    ] = None,
    planner_model: opt.PlannerModel = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where its model is.")
    ] = None,
    language: Annotated[
        Language | None, typer.Option("--lang", help="Scenes in one language only.")
    ] = None,
    scenes: Annotated[
        Path | None,
        typer.Option("--scenes", metavar="DIR", help="Scenes of your own, beside ours."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="This scene; may be repeated.")
    ] = None,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Play the scenes' own answers, to try scenes of yours."),
    ] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Do not go on with a trial that was interrupted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about the price.")] = False,
    overrides: opt.Overrides = None,
    policy: opt.PolicyFile = None,
    as_json: opt.OneJson = False,
    state_dir: opt.StateDir = None,
) -> int:
    """Play scenes with a known right answer, through the prompts, schemas and parser of a run.

    Exit 0: it can steer and judge runs. 1: it cannot. 5: it cannot be asked.
    """
    from agentrunner.scenes.model import load_scenes
    from agentrunner.scenes.playing import Company, reference_script

    state = environment.state_dir(state_dir)
    chosen = load_scenes(scenes, language=language.value if language else None, only=only or ())
    if reference:
        settled = _scripted(settled_planner(os.environ, state, policy, kind="mock")[0])
        settled = settled.model_copy(update={"script_text": reference_script(chosen)})
    else:
        settled, why = settled_planner(
            os.environ, state, policy, kind=planner, model=planner_model, base_url=base_url,
            overrides=overrides or (),
        )  # fmt: skip
        if not why:
            raise no_planner()
    company = Company(settled, os.environ)
    if not as_json:
        show(f"{len(chosen)} scenes, {company.describe()}", sys.stderr)
    if not _agreed(chosen, settled, company, yes=yes, as_json=as_json):
        return 0
    trial = _Trial(state, settled, chosen, keep=company.pays, afresh=afresh, quiet=as_json)
    return trial.run(company, as_json=as_json)


def _scripted(settled: TaskSpec) -> TaskSpec:
    meta = settled.runner.meta.model_copy(update={"kind": "script", "model": None})
    return settled.model_copy(update={"runner": settled.runner.model_copy(update={"meta": meta})})


def no_planner() -> InfraError:
    """The error where none is set, and none can be chosen."""
    from agentrunner.errors.planners import NoPlanner

    return NoPlanner(
        "No planner is set, and none is ready that would be chosen by itself.",
        remedy="agentrunner planners tells what each of them lacks",
        nothing_spent=True,
    )


def settled_planner(
    environ: Mapping[str, str],
    state_dir: Path,
    policy: Path | None,
    *,
    kind: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    overrides: Sequence[str] = (),
) -> tuple[TaskSpec, str]:
    """A task that carries the planner's settings, within every policy; and why it is that one.

    Of a planner that is named here nothing else is asked. "" stands for why where there is none.
    Raises UsageError for settings that cannot be, or that a policy forbids.
    """
    from agentrunner.config.agents import ProfilesSpec
    from agentrunner.config.load import TaskSource, load_task

    if base_url:
        overrides = [*overrides, f"runner.meta.base_url={json.dumps(base_url)}"]
    with _somewhere(environ) as repo:
        spec = load_task(
            TaskSource("goal", "A planner is tried."),
            overrides=overrides,
            options={"repo": str(repo), "meta": kind, "planner_model": model},
            environ=environ,
            cwd=repo,
            auto=True,
        )
        settled = _within_policies(spec, environ, state_dir, policy, named=kind is not None)
    if settled is None:
        return spec, ""
    if kind is not None:
        runner = settled.runner.model_copy(update={"profiles": ProfilesSpec(), "assess": None})
        settled = settled.model_copy(update={"runner": runner})
    why = settled.chosen.get("meta") or settled.places.get("runner.meta.kind") or "the default"
    return settled, why


@contextmanager
def _somewhere(environ: Mapping[str, str]) -> Iterator[Path]:
    """The repository one stands in, for its settings; an empty folder where that can be none.

    A planner is looked at from anywhere, also from the home folder.
    """
    from agentrunner.config.repo import checked_repo
    from agentrunner.config.yaml_text import Place
    from agentrunner.errors import UsageError

    try:
        repo = checked_repo(here(), Place("."), environ)
    except UsageError:
        with tempfile.TemporaryDirectory(prefix="agentrunner-") as folder:
            yield Path(folder)
        return
    yield repo


def _within_policies(
    spec: TaskSpec, environ: Mapping[str, str], state_dir: Path, policy: Path | None, *, named: bool
) -> TaskSpec | None:
    """The settings with a planner, within every policy; None where there is none to choose."""
    from agentrunner.engine.policies import capped, capped_as_far
    from agentrunner.errors import UsageError

    settled, missing = capped_as_far(spec, environ, state_dir, policy)
    if missing:
        if not named and any(error.code == "no-planner" for error in missing):
            return None
        try:  # no worker is needed: the usual one stands in for it
            settled = capped(settled, environ, state_dir, policy)
        except UsageError:
            if named:
                raise
    return settled


def rows_of(settled: TaskSpec, why: str, environ: Mapping[str, str]) -> list[dict[str, Any]]:
    """What is known of each kind. Making one opens no connection, starts and spends nothing."""
    return [_row(kind, settled, why, environ) for kind in METAS]


def _row(kind: str, settled: TaskSpec, why: str, environ: Mapping[str, str]) -> dict[str, Any]:
    from agentrunner.errors import InfraError, UsageError
    from agentrunner.planners.make import make_meta

    meta, mine = settled.runner.meta, settled.runner.meta.kind == kind and bool(why)
    if not mine:  # settings of another kind say nothing of this one
        own = {"kind": kind, "model": None, "base_url": None, "auth": None}
        meta = meta.model_copy(update=own)
    spec = settled.model_copy(update={"runner": settled.runner.model_copy(update={"meta": meta})})
    row = {
        "kind": kind,
        "ready": True,
        "is": "",
        "needs": "",
        "remedy": "",
        "set": mine,
        "why": why if mine else "",
        "by_code": False,
        "schema": "",
    }
    try:
        client = make_meta(spec, environ)
    except (InfraError, UsageError) as error:
        return {**row, "ready": False, "needs": error.message, "remedy": error.remedy}
    takes = str(getattr(client, "takes_schema", ""))
    return {
        **row,
        "is": client.describe(),
        "by_code": bool(getattr(client, "by_code", False)),
        "schema": takes,
    }


# -- the price ------------------------------------------------------------------------------------


def _agreed(
    chosen: Sequence[Named], settled: TaskSpec, company: Company, *, yes: bool, as_json: bool
) -> bool:
    """Whether to go on: the price is told where it is known, and asked about in a terminal."""
    from agentrunner.environment import prices_file
    from agentrunner.gateway.prices import load_prices
    from agentrunner.gateway.wires import Tokens
    from agentrunner.scenes.verdict import INPUT_TOKENS, OUTPUT_TOKENS

    model = settled.runner.meta.model
    if not company.pays or not model or settled.runner.meta.auth == "login":
        return True
    tokens = Tokens(INPUT_TOKENS * len(chosen), OUTPUT_TOKENS * len(chosen), 0)
    usd = load_prices(prices_file(os.environ)).cost(model, tokens)
    if not usd:
        return True
    told = (
        f"About {tokens.input:,} tokens in and {tokens.output:,} out: {usd:.2f} USD at the prices "
        f"of {model}."
    )
    show(told, sys.stderr)
    if yes or not interactive(Output(json=as_json)):
        return True
    return read_line("Go on? [y/N] ").strip().lower() in ("y", "yes")


# -- a trial --------------------------------------------------------------------------------------


class _Trial:
    """Plays the scenes one by one, and keeps what was played until the last one is."""

    def __init__(
        self,
        state_dir: Path,
        settled: TaskSpec,
        scenes: Sequence[Named],
        *,
        keep: bool,
        afresh: bool,
        quiet: bool,
    ) -> None:
        from agentrunner.scenes.kept import Kept

        self._settled = settled
        self._scenes = scenes
        self._quiet = quiet
        self._kept = Kept(state_dir, settled) if keep else None
        if self._kept is not None and afresh:
            self._kept.forget()

    def run(self, company: Company, *, as_json: bool) -> int:
        """All of it; the exit code."""
        from agentrunner.errors import InfraError

        known = self._kept.read() if self._kept is not None else {}
        played = [known[one.digest] for one in self._scenes if one.digest in known]
        left = [one for one in self._scenes if one.digest not in known]
        if played:
            self._say(f"{len(played)} scenes of an interrupted trial are taken over (--afresh).")
        try:
            asyncio.run(self._play(left, played, company))
        except (InfraError, KeyboardInterrupt) as error:
            if played:
                self._show(played, company, as_json=as_json, whole=False)
            if isinstance(error, KeyboardInterrupt):
                return INTERRUPTED
            raise
        if self._kept is not None:
            self._kept.forget()
        usable = self._show(played, company, as_json=as_json, whole=True)
        return 0 if usable else NOT_USABLE

    async def _play(self, left: Sequence[Named], played: list[Played], company: Company) -> None:
        from agentrunner.scenes.playing import play_all

        digests = {one.id: one.digest for one in left}
        async for one in play_all(left, self._settled, os.environ, company=company):
            played.append(one)
            if self._kept is not None:
                self._kept.add(digests[one.id], one)
            why = f": {one.why}" if one.grade != "right" else ""
            self._say(f"{len(played):>3} of {len(self._scenes)}  {one.grade:<10}  {one.id}{why}")

    def _say(self, text: str) -> None:
        from agentrunner.screens.layout import fit
        from agentrunner.text.terminal import sanitize

        if not self._quiet:
            show(fit(sanitize(text), width_of(sys.stderr)), sys.stderr)

    def _show(
        self, played: Sequence[Played], company: Company, *, as_json: bool, whole: bool
    ) -> bool:
        from agentrunner.scenes.verdict import summed
        from agentrunner.screens.planners import trial_screen

        trial = summed(played)
        if as_json:
            told = {
                "planner": company.describe(),
                "complete": whole,
                **asdict(trial),
                "played": [asdict(one) for one in played],
            }
            show(json.dumps(told, ensure_ascii=False))
        else:
            show(
                trial_screen(
                    asdict(trial), company.describe(), [asdict(one) for one in played],
                    of=len(self._scenes), width=width_of(sys.stdout), paint=paint_for(sys.stdout),
                )
            )  # fmt: skip
        return trial.usable
