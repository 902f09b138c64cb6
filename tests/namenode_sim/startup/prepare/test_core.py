"""What a preparation decides: each row is what it sees, and what becomes of it."""

import itertools
from typing import Final

import pytest

from journal.model import NamespaceInfo
from namenode_sim.startup.prepare.core import decide
from namenode_sim.startup.prepare.model import (
    Absent,
    Blank,
    Bootstrap,
    Deed,
    Directory,
    Formatted,
    Found,
    Half,
    JournalNode,
    Peer,
    Ready,
    Refuse,
    Seen,
    Serving,
    Unclear,
    Unformatted,
    Wait,
    Whole,
)

OURS: Final = NamespaceInfo(-66, 1, "CID-ours", 0, "BP-1")
OTHER: Final = NamespaceInfo(-66, 2, "CID-other", 0, "BP-2")
NEW: Final = Formatted(OURS, used=False)
USED: Final = Formatted(OURS, used=True)
NONE: Final = Unformatted()
DARK: Final = Unclear("no answer")

Row = tuple[list[Directory], list[JournalNode], list[Peer], NamespaceInfo | None, bool]

ROWS: Final[dict[str, tuple[Row, Deed | tuple[type[Deed], str]]]] = {
    "an image here, and a journal": (([Whole(OURS)], [USED] * 3, [Absent()], None, False), Ready()),
    "an image here, and one JournalNode has no journal yet": (
        ([Whole(OURS)], [USED, USED, NONE], [Absent()], None, False), Ready(),
    ),
    "an image here, and nobody answers": (
        ([Whole(OURS)], [DARK] * 3, [DARK], None, True), Ready(),
    ),
    "one directory of two is new": (
        ([Whole(OURS), Blank()], [USED] * 3, [Absent()], None, True), Ready(),
    ),
    "an image here of another cluster": (
        ([Whole(OURS)], [Formatted(OTHER, used=True), DARK, DARK], [Absent()], None, True),
        (Refuse, "several file systems: d0 has cluster CID-ours; j0 has cluster CID-other"),
    ),
    "an image here, and no journal": (
        ([Whole(OURS)], [NONE] * 3, [Absent()], None, True), (Refuse, "--initialize-shared-edits"),
    ),
    "files without VERSION": (
        ([Blank(), Half()], [NONE] * 3, [Absent()], None, True), (Refuse, "d1 holds files but no"),
    ),
    "files without VERSION beside a peer": (
        ([Half()], [USED] * 3, [Serving(OURS)], None, True), (Refuse, "d0 holds files but no"),
    ),
    "a peer serves": (([Blank()], [USED] * 3, [Serving(OURS)], None, True), Bootstrap()),
    "a peer serves, and a node is away": (
        ([Blank()], [USED, USED, DARK], [Serving(OURS)], None, False), Bootstrap(),
    ),
    "one peer of two serves": (
        ([Blank()], [USED] * 3, [Absent(), Serving(OURS)], None, False), Bootstrap(),
    ),
    "a peer serves another cluster": (
        ([Blank()], [USED] * 3, [Serving(OTHER)], None, False), (Refuse, "several file systems"),
    ),
    "a journal, and nobody who has its image": (
        ([Blank()], [NEW] * 3, [Absent()], None, True), (Wait, "n0 does not run. Start that one"),
    ),
    "a half journal, and nobody who has its image": (
        ([Blank()], [NEW, NONE, NONE], [Absent()], None, True), (Wait, "--format --force"),
    ),
    "a journal, and a peer that is silent": (
        ([Blank()], [NEW] * 3, [DARK], None, True), (Wait, "n0: no answer. Start that one"),
    ),
    "two foundings met": (
        ([Blank()], [NEW, Formatted(OTHER, used=False), NONE], [Absent()], None, True),
        (Refuse, "several file systems"),
    ),
    "nothing anywhere": (([Blank()], [NONE] * 3, [Absent()], None, True), Found(None)),
    "nothing anywhere, and no other NameNode is known": (
        ([Blank()], [NONE] * 3, [], None, True), Found(None),
    ),
    "nothing anywhere, and only another may found": (
        ([Blank()], [NONE] * 3, [Absent()], None, False), (Wait, "--found"),
    ),
    "nothing anywhere, as far as is known": (
        ([Blank()], [NONE, NONE, DARK], [Absent()], None, True), (Wait, "j2: no answer"),
    ),
    "nothing but a peer that does not answer": (
        ([Blank()], [NONE] * 3, [DARK], None, True), (Wait, "n0: no answer"),
    ),
    "our founding was cut short before its first node": (
        ([Blank()], [NONE] * 3, [Absent()], OURS, True), Found(OURS),
    ),
    "our founding was cut short among the nodes": (
        ([Blank()], [NEW, NONE, NONE], [Absent()], OURS, True), Found(OURS),
    ),
    "our founding was cut short, and is no longer ours to make": (
        ([Blank()], [NEW, NONE, NONE], [Absent()], OURS, False), Found(OURS),
    ),
    "our founding was cut short in a name directory": (
        ([Half()], [NEW] * 3, [Absent()], OURS, True), Found(OURS),
    ),
    "our founding was cut short between name directories": (
        ([Whole(OURS), Half()], [NEW] * 3, [Absent()], OURS, True), Found(OURS),
    ),
    "our founding was over but for its record": (
        ([Whole(OURS)], [NEW] * 3, [Absent()], OURS, True), Ready(),
    ),
    "our founding was cut short, and a node is away": (
        ([Half()], [NEW, NEW, DARK], [Absent()], OURS, True), (Wait, "needs all JournalNodes: j2"),
    ),
    "our founding was cut short, and somebody has used its journal": (
        ([Blank()], [USED, NEW, NEW], [Absent()], OURS, True), (Refuse, "has been written to"),
    ),
    "another founding was quicker": (
        ([Blank()], [Formatted(OTHER, used=False), NONE, NONE], [Absent()], OURS, True),
        (Wait, "j0 has the journal of cluster CID-other"),
    ),
    "another founding was quicker, and serves": (
        ([Blank()], [Formatted(OTHER, used=True)] * 3, [Serving(OTHER)], OURS, True), Bootstrap(),
    ),
    "files without VERSION that are not of our founding": (
        ([Half()], [Formatted(OTHER, used=True)] * 3, [Absent()], OURS, True),
        (Refuse, "d0 holds files"),
    ),
}  # fmt: skip


def decided(row: Row) -> Deed:
    directories, journal, peers, begun, may_found = row
    seen = Seen(
        {f"d{i}": one for i, one in enumerate(directories)},
        {f"j{i}": one for i, one in enumerate(journal)},
        {f"n{i}": one for i, one in enumerate(peers)},
        begun,
    )
    return decide(seen, may_found=may_found)


@pytest.mark.parametrize("name", ROWS)
def test_each_row(name: str) -> None:
    row, expected = ROWS[name]
    deed = decided(row)
    if isinstance(expected, tuple):
        kind, words = expected
        assert isinstance(deed, kind)
        assert isinstance(deed, Wait | Refuse)
        assert words in deed.reason
    else:
        assert deed == expected


def test_a_file_system_is_founded_only_where_nothing_else_can_be() -> None:
    """Try every combination: never over files, another's journal, a used one, or a doubt."""
    directories: list[Directory] = [Blank(), Half(), Whole(OURS), Whole(OTHER)]
    nodes: list[JournalNode] = [NONE, NEW, USED, Formatted(OTHER, used=False), DARK]
    peers: list[Peer] = [Absent(), Serving(OURS), Serving(OTHER), DARK]
    count = 0
    for here, first, second, peer, begun, may_found in itertools.product(
        directories, nodes, nodes, peers, (None, OURS), (False, True)
    ):
        deed = decided(([here], [first, second], [peer], begun, may_found))
        if not isinstance(deed, Found):
            continue
        count += 1
        owners = {
            one.namespace.cluster_id
            for one in (here, first, second, peer)
            if isinstance(one, Whole | Formatted | Serving)
        }
        assert owners <= {"CID-ours"}
        assert USED not in (first, second)
        assert DARK not in (first, second)
        assert begun is not None if owners else may_found or begun
        assert not isinstance(here, Half) or (begun is not None and owners)
    assert count > 5
