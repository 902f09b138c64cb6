"""One NameNode process: storage, namespace, journal, RPC and HTTP, put together."""

import asyncio
import os
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from ha.conf.configuration import Configuration
from ha.conf.keys import blocks as keys_blocks
from ha.conf.keys import cluster as keys
from ha.conf.keys import files as keys_files
from ha.conf.keys import namenode as keys_namenode
from ha.conf.own_user import own_user
from ha.daemon.end_code import ONLY_A_PERSON
from ha.daemon.exposure import refresh_lists
from ha.daemon.notify import SERVICE
from ha.daemon.private_files import warn_of_open_folders
from ha.daemon.process import UNEXPECTED, halt
from ha.record import dataclass
from ha.rpc.protocol import RpcProtocol
from ha.security.access_control import AccessControl
from ha.service.ha_service import ha_service_protocol
from journal.model import TxId
from namenode_sim.checkpoint.on_request import SaveOnRequest
from namenode_sim.client_audit import client_audit
from namenode_sim.datanode_protocol.keeper import Keeper
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.huge_pages import keep_in_huge_pages
from namenode_sim.image.load_progress import LoadProgress
from namenode_sim.metrics import enter_state
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.namespace.retry_cache import MAX_ENTRIES, RetryCache
from namenode_sim.process.client_service import ClientService
from namenode_sim.process.client_settings import client_settings, groups_of
from namenode_sim.process.datanodes import cluster_of, datanode_protocols, keeper_of, live_changes
from namenode_sim.process.duties import (
    expire_tokens,
    notify_when_ready,
    overdue,
    release_leases,
    roll_edits,
    roll_long_segments,
)
from namenode_sim.process.ha_service import NameNodeHaService, disk_trouble_of
from namenode_sim.process.jmx import NameNodeBeans
from namenode_sim.process.listeners import Listeners
from namenode_sim.process.loading import Loading, load_in_thread, loading_protocols
from namenode_sim.process.peer_service import (
    checkpointer,
    forget_old,
    peer_protocol,
    witness_protocol,
)
from namenode_sim.process.refresh_service import refresh_protocols
from namenode_sim.process.status_page import INITIALIZING, LoadingPage, StatusPage
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
from namenode_sim.supervised import supervise
from namenode_sim.term.gate import Gate
from namenode_sim.term.journal_access import JournalAccess
from namenode_sim.term.namenode import NameNode, TransitionRefused
from namenode_sim.term.role import Role
from namenode_sim.token_login import offer_tokens
from namenode_sim.transfer.peers import Peers

if TYPE_CHECKING:
    from aiohttp import web

log = structlog.get_logger()

PEER_DEADLINE_SECONDS: Final = 0.3
PARK_BEYOND_SESSION_SECONDS: Final = 3.0
LEAVE_SECONDS: Final = 10.0
PREPARE_AFTER_SECONDS: Final = 2.0
"""From the start of service until aiohttp is loaded, if nothing has needed it before."""


async def run_namenode(
    conf: Configuration, stop: asyncio.Event, access: AccessControl | None = None
) -> None:
    """Serve until ``stop`` is set; halt with exit code 1 when the journal refuses us.

    It listens before it loads the image, which may take minutes, and reports that it is loading: an
    observer must not take it for dead.

    Raises:
        ExitWith: 1 with the reason, when an address is taken.
        ImageError, EditsError, StorageError: when the name directories cannot be used.
    """
    place = NameNodeIdentity.from_configuration(conf)
    settings = client_settings(conf)  # reports what is wrong in it before the load
    async with AsyncExitStack() as running:
        storage = open_name_dirs(name_directories(conf, place.address), storage_settings(conf))
        running.callback(storage.close)
        warn_of_open_folders([*storage.directories, *edits_directories(conf, place.address)])
        loading = Loading(place.address.namenode)
        face = ha_service(conf, place, loading)
        if access is not None and settings.tokens.issued:
            offer_tokens(access, face.secrets_of_active)
        operators = ha_service_protocol(face)
        begun = datetime.now(UTC).isoformat(timespec="milliseconds")
        listeners = Listeners(
            conf,
            place,
            [operators, *loading_protocols()],
            LoadingPage(place, loading, begun),
            access,
        )
        enter_state(INITIALIZING)
        try:
            await listeners.start()
            loaded = await load_in_thread(loading, partial(_load, conf, place, storage), stop)
            if loaded is not None:
                parts = _Parts(conf, place, storage, loaded, face, operators, access)
                namenode = await parts.start(listeners, running, begun)
                SERVICE.overdue = partial(overdue, namenode)
                await _serve(namenode, stop)
        finally:
            await listeners.stop()


async def _serve(namenode: NameNode, stop: asyncio.Event) -> None:
    ends: set[asyncio.Future[Any]] = {
        asyncio.create_task(stop.wait()),
        namenode.stopped_because,
    }
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if namenode.stopped_because.done():
        halt(
            f"namenode {namenode.name}",
            ONLY_A_PERSON if namenode.tailer.journal_of_others else UNEXPECTED,
            f"stopped: {namenode.stopped_because.result()}. Edits that clients were not told "
            "of may or may not survive; nothing acknowledged is lost. Start it again when the "
            "cause is gone; it comes back as standby.",
        )
    await _leave_orderly(namenode)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """What is read before anything can be served."""

    namespace: Namespace
    must_reach: TxId


def _load(
    conf: Configuration, place: NameNodeIdentity, storage: NameStorage, progress: LoadProgress
) -> _Loaded:
    """Load the image, in a thread; nothing else touches the storage until this returns."""
    namespace = storage.load(progress)
    namespace.retry_cache = retry_cache(conf)
    local = edits_directories(conf, place.address)
    return _Loaded(namespace, last_local_edit(local, namespace.last_applied))


def retry_cache(conf: Configuration) -> RetryCache:
    """Return an empty cache of answers, out of Hadoop's keys."""
    most = MAX_ENTRIES if conf.get(keys_files.RETRY_CACHE) else 0
    expiry = conf.get(keys_files.RETRY_CACHE_EXPIRY)
    return RetryCache(expiry_seconds=expiry, max_entries=most)


def park_timeout(conf: Configuration, nameservice: str, name: str) -> float:
    """Return seconds enough for a dead host's lock to expire, and for a takeover after that.

    A client that is refused before is back a second or more after the successor is active.
    """
    scope = {"nameservice": nameservice, "namenode": name}
    given = conf.get(keys.PARK_TIMEOUT, **scope)
    if given is not None:
        return given
    return conf.get(keys.ZOOKEEPER_SESSION_TIMEOUT, **scope) + PARK_BEYOND_SESSION_SECONDS


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a NameNode that has its namespace consists of."""

    conf: Configuration
    place: NameNodeIdentity
    storage: NameStorage
    loaded: _Loaded
    face: NameNodeHaService
    operators: RpcProtocol
    """Of the face: one for both stages, for it remembers under which lock it was demoted."""
    access: AccessControl | None

    async def start(
        self, listeners: Listeners, running: AsyncExitStack, started_at: str
    ) -> NameNode:
        """Put them together as a standby, and behind the open doors."""
        conf, place, storage, face = self.conf, self.place, self.storage, self.face
        nameservice, name = place.address.nameservice, place.address.namenode
        peers = Peers(place.peers, deadline_seconds=PEER_DEADLINE_SECONDS)
        running.push_async_callback(peers.close)
        gate = Gate(
            any_peer_active=peers.any_active,
            park_timeout_seconds=park_timeout(conf, nameservice, name),
        )
        running.push_async_callback(gate.close)
        copies = _local_copies(conf, place, running)
        journal = journal_access(conf, place, storage.namespace_info, copies)
        namenode = self._namenode(gate, journal)
        cluster = cluster_of(conf, storage.namespace_info, namenode.namespace, name)
        keeper = await keeper_of(conf, storage.namespace_info, namenode, cluster)
        client_service = _client_service(self, namenode, gate, cluster)
        copies.on_required_lost(namenode.end_because)
        checkpoints = checkpointer(conf, place, namenode, storage)
        beans = NameNodeBeans(
            namenode,
            storage.namespace_info,
            str(place.address.rpc),
            storage.newest_txid,
            keeper,
        )
        shown = (place, namenode, face, copies, beans, keeper.summary)
        page = StatusPage(*shown, started_at=started_at, checkpoints=checkpoints)
        page.measure()
        log.info(
            "namenode.started", namenode=name, rpc=str(place.address.rpc),
            http=str(place.address.http), applied_txid=namenode.namespace.last_applied,
            pid=os.getpid(),
        )  # fmt: skip
        namenode.start()
        face.loaded(namenode, keeper.safe_mode.tip)
        running.push_async_callback(namenode.stop)
        faces = [
            client_service.protocol(),
            *self._refreshing(client_service),
            *datanode_protocols(keeper, storage.namespace_info, client_service),
            live_changes(conf, storage.namespace_info, keeper, client_service),
            self.operators,
            witness_protocol(journal.silence),
            peer_protocol(namenode, storage, client_service),
        ]
        await listeners.serve(faces, page, partial(self._routes, namenode, client_service, keeper))
        duties = _duties(conf, place, namenode, client_service) | keeper.duties()
        duties["last-hour"] = page.hour.run()
        duties["huge-pages"] = keep_in_huge_pages()
        duties["prepare-http"] = _prepare(listeners)
        duties["tell-systemd"] = notify_when_ready(namenode)
        if checkpoints is not None:
            duties["checkpoints"] = checkpoints.run()
        broken = namenode.end_because
        tasks = [supervise(work, name, broken) for name, work in duties.items()]
        running.push_async_callback(_end, tasks)
        return namenode

    def _refreshing(self, service: ClientService) -> "Sequence[RpcProtocol]":
        lists = partial(refresh_lists, self.access, self.conf)
        return refresh_protocols(service, service.groups.forget, lists)

    def _routes(
        self, namenode: NameNode, client_service: ClientService, keeper: Keeper
    ) -> "Sequence[web.RouteDef]":
        # Loaded here, with aiohttp: see _prepare.
        from namenode_sim.process.client_routes import client_routes
        from namenode_sim.process.image_routes import image_routes

        checked = keeper.upkeep.redundancy
        of_clients = client_routes(self.conf, self.place, client_service, checked, self.access)
        return (*image_routes(self.conf, self.place, self.storage, namenode), *of_clients)

    def _namenode(self, gate: Gate, journal: JournalAccess) -> NameNode:
        """Make the NameNode itself, which no other part refers to yet."""
        conf, address = self.conf, self.place.address
        scope = {"nameservice": address.nameservice, "namenode": address.namenode}
        return NameNode(
            name=address.namenode,
            namespace=self.loaded.namespace,
            journal=journal,
            gate=gate,
            tail_period_seconds=conf.get(keys_namenode.TAIL_PERIOD, **scope),
            must_reach=self.loaded.must_reach,
        )


def _duties(
    conf: Configuration, place: NameNodeIdentity, namenode: NameNode, client_service: ClientService
) -> dict[str, Coroutine[object, object, None]]:
    scope = {"nameservice": place.address.nameservice, "namenode": place.address.namenode}
    most = conf.get(keys_namenode.AUTOROLL_MULTIPLIER) * conf.get(
        keys_namenode.CHECKPOINT_TXNS, **scope
    )
    duties = {
        "leases": release_leases(namenode, client_service, conf.get(keys_files.LEASE_RECHECK)),
        "roll-long-segments": roll_long_segments(
            namenode, conf.get(keys_namenode.AUTOROLL_INTERVAL), most
        ),
    }
    if client_service.settings.tokens.issued:
        duties["expire-tokens"] = expire_tokens(namenode, client_service)
    period = conf.get(keys_namenode.LOG_ROLL_PERIOD, **scope)
    if period > 0:
        duties["roll-edits"] = roll_edits(namenode, period)
    return duties


def _local_copies(
    conf: Configuration, place: NameNodeIdentity, running: AsyncExitStack
) -> LocalCopies:
    copies = LocalCopies(
        copy_directories(conf, place.address), required=required_directories(conf, place.address)
    )
    running.callback(copies.close)
    return copies


def ha_service(conf: Configuration, place: NameNodeIdentity, loading: Loading) -> NameNodeHaService:
    """Return what answers ZKFCs and operators, in both stages."""
    return NameNodeHaService(
        loading,
        superuser=own_user(),
        automatic_failover=conf.get(keys.AUTO_FAILOVER, nameservice=place.address.nameservice),
        not_active_in_safe_mode=conf.get(keys_blocks.NOT_ACTIVE_IN_SAFE_MODE),
        disk_trouble=disk_trouble_of(
            [*name_directories(conf, place.address), *checked_volumes(conf)],
            reserved_bytes=conf.get(keys_namenode.RESOURCE_RESERVED),
        ),
    )


def _client_service(
    parts: _Parts, namenode: NameNode, gate: Gate, cluster: Cluster
) -> ClientService:
    conf, storage = parts.conf, parts.storage
    images = SaveOnRequest(namenode, storage, partial(forget_old, storage, namenode))
    client_service = ClientService(
        namenode.namespace,
        namenode,
        gate,
        own_user(),
        cluster,
        host=parts.place.address.rpc.host,
        supergroup=conf.get(keys_files.SUPERGROUP),
        settings=client_settings(conf),
        groups=groups_of(conf),
        state=lambda: "active" if namenode.state.role is Role.ACTIVE else "standby",
        on_broken=namenode.end_because,
        roll=namenode.roll_edits,
        save=images.save,
        upgrade_pending=lambda: storage.upgrade_pending,
        watch=client_audit(conf, namenode.namespace),
        layout=storage.namespace_info.edits_layout,
    )
    namenode.listen_for_roles(
        lambda role: client_service.became_active() if role is Role.ACTIVE else None
    )
    return client_service


async def _prepare(listeners: Listeners) -> None:
    """Import aiohttp before it is needed, but not while a NameNode starts: it takes 0.15 s.

    A cluster that starts elects its first active in that time.  A later active may have to fetch
    edits by HTTP when it takes over, and must not wait for an import then.
    """
    await asyncio.sleep(PREPARE_AFTER_SECONDS)
    await listeners.prepare()


async def _leave_orderly(namenode: NameNode) -> None:
    """End an active's segment on SIGTERM, so that its successor has nothing to recover."""
    if namenode.state.role is not Role.ACTIVE:
        return
    try:
        async with asyncio.timeout(LEAVE_SECONDS):
            await namenode.become_standby()
    except (TimeoutError, TransitionRefused) as failure:
        log.warning("namenode.left_segment_open", why=str(failure) or "no answer in time")


async def _end(duties: Sequence[asyncio.Task[None]]) -> None:
    """Cancel and await the duties: a checkpoint must end before the directories are released."""
    for duty in duties:
        duty.cancel()
    await asyncio.gather(*duties, return_exceptions=True)
