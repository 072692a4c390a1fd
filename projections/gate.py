"""Many readers at a time, or one change of the file under them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """A shared and exclusive lock. Whoever wants it exclusively goes before new readers, so that it is not starved.

    A thread that is inside may enter again (a report that looks up heads meanwhile); it must not ask for exclusivity there.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._exclusive = False
        self._depth = threading.local()

    @contextmanager
    def shared(self) -> Iterator[None]:
        depth: int = getattr(self._depth, "value", 0)
        if depth == 0:
            with self._condition:
                while self._exclusive:
                    self._condition.wait()
                self._readers += 1
        self._depth.value = depth + 1
        try:
            yield
        finally:
            self._depth.value = depth
            if depth == 0:
                with self._condition:
                    self._readers -= 1
                    if self._readers == 0:
                        self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._condition:
            while self._exclusive:
                self._condition.wait()
            self._exclusive = True
        try:
            with self._condition:
                while self._readers:
                    self._condition.wait()
            yield
        finally:
            with self._condition:
                self._exclusive = False
                self._condition.notify_all()
