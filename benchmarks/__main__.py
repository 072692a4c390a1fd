"""`python -m benchmarks`: runs the benchmarks, writes their results, prints the table."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from benchmarks import machine, plot, regressions, report, table
from benchmarks.bench import Bench
from benchmarks.catalogue import BENCHMARKS, Benchmark, chosen
from benchmarks.kafka_broker import KafkaAccess
from benchmarks.results import RESULTS, Result, load_all, save
from benchmarks.row import NotMeasured, Row, Side

_ROUNDS = 5


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console(width=None if sys.stdout.isatty() else 180)
    if options.report:
        kept = load_all(options.out or RESULTS, [each.NAME for each in BENCHMARKS])
        report.PAGE.write_text(report.render(kept, report.explanations()), encoding="utf-8")
        console.print(f"wrote {report.PAGE}")
        console.print(f"wrote {plot.PICTURE}" if plot.draw(kept) else "no picture: pip install '.[bench]'")
        return 0
    try:
        wanted = chosen(options.only)
    except ValueError as error:
        console.print(str(error), style="bold red")
        return 2
    out = options.out or (None if options.quick else RESULTS)
    rounds = options.rounds or (1 if options.quick else _ROUNDS)
    before = regressions.committed(RESULTS, [each.NAME for each in wanted])
    results: list[Result] = []
    for result in _run(wanted, console, quick=options.quick, rounds=rounds, where=options.directory):
        results.append(result)
        if out is not None:
            console.print(f"  wrote {save(result, out)}")
    table.show(console, results)
    if not options.quick:
        regressions.show(console, regressions.changes(before, results))
    return 0


def _parser() -> argparse.ArgumentParser:
    names = ", ".join(each.NAME for each in BENCHMARKS)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, epilog=f"Benchmarks: {names}")
    parser.add_argument("--quick", action="store_true", help="a smoke run under a minute; its figures mean nothing and are not kept")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="one benchmark, or all that begin so; repeatable")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"interleaved rounds (default {_ROUNDS})")
    parser.add_argument("--report", action="store_true", help=f"run nothing; make {report.PAGE.name} from the results")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default benchmarks/results; a quick run: nowhere)")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="on the disk to measure (default: the system's temporary directory)")
    return parser


def _run(wanted: list[Benchmark], console: Console, *, quick: bool, rounds: int, where: Path | None) -> Iterator[Result]:
    """Each result as soon as it is there, so that what is interrupted keeps what it has."""
    with ExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="eventlog-bench-", dir=where))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        kafka = stack.enter_context(KafkaAccess(directory=directory))
        for benchmark in wanted:
            console.print(f"{benchmark.TITLE} ({benchmark.NAME})", style="bold")
            bench = Bench(rounds=rounds, quick=quick, directory=directory, kafka=kafka, say=lambda text: console.print(f"  {text}"))
            _warn(bench)
            described = machine.describe(directory)
            started = time.perf_counter()
            try:
                rows = benchmark.run(bench)
            except NotMeasured as error:
                rows = [Row(benchmark.NAME, benchmark.TITLE, "", Side("ours"), Side("other"), None, str(error))]
            yield Result(
                benchmark=benchmark.NAME,
                title=benchmark.TITLE,
                date=datetime.now(UTC).isoformat(timespec="seconds"),
                quick=quick,
                rounds=rounds,
                seconds=time.perf_counter() - started,
                machine={**described, "load_after": round(os.getloadavg()[0], 2)},
                versions=machine.versions(),
                rows=rows,
                notes=bench.notes,
            )


def _warn(bench: Bench) -> None:
    if not bench.payloads.real:
        bench.note("no real transcripts found, the payloads are made-up chat text; set EVENTLOG_SHARED")
    if machine.in_memory(bench.directory):
        bench.note(f"{bench.directory} is in memory, so that flushing it costs nothing; give a directory on a disk with --directory")


if __name__ == "__main__":
    sys.exit(main())
