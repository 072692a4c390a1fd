"""The checker, which only compares bounds, against the definition: a search through all orders, on small histories."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from eventlog.testing import LogEntry, Operation, check
from tests.testing.random_histories import CHECKPOINT, histories
from tests.testing.search import linearizable

EXAMPLES = settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(histories())
def test_the_checker_rejects_what_no_order_explains_and_nothing_else(history: tuple[list[Operation], list[LogEntry]]) -> None:
    operations, log = history
    verdict = check(operations, {CHECKPOINT: log})
    explained = linearizable(operations, log)
    shown = "\n".join(map(str, [*operations, *log]))
    assert explained == (verdict.found == 0), f"{'some' if explained else 'no'} order explains this:\n{shown}\n{verdict}"
