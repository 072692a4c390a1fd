"""What a store keeps beside its log: the keys of its payloads, the record of accesses, the archive. None of it needs a payload."""

from __future__ import annotations

from eventlog.address import DirectoryAddress, KafkaAddress
from eventlog.archive.directory import Archive
from eventlog.archive.margin import MarginState, margin_of
from eventlog.archive.remembered import remembered
from eventlog.diagnosis.check import Check, State, human, lasting
from eventlog.embedded_files import ACCESS_FILE
from eventlog.privacy.data_keys import DataKeys
from eventlog.privacy.rotation import status
from eventlog.store import CheckpointStore

LARGEST_ACCESS_BYTES = 1 << 30  # two million records or so; a topic's are removed by its retention
_MOST_HEADS = 1_000  # whose keys are looked up: a copy of the keys that is older than the log lacks the newest


def encryption(store: CheckpointStore) -> Check:
    """Whether the keys are there by which the newest checkpoints are sealed, and all of them are wrapped by a current version."""
    keys = store.keys
    if keys is None:
        return Check("encryption", State.OK, "off: payloads are in clear text")
    missing = _without_key(store, keys)  # before the counting: keys are put before what they seal
    counts = status(keys.table, keys.provider)
    held = sum(count.keys for count in counts if count.tenant)
    stale = sum(count.keys for count in counts if not count.current)
    detail = f"on, {held} data keys, wrapped by {keys.provider.source}"
    if missing:
        advice = "Restore a copy of the wrapped keys that is not older than the log. Without one these stay unreadable."
        return Check("encryption", State.FAIL, f"{detail}; {len(missing)} checkpoints have lost theirs, {missing[0]} among them", advice)
    if stale:
        return Check("encryption", State.WARN, f"{detail}; {stale} by an earlier version", "Finish the rotation: `eventlog keys rotate`.")
    return Check("encryption", State.OK, detail)


def _without_key(store: CheckpointStore, keys: DataKeys) -> list[str]:
    """Live checkpoints, of the newest ones, whose data key is not there. An erasure ends a checkpoint before it destroys its keys."""
    found = store.catalog.sql(
        "SELECT checkpoint_id::VARCHAR, key_id FROM checkpoint_heads JOIN checkpoint_history USING (checkpoint_id, revision)"
        f" WHERE NOT deleted AND key_id IS NOT NULL ORDER BY checkpoint_history.recorded_at DESC NULLS LAST LIMIT {_MOST_HEADS}"
    )
    return [checkpoint_id for checkpoint_id, key_id in found.rows if keys.table.get(checkpoint_id, key_id) is None]


def access(store: CheckpointStore, where: DirectoryAddress | KafkaAddress) -> Check:
    """How accesses are recorded, and how much of that there is. `verify` checks the record itself."""
    recorder = store.recorder
    if recorder is None:
        return Check("access", State.OK, "accesses are not recorded")
    start, end = recorder.log.start(), recorder.log.end()
    detail = f"recorded, mode {recorder.mode}; the access log has {start} to {end}"
    if isinstance(where, DirectoryAddress):
        size = sum(path.stat().st_size for path in where.directory.glob(f"{ACCESS_FILE}*") if path.suffix != ".new")
        if size > LARGEST_ACCESS_BYTES:
            advice = "Keep what you must (`eventlog report access`), and remove the rest: `eventlog access prune --older-than 400d`."
            return Check("access", State.WARN, f"{detail}, {human(size)}", advice)
    return Check("access", State.OK, detail)


def archive(store: CheckpointStore, where: DirectoryAddress | KafkaAddress) -> Check:
    """Whether the archive is there and this store's own, and on Kafka how far it is ahead of compaction."""
    directory = remembered(store.log.directory)
    kept = None if directory is None else Archive(directory=directory)
    if kept is not None:
        kept.require()
        kept.require_of(store.log.identity)
    what = "none" if kept is None else f"{kept.directory}, up to {kept.end()}"
    margin = margin_of(store, where, kept)
    if margin is None:
        return Check("archive", State.OK, what)
    if kept is None:
        if margin.state is MarginState.SAFE:
            return Check("archive", State.OK, f"none; every revision is in the topic for {lasting(margin.left_ms / 1000)} at least")
        advice = "What compaction removes is then only in this projection: keep an archive with `eventlog archive run --to DIR`."
        return Check("archive", State.WARN, "no archive; revisions are older than half of the topic's hold", advice)
    advice = "Run `eventlog archive run` now, and more often: with --every it keeps on."
    if margin.state is MarginState.OVERTAKEN:
        return Check("archive", State.FAIL, f"{what}; compaction may have overtaken it {lasting(-margin.left_ms / 1000)} ago", advice)
    left = f"{what}; compaction may remove what is not archived in {lasting(margin.left_ms / 1000)}"
    if margin.state is MarginState.SHORT:
        return Check("archive", State.WARN, f"{left}: less than half of the hold", advice)
    return Check("archive", State.OK, left if margin.oldest_at is not None else f"{what}: everything")
