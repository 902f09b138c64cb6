"""One NameNode process: storage, namespace, journal, RPC and HTTP, put together."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.keys import cluster as keys
from ha.conf.keys import files as keys_files
from ha.conf.keys import namenode as keys_namenode
from ha.conf.own_user import own_user
from ha.conf.topology import HostPort
from ha.daemon.endpoint import Endpoint
from ha.daemon.process import ExitWith, halt
from ha.rpc.limits import RpcLimits
from ha.rpc.server import RpcServer
from ha.service.face import ha_service_protocol
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.retry_cache import MAX_ENTRIES, RetryCache
from namenode_sim.process.client_face import ClientFace, SystemGroups
from namenode_sim.process.client_settings import client_settings
from namenode_sim.process.ha_face import HaFace, disk_trouble_of
from namenode_sim.process.jmx import NameNodeBeans
from namenode_sim.process.peer_face import checkpointer, image_routes, peer_protocol
from namenode_sim.process.status_page import StatusPage
from namenode_sim.startup.identity import (
    NameNodeIdentity,
    checked_volumes,
    copy_directories,
    edits_directories,
    journal_access,
    name_directories,
    required_directories,
    storage_settings,
)
from namenode_sim.storage.local_copies import LocalCopies
from namenode_sim.storage.local_edits import last_local_edit
from namenode_sim.storage.storage import NameStorage, open_name_dirs
from namenode_sim.supervised import supervised
from namenode_sim.term.gate import Gate
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from namenode_sim.transfer.peers import Peers

log = structlog.get_logger()

PEER_DEADLINE_SECONDS: Final = 0.3
PARK_BEYOND_SESSION_SECONDS: Final = 3.0
LEAVE_SECONDS: Final = 10.0
LOOPBACK: Final = "127.0.0.1"


async def run_namenode(conf: Configuration, stop: asyncio.Event) -> None:
    """Serve until ``stop`` is set; halt with exit code 1 when the journal refuses us.

    Raises:
        ExitWith: 1 with the reason, when an address is taken.
        StorageError: when the name directories cannot be used.
    """
    place = NameNodeIdentity.from_configuration(conf)
    async with AsyncExitStack() as running:
        storage = open_name_dirs(name_directories(conf, place.address), storage_settings(conf))
        running.callback(storage.close)
        namespace = storage.load()
        namespace.retry_cache = _retry_cache(conf)
        namenode = await _start_parts(conf, place, storage, namespace, running)
        log.info(
            "namenode.started",
            namenode=place.address.namenode,
            rpc=str(place.address.rpc),
            http=str(place.address.http),
            applied_txid=namespace.last_applied,
            pid=os.getpid(),
        )
        ends: set[asyncio.Future[Any]] = {
            asyncio.create_task(stop.wait()),
            namenode.stopped_because,
        }
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        if namenode.stopped_because.done():
            halt(
                f"namenode {place.address.namenode}",
                1,
                f"stopped: {namenode.stopped_because.result()}. Edits that clients were not told "
                "of may or may not survive; nothing acknowledged is lost. Start it again when the "
                "cause is gone; it comes back as standby.",
            )
        await _leave_orderly(namenode)


def _retry_cache(conf: Configuration) -> RetryCache:
    most = MAX_ENTRIES if conf.get(keys_files.RETRY_CACHE) else 0
    expiry = conf.get(keys_files.RETRY_CACHE_EXPIRY)
    return RetryCache(expiry_seconds=expiry, max_entries=most)


def _park_timeout(conf: Configuration, nameservice: str, name: str) -> float:
    """Long enough for the lock of a dead host to expire, and for a takeover after that.

    A client that is refused before is back a second or more after the successor is active.
    """
    scope = {"nameservice": nameservice, "namenode": name}
    given = conf.get(keys.PARK_TIMEOUT, **scope)
    if given is not None:
        return given
    return conf.get(keys.ZOOKEEPER_SESSION_TIMEOUT, **scope) + PARK_BEYOND_SESSION_SECONDS


async def _start_parts(
    conf: Configuration,
    place: NameNodeIdentity,
    storage: NameStorage,
    namespace: Namespace,
    running: AsyncExitStack,
) -> NameNode:
    nameservice, name = place.address.nameservice, place.address.namenode
    peers = Peers(place.peers, deadline_seconds=PEER_DEADLINE_SECONDS)
    running.push_async_callback(peers.close)
    gate = Gate(
        any_peer_active=peers.any_active,
        park_timeout_seconds=_park_timeout(conf, nameservice, name),
    )
    running.push_async_callback(gate.close)
    copies = _local_copies(conf, place, running)
    namenode = NameNode(
        name=name,
        namespace=namespace,
        journal=journal_access(conf, place, storage.namespace_info, copies),
        gate=gate,
        tail_period_seconds=conf.get(
            keys_namenode.TAIL_PERIOD, nameservice=nameservice, namenode=name
        ),
        must_reach=last_local_edit(edits_directories(conf, place.address), namespace.last_applied),
    )
    face, client_face = _faces(conf, place, namenode, gate)
    copies.on_required_lost(namenode.end_because)
    checkpoints = checkpointer(conf, place, namenode, storage)
    page = StatusPage(place, namenode, face, copies, checkpoints)
    endpoint = _endpoint(conf, place, storage, namenode, page)
    namenode.start()
    running.push_async_callback(namenode.stop)
    protocols = [
        client_face.protocol(),
        ha_service_protocol(face),
        peer_protocol(namenode, storage, own_user()),
    ]
    for where, bind_host in _rpc_addresses(conf, place):
        server = RpcServer(protocols, limits=_rpc_limits(conf))
        await _listen(server.start, bind_host, where.port, "RPC")
        running.push_async_callback(server.stop)
    http_host, http_port = _http_address(conf, place)
    await _listen(endpoint.start, http_host, http_port, "HTTP")
    running.push_async_callback(endpoint.stop)
    broken = namenode.end_because
    duties = _duties(conf, place, namenode, client_face)
    if checkpoints is not None:
        duties["checkpoints"] = checkpoints.run()
    tasks = [supervised(work, name, broken) for name, work in duties.items()]
    running.push_async_callback(_end, tasks)
    return namenode


def _duties(
    conf: Configuration, place: NameNodeIdentity, namenode: NameNode, client_face: ClientFace
) -> dict[str, Coroutine[object, object, None]]:
    """What an active does every now and then."""
    scope = {"nameservice": place.address.nameservice, "namenode": place.address.namenode}
    most = conf.get(keys_namenode.AUTOROLL_MULTIPLIER) * conf.get(
        keys_namenode.CHECKPOINT_TXNS, **scope
    )
    duties = {
        "leases": _release_leases(namenode, client_face, conf.get(keys_files.LEASE_RECHECK)),
        "roll-long-segments": _roll_long_segments(
            namenode, conf.get(keys_namenode.AUTOROLL_INTERVAL), most
        ),
    }
    period = conf.get(keys_namenode.LOG_ROLL_PERIOD, **scope)
    if period > 0:
        duties["roll-edits"] = _roll_edits(namenode, period)
    return duties


def _rpc_limits(conf: Configuration) -> RpcLimits:
    most = conf.get(keys.IPC_MAXIMUM_DATA_LENGTH)
    before = min(RpcLimits().max_handshake_frame_bytes, most)
    return RpcLimits(max_frame_bytes=most, max_handshake_frame_bytes=before)


def _endpoint(
    conf: Configuration,
    place: NameNodeIdentity,
    storage: NameStorage,
    namenode: NameNode,
    page: StatusPage,
) -> Endpoint:
    """What is asked over HTTP; nobody listens yet."""
    page.measure()
    beans = NameNodeBeans(
        namenode, storage.namespace_info, str(place.address.rpc), storage.newest_txid
    )
    return Endpoint(
        status=page.status,
        healthy=page.trouble,
        ready=page.not_ready,
        role=page.role,
        pages={"/jmx": beans.page},
        routes=lambda: image_routes(conf, storage, namenode),
    )


def _local_copies(
    conf: Configuration, place: NameNodeIdentity, running: AsyncExitStack
) -> LocalCopies:
    copies = LocalCopies(
        copy_directories(conf, place.address), required=required_directories(conf, place.address)
    )
    running.callback(copies.close)
    return copies


def _rpc_addresses(conf: Configuration, place: NameNodeIdentity) -> list[tuple[HostPort, str]]:
    """Where to serve RPC, and the host to listen on: the client port, and others that are set.

    A service or lifeline port of its own keeps ZKFCs and health probes from waiting behind clients.
    """
    address = place.address
    scope = {"nameservice": address.nameservice, "namenode": address.namenode}
    addresses = [(address.rpc, conf.get(keys.NAMENODE_RPC_BIND, **scope) or address.rpc.host)]
    extra = {
        address.service: keys.NAMENODE_SERVICE_RPC_BIND,
        address.lifeline: keys.NAMENODE_LIFELINE_BIND,
    }
    for where, bind_key in extra.items():
        if where != address.rpc:
            addresses.append((where, conf.get(bind_key, **scope) or where.host))
    return addresses


def _http_address(conf: Configuration, place: NameNodeIdentity) -> tuple[str, int]:
    """Where to serve HTTP; on loopback unless an address is configured, unlike Hadoop."""
    address = place.address
    scope = {"nameservice": address.nameservice, "namenode": address.namenode}
    if bind_host := conf.get(keys.NAMENODE_HTTP_BIND, **scope):
        return bind_host, address.http.port
    configured = conf.is_set(keys.NAMENODE_HTTP, **scope)
    return address.http.host if configured else LOOPBACK, address.http.port


def _faces(
    conf: Configuration, place: NameNodeIdentity, namenode: NameNode, gate: Gate
) -> tuple[HaFace, ClientFace]:
    """What operators and ZKFCs see of the NameNode, and what its clients see."""
    superuser = own_user()
    face = HaFace(
        namenode,
        superuser=superuser,
        automatic_failover=conf.get(keys.AUTO_FAILOVER, nameservice=place.address.nameservice),
        disk_trouble=disk_trouble_of(
            [*name_directories(conf, place.address), *checked_volumes(conf)],
            reserved_bytes=conf.get(keys_namenode.RESOURCE_RESERVED),
        ),
    )
    client_face = ClientFace(
        namenode.namespace,
        namenode,
        gate,
        superuser,
        supergroup=conf.get(keys_files.SUPERGROUP),
        settings=client_settings(conf),
        groups_of=SystemGroups(conf.get(keys_files.STATIC_GROUPS)),
        state=lambda: "active" if namenode.state.role is Role.ACTIVE else "standby",
        on_broken=namenode.end_because,
        roll=namenode.roll_edits,
    )
    namenode.listen_for_roles(
        lambda role: client_face.became_active() if role is Role.ACTIVE else None
    )
    return face, client_face


async def _leave_orderly(namenode: NameNode) -> None:
    """On SIGTERM an active ends its segment, so that its successor has nothing to recover."""
    if namenode.state.role is not Role.ACTIVE:
        return
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await namenode.become_standby()
    except (TimeoutError, TransitionRefused) as failure:
        log.warning("namenode.left_segment_open", why=str(failure) or "no answer in time")


async def _roll_edits(namenode: NameNode, period_seconds: float) -> None:
    """The active rolls by itself, so that standbys see edits without asking it."""
    while True:
        await asyncio.sleep(period_seconds)
        namenode.roll_edits()


async def _roll_long_segments(namenode: NameNode, look_seconds: float, most: float) -> None:
    """The active ends a segment that has grown long before its time (NameNodeEditLogRoller)."""
    while True:
        await asyncio.sleep(look_seconds)
        if namenode.edit_log is not None and namenode.edit_log.edits_in_segment > most:
            namenode.roll_edits()


async def _release_leases(namenode: NameNode, client_face: ClientFace, look_seconds: float) -> None:
    while True:
        await asyncio.sleep(look_seconds)
        if namenode.state.role is Role.ACTIVE:
            await client_face.release_expired_leases()


async def _end(duties: Sequence[asyncio.Task[None]]) -> None:
    """A checkpoint under way ends before the directories are let go of."""
    for duty in duties:
        duty.cancel()
    await asyncio.gather(*duties, return_exceptions=True)


async def _listen(
    start: Callable[[str, int], Awaitable[int]], host: str, port: int, what: str
) -> None:
    try:
        await start(host, port)
    except (OSError, OverflowError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else str(failure)
        raise ExitWith(
            1,
            f"the NameNode cannot listen for {what} on {host}:{port}: {reason}. Nothing was "
            "changed. Is another NameNode running there? Otherwise correct the address.",
        ) from failure
