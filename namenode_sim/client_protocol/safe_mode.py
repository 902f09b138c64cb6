"""What safe mode refuses, and who may switch it.

See docs/reference/blocks.md#safe-mode.
"""

from typing import Final

from google.protobuf.message import Message

from ha.record import dataclass
from ha.rpc.java_names import RETRIABLE, SAFE_MODE_EXCEPTION
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import SafeModeActionProto
from namenode_sim.blocks.safemode import Hold, ReplicasWouldBeDeleted, enter, force_exit, leave
from namenode_sim.client_protocol.words.errors import FsError, io_error
from namenode_sim.client_protocol.words.model import Caller
from namenode_sim.client_protocol.words.permissions import check_superuser
from namenode_sim.datanodes.cluster import Cluster

WORDS: Final = {
    "mkdirs": "Cannot create directory {src}",
    "create": "Cannot create file{src}",
    "append": "Cannot append to file{src}",
    "delete": "Cannot delete {src}",
    "rename": "Cannot rename {src}",
    "rename2": "Cannot rename {src}",
    "concat": "Cannot concat {trg}",
    "truncate": "Cannot truncate for {src}",
    "createSymlink": "Cannot create symlink {link}",
    "setPermission": "Cannot set permission for {src}",
    "setOwner": "Cannot set owner for {src}",
    "setTimes": "Cannot set times {src}",
    "setReplication": "Cannot set replication for {src}",
    "setQuota": "Cannot set quota on {path}",
    "setStoragePolicy": "Cannot set storage policy for {src}",
    "unsetStoragePolicy": "Cannot unset storage policy for {src}",
    "addBlock": "Cannot add block to {src}",
    "abandonBlock": "Cannot abandon block for file{src}",
    "complete": "Cannot complete file {src}",
    "fsync": "Cannot fsync file {src}",
    "renewLease": "Cannot renew lease for {clientName}",
    "recoverLease": "Cannot recover the lease of {src}",
    "getAdditionalDatanode": (
        "Cannot add datanode; src={src}, blk={blk.poolId}:blk_{blk.blockId}_{blk.generationStamp}"
    ),
    "updateBlockForPipeline": "Cannot get a new GS for a block",
    "updatePipeline": "Pipeline not updated",
    "createSnapshot": "Cannot create snapshot for {snapshotRoot}",
    "renameSnapshot": "Cannot rename snapshot for {snapshotRoot}",
    "deleteSnapshot": "Cannot delete snapshot for {snapshotRoot}",
    "allowSnapshot": "Cannot allow snapshot for {snapshotRoot}",
    "disallowSnapshot": "Cannot disallow snapshot for {snapshotRoot}",
    "setAcl": "Cannot set ACL on {src}",
    "modifyAclEntries": "Cannot modify ACL entries on {src}",
    "removeAclEntries": "Cannot remove ACL entries on {src}",
    "removeDefaultAcl": "Cannot remove default ACL entries on {src}",
    "removeAcl": "Cannot remove ACL on {src}",
    "setXAttr": "Cannot set XAttr on {src}",
    "removeXAttr": "Cannot remove XAttr entry on {src}",
    "addCacheDirective": "Cannot add cache directive",
    "modifyCacheDirective": "Cannot add cache directive",
    "removeCacheDirective": "Cannot remove cache directives",
    "addCachePool": "Cannot add cache pool {info.poolName}",
    "modifyCachePool": "Cannot modify cache pool {info.poolName}",
    "removeCachePool": "Cannot modify cache pool {poolName}",
    "getDelegationToken": "Cannot issue delegation token",
    "renewDelegationToken": "Cannot renew delegation token",
    "cancelDelegationToken": "Cannot cancel delegation token",
}
"""What FSNamesystem says that it cannot do, by call; the names are of the request's fields."""


@dataclass(frozen=True, slots=True)
class SafeModeAt:
    """Safe mode of a NameNode at an instant (monotonic, in seconds)."""

    cluster: Cluster
    host: str
    now: float

    def check_edit(self, method: str, request: Message) -> None:
        """Raise FsError for a call that changes something."""
        if self.cluster.safe_mode.hold() is not Hold.NOTHING:  # or every edit would pay for words
            self.check(_words(method, request))

    def check_located(self, answer: Message, path: str) -> None:
        """Raise FsError for blocks without a place: DataNodes may just not have reported."""
        if not isinstance(answer, calls.GetBlockLocationsResponseProto):
            return
        if not all(block.locs for block in answer.locations.blocks):
            self.check(f"Zero blocklocations for {path}")

    def check(self, what: str) -> None:
        """Raise FsError while safe mode is on.

        Clients of an active wait for the end of the start's safe mode, and of no other.
        """
        hold = self.cluster.safe_mode.hold()
        if hold is Hold.NOTHING:
            return
        tip = self.cluster.safe_mode_tip(self.now)
        said = f"{what}. Name node is in safe mode.\n{tip} NamenodeHostName:{self.host}"
        if hold is Hold.START:
            raise FsError(RETRIABLE, f"{SAFE_MODE_EXCEPTION}: {said}")
        raise FsError(SAFE_MODE_EXCEPTION, said)


def _words(method: str, request: Message) -> str:
    fields = {field.name: getattr(request, field.name) for field in request.DESCRIPTOR.fields}
    return WORDS[method].format_map(fields)


def check_on(cluster: Cluster) -> None:
    """Raise FsError unless safe mode is on, as it must be while an image is saved."""
    if not cluster.safe_mode.is_on():
        raise io_error("Safe mode should be turned ON in order to create namespace image.")


def switch(
    caller: Caller, request: calls.SetSafeModeRequestProto, cluster: Cluster
) -> calls.SetSafeModeResponseProto:
    """Enter or leave safe mode, and return whether it is on.

    Raises:
        FsError: if the caller may not, or if leaving would have replicas deleted.
    """
    action = request.action
    if action != SafeModeActionProto.SAFEMODE_GET:
        check_superuser(caller)
    match action:
        case SafeModeActionProto.SAFEMODE_ENTER:
            cluster.set_safe_mode(enter(cluster.safe_mode))
        case SafeModeActionProto.SAFEMODE_LEAVE:
            try:
                cluster.set_safe_mode(leave(cluster.counts()))
            except ReplicasWouldBeDeleted as refusal:
                raise io_error(str(refusal)) from refusal
        case SafeModeActionProto.SAFEMODE_FORCE_EXIT:
            cluster.blocks.give_up_future_bytes()
            cluster.set_safe_mode(force_exit())
        case _:
            pass
    return calls.SetSafeModeResponseProto(result=cluster.safe_mode.is_on())
