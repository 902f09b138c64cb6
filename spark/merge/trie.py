"""The places in the old image that the edits ask about, as a tree of names."""

from array import array
from typing import Final

NEED: Final = 1
"""The message of what lies there is wanted, if anything does."""

GAINS: Final = 2
"""A directory that may gain children: the names of its children are needed to put them in order."""

ROOT: Final = 0


class BaseTrie:
    """Names as they lie in the image.  Node 0 is the root; a node comes after its parent.

    A node without flags is only walked through.  What is asked about may be absent in the image,
    or be a file where the edits had a directory.

    Attributes:
        parents: the parent's number by node, -1 for the root.
        names: the name by node, empty for the root.
        flags: NEED and GAINS by node.
        children: the numbers of a node's children by name; None for a leaf.
    """

    __slots__ = ("children", "flags", "names", "parents")

    def __init__(self) -> None:
        self.parents = array("l", [-1])
        self.names: list[bytes] = [b""]
        self.flags = bytearray([NEED])  # the root's message is always wanted
        self.children: list[dict[bytes, int] | None] = [None]

    def __len__(self) -> int:
        return len(self.names)

    def child(self, parent: int, name: bytes) -> int:
        """Return the number of a name in a node, which is added if it is new."""
        children = self.children[parent]
        if children is None:
            children = self.children[parent] = {}
        found = children.get(name)
        if found is None:
            found = children[name] = len(self.names)
            self.parents.append(parent)
            self.names.append(name)
            self.flags.append(0)
            self.children.append(None)
        return found

    def is_interior(self, node: int) -> bool:
        """Return whether something is asked about below a node: it should be a directory."""
        return self.children[node] is not None

    def levels(self) -> list["array[int]"]:
        """Return the nodes by depth, the root's level first."""
        depths = array("l")
        levels: list[array[int]] = []
        for node, parent in enumerate(self.parents):
            depth = 0 if parent < 0 else depths[parent] + 1
            depths.append(depth)
            if depth == len(levels):
                levels.append(array("l"))
            levels[depth].append(node)
        return levels

    def path(self, node: int) -> bytes:
        """Return the path of a node in the image, for messages."""
        parts: list[bytes] = []
        while node > ROOT:
            parts.append(self.names[node])
            node = self.parents[node]
        return b"/" + b"/".join(reversed(parts))
