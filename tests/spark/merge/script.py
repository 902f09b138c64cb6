"""A log written by hand: what comes before ``image()`` is in the image, the rest is the edits."""

from journal.model import TxId
from namenode_sim.edits import ops
from namenode_sim.edits.ops import Op
from namenode_sim.edits.values import AclEntry, Block, Permission, RenameOption
from namenode_sim.namespace.namespace import Namespace
from tests.namenode_sim.image.image_world import saved
from tests.spark.merge.memory import Edits, Merge, check_against_oracle

WHO = Permission("alice", "staff", 0o755)


class Script:
    """Writes edits that fit, with a clock that goes on by ten."""

    def __init__(self, layout: int = -65) -> None:
        self.namespace = Namespace.empty("hdfs")
        self.layout = layout
        self.data = b""
        self.edits: Edits = []
        self.now = 1000

    def write(self, op: Op) -> None:
        txid = TxId(self.namespace.last_applied + 1)
        self.namespace.apply(txid, op)
        self.edits.append((txid, op))
        self.now += 10

    def image(self) -> None:
        self.data = saved(self.namespace, self.layout)
        self.edits = []

    def check(self) -> Merge:
        return check_against_oracle(self.data, self.edits)

    def _next_id(self) -> int:
        return self.namespace.counters.last_inode_id + 1

    def mkdirs(self, *paths: str, acl: tuple[AclEntry, ...] = (), who: Permission = WHO) -> None:
        for path in paths:
            self.write(ops.Mkdir(self._next_id(), path, self.now, self.now, who, acl))

    def open(self, path: str, *, overwrite: bool = False, who: Permission = WHO) -> None:
        number, now = self._next_id(), self.now
        self.write(
            ops.Add(number, path, 3, now, now, 100, (), who, (), (), "w1", "host", overwrite)
        )

    def files(self, *paths: str, overwrite: bool = False, who: Permission = WHO) -> None:
        for path in paths:
            self.open(path, overwrite=overwrite, who=who)
            number = self.namespace.counters.last_block_id + 1
            self.write(ops.AllocateBlockId(number))
            self.write(ops.AddBlock(path, None, Block(number, 0, 1001)))
            self.close(path, Block(number, 60, 1001))

    def close(self, path: str, *blocks: Block) -> None:
        self.write(ops.Close(0, path, 3, self.now, self.now, 100, blocks, WHO))

    def delete(self, *paths: str) -> None:
        for path in paths:
            self.write(ops.Delete(path, self.now))

    def rename(self, src: str, dst: str, *, overwrite: bool = False) -> None:
        """Log the rename that must succeed."""
        kind = RenameOption.OVERWRITE if overwrite else RenameOption.NONE
        self.write(ops.Rename(src, dst, self.now, (kind,)))

    def rename_old(self, src: str, dst: str) -> None:
        """Log the rename that may do nothing."""
        self.write(ops.RenameOld(src, dst, self.now))
