"""A log whose answer to one write is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from eventlog import OutcomeUnknown
from eventlog.recovery import steps
from eventlog.recovery.boundaries import Boundary

Perform = Callable[[Any], Any]


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """`breaking(boundary, committed=True)`: the log is asked, and its answer to that write is lost; or it is not even asked."""

    @contextmanager
    def break_once(boundary: Boundary, *, committed: bool, error: Callable[[Any], BaseException] | None = None) -> Iterator[None]:
        perform: Perform = steps.perform
        broken: list[Boundary] = []

        def losing(step: Any) -> Any:
            if not isinstance(step, steps.Commit) or step.boundary is not boundary or broken:
                return perform(step)
            broken.append(boundary)
            if committed:
                perform(step)
            raise error(step) if error else OutcomeUnknown(step.checkpoint.id, event_id=step.checkpoint.event_id, reason="no answer")

        with monkeypatch.context() as patched:
            patched.setattr(steps, "perform", losing)
            yield
        assert broken == [boundary]

    return break_once
