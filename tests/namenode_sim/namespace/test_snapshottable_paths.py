"""Edits about names next to snapshots: which directories may have some, and what is in these."""

import pytest

from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import RenameOption, StorageType
from namenode_sim.namespace.errors import ApplyError
from namenode_sim.namespace.inode import Quotas
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


ROOTS = ("/.reserved/raw/d", "/.reserved/.inodes/16386", "/.reserved/.inodes/16387/..")


@pytest.mark.parametrize("root", ROOTS)
def test_edits_name_directories_as_hadoop_s_clients_do(root: str) -> None:
    """Hadoop logs the root of a snapshot, and the directory of a quota, unresolved."""
    namespace = given.after(
        given.mkdir("/d"),
        given.mkdir("/d/e"),
        ops.AllowSnapshot(root),
        ops.CreateSnapshot(root, "s", 3),
        ops.RenameSnapshot(root, "s", "t", 4),
        ops.SetQuota(root, 10, 20),
        ops.SetQuotaByStorageType(root, StorageType.DISK, 30),
    )
    directory = given.directory(namespace)
    assert directory.quotas == Quotas(10, 20, ((StorageType.DISK, 30),))
    assert directory.history is not None
    assert [diff.copy is not None for diff in directory.history.diffs] == [True]
    (taken,) = namespace.snapshots.snapshottable[16386]
    assert taken.name == "t"
    given.go_on(namespace, [ops.DeleteSnapshot(root, "t", 5), ops.DisallowSnapshot(root)])
    assert namespace.snapshots.snapshottable == {}


@pytest.mark.parametrize(
    "path", ["/.reserved/.inodes/99", "/.reserved/.inodes/x", "/.reserved/y", "/.reserved/"]
)
def test_a_reserved_path_that_leads_nowhere_ends_the_replay(path: str) -> None:
    with pytest.raises(ApplyError, match="does not exist"):
        given.after(ops.SetQuota(path, 1, 1))
