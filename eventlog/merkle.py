"""A Merkle tree over entries in their order, in the shape of RFC 6962: what was there cannot be changed, cut off or exchanged unnoticed.

Pure. The tree of n entries is split at the largest power of two below n; a leaf's hash is SHA-256 of 00 and the entry, an inner node's that
of 01 and its two children. Of the log the entries are the events' hashes, in the order of a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Self

EMPTY_ROOT = sha256(b"").digest()  # of the tree without entries


def leaf_hash(entry: bytes) -> bytes:
    """The hash of a leaf. The prefix keeps a leaf from being passed off as an inner node."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """The head of a tree that is only ever appended to. Keeps the roots of its complete subtrees, one a bit of `size`: never the leaves."""

    __slots__ = ("_peaks", "_size")

    def __init__(self, *, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        """An empty tree, or one that goes on from what `size` and `peaks` of another were. Raises `ValueError` when they do not fit."""
        if size < 0 or len(peaks) != size.bit_count() or any(len(peak) != 32 for peak in peaks):
            raise ValueError(f"{len(peaks)} hashes are no head of a tree of {size} entries")
        self._size = size
        self._peaks = list(peaks)

    @property
    def size(self) -> int:
        """How many leaves there are."""
        return self._size

    @property
    def peaks(self) -> tuple[bytes, ...]:
        """The roots of the complete subtrees, from the left: the largest first."""
        return tuple(self._peaks)

    @property
    def root(self) -> bytes:
        """The root over all leaves."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root

    def append(self, leaf: bytes) -> None:
        """Adds a leaf's hash at the right."""
        number = self._size
        while number & 1:  # a complete subtree of the same height is at the left of it
            leaf = node_hash(self._peaks.pop(), leaf)
            number >>= 1
        self._peaks.append(leaf)
        self._size += 1

    def copy(self) -> Self:
        """Another tree that goes on from here."""
        return type(self)(size=self._size, peaks=self._peaks)


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes."""
    tree = Tree()
    for leaf in leaves:
        tree.append(leaf)
    return tree.root


def inclusion_proof(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """What shows that the leaf at an index is in the tree over these leaf hashes: its siblings on the way up. Raises `ValueError`."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"there is no leaf {index} among {len(leaves)}")
    if len(leaves) == 1:
        return []
    half = _split(len(leaves))
    if index < half:
        return [*inclusion_proof(index, leaves[:half]), root_of(leaves[half:])]
    return [*inclusion_proof(index - half, leaves[half:]), root_of(leaves[:half])]


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether a proof shows that a leaf's hash is the one at an index of the tree of a size and root (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size:
        return False
    last = size - 1
    for sibling in proof:
        if last == 0:
            return False
        if index & 1 or index == last:
            leaf = node_hash(sibling, leaf)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            leaf = node_hash(leaf, sibling)
        index, last = index >> 1, last >> 1
    return last == 0 and leaf == root


def consistency_proof(size: int, leaves: Sequence[bytes]) -> list[bytes]:
    """What shows that the tree over these leaf hashes continues that over the first `size` of them. Raises `ValueError`."""
    if not 0 <= size <= len(leaves):
        raise ValueError(f"a tree of {len(leaves)} entries cannot continue one of {size}")
    return _consistency(size, leaves, whole=True) if size else []


def is_consistent(size: int, root: bytes, later_size: int, later_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a proof shows that the tree of a later size and root continues the earlier one (RFC 9162, 2.1.4.2)."""
    if not 0 <= size <= later_size:
        return False
    if size == later_size:
        return root == later_root and not proof
    if size == 0:
        return root == EMPTY_ROOT and not proof
    rest = [root, *proof] if size.bit_count() == 1 else list(proof)
    if not rest:
        return False
    node, last = size - 1, later_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    earlier = later = rest[0]
    for sibling in rest[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            earlier, later = node_hash(sibling, earlier), node_hash(sibling, later)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            later = node_hash(later, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and earlier == root and later == later_root


def _consistency(size: int, leaves: Sequence[bytes], *, whole: bool) -> list[bytes]:
    """`whole`: whether the earlier tree is this very subtree from its beginning, so that the verifier knows its root."""
    if size == len(leaves):
        return [] if whole else [root_of(leaves)]
    half = _split(len(leaves))
    if size <= half:
        return [*_consistency(size, leaves[:half], whole=whole), root_of(leaves[half:])]
    return [*_consistency(size - half, leaves[half:], whole=False), root_of(leaves[:half])]


def _split(size: int) -> int:
    """The largest power of two below a size."""
    return 1 << ((size - 1).bit_length() - 1)
