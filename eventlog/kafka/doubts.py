"""Refusals that are in doubt: told only once the tail has seen what was acknowledged before they were asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from eventlog.errors import CheckpointError
from eventlog.kafka.waiting import Item


class Doubts:
    """Items that were refused by heads that may be old. Used by the dispatcher's thread alone.

    That a partition was lost is noticed when something is sent, so a refusal does not notice it: a process that was fenced and does not
    know would name a revision that is not the current one any more.
    """

    def __init__(self, *, catch_up: Callable[[], Future[None]]) -> None:
        self._catch_up = catch_up
        self._asked: Future[None] | None = None
        self._answered_by_it: list[Item] = []  # those who came before the question
        self._others: list[Item] = []

    def __len__(self) -> int:
        return len(self._answered_by_it) + len(self._others)

    @property
    def items(self) -> list[Item]:
        return [*self._answered_by_it, *self._others]

    def add(self, item: Item) -> None:
        self._others.append(item)

    def clear(self) -> None:
        self._asked, self._answered_by_it, self._others = None, [], []

    def ask(self) -> None:
        """Asks how far the tail has to come: one question at a time, each for all who have come before it."""
        if self._others and self._asked is None:
            self._answered_by_it, self._others = self._others, []
            self._asked = self._catch_up()

    def caught_up(self) -> list[Item]:
        """Who is to be judged again, by heads that are new enough. Those for whom the log could not be asked have been told so."""
        if self._asked is None or not self._asked.done():
            return []
        error = self._asked.exception()
        if error is not None and not isinstance(error, CheckpointError):
            raise error
        items, self._answered_by_it, self._asked = self._answered_by_it, [], None
        self.ask()
        for item in items:
            item.caught_up = error is None
            if error is not None:
                item.answer(item.unanswered(error))
        return [item for item in items if not item.answered]
