"""Play the battery: `python -m tests.battery [--only NAME…] [--rule V3] [--jobs 2] …`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.battery.case import Case, load_cases
from tests.battery.report import header, row, totals
from tests.battery.series import Manner, play_all


def main(arguments: list[str]) -> int:
    """Play what was asked for and print it; 1 where a cheat was believed or honesty refused."""
    options = _options().parse_args(arguments)
    cases = _chosen(options)
    if not cases:
        sys.stderr.write("no case is called so\n")
        return 2
    if options.list:
        for case in cases:
            _say(f"{case.name:46} {case.kind:6} {case.rule} {case.ecosystem:10} {case.about}")
        return 0
    _say(header())
    outcomes = []
    manner = Manner(options.sandbox, not options.no_plain, not options.plain_only, options.keep)
    for outcome in play_all([case.name for case in cases], manner, options.jobs):
        outcomes.append(outcome)
        _say(row(outcome))
    _say(totals(outcomes))
    if options.json:
        page = [outcome.as_json() for outcome in outcomes]
        Path(options.json).write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")
    return int(any(outcome.failed for outcome in outcomes))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.battery", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="names of cases, or parts of them")
    parser.add_argument("--rule", nargs="+", default=[], help="V1 to V8")
    parser.add_argument("--kind", choices=("cheat", "honest"))
    parser.add_argument("--ecosystem", nargs="+", default=[])
    parser.add_argument("--sample", action="store_true", help="only what the gate plays")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sandbox", choices=("bwrap", "docker", "none"), default="bwrap")
    parser.add_argument("--no-plain", action="store_true", help="do not try the cases themselves")
    parser.add_argument("--plain-only", action="store_true", help="try nothing but the cases")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--keep", metavar="DIR", help="keep the folders of all cases there")
    parser.add_argument("--list", action="store_true", help="only say which cases there are")
    return parser


def _chosen(options: argparse.Namespace) -> list[Case]:
    return [
        case
        for case in load_cases()
        if (not options.only or any(part in case.name for part in options.only))
        and (not options.rule or case.rule in options.rule)
        and (not options.kind or case.kind == options.kind)
        and (not options.ecosystem or case.ecosystem in options.ecosystem)
        and (not options.sample or case.sample)
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
