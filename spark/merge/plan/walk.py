"""Find a trie's directories in the image, level by level, in the edges that a scan kept.

See docs/reference/checkpoint.md#look-up.

Pure.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from spark.image.names import hashes_of, paired
from spark.image.varints import Numbers, Words
from spark.merge.errors import NeedsWholeNamespace
from spark.merge.trie import BaseTrie

ABSENT: Final = -1


def interior(trie: BaseTrie) -> list[int]:
    """Return the nodes that should be directories, the root among them."""
    return [node for node in range(len(trie)) if node == 0 or trie.is_interior(node)]


def neighbours(trie: BaseTrie) -> tuple[Words, Words]:
    """Hashes of the interior nodes' names, and of each pair of names of parent and child."""
    nodes = interior(trie)
    names = hashes_of([trie.names[node] for node in nodes])
    row_of = {node: row for row, node in enumerate(nodes)}
    below = np.array([row for row, node in enumerate(nodes) if node], np.int64)
    above = np.array([row_of[trie.parents[node]] for node in nodes if node], np.int64)
    return np.unique(names), np.unique(paired(names[below], names[above].view(np.int64)))


def walk(trie: BaseTrie, root: int, edges: Sequence[Numbers]) -> Numbers:
    """Return the ids, by trie node, of the directories on the way to what is asked.

    Other nodes have ``ABSENT``.

    Args:
        trie: what is asked about.
        root: the root's inode id.
        edges: by range, (key, child) sorted by key; mapped files.

    Raises:
        NeedsWholeNamespace: if two names cannot be distinguished by their hashes.
    """
    ids = np.full(len(trie), ABSENT, np.int64)
    ids[0] = root
    for level in trie.levels()[1:]:
        nodes = np.array([node for node in level if trie.is_interior(node)], np.int64)
        above = np.array([trie.parents[node] for node in nodes.tolist()], np.int64)
        known = np.flatnonzero(ids[above] != ABSENT)
        nodes, above = nodes[known], above[known]
        keys = paired(hashes_of([trie.names[node] for node in nodes.tolist()]), ids[above])
        for table in edges:
            _match(ids, nodes, keys, table)
    return ids


def _match(ids: Numbers, nodes: Numbers, keys: Words, table: Numbers) -> None:
    found = table[0].view(np.uint64)
    places = np.searchsorted(found, keys)
    ends = np.searchsorted(found, keys, side="right")
    if (ends - places > 1).any():
        raise NeedsWholeNamespace(
            "two directories cannot be told apart by what their names hash to"
        )
    hits = np.flatnonzero(ends > places)
    ids[nodes[hits]] = table[1][places[hits]]
