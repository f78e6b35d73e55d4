"""The Merkle tree is that of RFC 6962, and its proofs prove nothing else."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reenact.check.seals.commitments import leaf_hash, path_of, root_by_path, root_of
from tests.formats import law

# The data and roots with which Certificate Transparency's own implementations are tested.
CT_LEAVES = [
    "",
    "00",
    "10",
    "2021",
    "3031",
    "40414243",
    "5051525354555657",
    "606162636465666768696a6b6c6d6e6f",
]
CT_ROOTS = [
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


@pytest.mark.parametrize("count", range(9))
def test_roots_are_those_of_certificate_transparency(count):
    """The empty tree included."""
    assert root_of(leaf_hash(bytes.fromhex(text)) for text in CT_LEAVES[:count]).hex() == CT_ROOTS[count]


@pytest.mark.parametrize("count", range(1, 71))
def test_every_leaf_has_a_path_to_the_root(count):
    """And no other leaf, place or size fits it."""
    leaves = [leaf_hash(b"%d" % index) for index in range(count)]
    root = root_of(leaves)
    for index, leaf in enumerate(leaves):
        path = path_of(leaves, index)
        assert root_by_path(leaf, index, count, path) == root
        assert len(path) <= (count - 1).bit_length()
        for other in range(count):
            assert (root_by_path(leaf, other, count, path) == root) is (other == index)
        assert root_by_path(leaf_hash(b"else"), index, count, path) != root
        assert root_by_path(leaf, index, count, [*path, leaf]) is None
        assert not path or root_by_path(leaf, index, count, path[:-1]) != root


@law
@given(st.lists(st.binary(max_size=4), min_size=2, max_size=40), st.data())
def test_a_root_tells_order_and_number(values, data):
    """Two sequences that differ have two roots."""
    leaves = [leaf_hash(value) for value in values]
    other = data.draw(st.permutations(leaves)) if data.draw(st.booleans()) else leaves[:-1]
    assert (root_of(other) == root_of(leaves)) is (other == leaves)


def test_a_node_is_no_leaf():
    """What two leaves hash to cannot be passed off as the leaf of their hashes."""
    left, right = leaf_hash(b"a"), leaf_hash(b"b")
    assert root_of([left, right]) == sha256(b"\x01" + left + right).digest()
    assert root_of([left, right]) != root_of([leaf_hash(left + right)])


@pytest.mark.parametrize(("index", "count"), [(-1, 3), (3, 3), (0, 0)])
def test_a_place_outside_has_no_path(index, count):
    """It leads nowhere instead of raising."""
    assert root_by_path(leaf_hash(b""), index, count, []) is None
