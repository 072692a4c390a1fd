"""How an event's bytes are kept: as they came, compressed, or compressed against the event that follows it.

A state that grows is written whole with every revision, so that a revision says little that its successor does not say again: against it
200 KB of a transcript take 240 bytes. The bytes themselves mean nothing here, and come back exactly, whatever version of zstd reads them.
"""

from __future__ import annotations

import threading

import zstandard

PLAIN, COMPRESSED, AGAINST_SUCCESSOR = 0, 1, 2

# Revisions of one block form at most one chain; its last one stands for itself. So the oldest costs 31 steps to read: 0.2 ms at 20 KB,
# 2 ms at 200 KB; and every 32nd revision is paid in full.
BLOCK_BITS = 5

_COMPRESS_FROM = 2048  # bytes; below, zstd saves little and costs a lookup more than it saves
_PAYS = 0.7  # of the bytes that the event takes by itself; a chain is not made longer for less
# Level 1, but looking for long matches only, in a table of an eighth as many entries as there are bytes: 0.6 of the time of level 3 at
# 200 KB, and the same 240 bytes; above 1 MB the levels' own tables are too small to find much (half of 3 MB was left, measured).
_LEVEL, _SHORTEST_MATCH = 1, 7
_TABLE_BITS = (12, 20)
_LARGEST_WINDOW = 1 << 31

_zstd = threading.local()  # a compressor shared between threads crashes the process (zstandard 0.25): one a thread


def same_block(revision: int, successor: int) -> bool:
    """Whether a revision may be kept against a later one."""
    return revision >> BLOCK_BITS == successor >> BLOCK_BITS


def block_end(revision: int) -> int:
    """The last revision of the block that a revision belongs to: what is needed to read it lies up to there."""
    return revision | ((1 << BLOCK_BITS) - 1)


def alone(event: bytes) -> tuple[int, bytes]:
    """The form and the bytes of an event that stands for itself."""
    if len(event) < _COMPRESS_FROM:
        return PLAIN, event
    try:
        compressor = _zstd.compressor
    except AttributeError:
        compressor = _zstd.compressor = zstandard.ZstdCompressor(level=_LEVEL)
    compressed: bytes = compressor.compress(event)
    return (COMPRESSED, compressed) if len(compressed) < _PAYS * len(event) else (PLAIN, event)


def against(event: bytes, successor: bytes, stored_size: int) -> bytes | None:
    """An event against its successor, or None where that saves too little of the `stored_size` bytes that it takes by itself."""
    size = len(event) + len(successor)
    known = zstandard.ZstdCompressionDict(successor, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    parameters = zstandard.ZstdCompressionParameters.from_level(
        _LEVEL,
        window_log=max(10, size.bit_length()),  # reaches to the successor's beginning
        hash_log=min(max(size.bit_length() - 3, _TABLE_BITS[0]), _TABLE_BITS[1]),
        min_match=_SHORTEST_MATCH,
        write_dict_id=0,
    )
    compressed: bytes = zstandard.ZstdCompressor(dict_data=known, compression_params=parameters).compress(event)
    return compressed if len(compressed) < _PAYS * stored_size else None


def opened(form: int, stored: bytes, successor: bytes | None = None) -> bytes:
    """The event's bytes as they came. Raises `ValueError` where they cannot be made out."""
    try:
        if form == PLAIN:
            return stored
        if form == COMPRESSED:
            try:
                decompressor = _zstd.decompressor
            except AttributeError:
                decompressor = _zstd.decompressor = zstandard.ZstdDecompressor()
            return bytes(decompressor.decompress(stored))
        if form == AGAINST_SUCCESSOR and successor is not None:
            known = zstandard.ZstdCompressionDict(successor, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
            return bytes(zstandard.ZstdDecompressor(dict_data=known, max_window_size=_LARGEST_WINDOW).decompress(stored))
    except zstandard.ZstdError as error:
        raise ValueError(f"an event cannot be decompressed: {error}") from error
    raise ValueError("an event's successor is missing" if form == AGAINST_SUCCESSOR else f"unknown form {form} of an event")
