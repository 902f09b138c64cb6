"""A NameNode under quotas: drawn calls, snapshots, images and failovers.

After each step the use that the NameNode keeps must be that of a plain walk.  What a call adds must
fit into every quota, and a refusal must be right: without the quota that it names, the same call
must lead to more than that quota.  See `quota_histories`.
"""

import io
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import (
    NAMESPACE_QUOTA_EXCEEDED,
    SPACE_QUOTA_EXCEEDED,
    TYPE_QUOTA_EXCEEDED,
)
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto import hdfs_types_pb2
from journal.model import LAYOUT_VERSION
from namenode_sim.client_protocol.words import quotas
from namenode_sim.edits.codec import decode_all
from namenode_sim.edits.values import StorageType
from namenode_sim.image.reader import read_namespace
from namenode_sim.namespace import inode
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.snapshots import held
from namenode_sim.namespace.snapshots.diffs import has_more_behind
from tests.namenode_sim.client_protocol import datanodes_in_memory, namenode_in_memory
from tests.namenode_sim.client_protocol.namenode_in_memory import SUPERUSER, Fields, Served
from tests.namenode_sim.image.image_world import saved
from tests.namenode_sim.namespace.snapshots.use_recount import counted_wrong

Extended = hdfs_types_pb2.ExtendedBlockProto
BLOCK: Final = 1 << 20
KEEP, NONE = (1 << 63) - 1, (1 << 64) - 1
DIRECTORIES: Final = ("/a", "/a/b", "/a/b/c", "/d", "/d/e")
FILES: Final = tuple(f"{one}/{name}" for one in DIRECTORIES for name in ("x", "y"))
POLICIES: Final = ("HOT", "WARM", "COLD", "ALL_SSD", "ONE_SSD")
TYPES: Final = ("DISK", "SSD", "ARCHIVE")
OVER: Final = {NAMESPACE_QUOTA_EXCEEDED, SPACE_QUOTA_EXCEEDED, TYPE_QUOTA_EXCEEDED}

Amounts = dict[str, int]
"""Names, bytes with replicas, and bytes by type of storage."""


@dataclass(slots=True)
class QuotaWorld:
    """``refused`` counts calls over a quota; ``taken`` those that added to what has one."""

    chance: Random
    served: Served = field(init=False)
    on_disks: dict[int, Extended] = field(default_factory=dict)
    snapshots: int = 0
    refused: int = 0
    taken: int = 0
    failovers: int = 0
    images: int = 0

    def __post_init__(self) -> None:
        self.served = datanodes_in_memory.with_datanodes(namenode_in_memory.serve(), 4)

    @property
    def namespace(self) -> Namespace:
        return self.served.namespace

    # ---- one step ----

    async def begin(self) -> None:
        for path in DIRECTORIES:
            await self.served.mkdirs(path)
        for _ in range(5):
            await self.write()
            await self.set_quota()

    async def step(self) -> None:
        """Do one drawn thing, and check what is kept if the draw says so.

        What was never asked for is counted later in one walk: both ways must be tried.
        """
        deeds = (
            (30, self.write), (8, self.append), (6, self.truncate), (8, self.replicate),
            (6, self.set_policy), (6, self.concat), (14, self.rename), (8, self.delete),
            (12, self.make_directory), (24, self.set_quota), (8, self.snapshot),
            (2, self.fail_over), (2, self.load_image),
        )  # fmt: skip
        deed = self.chance.choices([one for _, one in deeds], [weight for weight, _ in deeds])[0]
        await deed()
        if self.chance.random() < 0.6:
            assert counted_wrong(self.namespace) == {}

    async def call(
        self,
        method: str,
        *,
        grows: bool = True,
        moved: str = "",
        **fields: Any,  # noqa: ANN401 - as messages have them
    ) -> Message | None:
        """Return the answer, or None of a refused call; check both against the quotas.

        As in Hadoop a move within a quota counts as nothing, though other types of storage may be
        meant where it goes, and quotas of what is moved are not asked; with snapshots its old name
        stays.
        """
        before = self.amounts(without=moved)
        edits = len(self.served.log.frames)
        try:
            answer = await self.served.call(method, **fields)
        except RemoteFault as fault:
            assert len(self.served.log.frames) == edits, (method, fields)
            if fault.java_class not in OVER:
                return None
            self.refused += 1
            await self.check_refusal(method, fields, fault)
            return None
        if grows:
            self.check_taken(before, method)
        return answer

    # ---- what must hold ----

    def amounts(self, without: str = "") -> dict[int, Amounts]:
        """Return what directories with quotas use, by their inode's id.

        Those that the path ``without`` is below, and those that are below it, are left out.
        """
        tree = self.namespace.tree
        return {
            node.id: amounts_of(self.namespace, node)
            for node in inode.subtree(tree.root)
            if isinstance(node, inode.INodeDirectory) and limits_of(node)
            if not without or _are_apart(without, inode.full_path(node))
        }

    def check_taken(self, before: dict[int, Amounts], method: str) -> None:
        for number, after in self.amounts().items():
            node = self.namespace.tree.inodes.get(number)
            assert isinstance(node, inode.INodeDirectory)
            for name, limit in limits_of(node).items():
                grown = after[name] - before.get(number, after)[name]
                self.taken += grown > 0
                assert grown <= 0 or after[name] <= limit, (method, name, limit, after[name])

    async def check_refusal(self, method: str, fields: Fields, fault: RemoteFault) -> None:
        """Lift the quota that a refusal names, and call again: that must lead to more than it."""
        words, lifted = fault.message, dict[int, dict[str, int]]()
        while True:
            node, name = self.named(words)
            lifted.setdefault(node.id, {})[name] = limits_of(node)[name]
            await self.limit(inode.full_path(node), name, NONE)
            try:
                await self.served.call(method, **fields)
            except RemoteFault as again:
                words = again.message
                continue
            break
        for number, limits in lifted.items():
            lasting = self.namespace.tree.inodes.get(number)
            assert isinstance(lasting, inode.INodeDirectory)
            used = amounts_of(self.namespace, lasting)
            for name, limit in limits.items():
                assert used[name] > limit, (method, fields, name, limit, used[name])

    def named(self, words: str) -> tuple[inode.INodeDirectory, str]:
        """Return the directory and the kind of quota that a refusal names."""
        if words.startswith("The NameSpace quota"):
            name, path = "names", words.partition(" of directory ")[2].partition(" is ")[0]
        elif words.startswith("The DiskSpace quota"):
            name, path = "space", words.partition(" of ")[2].partition(" is ")[0]
        else:
            name = words.removeprefix("Quota by storage type : ").partition(" ")[0]
            path = words.partition(" on path : ")[2].partition(" is ")[0]
        node = self.namespace.tree.find(path)
        assert isinstance(node, inode.INodeDirectory), words
        return node, name

    # ---- drawn calls ----

    def some_file(self) -> str:
        there = [path for path in FILES if self.file(path) is not None]
        return self.chance.choice(there or FILES)

    def file(self, path: str) -> inode.INodeFile | None:
        node = self.namespace.tree.find(path)
        return node if isinstance(node, inode.INodeFile) else None

    async def make_directory(self) -> None:
        path = self.chance.choice(DIRECTORIES) + self.chance.choice(("", "/m", "/m/n"))
        await self.call("mkdirs", src=path, masked={"perm": 0o755}, createParent=True)

    async def write(self) -> None:
        path = self.chance.choice(FILES)
        created = await self.call(
            "create", src=path, masked={"perm": 0o644}, clientName="writer",
            createFlag=self.chance.choice((1, 3)), createParent=True,
            replication=self.chance.randint(1, 4), blockSize=BLOCK,
        )  # fmt: skip
        if created is not None:
            await self.fill(path, None)

    async def append(self) -> None:
        path, flag = self.some_file(), self.chance.choice((None, 32))
        more: Fields = {} if flag is None else {"flag": flag}
        file = self.file(path)
        ends = file.blocks[-1:] if file is not None else ()
        begins_block = flag is not None or (
            file is not None and any(has_more_behind(file, block.block_id) for block in ends)
        )
        fields: Fields = {"src": path, "clientName": "writer", **more}
        # The last block counts as a whole one in any case, see docs/not-here-yet.md.
        opened = await self.call("append", grows=not begins_block, **fields)
        if not isinstance(opened, calls.AppendResponseProto):
            return
        last = None
        if flag is None and opened.HasField("block"):
            last = self.stored(opened.block.b, opened.block.b.numBytes + 1)
        await self.fill(path, last)

    async def fill(self, path: str, last: Extended | None) -> None:
        """Write some blocks, as far as quotas let it, and mostly close the file."""
        for _ in range(self.chance.randint(0, 2)):
            more: Fields = {} if last is None else {"previous": last}
            added = await self.call("addBlock", src=path, clientName="writer", **more)
            if not isinstance(added, calls.AddBlockResponseProto):
                break
            last = self.stored(added.block.b, self.chance.choice((1, 1000, BLOCK)))
        if self.chance.random() < 0.9:
            more = {} if last is None else {"last": last}
            await self.call("complete", src=path, clientName="writer", **more)

    def stored(self, block: Extended, length: int) -> Extended:
        """Have all DataNodes report a block of this length."""
        ended = datanodes_in_memory.sized(block, min(length, BLOCK))
        self.on_disks[block.blockId] = ended
        datanodes_in_memory.report(self.served, ended, *self.served.cluster.nodes)
        return ended

    async def truncate(self) -> None:
        path = self.some_file()
        file = self.file(path)
        length = 0 if file is None else self.chance.choice((0, file.length() // 2, file.length()))
        if file is not None and self.chance.random() < 0.5:
            length = sum(block.num_bytes for block in file.blocks[:-1])
        await self.call("truncate", src=path, newLength=length, clientName="writer")

    async def replicate(self) -> None:
        count = self.chance.randint(1, 4)
        await self.call("setReplication", src=self.some_file(), replication=count)

    async def set_policy(self) -> None:
        path = self.chance.choice((self.some_file(), *DIRECTORIES))
        if self.chance.random() < 0.3:
            await self.call("unsetStoragePolicy", grows=False, src=path)
        else:
            policy = self.chance.choice(POLICIES)
            await self.call("setStoragePolicy", grows=False, src=path, policyName=policy)

    async def concat(self) -> None:
        target = self.some_file()
        source = target[:-1] + self.chance.choice("xy")
        await self.call("concat", trg=target, srcs=[source])

    async def rename(self) -> None:
        source = self.some_file()
        if self.chance.random() < 0.3:
            source = self.chance.choice(DIRECTORIES[1:])
        target = self.chance.choice((*FILES, *DIRECTORIES, "/a/m", "/d/m"))
        method, fields = "rename", Fields(src=source, dst=target)
        if self.chance.random() < 0.5:
            method, fields["overwriteDest"] = "rename2", self.chance.random() < 0.5
        # As in Hadoop: what is replaced counts as gone, though a snapshot may keep it.
        grows = not self.namespace.tree.has_snapshots
        await self.call(method, grows=grows, moved=source, **fields)

    async def delete(self) -> None:
        path = self.some_file()
        if self.chance.random() < 0.1:
            path = self.chance.choice(DIRECTORIES[1:])
        await self.call("delete", src=path, recursive=True)

    async def snapshot(self) -> None:
        root = self.chance.choice(("/a", "/d", "/d", "/d/e"))
        node = self.namespace.tree.find(root)
        names = [f"s{number}" for number in range(self.snapshots)]
        if isinstance(node, inode.INodeDirectory) and names and self.chance.random() < 0.4:
            name = self.chance.choice(names)
            await self.call("deleteSnapshot", grows=False, snapshotRoot=root, snapshotName=name)
            return
        await self.call("allowSnapshot", grows=False, snapshotRoot=root)
        name = f"s{self.snapshots}"
        made = await self.call("createSnapshot", snapshotRoot=root, snapshotName=name)
        self.snapshots += made is not None

    async def set_quota(self) -> None:
        """Set a quota to some more than what is used, so that the next calls meet it."""
        path = self.chance.choice(("/", *DIRECTORIES))
        node = self.namespace.tree.find(path)
        if not isinstance(node, inode.INodeDirectory):
            return
        name = self.chance.choice(("names", "space", *TYPES))
        used = amounts_of(self.namespace, node)[name]
        most = 4 if name == "names" else self.chance.choice((3000, 3 * BLOCK, 12 * BLOCK))
        some = max(1, used + self.chance.randint(-most // 4, most))
        await self.limit(path, name, NONE if self.chance.random() < 0.2 else some)

    async def limit(self, path: str, name: str, amount: int) -> None:
        more: Fields = {"storageType": name} if name in TYPES else {}
        names = amount if name == "names" else KEEP
        space = KEEP if name == "names" else amount
        fields: Fields = {"path": path, "namespaceQuota": names, "storagespaceQuota": space, **more}
        try:
            await self.served.call("setQuota", **fields)
        except RemoteFault:
            if path != "/":  # the root keeps its quota of names
                raise

    # ---- the next NameNode ----

    async def fail_over(self) -> None:
        """Let a standby that has read all edits become active."""
        namespace = Namespace.empty(SUPERUSER)
        self.follow(namespace, self.served.log.frames)
        self.failovers += 1
        await self.go_on_with(namespace)

    async def load_image(self) -> None:
        """Go on from an image of what is there, as a NameNode that was started again."""
        self.images += 1
        await self.go_on_with(read_namespace(io.BytesIO(saved(self.namespace, LAYOUT_VERSION))))

    def follow(self, namespace: Namespace, frames: list[bytes]) -> None:
        for txid, op in decode_all(b"".join(frames[namespace.last_applied :]), LAYOUT_VERSION):
            namespace.apply(txid, op)

    async def go_on_with(self, namespace: Namespace) -> None:
        frames, call_ids, used = list(self.served.log.frames), self.served.call_ids, self.amounts()
        self.served = datanodes_in_memory.with_datanodes(
            namenode_in_memory.serve(namespace=namespace), 4
        )
        self.served.log.frames, self.served.call_ids = frames, call_ids
        assert self.amounts() == used
        for block in self.on_disks.values():
            datanodes_in_memory.report(self.served, block, *self.served.cluster.nodes)
        await self.served.call("setSafeMode", action=hdfs_types_pb2.SAFEMODE_FORCE_EXIT)


def _are_apart(one: str, other: str) -> bool:
    """Return whether neither of two paths is that of the other or below it."""
    first, second = (f"{path.rstrip('/')}/" for path in (one, other))
    return not first.startswith(second) and not second.startswith(first)


def amounts_of(namespace: Namespace, node: inode.INodeDirectory) -> Amounts:
    use = held.use_of(namespace.tree, node)
    kinds = quotas.by_type(use)
    by_type = {kind.name: size for kind, size in kinds.items()}
    return {"names": use.names, "space": use.space()} | {
        name: by_type.get(name, 0) for name in TYPES
    }


def limits_of(node: inode.INodeDirectory) -> Amounts:
    """Return the quotas that a directory has, by the names of what they limit."""
    if node.quotas in (inode.NO_QUOTAS, inode.ROOT_QUOTAS):
        return {}
    limits = {"names": node.quotas.namespace, "space": node.quotas.space}
    limits |= {StorageType(number).name: quota for number, quota in node.quotas.by_type}
    return {name: limit for name, limit in limits.items() if 0 <= limit < inode.QUOTA_DONT_SET}
