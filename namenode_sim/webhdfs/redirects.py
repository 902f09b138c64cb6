"""Which DataNode carries out an operation on data, and the address that a caller is sent to.

See Hadoop's NamenodeWebHdfsMethods.chooseDatanode.  Pure.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlencode

from hadoop.proto.hdfs_types_pb2 import HdfsFileStatusProto, LocatedBlocksProto
from hadoop.webhdfs.params import PREFIX
from namenode_sim.client_protocol.words.errors import io_error
from namenode_sim.client_protocol.words.model import Scene
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.placement import Wish
from namenode_sim.datanodes.storage_policies import DEFAULT_POLICY_ID, POLICIES
from namenode_sim.webhdfs.answers import Asked

_NOT_PASSED_ON: Final = frozenset({"noredirect", "excludedatanodes"})
"""Parameters for the NameNode alone."""


def checked_offset(asked: Asked, found: HdfsFileStatusProto) -> int:
    """Return the offset whose block says where to go; raise FsError where it is behind the end."""
    length = found.length
    if asked.op != "OPEN":
        return max(length - 1, 0)
    offset: int = asked.values["offset"]
    if offset >= length > 0:
        raise io_error(f"Offset={offset} out of the range [0, {length}); OPEN, path={asked.path}")
    return offset


def with_replica(asked: Asked, scene: Scene, found: LocatedBlocksProto) -> Node | None:
    """Return the first DataNode to read the first block from; None if there is none.

    Raises:
        FsError: if the block is on none that is in service and not excluded.
    """
    if not found.blocks:
        return None
    avoided = _excluded_nodes(asked)
    for place in found.blocks[0].locs:
        node = scene.cluster.nodes.get(place.id.datanodeUuid)
        if node and node.admin is not AdminState.DECOMMISSIONED and not avoided & _names(node):
            return node
    raise io_error("No active nodes contain this block")


def to_write_to(asked: Asked, scene: Scene) -> Node:
    """Return the DataNode where placement would put a first replica; raise FsError if none.

    Of several on the host of the caller, that one which was heard of last is the least likely dead.
    """
    nodes, host, avoided = scene.cluster.nodes, scene.caller.host, _excluded_nodes(asked)
    local = scene.cluster.local_to(host)
    wish = Wish(
        count=1,
        size=asked.values.get("blocksize") or scene.settings.block_size,
        policy=POLICIES[DEFAULT_POLICY_ID],
        writer=max(local, key=lambda node: node.last_heard, default=None),
        rack=None if local else scene.cluster.rack_of_host(host),
        excluded=frozenset(uuid for uuid, node in nodes.items() if avoided & _names(node)),
    )
    found = scene.cluster.choose(wish, scene.now).places
    if not found:
        raise io_error(
            "Failed to find datanode, suggest to check cluster health. "
            f"excludeDatanodes={asked.values.get('excludedatanodes') or 'null'}"
        )
    return found[0][0]


def location(asked: Asked, node: Node, own: Mapping[str, str], *, secure: bool) -> str:
    """Return the address of an operation at a DataNode.

    ``own`` are parameters of the NameNode: how it may be called, and in whose name.
    """
    given = {
        name: _spell(name, value)
        for name, value in sorted(asked.values.items())
        if name not in _NOT_PASSED_ON and value not in (None, ())
    }
    query = urlencode({"op": asked.op, **own, **given}, quote_via=quote)
    scheme, port = "http", node.id.info_port
    if secure:
        scheme, port = "https", node.id.info_secure_port or port
    host = f"[{node.id.host}]" if ":" in node.id.host else node.id.host
    return f"{scheme}://{host}:{port}{PREFIX}{quote(asked.path)}?{query}"


def _spell(name: str, value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case tuple():
            return ",".join(value)
        case int() if "permission" in name:
            return f"{value:o}"
    return str(value)


def _excluded_nodes(asked: Asked) -> set[str]:
    words: str = asked.values.get("excludedatanodes") or ""
    return {word.strip() for word in words.split(",") if word.strip()}


def _names(node: Node) -> set[str]:
    """Return all names by which a client may exclude a DataNode."""
    hosts = {node.id.ip, node.id.host}
    return hosts | {f"{host}:{node.id.transfer_port}" for host in hosts}
