"""`make chaos MINUTES=20 SEED=1`: episodes on both logs, one after the other in turn, until the time is up.

What an episode with a violation left behind is kept, with its seed; everything else is removed. Ends with 1 when anything was found, or
when too little happened.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from eventlog.testing import Summary
from tests.chaos import episode
from tests.chaos.grounds import GROUNDS, Ground

_EPISODE_SECONDS = 45.0
_ADDED = ("operations", "committed", "duplicates", "conflicts", "unknown", "pending", "settled", "refused", "reads", "revisions")


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    seed = options.seed or secrets.token_hex(4)
    kept = options.keep.absolute()
    _say(f"seed {seed}, {options.minutes:g} minutes; what a failure leaves goes to {kept}")
    ends = time.monotonic() + 60 * options.minutes
    done: dict[str, list[episode.Episode]] = {}
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="eventlog-chaos-", dir=options.directory))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        grounds: list[Ground] = [kind(folder / kind.NAME) for kind in GROUNDS if not options.log or kind.NAME in options.log]
        for ground in grounds:
            ground.folder.mkdir()
            stack.enter_context(ground.standing())
        number = 0
        while not number or time.monotonic() < ends:
            number += 1
            for ground in grounds:
                found = _episode(ground, number, seed, min(_EPISODE_SECONDS, max(5.0, ends - time.monotonic())), kept)
                done.setdefault(ground.NAME, []).append(found)
    return _report(done, seed, options.json)


def _episode(ground: Ground, number: int, seed: str, seconds: float, kept: Path) -> episode.Episode:
    ground.happened.clear()
    folder = ground.folder / f"episode-{number}"
    found = episode.run(ground, number=number, seed=seed, seconds=seconds, folder=folder)
    happened = ", ".join(f"{name} {count}" for name, count in sorted(found.happened.items()))
    _say(f"{ground.NAME} {number}: {'; '.join(found.problems) or 'no violation'}\n  {found.summary}\n  {happened}")
    if found.problems:
        shutil.copytree(folder, kept / f"{seed}-{ground.NAME}-{number}", dirs_exist_ok=True)
    shutil.rmtree(folder)
    return found


def _report(done: dict[str, list[episode.Episode]], seed: str, path: Path | None) -> int:
    report: dict[str, dict[str, object]] = {}
    for name, episodes in done.items():
        happened: Counter[str] = sum((each.happened for each in episodes), Counter())
        counts = {field: sum(getattr(each.summary, field) for each in episodes) for field in _ADDED}
        violations = sum(bool(each.problems) for each in episodes)
        seconds = sum(each.summary.seconds for each in episodes)
        report[name] = {"episodes": len(episodes), "with violations": violations, "seconds": round(seconds), **counts, **happened}
    _say(f"seed {seed}")
    for name, figures in report.items():
        _say(f"{name}: " + ", ".join(f"{what} {count}" for what, count in figures.items()))
    if path is not None:
        path.write_text(json.dumps({"seed": seed, **report}, indent=2) + "\n", encoding="utf-8")
    short = [name for name, episodes in done.items() if not _enough(episodes)]
    for name in short:
        _say(f"{name}: too little happened to prove anything")
    return 1 if short or any(each.problems for episodes in done.values() for each in episodes) else 0


def _enough(episodes: list[episode.Episode]) -> bool:
    summaries: list[Summary] = [each.summary for each in episodes]
    killed = sum(each.happened["workers killed"] for each in episodes)
    return killed > 0 and all(
        sum(getattr(each, name) for each in summaries) > 0 for name in ("committed", "conflicts", "duplicates", "reads")
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long, both logs together (default 5)")
    parser.add_argument("--seed", help="of everything that is drawn; a new one when not given")
    parser.add_argument("--log", action="append", choices=[kind.NAME for kind in GROUNDS], help="one log only")
    parser.add_argument("--keep", type=Path, default=Path("chaos-failures"), metavar="DIR", help="where the history of a failure goes")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="where the stores are (default: the system's temporary directory)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the figures, for whoever wants to compare them")
    return parser


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
