"""What each edit does to the tree, to files and to leases."""

from dataclasses import replace

import pytest

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import AclEntry, AclScope, AclType, Block, RenameOption
from namenode_sim.namespace.errors import ApplyError, TxIdOutOfOrder
from namenode_sim.namespace.namespace import FAMILY_OF
from tests.namenode_sim.namespace import given_edits
from tests.namenode_sim.namespace.given_edits import B1, B2, add, file, mkdir, mtime, reopened

SHAPES = {
    "a file and a directory": ([mkdir("/d"), *file("/d/f")], ["/d", "/d/f"]),
    "mkdir on an existing name does nothing": ([*file("/f"), mkdir("/f")], ["/f"]),
    "delete takes the subtree": ([mkdir("/d"), *file("/d/f"), ops.Delete("/d", 5)], []),
    "delete of nothing is no error": ([ops.Delete("/none", 5)], []),
    "old rename moves": ([mkdir("/a"), ops.RenameOld("/a", "/b", 5)], ["/b"]),
    "old rename into a directory": (
        [mkdir("/a"), mkdir("/b"), ops.RenameOld("/a", "/b", 5)],
        ["/b", "/b/a"],
    ),
    "old rename onto a file does nothing": (
        [mkdir("/a"), *file("/f"), ops.RenameOld("/a", "/f", 5)],
        ["/a", "/f"],
    ),
    "old rename of nothing does nothing": ([ops.RenameOld("/none", "/b", 5)], []),
    "old rename below itself does nothing": ([mkdir("/a"), ops.RenameOld("/a", "/a/b", 5)], ["/a"]),
    "old rename to a name that starts alike moves": (
        [mkdir("/a"), ops.RenameOld("/a", "/ab", 5)],
        ["/ab"],
    ),
    "old rename without a parent does nothing": (
        [mkdir("/a"), ops.RenameOld("/a", "/x/b", 5)],
        ["/a"],
    ),
    "rename keeps what is below": (
        [mkdir("/a"), *file("/a/f"), ops.Rename("/a", "/b", 5)],
        ["/b", "/b/f"],
    ),
    "rename overwrites an empty directory": (
        [
            mkdir("/a"),
            *file("/a/f"),
            mkdir("/b"),
            ops.Rename("/a", "/b", 5, (RenameOption.OVERWRITE,)),
        ],
        ["/b", "/b/f"],
    ),
    "concat removes its sources": (
        [*file("/a", B1), *file("/b", B2), ops.ConcatDelete("/a", ("/b",), 30)],
        ["/a"],
    ),
    "overwriting replaces": ([*file("/f", B1), add("/f", overwrite=True)], ["/f"]),
    "a symlink": ([ops.Symlink(0, "/l", "/t", 5, 5, given_edits.WHO)], ["/l"]),
}


@pytest.mark.parametrize(("given", "expected"), SHAPES.values(), ids=SHAPES.keys())
def test_the_tree_s_shape(given: list[Op], expected: list[str]) -> None:
    namespace = given_edits.after(given)
    assert given_edits.paths(namespace) == expected
    assert len(namespace.tree.inodes) == len(expected) + 1


ALL_ACCESS = tuple(
    AclEntry(AclScope.ACCESS, kind, None, 7)
    for kind in (AclType.USER, AclType.GROUP, AclType.OTHER)
)
REFUSED = {
    "mkdir without a parent": ([], mkdir("/x/y")),
    "add without a parent": ([], add("/x/y")),
    "add onto the root": ([], add("/")),
    "add onto a directory": ([mkdir("/d")], add("/d")),
    "add that would overwrite a directory": ([mkdir("/d")], add("/d", overwrite=True)),
    "add onto a symlink": ([ops.Symlink(0, "/l", "/t", 5, 5, given_edits.WHO)], add("/l")),
    "closing a closed file": (file("/f"), given_edits.close("/f")),
    "closing nothing": ([], given_edits.close("/f")),
    "a block that does not follow": (
        [add("/f"), ops.AddBlock("/f", None, B1)],
        ops.AddBlock("/f", B2, given_edits.B3),
    ),
    "a second block where there is none": ([add("/f")], ops.AddBlock("/f", B1, B2)),
    "a first block where there is one": (
        [add("/f"), ops.AddBlock("/f", None, B1)],
        ops.AddBlock("/f", None, B2),
    ),
    "closing with two blocks less": (
        [
            add("/f"),
            ops.AddBlock("/f", None, B1),
            ops.AddBlock("/f", B1, B2),
            ops.AddBlock("/f", B2, given_edits.B3),
        ],
        given_edits.close("/f", B1),
    ),
    "closing with another block": (
        [add("/f"), ops.AddBlock("/f", None, B1)],
        given_edits.close("/f", B2),
    ),
    "an inner block with another stamp": (
        [add("/f"), ops.AddBlock("/f", None, B1), ops.AddBlock("/f", B1, B2)],
        given_edits.close("/f", Block(1, 100, 99), B2),
    ),
    "another stamp for the block before one that is given up": (
        [add("/f"), ops.AddBlock("/f", None, B1), ops.AddBlock("/f", B1, B2)],
        ops.UpdateBlocks("/f", (Block(1, 100, 99),)),
    ),
    "a cut inside a file without blocks": (file("/f"), ops.Truncate("/f", "w", "m", 1, 30)),
    "rename onto something": ([mkdir("/a"), mkdir("/b")], ops.Rename("/a", "/b", 5)),
    "rename onto a full directory": (
        [mkdir("/a"), mkdir("/b"), mkdir("/b/c")],
        ops.Rename("/a", "/b", 5, (RenameOption.OVERWRITE,)),
    ),
    "rename of a file onto a directory": (
        [*file("/a"), mkdir("/b")],
        ops.Rename("/a", "/b", 5, (RenameOption.OVERWRITE,)),
    ),
    "rename below itself": ([mkdir("/a")], ops.Rename("/a", "/a/b", 5)),
    "rename of nothing": ([], ops.Rename("/a", "/b", 5)),
    "a lease of a closed file": (file("/f"), ops.ReassignLease("a", "/f", "b")),
    "a block id that goes back": ([ops.AllocateBlockId(2**30 + 5)], ops.AllocateBlockId(2**30 + 4)),
    "a default ACL on a file": (
        file("/f"),
        ops.SetAcl("/f", (*ALL_ACCESS, AclEntry(AclScope.DEFAULT, AclType.USER, None, 7))),
    ),
    "an unknown cache pool": ([], ops.RemoveCachePool("none")),
    "removing a system EC policy": ([], ops.RemoveErasureCodingPolicy("RS-6-3-1024k")),
}


@pytest.mark.parametrize(("given", "op"), REFUSED.values(), ids=REFUSED.keys())
def test_an_edit_that_contradicts_the_tree(given: list[Op], op: Op) -> None:
    namespace = given_edits.after(given)
    with pytest.raises(ApplyError, match=f"transaction {len(given) + 1}, {type(op).__name__}"):
        namespace.apply(TxId(len(given) + 1), op)


@pytest.mark.parametrize("txid", [0, 1, 3])
def test_transactions_come_one_after_the_other(txid: int) -> None:
    namespace = given_edits.after(mkdir("/a"))
    with pytest.raises(TxIdOutOfOrder, match="expected transaction 2"):
        namespace.apply(TxId(txid), mkdir("/b"))


def test_every_edit_has_a_family() -> None:
    assert set(FAMILY_OF) == set(ops.OP_CLASSES)


MTIMES = {
    "a child's time raises its parent's": ([mkdir("/d", 10), add("/d/f", 30)], "/d", 30),
    "an older child does not lower it": ([mkdir("/d", 40), add("/d/f", 30)], "/d", 40),
    "a delete raises it": ([mkdir("/d", 10), mkdir("/d/e", 10), ops.Delete("/d/e", 50)], "/d", 50),
    "a rename raises the old parent": (
        [mkdir("/d", 10), mkdir("/d/e", 10), ops.Rename("/d/e", "/e", 60)],
        "/d",
        60,
    ),
    "and the new one": (
        [mkdir("/d", 10), mkdir("/e", 10), ops.RenameOld("/e", "/d", 60)],
        "/d",
        60,
    ),
    "a concatenation raises that of the target's parent": (
        [
            mkdir("/d", 10),
            *file("/d/f", B1),
            *file("/d/g", B2),
            ops.ConcatDelete("/d/f", ("/d/g",), 60),
        ],
        "/d",
        60,
    ),
    "to overwrite is to delete when the new file is made": (
        [mkdir("/d", 10), *file("/d/f"), replace(add("/d/f", 30, overwrite=True), atime=40)],
        "/d",
        30,
    ),
    "a moved node keeps its own": ([mkdir("/e", 10), ops.RenameOld("/e", "/d", 60)], "/d", 10),
    "and gives it to a new parent that is older than the move": (
        [mkdir("/d", 1), mkdir("/e", 99), ops.RenameOld("/e", "/d", 60)],
        "/d",
        99,
    ),
    "closing assigns": ([add("/f", 90), given_edits.close("/f", time=20)], "/f", 20),
    "times assign": ([mkdir("/d", 90), ops.Times("/d", 20, -1)], "/d", 20),
    "an ACL does not touch it": ([mkdir("/d", 10), ops.SetAcl("/d", ())], "/d", 10),
}


@pytest.mark.parametrize(("given", "path", "expected"), MTIMES.values(), ids=MTIMES.keys())
def test_modification_times(given: list[Op], path: str, expected: int) -> None:
    assert mtime(given_edits.after(given), path) == expected


BLOCKS: dict[str, tuple[list[Op], tuple[Block, ...]]] = {
    "added one by one": (file("/f", B1, B2), (B1, B2)),
    "the penultimate gets its length": (
        [add("/f"), ops.AddBlock("/f", None, Block(1, 0, 11)), ops.AddBlock("/f", B1, B2)],
        (B1, B2),
    ),
    "an abandoned last block goes": (
        [add("/f"), ops.AddBlock("/f", None, B1), ops.UpdateBlocks("/f", ())],
        (),
    ),
    "a recovered last block is restamped": (
        [add("/f"), ops.AddBlock("/f", None, B1), given_edits.close("/f", Block(1, 90, 99))],
        (Block(1, 90, 99),),
    ),
    "of an old log's new file": ([replace(add("/f"), blocks=(B1,))], (B1,)),
    "of an old log's open file": ([add("/f"), reopened("/f", B1)], (B1,)),
    "truncated behind its end": ([*file("/f", B1), ops.Truncate("/f", "w", "m", 150, 30)], (B1,)),
    "truncated between blocks": (
        [*file("/f", B1, B2), ops.Truncate("/f", "w", "m", 100, 30)],
        (B1,),
    ),
    "truncated in place": (
        [*file("/f", B1, B2), ops.Truncate("/f", "w", "m", 150, 30, Block(2, 50, 99))],
        (B1, B2),
    ),
    "truncated by copy": (
        [*file("/f", B1, B2), ops.Truncate("/f", "w", "m", 150, 30, Block(9, 50, 99))],
        (B1, Block(9, 50, 99)),
    ),
    "concatenated": (
        [
            *file("/f", B1),
            *file("/g", B2),
            *file("/h", given_edits.B3),
            ops.ConcatDelete("/f", ("/g", "/h"), 30),
        ],
        (B1, B2, given_edits.B3),
    ),
    "an old style append updates": (
        [*file("/f", B1), reopened("/f", B1), ops.UpdateBlocks("/f", (B1, B2))],
        (B1, B2),
    ),
}


@pytest.mark.parametrize(("given", "expected"), BLOCKS.values(), ids=BLOCKS.keys())
def test_block_lists(given: list[Op], expected: tuple[Block, ...]) -> None:
    assert given_edits.after(given).tree.file("/f").blocks == expected


OPEN: dict[str, tuple[list[Op], dict[str, int]]] = {
    "created": ([add("/f")], {"writer": 1}),
    "closed": (file("/f"), {}),
    "reopened": ([*file("/f"), ops.Append("/f", "other", "m")], {"other": 1}),
    "reopened while open": ([add("/f"), ops.Append("/f", "other", "m")], {"writer": 1}),
    "handed over": ([add("/f"), ops.ReassignLease("writer", "/f", "b")], {"b": 1}),
    "deleted with its directory": ([mkdir("/d"), add("/d/f"), ops.Delete("/d", 5)], {}),
    "overwritten": ([add("/f"), add("/f", overwrite=True, client_name="b")], {"b": 1}),
    "overwritten by a rename": (
        [add("/f"), *file("/g"), ops.Rename("/g", "/f", 5, (RenameOption.OVERWRITE,))],
        {},
    ),
    "moved": ([add("/f"), ops.Rename("/f", "/g", 5)], {"writer": 1}),
    "cut inside a block": ([*file("/f", B1), ops.Truncate("/f", "w", "m", 50, 5)], {"w": 1}),
    "cut between blocks": ([*file("/f", B1), ops.Truncate("/f", "w", "m", 0, 5)], {}),
}


@pytest.mark.parametrize(("given", "expected"), OPEN.values(), ids=OPEN.keys())
def test_who_writes_what(given: list[Op], expected: dict[str, int]) -> None:
    leases = given_edits.after(given).tree.leases
    assert {holder: len(files) for holder, files in leases.items()} == expected
