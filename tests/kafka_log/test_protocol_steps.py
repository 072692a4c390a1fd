"""The steps of the append on Kafka, one scripted lie of the client at a time: a step that is left out makes one of these fail.

The client is scripted because its lies (a commit that is reported and never sent, an answer that never comes) cannot be had on demand from
a real one. Everything else, the topic and its tail included, has tests of its own with a real broker.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.errors import KafkaError, KafkaTimeoutError, TopicAuthorizationFailedError

from eventlog import Checkpoint, CheckpointId, MissingRight, OutcomeUnknown, Receipt, RunId, Unavailable
from eventlog.kafka import ownership, partition
from eventlog.kafka.partition import State
from eventlog.kafka.waiting import Call
from eventlog.log import Outcome
from eventlog.proposing import propose
from tests.kafka_log.scripted import Bench, ScriptedProducer


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(partition, "discard", made.discarded.append)
    return made


def test_the_commit_is_not_asked_for_before_every_record_is_acknowledged(bench: Bench) -> None:
    bench.propose(3)
    bench.run()
    assert bench.producer.calls == ["begin", "send", "send", "send"]
    bench.producer.sends[2].acknowledge()
    bench.producer.sends[0].acknowledge()
    bench.run()
    assert "commit" not in bench.producer.calls, "the client would commit a transaction that lost a record (defect B)"


def test_a_record_that_was_not_acknowledged_ends_the_producer_and_nothing_is_committed(bench: Bench) -> None:
    _, told = bench.propose(2)
    bench.run()
    first = bench.producer
    first.sends[0].fail(KafkaTimeoutError("delivery"))
    first.sends[1].acknowledge()
    bench.run()
    assert "commit" not in first.calls
    assert bench.discarded == [first], "a producer is never used again after any doubt (defect A)"
    assert told == []


def test_a_record_that_was_refused_is_a_definite_answer_and_is_not_sent_again(bench: Bench) -> None:
    _, told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].fail(TopicAuthorizationFailedError({"orders"}))
    bench.run()
    assert [type(each) for each in told] == [MissingRight]
    assert "commit" not in first.calls
    bench.run(seconds=5)
    assert (bench.discarded, bench.producers) == ([first], [first])


def test_a_right_that_goes_after_the_commit_was_asked_for_leaves_the_outcome_unknown(bench: Bench) -> None:
    _, told = bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.run()
    assert "commit" in bench.producer.calls
    bench.refuses = MissingRight("orders", principal=None, operation="Write", resource="TransactionalId", name="orders-writer-0")
    bench.run(seconds=7)
    bench.run(seconds=1)
    assert [type(each) for each in told] == [OutcomeUnknown]


def test_records_that_got_a_place_which_was_read_already_are_not_committed(bench: Bench) -> None:
    """The topic was deleted and made again a moment ago, and nobody here has noticed yet."""
    bench.view.read_up_to = 7
    _, told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    assert first.sends[0].value.offset == 0
    bench.run()
    assert "commit" not in first.calls
    assert bench.discarded == [first]
    assert told == []


def test_a_reported_commit_is_not_believed_before_the_tail_shows_the_event(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.producer.commit.answered = True  # "committed", says the client
    bench.run()
    assert bench.writer.state is State.COMMITTING
    assert told == []
    bench.view.show(proposal, 0)
    bench.run()
    assert isinstance(told[0], Receipt)


def test_a_reported_commit_whose_event_the_tail_passes_by_is_no_commit(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    first.commit.answered = True
    bench.view.read_up_to = 2  # the record and its abort marker
    bench.run()
    assert told == []
    assert bench.discarded == [first]
    bench.run(seconds=1)  # past the hold: taken over, and validated again
    assert bench.producer is not first
    assert bench.producer.calls == ["begin", "send"]
    bench.producer.sends[0].acknowledge()
    bench.producer.sends[0].value.offset = 3
    bench.producer.commit.answered = True
    bench.view.show(proposal, 3)
    bench.run()
    assert isinstance(told[0], Receipt)
    assert told[0].position.next_offset(0) == 4


def test_a_commit_that_is_never_answered_is_given_up_in_time(bench: Bench) -> None:
    _, told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    bench.run()
    bench.run(seconds=partition._COMMIT_SECONDS + 1)
    assert bench.discarded == [first], "commit_transaction() would wait for ever (defect D)"
    assert told == []


def test_what_the_tail_has_shown_is_answered_before_the_commit_is_and_nothing_else_begins_until_then(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.run()
    bench.view.show(proposal, 0)
    bench.propose()
    bench.run()
    assert isinstance(told[0], Receipt)
    assert bench.producer.calls == ["begin", "send", "commit"]
    bench.producer.commit.answered = True
    bench.run()
    assert bench.producer.calls == ["begin", "send", "commit", "begin", "send"]
    assert bench.discarded == []


def test_a_commit_that_has_failed_when_the_tail_shows_its_event_costs_the_producer_alone(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    bench.run()
    first.commit.failed, first.commit.exception = True, KafkaError("unknown reasons")
    bench.view.show(proposal, 0)
    bench.run()
    assert isinstance(told[0], Receipt)
    assert bench.discarded == [first]


def test_a_failed_commit_that_happened_all_the_same_is_reported_committed(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.run()
    bench.producer.commit.failed = True
    bench.producer.commit.exception = KafkaError("unknown reasons")
    bench.run()
    bench.view.show(proposal, 0)  # the tail catches up during the take-over
    bench.run(seconds=1)
    assert isinstance(told[0], Receipt)
    assert bench.producer.calls == [], "it must not be sent twice"


def test_what_the_tail_shows_is_committed_whatever_the_client_says(bench: Bench) -> None:
    """A process that was stopped sees both at once: the answer that never came, and the event."""
    (proposal,), told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    bench.run()
    bench.view.show(proposal, 0)
    first.commit.done(KafkaError("unknown reasons"))
    bench.run()
    assert isinstance(told[0], Receipt)
    assert bench.discarded == [first], "a producer is never used again after any doubt"
    bench.propose()
    bench.run(seconds=1)
    assert bench.producer.calls == ["begin", "send"]


def test_the_callers_do_not_wait_for_an_answer_that_was_lost(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.run()
    bench.view.show(proposal, 0)
    bench.run()
    assert isinstance(told[0], Receipt)
    assert bench.state() is State.COMMITTING, "the client takes no new transaction yet"
    bench.producer.commit.done()
    bench.run()
    assert bench.state() is State.READY


def test_the_next_transaction_does_not_wait_long_for_an_answer_that_was_lost(bench: Bench) -> None:
    (proposal,), _ = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    bench.run()
    bench.view.show(proposal, 0)
    bench.run()
    bench.propose()
    bench.run(seconds=partition._ANSWER_SECONDS + 0.1)
    assert bench.discarded == [first]
    bench.run(seconds=1)
    assert bench.producer.calls == ["begin", "send"]


def test_a_caller_whose_time_is_up_is_told_that_the_outcome_is_unknown_and_nothing_is_sent_again(bench: Bench) -> None:
    (proposal,), told = bench.propose(timeout=1)
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.run()
    bench.run(seconds=2)
    assert isinstance(told[0], OutcomeUnknown)
    assert told[0].event_id == proposal.event_id
    bench.producer.commit.failed = True
    bench.run()
    bench.run(seconds=1)
    assert bench.producer.calls == [], "resolve() could not settle an event that is still being sent"


def test_a_caller_whose_event_was_never_sent_is_told_that_nothing_was_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(partition: int) -> ScriptedProducer:
        raise Unavailable("kafka://nowhere/orders", f"partition {partition}")

    monkeypatch.setattr(bench.writer, "_ownership", SimpleNamespace(take=unreachable))
    _, told = bench.propose(timeout=1)
    bench.run()
    bench.run(seconds=2)
    assert isinstance(told[0], Unavailable)
    assert "nothing was written" in str(told[0])


def test_after_losing_a_partition_it_is_not_taken_back_at_once(bench: Bench) -> None:
    bench.propose()
    bench.run()
    bench.producer.sends[0].fail(KafkaError("fenced"))
    bench.run()
    bench.run(seconds=ownership.HOLD_SECONDS[0] * 0.9)
    assert len(bench.producers) == 1, "two processes would fence each other without end"
    bench.run(seconds=ownership.HOLD_SECONDS[1])
    assert len(bench.producers) == 2


def test_holds_are_random_and_within_bounds() -> None:
    holds = {ownership.Hold().after_loss(100.0) - 100.0 for _ in range(100)}
    assert len(holds) > 90
    assert all(ownership.HOLD_SECONDS[0] <= each <= ownership.HOLD_SECONDS[1] for each in holds)


def test_all_partitions_of_a_process_are_held_together() -> None:
    hold = ownership.Hold()
    until = hold.after_loss(100.0)
    assert hold.after_loss(until - 0.01) == until, "a second partition would keep callers waiting once more"
    assert hold.after_loss(until) > until + ownership.HOLD_SECONDS[0] * 0.99


def test_a_partition_is_given_up_with_the_one_that_was_lost_but_not_in_the_middle_of_a_transaction(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    first = bench.producer
    bench.writer.step_back(bench.now + 0.5)
    assert bench.state() is State.SENT
    first.sends[0].acknowledge()
    first.commit.answered = True
    bench.view.show(proposal, 0)
    bench.run()
    assert isinstance(told[0], Receipt)
    bench.writer.step_back(bench.now + 0.5)
    assert bench.discarded == [first]
    bench.run(seconds=0.4)
    assert bench.state() is State.IDLE
    bench.run(seconds=0.2)
    assert bench.state() is State.READY


def test_nobody_is_refused_for_the_sake_of_an_event_that_is_not_in_the_log_yet(bench: Bench) -> None:
    one = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.order", 1, {"writer": 1})
    other = Checkpoint.initial(one.id, one.run_id, "test.order", 1, {"writer": 2})
    told: list[list[Outcome | None]] = [[], []]
    for checkpoint, answers in ((one, told[0]), (other, told[1])):
        proposal = propose(checkpoint, None, actor=None, max_event_bytes=1 << 20)
        bench.writer.queue.extend(Call([proposal], timeout=30, done=answers.extend).items)
    bench.run()
    assert bench.producer.calls == ["begin", "send"]
    assert told == [[], []]


def test_a_chain_of_revisions_of_one_checkpoint_fits_into_one_transaction(bench: Bench) -> None:
    first = Checkpoint.initial(CheckpointId.new(), RunId.new(), "test.order", 1, {})
    second = first.next({})
    proposals = [
        propose(each, each.revision - 1 if each.revision else None, actor=None, max_event_bytes=1 << 20) for each in (first, second)
    ]
    told: list[Outcome | None] = []
    bench.writer.queue.extend(Call(proposals, timeout=30, done=told.extend).items)
    bench.run()
    assert bench.producer.calls == ["begin", "send", "send"]


def test_a_failed_result_of_a_commit_that_the_tail_has_shown_ends_its_producer_not_the_writer(bench: Bench) -> None:
    (proposal,), told = bench.propose()
    bench.run()
    first = bench.producer
    first.sends[0].acknowledge()
    bench.run()
    first.commit.failed = True
    first.commit.exception = KafkaError("unknown reasons")
    bench.view.show(proposal, 0)
    bench.run()
    assert isinstance(told[0], Receipt)
    assert bench.discarded == [first]


def test_whoever_asks_what_became_of_an_event_waits_for_a_take_over_that_began_after_the_question(bench: Bench) -> None:
    bench.propose()
    bench.run()
    bench.producer.sends[0].acknowledge()
    bench.producer.commit.answered = True
    (item,) = Call([None], timeout=30, done=lambda _: None).items
    bench.writer.queue.append(item)
    bench.view.read_up_to = 1
    bench.view.events = {each.proposal.event_id: (0, 0, 1_000) for each in bench.writer._batch if each.proposal is not None}
    bench.run()
    assert item.answered
    assert len(bench.producers) == 2, "it believed itself the owner, as one that was fenced does too"
