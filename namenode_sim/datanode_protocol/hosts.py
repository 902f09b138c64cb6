"""Applies the hosts files: which DataNodes may register, which leave, and how far that is.

See docs/reference/datanodes.md#leaving-service.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from ha.names import NAMES
from ha.record import dataclass, replace
from journal.model import TxId
from namenode_sim.datanode_protocol.gone import GoneStorages
from namenode_sim.datanode_protocol.leaving import Leaving, LeavingRules, Progress
from namenode_sim.datanode_protocol.slices import in_slices
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.datanodes.errors import BadHosts
from namenode_sim.datanodes.membership.admin import AFTER, Kind, asked_state, unproven_state
from namenode_sim.datanodes.membership.host_lists import (
    HostLists,
    json_lists,
    text_lists,
)
from namenode_sim.datanodes.model import AdminState, Node
from namenode_sim.datanodes.redundancy import Redundancy

log = structlog.get_logger()

LOOKUP_SECONDS: Final = 10.0
"""For the addresses of all hosts that the files name; those not found by then count by name."""

TICK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class HostFiles:
    """Where the lists are: Hadoop's two, or one in JSON (CombinedHostFileManager)."""

    include: Path | None = None
    exclude: Path | None = None
    combined: bool = False

    def read(self) -> HostLists:
        """Read the files, and look the hosts up; to be called in a thread. Raises BadHosts."""
        include = _text(self.include)
        if self.combined:
            lists = json_lists(include, str(self.include))
        else:
            files = str(self.include), str(self.exclude)
            lists = text_lists(include, _text(self.exclude), files)
        return replace(lists, addresses=addresses_of(lists.names()))


def _text(file: Path | None) -> str:
    if file is None:
        return ""
    try:
        return file.read_text()
    except (OSError, ValueError) as problem:
        raise BadHosts(str(file), f"it cannot be read: {problem}") from problem


def addresses_of(names: set[str]) -> dict[str, frozenset[str]]:
    """Look names up; what is an address, or cannot be found in time, is left out."""
    found: dict[str, frozenset[str]] = {}
    ends = time.monotonic() + LOOKUP_SECONDS
    for name in sorted(names):
        left = ends - time.monotonic()
        if left <= 0:
            break
        try:
            infos = NAMES.addresses(name, 0, left)
        except (OSError, UnicodeError):
            continue
        found[name] = frozenset(str(info[4][0]) for info in infos)
    if lacking := len(names) - len(found):
        state = "compared by the addresses that were found before, or else by their names only"
        log.warning("hosts.not_found", hosts=lacking, state=state)
    return found


class Hosts:
    """Owns what the hosts files say, and the states of the DataNodes that follow from it.

    ``read`` returns the lists, in a thread; without it all may register, and none leaves.
    ``drop`` has a DataNode count as dead; ``durable`` returns the last durable edit of an active.
    """

    def __init__(
        self, cluster: Cluster, redundancy: Redundancy, gone: GoneStorages, rules: LeavingRules, *,
        drop: Callable[[Node], None], durable: Callable[[], TxId | None],
        clock: Callable[[], float],
    ) -> None:  # fmt: skip
        self._cluster, self._gone, self._rules = cluster, gone, rules
        self._drop, self._durable, self._clock = drop, durable, clock
        self._leaving = Leaving(cluster, redundancy, rules)
        self.read: Callable[[], HostLists] | None = None
        self.wall_clock: Callable[[], float] = time.time
        self.progress: dict[str, Progress] = {}
        self._next_look = clock()
        self._in_doubt = set[str]()
        self._reading = asyncio.Lock()
        self._to_read = asyncio.Event()

    @property
    def lists(self) -> HostLists:
        return self._cluster.hosts

    def registered(self, node: Node) -> None:
        """Have a DataNode that has registered leave service if that is asked of it."""
        self._doubt(node)
        self._follow(node)

    def activated(self) -> None:
        """Begin a term as the active: what was proven about blocks was another's, or is old.

        The files are read first; they may have changed while this NameNode was a standby, and an
        active that does not know who leaves would delete replicas that are needed.
        """
        self.progress.clear()
        for node in self._cluster.nodes.values():
            self._doubt(node)
        if self.read is not None:
            self._cluster.hosts_known = False
            self._to_read.set()
        self._next_look = self._clock()

    def _doubt(self, node: Node) -> None:
        self._set(node, unproven_state(node.admin, alive=node.alive, at_once=self._at_once))

    @property
    def _at_once(self) -> bool:
        return self._rules.maintained_least == 0

    async def refresh(self) -> None:
        """Read the files, and follow them. Raises BadHosts, and nothing has changed then."""
        async with self._reading:
            if self.read is None:
                return
            lists = await asyncio.to_thread(self.read)
            self.apply(lists.with_former(self.lists.addresses))

    def apply(self, lists: HostLists) -> None:
        """Follow lists: DataNodes that are not included count as dead, others change state."""
        self._cluster.hosts = lists
        for node in list(self._cluster.nodes.values()):
            if lists.includes(node.id):
                self._follow(node)
            elif node.alive:
                log.warning("hosts.not_included", datanode=node.id.uuid, host=node.id.host)
                self._drop(node)
        self._next_look = self._clock()

    def _follow(self, node: Node) -> None:
        asked = self.lists.asked(node.id).at(int(self.wall_clock() * 1000))
        if asked.kind is not Kind.MAINTENANCE:
            self._in_doubt.discard(node.id.uuid)
        elif self._may_lack_replicas(node):
            return
        state = asked_state(node.admin, asked.kind, alive=node.alive, at_once=self._at_once)
        self._set(node, state)

    def _may_lack_replicas(self, node: Node) -> bool:
        """Return whether it is not certain that a DataNode has what a maintenance would count.

        Bad schedule: it was let go, is taken away, and is asked into maintenance before its death
        is known. It stays as it is until it has reported since, or what it had is dropped.
        """
        uuid, state = node.id.uuid, node.admin
        if state.is_maintained or (node.alive and state is AdminState.NORMAL):
            return False
        storages = [one.held for one in node.storages.values()]
        if uuid not in self._in_doubt:
            self._in_doubt.add(uuid)
            for one in storages:
                one.doubt(self._clock())
        return any(one.slots and (one.needs_full_report or not node.alive) for one in storages)

    def _set(self, node: Node, state: AdminState) -> None:
        before = node.admin
        if state is before:
            return
        self.progress.pop(node.id.uuid, None)
        node.blocks_left = None
        if state is AdminState.NORMAL:
            # Bad schedule: a former active said that it may go, its disks were replaced before this
            # one had come to say so, and it is asked to serve before it reports.
            self._cluster.blocks.registered(node.id.uuid)
        self._cluster.set_admin(node, state)
        log.info(
            "hosts.state",
            datanode=node.id.uuid,
            host=node.id.host,
            before=before.name,
            after=state.name,
        )
        if not node.alive and not state.is_maintained:
            self._gone.add_all(node)  # in maintenance they were kept

    async def run(self) -> None:
        """Read the files when a term begins, and look at what leaves from time to time."""
        while True:
            if self._to_read.is_set():
                await self._read_for_term()
            self.expire()
            self.settle()
            if self._clock() >= self._next_look:
                self._next_look = self._clock() + self._rules.look_seconds
                await self.look()
            try:
                async with asyncio.timeout(TICK_SECONDS):
                    await self._to_read.wait()
            except TimeoutError:
                continue

    async def _read_for_term(self) -> None:
        self._to_read.clear()
        term = self._cluster.term
        try:
            await self.refresh()
        except BadHosts as bad:
            log.warning("hosts.not_read", why=str(bad))
        if term == self._cluster.term:
            self._cluster.hosts_known = True

    def expire(self) -> None:
        """Have DataNodes serve again whose maintenance has expired, and begin those that wait."""
        self._in_doubt &= self._cluster.nodes.keys()
        for node in list(self._cluster.nodes.values()):
            is_asked = node.admin.is_maintained or node.id.uuid in self._in_doubt
            if is_asked and self.lists.includes(node.id):
                self._follow(node)

    async def look(self) -> None:
        """Look at the blocks of some DataNodes that leave; only an active that copies can say."""
        cluster, term = self._cluster, self._cluster.term
        leaving = [node for node in cluster.nodes.values() if node.admin in AFTER]
        for node in leaving[: self._rules.most_at_once]:
            if not cluster.blocks.rechecks.is_started():
                return
            goes_on = partial(self._is_same, node, (term, node.admin, node.registrations))
            progress = self.progress.setdefault(node.id.uuid, Progress())
            if await in_slices(self._leaving.look(node, progress), goes_on):
                node.blocks_left = progress.left
        self.settle()

    def settle(self) -> None:
        """Say that DataNodes may go, once the edits by which their blocks are safe are durable.

        Bad schedule: a file is deleted, nothing needs the only replica of its block, and the edit
        is lost with this active.
        """
        durable = self._durable()
        for uuid, progress in list(self.progress.items()):
            node = self._cluster.nodes.get(uuid)
            if node is None or durable is None or durable < progress.proven:
                continue
            if node.admin in AFTER and self._leaving.may_go(node, progress):
                self._set(node, AFTER[node.admin])

    def _is_same(self, node: Node, was: tuple[int, AdminState, int]) -> bool:
        return (self._cluster.term, node.admin, node.registrations) == was
