"""The Merkle tree is RFC 6962's: held against the RFC's definition, word for word, and against the known roots of small trees."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.merkle import EMPTY_ROOT, Tree, consistency_proof, inclusion_proof, is_consistent, is_included, leaf_hash, root_of

# The entries and roots that implementations of Certificate Transparency have in common.
ENTRIES = [
    bytes.fromhex(each) for each in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]

entries = st.lists(st.binary(max_size=8), max_size=70)


def defined(data: list[bytes]) -> bytes:
    """The RFC's definition of a Merkle tree hash, section 2.1."""
    if not data:
        return sha256(b"").digest()
    if len(data) == 1:
        return sha256(b"\x00" + data[0]).digest()
    split = 1
    while split * 2 < len(data):
        split *= 2
    return sha256(b"\x01" + defined(data[:split]) + defined(data[split:])).digest()


def hashed(data: list[bytes]) -> list[bytes]:
    return [leaf_hash(each) for each in data]


@pytest.mark.parametrize("size", range(9))
def test_small_trees_have_the_known_roots(size: int) -> None:
    assert root_of(hashed(ENTRIES[:size])).hex() == ROOTS[size]


def test_the_proofs_of_the_rfcs_example_are_those_of_its_figure() -> None:
    """Section 2.1.3: a tree of seven, its nodes a to l named as there."""
    d = hashed(ENTRIES[:7])
    g, h, i = root_of(d[:2]), root_of(d[2:4]), root_of(d[4:6])
    k, j = root_of(d[:4]), d[6]
    assert inclusion_proof(0, d) == [d[1], h, root_of(d[4:])]
    assert inclusion_proof(3, d) == [d[2], g, root_of(d[4:])]
    assert inclusion_proof(4, d) == [d[5], j, k]
    assert inclusion_proof(6, d) == [i, k]
    assert consistency_proof(3, d) == [d[2], d[3], g, root_of(d[4:])]
    assert consistency_proof(4, d) == [root_of(d[4:])]
    assert consistency_proof(6, d) == [i, j, k]


@given(entries)
def test_a_tree_that_grows_has_the_defined_root_at_every_size(data: list[bytes]) -> None:
    tree = Tree()
    assert tree.root == EMPTY_ROOT
    for size, entry in enumerate(data, 1):
        tree.append(leaf_hash(entry))
        assert (tree.size, len(tree.peaks)) == (size, size.bit_count())
        assert tree.root == defined(data[:size])


@given(entries, st.data())
def test_a_tree_goes_on_from_its_head_alone(data: list[bytes], chance: st.DataObject) -> None:
    split = chance.draw(st.integers(0, len(data)))
    before = Tree()
    for entry in data[:split]:
        before.append(leaf_hash(entry))
    after, copied = Tree(size=before.size, peaks=before.peaks), before.copy()
    for entry in data[split:]:
        after.append(leaf_hash(entry))
        copied.append(leaf_hash(entry))
    assert after.root == copied.root == defined(data)
    assert before.root == defined(data[:split])


@pytest.mark.parametrize(("size", "peaks"), [(3, [b"x" * 32]), (0, [b"x" * 32]), (1, [b"short"]), (-1, [])])
def test_what_is_no_head_of_a_tree_is_refused(size: int, peaks: list[bytes]) -> None:
    with pytest.raises(ValueError, match="no head"):
        Tree(size=size, peaks=peaks)


@given(entries.filter(bool), st.data())
def test_an_inclusion_proof_shows_its_leaf_and_nothing_else(data: list[bytes], chance: st.DataObject) -> None:
    index = chance.draw(st.integers(0, len(data) - 1))
    leaves, root = hashed(data), defined(data)
    proof = inclusion_proof(index, leaves)
    assert is_included(leaves[index], index, len(data), proof, root)
    assert not is_included(leaf_hash(b"another entry"), index, len(data), proof, root)
    assert not is_included(leaves[index], index, len(data), proof, leaf_hash(b"another root"))
    assert not is_included(leaves[index], index, len(data), [*proof, root], root)
    assert not is_included(leaves[index], len(data), len(data), proof, root)
    if proof:
        assert not is_included(leaves[index], index, len(data), proof[:-1], root)
        assert not is_included(leaves[index], index, len(data), [leaf_hash(b"another sibling"), *proof[1:]], root)


@given(entries, st.data())
def test_a_consistency_proof_shows_a_continuation_and_nothing_else(data: list[bytes], chance: st.DataObject) -> None:
    size = chance.draw(st.integers(0, len(data)))
    leaves, earlier, later = hashed(data), defined(data[:size]), defined(data)
    proof = consistency_proof(size, leaves)
    assert is_consistent(size, earlier, len(data), later, proof)
    other = leaf_hash(b"another root")
    assert not is_consistent(size, other, len(data), later, proof)
    assert not is_consistent(size, earlier, len(data), other, proof) or size == 0
    assert not is_consistent(len(data) + 1, earlier, len(data), later, proof)
    assert not is_consistent(size, earlier, len(data), later, [*proof, other])
    if proof:
        assert not is_consistent(size, earlier, len(data), later, proof[:-1])
        assert not is_consistent(size, earlier, len(data), later, [other, *proof[1:]])


@given(entries.filter(lambda data: len(data) > 1), st.data())
def test_a_changed_past_has_no_consistency_proof(data: list[bytes], chance: st.DataObject) -> None:
    size = chance.draw(st.integers(1, len(data)))
    changed = list(data)
    changed[chance.draw(st.integers(0, size - 1))] += b"!"
    assert not is_consistent(size, defined(data[:size]), len(data), defined(changed), consistency_proof(size, hashed(changed)))


def test_proofs_beyond_the_tree_are_refused() -> None:
    leaves = hashed(ENTRIES[:3])
    with pytest.raises(ValueError, match="no leaf 3"):
        inclusion_proof(3, leaves)
    with pytest.raises(ValueError, match="cannot continue"):
        consistency_proof(4, leaves)
