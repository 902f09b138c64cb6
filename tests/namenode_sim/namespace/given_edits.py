"""Short ways to write edits, and the namespace they make."""

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import Block, Permission, XAttr, XAttrNamespace
from namenode_sim.namespace.inode import INodeDirectory, full_path, subtree
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots.view import SnapshotView, view_root
from namenode_sim.namespace.state import Snapshot

WHO = Permission("alice", "staff", 0o750)
EC_XATTR = "hdfs.erasurecoding.policy"
B1, B2, B3 = Block(1, 100, 11), Block(2, 100, 12), Block(3, 50, 13)


def mkdir(path: str, time: int = 10) -> ops.Mkdir:
    return ops.Mkdir(0, path, time, time, WHO)


def add(path: str, time: int = 10, **more: object) -> ops.Add:
    fields = {"client_name": "writer", "client_machine": "here", **more}
    return ops.Add(0, path, 3, time, time, 128, (), WHO, **fields)  # type: ignore[arg-type]


def reopened(path: str, *blocks: Block) -> ops.Add:
    """Return the append of logs before layout -62."""
    return ops.Add(0, path, 3, 30, 30, 128, blocks, WHO, client_name="writer")


def close(path: str, *blocks: Block, time: int = 20) -> ops.Close:
    return ops.Close(0, path, 3, time, time, 128, blocks, WHO)


def file(path: str, *blocks: Block) -> list[Op]:
    given: list[Op] = [add(path)]
    before = None
    for block in blocks:
        given.append(ops.AddBlock(path, before, block))
        before = block
    return [*given, close(path, *blocks)]


def take(name: str, time: int | None = 50, path: str = "/d") -> ops.CreateSnapshot:
    return ops.CreateSnapshot(path, name, time)


def striped(path: str, name: str | None) -> ops.SetXAttr:
    """Set a directory's policy for what is made in it, as Java writes a text."""
    value = None if name is None else len(name).to_bytes(4, "big") + name.encode()
    return ops.SetXAttr(path, (XAttr(XAttrNamespace.SYSTEM, EC_XATTR, value),))


ALLOWED: list[Op] = [mkdir("/d"), ops.AllowSnapshot("/d")]
"""``/d``, which may have snapshots."""


def after(*given: Op | list[Op]) -> Namespace:
    return go_on(Namespace.empty("hdfs"), *given)


def go_on(namespace: Namespace, *edits: Op | list[Op]) -> Namespace:
    for op in [op for some in edits for op in (some if isinstance(some, list) else [some])]:
        namespace.apply(TxId(namespace.last_applied + 1), op)
    return namespace


def directory(namespace: Namespace, path: str = "/d") -> INodeDirectory:
    node = namespace.tree.node(path)
    assert isinstance(node, INodeDirectory)
    return node


def snapshots(namespace: Namespace) -> list[Snapshot]:
    """Return those of ``/d``, in the order in which they were taken."""
    return namespace.snapshots.snapshottable[directory(namespace).id]


def seen(namespace: Namespace, snapshot: str, *names: str) -> SnapshotView:
    """Return what is at a path below ``/d``, as one of its snapshots shows it."""
    [taken] = [one for one in snapshots(namespace) if one.name == snapshot]
    sight: SnapshotView | None = view_root(directory(namespace), taken)
    for name in names:
        assert sight is not None
        sight = sight.child(name.encode())
    assert sight is not None
    return sight


def names_seen(sight: SnapshotView) -> list[bytes]:
    """Return a directory's names as a snapshot shows them; none for anything else."""
    return sorted(sight.node.children) if isinstance(sight.node, INodeDirectory) else []


def mtime(namespace: Namespace, path: str) -> int:
    return namespace.tree.node(path).mtime


def paths(namespace: Namespace) -> list[str]:
    return sorted(full_path(node) for node in subtree(namespace.tree.root))[1:]
