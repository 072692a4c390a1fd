"""What a compact leaves of an event in the embedded log: its header, and how large it was.

    C3 02, the size of the whole event (8 bytes, big-endian), the schema's fingerprint, the header

So positions stay without gaps, every hash chain and Merkle tree still verifies, and retries and `resolve` are answered as before; only the
body is gone. The marker is none of Avro's: a reader that does not know it cannot take a stub for an event.
"""

from __future__ import annotations

from eventlog.codec import MARKER, header_end, without_body

STUB = b"\xc3\x02"
_SIZE = slice(2, 10)


def stub_of(event: bytes) -> bytes:
    """The stub of an event. Raises `SchemaMismatch` or `Corrupted`."""
    return STUB + len(event).to_bytes(8, "big") + event[len(MARKER) : header_end(event)]


def is_stub(stored: bytes) -> bool:
    """Whether a row's bytes are a stub."""
    return stored[:2] == STUB


def opened(stub: bytes) -> tuple[bytes, int]:
    """The event with an empty body, and the size that the whole one had."""
    return without_body(MARKER + stub[_SIZE.stop :]), int.from_bytes(stub[_SIZE], "big")
