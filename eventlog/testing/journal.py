"""Where a history is kept: in memory, or in a file a process that survives the process being killed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import orjson

from eventlog.testing.history import Facts, Operation, operation

FORMAT = 1
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Journal(Protocol):
    """Takes down the operations of one session. Safe to share between threads."""

    def invoked(self, facts: Facts) -> int:
        """Takes down that a call is about to be made; returns its number."""
        ...

    def returned(self, number: int, facts: Facts) -> None:
        """Takes down what a call said."""
        ...

    def happened(self, facts: Facts) -> None:
        """Takes down a call that has returned and of which nothing needs to be known if it had not: a read."""
        ...


class MemoryJournal:
    """A history in memory. Iterate over it for its operations, as often as wanted; a call that has not returned is pending."""

    def __init__(self, session: str = "main") -> None:
        self.session = session
        self._facts: list[dict[str, Any]] = []  # list.append and dict.update are atomic under the GIL, and each call has its own entry
        self._numbers = itertools.count()
        self._open: dict[int, dict[str, Any]] = {}

    def invoked(self, facts: Facts) -> int:
        """See `Journal`."""
        number = next(self._numbers)
        mine = dict(facts)
        self._open[number] = mine
        self._facts.append(mine)
        return number

    def returned(self, number: int, facts: Facts) -> None:
        """See `Journal`."""
        self._open.pop(number).update(facts)

    def happened(self, facts: Facts) -> None:
        """See `Journal`."""
        self._facts.append(dict(facts))

    def __iter__(self) -> Iterator[Operation]:
        return (operation(self.session, facts) for facts in self._facts[:])


class FileJournal:
    """A history in a file of JSON lines, one file a session; made by `open`, which refuses a file that exists.

    Each line is one `write` to a file opened for appending, so threads do not mix and what was written is kept by the kernel when the
    process is killed. It is not flushed to the disk: a history is no use after a power cut, which sets its clock back.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._numbers = itertools.count()

    @classmethod
    def open(cls, path: str | Path, *, session: str | None = None) -> Self:
        """Starts a history. `session` names it in reports; the process's id when None. Raises `FileExistsError` or `OSError`."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        journal = cls(descriptor)
        journal._write({"history": FORMAT, "session": session or f"process {os.getpid()}", "clock": "monotonic_ns", "boot": _boot()})
        return journal

    def invoked(self, facts: Facts) -> int:
        """See `Journal`."""
        number = next(self._numbers)
        self._write({"n": number, **facts})
        return number

    def returned(self, number: int, facts: Facts) -> None:
        """See `Journal`."""
        self._write({"n": number, **facts})

    def happened(self, facts: Facts) -> None:
        """See `Journal`."""
        self._write(facts)

    def close(self) -> None:
        """Ends the history. Whatever has not returned stays pending."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self, facts: Facts) -> None:
        line = orjson.dumps(facts, option=orjson.OPT_APPEND_NEWLINE)
        if os.write(self._descriptor, line) != len(line):
            raise OSError("the history was written in part: is the disk full?")


class RecordedHistory:
    """The operations of some files, read anew at each iteration, so that a long history needs no memory.

    Arguments:
        paths: one file of `FileJournal` a session.
        ended: for files of processes that were killed, when they were known to be dead (`time.monotonic_ns()` of whoever waited for
            them). A call that never returned is then over by that time, so that a later `resolve` can rule it out.

    Iterating raises `ValueError` for a damaged file, and for files of different machines or of before and after a restart of one:
    their clocks cannot be compared. A last line without its end, which a kill may leave, is left out.
    """

    def __init__(self, paths: Iterable[str | Path], *, ended: dict[str | Path, int] | None = None) -> None:
        self.paths = [Path(path) for path in paths]
        self._ended = {Path(path): moment for path, moment in (ended or {}).items()}

    def __iter__(self) -> Iterator[Operation]:
        boots: dict[str | None, Path] = {}
        for path in self.paths:
            with path.open("rb") as lines:
                first = lines.readline()
                if not first.endswith(b"\n"):
                    continue  # killed before it had begun
                session, boot = _header(path, first)
                boots.setdefault(boot, path)
                if len(boots) > 1:
                    raise ValueError(f"the clocks of these histories cannot be compared: {', '.join(map(str, boots.values()))}")
                yield from _operations(path, session, lines, self._ended.get(path))


def _operations(path: Path, session: str, lines: Iterable[bytes], ended: int | None) -> Iterator[Operation]:
    pending: dict[int, dict[str, Any]] = {}
    for number, line in enumerate(lines, start=2):
        if not line.endswith(b"\n"):
            break
        try:
            facts = orjson.loads(line)
            if (call := facts.pop("n", None)) is not None and "returned" not in facts:
                pending[call] = facts
                continue
            yield operation(session, facts if call is None else {**pending.pop(call), **facts})
        except (ValueError, KeyError, AttributeError) as error:
            raise ValueError(f"{path}, line {number}: not a line of a history: {line[:200]!r}") from error
    for facts in pending.values():
        yield operation(session, facts if ended is None else {**facts, "returned": ended})


def _header(path: Path, line: bytes) -> tuple[str, str | None]:
    try:
        header = orjson.loads(line)
        if header["history"] != FORMAT:
            raise ValueError(f"{path}: a history of format {header['history']}; this version reads format {FORMAT}")
        return header["session"], header["boot"]
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a history: {line[:200]!r}") from error


def _boot() -> str | None:
    """What tells one run of a machine, so one monotonic clock, from another; None where the system does not say."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return None
