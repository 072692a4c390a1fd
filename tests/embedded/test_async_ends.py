"""An event loop that ends while something of the store still waits in a thread."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

PROGRAM = """
import asyncio, contextlib, sys
sys.path.insert(0, sys.argv[1])
from eventlog import *
from eventlog.aio import AsyncCheckpointStore

aio = AsyncCheckpointStore(open_store(sys.argv[2]))

async def follow():
    async for _ in aio.subscribe(Position()):
        pass

async def main():
    follower = asyncio.create_task(follow())
    await asyncio.sleep(0.2)
    follower.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await follower

asyncio.run(main())
print("the loop has ended")
"""


def test_a_cancelled_subscription_lets_the_loop_end(directory: Path) -> None:
    # Once: the thread that waits for news waits on, and asyncio.run waits for the thread for ever (unless somebody closes the store).
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(REPOSITORY), str(directory)], capture_output=True, text=True, timeout=20, check=True
    )
    assert child.stdout == "the loop has ended\n"
