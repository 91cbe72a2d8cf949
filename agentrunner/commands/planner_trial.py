"""A trial of a planner on the command line: its price, its progress, and its end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from agentrunner.commands.command_line import is_yes
from agentrunner.commands.console import Output, interactive, paint_for, show, show_json, width_of
from agentrunner.commands.question_prompt import ask_line
from agentrunner.screens.layout import count, fit

if TYPE_CHECKING:
    from agentrunner.config.spec import TaskSpec
    from agentrunner.scenes.playing import Company, Played
    from agentrunner.scenes.scene import Named

NOT_USABLE = 1
INTERRUPTED = 130


def agreed(
    chosen: Sequence[Named], settled: TaskSpec, company: Company, *, yes: bool, as_json: bool
) -> bool:
    """Whether to continue: show the price if it is known, and ask about it in a terminal."""
    from agentrunner.environment import prices_file
    from agentrunner.gateway.prices import load_prices
    from agentrunner.gateway.wires import CallTokens
    from agentrunner.scenes.verdict import INPUT_TOKENS, OUTPUT_TOKENS

    model = settled.runner.meta.model
    if not company.pays or not model or settled.runner.meta.auth == "login":
        return True
    tokens = CallTokens(INPUT_TOKENS * len(chosen), OUTPUT_TOKENS * len(chosen), 0)
    usd = load_prices(prices_file(os.environ)).cost(model, tokens)
    if not usd:
        return True
    notice = (
        f"About {tokens.input:,} tokens in and {tokens.output:,} out: {usd:.2f} USD at the prices "
        f"of {model}."
    )
    show(notice, sys.stderr)
    if yes or not interactive(Output(json=as_json)):
        return True
    return is_yes(ask_line("Continue? [y/N] ", ends=True))


class ScenesTrial:
    """Plays the scenes one by one, and keeps the results until all are played."""

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
        from agentrunner.scenes.kept import TrialRecord

        self._settled = settled
        self._scenes = scenes
        self._quiet = quiet
        self._record = TrialRecord(state_dir, settled) if keep else None
        if self._record is not None and afresh:
            self._record.forget()

    def run(self, company: Company, *, as_json: bool) -> int:
        """Play all scenes; return the exit code."""
        from agentrunner.errors import InfraError

        known = self._record.read() if self._record is not None else {}
        played = [known[one.digest] for one in self._scenes if one.digest in known]
        remaining = [one for one in self._scenes if one.digest not in known]
        if played:
            taken = count(len(played), "scene")
            self._say(f"Taken over from an interrupted trial: {taken} (--afresh begins anew).")
        try:
            asyncio.run(self._play(remaining, played, company))
        except (InfraError, KeyboardInterrupt) as error:
            if played:
                self._show(played, company, as_json=as_json, whole=False)
            if isinstance(error, KeyboardInterrupt):
                return INTERRUPTED
            raise
        if self._record is not None:
            self._record.forget()
        met = self._show(played, company, as_json=as_json, whole=True)
        return 0 if met else NOT_USABLE

    async def _play(
        self, remaining: Sequence[Named], played: list[Played], company: Company
    ) -> None:
        from agentrunner.scenes.playing import play_all

        digests = {one.id: one.digest for one in remaining}
        async for one in play_all(remaining, self._settled, os.environ, company=company):
            played.append(one)
            if self._record is not None:
                self._record.add(digests[one.id], one)
            why = f": {one.why}" if one.grade != "right" else ""
            self._say(f"{len(played):>3} of {len(self._scenes)}  {one.grade:<10}  {one.id}{why}")

    def _say(self, text: str) -> None:
        from agentrunner.text.terminal import sanitize

        if not self._quiet:
            show(fit(sanitize(text), width_of(sys.stderr)), sys.stderr)

    def _show(
        self, played: Sequence[Played], company: Company, *, as_json: bool, whole: bool
    ) -> bool:
        from agentrunner.scenes.verdict import summed
        from agentrunner.screens.planner_table import trial_screen

        trial = summed(played)
        if as_json:
            values = {
                "planner": company.describe(),
                "complete": whole,
                **asdict(trial),
                "played": [asdict(one) for one in played],
            }
            show_json(values, ensure_ascii=False)
        else:
            show(
                trial_screen(
                    asdict(trial), company.describe(), [asdict(one) for one in played],
                    of=len(self._scenes), width=width_of(sys.stdout), paint=paint_for(sys.stdout),
                )
            )  # fmt: skip
        return trial.met
