"""Which DataNodes may be in this namespace, and what a registration changes.

See docs/reference/datanodes.md#registration.
"""

from ha.record import dataclass
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import (
    StillElsewhere,
    StrangeNamespace,
    UnevenRacks,
    VersionTooOld,
)
from namenode_sim.datanodes.membership.rack_names import depth
from namenode_sim.datanodes.model import DEFAULT_RACK, DatanodeId, Node, NodeCache


@dataclass(frozen=True, slots=True)
class NamespaceIds:
    """Which namespace something belongs to; ``ctime`` is in milliseconds since 1970."""

    namespace_id: int
    cluster_id: str
    ctime: int


@dataclass(frozen=True, slots=True)
class Registration:
    """What a DataNode says of itself, with the address from which it called, and its rack."""

    id: DatanodeId
    namespace: NamespaceIds
    software_version: str
    rack: str = DEFAULT_RACK


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRules:
    """Which DataNodes are let in; a silent one keeps its address for ``elsewhere_seconds``."""

    namespace: NamespaceIds
    oldest_version: str = "2.1.0-beta"
    elsewhere_seconds: float = 9.0


@dataclass(frozen=True, slots=True)
class Registered:
    """A node that is registered now, and the nodes that its registration ends."""

    node: Node
    replaced: tuple[Node, ...]


def register(
    cluster: Cluster, registration: Registration, rules: RegistryRules, now: float
) -> Registered:
    """Let a DataNode in, or again.

    A new uuid at a known address ends the DataNode that was there: its disks were replaced or
    formatted.  What is known of replicas on a DataNode that comes again stays until its report.

    Raises:
        StrangeNamespace, VersionTooOld, StillElsewhere, UnevenRacks: nothing has changed then.
    """
    who = registration.id
    check_namespace(registration, rules)
    if _older(registration.software_version, rules.oldest_version):
        raise VersionTooOld(_name(who), registration.software_version, rules.oldest_version)
    check_rack(cluster, who, registration.rack)
    known = cluster.nodes.get(who.uuid)
    if known is not None and _is_elsewhere(known, who, rules, now):
        raise StillElsewhere(
            who.uuid, known.id.transfer_address, who.transfer_address, rules.elsewhere_seconds
        )
    replaced = tuple(
        node
        for node in cluster.nodes.values()
        if node.id.transfer_address == who.transfer_address and node.id.uuid != who.uuid
    )
    for node in replaced:
        node.alive = False
        del cluster.nodes[node.id.uuid]
        cluster.leaving.discard(node.id.uuid)
    if known is None:
        known = cluster.nodes[who.uuid] = Node(who, registration.software_version, now)
    else:
        cluster.blocks.registered(who.uuid)
    known.id, known.software_version, known.last_heard = who, registration.software_version, now
    known.rack = registration.rack
    cluster.forget_hosts()
    known.alive, known.broken, known.must_register = True, False, False
    known.forget_claim()
    known.cache = NodeCache()  # a process that has started anew has nothing in memory
    known.failed_volumes = -1  # a storage that its first heartbeat does not name has been replaced
    known.registrations += 1
    known.registered_at = now
    return Registered(known, replaced)


def check_namespace(registration: Registration, rules: RegistryRules) -> None:
    """Refuse a DataNode of another namespace; asked with every call of a DataNode.

    Raises:
        StrangeNamespace: if it is one.
    """
    if registration.namespace != rules.namespace:
        raise StrangeNamespace(_name(registration.id), registration.namespace, rules.namespace)


def check_rack(cluster: Cluster, who: DatanodeId, rack: str) -> None:
    """Raise UnevenRacks where live ones are on another level than a rack (NetworkTopology.add)."""
    address = who.transfer_address
    for node in cluster.nodes.values():
        other = node.id.uuid != who.uuid and node.id.transfer_address != address
        if node.alive and other and depth(node.rack) != depth(rack):
            raise UnevenRacks(_name(who), rack, node.rack)


def _name(who: DatanodeId) -> str:
    return f"{who.uuid} ({who.transfer_address})"


def _is_elsewhere(known: Node, who: DatanodeId, rules: RegistryRules, now: float) -> bool:
    """Two processes with copies of one directory would otherwise take turns."""
    moved = known.id.transfer_address != who.transfer_address
    heard = known.alive and not known.broken and not known.must_register
    return moved and heard and now < known.last_heard + rules.elsewhere_seconds


def _older(version: str, oldest: str) -> bool:
    """Return whether a version is older; one that names no numbers is older than all."""
    found, wanted = _parts(version), _parts(oldest)
    return found is None or (wanted is not None and found < wanted)


def _parts(version: str) -> tuple[tuple[int, ...], bool, str] | None:
    """Return what can be compared: the numbers, whether it is a release, and its other name."""
    numbers, _, rest = version.partition("-")
    fields = numbers.split(".")
    if not all(field.isascii() and field.isdigit() and len(field) <= 9 for field in fields):
        return None
    return tuple(map(int, fields)), not rest, rest.lower()
