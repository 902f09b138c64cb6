"""Random logs such as a NameNode could have written: every edit fits the tree it finds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeAlias

from journal.model import TxId
from namenode_sim.client_protocol.words.new_inodes import inherit
from namenode_sim.edits import ops, values
from namenode_sim.namespace.inode import INode, INodeDirectory, INodeFile, full_path, subtree
from namenode_sim.namespace.namespace import Namespace

BLOCK_SIZE = 1000
NAMES = ("a", "b", "c", "d", "A b", "é", "日", "😀", "z", "zz")
PEOPLE = ("alice", "bob", "carol")
HOT_STRIPED = 1
"""The EC policy RS-6-3-1024k."""


@dataclass(slots=True)
class Author:
    """Writes a log and applies it at once."""

    random: Random
    namespace: Namespace
    log: list[tuple[TxId, ops.Op]] = field(default_factory=list)
    now: int = 1_000_000
    kept_out: frozenset[bytes] = frozenset()
    """Names in the root; nothing happens to what is below them."""

    def write(self, op: ops.Op) -> None:
        txid = TxId(self.namespace.last_applied + 1)
        self.namespace.apply(txid, op)
        self.log.append((txid, op))

    def step(self, deeds: "Sequence[Deed]") -> None:
        """Do one random thing that a client or an administrator could do."""
        # A clock that goes back as often as not, for what takes the later of two times.
        self.now += self.random.randint(-2000, 2100)
        self.random.choice(deeds)(self)

    def directory(self) -> INodeDirectory:
        return self.random.choice([n for n in self.nodes() if isinstance(n, INodeDirectory)])

    def file(self, *, is_open: bool) -> INodeFile | None:
        found = [
            node
            for node in self.nodes()
            if isinstance(node, INodeFile) and (node.under_construction is not None) == is_open
        ]
        return self.random.choice(found) if found else None

    def node(self) -> INode | None:
        """Return anything but the root."""
        found = self.nodes()[1:]
        return self.random.choice(found) if found else None

    def nodes(self) -> list[INode]:
        """Return everything that something may happen to, the root first."""
        root = self.namespace.tree.root
        if not self.kept_out:
            return list(subtree(root))
        tops = [child for name, child in root.children.items() if name not in self.kept_out]
        return [root, *(node for top in tops for node in subtree(top))]

    def new_path(self, *, absent: bool = True) -> str | None:
        """Return a path in an existing directory; an untaken one, unless that does not matter."""
        parent = self.directory()
        names = [n for n in NAMES if not absent or n.encode() not in parent.children]
        if not names:
            return None
        return f"{full_path(parent).rstrip('/')}/{self.random.choice(names)}"

    def permission(self) -> values.Permission:
        who, mode = self.random.choice(PEOPLE), self.random.randrange(0o2000)
        return values.Permission(who, self.random.choice((*PEOPLE, "staff")), mode)

    def creation(
        self, path: str, *, directory: bool
    ) -> tuple[values.Permission, tuple[values.AclEntry, ...]]:
        """Return the owner, mode and ACL that a NameNode would log for something new."""
        parent, _ = self.namespace.tree.parent_of(path)
        assert parent is not None
        given = self.permission()
        mode, acl = inherit(parent.acl, given.mode, None, directory=directory)
        if self.random.random() < 0.2:
            acl = self.acl(default=directory)
        return values.Permission(given.user, given.group, mode), acl

    def block(self, *, striped: bool) -> values.Block:
        """Give out a new block as a NameNode does."""
        counters = self.namespace.counters
        if striped:
            number = max(counters.last_striped_block_id, -(2**63)) + 16
        else:
            number = counters.last_block_id + 1
        self.write(ops.AllocateBlockId(number))
        self.write(ops.SetGenstampV2(counters.generation_stamp_v2 + 1))
        return values.Block(number, 0, counters.generation_stamp_v2)

    def acl(self, *, default: bool) -> tuple[values.AclEntry, ...]:
        """Return a whole ACL in Hadoop's order."""
        bits = self.random.randrange
        scopes = [values.AclScope.ACCESS] + [values.AclScope.DEFAULT] * (
            default and self.random.random() < 0.5
        )
        entries: list[values.AclEntry] = []
        for scope in scopes:
            entries += [
                values.AclEntry(scope, values.AclType.USER, None, bits(8)),
                values.AclEntry(scope, values.AclType.USER, self.random.choice(PEOPLE), bits(8)),
                values.AclEntry(scope, values.AclType.GROUP, None, bits(8)),
                values.AclEntry(scope, values.AclType.MASK, None, bits(8)),
                values.AclEntry(scope, values.AclType.OTHER, None, bits(8)),
            ]
        return tuple(entries)

    def xattr(self) -> values.XAttr:
        """Return an extended attribute, perhaps without a value."""
        value = self.random.choice((None, b"", b"1", b"\xff\x00"))
        return values.XAttr(
            self.random.choice((values.XAttrNamespace.USER, values.XAttrNamespace.TRUSTED)),
            self.random.choice(NAMES),
            value,
        )


def mkdir(author: Author) -> None:
    path = author.new_path(absent=author.random.random() < 0.9)
    if path is not None:
        number = author.namespace.counters.last_inode_id + 1
        who, acl = author.creation(path, directory=True)
        xattrs = (author.xattr(),) if author.random.random() < 0.2 else ()
        author.write(ops.Mkdir(number, path, author.now, author.now, who, acl, xattrs))


def create(author: Author) -> None:
    path = author.new_path()
    overwrite = False
    closed = author.file(is_open=False)
    if author.random.random() < 0.15 and closed is not None:
        path, overwrite = full_path(closed), True
    if path is None:
        return
    striped = author.random.random() < 0.1
    who, acl = author.creation(path, directory=False)
    author.write(
        ops.Add(
            author.namespace.counters.last_inode_id + 1,
            path,
            1 if striped else author.random.choice((0, 1, 3, 600)),
            author.now,
            author.now,
            BLOCK_SIZE,
            (),
            who,
            acl,
            (author.xattr(),) if author.random.random() < 0.2 else (),
            author.random.choice(("w1", "w2")),
            "host",
            overwrite,
            author.random.choice((0, 0, 7, 12)),
            HOT_STRIPED if striped else 0,
        )
    )


def add_block(author: Author) -> None:
    file = author.file(is_open=True)
    if file is None:
        return
    block = author.block(striped=bool(file.block_type))
    last = file.blocks[-1] if file.blocks else None
    full = None if last is None else values.Block(last.block_id, BLOCK_SIZE, last.generation_stamp)
    author.write(ops.AddBlock(full_path(file), full, block))


def sync(author: Author) -> None:
    """Record lengths, recover a pipeline, or give the last block up."""
    file = author.file(is_open=True)
    if file is None or not file.blocks:
        return
    *before, last = file.blocks
    kind = author.random.randrange(3)
    if kind == 0:
        last = values.Block(
            last.block_id, author.random.randint(1, BLOCK_SIZE), last.generation_stamp
        )
    elif kind == 1:
        author.write(ops.SetGenstampV2(author.namespace.counters.generation_stamp_v2 + 1))
        stamp = author.namespace.counters.generation_stamp_v2
        last = values.Block(last.block_id, last.num_bytes, stamp)
    blocks = tuple(before) if kind == 2 else (*before, last)
    author.write(ops.UpdateBlocks(full_path(file), blocks))


def close(author: Author) -> None:
    file = author.file(is_open=True)
    if file is None:
        return
    blocks = file.blocks
    if blocks:
        last = blocks[-1]
        size = last.num_bytes or author.random.randint(1, BLOCK_SIZE)
        blocks = (*blocks[:-1], values.Block(last.block_id, size, last.generation_stamp))
    permission = values.Permission(file.user, file.group, file.mode)
    now = author.now
    author.write(
        ops.Close(
            0, full_path(file), file.replication, now, now - 5, BLOCK_SIZE, blocks, permission
        )
    )


def append(author: Author) -> None:
    file = author.file(is_open=author.random.random() < 0.1)
    if file is not None and not file.block_type:
        new_block = author.random.random() < 0.3
        author.write(ops.Append(full_path(file), "w1", "host", new_block))


def add_again(author: Author) -> None:
    """Write what logs before layout -62 have for an append, and for each new length."""
    file = author.file(is_open=author.random.random() < 0.5)
    if file is None or file.block_type:
        return
    path, now, who = (
        full_path(file),
        author.now,
        values.Permission(file.user, file.group, file.mode),
    )
    author.write(
        ops.Add(file.id, path, 3, now, now - 7, BLOCK_SIZE, file.blocks, who, (), (), "w2", "other")
    )


def truncate(author: Author) -> None:
    file = author.file(is_open=False)
    if file is None or not file.blocks or file.block_type:
        return
    path, length = full_path(file), author.random.randrange(file.length())
    size = 0
    for block in file.blocks:
        size += block.num_bytes
        if size >= length:
            break
    else:
        return
    if size == length or length == 0:
        author.write(ops.Truncate(path, "w1", "host", length, author.now, None))
        return
    author.write(ops.SetGenstampV2(author.namespace.counters.generation_stamp_v2 + 1))
    left = block.num_bytes - (size - length)
    cut = values.Block(block.block_id, left, author.namespace.counters.generation_stamp_v2)
    author.write(ops.Truncate(path, "w1", "host", length, author.now, cut))


def concat(author: Author) -> None:
    target = author.file(is_open=False)
    if target is None or target.parent is None or not target.blocks:
        return
    sources = [
        node
        for node in target.parent.children.values()
        if isinstance(node, INodeFile)
        and node is not target
        and node.under_construction is None
        and node.blocks
        and node.ec_policy_id == target.ec_policy_id
    ]
    if sources:
        chosen = author.random.sample(sources, author.random.randint(1, min(2, len(sources))))
        paths = tuple(map(full_path, chosen))
        author.write(ops.ConcatDelete(full_path(target), paths, author.now))


def set_replication(author: Author) -> None:
    file = author.file(is_open=author.random.random() < 0.5)
    if file is not None:
        author.write(ops.SetReplication(full_path(file), author.random.choice((0, 1, 2, 513))))


def reassign(author: Author) -> None:
    file = author.file(is_open=True)
    if file is not None and file.under_construction is not None:
        holder = file.under_construction.client_name
        author.write(ops.ReassignLease(holder, full_path(file), "HDFS_NameNode"))


def symlink(author: Author) -> None:
    path = author.new_path()
    if path is not None:
        number, now = author.namespace.counters.last_inode_id + 1, author.now
        author.write(ops.Symlink(number, path, "../é", now, now - 1, author.permission()))


def delete(author: Author) -> None:
    node = author.node()
    if isinstance(node, INodeDirectory) and len(node.children) > 1 and author.random.random() < 0.9:
        return  # or the tree would never grow
    absent = author.random.random() < 0.1
    path = "/absent" if absent or node is None else full_path(node)
    author.write(ops.Delete(path, author.now))


def rename_old(author: Author) -> None:
    node, target = author.node(), author.new_path(absent=False)
    if node is not None and target is not None:
        author.write(ops.RenameOld(full_path(node), target, author.now))


def rename(author: Author) -> None:
    node, target = author.node(), author.new_path(absent=False)
    if node is None or target is None:
        return
    source = full_path(node)
    existing = author.namespace.tree.find(target)
    if f"{target}/".startswith(f"{source}/"):
        return
    if existing is None:
        author.write(ops.Rename(source, target, author.now, (values.RenameOption.NONE,)))
    elif isinstance(existing, INodeDirectory) == isinstance(node, INodeDirectory) and not getattr(
        existing, "children", None
    ):
        author.write(ops.Rename(source, target, author.now, (values.RenameOption.OVERWRITE,)))


Deed: TypeAlias = Callable[[Author], None]

FILE_DEEDS: tuple[Deed, ...] = (
    *(mkdir, create, create, create, add_block, add_block, sync, close, close, close),
    *(
        append,
        truncate,
        concat,
        concat,
        symlink,
        set_replication,
        reassign,
        delete,
        rename_old,
        rename,
        rename,
    ),
)
