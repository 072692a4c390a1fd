"""Where wrapped data keys are kept, apart from the log: the contract. Two implementations: `embedded_keys.py` and `kafka/keys.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from eventlog.privacy.keys import WrappedKey


class KeyTable(Protocol):
    """Wrapped data keys by checkpoint and key id. Methods raise errors of `eventlog.errors` only; any thread may call them."""

    def get(self, checkpoint_id: str, key_id: str) -> WrappedKey | None:
        """A wrapped key, also one that another process has put there a moment ago. None: it was destroyed, or never was."""
        ...

    def of(self, checkpoint_id: str, *, now: bool = True) -> Sequence[WrappedKey]:
        """All keys of a checkpoint. `now`: with everything that any process had put there before the call; otherwise what is known here."""
        ...

    def put(self, key: WrappedKey) -> None:
        """Adds a key of a new id. Durable, and found by every process, when it returns."""
        ...

    def replace(self, pairs: Sequence[tuple[WrappedKey, WrappedKey]]) -> int:
        """Puts each new form of a key in the place of the old one, durably; how many. One that is not there any more stays away: no
        destroyed key comes back.
        """
        ...

    def destroy(self, *checkpoint_ids: str) -> int:
        """Destroys all keys of some checkpoints, durably; how many. Embedded, no file has their bytes afterwards; on Kafka they are
        gone when the topic is compacted.
        """
        ...

    def all(self) -> Iterator[WrappedKey]:
        """Every key that is there at the time of the call, for rotation and counting. What comes meanwhile may be among them."""
        ...

    def close(self) -> None: ...
