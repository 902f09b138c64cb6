"""Which directories are looked for, and which of them the kept edges of an image lead to."""

from collections.abc import Iterable

import numpy as np
import pytest

from spark.image.names import hashes_of, paired
from spark.image.varints import Numbers, Words
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.plan.walk import ABSENT, neighbours, walk
from spark.merge.trie import ROOT, BaseTrie

ROOT_ID = 16385


def asking(*paths: str) -> BaseTrie:
    """Make a trie that asks about paths, in that order."""
    trie = BaseTrie()
    for path in paths:
        node = ROOT
        for name in path.split("/")[1:]:
            node = trie.child(node, name.encode())
    return trie


def hashes(names: Iterable[str]) -> list[int]:
    return sorted(hashes_of([name.encode() for name in names]).tolist())


def pair_hashes(pairs: Iterable[tuple[str, str]]) -> list[int]:
    parents, children = zip(*pairs, strict=True) if pairs else ((), ())
    above = hashes_of([name.encode() for name in parents])
    below = hashes_of([name.encode() for name in children])
    return sorted(paired(below, above.view(np.int64)).tolist())


@pytest.mark.parametrize(
    ("paths", "names", "pairs"),
    [
        pytest.param([], [""], [], id="nothing is asked: the root alone"),
        pytest.param(["/x"], [""], [], id="what is asked about is no directory on the way"),
        pytest.param(["/a/x"], ["", "a"], [("", "a")], id="one on the way"),
        pytest.param(
            ["/a/b/x", "/c/y", "/a/z"],
            ["", "a", "b", "c"],
            [("", "a"), ("a", "b"), ("", "c")],
            id="two ways",
        ),
        pytest.param(
            ["/a/a/x", "/b/a/x"],
            ["", "a", "b"],
            [("", "a"), ("a", "a"), ("", "b"), ("b", "a")],
            id="a name that comes again is looked for once",
        ),
    ],
)
def test_directories_on_the_way_are_looked_for(
    paths: list[str], names: list[str], pairs: list[tuple[str, str]]
) -> None:
    found_names, found_pairs = neighbours(asking(*paths))
    assert found_names.tolist() == hashes(names)
    assert found_pairs.tolist() == pair_hashes(pairs)


Edge = tuple[int, str, int]
"""The parent's inode id, the child's name and its id."""


def key(parent: int, name: str) -> Words:
    return paired(hashes_of([name.encode()]), np.array([parent], np.int64))


def table(*edges: Edge) -> Numbers:
    rows = sorted((int(key(parent, name)[0]), child) for parent, name, child in edges)
    keys = np.array([number for number, _ in rows], np.uint64)
    return np.array([keys.view(np.int64), [child for _, child in rows]], np.int64).reshape(2, -1)


A, B, C, D, E = range(16386, 16391)
TREE: list[Edge] = [(ROOT_ID, "a", A), (A, "b", B), (B, "c", C), (ROOT_ID, "d", D), (D, "b", E)]


@pytest.mark.parametrize(
    ("path", "on_the_way"),
    [
        pytest.param("/a/x", [A, ABSENT], id="one directory"),
        pytest.param("/a/b/c/x", [A, B, C, ABSENT], id="each in the one before"),
        pytest.param("/d/b/x", [D, E, ABSENT], id="the same name elsewhere"),
        pytest.param("/a/b", [A, ABSENT], id="the last one is asked about, not walked through"),
        pytest.param("/no/b/x", [ABSENT, ABSENT, ABSENT], id="below what is not there"),
        pytest.param("/a/no/c/x", [A, ABSENT, ABSENT, ABSENT], id="the way ends"),
        pytest.param("/b/x", [ABSENT, ABSENT], id="the name is in another directory"),
    ],
)
@pytest.mark.parametrize("ranges", [1, 2, 5, 7])
def test_the_way_leads_from_one_directory_to_the_next(
    path: str, on_the_way: list[int], ranges: int
) -> None:
    tables = [table(*TREE[number::ranges]) for number in range(ranges)]
    assert walk(asking(path), ROOT_ID, tables).tolist() == [ROOT_ID, *on_the_way]


def test_every_name_that_is_not_there_stays_absent() -> None:
    """Try hashes below, between and above those of the names that are there."""
    names = [f"no{number}" for number in range(50)]
    trie = asking(*(f"/{name}/x" for name in names))
    found = walk(trie, ROOT_ID, [table((ROOT_ID, "a", A), (ROOT_ID, "d", D))])
    assert found.tolist() == [ROOT_ID] + [ABSENT] * 2 * len(names)


def test_two_directories_of_one_key_cannot_be_told_apart() -> None:
    twice = table(*TREE, (A, "b", E))
    assert walk(asking("/d/b/x"), ROOT_ID, [twice]).tolist() == [ROOT_ID, D, E, ABSENT]
    with pytest.raises(NeedsWholeNamespace, match="cannot be told apart"):
        walk(asking("/a/b/x"), ROOT_ID, [twice])
