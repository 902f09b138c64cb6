"""One DataNode: volumes, store, ports, and an actor for each NameNode, put together."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import structlog

from datanode.errors import OtherNamespace, UnusableVolume, WrongNamespace
from datanode.metrics import FAILED_VOLUMES, LOCKED_BYTES, REPLICAS, SHARED_BYTES
from datanode.model import Replica, StorageId
from datanode.namenodes import claim
from datanode.namenodes.actor import Actor
from datanode.namenodes.claim_file import read_claims, write_claims
from datanode.namenodes.commands import Command
from datanode.namenodes.executor import Executor
from datanode.namenodes.identity import Identity, Namespace
from datanode.namenodes.namenode_client import Condition
from datanode.process.jmx import jmx_page
from datanode.process.operator_calls import leave_marks
from datanode.process.ownership import uuid_of
from datanode.process.rpc_services import DataNodeRpcServices
from datanode.process.settings import DataNodeSettings, block_access
from datanode.replicas.layout import NodeVersion
from datanode.replicas.scanner import Scanner
from datanode.replicas.store import Announcement, Store
from datanode.replicas.volume import Volume, unusable
from datanode.replicas.volumes import Volumes
from datanode.transfers.block_access import BlockAccess
from datanode.transfers.transfer import DamagedSource
from datanode.transfers.xceiver import XceiverServer
from ha.conf.listening import Door
from ha.daemon.binding import binding
from ha.daemon.end_code import end_code
from ha.daemon.http.endpoint import Endpoint
from ha.daemon.notify import SERVICE
from ha.daemon.process import ExitWith
from ha.record import dataclass
from ha.rpc.protocol import Method
from ha.rpc.server import RpcServer
from ha.security.access_control import AccessControl
from hadoop.proto import block_tokens_pb2 as tokens

log = structlog.get_logger()

_UPKEEP_SECONDS: Final = 3.0


class DataNode:
    """A DataNode.  It learns from the first NameNode that answers of which namespace it is."""

    def __init__(
        self,
        settings: DataNodeSettings,
        access: AccessControl | None = None,
        operators: Callable[["DataNode"], Mapping[str, Method]] = lambda _: {},
        routes: Callable[[], Sequence[Any]] = tuple,
    ) -> None:
        """``operators`` and ``routes`` return what can be called of it, and over HTTP."""
        self._settings = settings
        self._operators = operators
        self._stop = asyncio.Event()
        self._for_upgrade, self._http_port = False, 0
        self._access, self._routes = access, routes
        self._volumes: list[Volume] = []
        self._unusable: list[str] = []
        self._claims = claim.Claims()
        self._stale_claims: dict[claim.NameNodeId, int] = {}
        self._started = time.monotonic()
        self._joining = asyncio.Lock()
        self._running: AsyncExitStack = AsyncExitStack()
        self._joined: _Joined | None = None
        self._actors = {
            who: Actor(who, address, self, settings.rhythm)
            for who, address in settings.namenodes.items()
        }
        self._strangers: set[claim.NameNodeId] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Serve until ``stop`` is set, by an operator's call as well.

        Raises:
            ExitWith: 1 with the reason, when no or too few volumes can be used, when they belong to
                another cluster, or when an address is taken.
        """
        self._stop = stop
        async with self._running as running:
            await asyncio.to_thread(self._open_volumes)
            running.callback(lambda: None if self._joined else self._close_locks())
            endpoint = Endpoint(
                status=self.status, healthy=self.trouble, access=self._access,
                pages={"/jmx": lambda query: jmx_page(self, query)}, routes=self._routes,
            )  # fmt: skip
            self._http_port = await _listening(endpoint.start, self._settings.http)
            running.push_async_callback(endpoint.stop)
            tasks = [
                asyncio.create_task(actor.run(), name=f"actor of {who}")
                for who, actor in self._actors.items()
            ]
            tasks.append(asyncio.create_task(self._upkeep(), name="upkeep"))
            running.push_async_callback(_ended, tasks)
            ends = asyncio.create_task(stop.wait())
            running.push_async_callback(_ended, [ends])
            done, _ = await asyncio.wait([ends, *tasks], return_when=asyncio.FIRST_COMPLETED)
            if self._for_upgrade and self._joined is not None:
                await self._joined.xceivers.announce_restart()
            for task in done - {ends}:
                try:
                    task.result()
                except (UnusableVolume, WrongNamespace) as problem:
                    raise ExitWith(end_code(problem), str(problem)) from problem

    # For actors (their Member).

    async def join(self, who: claim.NameNodeId, namespace: Namespace) -> tuple[Identity, Store]:
        """Become a DataNode of this namespace, with the first NameNode that names it.

        Raises:
            WrongNamespace: if the directories belong to another cluster than all NameNodes.
            OtherNamespace: if they do to another than this one, or if this one is of another
                namespace than the one that was joined.
        """
        async with self._joining:
            if self._joined is None:
                try:
                    self._joined = await self._begin(namespace)
                except WrongNamespace as problem:
                    self._strangers.add(who)
                    if len(self._strangers) == len(self._actors):
                        raise
                    raise OtherNamespace(str(problem)) from problem
            found = self._joined.identity.namespace
        if found != namespace:
            raise OtherNamespace(
                f"it is of {namespace}, and this DataNode serves {found}: the configuration mixes "
                "clusters, or that NameNode was formatted anew"
            )
        return self._joined.identity, self._joined.store

    def condition(self) -> Condition:
        joined = self._joined
        if joined is None:
            return Condition((), self._unusable, 0, 0)
        volumes = joined.store.volumes
        return Condition(
            volumes.usage(),
            self._failed_paths(volumes),
            joined.executor.transfers,
            joined.xceivers.active,
            max((one.at for one in volumes.failed), default=0.0),
            sum(one.capacity for one in volumes.failed),
            joined.store.memory.capacity,
            joined.store.memory.used,
        )

    async def heard(self, who: claim.NameNodeId, said: claim.Said, txid: int) -> None:
        """Take in a claim; write it to the disk before a new NameNode is obeyed."""
        claims, verdict = claim.hear(self._claims, who, said, txid)
        if verdict is claim.ClaimEffect.OBEYED:
            paths = [volume.path for volume in self._volumes]
            await asyncio.to_thread(write_claims, paths, claims)
            # Another NameNode may have been heard in the meantime.
            claims, verdict = claim.hear(self._claims, who, said, txid)
        was_stale = self._stale_claims.pop(who, None) is not None
        facts = {"namenode": who, "txid": txid, "verdict": verdict.value}
        if verdict is claim.ClaimEffect.STALE:
            self._stale_claims[who] = txid
            if not was_stale:
                log.warning("datanode.claim", highest=claims.highest, advice=claim.REMEDY, **facts)
        elif verdict is not claim.ClaimEffect.NOTHING_NEW:
            log.info("datanode.claim", **facts)
        self._claims = claims
        if verdict is claim.ClaimEffect.OBEYED and self._joined is not None:
            self._joined.executor.obey(who)

    def commanded(self, who: claim.NameNodeId, commands: Sequence[Command]) -> None:
        if self._joined is not None and commands:
            self._joined.executor.add(who, commands)

    def forget_orders(self, who: claim.NameNodeId) -> None:
        if self._joined is not None:
            self._joined.executor.forget(who)

    async def take_queued(self) -> None:
        if self._joined is not None:
            await self._joined.executor.take_queued()

    def learn_keys(self, who: claim.NameNodeId, keys: tokens.ExportedBlockKeysProto) -> None:
        if self._joined is not None:
            self._joined.access.learn(who, keys)

    # For operators (their Operated).

    def report_soon(self, namenode: str, *, incremental: bool) -> None:
        for actor in self._actors.values():
            if not namenode or namenode == str(actor.address):
                (actor.send_news_soon if incremental else actor.report_soon)()

    def evict_writers(self) -> int:
        return self._joined.xceivers.evict_writers() if self._joined is not None else 0

    def uptime_seconds(self) -> float:
        return time.monotonic() - self._started

    def shut_down(self, *, for_upgrade: bool) -> bool:
        if self._stop.is_set():
            return False
        self._for_upgrade = for_upgrade
        self._stop.set()
        SERVICE.stopping()
        return True

    def use(self, settings: DataNodeSettings) -> None:
        """Go on with the rhythm, the limits and the tolerance of other settings."""
        self._settings = settings
        for actor in self._actors.values():
            actor.use_rhythm(settings.rhythm)
        if self._joined is not None:
            self._joined.xceivers.limits = settings.limits

    # For pages.

    def status(self) -> Mapping[str, object]:
        joined = self._joined
        return {
            "role": "datanode",
            "namenodes": {who: actor.state for who, actor in self._actors.items()},
            "obeyed": self._claims.obeyed,
            "highest_claim": self._claims.highest,
            "stale_claims": dict(self._stale_claims),
            "pool": joined.identity.namespace.pool if joined else None,
            "uuid": joined.identity.uuid if joined else None,
            "data_port": joined.identity.data_port if joined else None,
            "replicas": len(joined.store) if joined else None,
            "failed_volumes": self.condition().failed_paths,
            "block_tokens": joined.access.is_on if joined else None,
        }

    def trouble(self) -> str | None:
        if self._joined is None:
            states = "; ".join(f"{who}: {actor.state}" for who, actor in self._actors.items())
            return f"no NameNode has taken this DataNode yet ({states})"
        if not any(actor.calls for actor in self._actors.values()):
            return "no NameNode is reached"
        return None

    # Our own.

    def _open_volumes(self) -> None:
        for directory in self._settings.directories:
            try:
                self._volumes.append(Volume(directory))
            except UnusableVolume as problem:
                try:
                    self._leave_out(directory.path, problem)
                except UnusableVolume as one_too_many:
                    self._close_locks()
                    raise ExitWith(end_code(problem), str(one_too_many)) from problem
        if not self._volumes:
            raise ExitWith(1, "no data directory can be used")
        self._claims = read_claims(volume.path for volume in self._volumes)

    def _leave_out(self, path: Path, problem: UnusableVolume) -> None:
        """Go on without a volume; raise ``problem`` if more are out than is tolerated."""
        log.warning("datanode.unusable_volume", why=str(problem))
        self._unusable.append(str(path))
        if len(self._unusable) > self._settings.tolerated:
            raise problem

    def _close_locks(self) -> None:
        for volume in self._volumes:
            volume.close()

    async def _begin(self, namespace: Namespace) -> "_Joined":
        await asyncio.to_thread(self._format, namespace)
        volumes = Volumes(self._volumes, kept_free=self._settings.kept_free)
        self._running.push_async_callback(volumes.close)
        store = Store(volumes, locked_memory=self._settings.locked_memory)
        self._running.callback(store.memory.close)
        self._running.push_async_callback(leave_marks, store, lambda: self._for_upgrade)
        await store.load()
        self._check_failed(volumes)
        settings = self._settings
        version = self._volumes[0].version
        assert version is not None, "formatting gives every volume a version"
        scanner = Scanner(store, settings.scan, on_damage=self._tell_damage)
        access = block_access(settings, self._access, namespace.pool)
        xceivers = XceiverServer(
            store, namespace.pool, settings.limits, on_suspicion=scanner.suspect,
            on_damaged_source=self._tell_damage, moves=settings.moves, uuid=version.datanode_uuid,
            access=access,
        )  # fmt: skip
        data_port = await _listening(xceivers.start, settings.data)
        self._running.push_async_callback(xceivers.stop)
        of_operators = {**self._operators(self), **xceivers.moves.methods()}
        faces = DataNodeRpcServices(store, namespace.pool, of_operators)
        rpc = RpcServer(faces.protocols(), access=self._access)
        rpc_port = await _listening(rpc.start, settings.rpc)
        self._running.push_async_callback(rpc.stop)
        identity = Identity(
            version.datanode_uuid, settings.host_name, data_port, self._http_port, rpc_port,
            namespace,
        )  # fmt: skip
        executor = Executor(
            store, identity, settings.limits,
            obeyed=lambda: self._claims.obeyed, calls=lambda who: self._actors[who].calls,
            on_suspicion=scanner.suspect, on_bandwidth=xceivers.moves.throttle.use,
            access=access,
        )  # fmt: skip
        tasks = [
            asyncio.create_task(executor.run(), name="executor"),
            asyncio.create_task(scanner.run(), name="scanner"),
        ]
        self._running.push_async_callback(_ended, tasks)
        store.listeners.append(self._tell_all)
        SERVICE.ready()
        log.info(
            "datanode.ready", replicas=len(store), data_port=data_port, rpc_port=rpc_port,
            host=settings.data.host, because={door.key: door.why for door in settings.doors()},
        )  # fmt: skip
        return _Joined(identity, store, xceivers, executor, access)

    def _format(self, namespace: Namespace) -> None:
        """Make new volumes ours, and check that the others are of this namespace."""
        datanode_uuid = uuid_of(self._volumes, namespace)
        for volume in list(self._volumes):
            try:
                if volume.version is None:
                    storage = StorageId(f"DS-{uuid.uuid4()}")
                    volume.format(NodeVersion(storage, datanode_uuid, namespace.cluster_id))
                volume.join(namespace.pool_version)
            except OSError as problem:
                refusal = unusable(volume.path, problem)
                self._leave_out(volume.path, refusal)
                if len(self._volumes) == 1:
                    raise refusal from problem
                self._volumes.remove(volume)
                volume.close()

    def _tell_all(self, announcement: Announcement) -> None:
        for actor in self._actors.values():
            actor.tell(announcement)

    def _tell_damage(self, damaged: Replica | DamagedSource) -> None:
        for actor in self._actors.values():
            actor.report_damaged(damaged)

    async def _upkeep(self) -> None:
        """Measure the volumes; end when too many of them have failed."""
        while True:
            await asyncio.sleep(_UPKEEP_SECONDS)
            joined = self._joined
            if joined is None:
                continue
            await joined.store.volumes.measure()
            FAILED_VOLUMES.set(len(self._failed_paths(joined.store.volumes)))
            REPLICAS.set(len(joined.store))
            SHARED_BYTES.set(joined.xceivers.shared_bytes)
            LOCKED_BYTES.set(joined.store.memory.used)
            self._check_failed(joined.store.volumes)

    def _failed_paths(self, volumes: Volumes) -> list[str]:
        return [*self._unusable, *(str(one.volume.path) for one in volumes.failed)]

    def _check_failed(self, volumes: Volumes) -> None:
        failed = self._failed_paths(volumes)
        if len(failed) > self._settings.tolerated or not volumes.types:
            raise ExitWith(
                1,
                f"{len(failed)} data directories have failed, {self._settings.tolerated} are "
                f"tolerated: {', '.join(failed)}. Mend the disks, or raise "
                "dfs.datanode.failed.volumes.tolerated.",
            )


@dataclass(frozen=True, slots=True)
class _Joined:
    """What there is once the namespace is known."""

    identity: Identity
    store: Store
    xceivers: XceiverServer
    executor: Executor
    access: BlockAccess


async def _listening(start: Callable[[str, int], Awaitable[int]], door: Door) -> int:
    with binding(door.key, door.host, door.port):
        return await start(door.host, door.port)


async def _ended(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
