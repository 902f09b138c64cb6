"""A NameNode's client face without processes: a log in memory, a gate that is always open."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, TypeAlias

from google.protobuf.message import Message

from ha.rpc.errors import RemoteFault
from ha.rpc.java_names import CLIENT_PROTOCOL, STANDBY_EXCEPTION
from ha.rpc.protocol import Call
from ha.security.caller import Method
from hadoop.proto import client_namenode_pb2 as calls
from hadoop.proto.hdfs_types_pb2 import FsPermissionProto, HdfsFileStatusProto
from journal.model import LAYOUT_VERSION, TxId
from namenode_sim.blocks.incremental_reports import activate
from namenode_sim.blocks.state import BlockState
from namenode_sim.client_protocol.words.model import Scene, Settings
from namenode_sim.datanodes.cluster import Cluster
from namenode_sim.edits.codec import decode_all, encode
from namenode_sim.edits.ops import Op, Symlink
from namenode_sim.edits.values import Permission
from namenode_sim.leases.taking import SOFT_LIMIT_SECONDS
from namenode_sim.namespace.namespace import Namespace
from namenode_sim.process.client_service import ClientService
from tests.namenode_sim.carried_out import carried_out

Fields: TypeAlias = dict[str, Any]
"""A request's fields; a message inside may be written as a dictionary."""

SUPERUSER = "hdfs"
GROUPS = {
    "hdfs": frozenset({"hdfs"}),
    "alice": frozenset({"alice", "staff"}),
    "bob": frozenset({"bob", "staff"}),
    "carol": frozenset({"carol"}),
    "admin": frozenset({"supergroup"}),
}


@dataclass(slots=True)
class MemoryLog:
    """Keeps frames; ``held`` makes edits wait until it is set, ``broken`` makes them fail."""

    frames: list[bytes] = field(default_factory=list)
    held: asyncio.Event | None = None
    broken: bool = False
    waited_for: list[TxId] = field(default_factory=list)
    confirmed_reads: int = 0
    superseded: bool = False
    layout: int = LAYOUT_VERSION

    def append(self, op: Op) -> TxId:
        txid = TxId(len(self.frames) + 1)
        self.frames.append(encode(op, txid, self.layout))
        return txid

    async def durable(self, txid: TxId) -> None:
        self.waited_for.append(txid)
        if self.broken:
            raise ConnectionError("the journal is gone")
        if self.held is not None:
            await self.held.wait()

    def when_durable(self, txid: TxId, done: Callable[[], None]) -> None:
        self.waited_for.append(txid)
        if self.broken:
            raise ConnectionError("the journal is gone")
        if self.held is None or self.held.is_set():
            done()
            return
        waiting = asyncio.ensure_future(self.held.wait())
        waiting.add_done_callback(lambda _: done())

    def is_durable(self, _: TxId) -> bool:
        return not self.broken and (self.held is None or self.held.is_set())

    def is_confirmed(self) -> bool:
        self.confirmed_reads += not self.superseded
        return not self.superseded

    async def confirmed(self, txid: TxId) -> None:
        await self.durable(txid)
        self.confirmed_reads += 1
        if self.superseded:
            raise RemoteFault(STANDBY_EXCEPTION, "superseded")

    def ops(self) -> list[Op]:
        """Return the edits as a standby reads them."""
        return [op for _, op in decode_all(b"".join(self.frames), self.layout)]

    def replayed(self) -> Namespace:
        namespace = Namespace.empty(SUPERUSER)
        for txid, op in decode_all(b"".join(self.frames), self.layout):
            namespace.apply(txid, op)
        return namespace


@dataclass(slots=True)
class OpenGate:
    """Lets everybody in and remembers what for."""

    admitted: list[tuple[str, bool]] = field(default_factory=list)
    open: bool = True
    """Whether calls need not ask."""

    def is_open(self) -> bool:
        return self.open

    async def admit(self, method: str, *, writes: bool) -> None:
        self.admitted.append((method, writes))


@dataclass(slots=True)
class Served:
    """A client face and ways to call it as different users."""

    log: MemoryLog
    gate: OpenGate
    face: ClientService
    methods: Mapping[str, tuple[type[Message], Callable[[Call, Message], Awaitable[Message]]]]
    call_ids: "count[int]" = field(default_factory=count)

    @property
    def namespace(self) -> Namespace:
        return self.face.namespace

    @property
    def cluster(self) -> Cluster:
        return self.face.cluster

    def scene(self, user: str = "") -> Scene:
        """Return what the NameNode would plan from now for a call of this user, or of its own."""
        return self.face.scene(Call(CLIENT_PROTOCOL, "", b"", -2, -1, user, None, ""))

    def log_and_apply(self, op: Op) -> None:
        """Log and apply an edit that no call makes, as one of an older NameNode."""
        self.namespace.apply(self.log.append(op), op)

    async def call(
        self,
        method: str,
        *,
        user: str = SUPERUSER,
        client_id: bytes = b"client-of-16byte",
        call_id: int | None = None,
        host: str = "127.0.0.1",
        real_user: str | None = None,
        proof: Method = Method.PEER_UID,
        **fields: object,
    ) -> Message:
        """Make one call; a ``call_id`` used before makes it a repetition."""
        request, handle = self.methods[method]
        number = next(self.call_ids) if call_id is None else call_id
        who = (user, real_user, host)
        call = Call(CLIENT_PROTOCOL, method, client_id, number, 0, *who, proof=proof)
        return await handle(call, request(**fields))  # protobuf checks

    async def mkdirs(self, src: str, mode: int = 0o755, **more: object) -> bool:
        fields = {"src": src, "masked": FsPermissionProto(perm=mode), "createParent": True}
        answer = await self.call("mkdirs", **{**fields, **more})  # type: ignore[arg-type]
        assert isinstance(answer, calls.MkdirsResponseProto)
        return answer.result

    async def create(self, src: str, **more: object) -> HdfsFileStatusProto:
        """Create and leave open; ``createFlag`` 1 is CREATE, 3 CREATE and OVERWRITE."""
        fields = {
            "src": src,
            "masked": FsPermissionProto(perm=0o644),
            "clientName": "writer",
            "createFlag": 1,
            "createParent": True,
            "replication": 3,
            "blockSize": 1 << 27,
        }
        answer = await self.call("create", **{**fields, **more})  # type: ignore[arg-type]
        assert isinstance(answer, calls.CreateResponseProto)
        return answer.fs

    async def touch(self, src: str, **more: object) -> HdfsFileStatusProto:
        status = await self.create(src, **more)
        names = {key: value for key, value in more.items() if key in {"user", "clientName"}}
        await self.complete(src, fileId=status.fileId, **names)
        return status

    async def take_snapshot(self, root: str, name: str) -> None:
        """Allow a directory to have snapshots, and take one."""
        await self.call("allowSnapshot", snapshotRoot=root)
        await self.call("createSnapshot", snapshotRoot=root, snapshotName=name)

    async def complete(self, src: str, **more: object) -> bool:
        answer = await self.call("complete", **{"src": src, "clientName": "writer", **more})  # type: ignore[arg-type]
        assert isinstance(answer, calls.CompleteResponseProto)
        return answer.result

    async def status(self, src: str, **more: object) -> HdfsFileStatusProto | None:
        answer = await self.call("getFileInfo", src=src, **more)  # type: ignore[arg-type]
        assert isinstance(answer, calls.GetFileInfoResponseProto)
        return answer.fs if answer.HasField("fs") else None


class NamedGroups:
    """Everybody's groups are known from the start."""

    def has_learnt(self, user: str) -> bool:
        return True

    async def learn(self, user: str) -> None:
        return

    def forget(self) -> None:
        return

    def known(self, user: str) -> frozenset[str]:
        return GROUPS.get(user, frozenset())


def serve(
    *,
    settings: Settings | None = None,
    namespace: Namespace | None = None,
    active: bool = True,
    minimum: int = 1,
    layout: int = LAYOUT_VERSION,
) -> Served:
    """Return a new NameNode in memory; give a namespace to go on from one, as after a failover."""
    log, gate = MemoryLog(layout=layout), OpenGate()
    served = namespace or Namespace.empty(SUPERUSER)
    cluster = Cluster("BP-1-127.0.0.1-1", BlockState(minimum=minimum), random.Random(1))
    cluster.belong_to(served)
    if active:
        activate(cluster.blocks)
    face = ClientService(
        served,
        log,
        gate,
        SUPERUSER,
        cluster,
        settings=settings or Settings(),
        groups=NamedGroups(),
        layout=layout,
    )
    if namespace is not None:
        log.frames = [b""] * namespace.last_applied
    methods = {
        name: (method.request, partial(carried_out, method))
        for name, method in face.protocol().methods.items()
    }
    return Served(log, gate, face, methods)


async def prepared(settings: Settings | None = None) -> Served:
    """``/d/e``, closed ``/f`` and ``/d/g``, open ``/open``."""
    served = serve(settings=settings)
    await served.mkdirs("/d/e")
    await served.touch("/f")
    await served.touch("/d/g")
    await served.create("/open", host="10.0.0.9")
    return served


LINKS = {"/link": "/gone", "/relative": "gone", "/deep": "/d/gone", "/d/f": "g"}


async def linked() -> Served:
    """Return a NameNode with links in addition to what ``prepared`` has."""
    served = await prepared()
    for path, target in LINKS.items():
        inode_id = served.namespace.counters.last_inode_id + 1
        rights = Permission("alice", "staff", 0o777)
        served.log_and_apply(Symlink(inode_id, path, target, 1, 1, rights))
    return served


def silent_beyond_the_soft_limit(served: Served, holder: str = "writer") -> None:
    """Let a writer be last heard of more than a minute ago."""
    served.face.leases.renew(holder, time.monotonic() - SOFT_LIMIT_SECONDS - 1)
