"""What a peer is: a stream of states a checkpoint, durable on every commit, read back decoded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.bench import Stopwatch
from benchmarks.row import Sample

State = dict[str, Any]


class Session(ABC):
    """One caller's way into a peer; one thread uses it."""

    @abstractmethod
    def commit(self, stream: str, expected: int | None, state: State) -> None:
        """Makes `state` the successor of revision `expected` (None: the first), durably. Raises when another came first, where the peer can
        tell."""

    @abstractmethod
    def load(self, stream: str) -> object:
        """The latest state, decoded."""

    @abstractmethod
    def history(self, stream: str) -> int:
        """Reads every state of a stream, decoded; how many there were."""


class Peer(ABC):
    """A store of somebody else's, empty, in a directory of its own."""

    KEY: ClassVar[str]  # in the keys of rows
    NAME: ClassVar[str]
    EMBEDDED: ClassVar[bool] = False  # files of this process, no server

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @staticmethod
    @abstractmethod
    def missing() -> str | None:
        """What has to be installed before this peer can be measured; None: nothing."""

    @abstractmethod
    def running(self) -> AbstractContextManager[None]:
        """Starts what it needs; ends it."""

    @abstractmethod
    def session(self) -> AbstractContextManager[Session]:
        """For one more caller."""

    def bytes_on_disk(self) -> int:
        """As it is now, running."""
        return sum(path.stat().st_size for path in self.directory.rglob("*") if path.is_file())

    def many_callers(self, streams: Sequence[str], state: State, commits: int) -> Sample:
        """Commits to each stream from a caller of its own, all at once. Threads, unless the peer has a better way."""
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.session()) for _ in streams]
            for session, stream in zip(sessions, streams, strict=True):
                session.commit(stream, None, state)
            watch = Stopwatch()
            commit = [partial(_next, session, stream, count(), state) for session, stream in zip(sessions, streams, strict=True)]
            watch.at_once(commit, max(1, commits // len(streams)))
            return watch.per_second()


def _next(session: Session, stream: str, revisions: Iterator[int], state: State) -> None:
    session.commit(stream, next(revisions), state)


class Lost(Exception):
    """Another writer came first."""


@contextmanager
def opened(kind: type[Peer], directory: Path) -> Iterator[Peer]:
    """A peer of a kind, running in a directory that is made."""
    directory.mkdir()
    peer = kind(directory)
    with peer.running():
        yield peer
