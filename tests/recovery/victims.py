"""Processes that are killed where they are told to be: SIGKILL, by their own hand, at one write of the recovery library or in one call.

`python victims.py` reads jobs, one JSON array a line, and forks a process for each, which has everything imported already and opens
the store for itself. It answers each with the signal that ended the process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
DECISION_KILLS = ["before run_decided", "after run_decided"]


class Job(NamedTuple):
    """What a victim does, and where it ends."""

    address: str
    tenant: str
    checkpoint_id: str
    outside: str  # the file that its calls leave lines in
    kill: str  # `before turn_in_flight`, `after effect_started send_mail`, `in model`
    mode: str = "sync"  # or async, workflow, migrate, undo; or resume: as the retry of a run that another has left; or decide: about it


class Victims:
    """The process that makes them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        )

    def kill(self, job: Job) -> None:
        """Returns when the process has been killed; fails when it ended in another way."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        ended = json.loads(self._process.stdout.readline())
        assert ended == -signal.SIGKILL, f"it was to be killed {job.kill}, and ended with {ended}"

    def close(self) -> None:
        self._process.communicate(timeout=30)


@contextmanager
def victims() -> Iterator[Victims]:
    made = Victims()
    try:
        yield made
    finally:
        made.close()


def _main() -> None:
    import eventlog.kafka.log  # noqa: F401 - imported once, for all
    import tests.recovery.order_agent
    import tests.recovery.order_workflow  # noqa: F401

    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            _perform(Job(*json.loads(line)))
            os._exit(3)  # it was not killed
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _perform(job: Job) -> None:
    from eventlog import open_store
    from eventlog.aio import AsyncCheckpointStore
    from eventlog.recovery import AgentRun, AsyncAgentRun, AsyncEffectStore, Decision, Decisions, EffectStore, RetryInFlight, Settlement
    from tests.recovery.migration_kill_table import victim
    from tests.recovery.order_agent import FIRST_STATE, OrderAgent
    from tests.recovery.order_workflow import OrderWorkflow, live
    from tests.recovery.samples import AGENT, DEFINITION, MODEL, Outside

    def at(point: str) -> None:
        if point == job.kill:
            os.kill(os.getpid(), signal.SIGKILL)

    if job.mode in ("migrate", "undo"):
        victim(job.mode, open_store(job.address, tenant=job.tenant, actor="victim"), job.tenant, at)
        return
    agent = OrderAgent(Outside(Path(job.outside)), at)
    order = OrderWorkflow(Outside(Path(job.outside)), at)
    _watch_writes(order if job.mode == "workflow" else agent, at)
    identity: dict[str, Any] = {"agent": AGENT, "model": MODEL, "definition_version": DEFINITION}
    store = open_store(job.address, tenant=job.tenant, actor="victim")
    if job.mode == "workflow":
        live(order, store, job.checkpoint_id, job.tenant)
    elif job.mode == "async":

        async def main() -> None:
            aio = AsyncCheckpointStore(store)
            effects = AsyncEffectStore(aio)
            run = await AsyncAgentRun.start(aio, state=FIRST_STATE, effects=effects, checkpoint_id=job.checkpoint_id, **identity)
            await agent.work_async(run)

        asyncio.run(main())
    elif job.mode == "decide":
        Decisions(store).resolve(job.checkpoint_id, Decision.RETRY, actor="victim", reason="to be repeated")
    elif job.mode == "resume":
        effects = EffectStore(store)
        run = AgentRun.resume(store, job.checkpoint_id, policy=RetryInFlight(effects=effects), **identity)
        agent.reconcile = lambda effect: Settlement.completed({"mailed": effect.input["order"]})
        agent.work(run)
    else:
        effects = EffectStore(store)
        agent.work(AgentRun.start(store, state=FIRST_STATE, effects=effects, checkpoint_id=job.checkpoint_id, **identity))


def _watch_writes(agent: Any, at: Any) -> None:
    """Tells `at` before and after each write, by its boundary and the tool that it is about."""
    from eventlog.recovery import steps

    perform, perform_async = steps.perform, steps.perform_async

    def name(step: Any) -> str:
        label: str = agent.label(step.boundary)
        return label

    def is_write(step: Any) -> bool:
        """A run's own revisions are named by the `Advance` that they are part of."""
        if isinstance(step, steps.Commit):
            return step.expected is None or step.checkpoint.kind not in ("eventlog.agent", "eventlog.workflow")
        return isinstance(step, steps.Advance)

    def watching(step: Any) -> Any:
        if not is_write(step):
            return perform(step)
        at(f"before {name(step)}")
        answer = perform(step)
        at(f"after {name(step)}")
        return answer

    async def watching_async(step: Any) -> Any:
        if not is_write(step):
            return await perform_async(step)
        at(f"before {name(step)}")
        answer = await perform_async(step)
        at(f"after {name(step)}")
        return answer

    steps.perform, steps.perform_async = watching, watching_async


if __name__ == "__main__":
    _main()
