"""The tree against the published vectors of certificate transparency (transparency-dev/merkle) and RFC 6962."""

import hashlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.ledger.merkle import (
    SubtreeHash,
    complete_root,
    consistency_proof,
    inclusion_proof,
    node_hash,
    tree_root,
)
from forge.proof.tree import extends, included, leaf_hash

ENTRIES = [
    bytes.fromhex(text)
    for text in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    bytes.fromhex(text)
    for text in (
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    )
]
INCLUSION = {
    (0, 1): [],
    (0, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (5, 8): [
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 3): ["fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
    (1, 5): [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
}
CONSISTENCY = {
    (1, 1): [],
    (1, 8): [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ],
    (6, 8): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
    (2, 5): [
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
    ],
    (6, 7): [
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "b08693ec2e721597130641e8211e7eedccb4c26413963eee6c1e2ed16ffb1a5f",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ],
}
LEAVES = [leaf_hash(entry) for entry in ENTRIES]


def over(leaves: Sequence[bytes]) -> SubtreeHash:
    return lambda level, place: complete_root(leaves[place << level : (place + 1) << level])


def naive_root(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962, section 2.1, word for word."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\x01" + naive_root(leaves[:k]) + naive_root(leaves[k:])).digest()


def hashes(texts: Sequence[str]) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


def test_leaf_node_and_empty_tree_have_their_published_hashes() -> None:
    assert leaf_hash(b"L123456").hex() == "395aa064aa4c29f7010acfe3f25db9485bbd4b91897b6ad7ad547639252b4d56"
    assert node_hash(b"N123", b"N456").hex() == "aa217fe888e47007fa15edab33c2b492a722cb106c64667fc2b044444de66bbb"
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert tree_root(0, over([])).hex() == empty


@pytest.mark.parametrize("size", range(1, 9))
def test_the_roots_are_the_published_ones(size: int) -> None:
    assert tree_root(size, over(LEAVES)) == ROOTS[size - 1]


@pytest.mark.parametrize(("index", "size"), INCLUSION)
def test_inclusion_proofs_are_the_published_ones_and_hold(index: int, size: int) -> None:
    path = hashes(INCLUSION[index, size])
    assert inclusion_proof(index, size, over(LEAVES)) == path
    assert included(LEAVES[index], index, size, path, ROOTS[size - 1])


@pytest.mark.parametrize(("old", "size"), CONSISTENCY)
def test_consistency_proofs_are_the_published_ones_and_hold(old: int, size: int) -> None:
    path = hashes(CONSISTENCY[old, size])
    assert consistency_proof(old, size, over(LEAVES)) == path
    assert extends(old, ROOTS[old - 1], size, ROOTS[size - 1], path)


@pytest.mark.parametrize(("index", "size"), [pair for pair in INCLUSION if INCLUSION[pair]])
def test_a_published_inclusion_proof_that_was_altered_does_not_hold(index: int, size: int) -> None:
    leaf, path, root = LEAVES[index], hashes(INCLUSION[index, size]), ROOTS[size - 1]
    other = hashlib.sha256(b"other").digest()
    wrong = [
        (leaf, index - 1, size, path, root),
        (leaf, index + 1, size, path, root),
        (leaf, index ^ 2, size, path, root),
        (leaf, index, size * 2, path, root),
        (leaf, index, size // 2, path, root),
        (other, index, size, path, root),
        (b"short", index, size, path, root),
        (leaf, index, size, path, other),
        (leaf, index, size, [*path, b""], root),
        (leaf, index, size, [*path, root], root),
        (leaf, index, size, [b"", *path], root),
        (leaf, index, size, [root, *path], root),
        (leaf, index, size, path[:-1], root),
        (leaf, index, size, path[1:], root),
    ]
    for place, step in enumerate(path):
        flipped = bytes([step[0] ^ 8]) + step[1:]
        wrong.append((leaf, index, size, [*path[:place], flipped, *path[place + 1 :]], root))
    assert [one for one in wrong if included(*one)] == []


@pytest.mark.parametrize(("old", "size"), [pair for pair in CONSISTENCY if CONSISTENCY[pair]])
def test_a_published_consistency_proof_that_was_altered_does_not_hold(old: int, size: int) -> None:
    before, after, path = ROOTS[old - 1], ROOTS[size - 1], hashes(CONSISTENCY[old, size])
    wrong = [
        (old - 1, before, size, after, path),
        (old + 1, before, size, after, path),
        (old ^ 2, before, size, after, path),
        (old, before, size * 2, after, path),
        (old, before, size // 2, after, path),
        (old, after, size, before, path),
        (old, bytes(32), size, after, path),
        (old, before, size, bytes(32), path),
        (old, before, size, after, []),
        (old, before, size, after, [*path, before]),
        (old, before, size, after, [before, *path]),
        (old, before, size, after, [path[0], *path]),
        (old, before, size, after, path[:-1]),
    ]
    for place, step in enumerate(path):
        flipped = bytes([step[0] ^ 16]) + step[1:]
        wrong.append((old, before, size, after, [*path[:place], flipped, *path[place + 1 :]]))
    assert [one for one in wrong if extends(*one)] == []


def test_a_tree_extends_itself_by_nothing_and_no_smaller_one() -> None:
    assert extends(8, ROOTS[7], 8, ROOTS[7], [])
    assert not extends(8, ROOTS[7], 8, ROOTS[7], [ROOTS[0]])
    assert not extends(8, ROOTS[7], 8, ROOTS[6], [])
    assert not extends(8, ROOTS[7], 7, ROOTS[6], [])
    assert not extends(0, ROOTS[0], 1, ROOTS[0], [])


@given(data=st.data(), size=st.integers(1, 300))
def test_root_and_proofs_agree_with_the_recursive_definition_at_any_size(data: st.DataObject, size: int) -> None:
    leaves = [hashlib.sha256(str(place).encode()).digest() for place in range(size)]
    old, index = data.draw(st.integers(1, size)), data.draw(st.integers(0, size - 1))
    root, before = naive_root(leaves), naive_root(leaves[:old])
    assert tree_root(size, over(leaves)) == root
    assert included(leaves[index], index, size, inclusion_proof(index, size, over(leaves)), root)
    path = consistency_proof(old, size, over(leaves))
    assert extends(old, before, size, root, path)


@pytest.mark.parametrize(("index", "size"), [(1, 1), (-1, 4), (0, 0)])
def test_there_is_no_proof_of_what_is_not_in_the_tree(index: int, size: int) -> None:
    with pytest.raises(ValueError, match="isn't in a tree"):
        inclusion_proof(index, size, over(LEAVES))
    with pytest.raises(ValueError, match="beginning"):
        consistency_proof(index if index > 0 and size > 1 else 9, size, over(LEAVES))
