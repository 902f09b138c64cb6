"""How an ACL is split between an inode's mode and the rest, and put together again."""

import pytest

from namenode_sim.edits.values import AclEntry, AclScope, AclType
from namenode_sim.namespace.acl import logical_acl, remove_acl, set_acl
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.file_numbers import pack_numbers
from namenode_sim.namespace.inode import FileTraits, INodeDirectory, INodeFile


def access(kind: AclType, permission: int, name: str | None = None) -> AclEntry:
    return AclEntry(AclScope.ACCESS, kind, name, permission)


def default(kind: AclType, permission: int, name: str | None = None) -> AclEntry:
    return AclEntry(AclScope.DEFAULT, kind, name, permission)


USER, GROUP, MASK, OTHER = AclType.USER, AclType.GROUP, AclType.MASK, AclType.OTHER
MINIMAL = (access(USER, 5), access(GROUP, 6), access(OTHER, 3))
EXTENDED = (
    access(USER, 3),
    access(USER, 6, "bob"),
    access(GROUP, 5),
    access(MASK, 6),
    access(OTHER, 4),
)
DEFAULTS = (default(USER, 7), default(GROUP, 1), default(OTHER, 0))

SPLIT: dict[str, tuple[tuple[AclEntry, ...], int, tuple[AclEntry, ...] | None]] = {
    "what a mode can say is in the mode alone": (MINIMAL, 0o1563, None),
    "the mask takes the place of the group": (EXTENDED, 0o1364, EXTENDED[1:3]),
    "default entries are beside the mode": ((*MINIMAL, *DEFAULTS), 0o1563, DEFAULTS),
    "all of it": ((*EXTENDED, *DEFAULTS), 0o1364, (*EXTENDED[1:3], *DEFAULTS)),
}


@pytest.mark.parametrize(("entries", "mode", "feature"), SPLIT.values(), ids=SPLIT.keys())
def test_an_acl_is_split_and_put_together_again(
    entries: tuple[AclEntry, ...], mode: int, feature: tuple[AclEntry, ...] | None
) -> None:
    node = INodeDirectory(7, b"d", "alice", "staff", 0o1777, mtime=10)
    set_acl(node, entries)
    assert (node.mode, node.acl) == (mode, feature)
    assert logical_acl(node) == entries


GONE: dict[str, tuple[tuple[AclEntry, ...], int]] = {
    "the group has what its entry had": (EXTENDED, 0o1354),
    "a default entry of the group is none of it": ((*MINIMAL, *DEFAULTS), 0o1563),
    "whatever more there is": ((*EXTENDED, *DEFAULTS), 0o1354),
}


@pytest.mark.parametrize(("entries", "mode"), GONE.values(), ids=GONE.keys())
def test_without_its_acl(entries: tuple[AclEntry, ...], mode: int) -> None:
    node = INodeDirectory(7, b"d", "alice", "staff", 0o1777, mtime=10)
    set_acl(node, entries)
    remove_acl(node)
    assert (node.mode, node.acl) == (mode, None)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (MINIMAL[1:], "needs entries for user, group and other"),
        ((*MINIMAL[1:], *DEFAULTS), "needs entries for user, group and other"),
        ((*MINIMAL, *DEFAULTS), "only a directory"),
    ],
    ids=["two entries", "two entries and default ones", "default entries of a file"],
)
def test_refused(entries: tuple[AclEntry, ...], message: str) -> None:
    file = INodeFile(b"f", pack_numbers(7, 8, 9), FileTraits("alice", "staff", 0o640, 3, 128))
    with pytest.raises(ApplyError, match=message):
        set_acl(file, entries)
    assert (file.mode, file.acl) == (0o640, None)
