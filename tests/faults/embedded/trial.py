"""One run of a workload with a fault in it, and the check that follows in a new process."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.faults.embedded.injection import CHANGING, Ended, WarmProcess
from tests.faults.embedded.selection import EVERY, SEED, chosen, counted


class Workload(NamedTuple):
    """What runs, what it begins with, and what checks it afterwards: names in `tasks.TASKS`."""

    task: str
    begins_with: str | None = None
    check: str = "check"


class Trials:
    """Tries one workload with one fault after another, each in a copy of the state that it begins with."""

    def __init__(self, warm: WarmProcess, folder: Path, begun: Callable[[str | None], tuple[Path, list[str]]], workload: Workload) -> None:
        self._warm = warm
        self._folder = folder
        self._workload = workload
        self._state, self._said = begun(workload.begins_with)
        self.happened: Counter[str] = Counter()

    def undisturbed(self) -> Ended:
        """The workload with every call that changes a file in the trace, and its check."""
        return self.run([f"trace={','.join(CHANGING)}"])

    def run(self, expressions: Sequence[str], *, paths: Sequence[str] = (), names: bool = False) -> Ended:
        """The workload under strace with expressions such as `inject=…`, then its check. Fails naming the expressions.

        `paths`: files of the directory to which tracing and injecting are limited. `names`: whether descriptors are shown with theirs.
        """
        place = self._folder / "trial"
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(self._state, place)
        options = ["-y", "-s", "300"] if names else []
        options += [part for expression in expressions for part in ("-e", expression)]
        options += [part for path in paths for part in ("-P", str(place / path))]
        ended = self._warm.run(self._workload.task, place, strace=options, trace=self._folder / "trace")
        what = f"{self._workload.task}, {' '.join(expressions)}, EVENTLOG_SEED={SEED}"
        assert not ended.heard.violations, f"{what}: {ended.heard.violations[0]}"
        assert ended.code == 0 or ended.killed, f"{what}: ended with {ended.code}"
        checked = self._warm.run(self._workload.check, place, self._said + ended.said)
        assert checked.code == 0, f"{what}, checked: {''.join(checked.heard.violations) or checked.code}"
        self.happened.update(checked.heard.counted)
        self.happened["killed" if ended.killed else "finished"] += 1
        self.happened["calls failed"] += ended.injected
        return ended

    def faults(self, *, least: int, calls: Sequence[str] = ()) -> list[tuple[str, int]]:
        """The points to try: every one, or at least so many; of all calls that change a file, or of some."""
        points = counted(self.run([f"trace={','.join(calls)}"]) if calls else self.undisturbed())
        print(f"{self._workload.task}: EVENTLOG_SEED={SEED}, calls of the busiest thread: {points}")
        if EVERY:
            return [(call, number) for call, count in sorted(points.items()) for number in range(1, count + 1)]
        return list(chosen(points, least=least))
