"""Blocks, DataNodes and safe mode of one NameNode: what calls of clients and DataNodes look at.

It is changed in place, always within one call, by its one owner (the keeper).

See docs/reference/datanodes.md#cluster.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from hadoop.block_tokens import KeyRing
from namenode_sim.blocks import model, safemode
from namenode_sim.blocks.apply_edits import apply_edit, load
from namenode_sim.blocks.safemode import counts_of
from namenode_sim.blocks.state import BlockState
from namenode_sim.datanodes import storage_policies
from namenode_sim.datanodes.membership.host_lists import ALL_HOSTS
from namenode_sim.datanodes.model import AdminState, Draw, Node, NodeStorage, Room, total
from namenode_sim.datanodes.placement import Choice, Wish, choose
from namenode_sim.datanodes.storage_policies import policy_of
from namenode_sim.datanodes.topology import STALE_SECONDS, on_host
from namenode_sim.namespace.caching import CacheFigures
from namenode_sim.namespace.namespace import Namespace

_MOST_HOSTS: Final = 16384
"""Clients' hosts of which it is kept which DataNodes they have; then all are looked up anew."""


class Cluster:
    """``pool`` is the block pool's id; ``nodes`` are by uuid, dead ones included.

    ``term`` counts the changes of the role: work that was begun in another is not gone on with.
    After ``stale_seconds`` of silence a DataNode is avoided.
    ``safe_mode_stays``: an image is being saved, and the start's safe mode does not move on.
    ``hosts`` are the hosts files.
    ``hosts_known``: what the hosts files ask of the DataNodes is known; before that an active has
    nothing copied or deleted. ``leaving`` are the uuids of those that are not in service.
    ``rack_of_host`` returns the rack of a host that is no DataNode, None if it is not known yet.
    From ``registered_by`` on, in monotonic seconds, a DataNode that has not registered is dead.
    ``block_keys`` sign block tokens; None: there are none. ``tokens_asked``: DataNodes ask for
    them; ``tokens_may_end``: no longer once one of Hadoop's registers, which is without.
    ``on_damage`` hears the block, its stamp and the DataNode of each replica that is found damaged.
    """

    __slots__ = (
        "_by_number", "_local", "_namespace", "block_keys", "blocks", "cache", "draw", "hosts",
        "hosts_known", "leaving", "nodes", "on_damage", "pool", "rack_of_host",
        "registered_by", "rules",
        "safe_mode", "safe_mode_stays", "stale_seconds", "term", "tokens_asked", "tokens_may_end",
    )  # fmt: skip

    def __init__(
        self, pool: str, blocks: BlockState, draw: Draw, rules: safemode.SafeModeRules | None = None
    ) -> None:
        self.pool = pool
        self.term = 0
        self.blocks = blocks
        self.block_keys: KeyRing | None = None
        self.tokens_asked = True
        self.tokens_may_end = False
        self.cache = CacheFigures()
        self.draw = draw
        self.hosts_known = True
        self.hosts = ALL_HOSTS
        self.leaving: set[str] = set()
        self.rack_of_host: Callable[[str], str | None] = lambda _: None
        self.stale_seconds = STALE_SECONDS
        self.registered_by = 0.0
        self.safe_mode_stays = False
        self.on_damage: Callable[[int, int, str], None] = lambda *_: None
        self.rules = safemode.SafeModeRules() if rules is None else rules
        self.nodes: dict[str, Node] = {}
        self.safe_mode: safemode.SafeMode = safemode.begin(self.rules, self.counts())
        self._namespace: Namespace | None = None
        self._by_number: dict[model.StorageNumber, tuple[Node, NodeStorage]] = {}
        self._local: dict[str, list[Node]] = {}

    def belong_to(self, namespace: Namespace) -> None:
        """Note the blocks of a namespace, and follow its edits from now on."""
        self._namespace = namespace
        load(self.blocks, namespace)
        namespace.watch_blocks()
        namespace.follower = partial(apply_edit, self.blocks)
        self.begin_safe_mode()

    @property
    def namespace(self) -> Namespace | None:
        """The namespace whose blocks these are; None if there is none yet."""
        return self._namespace

    def counts(self) -> safemode.Counts:
        return counts_of(self.blocks, sum(node.alive for node in self.nodes.values()))

    def begin_safe_mode(self) -> None:
        """Begin the safe mode of the start; where there is nothing to wait for it is over."""
        self.set_safe_mode(safemode.begin(self.rules, self.counts()))

    def await_edits(self) -> None:
        """Be in safe mode until it begins: edits behind the image may bring blocks."""
        self.set_safe_mode(safemode.SafeMode(safemode.Pending()))

    def set_safe_mode(self, mode: safemode.SafeMode) -> None:
        self.safe_mode = mode
        self.blocks.set_starting(starting=not isinstance(mode.startup, safemode.Off))

    def safe_mode_tip(self, now: float) -> str:
        """Say what safe mode waits for, in Hadoop's words; empty where it is off."""
        return safemode.tip(self.safe_mode, self.rules, self.counts(), now)

    def is_active(self) -> bool:
        return self.blocks.role is model.Role.ACTIVE

    def policy_of(self, file_id: int) -> storage_policies.StoragePolicy:
        """Return the policy by which a file's blocks are placed; the default if it is gone."""
        inode = None if self._namespace is None else self._namespace.tree.inodes.get(file_id)
        return (
            storage_policies.POLICIES[storage_policies.DEFAULT_POLICY_ID]
            if inode is None
            else policy_of(inode)
        )

    def choose(self, wish: Wish, now: float) -> Choice:
        """Choose places for replicas; fewer than are wished for where no more are fit."""
        return choose(self.nodes.values(), wish, now, self.draw, self.stale_seconds)

    def local_to(self, host: str) -> list[Node]:
        """Return the DataNodes on a host, dead ones included, by its address or its name.

        Answers are kept: of thousands of DataNodes, a look at each takes longer than a call.
        """
        found = self._local.get(host)
        if found is None:
            if len(self._local) >= _MOST_HOSTS:
                self._local.clear()
            found = self._local[host] = on_host(self.nodes.values(), host)
        return found

    def forget_hosts(self) -> None:
        """Look anew on which hosts DataNodes are: one has come, gone or moved."""
        self._local.clear()

    def set_admin(self, node: Node, state: AdminState) -> None:
        """Note whether a DataNode serves or leaves; its blocks are to be checked then."""
        node.admin = state
        if state is AdminState.NORMAL:
            self.leaving.discard(node.id.uuid)
        else:
            self.leaving.add(node.id.uuid)
        self.recheck(node)

    def room(self) -> Room:
        """Return the sizes of the live DataNodes in service, in bytes (DatanodeStats.add)."""
        return total(
            storage.room
            for node in self.nodes.values()
            if node.alive and node.admin is AdminState.NORMAL
            for storage in node.storages.values()
        )

    def recheck(self, node: Node) -> None:
        """Have all blocks checked that a DataNode has replicas of."""
        for storage in node.storages.values():
            self.blocks.rechecks.update(storage.held.slots)

    def add_storage(self, node: Node, uuid: str) -> NodeStorage:
        """Return a storage of a DataNode, which is made if it is new.

        Raises:
            TooManyStorages: if no number is left.
        """
        known = node.storages.get(uuid)
        if known is None:
            known = NodeStorage(uuid, self.blocks.add_storage(node.id.uuid, uuid))
            node.storages[uuid] = known
            self._by_number[known.held.number] = (node, known)
        return known

    def remove_storage(self, node: Node, storage: NodeStorage) -> None:
        """Forget a storage that holds no block any more."""
        self.blocks.remove_storage(storage.held)
        del self._by_number[storage.held.number]
        del node.storages[storage.uuid]

    def place(self, number: model.StorageNumber) -> tuple[Node, NodeStorage]:
        """Return the DataNode and the storage behind a number of the map."""
        return self._by_number[number]

    def find_place(self, number: model.StorageNumber) -> tuple[Node, NodeStorage] | None:
        """Return where a storage is, by a number that may have been given back."""
        return self._by_number.get(number)

    def expect(self, slot: model.Slot, places: Iterable[NodeStorage]) -> None:
        """Note where a block that is being written is to be; what else was expected is dropped."""
        stamp = self.blocks.map.block(slot).stamp
        self.blocks.expect(
            slot,
            tuple(
                model.Location(place.held.number, model.ReplicaState.RBW, stamp, 0)
                for place in places
            ),
        )
