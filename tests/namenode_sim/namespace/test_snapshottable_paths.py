"""Edits about names next to snapshots: which directories may have some, and what is in these."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import RenameOption
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.namespace import given_edits as given
from tests.namenode_sim.namespace.given_edits import add

OVERWRITE = (RenameOption.OVERWRITE,)

SNAPSHOTTABLE_GOES: dict[str, tuple[str, Op]] = {
    "deleted": ("/d", ops.Delete("/d", 5)),
    "deleted with the directory above": ("/top/d", ops.Delete("/top", 5)),
    "replaced": ("/d", ops.Rename("/other", "/d", 5, OVERWRITE)),
}


def snapshottable(namespace: Namespace) -> list[str]:
    numbers = namespace.snapshots.snapshottable
    return [namespace.tree.inodes[number].name.decode() for number in numbers]


@pytest.mark.parametrize(("path", "op"), SNAPSHOTTABLE_GOES.values(), ids=SNAPSHOTTABLE_GOES.keys())
def test_a_snapshottable_directory_that_goes_is_not_so_any_more(path: str, op: Op) -> None:
    namespace = given.after(
        given.mkdir("/top"), given.mkdir(path), given.mkdir("/other"), given.mkdir("/e"),
        ops.AllowSnapshot(path), ops.AllowSnapshot("/e"),
    )  # fmt: skip
    assert snapshottable(namespace) == ["d", "e"]
    given.go_on(namespace, op)
    assert snapshottable(namespace) == ["e"]


@pytest.mark.parametrize("kind", [ops.Rename, ops.RenameOld])
def test_a_snapshottable_directory_that_moves_stays_so(
    kind: type[ops.Rename] | type[ops.RenameOld],
) -> None:
    namespace = given.after(given.mkdir("/d"), ops.AllowSnapshot("/d"), kind("/d", "/e", 5))
    assert snapshottable(namespace) == ["e"]


NEW: list[Op] = [given.mkdir("/d/n"), add("/d/n"), ops.Symlink(0, "/d/n", "/t", 5, 5, given.WHO)]


@pytest.mark.parametrize("op", NEW, ids=lambda op: type(op).__name__)
def test_a_snapshot_has_nothing_that_is_newer(op: Op) -> None:
    namespace = given.after(
        given.mkdir("/d"), ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s", 50), op
    )
    assert namespace.tree.find("/d/n") is not None
    assert given.seen(namespace, "s").child(b"n") is None


@pytest.mark.parametrize("kind", [ops.Rename, ops.RenameOld])
def test_a_snapshot_has_what_left_its_directory_and_not_what_came(
    kind: type[ops.Rename] | type[ops.RenameOld],
) -> None:
    namespace = given.after(
        given.mkdir("/d"), given.mkdir("/x"), given.file("/d/leaves"), given.file("/x/comes"),
        ops.AllowSnapshot("/d"), ops.CreateSnapshot("/d", "s", 50),
        kind("/d/leaves", "/x/left", 60), kind("/x/comes", "/d/came", 60),
    )  # fmt: skip
    sight = given.seen(namespace, "s")
    assert given.paths(namespace) == ["/d", "/d/came", "/x", "/x/left"]
    assert sight.child(b"leaves") is not None
    assert sight.child(b"came") is None
