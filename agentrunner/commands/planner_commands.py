"""`planners`: the kinds of planner, what each needs here, and how reliable each is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrunner import environment
from agentrunner.commands import options as opt
from agentrunner.commands.console import paint_for, show, show_json, width_of
from agentrunner.commands.index import Entries, Index, index_app
from agentrunner.commands.planner_settings import no_planner, settled_planner
from agentrunner.config.markdown import Language
from agentrunner.registry import PLANNERS

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec

COMMANDS: Entries = {
    "list": ("planner_commands:list_kinds", "The kinds of planner, and which are ready here."),
    "try": (
        "planner_commands:try_out",
        "Play scenes with a known right answer; see what it is fit for.",
    ),
}


class PlannerCommands(Index):
    """The commands by name; the default is the list."""

    entries = COMMANDS
    otherwise = "list"


app = index_app("planners", PlannerCommands)


@app.callback(options_metavar="", subcommand_metavar="[COMMAND]")
def _about() -> None:
    """The kinds of planner, and which are ready here; try one before you trust it.

    Without a command: the list.
    """


@opt.with_file
def list_kinds(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    policy: opt.PolicyFile = None,
    state_dir: opt.StateDir = None,
) -> int:
    """Every kind of planner: whether it is ready here, what it lacks, and which one is set."""
    from agentrunner.screens.planner_table import planners_screen

    settled, why = settled_planner(os.environ, environment.state_dir(state_dir), policy)
    rows = rows_of(settled, why, os.environ)
    if as_json:
        for row in rows:
            show_json(row, ensure_ascii=False)
        return 0
    show(planners_screen(rows, width_of(sys.stdout), paint_for(sys.stdout)))
    return 0


@opt.with_file
def try_out(
    planner: Annotated[
        str | None,
        typer.Option("--planner", metavar="KIND", help=f"Who: {{planners}}. {opt.CHOSEN}"),
    ] = None,
    planner_model: opt.PlannerModel = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="Where its model is.")
    ] = None,
    language: Annotated[
        Language | None, typer.Option("--lang", "--language", help="Scenes in one language only.")
    ] = None,
    scenes: Annotated[
        Path | None,
        typer.Option("--scenes", metavar="DIR", help="Also play scenes of your own."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ID", help="This scene; may be repeated.")
    ] = None,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Play the scenes' own answers, to try scenes of yours."),
    ] = False,
    afresh: Annotated[
        bool, typer.Option("--afresh", help="Do not resume an interrupted trial.")
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
    from agentrunner.commands.planner_trial import ScenesTrial, agreed
    from agentrunner.scenes.playing import Company, reference_script
    from agentrunner.scenes.scene import load_scenes

    state = environment.state_dir(state_dir)
    chosen = load_scenes(scenes, language=language, only=only or ())
    if reference:
        mock, _ = settled_planner(os.environ, state, policy, kind="mock")
        settled = mock.with_planner(kind="script", model=None)
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
        from agentrunner.screens.layout import count

        show(f"{count(len(chosen), 'scene')}, {company.describe()}", sys.stderr)
    if not agreed(chosen, settled, company, yes=yes, as_json=as_json):
        return 0
    trial = ScenesTrial(state, settled, chosen, keep=company.pays, afresh=afresh, quiet=as_json)
    return trial.run(company, as_json=as_json)


def rows_of(settled: TaskSpec, why: str, environ: Mapping[str, str]) -> list[dict[str, object]]:
    """The facts of each kind. Making a planner opens no connection, starts and spends nothing."""
    return [_row(kind, settled, why, environ) for kind in PLANNERS]


def _row(kind: str, settled: TaskSpec, why: str, environ: Mapping[str, str]) -> dict[str, object]:
    from agentrunner.errors import InfraError, UsageError
    from agentrunner.planners.factory import make_planner

    mine = settled.runner.meta.kind == kind and bool(why)
    spec = settled
    if not mine:  # settings of another kind do not apply to this one
        spec = settled.with_planner(kind=kind, model=None, base_url=None, auth=None)
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
        client = make_planner(spec, environ)
    except (InfraError, UsageError) as error:
        return {**row, "ready": False, "needs": error.message, "remedy": error.remedy}
    by_code, takes = getattr(client, "by_code", False), getattr(client, "takes_schema", "")
    return {**row, "is": client.describe(), "by_code": bool(by_code), "schema": str(takes)}
