"""Reads strace's lines of a whole run in order and says what was not flushed where it had to be.

A kill leaves the kernel's memory as it was, so no kill shows a missing flush; a power loss does. This holds the order itself: no answer
while anything that it rests on is only written, no database page before the journal that can restore it, no name before its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_CALL = re.compile(r"^(?P<pid>\d+) +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+)")
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$")
_DESCRIPTOR = re.compile(r"^\d+<([^>]*)>")
_NAMES = re.compile(r'"([^"]*)"')
_NOTE = re.compile(r'\[\\"(attempt|answer|step)\\", \\"([^\\]*)\\"')
WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate", "copy_file_range", "sendfile")
FLUSHES = ("fsync", "fdatasync")
TRACED = (*WRITES, *FLUSHES, "?rename", "renameat", "renameat2", "?link", "linkat", "?unlink", "unlinkat", "openat", "sendto")


class Flushing:
    """Follows what is written and not flushed yet: files by their names, directories whose names have changed."""

    def __init__(self, *, directory: str, disposable: Iterable[str], nameless: Iterable[str] = (), concurrent: bool = False) -> None:
        self._directory = directory
        self._disposable = tuple(disposable)  # beginnings of names on which no answer rests
        self._nameless = tuple(nameless)  # ends of names that may be lost with their directory
        self._there: set[str] = set()
        self._filled: set[str] = set()  # written to at all: an empty file's name may be lost
        self._unflushed: set[str] = set()
        self._unnamed: set[str] = set()  # files whose name their directory has not been flushed with
        # Of several threads, one may write for the next group before another has told of the last one. Then what is seen of an answer is
        # only that something was written and flushed behind its attempt.
        self._concurrent = concurrent
        self._flushed_since: dict[str, set[str]] = {}  # attempt: the files written and flushed since
        self.faults: list[str] = []
        self.answers = 0

    def read(self, lines: Iterable[str]) -> None:
        for line in whole(lines):
            match = _CALL.match(line)
            if match is not None and int(match["result"]) >= 0:
                self._call(match["name"], match["arguments"], line)

    def _call(self, name: str, arguments: str, line: str) -> None:
        descriptor = _DESCRIPTOR.match(arguments)
        path = descriptor[1] if descriptor else ""
        if name in WRITES and path.startswith(self._directory):
            self._wrote(path, line)
        elif name in FLUSHES:
            if path in self._unflushed:
                for since in self._flushed_since.values():
                    since.add(path)
            self._unflushed.discard(path)
            self._unnamed = {each for each in self._unnamed if each.rpartition("/")[0] != path}
        elif name == "openat" and "O_CREAT" in arguments:
            (created,) = _NAMES.findall(arguments)[:1]
            if created.startswith(self._directory) and created not in self._there:
                self._there.add(created)
                self._unnamed.add(created)
        elif name.startswith(("rename", "link")):
            source, target = _NAMES.findall(arguments)[:2]
            if source in self._unflushed:
                self.faults.append(f"named before its content was flushed: {line}")
            self._unnamed.discard(source)
            self._unnamed.add(target)
            self._filled.add(target)
            self._there.add(target)
        elif name.startswith("unlink"):
            self._removed(_NAMES.findall(arguments)[0], line)
        elif name == "sendto" and (note := _NOTE.search(arguments)) is not None:
            self._told(note[1], note[2], arguments, line)

    def _told(self, kind: str, about: str, arguments: str, line: str) -> None:
        if kind == "attempt":
            self._flushed_since[about] = set()
        elif kind == "answer" or '\\"done\\"' in arguments:
            self.answers += 1
            names = {each for each in self._unnamed & self._filled if not each.endswith(self._nameless)}
            unflushed = self._unflushed
            if self._concurrent:
                in_a_journal = {
                    each.removesuffix("-wal") for each in self._there if each.endswith("-wal")
                }  # written back by another thread
                unflushed = unflushed - self._flushed_since.pop(about, set()) - in_a_journal
            early = sorted(each for each in unflushed | names if not self._may_be_lost(each))
            if early:
                self.faults.append(f"answered before {', '.join(early)} was flushed: {line[:200]}")

    def _wrote(self, path: str, line: str) -> None:
        if f"{path}-wal" in self._unflushed or (path.endswith("-wal") and path.removesuffix("-wal") in self._unflushed):
            self.faults.append(f"database and journal unflushed at a time: {line[:200]}")
        self._unflushed.add(path)
        self._filled.add(path)

    def _removed(self, path: str, line: str) -> None:
        if path.endswith("-wal") and path.removesuffix("-wal") in self._unflushed:
            self.faults.append(f"the journal removed before the database was flushed: {line}")
        for each in (self._there, self._unflushed, self._unnamed, self._filled):
            each.discard(path)

    def _may_be_lost(self, path: str) -> bool:
        return path.rpartition("/")[2].startswith(self._disposable)


def whole(lines: Iterable[str]) -> Iterable[str]:
    """Calls that another thread's came into the middle of, in one line where they ended."""
    begun: dict[str, str] = {}
    for line in lines:
        if line.endswith("<unfinished ...>"):
            begun[line.split()[0]] = line.removesuffix("<unfinished ...>").rstrip()
        elif (resumed := _RESUMED.match(line)) is not None:
            yield begun.pop(resumed[1], resumed[1]) + resumed[2]
        else:
            yield line
