"""Each rule rejects the history that breaks it, for that reason; what some order explains is not rejected."""

from __future__ import annotations

import pytest

from eventlog.testing import Action, FinalLog, LogEntry, Mode, Operation, Outcome, Removed, Rule, check
from tests.testing.known_bad import BAD, CHECKPOINT, GOOD, A, B, Bad, commit, conflict, load, log, resolve, said
from tests.testing.search import linearizable


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.rule.name}: {bad.why}")
def test_a_known_bad_history_is_rejected_for_the_right_reason(bad: Bad) -> None:
    verdict = check(bad.operations, {CHECKPOINT: bad.log})
    assert [each.rule for each in verdict.violations] == [bad.rule], verdict
    assert not linearizable(bad.operations, bad.log)
    (violation,) = verdict.violations
    assert set(violation.operations) <= set(bad.operations)
    assert all(str(each) in str(violation) for each in violation.operations)
    with pytest.raises(AssertionError, match=bad.rule.name):
        verdict.require_none()


def test_there_is_a_known_bad_history_for_every_rule() -> None:
    assert {bad.rule for bad in BAD} == set(Rule)


@pytest.mark.parametrize("name", GOOD)
def test_what_some_order_explains_is_accepted(name: str) -> None:
    operations, final = GOOD[name]
    check(operations, {CHECKPOINT: final}).require_none()
    assert linearizable(operations, final)


def test_the_operations_that_prove_a_stale_read_are_the_read_and_what_it_missed() -> None:
    stale = load("a", 0, (6, 7))
    verdict = check([A, B, commit("c", 1, (4, 5)), stale], {CHECKPOINT: log("a", "b", "c")})
    assert [each.operations for each in verdict.violations] == [(stale, B)]  # the earliest of those that it missed


def test_each_of_many_stale_reads_is_listed_up_to_the_limit() -> None:
    stale = [load("a", 0, (10 + number, 11 + number)) for number in range(30)]
    verdict = check([A, B, *stale], {CHECKPOINT: log("a", "b")}, limit=7)
    assert (verdict.found, len(verdict.violations)) == (30, 7)
    assert "and 23 more" in str(verdict)


def test_a_checkpoint_without_a_log_has_lost_what_was_acknowledged() -> None:
    assert [each.rule for each in check([A], {}).violations] == [Rule.LOST]


def test_an_event_in_the_log_of_another_checkpoint_is_misplaced_or_there_twice() -> None:
    other = {CHECKPOINT: log("a"), "other": log("b")}
    assert {each.rule for each in check([A, B], other).violations} == {Rule.MISPLACED, Rule.NOBODY_PROPOSED}
    both = {CHECKPOINT: log("a", "b"), "other": log("b")}
    assert [each.rule for each in check([A, B], both).violations] == [Rule.TWICE_IN_LOG]


def test_a_resolve_by_event_id_alone_is_judged_where_the_event_is() -> None:
    def asked(event: str, revision: int | None) -> Operation:
        return resolve(event, revision, (4, 5))._replace(checkpoint_id=None)

    final = {CHECKPOINT: log("a", "b")}
    check([A, B, asked("b", 1), asked("x", None)], final).require_none()
    for wrong in (asked("b", None), asked("b", 0), asked("x", 0)):
        assert [each.rule for each in check([A, B, wrong], final).violations] == [Rule.FALSE_RESOLVE]


def test_of_revisions_that_the_log_no_longer_holds_only_time_is_judged() -> None:
    final: FinalLog = {CHECKPOINT: [Removed(0, 1), LogEntry(2, "c")]}
    operations = [A, B, commit("c", 1, (4, 5)), load("a", 0, (2, 3)), conflict("x", 0, 1, (4, 5)), resolve("b", 1, (6, 7))]
    verdict = check([operations[0], operations[1], operations[2]], final)
    verdict.require_none()
    assert verdict.summary.removed == 2
    check([*operations[:2], load("a", 0, (1, 2)), operations[2], *operations[4:]], final).require_none()
    assert [each.rule for each in check([*operations[:3], load("b", 1, (6, 7))], final).violations] == [Rule.STALE_READ]


def test_an_import_begins_a_log_anywhere_and_nowhere_else() -> None:
    moved = said(Action.IMPORT, (0, 1), Outcome.COMMITTED, event_id="m", proposed=7, revision=7)
    entry = LogEntry(7, "m", "IMPORTED")
    absent = load(None, None, (4, 5), mode=Mode.REVISION, proposed=3)
    check([moved, commit("n", 7, (2, 3)), absent], {CHECKPOINT: [Removed(0, 6), entry, LogEntry(8, "n")]}).require_none()
    check([moved], {CHECKPOINT: [entry]}).require_none()
    verdict = check([A, moved._replace(proposed=1, revision=1)], {CHECKPOINT: [*log("a"), LogEntry(1, "m", "IMPORTED")]})
    assert [each.rule for each in verdict.violations] == [Rule.NOT_SEQUENTIAL]


def test_an_iterator_is_refused_rather_than_half_judged() -> None:
    with pytest.raises(TypeError, match="twice"):
        check(iter([A]), {CHECKPOINT: log("a")})


def test_the_summary_says_how_much_happened_and_refuses_too_little() -> None:
    operations = [
        A,
        commit("a", None, (1, 4), duplicate=True),
        commit("b", 0, (2, 5), Outcome.UNKNOWN),
        resolve("b", 1, (6, 8)),
        conflict("x", 0, 1, (6, 7)),
        commit("y", 1, (7, None), Outcome.PENDING),
        load("b", 1, (8, 9), session="other"),
    ]
    summary = check(operations, {CHECKPOINT: log("a", "b"), "empty": []}).summary
    assert summary._asdict() == {
        "operations": 7,
        "committed": 2,
        "duplicates": 1,
        "conflicts": 1,
        "unknown": 1,
        "pending": 1,
        "settled": 1,
        "refused": 0,
        "reads": 1,
        "not_found": 0,
        "deleted": 0,
        "checkpoints": 1,
        "revisions": 2,
        "removed": 0,
        "sessions": 2,
        "concurrency": 3,
        "seconds": 9e-9,
    }
    summary.require(committed=2, conflicts=1)
    with pytest.raises(AssertionError, match="conflicts 1 of at least 2"):
        summary.require(committed=1, conflicts=2)
