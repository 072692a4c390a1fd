"""kill -9 while batches are applied: what the positions say is there, exactly once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.read_side.samples import all_events, batches, everything, log, opened

SIZE = 37
CHECKPOINTS, REVISIONS = 600, 5

APPLY_WHAT_IS_MISSING = f"""
import sys
from pathlib import Path
from projections.settling import settle
from tests.read_side.samples import batches, log, opened
with opened(Path(sys.argv[1])) as projection:
    print("open", flush=True)
    for batch in batches(log({CHECKPOINTS}, {REVISIONS}, event_size=1000), {SIZE}):
        projection.apply(batch)
        settle(projection)
        print(sum(projection.positions().values()), flush=True)
"""


def test_a_kill_at_any_moment_loses_and_duplicates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.duckdb"
    rows = log(CHECKPOINTS, REVISIONS, event_size=1000)
    chance = random.Random(11)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", APPLY_WHAT_IS_MISSING, str(path)], stdout=subprocess.PIPE, env=environment)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.35))  # the random moment is the point: there is no condition to wait for
        child.send_signal(signal.SIGKILL)
        acknowledged = [int(line) for line in child.stdout.read().decode().split("\n")[:-1]]
        child.wait()
        child.stdout.close()
        with opened(path) as projection:
            positions = projection.positions()
            assert sum(positions.values()) >= max(acknowledged, default=0)
            expected = [item for item in rows if item.offset < positions[item.partition]]
            found = [(each.partition, each.offset, each.event) for each in all_events(projection)]
            assert found == sorted((item.partition, item.offset, item.event) for item in expected)
            kept = 'SELECT partition, "offset" FROM {} ORDER BY ALL'
            events = [place for table in ("superseded", "unsettled", "heads") for place in projection.query(kept.format(table))]
            assert sorted(events) == projection.query(kept.format("revisions"))  # each once
            latest = {item.checkpoint_id: item for item in expected}
            heads = projection.heads(list(latest))
            assert {key: (head.revision, head.event) for key, head in heads.items()} == {
                key: (item.revision, item.event) for key, item in latest.items()
            }
            assert projection.query("SELECT count(*) FROM heads") == [(len(latest),)]
    with opened(path) as killed, opened(tmp_path / "undisturbed.duckdb") as undisturbed:
        for batch in batches(rows, SIZE):
            killed.apply(batch)
            undisturbed.apply(batch)
        assert everything(killed) == everything(undisturbed)
