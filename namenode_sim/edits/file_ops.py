"""Ops about what files hold: creation, blocks, leases and their counters."""

from typing import ClassVar

from ha.record import record
from namenode_sim.edits.values import NO_RPC_IDS, AclEntry, Block, Permission, RpcIds, XAttr


@record
class Add:
    """A file is created, or (before layout -62) reopened for append."""

    opcode: ClassVar[int] = 0
    inode_id: int
    path: str
    replication: int
    mtime: int
    atime: int
    block_size: int
    blocks: tuple[Block, ...]
    permission: Permission
    acl: tuple[AclEntry, ...] = ()
    xattrs: tuple[XAttr, ...] = ()
    client_name: str = ""
    client_machine: str = ""
    overwrite: bool = False
    storage_policy_id: int = 0
    ec_policy_id: int = 0
    rpc: RpcIds = NO_RPC_IDS


@record
class Close:
    """A file is complete.  The inode id is always 0 when Hadoop writes it."""

    opcode: ClassVar[int] = 9
    inode_id: int
    path: str
    replication: int
    mtime: int
    atime: int
    block_size: int
    blocks: tuple[Block, ...]
    permission: Permission


@record
class Append:
    """A closed file is opened again."""

    opcode: ClassVar[int] = 47
    path: str
    client_name: str
    client_machine: str
    new_block: bool = False
    rpc: RpcIds = NO_RPC_IDS


@record
class AddBlock:
    """An open file gets a block, and the one before it (if any) its length."""

    opcode: ClassVar[int] = 33
    path: str
    penultimate: Block | None
    last: Block
    rpc: RpcIds = NO_RPC_IDS


@record
class UpdateBlocks:
    """The blocks of an open file changed."""

    opcode: ClassVar[int] = 25
    path: str
    blocks: tuple[Block, ...]
    rpc: RpcIds = NO_RPC_IDS


@record
class Truncate:
    """A file is cut to ``new_length`` bytes; the block is given when one is cut inside."""

    opcode: ClassVar[int] = 46
    path: str
    client_name: str
    client_machine: str
    new_length: int
    time: int
    block: Block | None = None


@record
class ConcatDelete:
    """The blocks of the sources go to the target's end, the sources go away."""

    opcode: ClassVar[int] = 16
    target: str
    sources: tuple[str, ...]
    time: int
    rpc: RpcIds = NO_RPC_IDS


@record
class SetReplication:
    """A file's replication changes."""

    opcode: ClassVar[int] = 4
    path: str
    replication: int


@record
class ReassignLease:
    """An open file gets another holder."""

    opcode: ClassVar[int] = 22
    lease_holder: str
    path: str
    new_holder: str


@record
class SetGenstampV1:
    """The old generation stamp counter (before Hadoop 2)."""

    opcode: ClassVar[int] = 10
    generation_stamp: int


@record
class SetGenstampV2:
    """The generation stamp counter."""

    opcode: ClassVar[int] = 31
    generation_stamp: int


@record
class AllocateBlockId:
    """A block id is given out; a negative one is a striped block group."""

    opcode: ClassVar[int] = 32
    block_id: int
