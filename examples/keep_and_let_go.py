"""Conversations in a store that has to answer for them: encrypted, recorded, half of them erased, archived, compacted, backed up, restored,
rebuilt; and at the end the same answers as before about everything that was not erased.

python examples/keep_and_let_go.py DIRECTORY [CONVERSATIONS.jsonl.gz] [--broker HOST:PORT]

Every step is a command line, printed before it runs. With --broker the store is a topic of a Kafka broker, otherwise a directory.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from eventlog import CheckpointStore, Deleted, HistoryRemoved, Revision, open_store

RESTORED = "restored"


class Answers(NamedTuple):
    """What a store says of some checkpoints: the questions that are asked before and after."""

    latest: dict[str, Any]  # the payload, by id
    history: dict[str, list[tuple[int, str, str, str]]]  # revision, event id, the event's hash, and its payload's
    phases: list[tuple[Any, ...]]  # how many are in which phase


def ask(store: CheckpointStore, ids: list[str]) -> Answers:
    history: dict[str, list[tuple[int, str, str, str]]] = {}
    for each in ids:
        found = [one for one in store.history(each) if isinstance(one, Revision)]
        history[each] = [
            (one.checkpoint.revision, one.checkpoint.event_id, one.hash.hex(), digest(one.checkpoint.payload)) for one in found
        ]
    chosen = ", ".join(f"'{each}'" for each in ids)
    counted = f"SELECT phase, count(*), sum(revision) FROM checkpoint_heads WHERE checkpoint_id IN ({chosen}) GROUP BY phase ORDER BY phase"
    return Answers({each: store.load(each).payload for each in ids}, history, store.catalog.sql(counted).rows)


def digest(payload: Any) -> str:
    return hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()


def eventlog(*words: str | Path) -> None:
    """Runs a command, and stops the walk where it fails."""
    command = [str(word) for word in words]
    shown = shlex.join(command)
    print(f"\n$ eventlog {shown if len(shown) < 200 else shown[:200] + ' ...'}", flush=True)
    subprocess.run([sys.executable, "-m", "eventlog.cli", *command], check=True)


def some_conversations(path: Path, count: int = 20) -> Path:
    """Made-up ones, for whoever has none at hand."""
    lines = []
    for number in range(count):
        messages = [
            {"role": "user", "content": f"Please cancel reservation {number:04d}."},
            {"role": "assistant", "content": "Shall I refund it to the card that you paid with?"},
            {"role": "user", "content": "Yes."},
            {"role": "assistant", "content": f"Reservation {number:04d} is cancelled."},
        ]
        lines.append(json.dumps({"messages": messages}))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where everything goes; it must not exist")
    parser.add_argument("conversations", type=Path, nargs="?", help='one JSON object a line, with "messages"; else 20 made-up ones')
    parser.add_argument("--broker", metavar="HOST:PORT")
    given = parser.parse_args()
    here: Path = given.directory
    here.mkdir(parents=True)
    conversations = given.conversations or some_conversations(here / "conversations.jsonl")
    if given.broker:
        topic = f"conversations-{uuid4().hex[:8]}"
        state = here / "state"
        store = f"kafka://{given.broker}/{topic}?state={state}"
        restored = f"kafka://{given.broker}/{topic}-{RESTORED}?state={here / 'state-restored'}"
    else:
        state = here / "store"
        store, restored = str(state), str(here / RESTORED)
    key, archive, backups, keys = here / "key.json", here / "archive", here / "backups", here / "wrapped-keys"
    backups.mkdir()
    keys.mkdir()

    # Every payload is sealed by a key of its checkpoint, which the key in key.json wraps. Who reads or writes what goes on record.
    eventlog("init", store, "--encrypt", "--key-file", key, "--access", "buffered")
    eventlog("ingest", "chats", conversations, "--store", store)
    with open_store(store) as opened:
        ids = sorted(summary.id for summary in every_one(opened))
        leaving, staying = ids[::2], ids[1::2]
        before = ask(opened, staying)
    print(f"{len(ids)} conversations; {len(leaving)} of them will be erased")

    # The head of the log, to be kept where nobody can change both; and a backup, from before the erasure. The wrapped keys of the
    # checkpoints go to a place of their own: whoever has both, and key.json, can read.
    eventlog("archive", "run", "--to", archive, "--store", store)
    eventlog("backup", backups / "sunday", "--keys-to", keys / "sunday", "--store", store)

    # Half of them have to go: from the log, the projection, the archive, and their keys for good. The certificate says so.
    chosen = [word for each in leaving for word in ("--checkpoint", each)]
    certificate = here / "certificate.json"
    eventlog("erase", *chosen, "--reason", "request 4711", "--yes", "--certificate", certificate, "--store", store)
    certified = json.loads(certificate.read_text(encoding="utf-8"))["sealed"]
    assert len(certified["checkpoints"]) == len(leaving)

    # What is left: its history in the archive, and out of the embedded log. A topic is compacted by its brokers.
    eventlog("archive", "run", "--store", store)
    if not given.broker:
        eventlog("compact", "--hold-days", "0", "--store", store)
    eventlog("verify", "--store", store)
    with open_store(store) as opened:
        assert ask(opened, staying) == before

    # A backup of today, tried out at once; and its restore, which takes the register of erasures from where it is kept apart.
    eventlog("backup", backups / "monday", "--keys-to", keys / "monday", "--store", store)
    eventlog("backup", "drill", backups / "monday", "--keys-from", keys / "monday", "--store", store)
    register = state / "erasures.jsonl"
    eventlog("restore", backups / "monday", "--erasure-register", register, "--keys-from", keys / "monday", "--store", restored)
    eventlog("rebuild", "--store", restored)
    eventlog("verify", "--store", restored)
    check(restored, staying, leaving, before)

    # The older backup still has all of them. Restored with the register, it brings none of them back.
    older = f"{restored.partition('?')[0]}-older" + (f"?state={here / 'state-older'}" if given.broker else "")
    eventlog("restore", backups / "sunday", "--erasure-register", register, "--keys-from", keys / "sunday", "--store", older)
    check(older, staying, leaving, before)
    print(f"\nThe same answers as before for {len(staying)} conversations, and none for {len(leaving)}.")


def every_one(store: CheckpointStore) -> list[Any]:
    """The list, page by page."""
    page = store.list(limit=1000)
    found = list(page.items)
    while page.next is not None:
        page = store.list(limit=1000, after=page.next)
        found += page.items
    return found


def check(address: str, staying: list[str], leaving: list[str], before: Answers) -> None:
    """The same answers about what stays; of what was erased, that it is gone."""
    with open_store(address) as store:
        assert ask(store, staying) == before
        for each in leaving:
            for revision in (None, 0):
                try:
                    store.load(each, revision=revision)
                except (Deleted, HistoryRemoved):
                    continue
                raise AssertionError(f"{each} can be read")


if __name__ == "__main__":
    main()
